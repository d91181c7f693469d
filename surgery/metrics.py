"""Measures on tensors: pure functions, units stated, defined at zeros.

Weights are (..., query, key). A row of weights may hold zeros; a row that is all zeros (no permitted key) has no
distribution: what is undefined there is NaN, and `mean` leaves NaN out. Measures of distributions first divide a row by
its sum, so that weights after dropout are measured too. Logarithms are natural: nats.
"""

import math

import torch
from torch import Tensor


def normalised(weights: Tensor) -> Tensor:
    """Rows divided by their sums; NaN where the sum is 0."""
    return weights / weights.sum(-1, keepdim=True)


def x_log_x(p: Tensor) -> Tensor:
    """p ln p, 0 at 0; NaN where p is. (...) -> (...)."""
    return p.clamp_min(torch.finfo(p.dtype).tiny).log_().mul_(p)


def entropy(weights: Tensor) -> Tensor:
    """-Σ p ln p over the last axis, in nats: 0 for one-hot, ln n for uniform (Shannon 1948). (..., key) -> (...)."""
    return -x_log_x(normalised(weights)).sum(-1) + 0.0  # + 0.0: never "-0"


def kl_divergence(p: Tensor, q: Tensor) -> Tensor:
    """KL(p ‖ q) = Σ p ln(p/q), in nats; inf where q is 0 and p is not. (..., key) -> (...)."""
    p, q = normalised(p), normalised(q)
    return (torch.special.xlogy(p, p) - torch.special.xlogy(p, q)).sum(-1).clamp_min(0)


def js_divergence(p: Tensor, q: Tensor) -> Tensor:
    """Jensen-Shannon divergence, in nats: 0 for equal rows, at most ln 2 = 0.693 (Lin 1991). (..., key) -> (...).

    ln 2 where one of the rows is empty (nothing is left where it was), NaN where both are.
    """
    return divergence_and_entropies(p, q)[0]


def divergence_and_entropies(p: Tensor, q: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`js_divergence(p, q)`, `entropy(p)` and `entropy(q)`, which share their logarithms: JS = H((p + q)/2) - (H(p) + H(q))/2."""
    kind = torch.result_type(p, q)
    p, q = torch.broadcast_tensors(p.to(kind), q.to(kind))
    lost = (p.sum(-1) == 0) ^ (q.sum(-1) == 0)
    p, q = normalised(p), normalised(q)
    own_p, own_q = x_log_x(p), x_log_x(q)
    entropies = -own_p.sum(-1) + 0.0, -own_q.sum(-1) + 0.0
    shared = x_log_x((p + q).div_(2))
    # Key by key before the sum: equal rows give exactly 0. In place: many large tensors cost more than the arithmetic.
    divergence = own_p.add_(own_q).div_(2).sub_(shared).sum(-1).clamp_min(0).masked_fill(lost, math.log(2))
    return divergence, *entropies


def total_variation(p: Tensor, q: Tensor) -> Tensor:
    """½ Σ |p - q|: the share of weight that moved. Rows are taken as they are. (..., key) -> (...)."""
    return (p - q).abs().sum(-1) / 2


def weight_moved(before: Tensor, after: Tensor) -> Tensor:
    """Σ max(before - after, 0): the weight that is no longer where it was, moved or lost. (..., key) -> (...).

    The total variation of rows that sum to 1; 1 for a row that lost all its keys.
    """
    return (before - after).clamp_min(0).sum(-1)


def mass_at_offset(weights: Tensor, offset: int, start: int = 0) -> Tensor:
    """The weight on key = query + offset: 0 diagonal, -1 previous, 1 next. NaN where there is none. -> (..., query).

    start: the place of the first query.
    """
    n_query, n_key = weights.shape[-2:]
    keys = torch.arange(start, start + n_query, device=weights.device) + offset
    there = (keys >= 0) & (keys < n_key)
    index = keys.clamp(0, n_key - 1).expand(weights.shape[:-1]).unsqueeze(-1)
    return weights.gather(-1, index).squeeze(-1).masked_fill(~there, math.nan)


def mass_on(weights: Tensor, keys: Tensor) -> Tensor:
    """The weight on the marked keys. keys: bool, broadcastable to (..., key). -> (..., query)."""
    return (weights * keys.to(weights.dtype).unsqueeze(-2)).sum(-1)


def attention_distance(weights: Tensor, start: int = 0) -> Tensor:
    """Σ p(j) |i - j|: how far away a query looks, in tokens. NaN for an empty row. -> (..., query).

    start: the place of the first query.
    """
    n_query, n_key = weights.shape[-2:]
    queries = torch.arange(start, start + n_query, device=weights.device)
    apart = queries[:, None] - torch.arange(n_key, device=weights.device)
    return (weights * apart.abs().to(weights.dtype)).sum(-1) / weights.sum(-1)


def mean(values: Tensor, keep: Tensor | None = None, dim: int = -1) -> Tensor:
    """Mean over `dim`, of the kept values that are defined; NaN where there are none. keep: bool."""
    use = ~values.isnan() if keep is None else ~values.isnan() & keep
    return torch.where(use, values, 0).sum(dim) / use.sum(dim)


def cosine(a: Tensor, b: Tensor) -> Tensor:
    """Cosine of the angle between vectors on the last axis, NaN where one of them is 0. (..., width) -> (...)."""
    a, b = a.double(), b.double()
    return ((a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1))).clamp(-1, 1)


def relative_l2(new: Tensor, old: Tensor) -> Tensor:
    """‖new - old‖ / ‖old‖ on the last axis: 0 unchanged, 1 changed by as much as there was; NaN at 0/0."""
    new, old = new.double(), old.double()
    return (new - old).norm(dim=-1) / old.norm(dim=-1)


def linear_cka(x: Tensor, y: Tensor) -> Tensor:
    """Linear centred kernel alignment of (token, width) matrices, 0 to 1; NaN for constant rows (Kornblith et al. 2019).

    From the (token, token) Gram matrices, which are small for a text: ‖XᵀY‖² = ⟨XXᵀ, YYᵀ⟩.
    """
    x, y = x.double(), y.double()
    x, y = x - x.mean(0), y - y.mean(0)
    like_x, like_y = x @ x.T, y @ y.T
    return ((like_x * like_y).sum() / (like_x.norm() * like_y.norm())).clamp(0, 1)


def top_k_overlap(p: Tensor, q: Tensor, k: int = 5) -> float:
    """The share of the k largest entries that two vectors have in common, 0 to 1. (class,) each."""
    k = min(k, p.numel())
    return len(set(p.topk(k).indices.tolist()) & set(q.topk(k).indices.tolist())) / k
