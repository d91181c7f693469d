"""Models to operate on: `load` gives one by name, `available` lists the names that need no hub."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bilingual import Words

from .loaded import LoadedModel, LoadError

if TYPE_CHECKING:
    from pathlib import Path

    import torch

    from .decoder import (
        DecoderConfig,
        DecoderForCausalLM,
        DecoderModel,
        EncoderDecoderConfig,
        EncoderDecoderForTranslation,
    )
    from .encoder import EncoderConfig, EncoderForMaskedLM, EncoderForSequenceClassification, EncoderModel

__all__ = [
    "DecoderConfig",
    "DecoderForCausalLM",
    "DecoderModel",
    "EncoderConfig",
    "EncoderDecoderConfig",
    "EncoderDecoderForTranslation",
    "EncoderForMaskedLM",
    "EncoderForSequenceClassification",
    "EncoderModel",
    "LoadError",
    "LoadedModel",
    "available",
    "load",
]

_SHIPPED = {
    "encoder": Words(
        "the from-scratch encoder: 2 layers of 4 heads over whole English words, trained on a mini-grammar",
        "从零写成的编码器：2 层、每层 4 头，以英文整词为单位，在一个小语法上训练",
    ),
    "encoder-zh": Words(
        "the same encoder over whole Chinese words, trained on a Chinese mini-grammar",
        "同样的编码器，以中文整词为单位，在中文小语法上训练",
    ),
    "characters": Words(
        "the from-scratch decoder: 2 layers of 4 heads, writes lines of a small English language letter by letter",
        "从零写成的解码器：2 层、每层 4 头，逐个字母写出一种小型英语",
    ),
    "translator": Words(
        "the from-scratch encoder-decoder: translates toy sentences from English to Chinese",
        "从零写成的编码器-解码器：把简单的英文句子译成中文",
    ),
}
_AVAILABLE = {
    "minilm": Words(
        "all-MiniLM-L6-v2, a trained 6-layer, 12-head BERT for sentence vectors; comes with the requirements",
        "all-MiniLM-L6-v2：训练好的 6 层、12 头 BERT，用于句向量；随依赖一起安装",
    ),
    **_SHIPPED,
    "encoder-untrained": Words(
        "the from-scratch English encoder before training: random weights, untrained",
        "训练之前的英文编码器：权重是随机的，未经训练",
    ),
}


def available() -> dict[str, Words]:
    """The names that `load` knows without a hub, each with a line on what it is."""
    return dict(_AVAILABLE)


def load(
    name: str | Path, device: str | torch.device = "auto", dtype: str | torch.dtype = "auto"
) -> LoadedModel:
    """A model ready to run: a name from `available()`, a local folder, or a hub id.

    `device`: "auto" takes CUDA, else MPS, else the CPU. `dtype`: "auto" is float32; "bfloat16" and "float16"
    on request. Raises LoadError, in words that say what would work.
    """
    from .placement import choose_device, choose_dtype  # torch is imported when it is first needed

    device, dtype = choose_device(device), choose_dtype(dtype)
    if isinstance(name, str) and name in _SHIPPED:
        from .shipped import load_shipped

        return load_shipped(name, device, dtype)
    if name == "encoder-untrained":
        from .scratch import load_encoder

        return load_encoder(name, device, dtype)
    if name == "minilm":
        from .packaged import load_minilm

        return load_minilm(name, device, dtype)
    from .folders import find_folder

    folder = find_folder(name)  # before the slow import: a name that leads nowhere is said soon
    from .pretrained import load_folder

    return load_folder(str(name), folder, device, dtype)


def __getattr__(attribute: str) -> Any:
    if attribute in __all__:
        from . import decoder, encoder

        return getattr(encoder if hasattr(encoder, attribute) else decoder, attribute)
    raise AttributeError(f"module {__name__!r} has no attribute {attribute!r}")
