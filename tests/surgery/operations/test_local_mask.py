import math

import pytest
import torch

import surgery as sg
from tests import reference
from tests.reference import picture
from tests.surgery import bench

BAND = picture(
    "##.........",
    "###........",
    ".###.......",
    "..###......",
    "...###.....",
    "....###....",
    ".....###...",
    "......###..",
    ".......###.",
    "........###",
    ".........##",
)


def test_half_width_one_sees_three_tokens(specimen):
    assert (reference.local(specimen.tokens, 1) == BAND).all()
    bench.matches_mask(specimen, sg.LocalMask(1), BAND)


@pytest.mark.parametrize("half_width", [0, 3, 10, 99])
def test_a_key_is_seen_up_to_the_half_width(specimen, half_width):
    bench.matches_mask(specimen, sg.LocalMask(half_width), reference.local(specimen.tokens, half_width))


@pytest.mark.parametrize("half_width, pairs", [(0, 6), (1, 16), (2, 24), (5, 36), (99, 36)])
def test_six_tokens_have_so_many_permitted_pairs(half_width, pairs):
    grid = sg.Grid(torch.arange(6), torch.arange(6))
    everything = torch.ones(1, 1, 6, 6, dtype=torch.bool)
    assert sg.LocalMask(half_width).mask(everything, grid, None).sum() == pairs


def test_a_window_as_wide_as_the_text_is_the_full_mask(specimen):
    assert bench.same(specimen.run(sg.LocalMask(specimen.tokens - 1)), specimen.run())


def test_a_window_of_one_is_the_identity(tiny):
    weights = tiny.run(sg.LocalMask(0)).layers[0].site.weights
    assert torch.equal(weights[0], torch.eye(11).expand(5, -1, -1))


def test_others_are_left_alone(specimen):
    bench.leaves_others_alone(specimen, sg.LocalMask(1))
    bench.leaves_other_rows_alone(specimen, sg.LocalMask(1))


@pytest.mark.parametrize("half_width", [-1, 1.5, "2", math.nan, None, True, 10**7])
def test_impossible_half_widths_are_refused(half_width):
    bench.refuses(
        lambda: sg.LocalMask(half_width),
        "half_width",
        repr(half_width),
        "whole number from 0",
        error=sg.OperationError,
    )
