import json
from collections.abc import Mapping, Sequence
from typing import Any

from surgery.operation import REGISTRY
from ui.markup import render
from ui.panels.receipt import parameters, where


def plan(steps: Sequence[Mapping[str, Any]], selected: int | None, lang: str, *, still: bool = False) -> str:
    """The steps of the plan being edited, each {"operation", its parameters, "at", "on"}. still: without buttons."""
    return render(
        "plan",
        lang,
        steps=[_step(i, step, len(steps), lang) for i, step in enumerate(steps)],
        selected=selected,
        still=still,
    )


def _step(index: int, step: Mapping[str, Any], count: int, lang: str) -> dict[str, Any]:
    operation = REGISTRY.get(step["operation"])
    return {
        "title": operation.title.say(lang) if operation else step["operation"],
        "parameters": parameters(operation, dict(step), lang) if operation else [],
        "where": where(step.get("at", "L*"), lang),
        "on": step.get("on", True),
        "actions": {do: _action(do, index) for do in ("select", "toggle", "remove", "up", "down")},
        "then": _then(index, count),
        "first": index == 0,
        "last": index == count - 1,
    }


def _action(do: str, index: int) -> str:
    return json.dumps({"do": do, "step": index})


def _then(index: int, count: int) -> dict[str, str]:
    """Where the focus goes after a button was used: with the step, or to the step that takes its place."""
    return {
        "up": _action("up", max(index - 1, 0)),
        "down": _action("down", min(index + 1, count - 1)),
        "remove": _action("remove", max(min(index, count - 2), 0)),
    }
