"""The Gradio app: `build` makes the page, `serve` shows it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # before gradio is imported

import gradio as gr
from fastapi.exceptions import RequestValidationError
from starlette.middleware import Middleware

from bilingual import LANGUAGES
from surgery.plan import Plan
from ui import operating, sweeping
from ui import steps as steps_
from ui.component import static_text
from ui.events import MODEL, PRIVATE, Events
from ui.gate import Gate, unreadable
from ui.guard import Guarded, Refused, refusal
from ui.layout import Layout
from ui.lessons import Classroom
from ui.link import Setting
from ui.memory import few_arenas
from ui.pool import Pool

SANS = [
    "system-ui",
    "-apple-system",
    "Segoe UI",
    "PingFang SC",
    "Microsoft YaHei",
    "Noto Sans CJK SC",
    "sans-serif",
]
MONO = ["ui-monospace", "SF Mono", "Menlo", "Consolas", "monospace"]
ENDPOINTS = ("operate", "sweep", "models")
BACK_JS = "() => { window.addEventListener('popstate', () => location.reload()); }"


def build(pool: Pool, room: Classroom | None = None) -> Guarded:
    """The page over the models of `pool`. room: where the predictions of the workshop are counted, for a teacher."""
    kept = pool.limits.seconds_kept
    with Guarded(
        title="Attention surgery", fill_width=True, analytics_enabled=False, delete_cache=(kept, kept)
    ) as demo:
        page = Layout(pool, teaching=room is not None)
        events = Events(page, pool, room)
        demo.unload(events.on_leave)
        filled = events.everything | events.lessons.outputs | ({page.clock} if room else set())
        demo.load(events.on_load, page.progress, filled, **MODEL, **PRIVATE, show_progress="hidden")
        demo.load(
            events.on_ready,
            page.lang,
            [page.badge, page.model],
            **PRIVATE,
            show_progress="hidden",
            concurrency_limit=None,
        )
        gr.api(_operate_api(pool), api_name="operate", **MODEL)
        gr.api(_sweep_api(pool), api_name="sweep", **MODEL)
        gr.api(_models_api(pool), api_name="models")
    for event in demo.fns.values():
        if event.concurrency_id == MODEL["concurrency_id"]:
            event.concurrency_limit = pool.limits.runs_at_once
    demo.limits, demo.endpoints = pool.limits, ENDPOINTS
    return demo


def _operate_api(pool: Pool) -> Any:
    def operate(
        text: str,
        plan: dict | None = None,
        model: str = "minilm",
        other: str = "",
        pad_to: int = 0,
        literal: bool = False,
        lang: str = "en",
    ) -> dict:
        """Runs `text` without and with `plan` and returns everything measured, as `Comparison.to_dict()` gives it.

        plan: {"version": 1, "operations": [{"operation": "temperature", "t": 2.0, "at": "L0-3.H1,5"}]}; none is the empty plan.
        model: a name that /models gives. other: a second text, for the similarity of the two. pad_to: pads to so many tokens,
        0 does not. literal: typed special tokens are characters. lang: "en" or "zh", the language of caveats, notices and
        error messages; the verdict comes in both.

        With curl, by name, leaving out what has a default:
            curl -s ADDRESS/gradio_api/call/v2/operate -H "Content-Type: application/json" \\
                -d '{"text": "The dog bit the man", "plan": {"version": 1, "operations": [{"operation": "drop_scaling"}]}}'
        answers {"event_id": "ID"}; then
            curl -sN ADDRESS/gradio_api/call/operate/ID
        gives the result, or an error in words, on its last "data:" line.
        """
        with _in_words(lang):
            steps = steps_.from_plan(Plan() if plan is None else Plan.from_dict(plan))
            setting = Setting(text, other, model, steps, pad_to=pad_to, literal=literal)
            comparison = operating.operate(pool, setting).comparison
            said = {
                "caveats": [words.say(lang) for words in comparison.caveats],
                "notices": comparison.notices(lang),
            }
            return comparison.to_dict() | said

    return operate


def _sweep_api(pool: Pool) -> Any:
    def sweep(
        texts: list[str], plans: list[dict], model: str = "minilm", seeds: int = 1, lang: str = "en"
    ) -> list[dict]:
        """Many plans on many texts: one record per (text, plan) with what the plan changed, as `surgery.sweep` gives it.

        texts: a list of texts. plans: a list of plans, each as for /operate. seeds: how many seeds a random plan runs with; the
        measures are means, with `_sd`. lang: "en" or "zh", the language of error messages. With curl: as /operate.
        """
        with _in_words(lang):
            return sweeping.sweep_plans(pool, model, texts, plans, seeds)

    return sweep


def _models_api(pool: Pool) -> Any:
    def models(lang: str = "en") -> list[dict]:
        """The models that this server offers: [{"name": ..., "about": ...}]. lang: "en" or "zh"."""
        with _in_words(lang):
            return [{"name": name, "about": pool.about(name, lang)} for name in pool.allowed]

    return models


@contextmanager
def _in_words(lang: Any) -> Iterator[None]:
    """Turns whatever goes wrong into a sentence that reaches the caller, in the language asked for."""
    if not isinstance(lang, str) or lang not in LANGUAGES:
        listed = ", ".join(LANGUAGES)
        raise Refused(f"lang = {lang!r:.60} is not known: give one of {listed}.")
    try:
        yield
    except Exception as error:
        raise refusal(error, lang) from error


def theme() -> gr.themes.Base:
    """Gradio's own look with the reader's fonts, and colours that can be read (contrast 4.5 or more)."""
    base = gr.themes.Default(font=SANS, font_mono=MONO, primary_hue="teal", neutral_hue="slate")
    return base.set(
        body_text_color_subdued="*neutral_600",
        block_info_text_color="*neutral_600",
        button_primary_background_fill="*primary_700",
        button_primary_background_fill_hover="*primary_800",
        button_primary_background_fill_dark="*primary_700",
        button_primary_background_fill_hover_dark="*primary_600",
    )


def serve(demo: Guarded, **options: Any) -> Any:
    """Launches the page; `options` are those of `gr.Blocks.launch`."""
    few_arenas()
    limits = demo.limits
    demo.queue(max_size=limits.queue)
    gate = Middleware(Gate, limits=limits, demo=demo)
    return demo.launch(
        app_kwargs={
            "middleware": [gate],
            "exception_handlers": {RequestValidationError: unreadable},
            "docs_url": None,
            "redoc_url": None,
            "openapi_url": None,
        },
        max_file_size=limits.file_bytes,
        enable_monitoring=False,
        show_error=False,
        theme=theme(),
        css=static_text("app.css"),
        js=BACK_JS,
        footer_links=[],
        run_history=False,
        ssr_mode=False,
        state_session_capacity=limits.sessions,
        **options,
    )
