"""Silence a head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bilingual import Words
from surgery.operation import Operation

if TYPE_CHECKING:
    import torch

    from surgery.cut import Draw


@dataclass(frozen=True)
class AblateHead(Operation):
    r"""output = 0 · (weights · v): the head adds nothing to the layer.

    Zero ablation, before the output projection (Michel et al. 2019, section 2.3). The head's weights are still
    computed and shown: what it looks at is not what it does. On every head of a layer only the biases remain.
    """

    name: ClassVar[str] = "ablate_head"
    stage: ClassVar[str] = "output"
    title: ClassVar[Words] = Words("Ablate the head", "切除注意力头")
    summary: ClassVar[Words] = Words(
        "The head's output is set to 0; its attention weights are still shown.",
        "注意力头的输出置 0；注意力权重仍会显示。",
    )
    equation: ClassVar[str] = "0 · (weights · v)"
    removes: ClassVar[tuple[str, ...]] = ("output",)

    def output(self, output: torch.Tensor, draw: Draw) -> torch.Tensor:
        """New output, (row, head, query, d_v)."""
        return output.new_zeros(output.shape)
