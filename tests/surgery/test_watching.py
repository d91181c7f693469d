"""Attention kept in a loop of one's own: texts, pictures, modules of PyTorch."""

import numpy as np
import pytest
import torch
from transformers import ViTConfig, ViTModel

import surgery as sg
from surgery import figures


@pytest.fixture(scope="module")
def eye():
    torch.manual_seed(0)
    config = ViTConfig(
        hidden_size=20, num_hidden_layers=3, num_attention_heads=5, intermediate_size=24, image_size=21, patch_size=7, initializer_range=0.3
    )  # fmt: skip
    return ViTModel(config).eval()


def test_a_text_is_watched_as_compare_sees_it(minilm):
    text = "The dog bit the man"
    plan = sg.Plan(sg.Temperature(2.0).at("L1"), sg.CausalMask().at("L3"))
    wanted = sg.compare(minilm, text, plan)
    with torch.no_grad(), sg.watch(minilm, plan) as seen:
        minilm.model(**minilm.tokenizer(text, return_tensors="pt"))
    assert seen.layers == tuple(range(6))
    for layer in range(6):
        assert torch.equal(seen.weights(layer)[0], wanted.operated.weights[layer])


def test_only_the_layers_that_were_asked_for_are_kept(minilm):
    inputs = minilm.tokenizer("The dog bit the man", return_tensors="pt")
    with torch.no_grad(), sg.watch(minilm, layers=[2, 4]) as seen:
        minilm.model(**inputs)
    assert (
        seen.layers == (2, 4)
        and seen.scores(2).shape == (1, 12, 7, 7)
        and seen.output(4).shape == (1, 12, 7, 32)
    )
    with torch.no_grad(), sg.watch(minilm, layers=[2, 4], scores=False) as lean:
        minilm.model(**inputs)
    assert torch.equal(lean.weights(2), seen.weights(2))
    with pytest.raises(sg.WatchError, match="scores=False"):
        lean.scores(2)
    with pytest.raises(sg.WatchError, match="kept: 2, 4"):
        seen.weights(3)
    with pytest.raises(sg.WatchError, match="0-5"), sg.watch(minilm, layers=[6]):
        pass


def test_a_plan_that_is_open_already_comes_first(minilm):
    inputs = minilm.tokenizer("The dog bit the man", return_tensors="pt")
    with torch.no_grad():
        with (
            sg.operate(minilm, sg.UniformAttention().at("L0")),
            sg.watch(minilm, sg.HideSelf().at("L0")) as inner,
        ):
            minilm.model(**inputs)
        with sg.watch(minilm, sg.Plan(sg.UniformAttention().at("L0"), sg.HideSelf().at("L0"))) as both:
            minilm.model(**inputs)
    assert torch.equal(inner.weights(0), both.weights(0))
    assert inner.weights(0)[0, 0, 2, 2] == 0 and inner.weights(0)[0, 0, 2, 3] == pytest.approx(1 / 6)


def test_gradients_reach_what_was_kept(minilm):
    inputs = minilm.tokenizer("The dog bit the man", return_tensors="pt")
    with sg.watch(minilm, layers=[0]) as seen:
        out = minilm.model(**inputs).last_hidden_state.sum()
    (grad,) = torch.autograd.grad(out, seen.weights(0))
    assert grad.shape == (1, 12, 7, 7) and grad.abs().sum() > 0


def test_the_weights_of_a_picture_lie_on_its_patches(eye):
    pixels = torch.rand(1, 3, 21, 21)
    with torch.no_grad(), sg.watch(eye) as before:
        eye(pixel_values=pixels)
    with torch.no_grad(), sg.watch(eye, sg.RemovePositions()) as after:
        eye(pixel_values=pixels)
    maps = [sg.patch_grid(run.weights(2)[0, 1, 0], 3, 3) for run in (before, after)]
    row = before.weights(2)[0, 1, 0]
    assert maps[0].shape == (3, 3) and torch.equal(maps[0][1], row[4:7]) and not torch.equal(*maps)
    with pytest.raises(sg.WatchError, match="4 × 3"):
        sg.patch_grid(row, 4, 3)
    picture = pixels[0].permute(1, 2, 0).numpy()
    figure = figures.overlay(picture, [m.numpy() for m in maps], "L2.H1, [CLS] looks at", "zh")
    shown = [axes.images for axes in figure.axes if axes.images]
    assert [len(images) for images in shown[:3]] == [1, 2, 2]
    drawn = [images[1] for images in shown[1:3]]
    for image, grid in zip(drawn, maps, strict=True):
        np.testing.assert_allclose(image.get_array(), grid.numpy(), rtol=1e-6)
        assert (image.norm.vmin, image.norm.vmax) == (0, pytest.approx(max(float(m.max()) for m in maps)))
    with pytest.raises(sg.SurgeryError, match="picture"):
        figures.overlay(picture[..., :2], maps, "x")


def test_a_module_of_pytorch_is_watched():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(12, 3, 16, batch_first=True)
    module = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    x = torch.randn(2, 5, 12)
    sg.admit(module, x)
    with torch.no_grad(), sg.watch(module, sg.Temperature(3.0).at("L1.H2")) as seen:
        module(x)
    assert seen.layers == (0, 1) and seen.weights(1).shape == (2, 3, 5, 5)
    torch.testing.assert_close(seen.weights(1).sum(-1), torch.ones(2, 3, 5))
