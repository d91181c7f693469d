"""What happens when somebody does something. Every handler returns {component: update}."""

import dataclasses
import tempfile
from pathlib import Path
from typing import Any

import gradio as gr

from bilingual import LANGUAGES, SurgeryError
from surgery.operation import REGISTRY
from surgery.selection import Selection, SelectionError
from ui import layout as at
from ui import operating, panels, present, presets, sweeping
from ui import steps as steps_
from ui.headgrid import HeadGrid, grid_value, grid_words
from ui.heatmap import AttentionView, attention_words
from ui.layout import Layout
from ui.link import Setting
from ui.pool import Pool
from ui.texts import t

MODEL = {"concurrency_id": "model", "concurrency_limit": 2}  # whatever may touch a model shares one queue
PRIVATE = {"api_visibility": "private"}
QUICK = {**PRIVATE, "queue": False, "show_progress": "hidden"}

ADDRESS_JS = """(token) => {
  const url = new URL(location.href);
  if (!token || url.searchParams.get('s') === token) return;
  const first = !url.searchParams.get('s') && !history.state;
  url.searchParams.set('s', token);
  history[first ? 'replaceState' : 'pushState']({ surgery: true }, '', url);
}"""
COPY_JS = """(label) => { navigator.clipboard && navigator.clipboard.writeText(location.href); }"""


