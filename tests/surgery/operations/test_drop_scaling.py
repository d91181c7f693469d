import numpy as np
import torch

import surgery as sg
from tests import reference
from tests.surgery import bench


def test_scores_are_raw_dot_products(specimen):
    bench.matches(specimen, sg.DropScaling(), lambda layer, allowed: {"scaling": 1.0})


def test_it_is_the_temperature_of_one_over_root_d_k(tiny):
    intact, dropped = tiny.run(), tiny.run(sg.DropScaling())
    expected = reference.sharpened(intact.layers[0].site.weights.numpy(), tiny.d_k**-0.5)
    assert np.abs(dropped.layers[0].site.weights.numpy() - expected).max() < 2e-5


def rescaled(scaling: float):
    model = bench.bert()
    for module in model.modules():
        if hasattr(module, "scaling"):
            module.scaling = scaling
    return model


def test_nothing_is_divided_whatever_the_model_divides_by():
    specimen = bench.Specimen("rescaled", rescaled(0.25))
    bench.matches(specimen, sg.DropScaling(), lambda layer, allowed: {"scaling": 1.0})


def test_where_nothing_is_divided_there_is_nothing_to_drop():
    specimen = bench.Specimen("unscaled", rescaled(1.0))
    bench.refuses(
        lambda: specimen.run(sg.DropScaling()), "nothing to drop", "Temperature", error=sg.UnsupportedError
    )


def test_dropping_it_twice_drops_it_once(tiny):
    assert bench.same(tiny.run(sg.DropScaling(), sg.DropScaling()), tiny.run(sg.DropScaling()))


def test_a_temperature_still_divides(tiny):
    for plan in (
        sg.Plan(sg.DropScaling(), sg.Temperature(3.0)),
        sg.Plan(sg.Temperature(3.0), sg.DropScaling()),
    ):
        bench.matches(tiny, plan, lambda layer, allowed: {"scaling": 1.0, "temperature": 3.0})


def test_others_are_left_alone(specimen):
    bench.leaves_others_alone(specimen, sg.DropScaling())
    bench.leaves_other_rows_alone(specimen, sg.DropScaling())


def test_selections_that_the_model_lacks_are_refused(tiny):
    bench.refuses(lambda: tiny.run(sg.DropScaling().at("H5")), "Head 5", "0-4", error=sg.SelectionError)
    bench.refuses(lambda: tiny.run(sg.DropScaling().at("L3")), "Layer 3", "0-2", error=sg.SelectionError)
    assert torch.equal(tiny.run().hidden[-1], tiny.run().hidden[-1])
