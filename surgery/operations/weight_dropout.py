"""Drop attention weights at random, after the softmax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bilingual import Words
from surgery.operation import Operation, probability, seed

if TYPE_CHECKING:
    import torch

    from surgery.cut import Draw


@dataclass(frozen=True)
class WeightDropout(Operation):
    r"""weights = weights · keep / (1 - p), keep ~ Bernoulli(1 - p).

    The dropout of the Transformer's own code. Rows no longer sum to 1, only on average over draws. p = 0 is
    neutral, p = 1 leaves nothing: output 0. At p = 0.5 a weight of 0.25 becomes 0 or 0.5. Acts in eval mode.
    """

    name: ClassVar[str] = "weight_dropout"
    stage: ClassVar[str] = "weights"
    title: ClassVar[Words] = Words("Weight dropout (after the softmax)", "权重 Dropout（softmax 之后）")
    summary: ClassVar[Words] = Words(
        "Weights are dropped after the softmax; the others grow by 1/(1 − p), rows no longer sum to 1.",
        "softmax 之后随机丢弃权重；其余放大 1/(1 − p)，每行之和不再是 1。",
    )
    equation: ClassVar[str] = "softmax(scores) · keep / (1 − p)"

    p: float = probability()
    seed: int = seed()

    @property
    def neutral(self) -> bool:
        return self.p == 0.0

    def weights(self, weights: torch.Tensor, draw: Draw) -> torch.Tensor:
        """New weights, (row, head, query, key)."""
        return draw.drop(weights, self.p)
