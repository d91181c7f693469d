"""Baseline beside operated, on real weights: what is measured is what happened."""

import json
import math

import numpy as np
import pytest
import torch

import surgery as sg
from bilingual import Words
from models import EncoderForMaskedLM, LoadedModel
from tests import reference
from tests.surgery import bench, patients

DOG, MAN = "The dog bit the man", "The man bit the dog"
SLACK = 2e-5


@pytest.fixture(scope="module")
def masked():
    return patients.patient("BertForMaskedLM", "masked_lm")


def difference(a, b) -> float:
    return (a - b).abs().max().item()


# --- what the operations do to real weights -----------------------------------------------------------------


@pytest.mark.parametrize(
    "operation, t", [(sg.Temperature(0.4), 0.4), (sg.Temperature(3.0), 3.0), (sg.DropScaling(), 32**-0.5)]
)
def test_real_weights_become_their_root_renormalised(minilm, operation, t):
    comparison = sg.compare(minilm, DOG, operation)
    expected = reference.sharpened(comparison.baseline.weights[0].numpy(), t)
    assert np.abs(comparison.operated.weights[0].numpy() - expected).max() < SLACK
    assert difference(comparison.operated.weights[0], comparison.baseline.weights[0]) > 0.05
    for layer in (3, 5):  # later layers, each alone
        alone = sg.compare(minilm, DOG, operation.at(layers=layer), [layer])
        expected = reference.sharpened(alone.baseline.weights[0].numpy(), t)
        assert np.abs(alone.operated.weights[0].numpy() - expected).max() < SLACK


def test_without_positions_the_dog_and_the_man_are_one(minilm):
    found = sg.compare(minilm, DOG, sg.RemovePositions(), other=MAN)
    assert found.similarity["baseline"] == pytest.approx(0.979, abs=5e-4)
    assert found.similarity["operated"] > 0.99999
    same = sg.compare(minilm, DOG, sg.SamePosition(), other=MAN)
    assert same.similarity["operated"] > 0.99999
    assert difference(same.operated.hidden, found.operated.hidden) > 0.1  # two different operations


@pytest.mark.parametrize("operation", [sg.RemovePositions(), sg.SamePosition()])
def test_without_positions_permuted_words_give_permuted_vectors(minilm, operation):
    words = ["dog", "man", "cat", "red", "ran", "big", "old"]
    order = [3, 0, 6, 1, 5, 2, 4]
    straight, permuted = sg.compare(
        minilm, [" ".join(words), " ".join(words[i] for i in order)], operation, None
    )
    assert permuted.tokens[1:-1] == [words[i] for i in order]
    rows = [0, *[1 + i for i in order], 8]
    assert difference(straight.operated.hidden[-1][rows], permuted.operated.hidden[-1]) < 1e-5
    assert difference(straight.baseline.hidden[-1][rows], permuted.baseline.hidden[-1]) > 0.1


def test_unselected_heads_are_bit_identical_in_the_first_touched_layer(minilm):
    found = sg.compare(minilm, DOG, sg.DropScaling().at("L2-3.H1,5"))
    before, after = found.baseline.weights, found.operated.weights
    assert torch.equal(before[:2], after[:2])
    others = [head for head in range(12) if head not in (1, 5)]
    assert torch.equal(before[2, others], after[2, others])
    for head in (1, 5):
        assert not torch.equal(before[2, head], after[2, head])
    touched = found.heads[found.heads.touched]
    assert list(zip(touched.layer, touched["head"], strict=True)) == [(2, 1), (2, 5), (3, 1), (3, 5)]


@pytest.mark.parametrize(
    "text", [DOG, [DOG, "A cat", "One two three four five six seven"], ("The dog", "the man")]
)
@pytest.mark.parametrize("capture", ["all", [1, 4], None])
def test_the_empty_plan_makes_a_difference_of_exactly_zero(minilm, text, capture):
    for plan in (None, sg.Plan(), sg.Temperature(1.0), sg.HideSelf().at("none")):
        found = sg.compare(minilm, text, plan, capture)
        for one in found if isinstance(found, list) else [found]:
            assert torch.equal(one.baseline.hidden, one.operated.hidden)
            if capture:
                assert torch.equal(one.baseline.weights, one.operated.weights)
                assert (one.heads[["js_divergence", "total_variation", "output", "scores"]] == 0).all(
                    axis=None
                )
            assert (one.layers.relative_l2 == 0).all() and one.output["relative_l2"] == 0


# --- the same numbers whichever way -------------------------------------------------------------------------

