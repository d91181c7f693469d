"""Forbid what a picture forbids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bilingual import Words
from surgery.operation import Grid, Operation, OperationError, parameter

if TYPE_CHECKING:
    import torch

    from surgery.cut import Draw


@dataclass(frozen=True)
class CustomMask(Operation):
    r"""allowed(i, j) = (rows[i][j] = 1): 1 = may attend, rows are queries, columns are keys.

    As many rows and columns as the text has tokens, special tokens included. The model's own masks still hold.
    All ones is neutral; CustomMask(["10", "11"]) is the causal mask of two tokens.
    """

    name: ClassVar[str] = "custom_mask"
    stage: ClassVar[str] = "mask"
    title: ClassVar[Words] = Words("Your own mask", "自定义掩码")
    summary: ClassVar[Words] = Words(
        "A square of 0 and 1, one row for each query: 1 = may attend.",
        "由 0 和 1 组成的方阵，每个查询一行：1 = 可以注意。",
    )
    equation: ClassVar[str] = "allowed(i, j) = (rows[i][j] = 1)"

    rows: tuple[str, ...] = parameter(
        ("1",),
        kind="picture",
        label=Words("rows of 0 and 1", "由 0 和 1 组成的行"),
        help=Words("One row for each query, one digit for each key.", "每个查询一行，每个键一位数字。"),
    )

    def check(self, tokens: int) -> None:
        """Raises OperationError if the picture is not (tokens × tokens)."""
        if len(self.rows) != tokens:
            n = len(self.rows)
            raise OperationError(
                f"CustomMask: the mask is {n} × {n}, but this text has {tokens} tokens: give {tokens} × {tokens}.",
                f"CustomMask：掩码是 {n} × {n}，但本文本有 {tokens} 个词元：请给 {tokens} × {tokens}。",
            )

    def mask(self, allowed: torch.Tensor, grid: Grid, draw: Draw) -> torch.Tensor:
        """What is still allowed, (row, head, query, key)."""
        picture = grid.keys.new_tensor([[int(cell) for cell in row] for row in self.rows]).bool()
        return allowed & picture[grid.queries][:, grid.keys]
