"""What tutorials say of attention, each claim checked by a small run: `python -m workshop claims`."""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from bilingual import Words
from workshop.claims.claim import REGISTRY, VERDICTS, Claim, Found
from workshop.parts import WorkshopError

for _subject in ("positions", "softmax", "masks", "heads", "cost"):  # the order of the page
    importlib.import_module(f"{__name__}.{_subject}")

__all__ = ["REGISTRY", "Claim", "Found", "page", "run"]


def run(only: Sequence[str] | None = None, progress: Callable[[str], Any] = lambda line: None) -> list[Found]:
    """Checks the claims (all by default). Raises WorkshopError for a name that is none."""
    unknown = [name for name in only or () if name not in REGISTRY]
    if unknown:
        raise WorkshopError(
            f"There is no claim {unknown[0]!r}: choose from {', '.join(REGISTRY)}.",
            f"没有说法 {unknown[0]!r}：可选 {'、'.join(REGISTRY)}。",
        )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    found = []
    try:
        for name in only or REGISTRY:
            verdict, numbers = REGISTRY[name].check()
            found.append(Found(REGISTRY[name], verdict, numbers))
            progress(f"{name}: {VERDICTS[verdict].en}")
    finally:
        torch.set_num_threads(threads)
    return found


HEAD = Words(
    """# What is said of attention, and what is measured

Made by `python -m workshop claims --write docs/claims.md`. Tutorials are written by people who give their time away, and most of what they say is right;
what follows are sentences that we met often, believed ourselves, and then checked. Each is one small function in `workshop/claims/`: seeds are fixed, "±" is the
standard deviation over seeds, and the verdict is computed from the numbers of the run. `--only NAME` runs one.

| name | what is said | verdict | what was measured |
|---|---|---|---|
""",
    """# 关于注意力的说法，与测量结果

由 `python -m workshop claims --write docs/claims.md` 生成。教程的作者无偿付出时间，他们写的大多是对的；下面这些句子我们经常遇到，自己也曾相信，然后做了检验。每一条都是 `workshop/claims/` 里的一个小函数：
种子固定，“±”是不同种子间的标准差，结论由本次运行的数值算出。`--only 名称` 只运行一条。

| 名称 | 说法 | 结论 | 测量结果 |
|---|---|---|---|
""",
)
FOOT = Words(
    """
Rows marked † were trained for (three seeds, `python -m workshop measure`); rows marked ‡ are seconds of the machine that made this page.
""",
    """
标 † 的需要训练（三个种子，`python -m workshop measure`）；标 ‡ 的是生成本页的机器上的耗时。
""",
)


def page(found: Sequence[Found], lang: str = "en") -> str:
    """The table in Markdown."""
    rows = [_row(one, lang) for one in found]
    return HEAD.say(lang) + "\n".join(rows) + "\n" + FOOT.say(lang)


def _row(one: Found, lang: str) -> str:
    mark = (" †" if one.claim.trained else "") + (" ‡" if one.claim.timed else "")
    cells = (
        f"`{one.claim.name}`{mark}",
        one.claim.claim.say(lang),
        VERDICTS[one.verdict].say(lang),
        one.words().say(lang),
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