class Events:
    """The handlers of one page and their wiring."""

    def __init__(self, page: Layout, pool: Pool):
        self.page, self.pool = page, pool
        self.where = [page.where, *page.form.inputs]
        self.ask = [
            page.lang, page.text, page.other, page.model, page.pad_to, page.literal,
            page.steps, page.selected, page.view, *self.where,
        ]  # fmt: skip
        self.editor = [
            page.steps,
            page.selected,
            page.plan,
            page.where,
            page.grid,
            page.problem_plan,
            *page.form.outputs,
        ]
        self.run_outputs = [*page.results, page.held, page.token, *page.problems.values(), page.badge]
        self.scratch = tempfile.TemporaryDirectory(prefix="surgery-")  # gone when the server ends
        self._wire()

    # --- from the page to a setting and back ------------------------------------------------------------

    def setting(
        self, lang, text, other, model, pad_to, literal, steps, selected, view, where, *form
    ) -> Setting:
        """What the page shows, with the controls' values in the selected step."""
        if steps:
            steps = steps_.replace(steps, selected, self.page.form.read(where, *form))
        pad_to = int(pad_to) if pad_to else 0
        return Setting(
            text or "", other or "", model or "", steps, selected, pad_to, bool(literal), view or {}
        )

    def size(self, model: str) -> tuple[int, int]:
        """Layers and heads of a model that is loaded; of the first model until then."""
        from ui.default import stored

        if not self.pool.ready(model):
            heat = stored()["heat"]
            return heat["layers"], heat["heads"]
        from surgery import admit

        anatomy = admit(self.pool.get(model).model)
        return anatomy.layers, anatomy.heads

    def refused(self, model: str) -> dict[str, Any]:
        """Why some operations cannot act on a loaded model."""
        if not self.pool.ready(model):
            return {}
        from surgery import refusals

        return refusals(self.pool.get(model))

    def edit(self, steps: list, selected: int, model: str, lang: str, *, form: bool = True) -> dict:
        """Updates that show the plan with one step selected."""
        page = self.page
        shown = (
            steps[selected]
            if steps
            else steps_.new(presets.PRESETS[presets.FIRST][1].steps[0].operation.name)
        )
        updates = {
            page.steps: steps,
            page.selected: selected,
            page.plan: panels.plan(steps, selected, lang),
            page.grid: self.grid(shown, model, lang),
            page.problem_plan: self.complaint(shown, model, lang),
        }
        if form:
            updates[page.where] = gr.update(
                value=shown["at"], label=t("form.where", lang), info=t("form.where_info", lang)
            )
            updates |= dict(
                zip(page.form.outputs, page.form.show(shown, lang, self.refused(model)), strict=True)
            )
        return updates

    def grid(self, step: dict, model: str, lang: str) -> HeadGrid:
        """The grid of a step's selection; closed for what acts on the whole model."""
        layers, heads = self.size(model)
        whole = REGISTRY[step["operation"]].stage == "positions"
        try:
            cells = Selection.parse(step["at"]).cells(layers, heads)
        except SelectionError:
            cells = frozenset()
        return HeadGrid(
            value=grid_value(layers, heads, cells),
            words=grid_words(lang),
            disabled=t("form.whole", lang) if whole else "",
        )

    def complaint(self, step: dict, model: str, lang: str) -> Any:
        """What is wrong with a step on this model, said before anything runs."""
        try:
            steps_.to_plan([{**step, "on": True}])
            Selection.parse(step["at"]).cells(*self.size(model), model)
        except SurgeryError as error:
            return at.problem(error.say(lang))
        why = self.refused(model).get(step["operation"])
        return at.problem(why.say(lang) if why else "")

    # --- running ----------------------------------------------------------------------------------------

    def run(self, lang: str, setting: Setting, **props: Any) -> dict:
        """Operates and shows the result; an error is said beside its field, and the last result stays.

        props: of the maps, such as the view.
        """
        page = self.page
        try:
            done = operating.operate(self.pool, setting)
        except SurgeryError as error:
            return self.say(error, lang)
        updates = self.show(done, lang, **props)
        return (
            updates
            | {place: at.problem("") for place in page.problems.values()}
            | {page.badge: self.badge(setting.model, lang)}
        )

    def say(self, error: SurgeryError, lang: str) -> dict:
        """The error beside the field that it is about."""
        fields = {
            "TextError": "text",
            "LoadError": "model",
            "NotAllowedError": "model",
            "UnsupportedError": "plan",
        }
        place = fields.get(type(error).__name__, "plan")
        return {
            box: at.problem(error.say(lang) if name == place else "")
            for name, box in self.page.problems.items()
        }

    def show(self, done: operating.Operated, lang: str, **props: Any) -> dict:
        """A result on the page."""
        page = self.page
        html = present.html(done.comparison, done.setting, lang)
        return {
            page.heat: AttentionView(
                value=present.heat(done.comparison), words=attention_words(lang), **props
            ),
            **{page.panels[name]: html[name] for name in present.PANELS},
            page.held: done,
            page.token: done.setting.to_token(),
        }

    def badge(self, model: str, lang: str) -> str:
        patient = self.pool.get(model)
        return at.badge(t("app.ready", lang, model=model, device=str(patient.device).upper()), "ready")

    # --- handlers ---------------------------------------------------------------------------------------

    def on_operate(self, lang, *ask):
        setting = self.setting(lang, *ask)
        return self.run(lang, setting) | {
            self.page.steps: setting.steps,
            self.page.plan: panels.plan(setting.steps, setting.selected, lang),
        }

    def on_preset(self, name, lang, *ask):
        steps = steps_.from_plan(presets.PRESETS[name][1])
        setting = dataclasses.replace(self.setting(lang, *ask), steps=steps, selected=0)
        return self.edit(steps, 0, setting.model, lang) | self.run(lang, setting)

    def on_example(self, name, lang, *ask):
        _, text, other, model = presets.EXAMPLES[name]
        setting = dataclasses.replace(self.setting(lang, *ask), text=text, other=other, model=model)
        return {self.page.text: text, self.page.other: other} | self.with_model(lang, setting)

    def on_model(self, lang, *ask):
        return self.with_model(lang, self.setting(lang, *ask))

    def with_model(self, lang: str, setting: Setting) -> dict:
        """Runs on a model that may be new to the page: its size, what it refuses and what it is are shown, too."""
        about = gr.update(value=setting.model, info=self.pool.about(setting.model, lang))
        updates = self.run(lang, setting) | {self.page.model: about}
        if self.pool.ready(setting.model):
            edit = self.edit(setting.steps, setting.selected, setting.model, lang)
            problem = updates[self.page.problem_plan]
            updates = edit | updates | {self.page.problem_plan: problem}
        return updates

    def on_reset(self, lang):
        from ui import default

        first = dataclasses.replace(default.setting(), model=self.pool.default)
        return self.restore(first, lang)

    def on_edit(self, lang, model, steps, selected, where, *form):
        step = self.page.form.read(where, *form)
        return self.edit(steps_.replace(steps, selected, step), selected, model, lang, form=False)

    def on_operation(self, lang, model, steps, selected, where, name, *_):
        step = steps_.new(name, "L*" if REGISTRY[name].stage == "positions" else where)
        return self.edit(steps_.replace(steps, selected, step), selected, model, lang)

    def on_grid(self, grid, lang, model, steps, selected, where, *form):
        chosen = Selection.from_cells(grid["cells"], grid["layers"], grid["heads"])
        updates = self.on_edit(lang, model, steps, selected, str(chosen), *form)
        updates.pop(self.page.grid)  # it shows this already
        return updates | {self.page.where: str(chosen)}

    def on_add(self, lang, model, steps, selected, where, *form):
        steps = [*steps, steps_.new("temperature")]
        return self.edit(steps, len(steps) - 1, model, lang)

    def on_plan(self, steps, selected, lang, model, event: gr.EventData):
        do, index = event._data.get("do"), event._data.get("step")
        if not isinstance(do, str) or not isinstance(index, int):
            return {self.page.selected: selected}
        return self.edit(*steps_.act(steps, selected, do, index), model, lang)

    def on_view(self, held, lang, event: gr.EventData):
        view = {k: v for k, v in event._data.items() if k != "stamp"} if isinstance(event._data, dict) else {}
        updates = {self.page.view: view}
        if held is not None:
            held = operating.Operated(held.comparison, dataclasses.replace(held.setting, view=view))
            updates |= {
                self.page.held: held,
                self.page.token: held.setting.to_token(),
                self.page.panels["pipeline"]: present.pipeline(held.comparison, lang, view),
            }
        return updates

    def on_open(self, view, event: gr.EventData):
        layer, head = event._data.get("layer"), event._data.get("head")
        return AttentionView(
            view={**(view or {}), "layer": layer, "head": head, "average": False, "stamp": str(event._data)}
        )

    def on_lang(self, lang, held, steps, selected, model, swept=None):
        about = {
            self.page.lang: gr.update(label=t("app.language", lang)),
            self.page.model: gr.update(label=t("app.model", lang), info=self.pool.about(model, lang)),
            self.page.sweep: panels.sweep(swept, lang),
            self.page.sweep_file: gr.UploadButton(label=t("sweep.file", lang)),
        }
        return (
            self.labels(lang)
            | about
            | self.edit(steps, selected, model, lang)
            | self.results_in(lang, held, model)
        )

    def results_in(self, lang: str, held: Any, model: str) -> dict:
        """The result that is on the page, in another language."""
        page = self.page
        if held is not None:
            html = present.html(held.comparison, held.setting, lang)
            state = {page.badge: self.badge(held.setting.model, lang)}
        else:
            html = page.stored[lang]
            ready = self.pool.ready(self.pool.default)
            state = {
                page.badge: self.badge(model, lang) if ready else at.badge(t("app.loading", lang), "loading")
            }
        words = {page.heat: AttentionView(words=attention_words(lang))}
        return words | {page.panels[name]: html[name] for name in present.PANELS} | state

    def on_load(self, request: gr.Request):
        query = dict(request.query_params)
        lang = language(query.get("lang"), request.headers.get("accept-language", ""))
        page = self.page
        updates: dict = {page.lang: gr.update(value=lang, label=t("app.language", lang))}
        if query.get("s"):
            try:
                return updates | self.labels(lang) | self.restore(Setting.from_token(query["s"]), lang)
            except SurgeryError as error:
                updates |= {page.problem_plan: at.problem(error.say(lang))}
        if lang != "en":
            updates = self.on_lang(lang, None, page.first.steps, 0, self.pool.default) | updates
        return updates

    def restore(self, setting: Setting, lang: str) -> dict:
        """Everything as a setting says, and its result."""
        page = self.page
        result = self.run(lang, setting, view=setting.view)
        updates = self.edit(setting.steps, setting.selected, setting.model, lang)
        kept = next(
            (name for name, (_, plan) in presets.PRESETS.items() if steps_.from_plan(plan) == setting.steps),
            None,
        )
        return (
            updates
            | result
            | {
                page.text: setting.text,
                page.other: setting.other,
                page.model: gr.update(
                    value=setting.model, label=t("app.model", lang), info=self.pool.about(setting.model, lang)
                ),
                page.pad_to: setting.pad_to,
                page.literal: setting.literal,
                page.presets: kept,
                page.view: setting.view,
                page.examples: None,
            }
        )

    def on_ready(self, lang):
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

    def on_files(self, held, lang, view, *ask):
        """Writes everything about the last result into files of this visitor's own."""
        from surgery import figures
        from ui.report import report

        try:
            done = held or operating.operate(self.pool, self.setting(lang, *ask))
        except SurgeryError as error:
            return self.say(error, lang)
        comparison = done.comparison
        folder = Path(tempfile.mkdtemp(dir=self.scratch.name))
        layer, head = view.get("layer"), view.get("head")
        if layer is None or head is None:
            layer, head = comparison.top_head
        figure = figures.heatmap(comparison, layer, head, lang)
        for ending in ("png", "svg"):
            figures.write(figure, folder / f"heatmap_L{layer}_H{head}.{ending}")
        asked = done.setting
        options = {
            "other": asked.other.strip() or None,
            "pad_to": asked.pad_to or None,
            "literal": asked.literal,
        }
        (folder / "report.html").write_text(report(comparison, lang, **options), encoding="utf-8")
        comparison.save(folder, lang)
        return {
            self.page.files: gr.update(value=[str(path) for path in sorted(folder.iterdir())], visible=True)
        }

    # --- sweeping ---------------------------------------------------------------------------------------

    def on_sweep(self, lang, model, texts, kind):
        """Text by text, so that what was found stays when it is cancelled."""
        page = self.page
        try:
            for swept in sweeping.sweep(self.pool, model, texts or "", kind):
                yield {
                    page.sweep: panels.sweep(swept, lang),
                    page.swept: swept,
                    page.problem_sweep: at.problem(""),
                }
        except SurgeryError as error:
            yield {page.problem_sweep: at.problem(error.say(lang))}

    def on_sweep_file(self, path, lang):
        """The texts of an uploaded file, put into the box."""
        page = self.page
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            return {page.problem_sweep: at.problem(t("sweep.unreadable", lang))}
        try:
            return {page.sweep_texts: "\n".join(sweeping.lines(text)), page.problem_sweep: at.problem("")}
        except SurgeryError as error:
            return {page.problem_sweep: at.problem(error.say(lang))}

    # --- language ---------------------------------------------------------------------------------------

    def labels(self, lang: str) -> dict:
        """Every label in one language."""
        page = self.page
        labelled = {
            page.lang: "app.language", page.examples: "app.examples", page.presets: "app.presets",
            page.fine: "app.fine", page.more: "app.more", page.pad_to: "app.pad_to", page.literal: "app.literal",
            page.files: "app.downloads", page.sweep_kind: "sweep.kind", page.sweep_texts: "sweep.texts", page.text: "app.text", page.other: "app.other",
        }  # fmt: skip
        valued = {
            page.operate: "app.operate", page.reset: "app.reset", page.add: "form.add",
            page.copy: "app.copy_link", page.make: "app.files", page.sweep_run: "sweep.run",
            page.sweep_cancel: "app.cancel",
        }  # fmt: skip
        more = {
            page.text: {"info": at.text_info(lang)},
            page.other: {"info": t("app.other_info", lang)},
            page.examples: {"choices": at.example_choices(lang)},
            page.presets: {"choices": at.preset_choices(lang)},
            page.sweep_kind: {"choices": at.sweep_choices(lang)},
        }
        return (
            {page.title: at.title(lang)}
            | {box: gr.update(label=t(key, lang), **more.get(box, {})) for box, key in labelled.items()}
            | {button: gr.update(value=t(key, lang)) for button, key in valued.items()}
            | {tab: gr.update(label=t(f"tabs.{name}", lang)) for name, tab in page.tabs.items()}
        )

    # --- wiring -----------------------------------------------------------------------------------------

    def _wire(self) -> None:
        page = self.page
        self.everything = everything = list(
            {
                *self.run_outputs, *self.editor, page.text, page.other, page.model, page.pad_to, page.literal,
                page.presets, page.view, page.examples, page.lang, page.title, page.fine, page.more, page.files,
                page.operate, page.reset, page.add, page.copy, page.make, page.sweep, page.sweep_run, page.sweep_cancel, page.sweep_file, page.sweep_kind,
                page.sweep_texts, *page.tabs.values(),
            }
        )  # fmt: skip
        run = {
            **MODEL,
            **PRIVATE,
            "trigger_mode": "always_last",
            "show_progress": "minimal",
            "show_progress_on": page.badge,
        }
        edit_inputs = [page.lang, page.model, page.steps, page.selected, *self.where]
        edited = [*self.run_outputs, *self.editor]

        gr.on([page.operate.click, page.text.submit], self.on_operate, self.ask, edited, **run)
        page.presets.input(self.on_preset, [page.presets, *self.ask], edited, **run)
        page.examples.input(
            self.on_example, [page.examples, *self.ask], [*edited, page.text, page.other, page.model], **run
        )
        page.model.input(self.on_model, self.ask, [*edited, page.model], **run)
        page.reset.click(self.on_reset, page.lang, everything, **run)
        page.token.change(None, page.token, None, js=ADDRESS_JS, **PRIVATE)

        page.form.name.input(self.on_operation, edit_inputs, self.editor, **QUICK)
        moved = [
            box.release if isinstance(box, gr.Slider) else box.input for box in page.form.parameters.values()
        ]
        gr.on(
            [*moved, page.where.input, page.where.submit],
            self.on_edit,
            edit_inputs,
            self.editor,
            trigger_mode="always_last",
            **QUICK,
        )
        page.grid.input(
            self.on_grid, [page.grid, *edit_inputs], self.editor, trigger_mode="always_last", **QUICK
        )
        page.add.click(self.on_add, edit_inputs, self.editor, **QUICK)
        page.plan.action(
            self.on_plan, [page.steps, page.selected, page.lang, page.model], self.editor, **QUICK
        )

        page.heat.view_change(
            self.on_view, [page.held, page.lang], [page.view, page.held, page.token, page.panels["pipeline"]],
            trigger_mode="always_last", **QUICK,
        )  # fmt: skip
        for name in ("heads", "verdict"):
            page.panels[name].action(self.on_open, page.view, page.heat, **QUICK)
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
        page.sweep.action(self.on_open, page.view, page.heat, **QUICK)
        page.copy.click(None, page.copy, None, js=COPY_JS, **PRIVATE)
        page.make.click(
            self.on_files,
            [page.held, page.lang, page.view, *self.ask[1:]],
            [page.files, *page.problems.values()],
            **MODEL,
            **PRIVATE,
        )
        page.lang.input(
            self.on_lang,
            [page.lang, page.held, page.steps, page.selected, page.model, page.swept],
            everything,
            **QUICK,
        )


def language(asked: str | None, accepted: str) -> str:
    """The page's language, from `?lang=` or else from the Accept-Language header."""
    for wish in [asked or "", *(part.split(";")[0] for part in accepted.split(","))]:
        short = wish.strip().lower().split("-")[0]
        if short in LANGUAGES:
            return short
    return "en"
