"""The plan as the page edits it: steps that can be switched off, one of them selected. Plain data, pure functions."""

from typing import Any

from surgery.operation import REGISTRY
from surgery.plan import Plan

Step = dict[str, Any]  # {"operation": "temperature", "t": 2.0, "at": "L*", "on": True}


def new(name: str, at: str = "L*") -> Step:
    """A step with the operation's default parameters."""
    return from_plan(Plan(REGISTRY[name]().at(at)))[0]


def from_plan(plan: Plan) -> list[Step]:
    """The plan's steps, all switched on."""
    return [{**step, "on": True} for step in plan.to_dict()["operations"]]


def to_plan(steps: list[Step]) -> Plan:
    """The plan of the steps that are switched on. Raises OperationError, SelectionError or PlanError."""
    operations = [{k: v for k, v in step.items() if k != "on"} for step in steps if step["on"]]
    return Plan.from_dict({"version": 1, "operations": operations})


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
    """The steps with the selected one replaced; an empty list gets its first."""
    if not steps:
        return [step]
    return [{**step, "on": old["on"]} if i == selected else old for i, old in enumerate(steps)]
