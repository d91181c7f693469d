import pytest
import torch
from torch import nn
from torch.nn import functional as F
from transformers import AutoModel, AutoModelForMaskedLM, AutoModelForSequenceClassification

from bilingual import SurgeryError
from models import EncoderConfig, EncoderForMaskedLM, EncoderForSequenceClassification, EncoderModel
from models.encoder import EncoderLayer, MultiHeadAttention, eager_attention_forward

BATCH, TOKENS, HEADS, D_HEAD, D_FF, LAYERS, VOCAB, ROOM = 3, 7, 5, 22, 13, 2, 17, 19
POSITIONS = ("none", "sinusoidal", "learned", "rotary")
EVERY_FORM = [
    (positions, norm, causal)
    for positions in POSITIONS
    for norm in ("pre", "post")
    for causal in (False, True)
]


def build(model_class=EncoderModel, implementation="sdpa", **choices):
    config = EncoderConfig(
        vocab_size=VOCAB,
        d_model=HEADS * D_HEAD,
        num_heads=HEADS,
        num_layers=LAYERS,
        d_ff=D_FF,
        max_positions=ROOM,
        attn_implementation=implementation,
        **choices,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = model_class(config)
        for parameter in model.parameters():  # biases and norms too, so that none can be forgotten unseen
            if parameter.ndim == 1:
                nn.init.normal_(parameter, mean=0.5, std=0.2)
    return model.eval()


def ids(batch=BATCH, tokens=TOKENS):
    return torch.randint(1, VOCAB, (batch, tokens), generator=torch.Generator().manual_seed(1))


def padded():
    """Three rows of 7, 4 and 1 words."""
    mask = torch.arange(TOKENS)[None] < torch.tensor([7, 4, 1])[:, None]
    return ids().where(mask, 0), mask.long()


def last(model, *args, **kwargs):
    with torch.inference_mode():
        return model(*args, **kwargs).last_hidden_state


# --- agreement with PyTorch ---------------------------------------------------------------------------------


def test_attention_is_pytorchs():
    generator = torch.Generator().manual_seed(2)
    query, key, value = torch.randn(3, BATCH, HEADS, TOKENS, D_HEAD, generator=generator)
    may_look = torch.rand(BATCH, 1, TOKENS, TOKENS, generator=generator) < 0.7
    may_look |= torch.eye(TOKENS, dtype=torch.bool)
    added = torch.zeros(may_look.shape).masked_fill(~may_look, torch.finfo(torch.float32).min)
    output, weights = eager_attention_forward(nn.Module(), query, key, value, added)
    expected = F.scaled_dot_product_attention(query, key, value, may_look)
    assert output.shape == (BATCH, TOKENS, HEADS, D_HEAD)
    torch.testing.assert_close(output, expected.transpose(1, 2), atol=1e-5, rtol=0)
    torch.testing.assert_close(weights.sum(-1), torch.ones(BATCH, HEADS, TOKENS))
    assert not weights[~may_look.expand_as(weights)].any()


def normalised(hidden, norm):
    return F.layer_norm(hidden, (HEADS * D_HEAD,), norm.weight, norm.bias)


def pytorch_layer(layer: EncoderLayer, norm: str) -> nn.TransformerEncoderLayer:
    theirs = nn.TransformerEncoderLayer(
        HEADS * D_HEAD,
        HEADS,
        D_FF,
        dropout=0.0,
        activation="gelu",
        batch_first=True,
        norm_first=norm == "pre",
    )
    ours = layer.attention
    projections = (ours.query, ours.key, ours.value)
    theirs.self_attn.in_proj_weight.data = torch.cat([p.weight.data for p in projections])
    theirs.self_attn.in_proj_bias.data = torch.cat([p.bias.data for p in projections])
    theirs.self_attn.out_proj.load_state_dict(ours.output.state_dict())
    theirs.linear1.load_state_dict(layer.feed_forward.expand.state_dict())
    theirs.linear2.load_state_dict(layer.feed_forward.contract.state_dict())
    theirs.norm1.load_state_dict(layer.attention_norm.state_dict())
    theirs.norm2.load_state_dict(layer.feed_forward_norm.state_dict())
    return theirs.eval()


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_layers_are_pytorchs_with_padding(norm, implementation):
    model = build(positions="none", norm=norm, implementation=implementation)
    words, mask = padded()
    with torch.no_grad():
        hidden = model.word_embeddings.weight[words]
        if norm == "post":
            hidden = normalised(hidden, model.embedding_norm)
        for layer in model.layers:
            hidden = pytorch_layer(layer, norm)(hidden, src_key_padding_mask=mask == 0)
        expected = normalised(hidden, model.final_norm) if norm == "pre" else hidden
    found = last(model, words, attention_mask=mask)
    torch.testing.assert_close(found[mask == 1], expected[mask == 1], atol=1e-5, rtol=0)


@pytest.mark.parametrize(("positions", "norm", "causal"), EVERY_FORM)
def test_eager_and_sdpa_agree(positions, norm, causal):
    words, mask = padded()
    choices = {"positions": positions, "norm": norm, "causal": causal}
    eager, sdpa = (build(implementation=i, **choices) for i in ("eager", "sdpa"))
    for given, seen in (({}, mask >= 0), ({"attention_mask": mask}, mask == 1)):
        single = [last(model.float(), words, **given)[seen] for model in (eager, sdpa)]
        torch.testing.assert_close(*single, atol=5e-6, rtol=0)  # float32's own error
        double = [last(model.double(), words, **given)[seen] for model in (eager, sdpa)]
        torch.testing.assert_close(*double, atol=1e-12, rtol=0)


# --- masks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("positions", "norm", "causal"), EVERY_FORM)
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_a_padded_row_says_what_it_says_alone(positions, norm, causal, implementation):
    model = build(positions=positions, norm=norm, causal=causal, implementation=implementation)
    words, mask = padded()
    together = last(model, words, attention_mask=mask)
    for row, length in enumerate(mask.sum(1)):
        alone = last(model, words[row : row + 1, :length])
        torch.testing.assert_close(together[row : row + 1, :length], alone, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_causal_means_that_the_future_does_not_matter(positions, implementation):
    words = ids()
    other = words.clone()
    other[:, 5:] = (other[:, 5:] + 1) % VOCAB
    causal = build(positions=positions, causal=True, implementation=implementation)
    before, after = last(causal, words), last(causal, other)
    torch.testing.assert_close(before[:, :5], after[:, :5], atol=1e-6, rtol=0)
    assert not torch.allclose(before[:, 5:], after[:, 5:], atol=1e-3)
    both_ways = build(positions=positions, causal=False, implementation=implementation)
    assert not torch.allclose(last(both_ways, words)[:, :5], last(both_ways, other)[:, :5], atol=1e-3)


# --- positions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("positions", "matters"), [("none", False), *((p, True) for p in POSITIONS[1:])])
def test_order_matters_only_with_positions(positions, matters):
    model, words = build(positions=positions), ids()
    turned = last(model, words.flip(1)).flip(1)
    assert torch.allclose(last(model, words), turned, atol=1e-5) is not matters


@pytest.mark.parametrize("positions", POSITIONS)
def test_position_ids_default_to_counting_from_zero(positions):
    model, words = build(positions=positions), ids()
    counted = torch.arange(TOKENS)
    expected = last(model, words)
    assert torch.equal(last(model, words, position_ids=counted[None]), expected)
    assert torch.equal(last(model, words, position_ids=counted.expand(BATCH, -1)), expected)


@pytest.mark.parametrize(
    ("positions", "moves"), [("none", False), ("rotary", False), ("learned", True), ("sinusoidal", True)]
)
def test_a_shift_moves_absolute_positions_only(positions, moves):
    model, words = build(positions=positions), ids()
    shifted = last(model, words, position_ids=torch.arange(TOKENS)[None] + 11)
    assert torch.allclose(last(model, words), shifted, atol=1e-4) is not moves


@pytest.mark.parametrize("positions", POSITIONS)
def test_what_the_first_layer_sees(positions):
    model, words = build(positions=positions, norm="pre"), ids()
    with torch.inference_mode():
        found = model(words, output_hidden_states=True).hidden_states[0]
        expected = model.word_embeddings.weight[words]
        if positions == "learned":
            expected = expected + model.position_embeddings.weight[:TOKENS]
        elif positions == "sinusoidal":  # the words are lifted to the waves' size, as in 2017
            waves = model.position_embeddings(torch.arange(TOKENS)[None])
            expected = expected * (HEADS * D_HEAD) ** 0.5 + waves
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("positions", POSITIONS)
def test_the_position_module_is_called_once(positions):
    model, calls = build(positions=positions), []
    module = model.rotary if positions == "rotary" else model.position_embeddings
    assert (module is None) is (positions == "none")
    if module is not None:
        module.register_forward_hook(lambda module, args, output: calls.append(args))
        last(model, ids())
        ((position_ids,),) = calls
        assert position_ids.tolist() == [list(range(TOKENS))]


def test_a_text_beyond_the_learned_table_is_refused_before_any_computation():
    model = build(positions="learned")
    assert last(model, ids(tokens=ROOM)).shape[1] == ROOM
    model.word_embeddings.register_forward_pre_hook(lambda *_: pytest.fail("computed something"))
    with pytest.raises(SurgeryError, match=f"{ROOM + 1} positions are needed .* {ROOM}") as error:
        model(ids(tokens=ROOM + 1))
    assert isinstance(error.value, ValueError)
    assert str(ROOM + 1) in error.value.say("zh")
    with pytest.raises(SurgeryError, match=f"{ROOM + 1} positions are needed"):
        model(ids(), position_ids=torch.arange(TOKENS)[None] + ROOM + 1 - TOKENS)


@pytest.mark.parametrize("positions", ["none", "sinusoidal", "rotary"])
def test_other_positions_have_no_end(positions):
    assert last(build(positions=positions), ids(tokens=3 * ROOM)).isfinite().all()


# --- as a transformers model --------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_hidden_states_and_weights_are_captured(norm):
    model, captured = build(norm=norm, implementation="eager"), []
    model.layers[0].register_forward_pre_hook(lambda module, args: captured.append(args[0]))
    words, mask = padded()
    with torch.inference_mode():
        out = model(words, attention_mask=mask, output_hidden_states=True, output_attentions=True)
    assert len(out.hidden_states) == LAYERS + 1
    assert torch.equal(out.hidden_states[0], captured[0])
    assert torch.equal(out.hidden_states[-1], out.last_hidden_state)
    assert [w.shape for w in out.attentions] == [(BATCH, HEADS, TOKENS, TOKENS)] * LAYERS
    for weights in out.attentions:
        assert not weights[1, :, :, 4:].any()
        torch.testing.assert_close(weights.sum(-1), torch.ones(BATCH, HEADS, TOKENS))


def test_attention_modules_have_what_an_attention_function_reads():
    model = build(causal=True)
    assert model._can_set_attn_implementation()
    assert model._supports_sdpa and model._supports_attention_backend
    found = [module for module in model.modules() if isinstance(module, MultiHeadAttention)]
    assert found == [layer.attention for layer in model.layers]
    for i, module in enumerate(found):
        assert (module.layer_idx, module.head_dim, module.is_causal) == (i, D_HEAD, True)
        assert module.scaling == pytest.approx(D_HEAD**-0.5)


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize(
    ("model_class", "auto"), [(EncoderModel, AutoModel), (EncoderForMaskedLM, AutoModelForMaskedLM)]
)
def test_saving_and_loading_changes_nothing(model_class, auto, positions, tmp_path):
    model, words = build(model_class, positions=positions, norm="pre", causal=True), ids()
    model.save_pretrained(tmp_path)
    for loader in (model_class, auto):
        again, report = loader.from_pretrained(tmp_path, output_loading_info=True)
        assert type(again) is model_class
        assert not report["missing_keys"] and not report["unexpected_keys"]
        with torch.inference_mode():
            assert torch.equal(again(words)[0], model(words)[0])
        assert again.config.to_dict() | {"_name_or_path": ""} == model.config.to_dict()


def test_the_bare_encoder_loads_from_a_masked_lm(tmp_path):
    whole = build(EncoderForMaskedLM)
    whole.save_pretrained(tmp_path)
    bare = EncoderModel.from_pretrained(tmp_path)
    assert torch.equal(last(bare, ids()), last(whole.encoder, ids()))


def test_the_decoder_reads_the_word_embeddings():
    model = build(EncoderForMaskedLM)
    assert model.decoder.weight is model.encoder.word_embeddings.weight
    words, labels = ids(), torch.full((BATCH, TOKENS), -100)
    labels[:, 3] = words[:, 3]
    out = model(words, labels=labels)
    expected = F.cross_entropy(out.logits[:, 3], words[:, 3])
    torch.testing.assert_close(out.loss, expected)
    out.loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_a_classifier_reads_its_answer_off_the_first_token(tmp_path):
    model, words = build(EncoderForSequenceClassification, num_labels=4), ids()
    labels = torch.tensor([3, 0, 2])
    out = model(words, labels=labels)
    assert out.logits.shape == (BATCH, 4)
    torch.testing.assert_close(out.loss, F.cross_entropy(out.logits, labels))
    out.loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    first = model.encoder(words).last_hidden_state[:, 0]
    expected = model.classifier(torch.tanh(model.transform(first)))
    torch.testing.assert_close(out.logits, expected)
    model.save_pretrained(tmp_path)
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert torch.equal(again(words).logits, out.logits)


def test_embeddings_may_be_given_instead_of_ids():
    model, words = build(positions="sinusoidal"), ids()
    given = model.word_embeddings(words)
    assert torch.equal(last(model, inputs_embeds=given), last(model, words))
    for neither_or_both in ({}, {"input_ids": words, "inputs_embeds": given}):
        with pytest.raises(SurgeryError, match="exactly one"):
            model(**neither_or_both)


def test_dropout_acts_in_training_only():
    model, words = build(dropout=0.5), ids()
    assert torch.equal(last(model, words), last(model, words))
    model.train()
    with torch.random.fork_rng(devices=[]):
        assert not torch.allclose(last(model, words), last(model, words), atol=1e-2)


@pytest.mark.parametrize("positions", POSITIONS)
def test_half_precision_runs(positions):
    model = build(positions=positions).to(torch.bfloat16)
    assert last(model, ids()).dtype == torch.bfloat16