PLAN = sg.Plan(
    sg.Temperature(2.0).at("L1-3"), sg.LocalMask(2).at("H0-5"), sg.WeightDropout(0.2, 3).at("L2.H3")
)


@pytest.mark.parametrize("capture", ["all", [1, 4], None])
def test_both_runs_in_one_batch_agree_with_one_after_the_other(minilm, capture):
    texts = [DOG, "A cat sat"]
    apart, joined = (sg.compare(minilm, texts, PLAN, capture, together=way) for way in (False, True))
    for a, b in zip(apart, joined, strict=True):
        assert difference(a.operated.hidden, b.operated.hidden) < SLACK
        assert difference(a.baseline.hidden, b.baseline.hidden) < SLACK
        if capture:
            assert difference(a.operated.weights, b.operated.weights) < SLACK
            assert torch.equal(a.operated.no_key, b.operated.no_key)
        numbers = a.heads.columns[3:]
        assert a.heads[numbers].to_numpy() == pytest.approx(
            b.heads[numbers].to_numpy(), abs=1e-4, nan_ok=True
        )
        assert [e["result"] for e in a.receipt] == pytest.approx([e["result"] for e in b.receipt], abs=1e-4)


def test_every_capture_agrees(minilm):
    texts = [DOG, "A cat sat"]
    every = sg.compare(minilm, texts, PLAN)
    some, stats, none = (sg.compare(minilm, texts, PLAN, capture) for capture in ([1, 4], "stats", None))
    for a, b, s, n in zip(every, some, stats, none, strict=True):
        assert (
            b.baseline.layers == (1, 4) and difference(b.operated.weights, a.operated.weights[[1, 4]]) < SLACK
        )
        assert s.baseline.weights is None and n.baseline.weights is None and n.heads.empty
        kept = a.heads[a.heads.layer.isin([1, 4])]
        np.testing.assert_allclose(kept.astype(float), b.heads.astype(float), atol=2e-4, rtol=1e-3)
        assert list(s.heads) == list(a.heads) and len(a.heads) == 72
        np.testing.assert_allclose(s.heads.astype(float), a.heads.astype(float), atol=2e-4, rtol=1e-3)
        for other in (b, s, n):
            assert difference(other.operated.hidden, a.operated.hidden) < 1e-4  # of numbers up to 5
            assert difference(other.baseline.hidden, a.baseline.hidden) < 1e-4  # of numbers up to 5
            for x, y in zip(a.receipt, other.receipt, strict=True):
                assert x["result"] == pytest.approx(y["result"], abs=1e-4) and x["cells"] == y["cells"]
    for entry, same in zip(every[0].receipt, stats[0].receipt, strict=True):
        assert entry["weights"] == pytest.approx(same["weights"], abs=1e-4)
    assert all(entry["weights"] is None for entry in none[0].receipt)


@pytest.mark.parametrize("capture", ["some", "", [6], [-1], [0.5], ["0"], 3, [True]])
def test_impossible_captures_are_refused(minilm, capture):
    bench.refuses(lambda: sg.compare(minilm, DOG, capture=capture), repr(capture), "0-5", '"stats"')


def test_a_layer_that_was_not_kept_is_named(minilm):
    found = sg.compare(minilm, DOG, capture=[1, 4])
    assert found.layer(4) == 1
    bench.refuses(lambda: found.layer(2), "layer 2", "1, 4", "capture=[2]", error=sg.NotCapturedError)


def test_a_batch_of_texts_gives_what_each_gives_alone(minilm):
    texts = [DOG, "A cat", "One two three four five six seven", ("The dog", "the man")]
    plan = sg.Plan(sg.Temperature(2.0).at("L1-3"), sg.ReversePositions(), sg.CausalMask().at("H4"))
    for text, together in zip(texts, sg.compare(minilm, texts, plan), strict=True):
        alone, n = sg.compare(minilm, text, plan), together.reading.kept
        assert alone.tokens == together.tokens[:n]
        for run in ("baseline", "operated"):
            a, b = getattr(alone, run), getattr(together, run)
            assert difference(a.hidden, b.hidden[:, :n]) < SLACK
            assert difference(a.weights, b.weights[:, :, :n, :n]) < SLACK
            assert not b.weights[..., n:].any() and difference(a.embedding, b.embedding) < SLACK
        np.testing.assert_allclose(alone.heads.astype(float), together.heads.astype(float), atol=2e-4)


