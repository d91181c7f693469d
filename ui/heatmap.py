from typing import Any

import numpy as np

from ui.component import BrowserComponent
from ui.payload import attention_payload
from ui.texts import section

DEFAULT_VIEW = {
    "layer": None,  # None: the head that changed most, until somebody chooses
    "head": None,
    "average": False,
    "scale": "shared",  # or "unit"
    "specials": "shown",  # or "greyed", "hidden"
    "pinned": None,  # index of a query token
    "overview": "divergence",  # or "baseline", "operated"
}


def attention_words(lang: str) -> dict[str, str]:
    """The `words` prop of an `AttentionView` in "en" or "zh"."""
    return section("attention", lang)


class AttentionView(BrowserComponent):
    """Baseline, operated and difference attention on one scale, drawn in the browser.

    The value is what `ui.payload.attention_payload` returns, or None. Two props can be changed at any time,
    each without touching the other: `words` (from `attention_words`) and `view` (any part of `DEFAULT_VIEW`).
    The current view is on the root element as JSON (`data-view`), and the event `view_change` carries it when
    a person changed it; setting it from Python fires nothing. To apply one and the same view twice, add a
    "stamp" that differs. (`shared` is for Gradio's updates, not for callers.)
    """

    SCRIPT = "heatmap"
    ROOT = "av"
    CUSTOM_EVENTS = ("view_change",)

    def __init__(
        self,
        value: dict | None = None,
        *,
        words: dict[str, str] | None = None,
        view: dict | None = None,
        shared: dict | None = None,
        **kwargs: Any,
    ):
        self._note_update(["words", "view"])
        super().__init__(value, {"words": attention_words("en"), "view": {}}, shared, **kwargs)

    def preprocess(self, payload: Any) -> Any:
        return payload or None

    def postprocess(self, value: Any) -> Any:
        if value is not None and not isinstance(value, dict):
            raise ValueError("The value of an AttentionView comes from ui.payload.attention_payload.")
        return value or None

    def api_info(self) -> dict[str, Any]:
        return {
            "type": "object",
            "description": "Attention weights before and after surgery: little-endian uint16 in base64, in "
            "the order (layer, head, query, key); weight = code * scale / 65534; 65535 is not a number.",
        }

    def example_payload(self) -> dict:
        weights = np.eye(2, dtype=np.float32)[None, None]
        return attention_payload(weights, weights, ["a", "b"], ["word", "word"], np.zeros((1, 1)))

    def example_value(self) -> dict:
        return self.example_payload()
