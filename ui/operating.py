"""What the button and the API do: the same function, from plain values to a comparison."""

import math
from dataclasses import dataclass
from typing import Any

from ui import steps as steps_
from ui.link import Setting
from ui.pool import Pool

CELLS = 1_500_000  # attention weights sent to the browser at most; sets how many tokens are read
TOKENS = 128


@dataclass(frozen=True)
class Operated:
    """A comparison and the setting that made it."""

    comparison: Any
    setting: Setting


def operate(pool: Pool, setting: Setting) -> Operated:
    """Loads the model if need be, runs the plan, measures.

    Raises LoadError, NotAllowedError, TextError, OperationError, SelectionError or UnsupportedError.
    """
    from surgery import admit, compare

    plan = steps_.to_plan(setting.steps)
    patient = pool.get(setting.model)
    anatomy = admit(patient.model)
    limit = min(TOKENS, patient.max_tokens, math.isqrt(CELLS // (anatomy.layers * anatomy.heads)))
    comparison = compare(
        patient,
        setting.text,
        plan,
        other=setting.other if setting.other.strip() else None,
        pad_to=setting.pad_to or None,
        literal=setting.literal,
        max_tokens=limit,
    )
    return Operated(comparison, setting)
