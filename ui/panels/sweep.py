from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from markupsafe import Markup

from ui import charts
from ui.markup import render
from ui.numbers import number
from ui.texts import t

if TYPE_CHECKING:
    from ui.sweeping import Swept


FRACTIONS = {0.125: "⅛", 0.25: "¼", 0.5: "½"}  # short enough to stand side by side


def sweep(swept: Swept | None, lang: str) -> str:
    """A sweep as a shaded table, the mean over the texts with its spread, and all numbers as CSV."""
    if swept is None:
        return render("nothing", lang, key="sweep.none")
    by_plan = swept.effect.groupby(swept.table["plan"])
    cells = [_cell(value, spread) for value, spread in zip(by_plan.mean(), by_plan.std(ddof=0), strict=True)]
    most = max((cell["value"] for cell in cells if cell["value"] is not None), default=0)
    for cell in cells:  # a loss may fall, too: that is not shaded
        cell["shade"] = round(100 * max(cell["value"] or 0, 0) / most) if most > 0 else 0
    rows, columns = _table(swept, cells, lang)
    return render(
        "sweep",
        lang,
        kind=swept.kind,
        rows=rows,
        columns=columns,
        done=swept.done,
        of=swept.of,
        measure=t(f"sweep.{swept.measure}", lang),
        curve=_curve(cells, lang) if swept.kind == "temperatures" else None,
        spread=swept.of > 1,
        csv="data:text/csv;charset=utf-8," + quote(swept.table.to_csv(index=False)),
    )


def _curve(cells: list[dict[str, Any]], lang: str) -> Markup:
    from ui.sweeping import TEMPERATURES

    values = [math.nan if cell["value"] is None else cell["value"] for cell in cells]
    heard = t("sweep.curve_heard", lang, first=number(values[0], lang), last=number(values[-1], lang))
    return charts.curve(
        values,
        [cell["spread"] for cell in cells],
        [FRACTIONS.get(value, f"{value:g}") for value in TEMPERATURES],
        lang,
        title=t("sweep.curve", lang),
        help=t("sweep.curve_help", lang),
        heard=heard,
    )


def _cell(value: float, spread: float) -> dict[str, Any]:
    return {"value": None if value != value else float(value), "spread": float(spread)}


def _table(swept: Swept, cells: list[dict[str, Any]], lang: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows with a title and cells, and the titles of the columns."""
    from ui.sweeping import BY_LAYER, TEMPERATURES

    if swept.kind == "temperatures":
        titles = [f"T = {value:g}" for value in TEMPERATURES]
        return [{"title": title, "cells": [cell]} for title, cell in zip(titles, cells, strict=True)], [
            t("sweep.effect", lang)
        ]
    if swept.kind == "heads":
        wide = swept.heads
        for index, cell in enumerate(cells):
            cell["open"] = divmod(index, wide)
        titles, columns = [f"L{n}" for n in range(swept.layers)], [f"H{n}" for n in range(wide)]
    else:
        wide = swept.layers
        titles, columns = [op.describe(lang) for op in BY_LAYER], [f"L{n}" for n in range(wide)]
    rows = [{"title": title, "cells": cells[i * wide : (i + 1) * wide]} for i, title in enumerate(titles)]
    return rows, columns
