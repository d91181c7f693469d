"""The claims: each runs, its verdict follows from its numbers, and the page says what the run found."""

import time
from pathlib import Path

import pytest

from bilingual import Words
from workshop import claims
from workshop.claims.claim import DEPENDS, HOLDS, VERDICTS, WRONG, Claim, Found, Measured, exact

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {
    lang: (DOCS / name).read_text(encoding="utf-8")
    for lang, name in (("en", "claims.md"), ("zh", "claims.zh.md"))
}
every = pytest.mark.parametrize("name", list(claims.REGISTRY))


@every
def test_it_runs_soon_and_the_page_says_what_it_found(name):
    started = time.process_time()
    (found,) = claims.run([name])
    assert time.process_time() - started < 5
    assert found.verdict in found.claim.said, (found.verdict, found.numbers)
    if found.claim.timed:
        return
    for lang, page in PAGES.items():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}`"))
        assert VERDICTS[found.verdict].say(lang) in row
        assert found.words().say(lang).replace("|", "\\|") in row


def test_every_claim_is_on_both_pages_once_and_in_order():
    for page in PAGES.values():
        named = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
        assert named == list(claims.REGISTRY) and len(named) >= 25


def test_claims_are_said_in_both_languages():
    for one in claims.REGISTRY.values():
        assert one.claim.en and one.claim.zh and set(one.said) <= {HOLDS, DEPENDS, WRONG}
        assert all(words.en and words.zh for words in one.said.values())


def test_a_verdict_that_nobody_foresaw_is_said_with_its_numbers():
    one = Claim("x", Words("x", "x"), lambda: (HOLDS, {}), {WRONG: Words("no", "否")})
    words = Found(one, HOLDS, exact(speed=2.5)).words()
    assert "speed = 2.5" in words.en and "speed" in words.zh


@pytest.mark.parametrize(
    ("value", "spec", "text"),
    [
        (Measured(1.234, 0.1), ".1f", "1.2 ± 0.1"),
        (Measured(1.234, 0.001), ".1f", "1.2"),
        (Measured(1e-7, 2e-8), ".0e", "1e-07 ± 2e-08"),
        (Measured(1050624.0), ",.0f", "1,050,624"),
        (Measured(float("nan")), ".0f", "NaN"),
        (Measured(3e-7, 1e-7), "r", "< 1e-05"),
        (Measured(3e-3, 1e-7), "r", "3e-03"),
    ],
)
def test_spreads_are_shown_where_they_can_be_seen(value, spec, text):
    assert format(value, spec) == text


def test_verdicts_follow_the_numbers(monkeypatch):
    """With other numbers the same claim is judged otherwise."""
    from workshop.claims import heads

    monkeypatch.setattr(heads, "kept", lambda *names: {name: Measured(-0.95, 0.01) for name in names})
    assert claims.REGISTRY["sharp-heads-matter"].check()[0] == HOLDS
    monkeypatch.setattr(heads, "kept", lambda *names: {name: Measured(0.0, 0.01) for name in names})
    assert claims.REGISTRY["sharp-heads-matter"].check()[0] == WRONG
