"""A plan belongs to the calls inside its scope, and to nothing else."""

import contextvars
import copy
import inspect
import pickle
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import transformers
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModel, BertForMaskedLM, BertModel

import models
import surgery as sg
from surgery import theatre
from surgery.capture import Keep
from surgery.probe import Probe
from tests.surgery import bench

ROOT = Path(__file__).parents[2]
TEXTS = {
    "one": ["The dog bit the man"],
    "padded": ["The dog bit the man and ran away", "A cat"],
    "single token": ["cat"],
}
SIZES = {"vocab_size": 53, "type_vocab_size": 1, "pad_token_id": 0}
BERTISH = {
    "hidden_size": 35,
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "intermediate_size": 31,
    "max_position_embeddings": 23,
}


def stock(implementation: str):
    """MiniLM as transformers loads it, never operated on."""
    return AutoModel.from_pretrained(models.load("minilm").source, attn_implementation=implementation).eval()


def admitted(implementation: str):
    model = stock(implementation)
    sg.admit(model)
    return model


@pytest.fixture(scope="module")
def stocks():
    return {name: stock(name) for name in ("sdpa", "eager")}


@pytest.fixture(scope="module")
def operable():
    return {name: admitted(name) for name in ("sdpa", "eager")}


def coded(minilm, name):
    return dict(minilm.tokenizer(TEXTS[name], padding=True, return_tensors="pt"))


def hidden(model, inputs):
    with torch.no_grad():
        return model(**inputs).last_hidden_state


class Operations(TorchDispatchMode):
    """Counts what reaches ATen."""

    def __init__(self):
        super().__init__()
        self.seen = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen[str(function)] += 1
        return function(*args, **(kwargs or {}))


# --- the empty plan -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("text", TEXTS)
def test_the_empty_plan_is_the_stock_model_bit_for_bit(stocks, operable, minilm, implementation, text):
    inputs = coded(minilm, text)
    expected = hidden(stocks[implementation], inputs)
    assert torch.equal(hidden(operable[implementation], inputs), expected)
    for plan in (sg.Plan(), sg.Temperature(1.0), sg.HideSelf().at("none"), sg.KeyDropout(0.0)):
        with sg.operate(operable[implementation], plan):
            assert torch.equal(hidden(operable[implementation], inputs), expected)


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("text", ["one", "padded"])
def test_the_empty_plan_adds_no_operation(stocks, operable, minilm, implementation, text):
    inputs, model = coded(minilm, text), operable[implementation]
    with Operations() as expected:
        hidden(stocks[implementation], inputs)
    with Operations() as without:
        hidden(model, inputs)
    with sg.operate(model, sg.Plan()), Operations() as empty:
        hidden(model, inputs)
    assert without.seen == expected.seen == empty.seen


def test_only_touched_layers_leave_the_fused_kernel(operable, minilm):
    model, inputs = operable["sdpa"], coded(minilm, "one")

    def softmaxes(plan):
        with sg.operate(model, plan), Operations() as counted:
            hidden(model, inputs)
        return tuple(
            sum(n for name, n in counted.seen.items() if kind in name)
            for kind in ("scaled_dot_product", "softmax")
        )

    assert softmaxes(sg.Plan()) == (6, 0)
    fused = sg.Plan(sg.DropScaling(), sg.Temperature(2.0).at("H1"), sg.LocalMask(2), sg.AblateHead().at("L3"))
    assert softmaxes(fused) == (6, 0)
    assert softmaxes(sg.WeightDropout(0.1).at("L2,4.H1")) == (4, 2)


@pytest.mark.parametrize("text", ["one", "padded"])
def test_captured_weights_are_those_of_transformers_eager(stocks, operable, minilm, text):
    inputs = coded(minilm, text)
    with torch.no_grad():
        expected = stocks["eager"](**inputs, output_attentions=True).attentions
    for model in operable.values():
        book = Keep()
        with torch.no_grad(), theatre.run(model, [sg.Plan()], witnesses=book):
            model(**inputs)
        for layer, weights in enumerate(expected):
            assert torch.equal(book.sites[layer].weights, weights), layer


