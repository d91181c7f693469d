"""A plan: ordered operations, each on its selection. JSON, link, Python code and shell words are its spellings."""

import base64
import binascii
import json
import zlib
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

from bilingual import SurgeryError, Words
from surgery.operation import Operation, OperationError, Step, known
from surgery.selection import EVERYWHERE, Selection

VERSION = 1
_MOST_STEPS = 64
_MOST_BYTES = 1_000_000


class PlanError(SurgeryError):
    """A plan that cannot be read."""


class Plan:
    """Operations in order. `Plan(op, op.at("L0.H1"), other_plan)`; `Plan()` is the empty plan. Immutable."""

    __slots__ = ("steps",)
    steps: tuple[Step, ...]

    def __init__(self, *parts: "Operation | Step | Plan"):
        steps: list[Step] = []
        for part in parts:
            if isinstance(part, Plan):
                steps += part.steps
            elif isinstance(part, Operation):
                steps.append(Step(part))
            elif isinstance(part, Step):
                steps.append(part)
            else:
                raise PlanError(
                    f"A plan is made of operations, not of {type(part).__name__}: write Plan(Temperature(2.0)).",
                    f"计划由手术操作组成，而不是 {type(part).__name__}：例如 Plan(Temperature(2.0))。",
                )
        if len(steps) > _MOST_STEPS:
            raise PlanError(
                f"A plan of {len(steps)} operations is too long: at most {_MOST_STEPS}.",
                f"计划有 {len(steps)} 个操作，太长了：最多 {_MOST_STEPS} 个。",
            )
        object.__setattr__(self, "steps", tuple(steps))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("A plan does not change: make another one.")

    def __reduce__(self) -> tuple[Any, ...]:
        return Plan, self.steps

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.steps == other.steps

    def __hash__(self) -> int:
        return hash(self.steps)

    def __add__(self, other: "Plan | Operation | Step") -> "Plan":
        return Plan(self, other)

    def __repr__(self) -> str:
        return self.to_python()

    @property
    def stochastic(self) -> bool:
        """Whether any of its operations draws random numbers."""
        return any(step.operation.stochastic and not step.operation.neutral for step in self)

    def without(self, index: int) -> "Plan":
        """The same plan with one step left out."""
        return Plan(*(step for i, step in enumerate(self.steps) if i != index))

    def muted(self, index: int) -> "Plan":
        """The same plan with one step that touches nothing; the others keep their random draws."""
        nowhere = Step(self.steps[index].operation, Selection(()))
        return Plan(*(nowhere if i == index else step for i, step in enumerate(self.steps)))

    def describe(self, lang: str = "en") -> str:
        """The plan in words: "Change the softmax temperature (temperature T = 2) on L0-3"."""
        if not self.steps:
            return Words("no operation", "没有手术").say(lang)
        return Words("; ", "；").say(lang).join(_describe(step, lang) for step in self)

    # --- JSON -------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data: {"version": 1, "operations": [{"operation": "temperature", "t": 2.0, "at": "L0"}]}."""
        return {"version": VERSION, "operations": [_step_to_dict(step) for step in self]}

    @classmethod
    def from_dict(cls, data: Any) -> "Plan":
        """The plan that `to_dict` wrote. Raises PlanError, OperationError or SelectionError."""
        if not isinstance(data, dict) or not isinstance(data.get("operations"), list):
            raise _not_a_plan()
        version = data.get("version")
        if isinstance(version, bool) or not isinstance(version, int) or version < 1:
            raise _not_a_plan()
        if version > VERSION:
            raise PlanError(
                f"This plan is of version {version!r:.20}; this program reads up to {VERSION}: update it.",
                f"该计划的版本是 {version!r:.20}；本程序最多能读 {VERSION}：请更新程序。",
            )
        return cls(*(_step_from_dict(step) for step in data["operations"]))

    def to_json(self, indent: int | None = None) -> str:
        """Strict JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=indent)

    @classmethod
    def from_json(cls, text: str) -> "Plan":
        """The plan that `to_json` wrote. Raises PlanError, OperationError or SelectionError."""
        try:
            if len(text) > _MOST_BYTES:
                raise _not_a_plan()
            data = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise _not_a_plan() from error
        return cls.from_dict(data)

    # --- link -------------------------------------------------------------------------------------------

    def to_link(self) -> str:
        """The plan as letters, digits, "-" and "_": safe in a URL (compressed JSON in base64url)."""
        return pack(self.to_dict())

    @classmethod
    def from_link(cls, link: str) -> "Plan":
        """The plan that `to_link` wrote, alone or as `plan=` or `s=` of a URL. Raises PlanError and its kin."""
        data = unpack(link)
        return cls.from_dict(data.get("plan", data) if isinstance(data, dict) else data)

    # --- Python -----------------------------------------------------------------------------------------

    def to_python(self) -> str:
        """An expression that makes this plan where `import surgery as sg` was run."""
        steps = [_step_to_python(step) for step in self]
        line = f"sg.Plan({', '.join(steps)})"
        return line if len(line) <= 100 else "sg.Plan(\n    " + ",\n    ".join(steps) + ",\n)"

    # --- shell ------------------------------------------------------------------------------------------

    def to_words(self) -> list[str]:
        """One word per operation for `--op`: "temperature=2.0@L0-3.H1,5"."""
        return [_step_to_word(step) for step in self]

    @classmethod
    def from_words(cls, words: list[str]) -> "Plan":
        """The plan of `--op` words. Raises PlanError, OperationError or SelectionError."""
        return cls(*(_step_from_word(word) for word in words))


def _describe(step: Step, lang: str) -> str:
    what = step.operation.describe(lang)
    if step.selection.everywhere:
        return what
    if not step.selection.boxes:
        return what + Words(" on no head", "，不作用于任何头").say(lang)
    return what + Words(" on ", "，作用于 ").say(lang) + str(step.selection)


def pack(data: Any) -> str:
    """JSON data as URL-safe letters."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")


