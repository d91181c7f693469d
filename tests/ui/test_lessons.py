"""The Workshop page: what learners' browsers may hold, what a class's counts say, and a newcomer's way through it."""

import json
import os
import re
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

import workshop
from models import load
from tests.ui.conftest import PHONE
from tests.ui.test_page import Page
from ui import lessons, panels, presets
from ui.lesson_events import LessonEvents
from ui.lessons import Classroom, Done, LessonError, Progress
from ui.texts import t

FIRST = workshop.EXERCISES[0]
HIDE = {"operation": "hide_self", "at": "L*"}
LONG = {"operation": "block_tokens", "positions": list(range(2000)), "at": "L*"}
NO_PLANS = (
    "temperature", [], {}, {"version": 1, "operations": 3}, {"version": 1, "operations": [7]},
    {"version": 1, "operations": [{"operation": "no such"}]}, {"version": 1, "operations": [{**HIDE, "at": "<b>"}]},
    {"version": 1, "operations": [HIDE] * 9}, {"version": 1, "operations": [LONG]},
)  # fmt: skip
RIGHT, OTHERS = "same", ("farther", "closer")


# --- progress ---------------------------------------------------------------------------------------------------


def test_progress_comes_back_as_it_was_kept():
    progress = Progress()
    lessons.commit(progress, FIRST, RIGHT, 0.9)
    progress.of(FIRST).tries, progress.of(FIRST).passed = 3, True
    progress.of(FIRST).plan = FIRST.solution.to_dict()
    assert Progress.read(json.loads(json.dumps(progress.to_dict()))) == progress


@pytest.mark.parametrize(
    "stored",
    [None, 7, "x", [], {"nonsense": {}}, {FIRST.name: 5}, {FIRST.name: {"choice": ["same"], "number": "1", "tries": -1, "passed": 1}},
     {FIRST.name: {"number": float("nan"), "tries": True}}, {FIRST.name: {"number": 1e308, "tries": 10**12}},
     *({FIRST.name: {"plan": plan}} for plan in NO_PLANS)],
)  # fmt: skip
def test_what_makes_no_sense_in_a_browser_is_as_good_as_nothing(stored):
    assert Progress.read(stored).of(FIRST) == Done()


def test_the_plan_that_passed_is_kept_and_what_it_showed_can_be_told_again():
    patient, done = load("minilm"), Done(RIGHT, 0.5)
    wrong, right = presets.PRESETS["hot"][1], FIRST.solution
    for plan, kept, passed in ((wrong, wrong, False), (right, right, True), (wrong, right, True)):
        done.tried(workshop.check(FIRST, plan, patient))
        assert (done.plan, done.passed) == (kept.to_dict(), passed)
    shown = panels.kept(1, done, "en")
    assert "Passed" in shown and "Tries: 3." in shown and right.describe() in shown and "again" in shown
    assert "还没有" in panels.kept(1, Done(RIGHT, 0.5, 1), "zh") and "again" not in panels.kept(
        1, Done(tries=1), "en"
    )
    assert panels.kept(1, Done(RIGHT, 0.5), "en") == ""


def test_a_plan_too_long_to_keep_is_not_kept(monkeypatch):
    report, done = workshop.check(FIRST, FIRST.solution, load("minilm")), Done(RIGHT, 0.5)
    monkeypatch.setattr(lessons, "MOST_OF_A_PLAN", 20)
    done.tried(report)
    assert (done.plan, done.tries, done.passed) == (None, 1, True)
    shown = panels.kept(1, done, "en")
    assert "Passed" in shown and "Tries: 1." in shown and "again" not in shown


def test_the_button_names_the_plan_that_it_loads():
    patient, done = load("minilm"), Done(RIGHT, 0.5)
    for plan, loaded in ((FIRST.solution, FIRST.further_plan), (FIRST.further_plan, FIRST.solution)):
        report = workshop.check(FIRST, plan, patient)
        for lang, words in (("en", "Load below: "), ("zh", "在下方载入：")):
            assert words + loaded.describe(lang) in panels.graded(report, done, lang)


