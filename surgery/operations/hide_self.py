"""Forbid the token itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bilingual import Words
from surgery.operation import Grid, Operation

if TYPE_CHECKING:
    import torch

    from surgery.cut import Draw


@dataclass(frozen=True)
class HideSelf(Operation):
    r"""allowed(i, j) = (j ≠ i): a token must gather from others.

    The residual connection still carries the token itself past the layer. A text of one token has no permitted key
    left: weights 0. Three equal scores become (0, ½, ½) in row 0.
    """

    name: ClassVar[str] = "hide_self"
    stage: ClassVar[str] = "mask"
    title: ClassVar[Words] = Words("Hide the token itself", "不许看自己")
    summary: ClassVar[Words] = Words(
        "No token attends to itself: the diagonal is closed.", "词元不能注意自己：对角线被封闭。"
    )
    equation: ClassVar[str] = "allowed(i, j) = (j ≠ i)"

    def mask(self, allowed: torch.Tensor, grid: Grid, draw: Draw) -> torch.Tensor:
        """What is still allowed, (row, head, query, key)."""
        return allowed & (grid.keys[None, :] != grid.queries[:, None])
