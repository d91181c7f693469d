import json

import gradio as gr
import pytest

import surgery as sg
from tests.ui.conftest import DESKTOP, PHONE
from tests.ui.test_panels import HOSTILE, with_hostile_labels
from ui import panels, steps
from ui.markup import printable
from ui.panel import Panel

pytestmark = pytest.mark.browser
PLAN = sg.Plan(sg.DropScaling().at("L0-1"), sg.KeyDropout(0.3, 1), sg.Temperature(2.0))


@pytest.fixture(scope="module")
def urls(serve, minilm, encoder):
    result = sg.compare(minilm, "The dog bit the man", PLAN)
    odd = with_hostile_labels(sg.compare(encoder, " [MASK] ".join(HOSTILE), sg.CausalMask()))
    return {lang: serve(page(result, odd, lang)) for lang in ("en", "zh")}


def page(result, odd, lang: str) -> gr.Blocks:
    """One panel of each kind; the plan is edited, and `heard` repeats every action."""
    start = steps.from_plan(PLAN)
    with gr.Blocks() as blocks:
        kept = gr.State((start, 0))
        plan = Panel(panels.plan(start, 0, lang), elem_id="plan")
        heard = gr.Textbox("", elem_id="heard", show_label=False)
        again = gr.Button("again", elem_id="again")
        heads = Panel(panels.heads(result, lang), elem_id="heads")

        def act(now, event: gr.EventData):
            now = steps.act(*now, event._data["do"], event._data["step"])
            return now, panels.plan(*now, lang), json.dumps(event._data)

        plan.action(act, kept, [kept, plan, heard])
        heads.action(tell, None, heard)
        again.click(
            lambda: str(panels.heads(result, lang)) + "\n", None, heads
        )  # another value, the same rows
        for name in ("verdict", "outputs", "layers", "receipt", "pipeline"):
            Panel(getattr(panels, name)(result, lang), elem_id=name)
        Panel(panels.code(result.model, result.text, result.plan, lang=lang), elem_id="code")
        for name in ("verdict", "outputs", "heads", "pipeline"):
            Panel(getattr(panels, name)(odd, lang), elem_id=f"odd-{name}")
        Panel(panels.code(odd.model, HOSTILE[0], odd.plan, lang=lang), elem_id="odd-code")
    return blocks


def tell(event: gr.EventData) -> str:
    return json.dumps(event._data)


class Shown:
    """What a person can do with the panels and read from them."""

    def __init__(self, page):
        self.page = page
        page.wait_for_selector("#odd-code .pn[data-ready]", state="attached")

    def panel(self, name: str):
        return self.page.locator(f"#{name} .pn")

    def heard_after(self, act) -> dict:
        before = self.page.locator("#heard textarea").input_value()
        act()
        self.page.wait_for_function("b => document.querySelector('#heard textarea').value !== b", arg=before)
        return json.loads(self.page.locator("#heard textarea").input_value())

    def redrawn_after(self, name: str, act) -> None:
        count = self.panel(name).get_attribute("data-ready")
        act()
        self.page.wait_for_function(
            "([name, count]) => document.querySelector(`#${name} .pn`).dataset.ready !== count",
            arg=[name, count],
        )

    def column(self, index: int) -> list[str]:
        """The texts of a column of the heads table, of the rows that can be seen."""
        script = """(rows, i) => rows.filter((row) => row.offsetParent).map((row) => row.cells[i].textContent.trim())"""
        return self.panel("heads").locator("tbody tr").evaluate_all(script, index)

    def focused(self) -> str:
        return self.page.evaluate("document.activeElement.dataset.action ?? ''")


def opened(visit, urls, viewport=DESKTOP, scheme="light", lang="en", **options) -> Shown:
    return Shown(visit(urls[lang], viewport=viewport, scheme=scheme, **options).page)


