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
