import base64
import json
import time
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surgery as sg
from tests.surgery import bench

EXAMPLE = sg.Plan(sg.DropScaling().at("L0-3.H1,5"), sg.Temperature(0.3).at("H2"), sg.KeyDropout(0.25, 9))


def packed(text: str) -> str:
    return base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")


def test_a_plan_is_a_frozen_list_of_steps():
    assert len(EXAMPLE) == 3 and [step.operation.name for step in EXAMPLE] == [
        "drop_scaling",
        "temperature",
        "key_dropout",
    ]
    assert sg.Plan(EXAMPLE, sg.HideSelf()) == EXAMPLE + sg.HideSelf() != EXAMPLE
    assert {EXAMPLE: 1}[sg.Plan(*EXAMPLE)] == 1 and sg.Plan() != EXAMPLE and not len(sg.Plan())
    with pytest.raises(AttributeError):
        EXAMPLE.steps = ()
    bench.refuses(lambda: sg.Plan("drop_scaling"), "not of str", error=sg.PlanError)
    bench.refuses(lambda: sg.Plan([sg.HideSelf()]), "not of list", error=sg.PlanError)
    bench.refuses(lambda: sg.Plan(sg.HideSelf), "not of type", error=sg.PlanError)
    bench.refuses(lambda: sg.Plan(*[sg.HideSelf()] * 65), "65", "64", error=sg.PlanError)


def test_order_matters_and_is_kept():
    a, b = sg.Plan(sg.HideSelf(), sg.DropScaling()), sg.Plan(sg.DropScaling(), sg.HideSelf())
    assert a != b
    for plan in (a, b):
        assert sg.Plan.from_json(plan.to_json()) == plan


def test_its_json_is_readable_and_strict():
    assert json.loads(EXAMPLE.to_json()) == {
        "version": 1,
        "operations": [
            {"operation": "drop_scaling", "at": "L0-3.H1,5"},
            {"operation": "temperature", "t": 0.3, "at": "H2"},
            {"operation": "key_dropout", "p": 0.25, "seed": 9, "at": "L*"},
        ],
    }
    assert sg.Plan.from_json('{"version": 1, "operations": [{"operation": "hide_self"}]}') == sg.Plan(
        sg.HideSelf()
    )


def test_its_code_is_python():
    short = sg.Plan(sg.DropScaling().at("L0-3.H1,5"), sg.KeyDropout(0.25, 9))
    assert short.to_python() == 'sg.Plan(sg.DropScaling().at("L0-3.H1,5"), sg.KeyDropout(p=0.25, seed=9))'
    long = sg.Plan(*[sg.Temperature(0.3).at("L0-3.H1,5")] * 4)
    assert eval(long.to_python(), {"sg": sg}) == long
    assert max(map(len, long.to_python().splitlines())) < 100
    assert eval(sg.Plan().to_python(), {"sg": sg}) == sg.Plan()


@pytest.mark.parametrize("url", ["{}", "http://127.0.0.1:7860/?s={}", "https://x.org/a/?lang=zh&plan={}#top"])
def test_its_link_is_found_in_a_url(url):
    assert sg.Plan.from_link(url.format(EXAMPLE.to_link())) == EXAMPLE


@pytest.mark.parametrize(
    "words, plan",
    [
        (
            ["drop_scaling@L0-3.H1,5", "temperature=2"],
            sg.Plan(sg.DropScaling().at("L0-3.H1,5"), sg.Temperature(2)),
        ),
        (["key_dropout=0.2,3"], sg.Plan(sg.KeyDropout(0.2, 3))),
        (["key_dropout=seed=3,p=0.2@H1"], sg.Plan(sg.KeyDropout(0.2, 3).at("H1"))),
        (["key_dropout=seed=3,0.2"], sg.Plan(sg.KeyDropout(0.2, 3))),
        (["block_tokens=0:5"], sg.Plan(sg.BlockTokens([0, 5]))),
        (["custom_mask=10:11"], sg.Plan(sg.CustomMask(["10", "11"]))),
        (["block_tokens"], sg.Plan(sg.BlockTokens())),
        ([], sg.Plan()),
    ],
)
def test_shell_words_make_plans(words, plan):
    assert sg.Plan.from_words(words) == plan == sg.Plan.from_words(plan.to_words())


@pytest.mark.parametrize(
    "word, says",
    [
        ("temprature=2", "temperature"),
        ("temperature=x", "'x'"),
        ("temperature=2,3", "no parameter '3'"),
        ("temperature=t=1,t=2", "t is given twice"),
        ("temperature=nan", "nan"),
        ("temperature=heat=2", "heat"),
        ("local_mask=1.5", "'1.5'"),
        ("block_tokens=0:x", "0:x"),
        ("hide_self@", "cannot be read"),
        ("hide_self@L0@L1", "cannot be read"),
        ("", "no operation"),
    ],
)
def test_shell_words_that_mean_nothing_are_refused(word, says):
    bench.refuses(lambda: sg.Plan.from_words([word]), says)


@pytest.mark.parametrize(
    "name, near",
    [("temprature", "temperature"), ("dropscaling", "drop_scaling"), ("casual_mask", "causal_mask")],
)
def test_an_unknown_operation_is_refused_with_the_nearest_name(name, near):
    data = {"version": 1, "operations": [{"operation": name, "at": "L*"}]}
    bench.refuses(lambda: sg.Plan.from_dict(data), name, f"Did you mean {near}?", error=sg.OperationError)


