import re

import gradio as gr
import pytest

from tests.ui.conftest import untidy
from ui.app import build
from ui.component import FOLDER, static_text
from ui.headgrid import HeadGrid, grid_value, grid_words
from ui.pool import Pool
from ui.texts import TEXTS, t

SCRIPTS = sorted(path.name for path in FOLDER.glob("*.js"))
SHEETS = sorted(path.name for path in FOLDER.glob("*.css"))


@pytest.mark.parametrize("name", SHEETS)
def test_a_style_sheet_passes_through_the_template_engines_unchanged(name):
    assert not re.search(r"`|\\|\$\{|\{\{", static_text(name))


@pytest.mark.parametrize(
    "name", [name for name in SCRIPTS if name != "panel.js"]
)  # it shows our templates' HTML
def test_scripts_never_turn_text_into_markup(name):
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", static_text(name)
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_use_no_address(name):
    assert "://" not in static_text(name)


def test_scripts_ask_only_for_words_that_exist():
    for name, prefix in (("heatmap.js", "attention"), ("headgrid.js", "grid"), ("fields.js", "fields")):
        asked = set(re.findall(r'\bword\("(\w+)"', static_text(name)))
        assert asked
        assert {f"{prefix}.{key}" for key in asked} <= set(TEXTS)


def test_the_page_holds_each_component_once():
    """An update is a component, too: made while the page is built, it would stand at its end."""
    with untidy():
        made = [type(block).__name__ for block in build(Pool(device="cpu")).blocks.values()]
    wanted = {"AttentionView": 2, "UploadButton": 1, "HeadGrid": 1, "StepFields": 1}
    assert {name: made.count(name) for name in wanted} == wanted


def test_the_browser_gets_less_than_100_kilobytes():
    sent = [name for name in SCRIPTS + SHEETS if name != "report.css"]  # goes into a file
    assert sum(len(static_text(name).encode()) for name in sent) < 100_000


@pytest.fixture(scope="module")
def url(serve):
    """A grid in a tab that is closed at first, and buttons that change one thing about it."""
    with gr.Blocks() as blocks:
        with gr.Tabs():
            with gr.Tab("front"):
                gr.Markdown("front")
            with gr.Tab("back"):
                grid = HeadGrid(grid_value(2, 3, [(1, 1)]), heat=[[0.5, 0, 0], [0, 0, 0]], elem_id="grid")
        gr.Button("zh", elem_id="zh").click(lambda: HeadGrid(words=grid_words("zh")), None, grid)
        gr.Button("off", elem_id="off").click(lambda: HeadGrid(disabled="Not here."), None, grid)
        gr.Button("cold", elem_id="cold").click(lambda: HeadGrid(heat=None), None, grid)
        gr.Button("hide", elem_id="hide").click(lambda: HeadGrid(visible=False), None, grid)
        gr.Button("show", elem_id="show").click(lambda: HeadGrid(visible=True), None, grid)
        done = gr.Textbox(elem_id="done", show_label=False)
        count = gr.State(0)
        for button in [block for block in blocks.blocks.values() if isinstance(block, gr.Button)]:
            button.click(lambda n: (n + 1, str(n + 1)), count, [count, done])
    return serve(blocks)


def press(page, *names: str) -> None:
    for name in names:
        before = page.locator("#done textarea").input_value()
        page.locator(f"#{name}").click()
        page.wait_for_function(
            "before => document.querySelector('#done textarea').value !== before", arg=before
        )


@pytest.mark.browser
def test_one_prop_is_changed_without_the_others_even_out_of_sight(visit, url):
    page = visit(url).page
    press(page, "zh", "off")
    page.get_by_role("tab").nth(1).click()
    cell = t("grid.cell", "zh", layer=0, head=0)
    page.wait_for_selector(f'#grid [aria-label^="{cell}"][aria-label*="0.5000"]')
    assert page.locator("#grid .hg-reason").inner_text() == "Not here."
    press(page, "hide")
    page.wait_for_selector("#grid .hg", state="detached")
    press(page, "show", "cold")
    page.wait_for_selector(f'#grid [aria-label="{cell}"]')
    assert page.locator("#grid .hg-reason").inner_text() == "Not here."
    assert page.locator("#grid .hg-cell[aria-selected=true]").count() == 1


@pytest.mark.browser
def test_one_visitor_does_not_change_the_words_of_another(visit, url):
    first, second = visit(url).page, visit(url).page
    press(first, "zh")
    for page, lang in ((first, "zh"), (second, "en")):
        page.get_by_role("tab").nth(1).click()
        page.wait_for_selector(f'#grid [aria-label="{t("grid.label", lang)}"]')
