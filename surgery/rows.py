"""Many plans on one text, as rows of one batch.

A row joins the batch where its plan first differs from what runs there already, as a copy of that row: of the baseline, or of
a plan that does the same up to there. With every head of an L-layer model switched off in turn, a row runs through half of
the blocks on average.
"""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from surgery import answers, theatre
from surgery.anatomy import Anatomy
from surgery.plan import Plan
from surgery.reading import Reading, batch

BUDGET = 256 * 2**20  # bytes that the rows of one batch may need at a time

Deeds = tuple[Hashable, ...]  # what a plan does, layer by layer


def run_rows(
    patient: Any,
    reading: Reading,
    plans: Sequence[Plan],
    budget: int = BUDGET,
    truth: Sequence[int] | None = None,
) -> list[dict[str, Any]]:
    """What each plan changed on one text (see `answers.changes`), all of them in as few batches as `budget` allows."""
    anatomy = theatre.admit(patient.model)
    deeds = [_deeds(anatomy, plan, patient.name) for plan in plans]
    numbers: dict[Hashable, int] = {}  # deeds sorted by when they were first met: alike plans stand together
    order = sorted(
        range(len(plans)), key=lambda i: [numbers.setdefault(deed, len(numbers)) for deed in deeds[i]]
    )
    most = max(1, budget // _row_bytes(patient, anatomy, len(reading.ids)))
    found: list[dict[str, Any]] = [{}] * len(plans)
    for first in range(0, len(order), most):
        chunk = order[first : first + most]
        rows = arrange([deeds[i] for i in chunk], whole=not _can_join(patient, anatomy))
        ends = _run(patient, reading, [plans[chunk[row.plan]] for row in rows], rows)
        baseline = next(ends)
        for row, end in zip(rows, ends, strict=True):
            found[chunk[row.plan]] = answers.changes(patient, reading, baseline, end, truth)
    return found


@dataclass(frozen=True)
class Row:
    """A plan (its number), the block before which its row joins, and the row that it is a copy of there (0 = baseline)."""

    plan: int
    joins: int
    source: int


def arrange(deeds: Sequence[Deeds], whole: bool = False) -> list[Row]:
    """The rows of a batch after the baseline's, in the order of their joining.

    A row's source has done the same as its plan in every layer before. whole: all join at the start, for blocks that rows
    cannot join at.
    """
    begins: dict[Deeds, int] = {}  # what is done so far -> the plan that is the first to do it
    parents = []
    for number, own in enumerate(deeds):
        idle = tuple(None for _ in own)
        shared = (
            0
            if whole
            else max((k for k in range(len(own)) if own[:k] == idle[:k] or own[:k] in begins), default=0)
        )
        parents.append((shared, None if own[:shared] == idle[:shared] else begins[own[:shared]]))
        for k in range(shared + 1, len(own)):
            begins.setdefault(own[:k], number)
    order = sorted(range(len(deeds)), key=lambda n: parents[n][0])
    places = {number: place for place, number in enumerate(order, 1)}
    return [
        Row(n, joins, 0 if parent is None else places[parent])  # a parent joined before
        for n in order
        for joins, parent in [parents[n]]
    ]


def _deeds(anatomy: Anatomy, plan: Plan, name: str) -> Deeds:
    """For each layer what the plan does there, None where nothing; positions count to the first."""
    layers: list[list[Hashable]] = [[] for _ in range(anatomy.layers)]
    for step, repeat in zip(plan, theatre.repeats(plan), strict=True):
        operation, cells = step.operation, step.selection.cells(anatomy.layers, anatomy.heads, name)
        if operation.neutral or not cells:
            continue
        if operation.stage == "positions":
            layers[0].append((operation, repeat))
            continue
        for layer in {layer for layer, _ in cells}:
            heads = frozenset(head for at, head in cells if at == layer)
            layers[layer].append((operation, repeat, heads))
    return tuple(tuple(deeds) or None for deeds in layers)


def _can_join(patient: Any, anatomy: Anatomy) -> bool:
    """Whether rows can join on the way. A decoder's classifier looks its last token up by the rows that the pass began with."""
    looks_back = getattr(anatomy.attention[0], "is_causal", True)
    return bool(anatomy.blocks) and not (patient.kind == "classifier" and looks_back)


def _run(
    patient: Any, reading: Reading, plans: Sequence[Plan], rows: Sequence[Row]
) -> Iterator[tuple[Tensor, Tensor | None]]:
    """The end of the baseline and then of every row (hidden states, logits), from one forward pass."""
    _, inputs = batch(patient, [reading])
    joins: dict[int, list[int]] = {}
    for row in rows:
        joins.setdefault(row.joins, []).append(row.source)
    first = 1 + len(joins.pop(0, ()))
    inputs = {name: value.expand(first, -1) for name, value in inputs.items()}
    options = (
        {"use_cache": False} if "use_cache" in inspect.signature(patient.model.forward).parameters else {}
    )
    where = [torch.tensor([place]) for place in range(1, len(rows) + 1)]
    since = [row.joins for row in rows]
    scope = theatre.run(patient.model, plans, rows=where, name=patient.name, joins=joins, since=since)
    with torch.inference_mode(), theatre.in_eval(patient.model), scope:
        out = patient.model(**inputs, **options, output_hidden_states=True)
    hidden = out.hidden_states[-1].float().cpu()
    logits = getattr(out, "logits", None)
    logits = [None] * len(hidden) if logits is None else logits.float().cpu()
    return zip(hidden, logits, strict=True)


def _row_bytes(patient: Any, anatomy: Anatomy, tokens: int) -> int:
    """Bytes that one more row needs at a time: a layer's activations, its weights if they exist, the logits."""
    config = patient.model.config
    width = 16 * config.hidden_size + (0 if patient.kind == "encoder" else patient.vocab_size)
    return 4 * (tokens * width + 2 * anatomy.heads * tokens * tokens)
