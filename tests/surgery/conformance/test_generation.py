"""Decoders that write token by token: with a cache under surgery they say what they say when they read the whole text anew."""

import inspect

import pytest
import torch
import transformers

import surgery as sg
from tests.surgery.bench import refuses
from tests.surgery.conformance.families import _LLAMA, FAMILIES, Case, inputs

HEADS = {
    "GPT-2": "GPT2LMHeadModel",
    "OPT": "OPTForCausalLM",
    "GPT-NeoX": "GPTNeoXForCausalLM",
    "Llama": "LlamaForCausalLM",
    "Qwen2": "Qwen2ForCausalLM",
    "Qwen3": "Qwen3ForCausalLM",
    "Gemma": "GemmaForCausalLM",
    "T5": "T5ForConditionalGeneration",
    "BART": "BartForConditionalGeneration",
    "Whisper": "WhisperForConditionalGeneration",
}
WINDOW = Case(
    "Qwen2 with a window", "Qwen2ForCausalLM",
    {**_LLAMA, "use_sliding_window": True, "sliding_window": 4, "layer_types": ["full_attention", "sliding_attention", "sliding_attention"]},
)  # fmt: skip
WRITERS = [Case(c.title, HEADS[c.title], c.config, c.reads, c.kinds) for c in FAMILIES if c.title in HEADS]
NEW = 6
NAME = (
    "cache" if "cache" in inspect.signature(transformers.LlamaModel.forward).parameters else "past_key_values"
)
PLANS = {
    "nothing": sg.Plan(),
    "scale": sg.Plan(sg.Temperature(0.5).at("H1"), sg.Temperature(3.0).at("L0")),
    "mask": sg.Plan(sg.LocalMask(2).at("L0-1"), sg.BlockTokens([2]).at("L0")),
    "heads": sg.Plan(sg.AblateHead().at("L1.H1"), sg.UniformAttention().at("L1.H0")),
    "positions": sg.Plan(sg.RemovePositions()),
}


def written(model, given: dict, plan, **options) -> torch.Tensor:
    """The logits of `NEW` tokens, (row, new token, word)."""
    given = {name: x for name, x in given.items() if name != "decoder_input_ids"}
    with torch.no_grad(), sg.operate(model, plan):
        out = model.generate(
            **given, max_new_tokens=NEW, min_new_tokens=NEW, do_sample=False, num_beams=1, output_logits=True,
            return_dict_in_generate=True, eos_token_id=None, pad_token_id=0, decoder_start_token_id=2, **options,
        )  # fmt: skip
    return torch.stack(out.logits, dim=1)


@pytest.fixture(scope="module", params=[*WRITERS, WINDOW], ids=str)
def writer(request):
    case = request.param
    return case, case.build(), inputs(case, "left" if case.reads == "words" else None)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_cache_changes_nothing(writer, plan):
    _, model, given = writer
    cached, anew = written(model, given, plan, use_cache=True), written(model, given, plan, use_cache=False)
    assert (cached - anew).abs().max() < 2e-4 * anew.abs().max()
    intact = written(model, given, sg.Plan())
    assert torch.allclose(anew, intact, atol=1e-3) is (not len(plan))


def test_the_window_of_a_cache_keeps_the_places_of_its_keys():
    """A window's cache forgets the first keys; which key is the second of the text does not change by that."""
    model, given = WINDOW.build(), inputs(WINDOW, None)
    plan = sg.Plan(sg.BlockTokens([9]).at("L1-2"))
    cached, anew = written(model, given, plan, use_cache=True), written(model, given, plan, use_cache=False)
    assert (cached - anew).abs().max() < 2e-4 * anew.abs().max()
    assert not torch.allclose(anew, written(model, given, sg.Plan()), atol=1e-3)


def test_a_cache_with_room_for_keys_to_come_is_refused():
    case = next(case for case in WRITERS if case.title == "Llama")
    model, given = case.build(), inputs(case, None)
    cache = transformers.StaticCache(config=model.config, max_cache_len=32)
    with torch.no_grad(), sg.operate(model, sg.LocalMask(2)):
        refuses(lambda: model(**given, **{NAME: cache}), "cache", "default", error=sg.UnsupportedError)
