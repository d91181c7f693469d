"""Every family under every operation; `python benchmarks/conformance.py` prints what is found here as a matrix."""

import functools
from pathlib import Path

import pytest

import surgery as sg
from tests.surgery.conformance import check
from tests.surgery.conformance.families import FAMILIES

CELLS = [
    pytest.param(case, kind, id=f"{case}, {kind}" if len(case.kinds) > 1 else str(case))
    for case in FAMILIES
    for kind in case.kinds
]


@functools.cache
def patient(case) -> check.Patient:
    return check.Patient(case)


@pytest.mark.parametrize("case", FAMILIES, ids=str)
def test_without_a_plan_nothing_changes(case):
    check.identity(patient(case))


@pytest.mark.parametrize("case, kind", CELLS)
def test_each_operation_is_the_references_or_refused(case, kind):
    for name in sg.REGISTRY:
        check.verdict(patient(case), kind, name)


def test_the_matrix_in_the_docs_is_of_these_families_and_operations():
    """`python benchmarks/conformance.py` writes it."""
    text = (Path(__file__).parents[3] / "docs" / "families.md").read_text(encoding="utf-8")
    for case, kind in [cell.values for cell in CELLS]:
        title = f"{case}, {kind}" if len(case.kinds) > 1 else str(case)
        assert text.count(f"| {title} |") == len({operation.stage for operation in sg.REGISTRY.values()}), (
            title
        )
    assert all(f" {name} |" in text for name in sg.REGISTRY) and "WRONG" not in text
