"""How fast a model learns at each step, and what its mistakes weigh."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from bilingual import SurgeryError

from ..tasks.task import IGNORED, Recipe

SCHEDULES = ("cosine", "constant", "noam")


class TrainingError(SurgeryError, ValueError):
    """A training that cannot be started or continued as asked."""


def rate_at(step: int, recipe: Recipe, d_model: int = 64) -> float:
    """The learning rate of a step; the first is step 1, so no update is wasted on a rate of 0.

    cosine: straight up to `rate` in `warmup` steps, then down a half wave to 2 % of it. constant: up, then level.
    noam: d_model^-0.5 · min(step^-0.5, step · warmup^-1.5), without `rate` (Vaswani et al. 2017, equation 3).
    """
    if step < 1:
        raise TrainingError(
            f"Step {step} does not exist: steps count from 1.", f"没有第 {step} 步：步数从 1 开始。"
        )
    warmup = max(1, recipe.warmup)
    if recipe.schedule == "noam":
        return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    if recipe.schedule not in SCHEDULES:
        raise TrainingError(
            f"Schedule {recipe.schedule!r} is not known: choose one of {', '.join(SCHEDULES)}.",
            f"没有名为 {recipe.schedule!r} 的学习率安排：可选 {'、'.join(SCHEDULES)}。",
        )
    if step <= warmup:
        return recipe.rate * step / warmup
    if recipe.schedule == "constant":
        return recipe.rate
    share = (step - warmup) / max(1, recipe.steps - warmup)
    return recipe.rate * max(0.02, 0.5 * (1 + math.cos(math.pi * min(1.0, share))))


def scored_loss(logits: Tensor, targets: Tensor) -> tuple[Tensor, int]:
    """The mean cross-entropy over what is asked, and how much that is; 0 where nothing is.

    logits (*, class), targets (*). The mean over nothing would be NaN, and one NaN spoils every weight.
    """
    asked = int((targets != IGNORED).sum())
    total = F.cross_entropy(
        logits.flatten(0, -2).float(), targets.flatten(), ignore_index=IGNORED, reduction="sum"
    )
    return total / max(1, asked), asked


def check_targets(targets: Tensor, classes: int) -> None:
    """Raises TrainingError for a target that is no class, before anything is computed."""
    asked = targets[targets != IGNORED]
    wrong = asked[(asked < 0) | (asked >= classes)]
    if len(wrong):
        raise TrainingError(
            f"Label {int(wrong[0])} does not exist: there are {classes} classes, 0-{classes - 1} "
            f"({IGNORED} where nothing is asked).",
            f"没有标签 {int(wrong[0])}：共有 {classes} 个类别，编号 0-{classes - 1}（不提问处为 {IGNORED}）。",
        )


def private(*numbers: int) -> torch.Generator:
    """A generator of its own for each combination of numbers, for instance (seed, step)."""
    state = 0
    for number in numbers:
        state = (state * 6364136223846793005 + number + 1442695040888963407) % 2**63
        state ^= state >> 29
    return torch.Generator().manual_seed(state)
