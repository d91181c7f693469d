from __future__ import annotations

import base64
import io
import platform
from datetime import datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ui import panels
from ui.component import static_text
from ui.markup import render

if TYPE_CHECKING:
    from surgery.comparison import Comparison
    from surgery.reading import Text

LIBRARIES = ("torch", "transformers")


def report(
    comparison: Comparison,
    lang: str,
    *,
    other: Text | None = None,
    pad_to: int | None = None,
    literal: bool = False,
    max_tokens: int | None = None,
    made: datetime | None = None,
) -> str:
    """One HTML page that holds everything it shows and asks for nothing: no request, no script.

    other, pad_to, literal, max_tokens: what `compare` was given besides, for the code that repeats the run. made: when; now
    by default.
    """
    options: dict[str, Any] = {"other": other, "pad_to": pad_to, "literal": literal, "max_tokens": max_tokens}
    return render(
        "report",
        lang,
        style=Markup(static_text("panel.css") + static_text("report.css")),  # our own files
        model=comparison.model,
        texts=comparison.text if isinstance(comparison.text, tuple) else (comparison.text,),
        tokens=list(zip(comparison.tokens, comparison.reading.kinds, strict=True)),
        verdict=panels.verdict(comparison, lang, still=True),
        plan=panels.plan(comparison.plan.to_dict()["operations"], None, lang, still=True)
        if len(comparison.plan)
        else None,
        outputs=panels.outputs(comparison, lang, still=True),
        heads=panels.heads(comparison, lang, still=True),
        layers=panels.layers(comparison, lang),
        receipt=panels.receipt(comparison, lang),
        code=panels.code(
            comparison.model, comparison.text, comparison.plan, lang=lang, still=True, **options
        ),
        maps=_maps(comparison, lang),
        date=f"{made or datetime.now():%Y-%m-%d %H:%M}",
        versions=_versions(),
    )


def _maps(comparison: Comparison, lang: str) -> dict | None:
    """The maps of the head that changed most and the grid of all heads, where the weights were captured."""
    top = comparison.top_head
    if comparison.baseline.weights is None or top is None:
        return None
    from surgery import figures

    layer, head = top
    return {
        "layer": layer,
        "head": head,
        "picture": _picture(figures.heatmap(comparison, layer, head, lang)),
        "overview": _picture(figures.heads(comparison, lang=lang)),
    }


def _picture(figure: Any) -> str:
    from surgery import figures

    buffer = io.BytesIO()
    figures.write(figure, buffer, format="png")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _versions() -> str:
    return ", ".join(
        [f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in LIBRARIES)]
    )
