"""Texts over processes, and what a large job takes."""

import functools
import io
import itertools
import os
import time
from collections.abc import Callable, Iterator

import pandas as pd
import torch

import surgery as sg
from benchmarks.cost.bench import Bench
from benchmarks.cost.measure import seconds
from benchmarks.cost.table import Table
from surgery.spread import CHUNK

AIM = 1.7
SENTENCES = 1_000_000
WHO, DID, WHAT = (
    ("the old dog", "a tired driver", "my sister", "the engineer", "nobody here", "every child"),
    ("saw", "did not cross", "repaired", "remembered", "sold", "painted"),
    (
        "the bridge",
        "a street near the river",
        "the red car",
        "what was left of it",
        "an apple",
        "the long letter",
    ),
)


def sentences(count: int) -> list[str]:
    """Short texts, all of them different up to some thousands."""
    parts = itertools.cycle(
        itertools.product(WHO, DID, WHAT, ("today", "again", "in spring", "at noon", "twice"))
    )
    return [" ".join(part) + "." for part in itertools.islice(parts, count)]


def processes(bench: Bench, count: int) -> Iterator[Table]:
    """One process against two, on the wall clock. The machine's own gain from a second process is measured beside it."""
    from joblib import Parallel, delayed

    texts, plans = sentences(count), sg.every_head(bench.patient)
    table = Table(f"{bench.name}: {count} short texts × {len(plans)} heads over 2 processes / over 1")
    list(sg.sweep_stream(bench.patient, texts[:4], plans, n_jobs=2))  # the workers start and load the model
    own, plain = [], []
    for _ in range(2):
        one, two = (
            wall(lambda jobs=jobs: list(sg.sweep_stream(bench.patient, texts, plans, n_jobs=jobs)))
            for jobs in (1, 2)
        )
        own.append(one / two)
        work = [delayed(products)(one / 4 / 2)] * 2
        plain.append(
            wall(lambda work=work: [f(*a) for f, a, _ in work]) / wall(lambda work=work: Parallel(2)(work))
        )
    gain, most = max(own), max(plain)
    verdict = "reached" if gain >= AIM else f"missed by {100 * (1 - gain / AIM):.0f} %"
    table.say(
        f"{gain:.2f} × faster ({', '.join(f'{g:.2f}' for g in own)} in the two turns; aim: {AIM} at 2,000 texts, {verdict} here at "
        f"{count}). Control: plain matrix products gained {most:.2f} × from the second process "
        f"({', '.join(f'{g:.2f}' for g in plain)}): no engine spreads better than the machine does. Wall clock, {os.cpu_count()} "
        f"cores, load average {os.getloadavg()[0]:.1f} while it was measured. Texts are independent, so the gain does not depend on "
        "their number once each worker has several chunks."
    )
    yield table


def wall(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


@functools.cache
def _pace() -> float:
    """Matrix products per second of this process alone."""
    return 50 / max(seconds(lambda: _multiply(50)), 1e-9)


def _multiply(times: int) -> None:
    a = torch.ones(512, 512)
    for _ in range(times):
        a @ a


def products(length: float) -> None:
    """So much work that one undisturbed process takes about `length` seconds."""
    torch.set_num_threads(1)
    _multiply(max(1, int(length * _pace())))


def job(bench: Bench, count: int = 8) -> Iterator[Table]:
    """A million sentences, from the rows per second and the bytes per row of a few."""
    texts, plans = sentences(count), sg.every_head(bench.patient)
    tables: list[pd.DataFrame] = []
    sg.sweep(bench.patient, texts[0], plans)
    spent = seconds(lambda: tables.append(sg.sweep(bench.patient, texts, plans)), bench.device)
    chunk = pd.concat(tables, ignore_index=True)
    file = io.BytesIO()
    chunk.to_parquet(file, index=False)
    rows = len(chunk)
    tokens = sum(len(bench.patient.tokenizer(text)["input_ids"]) for text in texts) / count
    a_row, rate = len(file.getvalue()) / rows, count * len(plans) / spent
    every = SENTENCES * len(plans)
    table = Table(f"Sizing a job: 1 M sentences × {len(plans)} heads × {bench.name}")
    table.say(
        f"Measured on {count} sentences of {tokens:.0f} tokens in one process of one thread: {rate:.0f} rows of the result per second "
        f"of {'CPU time' if bench.device == 'cpu' else 'the device'} (a row is one sentence with one head off, a baseline for each "
        f"sentence included), and {a_row:.0f} bytes of Parquet per row ({rows} rows in the file)."
    )
    table.say(
        f"A million sentences are {every / 1e6:.0f} M rows: {every / rate / 3600:,.0f} "
        f"{'core-hours' if bench.device == 'cpu' else 'device-hours'}, {every / rate / 3600 / 64:.1f} hours on 64 cores like this one "
        f"if they gain as cores, and {every * a_row / 1e9:.1f} GB in {SENTENCES // CHUNK:,} files. Cost grows with the length of the "
        "sentences a little faster than proportionally. Two levers that change it most: `head_importance` on a sample tells as "
        "much as the whole where the spread over texts is small, and `every_layer` first tells which layers deserve their heads."
    )
    table.say(
        "```python\n"
        "import joblib\n"
        "import surgery as sg\n"
        "from dask.distributed import Client\n"
        "from models import load\n\n"
        'client = Client("tcp://scheduler:8786")  # without it: processes of this machine\n'
        'patient = load("google-bert/bert-base-uncased")\n'
        'with joblib.parallel_config(backend="dask"):\n'
        "    for table in sg.sweep_stream(\n"
        '        patient, texts, sg.every_head(patient), n_jobs=-1, out="heads", on_error="row"\n'
        "    ):\n"
        "        pass  # each table is in the folder already; called again after an interruption it goes on from there\n"
        "```"
    )
    yield table
