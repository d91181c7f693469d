"""THE attention function, on exact values and at the edges of arithmetic."""

import itertools
import math

import numpy as np
import pytest
import torch

import surgery as sg
from surgery.attention import attend, softmax
from surgery.capture import site
from surgery.cut import Cut, Touch
from tests import reference
from tests.reference import picture
from tests.surgery import bench

# Three tokens, d_k = 2: raw scores [[1, 0, 1], [0, 1, 1], [1, 1, 2]].
Q = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])[None, None]
V = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]])[None, None]
ROOT = 2**-0.5


class Eye:
    """A witness that remembers."""

    needs_scores = True

    def see(self, scores, weights, output, allowed):
        self.site = site(scores, weights, output, allowed)


def cut(*operations, heads=None, seed=0) -> Cut:
    made = Cut()
    for operation in operations:
        generator = torch.Generator().manual_seed(seed) if operation.stochastic else None
        made.add(Touch(operation, None, heads, generator))
    return made


def both(q, k, v, *operations, scale=1.0, **options):
    """Output (row, query, head, d_v) and weights; the fused path must give the same output."""
    output, weights = attend(q, k, v, cut(*operations), scale=scale, witness=Eye(), **options)
    fused, _ = attend(q, k, v, cut(*operations), scale=scale, **options)
    assert (output - fused).abs().max() < (1e-6 if q.dtype == torch.float32 else 5e-3)
    assert output.isfinite().all() and weights.isfinite().all()
    return output, weights


def zeros(n, rows=1, heads=1, d_k=3):
    """Queries and keys whose scores are all 0, and values that tell the keys apart."""
    values = torch.eye(n).expand(rows, heads, n, n)
    return torch.zeros(rows, heads, n, d_k), torch.zeros(rows, heads, n, d_k), values


def equal(tensor, rows):
    assert torch.allclose(tensor, torch.tensor(rows), atol=1e-6), tensor


def test_three_tokens_give_the_printed_weights_and_output():
    output, weights = both(Q, Q, V, scale=ROOT)
    equal(
        weights[0, 0],
        [[0.401112, 0.197776, 0.401112], [0.197776, 0.401112, 0.401112], [0.248255, 0.248255, 0.503490]],
    )
    equal(output[0, :, 0], [[1.203336, 1.0], [1.0, 1.203336], [1.255235, 1.255235]])


def test_dropped_scaling_gives_the_printed_weights():
    _, weights = both(Q, Q, V, sg.DropScaling(), scale=ROOT)
    equal(
        weights[0, 0],
        [[0.422319, 0.155362, 0.422319], [0.155362, 0.422319, 0.422319], [0.211942, 0.211942, 0.576117]],
    )


# --- no permitted key ---------------------------------------------------------------------------------------


def test_rows_without_a_permitted_key_are_zero_and_marked():
    keep = torch.tensor([True, True, True, False, False, False])[None, None, None]
    q, k, v = zeros(6)
    _, weights = both(q, k, v, sg.LocalMask(1), allowed=keep)
    third = 1 / 3
    expected = [
        [0.5, 0.5, 0, 0, 0, 0],
        [third, third, third, 0, 0, 0],
        [0, 0.5, 0.5, 0, 0, 0],
        [0, 0, 1.0, 0, 0, 0],
    ]
    equal(weights[0, 0], [*expected, [0.0] * 6, [0.0] * 6])
    eye = Eye()
    output, _ = attend(q, k, v, cut(sg.LocalMask(1)), scale=1.0, allowed=keep, witness=eye)
    assert not output[0, 4:].any()
    assert eye.site.no_key[0, 0].tolist() == [False] * 4 + [True] * 2


def test_one_blocked_row_leaves_the_others_unchanged():
    allowed = torch.tensor(picture("###", "...", "###"))[None, None]
    output, weights = both(Q, Q, V, scale=ROOT, allowed=allowed)
    _, free = both(Q, Q, V, scale=ROOT)
    assert not weights[0, 0, 1].any() and not output[0, 1].any()
    assert torch.equal(weights[0, 0, [0, 2]], free[0, 0, [0, 2]])


