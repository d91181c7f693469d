import math

import numpy as np
import pytest
import torch

from surgery import metrics

T = torch.tensor
LN2 = math.log(2)


def test_entropy_is_in_nats_and_defined_at_zeros():
    assert metrics.entropy(T([0.5, 0.5, 0.0])).item() == pytest.approx(0.693147, abs=1e-6)
    assert metrics.entropy(T([0.25] * 4)).item() == pytest.approx(math.log(4))
    one_hot = metrics.entropy(T([0.0, 1.0, 0.0]))
    assert one_hot == 0 and str(one_hot.item()) == "0.0"
    assert math.isnan(metrics.entropy(T([0.0, 0.0])))
    assert metrics.entropy(torch.ones(2, 3, 5, 7)).shape == (2, 3, 5)


def test_entropy_of_weights_after_dropout_is_that_of_their_shares():
    assert metrics.entropy(T([0.5, 0.5, 0.0]) * 0.7).item() == pytest.approx(LN2)


def test_kl_is_directed_and_infinite_where_the_second_excludes_the_first():
    p, q = T([0.5, 0.5]), T([1.0, 0.0])
    assert metrics.kl_divergence(p, q).item() == math.inf
    assert metrics.kl_divergence(q, p).item() == pytest.approx(0.693147, abs=1e-6)
    assert metrics.kl_divergence(p, p) == 0 == metrics.kl_divergence(q, q)


def test_jensen_shannon_is_symmetric_bounded_and_in_nats():
    p, q = T([0.5, 0.5]), T([1.0, 0.0])
    found = metrics.js_divergence(p, q).item()
    assert found == pytest.approx(0.215762, abs=1e-6) == metrics.js_divergence(q, p).item()
    assert found / math.log(2) == pytest.approx(0.311278, abs=1e-6)
    assert metrics.js_divergence(T([1.0, 0.0]), T([0.0, 1.0])).item() == pytest.approx(LN2)
    assert metrics.js_divergence(p, p) == 0
    rows = torch.stack((p, q, q))
    for kind in (torch.float64, torch.float32):
        before = rows.to(kind).clone()
        one_way, other_way = metrics.js_divergence(p, before), metrics.js_divergence(before, p)
        assert (
            torch.equal(one_way, other_way)
            and one_way[0] == 0
            and one_way.dtype == torch.result_type(p, before)
        )
        assert one_way[1:].tolist() == pytest.approx([found] * 2) and torch.equal(before, rows.to(kind))
    assert metrics.js_divergence(p, T([0.0, 0.0])).item() == pytest.approx(LN2)
    assert math.isnan(metrics.js_divergence(T([0.0, 0.0]), T([0.0, 0.0])))


def test_total_variation_is_the_share_that_moved():
    assert metrics.total_variation(T([0.5, 0.5]), T([1.0, 0.0])).item() == pytest.approx(0.5)
    assert metrics.total_variation(T([0.5, 0.5]), T([0.0, 0.0])).item() == pytest.approx(0.5)


def test_mass_at_an_offset_is_undefined_where_there_is_no_such_key():
    w = torch.arange(9.0).reshape(3, 3)
    assert metrics.mass_at_offset(w, 0).tolist() == [0, 4, 8]
    np.testing.assert_array_equal(metrics.mass_at_offset(w, -1), [math.nan, 3, 7])
    np.testing.assert_array_equal(metrics.mass_at_offset(w, 1), [1, 5, math.nan])
    assert metrics.mass_at_offset(torch.ones(2, 3, 5, 5), 1).shape == (2, 3, 5)


def test_mass_on_marked_keys():
    w = torch.arange(6.0).reshape(2, 3)
    assert metrics.mass_on(w, T([True, False, True])).tolist() == [2, 8]


def test_attention_distance_is_in_tokens():
    assert metrics.attention_distance(torch.eye(3)).tolist() == [0, 0, 0]
    uniform = torch.full((3, 3), 1 / 3)
    assert metrics.attention_distance(uniform).tolist() == pytest.approx([1, 2 / 3, 1])
    assert metrics.attention_distance(T([[0.0, 0.0, 1.0], [0, 0, 0], [1.0, 0, 0]])).isnan().tolist() == [
        False,
        True,
        False,
    ]


def test_a_mean_leaves_out_what_is_undefined_or_unwanted():
    values = T([1.0, math.nan, 3.0, 100.0])
    assert metrics.mean(values, T([True, True, True, False])) == 2
    assert math.isnan(metrics.mean(T([math.nan, math.nan]))) and metrics.mean(values) == pytest.approx(
        104 / 3
    )
    weights = T([[1.0, 0, 0], [0, 0, 0], [0.5, 0.5, 0]])  # a causal row 0, and a row without a key
    assert metrics.mean(metrics.entropy(weights)).item() == pytest.approx(LN2 / 2)


def test_cosine_is_undefined_for_a_zero_vector():
    assert metrics.cosine(T([3.0, 4.0]), T([6.0, 8.0])) == pytest.approx(1)
    assert metrics.cosine(T([1.0, 0.0]), T([-2.0, 0.0])) == -1
    assert math.isnan(metrics.cosine(T([0.0, 0.0]), T([1.0, 0.0])))
    x = torch.full((384,), 0.1)
    assert metrics.cosine(x, x) <= 1


def test_relative_l2():
    assert metrics.relative_l2(T([3.0, 4.0]), T([3.0, 4.0])) == 0
    assert metrics.relative_l2(T([0.0, 0.0]), T([3.0, 4.0])) == 1
    assert metrics.relative_l2(T([3.0, 4.0]), T([0.0, 0.0])) == math.inf
    assert math.isnan(metrics.relative_l2(T([0.0]), T([0.0])))


def test_linear_cka_sees_through_rotation_scale_and_shift():
    torch_state = torch.Generator().manual_seed(0)
    x = torch.randn(11, 5, generator=torch_state, dtype=torch.float64)
    turn, _ = torch.linalg.qr(torch.randn(5, 5, generator=torch_state, dtype=torch.float64))
    other = torch.randn(11, 7, generator=torch_state, dtype=torch.float64)
    assert metrics.linear_cka(x, x) == pytest.approx(1)
    assert metrics.linear_cka(x, 3 * x @ turn + 2) == pytest.approx(1)
    kernels = [(y - y.mean(0)) @ (y - y.mean(0)).T for y in (x, other)]
    expected = (kernels[0] * kernels[1]).sum() / (kernels[0].norm() * kernels[1].norm())
    assert metrics.linear_cka(x, other).item() == pytest.approx(expected.item()) and expected < 0.9
    assert math.isnan(metrics.linear_cka(x, torch.ones(11, 7)))


def test_top_k_overlap():
    p = torch.arange(10.0)
    assert metrics.top_k_overlap(p, p) == 1 and metrics.top_k_overlap(p, -p) == 0
    assert metrics.top_k_overlap(p, p.roll(1), 5) == pytest.approx(4 / 5)
    assert metrics.top_k_overlap(T([1.0, 0.0]), T([0.0, 1.0]), 5) == 1
