from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ui.markup import render
from ui.panels.heads import most_changed_first
from ui.panels.receipt import parameters, where
from ui.texts import t

if TYPE_CHECKING:
    from surgery.comparison import Comparison


@dataclass(frozen=True)
class Stage:
    """A stage as the page shows it. axes: what the axes of its result are. acts: what operations that act here have as their stage, or
    among what they remove."""

    name: str
    equation: str
    axes: str
    acts: str = ""


STAGES = (
    Stage("positions", "x = E[token] + PE(i)", "hidden", acts="positions"),
    Stage("projections", "q = x·W_Q,  k = x·W_K", "heads", acts="projections"),
    Stage("scale", "q·kᵀ · 1/√d_k", "pairs", acts="scale"),
    Stage("scores", "s(i, j) = q_i·k_j / √d_k", "pairs", acts="scores"),
    Stage("mask", "s(i, j) = −∞", "pairs", acts="mask"),
    Stage("softmax", "a(i, j) = exp s(i, j) / Σ exp s(i, ·)", "pairs", acts="softmax"),
    Stage("weights", "a(i, j) ≥ 0,  Σ_j a(i, j) = 1", "pairs", acts="weights"),
    Stage("values", "o_i = Σ_j a(i, j) · v_j,  v = x·W_V", "heads", acts="output"),
    Stage("output", "concat(o)·W_O", "hidden"),
)


def pipeline(comparison: Comparison, lang: str, layer: int | None = None, head: int | None = None) -> str:
    """The stages of attention with this run's shapes; each opens to show its tensor in one head, both runs."""
    row = _head(comparison, layer, head)
    shapes, rows = _shapes(comparison), _rows(comparison, row, lang)
    place = None if row is None else (int(row["layer"]), int(row["head"]))
    stages = []
    for stage in STAGES:
        operations = _operations(comparison, stage, place, lang)
        stages.append(
            {
                "name": stage.name,
                "equation": stage.equation,
                "axes": stage.axes,
                "shape": shapes[stage.axes],
                "operations": operations,
                "gone": any(operation["gone"] for operation in operations),
                "rows": rows.get(stage.name, []),
            }
        )
    return render(
        "pipeline",
        lang,
        stages=stages,
        heads=comparison.heads_per_layer,
        d_k=comparison.d_k,
        token_count=len(comparison.tokens),
        place=place,
    )


def _head(comparison: Comparison, layer: int | None, head: int | None) -> dict[str, Any] | None:
    """The row of the chosen head, or of the one that changed most; None where nothing was captured."""
    heads = comparison.heads
    if heads.empty:
        return None
    chosen = heads[(heads["layer"] == layer) & (heads["head"] == head)]
    if chosen.empty:
        chosen = most_changed_first(heads)
    return chosen.to_dict("records")[0]


def _shapes(comparison: Comparison) -> dict[str, str]:
    heads, d_k, (_, n, width) = comparison.heads_per_layer, comparison.d_k, comparison.baseline.hidden.shape
    return {"hidden": f"({n}, {width})", "heads": f"({heads}, {n}, {d_k})", "pairs": f"({heads}, {n}, {n})"}


def _operations(
    comparison: Comparison, stage: Stage, place: tuple[int, int] | None, lang: str
) -> list[dict[str, Any]]:
    """What acts on a stage, and what is said of it. gone: whether the stage is gone in the head shown."""
    found = []
    for step, entry in zip(comparison.plan, comparison.receipt, strict=True):
        operation = step.operation
        gone = stage.acts in operation.removes
        if not gone and operation.stage != stage.acts:
            continue
        idle = operation.neutral or not entry["cells"]
        everywhere, part = ("is_gone", "is_gone_in") if gone else ("is_changed", "is_changed_in")
        said = "is_idle" if idle else everywhere if entry["at"] == "L*" else part
        cells = step.selection.cells(len(comparison.layers) - 1, comparison.heads_per_layer)
        found.append(
            {
                "title": operation.title.say(lang),
                "equation": operation.equation,
                "parameters": parameters(type(operation), entry["parameters"], lang),
                "where": where(entry["at"], lang),
                "said": t(f"pipeline.{said}", lang, where=where(entry["at"], lang)),
                "gone": gone and not idle and (place is None or place in cells),
            }
        )
    return found


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
                comparison.scale,
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
            (t("pipeline.weight_moved", lang), None, row["moved"]),
        ],
        "values": [
            both("output_rms", "pipeline.output_rms"),
            (t("pipeline.output_moved", lang), None, row["output"]),
        ],
    }


def _factor(comparison: Comparison, layer: int, head: int) -> float:
    """What the operated run multiplies q·kᵀ by in one head; NaN where something else stands in its place."""
    scaling, temperature = comparison.scale, 1.0
    for step in comparison.plan:
        cells = step.selection.cells(len(comparison.layers) - 1, comparison.heads_per_layer)
        if (layer, head) not in cells:
            continue
        if step.operation.stage == "scale":
            scaling, temperature = step.operation.scale(scaling, temperature)
        elif "scale" in step.operation.removes:
            return math.nan
    return float(scaling / temperature)
