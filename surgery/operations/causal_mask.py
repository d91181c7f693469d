"""Forbid the future."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bilingual import Words
from surgery.operation import Grid, Operation

if TYPE_CHECKING:
    import torch

    from surgery.cut import Draw


@dataclass(frozen=True)
class CausalMask(Operation):
    r"""allowed(i, j) = j ≤ i: query i attends to itself and to what came before.

    The decoder's mask (Vaswani et al. 2017, section 3.2.3). On a decoder it changes nothing. Row i of four equal
    scores becomes 1/(i + 1) on keys 0 to i.
    """

    name: ClassVar[str] = "causal_mask"
    stage: ClassVar[str] = "mask"
    title: ClassVar[Words] = Words("Causal mask", "因果掩码")
    summary: ClassVar[Words] = Words(
        "Tokens see themselves and what came before, never what follows.",
        "词元只能看到自己和前面的内容，看不到后面。",
    )
    equation: ClassVar[str] = "allowed(i, j) = (j ≤ i)"
    when_idle: ClassVar[Words] = Words(
        "Nothing changed: nothing that follows was attended to here.",
        "没有变化：这里本来就不注意后面的内容。",
    )

    def mask(self, allowed: torch.Tensor, grid: Grid, draw: Draw) -> torch.Tensor:
        """What is still allowed, (row, head, query, key)."""
        return allowed & (grid.keys[None, :] <= grid.queries[:, None])
