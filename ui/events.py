"""What happens when somebody does something. Every handler returns {component: update}.

`asked` is what the page held when the event was fired, by component.
"""

import dataclasses
import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from bilingual import LANGUAGES, SurgeryError
from surgery.operation import REGISTRY, Operation, known
from surgery.selection import Selection, SelectionError
from ui import controls, default, operating, panels, present, presets, sweeping, writing
from ui import layout as at
from ui import steps as steps_
from ui.component import static_text
from ui.fields import StepFields
from ui.headgrid import HeadGrid, grid_value, grid_words
from ui.heatmap import AttentionView, attention_words
from ui.layout import Layout
from ui.lesson_events import LessonEvents
from ui.lessons import Classroom
from ui.link import Setting, SettingError, known_view
from ui.operating import Operated
from ui.outbox import ExportError, Outbox
from ui.pool import Pool
from ui.texts import t
from ui.training_events import TrainingEvents

# Whatever may touch a model shares one queue.
MODEL: dict[str, Any] = {"concurrency_id": "model", "concurrency_limit": 2}
PRIVATE: dict[str, Any] = {"api_visibility": "private"}
QUICK: dict[str, Any] = {**PRIVATE, "queue": False, "show_progress": "hidden"}

PLACES = {"TextError": "text", "LoadError": "model", "NotAllowedError": "model", "PadError": "pad"}


