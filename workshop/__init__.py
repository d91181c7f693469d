"""Ablation exercises that teach by prediction and measurement.

import workshop
from models import load
import surgery as sg

one = workshop.exercise(1)
report = workshop.check(one, sg.RemovePositions(), load(one.model("en")))
print(report.passed, report.words.en)

The exercises, which measure with torch, are imported when they are first asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any

from workshop.parts import (
    Choice,
    Evidence,
    Exercise,
    Number,
    Outcome,
    Prediction,
    Quantity,
    WorkshopError,
)

if TYPE_CHECKING:
    from workshop.exercises import EXERCISES
    from workshop.grading import Report, check, exercise

_LATER = {
    "EXERCISES": "exercises",
    "Report": "grading",
    "check": "grading",
    "exercise": "grading",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"workshop.{_LATER[name]}"), name)


__all__ = [
    "EXERCISES",
    "Choice",
    "Evidence",
    "Exercise",
    "Number",
    "Outcome",
    "Prediction",
    "Quantity",
    "Report",
    "WorkshopError",
    "check",
    "exercise",
]
