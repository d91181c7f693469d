"""ZeroGPU Spaces: the accelerator is only there in a forked process, which takes plain data and gives plain arrays back.

What was set outside (a plan in a ContextVar) would not cross the fork, and what is changed inside is lost.
"""

import dataclasses
import importlib.util
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surgery.comparison import Comparison, Run
    from ui.pool import Pool

Task = Callable[[str, str, dict[str, Any], dict[str, Any]], dict[str, Any]]
SECONDS = 30  # that one run may hold the accelerator

_AS_THEY_ARE = (
    "model", "caveats", "receipt", "output", "similarity", "other", "kind", "mask_token", "heads_per_layer", "scale", "d_k",
)  # fmt: skip


def prepare(pool: "Pool") -> None:
    """On a ZeroGPU Space, has the pool's runs made by one function on the accelerator. To be called before the launch."""
    if os.environ.get("SPACES_ZERO_GPU") and importlib.util.find_spec("spaces"):
        import spaces

        pool.elsewhere = spaces.GPU(duration=SECONDS)(task(pool))


def task(pool: "Pool") -> Task:
    """The function that runs in the fork: (model's name, text, plan, options of `compare`) -> plain data."""

    def run(model: str, text: str, plan: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        import torch

        from surgery import Plan, compare

        patient = pool.get(model)
        if torch.cuda.is_available():
            device = torch.device("cuda")
            patient = dataclasses.replace(patient, model=patient.model.to(device), device=device)
        return plain(compare(patient, text, Plan.from_dict(plan), **options))

    return run


def plain(comparison: "Comparison") -> dict[str, Any]:
    """A comparison without tensors, tables and plans: numbers, texts and NumPy arrays."""
    return {
        **{name: getattr(comparison, name) for name in _AS_THEY_ARE},
        "reading": dict(vars(comparison.reading)),
        "plan": comparison.plan.to_dict(),
        "baseline": _plain_run(comparison.baseline),
        "operated": _plain_run(comparison.operated),
        "heads": comparison.heads.to_dict("list"),
        "layers": comparison.layers.to_dict("list"),
    }


def whole(data: dict[str, Any]) -> "Comparison":
    """The comparison that `plain` took apart."""
    import pandas as pd

    from surgery import Plan
    from surgery.comparison import Comparison
    from surgery.reading import Reading

    return Comparison(
        **{name: data[name] for name in _AS_THEY_ARE},
        reading=Reading(**data["reading"]),
        plan=Plan.from_dict(data["plan"]),
        baseline=_whole_run(data["baseline"]),
        operated=_whole_run(data["operated"]),
        heads=pd.DataFrame(data["heads"]),
        layers=pd.DataFrame(data["layers"]),
    )


def _plain_run(run: "Run") -> dict[str, Any]:
    return {name: value.numpy() if hasattr(value, "numpy") else value for name, value in vars(run).items()}


def _whole_run(data: dict[str, Any]) -> "Run":
    import numpy as np
    import torch

    from surgery.comparison import Run

    fields: dict[str, Any] = {
        name: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for name, v in data.items()
    }
    return Run(**fields)
