"""Ablation exercises that teach by prediction and measurement.

import workshop
from models import load
import surgery as sg

one = workshop.exercise(1)
report = workshop.check(one, sg.RemovePositions(), load(one.model("en")))
print(report.passed, report.words.en)
"""

from workshop.exercise import (
    Choice,
    Evidence,
    Exercise,
    Number,
    Outcome,
    Prediction,
    Quantity,
    WorkshopError,
)
from workshop.exercises import EXERCISES
from workshop.grading import Report, check, exercise, exercises

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
    "exercises",
]
