"""What is claimed of whole families: the scale, the order of tokens, shared layers, and who is refused and how."""

import dataclasses
import itertools

import pytest
import torch
import transformers

import surgery as sg
from surgery import theatre
from surgery.capture import Keep
from tests.surgery.bench import refuses
from tests.surgery.conformance import check
from tests.surgery.conformance.families import _BERT, _LLAMA, FAMILIES, Case, inputs

SCALED = [case for case in FAMILIES if case.scaled]


def operated(case: Case, model, given, *parts) -> dict[str, torch.Tensor]:
    with torch.no_grad(), sg.operate(model, sg.Plan(*parts)):
        return check.result(model, given)


# --- the scale ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("case", SCALED, ids=str)
def test_dropped_scaling_is_temperature_one_over_the_root(case, implementation):
    """Also where q is scaled before attention is called (OPT, ESM, Whisper), and of a bias that is scaled along."""
    model, given = case.build(implementation), inputs(case, "right" if case.pads else None)
    dropped = operated(case, model, given, sg.DropScaling())
    cooled = operated(case, model, given, sg.Temperature(10**-0.5))
    intact = operated(case, model, given)
    last = next(reversed(dropped))
    for name, x in dropped.items():
        assert torch.allclose(x, cooled[name], atol=2e-4 * float(x.abs().max()), rtol=0), name
    assert not torch.allclose(dropped[last], intact[last], atol=1e-2)


def test_an_unusual_scale_is_dropped_whole():
    case = next(case for case in FAMILIES if case.title == "Gemma")
    model, given = case.build(), inputs(case)
    for layer in model.layers:
        layer.self_attn.scaling = 0.25
    assert sg.admit(model).scale == 0.25
    dropped, cooled = (operated(case, model, given, o) for o in (sg.DropScaling(), sg.Temperature(0.25)))
    assert torch.allclose(dropped["last_hidden_state"], cooled["last_hidden_state"], atol=1e-3)


def test_what_does_not_scale_has_nothing_to_drop():
    model = next(case for case in FAMILIES if case.title == "T5").build()
    said = sg.support(model)
    assert "does not scale" in said["drop_scaling"] and said["temperature"] == "yes"
    assert sg.admit(model).scale == 1.0


# --- the order of the tokens --------------------------------------------------------------------------------

ORDER = {TOKENS: torch.randperm(TOKENS, generator=torch.Generator().manual_seed(3)) for TOKENS in (9, 11, 13)}


def permuted(case: Case, model, given: dict) -> dict[str, torch.Tensor]:
    """What the model gives for the same tokens in another order: words, patches of the picture, or frames of the sound."""
    if case.reads == "words":
        return check.result(model, {**given, "input_ids": given["input_ids"][:, ORDER[11]]})
    if case.reads in ("picture", "both"):
        patches = given["pixel_values"].unfold(2, 4, 4).unfold(3, 4, 4)  # (row, colour, 3, 3, 4, 4)
        mixed = patches.flatten(2, 3)[:, :, ORDER[9]].unflatten(2, (3, 3))
        return check.result(model, {"pixel_values": mixed.transpose(3, 4).flatten(4, 5).flatten(2, 3)})
    front, width = (model.encoder.conv2, -1) if case.reads == "frames" else (model.feature_projection, 1)

    def mix(module, args, out):
        mixed = out[0] if isinstance(out, tuple) else out
        mixed = mixed.index_select(width, ORDER[mixed.shape[width]])
        return (mixed, *out[1:]) if isinstance(out, tuple) else mixed

    hook = front.register_forward_hook(mix)
    try:
        return check.result(model, given)
    finally:
        hook.remove()


ENCODERS = [case for case in FAMILIES if case.kinds[0] not in case.causal and case.title != "CLIP"]


