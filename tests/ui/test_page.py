"""The whole page in Chromium, served by `python app.py` in a process of its own, on the real MiniLM."""

import csv
import json
import re

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

import surgery as sg
from models import load
from surgery import RemovePositions, Temperature, compare
from tests.ui.conftest import DESKTOP, PHONE
from ui import presets
from ui.texts import t

pytestmark = pytest.mark.browser

STAMP = "document.querySelector('#maps .av')?.dataset.stamp"
FIRST = "The dog bit the man"


class Page:
    """What a visitor does and sees."""

    def __init__(self, visit):
        self.visit, self.page = visit, visit.page
        self.page.wait_for_selector("#maps [data-drawn]")

    def ready(self):
        self.page.wait_for_selector(".badge.ready")
        return self

    def stamp(self):
        return self.page.evaluate(STAMP)

    def after(self, act):
        """Does something and waits for the new figure."""
        old = self.stamp()
        act()
        self.page.wait_for_function(f"old => {STAMP} && {STAMP} !== old", arg=old)
        return self

    def pill(self, box, name):
        self.page.locator(f"#{box} label").filter(has=self.page.locator(f"input[value='{name}']")).click()

    def operate(self):
        self.page.locator("#operate").click()

    def write(self, box, text):
        self.page.locator(f"#{box} textarea, #{box} input").first.fill(text)

    def open(self, accordion):
        self.page.locator(f"#{accordion} button").first.click()
        self.page.wait_for_selector(f"#{accordion} input, #{accordion} textarea")

    def says(self, box, text):
        self.page.locator(f"#{box}").filter(has_text=text).wait_for()

    def tab(self, name, lang="en"):
        self.page.get_by_role("tab", name=t(f"tabs.{name}", lang), exact=True).click()

    def text(self, box):
        return self.page.locator(f"#{box}").inner_text()


@pytest.fixture
def open_page(visit, app_url):
    def start(path="", **options):
        return Page(visit(app_url + path, **options))

    return start


@pytest.fixture(scope="module")
def expected():
    return compare(load("minilm"), FIRST, RemovePositions(), other="The man bit the dog")


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_the_first_figure_is_there_without_a_click_and_is_right(
    open_page, expected, viewport, scheme, locale
):
    lang = locale[:2]
    page = open_page(viewport=viewport, scheme=scheme, locale=locale)
    page.says("verdict", expected.verdict(lang)[:20])
    page.says("verdict", "0.979")
    page.ready()
    assert page.page.locator("#operate").inner_text() == t("app.operate", lang)


def test_the_chinese_page_has_no_english_left(open_page):
    page = open_page("?lang=zh").ready()
    page.says("operate", t("app.operate", "zh"))
    page.open("fine")
    page.open("more")
    seen = page.text("left") + page.text("top")
    allowed = {
        "English", "CLS", "SEP", "MASK", "hub", "minilm", "MiniLM", "BERT", "T", "d_k", "k", "d", "softmax", "Dropout", "L", "H",
        "The", "dog", "bit", "the", "man", "x", "E", "token", "all", "L6", "H10", "H11", "v2", "encoder", "Transformer", "n", "PE", "i", "are",
    }  # fmt: skip
    words = set(re.findall(r"[A-Za-z_]+\d*", seen)) - allowed
    assert {word for word in words if len(word) > 2} == set()


def test_a_preset_operates_on_one_click_and_the_numbers_are_those_of_the_library(open_page):
    page = open_page().ready()
    page.after(lambda: page.pill("presets", "hot"))
    wanted = compare(load("minilm"), FIRST, Temperature(4.0), other="The man bit the dog")
    page.says("verdict", wanted.verdict()[:60])
    page.says("verdict", f"{wanted.output['sentence_cosine']:.3f}")


def test_a_text_of_ones_own_and_the_enter_key(open_page):
    page = open_page().ready()
    page.write("text", "my own words")
    page.page.locator("#text textarea").focus()
    page.after(lambda: page.page.keyboard.press("Enter"))
    page.page.locator("#maps summary").last.click()
    page.page.locator("#maps table").filter(has_text="words").wait_for()


