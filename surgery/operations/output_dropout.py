"""Drop components of the heads' outputs at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bilingual import Words
from surgery.operation import Operation, probability, seed

if TYPE_CHECKING:
    import torch

    from surgery.cut import Draw


@dataclass(frozen=True)
class OutputDropout(Operation):
    r"""output = output · keep / (1 - p), keep ~ Bernoulli(1 - p), component by component.

    output is weights · v of one head, before the output projection; the weights are not touched. p = 0 is neutral,
    p = 1 is AblateHead. Acts in eval mode (Srivastava et al. 2014).
    """

    name: ClassVar[str] = "output_dropout"
    stage: ClassVar[str] = "output"
    title: ClassVar[Words] = Words("Output dropout", "输出 Dropout")
    summary: ClassVar[Words] = Words(
        "Components of a head's output are dropped; the attention weights stay as they are.",
        "随机丢弃注意力头输出的分量；注意力权重不变。",
    )
    equation: ClassVar[str] = "(weights · v) · keep / (1 − p)"

    p: float = probability()
    seed: int = seed()

    @property
    def neutral(self) -> bool:
        return self.p == 0.0

    def output(self, output: torch.Tensor, draw: Draw) -> torch.Tensor:
        """New output, (row, head, query, d_v)."""
        return draw.drop(output, self.p)
