"""A plan in a training loop: opened anew for every step, and drawing anew at every step."""

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import nn

from surgery import theatre
from surgery.operation import Operation, Step
from surgery.plan import Plan


@dataclass(frozen=True, init=False)
class EachStep:
    """`EachStep(plan)(model, step)` is the scope of one step: `with` it, run forward, backward and evaluation.

    Random operations draw from their seed and the step, so that a run which was interrupted goes on as if it had not been. It
    can be pickled and sent to another process; it is what `models.training.Training` takes as `surgery`.
    """

    plan: Plan

    def __init__(self, *parts: Plan | Operation | Step):
        object.__setattr__(self, "plan", Plan(*parts))

    def __call__(self, model: nn.Module, step: int, **options: Any) -> AbstractContextManager:
        """The scope of one step; the options are those of `theatre.Scope`."""
        return theatre.run(model, [Plan(*(_drawn(part, step) for part in self.plan))], **options)


def _drawn(part: Step, step: int) -> Step:
    if not part.operation.stochastic:
        return part
    state = np.random.SeedSequence([part.operation.values["seed"], step]).generate_state(1)[0]
    seeded = replace(part.operation, seed=int(state >> 1))  # type: ignore[call-arg]
    return replace(part, operation=seeded)