class Events:
    """The handlers of one page and their wiring."""

    def __init__(self, page: Layout, pool: Pool, room: Classroom | None = None):
        self.page, self.pool, self.limits = page, pool, pool.limits
        self.ask: set[Any] = {
            page.lang, page.text, page.other, page.model, page.pad_to, page.literal, page.steps, page.selected,
            page.view, page.held, page.token, page.draft, page.form.fields,
        }  # fmt: skip
        self.editor: Any = {  # Gradio takes sets, and its hints do not say so
            page.steps, page.selected, page.draft, page.plan, page.grid, page.problem_plan, page.presets,
            page.form.name, page.form.summary, page.form.fields,
        }  # fmt: skip
        self.run_outputs = {
            *page.results, page.held, page.token, *page.problems.values(), page.badge, page.stale, page.model, page.more,
        }  # fmt: skip
        self.training = TrainingEvents(self)
        self.lessons = LessonEvents(self, room)
        root = Path(page.files.GRADIO_CACHE) / "outbox"  # Gradio serves what lies here as it is
        self.outbox = Outbox(root, self.limits.sessions, self.limits.seconds_kept)
        self._wire()

    # --- from the page to a setting and back ------------------------------------------------------------

    def setting(self, asked: dict) -> Setting:
        """What the page shows. Raises PadError."""
        page = self.page
        pad_to = asked[page.pad_to]
        if isinstance(pad_to, float) and pad_to.is_integer():
            pad_to = int(pad_to)
        if type(pad_to) is not int:
            operating.check_pad(pad_to, self.most_tokens(asked[page.model]))
        steps, selected = self.read(asked)
        return Setting(
            text=asked[page.text] or "",
            other=asked[page.other] or "",
            model=asked[page.model] or "",
            steps=steps,
            selected=selected,
            pad_to=pad_to,
            literal=bool(asked[page.literal]),
            view=self.view(asked),
        )

    def read(self, asked: dict) -> tuple[list[dict[str, Any]], int]:
        """The steps of the plan with what stands in the fields, and which one is selected. Raises PlanError."""
        page = self.page
        steps, selected = asked[page.steps], asked[page.selected]
        if steps is None:
            draft = asked[page.draft]
            steps, selected = steps_.from_text(draft) if draft else (default.setting().steps, 0)
        return page.form.read(asked[page.form.fields], steps, selected), selected

    def view(self, asked: dict) -> dict[str, Any]:
        """How the maps are looked at."""
        view = asked[self.page.view]
        return self.shown_setting(asked).view if view is None else view

    def shown(self, asked: dict) -> Operated | None:
        """The result that is on the page, made again if the server has forgotten it; None for the stored one."""
        held, token = asked[self.page.held], asked[self.page.token] or ""
        if held is None and token:
            try:
                return operating.operate(self.pool, Setting.from_token(token.partition(" ")[2]))
            except SurgeryError:
                return None
        return held

    def shown_setting(self, asked: dict) -> Setting:
        """What made the result that is on the page."""
        held, token = asked[self.page.held], asked[self.page.token] or ""
        if held is not None:
            return held.setting
        return Setting.from_token(token.partition(" ")[2]) if token else default.setting()

    def size(self, model: str) -> tuple[int, int]:
        """Layers and heads of a model that is loaded; of the first model until then."""
        if not self.pool.ready(model):
            heat = self.page.stored["heat"]
            return heat["layers"], heat["heads"]
        from surgery import admit

        anatomy = admit(self.pool.get(model).model)
        return anatomy.layers, anatomy.heads

    def most_tokens(self, model: str) -> int:
        """How many tokens the page reads with a model; with a small one until it is loaded."""
        return (
            operating.most_tokens(self.pool.get(model), self.limits)
            if self.pool.ready(model)
            else self.limits.tokens
        )

    def refused(self, model: str) -> dict[str, Any]:
        """Why some operations cannot act on a loaded model."""
        if not self.pool.ready(model):
            return {}
        from surgery import refusals

        return refusals(self.pool.get(model))

    # --- the plan being edited --------------------------------------------------------------------------

    def edit(self, steps: list, selected: int, setting: Setting, lang: str) -> dict:
        """Updates that show the plan with one step selected. setting: text and model that it is for.

        Whatever has fields and grid among its outputs gives these: while their section was never opened, an update that
        says nothing of a component of ours makes Gradio forget what it was to show.
        """
        page, model = self.page, setting.model
        said = self.complaints(steps[selected], setting, lang) if steps else {}
        return {
            page.steps: steps,
            page.selected: selected,
            page.draft: steps_.to_text(steps, selected),
            page.plan: panels.plan(steps, selected, lang),
            page.grid: self.grid(steps[selected] if steps else None, model, lang),
            page.problem_plan: at.problem(said.get("", "")),
            page.presets: gr.update(value=_preset(steps)),
            **page.form.show(steps, selected, self.size(model), lang, self.refused(model), said),
        }

    def edited(self, steps: list, selected: int, asked: dict) -> dict:
        """Updates after a person changed what stands in the fields, which are left alone."""
        page, lang = self.page, asked[self.page.lang]
        said = self.complaints(steps[selected], self.settled(asked), lang)
        return {
            page.steps: steps,
            page.selected: selected,
            page.draft: steps_.to_text(steps, selected),
            page.plan: panels.plan(steps, selected, lang),
            page.grid: self.grid(steps[selected], asked[page.model], lang),
            page.problem_plan: at.problem(said.get("", "")),
            page.presets: gr.update(value=_preset(steps)),
            page.form.fields: StepFields(problems=said),
        }

    def settled(self, asked: dict) -> Setting:
        """The setting, without padding where that is wrong: it is complained about elsewhere."""
        try:
            return self.setting(asked)
        except operating.PadError:
            return self.setting(asked | {self.page.pad_to: 0})

    def grid(self, step: dict | None, model: str, lang: str) -> HeadGrid:
        """The grid of a step's selection; closed for what acts on the whole model, and without any step."""
        layers, heads = self.size(model)
        try:
            cells = Selection.parse(step["at"]).cells(layers, heads) if step else ()
        except SelectionError:
            cells = ()
        closed = "form.no_step" if step is None else "form.whole" if controls.whole(step) else ""
        return HeadGrid(
            value=grid_value(layers, heads, cells),
            words=grid_words(lang),
            disabled=t(closed, lang) if closed else "",
        )

    def complaints(self, step: dict, setting: Setting, lang: str) -> dict[str, str]:
        """What is wrong with a step on this model and text, by field ("": the whole step), before anything runs."""
        model = setting.model
        found = controls.problems(step, lang, *self.size(model), model)
        if found or not self.pool.ready(model):
            return found
        from surgery import admit, theatre

        why = self.refused(model).get(step["operation"])
        if why:
            return {"": why.say(lang)}
        (made,) = steps_.to_plan([{**step, "on": True}])
        try:
            theatre.check(admit(self.pool.get(model).model), made)
        except SurgeryError as error:
            return {controls.WHERE: error.say(lang)}
        if type(made.operation).check is not Operation.check:
            tokens = operating.tokens(self.pool, setting)
            try:
                made.operation.check(tokens or 0) if tokens else None
            except SurgeryError as error:
                return {next(iter(made.operation.parameters()), ""): error.say(lang)}
        return {}

    # --- running ----------------------------------------------------------------------------------------

    def run(self, setting: Setting, lang: str, good: str, *, kind: str = "push", **props: Any) -> dict:
        """Operates and shows the result; an error is said beside its field, and the last result stays.

        good: the model of the result on the page, to go back to. kind: "push" for a new entry in the browser's
        history, "replace" for none. props: of the maps, such as the view.
        """
        page = self.page
        try:
            done = operating.operate(self.pool, setting)
        except SurgeryError as error:
            return self.refuse(error, setting, lang, good)
        html = present.html(done, lang)
        return {
            page.heat: AttentionView(
                value=present.heat(done.comparison), words=attention_words(lang), **props
            ),
            **{page.panels[name]: html[name] for name in present.PANELS},
            page.write: gr.update(visible=done.comparison.kind == "causal_lm"),
            page.written: "",
            page.held: done,
            page.token: f"{kind} {done.setting.to_token()}",
            **{place: at.problem("") for place in page.problems.values()},
            page.badge: self.badge(setting.model, lang),
        }

    def refuse(self, error: SurgeryError, setting: Setting, lang: str, good: str) -> dict:
        """The error beside the field that it is about; from a model that cannot be had back to the last good one."""
        page = self.page
        without_model = setting.model and not self.pool.ready(setting.model)
        is_pad = isinstance(error, operating.PadError)
        place = "model" if without_model and not is_pad else PLACES.get(type(error).__name__, "plan")
        place = getattr(error, "place", None) or place
        updates = {
            box: at.problem(error.say(lang) if name == place else "") for name, box in page.problems.items()
        }
        if place == "model":
            updates[page.model] = gr.update(value=good, info=self.pool.about(good, lang))
        if place == "pad":
            updates[page.more] = gr.update(open=True)  # where it is said
        return updates

    def badge(self, model: str, lang: str) -> str:
        patient = self.pool.get(model)
        return at.badge(t("app.ready", lang, model=model, device=str(patient.device).upper()), "ready")

    # --- handlers ---------------------------------------------------------------------------------------

    def on_operate(self, asked: dict) -> dict:
        return self.run(self.setting(asked), asked[self.page.lang], self.shown_setting(asked).model)

    def refusing(self, handler: Any, *, edits: bool = True) -> Any:
        """The handler, which says it where the number of tokens to pad to is no number. edits: whether it shows the plan."""

        def careful(asked: dict) -> dict:
            try:
                return handler(asked)
            except operating.PadError as error:
                lang, setting = asked[self.page.lang], self.settled(asked)
                shown = self.edit(setting.steps, setting.selected, setting, lang) if edits else {}
                return merged(shown, self.refuse(error, setting, lang, self.shown_setting(asked).model))

        return careful

    def on_preset(self, asked: dict) -> dict:
        lang = asked[self.page.lang]
        steps = steps_.from_plan(_chosen(presets.PRESETS, asked[self.page.presets])[1])
        setting = dataclasses.replace(self.setting(asked), steps=steps, selected=0)
        return merged(
            self.edit(steps, 0, setting, lang), self.run(setting, lang, self.shown_setting(asked).model)
        )

    def on_example(self, asked: dict) -> dict:
        page = self.page
        _, text, other, model = _chosen(presets.EXAMPLES, asked[page.examples])
        setting = dataclasses.replace(self.setting(asked), text=text, other=other, model=model)
        return merged(
            {
                page.text: gr.update(value=text),
                page.other: gr.update(value=other),
                page.sweep_texts: gr.update(value=_lines(text, other)),
            },
            self.with_model(asked, setting),
        )

    def on_typed(self, other: Any) -> dict:
        """A text of one's own is no example any more, and an example's second text is not its partner."""
        page = self.page
        mine = other not in {example.other for example in presets.EXAMPLES.values()}
        return {page.examples: gr.update(value=None), page.other: other if mine else ""}

    def on_model(self, asked: dict) -> dict:
        return self.with_model(asked, self.setting(asked))

    def with_model(self, asked: dict, setting: Setting) -> dict:
        """Runs on a model that may be new to the page: its size, what it refuses and what it is are shown, too."""
        lang = asked[self.page.lang]
        about = gr.update(value=setting.model, info=self.pool.about(setting.model, lang))
        good = self.shown_setting(asked).model
        updates = merged({self.page.model: about}, self.run(setting, lang, good))
        there = setting if self.pool.ready(setting.model) else dataclasses.replace(setting, model=good)
        return merged(self.edit(setting.steps, setting.selected, there, lang), updates)

    def on_reset(self, asked: dict) -> dict:
        first = dataclasses.replace(default.setting(), model=self.pool.default)
        return self.restore(first, asked[self.page.lang], self.shown_setting(asked).model)

    def on_cancel(self, asked: dict) -> dict:
        """What was asked for and did not come is not shown as chosen."""
        page, lang, shown = self.page, asked[self.page.lang], self.shown_setting(asked)
        return {
            page.presets: gr.update(value=_preset(shown.steps)),
            page.examples: gr.update(value=None),
            page.model: gr.update(value=shown.model, info=self.pool.about(shown.model, lang)),
        }

    def on_fields(self, asked: dict) -> dict:
        steps, selected = self.read(asked)
        return self.edited(steps, selected, asked) if steps else {self.page.steps: steps}

    def on_operation(self, asked: dict) -> dict:
        """Another operation for the selected step; the first step of an empty plan."""
        page = self.page
        (steps, selected), name = self.read(asked), asked[page.form.name]
        setting = self.settled(asked)
        where = steps[selected]["at"] if steps else "L*"
        step = steps_.new(name, "L*" if known(name).stage == "positions" else where)
        for parameter, about in REGISTRY[name].parameters().items():
            if about.kind == "picture":
                size = operating.tokens(self.pool, setting) or 1
                step[parameter] = ["1" * size] * size  # forbids nothing yet, and fits
        steps = steps_.replace(steps, selected, step)
        return self.edit(steps, min(selected, len(steps) - 1), setting, asked[page.lang])

    def on_grid(self, asked: dict) -> dict:
        page = self.page
        grid, (steps, selected) = asked[page.grid], self.read(asked)
        if not steps:
            return {page.steps: steps}
        chosen = str(Selection.from_cells(grid["cells"], grid["layers"], grid["heads"]))
        steps = [{**step, "at": chosen} if i == selected else step for i, step in enumerate(steps)]
        updates = self.edit(steps, selected, self.settled(asked), asked[page.lang])
        updates.pop(page.grid)  # it shows this already
        return updates

    def on_add(self, asked: dict) -> dict:
        steps = [*self.read(asked)[0], steps_.idle()]
        return self.edit(steps, len(steps) - 1, self.settled(asked), asked[self.page.lang])

    def on_plan(self, asked: dict, event: gr.EventData) -> dict:
        data = event._data if isinstance(event._data, dict) else {}
        do, index = data.get("do"), data.get("step")
        steps, selected = self.read(asked)
        if isinstance(do, str) and isinstance(index, int):
            steps, selected = steps_.act(steps, selected, do, index)
        return self.edit(steps, selected, self.settled(asked), asked[self.page.lang])

    def on_pad(self, asked: dict) -> dict:
        page, lang = self.page, asked[self.page.lang]
        said = ""
        try:
            operating.check_pad(self.setting(asked).pad_to, self.most_tokens(asked[page.model]))
        except operating.PadError as error:
            said = error.say(lang)
        return {page.problem_pad: at.problem(said)}

    def on_change(self, asked: dict) -> dict:
        """Whether the result shown is that of the settings shown."""
        try:
            now, then = self.setting(asked), self.shown_setting(asked)
            same = _essence(now) == _essence(then)
        except SurgeryError:
            same = False
        return {self.page.stale: at.stale(not same, asked[self.page.lang])}

    def on_view(self, asked: dict, event: gr.EventData) -> dict:
        page, view = self.page, known_view(event._data)
        updates: dict = {page.view: view}
        held = self.shown(asked)
        if held is not None:
            held = dataclasses.replace(held, setting=dataclasses.replace(held.setting, view=view))
            updates |= {
                page.held: held,
                page.token: f"view {held.setting.to_token()}",
                page.panels["pipeline"]: present.pipeline(held.comparison, asked[page.lang], view),
            }
        return updates

    def on_open(self, view: dict | None, event: gr.EventData) -> AttentionView:
        chosen = {name: value for name, value in known_view(event._data).items() if name in ("layer", "head")}
        return AttentionView(
            view={**(view or {}), **chosen, "average": False, "stamp": str(event._data)[:200]}
        )

    def on_lang(self, asked: dict) -> dict:
        page, lang, setting = self.page, asked[self.page.lang], self.settled(asked)
        return merged(
            self.labels(lang, asked[page.swept], asked[page.trained]),
            self.lessons.labels(lang, self.lessons.number(asked), asked[page.progress], asked[page.report]),
            {
                page.model: gr.update(info=self.pool.about(setting.model, lang)),
                **{box: at.problem("") for box in (*page.problems.values(), page.problem_sweep)},
                page.copied: "",
            },
            self.edit(setting.steps, setting.selected, setting, lang),
            self.on_pad(asked),
            self.on_change(asked),
            self.results_in(lang, self.shown(asked)),
        )

    def results_in(self, lang: str, held: Operated | None) -> dict:
        """The result that is on the page, in another language."""
        page = self.page
        if held is not None:
            html, badge = present.html(held, lang), self.badge(held.setting.model, lang)
        else:
            html, ready = page.stored[lang], self.pool.ready(self.pool.default)
            loading = at.badge(t("app.loading", lang), "loading")
            badge = self.badge(self.pool.default, lang) if ready else loading
        words = {page.heat: AttentionView(words=attention_words(lang)), page.badge: badge}
        return words | {page.panels[name]: html[name] for name in present.PANELS}

    def on_load(self, progress: Any, request: gr.Request) -> dict:
        query = dict(request.query_params)
        lang = language(query.get("lang"), request.headers.get("accept-language", ""))
        page, first = self.page, dataclasses.replace(default.setting(), model=self.pool.default)
        updates: dict = {page.lang: gr.update(value=lang), **self.lessons.on_load(query, progress, lang)}
        if query.get("s"):
            try:
                setting = Setting.from_token(query["s"])
            except SurgeryError as error:
                updates |= {page.problem_plan: at.problem(error.say(lang))}
            else:
                shown = self.restore(setting, lang, self.pool.default, kind="replace")
                return merged(self.labels(lang), updates, shown)
        number = updates.get(page.exercise)
        if number:  # an exercise begins with nothing cut
            shown = self.restore(self.lessons.setting(number, lang), lang, self.pool.default, kind="replace")
            return merged(self.labels(lang), updates, shown)
        if lang != "en":
            info = {page.model: gr.update(info=self.pool.about(first.model, lang))}
            updates = merged(self.labels(lang), info, self.results_in(lang, None), updates)
        return merged(self.edit(first.steps, 0, first, lang), updates)

    def restore(self, setting: Setting, lang: str, good: str, *, kind: str = "push") -> dict:
        """Everything as a setting says, and its result."""
        page = self.page
        about = gr.update(value=setting.model, info=self.pool.about(setting.model, lang))
        result = merged({page.model: about}, self.run(setting, lang, good, kind=kind, view=setting.view))
        return merged(
            self.edit(setting.steps, setting.selected, setting, lang),
            result,
            {
                page.text: gr.update(value=setting.text),
                page.other: gr.update(value=setting.other),
                page.sweep_texts: gr.update(value=_lines(setting.text, setting.other)),
                page.pad_to: gr.update(value=setting.pad_to),
                page.literal: gr.update(value=setting.literal),
                page.view: setting.view,
                page.examples: gr.update(value=None),
            },
        )

    def on_ready(self, lang: str) -> dict:
        """Waits until the live model is there and says so."""
        page = self.page
        try:
            self.pool.get(self.pool.default)
        except SurgeryError as error:
            return {
                page.badge: at.badge(t("app.failed", lang, why=error.say(lang)), "failed"),
                page.model: gr.update(),
            }
        said = self.badge(self.pool.default, lang)
        if self.pool.problem is not None:
            why = self.pool.problem.say(lang)
            said = at.badge(t("app.fallback", lang, why=why, model=self.pool.default), "failed")
        chosen = gr.update(value=self.pool.default, info=self.pool.about(self.pool.default, lang))
        return {page.badge: said, page.model: chosen if self.pool.problem else gr.update()}

    def on_files(self, asked: dict, request: gr.Request) -> dict:
        """Writes everything about the result shown into files, in a folder of this visitor's own."""
        page, lang, view = self.page, asked[self.page.lang], self.view(asked)
        setting = self.shown_setting(asked)
        try:
            done = self.shown(asked) or operating.operate(self.pool, setting)
            files = self.outbox.fill(
                str(request.session_hash), lambda folder: _write(folder, done, view, lang)
            )
        except ExportError as error:
            return {
                page.files: gr.update(value=None, visible=False),
                page.copied: at.problem(error.say(lang)),
            }
        except SurgeryError as error:
            return self.refuse(error, setting, lang, setting.model)
        return {page.files: gr.update(value=list(map(str, files)), visible=True)}

    def on_leave(self, request: gr.Request) -> None:
        """Nothing of a visitor who left stays in the outbox."""
        self.outbox.drop(str(request.session_hash))

    def on_write(self, asked: dict) -> dict:
        """Another draw of what a decoder writes on."""
        page, lang, seed = self.page, asked[self.page.lang], asked[self.page.draws]
        done = self.shown(asked)
        if done is None:
            return {page.draws: seed}  # nothing was run yet that could be written on
        try:
            found = writing.write(self.pool, done, seed)
        except SurgeryError as error:
            return self.refuse(error, done.setting, lang, done.setting.model)
        return {page.written: panels.written(found, seed, lang), page.draws: seed + 1}

    # --- sweeping ---------------------------------------------------------------------------------------

    def on_sweep(self, lang: str, model: str, texts: str | None, kind: Any) -> Iterator[dict]:
        """Text by text, so that what was found stays when it is cancelled."""
        page = self.page
        yield {page.sweep: panels.sweep(None, lang), page.swept: None, page.problem_sweep: at.problem("")}
        try:
            for swept in sweeping.sweep(self.pool, model, texts or "", kind):
                yield {
                    page.sweep: panels.sweep(swept, lang),
                    page.swept: swept,
                    page.problem_sweep: at.problem(""),
                }
        except SurgeryError as error:
            yield {page.problem_sweep: at.problem(error.say(lang))}

    def on_sweep_file(self, path: str | None, lang: str) -> dict:
        """The texts of an uploaded file, put into the box."""
        page = self.page
        if path is None:
            return {page.problem_sweep: at.problem("")}
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            return {page.problem_sweep: at.problem(t("sweep.unreadable", lang))}
        finally:
            Path(path).unlink(missing_ok=True)  # an upload, of which only the texts are needed
        try:
            return {
                page.sweep_texts: "\n".join(sweeping.lines(text, self.limits)),
                page.problem_sweep: at.problem(""),
            }
        except SurgeryError as error:
            return {page.problem_sweep: at.problem(error.say(lang))}

    # --- language ---------------------------------------------------------------------------------------

    def labels(self, lang: str, swept: Any = None, trained: Any = None) -> dict:
        """Every label in one language, and what a sweep and a training run have found."""
        page = self.page
        labelled = {
            page.lang: "app.language", page.examples: "app.examples", page.presets: "app.presets",
            page.fine: "app.fine", page.more: "app.more", page.pad_to: "app.pad_to", page.literal: "app.literal",
            page.files: "app.downloads", page.sweep_kind: "sweep.kind", page.sweep_texts: "sweep.texts",
            page.text: "app.text", page.other: "app.other", page.model: "app.model",
        }  # fmt: skip
        valued = {
            page.operate: "app.operate", page.reset: "app.reset", page.add: "form.add", page.cancel: "app.cancel",
            page.copy: "app.copy_link", page.make: "app.files", page.write: "written.write", page.sweep_run: "sweep.run",
            page.sweep_cancel: "app.cancel",
        }  # fmt: skip
        more: dict[Any, dict[str, Any]] = {
            page.text: {"info": at.text_info(lang)},
            page.other: {"info": t("app.other_info", lang)},
            page.examples: {"choices": at.example_choices(lang)},
            page.presets: {"choices": at.preset_choices(lang)},
            page.sweep_kind: {"choices": at.sweep_choices(lang)},
            page.sweep_texts: {"info": t("sweep.texts_info", lang)},
        }
        return (
            {
                page.title: at.title(lang),
                page.mode: gr.update(choices=at.mode_choices(lang), label=t("lesson.mode", lang)),
                page.running: at.running(lang),
                page.sweep_file: gr.update(label=t("sweep.file", lang)),
                page.sweep: panels.sweep(swept, lang),
            }
            | self.training.labels(lang, trained)
            | {box: gr.update(label=t(key, lang), **more.get(box, {})) for box, key in labelled.items()}
            | {button: gr.update(value=t(key, lang)) for button, key in valued.items()}
            | {tab: gr.update(label=t(f"tabs.{name}", lang)) for name, tab in page.tabs.items()}
        )

    # --- wiring -----------------------------------------------------------------------------------------

    def _wire(self) -> None:
        page, ask = self.page, self.ask
        self.everything: Any = {
            *self.run_outputs, *self.editor, *_taken_off(self.labels("en")), page.text, page.other, page.pad_to, page.literal,
            page.presets, page.view, page.examples, page.sweep, page.sweep_texts, page.problem_sweep, page.copied,
        }  # fmt: skip
        edited = self.run_outputs | self.editor
        runs = [
            self._run("operate", [page.operate.click, page.text.submit], self.refusing(self.on_operate, edits=False), ask, self.run_outputs),
            self._run("preset", page.presets.input, self.refusing(self.on_preset), {*ask, page.presets}, edited),
            self._run(
                "example", page.examples.input, self.refusing(self.on_example), {*ask, page.examples}, {*edited, page.text, page.other, page.sweep_texts}
            ),
            self._run("model", page.model.input, self.refusing(self.on_model), ask, edited),
            self._run("reset", page.reset.click, self.on_reset, ask, self.everything),
            self._run("write", page.write.click, self.on_write, {*ask, page.draws}, {page.written, page.draws, *self.run_outputs}),
            self._run("files", page.make.click, self.on_files, ask, {page.files, page.copied, *self.run_outputs}),
        ]  # fmt: skip
        page.cancel.click(None, None, None, js=script("stop", NAME=None), cancels=runs, **PRIVATE)
        page.cancel.click(self.on_cancel, ask, [page.presets, page.examples, page.model], **QUICK)
        page.token.change(None, page.token, None, js=script("address"), **PRIVATE)
        self._wire_plan()
        self._wire_view()
        self._wire_sweep()
        self.lessons.wire()
        remembered = {page.swept, page.trained, page.exercise, page.place, page.progress, page.report}
        page.lang.input(self.on_lang, {*ask, *remembered}, self.everything | self.lessons.outputs, **QUICK)

    def _run(self, name: str, triggers: Any, handler: Any, inputs: set, outputs: set) -> Any:
        """Wires what may take long: the page says that it runs, from the click on until it is done.

        inputs, outputs: sets, which Gradio puts in order; a list made of a set would have another order in another process,
        and a page that outlives its server would get its answers in the wrong places.
        """
        on = functools.partial(gr.on, triggers) if isinstance(triggers, list) else triggers
        on(None, None, None, js=script("start", NAME=name), **PRIVATE)
        done = on(
            handler,
            inputs,
            outputs,
            trigger_mode="always_last",
            show_progress="minimal",
            show_progress_on=self.page.running,
            **MODEL,
            **PRIVATE,
        )
        done.then(None, None, None, js=script("stop", NAME=name), **PRIVATE)
        done.then(self.on_change, self.ask, self.page.stale, **QUICK)  # settings may have changed meanwhile
        return done

    def _wire_plan(self) -> None:
        page, ask, editor = self.page, self.ask, self.editor
        last: dict[str, Any] = {"trigger_mode": "always_last", **QUICK}
        edits = [
            page.form.name.input(self.on_operation, {*ask, page.form.name}, editor, **QUICK),
            page.form.fields.input(self.on_fields, ask, editor, **last),
            page.grid.input(self.on_grid, {*ask, page.grid}, editor, **last),
            page.add.click(self.on_add, ask, editor, **QUICK),
            page.plan.action(self.on_plan, ask, editor, **QUICK),
        ]
        for edit in edits:
            edit.then(self.on_change, ask, page.stale, **QUICK)
        boxes: list[Any] = [page.text, page.other, page.model, page.pad_to, page.literal]
        gr.on([box.change for box in boxes], self.on_change, ask, page.stale, **last)
        page.text.input(self.on_typed, page.other, [page.examples, page.other], **last)
        page.pad_to.change(self.on_pad, ask, page.problem_pad, **last)

    def _wire_view(self) -> None:
        page = self.page
        page.heat.view_change(
            self.on_view, self.ask, [page.view, page.held, page.token, page.panels["pipeline"]],
            trigger_mode="always_last", **QUICK,
        )  # fmt: skip
        for panel in (page.panels["heads"], page.panels["verdict"], page.sweep):
            panel.action(self.on_open, page.view, page.heat, **QUICK)
        words = {
            lang: {"done": t("app.link_copied", lang), "failed": t("app.link_not_copied", lang)}
            for lang in LANGUAGES
        }
        page.copy.click(None, page.lang, page.copied, js=script("copy", WORDS=words), **PRIVATE)

    def _wire_sweep(self) -> None:
        page = self.page
        sweep = page.sweep_run.click(
            self.on_sweep,
            [page.lang, page.model, page.sweep_texts, page.sweep_kind],
            [page.sweep, page.swept, page.problem_sweep],
            **MODEL,
            **PRIVATE,
            show_progress="minimal",
            show_progress_on=page.sweep_kind,
        )
        page.sweep_cancel.click(None, None, None, cancels=[sweep], **PRIVATE)
        page.sweep_file.upload(
            self.on_sweep_file, [page.sweep_file, page.lang], [page.sweep_texts, page.problem_sweep], **QUICK
        )


