"""Finding an exercise, and checking a plan against it."""

from dataclasses import dataclass
from typing import Any

from bilingual import Words
from surgery.operation import Operation, Step
from surgery.plan import Plan
from workshop.exercise import Evidence, Exercise, Outcome, WorkshopError
from workshop.exercises import EXERCISES


@dataclass(frozen=True)
class Report:
    """What came of a plan. words: the hint, or the explanation if it passed. outcome and further: only if it passed."""

    exercise: Exercise
    evidence: Evidence
    hint: Words | None
    words: Words
    outcome: Outcome | None
    further: Words | None

    @property
    def passed(self) -> bool:
        """Whether the plan showed what was asked for."""
        return self.hint is None


def exercises() -> tuple[Exercise, ...]:
    """All of them, in teaching order."""
    return EXERCISES


def exercise(which: int | str | Exercise) -> Exercise:
    """One of them, by number (from 1) or by name. Raises WorkshopError."""
    if isinstance(which, Exercise):
        return which
    text = str(which).strip()
    if text.isascii() and text.isdigit() and 1 <= int(text) <= len(EXERCISES):
        return EXERCISES[int(text) - 1]
    for one in EXERCISES:
        if one.name == text:
            return one
    names = ", ".join(one.name for one in EXERCISES)
    raise WorkshopError(
        f"There is no exercise {text[:60]!r}: give a number from 1 to {len(EXERCISES)} or a name: {names}.",
        f"没有练习 {text[:60]!r}：请给 1 到 {len(EXERCISES)} 的编号，或名称：{names}。",
    )


def check(
    which: int | str | Exercise, plan: Plan | Operation | Step, patient: Any, lang: str = "en", seed: int = 0
) -> Report:
    """Measures a plan on the running model (the one that `exercise.model(lang)` names) and judges it.

    Raises UnsupportedError, SelectionError or OperationError where the plan cannot act.
    """
    one, plan = exercise(which), Plan(plan)
    evidence = one.measure(patient, plan, lang, seed)
    hint = one.check(plan, evidence)
    if hint is not None:
        return Report(one, evidence, hint, hint, None, None)
    return Report(one, evidence, None, one.explain(evidence), one.outcome(evidence), one.go_on(evidence))
