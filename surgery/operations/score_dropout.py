"""Set scores to zero at random, before the mask and the softmax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bilingual import Words
from surgery.operation import Operation, probability, seed

if TYPE_CHECKING:
    import torch

    from surgery.cut import Draw


@dataclass(frozen=True)
class ScoreDropout(Operation):
    r"""scores = scores · keep / (1 - p), keep ~ Bernoulli(1 - p).

    What many tutorials write. A dropped score becomes 0, and softmax gives e^0 to it: the connection is not
    removed, and a negative score even goes up. Acts before the mask (0 · -∞ would be NaN). p = 0 is neutral; p = 1
    makes all scores 0: uniform weights. KeyDropout does remove the key. Acts in eval mode.
    """

    name: ClassVar[str] = "score_dropout"
    stage: ClassVar[str] = "scores"
    title: ClassVar[Words] = Words("Score dropout (before the softmax)", "分数 Dropout（softmax 之前）")
    summary: ClassVar[Words] = Words(
        "A dropped score becomes 0 (weight e⁰), it is not removed; the others grow by 1/(1 − p).",
        "被丢弃的分数变成 0（权重 e⁰），并没有被移除；其余放大 1/(1 − p)。",
    )
    equation: ClassVar[str] = "softmax(scores · keep / (1 − p))"

    p: float = probability()
    seed: int = seed()

    @property
    def neutral(self) -> bool:
        return self.p == 0.0

    def scores(self, scores: torch.Tensor, draw: Draw) -> torch.Tensor:
        """New scores, (row, head, query, key)."""
        return draw.drop(scores, self.p)
