"""What no widget would send: to the endpoints, to the components, in links; each is refused in words."""

import math
import re
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bilingual import SurgeryError
from surgery.plan import Plan, PlanError, pack, unpack
from ui import app, steps
from ui.fields import StepFields
from ui.guard import Refused
from ui.headgrid import MOST_CELLS, HeadGrid
from ui.link import LinkError, Setting
from ui.pool import Pool
from ui.training import train

ODD = [
    math.nan,
    math.inf,
    -math.inf,
    1e308,
    -1e308,
    10**400,
    -1,
    0,
    True,
    None,
    "",
    "x",
    [],
    {},
    [[]],
    "9" * 400,
]
JUNK = st.recursive(
    st.one_of(
        st.sampled_from(ODD[:12]), st.text(max_size=5), st.sampled_from(["L0", "temperature", "custom_mask"])
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["version", "operations", "operation", "at", "t", "rows", "on", "layer"]), inner
        )
    ),
    max_leaves=10,
)
FIELDS = st.sampled_from(["text", "plan", "other", "pad_to", "literal", "lang", "model"])
GOOD = {"text": "the dog", "model": "encoder"}


@pytest.fixture(scope="module")
def pool():
    return Pool("encoder", device="cpu", public=True)


def refused(call):
    """The sentence with which something is refused."""
    with pytest.raises((Refused, SurgeryError)) as caught:
        call()
    said = str(getattr(caught.value, "message", caught.value))
    assert 0 < len(said) < 1500 and "went wrong" not in said
    return said


def operation(**values):
    return {"version": 1, "operations": [{"at": "L*", **values}]}


@pytest.mark.parametrize(
    "asked, says",
    [
        ({"plan": operation(operation="temperature", t=math.nan)}, "nan"),
        ({"plan": operation(operation="temperature", t=1e308)}, "1e\\+308"),
        ({"plan": operation(operation="temperature", t=10**400)}, "10000"),
        ({"plan": operation(operation="temperature", t=True)}, "True"),
        ({"plan": operation(operation="temperature", t=2, at="L-1")}, "cannot be read"),
        ({"plan": operation(operation="temperature", t=2, at="L0-999999999")}, "cannot be read"),
        ({"plan": operation(operation="temperature", t=2, at="L2")}, "layers are 0-1"),
        ({"plan": operation(operation="temperature", t=2, at={"L": 0})}, "cannot be read"),
        ({"plan": operation(operation="custom_mask", rows=["11", "11"])}, "2 × 2"),
        ({"plan": operation(operation="custom_mask", rows=["11", "1"])}, "square"),
        ({"plan": operation(operation="custom_mask", rows=[[1, math.nan], [1, 1]])}, "square"),
        ({"plan": operation(operation="custom_mask", rows=["1" * 1000] * 1000)}, "1000 × 1000"),
        ({"plan": operation(operation="shift_positions", offset=-(10**9))}, "offset"),
        ({"plan": operation(operation="block_tokens", positions=[-1])}, "positions"),
        ({"plan": operation(operation="unknown")}, "no operation called"),
        ({"plan": {"version": 2, "operations": []}}, "version 2"),
        ({"plan": {"version": math.nan, "operations": []}}, "not a plan"),
        ({"plan": operation(operation="drop_scaling") | {"operations": [{"operation": "drop_scaling"}] * 17}}, "16"),
        ({"text": "x" * 1_000_000}, "5000"),
        ({"text": "\ud800"}, "U\\+D800"),
        ({"other": "x" * 6000}, "5000"),
        ({"model": "../../etc"}, "This server offers"),
        ({"model": "x" * 101}, "100"),
        ({"pad_to": 10**400}, "128|64"),
        ({"pad_to": math.nan}, "pad_to"),
        ({"pad_to": -1}, "-1"),
    ],
    ids=range(26),
)  # fmt: skip
def test_what_no_widget_sends_is_refused_by_the_endpoint(pool, asked, says):
    assert re.search(says, refused(lambda: app._operate_api(pool)(**(GOOD | asked))))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(FIELDS, JUNK, min_size=1, max_size=3))
