"""What an exercise is: a question, a prediction to commit to, a surgery that the learner finds, and a check that
grades what the learner's own plan showed on the running model."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bilingual import SurgeryError, Words
from surgery.plan import Plan
from workshop.digits import Template, minus, small
from workshop.known import known

MOST_STEPS = 8


class WorkshopError(SurgeryError):
    """An exercise that does not exist, or a plan that is too long to be taken apart."""


@dataclass(frozen=True)
class Choice:
    """One answer that a learner may predict."""

    key: str
    words: Words


@dataclass(frozen=True)
class Number:
    """A number that a learner may predict. `near`: how far from the measured value still counts as near; a share of
    the measured value if `relative`, else in the number's own unit. step: of a slider. digits: after the point, of the
    measured value as it is shown and judged."""

    label: Words
    low: float
    high: float
    near: float
    unit: Words = Words("", "")  # noqa: RUF009
    relative: bool = False
    step: float = 1.0
    digits: int = 0

    def reach(self, measured: float) -> float:
        """How far from the measured value still counts as near, in the number's own unit."""
        return self.near * abs(round(measured, self.digits)) if self.relative else self.near

    def away(self, guess: float, measured: float) -> float:
        """How far a guess is from the measured value as it is shown."""
        return abs(guess - round(measured, self.digits))

    def close(self, guess: float, measured: float) -> bool:
        """Whether a guess is near the measured value."""
        return self.away(guess, measured) <= self.reach(measured) + 1e-9


@dataclass(frozen=True)
class Prediction:
    """What a learner commits to before anything runs."""

    question: Words
    choices: tuple[Choice, ...]
    number: Number | None = None

    def choice(self, key: str) -> Choice:
        """The choice of that key. Raises WorkshopError."""
        for choice in self.choices:
            if choice.key == key:
                return choice
        keys = ", ".join(choice.key for choice in self.choices)
        raise WorkshopError(f"There is no answer {key!r}: {keys}.", f"没有答案 {key!r}：可选 {keys}。")


@dataclass(frozen=True)
class Outcome:
    """What the measurement says of the prediction: the choice that it supports, and the number."""

    key: str
    number: float | None = None


@dataclass(frozen=True)
class Quantity:
    """Something that is measured without and with the plan. unit: printed after the number. digits: after the point;
    `small` numbers get two digits that count instead, below 0.001 as 1.2e-07."""

    key: str
    label: Words
    unit: Words = Words("", "")  # noqa: RUF009
    digits: int = 2
    small: bool = False

    def show(self, value: float, lang: str = "en") -> str:
        """A value as people read it."""
        if value is None or math.isnan(value):
            return Words("undefined", "无定义").say(lang)
        if math.isinf(value):
            return "∞" if value > 0 else "−∞"
        text = small(value) if self.small else minus(f"{value:.{self.digits}f}")
        return text + self.unit.say(lang)


@dataclass(frozen=True)
class Evidence:
    """What one plan showed.

    baseline, operated: each quantity without and with the plan. facts: further measurements, which the check and the
    texts use. spare: the steps of the plan without which it shows as well (found only where it shows at all).
    """

    plan: Plan
    lang: str
    seed: int
    baseline: Mapping[str, float]
    operated: Mapping[str, float]
    facts: Mapping[str, Any] = field(default_factory=dict)
    spare: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for strict JSON: what is undefined is None."""
        return {
            "plan": self.plan.to_dict(),
            "lang": self.lang,
            "seed": self.seed,
            "baseline": _plain(self.baseline),
            "operated": _plain(self.operated),
            "facts": _plain(self.facts),
            "spare": list(self.spare),
        }


def _plain(value: Any) -> Any:
    if isinstance(value, Words):
        return value._asdict()
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


Measured = tuple[Mapping[str, float], Mapping[str, float], Mapping[str, Any]]
"""What an exercise's own `measured` returns: baseline, operated, facts."""
Fault = str | tuple[str, Mapping[str, Any]] | None
"""What an exercise's own `fault` returns: None for passed, or the key of a hint and what to put into it."""

HINTS: dict[str, Words] = {
    "empty": Words(
        "The plan is empty, so nothing was cut and nothing can have changed. Add one operation; {task}",
        "计划是空的：什么也没切，也就不会有变化。请加入一个操作。任务是：{task}",
    ),
    "idle": Words(
        "With these parameters or this selection your plan ({plan}) cannot change anything, and it did not. Make it act.",
        "在这样的参数或选择下，您的计划（{plan}）不可能改变任何东西，结果也确实没变。请让它起作用。",
    ),
    "spare": Words(
        "It shows, but not because of everything you cut: without “{step}” it shows as well. Leave that out, then you know the cause.",
        "效果出现了，但并非每一刀都需要：去掉“{step}”后效果依旧。请把它删掉，这样才知道原因是什么。",
    ),
}
"""What is said in every exercise."""


