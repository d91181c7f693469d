"""The five-part test that every operation passes: against float64, at its neutral value, at its limits, on what it must
not touch, and on what it must refuse. A test of an operation says what is expected; this file does the looking.

All sizes are distinct primes where they can be, so that swapped axes fail.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel

import surgery as sg
from bilingual import SurgeryError
from models import EncoderConfig, EncoderModel
from surgery import theatre
from surgery.capture import Keep
from tests import reference

ROWS, TOKENS, VOCAB, ROOM = 2, 11, 53, 23
SHORT = 7  # real tokens of the second row; the rest is padding
EPSILON = 2.0**-23
PROJECTIONS = {
    "bert": ("self.query", "self.key", "self.value", "output.dense"),
    "surgery_encoder": ("query", "key", "value", "output"),
}


@contextlib.contextmanager
def seeded(seed: int = 0):
    """Random weights that are the same ones every time, and the process-wide generator as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def bert(implementation: str = "sdpa", model_class=BertModel, **config) -> torch.nn.Module:
    """A tiny random BERT of 3 layers, 5 heads of width 7, whose queries are wide: attention is far from uniform."""
    sizes = {
        "vocab_size": VOCAB,
        "hidden_size": 35,
        "num_hidden_layers": 3,
        "num_attention_heads": 5,
        "intermediate_size": 31,
        "max_position_embeddings": ROOM,
    }
    with seeded():
        model = model_class(BertConfig(**{**sizes, **config}, attn_implementation=implementation)).eval()
    return widened(model, "query")


def encoder(positions: str = "learned", implementation: str = "sdpa", model_class=EncoderModel, **config):
    """A tiny random from-scratch encoder of 2 layers, 3 heads of width 10 (even, for rotary)."""
    sizes = {
        "vocab_size": VOCAB,
        "d_model": 30,
        "num_heads": 3,
        "num_layers": 2,
        "d_ff": 29,
        "max_positions": ROOM,
    }
    with seeded():
        choices = {**sizes, "positions": positions, **config}
        return model_class(EncoderConfig(**choices, attn_implementation=implementation)).eval()


def widened(model: torch.nn.Module, name: str, factor: float = 20.0) -> torch.nn.Module:
    for path, module in model.named_modules():
        if path.endswith(name) and isinstance(module, torch.nn.Linear):
            module.weight.data.mul_(factor)
    return model


def batch(padded: bool = True, rows: int = ROWS, tokens: int = TOKENS) -> dict[str, torch.Tensor]:
    """Random token ids; the second row is padding from its seventh token on."""
    with seeded(1):
        ids = torch.randint(3, VOCAB, (rows, tokens))
    mask = torch.ones_like(ids)
    if padded:
        ids[1, SHORT:], mask[1, SHORT:] = 0, 0
    return {"input_ids": ids, "attention_mask": mask}


@dataclass
class Layer:
    """What one layer computed with, and what came of it: arrays (row, head, token, width)."""

    q: np.ndarray = None
    k: np.ndarray = None
    v: np.ndarray = None
    output: torch.Tensor = None
    site: object = None  # scores, weights, output, no_key; only of a watched run


@dataclass
class Seen:
    layers: list[Layer]
    hidden: tuple[torch.Tensor, ...]