def test_a_column_is_sorted_by_mouse_and_keyboard(visit, urls):
    shown = opened(visit, urls)
    heads = shown.panel("heads")
    divergence = [float(text) for text in shown.column(1)]
    assert len(divergence) == 24
    assert divergence == sorted(divergence, reverse=True)
    moved = heads.locator("th button[data-sort='2']")
    moved.click()
    assert moved.locator("..").get_attribute("aria-sort") == "descending"
    assert heads.locator("th[aria-sort=descending]").count() == 1
    down = [float(text) for text in shown.column(2)]
    moved.focus()
    shown.page.keyboard.press("Enter")
    assert moved.locator("..").get_attribute("aria-sort") == "ascending"
    up = [float(text) for text in shown.column(2)]
    assert down == sorted(down, reverse=True)
    assert up == sorted(up)
    assert max(up) < max(down)
    heads.locator("th button[data-sort='0']").click()
    assert [text.split(" ")[0][:5] for text in shown.column(0)[:2]] == ["L0.H0", "L0.H1"]


def test_what_is_undefined_comes_last_in_either_order(visit, urls):
    shown = opened(visit, urls)
    heads = shown.panel("heads")
    heads.locator("button[data-more]").click()
    heads.locator("tbody tr").nth(3).evaluate("(row) => { row.cells[1].textContent = '–'; }")
    for direction in ("ascending", "descending"):
        heads.locator("th button[data-sort='1']").click()
        assert heads.locator(f"th[aria-sort={direction}] button").get_attribute("data-sort") == "1"
        assert shown.column(1)[-1] == "–"


def test_all_rows_are_shown_on_request_and_a_new_value_keeps_that(visit, urls):
    shown = opened(visit, urls)
    more = shown.panel("heads").locator("button[data-more]")
    assert more.text_content() == "Show all 72"
    more.click()
    assert len(shown.column(0)) == 72
    assert more.get_attribute("aria-expanded") == "true"
    shown.panel("heads").locator("th button[data-sort='2']").click()
    before = shown.column(0)
    shown.redrawn_after("heads", shown.page.locator("#again").click)
    assert shown.column(0) == before
    assert shown.panel("heads").locator("button[data-more]").get_attribute("aria-expanded") == "true"


def test_opening_a_head_fires_an_action(visit, urls):
    shown = opened(visit, urls)
    button = shown.panel("heads").locator("tbody button").nth(1)
    said = shown.heard_after(button.click)
    assert said == json.loads(button.get_attribute("data-action"))
    assert said["do"] == "open"
    other = shown.panel("heads").locator("tbody button").nth(2)
    other.focus()
    assert shown.heard_after(lambda: shown.page.keyboard.press("Space")) != said


def test_steps_are_moved_switched_and_removed_and_keep_the_focus(visit, urls):
    shown = opened(visit, urls)
    plan = shown.panel("plan")
    down = plan.locator("button[data-action*='down']").first
    down.focus()
    shown.redrawn_after("plan", lambda: shown.page.keyboard.press("Enter"))
    assert "Drop the" in plan.locator("li").nth(1).text_content()
    assert json.loads(shown.focused()) == {"do": "down", "step": 1}
    shown.redrawn_after("plan", lambda: shown.page.keyboard.press("Enter"))
    assert "Drop the" in plan.locator("li").nth(2).text_content()
    assert json.loads(shown.focused()) == {"do": "down", "step": 2}
    shown.page.keyboard.press("Enter")  # the last one stays where it is
    switch = plan.locator("[role=switch]").first
    shown.redrawn_after("plan", switch.click)
    assert plan.locator("[role=switch]").first.get_attribute("aria-checked") == "false"
    shown.redrawn_after("plan", plan.locator("button[data-action*='remove']").last.click)
    assert plan.locator("li").count() == 2
    shown.redrawn_after("plan", plan.locator(".pn-what").nth(0).click)
    assert plan.locator(".pn-what").nth(0).get_attribute("aria-current") == "true"


