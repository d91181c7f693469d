"""What the button and the API do: the same function, from plain values to a comparison."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from bilingual import SurgeryError, Words
from ui import steps as steps_
from ui import zero
from ui.limits import Limits
from ui.link import Setting
from ui.pool import Pool


class PadError(SurgeryError):
    """Padding that this page does not show."""


@dataclass(frozen=True)
class Operated:
    """A comparison, the setting that made it, and the page's limit on tokens if that cut a text."""

    comparison: Any
    setting: Setting
    max_tokens: int | None = None

    @property
    def options(self) -> dict[str, Any]:
        """What `compare` was given besides patient, text and plan, as far as it matters to who repeats the run."""
        return {
            "other": self.setting.other if self.setting.other.strip() else None,
            "pad_to": self.setting.pad_to or None,
            "literal": self.setting.literal,
            "max_tokens": self.max_tokens,
        }


def operate(pool: Pool, setting: Setting) -> Operated:
    """Loads the model if need be, runs the plan, measures.

    Raises LimitError, LoadError, NotAllowedError, TextError, PadError, OperationError, SelectionError or UnsupportedError.
    """
    from surgery import compare

    check_size(pool.limits, (setting.text, setting.other), len(setting.steps))
    with pool.use(setting.model) as patient:
        plan = steps_.to_plan(setting.steps)
        limit = most_tokens(patient, pool.limits)
        readings = _readings(patient, setting, limit)
        if setting.pad_to:
            check_pad(setting.pad_to, limit, max(len(reading.ids) for reading in readings))
        cut = limit < patient.max_tokens and any(reading.total > limit for reading in readings)
        done = Operated(None, setting, limit if cut else None)
        options = done.options | {"max_tokens": limit}
        if pool.elsewhere is None:
            comparison = compare(patient, setting.text, plan, **options)
        else:
            comparison = zero.whole(pool.elsewhere(setting.model, setting.text, plan.to_dict(), options))
    return Operated(comparison, setting, done.max_tokens)


def check_size(limits: Limits, texts: Iterable[str], steps: int) -> None:
    """Raises LimitError for a text or a plan that is too long."""
    for text in texts:
        limits.check("text_characters", len(text), Words("characters in a text", "文本的字符数"), "text")
    limits.check("plan_steps", steps, Words("operations in a plan", "计划的操作数"), "plan")


def most_tokens(patient: Any, limits: Limits) -> int:
    """How many tokens of a text this page reads with a model."""
    from surgery import admit
    from surgery.reading import SHORTEST

    anatomy = admit(patient.model)
    room = math.isqrt(limits.map_cells // (anatomy.layers * anatomy.heads))
    return max(SHORTEST, min(limits.tokens, patient.max_tokens, room))


def check_pad(pad_to: Any, most: int, least: int = 1) -> int:
    """The number of tokens to pad to, 0 for none. Raises PadError naming the range."""
    if type(pad_to) is int and (pad_to == 0 or least <= pad_to <= most):
        return pad_to
    value = "" if pad_to is None else f" {pad_to!r:.60}"
    raise PadError(
        f"Padding to{value or ' nothing'} is not possible here: give 0 (no padding) or a whole number from {least} to {most}.",
        f"此处无法填充到{value or '空值'}：请给 0（不填充）或 {least} 到 {most} 之间的整数。",
    )


def tokens(pool: Pool, setting: Setting) -> int | None:
    """How many tokens a run would have, padding included; None while that cannot be told."""
    if not pool.ready(setting.model):
        return None
    try:
        patient = pool.get(setting.model)
        check_size(pool.limits, (setting.text, setting.other), 0)
        readings = _readings(patient, setting, most_tokens(patient, pool.limits))
    except SurgeryError:
        return None
    return max(setting.pad_to, *(len(reading.ids) for reading in readings))


def _readings(patient: Any, setting: Setting, limit: int) -> list[Any]:
    from surgery.reading import read

    texts = [setting.text, *([setting.other] if setting.other.strip() else [])]
    return [read(patient, text, literal=setting.literal, max_tokens=limit) for text in texts]
