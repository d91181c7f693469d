"""Surgery on modules that ask nobody for their attention: PyTorch's own, and whoever calls scaled_dot_product_attention."""

import threading

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import surgery as sg
from surgery import theatre
from surgery.capture import Keep
from tests import reference
from tests.surgery.bench import refuses, seeded
from tests.surgery.conformance.check import Seen, compare

ROWS, TOKENS, HEADS, WIDTH, VOCAB = 2, 11, 3, 10, 53


class Attention(nn.Module):
    """As tutorials write it: one projection for q, k and v, then the kernel."""

    def __init__(self, causal=True, before=1.0):
        super().__init__()
        self.qkv, self.out = nn.Linear(30, 90), nn.Linear(30, 30)
        self.causal, self.before = causal, before

    def forward(self, x):
        x = F.layer_norm(x, (30,))
        q, k, v = (y.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2) for y in self.qkv(x).chunk(3, dim=-1))
        q, self.q, self.k, self.v = q * self.before, q, k, v
        scale = None if self.before == 1.0 else 1.0
        self.mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal, scale=scale)
        return self.out(self.mixed.transpose(1, 2).flatten(2))


class Writer(nn.Module):
    """nanoGPT's shape: a table of words, one of positions, and blocks."""

    def __init__(self, **how):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCAB, 30), nn.Embedding(23, 30)
        self.blocks = nn.ModuleList([Attention(**how) for _ in range(3)])

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        self.states = [x]
        for block in self.blocks:
            x = x + block(x)
            self.states.append(x)
        return x