@pytest.mark.parametrize("secure", [True, False])
def test_code_is_copied_and_that_is_announced(visit, urls, secure):
    shown = opened(visit, urls, permissions=["clipboard-read", "clipboard-write"])
    if not secure:  # as on a page that came by http from another machine
        shown.page.evaluate(
            "Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true })"
        )
    code = shown.panel("code")
    button = code.locator("button[data-copy=shell]")
    button.focus()
    shown.page.keyboard.press("Enter")
    code.locator(".pn-live", has_text="Copied").wait_for(state="attached")
    assert button.text_content() == "Copied"
    assert code.locator("[role=status]").text_content() == "Copied"
    if secure:
        text = shown.page.evaluate("navigator.clipboard.readText()")
        assert text == code.locator("[data-copied-text=shell]").text_content()
    shown.page.wait_for_function("() => document.querySelector('[data-copy=shell]').textContent === 'Copy'")


def test_a_download_has_the_text(visit, urls):
    shown = opened(visit, urls)
    with shown.page.expect_download() as download:
        shown.panel("code").locator("a[download='plan.json']").click()
    assert sg.Plan.from_json(download.value.path().read_text(encoding="utf-8")) == PLAN


def test_one_stage_opens_at_a_time(visit, urls):
    shown = opened(visit, urls)
    stages = shown.panel("pipeline").locator("details")
    stages.nth(3).locator("summary").click()
    stages.nth(5).locator("summary").press("Enter")
    assert stages.evaluate_all("all => all.map((d) => d.open)").count(True) == 1
    assert stages.nth(5).locator("tbody tr").count() == 1


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_hostile_tokens_are_text(visit, urls, lang):
    shown = opened(visit, urls, lang=lang)
    shown.page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    for name in ("odd-verdict", "odd-outputs", "odd-heads", "odd-pipeline", "odd-code"):
        panel = shown.panel(name)
        assert panel.locator("script, img, s, strong, em, iframe").count() == 0
        assert panel.evaluate("p => [...p.querySelectorAll('*')].every((n) => !n.hasAttribute('onerror'))")
    seen = shown.panel("odd-outputs").locator(".pn-strip bdi").all_text_contents()
    assert {printable(token) for token in HOSTILE} <= set(seen)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_every_panel_within_its_width(visit, urls, scheme, lang):
    shown = opened(visit, urls, PHONE, scheme, lang)
    wide = "(n) => n.scrollWidth > n.clientWidth + 1 && !['auto', 'scroll'].includes(getComputedStyle(n).overflowX)"
    for name in (
        "plan",
        "verdict",
        "outputs",
        "heads",
        "layers",
        "receipt",
        "pipeline",
        "code",
        "odd-outputs",
    ):
        assert not shown.panel(name).evaluate(wide), name
    assert shown.panel("heads").locator(".pn-scroll").evaluate("n => n.scrollWidth > n.clientWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_marks_stand_out_from_the_page(visit, urls, scheme):
    shown = opened(visit, urls, scheme=scheme)
    for selector, least in {".pn-sentence": 7, ".pn-under": 4.5, ".pn-notices li": 4.5}.items():
        assert shown.panel("verdict").locator(selector).first.evaluate(CONTRAST, None) >= least
    assert shown.panel("heads").locator("circle.pn-after").first.evaluate(CONTRAST, "fill") >= 2
    assert shown.panel("heads").locator(".pn-tick").first.evaluate(CONTRAST, "fill") >= 4.5


CONTRAST = """(node, property) => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  let under = node;
  while (under && rgb(getComputedStyle(under).backgroundColor)[3] < 255) under = under.parentElement;
  const light = (colour) => rgb(colour).slice(0, 3)
    .map((c) => c / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const [a, b] = [light(getComputedStyle(node)[property ?? "color"]), light(getComputedStyle(under ?? document.body).backgroundColor)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}"""
