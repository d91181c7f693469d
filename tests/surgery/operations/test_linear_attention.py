import numpy as np
import torch

import surgery as sg
from tests import reference
from tests.surgery import bench


def test_weights_are_shares_of_a_product_of_features(specimen):
    bench.matches(specimen, sg.LinearAttention(), lambda layer, allowed: {"features": reference.elu_plus_one})


def test_weights_are_the_papers_sums(tiny):
    """Equation 4: φ(q)ᵀ Σ φ(k)vᵀ / φ(q)ᵀ Σ φ(k), the sums over the keys made once for all queries."""
    layer = tiny.run(sg.LinearAttention(), inputs=bench.batch(padded=False)).layers[1]
    q, k = (reference.elu_plus_one(x.astype(np.float64)) for x in (layer.q, layer.k))
    sums = np.einsum("bhjd,bhjv->bhdv", k, layer.v.astype(np.float64))
    expected = np.einsum("bhid,bhdv->bhiv", q, sums) / np.einsum("bhid,bhjd->bhi", q, k)[..., None]
    assert np.abs(layer.output.numpy() - expected).max() < 1e-5


def test_phi_on_paper():
    x = np.array([-1.0, 0.0, 1.0])
    assert np.allclose(reference.elu_plus_one(x), [0.36787944, 1.0, 2.0])
    q, k, v = torch.tensor([[[[1.0]]]]), torch.tensor([[[[-1.0], [0.0], [1.0]]]]), torch.eye(3)[None, None]
    log = sg.LinearAttention().scores(torch.zeros(1, 1, 1, 3), None, q, k)
    assert torch.allclose(log.exp()[0, 0, 0], torch.tensor([0.73575888, 2.0, 4.0]))
    shares = log.softmax(-1) @ v
    assert torch.allclose(shares[0, 0, 0], torch.tensor([0.73575888, 2.0, 4.0]) / 6.73575888)


def test_far_from_zero_nothing_overflows_or_vanishes():
    q, k = (
        torch.full((1, 1, 2, 7), -500.0),
        torch.tensor([-500.0, 500.0, 3e4])[None, None, :, None].expand(1, 1, 3, 7),
    )
    log = sg.LinearAttention().scores(torch.zeros(1, 1, 2, 3), None, q, k)
    assert log.isfinite().all() and log.softmax(-1).isfinite().all()


def test_a_temperature_takes_the_root(tiny):
    for plan in (
        sg.Plan(sg.LinearAttention(), sg.Temperature(0.25)),
        sg.Plan(sg.Temperature(0.25), sg.LinearAttention()),
    ):
        words = {"features": reference.elu_plus_one, "temperature": 0.25}
        bench.matches(tiny, plan, lambda layer, allowed: words)  # noqa: B023


def test_a_dropped_scale_has_nothing_to_act_on(tiny):
    assert bench.same(tiny.run(sg.LinearAttention(), sg.DropScaling()), tiny.run(sg.LinearAttention()))


def test_dropout_of_scores_acts_on_the_new_ones(tiny):
    """Whatever their order in the plan."""
    one, other = (
        tiny.run(*parts)
        for parts in (
            (sg.LinearAttention(), sg.ScoreDropout(0.5, 3)),
            (sg.ScoreDropout(0.5, 3), sg.LinearAttention()),
        )
    )
    assert bench.same(one, other) and not bench.same(one, tiny.run(sg.LinearAttention()))


def test_others_are_left_alone(specimen):
    bench.leaves_others_alone(specimen, sg.LinearAttention())
    bench.leaves_other_rows_alone(specimen, sg.LinearAttention())
