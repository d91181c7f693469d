"""Look at every permitted key alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bilingual import Words
from surgery.operation import Operation

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class UniformAttention(Operation):
    r"""weights = 1/m on each of the m permitted keys: softmax(0 · q·kᵀ).

    The limit of Temperature(t) for t → ∞: what a head contributes when it averages instead of choosing. Masks still
    hold. With 4 permitted keys each gets 0.25.
    """

    name: ClassVar[str] = "uniform_attention"
    stage: ClassVar[str] = "scale"
    title: ClassVar[Words] = Words("Uniform attention", "均匀注意力")
    summary: ClassVar[Words] = Words(
        "Every permitted key gets the same weight: the head averages and no longer chooses.",
        "每个允许的键权重相同：注意力头只求平均，不再选择。",
    )
    equation: ClassVar[str] = "softmax(0 · q·kᵀ)"

    def scale(self, scaling: np.ndarray, temperature: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The factor on q·kᵀ and the temperature, (row, head) each."""
        return scaling, temperature * float("inf")
