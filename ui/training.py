"""The Train page: a from-scratch model learns one task, as it is or under the plan, while one watches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bilingual import SurgeryError, Words
from surgery.plan import Plan
from ui.limits import OWN, Limits
from ui.texts import t

if TYPE_CHECKING:
    from torch import Tensor

TASKS: dict[str, Words] = {
    "agree": Words("is or are: the verb follows the subject", "is 还是 are：动词与主语一致"),
    "role": Words("who did it, and to whom", "谁做的，对谁做的"),
    "reflex": Words(
        "herself or himself: the pronoun follows the subject", "herself 还是 himself：代词与主语一致"
    ),
    "review": Words("which way a review goes", "评价是好是差"),
    "agree-zh": Words("the measure word that fits, in Chinese", "中文：合适的量词"),
    "role-zh": Words("who did it, in Chinese", "中文：谁做的"),
    "fetch": Words("fetch eight neighbours: many heads", "取八个邻居：需要多个头"),
    "first": Words("which word came first: positions", "哪个词在前：需要位置"),
    "characters": Words("write letter by letter: a causal mask", "逐字母书写：需要因果掩码"),
}
LOOKS = 40  # how often the page is told, and attention captured, in one run


class TrainRequestError(SurgeryError):
    """A training run that this page does not make."""


@dataclass(frozen=True)
class Trained:
    """A run so far: plain numbers and captured weights (layer, head, query, key); it holds no model."""

    task: str
    seed: int
    plan: Plan
    steps: int
    losses: tuple[tuple[int, float], ...] = ()
    accuracies: tuple[tuple[int, float], ...] = ()
    measures: dict[str, float] = field(default_factory=dict)
    chance: dict[str, float] = field(default_factory=dict)
    metric: str = "accuracy"
    tokens: tuple[str, ...] = ()
    captures: tuple[tuple[int, Tensor], ...] = ()

    @property
    def step(self) -> int:
        """The last step that was made."""
        return self.losses[-1][0] if self.losses else 0


def train(task: str, seed: Any, steps: Any, plan: Plan, limits: Limits = OWN) -> Iterator[Trained]:
    """Trains a fresh model of its own and yields what is known after every few steps; the last is the end of the run.

    Raises TrainRequestError, and what the plan's operations raise on this model.
    """
    from models.tasks import task as named
    from models.training import Training, shorter
    from surgery.steps import EachStep

    _check(task, seed, steps, limits)
    job = named(task)
    often = max(1, int(steps) // LOOKS)
    run = Training(
        job,
        seed=int(seed),
        recipe=shorter(job.recipe, int(steps)),
        surgery=EachStep(plan) if len(plan) else None,
        evaluate_every=max(1, int(steps) // 8),
        capture_every=0,
    )
    probe = job.probe()
    known = Trained(
        task,
        int(seed),
        plan,
        int(steps),
        chance=job.order_blind(),
        metric=job.metric,
        tokens=tuple(probe.tokens),
    )
    known = _more(known, run, {})
    for entry in run:
        if entry["step"] % often == 0 or run.done:
            known = _more(known, run, entry)
            yield known


def _check(task: Any, seed: Any, steps: Any, limits: Limits) -> None:
    if not isinstance(task, str) or task not in TASKS:
        raise TrainRequestError(
            f"This page does not train {task!r:.60}: choose one of {', '.join(TASKS)}.",
            f"本页不训练 {task!r:.60}：请选 {'、'.join(TASKS)}。",
        )
    for name, value, low, high in (("steps", steps, 1, limits.train_steps), ("seed", seed, 0, 2**31 - 1)):
        whole = isinstance(value, int | float) and not isinstance(value, bool) and value % 1 == 0
        if not whole or not low <= value <= high:
            raise TrainRequestError(
                f"{name} = {value!r:.60} is not possible: give a whole number from {low} to {high}.",
                f"{name} = {value!r:.60} 不可用：请给 {low} 到 {high} 之间的整数。",
            )


def _more(known: Trained, run: Any, entry: dict[str, float]) -> Trained:
    """What is known after one more look at the run."""
    from dataclasses import replace

    seen = run.capture()
    known = replace(known, captures=(*known.captures, (seen.step, seen.weights)))
    if not entry:
        return known
    since = known.step
    recent = [e["loss"] for e in run.history if e["step"] > since]
    known = replace(known, losses=(*known.losses, (int(entry["step"]), sum(recent) / len(recent))))
    judged = [e for e in run.history if e["step"] > since and run.task.metric in e]
    if judged:
        last = judged[-1]
        measures = {k: v for k, v in last.items() if k not in ("step", "loss", "scored", "rate", "gradient")}
        known = replace(
            known, accuracies=(*known.accuracies, (last["step"], last[run.task.metric])), measures=measures
        )
    return known


def words(lang: str) -> dict[str, str]:
    """The words of the maps where the two runs are two moments of training."""
    from ui.heatmap import attention_words

    before, now = t("train.before", lang), t("train.now", lang)
    return attention_words(lang) | {
        "baseline": before,
        "overview_baseline": before,
        "operated": now,
        "overview_operated": now,
        "difference_detail": f"{now} − {before}",
        "legend_shared": t("train.legend", lang),
    }


def replay(trained: Trained, at: int) -> dict[str, Any] | None:
    """The maps' value: attention before training beside attention at capture number `at`."""
    from surgery import metrics
    from ui.payload import attention_payload

    if not trained.captures:
        return None
    first, now = trained.captures[0][1], trained.captures[max(0, min(at, len(trained.captures) - 1))][1]
    size = first.shape[-1]
    tokens = [*trained.tokens[:size], *[""] * (size - len(trained.tokens))]
    divergence = metrics.mean(metrics.js_divergence(first, now))
    return attention_payload(
        first.numpy(), now.numpy(), tokens, ["word"] * size, divergence.numpy(), layers=first.shape[0]
    )
