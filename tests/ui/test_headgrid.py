import json

import gradio as gr
import pytest

from tests.ui.conftest import DESKTOP, PHONE
from ui.headgrid import HeadGrid, grid_value, grid_words
from ui.texts import t

LAYERS, HEADS = 3, 5
START = [[0, 1], [2, 4]]


def test_a_value_is_sorted_complete_and_checked():
    assert grid_value(3, 5, [(2, 4), (0, 1), (0, 1)]) == {
        "layers": 3,
        "heads": 5,
        "cells": START,
        "all": False,
    }
    everything = grid_value(2, 3)
    assert everything["all"]
    assert len(everything["cells"]) == 6
    assert grid_value(2, 3, [])["cells"] == []
    with pytest.raises(ValueError, match="heads are 0-4"):
        grid_value(3, 5, [(0, 5)])
    with pytest.raises(ValueError, match="no cell"):
        grid_value(0, 5)


def test_what_the_browser_sends_is_checked():
    grid = HeadGrid(render=False)
    assert grid.preprocess(grid.example_payload()) == grid.example_value()
    assert grid.api_info()["type"] == "object"
    with pytest.raises(ValueError, match="does not exist"):
        grid.preprocess({"layers": 2, "heads": 2, "cells": [[7, 0]]})


def page(lang: str) -> gr.Blocks:
    with gr.Blocks() as blocks:
        grid = HeadGrid(grid_value(LAYERS, HEADS, START), words=grid_words(lang), elem_id="grid")
        heard = gr.Textbox("[]", elem_id="heard", show_label=False)
        calls = gr.State(0)

        def hear(value: dict, count: int):
            return json.dumps({"cells": value["cells"], "all": value["all"], "count": count + 1}), count + 1

        grid.input(hear, [grid, calls], [heard, calls])
        sizes = {"small": (2, 4), "wide": (24, 16), "bert": (12, 12), "minilm": (6, 12)}
        for name, size in sizes.items():
            gr.Button(name, elem_id=name).click(lambda s=size: grid_value(*s, [(1, 2)]), None, grid)
        heat = [[0, 0.1, None, 0.2, 0.4], [0] * 5, [0] * 5]
        gr.Button("heat", elem_id="heat").click(lambda: HeadGrid(heat=heat), None, grid)
        gr.Button("off", elem_id="off").click(lambda: HeadGrid(disabled="Whole model only."), None, grid)
        gr.Button("on", elem_id="on").click(lambda: HeadGrid(disabled=""), None, grid)
        gr.Button("zh", elem_id="zh").click(lambda: HeadGrid(words=grid_words("zh")), None, grid)
    return blocks


@pytest.fixture(scope="module")
def urls(serve):
    return {lang: serve(page(lang)) for lang in ("en", "zh")}


class Grid:
    """What a person can do with the grid and read from it."""

    def __init__(self, page):
        self.page = page
        self.root = page.locator("#grid .hg")
        page.wait_for_selector("#grid .hg[data-ready]")

    def node(self, row: int, column: int):
        return self.root.locator(f'[data-row="{row}"][data-column="{column}"]')

    def chosen(self) -> list[list[int]]:
        return self.root.locator(".hg-cell[aria-selected=true]").evaluate_all(
            "nodes => nodes.map((node) => [Number(node.dataset.row), Number(node.dataset.column)])"
        )

    def heard(self) -> dict:
        return json.loads(self.page.locator("#heard textarea").input_value())

    def after_hearing(self, act) -> dict:
        before = self.page.locator("#heard textarea").input_value()
        act()
        self.page.wait_for_function(
            "before => document.querySelector('#heard textarea').value !== before", arg=before
        )
        assert self.heard()["cells"] == self.chosen()
        return self.heard()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def size(self) -> tuple[int, int]:
        cells = self.root.locator(".hg-cell")
        last = cells.last
        return int(last.get_attribute("data-row")) + 1, int(last.get_attribute("data-column")) + 1


def opened(visit, urls, viewport=DESKTOP, scheme="light", lang="en") -> Grid:
    return Grid(visit(urls[lang], viewport=viewport, scheme=scheme).page)


@pytest.mark.browser
@pytest.mark.parametrize(
    ("viewport", "scheme", "lang"),
    [(DESKTOP, "light", "en"), (DESKTOP, "dark", "zh"), (PHONE, "dark", "en"), (PHONE, "light", "zh")],
)
def test_mouse_toggles_cells_rows_columns_and_everything(visit, urls, viewport, scheme, lang):
    grid = opened(visit, urls, viewport, scheme, lang)
    assert grid.chosen() == START
    grid.after_hearing(grid.node(1, 3).click)
    assert grid.chosen() == [[0, 1], [1, 3], [2, 4]]
    grid.after_hearing(grid.node(0, 1).click)
    assert grid.chosen() == [[1, 3], [2, 4]]
    grid.after_hearing(grid.node(1, -1).click)
    assert grid.chosen() == [[1, h] for h in range(HEADS)] + [[2, 4]]
    grid.after_hearing(grid.node(-1, 4).click)
    assert [0, 4] in grid.chosen()
    assert grid.after_hearing(grid.node(-1, -1).click)["all"]
    assert len(grid.chosen()) == LAYERS * HEADS
    grid.after_hearing(grid.node(-1, -1).click)
    assert grid.chosen() == []
    assert grid.root.locator(".hg-count").inner_text() == t("grid.none", lang)


