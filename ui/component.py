import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.context import LocalContext

FOLDER = Path(__file__).parent / "static"


@cache
def static_text(name: str) -> str:
    """The text of one of our own JavaScript or CSS files, without indentation and lines of comment."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    if name.endswith(".css"):
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


class BrowserComponent(gr.HTML):
    """A component that is drawn by `static/<name>.js` into an empty element of class `root`.

    Data reaches the page through the value and the props, never through the HTML template, which escapes nothing.
    An event listener may return a subclass with only the arguments that change, made inside the listener.
    """

    SCRIPT = ""
    ROOT = ""
    CUSTOM_EVENTS: tuple[str, ...] = ()

    def __init__(self, value: Any, defaults: dict[str, Any], shared: dict | None, **kwargs: Any):
        super().__init__(
            value=value,
            html_template=f'<div class="{self.ROOT}"></div>',
            css_template=static_text(f"{self.SCRIPT}.css"),
            js_on_load=static_text(f"{self.SCRIPT}.js"),
            apply_default_css=False,
            shared=self._gather(defaults, shared),
            **kwargs,
        )

    def _note_update(self, names: Iterable[str]) -> None:
        """To be called first of all: under an event listener, what was said about our props becomes `shared`.

        Whatever an update of a gr.HTML says, Gradio replaces all of its props by the ones that were said, and
        forgets the others. So ours travel as one dict. Gradio hands it on to the component that it rebuilds from
        everything said to this visitor so far, which completes it, and only then sends it to the browser.
        """
        if LocalContext.in_event_listener.get(False):
            arguments = self._constructor_args[0]
            arguments["shared"] = {name: arguments.pop(name) for name in names if name in arguments}

    def _gather(self, defaults: dict[str, Any], shared: dict | None) -> dict[str, Any]:
        arguments = self._constructor_args[0]
        arguments.pop("shared", None)
        arguments.update(shared or {})
        said = {name: arguments[name] for name in defaults if arguments.get(name) is not None}
        complete = defaults | said
        if shared is not None:
            shared.update(complete)
        return complete

    def __getattr__(self, name: str) -> Any:
        # gr.HTML takes every quoted word in the JavaScript for an event, our props included.
        if name in type(self).CUSTOM_EVENTS:
            return super().__getattr__(name)
        raise AttributeError(name)
