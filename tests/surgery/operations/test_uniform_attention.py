import torch

import surgery as sg
from tests.surgery import bench


def test_each_permitted_key_gets_the_same_weight(specimen):
    bench.matches(specimen, sg.UniformAttention(), lambda layer, allowed: {"uniform": True, "scaling": 0.0})


def test_a_mask_decides_among_how_many_keys(tiny):
    weights = tiny.run(sg.UniformAttention(), sg.LocalMask(1)).layers[0].site.weights
    assert (
        torch.allclose(weights[0, :, 5, 4:7], torch.tensor(1 / 3))
        and weights[0, :, 5].count_nonzero() == 3 * 5
    )
    assert torch.equal(weights[0, :, 0, :2], torch.full((5, 2), 0.5))


def test_no_temperature_brings_the_choice_back(tiny):
    alone = tiny.run(sg.UniformAttention())
    assert bench.same(tiny.run(sg.UniformAttention(), sg.Temperature(1e-4)), alone)
    assert bench.same(tiny.run(sg.Temperature(1e-4), sg.UniformAttention()), alone)
    assert bench.same(tiny.run(sg.DropScaling(), sg.UniformAttention(), sg.DropScaling()), alone)


def test_others_are_left_alone(specimen):
    bench.leaves_others_alone(specimen, sg.UniformAttention())
    bench.leaves_other_rows_alone(specimen, sg.UniformAttention())


def test_parameters_are_refused():
    bench.refuses(
        lambda: sg.Plan.from_words(["uniform_attention=3"]), "no parameter '3'", error=sg.OperationError
    )
