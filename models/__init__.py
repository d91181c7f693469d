"""Models to operate on: `load` gives one by name, `available` lists the names that need no hub."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bilingual import Words

from .loaded import LoadedModel, LoadError

if TYPE_CHECKING:
    from pathlib import Path

    import torch

    from .encoder import EncoderConfig, EncoderForMaskedLM, EncoderModel

__all__ = [
    "EncoderConfig",
    "EncoderForMaskedLM",
    "EncoderModel",
    "LoadError",
    "LoadedModel",
    "available",
    "load",
]

_AVAILABLE = {
    "minilm": Words(
        "all-MiniLM-L6-v2, a trained 6-layer, 12-head BERT for sentence vectors; comes with the requirements",
        "all-MiniLM-L6-v2：训练好的 6 层、12 头 BERT，用于句向量；随依赖一起安装",
    ),
    "encoder": Words(
        "the from-scratch encoder, 2 layers of 4 heads over whole English words; untrained: random weights",
        "从零写成的编码器：2 层、每层 4 头，以英文整词为单位；未经训练，权重是随机的",
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
    if name == "encoder":
        from .scratch import load_encoder

        return load_encoder(name, device, dtype)
    if name == "minilm":
        from .packaged import load_minilm

        return load_minilm(name, device, dtype)
    from .folders import find_folder

    folder = find_folder(name)  # before the slow import: a name that leads nowhere is said soon
    from .pretrained import load_folder

    return load_folder(str(name), folder, device, dtype)


def __getattr__(attribute: str):
    if attribute in __all__:
        from . import encoder

        return getattr(encoder, attribute)
    raise AttributeError(f"module {__name__!r} has no attribute {attribute!r}")
