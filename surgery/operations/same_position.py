"""Tell the model that all tokens stand at one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bilingual import Words
from surgery.operation import Operation

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class SamePosition(Operation):
    r"""x = token embedding + PE(first position), for every token.

    The vector that is added is one the model was trained with, so less is out of the ordinary than with
    RemovePositions; the order is lost all the same. Tokens 0, 1, 2 get the ids 0, 0, 0.
    """

    name: ClassVar[str] = "same_position"
    stage: ClassVar[str] = "positions"
    title: ClassVar[Words] = Words("All tokens at the first position", "所有词元放在同一位置")
    summary: ClassVar[Words] = Words(
        "Every token gets the first position's encoding: order is lost, the input stays familiar.",
        "每个词元都用第一个位置的编码：顺序丢失，但输入仍是模型熟悉的。",
    )
    equation: ClassVar[str] = "x = E[token] + PE(0)"

    def positions(self, ids: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """New ids, (row, token), from the ids and from `real` (row, token), False on padding."""
        first = ids.where(real, ids.max()).amin(dim=1, keepdim=True)
        return first.where(real, ids)
