"""The Train page: a model learns while one watches, as it is or under the plan; one's run is not another's."""

import re

import pytest

from surgery import Plan, RemovePositions, Temperature
from tests.ui.test_page import Page
from ui import panels
from ui.texts import t
from ui.training import TASKS, TrainRequestError, replay, train


def last(*arguments):
    return [*train(*arguments)][-1]


@pytest.fixture(scope="module")
def learned():
    return last("agree", 0, 60, Plan())


def test_a_run_is_reported_from_its_first_step_to_its_last(learned):
    assert [step for step, _ in learned.losses] == list(range(1, 61))
    assert learned.losses[-1][1] < learned.losses[0][1] / 2
    assert learned.accuracies[-1][1] > 0.9 > learned.chance["agree"] == 0.5
    assert [step for step, _ in learned.captures] == list(range(61))


def test_without_positions_it_stays_at_what_order_blindness_allows():
    known = last("agree", 0, 60, Plan(RemovePositions()))
    assert known.accuracies[-1][1] <= 0.5


def test_the_same_seed_learns_the_same_and_runs_do_not_meet(learned):
    first, second = train("agree", 0, 60, Plan()), train("agree", 1, 8, Plan(Temperature(4.0)))
    for _ in range(8):
        mine, _ = next(first), next(second)
    assert mine.losses == learned.losses[:8]


def test_replay_shows_before_and_now(learned):
    value = replay(learned, 60)
    assert value["tokens"] == list(learned.tokens) and value["layers"] == 2
    assert replay(learned, 0)["largest"] == [[0.0] * 4] * 2
    assert max(map(max, value["divergence"])) <= 0.6932


@pytest.mark.parametrize(
    ("lang", "axes"),
    [
        ("en", ["training step", "loss (nats)", "training step", "share right (0 to 1)"]),
        ("zh", ["训练步", "损失（奈特）", "训练步", "正确率（0 到 1）"]),
    ],
)
def test_the_axes_of_the_curves_say_what_they_measure_and_in_what_unit(learned, lang, axes):
    html = panels.train(learned, lang)
    assert re.findall(r'<text class="pn-axis-name"[^>]*>(.*?)</text>', html) == axes
    for key in ("train.loss_help", "train.accuracy_help", "train.chance_help"):
        assert t(key, lang) in html


@pytest.mark.parametrize("task", TASKS)
def test_every_task_runs(task):
    assert replay(last(task, 0, 2, Plan()), 1)


@pytest.mark.parametrize(
    "task, seed, steps",
    [("chess", 0, 10), ("agree", -1, 10), ("agree", 0, 0), ("agree", 0, 1e9), ("agree", 0, None)],
)
def test_what_it_does_not_train_is_said(task, seed, steps):
    with pytest.raises(TrainRequestError) as error:
        next(train(task, seed, steps, Plan()))
    assert error.value.say("zh") != str(error.value)


@pytest.mark.browser
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_page_trains_stops_and_replays(visit, app_url, lang):
    page = Page(visit(f"{app_url}?lang={lang}")).ready()
    page.page.get_by_role("tab", name=t("tabs.train", lang), exact=True).click()
    page.page.locator("#train-steps input").fill("2000")
    page.page.locator("#train-run").click()
    page.page.wait_for_selector("#train-maps .av-has-result", timeout=60_000)
    page.page.locator("#train-stop").click()
    page.page.wait_for_timeout(500)
    stopped = page.text("panel-train")
    page.page.wait_for_timeout(2500)
    assert page.text("panel-train") == stopped
    assert t("train.progress", lang, step=2000, steps=2000) not in stopped
    drawn = page.page.get_attribute("#train-maps .av", "data-stamp")
    page.page.locator("#train-replay input[type=range]").focus()
    page.page.keyboard.press("Home")
    page.page.wait_for_function(
        "old => document.querySelector('#train-maps .av').dataset.stamp !== old", arg=drawn
    )
    page.page.locator("#train-steps input").fill("0")
    page.page.keyboard.press("Tab")
    page.page.wait_for_timeout(1000)  # a busy page takes the number over a moment later
    page.page.locator("#train-run").click()
    page.page.locator(".problem [role=alert]").filter(has_text="2000").wait_for(timeout=90_000)
