"""What happens on the Train page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import gradio as gr

from bilingual import SurgeryError
from surgery.plan import Plan
from ui import layout as at
from ui import operating, panels, training
from ui import steps as steps_
from ui.heatmap import AttentionView
from ui.texts import t

if TYPE_CHECKING:
    from ui.events import Events

# One run at a time: training takes a core for as long as it lasts. Answers of the page do not wait for it.
QUEUE: dict[str, Any] = {"concurrency_id": "training", "concurrency_limit": 1, "api_visibility": "private"}
QUICK: dict[str, Any] = {"api_visibility": "private", "queue": False, "show_progress": "hidden"}


class TrainingEvents:
    """The handlers of the Train page and their wiring. A run's model is its own; only numbers leave it."""

    def __init__(self, events: Events):
        self.events, self.page = events, events.page
        page = self.page
        run = page.train_run.click(
            self.on_train,
            {*events.ask, page.train_task, page.train_steps, page.train_seed, page.train_operated},
            self.outputs,
            **QUEUE,
            show_progress="minimal",
            show_progress_on=page.train_task,
        )
        page.train_stop.click(None, None, None, cancels=[run], api_visibility="private")
        page.replay.input(
            self.on_replay, [page.replay, page.trained], page.replayed, trigger_mode="always_last", **QUICK
        )

    @property
    def outputs(self) -> list[Any]:
        page = self.page
        return [page.train, page.trained, page.replay, page.replayed, page.problem_train]

    def on_train(self, asked: dict) -> Iterator[dict]:
        """Step by step, so that what was learned stays when it is stopped."""
        page, lang = self.page, asked[self.page.lang]
        try:
            plan = steps_.to_plan(self.events.read(asked)[0]) if asked[page.train_operated] else Plan()
            operating.check_size(page.pool.limits, (), len(plan))
            task, seed, steps = asked[page.train_task], asked[page.train_seed], asked[page.train_steps]
            for known in training.train(task, seed, steps, plan, page.pool.limits):
                yield self.show(known, lang)
        except SurgeryError as error:
            yield {page.problem_train: at.problem(error.say(lang))}

    def show(self, known: training.Trained, lang: str) -> dict:
        """A run so far."""
        page, last = self.page, len(known.captures) - 1
        return {
            page.train: panels.train(known, lang),
            page.trained: known,
            page.replay: gr.update(maximum=max(1, last), value=last, visible=True),
            page.replayed: AttentionView(value=training.replay(known, last), words=training.words(lang)),
            page.problem_train: at.problem(""),
        }

    def on_replay(self, moment: Any, trained: training.Trained | None) -> AttentionView:
        return AttentionView(value=training.replay(trained, int(moment)) if trained else None)

    def labels(self, lang: str, trained: training.Trained | None) -> dict:
        """The Train page in another language."""
        page = self.page
        return {
            page.train_task: gr.update(choices=at.train_choices(lang), label=t("train.task", lang)),
            page.train_steps: gr.update(label=t("train.steps", lang)),
            page.train_seed: gr.update(label=t("train.seed", lang)),
            page.train_operated: gr.update(label=t("train.operated", lang)),
            page.train_run: gr.update(value=t("train.run", lang)),
            page.train_stop: gr.update(value=t("train.stop", lang)),
            page.train: panels.train(trained, lang),
            page.replay: gr.update(label=t("train.replay", lang)),
            page.replayed: AttentionView(words=training.words(lang)),
        }
