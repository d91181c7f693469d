"""Many plans as rows of one batch: on every kind of text model what each plan gives alone."""

import pytest

import surgery as sg
from tests.surgery.conformance.families import _BERT, _LLAMA, _MODERN, _lively
from tests.surgery.patients import patient

TEXT = "the dog bit the [MASK] man"
MODELS = {
    "BertForMaskedLM": _BERT,
    "EsmForMaskedLM": {
        **_BERT,
        "position_embedding_type": "rotary",
        "token_dropout": False,
        "mask_token_id": 4,
    },
    "ModernBertForMaskedLM": {**_BERT, **_MODERN, "local_attention": 4},
    "NomicBertForMaskedLM": _BERT,
    "OPTForCausalLM": {**_BERT, "ffn_dim": 31, "word_embed_proj_dim": 30},
    "GPTNeoXForCausalLM": _BERT,
    "LlamaForCausalLM": _LLAMA,
    "Qwen3ForCausalLM": _LLAMA,
}
PLANS = [
    *(sg.Plan(sg.Temperature(3.0).at(f"L{layer}.H1")) for layer in range(3)),
    sg.Plan(sg.ReversePositions()),
    sg.Plan(sg.ReversePositions(), sg.AblateHead().at("L2.H0")),
    sg.Plan(sg.RemovePositions(), sg.Temperature(3.0).at("L1")),
    sg.Plan(sg.LinearAttention().at("L2.H0")),
    sg.Plan(sg.ShareKeys(1).at("L1")),
]


@pytest.mark.parametrize("name", MODELS)
def test_plans_in_one_batch_are_what_they_are_alone(name):
    kind = "masked_lm" if "Masked" in name else "causal_lm"
    config = {k: v for k, v in MODELS[name].items() if k != "vocab_size"}
    subject = patient(name, kind, **config)
    _lively(subject.model)
    together = sg.sweep(subject, [TEXT], PLANS)
    for row, plan in enumerate(PLANS):
        alone = sg.sweep(subject, [TEXT], [plan])
        for column in ("relative_l2", "token_cosine", "kl"):
            a, b = together[column].iloc[row], alone[column].iloc[0]
            assert abs(a - b) <= 1e-4 * max(1.0, abs(b)), (plan, column)
    assert (together["relative_l2"] > 1e-4).all()
    assert together["relative_l2"].round(5).nunique() == len(PLANS)


CLASSIFIERS = {
    "BertForSequenceClassification": _BERT,
    "GPT2ForSequenceClassification": {"vocab_size": 53, "n_embd": 30, "n_layer": 3, "n_head": 3},
    "LlamaForSequenceClassification": _LLAMA,
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_classifier_that_reads_its_last_token(name):
    config = {k: v for k, v in CLASSIFIERS[name].items() if k != "vocab_size"}
    subject = patient(name, "classifier", **config, **({"pad_token_id": 0} if "GPT2" in name else {}))
    _lively(subject.model)
    table = sg.sweep(subject, TEXT, PLANS)
    for plan, found in zip(PLANS, table["kl"], strict=True):
        (site,) = sg.compare(subject, TEXT, plan, capture=None).output["sites"]
        assert found == pytest.approx(site["kl"], rel=1e-3, abs=1e-6), plan


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_padding_can_be_forgotten_where_rows_joined_and_masks_are_given_by_row(implementation):
    config = {**_LLAMA, "sliding_window": 3, "attn_implementation": implementation}
    subject = patient(
        "MistralForCausalLM", "causal_lm", **{k: v for k, v in config.items() if k != "vocab_size"}
    )
    plans = [
        sg.Plan(sg.ReversePositions(), sg.IgnorePaddingMask()),
        sg.Plan(sg.Temperature(3.0).at("L1"), sg.IgnorePaddingMask().at("L2")),
    ]
    table = sg.sweep(subject, TEXT, plans)
    for plan, found in zip(plans, table["relative_l2"], strict=True):
        alone = sg.compare(subject, TEXT, plan, capture=None).output["relative_l2"]
        assert found == pytest.approx(alone, abs=1e-5), plan
