import json
import re
import statistics

import gradio as gr
import numpy as np
import pytest

from tests.ui.conftest import DESKTOP, PHONE
from ui.heatmap import DEFAULT_VIEW, AttentionView, attention_words
from ui.payload import attention_payload
from ui.texts import t

pytestmark = pytest.mark.browser

LAYERS, HEADS, SIZE = 3, 5, 7
TOKENS = [
    "[CLS]",
    "<script>",
    "<img src=x onerror=alert(1)>",
    "**x** $ $$",
    "שלום",
    "a\tb\x00\u202e",
    "🧬 饿",
]
KINDS = ["special", *["word"] * 5, "padding"]
VISITS = [
    (DESKTOP, "light", "en"),
    (DESKTOP, "dark", "zh"),
    (PHONE, "dark", "en"),
    (PHONE, "light", "zh"),
]


class Case:
    """Fabricated results, and a page whose buttons put them into one AttentionView."""

    def __init__(self, fabricate):
        self.baseline, self.operated = fabricate(LAYERS, HEADS, SIZE, seed=1)
        self.operated[1, 2, 3] = 0
        self.operated[1, 2, 4, 5] = np.nan
        self.no_key = np.zeros((LAYERS, HEADS, SIZE), bool)
        self.no_key[1, 2, 3] = True
        self.divergence = np.random.default_rng(3).uniform(0.01, 0.5, (LAYERS, HEADS))
        self.divergence[2, 3] = 0.6
        self.big = fabricate(12, 12, 64, seed=5)
        self.buttons = {
            "other": AttentionView(self.payload(self.operated, self.baseline, stamp="other"), render=False),
            "same": AttentionView(self.payload(self.baseline, self.baseline, stamp="same"), render=False),
            "twice": AttentionView(
                self.payload(self.baseline, self.operated, ["[CLS]", *"ababc", "[SEP]"], stamp="twice"),
                render=False,
            ),
            "partial": AttentionView(
                self.payload(
                    self.baseline[:2], self.operated[:2], captured=[1, 4], layers=6, stamp="partial"
                ),
                render=False,
            ),
        }

    def payload(self, baseline, operated, tokens=TOKENS, **options):
        kept = baseline.shape[0]
        return attention_payload(
            baseline, operated, tokens, KINDS, self.divergence[:kept], None, self.no_key[:kept], **options
        )

    def big_payload(self):
        tokens, kinds = [f"token{i}" for i in range(64)], ["word"] * 64
        return attention_payload(*self.big, tokens, kinds, np.full((12, 12), 0.1), stamp="big")

    def page(self, lang: str) -> gr.Blocks:
        values = {name: view.value for name, view in self.buttons.items()} | {"big": self.big_payload()}
        with gr.Blocks() as blocks:
            first = self.payload(self.baseline, self.operated, stamp="first")
            view = AttentionView(first, words=attention_words(lang), elem_id="attention")
            heard = gr.Textbox(elem_id="heard", show_label=False)
            for name, value in values.items():
                button = gr.Button(name, elem_id=name)
                button.click(lambda value=value: value, None, view, show_progress="hidden")
            for other in ("en", "zh"):
                button = gr.Button(other, elem_id=f"lang-{other}")
                button.click(lambda lang=other: AttentionView(words=attention_words(lang)), None, view)
            restored = {"layer": 1, "head": 4, "pinned": 2, "scale": "unit", "specials": "greyed", "stamp": 1}
            gr.Button("restore", elem_id="restore").click(lambda: AttentionView(view=restored), None, view)
            if lang == "en":
                view.view_change(self.hear, None, heard)
        return blocks

    @staticmethod
    def hear(event: gr.EventData):
        return json.dumps(event._data)


@pytest.fixture(scope="module")
def case(fabricate):
    return Case(fabricate)


@pytest.fixture(scope="module")
def urls(case, serve):
    return {lang: serve(case.page(lang)) for lang in ("en", "zh")}


