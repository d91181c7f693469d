import torch

import surgery as sg
from tests import reference
from tests.surgery import bench


def test_each_token_sees_itself_alone(specimen):
    bench.matches_mask(specimen, sg.IdentityAttention(), reference.self_alone(specimen.tokens))


def test_the_output_is_the_tokens_own_value(tiny):
    for watched in (True, False):
        layer = tiny.run(sg.IdentityAttention(), watched=watched).layers[0]
        assert torch.equal(layer.output[0], torch.tensor(layer.v[0]))


def test_no_information_moves_between_tokens(tiny):
    changed = {**tiny.inputs, "input_ids": tiny.inputs["input_ids"].clone()}
    changed["input_ids"][:, 3] = 52
    before, after = tiny.run(sg.IdentityAttention()), tiny.run(sg.IdentityAttention(), inputs=changed)
    moved = (before.hidden[-1] != after.hidden[-1]).any(-1)
    assert moved[0].nonzero().flatten().tolist() == [3]


def test_others_are_left_alone(specimen):
    bench.leaves_others_alone(specimen, sg.IdentityAttention())
    bench.leaves_other_rows_alone(specimen, sg.IdentityAttention())


def test_parameters_are_refused():
    bench.refuses(lambda: sg.Plan.from_words(["identity_attention=1"]), "none", error=sg.OperationError)
