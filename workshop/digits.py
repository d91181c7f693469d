"""Numbers as people write them: few digits, a minus sign that is one."""

import math
import string
from typing import Any

TINY = 1e-3


def minus(text: str) -> str:
    """A printed number with a minus sign for a leading hyphen, and none before a zero: "−0.35", "0"."""
    if not text.startswith("-"):
        return text
    return "−" + text[1:] if any(c in "123456789" for c in text) or text == "-inf" else text[1:]


def small(value: float) -> str:
    """Two digits that count: 1.3, 0.78, 0.034; below 0.001 as 1.2e-07."""
    if value == 0:
        return "0"
    if abs(value) < TINY:
        return minus(f"{value:.1e}")
    return minus(f"{value:.{max(0, 1 - math.floor(math.log10(abs(value))))}f}")


class Template(string.Formatter):
    """`str.format` that writes numbers with a minus sign."""

    def format_field(self, value: Any, format_spec: str) -> str:
        text = super().format_field(value, format_spec)
        return minus(text) if isinstance(value, int | float) else text
