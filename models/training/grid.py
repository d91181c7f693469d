"""Many runs, side by side: a task under several plans and seeds, as one table.

The runs go through joblib: `n_jobs` uses the cores, and `joblib.parallel_config(backend="dask")` around the call
a cluster. Rows arrive as runs end; a run that fails is a row that says so.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import torch

from ..tasks import task as find_task
from ..tasks.task import Recipe
from .loop import Surgery, Training


@dataclass(frozen=True)
class Cell:
    """One run of a grid. surgery: called `plan`, on from `from_step` + 1; choices: of the model's configuration."""

    task: str
    seed: int = 0
    plan: str = "none"
    surgery: Surgery | None = None
    from_step: int = 0
    recipe: Recipe | None = None
    choices: dict[str, Any] = field(default_factory=dict)

    def training(self) -> Training:
        """The run, not yet begun."""
        return Training(
            find_task(self.task),
            seed=self.seed,
            recipe=self.recipe,
            surgery=self.surgery,
            from_step=self.from_step,
            plan=self.plan,
            choices=dict(self.choices),
            evaluate_every=0,
        )


def cells(
    tasks: Iterable[str], plans: Mapping[str, Surgery | None], seeds: Iterable[int], **more: Any
) -> list[Cell]:
    """Every task under every plan with every seed; the other arguments are each cell's."""
    every = itertools.product(tasks, plans.items(), seeds)
    return [Cell(task, seed, plan, surgery, **more) for task, (plan, surgery), seed in every]


def run_cell(cell: Cell, also: Mapping[str, Surgery] | None = None) -> list[dict[str, Any]]:
    """Trains one cell; a row with what its evaluation said, or with the error.

    also: plans to apply to the trained model, a row for each, marked `applied` = "after"; the run's own is "with".
    """
    row = {"task": cell.task, "plan": cell.plan, "seed": cell.seed, "from_step": cell.from_step}
    started, threads = time.process_time(), torch.get_num_threads()
    torch.set_num_threads(1)  # runs share the cores, a run keeps to one
    try:
        run = cell.training().run()
        seconds = round(time.process_time() - started, 1)
        own = {key: run.history[-1][key] for key in run.history[-1] if key not in ("step", "scored", "rate")}
        rows = [{**row, "applied": "with", **own, "seconds": seconds, "skipped": run.skipped, "error": None}]
        for plan, surgery in (also or {}).items():
            with torch.no_grad(), surgery(run.model, run.step):
                said = run.task.evaluate(run.model)
            rows.append({**row, "plan": plan, "applied": "after", **said, "error": None})
    except Exception as error:  # whatever went wrong with one run, the others go on
        return [{**row, "applied": "with", "error": f"{type(error).__name__}: {error}"}]
    finally:
        torch.set_num_threads(threads)
    return rows


def stream(
    grid: Iterable[Cell], n_jobs: int = 1, also: Mapping[str, Surgery] | None = None
) -> Iterator[dict[str, Any]]:
    """The rows of a grid as its runs end. `also` is for the cells without surgery; see `run_cell`."""
    import joblib

    jobs = [joblib.delayed(run_cell)(cell, also if cell.surgery is None else None) for cell in grid]
    if n_jobs == 1:
        results = (function(*args, **keywords) for function, args, keywords in jobs)
    else:
        try:
            results = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)
        except ValueError:  # a backend that cannot hand results out one by one
            results = joblib.Parallel(n_jobs=n_jobs)(jobs)
    for rows in results:
        yield from rows


def table(grid: Iterable[Cell], n_jobs: int = 1, also: Mapping[str, Surgery] | None = None) -> pd.DataFrame:
    """All rows of a grid."""
    return pd.DataFrame(stream(grid, n_jobs, also))


def summary(rows: pd.DataFrame, values: Iterable[str] | None = None) -> pd.DataFrame:
    """Mean and standard deviation over seeds, one line for each task, plan and way of applying it."""
    keys = ["task", "plan", "from_step", "applied"]
    kept = rows[rows["error"].isna()]
    if values is None:
        values = [c for c in kept.select_dtypes("number") if c not in (*keys, "seed")]
    grouped = kept.groupby(keys, sort=False, dropna=False)
    found = grouped[list(values)].agg(["mean", "std"])
    found[("runs", "")] = grouped.size()
    return found