def test_padding_is_hidden_when_nothing_is_asked_for():
    model, inputs = bench.bert("eager"), {"input_ids": torch.tensor([[2, 5, 6, 7, 3]])}
    inputs["attention_mask"] = torch.tensor([[1, 1, 1, 0, 0]])
    expected = hidden(model, inputs)
    for implementation in ("eager", "sdpa"):
        model = bench.bert(implementation)
        sg.admit(model)
        book = Keep()
        with torch.no_grad(), theatre.run(model, [sg.Plan()], witnesses=book):
            found = model(**inputs).last_hidden_state
        assert (found - expected).abs().max() < 1e-5
        assert all(not site.weights[..., 3:].any() for site in book.sites.values())
        assert torch.equal(hidden(model, inputs), expected) or implementation == "sdpa"


# --- selections ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["L0", "L3", "L1-2", "L0.H2"])
def test_hidden_states_are_numbered_from_the_embeddings(where):
    """Four layers give five hidden states; layer n's output is entry n + 1."""
    specimen = bench.Specimen("four", bench.bert(num_hidden_layers=4))
    before, after = specimen.run(watched=False), specimen.run(sg.AblateHead().at(where), watched=False)
    assert len(before.hidden) == 5
    first = int(where[1])
    for entry, (old, new) in enumerate(zip(before.hidden, after.hidden, strict=True)):
        assert torch.equal(old, new) == (entry <= first), entry


@pytest.mark.parametrize("where, says", [("L4", "0-3"), ("L0.H5", "0-4"), ("L1+L9", "0-3")])
def test_what_the_model_lacks_is_refused_before_anything_runs(where, says):
    model = bench.bert(num_hidden_layers=4)
    ran = []
    sg.admit(model)
    model.embeddings.register_forward_hook(lambda *_: ran.append(1))
    bench.refuses(
        lambda: theatre.operate(model, sg.HideSelf().at(where)).__enter__(), says, error=sg.SelectionError
    )
    assert not ran and theatre._open.get() == ()


# --- scopes -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stumble(sg.Operation):
    """Raises in the middle of a forward pass. Has no name, so it is not registered."""

    stage = "output"
    title = summary = sg.Words("Stumble", "绊倒")

    def output(self, output, draw):
        raise RuntimeError("stumbled")


Stumble.name = "stumble"


@pytest.fixture
def subject():
    """A tiny model, its batch, and what it gives intact; checked once more at the end."""
    model, inputs = bench.bert(), bench.batch()
    expected = hidden(model, inputs)
    sg.admit(model)
    yield model, inputs, expected
    assert theatre._open.get() == () and torch.equal(hidden(model, inputs), expected)


def test_an_exception_in_forward_leaves_the_model_as_it_was(subject):
    model, inputs, expected = subject
    for where in ("L0", "L2"):
        with (
            pytest.raises(RuntimeError, match="stumbled"),
            sg.operate(model, sg.Plan(sg.RemovePositions(), Stumble().at(where))),
        ):
            hidden(model, inputs)
        assert torch.equal(hidden(model, inputs), expected)
    with pytest.raises(KeyboardInterrupt), sg.operate(model, sg.HideSelf()):
        raise KeyboardInterrupt


