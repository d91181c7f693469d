"""Sweeps: every row equals a comparison of its own, whatever it shares a batch with."""

import math
import os
import signal
from dataclasses import dataclass

import joblib
import pandas
import pytest
import torch

import surgery as sg
from models import load
from surgery import answers, reading, spread, sweeps, theatre
from surgery.reading import read
from surgery.rows import _deeds, arrange, run_rows
from surgery.spread import SpreadError
from surgery.sweeps import MEASURES
from surgery.variants import reseeded
from tests.surgery.patients import byte_tokenizer, patient

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
    theatre.admit(minilm.model)  # which runs it once
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


# --- rows that share what they have in common -----------------------------------------------------------------


def test_a_row_is_a_copy_of_the_longest_beginning_that_runs_already():
    a, b, c = ("a",), ("b",), ("c",)
    deeds = [(a, b, None, None), (a, b, c, None), (None, None, a, None), (a, b, None, b), (a, b, None, None)]
    rows = {row.plan: row for row in arrange(deeds)}
    places = {row.plan: place for place, row in enumerate(arrange(deeds), 1)}
    assert (rows[0].joins, rows[0].source) == (0, 0)
    assert (rows[1].joins, rows[1].source) == (2, places[0])
    assert (rows[2].joins, rows[2].source) == (2, 0)
    assert (rows[3].joins, rows[3].source) == (3, places[0])
    assert (rows[4].joins, rows[4].source) == (
        3,
        places[0],
    )  # the same plan twice: only the last block runs again
    assert all(row.joins == 0 for row in arrange(deeds, whole=True))


def test_pairs_of_heads_share_the_first_of_them(minilm):
    pairs = [plan for plan in sg.every_pair(minilm) if str(plan.steps[0].selection) in ("L0.H3", "L2.H1")]
    assert len(pairs) == (71 - 3) + (71 - 25)
    blocks = []
    hooks = [
        block.register_forward_hook(lambda _, args, out: blocks.append(len(args[0])))
        for block in theatre.admit(minilm.model).blocks
    ]
    try:
        table = sg.sweep(minilm, TEXT, pairs)
    finally:
        for hook in hooks:
            hook.remove()
    assert sum(blocks) < 0.7 * 6 * (1 + len(pairs))
    # L0.H3 with each of the eight heads after it in layer 0, and once for all pairs with later layers
    assert blocks[0] == 1 + 8 + 1 and blocks[-1] == 1 + len(pairs)
    for index in (0, 7, 30, 67, 68, 90, len(pairs) - 1):
        close(table.iloc[index], sg.compare(minilm, TEXT, pairs[index], capture=None))


def test_rows_that_share_a_random_beginning_draw_the_same_numbers(minilm):
    first = (sg.WeightDropout(0.3, 1).at("L1"), sg.ReversePositions())
    plans = [
        sg.Plan(*first, sg.Temperature(t).at("L3"), sg.WeightDropout(0.3, 1).at("L1+L4")) for t in (0.5, 2, 4)
    ]
    assert [row.joins for row in arrange([deeds(minilm, plan) for plan in plans])] == [0, 3, 3]
    table = sg.sweep(minilm, TEXT, plans)
    for plan, (_, row) in zip(plans, table.iterrows(), strict=True):
        close(row, sg.compare(minilm, TEXT, plan, capture=None))


def deeds(loaded, plan):
    return _deeds(theatre.admit(loaded.model), plan, loaded.name)


# --- right answers ----------------------------------------------------------------------------------------------


def test_heads_are_ranked_by_what_they_are_worth_for_the_right_answer():
    encoder = load("encoder")
    texts = ["today the dogs near the cat [MASK] tired", "the queen near the king watched [MASK]"]
    truth = ["are", "herself"]
    table = sg.sweep(encoder, texts, [sg.RemovePositions()], truth=truth)
    for (_, row), text, word in zip(table.iterrows(), texts, truth, strict=True):
        said = sg.compare(encoder, text, sg.RemovePositions(), capture=None)
        before, after = dict(said.baseline.predictions[0]), dict(said.operated.predictions[0])
        assert row.loss_baseline == pytest.approx(-math.log(before[word]), abs=1e-4)
        assert row.accuracy_baseline == (said.baseline.predictions[0][0][0] == word) == 1
        assert row.accuracy == (said.operated.predictions[0][0][0] == word)
        if word in after:
            assert row.loss == pytest.approx(-math.log(after[word]), abs=1e-4)
    loss = sg.head_importance(encoder, texts, measure="loss", truth=truth)
    accuracy = sg.head_importance(encoder, texts, measure="accuracy", truth=truth)
    assert (loss.effect > 0).any() and set(accuracy.effect) <= {0.0, 0.5, 1.0}
    raw = sg.sweep(encoder, texts, sg.every_head(encoder), truth=truth)
    rise = (raw.loss - raw.loss_baseline).groupby(raw.plan).mean()
    assert loss.effect.to_numpy() == pytest.approx(rise.to_numpy())