@dataclass
class Specimen:
    """A tiny model with a batch to run through it."""

    name: str
    model: torch.nn.Module
    inputs: dict[str, torch.Tensor] = field(default_factory=batch)

    def __repr__(self):
        return self.name

    def __post_init__(self):
        anatomy = sg.admit(self.model)
        self.n_layers, self.heads, self.d_k = anatomy.layers, anatomy.heads, anatomy.d_k

    @property
    def tokens(self) -> int:
        return self.inputs["input_ids"].shape[1]

    @property
    def allowed(self) -> np.ndarray:
        """What the model's own masks permit: (row, 1, 1, key)."""
        return self.inputs["attention_mask"].bool().numpy()[:, None, None, :]

    def run(self, *parts, watched: bool = True, rows=None, inputs=None) -> Seen:
        """One forward pass under a plan (or under several, each on its `rows`); all that went in and out."""
        plans = [sg.Plan(*parts)] if rows is None else list(parts)
        book, hooks = Keep(), []
        layers = [Layer() for _ in range(self.n_layers)]
        modules = [m for m in dict(self.model.named_modules()).values() if self._is_attention(m)]
        for layer, module in zip(layers, modules, strict=True):
            names = PROJECTIONS[self.model.config.model_type]
            for attribute, name in zip("qkv", names, strict=False):
                projection = module.get_submodule(name)
                hooks.append(projection.register_forward_hook(self._keeper(layer, attribute)))
            hooks.append(module.get_submodule(names[3]).register_forward_pre_hook(self._mixed(layer)))
        witnesses = book if watched else lambda layer: None
        try:
            with (
                torch.no_grad(),
                theatre.run(self.model, plans, rows=rows or (None,), witnesses=witnesses),
            ):
                out = self.model(**(inputs or self.inputs), output_hidden_states=True)
        finally:
            for hook in hooks:
                hook.remove()
        for index, layer in enumerate(layers):
            layer.site = book.sites.get(index)
        return Seen(layers, out.hidden_states)

    @staticmethod
    def _is_attention(module) -> bool:
        return type(module).__name__ in ("BertAttention", "MultiHeadAttention")

    def _keeper(self, layer: Layer, attribute: str):
        def hook(module, args, result):
            setattr(layer, attribute, self._split(result).numpy())

        return hook

    def _mixed(self, layer: Layer):
        def hook(module, args):
            layer.output = self._split(args[0])

        return hook

    def _split(self, x: torch.Tensor) -> torch.Tensor:
        return x.detach().unflatten(-1, (self.heads, -1)).transpose(1, 2).clone()  # (row, head, token, width)


SPECIMENS: dict[str, Callable[[], Specimen]] = {
    "bert": lambda: Specimen("bert", bert()),
    "bert-eager": lambda: Specimen("bert-eager", bert("eager")),
    "encoder": lambda: Specimen("encoder", widened(encoder("learned"), "query", 8.0)),
    "encoder-causal": lambda: Specimen("encoder-causal", encoder("sinusoidal", causal=True)),
}


# --- (a) against float64 ------------------------------------------------------------------------------------


def close(found, expected, float32: list, what: str) -> None:
    """Within twice float32's own error, or a few roundings of the largest number where float32 happens to be exact.

    float32: the same equation in float32, the sums taken in several orders.
    """
    found = np.asarray(found, np.float64)
    assert not np.isnan(found).any(), what
    own = max(np.abs(np.asarray(one, np.float64) - expected).max() for one in float32)
    bound = max(2 * own, 4 * EPSILON * np.abs(expected).max())
    assert np.abs(found - expected).max() <= bound, (what, np.abs(found - expected).max(), bound)


def in_float32(layer: Layer, keywords: dict):
    """The reference in float32, each time with the same numbers and its sums or products in another order."""
    width = layer.q.shape[-1]
    for order in (slice(None), slice(None, None, -1), np.argsort(np.arange(width) % 3)):
        q, k = layer.q[..., order], layer.k[..., order]
        yield reference.attention(q, k, layer.v, **keywords, dtype=np.float32)
    share = np.float32(width**-0.25)  # kernels like to give q and k half of the scaling each
    rest = {**keywords, "scaling": keywords.get("scaling", width**-0.5) / width**-0.5}
    yield reference.attention(layer.q * share, layer.k * share, layer.v, **rest, dtype=np.float32)


