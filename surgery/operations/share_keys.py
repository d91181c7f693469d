"""Let heads share their keys and values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bilingual import Words
from surgery.operation import Operation, OperationError, parameter

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class ShareKeys(Operation):
    r"""k_h = v_h's group mean: k_h = mean of k over the heads of h's group, and v_h likewise.

    Neighbouring heads make up `groups` groups of one size. 1 is multi-query attention (Shazeer 2019); more is grouped-query
    attention, mean-pooled from a trained model (Ainslie et al. 2023, section 2.1) and not trained on. As many groups as heads
    change nothing; 12 heads in 4 groups need a third of the keys and values. A head that is not selected keeps its own.
    """

    name: ClassVar[str] = "share_keys"
    stage: ClassVar[str] = "projections"
    title: ClassVar[Words] = Words("Share keys and values between heads", "注意力头共享键和值")
    summary: ClassVar[Words] = Words(
        "Heads of a group use the mean of their keys and values; 1 group is multi-query attention.",
        "同组的注意力头使用它们的键和值的平均；1 组就是多查询注意力。",
    )
    equation: ClassVar[str] = "k_h = mean over group(h) of k, v_h likewise"
    when_idle: ClassVar[Words] = Words(
        "Nothing changed: these heads share their keys and values already, or each is a group of its own.",
        "没有变化：这些注意力头已经共享键和值，或者每个头自成一组。",
    )

    groups: int = parameter(
        1,
        kind="int",
        low=1,
        high=4096,
        slider=(1, 12),
        label=Words("groups", "组数"),
        help=Words("1 shares among all heads; must divide them.", "1 表示所有头共享；必须整除头数。"),
    )

    def check_heads(self, heads: int) -> None:
        """Raises OperationError if the heads do not make up so many groups of one size."""
        if heads % self.groups:
            fits = [n for n in range(1, heads + 1) if not heads % n]
            raise OperationError(
                f"ShareKeys: {heads} heads do not make up {self.groups} equal groups: give one of {fits}.",
                f"ShareKeys：{heads} 个头无法平均分成 {self.groups} 组：请给 {fits} 之一。",
            )

    def projections(self, *vectors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """New query, key and value, (row, head, token, width), from those of all heads of a layer."""
        shared = [x.unflatten(1, (self.groups, -1)) for x in vectors[1:]]
        return vectors[0], *(x.mean(2, keepdim=True).expand_as(x).flatten(1, 2) for x in shared)
