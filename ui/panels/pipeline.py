import math
from dataclasses import dataclass, field
from typing import Any

import torch

from surgery.comparison import Comparison
from surgery.operation import REGISTRY
from ui.markup import render
from ui.panels.receipt import parameters, where
from ui.texts import t

# stage on the page: the stages of operations that act there
STAGES = {
    "positions": ("positions",),
    "projections": (),
    "scale": ("scale",),
    "scores": ("scores",),
    "mask": ("mask",),
    "softmax": (),
    "weights": ("weights",),
    "values": (),
    "output": ("output",),
}
EQUATIONS = {
    "positions": "x = E[token] + PE(i)",
    "projections": "q = x·W_Q,  k = x·W_K",
    "scale": "q·kᵀ · 1/√d_k",
    "scores": "s(i, j) = q_i·k_j / √d_k",
    "mask": "s(i, j) = −∞",
    "softmax": "a(i, j) = exp s(i, j) / Σ exp s(i, ·)",
    "weights": "a(i, j) ≥ 0,  Σ_j a(i, j) = 1",
    "values": "o_i = Σ_j a(i, j) · v_j,  v = x·W_V",
    "output": "concat(o)·W_O",
}

# what the axes of each stage's result are; `_shapes` has their lengths
AXES = {
    "positions": "hidden",
    "projections": "heads",
    "scale": "pairs",
    "scores": "pairs",
    "mask": "pairs",
    "softmax": "pairs",
    "weights": "pairs",
    "values": "heads",
    "output": "hidden",
}


@dataclass
class _Stage:
    name: str
    equation: str
    axes: str
    shape: str
    operations: list[dict[str, Any]] = field(default_factory=list)
    rows: list[tuple[str, float | None, float | None]] = field(default_factory=list)


def pipeline(comparison: Comparison, lang: str, layer: int | None = None, head: int | None = None) -> str:
    """The stages of attention with this run's shapes; each opens to show its tensor in one head, both runs."""
    row = _head(comparison, layer, head)
    shapes = _shapes(comparison)
    rows = _rows(comparison, row, lang)
    stages = [
        _Stage(
            name,
            EQUATIONS[name],
            AXES[name],
            shapes[AXES[name]],
            _operations(comparison, acts, lang),
            rows.get(name, []),
        )
        for name, acts in STAGES.items()
    ]
    return render(
        "pipeline",
        lang,
        stages=stages,
        heads=comparison.heads_per_layer,
        d_k=comparison.d_k,
        token_count=len(comparison.tokens),
        place=None if row is None else (int(row["layer"]), int(row["head"])),
    )


def _head(comparison: Comparison, layer: int | None, head: int | None) -> dict[str, Any] | None:
    """The row of the chosen head, or of the one that changed most; None where nothing was captured."""
    heads = comparison.heads
    if heads.empty:
        return None
    chosen = heads[(heads["layer"] == layer) & (heads["head"] == head)]
    if chosen.empty:
        chosen = heads.sort_values("js_divergence", ascending=False, na_position="last", kind="stable").head(
            1
        )
    return chosen.to_dict("records")[0]


def _shapes(comparison: Comparison) -> dict[str, str]:
    heads, d_k, (_, n, width) = comparison.heads_per_layer, comparison.d_k, comparison.baseline.hidden.shape
    return {"hidden": f"({n}, {width})", "heads": f"({heads}, {n}, {d_k})", "pairs": f"({heads}, {n}, {n})"}


def _operations(comparison: Comparison, stages: tuple[str, ...], lang: str) -> list[dict[str, Any]]:
    return [
        {
            "title": REGISTRY[entry["operation"]].title.say(lang),
            "equation": REGISTRY[entry["operation"]].equation,
            "parameters": parameters(REGISTRY[entry["operation"]], entry["parameters"], lang),
            "where": where(entry["at"], lang),
        }
        for entry in comparison.receipt
        if entry["stage"] in stages
    ]


def _rows(comparison: Comparison, row: dict[str, Any] | None, lang: str) -> dict[str, list]:
    """Per stage (label, baseline, operated); a difference stands under operated alone."""
    first = comparison.layers.iloc[0]
    rows = {
        "positions": [
            (t("pipeline.embedding_cosine", lang), None, first["cosine"]),
            (t("pipeline.embedding_l2", lang), None, first["relative_l2"]),
        ],
    }
    return rows if row is None else rows | _head_rows(comparison, row, lang)


def _head_rows(comparison: Comparison, row: dict[str, Any], lang: str) -> dict[str, list]:
    read = comparison.layers.iloc[int(row["layer"])]
    limit = f"ln {comparison.reading.kept} = {math.log(comparison.reading.kept):.3f}"
    pairs = comparison.reading.kept**2

    def both(key: str, label: str, **gaps: object) -> tuple:
        return (t(label, lang, **gaps), row[f"{key}_baseline"], row[f"{key}_operated"])

    return {
        "scale": [
            (
                t("pipeline.factor", lang),
                comparison.d_k**-0.5,
                _factor(comparison, int(row["layer"]), int(row["head"])),
            )
        ],
        "projections": [
            (t("pipeline.input_cosine", lang), None, read["cosine"]),
            (t("pipeline.input_l2", lang), None, read["relative_l2"]),
        ],
        "scores": [
            *(both(f"scores_{key}", f"pipeline.scores_{key}") for key in ("mean", "std", "min", "max")),
            (t("pipeline.scores_moved", lang), None, row["scores"]),
        ],
        "mask": [
            both("permitted", "pipeline.permitted", count=pairs),
            both("no_key", "pipeline.no_key"),
        ],
        "softmax": [both("entropy", "pipeline.entropy", limit=limit)],
        "weights": [
            both("weight_max", "pipeline.weight_max"),
            both("distance", "pipeline.distance"),
            (t("pipeline.weight_moved", lang), None, row["total_variation"]),
        ],
        "values": [
            both("output_rms", "pipeline.output_rms"),
            (t("pipeline.output_moved", lang), None, row["output"]),
        ],
    }


def _factor(comparison: Comparison, layer: int, head: int) -> float:
    """What the operated run multiplies q·kᵀ by in one head."""
    scaling, temperature = torch.tensor(comparison.d_k**-0.5).double(), torch.tensor(1.0).double()
    for step in comparison.plan:
        cells = step.selection.cells(len(comparison.layers) - 1, comparison.heads_per_layer)
        if step.operation.stage == "scale" and (layer, head) in cells:
            scaling, temperature = step.operation.scale(scaling, temperature)
    return float(scaling / temperature)