@pytest.mark.parametrize("case", ENCODERS, ids=str)
def test_without_positions_the_order_does_not_matter_or_removal_is_refused(case):
    """Permuted tokens give permuted outputs: of every family that does not see the future and claims RemovePositions."""
    case = dataclasses.replace(
        case, config={**case.config, **({"local_attention": 64} if case.half_window else {})}
    )
    model, given = case.build(), inputs(case, None)
    claims = sg.support(model)["remove_positions"]
    if claims != "yes":
        assert case.title.startswith(("MobileBERT", "Wav2Vec2-Conformer")) and "order" in claims
        return
    name = "encoder_last_hidden_state" if len(case.kinds) > 1 else "last_hidden_state"
    with torch.no_grad(), sg.operate(model, sg.RemovePositions()):
        straight, mixed = check.result(model, given)[name], permuted(case, model, given)[name]
    with torch.no_grad():
        intact = permuted(case, model, given)[name]
    special = straight.shape[1] - (9 if case.reads == "picture" else straight.shape[1])  # [CLS] stays first
    order = ORDER[straight.shape[1] - special]
    assert torch.allclose(
        straight[:, special:][:, order], mixed[:, special:], atol=1e-4 * float(mixed.abs().max())
    )
    assert not torch.allclose(
        check.result(model, given)[name][:, special:][:, order], intact[:, special:], atol=1e-2
    )


def test_without_positions_the_local_layers_of_modernbert_still_see_neighbours_alone():
    case = next(case for case in FAMILIES if case.title == "ModernBERT")
    run = check.Patient(case).run(inputs(case, None), sg.RemovePositions())
    far = (torch.arange(11)[:, None] - torch.arange(11)).abs() > 3
    assert not run.layers[1].site.weights[:, :, far].any() and run.layers[0].site.weights[:, :, far].any()


# --- layers -------------------------------------------------------------------------------------------------


def test_one_layer_of_albert_that_shares_its_module():
    """A plan for layer 2 leaves hidden states 0-2 bit-identical and changes 3 and 4."""
    case = Case("ALBERT", "AlbertModel", {**_BERT, "embedding_size": 13, "num_hidden_layers": 4})
    model, given = case.build(), inputs(case)
    intact, after = (operated(case, model, given, *p) for p in ((), (sg.Temperature(3.0).at("L2"),)))
    assert [torch.equal(intact[f"hidden_states.{i}"], after[f"hidden_states.{i}"]) for i in range(5)] == [
        True, True, True, False, False,
    ]  # fmt: skip


def test_the_heads_of_grouped_queries_are_query_heads():
    case = next(case for case in FAMILIES if case.title == "Qwen3")
    anatomy = sg.admit(case.build())
    assert anatomy.heads == 6 and case.config["num_key_value_heads"] == 2


# --- who is refused -----------------------------------------------------------------------------------------


def tiny(name: str, **config) -> torch.nn.Module:
    kind = getattr(transformers, f"{name}Model")
    return kind(kind.config_class(**{**_BERT, **config})).eval()


@pytest.mark.parametrize(
    "name", ["MPNet", "DebertaV2", "Deberta", "RoFormer", "MegatronBert", "RemBert", "ConvBert"]
)
def test_who_never_asks_is_refused_with_relatives_that_do(name):
    sizes = {"embedding_size": 30} if name in ("RoFormer", "ConvBert") else {}
    sizes |= {"input_embedding_size": 30} if name == "RemBert" else {}
    model = tiny(name, **sizes)
    before = model.config._attn_implementation
    refuses(
        lambda: sg.admit(model),
        f"{name}Model",
        "never asks",
        "RoBERTa",
        "ModernBERT",
        error=sg.UnsupportedError,
    )
    assert model.config._attn_implementation == before and not model._forward_pre_hooks


def test_a_softcap_and_a_sink_are_refused_by_name():
    capped = {**_LLAMA, "attn_logit_softcapping": 5.0, "query_pre_attn_scalar": 10}
    kind = transformers.Gemma2Model
    model = kind(kind.config_class(**capped, attn_implementation="eager")).eval()
    refuses(lambda: sg.admit(model), "Gemma2", "softcap", "Qwen3", error=sg.UnsupportedError)
    assert model.config._attn_implementation == "eager" and not model._forward_pre_hooks
    kind = transformers.GptOssModel
    small = {**_LLAMA, "num_local_experts": 2, "num_experts_per_tok": 1}
    model = kind(kind.config_class(**small, attn_implementation="eager")).eval()
    refuses(lambda: sg.admit(model), "GptOss", "sink", "Llama", error=sg.UnsupportedError)


def test_gemma_2_without_its_softcap_is_operated_on():
    case = Case(
        "Gemma 2", "Gemma2Model", {**_LLAMA, "attn_logit_softcapping": None, "query_pre_attn_scalar": 10}
    )
    assert set(sg.support(case.build("eager")).values()) == {"yes"}