def test_where_is_chosen_by_grid_or_by_text_and_each_edits_the_other(open_page):
    page = open_page().ready()
    page.after(lambda: page.pill("presets", "scale"))
    page.open("fine")
    where = page.page.locator("#where input, #where textarea").first
    page.page.wait_for_selector(".hg[data-chosen='72']")
    where.press_sequentially("", delay=0)
    where.fill("")
    where.press_sequentially("L0-1.H2,3")
    page.page.wait_for_selector(".hg[data-chosen='4']")
    page.page.locator(".hg [role=gridcell]").nth(0).click()
    page.page.wait_for_function(
        "document.querySelector('#where input, #where textarea').value.startsWith('L0.H0,')"
    )
    page.page.keyboard.press("ArrowRight")
    page.page.keyboard.press("Space")
    page.page.wait_for_selector(".hg[data-chosen='6']")
    page.after(page.operate)
    page.tab("receipt")
    page.says("panel-receipt", "6")


def test_a_bad_selection_is_said_beside_the_field_and_nothing_is_lost(open_page):
    page = open_page().ready()
    page.after(lambda: page.pill("presets", "hot"))
    verdict = page.text("verdict")
    page.open("fine")
    where = page.page.locator("#where input, #where textarea").first
    where.fill("")
    where.press_sequentially("L9")
    page.page.locator(".problem [role=alert]").filter(has_text="layers are 0-5").wait_for()
    page.operate()
    page.page.locator("#problem-plan [role=alert]").filter(has_text="layers are 0-5").wait_for()
    assert page.text("verdict") == verdict
    where.fill("")
    where.press_sequentially("L5")
    page.after(page.operate)
    assert page.page.locator(".problem [role=alert]").count() == 0


def test_operations_stack_can_be_switched_off_and_removed(open_page):
    page = open_page().ready()
    page.after(lambda: page.pill("presets", "causal"))
    alone = page.stamp()
    page.open("fine")
    page.page.locator("#add").click()
    page.says("plan", "temperature T = 1")  # which changes nothing until somebody says what it should
    page.operate()
    page.tab("receipt")
    page.says("panel-receipt", "With these parameters it changes nothing.")
    assert page.stamp() == alone  # every number is as it was
    page.write("temperature-t", "2")
    page.says("plan", "temperature T = 2")
    page.after(page.operate)
    page.page.locator("#plan [data-action*='toggle']").nth(1).click()
    page.after(page.operate)
    assert "Causal mask" in page.text("verdict")
    page.page.locator("#plan [data-action*='remove']").nth(0).click()
    page.page.wait_for_function("document.querySelectorAll('#plan [data-action*=remove]').length === 1")


def test_a_link_restores_everything_in_a_new_browser(open_page, app_url):
    page = open_page().ready()
    page.write("text", "Time flies like an arrow")
    page.after(lambda: page.pill("presets", "local"))
    page.page.wait_for_function("location.search.includes('s=')")
    wanted, link = page.text("verdict"), page.page.url
    other = open_page(link.removeprefix(app_url)).ready()
    other.says("verdict", wanted.splitlines()[0][:50])
    assert other.page.locator("#text textarea").input_value() == "Time flies like an arrow"
    assert other.page.locator("#presets input[value='local']").is_checked()


def test_a_link_brings_its_texts_to_the_sweep(open_page, app_url):
    page = open_page().ready()
    page.after(lambda: page.pill("examples", "agree"))
    page.page.wait_for_function("location.search.includes('s=')")
    text = page.page.locator("#text textarea").input_value()
    other = open_page(page.page.url.removeprefix(app_url)).ready()
    other.tab("sweep")
    other.page.wait_for_function(
        "text => document.querySelector('#sweep-texts textarea')?.value === text", arg=text
    )


def test_a_broken_link_is_said_and_the_page_works(open_page):
    page = open_page("?s=AAAA").ready()
    page.page.locator(".problem [role=alert]").filter(has_text="link cannot be read").wait_for()
    page.after(lambda: page.pill("presets", "hot"))


def test_back_and_forward_go_through_what_was_done(open_page):
    page = open_page().ready()
    page.after(lambda: page.pill("presets", "hot"))
    page.page.wait_for_function("location.search.includes('s=')")
    first = page.page.url
    page.after(lambda: page.pill("presets", "causal"))
    page.page.wait_for_function("old => location.href !== old", arg=first)
    page.page.go_back()
    page.says("verdict", presets.PRESETS["hot"][1].describe()[:30])
    page.page.go_forward()
    page.says("verdict", presets.PRESETS["causal"][1].describe()[:10])