def matches(specimen: Specimen, operation, expected: Callable, watched=(True, False)) -> Seen:
    """Each layer of a run under `operation`, everywhere, is what the reference makes of that layer's own q, k, v.

    expected: Layer, allowed -> the keywords of `reference.attention`. Checks captured scores, weights and output, and the
    fused path's output.
    """
    for watch in watched:
        seen = specimen.run(operation, watched=watch)
        for index, layer in enumerate(seen.layers):
            allowed = specimen.allowed
            if getattr(specimen.model.config, "causal", False):
                allowed = allowed & reference.causal(specimen.tokens)
            keywords = expected(layer, allowed)
            keywords = {"allowed": allowed, **keywords}
            wide = reference.attention(layer.q, layer.k, layer.v, **keywords)
            narrow = list(in_float32(layer, keywords))
            where = f"{specimen.name}, layer {index}, {'captured' if watch else 'fused'}"
            close(layer.output, wide.output, [n.output for n in narrow], f"{where}: output")
            if watch:
                close(layer.site.scores, wide.scores, [n.scores for n in narrow], f"{where}: scores")
                close(layer.site.weights, wide.weights, [n.weights for n in narrow], f"{where}: weights")
                no_key = ~np.broadcast_to(keywords["allowed"], wide.scores.shape).any(-1)
                assert (layer.site.no_key.numpy() == no_key).all(), where
    return seen


def matches_mask(specimen: Specimen, operation, picture: np.ndarray) -> Seen:
    """A mask operation permits what the picture permits, and the model's own masks still hold."""
    return matches(specimen, operation, lambda layer, allowed: {"allowed": allowed & picture})


# --- (b) at its neutral value -------------------------------------------------------------------------------


def same(a: Seen, b: Seen) -> bool:
    """Bit for bit: all hidden states, and weights where both were watched."""
    pairs = [*zip(a.hidden, b.hidden, strict=True)]
    for left, right in zip(a.layers, b.layers, strict=True):
        if left.site and right.site:
            pairs.append((left.site.weights, right.site.weights))
    return all(torch.equal(x, y) for x, y in pairs)


def changes_nothing(specimen: Specimen, operation) -> None:
    """Bit-identical to no surgery, fused and captured, and marked as neutral."""
    assert operation.neutral
    for watched in (True, False):
        assert same(specimen.run(operation, watched=watched), specimen.run(watched=watched)), watched


# --- (d) what it must not touch -----------------------------------------------------------------------------


def leaves_others_alone(specimen: Specimen, operation) -> None:
    """In layer 1, head 2 alone: layer 0 and the other heads are bit-identical, and head 2 is not."""
    for watched in (True, False):
        before, after = specimen.run(watched=watched), specimen.run(operation.at("L1.H2"), watched=watched)
        assert torch.equal(before.hidden[0], after.hidden[0]) and torch.equal(
            before.hidden[1], after.hidden[1]
        )
        others = [head for head in range(specimen.heads) if head != 2]
        old, new = before.layers[1], after.layers[1]
        assert torch.equal(old.output[:, others], new.output[:, others]) or not watched
        assert torch.allclose(old.output[:, others], new.output[:, others], atol=1e-6)
        assert not torch.equal(old.output[:, 2], new.output[:, 2])
        if watched:
            for part in ("scores", "weights"):
                assert torch.equal(getattr(old.site, part)[:, others], getattr(new.site, part)[:, others])
        assert not torch.equal(before.hidden[2], after.hidden[2])
    assert same(specimen.run(operation.at("none")), specimen.run())


def leaves_other_rows_alone(specimen: Specimen, operation) -> None:
    """In a batch of two plans the rows without the operation are what they are alone, and the others operated."""
    doubled = {name: torch.cat((x, x)) for name, x in specimen.inputs.items()}
    halves = [torch.arange(ROWS), torch.arange(ROWS, 2 * ROWS)]
    both = specimen.run(sg.Plan(), sg.Plan(operation), rows=halves, inputs=doubled)
    neither = specimen.run(sg.Plan(), sg.Plan(), rows=halves, inputs=doubled)
    alone = specimen.run(operation)
    for with_it, without, lone in zip(both.hidden, neither.hidden, alone.hidden, strict=True):
        assert torch.equal(with_it[:ROWS], without[:ROWS])
        assert torch.allclose(with_it[ROWS:], lone, atol=2e-5)
    assert not torch.equal(both.hidden[-1][ROWS:], neither.hidden[-1][ROWS:])


