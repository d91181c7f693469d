"""Numbers in the texts come from measured.json, and measured.json from `python -m workshop measure`."""

import json
import re

import pytest

import workshop
from tests.workshop.test_exercises import texts
from workshop import measuring
from workshop.known import FILE, known, show

ENTRIES = json.loads(FILE.read_text(encoding="utf-8"))


def test_every_number_that_a_text_asks_for_was_measured():
    asked = {
        name
        for one in workshop.EXERCISES
        for words in texts(one)
        for name in re.findall(r"known\[(\w+)\]", words.en + words.zh)
    }
    assert len(asked) > 20 and asked <= set(known())


def test_every_entry_has_a_spread_over_three_seeds_or_does_not_vary():
    for name, entry in ENTRIES.items():
        assert entry["part"] in measuring.PARTS
        assert (entry["n"] >= 3 and entry["sd"] is not None) or (entry["n"] == 1 and entry["sd"] is None), (
            name
        )


@pytest.mark.parametrize("part", measuring.CHEAP)
def test_what_can_be_measured_at_once_still_is_what_the_texts_say(part):
    fresh = {entry.name: entry.plain(part) for entry in measuring.PARTS[part]()}
    kept = {name: entry for name, entry in ENTRIES.items() if entry["part"] == part}
    assert {n: show(e) for n, e in fresh.items()} == {n: show(e) for n, e in kept.items()}


def test_a_training_part_measures_what_it_says():
    """One seed of one row, trained again with few steps: the functions run and mean what their names say."""
    run = measuring.trained("encoder", 0, 30)
    assert run.step == 30 and set(measuring.judged(run)) >= {"mean", "role"}
    assert 0 <= measuring.judged(run, pad_to=64)["mean"] <= 100
    few = measuring.FewSentences("encoder")
    assert len(few.training.questions) == ENTRIES["dropout_sentences"]["value"]
    first = measuring.trained("first", 0, 5, positions="rotary")
    assert 0 <= measuring._slid(first) <= 100


def test_parts_are_kept_one_by_one(tmp_path, monkeypatch):
    path = tmp_path / "measured.json"
    path.write_text(json.dumps(ENTRIES), encoding="utf-8")
    for module in (measuring, workshop.known):
        monkeypatch.setattr(module, "FILE", path)
    known.cache_clear()
    try:
        measuring.run(["diagonal"])
        again = json.loads(path.read_text(encoding="utf-8"))
        assert again.keys() == ENTRIES.keys()
        assert [e for n, e in again.items() if e["part"] != "diagonal"] == [
            e for n, e in ENTRIES.items() if e["part"] != "diagonal"
        ]
    finally:
        known.cache_clear()


def test_no_text_carries_a_measured_percentage_of_its_own():
    """Numbers that could go stale: 'NN.N %' in an explanation must come from a placeholder."""
    for one in workshop.EXERCISES:
        for text in one.explanation:
            assert not re.search(r"\d+\.\d+ ?%", text), text
