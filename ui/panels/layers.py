from surgery.comparison import Comparison
from ui import charts
from ui.markup import render


def layers(comparison: Comparison, lang: str) -> str:
    """How far the hidden states drift through the depth of the model."""
    return render(
        "layers",
        lang,
        chart=charts.drift(comparison, lang),
        measures=charts.DRIFT,
        rows=comparison.layers.to_dict("records"),
    )
