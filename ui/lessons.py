"""The Workshop page: what a learner has done, and what a class has predicted. Nothing of it is kept on disk."""

from __future__ import annotations

import json
import math
import secrets
import statistics
import threading
from collections import Counter, OrderedDict
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import workshop
from bilingual import SurgeryError
from surgery.plan import Plan
from workshop.parts import MOST_STEPS

if TYPE_CHECKING:
    from workshop import Exercise, Report

STORAGE = "attention-surgery-workshop"  # the key of the browser's storage
LEARNERS = 1000  # of one class, counted at most
MOST_TRIES = 9999
MOST_OF_A_PLAN = 4000  # characters of a plan that is kept, as JSON


class LessonError(SurgeryError):
    """A prediction that is not complete."""


@dataclass
class Done:
    """What a learner has done of one exercise: the choice and the number predicted, the tries, and whether one passed.

    plan: the last one that passed, or the last one tried, from which its result can be measured again; None if it is too long.
    """

    choice: str | None = None
    number: float | None = None
    tries: int = 0
    passed: bool = False
    plan: dict[str, Any] | None = None

    def tried(self, report: Report) -> None:
        """Writes down what came of a plan."""
        self.tries = min(self.tries + 1, MOST_TRIES)
        if report.passed or not self.passed:
            self.plan = _kept(report.evidence.plan.to_dict())
        self.passed = self.passed or report.passed


@dataclass
class Progress:
    """What a learner has done, by the exercise's name."""

    done: dict[str, Done] = field(default_factory=dict)

    @classmethod
    def read(cls, stored: Any) -> Progress:
        """What a browser has kept, as far as it makes sense: anybody may write there."""
        known = {one.name: one for one in workshop.EXERCISES}
        stored = stored if isinstance(stored, dict) else {}
        return cls({name: _read(known[name], said) for name, said in stored.items() if name in known})

    def of(self, one: Exercise) -> Done:
        return self.done.setdefault(one.name, Done())

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for the browser and for export."""
        return {name: asdict(done) for name, done in self.done.items()}


def _read(one: Exercise, said: Any) -> Done:
    said = said if isinstance(said, dict) else {}
    choice, number, tries = said.get("choice"), said.get("number"), said.get("tries")
    ask = one.prediction.number
    good = ask is not None and type(number) in (int, float) and ask.low <= number <= ask.high
    return Done(
        choice=choice if choice in [c.key for c in one.prediction.choices] else None,
        number=float(number) if good else None,
        tries=tries if type(tries) is int and 0 <= tries <= MOST_TRIES else 0,
        passed=said.get("passed") is True,
        plan=_kept(said.get("plan")),
    )


def _kept(said: Any) -> dict[str, Any] | None:
    """A plan as it is kept; None for what is too long for that, or no plan that an exercise takes."""
    if not isinstance(said, dict) or len(json.dumps(said)) > MOST_OF_A_PLAN:
        return None
    try:
        plan = Plan.from_dict(said)
    except SurgeryError:
        return None
    return plan.to_dict() if len(plan) <= MOST_STEPS else None


def answers() -> list[str]:
    """Every answer that some exercise offers."""
    return list(dict.fromkeys(choice.key for one in workshop.EXERCISES for choice in one.prediction.choices))


def brought() -> set[str]:
    """The texts that exercises bring with them, which nobody wrote."""
    return {text for one in workshop.EXERCISES for pair in one.texts.values() for text in pair}


def commit(progress: Progress, one: Exercise, choice: Any, number: Any) -> Done:
    """Writes a prediction down, once: what is committed stays. Raises LessonError where it is not complete."""
    done = progress.of(one)
    if done.choice is not None:
        return done
    ask = one.prediction
    if choice not in [c.key for c in ask.choices]:
        raise LessonError("Choose one of the answers first.", "请先选择一个答案。")
    if ask.number is not None:
        good = (
            type(number) in (int, float)
            and math.isfinite(number)
            and ask.number.low <= number <= ask.number.high
        )
        if not good:
            raise LessonError(
                f"Give a number from {ask.number.low:g} to {ask.number.high:g}, too.",
                f"还请给出 {ask.number.low:g} 到 {ask.number.high:g} 之间的一个数。",
            )
        done.number = float(number)
    done.choice = choice
    return done


# --- the class ------------------------------------------------------------------------------------------------


class Classroom:
    """How many visitors of this server predicted what, without any names: in memory, gone with the server.

    key: what the teacher's address holds. A visitor counts once for each exercise.
    """

    def __init__(self) -> None:
        self.key = secrets.token_urlsafe(8)
        self._lock = threading.Lock()
        self._seen: OrderedDict[tuple[str, str], tuple[str | None, float | None]] = OrderedDict()
        self._passed: dict[tuple[str, str], None] = {}

    def predicted(self, visitor: str, one: Exercise, done: Done) -> None:
        """Counts a committed prediction."""
        with self._lock:
            if len(self._seen) < LEARNERS * len(workshop.EXERCISES):
                self._seen.setdefault((visitor, one.name), (done.choice, done.number))

    def graded(self, visitor: str, report: Report) -> None:
        """Counts who has passed, of those who predicted."""
        with self._lock:
            who = (visitor, report.exercise.name)
            if report.passed and who in self._seen:
                self._passed[who] = None

    def counts(self) -> list[Counted]:
        """Each exercise that somebody predicted something of, in teaching order."""
        with self._lock:
            seen, passed = dict(self._seen), set(self._passed)
        found = []
        for one in workshop.EXERCISES:
            said = [answer for (_, name), answer in seen.items() if name == one.name]
            if said:
                numbers = sorted(number for _, number in said if number is not None)
                found.append(
                    Counted(
                        one,
                        Counter(choice for choice, _ in said),
                        statistics.median(numbers) if numbers else None,
                        (numbers[0], numbers[-1]) if numbers else None,
                        sum(name == one.name for _, name in passed),
                    )
                )
        return found


@dataclass(frozen=True)
class Counted:
    """What a class predicted of one exercise: votes by choice, the median and the range of the numbers, how many passed."""

    exercise: Exercise
    votes: Counter
    median: float | None
    span: tuple[float, float] | None
    passed: int
