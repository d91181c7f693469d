"""What surgery must know of a model: its layers and heads, where its positions live, how it scales.

What can be seen from outside is found by watching one small forward pass (probe.py): layers are the calls of attention in
their order, because modules do not always know their own number. What cannot be seen is declared in `FAMILIES`, a row each.

A model may have several kinds of attention: an encoder-decoder has its encoder's, its decoder's, and the cross-attention
between the two. Layers are then numbered kind by kind: with 2 layers each, L0-1 are the encoder's, L2-3 the decoder's and
L4-5 the cross-attention. `admit(model).kinds` has the ranges, and `op.at(layers=kinds["cross"])` selects one.
"""

import re
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from bilingual import Words
from surgery.operation import Operation, Step
from surgery.places import Place, UnsupportedError
from surgery.probe import Call, Probe, places, takes_padding

_CROSS = "cross"
_SELF = (("self", ".*"),)
_OURS = (
    ("encoder", r"encoder\..*"),
    ("decoder", r"decoder\..*\.attention"),
    (_CROSS, r"decoder\..*\.cross_attention"),
)
_BARTS = (
    ("encoder", r"(.*\.)?encoder\..*"),
    ("decoder", r"(.*\.)?decoder\..*\.self_attn"),
    (_CROSS, r"(.*\.)?decoder\..*\.encoder_attn"),
)
_T5S = (
    ("encoder", r"(.*\.)?encoder\..*"),
    ("decoder", r"(.*\.)?decoder\..*\.SelfAttention"),
    (_CROSS, r"(.*\.)?decoder\..*\.EncDecAttention"),
)
_TOWERS = (("text", r"text_model\..*"), ("vision", r"vision_model\..*"))


@dataclass(frozen=True)
class Family:
    """What is declared about a family of models (by `config.model_type`).

    kinds: the kinds of attention in the order of their layers, each with a pattern of its modules' paths. positions: the name
    of a module that makes positions of the input itself. order: what else tells the model the order of its tokens, so that
    it would still know it without positions.
    """

    title: str
    kinds: tuple[tuple[str, str], ...] = _SELF
    positions: str | None = None
    order: Words | None = None
    scaled_bias: bool = False


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
    "mobilebert": Family(
        "MobileBERT",
        order=Words(
            "it reads each token together with its two neighbours", "它把每个词元和左右两个邻居一起读入"
        ),
    ),
    "nomic_bert": Family("NomicBERT"),
    "modernbert": Family("ModernBERT"),
    "esm": Family("ESM"),
    "gpt2": Family("GPT-2"),
    "opt": Family("OPT"),
    "gpt_neox": Family("GPT-NeoX"),
    "llama": Family("Llama"),
    "mistral": Family("Mistral"),
    "qwen2": Family("Qwen2"),
    "qwen3": Family("Qwen3"),
    "gemma": Family("Gemma"),
    "gemma2": Family("Gemma 2 without its softcap"),
    "t5": Family("T5", kinds=_T5S),
    "bart": Family("BART", kinds=_BARTS),
    "whisper": Family("Whisper", kinds=_BARTS),
    "vit": Family("ViT"),
    "deit": Family("DeiT"),
    "dinov2": Family("DINOv2"),
    "clip": Family("CLIP", kinds=_TOWERS),
    "clip_text_model": Family("CLIP's text tower"),
    "clip_vision_model": Family("CLIP's vision tower"),
    "wav2vec2": Family("Wav2Vec2", positions="pos_conv_embed"),
    "wav2vec2-conformer": Family(
        "Wav2Vec2-Conformer",
        order=Words(
            "each of its blocks holds a convolution over neighbours", "它的每个块都包含对相邻帧的卷积"
        ),
        scaled_bias=True,
    ),
    "surgery_encoder": Family("the from-scratch encoder"),
    "surgery_decoder": Family("the from-scratch decoder"),
    "surgery_encoder_decoder": Family("the from-scratch translator", kinds=_OURS),
}


@dataclass(frozen=True)
class Anatomy:
    """A model as surgery sees it. Made by `examine`. scale: the whole factor on q·kᵀ, wherever it is applied."""

    name: str
    family: Family
    layers: int
    heads: int
    d_k: int
    scale: float
    attention: tuple[nn.Module, ...]  # one per layer, in the order of the calls; ALBERT repeats one module
    before: tuple[
        float, ...
    ]  # per layer, the factor that q and k carry when attention is called: OPT and ESM scale q
    places: tuple[Place, ...]  # where positions enter; of an encoder-decoder two, the encoder's first
    padded: bool  # whether it can be told of padding
    blocks: tuple[nn.Module, ...]  # the block around each layer's attention; empty where blocks are shared
    layers_of: dict[int, tuple[int, ...]] = field(repr=False)  # id(attention module) -> its layers
    kinds: dict[str, range] = field(default_factory=dict)  # kind of attention -> its layers
    adapted: bool = False  # reached through PyTorch's functions, not by name (adapter.py)
    crossed: frozenset[int] = (
        frozenset()
    )  # of an adapted model: the layers whose queries and keys are of two texts


