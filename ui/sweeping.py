"""The Sweep page: every head off, a temperature curve, operations by layer; text by text, so that it can be stopped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import surgery.operations as ops
from bilingual import SurgeryError, Words
from surgery.operation import Operation
from surgery.plan import Plan
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
MOST_TEXTS = 50
MOST_PLANS = 512


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


def lines(texts: str) -> list[str]:
    """The texts of a box, one a line. Raises SweepRequestError for none or too many."""
    found = [line.strip() for line in texts.splitlines() if line.strip()]
    if not found:
        raise SweepRequestError("Write at least one text, one a line.", "请至少写一个文本，每行一个。")
    if len(found) > MOST_TEXTS:
        raise SweepRequestError(
            f"{len(found)} texts are too many: at most {MOST_TEXTS}, one a line.",
            f"{len(found)} 个文本太多：最多 {MOST_TEXTS} 个，每行一个。",
        )
    return found


def sweep(pool: Pool, model: str, texts: str, kind: str) -> Iterator[Swept]:
    """Sweeps text by text and yields the table so far after each; nothing is held open in between. A line may have its right
    answer, as "text => answer".

    Raises SweepRequestError, LoadError, NotAllowedError or TextError.
    """
    import pandas as pd

    from surgery import admit
    from surgery import sweep as run
    from surgery.answers import judged

    if kind not in KINDS:
        raise SweepRequestError(
            f"There is no sweep {kind!r}: choose one of {', '.join(KINDS)}.",
            f"没有 {kind!r} 扫描：请选 {'、'.join(KINDS)}。",
        )
    every, right = judged(lines(texts))
    patient = pool.get(model)
    anatomy = admit(patient.model)
    wanted = plans(kind, patient)
    tables: list[pd.DataFrame] = []
    for number, text in enumerate(every):
        truth = None if right is None else [right[number]]
        tables.append(run(patient, text, wanted, truth=truth).assign(text=number))
        table = pd.concat(tables, ignore_index=True)
        yield Swept(kind, table, number + 1, len(every), anatomy.layers, anatomy.heads)


def sweep_plans(pool: Pool, model: str, texts: list, given: list, seeds: int) -> list[dict[str, Any]]:
    """What the API gives: one record per (text, plan). Raises SweepRequestError and what a sweep raises."""
    from surgery import sweep as run

    good = isinstance(texts, list) and isinstance(given, list) and isinstance(seeds, int)
    if (
        not good
        or not 1 <= seeds <= 20
        or not 1 <= len(texts) <= MOST_TEXTS
        or not 1 <= len(given) * seeds <= MOST_PLANS
    ):
        raise SweepRequestError(
            f"A sweep takes 1-{MOST_TEXTS} texts, 1-20 seeds and plans × seeds up to {MOST_PLANS}.",
            f"一次扫描可用 1-{MOST_TEXTS} 个文本、1-20 个种子，计划数 × 种子数最多 {MOST_PLANS}。",
        )
    table = run(pool.get(model), texts, [Plan.from_dict(plan) for plan in given], seeds=seeds)
    return table.astype(object).where(table.notna(), None).to_dict("records")


TITLES: dict[str, Words] = {
    "heads": Words("Every head off", "逐个关闭注意力头"),
    "temperatures": Words("Temperature curve", "温度曲线"),
    "layers": Words("Operation by layer", "逐层操作"),
}