class Maps:
    """What a person can do with the component and read from it."""

    def __init__(self, page):
        self.page = page
        self.root = page.locator("#attention .av")
        page.wait_for_selector("#attention .av[data-drawn]")

    @property
    def view(self) -> dict:
        return json.loads(self.root.get_attribute("data-view"))

    def drawn(self) -> int:
        return int(self.root.get_attribute("data-drawn"))

    def after(self, act) -> None:
        """Does `act` and waits until everything has been drawn anew."""
        before = self.drawn()
        act()
        self.page.wait_for_function(
            "before => Number(document.querySelector('#attention .av').dataset.drawn) > before", arg=before
        )

    def run(self, name: str) -> None:
        self.page.locator(f"#{name}").click()
        self.page.wait_for_selector(f"#attention .av[data-stamp={name}]")

    def choose(self, control: str, value: str) -> None:
        scope = self.root.locator(f"[data-control={control}]")
        if control in ("layer", "head"):
            self.after(lambda: scope.select_option(value))
        else:
            self.after(lambda: scope.locator(f"input[value={value}]").click(force=True))

    def point(self, side: str, row: int, column: int, count: int = SIZE) -> dict:
        sizes = self.root.evaluate(
            "(root, side) => { const box = root.querySelector(`[data-side=${side}]`);"
            "const of = (name) => parseFloat(root.style.getPropertyValue(name));"
            "return {width: box.clientWidth, map: of('--av-map'), top: of('--av-top')}; }",
            side,
        )
        cell = sizes["map"] / count
        left = sizes["width"] - sizes["map"]
        return {"x": left + (column + 0.5) * cell, "y": sizes["top"] + (row + 0.5) * cell}

    def canvas(self, side: str):
        return self.root.locator(f"canvas[data-side={side}]")

    def hover(self, side: str, row: int, column: int, count: int = SIZE) -> None:
        self.canvas(side).hover(position=self.point(side, row, column, count))

    def part(self, name: str) -> str:
        return self.root.locator(f".av-readout [data-part={name}]").inner_text()

    def number(self, name: str) -> float:
        return float(self.part(name).replace("−", "-"))

    def pixel(self, side: str, row: int, column: int) -> list[int]:
        """The colour near a corner of a cell, away from its number."""
        at = self.point(side, row, column)
        script = (
            "(canvas, at) => { const ratio = canvas.width / canvas.clientWidth;"
            "return [...canvas.getContext('2d')"
            ".getImageData(Math.round(at.x * ratio), Math.round(at.y * ratio), 1, 1).data]; }"
        )
        cell = self.root.evaluate("root => parseFloat(root.style.getPropertyValue('--av-map'))") / SIZE
        corner = {"x": at["x"] - cell * 0.42, "y": at["y"] - cell * 0.42}
        return self.canvas(side).evaluate(script, corner)[:3]

    def caption(self) -> str:
        return self.root.locator("[data-side=baseline]").get_attribute("aria-label")


def opened(visit, urls, viewport=DESKTOP, scheme="light", lang="en") -> Maps:
    return Maps(visit(urls[lang], viewport=viewport, scheme=scheme).page)


@pytest.mark.parametrize(("viewport", "scheme", "lang"), VISITS)
def test_it_is_drawn_without_a_click_and_shows_the_right_numbers(visit, urls, case, viewport, scheme, lang):
    maps = opened(visit, urls, viewport, scheme, lang)
    assert maps.root.get_attribute("data-stamp") == "first"
    assert (maps.view["layer"], maps.view["head"]) == (2, 3), "it opens at the head that changed most"
    for side, row, column in [("baseline", 0, 6), ("operated", 3, 1), ("difference", 6, 2)]:
        maps.hover(side, row, column)
        before, after = case.baseline[2, 3, row, column], case.operated[2, 3, row, column]
        assert maps.number("baseline") == pytest.approx(before, abs=1e-4)
        assert maps.number("operated") == pytest.approx(after, abs=1e-4)
        assert maps.number("difference") == pytest.approx(after - before, abs=1e-4)
    assert maps.root.locator("figcaption").first.inner_text() == t("attention.baseline", lang)


@pytest.mark.parametrize(("viewport", "is_row"), [(DESKTOP, True), (PHONE, False)])
def test_three_maps_side_by_side_or_stacked(visit, urls, viewport, is_row):
    maps = opened(visit, urls, viewport)
    boxes = [maps.canvas(side).bounding_box() for side in ("baseline", "operated", "difference")]
    assert (len({round(box["y"]) for box in boxes}) == 1) is is_row
    assert all(box["x"] + box["width"] <= viewport["width"] for box in boxes)
    map_size = maps.root.evaluate("root => root.style.getPropertyValue('--av-map')")
    assert float(map_size.removesuffix("px")) > 180