@pytest.mark.parametrize(("number", "lang"), [(n, lang) for n in (2, 3, 14) for lang in ("en", "zh")])
def test_an_exercise_about_a_pair_is_opened_with_one(number, lang):
    one, setting = workshop.exercise(number), LessonEvents.setting(None, number, lang)
    assert (setting.text, setting.other) == one.texts[lang] and setting.model == one.model(lang)
    assert setting.text in lessons.brought()


def test_a_prediction_is_complete_and_is_made_once():
    progress = Progress()
    for choice, number, said in (
        (None, 0.5, "Choose"),
        ("vibes", 0.5, "Choose"),
        (RIGHT, None, "0 to 1"),
        (RIGHT, 7, "0 to 1"),
    ):
        with pytest.raises(LessonError, match=said):
            lessons.commit(progress, FIRST, choice, number)
    assert progress.of(FIRST) == Done()
    assert lessons.commit(progress, FIRST, RIGHT, 0.5) == Done(RIGHT, 0.5)
    assert lessons.commit(progress, FIRST, OTHERS[0], 0.9) == Done(RIGHT, 0.5)


# --- the class --------------------------------------------------------------------------------------------------


def test_a_class_is_counted_once_each_and_without_names():
    room = Classroom()
    for visitor, choice, number in (
        ("a", RIGHT, 0.9),
        ("b", OTHERS[1], 0.2),
        ("c", OTHERS[1], 0.4),
        ("c", RIGHT, 1.0),
    ):
        room.predicted(visitor, FIRST, Done(choice, number))
    report = workshop.check(FIRST, FIRST.solution, load("minilm"))
    room.graded("b", report)
    room.graded("b", report)
    room.graded("never predicted", report)
    (counted,) = room.counts()
    assert counted.votes == {RIGHT: 1, OTHERS[1]: 2}
    assert (counted.median, counted.span, counted.passed) == (0.4, (0.2, 0.9), 1)
    shown = panels.classroom(room, "en")
    assert "3 predicted, 1 passed" in shown and "2 (67 %)" in shown and "0 (0 %)" in shown
    assert "还没有" in panels.classroom(Classroom(), "zh")


def test_a_class_is_bounded(monkeypatch):
    monkeypatch.setattr(lessons, "LEARNERS", 1)
    room = Classroom()
    for visitor in range(100):
        room.predicted(str(visitor), FIRST, Done(RIGHT, 0.5))
    assert sum(room.counts()[0].votes.values()) == len(workshop.EXERCISES)


# --- the page -----------------------------------------------------------------------------------------------------


class Lesson(Page):
    """What a learner does."""

    def predict(self, number=None):
        self.page.wait_for_selector("#choice label")
        self.page.locator("#choice label").first.click()
        if number is not None:
            self.page.locator("#number input").first.fill(str(number))
        self.page.locator("#commit").click()
        self.page.wait_for_selector("#check", state="visible")

    def cut(self, preset):
        self.after(lambda: self.pill("presets", preset))

    def check(self):
        self.page.locator("#check").click()
        self.page.wait_for_selector("#main:not([data-operating])")
        self.page.wait_for_selector("#graded [data-passed]")
        return self.page.locator("#graded [data-passed]").get_attribute("data-passed") == "true"

    def is_open(self, number, lang):
        title = workshop.EXERCISES[number - 1].title.say(lang)
        self.says("lesson", f"{number}. {title}")
        self.page.wait_for_selector("#main:not([data-operating])")
        return self


@pytest.fixture
def learn(visit, app_url):
    return lambda path="", **options: Lesson(visit(app_url + path, **options))


PATH = ((1, "hot", "positions"), (5, "hot", "scale"), (9, "uniform", "causal"))


