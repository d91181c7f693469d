"""The Workshop page's panels: the list of exercises, one exercise, what came of a plan, what a class predicted."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import workshop
from surgery.plan import Plan
from ui.lessons import Classroom, Done, Progress
from ui.markup import render

if TYPE_CHECKING:
    from workshop import Exercise, Report


def lessons(progress: Progress, chosen: int, lang: str) -> str:
    """The exercises in teaching order, each with how far the learner is, and everything to take away."""
    rows = []
    for number, one in enumerate(workshop.EXERCISES, 1):
        done = progress.done.get(one.name, Done())
        state = "passed" if done.passed else "predicted" if done.choice else "new"
        rows.append(
            {"number": number, "title": one.title.say(lang), "state": state, "chosen": number == chosen}
        )
    data = json.dumps(progress.to_dict(), ensure_ascii=False, indent=1)
    return render(
        "lessons",
        lang,
        rows=rows,
        passed=sum(row["state"] == "passed" for row in rows),
        export="data:application/json;charset=utf-8," + quote(data) if progress.done else None,
    )


def lesson(number: int, lang: str) -> str:
    """The question and what to know first."""
    one = workshop.exercise(number)
    return render(
        "lesson",
        lang,
        number=number,
        title=one.title.say(lang),
        minutes=one.minutes,
        question=one.question.say(lang),
        know=[words.say(lang) for words in one.know],
        equations=re.split(r"\s{2,}|\s*\n\s*", one.equation.strip()),
    )


def task(number: int, done: Done, lang: str) -> str:
    """What to achieve, and the prediction it is measured against; before one is committed, that it comes first."""
    one = workshop.exercise(number)
    return render(
        "task", lang, task=_sentence(one.task.say(lang)) if done.choice else None, said=_said(one, done, lang)
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _said(one: Exercise, done: Done, lang: str) -> list[str]:
    if done.choice is None:
        return []
    said = [one.prediction.choice(done.choice).words.say(lang)]
    number = one.prediction.number
    if number is not None and done.number is not None:
        said.append(f"{number.label.say(lang)}: {done.number:.{number.digits}f}{number.unit.say(lang)}")
    return said


def graded(report: Report, done: Done, lang: str) -> str:
    """What the learner's plan showed, and the hint or the explanation."""
    from workshop.grading import fared

    one = report.exercise
    number = workshop.EXERCISES.index(one) + 1
    onward = one.onward(report.evidence.plan, lang) if report.passed else None
    return render(
        "graded",
        lang,
        passed=report.passed,
        plan=report.evidence.plan.describe(lang) if len(report.evidence.plan) else None,
        rows=one.table(report.evidence, lang),
        words=report.words.say(lang),
        fared=fared(report, lang, done.choice, done.number) if report.passed else [],
        further=report.further.say(lang) if report.further else None,
        onward=None if onward is None else onward.describe(lang),
        next=_next(number) if report.passed else None,
    )


def kept(number: int, done: Done, lang: str) -> str:
    """What is known of the last result where its report is gone: whether it passed, the tries, the plan."""
    if not done.tries:
        return ""
    plan = None if done.plan is None else Plan.from_dict(done.plan)
    return render(
        "kept",
        lang,
        passed=done.passed,
        tries=done.tries,
        known=plan is not None,
        plan=plan.describe(lang) if plan else None,
        next=_next(number) if done.passed else None,
    )


def _next(number: int) -> int | None:
    return number + 1 if number < len(workshop.EXERCISES) else None


def classroom(room: Classroom, lang: str) -> str:
    """What the class predicted, as bars."""
    return render("classroom", lang, exercises=[_counted(counted, lang) for counted in room.counts()])


def _counted(counted: Any, lang: str) -> dict[str, Any]:
    one, total = counted.exercise, sum(counted.votes.values())
    number = one.prediction.number
    bars = [
        {
            "words": c.words.say(lang),
            "count": counted.votes[c.key],
            "share": round(100 * counted.votes[c.key] / total),
        }
        for c in one.prediction.choices
    ]

    def shown(value: float) -> str:
        return f"{value:.{number.digits}f}{number.unit.say(lang)}"

    return {
        "number": workshop.EXERCISES.index(one) + 1,
        "title": one.title.say(lang),
        "question": one.prediction.question.say(lang),
        "bars": bars,
        "total": total,
        "passed": counted.passed,
        "label": None if counted.median is None else number.label.say(lang),
        "median": None if counted.median is None else shown(counted.median),
        "span": None if counted.span is None else [shown(value) for value in counted.span],
    }