def test_layer_and_head_switch_without_the_server(visit, urls, case):
    maps = opened(visit, urls, lang="zh")
    maps.page.wait_for_load_state("load")
    asked = []
    maps.page.on("request", lambda request: asked.append(request.url))
    maps.choose("layer", "0")
    maps.choose("head", "4")
    maps.hover("operated", 2, 5)
    assert maps.number("operated") == pytest.approx(case.operated[0, 4, 2, 5], abs=1e-4)
    maps.after(lambda: maps.root.get_by_role("button", name=t("attention.next_layer", "zh")).click())
    assert maps.view["layer"] == 1
    assert [url for url in asked if "/queue/" in url or "/run/" in url] == []


def test_average_over_heads(visit, urls, case):
    maps = opened(visit, urls)
    maps.choose("layer", "0")
    maps.choose("head", "average")
    maps.hover("baseline", 1, 4)
    assert maps.number("baseline") == pytest.approx(case.baseline[0, :, 1, 4].mean(), abs=1e-4)
    assert "average" in maps.caption()


def test_a_row_without_a_key_and_a_cell_that_is_no_number_are_marked(visit, urls):
    maps = opened(visit, urls)
    assert maps.root.locator("[data-swatch]").count() == 0
    maps.choose("layer", "1")
    maps.choose("head", "2")
    assert maps.root.locator("[data-swatch=no_key]").inner_text() == "no permitted key"
    assert maps.root.locator("[data-swatch=nan]").is_visible()
    maps.hover("operated", 3, 2)
    assert maps.part("no_key") == "no permitted key"
    maps.hover("operated", 4, 5)
    assert maps.part("operated") == maps.part("difference") == "not a number"
    assert maps.pixel("operated", 4, 5) == maps.pixel("difference", 4, 5)


def test_one_scale_for_both_sides_and_zero_in_the_middle_of_the_difference(visit, urls, case):
    maps = opened(visit, urls)
    top = max(case.baseline[2, 3].max(), case.operated[2, 3].max())
    reach = np.abs(case.operated[2, 3] - case.baseline[2, 3]).max()
    ticks = maps.root.locator(".av-legend-weight .av-ticks span").all_inner_texts()
    assert float(ticks[-1]) == pytest.approx(top, abs=0.005)
    ends = maps.root.locator(".av-legend-difference .av-ticks span").all_inner_texts()
    assert ends[2] == "0"
    assert float(ends[-1]) == pytest.approx(reach, abs=0.005)
    assert ends[0] == ends[-1].replace("+", "−")
    maps.choose("scale", "unit")
    assert maps.root.locator(".av-legend-weight .av-ticks span").last.inner_text() == "1.00"
    assert maps.view["scale"] == "unit"


def test_no_difference_is_flat_and_says_so(visit, urls):
    maps = opened(visit, urls)
    maps.run("same")
    assert maps.root.locator(".av-difference .av-message").inner_text() == "no difference"
    assert maps.pixel("difference", 0, 0) == maps.pixel("difference", 3, 6)
    assert maps.pixel("baseline", 2, 4) == maps.pixel("operated", 2, 4)


def test_a_click_pins_a_query_and_another_lets_go(visit, urls, case):
    maps = opened(visit, urls)
    maps.after(lambda: maps.canvas("operated").click(position=maps.point("operated", 4, 1)))
    assert maps.view["pinned"] == 4
    assert maps.root.locator(".av-pin:visible").count() == 3
    maps.page.mouse.move(2, 2)
    assert "שלום" in maps.part("pinned")
    strongest = case.operated[2, 3, 4].max()
    assert f"{strongest:.2f}" in maps.part("top-operated")
    maps.after(lambda: maps.canvas("difference").click(position=maps.point("difference", 4, 6)))
    assert maps.view["pinned"] is None
    assert maps.root.locator(".av-pin:visible").count() == 0


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_token_that_occurs_twice_says_which_one_it_is(visit, urls, lang):
    maps = opened(visit, urls, lang=lang)
    maps.run("twice")
    which = [t("attention.token_at", lang, position=i) for i in range(SIZE)]
    maps.hover("baseline", 3, 5)
    assert maps.part("pair") == f"a{which[3]} → c"
    maps.after(lambda: maps.canvas("baseline").click(position=maps.point("baseline", 4, 1)))
    maps.page.mouse.move(1, 1)
    assert maps.part("pinned") == f"{t('attention.pinned', lang)} b{which[4]} →"
    maps.root.locator("summary").click()
    maps.root.locator("table").wait_for()
    heads = maps.root.locator("tbody th").all_inner_texts()
    assert heads == ["[CLS]", f"a{which[1]}", f"b{which[2]}", f"a{which[3]}", f"b{which[4]}", "c", "[SEP]"]


