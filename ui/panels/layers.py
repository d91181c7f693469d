from __future__ import annotations

from typing import TYPE_CHECKING

from ui import charts
from ui.markup import render

if TYPE_CHECKING:
    from surgery.comparison import Comparison


def layers(comparison: Comparison, lang: str) -> str:
    """How far the hidden states drift through the depth of the model."""
    return render(
        "layers",
        lang,
        chart=charts.drift(comparison, lang),
        measures=charts.DRIFT,
        rows=comparison.layers.to_dict("records"),
    )
