"""Many plans on one text: time against one forward pass each, and the bound that the arithmetic sets."""

import functools
import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd

import surgery as sg
from benchmarks.cost.bench import Bench
from benchmarks.cost.measure import flops
from benchmarks.cost.table import Row, Table
from benchmarks.cost.truth import Judge, Verdict
from surgery.theatre import admit

LENGTHS = (32, 128)
SAMPLE = 8  # stock forward passes that stand for one for each plan
MOST_PAIRS = 3000


def sweeping(bench: Bench, lengths: Sequence[int] = LENGTHS) -> Iterator[Table]:
    for tokens in lengths:
        words, text = bench.words(tokens), bench.text(tokens)
        table = Table(
            f"{bench.name}, {tokens} tokens: sweeps / one stock forward pass for each plan and one for the baseline"
        )

        def naive(text=text) -> None:
            for _ in range(SAMPLE):
                bench.stock(**text)

        table.add(Row(f"control: {SAMPLE} stock / {SAMPLE} stock", bench.ratio(naive, naive)))
        judge = bench.judge(text)
        for what, plans, cuts, aim in variants(bench, tokens):
            right = functools.partial(correct, judge, cuts)
            table.add(measured(bench, what, words, text, plans, naive, aim, right))
        work = flops(bench.config, 1, tokens) / 1e9
        table.say(
            f"A forward pass is {work:.2f} GFLOP. *Blocks* is the share of the blocks' work that the sweep still does (of every "
            f"head off (L + 1) / 2L, {(bench.layers + 1) / (2 * bench.layers):.2f}, and the baseline). *Row* is what a row of a "
            "stock batch as large as the sweep's mean batch costs, over a lone row: below 1 where a lone row leaves the machine "
            "idle, above 1 where a batch outgrows the caches. Their product is the *bound*: no sweep of this kind is faster."
        )
        yield table


def variants(bench: Bench, tokens: int) -> Iterator[tuple[str, list, dict[int, dict], float | None]]:
    """(name, plans, plan number -> the cuts that it is to float64, aim)."""
    layers, heads = bench.layers, bench.heads

    def off(*cells: tuple[int, int]) -> dict:
        found: dict[int, Any] = {}
        for layer, head in cells:
            factor = found.setdefault(layer, {"output_factor": np.ones((1, heads, 1, 1))})["output_factor"]
            factor[:, head] = 0.0
        return found

    cells = list(itertools.product(range(layers), range(heads)))
    some = range(0, len(cells), max(1, len(cells) // 6))
    short = tokens <= min(LENGTHS)
    yield (
        f"every head off ({len(cells)})",
        sg.every_head(bench.patient),
        {n: off(cells[n]) for n in some},
        0.20 if short else None,
    )

    if not short:
        return
    degrees = [0.25 * n for n in range(1, 17)]
    last = range(layers - max(1, layers // 3), layers)
    for what, where, chosen, aim in (
        ("16 temperatures", "L*", range(layers), 0.40),
        (f"16 temperatures, last {len(last)} layers", f"L{last[0]}-{last[-1]}", last, 0.20),
    ):
        cuts = {n: {layer: {"temperature": degrees[n]} for layer in chosen} for n in (0, 7, 15)}
        yield what, sg.grid(sg.Temperature, at=where, t=degrees), cuts, aim

    pairs = list(itertools.combinations(cells, 2))
    plans = sg.every_pair(bench.patient)
    what = "every pair of heads off"
    if len(pairs) > MOST_PAIRS:
        own = [n for n, pair in enumerate(pairs) if all(head < 2 for _, head in pair)]
        pairs, plans, what = (
            [pairs[n] for n in own],
            [plans[n] for n in own],
            f"{what}, of heads 0-1 of each layer",
        )
    some = range(0, len(pairs), max(1, len(pairs) // 4))
    yield f"{what} ({len(pairs)})", plans, {n: off(*pairs[n]) for n in some}, None


def measured(bench, what, words, text, plans, naive, aim, right) -> Row:
    """right: from the sweep's table to a verdict."""

    def act() -> Any:
        return sg.sweep(bench.patient, words, plans)

    with counted(bench) as batches:
        verdict = right(act())
    time = bench.ratio(naive, act, times=(len(plans) + 1) / SAMPLE)
    blocks = sum(batches) / (bench.layers * (len(plans) + 1))
    rows = max(1, round(sum(batches) / len(batches)))
    many = {name: value.repeat(rows, 1) for name, value in text.items()}
    row = bench.ratio(lambda: bench.stock(**text), lambda: bench.stock(**many), times=rows).median
    note = f"blocks {blocks:.2f} × row {row:.2f} of {rows} = bound {blocks * row:.2f}"
    return Row(what, time, verdict=verdict, aim=aim, note=note, why=REST)


REST = "What is above the bound is joining rows, resolving plans and measuring the outputs; the bound itself no sweep undercuts."


@contextmanager
def counted(bench: Bench) -> Iterator[list[int]]:
    """The rows that each call of a block gets."""
    batches: list[int] = []

    def note(block, args, out) -> None:
        batches.append(len(out[0] if isinstance(out, tuple) else out))

    hooks = [block.register_forward_hook(note) for block in admit(bench.patient.model).blocks]
    try:
        yield batches
    finally:
        for hook in hooks:
            hook.remove()


def correct(judge: Judge, cuts: dict[int, dict], table: pd.DataFrame) -> Verdict:
    """The sweep's `relative_l2` of some of its plans against float64's."""
    found = table.set_index("plan")["relative_l2"][list(cuts)].to_numpy()

    def changes(dtype: type) -> np.ndarray:
        before = judge.encoder(judge.ids, dtype=dtype)[0]
        after = (judge.encoder(judge.ids, own, dtype=dtype)[0] for own in cuts.values())
        return np.array([np.linalg.norm(end - before) / np.linalg.norm(before) for end in after], np.float64)

    right = changes(np.float64)
    off = np.linalg.norm(found - right)
    # a rougher precision drowns small changes: its own noise, the same for every plan, is the unit
    unit = (
        np.linalg.norm(changes(np.float32) - right) if judge.noise is None else judge.noise * len(cuts) ** 0.5
    )
    unit = max(unit, 2.0**-23 * np.linalg.norm(right))  # what the table says is itself rounded to float32
    return Verdict(float(off / unit), float(off / np.linalg.norm(right)))
