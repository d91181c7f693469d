"""`python -m workshop`: what it prints and how it ends."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

import workshop
from surgery import Plan, Temperature
from workshop.__main__ import main

ROOT = Path(__file__).parents[2]


@pytest.fixture
def plan_file(tmp_path):
    def write(plan: Plan | str) -> str:
        path = tmp_path / "plan.json"
        path.write_text(plan if isinstance(plan, str) else plan.to_json(), encoding="utf-8")
        return str(path)

    return write


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_list_and_show_never_give_the_solution(lang, capsys):
    assert main(["--lang", lang, "list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(workshop.EXERCISES)
    for number, one in enumerate(workshop.EXERCISES, 1):
        assert main(["show", str(number), "--lang", lang]) == 0
        out = capsys.readouterr().out
        assert one.question.say(lang) in out and one.task.say(lang)[1:] in out
        plan = one.solved(lang)
        for spelling in (plan.to_python(), plan.to_json(), plan.to_link(), *plan.to_words()):
            assert spelling not in out


def test_a_right_plan_ends_with_0_and_the_explanation(plan_file, capsys):
    path = plan_file(Plan(Temperature(5.0)))
    assert main(["check", "temperature", "--plan", path, "--predict", "flat", "--number", "4"]) == 0
    out = capsys.readouterr().out
    assert "Passed." in out and "As you predicted." in out and "Your 4 is near" in out and "T = 5" in out
    assert main(["check", "7", "--plan", path, "--predict", "sharp", "--number", "15", "--lang", "zh"]) == 0
    out = capsys.readouterr().out
    assert "通过" in out and "不同" in out and "您猜的是 15：相差" in out


def test_a_wrong_plan_ends_with_1_and_a_hint(plan_file, capsys):
    assert main(["check", "7", "--plan", plan_file(Plan(Temperature(0.2)))]) == 1
    assert "Not yet." in (out := capsys.readouterr().out) and "sharp side" in out
    assert main(["check", "7", "--plan", plan_file(Plan()), "--lang", "zh"]) == 1
    assert "计划是空的" in capsys.readouterr().out


def test_the_plan_may_come_from_standard_input_and_the_report_as_json(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO(Plan(Temperature(5.0)).to_json()))
    assert main(["check", "7", "--plan", "-", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["passed"] and report["outcome"]["key"] == "flat" and report["words"]["zh"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["show", "99"], "99"),
        (["check", "x", "--plan", "-"], "'x'"),
        (["check", "1", "--plan", "/nowhere/plan.json"], "/nowhere/plan.json"),
        (["measure", "--only", "nothing"], "nothing"),
        (["claims", "--only", "nothing"], "nothing"),
    ],
)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_bad_input_ends_with_2_in_the_readers_language(arguments, says, lang, capsys):
    assert main(["--lang", lang, *arguments]) == 2
    error = capsys.readouterr().err
    assert says in error and error.startswith("Error" if lang == "en" else "错误")


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"version": 1, "operations": [{"operation": "nothing"}]}', "\0"]
)
def test_what_is_no_plan_is_refused(text, plan_file, capsys):
    assert main(["check", "2", "--plan", plan_file(text)]) == 2
    assert capsys.readouterr().err.startswith("Error: ")


def test_bytes_that_are_no_text_are_refused(tmp_path, capsys):
    path = tmp_path / "plan.json"
    path.write_bytes(b"\xff\xfe\x00")
    assert main(["check", "2", "--plan", str(path)]) == 2
    assert "UTF-8" in capsys.readouterr().err


def test_a_prediction_that_is_no_choice_and_a_plan_that_cannot_act_are_refused(plan_file, capsys):
    assert main(["check", "7", "--plan", plan_file(Plan(Temperature(5.0))), "--predict", "maybe"]) == 2
    assert "flat" in capsys.readouterr().err
    head = plan_file(Plan(Temperature(5.0).at("L7")))
    assert main(["check", "7", "--plan", head]) == 2
    assert "Layer 7 does not exist in encoder:" in capsys.readouterr().err


def test_it_runs_as_a_module_from_anywhere(tmp_path):
    import os

    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "workshop", "list", "--lang", "zh"]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "谁咬了谁" in done.stdout, done.stderr


def test_the_workshop_knows_no_page():
    code = "import sys, workshop, workshop.claims, workshop.guide, workshop.notebooks; assert 'gradio' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
