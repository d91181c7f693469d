import pytest
import torch

import surgery as sg
from tests import reference
from tests.reference import picture
from tests.surgery import bench

FUTURE_CLOSED = picture(
    "#..........",
    "##.........",
    "###........",
    "####.......",
    "#####......",
    "######.....",
    "#######....",
    "########...",
    "#########..",
    "##########.",
    "###########",
)


def test_a_query_sees_itself_and_what_came_before(specimen):
    assert (reference.causal(specimen.tokens) == FUTURE_CLOSED).all()
    bench.matches_mask(specimen, sg.CausalMask(), FUTURE_CLOSED)


def test_equal_scores_become_one_over_i_plus_one(tiny):
    weights = tiny.run(sg.UniformAttention(), sg.CausalMask()).layers[0].site.weights[0, 0]
    assert torch.allclose(weights, torch.tensor(FUTURE_CLOSED).float() / torch.arange(1, 12)[:, None])


def test_what_follows_cannot_be_seen_in_the_result(tiny):
    changed = {**tiny.inputs, "input_ids": tiny.inputs["input_ids"].clone()}
    changed["input_ids"][:, 6] = 51
    before, after = tiny.run(sg.CausalMask()), tiny.run(sg.CausalMask(), inputs=changed)
    assert torch.equal(before.hidden[-1][:, :6], after.hidden[-1][:, :6])
    assert not torch.equal(before.hidden[-1][:, 6], after.hidden[-1][:, 6])


def test_it_changes_nothing_where_the_model_is_causal():
    specimen = bench.SPECIMENS["encoder-causal"]()
    assert bench.same(specimen.run(sg.CausalMask()), specimen.run())


@pytest.mark.parametrize("name", ["bert", "bert-eager", "encoder"])
def test_others_are_left_alone(name):
    specimen = bench.SPECIMENS[name]()
    bench.leaves_others_alone(specimen, sg.CausalMask())
    bench.leaves_other_rows_alone(specimen, sg.CausalMask())


def test_parameters_are_refused():
    bench.refuses(
        lambda: sg.Plan.from_words(["causal_mask=1"]), "CausalMask", "none", error=sg.OperationError
    )
