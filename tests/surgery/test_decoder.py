"""Surgery on each kind of attention of an encoder-decoder separately, and on a decoder."""

import pytest
import torch

import surgery as sg
from models import DecoderConfig, DecoderForCausalLM, EncoderDecoderConfig, EncoderDecoderForTranslation
from surgery import theatre
from surgery.capture import Keep
from surgery.steps import EachStep
from tests import reference
from tests.surgery.bench import refuses, seeded

ROWS, SOURCE, TOKENS, HEADS, LAYERS, VOCAB = 2, 11, 7, 3, 2, 53
KINDS = {"encoder": (0, 1), "decoder": (2, 3), "cross": (4, 5)}
SHAPES = {"encoder": (SOURCE, SOURCE), "decoder": (TOKENS, TOKENS), "cross": (TOKENS, SOURCE)}


def sizes(**more):
    own = {"vocab_size": VOCAB, "d_model": 30, "num_heads": HEADS, "num_layers": LAYERS, "d_ff": 29}
    return {**own, "max_positions": 23, "initializer_range": 0.6, **more}


@pytest.fixture(scope="module", params=["sdpa", "eager", "rotary"])
def translator(request):
    positions = "rotary" if request.param == "rotary" else "learned"
    implementation = "sdpa" if request.param == "rotary" else request.param
    with seeded():
        config = EncoderDecoderConfig(**sizes(positions=positions), attn_implementation=implementation)
        return EncoderDecoderForTranslation(config).eval()


@pytest.fixture(scope="module")
def inputs():
    with seeded(1):
        source, target = torch.randint(4, VOCAB, (ROWS, SOURCE)), torch.randint(4, VOCAB, (ROWS, TOKENS))
    mask = torch.ones_like(source)
    source[1, 8:] = mask[1, 8:] = 0
    return {"input_ids": source, "attention_mask": mask, "decoder_input_ids": target}


def run(model, inputs, *parts, witnesses=lambda layer: None):
    with torch.no_grad(), theatre.run(model, [sg.Plan(*parts)], witnesses=witnesses):
        return model(**inputs)


def test_layers_are_numbered_kind_by_kind(translator, inputs):
    anatomy = sg.admit(translator)
    assert {kind: tuple(layers) for kind, layers in anatomy.kinds.items()} == KINDS
    assert (anatomy.layers, anatomy.heads) == (6, HEADS)
    book = Keep()
    run(translator, inputs, witnesses=book)
    for kind, layers in KINDS.items():
        for layer in layers:
            assert book.sites[layer].weights.shape == (ROWS, HEADS, *SHAPES[kind])


def test_without_a_plan_nothing_changes(translator, inputs):
    with torch.no_grad():
        plain = translator(**inputs)
    with torch.no_grad(), sg.operate(translator, sg.Plan()):
        assert torch.equal(translator(**inputs).logits, plain.logits)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "operation", [sg.AblateHead(), sg.UniformAttention(), sg.Temperature(3.0), sg.WeightDropout(0.5, 1)]
)
def test_each_kind_is_operated_on_alone(translator, inputs, kind, operation):
    layers = sg.admit(translator).kinds[kind]
    before, after = Keep(), Keep()
    plain = run(translator, inputs, witnesses=before)
    operated = run(translator, inputs, operation.at(layers=layers), witnesses=after)
    assert not torch.allclose(plain.logits, operated.logits, atol=1e-3)
    same = torch.equal(plain.encoder_last_hidden_state, operated.encoder_last_hidden_state)
    assert same is (kind != "encoder")
    first = layers[0]
    for other in range(first):
        if other in (*KINDS["encoder"],) and kind != "encoder":
            assert torch.equal(before.sites[other].weights, after.sites[other].weights)


def test_one_head_of_cross_attention_is_the_references(translator, inputs):
    where = sg.Temperature(2.0).at("L4.H1")
    book, intact = Keep(), Keep()
    run(translator, inputs, witnesses=intact)
    run(translator, inputs, where, witnesses=book)
    expected = intact.sites[4].scores.clone()
    expected[:, 1] /= 2.0
    allowed = inputs["attention_mask"].bool()[:, None, None, :].expand(ROWS, HEADS, TOKENS, SOURCE)
    weights = expected.double().masked_fill(~allowed, -torch.inf).softmax(-1)
    torch.testing.assert_close(book.sites[4].weights.double(), weights, atol=1e-6, rtol=0)
    others = [0, 2]
    assert torch.equal(book.sites[4].weights[:, others], intact.sites[4].weights[:, others])


