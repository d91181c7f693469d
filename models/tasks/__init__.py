"""Tasks with exact truth, each of which makes one part of attention necessary."""

from __future__ import annotations

import functools
from collections.abc import Callable

from bilingual import SurgeryError, Words

from .grammar import KINDS
from .task import IGNORED, Batch, Probe, Question, Recipe, Task, order_blind

__all__ = [
    "IGNORED",
    "TASKS",
    "Batch",
    "Probe",
    "Question",
    "Recipe",
    "Task",
    "TaskError",
    "order_blind",
    "task",
]


class TaskError(SurgeryError, ValueError):
    """A task that does not exist."""


TASKS: dict[str, Words] = {
    "encoder": Words("five questions about English sentences", "关于英文句子的五种问题"),
    "encoder-zh": Words("five questions about Chinese sentences", "关于中文句子的五种问题"),
    "characters": Words(
        "writing lines of a small language, letter by letter", "逐个字母写出一种小语言的句子"
    ),
    "translator": Words("translating toy sentences from English to Chinese", "把简单的英文句子译成中文"),
    "fetch": Words(
        "bringing eight neighbours to every place: many heads", "把八个邻居带到每个位置：需要多个头"
    ),
    "first": Words("which of two words came first: positions", "两个词哪个先出现：需要位置"),
    "role": Words("who did it, and to whom", "谁做的，对谁做的"),
    "review": Words("which way a review goes", "评价是好是差"),
    "agree": Words("a form that follows the subject", "与主语一致的形式"),
    "reflex": Words("a pronoun that follows the subject", "与主语一致的代词"),
    "tags": Words("the parts that words play", "各个词在句中的角色"),
    **{
        f"{kind}-zh": Words(f"{kind}, in Chinese", f"{kind} 的中文版")
        for kind in ("role", "review", "agree", "reflex", "tags")
    },
}
"""The names that `task` knows, with a line on each."""


@functools.cache
def task(name: str) -> Task:
    """The task of that name; its examples are made once, when they are first needed."""
    if name not in TASKS:
        raise TaskError(
            f"There is no task called {name!r}: choose one of {', '.join(TASKS)}.",
            f"没有名为 {name!r} 的任务：可选 {'、'.join(TASKS)}。",
        )
    return _maker(name)()


def _maker(name: str) -> Callable[[], Task]:
    from .characters import Characters
    from .fetch import Fetch
    from .first import First
    from .sentences import Sentences
    from .translation import Translation

    whole = {"characters": Characters, "translator": Translation, "fetch": Fetch, "first": First}
    if name in whole:
        return whole[name]
    lang = "zh" if name.endswith("-zh") else "en"
    kind = name.removesuffix("-zh")
    return lambda: Sentences(name, lang, KINDS if kind == "encoder" else (kind,))
