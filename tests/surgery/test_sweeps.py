"""Sweeps: every row equals a comparison of its own, whatever it shares a batch with."""

import math

import joblib
import pytest
import torch

import surgery as sg
from surgery import theatre
from surgery.reading import read
from surgery.sweeps import MEASURES, reseeded, run_rows
from tests.surgery.patients import patient

TEXT = "The dog bit the man because it was afraid of him."
MIXED = [
    sg.Plan(),
    sg.Plan(sg.RemovePositions()),
    sg.Plan(sg.Temperature(3.0).at("L4")),
    sg.Plan(sg.CausalMask().at("L1.H2"), sg.WeightDropout(0.3, 1).at("L3")),
    sg.Plan(sg.ScoreDropout(0.2, 7).at("L5")),
    sg.Plan(sg.LocalMask(1).at("L2")),
    sg.Plan(sg.KeyDropout(0.3, 5)),
    sg.Plan(sg.ReversePositions(), sg.DropScaling().at("L3")),
    sg.Plan(sg.AblateHead().at("L0.H0+L5.H11")),
    sg.Plan(sg.Temperature(1.0)),
]


def close(found, comparison, tolerance=1e-5):
    for name in ("relative_l2", "token_cosine", "sentence_cosine"):
        assert found[name] == pytest.approx(comparison.output[name], abs=tolerance), name


def test_plans_of_every_stage_in_one_batch_equal_their_own_comparisons(minilm):
    table = sg.sweep(minilm, TEXT, MIXED)
    for plan, (_, row) in zip(MIXED, table.iterrows(), strict=True):
        close(row, sg.compare(minilm, TEXT, plan, capture=None))


def test_every_head_off_equals_one_comparison_each(minilm):
    plans = sg.every_head(minilm)
    assert [str(plan.steps[0].selection) for plan in plans[:13]] == [
        *(f"L0.H{h}" for h in range(12)),
        "L1.H0",
    ]
    table = sg.sweep(minilm, TEXT, plans)
    assert len(table) == 72
    for index in (0, 11, 12, 41, 71):
        close(table.iloc[index], sg.compare(minilm, TEXT, plans[index], capture=None))


def test_rows_join_where_their_plan_begins_and_not_before(minilm):
    seen = []
    hooks = [
        block.register_forward_hook(lambda _, args, out: seen.append(len(args[0])))
        for block in theatre.admit(minilm.model).blocks
    ]
    try:
        sg.sweep(minilm, TEXT, sg.every_head(minilm))
    finally:
        for hook in hooks:
            hook.remove()
    assert seen == [1 + 12, 1 + 24, 1 + 36, 1 + 48, 1 + 60, 1 + 72]


def test_a_small_budget_gives_the_same_table_in_more_batches(minilm):
    whole, parts = sg.sweep(minilm, TEXT, MIXED), sg.sweep(minilm, TEXT, MIXED, budget=1)
    for name in MEASURES[:3]:
        assert parts[name].to_numpy() == pytest.approx(whole[name].to_numpy(), abs=1e-5)


def test_shared_blocks_run_from_the_start():
    albert = patient("AlbertModel", "encoder", num_hidden_layers=3)
    assert theatre.admit(albert.model).blocks == ()
    plans = [sg.Plan(sg.Temperature(4.0).at(layers=layer)) for layer in range(3)]
    reading = read(albert, "the cat saw")
    for plan, found in zip(plans, run_rows(albert, reading, plans), strict=True):
        close(found, sg.compare(albert, "the cat saw", plan, capture=None))


def test_stochastic_plans_are_averaged_over_seeds_with_their_spread(minilm):
    plan = sg.Plan(sg.ScoreDropout(0.3))
    table = sg.sweep(minilm, TEXT, [plan, sg.HideSelf()], seeds=3)
    alone = [
        sg.compare(minilm, TEXT, reseeded(plan, s), capture=None).output["relative_l2"] for s in range(3)
    ]
    mean = sum(alone) / 3
    assert table["seeds"].tolist() == [3, 1]
    assert table["relative_l2"][0] == pytest.approx(mean, abs=1e-5)
    spread = math.sqrt(sum((value - mean) ** 2 for value in alone) / 3)
    assert table["relative_l2_sd"][0] == pytest.approx(spread, abs=1e-5)
    assert table["relative_l2_sd"][1] == 0


def test_texts_spread_over_processes_give_the_same_table(minilm):
    texts = [TEXT, "Colourless green ideas sleep furiously.", "hello"]
    plans = sg.every_layer(minilm)
    one, two = sg.sweep(minilm, texts, plans), sg.sweep(minilm, texts, plans, n_jobs=2)
    assert two["text"].tolist() == one["text"].tolist() and two["label"].tolist() == one["label"].tolist()
    assert two["relative_l2"].to_numpy() == pytest.approx(one["relative_l2"].to_numpy(), abs=1e-5)
    joblib.externals.loky.get_reusable_executor().shutdown()


def test_progress_is_told_and_may_stop_the_sweep(minilm):
    told = []

    def stop(done, of):
        told.append((done, of))
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sg.sweep(minilm, ["a b", "c d", "e f"], sg.every_layer(minilm), progress=stop)
    assert told == [(1, 3), (2, 3)]
    baseline = sg.compare(minilm, TEXT)
    assert torch.equal(baseline.baseline.hidden, baseline.operated.hidden)


def test_what_cannot_be_done_fails_before_anything_runs(minilm, monkeypatch):
    monkeypatch.setattr(type(minilm.model), "forward", lambda *_, **__: pytest.fail("it ran"))
    for plans, error in (
        ([sg.Temperature(2.0).at(layers=6)], sg.SelectionError),
        ([sg.RemovePositions().at("L0")], sg.UnsupportedError),
        ([], sg.SweepError),
    ):
        with pytest.raises(error):
            sg.sweep(minilm, TEXT, plans)


def test_a_grid_is_every_combination():
    plans = sg.grid(sg.WeightDropout, at="L1", p=[0.1, 0.2], seed=[0, 1])
    assert [plan.steps[0].operation.values for plan in plans] == [
        {"p": 0.1, "seed": 0},
        {"p": 0.1, "seed": 1},
        {"p": 0.2, "seed": 0},
        {"p": 0.2, "seed": 1},
    ]
    assert {str(plan.steps[0].selection) for plan in plans} == {"L1"}


def test_head_importance_is_the_mean_effect_of_one_head_off(minilm):
    texts = [TEXT, "hello world"]
    table = sg.head_importance(minilm, texts)
    assert table[["layer", "head"]].to_numpy().tolist() == [[n // 12, n % 12] for n in range(72)]
    alone = [
        sg.compare(minilm, t, sg.AblateHead().at("L3.H4"), capture=None).output["relative_l2"] for t in texts
    ]
    row = table[(table.layer == 3) & (table["head"] == 4)].iloc[0]
    assert row.effect == pytest.approx(sum(alone) / 2, abs=1e-5)
    with pytest.raises(sg.SweepError, match="relative_l2"):
        sg.head_importance(minilm, "hi", measure="vibes")


def test_masked_answers_are_measured_by_kl():
    masked_lm = patient("BertForMaskedLM", "masked_lm")
    text = f"the cat {masked_lm.mask_token} the dog"
    plan = sg.Plan(sg.Temperature(5.0))
    row = sg.sweep(masked_lm, text, [plan]).iloc[0]
    site = sg.compare(masked_lm, text, plan, capture=None).output["sites"][0]
    assert row["kl"] == pytest.approx(site["kl"], abs=1e-6)
    assert row["top1_changed"] == site["top1_changed"]
