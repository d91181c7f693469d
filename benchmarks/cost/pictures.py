"""All heads at once: as a picture, and as what the browser receives."""

import io
import json
import statistics
from collections.abc import Callable, Iterator

import surgery as sg
from benchmarks.cost.bench import Bench
from benchmarks.cost.measure import seconds
from benchmarks.cost.table import Table
from surgery import figures
from surgery.drawing import panels
from ui.present import heat

TOKENS, TURNS = 32, 15


def drawing(bench: Bench) -> Iterator[Table]:
    compared = sg.compare(bench.patient, bench.words(TOKENS), sg.Temperature(2.0))
    weights = compared.baseline.weights.numpy()
    norm = panels.from_zero(weights)
    heads = weights.shape[0] * weights.shape[1]
    rows = (
        ("every head's pixels", 10, lambda: panels.tiles(weights, norm, panels.SEQUENTIAL)),
        ("the whole figure (title, labels, colour bar), drawn to PNG", None, lambda: drawn(compared)),
        ("the payload of baseline and operated, without `compare`", 2, lambda: heat(compared)),
        ("the payload as JSON", None, lambda: json.dumps(heat(compared))),
    )
    table = Table(
        f"{bench.name}, {TOKENS} tokens: {heads} heads to look at (CPU milliseconds, median and quartiles of {TURNS})"
    )
    lines = ["| what | ms | aim |", "|---|---|---|"]
    for what, aim, act in rows:
        low, middle, high = spent(act)
        found = (
            ""
            if aim is None
            else f"≤ {aim}" + ("" if middle <= aim else f", missed by {middle - aim:.1f} ms")
        )
        lines.append(f"| {what} | {middle:.1f} [{low:.1f}, {high:.1f}] | {found} |")
    table.say("\n".join(lines))
    size = len(json.dumps(heat(compared)))
    table.say(
        f"The payload is {size / 2**20:.2f} MiB. `python benchmarks/page.py` times the page itself, from click to figure."
    )
    yield table


def drawn(compared: sg.Comparison) -> bytes:
    file = io.BytesIO()
    figures.write(figures.all_heads(compared), file, "png")
    return file.getvalue()


def spent(act: Callable[[], object]) -> list[float]:
    """Quartiles, in milliseconds."""
    act()
    return statistics.quantiles([1000 * seconds(act) for _ in range(TURNS)], n=4)
