"""The page where something is wrong, slow, changed or narrow, in Chromium on the real MiniLM."""

import threading
import time
from pathlib import Path

import pytest

from surgery.plan import pack
from tests.ui.conftest import PHONE, untidy
from tests.ui.test_page import FIRST, Page
from ui import operating
from ui.app import build
from ui.app import serve as launch
from ui.pool import Pool
from ui.texts import t

pytestmark = pytest.mark.browser
BAD = [("", "''"), ("99999", "99999"), ("0", "0"), ("abc", "'abc'"), ("NaN", "'NaN'")]


class Careful(Page):
    """What else a visitor does and sees."""

    def ready(self):
        self.page.wait_for_selector(".badge.ready", state="attached")  # another line may stand in its place
        return self

    def field(self, name):
        return self.page.locator(f"#{name} input[type=text], #{name} textarea").first

    def paste(self, name, text):
        """All at once, as the clipboard does."""
        field = self.field(name)
        field.click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(text)

    def said_beside(self, name, text):
        self.page.locator(f"#{name} [role=alert]").filter(has_text=text).wait_for()

    def choose(self, operation, lang="en"):
        from surgery.operation import REGISTRY

        self.page.locator("#operation input").click()
        name = REGISTRY[operation].title.say(lang)
        self.page.get_by_role("option", name=name, exact=True).click()
        self.page.wait_for_selector(f".fd[data-step$=' {operation}']")

    def plan_says(self, text):
        self.says("plan", text)

    def stale(self):
        self.page.wait_for_selector("#stale .badge.stale", state="visible")

    def fresh(self):
        self.page.wait_for_function("!document.querySelector('#stale .badge')")


@pytest.fixture
def open_page(visit, app_url):
    def start(path="", **options):
        return Careful(visit(app_url + path, **options)).ready()

    return start


# --- fields -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_a_field_cannot_be_is_said_beside_it_and_nothing_is_computed(open_page, lang):
    page = open_page(f"?lang={lang}")
    page.says("operate", t("app.operate", lang))
    page.after(lambda: page.pill("presets", "hot"))
    page.open("fine")
    old, verdict = page.stamp(), page.text("verdict")
    for typed, shown in BAD:
        page.field("temperature-t").fill(typed)
        page.said_beside("temperature-t", shown)
        page.said_beside("temperature-t", {"en": "from 0.0001 to 10000", "zh": "0.0001 到 10000"}[lang])
        assert page.field("temperature-t").get_attribute("aria-invalid") == "true"
    page.operate()
    page.said_beside("problem-plan", "'NaN'")
    assert (page.stamp(), page.text("verdict")) == (old, verdict)
    page.field("temperature-t").fill("99")
    page.after(page.operate)
    page.says("verdict", "99")
    assert page.page.locator(".problem [role=alert]").count() == 0
    assert page.field("temperature-t").input_value() == "99"


def test_every_value_that_an_operation_takes_can_be_entered_beyond_the_slider(open_page):
    page = open_page()
    page.after(lambda: page.pill("presets", "dropout"))
    page.open("fine")
    page.field("score_dropout-seed").fill("500")
    page.plan_says("500")
    page.after(page.operate)
    page.says("verdict", "seed = 500")
    assert page.field("score_dropout-seed").input_value() == "500"
    page.field("score_dropout-p").fill("1.5")
    page.said_beside("score_dropout-p", "from 0 to 1")


def test_a_slider_fills_the_field_and_temperature_runs_through_powers_of_ten(open_page):
    page = open_page()
    page.after(lambda: page.pill("presets", "hot"))
    page.open("fine")
    slider = page.page.locator("#temperature-t input[type=range]")
    assert [slider.get_attribute(end) for end in ("min", "max")] == ["-1", "1"]
    slider.fill("0.5")
    slider.dispatch_event("change")
    assert page.field("temperature-t").input_value() == "3.16"
    page.plan_says("3.16")
    page.field("temperature-t").fill("0.1")
    assert float(slider.input_value()) == -1


