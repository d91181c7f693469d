"""Writing without and with surgery: what a decoder says step by step, under the whole plan at each."""

import pytest
import torch

import surgery as sg
from models import load
from models.tasks.characters import obeys
from tests.surgery.patients import byte_tokenizer, patient


@pytest.fixture(scope="module")
def writer():
    return load("characters")


def test_without_a_plan_both_runs_write_the_same(writer):
    found = sg.generate(writer, "the ", tokens=30, temperature=1.0, seed=3)
    assert found.baseline_tokens == found.operated_tokens and found.parted is None
    assert len(found.baseline_tokens) == 30


def test_the_most_probable_token_is_written_at_each_step(writer):
    plan = sg.Plan(sg.RemovePositions())
    found = sg.generate(writer, "the ", plan, tokens=12)
    written = "the "
    for token in found.operated_tokens:
        assert token == sg.compare(writer, written, plan, capture=None).operated.predictions[0][0][0]
        written += token.replace("␣", " ")
    assert found.operated == written[4:] and found.baseline != found.operated
    assert found.baseline_tokens[: found.parted] == found.operated_tokens[: found.parted]
    assert found.baseline_tokens[found.parted] != found.operated_tokens[found.parted]


def test_surgery_on_a_writer_costs_it_its_grammar(writer):
    """What is written by the intact model is in the language, what is written without positions is not."""
    lines = sg.generate(writer, "the ", sg.RemovePositions(), tokens=90, temperature=1.0)
    intact, cut = (("the " + text).split("\n")[0] + "\n" for text in (lines.baseline, lines.operated))
    assert obeys(intact.strip()) and not obeys(cut.strip())


def test_draws_follow_the_softmax():
    decoder = patient("GPT2LMHeadModel", "causal_lm")
    text = "the cat saw"
    (answers,) = sg.compare(decoder, text, capture=None).baseline.predictions
    wanted, draws = dict(answers), 300
    got = [
        sg.generate(decoder, text, tokens=1, temperature=1.0, seed=s).baseline_tokens[0] for s in range(draws)
    ]
    top, p = answers[0]
    share = sum(token == top for token in got) / draws
    assert abs(share - wanted[top]) < 4 * (p * (1 - p) / draws) ** 0.5 + 1e-9


@pytest.mark.parametrize(
    ("options", "said"),
    [({"tokens": 0}, "tokens"), ({"tokens": 1.5}, "tokens"), ({"temperature": -1}, "temperature"), ({"temperature": float("nan")}, "temperature"), ({"seed": -1}, "seed"), ({"seed": "a"}, "seed")],
)  # fmt: skip
def test_impossible_options_are_refused(writer, options, said):
    with pytest.raises(sg.WritingError, match=said):
        sg.generate(writer, "the ", **options)


def test_only_decoders_write_and_only_where_there_is_room(writer, minilm):
    with pytest.raises(sg.WritingError, match="characters"):
        sg.generate(minilm, "the dog")
    with pytest.raises(sg.WritingError, match="shorten"):
        sg.generate(writer, "the dog sees the cat " * 60)
    with pytest.raises(sg.SelectionError):
        sg.generate(writer, "the ", sg.CausalMask().at(layers=99))
    assert torch.is_grad_enabled()


def test_tokens_are_written_as_people_read_them_and_the_limits_are_as_said():
    tokenizer = byte_tokenizer()
    decoder = patient("GPT2LMHeadModel", "causal_lm", tokenizer)
    text = ("the cat", "the cat")
    found = sg.generate(decoder, text, tokens=9, temperature=10_000, seed=2**31 - 1)
    assert found.text == "the cat the cat"
    ids = [label for label in found.baseline_tokens if label.startswith("Ġ")]
    assert len(found.baseline_tokens) == 9 and not ids
    again = sg.generate(decoder, text, tokens=4, temperature=10_000, seed=2**31 - 1)
    assert again.baseline_tokens == found.baseline_tokens[:4]


def test_a_vocabulary_of_a_million_needs_no_memory_for_steps_to_come(writer, monkeypatch):
    sizes = []
    draw = torch.rand
    monkeypatch.setattr(torch, "rand", lambda *size, **how: sizes.append(size) or draw(*size, **how))
    sg.generate(writer, "the ", tokens=3, temperature=1.0)
    assert sizes == [(writer.vocab_size,)] * 6
