"""Rows of results, and the document that is made of them."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.cost.measure import Ratio
from benchmarks.cost.truth import Verdict

HEADER = """# What surgery costs

Every number here is printed by a command of this repository, and each section says by which. Times are ratios, taken in turns
within one process: the median of the turns, with the quartiles in brackets. The first row of each table is the control, a
reference against itself: **a ratio inside the control's brackets, taken both ways, is no difference**, and is marked ≈. Counts of ATen
operations and of Python calls are exact (subject / reference). *float32's error* is how far the result is from the same
equations in float64 NumPy, in units of how far these equations in float32 NumPy are (in another precision: in units of how far the stock model's own run is): up to 2 is right.
"""


@dataclass(frozen=True)
class Row:
    """One measured thing. counts are (subject, reference): ATen operations, Python calls.

    aim: the most time that was hoped for. aim_counts: the most of both counts, over the reference's. why: what is known
    about the reason, printed where an aim is missed.
    """

    what: str
    time: Ratio | None = None
    operations: tuple[int, int] | None = None
    calls: tuple[int, int] | None = None
    verdict: Verdict | str | None = None
    aim: float | None = None
    aim_counts: float | None = None
    note: str = ""
    why: str = ""

    def missed(self) -> list[str]:
        """What is above its aim, and by how much."""
        found = []
        if self.aim is not None and self.time is not None and self.time.median > self.aim:
            share = f"time by {100 * (self.time.median / self.aim - 1):.0f} %"
            found.append(
                share + (" (less than the turns themselves differ)" if self.time.low <= self.aim else "")
            )
        for name, pair in (("ATen operations", self.operations), ("Python calls", self.calls)):
            if self.aim_counts is not None and pair and pair[0] > self.aim_counts * pair[1]:
                found.append(f"{name} by {100 * (pair[0] / pair[1] / self.aim_counts - 1):.1f} %")
        return found


@dataclass
class Table:
    """Rows under one title; the first one with a time is the control."""

    title: str
    rows: list[Row] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def add(self, *rows: Row) -> None:
        self.rows += rows

    def say(self, remark: str) -> None:
        self.remarks.append(remark)

    @property
    def control(self) -> Ratio | None:
        return next((row.time for row in self.rows if row.what.startswith("control")), None)

    def markdown(self) -> str:
        lines = [f"### {self.title}", ""]
        if self.rows:
            lines += [
                "| what / reference | time | aim | ATen operations | Python calls | float32's error |",
                "|---|---|---|---|---|---|",
                *map(self._line, self.rows),
                "",
            ]
        reasons = list(dict.fromkeys(row.why for row in self.rows if row.missed()))
        for why in reasons:
            rows = [row for row in self.rows if row.missed() and row.why == why]
            said = "; ".join(f"*{row.what}*, {', '.join(row.missed())}" for row in rows)
            lines += [f"Aims missed: {said}. {why}".rstrip(), ""]
        for remark in self.remarks:
            lines += [remark, ""]
        return "\n".join(lines)

    def _line(self, row: Row) -> str:
        time = "" if row.time is None else str(row.time) + self._mark(row)
        counts = ["" if pair is None else f"{pair[0]} / {pair[1]}" for pair in (row.operations, row.calls)]
        aim = "" if row.aim is None else f"≤ {row.aim:.2f}"
        aim += "" if row.aim_counts is None else f", counts ≤ {row.aim_counts:.2f}"
        aim += " missed" if row.missed() else ""
        verdict = "" if row.verdict is None else str(row.verdict)
        cells = [row.what + (f" ({row.note})" if row.note else ""), time, aim, *counts, verdict]
        return "| " + " | ".join(cells) + " |"

    def _mark(self, row: Row) -> str:
        if self.control is None or row.time is self.control:
            return ""
        low, high = self.control.band
        return " ≈" if low <= row.time.median <= high else ""


def write(path: Path, name: str, text: str) -> None:
    """Puts a section into the document, in place of the one of that name if there is one; sections are sorted by name."""
    known = path.read_text(encoding="utf-8") if path.exists() else ""
    sections = {found[1]: found[2] for found in _SECTION.finditer(known)}
    sections[name] = f"\n{text.strip()}\n"
    marked = (f"<!-- begin {n} -->{sections[n]}<!-- end {n} -->\n" for n in sorted(sections))
    path.write_text("\n".join((HEADER, *marked)), encoding="utf-8")


_SECTION = re.compile(r"<!-- begin (.*?) -->(.*?)<!-- end \1 -->", re.DOTALL)