@pytest.mark.parametrize(
    "operation, field, text, shown",
    [
        ("block_tokens", "block_tokens-positions", "1, 3", "1, 3"),
        ("causal_mask", "where", "L0-1.H2,4", "L0-1.H2,4"),
        ("custom_mask", "custom_mask-rows", "\n".join(["1011111"] * 7), "1011111"),
    ],
)
def test_a_paste_reaches_the_plan(open_page, operation, field, text, shown):
    page = open_page()
    page.open("fine")
    page.choose(operation)
    page.paste(field, text)
    page.plan_says(shown)
    page.after(page.operate)
    page.tab("receipt")
    page.says("panel-receipt", shown)


def test_the_grid_keeps_its_choice_when_it_takes_the_focus_from_the_text(open_page):
    page = open_page()
    page.after(lambda: page.pill("presets", "causal"))
    page.open("fine")
    page.paste("where", "L0.H0")
    page.page.wait_for_selector(".hg[data-chosen='1']")
    page.page.locator(".hg [role=gridcell]").nth(2).click()
    page.page.wait_for_function("document.querySelector('#where input').value === 'L0.H0,2'")
    page.page.locator("#text textarea").click()
    page.plan_says("L0.H0,2")


def test_a_mask_of_ones_own_fits_the_text_shows_a_picture_and_complains_at_once(open_page):
    page = open_page("?lang=zh")
    page.says("operate", t("app.operate", "zh"))
    page.open("fine")
    page.choose("custom_mask", "zh")
    rows = page.field("custom_mask-rows").input_value().split("\n")
    assert rows == ["1" * 7] * 7
    page.after(page.operate)
    page.paste("custom_mask-rows", "\n".join(["1" * 7] * 6 + ["0111111"]))
    preview = page.page.locator("#custom_mask-rows canvas")
    assert "7 × 7" in preview.get_attribute("aria-label")
    colours = """(canvas) => { const at = (x, y) => [...canvas.getContext('2d').getImageData(
        (x + .4) * canvas.width / 7, (y + .4) * canvas.height / 7, 1, 1).data].join();
        return [at(0, 6) !== at(1, 6), at(0, 5) === at(1, 6), at(6, 0) === at(1, 6)]; }"""
    assert preview.evaluate(colours) == [True, True, True]
    page.paste("custom_mask-rows", "11\n11")
    page.said_beside("custom_mask-rows", "7 × 7")
    page.paste("custom_mask-rows", "11\n1")
    page.said_beside("custom_mask-rows", "方阵")
    assert preview.is_hidden()


def test_what_acts_on_the_whole_model_has_no_place_to_choose(open_page):
    page = open_page()
    page.after(lambda: page.pill("presets", "causal"))
    page.open("fine")
    page.paste("where", "L0")
    page.plan_says("L0")
    page.choose("remove_positions")
    assert page.field("where").get_attribute("readonly") is not None
    assert page.field("where").input_value() == "L*"
    page.says("grid", "whole model")


def test_positions_on_a_part_are_refused_before_they_run(open_page):
    steps = [{"operation": "remove_positions", "at": "L0", "on": True}]
    page = open_page(f"?s={pack({'version': 1, 'text': FIRST, 'steps': steps})}")
    page.open("fine")
    page.said_beside("where", "whole model")
    page.field("where").fill("L*")
    page.page.wait_for_function("!document.querySelector('#where [role=alert]')")
    page.after(page.operate)


@pytest.mark.parametrize("example", [None, "agree"], ids=["at once", "after an example"])
def test_fields_and_grid_are_whole_when_they_are_opened_first(open_page, example):
    page = open_page()
    if example:
        page.after(lambda: page.pill("examples", example))
    page.open("fine")
    page.page.wait_for_selector(".fd #where")
    assert page.field("where").input_value() == "L*"
    page.says("grid", "whole model")
    page.says("grid", "All")
    assert "corner" not in page.text("grid")


def test_fields_and_grid_are_whole_after_something_was_refused(open_page):
    page = open_page()
    page.write("text", " ")
    page.operate()
    page.said_beside("problem-text", "empty")
    page.pill("presets", "hot")
    box = page.page.locator("#model input")
    box.fill("/no/such/model")
    box.press("Enter")
    page.said_beside("problem-model", "/no/such/model")
    page.open("fine")
    page.page.wait_for_selector(".fd #temperature-t")
    assert "corner" not in page.text("grid")


