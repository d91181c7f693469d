"""The numbers of `measured.json`, which `python -m workshop measure` makes, as the texts print them."""

import functools
import json
from pathlib import Path

from workshop.digits import minus

FILE = Path(__file__).parent / "measured.json"


@functools.cache
def known() -> dict[str, str]:
    """Every measured number by name: "80 ± 13" (mean ± standard deviation), or one number where nothing varies."""
    if not FILE.exists():
        return {}
    return {name: show(entry) for name, entry in json.loads(FILE.read_text(encoding="utf-8")).items()}


def show(entry: dict) -> str:
    """An entry {"value", "sd" or None, "digits"} as it is printed."""
    digits = entry["digits"]
    value = minus(f"{entry['value']:.{digits}f}")
    return value if entry.get("sd") is None else f"{value} ± {entry['sd']:.{digits}f}"
