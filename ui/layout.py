"""Where everything stands on the page. No behaviour: `ui.events` wires it."""

from typing import Any

import gradio as gr

from ui import default, lessons, panels, presets, sweeping, training
from ui.controls import OperationForm
from ui.headgrid import HeadGrid, grid_value
from ui.heatmap import AttentionView
from ui.panel import Panel
from ui.pool import Pool
from ui.present import PANELS
from ui.texts import t

LANGUAGE_CHOICES = [("English", "en"), ("中文", "zh")]
TABS = ("outputs", "heads", "layers", "receipt", "pipeline", "code")


class Layout:
    """The components of the page, by name."""

    def __init__(self, pool: Pool, lang: str = "en", *, teaching: bool = False):
        first, stored = default.setting(), default.stored()
        self.first, self.stored, self.pool = first, stored, pool
        with gr.Row(elem_id="top"):
            with gr.Column(scale=5, min_width=240):
                self.title = gr.Markdown(title(lang), elem_id="title")
            with gr.Column(scale=2, min_width=200):
                self.mode = gr.Radio(
                    mode_choices(lang),
                    value="playground",
                    label=t("lesson.mode", lang),
                    elem_id="mode",
                    show_label=False,
                    container=False,
                )
            with gr.Column(scale=2, min_width=200):
                self.lang = gr.Radio(
                    LANGUAGE_CHOICES,
                    value=lang,
                    label=t("app.language", lang),
                    elem_id="lang",
                    show_label=False,
                    container=False,
                )
        self._workshop(lang, teaching, pool.limits.seconds_kept)
        with gr.Row(elem_id="main", equal_height=False):
            with gr.Column(scale=4, min_width=320, elem_id="left"):
                with gr.Column(elem_id="ask", min_width=0):
                    self._ask(lang)
                self._fine(lang)
            with gr.Column(scale=8, min_width=320, elem_id="right"):
                self._answer(lang)
        # The server may forget what is a State: it starts again, or has too many visitors. The page then repeats it.
        # held: the last ui.operating.Operated of this visitor; `token` spells it
        kept = pool.limits.seconds_kept
        self.held = gr.State(None, time_to_live=kept)
        # steps, selected: the plan as edited, and which step of it is open; `draft` spells them
        self.steps = gr.State(None, time_to_live=kept)
        self.selected = gr.State(0, time_to_live=kept)
        self.view = gr.State(None, time_to_live=kept)
        self.trained = gr.State(None, time_to_live=kept)  # the last ui.training.Trained of this visitor
        self.swept = gr.State(None, time_to_live=kept)  # the last ui.sweeping.Swept of this visitor
        self.token = gr.Textbox(visible="hidden", elem_id="token")
        self.draft = gr.Textbox(visible="hidden", elem_id="draft")

    def _workshop(self, lang: str, teaching: bool, kept: int) -> None:
        self.progress = gr.BrowserState({}, storage_key=lessons.STORAGE, secret=lessons.STORAGE)
        self.exercise = gr.State(0)  # its number, 0 before one is opened
        self.place = gr.Textbox(visible="hidden", elem_id="place")  # what the address says of it
        self.report = gr.State(None, time_to_live=kept)  # the last workshop.Report of this visitor
        self.clock: Any = gr.Timer(5, active=False) if teaching else None
        self.classroom = Panel("", elem_id="classroom", visible=False)
        with gr.Row(elem_id="workshop", visible=False, equal_height=False) as self.workshop:
            with gr.Column(scale=4, min_width=320, elem_id="lessons-column"):
                self.lessons = Panel("", elem_id="lessons")
            with gr.Column(scale=8, min_width=320, elem_id="lesson-column"):
                self.lesson = Panel("", elem_id="lesson")
                # Every exercise's: a server that has forgotten which one is open takes no answer that is not among them.
                self.choice = gr.Radio(lessons.answers(), label="", elem_id="choice")
                self.number = gr.Number(None, label="", visible=False, elem_id="number")
                self.commit = gr.Button(t("lesson.commit", lang), variant="primary", elem_id="commit")
                self.task = Panel("", elem_id="task")
                self.check = gr.Button(
                    t("lesson.check", lang), variant="primary", visible=False, elem_id="check"
                )
                self.problem_lesson = gr.HTML(elem_classes="problem", elem_id="problem-lesson", visible=False)
                self.graded = Panel("", elem_id="graded")

    def _ask(self, lang: str) -> None:
        first = self.first
        self.text = gr.Textbox(
            first.text, label=t("app.text", lang), info=text_info(lang), lines=1, max_lines=6, elem_id="text"
        )
        self.problem_text = gr.HTML(elem_classes="problem", elem_id="problem-text", visible=False)
        self.examples = gr.Radio(
            example_choices(lang), label=t("app.examples", lang), elem_id="examples", elem_classes="pills"
        )
        self.model = gr.Dropdown(
            list(self.pool.allowed),
            value=self.pool.default,
            label=t("app.model", lang),
            info=self.pool.about(self.pool.default, lang),
            allow_custom_value=not self.pool.public,
            filterable=not self.pool.public,
            elem_id="model",
        )
        self.problem_model = gr.HTML(elem_classes="problem", elem_id="problem-model", visible=False)
        self.presets = gr.Radio(
            preset_choices(lang),
            value=presets.FIRST,
            label=t("app.presets", lang),
            elem_id="presets",
            elem_classes="pills",
        )
        with gr.Row(elem_id="go"):
            self.operate = gr.Button(
                t("app.operate", lang), variant="primary", elem_id="operate", min_width=120
            )
            self.reset = gr.Button(t("app.reset", lang), elem_id="reset", min_width=80)
        self.problem_plan = gr.HTML(elem_classes="problem", elem_id="problem-plan", visible=False)

    def _fine(self, lang: str) -> None:
        first = self.first
        with gr.Accordion(t("app.fine", lang), open=False, elem_id="fine") as self.fine:
            self.plan = Panel(panels.plan(first.steps, 0, lang), elem_id="plan")
            size = (self.stored["heat"]["layers"], self.stored["heat"]["heads"])
            self.form = OperationForm(first.steps[0], size, lang)
            self.grid = HeadGrid(grid_value(*size), disabled=t("form.whole", lang), elem_id="grid")
            self.add = gr.Button(t("form.add", lang), size="sm", elem_id="add")
        with gr.Accordion(t("app.more", lang), open=False, elem_id="more") as self.more:
            self.other = gr.Textbox(
                first.other, label=t("app.other", lang), info=t("app.other_info", lang), elem_id="other"
            )
            self.pad_to = gr.Number(0, label=t("app.pad_to", lang), elem_id="pad_to")
            self.problem_pad = gr.HTML(elem_classes="problem", elem_id="problem-pad", visible=False)
            self.literal = gr.Checkbox(False, label=t("app.literal", lang), elem_id="literal")

    def _answer(self, lang: str) -> None:
        stored = self.stored
        with gr.Column(elem_id="result", min_width=0):
            self.badge = gr.HTML(badge(t("app.loading", lang), "loading"), elem_id="badge")
            with gr.Row(elem_id="running"):
                self.running = gr.HTML(running(lang))
                self.cancel = gr.Button(
                    t("app.cancel", lang), size="sm", elem_id="cancel", min_width=70, scale=0
                )
            self.stale = gr.HTML(stale(self.pool.default != self.first.model, lang), elem_id="stale")
            self.panels: dict[str, Any] = {"verdict": Panel(stored[lang]["verdict"], elem_id="verdict")}
        self.heat = AttentionView(stored["heat"], elem_id="maps")
        self.tabs: dict[str, Any] = {}
        with gr.Tabs(elem_id="tabs"):
            for name in TABS:
                with gr.Tab(t(f"tabs.{name}", lang), id=name, render_children=True) as self.tabs[name]:
                    self.panels[name] = Panel(stored[lang][name], elem_id=f"panel-{name}")
                    if name == "outputs":
                        self.write = gr.Button(t("written.write", lang), visible=False, elem_id="write")
                        self.written = Panel("", elem_id="written")
                        self.draws = gr.State(0)  # how often this visitor has let it write
            self._sweep(lang)
            self._train(lang)
            with gr.Tab(t("tabs.share", lang), id="share", render_children=True) as self.tabs["share"]:
                self.copy = gr.Button(t("app.copy_link", lang), elem_id="copy-link")
                self.copied = gr.HTML(elem_id="copied")
                self.make = gr.Button(t("app.files", lang), elem_id="make-files")
                self.files = gr.Files(
                    label=t("app.downloads", lang), interactive=False, visible=False, elem_id="files"
                )

    def _sweep(self, lang: str) -> None:
        with gr.Tab(t("tabs.sweep", lang), id="sweep", render_children=True) as self.tabs["sweep"]:
            self.sweep_kind = gr.Radio(
                sweep_choices(lang),
                value="heads",
                label=t("sweep.kind", lang),
                elem_id="sweep-kind",
                elem_classes="pills",
            )
            self.sweep_texts = gr.Textbox(
                "\n".join((self.first.text, self.first.other)),
                lines=3,
                label=t("sweep.texts", lang),
                info=t("sweep.texts_info", lang),
                elem_id="sweep-texts",
            )
            with gr.Row():
                self.sweep_run = gr.Button(
                    t("sweep.run", lang), variant="primary", elem_id="sweep-run", min_width=100
                )
                self.sweep_cancel = gr.Button(t("app.cancel", lang), elem_id="sweep-cancel", min_width=80)
                self.sweep_file = gr.UploadButton(
                    t("sweep.file", lang), file_types=[".txt", ".csv"], elem_id="sweep-file", min_width=140
                )
            self.problem_sweep = gr.HTML(elem_classes="problem", elem_id="problem-sweep", visible=False)
            self.sweep = Panel(panels.sweep(None, lang), elem_id="panel-sweep")

    def _train(self, lang: str) -> None:
        with gr.Tab(t("tabs.train", lang), id="train", render_children=True) as self.tabs["train"]:
            self.train_task = gr.Dropdown(
                train_choices(lang),
                value="agree",
                label=t("train.task", lang),
                filterable=False,
                elem_id="train-task",
            )
            with gr.Row():
                self.train_steps = gr.Number(
                    200, precision=0, label=t("train.steps", lang), elem_id="train-steps"
                )
                self.train_seed = gr.Number(0, precision=0, label=t("train.seed", lang), elem_id="train-seed")
            self.train_operated = gr.Checkbox(
                False, label=t("train.operated", lang), elem_id="train-operated"
            )
            with gr.Row():
                self.train_run = gr.Button(
                    t("train.run", lang), variant="primary", elem_id="train-run", min_width=100
                )
                self.train_stop = gr.Button(t("train.stop", lang), elem_id="train-stop", min_width=80)
            self.problem_train = gr.HTML(elem_classes="problem", visible=False)
            self.train = Panel(panels.train(None, lang), elem_id="panel-train")
            self.replay = gr.Slider(
                0, 1, 1, step=1, label=t("train.replay", lang), visible=False, elem_id="train-replay"
            )
            self.replayed = AttentionView(None, words=training.words(lang), elem_id="train-maps")

    @property
    def results(self) -> list[Any]:
        """What a run fills in."""
        return [self.heat, *(self.panels[name] for name in PANELS), self.write, self.written]

    @property
    def problems(self) -> dict[str, Any]:
        """Where an error is said, beside the field it is about."""
        return {
            "text": self.problem_text,
            "model": self.problem_model,
            "plan": self.problem_plan,
            "pad": self.problem_pad,
        }