@pytest.mark.browser
def test_dragging_paints_a_box_and_tells_once(visit, urls):
    grid = opened(visit, urls)

    def drag():
        grid.node(0, 2).hover()
        grid.page.mouse.down()
        grid.node(1, 3).hover()
        grid.node(2, 3).hover()
        grid.node(1, 4).hover()
        grid.page.mouse.up()

    heard = grid.after_hearing(drag)
    box = [[layer, head] for layer in (0, 1) for head in (2, 3, 4)]
    assert grid.chosen() == sorted([*START, *box])
    assert heard["count"] == 1


@pytest.mark.browser
def test_the_keyboard_does_it_all_with_one_tab_stop(visit, urls):
    grid = opened(visit, urls)
    assert grid.root.locator('[tabindex="0"]').count() == 1
    grid.root.locator('[tabindex="0"]').focus()
    grid.press("ArrowDown", "ArrowRight")
    grid.after_hearing(lambda: grid.press("Space"))
    assert grid.chosen() == [[0, 1], [1, 1], [2, 4]]
    grid.after_hearing(lambda: grid.press("Enter"))
    assert grid.chosen() == START
    grid.press("End")
    assert grid.page.evaluate("document.activeElement.ariaLabel") == "Layer 1, head 4"
    grid.page.keyboard.down("Shift")
    grid.after_hearing(lambda: grid.press("ArrowLeft"))
    assert grid.chosen() == [[0, 1], [1, 3], [1, 4], [2, 4]]
    grid.after_hearing(lambda: grid.press("ArrowUp"))
    grid.page.keyboard.up("Shift")
    assert grid.chosen() == [[0, 1], [0, 3], [0, 4], [1, 3], [1, 4], [2, 4]]
    grid.press("Home", "ArrowLeft")
    grid.after_hearing(lambda: grid.press("Space"))
    assert [head for layer, head in grid.chosen() if layer == 0] == list(range(HEADS))
    assert grid.after_hearing(lambda: grid.press("Control+a"))["all"]
    assert grid.root.locator('[tabindex="0"]').count() == 1


@pytest.mark.browser
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE])
@pytest.mark.parametrize(
    ("name", "size"), [("small", (2, 4)), ("wide", (24, 16)), ("bert", (12, 12)), ("minilm", (6, 12))]
)
def test_python_sets_size_and_cells_without_an_echo(visit, urls, viewport, name, size):
    grid = opened(visit, urls, viewport)
    grid.page.locator(f"#{name}").click()
    grid.page.wait_for_selector("#grid .hg[data-chosen='1']")
    assert grid.size() == size
    assert grid.chosen() == [[1, 2]]
    assert grid.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    box = grid.node(0, 0).bounding_box()
    assert min(box["width"], box["height"]) >= 16
    heard = grid.after_hearing(grid.node(0, 0).click)
    assert heard["count"] == 1, "what Python set was not sent back"


@pytest.mark.browser
def test_it_can_be_disabled_with_a_reason_and_enabled_again(visit, urls):
    grid = opened(visit, urls)
    grid.page.locator("#off").click()
    grid.page.wait_for_selector("#grid [aria-disabled=true]")
    assert grid.root.locator(".hg-reason").inner_text() == "Whole model only."
    grid.node(1, 1).click(force=True)
    grid.press("Space", "Shift+ArrowRight", "Control+a")
    assert grid.chosen() == START
    grid.page.locator("#on").click()
    grid.page.wait_for_selector("#grid [aria-disabled=false]")
    assert grid.after_hearing(grid.node(1, 1).click)["count"] == 1


@pytest.mark.browser
def test_heat_and_language_are_changed_each_without_the_other(visit, urls):
    grid = opened(visit, urls)
    grid.after_hearing(grid.node(1, 1).click)
    kept = grid.chosen()
    grid.page.locator("#heat").click()
    grid.page.wait_for_selector('#grid [aria-label*="change 0.4000"]')
    assert grid.node(0, 4).evaluate("node => node.style.getPropertyValue('--hg-heat')") == "1.000"
    grid.page.locator("#zh").click()
    label = t("grid.cell", "zh", layer=0, head=1)
    grid.page.wait_for_selector(f'#grid [aria-label^="{label}"]')
    assert "0.4000" in grid.node(0, 4).get_attribute("aria-label")
    assert grid.chosen() == kept


@pytest.mark.browser
def test_roles_and_names_for_a_screen_reader(visit, urls):
    grid = opened(visit, urls)
    table = grid.page.get_by_role("grid", name=t("grid.label", "en"))
    assert table.get_by_role("row").count() == LAYERS + 1
    assert table.get_by_role("columnheader").count() == HEADS + 1
    assert table.get_by_role("rowheader").count() == LAYERS
    assert table.get_by_role("gridcell", name="Layer 2, head 4").get_attribute("aria-selected") == "true"