@dataclass(frozen=True, eq=False)
class Exercise:
    """One exercise. The texts are in both languages; `name` is its slug.

    know: three sentences to know first. models: the model for each language. task: what to achieve, not which operation.
    quantities: what is measured. measured(patient, plan, lang, seed) is the exercise's own measurement and
    fault(plan, evidence) its own judgement; use `measure` and `check`. hints: what a fault is called and what is said
    of it. outcome(evidence) -> Outcome. explanation and further: templates over `before`, `after` (quantities), `fact`
    and `known` (numbers of `measured.json`). solution: a plan that passes, for tests and teachers; solutions: others, by language, where one plan
    does not fit both models (`solved(lang)` is the right one); further_plan and further_plans likewise (`onward` is the right
    one). texts: a text and a second one, by language, where the exercise asks to look at such a pair. ask: what a teacher may ask
    the class. each_needed: whether every step of a passing plan must be needed.
    """

    name: str
    title: Words
    question: Words
    know: tuple[Words, Words, Words]
    equation: str
    models: Mapping[str, str]
    prediction: Prediction
    task: Words
    quantities: tuple[Quantity, ...]
    measured: Callable[[Any, Plan, str, int], Measured]
    fault: Callable[[Plan, Evidence], Fault]
    hints: Mapping[str, Words]
    outcome: Callable[[Evidence], Outcome]
    explanation: Words
    further: Words
    solution: Plan
    ask: Words
    solutions: Mapping[str, Plan] = field(default_factory=dict)
    further_plan: Plan | None = None
    further_plans: Mapping[str, Plan] = field(default_factory=dict)
    texts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    minutes: int = 10
    each_needed: bool = True

    def model(self, lang: str = "en") -> str:
        """The name of the model to load, for `models.load`."""
        return self.models[lang]

    def solved(self, lang: str = "en") -> Plan:
        """A plan that passes. For tests and teachers: do not show it before a learner has passed."""
        return self.solutions.get(lang, self.solution)

    def onward(self, plan: Plan, lang: str = "en") -> Plan | None:
        """The plan one step further than a learner's own that passed; the solution where theirs is that plan already."""
        further = self.further_plans.get(lang, self.further_plan)
        return self.solved(lang) if plan == further else further

    def measure(self, patient: Any, plan: Plan, lang: str = "en", seed: int = 0) -> Evidence:
        """Runs the model without and with the plan. seed: which examples are drawn, where any are.

        Raises UnsupportedError, SelectionError or OperationError where the plan cannot act on this model or text.
        """
        plan = Plan(plan)
        if len(plan) > MOST_STEPS:
            raise WorkshopError(
                f"This plan has {len(plan)} operations: give at most {MOST_STEPS}, or nobody can tell which one did it.",
                f"这个计划有 {len(plan)} 个操作：请最多给 {MOST_STEPS} 个，否则看不出是哪一个起了作用。",
            )
        evidence = self._evidence(patient, plan, lang, seed)
        if len(plan) < 2 or not self.each_needed or self._own_fault(plan, evidence) is not None:
            return evidence
        spare = []
        for index in range(len(plan)):
            rest = plan.without(index)
            if self._own_fault(rest, self._evidence(patient, rest, lang, seed)) is None:
                spare.append(index)
        return dataclasses.replace(evidence, spare=tuple(spare))

    def _evidence(self, patient: Any, plan: Plan, lang: str, seed: int) -> Evidence:
        return Evidence(plan, lang, seed, *self.measured(patient, plan, lang, seed))

    def _own_fault(self, plan: Plan, evidence: Evidence) -> tuple[str, Mapping[str, Any]] | None:
        found = self.fault(plan, evidence)
        return (found, {}) if isinstance(found, str) else found

    def found(self, plan: Plan, evidence: Evidence) -> tuple[str, Mapping[str, Any]] | None:
        """None where the plan passes, else the key of the hint and what is put into it."""
        if not len(plan):
            return "empty", {}
        own = self._own_fault(plan, evidence)
        if own is not None:
            return ("idle", {}) if _neutral(plan) else own
        if evidence.spare:
            step = Plan(plan.steps[evidence.spare[0]])
            return "spare", {"step": Words(step.describe("en"), step.describe("zh"))}
        return None

    def check(self, plan: Plan, evidence: Evidence) -> Words | None:
        """None where the plan showed what was asked for; otherwise a hint that depends on what it did and showed."""
        plan = Plan(plan)
        found = self.found(plan, evidence)
        if found is None:
            return None
        key, values = found
        return self._fill({**HINTS, **self.hints}[key], evidence, **values)

    def explain(self, evidence: Evidence) -> Words:
        """The explanation, with the learner's own measurements."""
        return self._fill(self.explanation, evidence)

    def go_on(self, evidence: Evidence) -> Words:
        """One step further."""
        return self._fill(self.further, evidence)

    def table(self, evidence: Evidence, lang: str = "en") -> list[tuple[str, str, str]]:
        """(label, baseline, operated) of every quantity, as people read them."""
        return [
            (
                q.label.say(lang),
                q.show(evidence.baseline[q.key], lang),
                q.show(evidence.operated[q.key], lang),
            )
            for q in self.quantities
        ]

    def _fill(self, text: Words, evidence: Evidence, **more: Any) -> Words:
        return Words(*(self._say(text.say(lang), evidence, lang, more) for lang in ("en", "zh")))

    def _say(self, template: str, evidence: Evidence, lang: str, more: Mapping[str, Any]) -> str:
        def shown(values: Mapping[str, float]) -> dict[str, str]:
            return {q.key: q.show(values[q.key], lang) for q in self.quantities}

        own = {"plan": evidence.plan.describe(lang), "task": self.task.say(lang)}
        return Template().format(
            template,
            before=shown(evidence.baseline),
            after=shown(evidence.operated),
            fact={k: v.say(lang) if isinstance(v, Words) else v for k, v in evidence.facts.items()},
            known=known(),
            **own,
            **{k: v.say(lang) if isinstance(v, Words) else v for k, v in more.items()},
        )


def _neutral(plan: Plan) -> bool:
    """Whether no step of a plan can change anything: neutral parameters, or a selection of nothing."""
    return all(step.operation.neutral or not step.selection.boxes for step in plan)


def stages(plan: Plan) -> set[str]:
    """The stages that a plan acts at."""
    return {step.operation.stage for step in plan}


def uses(plan: Plan, *names: str) -> bool:
    """Whether a plan uses one of these operations (by snake-case name)."""
    return any(step.operation.name in names for step in plan)