def test_right_answers_that_fit_nothing_are_refused(minilm):
    encoder = load("encoder")
    ask = "the dog [MASK] the cat"
    for text, truth, error, hint in (
        (ask, ["blorp"], sg.TruthError, "blorp"),
        (ask, [["chased", "cat"]], sg.TruthError, "each"),
        ([ask, ask], ["chased"], sg.SweepError, "one for each text"),
    ):
        with pytest.raises(error, match=hint):
            sg.sweep(encoder, text, [sg.CausalMask()], truth=truth)
    with pytest.raises(sg.TruthError, match="0 times"):
        sg.sweep(minilm, TEXT, [sg.CausalMask()], truth="dog")
    with pytest.raises(sg.SweepError, match="truth"):
        sg.head_importance(encoder, ask, measure="loss")


@pytest.mark.parametrize(
    ("text", "token"), [("the <mask>", "Ġcat"), ("the<mask>", "cat"), ("the [MASK] bit", "Ġcat")]
)
def test_the_right_answer_is_the_token_that_stands_there(text, token):
    """Pieces of bytes hold the space before them, and masks swallow it."""
    tokenizer = byte_tokenizer(roberta=True)
    reader = patient("RobertaForMaskedLM", "masked_lm", tokenizer)
    (right,) = answers.truths(reader, read(reader, text), "cat")
    assert tokenizer.convert_ids_to_tokens(right) == token
    assert right == read(reader, text.replace("[MASK]", "<mask>").replace("<mask>", "cat")).ids[2]


def test_a_classifiers_right_answer_is_a_label_of_one_or_more_words():
    labels = {0: "quite bad", 1: "good"}
    judge = patient(
        "BertForSequenceClassification",
        "classifier",
        id2label=labels,
        label2id={v: k for k, v in labels.items()},
    )
    texts, truth = answers.judged(["the dog => quite bad", "a cat => good"])
    table = sg.sweep(judge, texts, [sg.CausalMask()], truth=truth)
    for number, (text, label) in enumerate(zip(texts, labels.values(), strict=True)):
        (said,) = sg.compare(judge, text, capture=None).baseline.predictions
        assert table["loss_baseline"][number] == pytest.approx(-math.log(dict(said)[label]), abs=1e-4)
    with pytest.raises(sg.TruthError, match="bad"):
        sg.sweep(judge, texts, [sg.CausalMask()], truth=["bad", "good"])


# --- long sweeps --------------------------------------------------------------------------------------------------

TEXTS = ["The dog bit the man.", "Colourless green ideas", "hello there", "sleep furiously", "one more"]


def test_a_sweep_stops_when_it_is_told_to_and_goes_on_from_its_folder(minilm, tmp_path, monkeypatch):
    plans = sg.every_layer(minilm)
    whole = sg.sweep(minilm, TEXTS, plans)
    some = sg.sweep(minilm, TEXTS, plans, out=tmp_path / "s", progress=lambda done, of: done < 2)
    assert some["text"].unique().tolist() == [0, 1]
    opened = []
    monkeypatch.setattr(sweeps, "read", lambda *a: opened.append(a[1]) or reading.read(*a))
    rest = sg.sweep(minilm, TEXTS, plans, out=tmp_path / "s")
    assert opened == TEXTS[2:]
    pandas.testing.assert_frame_equal(rest, whole)
    pandas.testing.assert_frame_equal(
        pandas.read_parquet(tmp_path / "s").sort_values(["text", "plan"], ignore_index=True), whole
    )
    with pytest.raises(SpreadError, match="another sweep"):
        sg.sweep(minilm, TEXTS[:4], plans, out=tmp_path / "s")


def test_a_half_written_file_is_not_taken_for_a_result(minilm, tmp_path):
    sg.sweep(minilm, TEXTS[:2], [sg.CausalMask()], out=tmp_path)
    (tmp_path / "_texts-000000002-000000002.parquet").write_bytes(b"PAR1")
    assert len(sg.sweep(minilm, TEXTS[:2], [sg.CausalMask()], out=tmp_path)) == 2


