"""Checks every family under every operation and writes what is found as a matrix: `python benchmarks/conformance.py`.

Each cell is a check of `tests/surgery/conformance`: the operation equals a float64 reference on the tensors of that very call,
or it is refused before anything runs. Writes docs/families.md; exits with 1 if a cell is neither.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch

import surgery as sg
from tests.surgery.conformance import check
from tests.surgery.conformance.families import FAMILIES

DOCS = Path(__file__).parents[1] / "docs"
OPERATIONS = sorted(sg.REGISTRY.values(), key=lambda operation: sg.STAGES.index(operation.stage))
HEAD = """# Families and operations

Written by `python benchmarks/conformance.py` on tiny random models (attention far from uniform, padding on either side);
the list of models is `tests/surgery/conformance/families.py`, what is declared of each family `surgery/anatomy.py`.

- **yes**: equal to a float64 reference on the tensors of that very call, within twice float32's own error; other heads and
  earlier layers bit-identical; something changes. Without a plan every one of these models is bit for bit what it was.
- **idle**: acts as its equation says, and the equation says that nothing changes (a causal mask on a causal model, a shift
  where only distances matter, no padding to be forgotten).
- **no**: refused before anything runs, for a reason that is printed below.
"""


def main() -> int:
    """Runs all checks and writes the matrix; returns the number of cells that are neither right nor refused."""
    torch.set_num_threads(1)
    rows, reasons, wrong = [], {}, 0
    for case in FAMILIES:
        patient = check.Patient(case)
        check.identity(patient)
        for kind in case.kinds:
            title = f"{case}, {kind}" if len(case.kinds) > 1 else str(case)
            cells = [cell(patient, kind, operation.name, reasons) for operation in OPERATIONS]
            wrong += cells.count("WRONG")
            rows.append((title, *cells))
            print(title, *cells, flush=True)
    lines = [HEAD, *table(rows), "", "## Why not", ""]
    lines += [f"- {reason} ({', '.join(dict.fromkeys(where))})" for reason, where in reasons.items()]
    (DOCS / "families.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return wrong


def cell(patient: check.Patient, kind: str, name: str, reasons: dict[str, list[str]]) -> str:
    """What one operation does to one kind of attention of one family."""
    try:
        why = check.verdict(patient, kind, name)
    except AssertionError as error:
        print(error, file=sys.stderr)
        return "WRONG"
    if why is not None:
        reasons.setdefault(why.en, []).append(name)
        return "no"
    return "idle" if check.idle(patient.case, kind, name) else "yes"


def table(rows: list[tuple[str, ...]]) -> list[str]:
    """One Markdown table for each stage: all in one would be too wide to read."""
    lines = []
    for stage in sg.STAGES:
        at = [i for i, operation in enumerate(OPERATIONS) if operation.stage == stage]
        if at:
            lines += [
                "",
                f"## Stage: {stage}",
                "",
                "| family | " + " | ".join(OPERATIONS[i].name for i in at) + " |",
            ]
            lines += ["|---|" + "---|" * len(at)]
            lines += [f"| {row[0]} | " + " | ".join(row[1 + i] for i in at) + " |" for row in rows]
    return lines


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