def test_the_result_is_plain_data_on_the_cpu(minilm):
    found = sg.compare(minilm, DOG, PLAN)
    assert found.tokens == ["[CLS]", "the", "dog", "bit", "the", "man", "[SEP]"]
    assert found.baseline.weights.shape == (6, 12, 7, 7) and found.baseline.weights.dtype == torch.float32
    assert found.baseline.hidden.shape == (7, 7, 384) and found.baseline.embedding.shape == (384,)
    for run in (found.baseline, found.operated):
        for tensor in (run.weights, run.hidden, run.embedding):
            assert tensor.device.type == "cpu" and not tensor.requires_grad
    with pytest.raises(AttributeError):
        found.plan = None


def test_measures_are_those_of_the_kept_weights(minilm):
    found = sg.compare(minilm, DOG, sg.Temperature(3.0))
    p, q = found.baseline.weights.double(), found.operated.weights.double()
    m = (p + q) / 2
    js = ((p * (p / m).log()).sum(-1) + (q * (q / m).log()).sum(-1)).mean(-1) / 2
    columns = {
        "js_divergence": js,
        "total_variation": (p - q).abs().sum(-1).mean(-1) / 2,
        "entropy_baseline": -(p * p.log()).sum(-1).mean(-1),
        "entropy_operated": -(q * q.log()).sum(-1).mean(-1),
        "diagonal_baseline": p.diagonal(dim1=-2, dim2=-1).mean(-1),
        "previous_baseline": p.diagonal(-1, -2, -1).mean(-1),
        "next_operated": q.diagonal(1, -2, -1).mean(-1),
        "first_baseline": p[..., 0].mean(-1),
        "separators_operated": q[..., -1].mean(-1),
    }
    for name, expected in columns.items():
        np.testing.assert_allclose(found.heads[name], expected.flatten(), atol=1e-5, err_msg=name)
    cosines = torch.cosine_similarity(found.baseline.hidden.double(), found.operated.hidden.double(), dim=-1)
    np.testing.assert_allclose(found.layers.cosine, cosines.mean(-1), atol=1e-6)
    assert found.layers.cka.between(0, 1).all() and list(found.layers.layer) == list(range(7))


# --- padding and closed rows --------------------------------------------------------------------------------


def test_ignoring_the_padding_mask_shows_on_padded_text_alone(minilm):
    padded = sg.compare(minilm, DOG, sg.IgnorePaddingMask(), pad_to=11)
    assert (
        padded.tokens[-4:] == ["[PAD]"] * 4
        and padded.receipt[0]["changed"]
        and padded.receipt[0]["note"] is None
    )
    assert (
        padded.operated.weights[0, :, :7, 7:].sum(-1).mean() > 0.05
        and not padded.baseline.weights[..., 7:].any()
    )
    plain = sg.compare(minilm, DOG, sg.IgnorePaddingMask())
    assert torch.equal(plain.operated.weights, plain.baseline.weights)
    assert not plain.receipt[0]["changed"] and "no padding" in plain.receipt[0]["note"].en
    assert "no padding" in plain.verdict() and "没有填充" in plain.verdict("zh")


def test_rows_without_a_key_are_flagged_and_kept_out_of_the_means(minilm):
    found = sg.compare(minilm, DOG, sg.CustomMask(["0000000", *["1111111"] * 6]).at("L1.H3"))
    assert found.operated.no_key.nonzero().tolist() == [[1, 3, 0]] and not found.baseline.no_key.any()
    assert not found.operated.weights[1, 3, 0].any()
    row = found.heads.set_index(["layer", "head"]).loc[(1, 3)]
    assert row.no_key_operated == 1 and row.no_key_baseline == 0
    assert found.heads.notna().all(axis=None)
    assert "1 tokens have no permitted key" in " ".join(found.notices())
    everything = sg.compare(minilm, DOG, sg.BlockTokens(range(7)))
    assert everything.heads.entropy_operated.isna().all() and everything.heads.entropy_baseline.notna().all()
    assert everything.operated.hidden.isfinite().all()
    json.dumps(everything.to_dict(), allow_nan=False)


# --- receipts -----------------------------------------------------------------------------------------------


