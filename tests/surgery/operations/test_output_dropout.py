import torch

import surgery as sg
from tests.surgery import bench


def kept(seen, layer):
    return seen.layers[layer].output != 0


def test_components_are_zero_or_larger(specimen):
    operation = sg.OutputDropout(0.3, seed=5)
    factors = [kept(specimen.run(operation), layer).numpy() / 0.7 for layer in range(specimen.n_layers)]
    given = iter(factors * 2)
    bench.matches(specimen, operation, lambda layer, allowed: {"output_factor": next(given)})


def test_the_first_layers_weights_are_not_touched(specimen):
    before, after = specimen.run(), specimen.run(sg.OutputDropout(0.5, 1))
    assert torch.equal(before.layers[0].site.weights, after.layers[0].site.weights)


def test_draws(tiny):
    bench.draws_well(tiny, sg.OutputDropout, lambda seen, layer: ~kept(seen, layer))


def test_outputs_are_kept_on_average(tiny):
    intact = tiny.run().layers[0].output
    drawn = torch.stack([tiny.run(sg.OutputDropout(0.3, seed)).layers[0].output for seed in range(60)])
    expected, spread = intact.sum(), (intact.square().sum() * (0.3 / 0.7) / 60).sqrt()
    assert abs(drawn.sum((1, 2, 3, 4)).mean() - expected) < 4 * spread


def test_p_zero_is_neutral(specimen):
    bench.changes_nothing(specimen, sg.OutputDropout(0.0, 3))


def test_p_one_is_ablation(specimen):
    assert bench.same(specimen.run(sg.OutputDropout(1.0, 3)), specimen.run(sg.AblateHead()))


def test_others_are_left_alone(specimen):
    bench.leaves_others_alone(specimen, sg.OutputDropout(0.5, 1))
    bench.leaves_other_rows_alone(specimen, sg.OutputDropout(0.5, 1))


def test_what_is_no_probability_or_seed_is_refused():
    bench.refuses_dropout(sg.OutputDropout)
