import pytest
import torch

import surgery as sg
from tests.surgery import bench

PLACES = pytest.mark.parametrize("kind", ["bert", "learned", "sinusoidal", "rotary"])


def order(n: int, seed: int) -> list[int]:
    """The permutation that this seed deals to n tokens."""
    ids = torch.arange(n)[None]
    return sg.ShufflePositions(seed).positions(ids, torch.ones_like(ids, dtype=torch.bool))[0].tolist()


@PLACES
def test_real_tokens_swap_positions(kind):
    assert sorted(order(11, 3)) == list(range(11)) != order(11, 3)
    bench.moves_to(bench.placed(kind), sg.ShufflePositions(3), lambda n: order(n, 3))


def test_a_text_gets_the_same_order_alone_and_in_a_batch():
    specimen = bench.placed("bert")
    both = specimen.run(sg.ShufflePositions(3)).hidden[-1]
    lone = {name: x[1:, : bench.SHORT] for name, x in specimen.inputs.items()}
    alone = specimen.run(sg.ShufflePositions(3), inputs=lone).hidden[-1]
    assert (both[1:, : bench.SHORT] - alone).abs().max() < 2e-5


def test_seeds_deal_differently_and_leave_the_process_wide_generator_alone():
    specimen = bench.placed("bert")
    state = torch.get_rng_state()
    first, again, other = (specimen.run(sg.ShufflePositions(seed)) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    assert bench.same(first, again) and not bench.same(first, other)
    assert len({tuple(order(7, seed)) for seed in range(50)}) > 45


def test_a_text_of_one_token_is_not_changed():
    specimen = bench.placed("bert")
    specimen.inputs = {name: x[:, :1] for name, x in specimen.inputs.items()}
    assert bench.same(specimen.run(sg.ShufflePositions(1)), specimen.run())


@PLACES
def test_other_rows_keep_their_positions(kind):
    bench.leaves_other_rows_alone(bench.placed(kind), sg.ShufflePositions(1))


def test_parts_and_bad_seeds_are_refused():
    bench.refuses_parts(sg.ShufflePositions(1))
    for seed in (-1, 2**31, 0.5, "1"):
        bench.refuses(
            lambda seed=seed: sg.ShufflePositions(seed), f"seed = {seed!r}", error=sg.OperationError
        )
