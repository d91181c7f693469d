import torch

import surgery as sg
from surgery.attention import attend
from surgery.cut import Cut, Touch
from tests.surgery import bench


def kept(seen, layer):
    return seen.layers[layer].site.weights != 0


def test_weights_are_zero_or_larger(specimen):
    operation = sg.WeightDropout(0.3, seed=5)
    factors = [kept(specimen.run(operation), layer).numpy() / 0.7 for layer in range(specimen.n_layers)]
    given = iter(factors * 2)
    bench.matches(specimen, operation, lambda layer, allowed: {"weight_factor": next(given)})


def test_draws(tiny):
    unpadded = bench.Specimen("unpadded", tiny.model, bench.batch(padded=False))
    bench.draws_well(unpadded, sg.WeightDropout, lambda seen, layer: ~kept(seen, layer))


def test_a_quarter_becomes_nothing_or_a_half_and_a_quarter_on_average():
    row = torch.zeros(1, 1, 1, 1), torch.zeros(1, 1, 4, 1)

    def draw(p, rows, seed=0):
        cut = Cut()
        cut.add(Touch(sg.WeightDropout(p), None, None, torch.Generator().manual_seed(seed)))
        q, k = (x.expand(rows, -1, -1, -1) for x in row)
        return attend(q, k, k, cut, scale=1.0)[1]

    assert set(draw(0.5, 100).unique().tolist()) == {0.0, 0.5}
    assert (draw(0.3, 20_000).mean(0) - 0.25).abs().max() < 0.005
    assert abs(draw(0.3, 20_000).mean() - 0.25) < 0.002


def test_p_zero_is_neutral(specimen):
    bench.changes_nothing(specimen, sg.WeightDropout(0.0, 3))


def test_p_one_leaves_nothing(specimen):
    bench.matches(specimen, sg.WeightDropout(1.0, 3), lambda layer, allowed: {"weight_factor": 0.0})


def test_others_are_left_alone(specimen):
    bench.leaves_others_alone(specimen, sg.WeightDropout(0.5, 1))
    bench.leaves_other_rows_alone(specimen, sg.WeightDropout(0.5, 1))


def test_what_is_no_probability_or_seed_is_refused():
    bench.refuses_dropout(sg.WeightDropout)