def test_the_keyboard_moves_and_pins(visit, urls, case):
    maps = opened(visit, urls)
    maps.root.locator(".av-maps").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowUp", "End"):
        maps.page.keyboard.press(key)
    maps.page.keyboard.press("ArrowLeft")
    column = maps.number("baseline")
    assert column == pytest.approx(case.baseline[2, 3, 1, 5], abs=1e-4)
    maps.after(lambda: maps.page.keyboard.press("Enter"))
    assert maps.view["pinned"] == 1
    maps.after(lambda: maps.page.keyboard.press("Escape"))
    assert maps.view["pinned"] is None


def test_special_tokens_can_be_greyed_and_hidden(visit, urls, case):
    maps = opened(visit, urls)
    coloured = maps.pixel("baseline", 0, 2)
    maps.choose("specials", "greyed")
    grey = maps.pixel("baseline", 0, 2)
    assert grey != coloured
    assert max(grey) - min(grey) <= 6
    maps.choose("specials", "hidden")
    assert "not renormalised" in maps.root.locator(".av-notes").inner_text()
    maps.hover("baseline", 0, 1, count=SIZE - 2)
    assert maps.number("baseline") == pytest.approx(case.baseline[2, 3, 1, 2], abs=1e-4)


@pytest.mark.parametrize("mode", ["divergence", "baseline", "operated"])
def test_the_overview_opens_a_head_by_click_and_by_key(visit, urls, mode):
    maps = opened(visit, urls)
    if mode != "divergence":
        maps.choose("overview", mode)
    heads = maps.root.locator(".av-heads")
    size = heads.locator("canvas").evaluate("(canvas, heads) => (canvas.clientWidth - 34) / heads", HEADS)
    maps.after(lambda: heads.locator("canvas").click(position={"x": 34 + 1.5 * size, "y": 18 + 0.5 * size}))
    assert (maps.view["layer"], maps.view["head"]) == (0, 1)
    maps.page.mouse.move(2, 2)
    heads.focus()
    maps.page.keyboard.press("ArrowDown")
    maps.page.keyboard.press("ArrowRight")
    assert "layer 1, head 2" in maps.root.locator(".av-heads-text").inner_text()
    maps.after(lambda: maps.page.keyboard.press("Enter"))
    assert (maps.view["layer"], maps.view["head"]) == (1, 2)


def test_layers_that_were_not_captured_are_listed_and_cannot_be_chosen(visit, urls, case):
    maps = opened(visit, urls)
    maps.run("partial")
    options = maps.root.locator("[data-control=layer] option")
    assert options.count() == 6
    free = [i for i in range(6) if options.nth(i).is_enabled()]
    assert free == [1, 4]
    maps.choose("layer", "4")
    maps.choose("head", "0")
    maps.hover("baseline", 2, 2)
    assert maps.number("baseline") == pytest.approx(case.baseline[1, 0, 2, 2], abs=1e-4)
    maps.after(lambda: maps.root.get_by_role("button", name=t("attention.previous_layer", "en")).click())
    assert maps.view["layer"] == 1


def test_the_view_survives_a_new_result_and_a_change_of_language(visit, urls, case):
    maps = opened(visit, urls)
    maps.choose("layer", "1")
    maps.choose("head", "0")
    maps.choose("scale", "unit")
    maps.after(lambda: maps.canvas("baseline").click(position=maps.point("baseline", 2, 2)))
    kept = maps.view
    maps.run("other")
    assert maps.view == kept
    maps.hover("baseline", 5, 0)
    assert maps.number("baseline") == pytest.approx(case.operated[1, 0, 5, 0], abs=1e-4)
    maps.after(lambda: maps.page.locator("#lang-zh").click())
    assert maps.view == kept
    assert t("attention.operated", "zh") in maps.root.inner_text()
    assert not re.search(r"Baseline|Operated|Layer|Head|scale", maps.root.inner_text())
    maps.run("same")
    assert t("attention.no_difference", "zh") in maps.root.inner_text()
    maps.after(lambda: maps.page.locator("#lang-en").click())
    assert "Operated" in maps.root.inner_text()
    assert maps.view == kept