def test_a_receipt_says_what_each_step_reached_and_changed(minilm):
    plan = sg.Plan(sg.DropScaling().at("L0-3.H1,5"), sg.AblateHead().at("L5.H2"))
    first, second = sg.compare(minilm, DOG, plan).receipt
    assert (first["operation"], first["cells"], first["at"], first["stage"]) == (
        "drop_scaling",
        8,
        "L0-3.H1,5",
        "scale",
    )
    assert first["scores"] > 1 and first["weights"] > 0.01 and first["result"] > 0.001 and first["changed"]
    assert (second["cells"], second["scores"], second["weights"]) == (1, 0, 0)
    assert second["output"] == pytest.approx(1) and second["changed"]  # all of that head's output
    alone = sg.compare(minilm, DOG, sg.DropScaling().at("L0-3.H1,5")).receipt[0]
    assert alone["weights"] == pytest.approx(first["weights"], abs=1e-5)


def test_an_idle_step_says_why(minilm):
    plan = sg.Plan(sg.HideSelf().at("L0"), sg.Temperature(1.0), sg.CausalMask().at("none"), sg.LocalMask(500))
    busy, neutral, nowhere, wide = sg.compare(minilm, DOG, plan).receipt
    assert busy["changed"] and busy["note"] is None
    for entry, says in ((neutral, "parameters"), (nowhere, "empty"), (wide, "wider")):
        assert not entry["changed"] and says in entry["note"].en and isinstance(entry["note"], Words)
    assert (neutral["cells"], nowhere["cells"]) == (72, 0)


def test_muting_one_dropout_leaves_the_others_draws(minilm):
    """Two equal dropouts: what the second one owes is measured beside the same first one."""
    plan = sg.Plan(sg.OutputDropout(0.3, 1).at("L5"), sg.OutputDropout(0.3, 1).at("L5"))
    first, second = sg.compare(minilm, DOG, plan).receipt
    assert first["output"] > 0.1 and second["output"] > 0.1 and first["output"] != second["output"]


# --- verdicts -----------------------------------------------------------------------------------------------


def test_no_plan_is_said(minilm):
    found = sg.compare(minilm, DOG)
    assert "Nothing was operated on" in found.verdict() and "没有做手术" in found.verdict("zh")
    with pytest.raises(ValueError, match="fr"):
        found.verdict("fr")


def test_an_idle_plan_is_said(minilm):
    found = sg.compare(minilm, DOG, sg.LocalMask(500))
    assert (
        "Local window" in found.verdict() and "wider" in found.verdict() and "局部窗口" in found.verdict("zh")
    )


def test_two_equal_steps_are_not_called_idle(minilm):
    found = sg.compare(minilm, DOG, sg.Plan(sg.CausalMask(), sg.CausalMask()))
    assert not any(entry["changed"] for entry in found.receipt)  # each alone owes nothing to the other
    assert "Nothing changed" not in found.verdict() and "attention moved" in found.verdict()
    unseen = sg.compare(minilm, DOG, sg.Plan(sg.CausalMask(), sg.CausalMask()), None)
    assert "Nothing changed" not in unseen.verdict()


def test_a_plan_that_acted_is_said_with_numbers(minilm):
    found = sg.compare(minilm, DOG, sg.DropScaling())
    assert "%" in found.verdict() and "cosine" in found.verdict() and "余弦" in found.verdict("zh")
    ablated = sg.compare(minilm, DOG, sg.AblateHead().at("L5"))
    assert "no attention weight moved" in ablated.verdict() and "注意力权重没有移动" in ablated.verdict("zh")


def test_one_draw_is_called_one_draw(minilm):
    found = sg.compare(minilm, DOG, sg.KeyDropout(0.3, 5))
    assert "One random draw" in " ".join(found.notices()) and "随机" in " ".join(found.notices("zh"))
    assert "random draw" not in " ".join(sg.compare(minilm, DOG, sg.KeyDropout(0.0)).notices())
    again, other = (sg.compare(minilm, DOG, sg.KeyDropout(0.3, seed)) for seed in (5, 6))
    assert torch.equal(found.operated.weights, again.operated.weights)
    assert not torch.equal(found.operated.weights, other.operated.weights)
    assert torch.equal(found.baseline.weights, other.baseline.weights)


# --- predictions --------------------------------------------------------------------------------------------


def test_a_masked_model_guesses_each_mask(masked):
    found = sg.compare(masked, "the [MASK] bit the [MASK]", sg.RemovePositions())
    for run in (found.baseline, found.operated):
        assert len(run.predictions) == 2
        for guesses in run.predictions:
            probabilities = [p for _, p in guesses]
            assert (
                len(guesses) == 10
                and probabilities == sorted(probabilities, reverse=True)
                and 0 < sum(probabilities) <= 1
            )
            assert all(label in patients.WORDS for label, _ in guesses)
    inputs = masked.tokenizer("the [MASK] bit the [MASK]", return_tensors="pt")
    with torch.no_grad():
        logits = masked.model(**inputs).logits[0]
    for site, guesses in zip(found.output["sites"], found.baseline.predictions, strict=True):
        best = logits[site["position"]].softmax(-1).max(-1)
        assert guesses[0] == (patients.WORDS[best.indices], pytest.approx(best.values.item(), abs=1e-6))
        assert site["kind"] == "mask" and site["kl"] > 0 and 0 <= site["top5_overlap"] <= 1