def test_operate_answers_or_refuses_whatever_it_is_given(pool, junk):
    try:
        found = app._operate_api(pool)(**(GOOD | junk))
    except Refused as error:
        assert 0 < len(error.message) < 1500 and "went wrong" not in error.message
        return
    assert found["tokens"] and found["plan"]["version"] == 1


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(JUNK, JUNK, JUNK)
def test_sweep_answers_or_refuses_whatever_it_is_given(pool, texts, plans, seeds):
    for given_ in (
        (texts, [Plan().to_dict()], 1),
        (["the dog"], plans, 1),
        (["the dog"], [Plan().to_dict()], seeds),
    ):
        try:
            found = app._sweep_api(pool)(given_[0], given_[1], "encoder", given_[2])
        except Refused as error:
            assert 0 < len(error.message) < 1500 and "went wrong" not in error.message
            continue
        assert all(row["label"] for row in found)


@pytest.mark.parametrize("seed", ODD)
@pytest.mark.parametrize("name", ["seed", "steps"])
def test_training_refuses_odd_numbers(name, seed):
    values = {"seed": 0, "steps": 1} | {name: seed}
    if name == "seed" and seed == 0 and seed is not False:
        return
    refused(lambda: next(train("agree", values["seed"], values["steps"], Plan())))


# --- components -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        {"layers": 100_000, "heads": 1, "cells": []},
        {"layers": 1, "heads": MOST_CELLS + 1, "cells": []},
        {"layers": 6, "heads": 12, "cells": [[0, 0]] * 100_000},
        {"layers": -1, "heads": 12, "cells": []},
        {"layers": math.nan, "heads": 12, "cells": []},
        {"layers": 1e308, "heads": 12, "cells": []},
        {"layers": "6", "heads": 12, "cells": []},
        {"layers": True, "heads": 12, "cells": []},
        {"layers": 6, "heads": 12, "cells": [[-1, 0]]},
        {"layers": 6, "heads": 12, "cells": [[6, 0]]},
        {"layers": 6, "heads": 12, "cells": [[0]]},
        {"layers": 6, "heads": 12, "cells": [[0, 0, 0]]},
        {"layers": 6, "heads": 12, "cells": [["0", 0]]},
        {"layers": 6, "heads": 12, "cells": [[0.5, 0]]},
        {"layers": 6, "heads": 12, "cells": 3},
        {"layers": 6},
        [1],
        "x",
        7,
    ],
)
def test_a_grid_that_is_none_is_refused_at_once(value):
    start = time.perf_counter()
    with pytest.raises(ValueError):
        HeadGrid().preprocess(value)
    assert time.perf_counter() - start < 0.5


@settings(max_examples=200, deadline=None)
@given(JUNK)
def test_fields_of_junk_are_read_as_texts_or_not_at_all(junk):
    for value in (junk, {"values": junk}, {"values": {"t": junk}, "step": junk, "operation": junk}):
        found = StepFields().preprocess(value)
        assert found is None or all(isinstance(text, str) for text in found["values"].values())


@settings(max_examples=100, deadline=None)
@given(st.lists(JUNK, max_size=3), st.integers(), st.text(max_size=8), st.integers())
def test_what_the_plan_panel_asks_for_never_breaks_the_steps(junk, selected, do, index):
    good = steps.from_plan(Plan())
    assert steps.act(good, 0, do, index) == (good, 0)
    try:
        steps.to_plan([{**step, "on": True} if isinstance(step, dict) else step for step in junk])
    except (SurgeryError, AttributeError) as error:
        assert isinstance(error, SurgeryError) or not all(isinstance(step, dict) for step in junk)


# --- links ------------------------------------------------------------------------------------------------


def nested(depth):
    value: list = []
    for _ in range(depth):
        value = [value]
    return value


def test_a_link_cannot_unpack_to_more_than_a_megabyte_nor_to_any_depth():
    import base64
    import zlib

    bomb = base64.urlsafe_b64encode(zlib.compress(b"[" * 50_000_000, 9)).decode()
    deep = base64.urlsafe_b64encode(zlib.compress(b"[" * 900_000, 9)).decode()
    for link in (bomb, deep, "A" * 2_000_000, pack({"version": 1, "text": "x", "steps": nested(200)})):
        start = time.perf_counter()
        with pytest.raises(LinkError):
            Setting.from_token(link)
        assert time.perf_counter() - start < 1
    with pytest.raises(PlanError):
        unpack(bomb)