def _lines(text: str, other: str) -> str:
    """What a sweep begins with: the texts of a setting, one a line."""
    return "\n".join(filter(None, (" ".join(text.split("\n")), " ".join(other.split("\n")))))


def _write(folder: Path, done: Operated, view: dict[str, Any], lang: str) -> None:
    """Everything about a result, as files."""
    from surgery import figures
    from ui.report import report

    comparison = done.comparison
    layer, head = view.get("layer"), view.get("head")
    if layer is None or head is None:
        layer, head = comparison.top_head
    figure = figures.heatmap(comparison, layer, head, lang)
    for ending in ("png", "svg"):
        figures.write(figure, folder / f"heatmap_L{layer}_H{head}.{ending}")
    (folder / "report.html").write_text(report(comparison, lang, **done.options), encoding="utf-8")
    comparison.save(folder, lang)


def script(name: str, **values: Any) -> str:
    """`static/on_<name>.js`, its capitals filled with values: a function that Gradio calls in the browser."""
    text = static_text(f"on_{name}.js")
    for gap, value in values.items():
        text = text.replace(f"${gap}", json.dumps(value, ensure_ascii=False))
    return text


def merged(*updates: dict) -> dict:
    """Updates one after the other; where two of one component only change some of its properties, all of these."""
    found: dict = {}
    for more in updates:
        for box, update in more.items():
            old: Any = found.get(box)
            partial = all(isinstance(u, dict) and "__type__" in u for u in (old, update))
            found[box] = {**old, **update} if partial else update
    return found