def wide(model: nn.Module) -> nn.Module:
    """Queries and keys so long that attention is far from uniform."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "qkv.weight" in name or "in_proj_weight" in name:
                weight.mul_(3.0)
            elif name.endswith("bias"):
                weight.normal_(0, 0.3)
    return model.eval()


def writer(**how):
    with seeded():
        model = wide(Writer(**how))
        ids = torch.randint(1, VOCAB, (ROWS, TOKENS))
    sg.admit(model, ids)
    return model, ids


def operated(model, given, *parts, **options):
    with torch.no_grad(), sg.operate(model, sg.Plan(*parts)):
        return model(*given, **options)


# --- whoever calls the kernel -------------------------------------------------------------------------------

WORDS = {
    sg.DropScaling(): {"scaling": 1.0},
    sg.Temperature(3.0): {"temperature": 3.0},
    sg.UniformAttention(): {"uniform": True, "temperature": np.inf},
    sg.AblateHead(): {"output_factor": 0.0},
    sg.LocalMask(2): {"allowed": reference.local(TOKENS, 2)},
    sg.HideSelf(): {"allowed": reference.without_self(TOKENS)},
    sg.CausalMask(): {"allowed": reference.causal(TOKENS)},
    sg.BlockTokens([1, 3]): {"allowed": reference.mask_keys(TOKENS, (1, 3))},
}


@pytest.mark.parametrize("before", [1.0, WIDTH**-0.5], ids=["scaled by the kernel", "scaled before"])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("operation", WORDS, ids=lambda operation: operation.name)
def test_each_layer_is_the_references(operation, causal, before):
    model, ids = writer(causal=causal, before=before)
    assert sg.admit(model).scale == pytest.approx(WIDTH**-0.5)
    allowed = reference.causal(TOKENS) if causal else np.ones((TOKENS, TOKENS), bool)
    words = {"allowed": True, **WORDS[operation]}
    words["allowed"] = allowed & words["allowed"]
    for book in (Keep(), None):
        with (
            torch.no_grad(),
            theatre.run(model, [sg.Plan(operation)], witnesses=book or (lambda layer: None)),
        ):
            model(ids)
        for layer, block in enumerate(model.blocks):
            q, k, v = (x.numpy() for x in (block.q, block.k, block.v))
            given = {"bias": np.zeros(1), "scaling": WIDTH**-0.5, **words}
            site = book.sites[layer] if book else None
            call = Seen(block, q, k, v, WIDTH**-0.5, None, block.mixed.transpose(1, 2), site)
            compare(call, given, f"{operation.name} {layer}")


def test_without_a_plan_nothing_changes_and_nothing_is_intercepted():
    model, ids = writer()
    with torch.no_grad():
        expected = model(ids)
    for plan in (sg.Plan(), sg.Temperature(1.0), sg.HideSelf().at("none")):
        assert torch.equal(operated(model, (ids,), plan), expected)
    assert torch.equal(operated(model, (ids,), sg.AblateHead().at("L1.H2")), model(ids)) is False
    with torch.no_grad():
        assert torch.equal(model(ids), expected)


def test_one_head_of_one_layer():
    model, ids = writer()
    with torch.no_grad():
        model(ids)
        before, mixed = model.states, [block.mixed for block in model.blocks]
    operated(model, (ids,), sg.Temperature(5.0).at("L1.H2"))
    assert [torch.equal(a, b) for a, b in zip(before, model.states, strict=True)] == [
        True,
        True,
        False,
        False,
    ]
    old, new = mixed[1], model.blocks[1].mixed
    assert torch.allclose(old[:, :2], new[:, :2], atol=1e-6) and not torch.allclose(
        old[:, 2], new[:, 2], atol=1e-3
    )


def test_positions_that_are_looked_up_by_number_can_be_removed_and_shifted():
    model, ids = writer(causal=False)
    order = torch.randperm(TOKENS, generator=torch.Generator().manual_seed(1))
    straight, mixed = (operated(model, (x,), sg.RemovePositions()) for x in (ids, ids[:, order]))
    assert (straight[:, order] - mixed).abs().max() < 1e-4
    shifted = operated(model, (ids,), sg.ShiftPositions(5))
    with torch.no_grad():
        model.places.weight.copy_(model.places.weight.roll(-5, 0))
        assert torch.equal(shifted, model(ids))
    said = sg.support(model)
    assert "padding" in said["reverse_positions"] and "padding" in said["ignore_padding_mask"]
    assert said["remove_positions"] == said["temperature"] == "yes"


def test_gradients_flow():
    model, ids = writer()
    with sg.operate(model, sg.Plan(sg.Temperature(2.0).at("H1"), sg.LocalMask(3).at("L2"))):
        model(ids).square().sum().backward()
    assert all(block.qkv.weight.grad.isfinite().all() for block in model.blocks)


def test_other_threads_and_other_models_are_not_affected():
    model, ids = writer()
    other, _ = writer(causal=False)
    with torch.no_grad():
        expected, beside = model(ids), other(ids)
    found = []
    with torch.no_grad(), sg.operate(model, sg.AblateHead()):
        thread = threading.Thread(target=lambda: found.append(model(ids).detach()))
        thread.start(), thread.join()
        assert torch.equal(other(ids), beside)
        assert not torch.equal(model(ids), expected)
    assert torch.equal(found[0], expected)


def test_an_exception_leaves_nothing_open():
    model, ids = writer()
    with torch.no_grad():
        expected = model(ids)
    with pytest.raises(IndexError), sg.operate(model, sg.AblateHead()):
        model(ids + VOCAB)
    with torch.no_grad():
        assert torch.equal(model(ids), expected)
    assert theatre._calls.get() == () and theatre._open.get() == ()


# --- PyTorch's own modules ----------------------------------------------------------------------------------


def encoder(**how):
    with seeded():
        layer = nn.TransformerEncoderLayer(30, HEADS * 2, 31, dropout=0.0, **how)
        nested = bool(how.get("batch_first") and not how.get("norm_first"))
        model = wide(nn.TransformerEncoder(layer, 3, enable_nested_tensor=nested))
        x = torch.randn(ROWS, TOKENS, 30) if how.get("batch_first") else torch.randn(TOKENS, ROWS, 30)
    return model, x


def by_hand(module: nn.MultiheadAttention, x: np.ndarray, source=None, **words):
    """nn.MultiheadAttention in float64: (row, query, width) -> (row, query, width), and its weights."""
    source = x if source is None else source
    weights = np.split(module.in_proj_weight.detach().double().numpy(), 3)
    biases = np.split(module.in_proj_bias.detach().double().numpy(), 3)
    heads = module.num_heads
    q, k, v = (
        (y @ w.T + b).reshape(*y.shape[:2], heads, -1).swapaxes(1, 2)
        for y, w, b in zip((x, source, source), weights, biases, strict=True)
    )
    done = reference.attention(q, k, v, **words)
    mixed = done.output.swapaxes(1, 2).reshape(x.shape)
    out = module.out_proj
    return mixed @ out.weight.detach().double().numpy().T + out.bias.detach().double().numpy(), done.weights


@pytest.mark.parametrize("operation", WORDS, ids=lambda operation: operation.name)
@pytest.mark.parametrize("batch_first, norm_first", [(True, False), (False, True)])
@pytest.mark.parametrize("padded", [False, True])
def test_a_transformer_encoder_layer_by_layer(operation, batch_first, norm_first, padded):
    """In eval mode and without gradients, where PyTorch would fuse whole layers."""
    model, x = encoder(batch_first=batch_first, norm_first=norm_first)
    padding = torch.arange(TOKENS)[None] >= torch.tensor([[TOKENS], [7]])
    options = {"src_key_padding_mask": padding} if padded else {}
    with torch.no_grad():
        sg.admit(model, x, **options)
    assert (sg.admit(model).layers, sg.admit(model).heads) == (3, HEADS * 2)
    seen = []
    hooks = [
        layer.self_attn.register_forward_hook(
            lambda module, args, out: seen.append((module, args[0], out[0]))
        )
        for layer in model.layers
    ]
    operated(model, (x,), operation, **options)
    for hook in hooks:
        hook.remove()
    assert len(seen) == 3
    words = {"allowed": np.ones((1, 1, 1, TOKENS), bool), **WORDS[operation]}
    words["allowed"] = words["allowed"] & (~padding.numpy()[:, None, None] if padded else True)
    for module, given, out in seen:
        rows = [y if batch_first else y.transpose(0, 1) for y in (given, out)]
        expected, _ = by_hand(module, rows[0].double().numpy(), **({"scaling": 5**-0.5} | words))
        assert np.abs(rows[1].numpy() - expected).max() < 1e-5


def test_a_causal_encoder_keeps_its_mask():
    model, x = encoder(batch_first=True)
    causal = nn.Transformer.generate_square_subsequent_mask(TOKENS)
    sg.admit(model, x, mask=causal, is_causal=True)
    changed = x.clone()
    changed[:, -1] += 1.0
    with_plan = [
        operated(model, (y,), sg.Temperature(3.0), mask=causal, is_causal=True) for y in (x, changed)
    ]
    assert torch.equal(with_plan[0][:, :-1], with_plan[1][:, :-1])


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("operation", WORDS, ids=lambda operation: operation.name)
def test_the_weights_that_multi_head_attention_returns_are_the_operated_ones(operation, average):
    """With need_weights=True the module multiplies out by itself and calls no kernel."""
    with seeded():
        module = wide(nn.MultiheadAttention(30, HEADS, batch_first=True))
        x = torch.randn(ROWS, TOKENS, 30)
    sg.admit(module, x, x, x)
    output, weights = operated(module, (x, x, x), operation, average_attn_weights=average)
    expected, right = by_hand(module, x.double().numpy(), **{"allowed": True, **WORDS[operation]})
    assert np.abs(output.numpy() - expected).max() < 1e-5
    assert np.abs(weights.numpy() - (right.mean(1) if average else right)).max() < 1e-5


def test_a_mask_for_each_head_and_text_without_rows():
    with seeded():
        module = wide(nn.MultiheadAttention(30, HEADS, batch_first=True))
        x = torch.randn(ROWS, TOKENS, 30)
        forbidden = torch.rand(ROWS * HEADS, TOKENS, TOKENS) > 0.6
    forbidden[..., 0] = False
    sg.admit(module, x, x, x)
    output, _ = operated(module, (x, x, x), sg.Temperature(2.0), attn_mask=forbidden)
    allowed = ~forbidden.unflatten(0, (ROWS, HEADS)).numpy()
    expected, _ = by_hand(module, x.double().numpy(), allowed=allowed, temperature=2.0)
    assert np.abs(output.numpy() - expected).max() < 1e-5
    alone, weights = operated(module, (x[0], x[0], x[0]), sg.Temperature(2.0))
    expected, _ = by_hand(module, x[:1].double().numpy(), temperature=2.0)
    assert np.abs(alone.numpy() - expected[0]).max() < 1e-5 and weights.shape == (TOKENS, TOKENS)


def test_a_whole_transformer_has_layers_between_two_texts():
    with seeded():
        model = wide(nn.Transformer(30, 2, 2, 2, 31, dropout=0.0, batch_first=True))
        source, target = torch.randn(ROWS, TOKENS, 30), torch.randn(ROWS, TOKENS, 30)
    anatomy = sg.admit(model, source, target)
    assert anatomy.layers == 6 and anatomy.crossed == {3, 5}  # equally long texts, and yet two
    refuses(
        lambda: operated(model, (source, target), sg.HideSelf()),
        "two",
        "L0, L1, L2, L4",
        error=sg.UnsupportedError,
    )
    with torch.no_grad():
        intact = model(source, target)
    for where in ("L0", "L3", "L4"):
        changed = operated(model, (source, target), sg.Temperature(5.0).at(where))
        assert not torch.allclose(changed, intact, atol=1e-4)
    operated(model, (source, target), sg.HideSelf().at("L0-2"))


# --- what is refused ----------------------------------------------------------------------------------------


class ByHand(nn.Module):
    def forward(self, x):
        return (x @ x.transpose(1, 2)).softmax(-1) @ x


class Twice(Writer):
    """Runs its blocks again for long texts."""

    def forward(self, ids):
        x = super().forward(ids)
        return x if ids.shape[1] < TOKENS else self.blocks[0](x)


def test_who_multiplies_out_by_itself_is_refused():
    refuses(lambda: sg.admit(ByHand(), torch.ones(1, 3, 5)), "ByHand", "by itself", error=sg.UnsupportedError)


def test_an_example_is_asked_for_and_must_not_look_like_positions():
    with seeded():
        model = Writer()
    for ask in (sg.admit, sg.support, lambda m: sg.operate(m, sg.Plan()).__enter__()):
        refuses(lambda ask=ask: ask(model), "Writer", "surgery.admit(model, x)", error=sg.UnsupportedError)
    refuses(lambda: sg.admit(model, torch.arange(5)[None]), "other words", error=sg.UnsupportedError)


def test_another_number_of_calls_than_in_the_example_is_refused():
    with seeded():
        model = Twice().eval()
        ids = torch.randint(1, VOCAB, (1, TOKENS))
    sg.admit(model, ids[:, :5])
    operated(model, (ids[:, :6],), sg.AblateHead())
    refuses(lambda: operated(model, (ids,), sg.AblateHead()), "4 times", "3 times", error=sg.UnsupportedError)


def test_keys_that_are_no_tokens_are_refused():
    module, x = nn.MultiheadAttention(30, HEADS, add_bias_kv=True).eval(), torch.randn(TOKENS, ROWS, 30)
    refuses(lambda: sg.admit(module, x, x, x), "add_bias_kv", error=sg.UnsupportedError)


def test_selections_are_checked_before_anything_runs():
    model, ids = writer()
    refuses(lambda: operated(model, (ids,), sg.HideSelf().at("L3")), "0-2", error=sg.SelectionError)
    refuses(
        lambda: operated(model, (ids,), sg.RemovePositions().at("L1")),
        "whole model",
        error=sg.UnsupportedError,
    )


def test_a_part_that_is_called_alone_does_not_pass_for_surgery():
    model, x = encoder()
    whole = nn.Sequential(model, nn.Identity())
    sg.admit(whole, x)
    with pytest.raises(sg.ScopeError, match="Sequential itself"), sg.operate(whole, sg.AblateHead()):
        model(x)
    with torch.no_grad(), sg.operate(whole, sg.AblateHead()), sg.operate(whole, sg.CausalMask()):
        whole(x)
    with sg.operate(whole, sg.Plan()):
        pass
