"""The controls of an operation, made from the registry: one for each parameter of each operation."""

from typing import Any

import gradio as gr

from surgery.operation import REGISTRY, STAGES, Parameter
from ui.steps import Step
from ui.texts import t


def choices(lang: str, refused: dict[str, Any] | None = None) -> list[tuple[str, str]]:
    """(label, name) of the operations in the order of their stages; what the model refuses is marked."""
    refused = refused or {}
    names = sorted(REGISTRY, key=lambda name: (STAGES.index(REGISTRY[name].stage), name))
    mark = t("form.not_here", lang)
    return [
        (REGISTRY[name].title.say(lang) + (f" — {mark}" if refused.get(name) else ""), name) for name in names
    ]


class OperationForm:
    """A dropdown of operations and the chosen one's parameters."""

    def __init__(self, step: Step, lang: str = "en"):
        self.name = gr.Dropdown(
            choices(lang),
            value=step["operation"],
            label=t("form.operation", lang),
            elem_id="operation",
            filterable=False,
        )
        self.summary = gr.Markdown(_summary(step["operation"], lang), elem_id="summary")
        self.parameters: dict[tuple[str, str], Any] = {
            (operation, name): _control(operation, name, step, lang)
            for operation in REGISTRY
            for name in REGISTRY[operation].parameters()
        }

    @property
    def inputs(self) -> list[Any]:
        """The components that `read` needs the values of, in order."""
        return [self.name, *self.parameters.values()]

    @property
    def outputs(self) -> list[Any]:
        """The components that `show` updates, in order."""
        return [self.name, self.summary, *self.parameters.values()]

    def read(self, at: str, name: str, *values: Any) -> Step:
        """The step that the controls show. Values are as the controls gave them; the operation checks them."""
        given = dict(zip(self.parameters, values, strict=True))
        chosen = {p: _value(REGISTRY[name].parameters()[p], v) for (op, p), v in given.items() if op == name}
        return {"operation": name, **chosen, "at": at, "on": True}

    def show(self, step: Step, lang: str, refused: dict[str, Any] | None = None) -> list[Any]:
        """Updates that make the controls show `step` in `lang`."""
        name = step["operation"]
        updates = [
            gr.update(choices=choices(lang, refused), value=name, label=t("form.operation", lang)),
            _summary(name, lang),
        ]
        for operation, parameter in self.parameters:
            about = REGISTRY[operation].parameters()[parameter]
            shown = operation == name
            update = {"visible": shown, "label": about.label.say(lang), "info": about.help.say(lang)}
            if shown:
                update |= _at(about, step[parameter])
            updates.append(gr.update(**update))
        return updates


def _summary(name: str, lang: str) -> str:
    operation = REGISTRY[name]
    return f"{operation.summary.say(lang)}  \n`{operation.equation}`"


def _control(operation: str, name: str, step: Step, lang: str) -> Any:
    about = REGISTRY[operation].parameters()[name]
    chosen = operation == step["operation"]
    value = step[name] if chosen else getattr(REGISTRY[operation](), name)
    common = {
        "label": about.label.say(lang),
        "info": about.help.say(lang),
        "visible": chosen,
        "elem_id": f"{operation}-{name}",
        **_at(about, value),
    }
    if about.kind in ("positions", "picture"):
        return gr.Textbox(lines=4 if about.kind == "picture" else 1, **common)
    if _slides(about):
        return gr.Slider(step=1 if about.kind == "int" else 0.05, **common)
    return gr.Number(precision=0, **common)


def _slides(about: Parameter) -> bool:
    low, high = about.slider or (about.low, about.high)
    return high - low <= 1000


def _at(about: Parameter, value: Any) -> dict[str, Any]:
    """How a control shows a value; a slider stretches to one beyond its usual ends."""
    if about.kind == "positions":
        return {"value": ", ".join(map(str, value))}
    if about.kind == "picture":
        return {"value": "\n".join(value)}
    if not _slides(about):
        return {"value": value}
    low, high = about.slider or (about.low, about.high)
    return {"value": value, "minimum": min(low, value), "maximum": max(high, value)}


def _value(about: Parameter, value: Any) -> Any:
    """A control's value as the operation takes it; what cannot be read is left for the operation to refuse."""
    if about.kind == "picture" and isinstance(value, str):
        return ["".join(row.split()) for row in value.splitlines() if row.strip()]
    if about.kind == "positions" and isinstance(value, str):
        parts = [part.strip() for part in value.replace("，", ",").split(",") if part.strip()]
        return [int(part) for part in parts] if all(part.isdecimal() for part in parts) else value
    if about.kind == "int" and isinstance(value, float) and value.is_integer():
        return int(value)
    return value
