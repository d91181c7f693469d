"""Lists of plans for sweeps: grids of parameters, every head, every layer, every pair of heads, other seeds."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable
from typing import Any

from surgery import theatre
from surgery.operation import Operation, Step
from surgery.operations.ablate_head import AblateHead
from surgery.plan import Plan
from surgery.selection import EVERYWHERE, Selection


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
    return [Plan((operation or AblateHead()).at(layers=layer, heads=head)) for layer, head in _cells(patient)]


def every_layer(patient: Any, operation: Operation | None = None) -> list[Plan]:
    """A plan for every layer: the operation (AblateHead by default) on all its heads."""
    layers = theatre.admit(patient.model).layers
    return [Plan((operation or AblateHead()).at(layers=layer)) for layer in range(layers)]


def every_pair(patient: Any, operation: Operation | None = None) -> list[Plan]:
    """A plan for every two heads: the operation (AblateHead by default) on both, in the order of `every_head`.

    Do two heads stand in for each other? Then both off cost more than the two alone.
    """
    operation = operation or AblateHead()
    return [
        Plan(*(operation.at(layers=layer, heads=head) for layer, head in pair))
        for pair in itertools.combinations(_cells(patient), 2)
    ]


def reseeded(plan: Plan, seed: int) -> Plan:
    """The same plan with another seed in its stochastic operations."""
    return Plan(
        *(
            Step(dataclasses.replace(step.operation, seed=seed), step.selection)  # type: ignore[call-arg]
            if step.operation.stochastic
            else step
            for step in plan
        )
    )


def _cells(patient: Any) -> list[tuple[int, int]]:
    anatomy = theatre.admit(patient.model)
    return list(itertools.product(range(anatomy.layers), range(anatomy.heads)))