def test_the_language_can_be_switched_midway_and_values_stay(open_page):
    page = open_page().ready()
    page.write("text", "Colourless green ideas")
    page.after(lambda: page.pill("presets", "cold"))
    page.pill("lang", "zh")
    page.says("operate", t("app.operate", "zh"))
    page.says("verdict", "注意力")
    assert page.page.locator("#text textarea").input_value() == "Colourless green ideas"
    page.pill("lang", "en")
    page.says("operate", t("app.operate", "en"))


def test_downloads_are_complete_and_readable(open_page, tmp_path):
    page = open_page().ready()
    page.after(lambda: page.pill("presets", "hot"))
    page.tab("share")
    page.page.locator("#make-files").click()
    page.page.wait_for_selector("#files a[download], #files a[href]")
    with page.page.expect_download() as waiting:
        page.page.locator("#files a[download='report.html']").first.click()
    waiting.value.save_as(tmp_path / "report.html")
    found = {"report.html": tmp_path / "report.html"}
    for link in page.page.locator("#files a").all():
        path = tmp_path / link.get_attribute("download")
        path.write_bytes(page.page.request.get(link.get_attribute("href")).body())
        found[path.name] = path
    wanted = compare(load("minilm"), FIRST, Temperature(4.0), other="The man bit the dog")
    data = json.loads(found["comparison.json"].read_text())
    assert data["verdict"]["en"] == wanted.verdict()
    with np.load(found["weights.npz"]) as weights:
        assert np.array_equal(weights["operated"], wanted.operated.weights.numpy())
    assert len(list(csv.DictReader(found["heads.csv"].read_text().splitlines()))) == 72
    assert found["report.html"].read_text().startswith("<!doctype html>")
    assert any(name.endswith(".svg") for name in found) and any(name.endswith(".png") for name in found)


def test_operating_needs_fewer_than_fifteen_tab_presses(open_page):
    page = open_page().ready()
    for _ in range(14):
        page.page.keyboard.press("Tab")
        if page.page.evaluate("document.activeElement.matches(\"#presets input[value='scale']\")"):
            break
    page.after(lambda: page.page.keyboard.press("Space"))


def test_hostile_text_becomes_text_everywhere(open_page):
    hostile = "<script>window.hit=1</script> <img src=x onerror=window.hit=1> **x** | $\\frac$ \u202e"
    page = open_page().ready()
    page.write("text", hostile)
    page.after(page.operate)
    for name in ("outputs", "heads", "layers", "receipt", "pipeline", "code"):
        page.tab(name)
    assert page.page.evaluate("window.hit") is None
    assert page.page.locator("#right img[src='x'], #right script").count() == 0


def test_an_empty_text_and_an_unknown_model_are_said_in_the_readers_language(open_page):
    page = open_page("?lang=zh").ready()
    page.says("operate", t("app.operate", "zh"))
    page.write("text", "   ")
    page.operate()
    page.page.locator(".problem [role=alert]").filter(has_text="文本为空").wait_for()
    page.write("text", "hello")
    page.after(page.operate)


def test_another_model_brings_its_own_layers_and_says_that_it_is_untrained(open_page):
    page = open_page().ready()
    page.page.locator("#model input").click()
    page.page.locator("[role=option]").filter(has_text="encoder-untrained").click()
    page.page.wait_for_function(
        f"JSON.stringify({STAMP}) && document.querySelector('#verdict').innerText.includes('ntrained')"
    )
    page.open("fine")
    page.page.wait_for_function("document.querySelectorAll('.hg [role=gridcell]').length === 8")
    page.after(lambda: page.pill("presets", "hot"))
    page.says("fields", "For example L0-1.H1,3 · L* · H2 · L0.H1+L1;")


