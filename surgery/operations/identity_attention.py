"""Leave nothing but the token itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bilingual import Words
from surgery.operation import Grid, Operation

if TYPE_CHECKING:
    import torch

    from surgery.cut import Draw


@dataclass(frozen=True)
class IdentityAttention(Operation):
    r"""weights = I: each token attends to itself with weight 1.

    allowed(i, j) = (j = i), the opposite of HideSelf: the head passes each token's own value on and mixes nothing.
    """

    name: ClassVar[str] = "identity_attention"
    stage: ClassVar[str] = "mask"
    title: ClassVar[Words] = Words("Identity attention", "只看自己")
    summary: ClassVar[Words] = Words(
        "Each token attends to itself alone: no information moves between tokens.",
        "每个词元只注意自己：词元之间没有信息流动。",
    )
    equation: ClassVar[str] = "weights = I"

    def mask(self, allowed: torch.Tensor, grid: Grid, draw: Draw) -> torch.Tensor:
        """What is still allowed, (row, head, query, key)."""
        return allowed & (grid.keys[None, :] == grid.queries[:, None])
