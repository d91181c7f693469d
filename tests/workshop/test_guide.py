"""The teacher's guide: made from the exercises, and true of the program."""

import importlib.util
import re
from pathlib import Path

import pytest

import workshop
from workshop import guide

ROOT = Path(__file__).parents[2]
both = pytest.mark.parametrize("lang", ["en", "zh"])


@both
def test_it_is_what_the_exercises_say(lang):
    text = (ROOT / "docs" / guide.NAMES[lang]).read_text(encoding="utf-8")
    assert text == guide.page(lang), "python -m workshop guide --write docs"


@both
def test_it_gives_time_task_wrong_answers_and_a_question_for_each_exercise_but_no_solution(lang):
    text = guide.page(lang)
    assert str(sum(one.minutes for one in workshop.EXERCISES)) in text
    for one in workshop.EXERCISES:
        for words in (one.title, one.task, one.ask, one.prediction.question):
            assert words.say(lang) in text
        assert one.solved(lang).to_python() not in text
    assert "{" not in text


def test_its_commands_exist():
    spec = importlib.util.spec_from_file_location("app", ROOT / "app.py")
    app = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(app)
    (line,) = set(re.findall(r"app\.py (--public[^`]*)`", guide.page("en")))
    options = app.arguments().parse_args(line.split())
    assert options.public and options.host == "0.0.0.0" and options.port == 7860
    assert app.arguments().parse_args([]).host is None  # this computer alone, unless one asks


def test_both_pages_are_written_where_one_asks(tmp_path):
    assert [path.name for path in guide.write(tmp_path / "docs")] == ["teaching.md", "teaching.zh.md"]