def known(model: nn.Module) -> bool:
    """Whether the table has a row for the model."""
    return getattr(getattr(model, "config", None), "model_type", None) in FAMILIES


def family_of(model: Any) -> Family:
    """The model's row of the table. Raises UnsupportedError with the list of families."""
    if known(model):
        return FAMILIES[model.config.model_type]
    raise unsupported(model)


# Why nothing can be done to some that people bring: after the model's name, before those that can be used instead.
_ALONE = Words(
    "computes its attention by itself and never asks for a function by name, so nothing can be changed in it. Relatives that ask",
    "自己计算注意力，不通过名称查找注意力函数，因此无法对它做手术。可以使用的同类模型",
)
_REASONS = {
    **dict.fromkeys(
        ("mpnet", "deberta", "deberta-v2", "roformer", "megatron-bert", "rembert", "convbert"), _ALONE
    ),
    "gpt_oss": Words(
        "gives part of each row's weight to a sink that is no token, which no operation here is written for. Relatives without one",
        "把每行的一部分权重给了不属于任何词元的 sink，这里没有相应的手术。没有 sink 的同类模型",
    ),
}


def unsupported(model: nn.Module) -> UnsupportedError:
    """The refusal of a model that no row of the table describes."""
    name, kind = type(model).__name__, getattr(getattr(model, "config", None), "model_type", None)
    if kind is None:
        return UnsupportedError(
            f"{name} is not a model of transformers. If it calls F.scaled_dot_product_attention or nn.MultiheadAttention, show "
            "surgery once how it is called: surgery.admit(model, x).",
            f"{name} 不是 transformers 的模型。如果它调用 F.scaled_dot_product_attention 或使用 nn.MultiheadAttention，"
            "请先用一个输入登记一次：surgery.admit(model, x)。",
        )
    known = [family.title for family in FAMILIES.values()]
    en, zh = _REASONS.get(
        kind, ("is not a model that surgery knows. It knows", "是本项目不认识的模型。认识的有")
    )
    return UnsupportedError(f"{name} {en}: {', '.join(known)}.", f"{name} {zh}：{'、'.join(known)}。")


def examine(model: nn.Module, probe: Probe) -> Anatomy:
    """The anatomy of a model whose forward pass showed this.

    Raises UnsupportedError if attention was never asked for by name, or if its layers differ in heads.
    """
    family = family_of(model)
    name = type(model).__name__
    if not probe.calls:
        raise UnsupportedError(
            f"{name} never asks for its attention function by name, so nothing can be changed in it.",
            f"{name} 不通过名称查找注意力函数，因此无法对它做手术。",
        )
    calls, kinds = _by_kind(model, family, probe.calls)
    _check_alike(name, calls, kinds)
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
        before=tuple(call.before for call in calls),
        places=places(model, probe, family.positions, kinds, calls),
        padded=takes_padding(model),
        blocks=_blocks(model, tuple(call.module for call in calls)),
        layers_of=layers_of,
        kinds=kinds,
    )


