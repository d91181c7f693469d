"""Slide the text to other positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bilingual import Words
from surgery.operation import Operation, parameter

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class ShiftPositions(Operation):
    r"""x_i = token embedding + PE(i + offset).

    0 is neutral. Rotary scores depend on distances alone, so a shift leaves them as they are (Su et al. 2021,
    equation 16); a table was learned place by place, and ends: a shift beyond it is refused. An offset of 3
    gives the first token the id 3.
    """

    name: ClassVar[str] = "shift_positions"
    stage: ClassVar[str] = "positions"
    title: ClassVar[Words] = Words("Shift the positions", "平移位置")
    summary: ClassVar[Words] = Words(
        "The whole text stands later (or earlier) than it does: distances are kept.",
        "整段文本移到更后（或更前）的位置：距离保持不变。",
    )
    equation: ClassVar[str] = "x = E[token] + PE(i + offset)"
    when_idle: ClassVar[Words] = Words(
        "Nothing changed: this model's positions matter only through their distances.",
        "没有变化：这个模型只用到位置之间的距离。",
    )
    token_by_token: ClassVar[bool] = True

    offset: int = parameter(
        4,
        kind="int",
        low=-(10**6),
        high=10**6,
        slider=(-64, 64),
        label=Words("offset", "偏移"),
        help=Words("Added to every position.", "加到每个位置上的数。"),
    )

    @property
    def neutral(self) -> bool:
        return self.offset == 0

    def positions(self, ids: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """New ids, (row, token), from the ids and from `real` (row, token), False on padding."""
        return (ids + self.offset).where(real, ids)