def unpack(link: str) -> Any:
    """The data that `pack` wrote, alone or in a URL's `s=` or `plan=`. Raises PlanError."""
    try:
        if "?" in link:
            query = parse_qs(urlsplit(link).query)
            link = (query.get("s") or query.get("plan") or [""])[0]
        if len(link) > _MOST_BYTES:
            raise _not_a_plan()
        raw = base64.b64decode(link + "=" * (-len(link) % 4), altchars=b"-_", validate=True)
        inflate = zlib.decompressobj()
        text = inflate.decompress(raw, _MOST_BYTES)  # bounded: a small link may unpack to gigabytes
        if inflate.unconsumed_tail or not inflate.eof:
            raise _not_a_plan()
        return json.loads(text.decode())
    except (TypeError, ValueError, RecursionError, zlib.error, binascii.Error) as error:
        raise _not_a_plan() from error


def _not_a_plan() -> PlanError:
    return PlanError(
        "This is not a plan: expected what Plan.to_json() or Plan.to_link() writes.",
        "这不是一个计划：应为 Plan.to_json() 或 Plan.to_link() 的结果。",
    )


def _step_to_dict(step: Step) -> dict[str, Any]:
    values = {k: list(v) if isinstance(v, tuple) else v for k, v in step.operation.values.items()}
    return {"operation": step.operation.name, **values, "at": str(step.selection)}


def _step_from_dict(data: Any) -> Step:
    if not isinstance(data, dict) or not isinstance(data.get("operation"), str):
        raise _not_a_plan()
    rest = {k: v for k, v in data.items() if k not in ("operation", "at")}
    return Step(_make(known(data["operation"]), **rest), Selection.parse(data.get("at", "L*")))


def _make(operation: type[Operation], *args: Any, **values: Any) -> Operation:
    names = list(operation.parameters())
    unknown = [name for name in values if name not in names]
    if unknown or len(args) > len(names):
        given = unknown[0] if unknown else args[-1]
        listed = ", ".join(names) or "none"
        raise OperationError(
            f"{operation.__name__} has no parameter {given!r:.60}. Its parameters: {listed}.",
            f"{operation.__name__} 没有参数 {given!r:.60}。它的参数：{listed}。",
        )
    return operation(*args, **values)


def _step_to_python(step: Step) -> str:
    values = ", ".join(
        f"{k}={list(v)!r}" if isinstance(v, tuple) else f"{k}={v!r}" for k, v in step.operation.values.items()
    )
    call = f"sg.{type(step.operation).__name__}({values})"
    return call if step.selection == EVERYWHERE else f'{call}.at("{step.selection}")'


def _step_to_word(step: Step) -> str:
    def spell(value: Any) -> str:
        return ":".join(map(str, value)) if isinstance(value, tuple) else repr(value)

    values = ",".join(f"{k}={spell(v)}" for k, v in step.operation.values.items())
    place = "" if step.selection == EVERYWHERE else f"@{step.selection}"
    return step.operation.name + (f"={values}" if values else "") + place


def _step_from_word(word: str) -> Step:
    """Reads "name", "name=value", "name=p=0.1,seed=3" and any of them with "@selection"."""
    body, at, place = word.partition("@")
    name, _, values = body.partition("=")
    operation = known(name.strip())
    parameters = operation.parameters()
    free = list(parameters)
    found: dict[str, Any] = {}
    for part in filter(None, values.split(",")):
        key, equals, value = part.partition("=")
        key = key.strip() if equals else (free[0] if free else "")
        if key in found:
            raise OperationError(
                f"{operation.__name__}: {key} is given twice in {word[:60]!r}: give it once.",
                f"{operation.__name__}：{word[:60]!r} 中 {key} 给了两次：请只给一次。",
            )
        if key not in free:
            _make(operation, **({key: value} if equals else {part: None}))  # raises, naming the parameters
        free.remove(key)
        found[key] = _read(parameters[key].kind, value if equals else part)
    return Step(_make(operation, **found), Selection.parse(place) if at else EVERYWHERE)


def _read(kind: str, text: str) -> Any:
    """A parameter's value from its shell spelling; what cannot be read is left for the parameter to refuse."""
    convert: dict[str, Callable[[str], Any]] = {
        "float": float,
        "int": int,
        "positions": lambda t: [int(x) for x in t.split(":")] if t else [],
    }
    try:
        return convert.get(kind, lambda t: t.split(":"))(text.strip())
    except ValueError:
        return text
