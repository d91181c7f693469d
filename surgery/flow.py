"""THE data flow: text -> tokens -> baseline and operated -> measures -> `Comparison`.

Baseline and operated run one after the other on the same padded batch, so that equal computations give equal bits:
an operation that changes nothing shows a difference of exactly 0. As two rows of one batch (`together`) they are cheaper, and
differ in the last bit at some text lengths. `capture="stats"` always takes that way, for it keeps no matrices to compare.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, overload

import torch
from torch import Tensor

from bilingual import SurgeryError, Words
from surgery import answers, metrics, theatre
from surgery.anatomy import UnsupportedError, check_one_text
from surgery.capture import Halves, Keep, Stream, changes
from surgery.comparison import UNCHANGED, Comparison, Run, heads_table, layers_table
from surgery.operation import Operation, Step
from surgery.plan import Plan
from surgery.reading import Reading, Text, batch, read

MOST_BYTES = 2**30  # that scores and weights of all heads of both runs may take


class CaptureError(SurgeryError):
    """A `capture` that is not one of the choices."""


@overload
def compare(
    patient: Any,
    text: Text,
    plan: Plan | Operation | Step | None = None,
    capture: str | Iterable[int] | None = "all",
    *,
    other: Text | None = None,
    pad_to: int | None = None,
    literal: bool = False,
    max_tokens: int | None = None,
    together: bool = False,
    most_bytes: int = MOST_BYTES,
) -> Comparison: ...


@overload
def compare(
    patient: Any,
    text: list[Text],
    plan: Plan | Operation | Step | None = None,
    capture: str | Iterable[int] | None = "all",
    *,
    other: Text | None = None,
    pad_to: int | None = None,
    literal: bool = False,
    max_tokens: int | None = None,
    together: bool = False,
    most_bytes: int = MOST_BYTES,
) -> list[Comparison]: ...


def compare(
    patient: Any,
    text: Text | list[Text],
    plan: Plan | Operation | Step | None = None,
    capture: str | Iterable[int] | None = "all",
    *,
    other: Text | None = None,
    pad_to: int | None = None,
    literal: bool = False,
    max_tokens: int | None = None,
    together: bool = False,
    most_bytes: int = MOST_BYTES,
) -> Comparison | list[Comparison]:
    """Runs `text` through `patient` without and with `plan` and measures what changed.

    patient: what `models.load` returns. text: a string, a pair (a, b) for models of sentence pairs, or a list of either:
    the result is then a list, from one batch. capture: "all" keeps every layer's weights, a list of layers those,
    "stats" their statistics only, None nothing of attention. other: a second text, for the similarity of the two under each
    run. pad_to: pads to so many tokens. literal: typed special tokens are characters. max_tokens: reads fewer tokens than
    the model could. together: both runs as rows of one batch, which is cheaper and where what did not change may differ by
    rounding. most_bytes: where "all" would keep more than that, statistics are kept instead, and a notice says so.

    Raises TextError, UnsupportedError, SelectionError or OperationError before anything is shown.
    """
    if not hasattr(patient, "tokenizer"):
        raise UnsupportedError(
            f"compare needs what models.load returns, which brings a tokenizer, not {type(patient).__name__}.",
            f"compare 需要 models.load 的结果（带有分词器），而不是 {type(patient).__name__}。",
        )
    plan = Plan() if plan is None else Plan(plan)
    texts = text if isinstance(text, list) else [text]
    if not texts:
        raise CaptureError("Give at least one text.", "请至少给出一个文本。")
    readings = [
        read(patient, t, literal=literal, max_tokens=max_tokens)
        for t in (*texts, *([] if other is None else [other]))
    ]
    readings, inputs = batch(patient, readings, pad_to)
    if isinstance(capture, str) and capture == "all":
        capture, readings = _within(most_bytes, patient, readings, inputs)
    surgery = _Surgery(patient, plan, capture, readings, inputs, together)
    results = surgery.comparisons(len(texts), with_other=other is not None)
    return results if isinstance(text, list) else results[0]


def _within(
    most: int, patient: Any, readings: list[Reading], inputs: dict[str, Tensor]
) -> tuple[str, list[Reading]]:
    """ "all", or "stats" and a notice with the size where all heads would take more than `most` bytes."""
    anatomy = theatre.admit(patient.model)
    rows, tokens = inputs["input_ids"].shape
    size = capture_bytes(anatomy.layers, anatomy.heads, rows, tokens)
    if size <= most:
        return "all", readings
    said = Words(
        f"Attention over {tokens} tokens in {anatomy.layers} × {anatomy.heads} heads would take {size / 2**20:,.0f} MiB, more "
        f"than {most / 2**20:,.0f}: its statistics were kept, and no maps. Capture some layers to see those.",
        f"{anatomy.layers} × {anatomy.heads} 个头在 {tokens} 个词元上的注意力需要 {size / 2**20:,.0f} MiB，超过 "
        f"{most / 2**20:,.0f} MiB：只保留了统计量，没有注意力图。请指定要采集的层。",
    )
    return "stats", [replace(reading, notices=(*reading.notices, said)) for reading in readings]


def capture_bytes(layers: int, heads: int, rows: int, tokens: int) -> int:
    """What scores and weights of all heads of both runs take, in float32."""
    return 2 * 2 * 4 * layers * heads * rows * tokens**2


@dataclass(frozen=True)
class _Outcome:
    """What one run gave: hidden (layer + 1, row, token, width) and logits (row, token or 1, class), on the CPU."""

    hidden: Tensor
    logits: Tensor | None

    def end(self, row: int) -> tuple[Tensor, Tensor | None]:
        """The last hidden state and the logits of one row."""
        return self.hidden[-1, row], None if self.logits is None else self.logits[row]


class _Surgery:
    """One plan on one batch."""

    def __init__(
        self,
        patient: Any,
        plan: Plan,
        capture: Any,
        readings: list[Reading],
        inputs: dict[str, Tensor],
        together: bool,
    ):
        self.together = together
        self.patient, self.plan, self.readings, self.inputs = patient, plan, readings, inputs
        self.anatomy = theatre.admit(patient.model)
        check_one_text(self.anatomy, patient.name)
        self.real = inputs["attention_mask"].bool()
        self.separators = torch.tensor([r.separators for r in readings], device=self.real.device)
        self.cells = [
            step.selection.cells(self.anatomy.layers, self.anatomy.heads, patient.name) for step in plan
        ]
        for step in plan:
            theatre.check(self.anatomy, step)
        self.layers = self._layers(capture)
        self.streams = isinstance(capture, str) and capture == "stats"

    def _layers(self, capture: Any) -> frozenset[int]:
        every = range(self.anatomy.layers)
        if capture is None:
            return frozenset()
        if isinstance(capture, str):
            if capture in ("all", "stats"):
                return frozenset(every)
        elif isinstance(capture, Iterable):
            layers = list(capture)
            if all(isinstance(n, Integral) and not isinstance(n, bool) and n in every for n in layers):
                return frozenset(map(int, layers))
        raise CaptureError(
            f'capture = {capture!r} is not possible: give "all", "stats", None or a list of layers 0-{len(every) - 1}.',
            f'capture = {capture!r} 不可用：请给 "all"、"stats"、None 或层号列表（0-{len(every) - 1}）。',
        )

    # --- running ----------------------------------------------------------------------------------------

    def _forward(self, plans: Sequence[Plan], witnesses: Any) -> list[_Outcome]:
        """One forward pass; several plans become blocks of rows of one batch."""
        n = len(self.readings)
        inputs = {k: v.repeat(len(plans), 1) for k, v in self.inputs.items()}
        rows = [None] if len(plans) == 1 else [torch.arange(n * i, n * (i + 1)) for i in range(len(plans))]
        scope = theatre.run(self.patient.model, plans, rows=rows, witnesses=witnesses, name=self.patient.name)
        with torch.inference_mode(), theatre.in_eval(self.patient.model), scope:
            out = self.patient.model(**inputs, output_hidden_states=True)
        hidden = torch.stack([h.float().cpu() for h in out.hidden_states])  # (layer + 1, row, token, width)
        logits = getattr(out, "logits", None)
        logits = None if logits is None else logits.float().cpu()
        return [
            _Outcome(hidden[:, n * i : n * (i + 1)], None if logits is None else logits[n * i : n * (i + 1)])
            for i in range(len(plans))
        ]

    def _against(self, plan: Plan, known: "tuple[_Outcome, Keep] | None", to: Plan) -> Any:
        """Runs `plan` beside `to` and returns (outcome of plan, outcome of to, changes by layer, sites of both)."""
        if self.streams:
            stream = Stream(self.real, self.separators)
            first, second = self._forward([plan, to], stream)
            return first, second, stream.changes, (Keep(), Keep())
        before, after = Keep(self.layers), Keep(self.layers)
        if known is None and self.together:
            first, second = self._forward([plan, to], Halves(before, after))
            return first, second, self._changes(before, after), (before, after)
        if known is None:
            (second,) = self._forward([to], after)  # the operated run first: what cannot be done fails here
        else:
            second, after = known
        (first,) = self._forward([plan], before)
        return first, second, self._changes(before, after), (before, after)

    def _changes(self, before: Keep, after: Keep) -> dict[int, dict[str, Tensor]]:
        return changes(before.sites, after.sites, self.real, self.separators)

    # --- what came of it --------------------------------------------------------------------------------

    def comparisons(self, count: int, with_other: bool) -> list[Comparison]:
        """One comparison for each of the first `count` texts; a last text, if any, is the other one."""
        baseline, operated, moved, kept = self._against(Plan(), None, self.plan)
        receipts = self._receipts(baseline, operated, moved, kept[1])
        pooled = [answers.pool(outcome.hidden[-1], self.real.cpu()) for outcome in (baseline, operated)]
        touched = frozenset().union(*self.cells)
        found = []
        for row in range(count):
            runs = [
                self._run(outcome, book, vectors, row)
                for outcome, book, vectors in zip((baseline, operated), kept, pooled, strict=True)
            ]
            keep = self.real[row].cpu()
            found.append(
                Comparison(
                    model=self.patient.name,
                    caveats=self.patient.caveats,
                    reading=self.readings[row],
                    plan=self.plan,
                    baseline=runs[0],
                    operated=runs[1],
                    heads=heads_table(moved, row, touched),
                    layers=layers_table(baseline.hidden[:, row][:, keep], operated.hidden[:, row][:, keep]),
                    receipt=[entry(row) for entry in receipts],
                    output=answers.changes(
                        self.patient, self.readings[row], baseline.end(row), operated.end(row)
                    ),
                    similarity=_similarity(pooled, row) if with_other else None,
                    other=self.readings[-1].text if with_other else None,
                    kind=self.patient.kind,
                    mask_token=self.patient.mask_token,
                    heads_per_layer=self.anatomy.heads,
                    d_k=self.anatomy.d_k,
                    scale=self.anatomy.scale,
                )
            )
        return found

    def _run(self, outcome: _Outcome, book: Keep, pooled: Tensor, row: int) -> Run:
        kept = [book.sites[layer] for layer in sorted(book.sites)]
        sites = answers.sites(self.patient, self.readings[row], outcome.end(row)[1])
        return Run(
            layers=tuple(sorted(book.sites)),
            weights=torch.stack([s.weights[row].cpu() for s in kept]) if kept else None,
            no_key=torch.stack([s.no_key[row].cpu() for s in kept]) if kept else None,
            hidden=outcome.hidden[:, row],
            embedding=pooled[row],
            predictions=[answers.best(self.patient, said) for _, said in sites],
        )

    # --- receipts ---------------------------------------------------------------------------------------

    def _receipts(self, baseline: _Outcome, operated: _Outcome, changes: dict, kept: Keep) -> list[Any]:
        """For each step a function row -> receipt: what the plan's result owes to this step alone.

        Of one step that is the difference from the baseline; of several, the difference from the plan without it.
        """
        if len(self.plan) == 1:
            return [lambda row: self._receipt(0, row, baseline, operated, changes)]
        entries = []
        for index in range(len(self.plan)):
            without, _, own, _ = self._against(self.plan.muted(index), (operated, kept), self.plan)
            entries.append(
                lambda row, index=index, without=without, own=own: self._receipt(
                    index, row, without, operated, own
                )
            )
        return entries

    def _receipt(
        self, index: int, row: int, without: _Outcome, operated: _Outcome, changes: dict
    ) -> dict[str, Any]:
        step, cells = self.plan.steps[index], self.cells[index]
        keep = self.real[row].cpu()
        after, before = operated.hidden[-1, row][keep], without.hidden[-1, row][keep]
        result = float(metrics.relative_l2(after.flatten(), before.flatten()))

        def average(name: str) -> float | None:
            seen = [
                float(changes[layer][name][row, head]) for layer, head in sorted(cells) if layer in changes
            ]
            defined = [value for value in seen if value == value]
            return sum(defined) / len(defined) if defined else None

        entry: dict[str, Any] = {
            "operation": step.operation.name,
            "parameters": step.operation.values,
            "at": str(step.selection),
            "stage": step.operation.stage,
            "cells": len(cells),
            "scores": average("scores"),
            "weights": average("moved"),
            "output": average("output"),
            "result": result,
        }
        entry["changed"] = any((entry[k] or 0) > UNCHANGED for k in ("weights", "output", "result"))
        entry["note"] = None if entry["changed"] else self._why_idle(step, cells)
        return entry

    def _why_idle(self, step: Step, cells: frozenset) -> Words:
        if not cells:
            return Words("Its selection is empty: it touched no head.", "选择为空：没有触及任何注意力头。")
        if step.operation.neutral:
            return Words("With these parameters it changes nothing.", "在这些参数下它不改变任何东西。")
        return step.operation.when_idle


def _similarity(pooled: list[Tensor], row: int) -> dict[str, float]:
    """The cosine of a text's vector and the other text's (the last row) under each run."""
    names = ("baseline", "operated")
    return {name: float(metrics.cosine(p[row], p[-1])) for name, p in zip(names, pooled, strict=True)}