@pytest.mark.parametrize("value", [0.0, 1e30, -1e30])
def test_softmax_is_never_nan(value):
    scores = torch.full((1, 1, 3, 5), value, requires_grad=True)
    allowed = torch.tensor(picture("#####", ".....", "..#.."))[None, None]
    weights = softmax(scores, allowed)
    equal(weights[0, 0], [[0.2] * 5, [0.0] * 5, [0, 0, 1.0, 0, 0]])
    weights.square().sum().backward()
    assert scores.grad.isfinite().all()


@torch.inference_mode()
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("keys", [1, 7, 64, 1000])
def test_softmax_in_the_memory_of_the_scores_is_the_same(keys, kind, masked):
    torch.manual_seed(keys)
    scores = (5 * torch.randn(2, 3, 5, keys)).to(kind)
    allowed = torch.rand(2, 1, 5, keys) > 0.7 if masked else None
    wanted, kept = softmax(scores, allowed), scores.clone()
    assert torch.equal(scores, kept)
    given = softmax(scores, allowed, overwrite=True)
    assert torch.equal(given, wanted) and given.data_ptr() == scores.data_ptr()


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")  # torch's own
def test_forward_derivatives_pass_through_a_softmax_that_may_overwrite():
    scores, direction = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3, 4)
    with torch.no_grad():
        found = torch.func.jvp(lambda x: softmax(x, overwrite=True), (scores,), (direction,))
        wanted = torch.func.jvp(softmax, (scores,), (direction,))
    assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))


@pytest.mark.parametrize("expanded", [False, True])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_what_an_operation_gives_is_not_overwritten(mode, expanded):
    table = torch.randn(1, 1, 1, 3).expand(1, 1, 3, 3) if expanded else torch.randn(1, 1, 3, 3)

    class Fixed(sg.Operation):  # without a name it is not registered
        stage = "scores"
        title = summary = sg.Words("Fixed", "固定")

        def scores(self, scores, draw):
            return table

    before, allowed = table.clone(), torch.tensor(picture("##.", "###", "#.#"))[None, None]
    with mode():
        for mask, bias in itertools.product((None, allowed), (None, torch.ones(1, 1, 3, 3))):
            output, _ = attend(Q, Q, V, cut(Fixed()), scale=ROOT, allowed=mask, bias=bias)
            assert torch.equal(table, before)
            wanted = softmax(table.clone(), mask) @ V
            assert torch.allclose(output[0, :, 0], wanted[0, 0], atol=1e-6)


# --- masks --------------------------------------------------------------------------------------------------


def test_true_means_may_attend():
    keep = torch.tensor([True, True, False])[None, None, None]
    _, weights = both(Q, Q, V, scale=ROOT, allowed=keep)
    equal(weights[0, 0], [[0.669762, 0.330238, 0], [0.330238, 0.669762, 0], [0.5, 0.5, 0]])