def test_the_verdict_names_the_answer_that_changed(masked):
    """With several masks the first that changed is shown, not simply the first."""
    shown = set()
    for seed in range(25):
        found = sg.compare(masked, "the [MASK] bit [MASK] man", sg.ShufflePositions(seed))
        changed = [site["top1_changed"] for site in found.output["sites"]]
        shown.add(tuple(changed))
        at = changed.index(True) if any(changed) else 0
        before, after = (run.predictions[at][0][0] for run in (found.baseline, found.operated))
        assert (before != after) == any(changed)
        says = f"changed from “{before}”" if any(changed) else f"still “{before}”"
        assert says in found.verdict() and f"“{before}”" in found.verdict("zh")
        if sum(changed) == 1:
            assert "1 of 2 answers" in found.verdict()
    assert len(shown) > 1


def test_a_causal_model_says_the_next_token():
    gpt2 = patients.patient("GPT2LMHeadModel", "causal_lm", patients.byte_tokenizer())
    short, long = sg.compare(gpt2, ["the", "the cat the cat"], sg.ReversePositions())
    with torch.no_grad():
        logits = gpt2.model(torch.tensor([short.reading.ids])).logits[0, -1]
    assert short.baseline.predictions[0][0][1] == pytest.approx(logits.softmax(-1).max().item(), abs=1e-5)
    assert short.output["sites"][0]["kind"] == "next" and short.output["sites"][0]["position"] == 0
    assert long.output["sites"][0]["position"] == 3 and long.tokens[:4] == ["the", "▁cat", "▁the", "▁cat"]
    later = torch.ones(4, 4).triu(1).bool()
    assert not long.baseline.weights[..., :4, :4][..., later].any()
    idle = sg.compare(gpt2, "the cat", sg.CausalMask())
    assert not idle.receipt[0]["changed"] and "follows" in idle.verdict()


def test_a_classifier_says_its_labels():
    classifier = patients.patient(
        "BertForSequenceClassification", "classifier", id2label={0: "good", 1: "bad", 2: "so-so"}
    )
    found = sg.compare(classifier, "the dog", sg.DropScaling())
    guesses = found.baseline.predictions[0]
    assert {label for label, _ in guesses} == {"good", "bad", "so-so"}
    assert sum(p for _, p in guesses) == pytest.approx(1)
    assert found.output["sites"][0]["kind"] == "class" and "answer" in found.verdict()


def test_a_bare_encoder_predicts_nothing(minilm):
    found = sg.compare(minilm, DOG, sg.HideSelf())
    assert found.baseline.predictions == [] == found.output["sites"]
    assert found.output["sentence_cosine"] < 1 and "sentence vector" in found.verdict()


def test_the_from_scratch_encoder_guesses_and_what_is_said_of_it_is_repeated():
    tokenizer = patients.word_tokenizer()
    model = bench.encoder(model_class=EncoderForMaskedLM, vocab_size=len(tokenizer))
    caveat = Words("Untrained: random weights.", "未经训练：随机权重。")
    patient = LoadedModel(
        model,
        tokenizer,
        torch.device("cpu"),
        torch.float32,
        "scratch",
        "masked_lm",
        bench.ROOM,
        caveats=(caveat,),
    )
    found = sg.compare(patient, "the dog chased the [MASK]", sg.HideSelf())
    assert len(found.operated.predictions) == 1 and found.operated.weights.shape == (2, 3, 7, 7)
    assert caveat.en in found.notices() and caveat.zh in found.notices("zh")
    assert found.to_dict()["notices"]["zh"][0] == caveat.zh


# --- plain data ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "plan", [None, PLAN, sg.AblateHead(), sg.BlockTokens(range(7)), sg.CustomMask(["0" * 7] * 7)]
)
def test_a_comparison_is_strict_json(minilm, plan):
    data = sg.compare(minilm, DOG, plan).to_dict()
    again = json.loads(json.dumps(data, allow_nan=False))
    assert again["tokens"][1] == "the" and again["text"] == DOG and len(again["heads"]) == 72
    assert sg.Plan.from_dict(again["plan"]) == (sg.Plan() if plan is None else sg.Plan(plan))
    assert set(again["verdict"]) == {"en", "zh"}


