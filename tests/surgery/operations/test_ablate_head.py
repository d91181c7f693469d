import torch

import surgery as sg
from tests.surgery import bench


def test_the_output_is_zero_and_the_weights_are_still_there(specimen):
    bench.matches(specimen, sg.AblateHead(), lambda layer, allowed: {"output_factor": 0.0})


def test_only_the_bias_of_the_projection_remains(tiny):
    bias = tiny.model.encoder.layer[0].attention.output.dense.bias
    kept = []
    hook = tiny.model.encoder.layer[0].attention.output.dense.register_forward_hook(
        lambda m, a, r: kept.append(r)
    )
    try:
        tiny.run(sg.AblateHead().at("L0"))
    finally:
        hook.remove()
    assert torch.equal(kept[0], bias.expand_as(kept[0]))


def test_a_head_occupies_its_own_columns_before_the_projection(tiny):
    before, after = tiny.run(), tiny.run(sg.AblateHead().at("L1.H2"))
    width = tiny.d_k
    old, new = (seen.layers[1].output.transpose(1, 2).flatten(2) for seen in (before, after))
    changed = (old != new).flatten(0, 1).any(0).nonzero().flatten().tolist()
    assert changed == list(range(2 * width, 3 * width))
    assert not new[..., 2 * width : 3 * width].any()


def test_others_are_left_alone(specimen):
    bench.leaves_others_alone(specimen, sg.AblateHead())
    bench.leaves_other_rows_alone(specimen, sg.AblateHead())


def test_a_head_that_the_model_lacks_is_refused(tiny):
    bench.refuses(lambda: tiny.run(sg.AblateHead().at("L0.H5")), "Head 5", "0-4", error=sg.SelectionError)