def test_a_call_that_broke_off_does_not_shift_the_layers_of_the_next_one():
    """ALBERT calls one module for all its layers: the calls are counted from the start of each forward pass."""
    model, inputs = relative("Albert"), bench.batch(padded=False)
    plan = sg.AblateHead().at("L2.H3")
    with torch.no_grad(), sg.operate(model, plan):
        expected = model(**inputs).last_hidden_state
    layer = model.encoder.albert_layer_groups[0].albert_layers[0]
    with torch.no_grad(), sg.operate(model, plan):
        hook = layer.register_forward_hook(lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model(**inputs)
        hook.remove()
        assert torch.equal(model(**inputs).last_hidden_state, expected)


def test_an_inner_scope_comes_after_the_outer_one(subject):
    model, inputs, expected = subject
    outer, inner = (
        sg.Plan(sg.RemovePositions(), sg.Temperature(3.0).at("L0")),
        sg.Plan(sg.HideSelf().at("L1")),
    )
    with sg.operate(model, outer + inner):
        both = hidden(model, inputs)
    with sg.operate(model, outer):
        first = hidden(model, inputs)
        with sg.operate(model, inner):
            assert torch.equal(hidden(model, inputs), both)
            with sg.operate(model, sg.Plan()):
                assert torch.equal(hidden(model, inputs), both)
        assert torch.equal(hidden(model, inputs), first)
    assert not torch.equal(first, both) and not torch.equal(first, expected)
    with sg.operate(model, inner), sg.operate(model, outer):  # positions in the inner one
        assert torch.equal(hidden(model, inputs), both)


def test_scopes_closed_out_of_order_say_so_and_are_closed(subject):
    model, _, _ = subject
    first, second = sg.operate(model, sg.HideSelf()), sg.operate(model, sg.CausalMask())
    first.__enter__(), second.__enter__()
    bench.refuses(lambda: first.__exit__(None, None, None), "out of order", error=sg.ScopeError)
    second.__exit__(None, None, None)


def test_a_scope_closed_in_another_thread_says_so(subject):
    model, inputs, expected = subject
    scope, errors = sg.operate(model, sg.HideSelf()), []
    context = contextvars.copy_context()
    context.run(scope.__enter__)

    def close():
        try:
            scope.__exit__(None, None, None)
        except sg.ScopeError as error:
            errors.append(error)

    thread = threading.Thread(target=close)
    thread.start(), thread.join()
    assert len(errors) == 1 and "yield" in str(errors[0])
    assert torch.equal(hidden(model, inputs), expected)


def test_a_generator_that_is_resumed_elsewhere_ends_in_a_clear_error(subject):
    model, inputs, expected = subject

    def visitor():
        with sg.operate(model, sg.HideSelf()):
            yield hidden(model, inputs)
            yield hidden(model, inputs)  # another context: the surgery is not open here

    generator, found = visitor(), []
    for _ in range(2):
        contextvars.copy_context().run(lambda: found.append(next(generator)))
    assert not torch.equal(found[0], expected) and torch.equal(found[1], expected)
    end = lambda: contextvars.copy_context().run(next, generator)  # noqa: E731
    bench.refuses(end, "yield", error=sg.ScopeError)


def test_other_threads_are_not_affected(subject):
    model, inputs, expected = subject
    with sg.operate(model, sg.HideSelf()):
        found = ThreadPoolExecutor(1).submit(hidden, model, inputs).result()
        assert torch.equal(found, expected) and not torch.equal(hidden(model, inputs), expected)


def test_two_models_keep_apart(subject):
    model, inputs, _ = subject
    other = bench.encoder()
    intact = hidden(other, inputs)
    with sg.operate(model, sg.HideSelf()):
        operated = hidden(model, inputs)
        assert torch.equal(hidden(other, inputs), intact)
        with sg.operate(other, sg.CausalMask()):
            assert not torch.equal(hidden(other, inputs), intact)
            assert torch.equal(hidden(model, inputs), operated)
            again = hidden(other, inputs)
        assert torch.equal(hidden(other, inputs), intact) and not torch.equal(again, intact)


def test_a_model_and_the_same_model_with_its_head_share_their_scopes():
    model, inputs = bench.bert(model_class=BertForMaskedLM), bench.batch()
    a, b = sg.CausalMask(), sg.Temperature(3.0)
    for first in (model, model.bert):
        sg.admit(first)

    def logits():
        with torch.no_grad():
            return model(**inputs).logits

    with sg.operate(model, sg.Plan(a, b)):
        expected = logits()
    with sg.operate(model.bert, a), sg.operate(model, b):
        assert torch.equal(logits(), expected)
    with sg.operate(model.bert, sg.Plan(a, b)):
        assert torch.equal(logits(), expected)


def test_comparing_inside_a_scope_has_an_intact_baseline(minilm):
    text = "The dog bit the man"
    expected = sg.compare(minilm, text, sg.CausalMask())
    with sg.operate(minilm, sg.Plan(sg.RemovePositions(), sg.DropScaling())):
        for capture in ("all", [2], None):
            found = sg.compare(minilm, text, sg.CausalMask(), capture)
            for run in ("baseline", "operated"):
                hidden_states = [getattr(c, run).hidden for c in (found, expected)]
                assert (hidden_states[0] - hidden_states[1]).abs().max() < 1e-4, (capture, run)


PLANS = [
    sg.Plan(sg.DropScaling().at("L0-3.H1,5")),
    sg.Plan(sg.RemovePositions(), sg.KeyDropout(0.3, 5)),
    sg.Plan(sg.Temperature(3.0), sg.WeightDropout(0.2, 1).at("L2-4")),
    sg.Plan(),
]


def test_eight_threads_with_four_plans_on_one_model_are_never_wrong(minilm):
    model, inputs = minilm.model, coded(minilm, "padded")

    def operated(plan):
        with torch.inference_mode(), sg.operate(model, plan):
            return model(**inputs).last_hidden_state

    expected = [operated(plan) for plan in PLANS]
    assert len({tensor.sum().item() for tensor in expected}) == 4
    start = threading.Barrier(8)

    def visitor(number):
        start.wait()
        plans = [(number + i) % 4 for i in range(50)]
        return sum(not torch.equal(operated(PLANS[p]), expected[p]) for p in plans)

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(visitor, range(8))) == 0
    assert torch.equal(operated(sg.Plan()), expected[3])


