from collections.abc import Mapping
from typing import Any

from ui.component import BrowserComponent
from ui.texts import section


def fields_words(lang: str) -> dict[str, str]:
    """The `words` prop of `StepFields` in "en" or "zh"."""
    return section("fields", lang)


class StepFields(BrowserComponent):
    """The fields of one step of a plan: any text can be typed into each, and what is wrong is said beside it.

    value     {"step": which step, "operation": its name, "values": {field: what stands in it, as text}}
    fields    what to show, in order: {"name", "id", "kind", "label", "help"}, with "slider": [low, high] and "log" for a number
              that can be dragged, too, and "locked" for one that is only to be read
    problems  {field: what is wrong with it}

    The three props `fields`, `problems` and `words` can be changed at any time, each without touching the others.
    `input` fires when a person changed a field: by key, paste, slider; never when Python sets the value.
    """

    SCRIPT = "fields"
    ROOT = "fd"

    def __init__(
        self,
        value: dict | None = None,
        *,
        fields: list[dict[str, Any]] | None = None,
        problems: Mapping[str, str] | None = None,
        words: dict[str, str] | None = None,
        shared: dict | None = None,
        **kwargs: Any,
    ):
        self._note_update(["fields", "problems", "words"])
        defaults = {"fields": [], "problems": {}, "words": fields_words("en")}
        super().__init__(value, defaults, shared, **kwargs)

    def preprocess(self, payload: Any) -> Any:
        return _checked(payload)

    def postprocess(self, value: Any) -> Any:
        return _checked(value)

    def api_info(self) -> dict[str, Any]:
        return {"type": "object", "description": "A step of the plan and the texts in its fields."}

    def example_payload(self) -> dict:
        return {"step": 0, "operation": "temperature", "values": {"t": "2", "at": "L*"}}

    def example_value(self) -> dict:
        return self.example_payload()


def _checked(value: Any) -> dict | None:
    if not isinstance(value, dict) or not isinstance(value.get("values"), dict):
        return None
    texts = {str(name): text for name, text in value["values"].items() if isinstance(text, str)}
    return {"step": value.get("step"), "operation": value.get("operation"), "values": texts}