# --- padding ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lang, said", [("en", "0 (no padding) or a whole number"), ("zh", "0（不填充）")], ids=["en", "zh"]
)
def test_padding_is_refused_beside_its_field_in_the_readers_language(open_page, lang, said):
    page = open_page(f"?lang={lang}")
    page.says("operate", t("app.operate", lang))
    page.open("more")
    old = page.stamp()
    for typed in ("5000", "-3", "7.5", ""):
        page.write("pad_to", typed)
        page.said_beside("problem-pad", said)
        page.said_beside("problem-pad", typed)
        page.operate()
        page.page.wait_for_function("!document.querySelector('#main').dataset.operating")
        page.said_beside("problem-pad", said)
    assert page.stamp() == old
    assert page.page.locator("[data-testid=toast-body]").count() == 0
    page.write("pad_to", "9")
    page.page.wait_for_selector("#problem-pad [role=alert]", state="detached")
    page.after(page.operate)
    page.page.locator("#maps summary").last.click()
    page.page.locator("#maps table").filter(has_text="[PAD]").wait_for()


# --- links, history ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": [{"operation": "temperature", "on": True}]},
        {"steps": [{"operation": "temperature", "t": [], "at": "L*", "on": True}]},
        {"view": {"layer": "x", "head": [1]}},
    ],
)
def test_a_malformed_link_is_said_and_the_page_works(open_page, wrong):
    page = open_page(f"?lang=zh&s={pack({'version': 1, 'text': FIRST} | wrong)}")
    page.said_beside("problem-plan", "无法读取该链接")
    page.after(lambda: page.pill("presets", "hot"))
    page.open("fine")
    page.field("temperature-t").fill("7")
    page.plan_says("7")


def test_switching_heads_leaves_no_trail_and_back_goes_to_the_result_before(open_page):
    page = open_page()
    page.after(lambda: page.pill("presets", "hot"))
    page.page.wait_for_function("location.search.includes('s=')")
    entries, address = page.page.evaluate("history.length"), page.page.url
    for _ in range(3):
        page.page.locator("#maps [data-control=head]").select_option(index=4)
        page.page.wait_for_function("old => location.href !== old", arg=address)
        address = page.page.url
        page.page.locator("#maps [data-control=head]").select_option(index=2)
        page.page.wait_for_function("old => location.href !== old", arg=address)
        address = page.page.url
    assert page.page.evaluate("history.length") == entries
    page.after(lambda: page.pill("presets", "causal"))
    page.page.wait_for_function("old => location.href !== old", arg=address)
    assert page.page.evaluate("history.length") == entries + 1
    page.page.go_back()
    page.says("verdict", "temperature")


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("clipboard", ["there", "missing"])
def test_copying_the_link_is_confirmed_with_and_without_a_clipboard(open_page, lang, clipboard):
    page = open_page(f"?lang={lang}", permissions=["clipboard-read", "clipboard-write"])
    page.says("operate", t("app.operate", lang))
    if clipboard == "missing":  # as on plain http
        page.page.evaluate(
            "Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true })"
        )
    page.after(lambda: page.pill("presets", "hot"))
    page.page.wait_for_function("location.search.includes('s=')")
    page.tab("share", lang)
    page.page.locator("#copy-link").click()
    page.page.locator("#copied [role=status]").filter(has_text=t("app.link_copied", lang)).wait_for()
    if clipboard == "there":
        assert page.page.evaluate("navigator.clipboard.readText()") == page.page.url
    else:
        page.page.locator("#text textarea").focus()
        page.page.keyboard.press("Control+a")
        page.page.keyboard.press("Control+v")
        assert page.page.locator("#text textarea").input_value() == page.page.url


