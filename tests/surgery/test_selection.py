import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surgery as sg
from tests.surgery import bench

LAYERS, HEADS = 5, 7


def cells(selection):
    return sorted(selection.cells(LAYERS, HEADS))


@pytest.mark.parametrize(
    "text, expected",
    [
        ("L0", [(0, h) for h in range(HEADS)]),
        ("L4.H6", [(4, 6)]),
        ("L1-2.H0,3", [(1, 0), (1, 3), (2, 0), (2, 3)]),
        ("H2", [(layer, 2) for layer in range(LAYERS)]),
        ("L*", [(layer, h) for layer in range(LAYERS) for h in range(HEADS)]),
        ("L*.H*", [(layer, h) for layer in range(LAYERS) for h in range(HEADS)]),
        ("L3.H*", [(3, h) for h in range(HEADS)]),
        ("l0 . h1 , 5", [(0, 1), (0, 5)]),
        ("L0.H1+L2.H3", [(0, 1), (2, 3)]),
        ("L0.H1+L0.H1,2", [(0, 1), (0, 2)]),
        ("L2,0,2.H0", [(0, 0), (2, 0)]),
        ("none", []),
    ],
)
def test_text_names_cells(text, expected):
    assert cells(sg.Selection.parse(text)) == expected


@pytest.mark.parametrize(
    "layers, heads, text",
    [
        ("0-3", [1, 5], "L0-3.H1,5"),
        (None, 2, "H2"),
        (0, None, "L0"),
        ([3, 1, 1], None, "L1,3"),
        (range(3), "*", "L0-2"),
        ({2, 4}, (0,), "L2,4.H0"),
        (None, None, "L*"),
        ([], None, "none"),
        ("1", [], "none"),
    ],
)
def test_layers_and_heads_make_the_same_selection_as_their_text(layers, heads, text):
    step = sg.HideSelf().at(layers=layers, heads=heads)
    assert str(step.selection) == text and step == sg.HideSelf().at(text)


def test_an_empty_selection_is_not_all():
    assert cells(sg.Selection.of(layers=[])) == [] != cells(sg.Selection.of())
    assert sg.Selection.of().everywhere and not sg.Selection.of(layers=[]).everywhere


@pytest.mark.parametrize(
    "text",
    ["", " ", "0", "L", "H", "L-1", "L1-", "L-", "L3-1", "L1.5", "L1.H", "L1H2", "L0+", "+L0", "L٣", "L²", "L1e3", "L0x10",
     "all", "L0.H1.H2", "L4096", "L99999999999999999999", "L" + "9" * 5000, "H0-" + "9" * 5000, "L0;H1", "L**", "H2.L0", None, 3, ["L0"], b"L0"],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(text):
    bench.refuses(lambda: sg.Selection.parse(text), "cannot be read", "L0-3.H1,5", error=sg.SelectionError)


@pytest.mark.parametrize("value", [-1, "-1", True, 1.5, "a", [0, -1], [None], "0-", "1,,2", 4096, [[0]], ""])
def test_numbers_that_are_no_layers_are_refused(value):
    bench.refuses(lambda: sg.HideSelf().at(layers=value), "cannot be read", error=sg.SelectionError)
    bench.refuses(lambda: sg.HideSelf().at(heads=value), "cannot be read", error=sg.SelectionError)


def test_text_and_numbers_together_are_refused():
    bench.refuses(lambda: sg.HideSelf().at("L0", heads=[1]), "cannot be read", error=sg.SelectionError)


@pytest.mark.parametrize(
    "text, says", [("L5", ("Layer 5", "0-4")), ("L0-9", ("Layer 5", "0-4")), ("H7", ("Head 7", "0-6")), ("L0.H1+L0.H12", ("Head 12", "0-6"))]
)  # fmt: skip
def test_layers_and_heads_that_a_model_lacks_are_named_with_what_it_has(text, says):
    meet = lambda: sg.Selection.parse(text).cells(LAYERS, HEADS, "minilm")  # noqa: E731
    bench.refuses(meet, "minilm", *says, error=sg.SelectionError)


def test_a_few_letters_cannot_take_our_memory_or_time():
    start = time.perf_counter()
    for text in (
        "+".join(["L0-4095.H0-4095"] * 1200),
        "L" + ",".join(["0-4095"] * 2800),
        "L0+" * 9000 + "L0",
    ):
        bench.refuses(lambda text=text: sg.Selection.parse(text), "cannot be read", error=sg.SelectionError)
    assert time.perf_counter() - start < 1


numbers = st.none() | st.lists(st.integers(0, 4095), max_size=9)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(numbers, numbers), max_size=5))
def test_text_and_back_is_the_identity(boxes):
    parts = [sg.Selection.of(layers=layers, heads=heads) for layers, heads in boxes]
    selection = sg.Selection(tuple(box for part in parts for box in part.boxes))
    assert sg.Selection.parse(str(selection)) == selection
    assert sg.HideSelf().at(selection).selection is selection


@settings(deadline=None, max_examples=60)
@given(st.sets(st.tuples(st.integers(0, LAYERS - 1), st.integers(0, HEADS - 1))))
def test_cells_and_back_is_the_identity(chosen):
    for selection in (sg.Selection.from_cells(chosen), sg.Selection.from_cells(chosen, LAYERS, HEADS)):
        assert selection.cells(LAYERS, HEADS) == chosen
        assert sg.Selection.parse(str(selection)).cells(LAYERS, HEADS) == chosen


def test_every_cell_of_a_model_is_spelt_as_all():
    every = [(layer, head) for layer in range(LAYERS) for head in range(HEADS)]
    assert str(sg.Selection.from_cells(every, LAYERS, HEADS)) == "L*"
    assert str(sg.Selection.from_cells(every)) == "L0-4.H0-6"


@settings(deadline=None, max_examples=150)
@given(st.text(alphabet="LH0123456789,-+.*nNoe \n٣²", max_size=12))
def test_any_text_is_read_or_refused(text):
    try:
        selection = sg.Selection.parse(text)
    except sg.SelectionError:
        return
    assert sg.Selection.parse(str(selection)) == selection