@pytest.mark.parametrize(
    "viewport, scheme, lang", [(DESKTOP, "light", "en"), (PHONE, "dark", "zh")], ids=["desktop", "phone"]
)
def test_axe_finds_nothing_serious(open_page, viewport, scheme, lang):
    page = open_page(f"?lang={lang}", viewport=viewport, scheme=scheme).ready()
    page.open("fine")
    page.open("more")
    found = []
    for tab in page.page.get_by_role("tab").all():
        tab.click()
        result = Axe().run(page.page)
        found += [v for v in result.response["violations"] if v["impact"] in ("serious", "critical")]
    said = {(v["id"], node["html"][:160]) for v in found for node in v["nodes"]}
    assert said == set()


def test_a_sweep_shows_every_head_opens_one_and_gives_its_numbers(open_page):
    page = open_page().ready()
    page.tab("sweep")
    page.page.locator("#sweep-run").click()
    page.page.wait_for_selector("#panel-sweep table")
    page.page.wait_for_function("document.querySelector('#panel-sweep').innerText.includes('2 of 2')")
    wanted = sg.head_importance(load("minilm"), [FIRST, "The man bit the dog"])
    shown = page.page.locator("#panel-sweep td button").all_inner_texts()
    assert [float(text) for text in shown] == pytest.approx(wanted["effect"].tolist(), abs=6e-4)
    page.page.locator("#panel-sweep td button").nth(30).click()
    page.page.wait_for_function("JSON.parse(document.querySelector('#maps .av').dataset.view).layer === 2")
    page.write("sweep-texts", "")
    page.page.locator("#sweep-run").click()
    page.page.locator(".problem [role=alert]").filter(has_text="one a line").wait_for()


def test_a_decoder_writes_on_without_and_with_surgery(open_page):
    page = open_page().ready()
    assert not page.page.locator("#write").is_visible()
    page.after(lambda: page.pill("examples", "writer"))
    page.page.locator("#write").click()
    page.page.wait_for_selector("#written dd")
    wanted = sg.generate(
        load("characters"), "the old bear ", RemovePositions(), tokens=90, temperature=1.0, seed=0
    )
    shown = [text.replace("␣", " ") for text in page.page.locator("#written dd").all_inner_texts()]
    assert [
        text.startswith("the old bear " + run.rstrip())
        for text, run in zip(shown, (wanted.baseline, wanted.operated), strict=True)
    ] == [True, True]
    assert f"after {wanted.parted} tokens" in page.text("written")
    page.page.locator("#write").click()
    page.says("written", "Draw 2")
    page.after(lambda: page.pill("presets", "hot"))
    assert page.text("written").strip() == ""


def test_a_temperature_curve_is_judged_by_right_answers(open_page):
    page = open_page().ready()
    page.after(lambda: page.pill("examples", "agree"))
    page.tab("sweep")
    asked = {
        "today the dogs near the cat [MASK] tired": "are",
        "today the cat near the dogs [MASK] tired": "is",
    }
    page.write("sweep-texts", "\n".join(f"{text} => {word}" for text, word in asked.items()))
    page.pill("sweep-kind", "temperatures")
    page.page.locator("#sweep-run").click()
    page.page.wait_for_function("document.querySelector('#panel-sweep').innerText.includes('2 of 2')")
    table = sg.sweep(
        load("encoder"), list(asked), sg.grid(sg.Temperature, t=[8.0]), truth=list(asked.values())
    )
    rise = (table.loss - table.loss_baseline).mean()
    shown = page.page.locator("#panel-sweep tbody td").last.inner_text().split()[0]
    assert float(shown) == pytest.approx(rise, abs=6e-4) and rise > 0.1
    assert page.page.locator("#panel-sweep svg circle").count() == 9
    assert page.page.locator("#panel-sweep svg polygon").count() == 1
    page.write("sweep-texts", "a [MASK] => b\nc")
    page.page.locator("#sweep-run").click()
    page.page.locator(".problem [role=alert]").filter(has_text="1 of 2").wait_for()


@pytest.mark.parametrize("example, before, lang", [("agree", "are", "en"), ("who", "狗", "zh")])
def test_an_example_brings_the_model_that_answers_it_and_surgery_changes_the_answer(
    open_page, example, before, lang
):
    page = open_page(f"?lang={lang}").ready()
    page.after(lambda: page.pill("examples", example))
    page.says("verdict", before)
    page.says("panel-outputs", before)
    assert page.page.locator("#model input").input_value() == presets.EXAMPLES[example].model
