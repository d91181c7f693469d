"""What surgery must know of a model: its layers and heads, where its positions live, how it scales.

Layers are found by watching one small forward pass and numbering the calls of attention, because modules do not
always know their own number. What cannot be seen from outside is declared in `FAMILIES`.

A model may have several kinds of attention: an encoder-decoder has its encoder's, its decoder's, and the cross-attention
between the two. Layers are then numbered kind by kind: with 2 layers each, L0-1 are the encoder's, L2-3 the decoder's and
L4-5 the cross-attention. `admit(model).kinds` has the ranges, and `op.at(layers=kinds["cross"])` selects one.
"""

import re
from dataclasses import dataclass, field

import torch
from torch import nn

from bilingual import SurgeryError, Words
from surgery.operation import Operation, Step


class UnsupportedError(SurgeryError):
    """A model, or an operation on this model, that surgery cannot do; it says why and what would work."""


@dataclass(frozen=True)
class Family:
    """What is declared about a family of models (by `config.model_type`).

    positions: the names a position module goes by; its forward takes position ids. scale: "argument" where the
    attention function is told the factor on q·kᵀ. kinds: the kinds of attention in the order of their layers, each with a
    pattern of its modules' paths.
    """

    title: str
    positions: tuple[str, ...] = ("position_embeddings",)
    scale: str = "argument"
    kinds: tuple[tuple[str, str], ...] = (("self", ".*"),)


_OURS = ("position_embeddings", "rotary")
_CROSS = "cross"


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
    "surgery_encoder": Family("the from-scratch encoder", positions=_OURS),
    "surgery_decoder": Family("the from-scratch decoder", positions=_OURS),
    "surgery_encoder_decoder": Family(
        "the from-scratch translator",
        positions=_OURS,
        kinds=(
            ("encoder", r"encoder\..*"),
            ("decoder", r"decoder\..*\.attention"),
            (_CROSS, r"decoder\..*\.cross_attention"),
        ),
    ),
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
    position_modules: tuple[nn.Module, ...]  # of an encoder-decoder two, the encoder's first
    blocks: tuple[nn.Module, ...]  # the block around each layer's attention; empty where blocks are shared
    layers_of: dict[int, tuple[int, ...]] = field(repr=False)  # id(attention module) -> its layers
    kinds: dict[str, range] = field(default_factory=dict)  # kind of attention -> its layers

    @property
    def position_module(self) -> nn.Module | None:
        """Where positions enter first."""
        return self.position_modules[0] if self.position_modules else None

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
    calls, kinds = _by_kind(model, family, calls)
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
        position_modules=_position_modules(model, family),
        blocks=_blocks(model, tuple(call.module for call in calls)),
        layers_of=layers_of,
        kinds=kinds,
    )


def _by_kind(model: nn.Module, family: Family, calls: list[Call]) -> tuple[list[Call], dict[str, range]]:
    """The calls kind by kind, within a kind in their order, and the layers of each kind."""
    paths = {id(module): path for path, module in model.named_modules()}
    ordered: list[Call] = []
    kinds: dict[str, range] = {}
    for kind, pattern in family.kinds:
        own = [call for call in calls if re.fullmatch(pattern, paths[id(call.module)])]
        kinds[kind] = range(len(ordered), len(ordered) + len(own))
        ordered += own
    return ordered, kinds


def _blocks(model: nn.Module, attention: tuple[nn.Module, ...]) -> tuple[nn.Module, ...]:
    """The list of blocks that hold these attention modules, one each, in order; empty if there is none."""
    for module in model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == len(attention):
            inside = zip(module, attention, strict=True)
            if all(any(part is own for part in block.modules()) for block, own in inside):
                return tuple(module)
    return ()


def _position_modules(model: nn.Module, family: Family) -> tuple[nn.Module, ...]:
    named = (module for name, module in model.named_modules() if name.rsplit(".", 1)[-1] in family.positions)
    return tuple(named) if len(family.kinds) > 1 else tuple(named)[:1]


# What these do is said of one text looking at itself: query i and key i are the same token.
_SELF_ONLY = frozenset({"causal_mask", "local_mask", "hide_self", "identity_attention", "custom_mask"})


def cross_refusal(anatomy: Anatomy, step: Step) -> Words | None:
    """Why this step cannot act on the cross-attention it selects, or None."""
    cross = anatomy.kinds.get(_CROSS, range(0))
    if not cross or step.operation.name not in _SELF_ONLY:
        return None
    if not any(layer in cross for layer, _ in step.selection.cells(anatomy.layers, anatomy.heads)):
        return None
    title, rest = type(step.operation).__name__, f"L0-{cross.start - 1}"
    return Words(
        f"{title} compares places of one text, and in cross-attention (L{cross.start}-{cross.stop - 1}) queries and keys "
        f"stand in two: select {rest} or some of it.",
        f"{title} 比较同一文本中的位置，而交叉注意力（L{cross.start}-{cross.stop - 1}）的查询和键来自两个文本：请选择 {rest} 或其中一部分。",
    )


def refusal(anatomy: Anatomy, operation: Operation) -> Words | None:
    """Why this operation cannot act on this model and what would, or None if it can."""
    if operation.stage == "positions" and anatomy.position_module is None:
        return Words(
            f"{anatomy.name} has no position encoding that could be changed; a causal or local mask still limits order.",
            f"{anatomy.name} 没有可以修改的位置编码；可以改用因果掩码或局部掩码。",
        )
    return None


def check_one_text(anatomy: Anatomy, name: str) -> None:
    """Raises UnsupportedError for a model that reads one text and writes another, where one text is to be shown."""
    if len(anatomy.kinds) > 1:
        raise UnsupportedError(
            f"{name} reads one text and writes another, and this shows one: run it yourself inside "
            "`with surgery.operate(model, plan)`.",
            f"{name} 读一段文本、写另一段文本，而这里只显示一段：请在 `with surgery.operate(model, plan)` 中自行运行。",
        )


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
