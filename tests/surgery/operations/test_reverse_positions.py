import pytest

import surgery as sg
from tests import reference
from tests.surgery import bench

PLACES = pytest.mark.parametrize("kind", ["bert", "learned", "sinusoidal", "rotary"])


@PLACES
def test_real_tokens_count_from_the_end(kind):
    assert reference.POSITIONS["reverse_positions"](3) == [2, 1, 0]
    bench.moves_to(bench.placed(kind), sg.ReversePositions(), reference.POSITIONS["reverse_positions"])


@PLACES
def test_twice_is_the_original_order(kind):
    specimen = bench.placed(kind)
    assert bench.same(specimen.run(sg.ReversePositions(), sg.ReversePositions()), specimen.run())


@PLACES
def test_other_rows_keep_their_positions(kind):
    bench.leaves_other_rows_alone(bench.placed(kind), sg.ReversePositions())


def test_a_part_of_the_model_is_refused():
    bench.refuses_parts(sg.ReversePositions())
