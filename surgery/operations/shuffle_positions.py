"""Deal the positions out at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bilingual import Words
from surgery.operation import Operation, seed

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class ShufflePositions(Operation):
    r"""x = token embedding + PE(π(position)), π a random permutation of the text's positions.

    Unlike RemovePositions the model still believes in an order: a wrong one. Padding keeps its ids, and a text
    gets the same permutation alone and in a batch. seed fixes π; three tokens may get the ids 2, 0, 1.
    """

    name: ClassVar[str] = "shuffle_positions"
    stage: ClassVar[str] = "positions"
    title: ClassVar[Words] = Words("Shuffle the positions", "打乱位置")
    summary: ClassVar[Words] = Words(
        "Each token gets another token's position: the model sees a wrong order.",
        "每个词元得到另一个词元的位置：模型看到错误的顺序。",
    )
    equation: ClassVar[str] = "x = E[token] + PE(π(i))"

    seed: int = seed()

    def positions(self, ids: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """New ids, (row, token), from the ids and from `real` (row, token), False on padding."""
        import torch  # the registry is read before torch is needed

        shuffled = ids.clone()
        for row, keep in enumerate(real):
            own = ids[row, keep]
            order = torch.randperm(own.numel(), generator=torch.Generator().manual_seed(self.seed))
            shuffled[row, keep] = own[order.to(own.device)]
        return shuffled
