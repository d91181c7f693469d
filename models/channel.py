"""Channel attention: SE, ECA and CBAM, written to be read.

This is **not** the attention that the rest of this project operates on. Nothing here has queries or keys, no token looks at
another, and no row sums to 1: a picture's channels (its colours at first, what a network has made of them later) are each
multiplied by one number between 0 and 1, and that number comes from the whole picture. CBAM then does the same once more with
one number for each place. What the two have in common is the word, and that the numbers depend on the input.

Shapes:
    x       (row, channel, height, width)
    gate    (row, channel, 1, 1), of places (row, 1, height, width)

    from models.channel import CBAM
    x = torch.randn(1, 32, 14, 14)
    block = CBAM(32)
    block(x)          # as large as x
    block.gates(x)    # what it was multiplied by; surgery.figures.gates draws it
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .configuration import ModelError


class SE(nn.Module):
    """gate = σ(W₂ · relu(W₁ · z)), z = mean of each channel over all places.

    Squeeze and excite (Hu et al. 2018, equations 2-4). W₁ leads to `reduction` times fewer channels and W₂ back.
    """

    def __init__(self, channels: int, reduction: int = 16):
        super().__init__()
        narrow = _narrow(channels, reduction)
        self.squeeze = nn.Linear(channels, narrow, bias=False)
        self.excite = nn.Linear(narrow, channels, bias=False)

    def gates(self, x: Tensor) -> tuple[Tensor, ...]:
        z = x.mean(dim=(2, 3))  # (row, channel)
        gate = self.excite(F.relu(self.squeeze(z))).sigmoid()
        return (gate[:, :, None, None],)

    def forward(self, x: Tensor) -> Tensor:
        return _gated(x, self.gates(x))


class ECA(nn.Module):
    """gate = σ(conv(z)), one small kernel slid over the channels: a channel's gate depends on its neighbours' means.

    Efficient channel attention (Wang et al. 2020, equations 9 and 12): k weights in all, where SE has 2 · channels² / reduction.
    k is the odd number nearest to (log₂ channels + 1) / 2.
    """

    def __init__(self, channels: int):
        super().__init__()
        size = kernel_size(channels)
        self.neighbours = nn.Conv1d(1, 1, size, padding=size // 2, bias=False)

    def gates(self, x: Tensor) -> tuple[Tensor, ...]:
        z = x.mean(dim=(2, 3))  # (row, channel)
        gate = self.neighbours(z[:, None]).sigmoid()  # (row, 1, channel)
        return (gate.transpose(1, 2)[..., None],)

    def forward(self, x: Tensor) -> Tensor:
        return _gated(x, self.gates(x))


class CBAM(nn.Module):
    """Channels first: σ(mlp(mean) + mlp(max)); then places: σ(conv([mean; max] over the channels, 7 × 7)).

    Convolutional block attention (Woo et al. 2018, equations 1-3). The second gate sees what the first one left.
    """

    def __init__(self, channels: int, reduction: int = 16, kernel: int = 7):
        super().__init__()
        narrow = _narrow(channels, reduction)
        self.mlp = nn.Sequential(nn.Linear(channels, narrow), nn.ReLU(), nn.Linear(narrow, channels))
        self.places = nn.Conv2d(2, 1, kernel, padding=kernel // 2, bias=False)

    def gates(self, x: Tensor) -> tuple[Tensor, ...]:
        channel = (self.mlp(x.mean(dim=(2, 3))) + self.mlp(x.amax(dim=(2, 3)))).sigmoid()[:, :, None, None]
        x = x * channel
        both = torch.cat((x.mean(dim=1, keepdim=True), x.amax(dim=1, keepdim=True)), dim=1)  # (row, 2, h, w)
        return channel, self.places(both).sigmoid()

    def forward(self, x: Tensor) -> Tensor:
        return _gated(x, self.gates(x))


def kernel_size(channels: int) -> int:
    """ECA's: 16 channels 3, 64 channels 3, 256 channels 5."""
    size = int((math.log2(channels) + 1) / 2)
    return size if size % 2 else size + 1


def _gated(x: Tensor, gates: tuple[Tensor, ...]) -> Tensor:
    for gate in gates:
        x = x * gate
    return x


def _narrow(channels: int, reduction: int) -> int:
    if reduction < 1 or channels < reduction:
        raise ModelError(
            f"reduction = {reduction} leaves no channel of {channels}: give a number from 1 to {channels}.",
            f"reduction = {reduction} 使 {channels} 个通道一个不剩：请给 1 到 {channels} 之间的数。",
        )
    return channels // reduction
