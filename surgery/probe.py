"""One small forward pass, watched: which modules call attention and in which order, how they scale, where positions enter.

What is seen is believed only where it can be checked: each call of attention is done a second time by `attend`, and a model
whose attention is something else (a softcap, a sink) is refused.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from surgery.attention import attend, split_mask
from surgery.cut import Cut
from surgery.places import Place, UnsupportedError, ids_among

_watching: ContextVar["Probe | None"] = ContextVar("the probe that watches", default=None)


@dataclass(frozen=True)
class Call:
    """One call of attention. before: the factor that q and k already carry; scale: the whole factor on q·kᵀ."""

    module: nn.Module
    heads: int
    d_k: int
    scale: float
    before: float
    biased: bool


@dataclass
class Probe:
    """What a forward pass showed."""

    calls: list[Call] = field(default_factory=list)
    positions: dict[nn.Module, int] = field(default_factory=dict)  # called with 0, 1, 2, ...: how many
    _made: list[tuple[nn.Module, Tensor]] = field(default_factory=list)

    def knows(self, module: nn.Module) -> bool:
        """It looks at every module."""
        return True

    def attention(
        self,
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        scaling: float | None,
        bias: Tensor | None,
        kwargs: dict[str, Any],
        stock: Tensor,
    ) -> None:
        """Notes a call; `stock` is what the model computes. Raises UnsupportedError if that is not attention as we know it."""
        _refuse_softcap(type(module).__name__, kwargs)
        scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
        call = self.call(module, query, key, scaling, bias is not None)
        self.calls.append(call)
        allowed, _, extra = (None, None, bias) if mask is None else split_mask(mask, bias)
        causal = kwargs.get("is_causal")
        causal = getattr(module, "is_causal", True) if causal is None else causal
        again, _ = attend(
            query,
            key,
            value,
            Cut(),
            scale=scaling,
            allowed=allowed,
            bias=extra,
            causal=causal and mask is None,
        )
        near = 1e-3 if query.dtype == torch.float32 else 5e-2
        if not torch.allclose(again, stock, rtol=near, atol=near * float(stock.abs().max() + 1e-6)):
            raise _something_else(type(module).__name__)

    def call(
        self, module: nn.Module, query: Tensor, key: Tensor, scaling: float | None, biased: bool = False
    ) -> Call:
        """A call with these, (row, head, token, width), and what was made since the last one."""
        scaling = query.shape[-1] ** -0.5 if scaling is None else float(scaling)
        made, self._made = [(m, x) for m, x in self._made if any(m is part for part in module.modules())], []
        before = _factor(query, made) * _factor(key, made)
        return Call(module, query.shape[1], query.shape[-1], scaling * before, before, biased)

    def remember(self, mask: Any, arguments: dict[str, Any]) -> None:
        """Masks tell nothing about anatomy."""


def _refuse_softcap(name: str, kwargs: dict[str, Any]) -> None:
    if kwargs.get("softcap") is not None:
        raise UnsupportedError(
            f"{name} bends its scores with a softcap (tanh), which no operation here is written for: use a relative without "
            "one, such as Gemma, Llama or Qwen3.",
            f"{name} 用 softcap（tanh）压缩分数，这里没有相应的手术：请使用没有 softcap 的同类模型，例如 Gemma、Llama 或 Qwen3。",
        )


def _something_else(name: str) -> UnsupportedError:
    return UnsupportedError(
        f"{name} computes something else than softmax(q·kᵀ · scale + mask) · v: surgery would change more than it says.",
        f"{name} 计算的不是 softmax(q·kᵀ · 缩放 + 掩码) · v：手术改变的会比它说的多。",
    )


# --- the scale that was applied before the call -------------------------------------------------------------


def _factor(vectors: Tensor, made: list[tuple[nn.Module, Tensor]]) -> float:
    """By how much q (or k), (row, head, token, width), is longer than what the model's own modules last made it.

    Rotary positions turn vectors and leave their length; a scale applied before the call does not.
    """
    found = [
        f for _, out in made for part in _views(out, vectors) if (f := _ratio(vectors, part)) is not None
    ]
    if not found:
        return 1.0
    width = vectors.shape[-1]
    for exact in (1.0, width**-0.5, width**-0.25):
        if math.isclose(found[-1], exact, rel_tol=2e-2):
            return exact
    return found[-1]


def _views(out: Tensor, like: Tensor) -> Iterator[Tensor]:
    """The ways to read `out` as one or several tensors of the shape (row, head, token, width) of `like`."""
    rows, heads, tokens, width = like.shape
    if out.shape == like.shape:
        yield out
    if out.dim() < 3 or out.shape[:2] != (rows, tokens):
        return
    flat = out.flatten(2)  # (row, token, features)
    size = heads * width
    if flat.shape[-1] % size == 0:  # q, k and v one after the other, or head by head
        several = flat.shape[-1] // size
        parts = flat.unflatten(-1, (several, heads, width)).transpose(
            1, 3
        )  # (row, head, several, token, width)
        mixed = flat.unflatten(-1, (heads, several, width)).transpose(
            1, 2
        )  # (row, head, token, several, width)
        for part in range(several):
            yield parts[:, :, part]
            yield mixed[:, :, :, part]


def _ratio(vectors: Tensor, part: Tensor) -> float | None:
    """The one factor between the lengths of all vectors, or None if there is none."""
    long, short = vectors.float().norm(dim=-1), part.float().norm(dim=-1)
    if not bool((short > 0).all()):
        return None
    ratios = long / short
    near = 1e-4 if vectors.dtype == torch.float32 else 2e-2
    alike = (ratios.max() - ratios.min()) <= near * ratios.max()
    return float(ratios.mean()) if bool(alike) else None


# --- watching -----------------------------------------------------------------------------------------------


@contextmanager
def watched(model: nn.Module, probe: Probe) -> Iterator[None]:
    """Shows `probe` what every module of `model` is called with and gives; other threads' calls are not seen."""
    token = _watching.set(probe)
    hooks = [
        module.register_forward_hook(_after, with_kwargs=True)
        for module in model.modules()
        if not any(True for _ in module.children())
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        _watching.reset(token)


def _after(module: nn.Module, args: tuple, kwargs: dict, out: Any) -> None:
    probe = _watching.get()
    if probe is None:
        return
    if isinstance(out, Tensor) and out.is_floating_point():
        probe._made.append((module, out.detach()))
    found = ids_among(module, args, kwargs)
    if found is not None and counts(found[1][found[0]]) and _encodes(out):
        probe.positions[module] = found[1][found[0]].shape[-1]


def counts(ids: Tensor) -> bool:
    """Whether these are consecutive numbers: in the probe nothing but positions are."""
    return 0 < ids.dim() <= 2 and ids.shape[-1] > 1 and bool((ids.diff(dim=-1) == 1).all())


def _encodes(out: Any) -> bool:
    """Whether this is an encoding: vectors, or cos and sin."""
    if isinstance(out, tuple):
        return len(out) == 2 and out[0].shape == out[1].shape
    return isinstance(out, Tensor) and out.is_floating_point()


# --- what it is shown ---------------------------------------------------------------------------------------


def inputs(model: nn.Module) -> dict[str, Tensor]:
    """A small input for whatever the model's forward takes: words, a picture, or sound."""
    import inspect

    takes = inspect.signature(model.forward).parameters
    # "meta": kept elsewhere by accelerate, which moves inputs
    parameter = next((p for p in model.parameters() if p.device.type != "meta"), torch.empty(0))
    made = {name: make(model.config) for name, make in _INPUTS.items() if name in takes}
    if "decoder_input_ids" in made:  # the two texts differ in length
        made["decoder_input_ids"] = made["decoder_input_ids"][:, :2]
    if "input_ids" in made and "attention_mask" in takes:
        made["attention_mask"] = torch.ones_like(made["input_ids"])
    return {
        name: x.to(parameter.device, parameter.dtype if x.is_floating_point() else x.dtype)
        for name, x in made.items()
    }


def _words(config: Any) -> Tensor:
    """A few words, none of them padding, and their numbers not consecutive."""
    padding = getattr(config, "pad_token_id", None)
    first = 0 if padding is None or not 0 <= padding < 5 else padding + 1
    return first + torch.tensor([[0, 2, 1, 4, 3]])


def _noise(*shape: int) -> Tensor:
    return torch.randn(1, *shape, generator=torch.Generator().manual_seed(0))


def _picture(config: Any) -> Tensor:
    config = getattr(config, "vision_config", config)
    size = config.image_size
    height, width = size if isinstance(size, list | tuple) else (size, size)
    return _noise(config.num_channels, height, width)


def _samples(config: Any) -> Tensor:
    """As many as the convolutions turn into three frames."""
    length = 3
    for kernel, stride in zip(reversed(config.conv_kernel), reversed(config.conv_stride), strict=True):
        length = (length - 1) * stride + kernel
    return _noise(length)


_INPUTS: dict[str, Callable[[Any], Tensor]] = {
    "input_ids": _words,
    "decoder_input_ids": _words,
    "pixel_values": _picture,
    "input_features": lambda config: _noise(config.num_mel_bins, 2 * config.max_source_positions),
    "input_values": _samples,
}


def takes_padding(model: nn.Module) -> bool:
    """Whether the model can be told which of its input is padding."""
    import inspect

    takes = inspect.signature(model.forward).parameters
    return "attention_mask" in takes or "decoder_attention_mask" in takes


def places(
    model: nn.Module, probe: Probe, declared: str | None, kinds: dict[str, range], calls: list[Call]
) -> tuple[Place, ...]:
    """Where positions enter, in the order in which they do.

    declared: the name of a module that makes positions of the input itself; nothing in the module tells.
    """
    found: list[Place] = []
    for path, module in model.named_modules():
        name = path.rsplit(".", 1)[-1]
        if declared is not None and name == declared:
            found.append(Place("output", module))
        elif module in probe.positions:
            found.append(_with_ids(module, probe.positions[module]))
        elif isinstance(module, nn.Embedding) and "posit" in name:
            first = getattr(module, "offset", 0)
            found.append(Place("table", module, module.weight, range(first, module.num_embeddings)))
        else:
            found += [
                Place("table", module, table, range(table.shape[1]), full=True)
                for own, table in module.named_parameters(recurse=False)
                if "position_embedding" in own and table.dim() == 3
            ]
    for layers in kinds.values():
        biased = [m for layer in layers for m in [calls[layer].module] if calls[layer].biased]
        owner = next((m for m in biased if getattr(m, "has_relative_attention_bias", False)), None)
        if owner is not None:
            found.append(Place("bias", owner, layers=layers))
    return tuple(found)


def _with_ids(module: nn.Module, used: int) -> Place:
    if not isinstance(module, nn.Embedding):
        return Place("ids", module)
    first = (
        0 if module.padding_idx is None else module.padding_idx + 1
    )  # RoBERTa counts from the row after it
    rows = range(
        first, module.num_embeddings - getattr(module, "offset", 0)
    )  # OPT adds 2 to the ids by itself
    return Place("ids", module, module.weight, rows, full=used == len(rows))
