import numpy as np
import pytest
import torch

import surgery as sg
from tests import reference
from tests.surgery import bench


def test_padding_is_attended_to_like_any_token(specimen):
    n = specimen.tokens
    causal = getattr(specimen.model.config, "causal", False)
    own = reference.causal(n) if causal else np.ones((n, n), bool)
    bench.matches(specimen, sg.IgnorePaddingMask(), lambda layer, allowed: {"allowed": own[None, None]})


def test_it_is_what_the_model_does_without_attention_mask(specimen):
    forgotten = {"input_ids": specimen.inputs["input_ids"]}
    seen, expected = specimen.run(sg.IgnorePaddingMask()), specimen.run(inputs=forgotten)
    assert torch.allclose(seen.hidden[-1], expected.hidden[-1], atol=1e-5)


@pytest.mark.parametrize("order", [1, -1])
def test_other_masks_hold_in_either_order(tiny, order):
    plan = sg.Plan(*[sg.LocalMask(1), sg.IgnorePaddingMask()][::order])
    bench.matches(tiny, plan, lambda layer, allowed: {"allowed": reference.local(11, 1)[None, None]})


def test_without_padding_it_changes_nothing():
    for name, make in bench.SPECIMENS.items():
        specimen = make()
        specimen.inputs = bench.batch(padded=False)
        assert bench.same(specimen.run(sg.IgnorePaddingMask()), specimen.run()), name


def test_others_are_left_alone(specimen):
    bench.leaves_others_alone(specimen, sg.IgnorePaddingMask())
    bench.leaves_other_rows_alone(specimen, sg.IgnorePaddingMask())


def test_an_own_mask_that_hides_what_is_padding_is_refused(tiny):
    own = {**tiny.inputs, "attention_mask": torch.ones(2, 1, 11, 11, dtype=torch.bool)}
    refused = lambda: tiny.run(sg.IgnorePaddingMask(), inputs=own)  # noqa: E731
    bench.refuses(refused, "mask of your own", "(row, token)", error=sg.UnsupportedError)
