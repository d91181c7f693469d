"""What happens on the Workshop page."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

import gradio as gr

import workshop
from bilingual import SurgeryError
from surgery.plan import Plan
from ui import layout as at
from ui import lessons, panels, presets
from ui import steps as steps_
from ui.component import static_text
from ui.lessons import Progress
from ui.link import Setting
from ui.texts import t

if TYPE_CHECKING:
    from ui.events import Events
    from workshop import Report

QUICK: dict[str, Any] = {"api_visibility": "private", "queue": False, "show_progress": "hidden"}


class LessonEvents:
    """The handlers of the Workshop page and their wiring. Plans are made with the page's own editor."""

    def __init__(self, events: Events, room: lessons.Classroom | None):
        self.events, self.page, self.room = events, events.page, room

    @property
    def outputs(self) -> Any:
        page = self.page
        return {
            page.mode, page.workshop, page.exercise, page.place, page.progress, page.report, page.lessons, page.lesson, page.choice,
            page.number, page.commit, page.task, page.check, page.graded, page.problem_lesson, page.classroom,
        }  # fmt: skip

    def wire(self) -> None:
        page, events = self.page, self.events
        asked = {*events.ask, page.mode, page.exercise, page.place, page.progress, page.report}
        everything = events.everything | self.outputs
        events._run("lesson", page.mode.input, self.on_mode, asked, everything)
        events._run("lesson", page.lessons.action, self.on_action, asked, everything)
        events._run("lesson", page.graded.action, self.on_action, asked, everything)
        events._run("lesson", page.check.click, self.on_check, asked, self.outputs)
        page.commit.click(
            self.on_commit,
            {page.lang, page.exercise, page.place, page.progress, page.choice, page.number},
            self.outputs,
            **QUICK,
        )
        page.place.change(None, page.place, None, js=static_text("on_place.js"), api_visibility="private")
        if self.room is not None:
            page.clock.tick(
                lambda lang: panels.classroom(self.room, lang), page.lang, page.classroom, **QUICK
            )

    def number(self, asked: dict) -> int:
        """The exercise that is open, 0 for none; as the address says it where the server has forgotten."""
        known, place = asked[self.page.exercise], asked[self.page.place] or ""
        if known or not re.fullmatch("[0-9]{1,3}", place):
            return known
        return int(place) if 1 <= int(place) <= len(workshop.EXERCISES) else 0

    # --- what is shown ----------------------------------------------------------------------------------

    def open(self, number: int, progress: Progress, lang: str, report: Report | None = None) -> dict:
        """One exercise, as far as the learner is."""
        page, one = self.page, workshop.exercise(number)
        done = progress.of(one)
        ask, new = one.prediction, done.choice is None
        said = (
            {}
            if ask.number is None
            else {
                "label": ask.number.label.say(lang)
                + (f" ({ask.number.unit.say(lang).strip()})" if ask.number.unit.en else ""),
                "info": t("lesson.range", lang, low=f"{ask.number.low:g}", high=f"{ask.number.high:g}"),
            }
        )
        return {
            page.exercise: number,
            page.place: str(number),
            page.progress: progress.to_dict(),
            page.report: report,
            page.lessons: panels.lessons(progress, number, lang),
            page.lesson: panels.lesson(number, lang),
            page.choice: gr.update(
                choices=[(c.words.say(lang), c.key) for c in ask.choices],
                value=done.choice,
                label=ask.question.say(lang),
                interactive=new,
            ),
            page.number: gr.update(
                visible=ask.number is not None, value=done.number, interactive=new, **said
            ),
            page.commit: gr.update(value=t("lesson.commit", lang), visible=new),
            page.task: panels.task(number, done, lang),
            page.check: gr.update(value=t("lesson.check", lang), visible=not new),
            page.graded: panels.kept(number, done, lang)
            if report is None
            else panels.graded(report, done, lang),
            page.problem_lesson: at.problem(""),
        }

    def setting(self, number: int, lang: str) -> Setting:
        """The exercise's model with the exercise's own texts or one that it reads, and nothing cut yet."""
        one = workshop.exercise(number)
        model = one.model(lang)
        if lang in one.texts:
            return Setting(*one.texts[lang], model)
        example = next((e for e in presets.EXAMPLES.values() if e.model == model), None)
        return Setting(model=model) if example is None else Setting(example.text, example.other, model)

    def patient(self, number: int, asked: dict, steps: list, *, opening: bool = False) -> dict:
        """The exercise's model under the given steps. A text that the visitor wrote for that model stays, except where an
        exercise that brings its own is opened."""
        page, lang = self.page, asked[self.page.lang]
        setting = dataclasses.replace(self.setting(number, lang), steps=steps)
        brings = opening and lang in workshop.exercise(number).texts
        mine = asked[page.text] and asked[page.text] not in lessons.brought()
        if asked[page.model] == setting.model and mine and not brings:
            setting = dataclasses.replace(setting, text=asked[page.text], other=asked[page.other] or "")
        return self.events.restore(setting, lang, self.events.shown_setting(asked).model)

    def labels(self, lang: str, number: int = 0, progress: Any = None, report: Report | None = None) -> dict:
        """The Workshop page in another language."""
        return self.open(number, Progress.read(progress), lang, report) if number else {}

    # --- handlers ---------------------------------------------------------------------------------------

    def on_load(self, query: dict, progress: Any, lang: str) -> dict:
        """`?workshop=3` opens an exercise; `?teacher=KEY` shows what the class has predicted."""
        page = self.page
        updates: dict = {}
        teacher = self.room is not None and query.get("teacher") == self.room.key
        if self.room is not None and teacher:
            updates |= {
                page.classroom: gr.update(visible=True, value=panels.classroom(self.room, lang)),
                page.clock: gr.Timer(active=True),
            }
        if "workshop" in query or teacher:
            try:
                number = workshop.EXERCISES.index(workshop.exercise(query.get("workshop") or 1)) + 1
            except SurgeryError:
                number = 1
            updates |= self.open(number, Progress.read(progress), lang)
            updates |= {page.mode: gr.update(value="workshop"), page.workshop: gr.update(visible=True)}
        return updates

    def on_mode(self, asked: dict) -> dict:
        page = self.page
        on = asked[page.mode] == "workshop"
        updates = {
            page.workshop: gr.update(visible=on),
            page.place: str(self.number(asked) or 1) if on else "",
        }
        return updates | (self._opened(1, asked) if on and not self.number(asked) else {})

    def on_action(self, asked: dict, event: gr.EventData) -> dict:
        data = event._data if isinstance(event._data, dict) else {}
        number, do = self.number(asked) or 1, data.get("do")
        nothing = {self.page.problem_lesson: at.problem("")}  # Gradio takes no empty answer
        if do == "further":
            one, report = workshop.exercise(number), asked[self.page.report]
            kept = Progress.read(asked[self.page.progress]).of(one).plan
            own = Plan.from_dict(kept or Plan().to_dict()) if report is None else report.evidence.plan
            plan = one.onward(own, asked[self.page.lang])
            return self.patient(number, asked, steps_.from_plan(plan)) if plan is not None else nothing
        if do == "again":
            return self._again(number, asked)
        wanted = data.get("number")
        if do != "exercise" or type(wanted) is not int or not 1 <= wanted <= len(workshop.EXERCISES):
            return nothing
        return self._opened(wanted, asked)

    def _again(self, number: int, asked: dict) -> dict:
        """The result of the plan that was kept, measured again; it is no further try."""
        page, lang = self.page, asked[self.page.lang]
        one, progress = workshop.exercise(number), Progress.read(asked[page.progress])
        kept = progress.of(one).plan
        if kept is None:
            return {page.problem_lesson: at.problem("")}
        plan = Plan.from_dict(kept)
        try:
            with self.events.pool.use(one.model(lang)) as patient:
                report = workshop.check(one, plan, patient, lang)
        except SurgeryError as error:
            return {page.problem_lesson: at.problem(error.say(lang))}
        shown = self.patient(number, asked, steps_.from_plan(plan))
        return shown | self.open(number, progress, lang, report)

    def _opened(self, number: int, asked: dict) -> dict:
        progress = Progress.read(asked[self.page.progress])
        return self.patient(number, asked, [], opening=True) | self.open(
            number, progress, asked[self.page.lang]
        )

    def on_commit(self, asked: dict, request: gr.Request) -> dict:
        page, lang = self.page, asked[self.page.lang]
        number, progress = self.number(asked), Progress.read(asked[page.progress])
        one = workshop.exercise(number or 1)
        new = progress.of(one).choice is None
        try:
            done = lessons.commit(progress, one, asked[page.choice], asked[page.number])
        except SurgeryError as error:
            return {page.problem_lesson: at.problem(error.say(lang))}
        if new and self.room is not None:
            self.room.predicted(str(request.session_hash), one, done)
        return self.open(number or 1, progress, lang)

    def on_check(self, asked: dict, request: gr.Request) -> dict:
        page, lang = self.page, asked[self.page.lang]
        number, progress = self.number(asked), Progress.read(asked[page.progress])
        one = workshop.exercise(number or 1)
        done = progress.of(one)
        if done.choice is None:
            return {page.problem_lesson: at.problem(t("lesson.first", lang))}
        try:
            plan = steps_.to_plan(self.events.read(asked)[0])
            with self.events.pool.use(one.model(lang)) as patient:
                report = workshop.check(one, plan, patient, lang)
        except SurgeryError as error:
            return {page.problem_lesson: at.problem(error.say(lang))}
        done.tried(report)
        if self.room is not None:
            self.room.graded(str(request.session_hash), report)
        return self.open(number or 1, progress, lang, report)
