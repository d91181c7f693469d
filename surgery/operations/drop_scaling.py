"""Leave the dot products as large as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bilingual import Words
from surgery.operation import Operation

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class DropScaling(Operation):
    r"""scores = q·kᵀ instead of q·kᵀ / √d_k.

    q, k are the query and key vectors of one head, d_k their width. For independent components of variance 1
    the variance of q·kᵀ is d_k, and the softmax saturates as d_k grows (Vaswani et al. 2017, section 3.2.1).
    The same as Temperature(1/√d_k). Dropping it twice drops it once: 64 wide, a score of 0.5 becomes 4.
    """

    name: ClassVar[str] = "drop_scaling"
    stage: ClassVar[str] = "scale"
    title: ClassVar[Words] = Words("Drop the 1/√d_k scaling", "去掉 1/√d_k 缩放")
    summary: ClassVar[Words] = Words(
        "Scores are the raw dot products: √d_k times larger, so the softmax gets sharper.",
        "分数就是原始点积：放大 √d_k 倍，softmax 更尖锐。",
    )
    equation: ClassVar[str] = "softmax(q·kᵀ)"
    removes: ClassVar[tuple[str, ...]] = ("scale",)

    def scale(self, scaling: np.ndarray, temperature: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The factor on q·kᵀ and the temperature, (row, head) each."""
        return scaling / scaling, temperature
