from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bilingual import Words
from surgery.operation import Operation, known
from ui.markup import render
from ui.texts import t

if TYPE_CHECKING:
    from surgery.comparison import Comparison

MEASURES = ("scores", "weights", "output", "result")


def receipt(comparison: Comparison, lang: str) -> str:
    """What each step reached and what the result owes to it."""
    if not comparison.receipt:
        return render("nothing", lang, key="receipt.empty")
    return render("receipt", lang, entries=[_entry(e, lang) for e in comparison.receipt], measures=MEASURES)


def _entry(entry: dict[str, Any], lang: str) -> dict[str, Any]:
    operation = known(entry["operation"])
    note: Words | None = entry["note"]
    return {
        **entry,
        "title": operation.title.say(lang),
        "equation": operation.equation,
        "parameters": parameters(operation, entry["parameters"], lang),
        "where": where(entry["at"], lang),
        "note": note.say(lang) if note else "",
    }


def parameters(operation: type[Operation], values: dict[str, Any], lang: str) -> list[tuple[str, str]]:
    """Each parameter's label and its value as a person reads it."""
    return [
        (about.label.say(lang), short(values[name]))
        for name, about in operation.parameters().items()
        if name in values
    ]


def short(value: Any, most: int = 40) -> str:
    """A parameter's value on part of a line."""
    if isinstance(value, float):
        return f"{value:g}"
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def where(at: str, lang: str) -> str:
    """A selection for people."""
    return {"L*": t("panel.everywhere", lang), "none": t("panel.nowhere", lang)}.get(at, at)
