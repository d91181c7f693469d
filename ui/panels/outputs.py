from __future__ import annotations

from typing import TYPE_CHECKING

from ui.markup import render

if TYPE_CHECKING:
    from surgery.comparison import Comparison

SHOWN = 5  # answers before "show all"


def outputs(comparison: Comparison, lang: str, *, still: bool = False) -> str:
    """The answers before and after, how far the vectors turned, the similarity of two texts. still: without buttons."""
    both = zip(
        comparison.output["sites"],
        comparison.baseline.predictions,
        comparison.operated.predictions,
        strict=True,
    )
    kept = zip(comparison.tokens, comparison.output["token_cosines"], strict=False)
    return render(
        "outputs",
        lang,
        sites=[_site(number, *site) for number, site in enumerate(both)],
        shown=SHOWN,
        mask=comparison.mask_token,
        kind=comparison.kind,
        output=comparison.output,
        strip=list(kept),
        similarity=comparison.similarity,
        still=still,
    )


def _site(number: int, site: dict, before: list, after: list) -> dict:
    """One mask, next token or class: rows of (rank, answer before, answer after), each with what became of it."""
    places = {label: rank for rank, (label, _) in enumerate(before, 1)}
    pairs = zip(before, after, strict=True)
    rows = [(rank, old, (*new, _move(places.get(new[0]), rank))) for rank, (old, new) in enumerate(pairs, 1)]
    return {**site, "number": number, "rows": rows}


def _move(was: int | None, now: int) -> str:
    """How far an answer rose or fell: "↑2", "↓1", "" where it stayed, "new" where it was not among the first."""
    if was is None:
        return "new"
    return "" if was == now else f"{'↑' if now < was else '↓'}{abs(was - now)}"
