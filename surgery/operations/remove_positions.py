"""Add no position encoding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bilingual import Words
from surgery.operation import Operation

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class RemovePositions(Operation):
    r"""x = token embedding, instead of token embedding + PE(position).

    Without PE self-attention is permutation equivariant: permuted tokens give permuted outputs, so "dog bites man"
    and "man bites dog" share one mean (Vaswani et al. 2017, section 3.5). Rotary positions turn by no angle
    (cos = 1, sin = 0). Not the same as SamePosition, which adds one vector everywhere.
    """

    name: ClassVar[str] = "remove_positions"
    stage: ClassVar[str] = "positions"
    title: ClassVar[Words] = Words("Remove the positions", "移除位置编码")
    summary: ClassVar[Words] = Words(
        "No position encoding is added: the model cannot tell the order of the tokens.",
        "不加位置编码：模型无法知道词元的顺序。",
    )
    equation: ClassVar[str] = "x = E[token] + 0"
    removes: ClassVar[tuple[str, ...]] = ("positions",)
    token_by_token: ClassVar[bool] = True

    def positions(self, ids: torch.Tensor, real: torch.Tensor) -> None:
        """No position ids at all. ids: (row, token); real: (row, token), False on padding."""