# --- what is shown and what is set ------------------------------------------------------------------------


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_result_of_other_settings_says_so(open_page, lang):
    page = open_page(f"?lang={lang}")
    page.says("operate", t("app.operate", lang))
    assert page.page.locator("#stale .badge").count() == 0
    page.write("text", "another text")
    page.stale()
    assert t("app.stale", lang) in page.text("stale")
    page.write("text", FIRST)
    page.fresh()
    page.write("text", "another text")
    page.stale()
    page.after(page.operate)
    page.fresh()
    page.open("fine")
    page.choose("temperature", lang)
    page.stale()
    assert page.page.locator("#presets input:checked").count() == 0  # the plan is no preset any more
    assert not page.page.locator("#badge").is_visible()
    page.after(page.operate)
    page.fresh()
    page.open("more")
    page.page.locator("#literal input").click()
    page.stale()
    page.pill("lang", {"en": "zh", "zh": "en"}[lang])
    page.says("stale", t("app.stale", {"en": "zh", "zh": "en"}[lang]))


def test_an_empty_plan_says_so_and_only_an_operation_fills_it(open_page):
    page = open_page()
    page.open("fine")
    page.page.locator("#plan [data-action*='remove']").click()
    page.says("summary", "The plan is empty")
    assert page.page.locator("#operation input").input_value() == ""
    assert page.page.locator("#where").count() == 0
    page.says("grid", "The plan is empty")
    page.page.locator(".hg [role=gridcell]").nth(3).click(force=True)
    page.after(page.operate)
    page.says("verdict", "Nothing was operated on")
    page.choose("temperature")
    page.plan_says("temperature")
    page.page.locator("#plan [data-action*='remove']").click()
    page.says("summary", "The plan is empty")
    page.page.locator("#add").click()
    page.plan_says("temperature")
    page.after(lambda: page.pill("presets", "causal"))
    page.pill("presets", "none")
    page.says("summary", "The plan is empty")
    page.says("verdict", "Nothing was operated on")


def test_a_refused_model_leaves_the_last_good_one_in_place(open_page):
    page = open_page("?lang=zh")
    page.says("operate", t("app.operate", "zh"))
    box = page.page.locator("#model input")
    box.fill("/no/such/model")
    box.press("Enter")
    page.said_beside("problem-model", "/no/such/model")
    page.page.wait_for_function("document.querySelector('#model input').value === 'minilm'")
    page.said_beside("problem-model", "/no/such/model")
    page.after(lambda: page.pill("presets", "hot"))
    assert page.page.locator("#problem-model [role=alert]").count() == 0


# --- a phone ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_on_a_phone_the_presets_come_within_a_screen_and_a_half(open_page, lang):
    page = open_page(f"?lang={lang}", viewport=PHONE)
    page.says("operate", t("app.operate", lang))
    order = ["title", "lang", "verdict", "presets", "text", "operate", "fine", "maps", "tabs", "more"]
    tops = [
        page.page.locator(f"#{name}").evaluate("node => node.getBoundingClientRect().top + scrollY")
        for name in order
    ]
    assert tops == sorted(tops)
    assert tops[order.index("operate")] < 1.5 * PHONE["height"]
    page.after(lambda: page.pill("presets", "hot"))


def test_on_a_desk_the_controls_stand_beside_the_result(open_page):
    page = open_page()
    box = {
        name: page.page.locator(f"#{name}").bounding_box() for name in ("ask", "result", "text", "operate")
    }
    assert box["ask"]["x"] + box["ask"]["width"] <= box["result"]["x"]
    assert abs(box["ask"]["y"] - box["result"]["y"]) < 4
    assert box["text"]["y"] < box["operate"]["y"] < 900


# --- long work --------------------------------------------------------------------------------------------


class Slow:
    """The app in this process, whose runs wait until they are let go."""

    def __init__(self, url):
        self.url, self.gate, self.demo = url, threading.Event(), None
        self.gate.set()