def test_python_sets_the_view_silently_and_hears_of_changes(visit, urls):
    maps = opened(visit, urls)
    assert set(maps.view) == set(DEFAULT_VIEW)
    heard = maps.page.locator("#heard textarea")
    maps.after(lambda: maps.page.locator("#restore").click())
    assert maps.view == DEFAULT_VIEW | {
        "layer": 1,
        "head": 4,
        "pinned": 2,
        "scale": "unit",
        "specials": "greyed",
    }
    assert heard.input_value() == ""
    maps.choose("head", "3")
    maps.page.wait_for_function("() => document.querySelector('#heard textarea').value !== ''")
    assert json.loads(heard.input_value()) == maps.view
    maps.choose("layer", "2")
    maps.page.wait_for_function(
        "() => JSON.parse(document.querySelector('#heard textarea').value).layer === 2"
    )
    maps.run("other")
    assert (maps.view["layer"], maps.view["head"]) == (2, 3), "an old view from Python is not applied again"


def test_tokens_are_text_and_never_markup(visit, urls):
    maps = opened(visit, urls)
    maps.root.locator("summary").click()
    maps.root.locator("table").wait_for()
    assert maps.root.locator("table tbody tr").count() == SIZE
    heads = maps.root.locator("thead th").all_inner_texts()
    expected = [*TOKENS[:5], "a\\tb\\x00\\u202e", TOKENS[6]]
    assert heads == expected
    for row in range(SIZE):
        maps.hover("baseline", row, 1)
        assert maps.root.locator(".av-pair bdi").all_inner_texts() == [expected[row], "<script>"]
    assert maps.root.locator("script, img, b, strong, em").count() == 0


def test_the_table_holds_the_values_in_view(visit, urls, case):
    maps = opened(visit, urls)
    maps.root.locator("summary").click()
    maps.choose("layer", "0")
    maps.choose("head", "1")
    assert "layer 0, head 1" in maps.root.locator("caption").inner_text()
    cell = maps.root.locator("tbody tr").nth(3).locator("td").nth(5).inner_text()
    before, after = (float(part) for part in cell.split(" → "))
    assert before == pytest.approx(case.baseline[0, 1, 3, 5], abs=1e-4)
    assert after == pytest.approx(case.operated[0, 1, 3, 5], abs=1e-4)


def test_the_dark_switch_draws_anew(visit, urls):
    maps = opened(visit, urls)
    light = maps.pixel("baseline", 3, 3)
    maps.after(lambda: maps.page.evaluate("document.body.classList.toggle('dark')"))
    assert maps.pixel("baseline", 3, 3) != light
    maps.after(lambda: maps.page.evaluate("document.body.classList.toggle('dark')"))
    assert maps.pixel("baseline", 3, 3) == light


def test_a_new_width_draws_anew(visit, urls):
    maps = opened(visit, urls)
    maps.after(lambda: maps.page.set_viewport_size(PHONE))
    maps.page.wait_for_selector("#attention .av:not(.av-wide)")
    maps.hover("difference", 1, 1)
    assert maps.part("pair")


def test_a_sharp_screen_gets_sharp_maps(visit, urls):
    maps = Maps(visit(urls["en"], viewport=PHONE, device_scale_factor=3).page)
    assert maps.canvas("baseline").evaluate("canvas => canvas.width / canvas.clientWidth") == 3


def test_switching_a_head_takes_little_time(visit, urls):
    maps = opened(visit, urls)
    maps.run("big")
    times = []
    for head in range(10):
        maps.choose("head", str(head))
        times.append(float(maps.root.get_attribute("data-draw-ms")))
    print(f"\nhead switch, 12 x 12 heads, 64 tokens: median {statistics.median(times):.1f} ms, {times}")


def test_the_component_describes_itself_to_the_api():
    view = AttentionView(render=False)
    assert view.example_payload() == view.example_value()
    assert view.api_info()["type"] == "object"
    assert set(view.get_config()["props"]["shared"]) == {"words", "view"}
    with pytest.raises(ValueError, match="attention_payload"):
        view.postprocess("<b>")
