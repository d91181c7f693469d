"""One script in percent format for each exercise: opens as a notebook in VS Code and Jupyter, and runs as it is."""

import textwrap
from pathlib import Path

from workshop.exercises import EXERCISES
from workshop.parts import Exercise

FOLDER = Path(__file__).parent / "notebooks"
EMPTY = "plan = sg.Plan()"
"""The line that a learner replaces."""


def path_of(number: int, one: Exercise, folder: Path = FOLDER) -> Path:
    """notebooks/07_temperature.py"""
    return folder / f"{number:02d}_{one.name.replace('-', '_')}.py"


def write(folder: Path = FOLDER) -> list[Path]:
    """Writes all of them; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, one in enumerate(EXERCISES, 1):
        paths.append(path_of(number, one, folder))
        paths[-1].write_text(script(number, one), encoding="utf-8")
    return paths


def script(number: int, one: Exercise) -> str:
    """The script of one exercise, both languages side by side; the plan in it is empty."""
    cells = [
        _markdown(f"# {number}. {one.title.en} / {one.title.zh}", one.question.en, one.question.zh),
        _markdown(
            "## To know first / 先了解",
            *(f"- {words.en}\n- {words.zh}" for words in one.know),
            f"    {one.equation}",
        ),
        _code(
            "import surgery as sg\nimport workshop\nfrom models import load\nfrom workshop.grading import told",
            f'lang = "en"  # "zh": 中文\none = workshop.exercise("{one.name}")\npatient = load(one.model(lang))',
        ),
        _markdown(
            "## Predict / 预测",
            f"{one.prediction.question.en}\n{one.prediction.question.zh}",
            *(f"- `{c.key}`: {c.words.en} / {c.words.zh}" for c in one.prediction.choices),
            *(
                [f"{one.prediction.number.label.en} / {one.prediction.number.label.zh}"]
                if one.prediction.number
                else []
            ),
        ),
        _code("my_choice = None  # one of the keys above, in quotes\nmy_number = None"),
        _markdown(
            "## Cut / 动手",
            f"Task: {one.task.en}",
            f"任务：{one.task.zh}",
            "All operations / 所有操作：`python -m surgery ops`",
        ),
        _code(f'{EMPTY}  # for example sg.Plan(sg.HideSelf().at("L0.H1"))'),
        _markdown("## Measure / 测量"),
        _code(
            "report = workshop.check(one, plan, patient, lang)\nprint(told(report, lang, my_choice, my_number))"
        ),
    ]
    return "\n\n".join(cells) + "\n"


def _markdown(*paragraphs: str) -> str:
    lines = ["# %% [markdown]"]
    for index, paragraph in enumerate(paragraphs):
        lines += ["#"] if index else []
        for line in paragraph.split("\n"):
            indent = line[: len(line) - len(line.lstrip())]
            wrapped = textwrap.wrap(line, 108, subsequent_indent=indent, break_long_words=False) or [""]
            lines += [f"# {part}".rstrip() for part in wrapped]
    return "\n".join(lines)


def _code(*parts: str) -> str:
    return "# %%\n" + "\n\n".join(parts)