def _chosen(table: dict[str, Any], name: Any) -> Any:
    """An entry by name. Raises SettingError for a name that no widget gives."""
    if name not in table:
        listed = ", ".join(table)
        raise SettingError(
            f"Choose one of {listed}, not {name!r:.60}.", f"请选择 {listed} 之一，而不是 {name!r:.60}。"
        )
    return table[name]


def _taken_off(updates: dict) -> dict:
    """Updates made while the page is being built, where a component made for one would become part of it."""
    for update in updates.values():
        if isinstance(update, gr.blocks.Block):
            update.unrender()
    return updates


def _preset(steps: list[dict[str, Any]]) -> str | None:
    """The preset that is exactly these steps."""
    made = ((name, steps_.from_plan(plan)) for name, (_, plan) in presets.PRESETS.items())
    return next((name for name, preset in made if preset == steps), None)


def _essence(setting: Setting) -> tuple:
    """What a result depends on. Raises OperationError, SelectionError or PlanError."""
    plan = steps_.to_plan(setting.steps)
    return setting.text, setting.other.strip(), setting.model, setting.pad_to, setting.literal, plan


def language(asked: str | None, accepted: str) -> str:
    """The page's language, from `?lang=` or else from the Accept-Language header."""
    for wish in [asked or "", *(part.split(";")[0] for part in accepted.split(","))]:
        short = wish.strip().lower().split("-")[0]
        if short in LANGUAGES:
            return short
    return "en"
