"""Small pictures as inline SVG: colours come from the page, the numbers stand in a table beside them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ui.markup import render

if TYPE_CHECKING:
    from surgery.comparison import Comparison

DRIFT = {"cosine": 1.0, "relative_l2": 0.0, "cka": 1.0}  # measure: its value where nothing changed
WIDTH, HEIGHT = 200, 84  # of the drawing area of a drift chart
STEP, DOTS, BARS = 19, 84, 30  # of the heads chart: width of a head, height of the dots, height of the bars


def drift(comparison: Comparison, lang: str) -> Markup:
    """Cosine, relative L2 and CKA to the baseline through depth, 0 = embeddings: three small line charts."""
    layers = comparison.layers
    return render(
        "drift",
        lang,
        charts=[_line(name, layers[name].tolist(), unchanged) for name, unchanged in DRIFT.items()],
        width=WIDTH,
        height=HEIGHT,
    )


def curve(values: list[float], spreads: list[float], labels: list[str], lang: str, **words: str) -> Markup:
    """Values at even steps with their spread as a band: one line chart. words: title, help and heard."""
    low = min(0.0, *(v - s for v, s in zip(values, spreads, strict=True) if math.isfinite(v)))
    high = max(0.0, *(v + s for v, s in zip(values, spreads, strict=True) if math.isfinite(v))) or 1.0
    low = low if -low > high / 100 else 0.0  # what is next to nothing is no end of an axis
    chart = _points(values, labels, low, high)
    edges = [(x, values[i] + side * spreads[i]) for side in (1, -1) for i, x in chart["places"][::side]]
    chart["band"] = " ".join(f"{x},{_height(v, low, high)}" for x, v in edges) if any(spreads) else ""
    return render("curve", lang, chart=chart, width=WIDTH, height=HEIGHT, **words)


def _line(name: str, values: list[float], unchanged: float) -> dict[str, Any]:
    low, high = _range(values, unchanged)
    every = math.ceil(len(values) / 13)  # a label for each layer while there is room
    labels = [str(i) if i % every == 0 else "" for i in range(len(values))]
    return {"name": name, "band": "", **_points(values, labels, low, high)}


def _points(values: list[float], labels: list[str], low: float, high: float) -> dict[str, Any]:
    """A line through values at even steps between `low` and `high`."""
    step = WIDTH / max(len(values) - 1, 1)
    places = [(i, round(i * step, 1)) for i, v in enumerate(values) if math.isfinite(v)]
    points = [(labels[i] or i, x, _height(values[i], low, high), values[i]) for i, x in places]
    return {
        "places": places,
        "points": points,
        "path": " ".join(f"{x},{y}" for _, x, y, _ in points),
        "low": low,
        "high": high,
        "ticks": [(label, round(i * step, 1)) for i, label in enumerate(labels) if label],
        "first": values[0],
        "last": values[-1],
    }


def _height(value: float, low: float, high: float) -> float:
    return round((high - value) / (high - low) * HEIGHT, 1)


def _range(values: list[float], unchanged: float) -> tuple[float, float]:
    """An axis that ends at the value of no change, and at a round number beyond the largest change."""
    apart = max((abs(v - unchanged) for v in values if math.isfinite(v)), default=0.0)
    for reach in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0):
        if apart <= reach:
            break
    else:
        reach = float(math.ceil(apart))
    return (unchanged - reach, unchanged) if unchanged else (0.0, reach)


def entropy(comparison: Comparison, lang: str, *, still: bool = False) -> Markup:
    """Each head's entropy before and after, and its divergence, in one small chart per layer."""
    limit = math.log(max(comparison.reading.kept, 2))
    groups: dict[int, list[dict[str, Any]]] = {}
    for row in comparison.heads.to_dict("records"):
        groups.setdefault(int(row["layer"]), []).append(_head(row, limit))
    return render(
        "entropy",
        lang,
        groups=groups,
        limit=limit,
        token_count=comparison.reading.kept,
        step=STEP,
        dots=DOTS,
        bars=BARS,
        still=still,
    )


def _head(row: dict[str, Any], limit: float) -> dict[str, Any]:
    def height(value: float) -> float | None:
        return round(DOTS * (1 - value / limit), 1) if math.isfinite(value) else None

    return {
        "layer": int(row["layer"]),
        "head": int(row["head"]),
        "touched": row["touched"],
        "x": round((int(row["head"]) + 0.5) * STEP, 1),
        "before": height(row["entropy_baseline"]),
        "after": height(row["entropy_operated"]),
        "bar": _part(row["js_divergence"], math.log(2)) * BARS,
        "row": row,
    }


def _part(value: float, whole: float) -> float:
    return round(min(value / whole, 1.0), 3) if math.isfinite(value) else 0.0
