"""THE attention function: scaled dot-product attention with openings at its stages.

Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V       (Vaswani et al. 2017, equation 1)

Shapes: query (row, head, query, d_k); key (row, key head, key, d_k); value (row, key head, key, d_v).
"""

import math
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F

from surgery.cut import Cut
from surgery.operation import Grid


class Witness(Protocol):
    """Something that wants to see the stages of a layer: the scores only if it `needs_scores` (else they are None).

    One with `bytes_at_a_time` is shown them in blocks of that size where no operation needs the whole matrix:
    `see_queries(start, scores, weights, allowed)` for each block, then `see_output(output)`.
    """

    needs_scores: bool

    def see(
        self,
        scores: torch.Tensor | None,
        weights: torch.Tensor,
        output: torch.Tensor,
        allowed: torch.Tensor | None,
    ) -> None: ...


def attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    cut: Cut,
    *,
    scale: float,
    before: float = 1.0,
    first: int = 0,
    allowed: torch.Tensor | None = None,
    padding: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    scaled_bias: bool = False,
    causal: bool = False,
    dropout: float = 0.0,
    witness: Witness | None = None,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Attention under `cut`.

    scale: the model's factor on q·kᵀ, of which q and k already carry `before`. first: the position of the first key.
    allowed: bool, (row, 1 or head, query, key), True = may attend; None = all, or all that came before if `causal`.
    padding: where only padding forbids, same shape. bias: added to the scores by the model, such as relative positions;
    `scaled_bias`: it already carries `scale`, which is one for both. dropout: the model's own, in training. Returns the output (row, query, head, d_v) and the weights (row, head, query,
    key), None where the fused kernel did without them. A query without any permitted key gets weights 0 and output 0.
    """
    rows, heads, n_query, _ = query.shape
    query, key, value = cut.project(query, _spread(key, heads), _spread(value, heads))
    if causal and (n_query == 1 or allowed is not None):
        causal = False
    if causal and ("mask" in cut.touches or witness or cut.materialises or bias is not None):
        grid = _grid(n_query, key.shape[2], first, None, query.device)
        causal, allowed = False, (grid.keys <= grid.queries[:, None])[None, None]
    if "mask" in cut.touches:
        allowed = cut.mask(allowed, _grid(n_query, key.shape[2], first, padding, query.device), rows, heads)
    # allowed: (row | 1, head | 1, query, key), or None for everything
    edited = cut.scale(rows, heads, scale)  # two of (row, head), or None for `scale` everywhere
    kind = query.dtype
    if kind in (torch.float16, torch.bfloat16) and (edited is not None or witness or cut.materialises):
        # Edited scores may leave half precision.
        query, key, value = query.float(), key.float(), value.float()
    factor: float | torch.Tensor = scale / before  # on q·kᵀ: a number, or a tensor (row, head, 1, 1)
    cooled: float | torch.Tensor = 1.0  # on the bias, likewise
    if edited is not None:
        factor = _per_head(edited[0] / edited[1] / before, query)
    if edited is not None and bias is not None:
        cooled = _per_head((edited[0] / scale if scaled_bias else 1.0) / edited[1], query)

    if not (cut.materialises or witness or bias is not None):
        weights = None
        output = _fused(query, key, value, factor, scale / before, allowed, dropout, causal)
    elif hasattr(witness, "bytes_at_a_time") and not cut.materialises and not dropout:
        weights, output = None, _in_blocks(query, key, value, factor, cooled, allowed, bias, witness)
    else:
        free = (
            not torch.is_grad_enabled()
        )  # backward() will not ask for what is overwritten: one buffer is enough
        product = query @ key.transpose(2, 3)  # (row, head, query, key)
        product = product.mul_(factor) if free else product * factor
        scores = cut.compare(product, query, key, before, None if edited is None else edited[1])
        ours = scores = scores if bias is None else scores + bias * cooled
        scores = cut.edit("scores", scores)
        seen = scores if witness and witness.needs_scores else None
        # What an operation gave may be its own to keep.
        spent = free and seen is None and scores is ours and (scores is product or bias is not None)
        weights = cut.edit("weights", softmax(scores, allowed, overwrite=spent))
        output = F.dropout(weights, dropout) @ value  # (row, head, query, d_v)
    output = cut.edit("output", output)

    if witness is not None and weights is not None:
        witness.see(seen, weights, output, allowed)
    elif witness is not None and hasattr(witness, "see_output"):
        witness.see_output(output)
    return output.transpose(1, 2).to(kind).contiguous(), weights


def _fused(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    factor: float | torch.Tensor,
    scale: float,
    allowed: torch.Tensor | None,
    dropout: float,
    causal: bool,
) -> torch.Tensor:
    """Attention by the kernel, which takes one factor for all heads: what differs between them goes into q."""
    if isinstance(factor, torch.Tensor) or factor == 0:  # the kernel multiplies what it masked: 0 · -∞ is NaN
        query, factor = query * (factor / scale), scale
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=allowed, dropout_p=dropout, is_causal=causal, scale=factor
    )  # (row, head, query, d_v)


def _in_blocks(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    factor: float | torch.Tensor,
    cooled: float | torch.Tensor,
    allowed: torch.Tensor | None,
    bias: torch.Tensor | None,
    witness: Any,
) -> torch.Tensor:
    """Attention a few queries at a time: the witness sees every row, and no (token x token) matrix exists at once."""
    output = query.new_empty(*query.shape[:3], value.shape[-1])  # (row, head, query, d_v)
    one_query = query.shape[0] * query.shape[1] * key.shape[2] * query.element_size()
    step = max(1, witness.bytes_at_a_time // one_query)
    for start in range(0, query.shape[2], step):
        some = slice(start, start + step)
        scores = query[:, :, some] @ key.transpose(2, 3) * factor  # (row, head, some queries, key)
        if bias is not None:
            scores = scores + (bias if bias.shape[2] == 1 else bias[:, :, some]) * cooled
        mask = allowed if allowed is None or allowed.shape[2] == 1 else allowed[:, :, some]
        weights = softmax(scores, mask)
        output[:, :, some] = weights @ value
        witness.see_queries(start, scores, weights, mask)
    return output


def _per_head(numbers: np.ndarray, like: torch.Tensor) -> float | torch.Tensor:
    """(row, head) numbers as one number where all are alike, else as a tensor (row, head, 1, 1) of the kind of `like`."""
    if (numbers == numbers[0, 0]).all():
        return float(numbers[0, 0])
    return torch.as_tensor(numbers, dtype=like.dtype, device=like.device)[:, :, None, None]


def softmax(
    scores: torch.Tensor, allowed: torch.Tensor | None = None, *, overwrite: bool = False
) -> torch.Tensor:
    """Softmax over the permitted keys, (row, head, query, key); a row with none is all zeros, never NaN.

    overwrite: the scores are not needed any more, nor a gradient: what memory they have may be used.
    """
    # Where that is known to be safe: on the CPU, and where no kind of derivative can be asked for.
    into = scores if overwrite and scores.device.type == "cpu" and scores.is_inference() else None
    if allowed is None:
        return torch.softmax(scores, dim=-1, out=into)
    blocked = ~allowed.any(dim=-1, keepdim=True)  # (row, head, query, 1)
    closed = ~(allowed | blocked)
    scores = scores.masked_fill_(closed, -math.inf) if overwrite else scores.masked_fill(closed, -math.inf)
    weights = torch.softmax(scores, dim=-1, out=into)
    return weights.masked_fill_(blocked, 0.0) if overwrite else weights.masked_fill(blocked, 0.0)


def split_mask(mask: torch.Tensor, bias: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
    """A mask that nothing is known of, as (allowed, None, bias): bool, and what is left to add to the scores.

    -9000 and below forbid, as people write -1e4 (-9984 in bfloat16), -1e9 or the least number: softmax leaves nothing of
    e^-9000, and a temperature must not bring it back.
    """
    if mask.dtype == torch.bool:
        return mask, None, bias
    allowed = mask > -9e3
    rest = mask.masked_fill(~allowed, 0)
    if bool(rest.any()):
        bias = rest if bias is None else bias + rest
    return allowed, None, bias


def _spread(tensor: torch.Tensor, heads: int) -> torch.Tensor:
    """Key/value heads repeated until there is one for each query head (grouped-query attention)."""
    return tensor if tensor.shape[1] == heads else tensor.repeat_interleave(heads // tensor.shape[1], dim=1)


def _grid(n_query: int, n_key: int, first: int, padding: torch.Tensor | None, device: torch.device) -> Grid:
    """The queries are the last `n_query` of `n_key` positions (earlier keys come from a cache)."""
    keys = torch.arange(first, first + n_key, device=device)
    return Grid(
        keys[n_key - n_query :] if n_query <= n_key else torch.arange(n_query, device=device), keys, padding
    )
