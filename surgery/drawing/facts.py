"""What a figure has to know of a comparison, and is refused if it asks for what is not there."""

import numpy as np
import pandas as pd
from torch import Tensor

from bilingual import SurgeryError
from surgery.comparison import Comparison, NotCapturedError
from surgery.selection import Selection


def place(comparison: Comparison, layer: int, head: int) -> tuple[int, int]:
    """Where a head stands in `weights`. Raises SelectionError or NotCapturedError."""
    count = _layers(comparison)
    Selection.of(layers=layer).cells(count, 1, comparison.model)
    at = comparison.layer(layer)
    Selection.of(heads=head).cells(count, captured(comparison)[0].shape[1], comparison.model)
    return at, head


def captured(comparison: Comparison) -> tuple[np.ndarray, np.ndarray]:
    """The weights of both runs, (layer, head, query, key). Raises NotCapturedError."""
    return _both(comparison.baseline.weights, comparison.operated.weights)


def closed(comparison: Comparison) -> tuple[np.ndarray, np.ndarray]:
    """Of both runs the queries without a permitted key, (layer, head, query). Raises NotCapturedError."""
    return _both(comparison.baseline.no_key, comparison.operated.no_key)


def _both(before: Tensor | None, after: Tensor | None) -> tuple[np.ndarray, np.ndarray]:
    if before is None or after is None:
        raise NotCapturedError(
            "No attention weights were kept. Capture them: capture='all' or a list of layers.",
            "没有保留注意力权重。请用 capture='all' 或层号列表。",
        )
    return before.numpy(), after.numpy()


def table(comparison: Comparison) -> pd.DataFrame:
    """The heads' measures. Raises NotCapturedError."""
    if comparison.heads.empty:
        raise NotCapturedError(
            "Nothing of attention was kept. Capture it: capture='all', 'stats' or a list of layers.",
            "没有保留任何注意力数据。请用 capture='all'、'stats' 或层号列表。",
        )
    return comparison.heads


def chosen(value: str, allowed: list[str]) -> str:
    """The value, if it is allowed. Raises SurgeryError."""
    if value not in allowed:
        known = ", ".join(allowed)
        raise SurgeryError(
            f"{value!r} cannot be drawn: choose one of {known}.", f"无法绘制 {value!r}：请选 {known}。"
        )
    return value


def touched(comparison: Comparison, heads: int) -> np.ndarray:
    """Which heads the plan reaches: bool, (layer, head)."""
    marks = np.zeros((_layers(comparison), heads), bool)
    for step in comparison.plan:
        for cell in step.selection.cells(*marks.shape, comparison.model):
            marks[cell] = True
    return marks


def touched_layers(comparison: Comparison) -> list[int]:
    """The layers in which the plan reaches a head."""
    every = range(_layers(comparison))
    boxes = [box for step in comparison.plan for box in step.selection.boxes]
    return [layer for layer in every if any(layers is None or layer in layers for layers, _ in boxes)]


def after_dropout(comparison: Comparison, weights: np.ndarray, no_key: np.ndarray) -> bool:
    """Whether these rows of weights do not sum to 1 because a WeightDropout acted. (..., query, key), (..., query)."""
    drops = any(s.operation.name == "weight_dropout" and not s.operation.neutral for s in comparison.plan)
    return drops and bool((np.abs(weights.sum(-1) - 1)[~no_key] > 1e-3).any())


def _layers(comparison: Comparison) -> int:
    return len(comparison.baseline.hidden) - 1
