import pytest
import torch

import surgery as sg
from tests import reference
from tests.surgery import bench


@pytest.mark.parametrize("positions", [[0], [6, 2, 2], (3,)])
def test_nobody_attends_to_blocked_tokens(specimen, positions):
    bench.matches_mask(specimen, sg.BlockTokens(positions), reference.without(specimen.tokens, positions))


def test_blocking_every_token_leaves_no_key(specimen):
    for watched in (True, False):
        seen = specimen.run(sg.BlockTokens(range(specimen.tokens)), watched=watched)
        assert not any(layer.output.any() for layer in seen.layers)
        assert seen.hidden[-1].isfinite().all()


def test_blocked_tokens_still_ask(tiny):
    weights = tiny.run(sg.BlockTokens([3])).layers[0].site.weights
    assert torch.allclose(weights[0, :, 3].sum(-1), torch.ones(5))


def test_no_positions_are_neutral(specimen):
    bench.changes_nothing(specimen, sg.BlockTokens([]))


def test_order_and_repetition_do_not_matter():
    assert sg.BlockTokens([5, 2, 2]) == sg.BlockTokens((2, 5))


def test_others_are_left_alone(specimen):
    bench.leaves_others_alone(specimen, sg.BlockTokens([1, 4]))
    bench.leaves_other_rows_alone(specimen, sg.BlockTokens([1, 4]))


@pytest.mark.parametrize("positions", [[-1], 3, "0", [1.5], [True], None])
def test_what_is_no_list_of_positions_is_refused(positions):
    bench.refuses(
        lambda: sg.BlockTokens(positions), "counted from 0", repr(positions), error=sg.OperationError
    )


def test_a_token_that_the_text_lacks_is_refused_before_anything_runs(tiny):
    refused = lambda: tiny.run(sg.BlockTokens([11]))  # noqa: E731
    bench.refuses(refused, "no token 11", "0-10", error=sg.OperationError)