def test_causal_rows_share_among_what_came_before():
    expected = [[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [1 / 3, 1 / 3, 1 / 3, 0], [0.25] * 4]
    equal(both(*zeros(4), sg.CausalMask())[1][0, 0], expected)
    equal(both(*zeros(4), causal=True)[1][0, 0], expected)
    equal(both(*zeros(4), sg.CausalMask(), causal=True)[1][0, 0], expected)


def test_lengths_go_to_rows_and_not_to_heads():
    lengths = torch.tensor([3, 1])
    keep = (torch.arange(3)[None] < lengths[:, None])[:, None, None]
    _, weights = both(*zeros(3, rows=2, heads=2), allowed=keep)
    for head in range(2):
        equal(weights[0, head], [[1 / 3] * 3] * 3)
        equal(weights[1, head], [[1.0, 0, 0]] * 3)


def test_a_mask_of_one_head_leaves_the_models_mask_as_it_was():
    keep = torch.ones(1, 1, 1, 3, dtype=torch.bool)
    attend(Q, Q, V, cut(sg.BlockTokens([0]), heads=[0]), scale=1.0, allowed=keep)
    assert keep.all()


@pytest.mark.parametrize(
    "half_width, rows",
    [
        (0, ("#.....", ".#....", "..#...", "...#..", "....#.", ".....#")),
        (2, ("###...", "####..", "#####.", ".#####", "..####", "...###")),
    ],
)
def test_a_window_permits_what_the_picture_shows(half_width, rows):
    _, weights = both(*zeros(6), sg.LocalMask(half_width))
    assert ((weights[0, 0] > 0).numpy() == picture(*rows)).all()


# --- temperature --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "t, row",
    [
        (0.5, [0.015876, 0.117310, 0.866813]),
        (1, [0.090031, 0.244728, 0.665241]),
        (2, [0.186324, 0.307196, 0.506480]),
        (100, [0.330006, 0.333322, 0.336672]),
        (1e-4, [0.0, 0.0, 1.0]),
    ],
)
def test_scores_one_two_three_at_a_temperature(t, row):
    q, k = torch.ones(1, 1, 1, 1), torch.tensor([1.0, 2.0, 3.0]).reshape(1, 1, 3, 1)
    _, weights = both(q, k, k, sg.Temperature(t))
    equal(weights[0, 0, 0], row)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision_survives_the_lowest_temperature(kind):
    q, k = (
        torch.ones(1, 1, 1, 1, dtype=kind),
        torch.tensor([20.0, 30.0, 10.0], dtype=kind).reshape(1, 1, 3, 1),
    )
    output, weights = both(q, k, k, sg.Temperature(1e-4))
    equal(weights[0, 0, 0].float(), [0.0, 1.0, 0.0])
    assert output.dtype == kind and output.item() == 30
    eye = Eye()
    attend(q, k, k, cut(), scale=1.0, witness=eye)
    assert eye.site.weights.dtype == torch.float32 and eye.site.weights.isfinite().all()


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_an_empty_cut_in_half_precision_stays_with_the_kernel(kind):
    with bench.seeded():
        q, k, v = (torch.randn(2, 3, 5, 7).to(kind) for _ in range(3))
    found, weights = attend(q, k, v, Cut(), scale=0.3)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=0.3).transpose(1, 2)
    assert torch.equal(found, expected) and weights is None


def test_dropped_scaling_keeps_half_precision_finite():
    q = torch.full((1, 1, 2, 64), 60.0, dtype=torch.float16)  # a raw score is 230,400, beyond float16
    output, weights = both(q, q, q, sg.DropScaling(), scale=64**-0.5)
    equal(weights[0, 0].float(), [[0.5, 0.5]] * 2)
    assert output.isfinite().all()


# --- dropout ------------------------------------------------------------------------------------------------


def test_dropped_scores_stay_masked():
    keep = torch.tensor([True] * 4 + [False] * 4)[None, None, None]
    for p in (0.5, 1.0):
        _, weights = both(*zeros(8), sg.ScoreDropout(p, 0), allowed=keep)
        assert not weights[..., 4:].any() and torch.allclose(weights.sum(-1), torch.ones(1, 1, 8))
        equal(weights[0, 0, 0, :4], [0.25] * 4)


def test_dropped_weights_are_gone_and_rows_are_not_mended():
    q, k, v = zeros(4)
    _, weights = both(q, k, v, sg.WeightDropout(0.5, 0))
    assert set(weights.unique().tolist()) == {0.0, 0.5}
    output, weights = both(q, k, v, sg.WeightDropout(1.0, 0))
    assert not weights.any() and not output.any()


def test_the_models_own_dropout_acts_in_training_alone():
    q, k, v = zeros(50)
    torch.manual_seed(0)
    for witness in (None, Eye()):
        output, _ = attend(q, k, v, cut(), scale=1.0, dropout=0.5, witness=witness)
        assert set((output * 50).round().unique().tolist()) == {0.0, 2.0}


