"""Finding an exercise, and checking a plan against it."""

from dataclasses import dataclass
from typing import Any

from bilingual import Words
from surgery.operation import Operation, Step
from surgery.plan import Plan
from workshop.digits import minus
from workshop.exercises import EXERCISES
from workshop.parts import Evidence, Exercise, Number, Outcome, WorkshopError


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

    def to_dict(self) -> dict[str, Any]:
        """Plain data for strict JSON."""
        outcome = self.outcome
        return {
            "exercise": self.exercise.name,
            "passed": self.passed,
            "words": self.words._asdict(),
            "further": None if self.further is None else self.further._asdict(),
            "outcome": None if outcome is None else {"key": outcome.key, "number": outcome.number},
            "evidence": self.evidence.to_dict(),
        }


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


# --- as text ------------------------------------------------------------------------------------------------


def sheet(one: Exercise, lang: str = "en") -> str:
    """What a learner reads before the first cut; never the solution."""

    def say(en: str, zh: str) -> str:
        return Words(en, zh).say(lang)

    ask = one.prediction
    lines = [
        f"{EXERCISES.index(one) + 1}. {one.title.say(lang)}   ({one.name}, {one.minutes} min)",
        "",
        one.question.say(lang),
        "",
        say("To know first", "先了解"),
        *(f"  - {words.say(lang)}" for words in one.know),
        f"  {one.equation}",
        "",
        say("Predict, before you cut", "动手之前先预测"),
        f"  {ask.question.say(lang)}",
        *(f"    [{choice.key}] {choice.words.say(lang)}" for choice in ask.choices),
        *([f"  {ask.number.label.say(lang)} {span(ask.number, lang)}"] if ask.number else []),
        "",
        say(f"Cut ({one.model(lang)})", f"动手（{one.model(lang)}）"),
        f"  {_sentence(one.task.say(lang))}",
        "",
        say("Measured without and with your plan", "测量（基线与手术）"),
        *(f"  - {quantity.label.say(lang)}" for quantity in one.quantities),
    ]
    return "\n".join(lines)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def span(number: Number, lang: str = "en") -> str:
    """The range of a predicted number, as people write it."""
    low, high = (minus(f"{value:.{number.digits}f}") for value in (number.low, number.high))
    return Words(f"({low} to {high}{number.unit.en})", f"（{low} 到 {high}{number.unit.zh}）").say(lang)


def told(report: Report, lang: str = "en", predicted: str | None = None, number: float | None = None) -> str:
    """A report as text: the numbers, how the prediction fared, and the hint or the explanation."""
    one = report.exercise
    before, after = Words("baseline", "基线").say(lang), Words("operated", "手术后").say(lang)
    lines = [report.evidence.plan.describe(lang), ""]
    lines += [f"  {label}: {before} {a}, {after} {b}" for label, a, b in one.table(report.evidence, lang)]
    if not report.passed or report.further is None:
        return "\n".join([*lines, "", Words("Not yet. ", "还没有。").say(lang) + report.words.say(lang)])
    lines += ["", Words("Passed.", "通过。").say(lang), *fared(report, lang, predicted, number)]
    lines += [
        "",
        report.words.say(lang),
        "",
        Words("Further: ", "更进一步：").say(lang) + report.further.say(lang),
    ]
    return "\n".join(lines)


def fared(report: Report, lang: str, predicted: str | None, number: float | None) -> list[str]:
    """How a prediction compares with what was measured."""
    ask, outcome = report.exercise.prediction, report.outcome
    if outcome is None:
        return []
    measured = ask.choice(outcome.key).words.say(lang)
    lines = [Words(f"Measured: {measured}", f"测量结果：{measured}").say(lang)]
    if predicted is not None:
        hit = predicted == outcome.key
        lines.append(
            (
                Words("As you predicted.", "与您的预测一致。")
                if hit
                else Words("You predicted otherwise: good, now you know.", "与您的预测不同：这正是收获。")
            ).say(lang)
        )
    if ask.number is not None and outcome.number is not None:
        value = minus(f"{outcome.number:.{ask.number.digits}f}") + ask.number.unit.say(lang)
        lines.append(f"{ask.number.label.say(lang)} {value}")
        if number is not None:
            lines.append(_compared(ask.number, number, outcome.number).say(lang))
    return lines


def _compared(number: Number, guess: float, measured: float) -> Words:
    """How far a guess is from the measured number, and how near is near."""
    own, away, reach = (
        minus(f"{round(value, number.digits + 2):g}")
        for value in (guess, number.away(guess, measured), number.reach(measured))
    )
    if number.close(guess, measured):
        return Words(
            f"Your {own} is near: the difference is {away}, and up to {reach} counts as near.",
            f"您的 {own} 很接近：相差 {away}，不超过 {reach} 就算接近。",
        )
    return Words(
        f"You said {own}: the difference is {away}; up to {reach} would count as near.",
        f"您猜的是 {own}：相差 {away}；不超过 {reach} 才算接近。",
    )
