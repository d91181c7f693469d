import numpy as np
import torch

import surgery as sg
from tests.surgery import bench


def permitted(seen, layer):
    return seen.layers[layer].site.weights != 0


def test_what_is_left_shares_the_weight(specimen):
    operation = sg.KeyDropout(0.4, seed=5)
    masks = iter(
        [permitted(specimen.run(operation), layer).numpy() for layer in range(specimen.n_layers)] * 2
    )
    bench.matches(specimen, operation, lambda layer, allowed: {"allowed": next(masks)})


def test_masked_keys_stay_masked_and_rows_sum_to_one_or_nothing(tiny):
    layer = tiny.run(sg.KeyDropout(0.5, 2)).layers[0]
    assert not layer.site.weights[1, :, :, bench.SHORT :].any()
    sums = layer.site.weights.sum(-1)
    assert torch.allclose(sums, (~layer.site.no_key).float(), atol=1e-6)


def test_draws(tiny):
    unpadded = bench.Specimen("unpadded", tiny.model, bench.batch(padded=False))
    bench.draws_well(unpadded, sg.KeyDropout, lambda seen, layer: ~permitted(seen, layer))


def test_the_fused_path_draws_the_same_keys(tiny):
    captured, fused = (tiny.run(sg.KeyDropout(0.5, 2), watched=watched) for watched in (True, False))
    assert (captured.layers[0].output - fused.layers[0].output).abs().max() < 1e-5


def test_p_zero_is_neutral(specimen):
    bench.changes_nothing(specimen, sg.KeyDropout(0.0, 3))


def test_p_one_leaves_no_key(specimen):
    bench.matches(specimen, sg.KeyDropout(1.0, 3), lambda layer, allowed: {"allowed": np.zeros_like(allowed)})


def test_others_are_left_alone(specimen):
    bench.leaves_others_alone(specimen, sg.KeyDropout(0.5, 1))
    bench.leaves_other_rows_alone(specimen, sg.KeyDropout(0.5, 1))


def test_what_is_no_probability_or_seed_is_refused():
    bench.refuses_dropout(sg.KeyDropout)
