"""What surgery must know of a model: its layers and heads, where its positions live, how it scales.

Layers are found by watching one small forward pass and numbering the calls of attention, because modules do not
always know their own number. What cannot be seen from outside is declared in `FAMILIES`.
"""

from dataclasses import dataclass, field

import torch
from torch import nn

from bilingual import SurgeryError, Words
from surgery.operation import Operation


class UnsupportedError(SurgeryError):
    """A model, or an operation on this model, that surgery cannot do; it says why and what would work."""


@dataclass(frozen=True)
class Family:
    """What is declared about a family of models (by `config.model_type`).

    positions: the names a position module goes by; its forward takes position ids. scale: "argument" where the
    attention function is told the factor on q·kᵀ.
    """

    title: str
    positions: tuple[str, ...] = ("position_embeddings",)
    scale: str = "argument"


FAMILIES: dict[str, Family] = {
    "bert": Family("BERT"),
    "roberta": Family("RoBERTa"),
    "xlm-roberta": Family("XLM-R"),
    "camembert": Family("CamemBERT"),
    "electra": Family("ELECTRA"),
    "ernie": Family("ERNIE"),
    "data2vec-text": Family("Data2Vec-text"),
    "distilbert": Family("DistilBERT"),
    "albert": Family("ALBERT"),
    "gpt2": Family("GPT-2", positions=("wpe",)),
    "surgery_encoder": Family("the from-scratch encoder", positions=("position_embeddings", "rotary")),
}


@dataclass(frozen=True)
class Call:
    """One call of attention that the probe saw."""

    module: nn.Module
    heads: int
    d_k: int
    scale: float


@dataclass(frozen=True)
class Anatomy:
    """A model as surgery sees it. Made by `examine`."""

    name: str
    family: Family
    layers: int
    heads: int
    d_k: int
    scale: float
    attention: tuple[nn.Module, ...]  # one per layer, in the order of the calls; ALBERT repeats one module
    position_module: nn.Module | None
    layers_of: dict[int, tuple[int, ...]] = field(repr=False)  # id(attention module) -> its layers

    @property
    def position_rows(self) -> range | None:
        """The positions that the table holds; None where any position can be encoded."""
        rows = getattr(self.position_module, "num_embeddings", None)
        padding = getattr(self.position_module, "padding_idx", None)  # RoBERTa counts from the row after it
        return None if rows is None else range(0 if padding is None else padding + 1, rows)


def family_of(model: nn.Module) -> Family:
    """The model's row of the table. Raises UnsupportedError with the list of families."""
    kind = getattr(getattr(model, "config", None), "model_type", None)
    if kind in FAMILIES:
        return FAMILIES[kind]
    raise unsupported(model)


def unsupported(model: nn.Module) -> UnsupportedError:
    """The refusal of a model that no row of the table describes."""
    known = [family.title for family in FAMILIES.values()]
    name = type(model).__name__
    return UnsupportedError(
        f"{name} is not a model that surgery knows. It knows {', '.join(known)}.",
        f"本项目不认识 {name} 这种模型。认识的有：{'、'.join(known)}。",
    )


def examine(model: nn.Module, calls: list[Call]) -> Anatomy:
    """The anatomy of a model whose forward pass made these calls of attention.

    Raises UnsupportedError if attention was never asked for by name, or if its layers differ in heads.
    """
    family = family_of(model)
    name = type(model).__name__
    if not calls:
        raise UnsupportedError(
            f"{name} never asks for its attention function by name, so nothing can be changed in it.",
            f"{name} 不通过名称查找注意力函数，因此无法对它做手术。",
        )
    if len({(call.heads, call.d_k, call.scale) for call in calls}) > 1:
        raise UnsupportedError(
            f"The layers of {name} differ in heads, head width or scale; surgery needs them alike.",
            f"{name} 各层的头数、头宽或缩放不同；手术要求它们一致。",
        )
    layers_of: dict[int, tuple[int, ...]] = {}
    for layer, call in enumerate(calls):
        layers_of[id(call.module)] = (*layers_of.get(id(call.module), ()), layer)
    first = calls[0]
    return Anatomy(
        name=name,
        family=family,
        layers=len(calls),
        heads=first.heads,
        d_k=first.d_k,
        scale=first.scale,
        attention=tuple(call.module for call in calls),
        position_module=_position_module(model, family),
        layers_of=layers_of,
    )


def _position_module(model: nn.Module, family: Family) -> nn.Module | None:
    named = (module for name, module in model.named_modules() if name.rsplit(".", 1)[-1] in family.positions)
    return next(named, None)


def refusal(anatomy: Anatomy, operation: Operation) -> Words | None:
    """Why this operation cannot act on this model and what would, or None if it can."""
    if operation.stage == "positions" and anatomy.position_module is None:
        return Words(
            f"{anatomy.name} has no position encoding that could be changed; a causal or local mask still limits order.",
            f"{anatomy.name} 没有可以修改的位置编码；可以改用因果掩码或局部掩码。",
        )
    return None


def check_positions(anatomy: Anatomy, ids: torch.Tensor) -> None:
    """Raises UnsupportedError if a real token's position id is outside the model's table."""
    rows = anatomy.position_rows
    if rows is None or ids.numel() == 0:
        return
    low, high = int(ids.min()), int(ids.max())
    if low not in rows or high not in rows:
        beyond = high if low in rows else low
        raise UnsupportedError(
            f"Position {beyond} does not exist: the table of {anatomy.name} holds positions {rows[0]}-{rows[-1]}. "
            "Choose a smaller shift or a shorter text.",
            f"位置 {beyond} 不存在：{anatomy.name} 的位置表只有 {rows[0]}-{rows[-1]}。请减小偏移或缩短文本。",
        )