@pytest.mark.browser
@pytest.mark.parametrize(("lang", "options"), [("en", {}), ("zh", {"viewport": PHONE, "scheme": "dark"})])
def test_a_newcomers_way_through_three_exercises(learn, lang, options):
    page = learn(f"?lang={lang}", **options).ready()
    page.says("operate", t("app.operate", lang))
    page.pill("mode", "workshop")
    page.is_open(1, lang)
    for number, wrong, right in PATH:
        one = workshop.EXERCISES[number - 1]
        if number > 1:
            page.page.locator("#lessons button").nth(number - 1).click()
        page.is_open(number, lang)
        assert not page.page.locator("#check").is_visible()  # a prediction comes first
        ask = one.prediction.number
        page.predict(None if ask is None else ask.high)
        page.cut(wrong)
        assert not page.check()
        patient = load(one.model(lang))
        wanted = workshop.check(one, presets.PRESETS[wrong][1], patient, lang)
        page.says("graded", wanted.words.say(lang)[:40])
        page.cut(right)
        assert page.check()
        wanted = workshop.check(one, presets.PRESETS[right][1], patient, lang)
        page.says("graded", wanted.words.say(lang)[:40])
        for _, before, after in one.table(wanted.evidence, lang):
            page.says("graded", before)
            page.says("graded", after)
    page.says("lessons", "3")
    link = page.page.locator("#lessons a[download]").get_attribute("href")
    kept = json.loads(urllib.parse.unquote(link.split(",", 1)[1]))
    assert {name for name, done in kept.items() if done["passed"]} == {
        workshop.EXERCISES[n - 1].name for n, *_ in PATH
    }
    assert all(kept[workshop.EXERCISES[n - 1].name]["tries"] == 2 for n, *_ in PATH)
    page.page.reload()  # what was done is still there, and so is the exercise that was open
    page.is_open(9, lang)
    assert page.page.locator("#lessons [data-state='passed']").count() == 3
    assert not page.page.locator("#commit").is_visible()
    page.says("graded", t("lesson.passed", lang))
    page.says("graded", t("lesson.tries", lang, n=2))
    page.page.locator("#graded [data-kept] button").first.click()  # its result is shown again
    page.page.wait_for_selector("#graded [data-passed='true']")
    for _, before, after in one.table(wanted.evidence, lang):
        page.says("graded", before)
        page.says("graded", after)
    page.says("verdict", presets.PRESETS["causal"][1].describe(lang)[:4])
    page.page.locator("#lessons button").nth(2).click()
    page.is_open(3, lang)
    assert page.page.locator("#text textarea").input_value() == workshop.EXERCISES[2].texts[lang][0]


@pytest.mark.browser
def test_a_step_further_is_loaded_and_the_language_changes_all_of_it(learn):
    page = learn("?workshop=1").ready()
    page.is_open(1, "en")
    page.predict(0.9)
    page.cut("positions")
    assert page.check()
    page.pill("lang", "zh")
    page.is_open(1, "zh")
    page.says("graded", "通过")
    page.after(lambda: page.page.locator("#graded button").first.click())
    page.says("verdict", presets.PRESETS["positions"][0].zh and FIRST.further_plan.describe("zh"))
    page.page.locator("#graded button").last.click()
    page.is_open(2, "zh")
    assert "workshop=2" in page.page.url
    page.pill("mode", "playground")
    page.page.wait_for_selector("#workshop", state="hidden")
    page.page.wait_for_function("!location.search.includes('workshop')")


@pytest.fixture(scope="module")
def taught():
    """(address, the teacher's address) of a server that counts."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-u", "app.py", "--port", "7946", "--teacher"]
    process = subprocess.Popen(
        command, cwd=root, stdout=subprocess.PIPE, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"}
    )
    url = "http://127.0.0.1:7946/"
    try:
        key = re.search(r"teacher=(\S+)", process.stdout.readline())[1]
        for _ in range(240):
            with suppress(OSError), urllib.request.urlopen(url, timeout=2):
                break
            time.sleep(0.25)
        yield url, f"{url}?teacher={key}"
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


@pytest.mark.browser
def test_a_teacher_sees_the_counts_and_learners_do_not(visit, taught):
    url, teacher = taught
    room = visit(teacher).page
    room.wait_for_selector("#classroom h2")
    assert "Nobody" in room.locator("#classroom").inner_text()
    learner = Lesson(visit(url + "?workshop=1")).ready()
    learner.is_open(1, "en").predict(0.5)
    room.wait_for_selector("#classroom:has-text('1 predicted, 0 passed')", timeout=20_000)
    for path in (url + "?workshop=1", url + "?teacher=guess"):
        assert Lesson(visit(path)).ready().page.locator("#classroom h2").count() == 0
