import numpy as np
import pytest
import torch

from models.encoder import RotaryPositions, SinusoidalPositions, rotate


def waves(position, width):
    """Vaswani et al. 2017, section 3.5, one number at a time."""
    row = []
    for channel in range(width):
        angle = position / 10000 ** ((channel - channel % 2) / width)
        row.append(np.cos(angle) if channel % 2 else np.sin(angle))
    return row


@pytest.mark.parametrize("width", [1, 2, 3, 7, 10, 13])
def test_sinusoidal_positions_are_the_papers(width):
    positions = [0, 1, 5, 19, 511, 100_003]
    table = SinusoidalPositions(width)(torch.tensor([positions]))
    assert table.shape == (1, len(positions), width)
    assert table.dtype == torch.float32
    np.testing.assert_allclose(table[0].numpy(), np.array([waves(p, width) for p in positions]), atol=1e-6)


def test_sinusoidal_positions_follow_each_row():
    table = SinusoidalPositions(7)(torch.tensor([[0, 1, 2], [5, 5, 0]]))
    assert table.shape == (2, 3, 7)
    assert torch.equal(table[0, 0], table[1, 2])
    assert torch.equal(table[1, 0], table[1, 1])


def score(q, k, at_query, at_key):
    cos, sin = RotaryPositions(q.shape[-1])(torch.tensor([[at_query, at_key]]))
    both = rotate(torch.stack((q, k))[None, None], cos, sin)  # (1, 1, 2, d_head)
    return (both[0, 0, 0] @ both[0, 0, 1]).item()


def test_rotary_scores_depend_only_on_the_distance():
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 6, generator=generator)
    near = score(q, k, 3, 1)
    assert score(q, k, 103, 101) == pytest.approx(near, abs=1e-5)
    assert score(q, k, 2, 0) == pytest.approx(near, abs=1e-5)
    assert score(q, k, 1, 3) != pytest.approx(near, abs=1e-2)  # and on its direction
    assert score(q, k, 4, 4) == pytest.approx((q @ k).item(), abs=1e-5)


def test_rotary_turns_neighbouring_channels_as_the_paper_does():
    generator = torch.Generator().manual_seed(0)
    x, position = torch.randn(6, generator=generator), 11
    cos, sin = RotaryPositions(6)(torch.tensor([[position]]))
    assert cos.shape == sin.shape == (1, 1, 6)
    found = rotate(x[None, None, None], cos, sin)[0, 0, 0].numpy()
    for i in range(3):
        angle = position / 10000 ** (2 * i / 6)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        np.testing.assert_allclose(found[2 * i : 2 * i + 2], turn @ x[2 * i : 2 * i + 2].numpy(), atol=1e-6)


def test_no_rotation_is_the_identity():
    x = torch.randn(3, 5, 7, 6, generator=torch.Generator().manual_seed(0))
    cos, sin = RotaryPositions(6)(torch.zeros(1, 7, dtype=torch.long))
    assert torch.equal(rotate(x, cos, sin), x)
