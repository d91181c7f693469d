from typing import Any

from ui.component import BrowserComponent


class Panel(BrowserComponent):
    """Shows HTML that `ui.panels` made, and gives it its behaviour.

    data-action='{"do": ...}' on a button   fires the event `action` with that object as its data
    data-copy="NAME" on a button            copies the text of the element with data-copied-text="NAME"
    data-sort on a button in a th           sorts the table by that column
    data-more on a button                   shows the rows of the table before it that are beyond its data-limit

    A new value keeps the focus, the sorting, and what was opened (by data-keep). The value must come from the
    templates: what it holds becomes elements.
    """

    SCRIPT = "panel"
    ROOT = "pn"
    CUSTOM_EVENTS = ("action",)

    def __init__(self, value: str | None = None, **kwargs: Any):
        super().__init__(value, {}, None, **kwargs)

    def preprocess(self, payload: str | None) -> str | None:
        return payload

    def postprocess(self, value: str | None) -> str:
        return str(value or "")

    def api_info(self) -> dict[str, Any]:
        return {"type": "string", "description": "HTML, ready to be shown."}

    def example_payload(self) -> str:
        return "<p>…</p>"

    def example_value(self) -> str:
        return self.example_payload()