def test_the_padding_of_the_source_is_forgotten_where_it_is_asked(translator, inputs):
    for kind, layers in KINDS.items():
        book = Keep()
        run(translator, inputs, sg.IgnorePaddingMask().at(layers=layers), witnesses=book)
        for other, (first, _) in KINDS.items():
            padding = book.sites[first].weights[1, :, :, 8:]
            if other == "decoder":
                continue  # its own text has no padding here
            assert bool(padding.any()) is (other == kind), (kind, other)


def test_positions_are_changed_on_both_sides(translator, inputs):
    shifted = {
        **inputs,
        "input_ids": inputs["input_ids"].flip(1)[:, 3:],
        "attention_mask": torch.ones(ROWS, SOURCE - 3, dtype=torch.long),
    }
    straight = {**shifted, "input_ids": shifted["input_ids"].flip(1)}
    one, other = (run(translator, given, sg.RemovePositions()) for given in (shifted, straight))
    # Without positions the order of the source cannot matter; that of what is written still does, by its mask.
    torch.testing.assert_close(one.logits, other.logits, atol=1e-4, rtol=0)
    plain = run(translator, shifted).logits
    assert not torch.allclose(one.logits, plain, atol=1e-2)


@pytest.mark.parametrize(
    "operation",
    [sg.CausalMask(), sg.LocalMask(1), sg.HideSelf(), sg.IdentityAttention(), sg.CustomMask(["1"])],
)
def test_what_is_said_of_one_text_is_refused_between_two(translator, operation):
    for step in (operation.at(), operation.at("L5.H1")):
        refuses(
            lambda step=step: theatre.run(translator, [sg.Plan(step)]).__enter__(),
            type(operation).__name__,
            "cross-attention (L4-5)",
            "L0-3",
            error=sg.UnsupportedError,
        )
    theatre.Scope(sg.admit(translator), [sg.Plan(operation.at("L0-3"))])


def test_the_local_mask_of_the_decoder_is_the_pictures(translator, inputs):
    book = Keep()
    run(translator, inputs, sg.LocalMask(2).at("L2-3"), witnesses=book)
    causal = reference.causal(TOKENS)
    near = torch.arange(TOKENS)[:, None] - torch.arange(TOKENS)[None] <= 2
    picture = torch.as_tensor(causal).reshape(TOKENS, TOKENS) & near
    for layer in KINDS["decoder"]:
        assert not book.sites[layer].weights[:, :, ~picture].any()


def test_grouped_queries_are_operated_on_by_query_head():
    with seeded():
        model = DecoderForCausalLM(DecoderConfig(**sizes(num_kv_heads=1))).eval()
        words = torch.randint(1, VOCAB, (ROWS, TOKENS))
    anatomy = sg.admit(model)
    assert (anatomy.layers, anatomy.heads, dict(anatomy.kinds)) == (LAYERS, HEADS, {"self": range(0, LAYERS)})
    before, after = Keep(), Keep()
    run(model, {"input_ids": words}, witnesses=before)
    run(model, {"input_ids": words}, sg.UniformAttention().at("L0.H2"), witnesses=after)
    old, new = before.sites[0].weights, after.sites[0].weights
    assert torch.equal(old[:, :2], new[:, :2]) and not torch.equal(old[:, 2], new[:, 2])
    torch.testing.assert_close(new[0, 2, 3], torch.tensor([0.25] * 4 + [0.0] * 3))


def test_comparing_and_sweeping_a_translator_is_refused_in_words():
    from models import load

    patient, text, plan = (
        load("translator", device="cpu"),
        "the dog chased the cat",
        sg.Plan(sg.Temperature(2.0)),
    )
    refuses(
        lambda: sg.compare(patient, text, plan), "translator", "surgery.operate", error=sg.UnsupportedError
    )
    refuses(lambda: sg.sweep(patient, text, plan), "translator", "surgery.operate", error=sg.UnsupportedError)
    refuses(lambda: sg.head_importance(patient, text), "surgery.operate", error=sg.UnsupportedError)


def test_a_plan_of_a_training_loop_draws_anew_each_step_and_repeats(translator, inputs):
    plan = EachStep(sg.WeightDropout(0.5, 3).at("L0"))
    with torch.no_grad():
        drawn = []
        for step in (1, 1, 2):
            with plan(translator, step):
                drawn.append(translator(**inputs).logits)
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])
