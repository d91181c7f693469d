import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import surgery as sg
from surgery.capture import Site, changes, site

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
    return changes({0: seen}, {0: seen}, real, torch.zeros_like(real))[0]


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


LONG = "The dog bit the man because it was afraid of him and nobody had told it what a man is for. " * 8


@pytest.mark.parametrize(
    "plan", [sg.Plan(sg.Temperature(2.0).at("H3")), sg.Plan(sg.LocalMask(5)), sg.Plan(sg.RemovePositions())]
)
def test_statistics_in_blocks_of_queries_equal_those_of_whole_matrices(minilm, plan):
    whole = sg.compare(minilm, LONG, plan, pad_to=180).heads
    blocks = sg.compare(minilm, LONG, plan, pad_to=180, capture="stats").heads
    assert len(sg.compare(minilm, LONG, plan, capture=None).tokens) > 2 * 64
    assert list(blocks) == list(whole)
    for name in whole:
        assert blocks[name].to_numpy(float) == pytest.approx(
            whole[name].to_numpy(float), abs=2e-4, rel=2e-4, nan_ok=True
        ), name


def test_no_matrix_of_tokens_by_tokens_is_made_for_statistics(minilm):
    largest = []

    class Sizes(TorchDispatchMode):
        def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
            out = operation(*args, **(kwargs or {}))
            if isinstance(out, torch.Tensor) and out.dim() == 4:
                largest.append(out.shape[-2] if out.shape[-1] == 512 else 0)
            return out

    with Sizes():
        sg.compare(minilm, "word " * 600, sg.Plan(sg.Temperature(2.0)), capture="stats")
    assert 0 < max(largest) <= 64
