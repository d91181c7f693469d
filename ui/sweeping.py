"""The Sweep page: every head off, a temperature curve, operations by layer; text by text, so that it can be stopped."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import surgery.operations as ops
from bilingual import SurgeryError, Words
from surgery.operation import Operation
from surgery.plan import Plan
from ui import operating
from ui.limits import Limits
from ui.pool import Pool

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("heads", "temperatures", "layers")
TEMPERATURES = (0.125, 0.25, 0.5, 0.71, 1.0, 1.41, 2.0, 4.0, 8.0)
BY_LAYER: tuple[Operation, ...] = (
    ops.AblateHead(),
    ops.UniformAttention(),
    ops.DropScaling(),
    ops.Temperature(2.0),
    ops.CausalMask(),
    ops.LocalMask(1),
    ops.IdentityAttention(),
)


class SweepRequestError(SurgeryError):
    """A sweep that this page does not run."""


@dataclass(frozen=True)
class Swept:
    """What a sweep has found so far: one row per (text, plan), of `done` of `of` texts."""

    kind: str
    table: pd.DataFrame
    done: int
    of: int
    layers: int
    heads: int

    @property
    def measure(self) -> str:
        """The rise of the loss where right answers are given, the KL divergence where the model answers something, else the
        relative change of its vectors."""
        if "loss" in self.table:
            return "loss"
        return "relative_l2" if self.table["kl"].isna().all() else "kl"

    @property
    def effect(self) -> pd.Series:
        """`measure` of each row."""
        if self.measure == "loss":
            return self.table["loss"] - self.table["loss_baseline"]
        return self.table[self.measure]


def plans(kind: str, patient: Any) -> list[Plan]:
    """The plans of one kind of sweep on this model."""
    from surgery import admit, every_head, grid

    if kind == "heads":
        return every_head(patient)
    if kind == "temperatures":
        return grid(ops.Temperature, t=TEMPERATURES)
    return [Plan(op.at(layers=layer)) for op in BY_LAYER for layer in range(admit(patient.model).layers)]


def lines(texts: str, limits: Limits) -> list[str]:
    """The texts of a box, one a line. Raises SweepRequestError for none, LimitError for too many or too long ones."""
    found = [line.strip() for line in texts.splitlines() if line.strip()]
    if not found:
        raise SweepRequestError("Write at least one text, one a line.", "请至少写一个文本，每行一个。")
    limits.check("sweep_texts", len(found), Words("texts in a sweep", "扫描的文本数"))
    operating.check_size(limits, found, 0)
    return found


def sweep(pool: Pool, model: str, texts: str, kind: str) -> Iterator[Swept]:
    """Sweeps text by text and yields the table so far after each; nothing is held open in between. A line may have its right
    answer, as "text => answer".

    Raises SweepRequestError, LimitError, LoadError, NotAllowedError or TextError.
    """
    import pandas as pd

    from surgery.answers import judged

    if kind not in KINDS:
        raise SweepRequestError(
            f"There is no sweep {kind!r}: choose one of {', '.join(KINDS)}.",
            f"没有 {kind!r} 扫描：请选 {'、'.join(KINDS)}。",
        )
    every, right = judged(lines(texts, pool.limits))
    tables: list[pd.DataFrame] = []
    for number, text in enumerate(every):
        truth = None if right is None else [right[number]]
        found, layers, heads = _one(pool, model, text, kind, truth)
        tables.append(found.assign(text=number))
        table = pd.concat(tables, ignore_index=True)
        yield Swept(kind, table, number + 1, len(every), layers, heads)


def _one(pool: Pool, model: str, text: str, kind: str, truth: Any) -> tuple[pd.DataFrame, int, int]:
    """The table of one text, and how many layers and heads the model has, of which nothing is held afterwards."""
    from surgery import admit, sweep

    with pool.use(model) as patient:
        wanted, anatomy = plans(kind, patient), admit(patient.model)
        _check_plans(pool.limits, len(wanted))
        table = sweep(_reader(patient, pool.limits), text, wanted, truth=truth)
        return table, anatomy.layers, anatomy.heads


def sweep_plans(pool: Pool, model: str, texts: Any, given: Any, seeds: Any) -> list[dict[str, Any]]:
    """What the API gives: one record per (text, plan). Raises SweepRequestError, LimitError and what a sweep raises."""
    from surgery import sweep as run

    _check_kinds(texts, given, seeds)
    limits = pool.limits
    limits.check("sweep_seeds", seeds, Words("seeds in a sweep", "扫描的种子数"))
    limits.check("sweep_texts", len(texts), Words("texts in a sweep", "扫描的文本数"))
    operating.check_size(limits, texts, 0)
    _check_plans(limits, len(given) * seeds)
    plans = [Plan.from_dict(plan) for plan in given]
    for plan in plans:
        operating.check_size(limits, (), len(plan))
    with pool.use(model) as patient:
        table = run(_reader(patient, limits), texts, plans, seeds=seeds)
    return table.astype(object).where(table.notna(), None).to_dict("records")


def _check_kinds(texts: Any, given: Any, seeds: Any) -> None:
    """Raises SweepRequestError for what is no list of texts, no list of plans, or no number of seeds."""
    right = isinstance(texts, list) and texts and all(isinstance(text, str) for text in texts)
    right = right and isinstance(given, list) and given and all(isinstance(plan, dict) for plan in given)
    if not right or type(seeds) is not int or seeds < 1:
        raise SweepRequestError(
            "A sweep takes a list of texts, a list of plans (objects, as for /operate) and a whole number of seeds from 1.",
            "扫描需要文本列表、计划列表（对象，格式同 /operate）和不小于 1 的整数种子数。",
        )


def _check_plans(limits: Limits, count: int) -> None:
    limits.check("sweep_plans", count, Words("plans in a sweep (times seeds)", "扫描的计划数（乘以种子数）"))


def _reader(patient: Any, limits: Limits) -> Any:
    """The model, reading no more of a text than a sweep may."""
    return dataclasses.replace(patient, max_tokens=min(patient.max_tokens, limits.sweep_tokens))


TITLES: dict[str, Words] = {
    "heads": Words("Every head off", "逐个关闭注意力头"),
    "temperatures": Words("Temperature curve", "温度曲线"),
    "layers": Words("Operation by layer", "逐层操作"),
}
