"""The form of an operation, made from the registry: a field for each parameter, and one for layers and heads."""

import math
from typing import Any

import gradio as gr

from bilingual import SurgeryError
from surgery.operation import REGISTRY, STAGES, Parameter
from surgery.selection import Selection, SelectionError
from ui.fields import StepFields, fields_words
from ui.steps import Step
from ui.texts import t

WHERE = "at"  # the name of the field for layers and heads


def choices(lang: str, refused: dict[str, Any] | None = None) -> list[tuple[str, str]]:
    """(label, name) of the operations in the order of their stages; what the model refuses is marked."""
    refused = refused or {}
    names = sorted(REGISTRY, key=lambda name: (STAGES.index(REGISTRY[name].stage), name))
    mark = t("form.not_here", lang)
    return [
        (REGISTRY[name].title.say(lang) + (f" — {mark}" if refused.get(name) else ""), name) for name in names
    ]


def whole(step: Step) -> bool:
    """Whether the step acts on the whole model, before any layer or head."""
    return REGISTRY[step["operation"]].stage == "positions"


class OperationForm:
    """A dropdown of operations and the fields of the chosen one; of none, while the plan is empty."""

    def __init__(self, step: Step, size: tuple[int, int], lang: str = "en"):
        self.name = gr.Dropdown(
            choices(lang),
            value=step["operation"],
            label=t("form.operation", lang),
            elem_id="operation",
            filterable=False,
        )
        self.summary = gr.Markdown(_summary(step, lang), elem_id="summary")
        self.fields = StepFields(
            _value(step, 0), fields=_fields(step, size, lang), words=fields_words(lang), elem_id="fields"
        )

    def read(self, given: dict | None, steps: list[Step], selected: int) -> list[Step]:
        """The steps with what stands in the fields; as they are if the fields show another step by now.

        A value that cannot be read stays as it was typed, for the operation to refuse.
        """
        if not given or not 0 <= selected < len(steps):
            return steps
        old = steps[selected]
        if (given["step"], given["operation"]) != (selected, old["operation"]):
            return steps
        kinds = {name: about.kind for name, about in REGISTRY[old["operation"]].parameters().items()}
        new = {name: parse(kinds[name], text) for name, text in given["values"].items() if name in kinds}
        at = given["values"].get(WHERE, old["at"])
        return [old | new | {"at": at} if i == selected else step for i, step in enumerate(steps)]

    def show(
        self,
        steps: list[Step],
        selected: int,
        size: tuple[int, int],
        lang: str,
        refused: dict[str, Any],
        problems: dict[str, str],
    ) -> dict[Any, Any]:
        """Updates that show the selected step in `lang`, for a model of that size: layers, heads."""
        step = steps[selected] if steps else None
        return {
            self.name: gr.update(
                choices=choices(lang, refused),
                value=step["operation"] if step else None,
                label=t("form.operation", lang),
            ),
            self.summary: _summary(step, lang),
            self.fields: StepFields(
                _value(step, selected),
                fields=_fields(step, size, lang),
                words=fields_words(lang),
                problems=problems,
            ),
        }


def problems(step: Step, lang: str, layers: int, heads: int, model: str) -> dict[str, str]:
    """What is wrong with the values of a step, by field."""
    found = {}
    for name, about in REGISTRY[step["operation"]].parameters().items():
        try:
            about.check(name, step[name], about.label.say(lang))
        except SurgeryError as error:
            found[name] = error.say(lang)
    try:
        Selection.parse(step["at"]).cells(layers, heads, model)
    except SelectionError as error:
        found[WHERE] = error.say(lang)
    return found


def _summary(step: Step | None, lang: str) -> str:
    if step is None:
        return t("form.empty", lang, add=t("form.add", lang))
    operation = REGISTRY[step["operation"]]
    return f"{operation.summary.say(lang)}  \n`{operation.equation}`"


def example(layers: int, heads: int) -> str:
    """Ways to write a selection, which name only what a model of so many layers and heads has."""
    layer, head = min(3, layers - 1), min(5, heads - 1)
    first = f"L0-{layer}" if layer else "L0"
    some = "H0" if not head else "H1" if head == 1 else f"H1,{head}"
    more = [f"L0.H{min(1, head)}+L{min(2, layer)}"] if layer else []
    return " · ".join([f"{first}.{some}", "L*", f"H{min(2, head)}", *more])


def _fields(step: Step | None, size: tuple[int, int], lang: str) -> list[dict[str, Any]]:
    if step is None:
        return []
    name = step["operation"]
    return [
        *(_field(name, parameter, about, lang) for parameter, about in REGISTRY[name].parameters().items()),
        {
            "name": WHERE,
            "id": "where",
            "kind": "where",
            "label": t("form.where", lang),
            "help": t("form.where_info", lang, example=example(*size)),
            "locked": whole(step) and step["at"] == "L*",
        },
    ]


def _field(operation: str, name: str, about: Parameter, lang: str) -> dict[str, Any]:
    field: dict[str, Any] = {
        "name": name,
        "id": f"{operation}-{name}",
        "kind": about.kind,
        "label": about.label.say(lang),
        "help": about.help.say(lang),
    }
    low, high = about.slider or (about.low, about.high)
    if about.kind in ("int", "float") and high - low <= 1000:
        field |= {"slider": [low, high], "log": about.log}
    return field


def _value(step: Step | None, selected: int) -> dict[str, Any]:
    if step is None:
        return {"step": None, "operation": None, "values": {}}
    parameters = REGISTRY[step["operation"]].parameters()
    texts = {name: spell(about.kind, step[name]) for name, about in parameters.items()}
    return {"step": selected, "operation": step["operation"], "values": {**texts, WHERE: step["at"]}}


def spell(kind: str, value: Any) -> str:
    """A parameter's value as it stands in its field."""
    if isinstance(value, str):
        return value  # as it was typed
    if kind == "positions":
        return ", ".join(map(str, value))
    if kind == "picture":
        return "\n".join(value)
    return str(int(value)) if float(value).is_integer() else repr(value)


def parse(kind: str, text: str) -> Any:
    """What stands in a field as the operation takes it; what cannot be read is left as it is."""
    if kind == "picture":
        return ["".join(row.split()) for row in text.splitlines() if row.strip()]
    if kind == "positions":
        parts = [part.strip() for part in text.replace("，", ",").split(",") if part.strip()]
        return (
            [int(part) for part in parts]
            if all(part.isdecimal() and len(part) < 10 for part in parts)
            else text
        )
    try:
        number = float(text)
    except ValueError:
        return text.strip()
    if not math.isfinite(number):
        return text.strip()
    return int(number) if kind == "int" and number.is_integer() else number
