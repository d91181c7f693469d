"""Many plans, many texts: what each plan changes at the end of the model, as one table.

The plans of one text run as rows of one batch, and a row joins the batch where its plan first differs from the
baseline: before that block it would only repeat the baseline's row. With every head of an L-layer model switched off
in turn, a row runs through half of the blocks on average. Texts are independent: joblib spreads them over processes, or
over a cluster with its Dask or Ray backend.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from numbers import Integral
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from bilingual import SurgeryError
from surgery import answers, theatre
from surgery.anatomy import Anatomy, check_one_text
from surgery.operation import Operation, Step
from surgery.operations.ablate_head import AblateHead
from surgery.plan import Plan
from surgery.reading import Reading, Text, batch, read
from surgery.selection import EVERYWHERE, Selection

BUDGET = 256 * 2**20  # bytes that the rows of one batch may need at a time
MEASURES = ("relative_l2", "token_cosine", "sentence_cosine", "kl", "top1_changed")


class SweepError(SurgeryError):
    """A sweep that cannot be run as asked."""


# --- plans --------------------------------------------------------------------------------------------------


def grid(operation: type[Operation], at: str | Selection = EVERYWHERE, **values: Any) -> list[Plan]:
    """A plan for every combination of parameter values: `grid(Temperature, t=[0.5, 1, 2])`."""
    lists = [
        value if isinstance(value, Iterable) and not isinstance(value, str) else [value]
        for value in values.values()
    ]
    combinations = itertools.product(*lists)
    return [
        Plan(Step(operation(**dict(zip(values, chosen, strict=True))), Selection.of(at)))
        for chosen in combinations
    ]


def every_head(patient: Any, operation: Operation | None = None) -> list[Plan]:
    """A plan for every head: the operation (AblateHead by default) on that head alone, by layer, then head."""
    anatomy = theatre.admit(patient.model)
    cells = itertools.product(range(anatomy.layers), range(anatomy.heads))
    return [Plan((operation or AblateHead()).at(layers=layer, heads=head)) for layer, head in cells]


def every_layer(patient: Any, operation: Operation | None = None) -> list[Plan]:
    """A plan for every layer: the operation (AblateHead by default) on all its heads."""
    layers = theatre.admit(patient.model).layers
    return [Plan((operation or AblateHead()).at(layers=layer)) for layer in range(layers)]


# --- sweeping -----------------------------------------------------------------------------------------------


def sweep(
    patient: Any,
    texts: Text | Sequence[Text],
    plans: Sequence[Plan | Operation | Step],
    *,
    seeds: int = 1,
    n_jobs: int | None = None,
    progress: Callable[[int, int], Any] | None = None,
    budget: int = BUDGET,
) -> pd.DataFrame:
    """One row per (text, plan): what the plan changed at the end of the model.

    Columns: text and plan (their numbers), label, seeds, and the measures relative_l2, token_cosine, sentence_cosine (of
    the last hidden states), kl (nats) and top1_changed (means over the text's answers; NaN where the model answers nothing).
    A stochastic plan runs with seeds 0, 1, ... `seeds`-1 and the measures are means, with `<measure>_sd` their standard
    deviation. Equal to one `compare` each, up to rounding.

    n_jobs: spreads the texts over joblib workers (each loads the model by its name); its backend is joblib's to choose.
    progress(done, of): called after each text. budget: bytes that one batch may take.

    Raises SweepError without texts or plans, and what `compare` raises, before anything runs.
    """
    texts = [texts] if isinstance(texts, str | tuple) else list(texts)
    plans = [Plan(plan) for plan in ([plans] if isinstance(plans, Plan | Operation | Step) else plans)]
    if isinstance(seeds, bool) or not isinstance(seeds, Integral) or seeds < 1:
        raise SweepError(
            f"seeds = {seeds!r} is not possible: give a whole number from 1.",
            f"seeds = {seeds!r} 不可用：请给不小于 1 的整数。",
        )
    if not texts or not plans:
        raise SweepError("A sweep needs at least one text and one plan.", "扫描至少需要一个文本和一个计划。")
    check_one_text(theatre.admit(patient.model), patient.name)
    for plan in plans:
        theatre.Scope(
            theatre.admit(patient.model), [plan], name=patient.name
        )  # what cannot be done fails here
    tables = []
    for table in _tables(patient, texts, plans, seeds, n_jobs, budget):
        tables.append(table)
        if progress is not None:
            progress(len(tables), len(texts))
    return pd.concat(tables, ignore_index=True)


def _tables(patient, texts, plans, seeds, n_jobs, budget) -> Iterator[pd.DataFrame]:
    numbered = list(enumerate(texts))
    if n_jobs in (None, 1):
        for number, text in numbered:
            yield _one_text(patient, number, text, plans, seeds, budget)
        return
    from joblib import Parallel, delayed

    device = str(patient.device)
    work = (
        delayed(_in_a_worker)(patient.name, device, n, text, plans, seeds, budget) for n, text in numbered
    )
    yield from Parallel(n_jobs=n_jobs, return_as="generator", batch_size="auto")(work)


def _in_a_worker(name: str, device: str, *rest: Any) -> pd.DataFrame:
    return _one_text(_loaded(name, device), *rest)


@functools.lru_cache(maxsize=1)
def _loaded(name: str, device: str) -> Any:
    """The model of a worker process, loaded once; one thread each, for the workers share the cores."""
    from models import load

    torch.set_num_threads(1)
    return load(name, device=device)


def _one_text(patient, number: int, text: Text, plans: list[Plan], seeds: int, budget: int) -> pd.DataFrame:
    reading = read(patient, text)
    variants = [variant for index, plan in enumerate(plans) for variant in _seeded(index, plan, seeds)]
    outcomes = run_rows(patient, reading, [plan for _, plan in variants], budget)
    found = pd.DataFrame([_measures(outcome) for outcome in outcomes])
    found["plan"] = [index for index, _ in variants]
    groups = found.groupby("plan")[list(MEASURES)]
    table = groups.mean()
    table = table.join(groups.std(ddof=0).add_suffix("_sd"))
    table.insert(0, "seeds", found.groupby("plan").size())
    table.insert(0, "label", [plan.describe() for plan in plans])
    table = table.reset_index()
    table.insert(0, "text", number)
    return table


def _seeded(index: int, plan: Plan, seeds: int) -> list[tuple[int, Plan]]:
    if seeds == 1 or not plan.stochastic:
        return [(index, plan)]
    return [(index, reseeded(plan, seed)) for seed in range(seeds)]


def reseeded(plan: Plan, seed: int) -> Plan:
    """The same plan with another seed in its stochastic operations."""
    return Plan(
        *(
            Step(dataclasses.replace(step.operation, seed=seed), step.selection)
            if step.operation.stochastic
            else step
            for step in plan
        )
    )


def _measures(outcome: dict[str, Any]) -> dict[str, float]:
    found = {name: outcome[name] for name in MEASURES[:3]}
    for name in MEASURES[3:]:
        values = [float(site[name]) for site in outcome["sites"]]
        found[name] = sum(values) / len(values) if values else float("nan")
    return found


# --- rows ---------------------------------------------------------------------------------------------------


def run_rows(
    patient: Any, reading: Reading, plans: Sequence[Plan], budget: int = BUDGET
) -> list[dict[str, Any]]:
    """What each plan changed on one text (see `answers.changes`), all of them in as few batches as `budget` allows."""
    anatomy = theatre.admit(patient.model)
    starts = [_start(anatomy, plan, patient.name) for plan in plans]
    order = sorted(range(len(plans)), key=lambda i: starts[i])
    most = max(1, budget // _row_bytes(patient, anatomy, len(reading.ids)))
    found: list[dict[str, Any]] = [{}] * len(plans)
    for first in range(0, len(order), most):
        chunk = order[first : first + most]
        ends = _run_chunk(patient, anatomy, reading, [plans[i] for i in chunk], [starts[i] for i in chunk])
        baseline = next(ends)
        for index, end in zip(chunk, ends, strict=True):
            found[index] = answers.changes(patient, reading, baseline, end)
    return found


def _run_chunk(
    patient: Any, anatomy: Anatomy, reading: Reading, plans: list[Plan], starts: list[int]
) -> Iterator[tuple[Tensor, Tensor | None]]:
    """The end of the baseline and of every plan (hidden states, logits), from one forward pass.

    Row 0 is the baseline, row 1 + p is plan p and joins before block starts[p]; starts do not fall.
    """
    _, inputs = batch(patient, [reading])
    inputs = {name: value.expand(1 + starts.count(0), -1) for name, value in inputs.items()}
    joins = {block: starts.count(block) for block in range(1, anatomy.layers)}
    rows = [torch.tensor([1 + p]) for p in range(len(plans))]
    options = (
        {"use_cache": False} if "use_cache" in inspect.signature(patient.model.forward).parameters else {}
    )
    scope = theatre.run(patient.model, plans, rows=rows, name=patient.name, joins=joins)
    with torch.inference_mode(), theatre.in_eval(patient.model), scope:
        out = patient.model(**inputs, **options, output_hidden_states=True)
    hidden = out.hidden_states[-1].float().cpu()
    logits = getattr(out, "logits", None)
    logits = [None] * len(hidden) if logits is None else logits.float().cpu()
    return zip(hidden, logits, strict=True)


def _start(anatomy: Anatomy, plan: Plan, name: str) -> int:
    """The first block that the plan changes; 0 also where rows cannot join on the way."""
    first = anatomy.layers
    for step in plan:
        cells = step.selection.cells(anatomy.layers, anatomy.heads, name)
        if step.operation.neutral or not cells:
            continue
        first = 0 if step.operation.stage == "positions" else min(first, min(layer for layer, _ in cells))
    return min(first, anatomy.layers - 1) if anatomy.blocks else 0


def _row_bytes(patient: Any, anatomy: Anatomy, tokens: int) -> int:
    """Bytes that one more row needs at a time: a layer's activations, its weights if they exist, the logits."""
    config = patient.model.config
    width = 16 * config.hidden_size + (0 if patient.kind == "encoder" else patient.vocab_size)
    return 4 * (tokens * width + 2 * anatomy.heads * tokens * tokens)


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

    measure: one of MEASURES; "kl" by default where the model answers something, else "relative_l2". options: of `sweep`.
    (Michel et al. 2019, section 3, measure by task accuracy; here the baseline is what the model itself says.)
    """
    table = sweep(patient, texts, every_head(patient, operation), **options)
    measure = measure or ("relative_l2" if table["kl"].isna().all() else "kl")
    if measure not in MEASURES:
        raise SweepError(
            f"measure = {measure!r} is not possible: give one of {', '.join(MEASURES)}.",
            f"measure = {measure!r} 不可用：请给 {'、'.join(MEASURES)} 之一。",
        )
    heads = theatre.admit(patient.model).heads
    by_plan = table.groupby("plan")[measure]
    return pd.DataFrame(
        {
            "layer": [plan // heads for plan in by_plan.groups],
            "head": [plan % heads for plan in by_plan.groups],
            "effect": by_plan.mean().to_numpy(),
            "sd": by_plan.std(ddof=0).to_numpy(),
        }
    )
