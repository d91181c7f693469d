import torch

import surgery as sg
from tests.surgery import bench


def kept(seen, layer):
    """Which scores were kept: a dropped one is exactly 0."""
    return seen.layers[layer].site.scores != 0


def test_scores_are_zero_or_larger_and_masks_still_hold(specimen):
    operation = sg.ScoreDropout(0.3, seed=5)
    keeps = iter([kept(specimen.run(operation), layer).numpy() for layer in range(specimen.n_layers)])
    factors = [keep / 0.7 for keep in keeps]
    given = iter(factors * 2)  # a captured run, and another one
    bench.matches(specimen, operation, lambda layer, allowed: {"score_factor": next(given)})


def test_it_acts_before_the_mask(tiny):
    weights = tiny.run(sg.ScoreDropout(0.5, 0)).layers[0].site.weights
    assert not weights[1, :, :, bench.SHORT :].any()
    assert torch.allclose(weights.sum(-1), torch.ones(2, 5, 11), atol=1e-6) and weights.isfinite().all()


def test_draws(tiny):
    bench.draws_well(tiny, sg.ScoreDropout, lambda seen, layer: ~kept(seen, layer))


def test_p_zero_is_neutral(specimen):
    bench.changes_nothing(specimen, sg.ScoreDropout(0.0, 3))


def test_p_one_makes_all_scores_zero_so_weights_are_uniform(specimen):
    bench.matches(
        specimen, sg.ScoreDropout(1.0, 3), lambda layer, allowed: {"score_factor": 0.0, "uniform": True}
    )


def test_others_are_left_alone(specimen):
    bench.leaves_others_alone(specimen, sg.ScoreDropout(0.5, 1))
    bench.leaves_other_rows_alone(specimen, sg.ScoreDropout(0.5, 1))


def test_what_is_no_probability_or_seed_is_refused():
    bench.refuses_dropout(sg.ScoreDropout)
