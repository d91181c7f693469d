from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ui.markup import render
from ui.numbers import number, percent
from ui.texts import t

if TYPE_CHECKING:
    from surgery.comparison import Comparison

MOST = 3  # heads to name
LONG = 60  # characters of the second text


def verdict(comparison: Comparison, lang: str, *, still: bool = False) -> str:
    """The sentence, the numbers that matter, and what a reader should mind. still: without buttons."""
    return render(
        "verdict",
        lang,
        sentence=comparison.verdict(lang),
        model=comparison.model,
        token_count=comparison.reading.kept,
        attention=_attention(comparison),
        result=_answer(comparison, lang) or _vectors(comparison, lang),
        similarity=_similarity(comparison, lang),
        caveats=[_led(words.say(lang)) for words in comparison.caveats],
        notices=[_led(notice) for notice in comparison.notices(lang)[len(comparison.caveats) :]],
        still=still,
    )


def _attention(comparison: Comparison) -> dict | None:
    """How much moved and where, or None if attention was not captured."""
    heads = comparison.heads
    place = comparison.top_head
    if place is None or heads["moved"].isna().all():
        return None
    changed = heads[heads["js_divergence"] > 0].nlargest(MOST, "js_divergence")
    return {
        "moved": heads["moved"].mean(),
        "most": comparison.head(*place)["moved"],
        "place": place,
        "changed": [(int(row["layer"]), int(row["head"])) for _, row in changed.iterrows()],
    }


def _answer(comparison: Comparison, lang: str) -> dict | None:
    """The first answer before and after, or None for a model or text without any."""
    sites = comparison.output["sites"]
    if not sites:
        return None
    label = {"class": "verdict.answer_class", "next": "verdict.answer_next"}.get(
        sites[0]["kind"], "verdict.answer"
    )
    before, after = comparison.baseline.predictions[0][0], comparison.operated.predictions[0][0]
    changed = sum(site["top1_changed"] for site in sites)
    more = len(sites) > 1
    return {
        "label": t(label, lang),
        "before": before[0],
        "after": after[0],
        "probabilities": f"{percent(before[1])} → {percent(after[1])}",
        "under": t("verdict.answers_changed", lang, changed=changed, count=len(sites)) if more else "",
    }


def _vectors(comparison: Comparison, lang: str) -> dict:
    output = comparison.output
    return {
        "label": t("verdict.sentence", lang),
        "value": number(output["sentence_cosine"], lang, 3),
        "under": t("verdict.tokens", lang, cosine=number(output["token_cosine"], lang, 3)),
    }


def _similarity(comparison: Comparison, lang: str) -> dict | None:
    if comparison.similarity is None:
        return None
    found = {name: number(comparison.similarity[name], lang, 3) for name in ("baseline", "operated")}
    other = str(comparison.other)
    return found | {"other": other if len(other) <= LONG else other[: LONG - 1] + "…"}


def _led(sentence: str) -> tuple[str, str]:
    """A sentence in two parts: what leads it up to its first colon, and the rest."""
    found = re.match("([^:：]{1,60}[:：])(.+)", sentence, re.DOTALL)
    return (found[1], found[2]) if found else (sentence, "")