# --- (e) what it must refuse --------------------------------------------------------------------------------


def refuses(make: Callable, *says: str, error: type = SurgeryError) -> None:
    """Refused with a sentence that holds every one of `says`, in English, and another one in Chinese."""
    with pytest.raises(error) as caught:
        make()
    en, zh = caught.value.say("en"), caught.value.say("zh")
    for part in says:
        assert part in en, en
    assert en == str(caught.value) and len(en) > 20
    assert any("\u4e00" <= character <= "\u9fff" for character in zh), zh


# --- random draws -------------------------------------------------------------------------------------------


def draws_well(
    specimen: Specimen, make: Callable[..., object], dropped: Callable[[Seen, int], torch.Tensor]
) -> None:
    """What every dropout keeps: acts in eval mode, own seed, own generator, draws apart by seed, layer and place in the plan.

    make: p, seed -> the operation. dropped: run, layer -> bool, True where something was dropped.
    """
    operation = make(p=0.5, seed=7)
    assert not specimen.model.training
    state = torch.get_rng_state()
    first, again = specimen.run(operation), specimen.run(operation)
    assert torch.equal(torch.get_rng_state(), state)
    assert same(first, again)
    drops = dropped(first, 0)
    assert 0.3 < drops.float().mean() < 0.7
    assert not torch.equal(drops, dropped(specimen.run(make(p=0.5, seed=8)), 0))
    assert not torch.equal(drops, dropped(first, 1))  # layers draw apart
    assert not torch.equal(drops[:, 0], drops[:, 1])  # heads too
    alone = dropped(specimen.run(operation.at("L0.H1")), 0)
    assert torch.equal(alone[:, 1], drops[:, 1])  # which heads are selected does not matter
    twice = dropped(specimen.run(operation, operation), 0)
    assert twice.float().mean() > drops.float().mean() + 0.1  # the second one drops others


def refuses_dropout(make: Callable) -> None:
    """p is a probability, seed a whole number that a link can hold."""
    for p in (-0.1, 1.5, float("nan"), float("inf"), None, "0.5", True):
        refuses(lambda p=p: make(p, 0), f"p = {p!r}", "0 to 1", error=sg.OperationError)
    for value in (-1, 2**31, 0.5, None, "1", True):
        refuses(
            lambda value=value: make(0.5, value), f"seed = {value!r}", "whole number", error=sg.OperationError
        )


# --- positions ----------------------------------------------------------------------------------------------


def placed(kind: str) -> Specimen:
    """A tiny model whose positions live in a table, in waves, or in a rotation."""
    return Specimen(kind, bert() if kind == "bert" else encoder(kind))


def moves_to(specimen: Specimen, operation, ids: Callable[[int], list[int]]) -> None:
    """Under `operation` a text of n real tokens is what the model makes of it at positions `ids(n)`, bit for bit.

    The padding of the second row keeps its positions.
    """
    rows = [
        ids(int(n)) + list(range(int(n), specimen.tokens)) for n in specimen.inputs["attention_mask"].sum(1)
    ]
    told = {**specimen.inputs, "position_ids": torch.tensor(rows)}
    for watched in (True, False):
        seen, expected = specimen.run(operation, watched=watched), specimen.run(watched=watched, inputs=told)
        assert same(seen, expected)


def refuses_parts(operation) -> None:
    """Positions enter before the first layer: they cannot be changed in one layer or head alone."""
    specimen = placed("bert")
    for where in ("L0", "H2", "L0-2.H0-3"):
        refuses(
            lambda where=where: specimen.run(operation.at(where)),
            "whole model",
            where,
            error=sg.UnsupportedError,
        )
    everything = specimen.run(operation)
    for where in ("L*", "L0-2", "H0-4", "L0+L1-2"):
        assert same(specimen.run(operation.at(where)), everything)
    assert same(specimen.run(operation.at("none")), specimen.run())
    without = Specimen("without", encoder("none"))
    refuses(lambda: without.run(operation), "no position encoding", "mask", error=sg.UnsupportedError)
