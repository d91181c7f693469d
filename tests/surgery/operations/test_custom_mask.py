import numpy as np
import pytest
import torch

import surgery as sg
from tests.reference import picture
from tests.surgery import bench

SHAPE = (
    "#####......",
    "#.#.#.#.#.#",
    "..#........",
    "###########",
    "..........#",
    ".####.#####",
    "#..........",
    "......#....",
    "##.##.##.##",
    "#.........#",
    ".#########.",
)
ROWS = [row.replace("#", "1").replace(".", "0") for row in SHAPE]


def test_rows_are_queries_columns_are_keys_and_one_may_attend(specimen):
    bench.matches_mask(specimen, sg.CustomMask(ROWS), picture(*SHAPE))


def test_a_closed_row_has_no_key(tiny):
    rows = ["0" * 11, *ROWS[1:]]
    for watched in (True, False):
        layer = tiny.run(sg.CustomMask(rows), watched=watched).layers[0]
        assert not layer.output[:, :, 0].any() and layer.output[:, :, 1].any()


def test_all_ones_change_nothing(specimen):
    assert bench.same(specimen.run(sg.CustomMask(["1" * specimen.tokens] * specimen.tokens)), specimen.run())


def test_digits_numbers_arrays_and_tensors_are_one_mask():
    numbers = [[1, 0], [1, 1]]
    masks = [
        sg.CustomMask(rows)
        for rows in (
            ["10", "11"],
            numbers,
            np.array(numbers),
            torch.tensor(numbers),
            np.array(numbers, bool),
            ((True, False), (1, 1)),
        )
    ]
    assert set(masks) == {sg.CustomMask(("10", "11"))}


def test_others_are_left_alone(specimen):
    bench.leaves_others_alone(specimen, sg.CustomMask(ROWS))
    bench.leaves_other_rows_alone(specimen, sg.CustomMask(ROWS))


@pytest.mark.parametrize(
    "rows",
    [[], "10", ["10"], ["12", "11"], ["1", "11"], [[0, 2], [1, 1]], None, 3, [[0.5]], [None], ["1 ", "11"]],
)
def test_what_is_no_square_of_0_and_1_is_refused(rows):
    bench.refuses(lambda: sg.CustomMask(rows), "square of 0 and 1", "1 = may attend", error=sg.OperationError)


def test_a_wrong_size_is_refused_with_the_right_one(tiny):
    bench.refuses(lambda: tiny.run(sg.CustomMask(["11", "11"])), "2 × 2", "11 × 11", error=sg.OperationError)
