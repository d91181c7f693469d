"""What to keep of a run: the tensors of chosen layers, or only their statistics."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from surgery import metrics


@dataclass(frozen=True)
class Site:
    """What one layer's attention did. no_key: bool, (row, head, query), True where no key was permitted.

    allowed: bool, (row, head, query, key), True = may attend; None where every pair may.
    """

    scores: Tensor  # (row, head, query, key)
    weights: Tensor  # (row, head, query, key)
    output: Tensor  # (row, head, query, d_v)
    no_key: Tensor
    allowed: Tensor | None = None

    def rows(self, rows: slice) -> "Site":
        """Some rows of the batch."""
        allowed = None if self.allowed is None else self.allowed[rows]
        return Site(self.scores[rows], self.weights[rows], self.output[rows], self.no_key[rows], allowed)


def site(scores: Tensor, weights: Tensor, output: Tensor, allowed: Tensor | None) -> Site:
    """A layer as a witness sees it."""
    no_key = torch.zeros_like(weights[..., 0], dtype=torch.bool)
    if allowed is not None:
        no_key |= ~allowed.any(-1)
        allowed = allowed.expand(weights.shape)
    return Site(scores.float(), weights.float(), output.float(), no_key, allowed)


@dataclass
class Keep:
    """Keeps the sites of chosen layers (None = all)."""

    layers: frozenset[int] | None = None
    sites: dict[int, Site] = field(default_factory=dict)

    def __call__(self, layer: int) -> "_Writer | None":
        return _Writer(self, layer) if self.layers is None or layer in self.layers else None

    def add(self, layer: int, seen: Site) -> None:
        self.sites[layer] = seen


@dataclass
class Stream:
    """Compares the two halves of a batch layer by layer and keeps numbers only, no (token x token) matrix."""

    real: Tensor
    separators: Tensor
    changes: dict[int, dict[str, Tensor]] = field(default_factory=dict)

    def __call__(self, layer: int) -> "_Writer":
        return _Writer(self, layer)

    def add(self, layer: int, seen: Site) -> None:
        half = len(seen.weights) // 2
        first, second = seen.rows(slice(half)), seen.rows(slice(half, None))
        self.changes[layer] = change(first, second, self.real, self.separators)


@dataclass(frozen=True)
class _Writer:
    """A witness that hands one layer on."""

    book: Keep | Stream
    layer: int

    def see(self, scores: Tensor, weights: Tensor, output: Tensor, allowed: Tensor | None) -> None:
        self.book.add(self.layer, site(scores, weights, output, allowed))


def change(before: Site, after: Site, real: Tensor, separators: Tensor) -> dict[str, Tensor]:
    """How a layer changed, each (row, head), means over real queries.

    real, separators: bool, (row, token). `scores` is the mean |difference| over real query-key pairs; `output` the relative
    L2 difference of a head's output over all its real tokens (NaN where there was no output).
    """
    keep = real[:, None, :]  # (row, 1, query)
    n_query = before.weights.shape[-2]
    pairs = (real[:, None, :, None] & real[:, None, None, :]).expand_as(before.scores)
    moved = (after.output - before.output).double().square().sum(-1)
    was = before.output.double().square().sum(-1)
    found = {
        "js_divergence": metrics.mean(metrics.js_divergence(before.weights, after.weights), keep),
        "total_variation": metrics.mean(metrics.total_variation(before.weights, after.weights), keep),
        "moved": metrics.mean(metrics.weight_moved(before.weights, after.weights), keep),
        "scores": metrics.mean((after.scores - before.scores).abs().flatten(2), pairs.flatten(2)),
        "output": ((moved * keep).sum(-1) / (was * keep).sum(-1)).sqrt().float(),
    }
    first = torch.arange(n_query, device=real.device)[None, :] == real.int().argmax(1, keepdim=True)
    for name, seen in (("baseline", before), ("operated", after)):
        w = seen.weights
        found[f"entropy_{name}"] = metrics.mean(metrics.entropy(w), keep)
        for where, offset in (("diagonal", 0), ("previous", -1), ("next", 1)):
            there = keep & real.roll(-offset, dims=1)[:, None, :]  # padding is nobody's neighbour
            found[f"{where}_{name}"] = metrics.mean(metrics.mass_at_offset(w, offset), there)
        found[f"first_{name}"] = metrics.mean(metrics.mass_on(w, first[:, None, :]), keep)
        found[f"separators_{name}"] = metrics.mean(metrics.mass_on(w, separators[:, None, :]), keep)
        found[f"distance_{name}"] = metrics.mean(metrics.attention_distance(w), keep)
        found[f"no_key_{name}"] = (seen.no_key & keep).sum(-1)
        found |= {f"{key}_{name}": values for key, values in statistics(seen, pairs, keep).items()}
    return found


def statistics(seen: Site, pairs: Tensor, keep: Tensor) -> dict[str, Tensor]:
    """The tensors of one layer in a few numbers, each (row, head).

    pairs: bool, (row, head, query, key), the real query-key pairs; the statistics of scores and the count of permitted pairs
    are over these. keep: bool, (row, 1, query), the real queries. weight_max: the mean over queries of the largest weight.
    """
    scores, use = seen.scores.flatten(2), pairs.flatten(2)
    permitted = pairs if seen.allowed is None else pairs & seen.allowed
    return {
        "scores_mean": metrics.mean(scores, use),
        "scores_std": metrics.std(scores, use),
        "scores_min": scores.masked_fill(~use, torch.inf).amin(-1),
        "scores_max": scores.masked_fill(~use, -torch.inf).amax(-1),
        "permitted": permitted.sum((-2, -1)),
        "weight_max": metrics.mean(seen.weights.amax(-1), keep),
        "output_rms": metrics.mean(seen.output.double().square().mean(-1), keep).sqrt().float(),
    }
