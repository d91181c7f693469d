import numpy as np
import pytest
import torch

import surgery as sg
from tests import reference
from tests.surgery import bench


def shared(layer, groups: int, **words):
    k, v = (reference.grouped_means(x.astype(np.float64), groups) for x in (layer.k, layer.v))
    return reference.attention(layer.q, k, v, **words)


@pytest.mark.parametrize("watched", [True, False])
def test_heads_use_the_means_of_their_keys_and_values(specimen, watched):
    """One group: every head the same keys, each its own queries."""
    seen = specimen.run(sg.ShareKeys(1), watched=watched)
    for layer in seen.layers:
        allowed = specimen.allowed
        if getattr(specimen.model.config, "causal", False):
            allowed = allowed & reference.causal(specimen.tokens)
        expected = shared(layer, 1, allowed=allowed)
        assert np.abs(layer.output.numpy() - expected.output).max() < 2e-5
        if watched:
            assert np.abs(layer.site.weights.numpy() - expected.weights).max() < 1e-5


def test_groups_are_neighbouring_heads():
    """Of six heads in two groups 0-2 share, and 3-5."""
    specimen = bench.Specimen("six", bench.bert(hidden_size=42, num_attention_heads=6))
    layer = specimen.run(sg.ShareKeys(2)).layers[0]
    expected = shared(layer, 2, allowed=specimen.allowed)
    assert np.abs(layer.site.scores.numpy() - expected.scores).max() < 1e-4
    whole = np.stack([layer.k[:, :3].mean(1)] * 3 + [layer.k[:, 3:].mean(1)] * 3, axis=1)
    assert np.allclose(reference.grouped_means(layer.k.astype(np.float64), 2), whole, atol=1e-6)


def test_as_many_groups_as_heads_change_nothing(tiny):
    each, intact = tiny.run(sg.ShareKeys(5)), tiny.run()
    assert torch.allclose(each.hidden[-1], intact.hidden[-1], atol=1e-5)


def test_a_head_alone_takes_the_mean_of_all_and_the_others_keep_theirs(tiny):
    everywhere, alone = tiny.run(sg.ShareKeys(1)), tiny.run(sg.ShareKeys(1).at("L0.H2"))
    assert torch.equal(everywhere.layers[0].site.weights[:, 2], alone.layers[0].site.weights[:, 2])
    bench.leaves_others_alone(tiny, sg.ShareKeys(1))
    bench.leaves_other_rows_alone(tiny, sg.ShareKeys(1))


def test_it_goes_with_operations_of_other_stages(tiny):
    seen = tiny.run(sg.Temperature(3.0), sg.ShareKeys(1))
    for layer in seen.layers:
        expected = shared(layer, 1, allowed=tiny.allowed, temperature=3.0)
        assert np.abs(layer.site.weights.numpy() - expected.weights).max() < 1e-5


def test_groups_that_do_not_divide_the_heads_are_refused_before_anything_runs(tiny):
    for groups in (2, 3, 4, 6):
        bench.refuses(
            lambda groups=groups: tiny.run(sg.ShareKeys(groups)), "5 heads", "[1, 5]", error=sg.OperationError
        )
    for groups in (0, -1, 1.5, "2", None, True):
        bench.refuses(lambda groups=groups: sg.ShareKeys(groups), "groups", "from 1", error=sg.OperationError)
