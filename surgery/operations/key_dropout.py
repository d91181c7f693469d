"""Forbid keys at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bilingual import Words
from surgery.operation import Grid, Operation, probability, seed

if TYPE_CHECKING:
    import torch

    from surgery.cut import Draw


@dataclass(frozen=True)
class KeyDropout(Operation):
    r"""allowed(i, j) = keep(i, j), keep ~ Bernoulli(1 - p): the dropped score is -∞.

    DropKey (Li et al. 2023, section 3): the softmax shares the weight out among the keys that are left, so rows
    still sum to 1. p = 0 is neutral; p = 1 leaves no key: weights 0. Acts in eval mode.
    """

    name: ClassVar[str] = "key_dropout"
    stage: ClassVar[str] = "mask"
    title: ClassVar[Words] = Words("Key dropout (before the softmax)", "键 Dropout（softmax 之前）")
    summary: ClassVar[Words] = Words(
        "Keys are forbidden at random; the rest share the weight, rows still sum to 1.",
        "随机禁止一些键；其余的键分摊权重，每行之和仍为 1。",
    )
    equation: ClassVar[str] = "softmax(scores + log keep)"

    p: float = probability()
    seed: int = seed()

    @property
    def neutral(self) -> bool:
        return self.p == 0.0

    def mask(self, allowed: torch.Tensor, grid: Grid, draw: Draw) -> torch.Tensor:
        """What is still allowed, (row, head, query, key)."""
        return allowed & draw.keep(allowed, self.p)
