"""Whatever a visitor or a file is called, it is text: no element, no dialog, in tokens, labels, tables, tooltips, titles, reports and names of files."""

import html
import json
import re

import pytest

from surgery.plan import pack
from tests.ui.test_page import Page
from ui.texts import t

pytestmark = pytest.mark.browser

SCRIPT = "<script>window.hit = 1; alert(1)</script>"
HOSTILE = {
    "script": SCRIPT,
    "image": '<img src=x onerror="window.hit=1;alert(1)">',
    "svg": "<svg onload=alert(1)><a xlink:href=javascript:alert(1)>x</a></svg>",
    "frame": "<iframe srcdoc='<script>parent.hit=1</script>'></iframe>",
    "quote": "\"><b class='hit'>x</b>' onmouseover=alert(1) x=`${alert(1)}`",
    "markdown": "**bold** _it_ ~~gone~~ [x](javascript:alert(1)) ![x](y) | a | b | `c` # h",
    "entity": "&lt;img src=x onerror=alert(1)&gt; &#60;b&#62;",
    "mathematics": "$$\\frac{1}{2}$$ $5$ \\href{javascript:alert(1)}{x}",
    "right to left": "שלום \u202e evil \u2066 x \u200f",
    "control": "a\x00b\x07c\x1b[31md\u2028e\ufefff",
    "template": "{{7*7}} {% raw %} ${7*7} <%= 7*7 %> {t} %s",
}
ELEMENTS = "script, iframe, object, embed, .hit, img[src='x'], img[src='y'], a[href^='javascript'], svg[onload], [onerror], [onload], [onmouseover]"
TABS = ("outputs", "heads", "layers", "receipt", "pipeline", "code")


class Watched(Page):
    """A page on which no dialog may open and no element may come from a text."""

    def __init__(self, visit):
        self.dialogs = []
        visit.page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        super().__init__(visit)
        self.ready()
        self.before = self.elements()

    def elements(self):
        return self.page.locator("#main, #top").locator(ELEMENTS).count()

    def harmless(self):
        assert self.page.evaluate("window.hit") is None
        assert self.dialogs == []
        assert self.elements() == self.before
        assert self.page.locator("#main .hit").count() == 0


@pytest.fixture
def open_page(visit, app_url):
    return lambda path="": Watched(visit(app_url + path))


def test_a_text_of_markup_stays_text_on_every_panel(open_page):
    page = open_page()
    page.open("more")
    page.page.locator("#maps summary").last.click()
    for text in HOSTILE.values():
        page.write("text", text)
        page.write("other", text[::-1])
        page.after(page.operate)
        page.page.locator("#maps canvas").first.hover(position={"x": 80, "y": 80})
        for name in TABS:
            page.tab(name)
            page.harmless()
        code = page.page.evaluate("document.querySelector('#panel-code').textContent")
        assert all(word in code for word in re.findall("[a-z]{4,}", text))


def test_a_link_of_markup_stays_text(open_page):
    step = {"operation": "block_tokens", "positions": [1], "at": "L*", "on": True}
    for text in (HOSTILE["image"], HOSTILE["quote"]):
        page = open_page(f"?s={pack({'version': 1, 'text': text, 'other': text, 'steps': [step]})}")
        page.page.wait_for_function(
            "wanted => document.querySelector('#text textarea').value === wanted", arg=text
        )
        page.harmless()
    wrong = {"operation": HOSTILE["image"], "at": HOSTILE["script"], "on": True}
    page = open_page(f"?s={pack({'version': 1, 'text': 'x', 'steps': [wrong]})}")
    page.page.locator("#problem-plan [role=alert]").filter(has_text="onerror").wait_for()
    page.harmless()


def test_names_and_errors_of_markup_stay_text(open_page):
    page = open_page()
    box = page.page.locator("#model input")
    box.fill(HOSTILE["image"])
    box.press("Enter")
    page.page.locator("#problem-model [role=alert]").filter(has_text="<img src=x").wait_for()
    page.harmless()
    page.after(lambda: page.pill("presets", "hot"))
    page.open("fine")
    for field, typed in (("temperature-t", HOSTILE["image"]), ("where", SCRIPT)):
        page.page.locator(f"#{field} input[type=text]").first.fill(typed)
        page.page.locator(f"#{field} [role=alert]").filter(has_text="<").wait_for()
        page.harmless()


def test_a_toast_of_markup_stays_text(open_page):
    """What the server refuses outside of any field is said in a toast, which takes HTML."""
    page = open_page()
    said = page.page.evaluate(
        """async () => {
            const answer = await fetch('/gradio_api/call/v2/operate', {method: 'POST', headers: {'content-type': 'application/json'},
                body: JSON.stringify({text: 'x', lang: '<img src=x onerror=alert(1)>'})});
            const id = (await answer.json()).event_id;
            return await (await fetch('/gradio_api/call/operate/' + id)).text();
        }"""
    )
    assert "event: error" in said
    page.harmless()


def test_a_sweep_and_its_file_of_markup_stay_text(open_page, tmp_path):
    page = open_page()
    page.tab("sweep")
    path = tmp_path / "<img src=x onerror=alert(1)>.txt"
    path.write_text(f"{HOSTILE['image']}\n{SCRIPT}\n")
    with page.page.expect_file_chooser() as chooser:
        page.page.locator("#sweep-file").click()
    chooser.value.set_files(path)
    page.page.wait_for_function("document.querySelector('#sweep-texts textarea').value.includes('onerror')")
    page.pill("sweep-kind", "temperatures")
    page.page.locator("#sweep-run").click()
    page.page.wait_for_selector("#panel-sweep table, #panel-sweep svg", timeout=60_000)
    page.harmless()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_report_and_the_files_hold_markup_as_text(open_page, browser, tmp_path, lang):
    text = f"{SCRIPT} {HOSTILE['image']}"
    page = open_page(f"?lang={lang}")
    page.says("operate", t("app.operate", lang))
    page.write("text", text)
    page.after(page.operate)
    page.tab("share", lang)
    page.page.locator("#make-files").click()
    page.page.wait_for_selector("#files a[download]")
    page.harmless()
    links = {
        a.get_attribute("download"): a.get_attribute("href") for a in page.page.locator("#files a").all()
    }
    assert all(re.fullmatch(r"[\w.-]+", name) for name in links)
    report = page.page.request.get(links["report.html"]).text()
    assert html.escape(SCRIPT, quote=False) in report and SCRIPT not in report
    assert json.loads(page.page.request.get(links["comparison.json"]).text())["text"] == text
    picture = page.page.request.get(
        next(href for name, href in links.items() if name.endswith(".svg"))
    ).text()
    assert "<script" not in picture and "onerror=" not in picture.replace("&quot;", "")
    (tmp_path / "report.html").write_text(report, encoding="utf-8")
    context = browser.new_context()
    alone, dialogs = context.new_page(), []
    alone.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    alone.goto(f"file://{tmp_path / 'report.html'}")
    assert dialogs == [] and alone.evaluate("window.hit") is None
    assert alone.locator("script, iframe, img[src='x'], [onerror]").count() == 0
    assert SCRIPT in alone.locator("body").inner_text()
    context.close()