def test_what_is_undefined_is_null_and_what_is_infinite_is_named(masked):
    found = sg.compare(masked, "the [MASK]", sg.HideSelf())
    found.output["sites"][0]["kl"] = math.inf
    found.heads.loc[0, "entropy_operated"] = math.nan
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data["output"]["sites"][0]["kl"] == "infinite" and data["heads"][0]["entropy_operated"] is None


def test_a_refused_plan_runs_nothing(minilm):
    ran = []
    hook = minilm.model.embeddings.register_forward_hook(lambda *_: ran.append(1))
    try:
        for plan, says in (
            (sg.HideSelf().at("H12"), "Head 12 does not exist in minilm: heads are 0-11"),
            (sg.HideSelf().at("L6"), "layers are 0-5"),
            (sg.RemovePositions().at("L1"), "whole model"),
        ):
            bench.refuses(lambda plan=plan: sg.compare(minilm, DOG, plan), says)
        assert not ran
        for plan, says in (
            (sg.ShiftPositions(600), "0-511"),
            (sg.BlockTokens([7]), "tokens 0-6"),
            (sg.CustomMask(["1"]), "7 × 7"),
        ):
            bench.refuses(lambda plan=plan: sg.compare(minilm, DOG, plan), says)
    finally:
        hook.remove()
    assert torch.equal(sg.compare(minilm, DOG).baseline.hidden, sg.compare(minilm, DOG).operated.hidden)


@pytest.mark.parametrize("text", ["狗咬了人", "$5 and $$", "🧬🧬", "<b>a</b>", "word " * 40])
def test_any_text_is_compared(minilm, text):
    found = sg.compare(minilm, text, sg.DropScaling(), other="A dog")
    assert found.heads.notna().all(axis=None) and found.operated.hidden.isfinite().all()
    assert set(found.similarity) == {"baseline", "operated"}
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_model_in_train_mode_is_compared_in_eval_mode_and_left_as_it_was(minilm):
    wanted = sg.compare(minilm, "hello there", sg.Temperature(3.0))
    minilm.model.train()
    try:
        found = sg.compare(minilm, "hello there", sg.Temperature(3.0))
        assert minilm.model.training and minilm.model.encoder.layer[0].attention.self.dropout.training
        swept = sg.sweep(minilm, "hello there", sg.Temperature(3.0))
    finally:
        minilm.model.eval()
    assert torch.equal(found.operated.hidden, wanted.operated.hidden)
    assert swept["relative_l2"][0] == pytest.approx(wanted.output["relative_l2"], abs=1e-5)


def test_a_head_that_lost_every_key_is_the_one_that_changed_most(minilm):
    for plan in (sg.KeyDropout(1.0).at("L0.H3"), sg.BlockTokens(range(5)).at("L0.H3")):
        c = sg.compare(minilm, "the dog bit", plan)
        assert c.top_head == (0, 3)
        assert c.head(0, 3)["moved"] == pytest.approx(1.0, abs=1e-6)
        assert "layer 0 head 3 diverged most (100% of its weight moved)" in c.verdict()


def test_padding_without_a_key_is_not_counted_among_the_tokens(minilm):
    c = sg.compare(minilm, "the dog bit", sg.LocalMask(1), pad_to=20)
    assert not [notice for notice in c.notices() if "no permitted key" in notice]


def test_each_idle_step_gives_its_own_reason(minilm):
    said = sg.compare(minilm, "hi", sg.Plan(sg.Temperature(1.0), sg.IgnorePaddingMask())).verdict()
    assert "With these parameters it changes nothing." in said and "this text has no padding" in said


@pytest.mark.parametrize("wrong", [None, "minilm", 3])
def test_what_is_no_model_is_named(wrong):
    for act in (
        lambda: sg.compare(wrong, "hi"),
        lambda: sg.support(wrong),
        lambda: sg.operate(wrong, sg.Plan()).__enter__(),
    ):
        with pytest.raises(sg.UnsupportedError, match=type(wrong).__name__):
            act()


def test_numpy_numbers_are_numbers(minilm):
    c = sg.compare(minilm, "hi", sg.BlockTokens(np.array([1])), capture=np.array([0, 2]), pad_to=np.int64(9))
    assert c.baseline.layers == (0, 2) and len(c.tokens) == 9
