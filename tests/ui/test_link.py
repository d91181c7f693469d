"""Links and settings from outside: every value is checked, and what is wrong is said."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bilingual import SurgeryError
from surgery.operation import REGISTRY
from surgery.plan import pack
from ui import steps
from ui.heatmap import DEFAULT_VIEW
from ui.link import VIEW, LinkError, Setting, known_view

GOOD = {"version": 1, "text": "the dog"}
STEP = {"operation": "temperature", "t": 2.0, "at": "L*", "on": True}
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8"), max_size=8),
    st.sampled_from(["L*", "temperature", "shift_positions", "causal_mask", "on", "at", "unit", "shown"]),
)
JUNK = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["operation", "t", "at", "on", "seed", "p", "layer", "x"]), inner),
    ),
    max_leaves=12,
)
FIELDS = st.sampled_from(["text", "other", "model", "steps", "selected", "pad_to", "literal", "view"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": [{"operation": "temperature", "on": True}]},
        {"steps": [{**STEP, "t": "hot"}]},
        {"steps": [{**STEP, "t": 0}]},
        {"steps": [{**STEP, "at": "somewhere"}]},
        {"steps": [{**STEP, "at": None}]},
        {"steps": [{**STEP, "operation": "temprature"}]},
        {"steps": [{**STEP, "operation": ["temperature"]}]},
        {"steps": [{**STEP, "on": 1}]},
        {"steps": [{**STEP, "extra": 1}]},
        {"steps": [STEP] * 65},
        {"steps": [3]},
        {"view": {"layer": "x", "head": [1]}},
        {"view": {"layer": True}},
        {"view": {"layer": -1}},
        {"view": {"scale": "huge"}},
        {"view": {"nonsense": 1}},
        {"view": []},
        {"text": 7},
        {"pad_to": "8"},
        {"selected": None},
        {"version": 2},
    ],
)
def test_a_malformed_link_is_refused_in_both_languages(wrong):
    with pytest.raises(LinkError, match="cannot be read") as caught:
        Setting.from_token(pack(GOOD | wrong))
    assert re.search("[一-鿿]", caught.value.say("zh"))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(FIELDS, JUNK))
def test_a_link_of_junk_is_a_setting_that_can_be_shown_or_is_refused(junk):
    try:
        setting = Setting.from_token(pack(GOOD | junk))
    except LinkError:
        return
    assert steps.canonical(setting.steps) == setting.steps
    assert known_view(setting.view) == setting.view
    assert Setting.from_token(setting.to_token()) == setting


@settings(max_examples=200, deadline=None)
@given(JUNK)
def test_steps_of_junk_are_refused_in_words(junk):
    given_steps = junk if isinstance(junk, list) else [junk]
    try:
        setting = Setting(steps=[{**s, "on": True} if isinstance(s, dict) else s for s in given_steps])
        made = steps.canonical(setting.steps)
    except SurgeryError:
        return
    assert all(step["operation"] in REGISTRY for step in made)


def test_a_switched_off_step_and_a_whole_view_survive():
    view = {"layer": 3, "head": 1, "average": True, "scale": "unit", "specials": "hidden", "pinned": 2}
    setting = Setting("t", steps=[{**STEP, "on": False}], view={**view, "overview": "operated"})
    assert Setting.from_token(setting.to_token()) == setting
    assert set(VIEW) == set(DEFAULT_VIEW)
    assert known_view(DEFAULT_VIEW) == DEFAULT_VIEW
