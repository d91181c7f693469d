from __future__ import annotations

from typing import TYPE_CHECKING

from ui.markup import render

if TYPE_CHECKING:
    from surgery import Written


def written(found: Written, seed: int, lang: str) -> str:
    """What both runs wrote, marked from where they part."""
    at = found.parted
    runs = {"baseline": found.baseline_tokens, "operated": found.operated_tokens}
    return render(
        "written",
        lang,
        text=found.text,
        runs={name: (tokens[:at], () if at is None else tokens[at:]) for name, tokens in runs.items()},
        parted=at,
        draw=seed + 1,
    )
