"""The first result that a visitor sees, computed beforehand: `python -m ui.default` writes it."""

import json
from pathlib import Path
from typing import Any

from ui import presets, steps
from ui.link import Setting

FILE = Path(__file__).parent / "data" / "default.json"


def setting() -> Setting:
    """What the page starts with."""
    example = presets.EXAMPLES["dog"]
    return Setting(
        text=example.text, other=example.other, steps=steps.from_plan(presets.PRESETS[presets.FIRST][1])
    )


def compute() -> dict[str, Any]:
    """The result of `setting()` on the real model: {"heat": ..., "en": {panel: html}, "zh": ...}."""
    from ui import operating, present
    from ui.pool import Pool

    done = operating.operate(Pool(), setting())
    shown = {lang: present.html(done, lang) for lang in ("en", "zh")}
    return {"heat": present.heat(done.comparison), **shown}


def stored() -> dict[str, Any]:
    """The result that was computed beforehand."""
    return json.loads(FILE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(compute(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(FILE)
