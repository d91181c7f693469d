from __future__ import annotations

from typing import TYPE_CHECKING

from ui.markup import render
from ui.texts import t

if TYPE_CHECKING:
    from ui.training import Trained

WIDE, HIGH = 420, 190
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 12, 40


def train(trained: Trained | None, lang: str) -> str:
    """Loss and accuracy over the steps, with the accuracy of an answer that ignores order, and the last numbers."""
    if trained is None:
        return render("nothing", lang, key="train.none")
    chance = trained.chance.get(trained.metric)
    highest = max((loss for _, loss in trained.losses), default=1.0) or 1.0
    rows = [
        {"name": name, "value": value, "chance": trained.chance.get(name)}
        for name, value in trained.measures.items()
    ]
    return render(
        "train",
        lang,
        step=trained.step,
        steps=trained.steps,
        plan=trained.plan.describe(lang) if len(trained.plan) else t("train.plain", lang),
        charts=[
            _chart("loss", trained.losses, trained.steps, highest, None),
            _chart("accuracy", trained.accuracies, trained.steps, 1.0, chance),
        ],
        rows=rows,
        wide=WIDE,
        high=HIGH,
        metric=trained.metric,
    )


def _chart(name: str, points: tuple, steps: int, highest: float, chance: float | None) -> dict:
    def x(step: float) -> float:
        return round(LEFT + (WIDE - LEFT - RIGHT) * step / max(1, steps), 1)

    def y(value: float) -> float:
        return round(HIGH - BOTTOM - (HIGH - TOP - BOTTOM) * min(value, highest) / highest, 1)

    return {
        "name": name,
        "path": " ".join(f"{x(step)},{y(value)}" for step, value in points),
        "last": points[-1] if points else None,
        "dot": (x(points[-1][0]), y(points[-1][1])) if points else None,
        "chance": None if chance is None else {"y": y(chance), "value": chance},
        "ticks": [{"y": y(highest * part), "value": highest * part} for part in (0.0, 0.5, 1.0)],
        "left": LEFT,
        "right": WIDE - RIGHT,
        "bottom": HIGH - BOTTOM,
        "middle": ((LEFT + WIDE - RIGHT) / 2, (TOP + HIGH - BOTTOM) / 2),
        "end": x(steps),
    }
