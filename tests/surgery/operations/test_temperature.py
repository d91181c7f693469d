import math

import numpy as np
import pytest
import torch

import surgery as sg
from tests import reference
from tests.surgery import bench


@pytest.mark.parametrize("t", [0.31, 2.0, 17.0])
def test_scores_are_divided_by_the_temperature(specimen, t):
    bench.matches(specimen, sg.Temperature(t), lambda layer, allowed: {"temperature": t})


def test_a_row_becomes_its_root_renormalised(tiny):
    flat, sharp = tiny.run(), tiny.run(sg.Temperature(3.0))
    expected = reference.sharpened(flat.layers[0].site.weights.numpy(), 3.0)
    assert np.abs(sharp.layers[0].site.weights.numpy() - expected).max() < 2e-5


def test_temperatures_multiply(tiny):
    twice, once = tiny.run(sg.Temperature(2.0), sg.Temperature(1.5)), tiny.run(sg.Temperature(3.0))
    assert torch.allclose(twice.hidden[-1], once.hidden[-1], atol=1e-5)


def test_one_is_neutral(specimen):
    bench.changes_nothing(specimen, sg.Temperature(1.0))


def test_the_lowest_temperature_picks_the_largest_score(specimen):
    for layer in specimen.run(sg.Temperature(1e-4)).layers:
        weights = layer.site.weights
        scores = layer.site.scores.masked_fill(weights == 0, -math.inf)
        first, second = scores.topk(2).values.unbind(-1)
        clear = first - second > 120  # e^-120 is 0 in float32
        one_hot = torch.nn.functional.one_hot(scores.argmax(-1), specimen.tokens).float()
        assert torch.equal(weights[clear], one_hot[clear]) and clear.float().mean() > 0.6


def test_the_highest_temperature_is_nearly_uniform(specimen):
    for layer in specimen.run(sg.Temperature(1e4)).layers:
        permitted = layer.site.weights > 0
        even = permitted / permitted.sum(-1, keepdim=True)
        assert torch.allclose(layer.site.weights, even, atol=2e-3)


def test_others_are_left_alone(specimen):
    bench.leaves_others_alone(specimen, sg.Temperature(5.0))
    bench.leaves_other_rows_alone(specimen, sg.Temperature(5.0))


@pytest.mark.parametrize("t", [0, -1, math.nan, math.inf, "", "abc", None, True, 1e5])
def test_impossible_temperatures_are_refused(t):
    bench.refuses(
        lambda: sg.Temperature(t), "Temperature", repr(t), "0.0001 to 10000", error=sg.OperationError
    )
