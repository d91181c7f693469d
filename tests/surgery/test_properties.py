"""Whatever plan meets whatever text: an error in words, or a comparison that keeps every promise."""

import json
import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import surgery as sg
from surgery.operation import REGISTRY
from surgery.reading import read

LAYERS, HEADS = 2, 4  # of the encoder
PATIENCE = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def values(about):
    """Every value that a parameter takes."""
    if about.kind == "positions":
        return st.lists(st.integers(0, 12), max_size=4)
    if about.kind == "picture":
        return st.integers(1, 8).flatmap(
            lambda n: st.lists(st.text("01", min_size=n, max_size=n), min_size=n, max_size=n)
        )
    if about.kind == "int":
        return st.integers(max(int(about.low), -(2**31)), min(int(about.high), 2**31))
    low, high = (None if math.isinf(end) else end for end in (about.low, about.high))
    return st.floats(low, high, allow_nan=False, allow_infinity=False)


def operations():
    made = [
        st.builds(kind, **{n: values(a) for n, a in kind.parameters().items()}) for kind in REGISTRY.values()
    ]
    return st.one_of(made)


numbers = st.sets(st.integers(0, 4), min_size=1, max_size=3)
places = st.one_of(
    st.just("L*"),
    st.just("none"),
    st.builds(lambda ls, hs: str(sg.Selection.of(layers=ls, heads=hs)), numbers, numbers),
)
plans = st.lists(st.builds(lambda op, at: op.at(at), operations(), places), max_size=4).map(
    lambda s: sg.Plan(*s)
)
texts = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(["the", "dog", "[MASK]", "[SEP]", "saw", "<b>", "狗", "\u202e", "\x00"]), max_size=40).map(" ".join),
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(plans)
def test_every_spelling_of_every_plan_leads_back(plan):
    assert sg.Plan.from_json(plan.to_json()) == plan == sg.Plan.from_link(plan.to_link())
    assert eval(plan.to_python(), {"sg": sg}) == plan
    assert sg.Plan.from_words(plan.to_words()) == plan
    assert plan.describe("en") and plan.describe("zh")


@settings(max_examples=200, deadline=None)
@given(texts, st.booleans())
def test_every_text_is_read_or_refused_in_words(encoder, text, literal):
    try:
        reading = read(encoder, text, literal=literal)
    except sg.SurgeryError as error:
        assert str(error) and error.say("zh")
        return
    assert len(reading.tokens) == len(reading.ids) == len(reading.kinds) <= encoder.max_tokens
    assert all(0 <= i < encoder.vocab_size for i in reading.ids)


def checksum(model):
    return [parameter.sum().item() for parameter in model.parameters()]


@PATIENCE
@given(texts, plans)
def test_every_plan_on_every_text_is_refused_in_words_or_measured(encoder, text, plan):
    before = checksum(encoder.model)
    try:
        alone = sg.compare(encoder, text)
        c = sg.compare(encoder, text, plan)
    except sg.SurgeryError as error:
        assert str(error) and error.say("zh")
        return
    finally:
        assert checksum(encoder.model) == before
    assert torch.equal(c.baseline.weights, alone.baseline.weights)
    assert torch.equal(c.baseline.hidden, alone.baseline.hidden)
    for run in (c.baseline, c.operated):
        assert (run.weights >= 0).all() and torch.isfinite(run.hidden).all()
        assert (run.weights[run.no_key] == 0).all()
    if not any(
        step.operation.stage in ("weights", "output") for step in plan
    ):  # which may leave rows of another sum
        sums = c.operated.weights.sum(-1)[~c.operated.no_key]
        assert sums.tolist() == pytest.approx([1.0] * len(sums), abs=1e-4)
    assert json.loads(json.dumps(c.to_dict(), allow_nan=False))["plan"] == plan.to_dict()
    again = sg.compare(encoder, text, plan)
    assert torch.equal(again.operated.hidden, c.operated.hidden)


junk = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6), st.sampled_from(sorted(REGISTRY))),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["version", "operations", "operation", "at", "t", "p", "rows", "x"]), inner),
    max_leaves=15,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(junk)
def test_a_plan_of_junk_is_refused_in_words(data):
    for given_data in (data, {"version": 1, "operations": data}, {"version": 1, "operations": [data]}):
        try:
            plan = sg.Plan.from_dict(given_data)
        except sg.SurgeryError as error:
            assert 0 < len(str(error)) < 1500
            continue
        assert sg.Plan.from_dict(plan.to_dict()) == plan


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(REGISTRY)), st.data())
def test_a_parameter_of_junk_is_refused_in_words(name, data):
    parameters = REGISTRY[name].parameters()
    for parameter in parameters:
        value = data.draw(junk)
        try:
            made = REGISTRY[name](**{parameter: value})
        except sg.SurgeryError as error:
            assert 0 < len(str(error)) < 500
            continue
        assert REGISTRY[name](**made.values) == made


def test_long_values_are_cut_where_they_are_said():
    for make in (
        lambda: sg.CustomMask(["1" * 300] * 299),
        lambda: sg.Temperature("9" * 10_000),
        lambda: sg.Selection.parse(["L0"] * 10_000),
        lambda: sg.Plan.from_dict({"version": 10**1000, "operations": []}),
        lambda: sg.Plan.from_dict({"version": 1, "operations": [{"operation": "x" * 10**6}]}),
        lambda: sg.Plan.from_dict({"version": 1, "operations": [{"operation": "hide_self", "y" * 10**5: 1}]}),
    ):
        with pytest.raises(sg.SurgeryError) as caught:
            make()
        assert len(str(caught.value)) < 1000 and len(caught.value.say("zh")) < 1000