def test_towers_that_differ_are_refused_with_the_way_out():
    case = next(case for case in FAMILIES if case.title == "CLIP")
    vision = {**case.config["vision_config"], "num_attention_heads": 5}
    model = dataclasses.replace(case, config={**case.config, "vision_config": vision}).build()
    refuses(
        lambda: sg.admit(model),
        "differ",
        "text 3 × 10",
        "vision 5 × 6",
        "CLIPTextModel",
        error=sg.UnsupportedError,
    )


def test_attention_that_is_something_else_is_refused(monkeypatch):
    """Nobody need tell us: what the probe computes again must be what the model computed."""
    from transformers.models.bert import modeling_bert

    def squared(module, query, key, value, attention_mask, scaling=None, dropout=0.0, **kwargs):
        weights = (query @ key.transpose(2, 3) * scaling).square().softmax(-1)
        return (weights @ value).transpose(1, 2).contiguous(), weights

    monkeypatch.setattr(modeling_bert, "eager_attention_forward", squared)
    model = FAMILIES[0].build("eager")
    refuses(lambda: sg.admit(model), "something else", error=sg.UnsupportedError)


def test_interpolated_positions_are_refused_where_they_would_move():
    case = next(case for case in FAMILIES if case.title == "ViT")
    model = case.build()
    larger = {"pixel_values": torch.randn(1, 3, 16, 16), "interpolate_pos_encoding": True}
    with torch.no_grad(), sg.operate(model, sg.ReversePositions()):
        refuses(lambda: model(**larger), "interpolated", error=sg.UnsupportedError)
    with torch.no_grad(), sg.operate(model, sg.LocalMask(2)):
        model(**larger)


# --- padding, masks and weights -----------------------------------------------------------------------------


@pytest.mark.parametrize("operation", [sg.ReversePositions(), sg.ShufflePositions(1)], ids=lambda o: o.name)
@pytest.mark.parametrize("title", ["BART", "T5"])
def test_padding_of_the_written_text_keeps_its_positions(title, operation):
    case = next(case for case in FAMILIES if case.title == title)
    model, given = case.build(), inputs(case)
    mask = torch.ones_like(given["decoder_input_ids"])
    mask[1, -2:] = 0
    padded = operated(case, model, {**given, "decoder_attention_mask": mask}, operation)["last_hidden_state"]
    short = {name: x[1:] for name, x in given.items()}
    short["decoder_input_ids"] = short["decoder_input_ids"][:, :-2]
    alone = operated(case, model, short, operation)["last_hidden_state"]
    assert torch.allclose(padded[1, :-2], alone[0], atol=1e-4)


@pytest.mark.parametrize("least", [-1e4, -1e9, torch.finfo(torch.float32).min, -torch.inf])
def test_a_mask_of_your_own_forbids_at_any_temperature(least):
    case = next(case for case in FAMILIES if case.title == "BERT")
    model, given = case.build("eager"), inputs(case, None)
    tokens = given["input_ids"].shape[1]
    mask = torch.zeros(1, 1, tokens, tokens)
    mask[..., 4:] = least
    for operation in (sg.UniformAttention(), sg.Temperature(1e4)):
        with torch.no_grad(), sg.operate(model, operation):
            out = model(input_ids=given["input_ids"], attention_mask=mask, output_attentions=True)
        assert (out.attentions[0][..., 4:] == 0).all(), operation
        assert torch.allclose(out.attentions[0][..., :4].sum(-1), torch.ones(()), atol=1e-5)


@pytest.mark.parametrize(
    ("title", "implementation"),
    [
        *itertools.product(("BERT", "ALBERT", "Llama"), ("sdpa", "eager")),
        ("GPT-2", "eager"),
        ("OPT", "eager"),
    ],
)
def test_the_weights_that_a_model_returns_are_of_every_layer_and_the_operated_ones(title, implementation):
    case = next(case for case in FAMILIES if case.title == title)
    model, given = case.build(implementation), inputs(case)
    for operation in (sg.CausalMask(), sg.Temperature(5.0), sg.UniformAttention().at("L1.H0")):
        keep = Keep()
        with torch.no_grad(), theatre.run(model, [sg.Plan(operation)], witnesses=keep):
            model(**given)
        with torch.no_grad(), sg.operate(model, operation):
            found = model(**given, output_attentions=True).attentions
        assert len(found) == 3
        for layer, weights in enumerate(found):
            assert torch.allclose(weights, keep.sites[layer].weights, atol=1e-5), (operation, layer)
