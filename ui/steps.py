"""The plan as the page edits it: steps that can be switched off, one of them selected. Plain data, pure functions."""

import json
import sys
from collections.abc import Callable
from typing import Any

from surgery.operation import REGISTRY
from surgery.plan import Plan, PlanError

Step = dict[str, Any]  # {"operation": "temperature", "t": 2.0, "at": "L*", "on": True}


def new(name: str, at: str = "L*") -> Step:
    """A step with the operation's default parameters."""
    return from_plan(Plan(REGISTRY[name]().at(at)))[0]


def idle() -> Step:
    """A step that changes nothing until somebody says what it should do: temperature 1."""
    temperature: Any = REGISTRY["temperature"]
    return from_plan(Plan(temperature(1.0)))[0]


def from_plan(plan: Plan) -> list[Step]:
    """The plan's steps, all switched on."""
    return [{**step, "on": True} for step in plan.to_dict()["operations"]]


def canonical(steps: list[Step]) -> list[Step]:
    """The steps as `from_plan` spells them, each with its switch.

    Raises OperationError, SelectionError or PlanError for what is no operation, or not all of one.
    """
    bare = [{k: v for k, v in step.items() if k != "on"} for step in steps]
    spelled = Plan.from_dict({"version": 1, "operations": bare}).to_dict()["operations"]
    for given, whole in zip(bare, spelled, strict=True):
        missing = [name for name in whole if name not in given]
        if missing:
            raise PlanError(
                f"The operation {whole['operation']} comes without {missing[0]!r}.",
                f"操作 {whole['operation']} 缺少 {missing[0]!r}。",
            )
    return [{**whole, "on": step["on"]} for whole, step in zip(spelled, steps, strict=True)]


def to_plan(steps: list[Step]) -> Plan:
    """The plan of the steps that are switched on; the others are checked, too.

    Raises OperationError, SelectionError or PlanError.
    """
    operations = [{k: v for k, v in step.items() if k != "on"} for step in canonical(steps) if step["on"]]
    return Plan.from_dict({"version": 1, "operations": operations})


def to_text(steps: list[Step], selected: int) -> str:
    """The steps as they are being edited, right or not, and the selected one: for the page to keep."""
    return json.dumps({"steps": steps, "selected": selected}, ensure_ascii=False)


def from_text(text: str) -> tuple[list[Step], int]:
    """What `to_text` wrote. Raises PlanError for anything else."""
    try:
        data = json.loads(text)
        steps, selected = data["steps"], data["selected"]
        right = isinstance(steps, list) and all(map(_is_step, steps)) and type(selected) is int
        right = right and (0 <= selected < len(steps) or selected == 0)
    except (ValueError, TypeError, KeyError, RecursionError):
        right = False
    if not right:
        raise PlanError(
            "The plan that this page kept cannot be read: it was changed, or made by another version. Reload the page.",
            "无法读取本页保存的计划：它被改动过，或来自其他版本。请重新加载页面。",
        )
    return steps, selected


def _is_step(step: Any) -> bool:
    """Whether this has the fields of a step, each with a value of its kind or, as it was typed, a text."""
    if not isinstance(step, dict) or not isinstance(step.get("operation"), str):
        return False
    operation = REGISTRY.get(step["operation"])
    if operation is None or step.keys() != {"operation", "at", "on", *operation.parameters()}:
        return False
    values = [(about.kind, step[name]) for name, about in operation.parameters().items()]
    right = all(isinstance(value, str) or _FITS[kind](value) for kind, value in values)
    return right and isinstance(step["at"], str) and isinstance(step["on"], bool)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= sys.float_info.max  # what is NaN is not


_FITS: dict[str, Callable[[Any], bool]] = {
    "float": _is_number,
    "int": _is_number,
    "positions": lambda value: isinstance(value, list) and all(type(place) is int for place in value),
    "picture": lambda value: isinstance(value, list) and all(isinstance(row, str) for row in value),
}


def act(steps: list[Step], selected: int, do: str, index: int) -> tuple[list[Step], int]:
    """The steps and the selected one after "select", "toggle", "remove", "up" or "down" on step `index`."""
    steps = [dict(step) for step in steps]
    if not 0 <= index < len(steps):
        return steps, selected
    if do == "select":
        return steps, index
    if do == "toggle":
        steps[index]["on"] = not steps[index]["on"]
        return steps, selected
    if do == "remove":
        del steps[index]
        return steps, max(0, min(selected - (index < selected), len(steps) - 1))
    other = index + {"up": -1, "down": 1}.get(do, 0)
    if not 0 <= other < len(steps):
        return steps, selected
    steps[index], steps[other] = steps[other], steps[index]
    return steps, {index: other, other: index}.get(selected, selected)


def replace(steps: list[Step], selected: int, step: Step) -> list[Step]:
    """The steps with the selected one replaced by an operation; an empty plan gets its first."""
    if not steps:
        return [step]
    return [{**step, "on": old["on"]} if i == selected else old for i, old in enumerate(steps)]