@pytest.mark.parametrize("version", [2, 99])
def test_a_plan_from_a_newer_version_is_refused(version):
    data = {"version": version, "operations": []}
    for read in (lambda: sg.Plan.from_dict(data), lambda: sg.Plan.from_link(packed(json.dumps(data)))):
        bench.refuses(read, str(version), "up to 1", "update", error=sg.PlanError)


JUNK = [
    "", "x", "null", "[]", "{}", "3", '"a"', '{"version": 1}', '{"operations": []}', '{"version": "1", "operations": []}',
    '{"version": true, "operations": []}', '{"version": 0, "operations": []}', '{"version": 1, "operations": {}}',
    '{"version": 1, "operations": [3]}', '{"version": 1, "operations": [{}]}', '{"version": 1.5, "operations": []}',
    '{"version": 1, "operations": [{"operation": 3}]}', "[" * 100_000, "{" * 5, "1" * 5000, "NaN",
    '{"version": 1, "operations": [{"operation": ["hide_self"]}]}',
]  # fmt: skip


@pytest.mark.parametrize("text", JUNK, ids=range(len(JUNK)))
def test_junk_is_refused(text):
    for read in (sg.Plan.from_json, lambda text: sg.Plan.from_link(packed(text))):
        bench.refuses(lambda read=read: read(text), "This is not a plan", error=sg.PlanError)


@pytest.mark.parametrize("value", [None, 3, b"\xff", ["x"], {"version": 1}])
def test_what_is_no_text_is_refused(value):
    bench.refuses(lambda: sg.Plan.from_json(value), "not a plan", error=sg.PlanError)
    bench.refuses(lambda: sg.Plan.from_link(value), "not a plan", error=sg.PlanError)


@pytest.mark.parametrize("where", [3, None, "L9-1", ["L0"]])
def test_a_selection_in_json_is_checked(where):
    data = {"version": 1, "operations": [{"operation": "hide_self", "at": where}]}
    bench.refuses(lambda: sg.Plan.from_dict(data), "cannot be read", error=sg.SelectionError)


@pytest.mark.parametrize("t", ["NaN", "Infinity", '"2"', "null", "1e999", "[2]"])
def test_a_parameter_in_json_is_checked(t):
    text = f'{{"version": 1, "operations": [{{"operation": "temperature", "t": {t}}}]}}'
    bench.refuses(lambda: sg.Plan.from_json(text), "0.0001 to 10000", error=sg.OperationError)


def test_a_small_link_cannot_unpack_to_gigabytes():
    bomb = base64.urlsafe_b64encode(zlib.compress(b" " * 200_000_000, 9)).decode()
    assert len(bomb) < 300_000
    start = time.perf_counter()
    bench.refuses(lambda: sg.Plan.from_link(bomb), "not a plan", error=sg.PlanError)
    bench.refuses(lambda: sg.Plan.from_link("A" * 2_000_000), "not a plan", error=sg.PlanError)
    bench.refuses(lambda: sg.Plan.from_json(" " * 2_000_000), "not a plan", error=sg.PlanError)
    whole = EXAMPLE.to_link()
    bench.refuses(lambda: sg.Plan.from_link(whole[: len(whole) // 2]), "not a plan", error=sg.PlanError)
    assert time.perf_counter() - start < 2


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=40))
def test_any_text_is_a_plan_or_refused(text):
    for read in (sg.Plan.from_json, sg.Plan.from_link, lambda t: sg.Plan.from_words([t])):
        try:
            plan = read(text)
        except sg.SurgeryError:
            continue
        assert sg.Plan.from_json(plan.to_json()) == plan


steps = st.one_of(
    st.builds(sg.Temperature, st.floats(1e-4, 1e4)),
    st.builds(sg.KeyDropout, st.floats(0, 1), st.integers(0, 2**31 - 1)),
    st.builds(sg.LocalMask, st.integers(0, 10**6)),
    st.builds(sg.ShiftPositions, st.integers(-(10**6), 10**6)),
    st.builds(sg.BlockTokens, st.lists(st.integers(0, 10**9), max_size=5)),
    st.integers(1, 5).flatmap(
        lambda n: st.builds(
            sg.CustomMask, st.lists(st.text("01", min_size=n, max_size=n), min_size=n, max_size=n)
        )
    ),
)


@settings(deadline=None, max_examples=100)
@given(st.lists(steps, max_size=5))
def test_every_spelling_of_any_values_leads_back(operations):
    plan = sg.Plan(*operations)
    assert sg.Plan.from_json(plan.to_json()) == plan == sg.Plan.from_link(plan.to_link())
    assert eval(plan.to_python(), {"sg": sg}) == plan == sg.Plan.from_words(plan.to_words())


def test_a_plan_is_described_in_both_languages():
    assert EXAMPLE.describe().startswith("Drop the 1/√d_k scaling on L0-3.H1,5; ")
    assert "作用于L0-3.H1,5" in EXAMPLE.describe("zh").replace(" ", "")
    assert sg.Plan().describe() == "no operation" and sg.Plan().describe("zh") == "没有手术"


def test_steps_can_be_left_out_or_muted():
    assert EXAMPLE.without(1) == sg.Plan(EXAMPLE.steps[0], EXAMPLE.steps[2])
    assert [str(step.selection) for step in EXAMPLE.muted(1)] == ["L0-3.H1,5", "none", "L*"]
    assert (
        EXAMPLE.stochastic
        and not EXAMPLE.without(2).stochastic
        and not sg.Plan(sg.KeyDropout(0.0)).stochastic
    )
