"""Many plans, many texts: what each plan changes at the end of the model, as one table.

The plans of one text run as rows of one batch (`surgery.rows`). Texts are independent: they spread over processes, or over a
cluster (`surgery.spread`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import pandas as pd

from bilingual import SurgeryError
from surgery import answers, spread, theatre
from surgery.anatomy import check_one_text
from surgery.operation import Operation, Step
from surgery.plan import Plan
from surgery.reading import Text, read
from surgery.rows import BUDGET, run_rows
from surgery.variants import every_head, reseeded

MEASURES = ("relative_l2", "token_cosine", "sentence_cosine", "kl", "top1_changed")
JUDGED = ("loss", "loss_baseline", "accuracy", "accuracy_baseline")
COSTS = ("loss", "accuracy")


class SweepError(SurgeryError):
    """A sweep that cannot be run as asked."""


def sweep(
    patient: Any,
    texts: Text | Sequence[Text],
    plans: Plan | Operation | Step | Sequence[Plan | Operation | Step],
    *,
    truth: str | Sequence[str | Sequence[str]] | None = None,
    seeds: int = 1,
    n_jobs: int | None = None,
    out: str | Path | None = None,
    on_error: str = "raise",
    progress: Callable[[int, int], Any] | None = None,
    budget: int = BUDGET,
) -> pd.DataFrame:
    """One row per (text, plan): what the plan changed at the end of the model.

    Columns: text and plan (their numbers), label, seeds, and the measures relative_l2, token_cosine, sentence_cosine (of
    the last hidden states), kl (nats) and top1_changed (means over the text's answers; NaN where the model answers nothing).
    A stochastic plan runs with seeds 0, 1, ... `seeds`-1 and the measures are means, with `<measure>_sd` their standard
    deviation. Equal to one `compare` each, up to rounding.

    truth: the right answer of each text (of several [MASK]s a list; of one text alone it may be given as it is); adds loss (-ln p of it, nats) and accuracy, each with
    `_baseline`, means over the text's answers. n_jobs: spreads the texts over joblib workers, each of which loads the model
    by its name; joblib chooses the backend. out: a folder of Parquet files that grows as results come; the same sweep
    called again goes on from there. on_error: "raise", or "row" for rows with the reason in a column `error`.
    progress(done, of): called as texts are done; where it returns False the sweep ends with what it has.
    budget: bytes that one batch may take.

    Raises SweepError without texts or plans, and for a plan that cannot act on the model what `compare` raises, before anything
    runs; for a text that cannot be read, TextError or TruthError when its turn comes.
    """
    tables = list(
        sweep_stream(
            patient,
            texts,
            plans,
            truth=truth,
            seeds=seeds,
            n_jobs=n_jobs,
            out=out,
            on_error=on_error,
            progress=progress,
            budget=budget,
        )
    )
    return pd.concat(tables, ignore_index=True).sort_values(["text", "plan"], ignore_index=True)


def sweep_stream(
    patient: Any,
    texts: Text | Sequence[Text],
    plans: Plan | Operation | Step | Sequence[Plan | Operation | Step],
    *,
    truth: str | Sequence[str | Sequence[str]] | None = None,
    seeds: int = 1,
    n_jobs: int | None = None,
    out: str | Path | None = None,
    on_error: str = "raise",
    progress: Callable[[int, int], Any] | None = None,
    budget: int = BUDGET,
) -> Iterator[pd.DataFrame]:
    """`sweep` for what does not fit in memory: yields tables of some texts each, as they are done."""
    single = isinstance(texts, str | tuple)
    given: list[Any] = [texts] if single else list(texts)
    several = [Plan(plan) for plan in ([plans] if isinstance(plans, Plan | Operation | Step) else plans)]
    answers_: list[Any] = (
        [None] * len(given) if truth is None else [truth] if isinstance(truth, str) else list(truth)
    )
    if single and truth is not None and all(isinstance(answer, str) for answer in answers_):
        answers_ = [answers_]  # of one text with several [MASK]s
    _check(patient, given, several, answers_, seeds, n_jobs, on_error)
    judged = any(answer is not None for answer in answers_)
    work = _Work(tuple(several), int(seeds), budget, on_error == "row", judged)
    asked = list(zip(given, answers_, strict=True))
    done = 0
    for count, table in spread.tables(patient, work, asked, n_jobs, out):
        done += count
        yield table
        if progress is not None and progress(done, len(given)) is False:
            return


def _check(
    patient: Any, texts: list, plans: list[Plan], answers_: list, seeds: Any, n_jobs: Any, on_error: str
) -> None:
    if isinstance(seeds, bool) or not isinstance(seeds, Integral) or seeds < 1:
        raise SweepError(
            f"seeds = {seeds!r} is not possible: give a whole number from 1.",
            f"seeds = {seeds!r} 不可用：请给不小于 1 的整数。",
        )
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise SweepError(
            f"n_jobs = {n_jobs!r} is not possible: give a number of processes from 1, or -1 for one per core.",
            f"n_jobs = {n_jobs!r} 不可用：请给不小于 1 的进程数，或用 -1 表示每核一个。",
        )
    if on_error not in ("raise", "row"):
        raise SweepError(
            f'on_error = {on_error!r} is not possible: give "raise" or "row".',
            f'on_error = {on_error!r} 不可用：请给 "raise" 或 "row"。',
        )
    if not texts or not plans:
        raise SweepError("A sweep needs at least one text and one plan.", "扫描至少需要一个文本和一个计划。")
    if len(answers_) != len(texts):
        raise SweepError(
            f"There are {len(texts)} texts and {len(answers_)} right answers: give one for each text.",
            f"有 {len(texts)} 个文本和 {len(answers_)} 个正确答案：请为每个文本给一个。",
        )
    check_one_text(theatre.admit(patient.model), patient.name)
    for plan in plans:  # what cannot be done fails here
        theatre.Scope(theatre.admit(patient.model), [plan], name=patient.name)


# --- one text -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Work:
    """What is done to every text; goes to the workers."""

    plans: tuple[Plan, ...]
    seeds: int
    budget: int
    keep_going: bool
    judged: bool = False

    def __call__(self, patient: Any, number: int, text: Text, truth: Any) -> pd.DataFrame:
        """The rows of one text."""
        try:
            return self._table(patient, number, text, truth)
        except Exception as error:
            if not self.keep_going:
                raise
            return self.failed(number, error)

    def failed(self, number: int, error: Exception) -> pd.DataFrame:
        """The rows of a text that could not be swept."""
        said = f"{type(error).__name__}: {error}"
        rows = [{"plan": n, "label": plan.describe()} for n, plan in enumerate(self.plans)]
        return self.shaped(pd.DataFrame(rows).assign(text=number, seeds=0, error=said))

    def shaped(self, table: pd.DataFrame) -> pd.DataFrame:
        """A table with the columns of every table of this sweep, whatever became of its texts."""
        measured = [*MEASURES, *(JUDGED if self.judged else ())]
        spread = [f"{name}_sd" for name in measured]
        error = ["error"] if self.keep_going else []
        table = table.reindex(columns=["text", "plan", "label", "seeds", *measured, *spread, *error])
        return table.astype(dict.fromkeys(error, "string"))  # a column without any error would have no type

    def _table(self, patient: Any, number: int, text: Text, truth: Any) -> pd.DataFrame:
        reading = read(patient, text)
        right = None if truth is None else answers.truths(patient, reading, truth)
        variants = [v for index, plan in enumerate(self.plans) for v in self._seeded(index, plan)]
        outcomes = run_rows(patient, reading, [plan for _, plan in variants], self.budget, right)
        found = pd.DataFrame([_measures(outcome, right is not None) for outcome in outcomes])
        measured = list(found.columns)
        found["plan"] = [index for index, _ in variants]
        groups = found.groupby("plan")[measured]
        table = groups.mean().join(groups.std(ddof=0).add_suffix("_sd")).reset_index()
        table["label"] = [plan.describe() for plan in self.plans]
        table["seeds"] = found.groupby("plan").size().to_numpy()
        table["text"] = number
        return self.shaped(table)

    def _seeded(self, index: int, plan: Plan) -> list[tuple[int, Plan]]:
        if self.seeds == 1 or not plan.stochastic:
            return [(index, plan)]
        return [(index, reseeded(plan, seed)) for seed in range(self.seeds)]


def _measures(outcome: dict[str, Any], judged: bool) -> dict[str, float]:
    found = {name: outcome[name] for name in MEASURES[:3]}
    for name in (*MEASURES[3:], *(JUDGED if judged else ())):
        values = [float(site[name]) for site in outcome["sites"]]
        found[name] = sum(values) / len(values) if values else float("nan")
    return found


# --- heads --------------------------------------------------------------------------------------------------


def head_importance(
    patient: Any,
    texts: Text | Sequence[Text],
    operation: Operation | None = None,
    *,
    measure: str | None = None,
    **options: Any,
) -> pd.DataFrame:
    """How much the model's end changes when one head is operated on (switched off, by default): columns layer, head,
    effect (the mean over texts) and sd (their standard deviation).

    measure: one of MEASURES; "kl" by default where the model answers something, else "relative_l2". With the option
    `truth`, "loss" (by how much it rises, nats) or "accuracy" (by how much it falls), as Michel et al. 2019, section 3.
    options: of `sweep`.
    """
    possible = MEASURES if options.get("truth") is None else (*MEASURES, *COSTS)
    if measure is not None and measure not in possible:
        raise SweepError(
            f"measure = {measure!r} is not possible: give one of {', '.join(possible)}"
            + (f"; {' and '.join(COSTS)} need truth=." if measure in COSTS else "."),
            f"measure = {measure!r} 不可用：请给 {'、'.join(possible)} 之一"
            + (f"；{'、'.join(COSTS)} 需要 truth=。" if measure in COSTS else "。"),
        )
    table = sweep(patient, texts, every_head(patient, operation), **options)
    measure = measure or ("relative_l2" if table["kl"].isna().all() else "kl")
    sign = {"loss": 1, "accuracy": -1}.get(measure)
    effect = table[measure] if sign is None else sign * (table[measure] - table[f"{measure}_baseline"])
    heads = theatre.admit(patient.model).heads
    by_plan = effect.groupby(table["plan"])
    return pd.DataFrame(
        {
            "layer": [plan // heads for plan in by_plan.groups],
            "head": [plan % heads for plan in by_plan.groups],
            "effect": by_plan.mean().to_numpy(),
            "sd": by_plan.std(ddof=0).to_numpy(),
        }
    )
