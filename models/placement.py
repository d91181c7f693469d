"""Where a model's weights live and how wide its numbers are."""

from __future__ import annotations

import torch

from .loaded import LoadError

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def present_devices() -> list[str]:
    """The devices of this machine, best first."""
    cuda = [f"cuda:{i}" for i in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    mps = ["mps"] if torch.backends.mps.is_available() else []
    return [*cuda, *mps, "cpu"]


def choose_device(asked: str | torch.device = "auto") -> torch.device:
    """`asked`, if this machine has it; for "auto", CUDA, else MPS, else the CPU."""
    present = present_devices()
    if asked == "auto":
        return torch.device(present[0])
    try:
        device = torch.device(asked)
    except (RuntimeError, TypeError):
        device = None
    if device is not None:
        for name in present:
            found = torch.device(name)
            if found.type == device.type and device.index in (None, found.index or 0):
                return found
    names = ", ".join(present)
    raise LoadError(
        f'Device {str(asked)!r} is not on this machine. Here are: {names}. "auto" takes the first.',
        f"本机没有设备 {str(asked)!r}。可用的有：{names}。“auto” 会选第一个。",
    )


def choose_dtype(asked: str | torch.dtype = "auto") -> torch.dtype:
    """`asked` as a torch.dtype; "auto" is float32."""
    if asked == "auto":
        return torch.float32
    if isinstance(asked, str) and asked in DTYPES:
        return DTYPES[asked]
    if isinstance(asked, torch.dtype) and asked in DTYPES.values():
        return asked
    raise LoadError(
        f'dtype {str(asked)!r} is not offered: choose {", ".join(DTYPES)}, or "auto" for float32.',
        f"不支持 dtype {str(asked)!r}：请选择 {'、'.join(DTYPES)}，或用 “auto”（即 float32）。",
    )
