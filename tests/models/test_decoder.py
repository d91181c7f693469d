"""The decoder and the encoder-decoder against PyTorch's own layers, and against themselves."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSeq2SeqLM

from bilingual import SurgeryError
from models import (
    DecoderConfig,
    DecoderForCausalLM,
    DecoderModel,
    EncoderConfig,
    EncoderDecoderConfig,
    EncoderDecoderForTranslation,
    EncoderModel,
)
from models.decoder import translate, write
from models.layers import MultiHeadAttention, eager_attention_forward

BATCH, TOKENS, SOURCE, HEADS, D_HEAD, D_FF, LAYERS, VOCAB, ROOM = 3, 7, 11, 5, 22, 13, 2, 17, 19
WIDTH = HEADS * D_HEAD
SIZES = {
    "vocab_size": VOCAB,
    "d_model": WIDTH,
    "num_heads": HEADS,
    "num_layers": LAYERS,
    "d_ff": D_FF,
    "max_positions": ROOM,
}


def build(model_class, config_class, implementation="sdpa", **choices):
    config = config_class(**{**SIZES, **choices}, attn_implementation=implementation)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = model_class(config)
        for parameter in model.parameters():
            if parameter.ndim == 1:
                nn.init.normal_(parameter, mean=0.5, std=0.2)
    return model.eval()


def translator(implementation="sdpa", **choices):
    return build(EncoderDecoderForTranslation, EncoderDecoderConfig, implementation, **choices)


def ids(batch=BATCH, tokens=TOKENS, seed=1):
    return torch.randint(4, VOCAB, (batch, tokens), generator=torch.Generator().manual_seed(seed))


def padded(tokens, lengths, seed=1):
    mask = torch.arange(tokens)[None] < torch.tensor(lengths)[:, None]
    return ids(tokens=tokens, seed=seed).where(mask, 0), mask.long()


def close(found, expected):
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


# --- agreement with PyTorch ---------------------------------------------------------------------------------


def copy(theirs: nn.MultiheadAttention, ours: MultiHeadAttention):
    """The weights of ours in theirs; a key/value head that serves a group is repeated for each of it."""

    def spread(tensor, projection):
        groups = ours.num_heads * ours.head_dim // projection.out_features
        return tensor.unflatten(0, (-1, ours.head_dim)).repeat_interleave(groups, 0).flatten(0, 1)

    projections = (ours.query, ours.key, ours.value)
    theirs.in_proj_weight.data = torch.cat([spread(p.weight.data, p) for p in projections])
    theirs.in_proj_bias.data = torch.cat([spread(p.bias.data, p) for p in projections])
    theirs.out_proj.load_state_dict(ours.output.state_dict())
    return theirs.eval()


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize(("heads", "kv_heads"), [(5, 5), (5, 1), (10, 2), (22, 11)])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("crossing", [False, True])
def test_multi_head_attention_is_pytorchs(implementation, heads, kv_heads, causal, crossing):
    sizes = {**SIZES, "num_heads": heads, "num_kv_heads": kv_heads}
    config = EncoderConfig(**sizes, attn_implementation=implementation)
    generator = torch.Generator().manual_seed(2)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        ours = MultiHeadAttention(config, 0).eval()
        theirs = copy(nn.MultiheadAttention(WIDTH, heads, batch_first=True), ours)
    hidden = torch.randn(BATCH, TOKENS, WIDTH, generator=generator)
    source = torch.randn(BATCH, SOURCE, WIDTH, generator=generator) if crossing else hidden
    allowed = torch.ones(TOKENS, source.shape[1], dtype=torch.bool)
    allowed = allowed.tril() if causal else allowed
    added = torch.zeros(1, 1, *allowed.shape).masked_fill(~allowed, torch.finfo(torch.float32).min)
    with torch.no_grad():
        found, weights = ours(hidden, added, source=source if crossing else None)
        expected, theirs_weights = theirs(
            hidden, source, source, attn_mask=~allowed, average_attn_weights=False
        )
    close(found, expected)
    if implementation == "eager":
        close(weights, theirs_weights)


@pytest.mark.parametrize("kv_heads", [1, 2, 3, 6])
def test_grouped_queries_are_scaled_dot_product_attention_with_repeated_keys(kv_heads):
    generator = torch.Generator().manual_seed(4)
    query = torch.randn(BATCH, 6, TOKENS, D_HEAD, generator=generator)
    key, value = torch.randn(2, BATCH, kv_heads, SOURCE, D_HEAD, generator=generator)
    output, weights = eager_attention_forward(nn.Module(), query, key, value, None)
    expected = F.scaled_dot_product_attention(query, key, value, enable_gqa=True)
    close(output, expected.transpose(1, 2))
    assert weights.shape == (BATCH, 6, TOKENS, SOURCE)


def pytorch_layer(layer, norm):
    theirs = nn.TransformerDecoderLayer(
        WIDTH, HEADS, D_FF, dropout=0.0, activation="gelu", batch_first=True, norm_first=norm == "pre"
    )
    copy(theirs.self_attn, layer.attention)
    copy(theirs.multihead_attn, layer.cross_attention)
    theirs.linear1.load_state_dict(layer.feed_forward.expand.state_dict())
    theirs.linear2.load_state_dict(layer.feed_forward.contract.state_dict())
    for name, norm_layer in (
        ("norm1", layer.attention_norm),
        ("norm2", layer.cross_attention_norm),
        ("norm3", layer.feed_forward_norm),
    ):
        getattr(theirs, name).load_state_dict(norm_layer.state_dict())
    return theirs.eval()


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_decoder_layers_are_pytorchs_with_padding_on_both_sides(norm, implementation):
    model = build(
        DecoderModel, DecoderConfig, implementation, positions="none", norm=norm, cross_attention=True
    )
    words, mask = padded(TOKENS, [7, 4, 1])
    _, source_mask = padded(SOURCE, [2, 11, 5])
    source = torch.randn(BATCH, SOURCE, WIDTH, generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        hidden = model.embedding_norm(model.word_embeddings.weight[words])
        for layer in model.layers:
            hidden = pytorch_layer(layer, norm)(
                hidden,
                source,
                tgt_mask=torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1),
                tgt_key_padding_mask=mask == 0,
                memory_key_padding_mask=source_mask == 0,
            )
        found = model(words, attention_mask=mask, source=source, source_attention_mask=source_mask)
    close(found.last_hidden_state[mask == 1], model.final_norm(hidden)[mask == 1])


@pytest.mark.parametrize("positions", ["none", "sinusoidal", "learned", "rotary"])
def test_a_decoder_without_a_source_is_a_causal_encoder(positions):
    decoder = build(DecoderModel, DecoderConfig, positions=positions)
    encoder = build(EncoderModel, EncoderConfig, positions=positions, causal=True)
    encoder.load_state_dict(decoder.state_dict())
    words, mask = padded(TOKENS, [7, 4, 1])
    with torch.no_grad():
        found = decoder(words, attention_mask=mask).last_hidden_state
        expected = encoder(words, attention_mask=mask).last_hidden_state
    assert torch.equal(found, expected)


# --- generation ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("positions", ["none", "sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_a_prefix_says_what_it_says_within_the_whole_text(positions, implementation):
    model = build(DecoderForCausalLM, DecoderConfig, implementation, positions=positions, num_kv_heads=1)
    words = ids()
    with torch.no_grad():
        whole = model(words).logits
        for length in range(1, TOKENS + 1):
            close(model(words[:, :length]).logits, whole[:, :length])


def test_a_translation_with_a_prefix_says_what_the_whole_says():
    model = translator()
    source, mask = padded(SOURCE, [2, 11, 5])
    words = ids()
    with torch.no_grad():
        whole = model(source, mask, decoder_input_ids=words)
        for length in range(1, TOKENS + 1):
            part = model(
                attention_mask=mask,
                decoder_input_ids=words[:, :length],
                encoder_outputs=whole.encoder_last_hidden_state,
            )
            close(part.logits, whole.logits[:, :length])
        first = model(source, mask)  # without decoder input: what comes first?
        alone = model(source, mask, decoder_input_ids=torch.full((BATCH, 1), model.config.bos_token_id))
    assert torch.equal(first.logits, alone.logits)


def test_writing_takes_the_most_probable_token_stops_and_repeats_by_seed():
    model, start = build(DecoderForCausalLM, DecoderConfig), ids(tokens=2)
    greedy = write(model, start, 5, temperature=0)
    assert greedy.shape == (BATCH, 7)
    with torch.no_grad():
        for at in range(2, 7):
            assert torch.equal(greedy[:, at], model(greedy[:, :at]).logits[:, -1].argmax(-1))
    stop = int(greedy[0, 3])
    stopped = write(model, start, 5, stop=stop, temperature=0)
    assert (stopped[0, 3:] == stop).all()
    drawn = [write(model, start, 5, generator=torch.Generator().manual_seed(s)) for s in (0, 0, 1)]
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])


def test_translating_is_greedy_and_ends():
    model = translator()
    source, mask = padded(SOURCE, [2, 11, 5])
    said = translate(model, source, mask, most=6)
    assert (said[:, 0] == model.config.bos_token_id).all() and said.shape[1] <= 7
    for row in range(BATCH):  # padding of the source changes nothing
        alone = translate(model, source[row : row + 1, : mask[row].sum()], most=6)[0]
        end = (alone == model.config.eos_token_id).nonzero()
        length = int(end[0]) + 1 if len(end) else len(alone)
        assert torch.equal(said[row, :length], alone[:length])


# --- as transformers models ---------------------------------------------------------------------------------


def test_all_three_kinds_of_attention_are_captured():
    model = translator("eager", num_kv_heads=1)
    source, mask = padded(SOURCE, [2, 11, 5])
    with torch.no_grad():
        out = model(source, mask, decoder_input_ids=ids(), output_attentions=True, output_hidden_states=True)
    shapes = {
        "encoder_attentions": (SOURCE, SOURCE),
        "decoder_attentions": (TOKENS, TOKENS),
        "cross_attentions": (TOKENS, SOURCE),
    }
    for name, shape in shapes.items():
        assert [w.shape for w in out[name]] == [(BATCH, HEADS, *shape)] * LAYERS
    assert not torch.stack(out.decoder_attentions).triu(1).any()
    assert not out.cross_attentions[1][0, :, :, 2:].any()
    assert len(out.encoder_hidden_states) == len(out.decoder_hidden_states) == LAYERS + 1


@pytest.mark.parametrize(
    ("model_class", "config_class", "auto"),
    [
        (DecoderModel, DecoderConfig, AutoModel),
        (DecoderForCausalLM, DecoderConfig, AutoModelForCausalLM),
        (EncoderDecoderForTranslation, EncoderDecoderConfig, AutoModelForSeq2SeqLM),
    ],
)
def test_saving_and_loading_changes_nothing(model_class, config_class, auto, tmp_path):
    model = build(model_class, config_class, norm="pre", positions="rotary", num_kv_heads=1)
    model.save_pretrained(tmp_path)
    for loader in (model_class, auto):
        again, report = loader.from_pretrained(tmp_path, output_loading_info=True)
        assert type(again) is model_class
        assert not report["missing_keys"] and not report["unexpected_keys"]
        with torch.no_grad():
            assert torch.equal(again(ids())[0], model(ids())[0])


def test_words_are_one_table():
    model = translator()
    assert model.head.weight is model.encoder.word_embeddings.weight is model.decoder.word_embeddings.weight
    writer = build(DecoderForCausalLM, DecoderConfig)
    assert writer.head.weight is writer.decoder.word_embeddings.weight


def test_losses_are_cross_entropy_of_what_follows():
    words = ids()
    writer, model = build(DecoderForCausalLM, DecoderConfig), translator()
    with torch.no_grad():
        out = writer(words, labels=words)
        expected = F.cross_entropy(out.logits[:, :-1].flatten(0, 1), words[:, 1:].flatten())
        torch.testing.assert_close(out.loss, expected)
        out = model(ids(tokens=SOURCE), decoder_input_ids=words, labels=words.roll(1, 0))
        expected = F.cross_entropy(out.logits.flatten(0, 1), words.roll(1, 0).flatten())
        torch.testing.assert_close(out.loss, expected)


def test_a_source_where_there_is_none_and_none_where_there_must_be_one():
    source = torch.zeros(BATCH, SOURCE, WIDTH)
    with pytest.raises(SurgeryError, match="nothing to look at a source with") as error:
        build(DecoderModel, DecoderConfig)(ids(), source=source)
    assert "源序列" in error.value.say("zh")
    with pytest.raises(SurgeryError, match="needs a source"):
        build(DecoderModel, DecoderConfig, cross_attention=True)(ids())


@pytest.mark.parametrize("kv_heads", [2, 0, -1, 7])
def test_heads_that_cannot_be_grouped_are_refused(kv_heads):
    with pytest.raises(SurgeryError, match=f"num_kv_heads={kv_heads} .* 1, 5"):
        DecoderConfig(**SIZES, num_kv_heads=kv_heads)


def test_a_misspelt_field_is_refused_by_every_configuration():
    for config_class in (EncoderConfig, DecoderConfig, EncoderDecoderConfig):
        with pytest.raises(SurgeryError, match=f"num_head is not a field of {config_class.__name__}"):
            config_class(num_head=3)
    with pytest.raises(SurgeryError, match="cross_attention"):
        DecoderConfig(cross_attentions=True)
