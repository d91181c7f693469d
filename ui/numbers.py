"""Numbers as people read them, never nan and never a bare inf."""

import math

from ui.texts import t

UNDEFINED = "–"


def number(value: float | None, lang: str, digits: int = 4) -> str:
    """A number with so many decimals; what is not 0 but rounds to it is shown as less than the last digit."""
    if value is None or math.isnan(value):
        return UNDEFINED
    if math.isinf(value):
        return t("numbers.infinite", lang) if value > 0 else "−" + t("numbers.infinite", lang)
    text = f"{abs(value):.{digits}f}"
    if float(text) == 0:
        return text if value == 0 else f"<{10**-digits:.{digits}f}"
    return ("−" if value < 0 else "") + text


def percent(share: float | None) -> str:
    """A share of 1 in per cent; what is not 0 but rounds to it is "<1%"."""
    if share is None or math.isnan(share):
        return UNDEFINED
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"