def title(lang: str) -> str:
    return f"# {t('app.title', lang)}\n{t('app.purpose', lang)}"


def text_info(lang: str) -> str:
    return t("app.text_info", lang, mask="[MASK]")


def example_choices(lang: str) -> list[tuple[str, str]]:
    return [(label.say(lang), name) for name, (label, *_) in presets.EXAMPLES.items()]


def mode_choices(lang: str) -> list[tuple[str, str]]:
    return [(t(f"lesson.mode_{name}", lang), name) for name in ("playground", "workshop")]


def train_choices(lang: str) -> list[tuple[str, str]]:
    return [(label.say(lang), name) for name, label in training.TASKS.items()]


def sweep_choices(lang: str) -> list[tuple[str, str]]:
    return [(label.say(lang), name) for name, label in sweeping.TITLES.items()]


def preset_choices(lang: str) -> list[tuple[str, str]]:
    return [(label.say(lang), name) for name, (label, _) in presets.PRESETS.items()]


def badge(text: str, state: str) -> str:
    """The line over the result. state: "loading", "running", "ready", "stale" or "failed"."""
    from markupsafe import escape

    return f'<p class="badge {state}" role="status" data-state="{state}">{escape(text)}</p>' if text else ""


def running(lang: str) -> str:
    """Says that something runs; the page adds the place in the queue and the time."""
    return badge(t("app.running", lang), "running").replace("<p ", f'<p data-queue="{t("app.queue", lang)}" ')


def stale(is_stale: bool, lang: str) -> str:
    """Says that the result shown is not that of the settings shown; nothing where it is."""
    return badge(t("app.stale", lang) if is_stale else "", "stale")


def problem(text: str) -> Any:
    """An update that says what is wrong, or nothing."""
    from markupsafe import escape

    return gr.update(value=f'<p role="alert">{escape(text)}</p>' if text else "", visible=bool(text))