# --- shapes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "operations", [(), (sg.Temperature(2.0),), (sg.HideSelf(),), (sg.ScoreDropout(0.0),)]
)
def test_key_heads_are_shared_by_query_heads(operations):
    with bench.seeded():
        q, k, v = torch.randn(2, 6, 5, 7), torch.randn(2, 3, 5, 7), torch.randn(2, 3, 5, 11)
    spread = [np.repeat(x.numpy(), 2, axis=1) for x in (k, v)]
    output, weights = both(q, k, v, *operations, scale=7**-0.5)
    options = {"temperature": 2.0} if operations == (sg.Temperature(2.0),) else {}
    if operations == (sg.HideSelf(),):
        options = {"allowed": reference.without_self(5)}
    expected = reference.attention(q.numpy(), *spread, **options)
    assert output.shape == (2, 5, 6, 11) and weights.shape == (2, 6, 5, 5)
    assert np.abs(output.transpose(1, 2).numpy() - expected.output).max() < 1e-6
    assert np.abs(weights.numpy() - expected.weights).max() < 1e-6


def test_queries_after_a_cache_are_the_last_positions():
    with bench.seeded():
        q, k, v = torch.randn(1, 2, 3, 5), torch.randn(1, 2, 7, 5), torch.randn(1, 2, 7, 5)
    _, weights = both(q, k, v, sg.LocalMask(1))
    assert ((weights[0, 0] > 0).numpy() == picture("...###.", "....###", ".....##")).all()
    _, weights = both(q, k, v, sg.CausalMask())
    assert ((weights[0, 0] > 0).numpy() == picture("#####..", "######.", "#######")).all()


def test_a_bias_is_added_to_the_scores():
    with bench.seeded():
        q, k, v, bias = (torch.randn(1, 2, 5, 5) for _ in range(4))
    _, weights = attend(q, k, v, cut(), scale=0.5, bias=bias)
    assert torch.allclose(weights, torch.softmax(q @ k.transpose(2, 3) * 0.5 + bias, -1), atol=1e-6)


# --- gradients ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "operations",
    [
        (),
        (sg.Temperature(3.0),),
        (sg.DropScaling(), sg.CausalMask()),
        (sg.UniformAttention(), sg.HideSelf()),
        (sg.ScoreDropout(0.3, 1),),
        (sg.WeightDropout(0.3, 1), sg.LocalMask(1)),
        (sg.OutputDropout(0.3, 1),),
        (sg.AblateHead(),),
        (sg.BlockTokens(range(5)),),
        (
            sg.Temperature(0.5),
            sg.LocalMask(0),
            sg.ScoreDropout(0.2),
            sg.WeightDropout(0.2),
            sg.OutputDropout(0.2),
        ),
    ],
    ids=lambda operations: "+".join(o.name for o in operations) or "none",
)
@pytest.mark.parametrize("heads", [None, [0, 2]])
@pytest.mark.parametrize("watched", [True, False])
def test_gradients_are_right(operations, heads, watched):
    with bench.seeded():
        given = [torch.randn(2, 3, 5, 4, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    keep = torch.ones(2, 1, 1, 5, dtype=torch.bool)
    keep[1, ..., 3:] = False

    def output(q, k, v):
        made = cut(*operations, heads=heads)
        return attend(q, k, v, made, scale=0.5, allowed=keep, witness=Eye() if watched else None)[0]

    assert torch.autograd.gradcheck(output, given, fast_mode=True)


def test_nothing_is_written_into_what_was_given():
    with bench.seeded():
        q, k, v = (torch.randn(2, 3, 5, 7) for _ in range(3))
    before = [x.clone() for x in (q, k, v)]
    everything = [operation() for operation in sg.REGISTRY.values() if operation.stage != "positions"]
    made = cut(*[o for o in everything if o.name != "custom_mask"], heads=[1])
    with torch.no_grad():
        output, _ = attend(q, k, v, made, scale=math.pi)
    assert all(torch.equal(x, y) for x, y in zip((q, k, v), before, strict=True)) and output.isfinite().all()
