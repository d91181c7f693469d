import copy

import pytest
import torch

import surgery as sg
from tests.surgery import bench

PLACES = pytest.mark.parametrize("kind", ["bert", "learned", "sinusoidal", "rotary"])


@pytest.mark.parametrize("kind", ["bert", "learned"])
def test_a_table_adds_nothing(kind):
    specimen = bench.placed(kind)
    without = copy.deepcopy(specimen.model)
    for path, module in without.named_modules():
        if path.endswith("position_embeddings"):
            module.weight.data.zero_()
    expected = bench.Specimen("zeros", without).run()
    assert bench.same(specimen.run(sg.RemovePositions()), expected)


def test_waves_add_nothing():
    specimen, without = bench.placed("sinusoidal"), bench.placed("sinusoidal")
    without.model.position_embeddings.forward = lambda ids: torch.zeros(1, 11, 30)
    assert bench.same(specimen.run(sg.RemovePositions()), without.run())


def test_a_rotation_turns_by_no_angle():
    specimen = bench.placed("rotary")
    still = {**specimen.inputs, "position_ids": torch.zeros(2, 11, dtype=torch.long)}
    assert bench.same(specimen.run(sg.RemovePositions()), specimen.run(inputs=still))


@PLACES
def test_permuted_tokens_give_permuted_outputs(kind):
    specimen = bench.placed(kind)
    specimen.inputs = bench.batch(padded=False)
    order = torch.tensor([4, 0, 9, 10, 2, 7, 1, 3, 8, 6, 5])
    mixed = {**specimen.inputs, "input_ids": specimen.inputs["input_ids"][:, order]}
    straight, permuted = specimen.run(sg.RemovePositions()), specimen.run(sg.RemovePositions(), inputs=mixed)
    assert (straight.hidden[-1][:, order] - permuted.hidden[-1]).abs().max() < 2e-5
    assert (specimen.run().hidden[-1][:, order] - specimen.run(inputs=mixed).hidden[-1]).abs().max() > 1e-3


def test_it_differs_from_the_same_position_everywhere():
    specimen = bench.placed("bert")
    assert not bench.same(specimen.run(sg.RemovePositions()), specimen.run(sg.SamePosition()))


@PLACES
def test_nothing_brings_positions_back_and_other_rows_keep_theirs(kind):
    specimen = bench.placed(kind)
    removed = specimen.run(sg.RemovePositions())
    for other in (sg.ReversePositions(), sg.ShiftPositions(3), sg.SamePosition(), sg.ShufflePositions()):
        assert bench.same(specimen.run(sg.RemovePositions(), other), removed)
        assert bench.same(specimen.run(other, sg.RemovePositions()), removed)
    bench.leaves_other_rows_alone(specimen, sg.RemovePositions())


def test_a_part_of_the_model_is_refused():
    bench.refuses_parts(sg.RemovePositions())
