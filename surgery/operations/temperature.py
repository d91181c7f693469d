"""Divide the scores by a temperature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bilingual import Words
from surgery.operation import Operation, parameter

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Temperature(Operation):
    r"""weights = softmax(scores / t).

    t is the temperature: 1 is neutral, t → 0 picks the largest score (one-hot), t → ∞ looks at all permitted keys
    alike. A row w becomes w^(1/t), renormalised: at t = 2, (0.8, 0.2) becomes (0.667, 0.333). This is the
    attention's softmax, not the output's (Hinton et al. 2015, equation 1, has the same form).
    """

    name: ClassVar[str] = "temperature"
    stage: ClassVar[str] = "scale"
    title: ClassVar[Words] = Words("Change the softmax temperature", "改变 softmax 温度")
    summary: ClassVar[Words] = Words(
        "Below 1 attention gets sharper, above 1 flatter; 1 changes nothing.",
        "小于 1 注意力更尖锐，大于 1 更平坦；等于 1 不变。",
    )
    equation: ClassVar[str] = "softmax(q·kᵀ / (√d_k · T))"

    t: float = parameter(
        2.0,
        kind="float",
        low=1e-4,
        high=1e4,
        slider=(0.1, 10.0),
        log=True,
        label=Words("temperature T", "温度 T"),
        help=Words("Scores are divided by t before the softmax.", "softmax 之前，分数除以 t。"),
    )

    @property
    def neutral(self) -> bool:
        return self.t == 1.0

    def scale(self, scaling: np.ndarray, temperature: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The factor on q·kᵀ and the temperature, (row, head) each."""
        return scaling, temperature * self.t