def test_admitting_from_many_threads_at_once_admits_once():
    model, inputs = bench.bert(), bench.batch()
    expected = hidden(model, inputs)
    with ThreadPoolExecutor(8) as pool:
        anatomies = list(pool.map(lambda _: sg.admit(model), range(32)))
    assert len({id(anatomy) for anatomy in anatomies}) == 1
    assert len(model._forward_pre_hooks) == 1 and torch.equal(hidden(model, inputs), expected)


# --- copies, files, training --------------------------------------------------------------------------------


def test_a_copy_of_an_admitted_model_is_a_model_of_its_own(subject):
    model, inputs, expected = subject
    twin = copy.deepcopy(model)
    with sg.operate(model, sg.Plan(sg.RemovePositions(), sg.HideSelf())):
        operated = hidden(model, inputs)
        assert torch.equal(hidden(twin, inputs), expected)
    with sg.operate(twin, sg.Plan(sg.RemovePositions(), sg.HideSelf())):
        assert torch.equal(hidden(twin, inputs), operated) and torch.equal(hidden(model, inputs), expected)
    assert len(twin._forward_pre_hooks) == 1 and len(twin.embeddings.position_embeddings._forward_hooks) == 1


def test_an_admitted_model_can_be_pickled_into_another_process(subject, tmp_path):
    model, inputs, expected = subject
    plan = sg.Plan(sg.RemovePositions(), sg.HideSelf())
    with sg.operate(model, plan):
        operated = hidden(model, inputs)
    (tmp_path / "model").write_bytes(pickle.dumps((model, inputs, expected, operated, plan)))
    code = f"""
import pickle, torch
model, inputs, expected, operated, plan = pickle.load(open({str(tmp_path / "model")!r}, "rb"))
with torch.no_grad():
    assert torch.equal(model(**inputs).last_hidden_state, expected)
    import surgery
    with surgery.operate(model, plan):
        assert torch.equal(model(**inputs).last_hidden_state, operated)
    assert torch.equal(model(**inputs).last_hidden_state, expected)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_admitted_model_is_saved_like_any_other(subject, tmp_path):
    model, inputs, expected = subject
    model.save_pretrained(tmp_path)
    assert "surgery" not in (tmp_path / "config.json").read_text()
    assert torch.equal(hidden(BertModel.from_pretrained(tmp_path).eval(), inputs), expected)


def test_a_forgotten_model_is_not_kept_alive():
    import gc
    import weakref

    model = bench.bert()
    with sg.operate(model, sg.HideSelf()):
        hidden(model, bench.batch())
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_training_under_surgery(implementation):
    model, inputs = (
        bench.bert(implementation, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1),
        bench.batch(),
    )
    sg.admit(model)
    model.train()
    plan = sg.Plan(
        sg.Temperature(2.0).at("H1"), sg.WeightDropout(0.2, 3).at("L1"), sg.LocalMask(3).at("L2.H0")
    )
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    losses = []
    with bench.seeded(), sg.operate(model, plan):
        for _ in range(25):
            optimizer.zero_grad()
            loss = model(**inputs).last_hidden_state[:, :7, :5].square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert model.training and losses[-1] < 0.7 * losses[0]
    for layer in model.encoder.layer:
        assert layer.attention.self.query.weight.grad.abs().sum() > 0


def test_layers_that_backward_runs_again_are_refused():
    model, inputs = bench.bert().train(), bench.batch()
    sg.admit(model)
    for module in model.modules():
        if hasattr(module, "gradient_checkpointing"):
            module.gradient_checkpointing = True
    with sg.operate(model, sg.CausalMask()):
        bench.refuses(lambda: model(**inputs), "checkpointing", "disable", error=sg.UnsupportedError)
        hidden(model, inputs)  # without gradients nothing is run again


def test_admitting_a_model_in_training_leaves_its_mode():
    model = bench.bert().train()
    model.encoder.layer[1].eval()
    modes = [module.training for module in model.modules()]
    state = torch.get_rng_state()
    sg.admit(model)
    assert [module.training for module in model.modules()] == modes and torch.equal(
        torch.get_rng_state(), state
    )


def test_gradients_of_the_empty_plan_are_the_stock_ones():
    gradients = []
    for operated in (False, True):
        model, inputs = bench.bert(), bench.batch()
        if operated:
            with sg.operate(model, sg.Plan()):
                model(**inputs).last_hidden_state.square().sum().backward()
        else:
            model(**inputs).last_hidden_state.square().sum().backward()
        gradients.append([p.grad for p in model.parameters() if p.grad is not None])
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


# --- families -----------------------------------------------------------------------------------------------

FAMILIES = {
    "Bert": BERTISH,
    "Roberta": {**BERTISH, "pad_token_id": 1},
    "XLMRoberta": {**BERTISH, "pad_token_id": 1},
    "Camembert": {**BERTISH, "pad_token_id": 1},
    "Electra": {**BERTISH, "embedding_size": 13},
    "Ernie": BERTISH,
    "Data2VecText": {**BERTISH, "pad_token_id": 1},
    "Albert": {**BERTISH, "embedding_size": 13},
    "DistilBert": {"dim": 35, "n_layers": 3, "n_heads": 5, "hidden_dim": 31, "max_position_embeddings": 23},
    "GPT2": {
        "n_embd": 35,
        "n_layer": 3,
        "n_head": 5,
        "n_inner": 31,
        "n_positions": 23,
        "bos_token_id": 2,
        "eos_token_id": 2,
    },
}


def relative(family: str, implementation: str = "sdpa"):
    config = getattr(transformers, f"{family}Config")(
        **{**SIZES, **FAMILIES[family]}, attn_implementation=implementation
    )
    with bench.seeded():
        return getattr(transformers, f"{family}Model")(config).eval()


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_is_reached_layer_by_layer(family, implementation):
    model, inputs = relative(family, implementation), bench.batch()
    inputs["input_ids"][1, bench.SHORT :] = model.config.pad_token_id

    def states(*parts):
        with torch.no_grad(), sg.operate(model, sg.Plan(*parts)):
            return model(**inputs, output_hidden_states=True).hidden_states

    with torch.no_grad():
        expected = model(**inputs, output_hidden_states=True).hidden_states
    anatomy = sg.admit(model)
    assert (anatomy.layers, anatomy.heads, anatomy.d_k) == (3, 5, 7) and anatomy.places
    assert all(torch.equal(a, b) for a, b in zip(states(), expected, strict=True))
    for layer in range(3):  # ALBERT calls one module three times
        changed = [
            not torch.equal(a, b)
            for a, b in zip(states(sg.AblateHead().at(f"L{layer}.H3")), expected, strict=True)
        ]
        assert changed == [False] * (layer + 1) + [True] * (3 - layer)
    for move in (sg.RemovePositions(), sg.SamePosition(), sg.ReversePositions()):
        assert not torch.equal(states(move)[0], expected[0])
    assert set(sg.support(model).values()) == {"yes"}


@pytest.mark.parametrize("family", ["Bert", "Roberta", "DistilBert", "Electra"])
def test_without_positions_a_family_cannot_tell_the_order(family):
    model = relative(family)
    inputs = bench.batch(padded=False)
    order = torch.tensor([4, 0, 9, 10, 2, 7, 1, 3, 8, 6, 5])
    mixed = {**inputs, "input_ids": inputs["input_ids"][:, order]}
    with torch.no_grad(), sg.operate(model, sg.RemovePositions()):
        straight, permuted = (model(**x).last_hidden_state for x in (inputs, mixed))
    assert (straight[:, order] - permuted).abs().max() < 1e-5


@pytest.mark.parametrize("family", ["MPNet", "DebertaV2"])
def test_models_that_surgery_cannot_reach_are_refused_with_a_list_of_those_it_can(family):
    model = getattr(transformers, f"{family}Model")(
        getattr(transformers, f"{family}Config")(**{**SIZES, **BERTISH})
    ).eval()
    before = model.config._attn_implementation
    for ask in (sg.admit, sg.support, lambda m: sg.operate(m, sg.Plan()).__enter__()):
        bench.refuses(
            lambda ask=ask: ask(model),
            f"{family}Model",
            "BERT",
            "RoBERTa",
            "GPT-2",
            error=sg.UnsupportedError,
        )
    assert model.config._attn_implementation == before and not model._forward_pre_hooks


def test_layers_that_differ_are_refused_and_the_model_is_left_as_it_was():
    model, inputs = bench.bert(), bench.batch()
    model.encoder.layer[1].attention.self.scaling = 0.1
    expected = hidden(model, inputs)
    bench.refuses(lambda: sg.admit(model), "differ", "scale", error=sg.UnsupportedError)
    assert model.config._attn_implementation == "sdpa" and not model._forward_pre_hooks
    assert torch.equal(hidden(model, inputs), expected)


def test_support_names_what_a_model_lacks_and_what_instead():
    without = sg.support(bench.encoder("none"))
    assert without.keys() == sg.REGISTRY.keys()
    for name, said in without.items():
        moves = sg.REGISTRY[name].stage == "positions"
        assert (said == "yes") != moves and (not moves or "mask" in said)
    reasons = sg.refusals(bench.encoder("none"))
    assert reasons["remove_positions"].zh and reasons["temperature"] is None
    assert set(sg.support(bench.encoder("rotary")).values()) == {"yes"}


# --- decoding with a cache ----------------------------------------------------------------------------------


def cache_name(model) -> str:
    """Versions of transformers differ in what they call it."""
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


@pytest.mark.parametrize(
    "operation",
    [
        sg.Temperature(3.0),
        sg.LocalMask(1),
        sg.HideSelf(),
        sg.BlockTokens([3]),
        sg.ShiftPositions(5),
        sg.RemovePositions(),
    ],
)
def test_a_text_read_in_two_parts_is_operated_as_one(operation):
    model, ids = relative("GPT2"), bench.batch(padded=False)["input_ids"]
    with torch.no_grad(), sg.operate(model, operation):
        whole = model(ids).last_hidden_state[:, 9:]
        cache = model(ids[:, :9], use_cache=True).past_key_values
        rest = {cache_name(model): cache, "attention_mask": torch.ones_like(ids)}
        parts = model(ids[:, 9:], **rest).last_hidden_state
    assert (whole - parts).abs().max() < 1e-5


@pytest.mark.parametrize("operation", [sg.SamePosition(), sg.ReversePositions(), sg.ShufflePositions()])
def test_what_needs_the_whole_text_refuses_a_part(operation):
    model, ids = relative("GPT2"), bench.batch(padded=False)["input_ids"]
    with torch.no_grad(), sg.operate(model, operation):
        cache = model(ids[:, :9], use_cache=True).past_key_values
        bench.refuses(
            lambda: model(ids[:, 9:], **{cache_name(model): cache}),
            "use_cache=False",
            error=sg.UnsupportedError,
        )


def test_a_mask_of_ones_own_is_kept(subject):
    model, inputs, _ = subject
    keep = torch.ones(2, 1, 11, 11, dtype=torch.bool).tril()
    with sg.operate(model, sg.Plan(sg.CausalMask(), sg.AblateHead().at("L0.H1"))):
        expected = hidden(model, {**inputs, "attention_mask": torch.ones(2, 11)})
    for shape in (keep, keep.expand(2, 5, 11, 11)):
        with sg.operate(model, sg.AblateHead().at("L0.H1")):
            found = hidden(model, {**inputs, "attention_mask": shape})
        assert (found - expected).abs().max() < 1e-5


# --- a device -----------------------------------------------------------------------------------------------


def with_positions(model, kind: torch.dtype):
    ids = torch.tensor([[2, 5, 7, 6, 3]])
    with torch.no_grad(), sg.operate(model, sg.ReversePositions()):
        return model(ids, position_ids=torch.arange(5, dtype=kind)[None])[0]


def test_position_ids_may_be_short_integers(subject):
    model = subject[0]
    assert torch.equal(with_positions(model, torch.int32), with_positions(model, torch.int64))


def test_position_ids_that_are_not_whole_numbers_are_refused():
    config = models.EncoderConfig(vocab_size=20, positions="rotary")
    model = models.EncoderForMaskedLM(config).eval()
    with pytest.raises(sg.UnsupportedError, match="whole numbers"):
        with_positions(model, torch.float32)


def test_a_model_that_leaves_the_scale_to_its_attention_is_examined():
    module = torch.nn.Linear(8, 8)
    query, key, value = torch.randn(3, 1, 2, 5, 8, generator=torch.Generator().manual_seed(0))
    stock = torch.nn.functional.scaled_dot_product_attention(query, key, value).transpose(1, 2)
    probe = Probe()
    probe.attention(module, query, key, value, None, None, None, {"is_causal": False}, stock)
    assert probe.calls[0].scale == pytest.approx(8**-0.5)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_minilm_on_cuda_agrees_with_the_cpu(minilm):
    there = models.load("minilm", device="cuda")
    texts = ["The dog bit the man", "A cat"]
    for plan in (
        sg.Plan(),
        *PLANS,
        sg.Plan(sg.ReversePositions(), sg.LocalMask(2), sg.AblateHead().at("H1")),
    ):
        for near, far in zip(sg.compare(minilm, texts, plan), sg.compare(there, texts, plan), strict=True):
            assert far.baseline.weights.device.type == "cpu"
            for run in ("baseline", "operated"):
                a, b = getattr(near, run), getattr(far, run)
                assert (a.weights - b.weights).abs().max() < 1e-4 and (a.hidden - b.hidden).abs().max() < 1e-3
            assert (near.baseline.embedding - far.baseline.embedding).abs().max() < 1e-4


def test_different_dropouts_of_one_seed_drop_different_entries(minilm):
    """What KeyDropout has forbidden already, WeightDropout of the same seed must not merely drop again."""
    text = "the dog bit the man because it was afraid"
    share = {}
    for name, parts in (
        ("keys", [sg.KeyDropout(0.3, 5)]),
        ("both", [sg.KeyDropout(0.3, 5), sg.WeightDropout(0.3, 5)]),
    ):
        weights = sg.compare(minilm, text, sg.Plan(*parts)).operated.weights
        share[name] = float((weights == 0).float().mean())
    assert share["both"] == pytest.approx(1 - 0.7 * 0.7, abs=0.03)
    assert share["keys"] == pytest.approx(0.3, abs=0.03)
