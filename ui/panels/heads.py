from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from ui import charts
from ui.markup import render

if TYPE_CHECKING:
    from surgery.comparison import Comparison

SHOWN = 24  # rows before "show all"
PAIRS = {  # column: (measure in Comparison.heads, decimals)
    "entropy": 3,
    "distance": 2,
    "first": 3,
    "separators": 3,
    "diagonal": 3,
    "previous": 3,
    "next": 3,
}


def heads(comparison: Comparison, lang: str, *, still: bool = False) -> str:
    """Every head that was captured, the most changed first, under a chart. still: without buttons."""
    table = comparison.heads
    if table.empty:
        return render("nothing", lang, key="panel.no_attention")
    ordered = most_changed_first(table)
    return render(
        "heads",
        lang,
        chart=charts.entropy(comparison, lang, still=still),
        rows=ordered.to_dict("records"),
        pairs=PAIRS,
        shown=SHOWN,
        still=still,
    )


def most_changed_first(table: pd.DataFrame) -> pd.DataFrame:
    """The heads by divergence, the undefined ones last."""
    return table.sort_values("js_divergence", ascending=False, na_position="last", kind="stable")
