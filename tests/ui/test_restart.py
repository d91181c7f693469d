"""A page that was open stays right when its server forgets everything: it woke from sleep, or had too many visitors."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import surgery as sg
from surgery.operation import REGISTRY
from surgery.plan import PlanError
from tests.ui.conftest import App
from tests.ui.test_lessons import Lesson
from tests.ui.test_page_care import Careful
from ui import steps

WIRING = """
import json
from ui.app import build
from ui.pool import Pool
config = build(Pool(device="cpu")).get_config_file()
print(json.dumps([[c["id"], c["type"]] for c in config["components"]]))
print(json.dumps([[d["id"], d["targets"], d["inputs"], d["outputs"]] for d in config["dependencies"]]))
"""


def test_every_process_wires_the_page_alike():
    """What a page sends and where it puts the answers goes by number and order, and another process may answer."""
    root = Path(__file__).parents[2]

    def wiring():
        done = subprocess.run([sys.executable, "-c", WIRING], cwd=root, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    first = wiring()
    assert len(json.loads(first.splitlines()[1])) > 50
    assert wiring() == first


@pytest.mark.parametrize("name", REGISTRY)
def test_every_operation_is_read_again(name):
    edited = [steps.new(name)]
    assert steps.from_text(steps.to_text(edited, 0)) == (edited, 0)


def test_the_steps_that_a_page_keeps_are_read_again():
    plan = sg.Plan(sg.Temperature(2.0).at("L1"), sg.CustomMask(("10", "11")), sg.BlockTokens((0, 3)))
    edited = steps.from_plan(plan)
    edited[0] |= {"t": "abc", "on": False}
    assert steps.from_text(steps.to_text(edited, 2)) == (json.loads(json.dumps(edited)), 2)
    assert steps.from_text(steps.to_text([], 0)) == ([], 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "[]",
        "{}",
        "[" * 100_000,
        '{"steps": [], "selected": 1}',
        '{"steps": [], "selected": true}',
        '{"steps": [1], "selected": 0}',
        '{"steps": [{"operation": "temperature", "at": "L*", "on": true}], "selected": 0}',
        '{"steps": [{"operation": "no_such", "at": "L*", "on": true}], "selected": 0}',
        '{"steps": [{"operation": "temperature", "t": {}, "at": "L*", "on": true}], "selected": 0}',
        '{"steps": [{"operation": "temperature", "t": ["1"], "at": "L*", "on": true}], "selected": 0}',
        '{"steps": [{"operation": "temperature", "t": true, "at": "L*", "on": true}], "selected": 0}',
        '{"steps": [{"operation": "temperature", "t": NaN, "at": "L*", "on": true}], "selected": 0}',
        '{"steps": [{"operation": "temperature", "t": 1'
        + "0" * 400
        + ', "at": "L*", "on": true}], "selected": 0}',
        '{"steps": [{"operation": "block_tokens", "positions": 4, "at": "L*", "on": true}], "selected": 0}',
        '{"steps": [{"operation": "custom_mask", "rows": [1], "at": "L*", "on": true}], "selected": 0}',
        '{"steps": [{"operation": "temperature", "t": 2, "at": 3, "on": true}], "selected": 0}',
        '{"steps": [{"operation": "temperature", "t": 2, "at": "L*", "on": true}], "selected": 5}',
        '{"steps": [{"operation": "temperature", "t": 2, "at": "L*", "on": true, "more": 1}], "selected": 0}',
    ],
)
def test_what_no_page_keeps_is_refused(text):
    with pytest.raises(PlanError, match="Reload the page"):
        steps.from_text(text)


def lost_it(opened):
    """The browser may complain that the server was away, of nothing else."""
    assert all("net::ERR" in error for error in opened.errors)
    opened.errors.clear()


@pytest.mark.browser
def test_the_plan_outlives_the_server(visit):
    app = App()
    with app:
        opened = visit(app.url)
        page = Careful(opened).ready()
        page.after(lambda: page.pill("presets", "hot"))
        page.open("fine")
        page.page.locator("#add button, button#add").first.click()
        page.choose("causal_mask")  # not operated yet
        page.stale()
    with app:
        page.paste("text", "the cat sat")
        page.after(page.operate)
        page.says("verdict", "temperature T = 4")
        page.says("verdict", sg.CausalMask.title.en)
        page.plan_says(sg.CausalMask.title.en)
    lost_it(opened)


@pytest.mark.browser
def test_the_exercise_outlives_the_server(visit):
    app = App()
    with app:
        opened = visit(f"{app.url}?workshop=5")
        learner = Lesson(opened).ready().is_open(5, "en")
    with app:
        learner.predict(2)
        learner.is_open(5, "en").cut("scale")
        assert learner.check()
        learner.is_open(5, "en")
    lost_it(opened)
