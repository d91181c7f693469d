"""The trained from-scratch models that come with the project."""

from __future__ import annotations

from pathlib import Path

import torch

from .loaded import LoadedModel, LoadError
from .pretrained import load_folder

CHECKPOINTS = Path(__file__).parent / "checkpoints"


def load_shipped(name: str, device: torch.device, dtype: torch.dtype) -> LoadedModel:
    """A model from `checkpoints/`; its card is the README.md there."""
    folder = CHECKPOINTS / name
    if not folder.is_dir():
        raise LoadError(
            f'The weights of "{name}" are not in {CHECKPOINTS}. Make them: python -m models.training --ship {name}',
            f"{CHECKPOINTS} 中没有 “{name}” 的权重。请运行：python -m models.training --ship {name}",
        )
    return load_folder(name, folder, device, dtype)