def _check_alike(name: str, calls: list[Call], kinds: dict[str, range]) -> None:
    """Raises UnsupportedError if layers differ: a selection says one number of heads for all."""
    shapes = {(call.heads, call.d_k, round(call.scale, 6)) for call in calls}
    if len(shapes) == 1:
        return
    parts = [f"{k} {calls[r.start].heads} × {calls[r.start].d_k}" for k, r in kinds.items() if len(r)]
    said = f" ({'; '.join(parts)})" if len(parts) > 1 else ""
    raise UnsupportedError(
        f"The layers of {name} differ in heads, head width or scale{said}; surgery needs them alike. "
        "Where its parts can be loaded alone (CLIPTextModel, CLIPVisionModel), operate on one.",
        f"{name} 各层的头数、头宽或缩放不同{said}；手术要求它们一致。"
        "如果可以单独加载其中一部分（CLIPTextModel、CLIPVisionModel），请对那一部分做手术。",
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


# What these do is said of one text looking at itself: query i and key i are the same token.
_SELF_ONLY = frozenset({"causal_mask", "local_mask", "hide_self", "identity_attention", "custom_mask"})


def cross_refusal(anatomy: Anatomy, step: Step) -> Words | None:
    """Why this step cannot act on the cross-attention it selects, or None."""
    cross = anatomy.kinds.get(_CROSS, range(0))
    if step.operation.name not in _SELF_ONLY:
        return None
    if anatomy.crossed:
        return _crossed_refusal(anatomy, step)
    if not any(layer in cross for layer, _ in step.selection.cells(anatomy.layers, anatomy.heads)):
        return None
    title, rest = type(step.operation).__name__, f"L0-{cross.start - 1}"
    return Words(
        f"{title} compares places of one text, and in cross-attention (L{cross.start}-{cross.stop - 1}) queries and keys "
        f"stand in two: select {rest} or some of it.",
        f"{title} 比较同一文本中的位置，而交叉注意力（L{cross.start}-{cross.stop - 1}）的查询和键来自两个文本：请选择 {rest} 或其中一部分。",
    )


def _crossed_refusal(anatomy: Anatomy, step: Step) -> Words | None:
    touched = {layer for layer, _ in step.selection.cells(anatomy.layers, anatomy.heads)}
    own = ", ".join(f"L{layer}" for layer in range(anatomy.layers) if layer not in anatomy.crossed)
    if not touched & anatomy.crossed:
        return None
    title = type(step.operation).__name__
    return Words(
        f"{title} compares places of one text, and in some layers of {anatomy.name} queries and keys stand in two: select "
        f"some of {own or 'none'}.",
        f"{title} 比较同一文本中的位置，而 {anatomy.name} 的某些层的查询和键来自两个文本：请在 {own or '无'} 中选择。",
    )


def refusal(anatomy: Anatomy, operation: Operation) -> Words | None:
    """Why this operation cannot act on this model and what would, or None if it can."""
    name, title = anatomy.name, type(operation).__name__
    if operation.stage == "positions":
        return _position_refusal(anatomy, operation)
    if operation.lifts_padding and not anatomy.padded:
        return Words(
            f"{name} takes no padding mask that could be told from other masks, so there is none to forget.",
            f"{name} 不接收可以与其他掩码区分开的填充掩码，因此没有可以忘记的。",
        )
    idle = operation.stage == "scale" and not operation.neutral and operation.scale(1.0, 1.0) == (1.0, 1.0)
    if idle and anatomy.scale == 1.0:
        return Words(
            f"{name} does not scale: its scores are q·kᵀ as they are, and {title} has nothing to drop. Temperature acts.",
            f"{name} 不做缩放：分数就是 q·kᵀ，{title} 没有可以去掉的东西。可以改用 Temperature。",
        )
    return None


def _position_refusal(anatomy: Anatomy, operation: Any) -> Words | None:
    name = anatomy.name
    first = torch.arange(8)[None]
    new = operation.positions(first, torch.ones_like(first, dtype=torch.bool))
    alike = new is None or bool((new == new[:, :1]).all())
    if anatomy.adapted and not operation.token_by_token:
        return Words(
            f"{name} does not say which of its tokens are padding, and {type(operation).__name__} must know: RemovePositions and "
            "ShiftPositions need not.",
            f"{name} 没有说明哪些词元是填充，而 {type(operation).__name__} 必须知道：可以用 RemovePositions 或 ShiftPositions。",
        )
    if anatomy.family.order is not None and (alike or not anatomy.places):
        en, zh = anatomy.family.order
        return Words(
            f"{name} would still know the order of its tokens: {en}. A causal or local mask limits what they see.",
            f"{name} 仍然知道词元的顺序：{zh}。可以用因果掩码或局部掩码限制它看到的范围。",
        )
    if not anatomy.places:
        return Words(
            f"{name} has no position encoding that could be changed; a causal or local mask still limits order.",
            f"{name} 没有可以修改的位置编码；可以改用因果掩码或局部掩码。",
        )
    if any(place.how == "output" for place in anatomy.places) and new is not None:
        return Words(
            f"{name} numbers no tokens: a convolution makes positions of the sound itself. RemovePositions leaves it out.",
            f"{name} 不给词元编号：位置由对声音本身的卷积得到。RemovePositions 可以去掉它。",
        )
    beyond = new is not None and not set(new[0].tolist()) <= set(first[0].tolist())
    if beyond and any(place.full for place in anatomy.places):
        return Words(
            f"{name} uses every row of its position table on every input, so there is nowhere to shift to. ReversePositions "
            "and ShufflePositions move within it.",
            f"{name} 的每个输入都用到位置表的所有行，没有可以平移到的地方。可以用 ReversePositions 或 ShufflePositions 在其中移动。",
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


def check_positions(anatomy: Anatomy, place: Place, ids: torch.Tensor) -> None:
    """Raises UnsupportedError if a real token's position id is outside the model's table."""
    rows = place.rows
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
