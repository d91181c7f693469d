import pytest
import torch
from transformers import RobertaConfig, RobertaModel

import surgery as sg
from tests import reference
from tests.surgery import bench

PLACES = pytest.mark.parametrize("kind", ["bert", "learned", "sinusoidal", "rotary"])


@PLACES
def test_every_real_token_stands_at_the_first_position(kind):
    bench.moves_to(bench.placed(kind), sg.SamePosition(), reference.POSITIONS["same_position"])


@PLACES
def test_permuted_tokens_give_permuted_outputs(kind):
    specimen = bench.placed(kind)
    specimen.inputs = bench.batch(padded=False)
    order = torch.tensor([4, 0, 9, 10, 2, 7, 1, 3, 8, 6, 5])
    mixed = {**specimen.inputs, "input_ids": specimen.inputs["input_ids"][:, order]}
    straight, permuted = specimen.run(sg.SamePosition()), specimen.run(sg.SamePosition(), inputs=mixed)
    assert (straight.hidden[-1][:, order] - permuted.hidden[-1]).abs().max() < 2e-5


def test_the_first_position_is_that_of_a_real_token():
    """RoBERTa's padding has a position of its own, before all others."""
    with bench.seeded():
        config = RobertaConfig(
            vocab_size=53, hidden_size=35, num_hidden_layers=3, num_attention_heads=5, intermediate_size=31,
            max_position_embeddings=23, pad_token_id=1, type_vocab_size=1,
        )  # fmt: skip
        model = RobertaModel(config).eval()
    inputs = bench.batch()
    inputs["input_ids"][1, bench.SHORT :] = 1
    at = torch.where(inputs["attention_mask"].bool(), 2, 1)
    with torch.no_grad():
        expected = model(**inputs, position_ids=at).last_hidden_state
        with sg.operate(model, sg.SamePosition()):
            assert torch.equal(model(**inputs).last_hidden_state, expected)


def test_a_text_of_one_token_is_not_changed():
    specimen = bench.placed("bert")
    specimen.inputs = {name: x[:, :1] for name, x in specimen.inputs.items()}
    assert bench.same(specimen.run(sg.SamePosition()), specimen.run())


@PLACES
def test_other_rows_keep_their_positions(kind):
    bench.leaves_other_rows_alone(bench.placed(kind), sg.SamePosition())


def test_a_part_of_the_model_is_refused():
    bench.refuses_parts(sg.SamePosition())
