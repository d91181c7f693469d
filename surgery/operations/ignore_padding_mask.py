"""Let the padding be attended to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bilingual import Words
from surgery.operation import Grid, Operation

if TYPE_CHECKING:
    import torch

    from surgery.cut import Draw


@dataclass(frozen=True)
class IgnorePaddingMask(Operation):
    r"""allowed(i, j) no longer depends on whether key j is padding.

    What a model does when somebody forgets `attention_mask`. Other masks still hold. A text without padding is not
    changed; five tokens padded to eight give the three pads a share of every row.
    """

    name: ClassVar[str] = "ignore_padding_mask"
    stage: ClassVar[str] = "mask"
    title: ClassVar[Words] = Words("Forget the padding mask", "忘记填充掩码")
    summary: ClassVar[Words] = Words(
        "Padding is attended to like any token. Pad the text to see it.",
        "填充会像普通词元一样被注意。需要先填充文本。",
    )
    equation: ClassVar[str] = "allowed(i, j) = True where only padding forbade"
    when_idle: ClassVar[Words] = Words(
        "Nothing changed: this text has no padding. Pad it to more tokens.",
        "没有变化：文本没有填充。请把它填充到更多词元。",
    )
    lifts_padding: ClassVar[bool] = True

    def mask(self, allowed: torch.Tensor, grid: Grid, draw: Draw) -> torch.Tensor:
        """What is allowed now, (row, head, query, key)."""
        return allowed if grid.padding is None else allowed | grid.padding
