"""Forbid what is far away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bilingual import Words
from surgery.operation import Grid, Operation, parameter

if TYPE_CHECKING:
    import torch

    from surgery.cut import Draw


@dataclass(frozen=True)
class LocalMask(Operation):
    r"""allowed(i, j) = |i - j| ≤ half_width.

    A query sees 2 · half_width + 1 tokens (fewer at the ends): 0 leaves only the token itself, n - 1 or more
    changes nothing. Of 6 × 6 pairs, half_width 1 permits 16 (Longformer, Beltagy et al. 2020, section 3.1).
    """

    name: ClassVar[str] = "local_mask"
    stage: ClassVar[str] = "mask"
    title: ClassVar[Words] = Words("Local window", "局部窗口")
    summary: ClassVar[Words] = Words(
        "Tokens see only their neighbours: 2 × half-width + 1 tokens.",
        "词元只能看到邻居：2 × 半宽 + 1 个词元。",
    )
    equation: ClassVar[str] = "allowed(i, j) = (|i − j| ≤ half_width)"
    when_idle: ClassVar[Words] = Words(
        "Nothing changed: the window is wider than what was attended to.",
        "没有变化：窗口比注意到的范围更宽。",
    )

    half_width: int = parameter(
        2,
        kind="int",
        low=0,
        high=10**6,
        slider=(0, 32),
        label=Words("half-width", "半宽"),
        help=Words(
            "How far to either side a token sees; 0 is itself alone.", "词元向两侧能看多远；0 表示只看自己。"
        ),
    )

    def mask(self, allowed: torch.Tensor, grid: Grid, draw: Draw) -> torch.Tensor:
        """What is still allowed, (row, head, query, key)."""
        return allowed & ((grid.keys[None, :] - grid.queries[:, None]).abs() <= self.half_width)
