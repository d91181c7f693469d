"""A comparison as the page shows it: plain data, so that the first result can be kept in a file."""

from typing import Any

from ui import panels
from ui.operating import Operated
from ui.payload import attention_payload

PANELS = ("verdict", "outputs", "heads", "layers", "receipt", "pipeline", "code")


def heat(comparison: Any) -> dict[str, Any]:
    """The value of the attention maps."""
    run = comparison.baseline
    layers, heads = len(run.layers), run.weights.shape[1]
    return attention_payload(
        run.weights.numpy(),
        comparison.operated.weights.numpy(),
        comparison.tokens,
        comparison.reading.kinds,
        comparison.heads["js_divergence"].to_numpy().reshape(layers, heads),
        run.no_key.numpy(),
        comparison.operated.no_key.numpy(),
        captured=run.layers,
        layers=len(comparison.layers) - 1,
    )


def html(done: Operated, lang: str) -> dict[str, str]:
    """The HTML of every panel in one language."""
    comparison, setting = done.comparison, done.setting
    shown = {name: getattr(panels, name)(comparison, lang) for name in PANELS[:5]}
    shown["pipeline"] = pipeline(comparison, lang, setting.view)
    shown["code"] = panels.code(setting.model, setting.text, comparison.plan, **done.options, lang=lang)
    return shown


def pipeline(comparison: Any, lang: str, view: dict[str, Any]) -> str:
    """The pipeline of the head that the maps show."""
    layer, head = view.get("layer"), view.get("head")
    known = {
        (row.layer, row.head_number)
        for row in comparison.heads.rename(columns={"head": "head_number"}).itertuples()
    }
    if (layer, head) not in known:
        layer = head = None
    return panels.pipeline(comparison, lang, layer, head)
