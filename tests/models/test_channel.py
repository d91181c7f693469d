"""SE, ECA and CBAM against their papers' equations in float64, place by place."""

import math

import numpy as np
import pytest
import torch

from models.channel import CBAM, ECA, SE, kernel_size
from models.configuration import ModelError

ROWS, CHANNELS, HEIGHT, WIDTH = 2, 13, 5, 7


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.fixture
def x():
    return torch.randn(ROWS, CHANNELS, HEIGHT, WIDTH, generator=torch.Generator().manual_seed(1))


def seeded(make):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        block = make()
        for weight in block.parameters():
            torch.nn.init.normal_(weight, 0, 0.7)
    return block.eval()


def weights(module):
    return module.weight.detach().double().numpy()


def test_se_is_its_equations(x):
    block, found = seeded(lambda: SE(CHANNELS, 4)), x.double().numpy()
    w1, w2 = weights(block.squeeze), weights(block.excite)
    assert w1.shape == (3, CHANNELS) and w2.shape == (CHANNELS, 3)
    for row in range(ROWS):
        z = np.array([found[row, c].sum() / (HEIGHT * WIDTH) for c in range(CHANNELS)])
        s = sigmoid(w2 @ np.maximum(w1 @ z, 0))
        expected = np.stack([found[row, c] * s[c] for c in range(CHANNELS)])
        assert np.abs(block(x)[row].detach().numpy() - expected).max() < 1e-6


def test_eca_is_its_equation(x):
    block, found = seeded(lambda: ECA(CHANNELS)), x.double().numpy()
    kernel = weights(block.neighbours)[0, 0]
    assert len(kernel) == 3
    z = found.mean((2, 3))
    for row in range(ROWS):
        for c in range(CHANNELS):
            near = [(c + i - 1, kernel[i]) for i in range(3) if 0 <= c + i - 1 < CHANNELS]
            gate = sigmoid(sum(w * z[row, at] for at, w in near))
            assert abs(block.gates(x)[0][row, c, 0, 0].item() - gate) < 1e-6
    assert torch.allclose(block(x), x * block.gates(x)[0])


@pytest.mark.parametrize("channels, size", [(16, 3), (64, 3), (128, 5), (256, 5), (512, 5)])
def test_ecas_kernel_grows_with_the_logarithm(channels, size):
    assert kernel_size(channels) == size
    assert abs(size - (math.log2(channels) + 1) / 2) <= 1


def test_cbam_is_its_equations(x):
    block, found = seeded(lambda: CBAM(CHANNELS, 4, kernel=3)), x.double().numpy()
    (w1, b1), (w2, b2) = (
        (weights(m), m.bias.detach().double().numpy()) for m in (block.mlp[0], block.mlp[2])
    )

    def mlp(z):
        return w2 @ np.maximum(w1 @ z + b1, 0) + b2

    kernel = weights(block.places)[0]  # (2, 3, 3)
    for row in range(ROWS):
        channel = sigmoid(mlp(found[row].mean((1, 2))) + mlp(found[row].max((1, 2))))
        first = found[row] * channel[:, None, None]
        both = np.pad(np.stack([first.mean(0), first.max(0)]), ((0, 0), (1, 1), (1, 1)))
        places = np.array(
            [
                [sigmoid((both[:, i : i + 3, j : j + 3] * kernel).sum()) for j in range(WIDTH)]
                for i in range(HEIGHT)
            ]
        )
        assert np.abs(block(x)[row].detach().numpy() - first * places).max() < 1e-6
        gates = block.gates(x)
        assert np.abs(gates[1][row, 0].detach().numpy() - places).max() < 1e-6


@pytest.mark.parametrize("make", [SE, ECA, CBAM])
def test_untrained_zeros_halve_everything(make, x):
    block = seeded(lambda: make(CHANNELS) if make is ECA else make(CHANNELS, 4))
    for weight in block.parameters():
        torch.nn.init.zeros_(weight)
    assert torch.allclose(block(x), x * (0.25 if make is CBAM else 0.5))


def test_no_place_looks_at_another(x):
    """What tells it from token attention: shuffled places have the same channel gates."""
    order = torch.randperm(HEIGHT * WIDTH, generator=torch.Generator().manual_seed(2))
    mixed = x.flatten(2)[..., order].unflatten(2, (HEIGHT, WIDTH))
    for make in (lambda: SE(CHANNELS, 4), lambda: ECA(CHANNELS), lambda: CBAM(CHANNELS, 4)):
        block = seeded(make)
        assert torch.allclose(block.gates(x)[0], block.gates(mixed)[0], atol=1e-6)


def test_too_few_channels_are_refused_in_both_languages():
    for make in (SE, CBAM):
        with pytest.raises(ModelError, match="reduction = 16") as caught:
            make(8)
        assert "通道" in caught.value.say("zh")
