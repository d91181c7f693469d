import re
from datetime import datetime

import pytest

import surgery as sg
from tests.ui.test_panels import HOSTILE, Page, with_hostile_labels
from ui.report import report

MADE = datetime(2030, 2, 3, 4, 5)


@pytest.fixture(scope="module")
def comparison(encoder):
    return sg.compare(encoder, "the [MASK] chased the cat", sg.Temperature(0.25).at("L1.H2"), pad_to=9)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_report_holds_everything_and_asks_for_nothing(comparison, lang):
    html = report(comparison, lang, pad_to=9, made=MADE)
    page = Page(html)
    assert page.of("script") == page.of("link") == page.of("button") == page.of("form") == []
    assert all(e[1]["src"].startswith("data:image/png;base64,") and e[1]["alt"] for e in page.of("img"))
    assert len(page.of("img")) == 2
    assert not re.search(r"https?:|url\(|@import", html)
    text = " ".join(page.of("main")[0][2].split())
    for part in (comparison.verdict(lang), "2030-02-03 04:05", "torch", "L1.H2", "pad_to=9", "--pad-to 9"):
        assert part in text
    assert comparison.text in text
    assert text.count("[PAD]") == 2
    assert page.of("html")[0][1]["lang"] == {"en": "en", "zh": "zh-CN"}[lang]


def test_no_english_is_left_on_the_chinese_report(comparison):
    titles = Page(report(comparison, "zh", made=MADE)).texts("h2") + Page(
        report(comparison, "zh", made=MADE)
    ).texts("h1")
    assert all(re.search("[一-鿿]", title) and not re.search("[A-Za-z]{3,}", title) for title in titles)


def test_tokens_are_text_in_the_report(comparison):
    html = report(with_hostile_labels(comparison), "en")
    page = Page(html)
    assert page.of("script") == []
    assert len(page.of("img")) == 2
    assert HOSTILE[0] in page.texts("bdi")


def test_without_attention_there_are_no_maps(encoder):
    html = report(sg.compare(encoder, ("a dog", "a cat"), capture=None), "en")
    assert Page(html).of("img") == []
    assert "None: both runs are the same." in html
    assert "a cat" in html


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1100, 390])
def test_the_report_opens_from_disk_without_a_request(browser, comparison, tmp_path, scheme, width):
    path = tmp_path / "report.html"
    path.write_text(report(comparison, "en"), encoding="utf-8")
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True, java_script_enabled=True
    )
    page = context.new_page()
    asked, errors = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: errors.append(message.text))
    page.goto(path.as_uri())
    assert asked == [path.as_uri()]
    assert errors == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.evaluate("[...document.images].every((image) => image.naturalWidth > 100)")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    context.close()
