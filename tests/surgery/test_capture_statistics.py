import math

import pytest
import torch

import surgery as sg
from surgery import metrics
from surgery.capture import Site, change, site

ROWS, HEADS, TOKENS, WIDTH = 2, 3, 5, 7


@pytest.fixture
def seen() -> Site:
    generator = torch.Generator().manual_seed(11)
    scores = torch.randn(ROWS, HEADS, TOKENS, TOKENS, generator=generator)
    allowed = torch.rand(ROWS, 1, TOKENS, TOKENS, generator=generator) > 0.4
    allowed |= torch.eye(TOKENS, dtype=torch.bool)
    weights = scores.masked_fill(~allowed, -math.inf).softmax(-1)
    return site(scores, weights, torch.randn(ROWS, HEADS, TOKENS, WIDTH, generator=generator), allowed)


@pytest.fixture
def real() -> torch.Tensor:
    return torch.tensor([[True] * 5, [True] * 3 + [False] * 2])


def measured(seen: Site, real: torch.Tensor) -> dict[str, torch.Tensor]:
    return change(seen, seen, real, torch.zeros_like(real))


def test_statistics_are_of_the_real_pairs_alone(seen, real):
    found = measured(seen, real)
    for row, head in [(0, 0), (1, 2)]:
        n = int(real[row].sum())
        scores, weights = seen.scores[row, head, :n, :n], seen.weights[row, head, :n]
        expected = {
            "scores_mean": scores.mean(),
            "scores_std": scores.std(correction=0),
            "scores_min": scores.min(),
            "scores_max": scores.max(),
            "weight_max": weights.amax(-1).mean(),
            "output_rms": seen.output[row, head, :n].square().mean().sqrt(),
            "permitted": seen.allowed[row, head, :n, :n].sum(),
        }
        for name, value in expected.items():
            for run in ("baseline", "operated"):
                torch.testing.assert_close(found[f"{name}_{run}"][row, head], value, check_dtype=False)


def test_without_a_mask_every_real_pair_is_permitted(seen, real):
    free = site(seen.scores, seen.weights, seen.output, None)
    assert measured(free, real)["permitted_baseline"].tolist() == [[25] * HEADS, [9] * HEADS]


def test_some_rows_of_a_site_keep_their_mask(seen):
    second = seen.rows(slice(1, 2))
    assert torch.equal(second.allowed, seen.allowed[1:2])
    assert Site(seen.scores, seen.weights, seen.output, seen.no_key).rows(slice(1)).allowed is None


def test_the_standard_deviation_of_nothing_is_undefined():
    assert metrics.std(torch.ones(3), torch.zeros(3, dtype=torch.bool)).isnan()
    assert metrics.std(torch.tensor([1.0, 3.0, 99.0]), torch.tensor([True, True, False])) == 1


@pytest.mark.parametrize("capture", ["all", "stats"])
def test_a_comparison_reports_the_operated_scores_and_pairs(encoder, capture):
    c = sg.compare(
        encoder, "the dog chased the cat", sg.Plan(sg.DropScaling(), sg.CausalMask()), capture, pad_to=11
    )
    first = c.heads[c.heads["layer"] == 0]
    assert (c.d_k, c.heads_per_layer, c.kind, c.mask_token) == (16, 4, "masked_lm", "[MASK]")
    for name in ("scores_mean", "scores_std", "scores_min", "scores_max"):  # 1/√16, dropped, is a factor of 4
        assert first[f"{name}_operated"].to_numpy() == pytest.approx(
            4 * first[f"{name}_baseline"].to_numpy(), rel=1e-4
        )
    assert set(first["permitted_baseline"]) == {7 * 7}
    assert set(first["permitted_operated"]) == {7 * 8 // 2}
