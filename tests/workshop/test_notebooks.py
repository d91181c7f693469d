"""The scripts of workshop/notebooks: up to date, and each runs from top to bottom."""

import contextlib
import io

import pytest

import models
from workshop import EXERCISES, notebooks

PATHS = [(number, one, notebooks.path_of(number, one)) for number, one in enumerate(EXERCISES, 1)]
every = pytest.mark.parametrize(("number", "one", "path"), PATHS, ids=[path.stem for *_, path in PATHS])


@pytest.fixture(autouse=True)
def loaded_once(monkeypatch, patients):
    monkeypatch.setattr(models, "load", patients)


def run(script: str) -> tuple[dict, str]:
    names, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(script, "notebook", "exec"), names)
    return names, printed.getvalue()


@every
def test_it_is_what_the_exercise_says(number, one, path):
    assert path.read_text(encoding="utf-8") == notebooks.script(number, one), "python -m workshop notebooks"


@every
def test_it_runs_as_it_is_and_prints_the_hint(number, one, path):
    names, printed = run(path.read_text(encoding="utf-8"))
    assert not names["report"].passed and "The plan is empty" in printed


@every
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_it_passes_once_the_plan_is_filled_in(number, one, path, lang):
    script = path.read_text(encoding="utf-8")
    assert script.count(notebooks.EMPTY) == 1
    script = script.replace(notebooks.EMPTY, f"plan = {one.solved(lang).to_python()}")
    names, printed = run(script.replace('lang = "en"', f'lang = "{lang}"'))
    assert names["report"].passed and ("Passed." in printed or "通过" in printed)


def test_no_other_files_and_no_solution_lie_there():
    assert sorted(notebooks.FOLDER.glob("*.py")) == sorted(path for *_, path in PATHS)
    for _, one, path in PATHS:
        text = path.read_text(encoding="utf-8")
        assert one.solution.to_python() not in text and one.solution.to_json() not in text


def test_they_are_written_where_one_asks(tmp_path):
    written = notebooks.write(tmp_path / "new")
    assert [path.name for path in written] == [path.name for *_, path in PATHS]
    assert all(path.read_text(encoding="utf-8").startswith("# %% [markdown]") for path in written)
