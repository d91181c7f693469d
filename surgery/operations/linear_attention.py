"""Replace the softmax's exponential by a product of features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bilingual import Words
from surgery.operation import Operation

if TYPE_CHECKING:
    import torch

    from surgery.cut import Draw


@dataclass(frozen=True)
class LinearAttention(Operation):
    r"""weights(i, j) = φ(q_i)·φ(k_j) / Σ_j φ(q_i)·φ(k_j), φ(x) = elu(x) + 1.

    Linear attention (Katharopoulos et al. 2020, equations 4 and 7): any positive similarity can stand where softmax has
    exp(q·k/√d_k). With φ the sums over keys can be made once for all queries, in time linear in the text; here the whole
    matrix is made all the same, to be looked at. φ(0) = 1, φ(-1) = 0.368, φ(1) = 2. q and k are the vectors as the model
    made them, positions and all, with nothing divided by √d_k; masks still hold, a temperature t takes the t-th root.
    """

    name: ClassVar[str] = "linear_attention"
    stage: ClassVar[str] = "scores"
    title: ClassVar[Words] = Words("Linear attention", "线性注意力")
    summary: ClassVar[Words] = Words(
        "A product of features φ(q)·φ(k) replaces the exponential: attention gets much flatter.",
        "用特征的乘积 φ(q)·φ(k) 代替指数函数：注意力变得平坦得多。",
    )
    equation: ClassVar[str] = "weights ∝ φ(q)·φ(k)ᵀ, φ(x) = elu(x) + 1"
    removes: ClassVar[tuple[str, ...]] = ("scale", "softmax")
    sees_vectors: ClassVar[bool] = True

    def scores(
        self, scores: torch.Tensor, draw: Draw, query: torch.Tensor, key: torch.Tensor
    ) -> torch.Tensor:
        """log φ(q)·φ(k), (row, head, query, key), whose softmax is the equation. query, key: (row, head, token, d_k)."""
        import torch  # the registry is read before torch is needed

        features = (torch.nn.functional.elu(x) + 1 for x in (query, key))
        similar = next(features) @ next(features).transpose(2, 3)
        return similar.clamp_min(torch.finfo(similar.dtype).tiny).log()
