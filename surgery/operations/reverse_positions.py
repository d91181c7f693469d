"""Count the positions from the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bilingual import Words
from surgery.operation import Operation

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class ReversePositions(Operation):
    r"""x_i = token embedding + PE(n - 1 - i).

    n is the number of real tokens; padding keeps its ids. Neighbours stay neighbours, before becomes after: three
    tokens get the ids 2, 1, 0. Twice is the original order.
    """

    name: ClassVar[str] = "reverse_positions"
    stage: ClassVar[str] = "positions"
    title: ClassVar[Words] = Words("Reverse the positions", "颠倒位置")
    summary: ClassVar[Words] = Words(
        "Positions run from last to first: neighbours stay neighbours, before becomes after.",
        "位置从后往前数：相邻的仍相邻，前后颠倒。",
    )
    equation: ClassVar[str] = "x = E[token] + PE(n − 1 − i)"

    def positions(self, ids: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """New ids, (row, token), from the ids and from `real` (row, token), False on padding."""
        reverse = ids.clone()
        for row, keep in enumerate(real):
            reverse[row, keep] = ids[row, keep].flip(0)
        return reverse