def test_a_text_that_fails_is_a_row_if_asked_and_an_error_if_not(minilm):
    texts = ["fine", "   ", "also fine"]
    with pytest.raises(sg.TextError):
        sg.sweep(minilm, texts, [sg.CausalMask()])
    table = sg.sweep(minilm, texts, [sg.CausalMask(), sg.HideSelf()], on_error="row")
    assert table["text"].tolist() == [0, 0, 1, 1, 2, 2]
    assert table["error"].isna().tolist() == [True, True, False, False, True, True]
    assert "empty" in table["error"][2] and math.isnan(table["relative_l2"][2])
    with pytest.raises(sg.SweepError, match="row"):
        sg.sweep(minilm, texts, [sg.CausalMask()], on_error="ignore")


@dataclass(frozen=True)
class Deadly:
    """Work whose process dies at one text."""

    work: sweeps._Work
    text: int
    keep_going: bool = True

    def __call__(self, patient, number, *rest):
        if number == self.text:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.work(patient, number, *rest)

    def failed(self, number, error):
        return self.work.failed(number, error)


@pytest.mark.filterwarnings("ignore:A worker stopped while some jobs were given:UserWarning")
def test_a_lost_worker_costs_its_text_alone(minilm):
    work = sweeps._Work((sg.Plan(sg.CausalMask()),), 1, 2**28, keep_going=True)
    asked = [(text, None) for text in TEXTS]
    found = {int(t["text"][0]): t for _, t in spread.tables(minilm, Deadly(work, 3), asked, 2, None)}
    assert sorted(found) == [0, 1, 2, 3, 4]
    assert "Terminated" in found[3]["error"][0]
    assert all(found[n]["error"].isna().all() for n in (0, 1, 2, 4))
    with pytest.raises(SpreadError, match="text 3"):
        list(spread.tables(minilm, Deadly(work, 3, keep_going=False), asked, 2, None))
    joblib.externals.loky.get_reusable_executor().shutdown()


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_is_wrong_with_a_text_is_said_in_both_languages_wherever_it_ran(minilm, jobs):
    with pytest.raises(sg.TextError, match="empty") as said:
        sg.sweep(minilm, ["fine", "   ", "also fine"], [sg.CausalMask()], n_jobs=jobs)
    assert "文本为空" in said.value.say("zh")


def test_workers_compute_in_the_models_own_precision():
    half, plans = load("minilm", dtype="bfloat16"), [sg.DropScaling()]
    here, there = (sg.sweep(half, TEXTS[:2], plans, n_jobs=n) for n in (1, 2))
    assert here["relative_l2"].tolist() == pytest.approx(there["relative_l2"].tolist(), rel=1e-4)


def test_a_folder_of_results_is_of_one_precision_and_of_what_its_note_says(minilm, tmp_path):
    plans = [sg.CausalMask()]
    sg.sweep(minilm, TEXTS[:2], plans, out=tmp_path)
    with pytest.raises(SpreadError, match="another sweep"):
        sg.sweep(load("minilm", dtype="bfloat16"), TEXTS[:2], plans, out=tmp_path)
    (tmp_path / "_sweep.json").unlink()
    with pytest.raises(SpreadError, match="another sweep"):
        sg.sweep(minilm, TEXTS[2:4], [sg.HideSelf()], out=tmp_path)


def test_a_text_that_failed_is_tried_again_and_not_kept_for_finished(minilm, tmp_path):
    texts, plans = ["fine", "   ", "also fine"], [sg.CausalMask(), sg.HideSelf()]
    first = sg.sweep(minilm, texts, plans, out=tmp_path, on_error="row")
    again = sg.sweep(minilm, texts, plans, out=tmp_path, on_error="row")
    pandas.testing.assert_frame_equal(first, again, check_dtype=False)
    assert sorted(pandas.read_parquet(tmp_path)["text"]) == [0, 0, 1, 1, 2, 2]
    with pytest.raises(sg.TextError):
        sg.sweep(minilm, texts, plans, out=tmp_path)


def test_a_table_has_the_same_columns_whatever_failed(minilm):
    good, bad = (
        sg.sweep(minilm, ["fine", other], [sg.CausalMask()], on_error="row") for other in ("fine", " ")
    )
    assert list(good) == list(bad) and "loss" not in good


def test_jobs_that_are_no_number_and_the_answers_of_one_text(minilm):
    for jobs in (0, "2", True, 1.5):
        with pytest.raises(sg.SweepError, match="n_jobs"):
            sg.sweep(minilm, TEXT, [sg.CausalMask()], n_jobs=jobs)
    guesser = patient("BertForMaskedLM", "masked_lm")
    text, plans = "the [MASK] bit a [MASK]", [sg.CausalMask()]
    alone = sg.sweep(guesser, text, plans, truth=["dog", "cat"])
    listed = sg.sweep(guesser, [text], plans, truth=[["dog", "cat"]])
    pandas.testing.assert_frame_equal(alone, listed)
