import math

import pytest
import torch
from transformers import RobertaConfig, RobertaModel

import surgery as sg
from tests.surgery import bench

TABLES = pytest.mark.parametrize("kind", ["bert", "learned"])


@pytest.mark.parametrize("kind", ["bert", "learned", "sinusoidal", "rotary"])
@pytest.mark.parametrize("offset", [1, 12])
def test_each_real_token_stands_so_much_later(kind, offset):
    bench.moves_to(bench.placed(kind), sg.ShiftPositions(offset), lambda n: [i + offset for i in range(n)])


def test_an_earlier_place_is_reached_after_a_later_one():
    specimen = bench.placed("bert")
    assert bench.same(specimen.run(sg.ShiftPositions(9), sg.ShiftPositions(-9)), specimen.run())


@pytest.mark.parametrize("kind", ["bert", "learned", "sinusoidal", "rotary"])
def test_zero_is_neutral(kind):
    bench.changes_nothing(bench.placed(kind), sg.ShiftPositions(0))


@pytest.mark.parametrize("offset", [1000, -3])
def test_a_rotation_knows_only_distances(offset):
    specimen = bench.placed("rotary")
    specimen.inputs = bench.batch(padded=False)
    moved, still = specimen.run(sg.ShiftPositions(offset)), specimen.run()
    assert (moved.hidden[-1] - still.hidden[-1]).abs().max() < 2e-4
    waves = bench.placed("sinusoidal")
    assert (waves.run(sg.ShiftPositions(offset)).hidden[-1] - waves.run().hidden[-1]).abs().max() > 0.01


@TABLES
def test_the_end_of_the_table_is_refused(kind):
    specimen = bench.placed(kind)
    specimen.run(sg.ShiftPositions(bench.ROOM - bench.TOKENS))  # the last place that there is
    for offset, beyond in ((bench.ROOM - bench.TOKENS + 1, bench.ROOM), (-1, -1)):
        operated = lambda offset=offset: specimen.run(sg.ShiftPositions(offset))  # noqa: E731
        bench.refuses(operated, f"Position {beyond} ", "0-22", error=sg.UnsupportedError)
    assert bench.same(specimen.run(), bench.placed(kind).run())


def test_roberta_counts_from_the_row_after_its_padding():
    with bench.seeded():
        config = RobertaConfig(
            vocab_size=53, hidden_size=35, num_hidden_layers=3, num_attention_heads=5, intermediate_size=31,
            max_position_embeddings=23, pad_token_id=1, type_vocab_size=1,
        )  # fmt: skip
        model = RobertaModel(config).eval()
    inputs = bench.batch(padded=False)
    at = torch.arange(2, 13)[None].expand(2, -1)
    with torch.no_grad():
        expected = model(**inputs, position_ids=at + 10).last_hidden_state
        with sg.operate(model, sg.ShiftPositions(10)):  # to row 22, the last one
            assert torch.equal(model(**inputs).last_hidden_state, expected)
        padded = {**bench.batch(), "input_ids": inputs["input_ids"].clone()}
        padded["input_ids"][1, bench.SHORT :] = (
            1  # padding keeps its own row of the table, which no token may take
        )
        with sg.operate(model, sg.ShiftPositions(10)):
            found = model(**padded).last_hidden_state[0]
        assert torch.equal(found, expected[0])
        for offset, beyond in ((-1, 1), (11, 23)):
            with sg.operate(model, sg.ShiftPositions(offset)):
                bench.refuses(
                    lambda: model(**inputs), f"Position {beyond} ", "2-22", error=sg.UnsupportedError
                )
        with sg.operate(model, sg.SamePosition()):
            same = model(**inputs).last_hidden_state
        assert torch.equal(same, model(**inputs, position_ids=torch.full_like(at, 2)).last_hidden_state)


def test_other_rows_keep_their_positions():
    bench.leaves_other_rows_alone(bench.placed("bert"), sg.ShiftPositions(5))


def test_a_part_of_the_model_is_refused():
    bench.refuses_parts(sg.ShiftPositions(2))


@pytest.mark.parametrize("offset", [1.5, math.nan, "3", None, True, 10**6 + 1])
def test_impossible_offsets_are_refused(offset):
    bench.refuses(
        lambda: sg.ShiftPositions(offset), f"offset = {offset!r}", "whole number", error=sg.OperationError
    )
