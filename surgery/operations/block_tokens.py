"""Forbid chosen tokens as keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bilingual import Words
from surgery.operation import Grid, Operation, OperationError, parameter

if TYPE_CHECKING:
    import torch

    from surgery.cut import Draw


@dataclass(frozen=True)
class BlockTokens(Operation):
    r"""allowed(i, j) = (j not in positions): nobody attends to these tokens.

    positions are counted from 0, special tokens included, so position 0 of a BERT text is [CLS]. The tokens stay
    in the text and still ask as queries. The empty list is neutral.
    """

    name: ClassVar[str] = "block_tokens"
    stage: ClassVar[str] = "mask"
    title: ClassVar[Words] = Words("Block tokens", "屏蔽词元")
    summary: ClassVar[Words] = Words(
        "Nobody attends to the chosen tokens; positions count from 0, special tokens included.",
        "任何词元都不能注意所选词元；位置从 0 数起，包括特殊词元。",
    )
    equation: ClassVar[str] = "allowed(i, j) = (j ∉ positions)"

    positions: tuple[int, ...] = parameter(
        (0,),
        kind="positions",
        label=Words("token positions", "词元位置"),
        help=Words("Which tokens to block, for example 0, 5.", "要屏蔽的词元，例如 0, 5。"),
    )

    @property
    def neutral(self) -> bool:
        return not self.positions

    def check(self, tokens: int) -> None:
        """Raises OperationError for a position that the text does not have."""
        if self.positions and self.positions[-1] >= tokens:
            raise OperationError(
                f"BlockTokens: there is no token {self.positions[-1]}: this text has tokens 0-{tokens - 1}.",
                f"BlockTokens：没有第 {self.positions[-1]} 个词元：本文本的词元编号是 0-{tokens - 1}。",
            )

    def mask(self, allowed: torch.Tensor, grid: Grid, draw: Draw) -> torch.Tensor:
        """What is still allowed, (row, head, query, key)."""
        blocked = grid.keys.new_tensor(self.positions)
        return allowed & (grid.keys[:, None] != blocked).all(-1)