@pytest.fixture(scope="module")
def slow():
    real, held = operating.operate, Slow("")

    def wait(pool, setting):
        assert held.gate.wait(60)
        return real(pool, setting)

    patch = pytest.MonkeyPatch()
    patch.setattr(operating, "operate", wait)
    pool = Pool()
    with untidy():
        demo = build(pool)
        pool.warm()
        _, held.url, _ = launch(demo, server_name="127.0.0.1", prevent_thread_lock=True, quiet=True)
    held.demo = demo
    yield held
    held.gate.set()
    with untidy():
        demo.close(verbose=False)
    patch.undo()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_run_says_so_from_the_click_on_and_can_be_cancelled(visit, slow, lang):
    page = Careful(visit(f"{slow.url}?lang={lang}")).ready()
    page.says("operate", t("app.operate", lang))
    running = page.page.locator("#running")
    assert not running.is_visible()
    old, verdict = page.stamp(), page.text("verdict")
    slow.gate.clear()
    page.pill("presets", "hot")
    running.wait_for(state="visible", timeout=1000)
    assert t("app.running", lang) in running.inner_text()
    page.page.wait_for_function("/[1-9]/.test(document.querySelector('#running .badge').dataset.progress)")
    page.page.get_by_role("button", name=t("app.cancel", lang), exact=True).first.click()
    running.wait_for(state="hidden")
    page.page.wait_for_function("document.querySelector('#presets input[value=positions]').checked")
    slow.gate.set()
    page.after(lambda: page.pill("presets", "causal"))  # the session goes on; what was cancelled never comes
    running.wait_for(state="hidden")
    assert page.stamp() != old
    assert page.text("verdict") != verdict
    assert "4" not in page.text("verdict").split("：")[0].split(":")[0]


def test_what_waits_says_its_place_in_the_queue(visit, slow):
    pages = [Careful(visit(f"{slow.url}?lang=zh")).ready() for _ in range(3)]
    slow.gate.clear()
    for page in pages:
        page.says("operate", t("app.operate", "zh"))
        page.pill("presets", "hot")
        page.page.wait_for_timeout(300)
    pages[2].page.wait_for_function(
        "w => document.querySelector('#running .badge').dataset.progress.includes(w + ' ')",
        arg=t("app.queue", "zh"),
    )
    slow.gate.set()
    for page in pages:
        page.page.locator("#running").wait_for(state="hidden")
        page.says("verdict", "4")


def test_a_late_end_of_a_run_does_not_undo_what_was_edited_meanwhile(visit, slow):
    page = Careful(visit(slow.url)).ready()
    page.after(lambda: page.pill("presets", "hot"))
    page.open("fine")
    slow.gate.clear()
    page.operate()
    page.field("temperature-t").fill("5")
    page.plan_says("5")
    page.write("text", "changed meanwhile")
    slow.gate.set()
    page.page.locator("#running").wait_for(state="hidden")
    page.stale()
    assert page.field("temperature-t").input_value() == "5"
    page.plan_says("5")
    page.after(page.operate)
    page.says("verdict", "5")


def test_a_visitors_files_are_replaced_and_go_when_the_visitor_goes(visit, slow):
    page = Careful(visit(slow.url)).ready()
    page.tab("share")
    page.page.locator("#make-files").click()
    page.page.wait_for_selector("#files a[download]")
    link = page.page.locator("#files a[download='comparison.json']").first.get_attribute("href")
    assert page.page.request.get(link).json()["text"] == FIRST
    page.after(lambda: page.pill("presets", "hot"))
    page.page.locator("#make-files").click()
    page.page.wait_for_function(
        "old => document.querySelector('#files a[download]').href.split('/').at(-2) !== old",
        arg=link.split("/")[-2],
    )
    new = page.page.locator("#files a[download='comparison.json']").first.get_attribute("href")
    assert page.page.request.get(link).status in (403, 404)
    assert page.page.request.get(new).json()["plan"]["operations"]
    folder = Path("/" + new.partition("file=/")[2]).parent
    assert folder.is_dir()
    page.page.goto("about:blank")
    for _ in range(400):
        if not folder.exists():
            break
        time.sleep(0.05)
    assert not folder.exists()


def test_the_server_remembers_a_bounded_number_of_results_for_a_bounded_time(slow):
    assert slow.demo.state_session_capacity <= 100
    states = [block for block in slow.demo.blocks.values() if type(block).__name__ == "State"]
    kept = [state for state in states if state.value is None]  # those that hold a result
    assert len(kept) >= 2
    bounded = [state for state in kept if state.time_to_live <= 3600]
    assert len(bounded) == len(kept)
