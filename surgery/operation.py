"""What an operation is: one change at one stage of attention, with parameters that know their ranges.

An operation never sees layers or heads: it gets the rows and heads that its selection chose and returns them
changed. Tensors are

    query, key, value (row, head, token, width)   of all heads of a layer, for what happens at "projections"
    scores, weights   (row, head, query, key)
    output            (row, head, query, d_v)     the mixed values, before the output projection
    allowed           (row, head, query, key)     bool, True = may attend
    position ids      (row, token)
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

from bilingual import SurgeryError, Words
from surgery.selection import EVERYWHERE, Selection

if TYPE_CHECKING:
    import torch

STAGES = ("positions", "projections", "scale", "mask", "scores", "weights", "output")

REGISTRY: dict[str, type[Operation]] = {}


class OperationError(SurgeryError):
    """A parameter that an operation cannot take, or an operation that does not exist."""


@dataclass(frozen=True)
class Parameter:
    """The type, range and help of one parameter; user interfaces build their controls from it.

    kind: "float", "int", "positions" (a tuple of token positions) or "picture" (a tuple of "0"/"1" rows).
    low, high: the values that are accepted, both included. slider: the part worth dragging through.
    """

    kind: str
    label: Words
    help: Words
    low: float = -math.inf
    high: float = math.inf
    slider: tuple[float, float] | None = None
    log: bool = False

    def check(self, name: str, value: Any, owner: str) -> Any:
        """`value` in its canonical type. Raises OperationError naming the allowed set."""
        return _CHECKS[self.kind](self, name, value, owner)

    def range(self) -> str:
        """The accepted range as people write it, for instance "0 to 1"."""
        return f"{_plain(self.low)} to {_plain(self.high)}"


def _plain(number: float) -> str:
    """2147483647 and 0.0001 rather than 2.14748e+09 and 1e-04."""
    return str(int(number)) if float(number).is_integer() else f"{number:g}"


def _refuse(owner: str, name: str, value: Any, en: str, zh: str) -> OperationError:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    return OperationError(
        f"{owner}: {name} = {shown} is not possible: {en}.", f"{owner}：{name} = {shown} 不可用：{zh}。"
    )


def _number(parameter: Parameter, name: str, value: Any, owner: str, of: Any) -> Any:
    low, high = _plain(parameter.low), _plain(parameter.high)
    noun = Words("a whole number", "整数") if of is Integral else Words("a number", "数")
    bad = _refuse(
        owner, name, value, f"give {noun.en} from {low} to {high}", f"请给 {low} 到 {high} 之间的{noun.zh}"
    )
    if isinstance(value, bool) or not isinstance(value, of):
        raise bad
    if not parameter.low <= value <= parameter.high:  # NaN fails both comparisons
        raise bad
    return int(value) if of is Integral else float(value)


def _positions(parameter: Parameter, name: str, value: Any, owner: str) -> tuple[int, ...]:
    if hasattr(value, "tolist"):
        value = value.tolist()
    whole = isinstance(value, Sequence | Set) and not isinstance(value, str)
    if not whole or any(isinstance(v, bool) or not isinstance(v, Integral) or v < 0 for v in value):
        raise _refuse(
            owner,
            name,
            value,
            "give a list of token positions, counted from 0",
            "请给一列从 0 开始的词元位置",
        )
    return tuple(sorted({int(v) for v in value}))


def _picture(parameter: Parameter, name: str, value: Any, owner: str) -> tuple[str, ...]:
    bad = _refuse(
        owner,
        name,
        value,
        "give a square of 0 and 1 (1 = may attend), one row for each query, such as ['10', '11']",
        "请给由 0 和 1 组成的方阵（1 = 可以注意），每个查询一行，例如 ['10', '11']",
    )
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, str) or not isinstance(value, Sequence) or not value:
        raise bad
    rows = []
    for row in value:
        if not isinstance(row, str):
            if not isinstance(row, Sequence) or any(cell not in (0, 1) for cell in row):
                raise bad
            row = "".join("1" if cell else "0" for cell in row)
        rows.append(row)
    if any(len(row) != len(rows) or set(row) - {"0", "1"} for row in rows):
        raise bad
    return tuple(rows)


_CHECKS: dict[str, Callable[..., Any]] = {
    "float": functools.partial(_number, of=Real),
    "int": functools.partial(_number, of=Integral),
    "positions": _positions,
    "picture": _picture,
}


def parameter(default: Any = dataclasses.MISSING, **about: Any) -> Any:
    """A dataclass field that carries a `Parameter`."""
    return dataclasses.field(default=default, metadata={"parameter": Parameter(**about)})


def probability(default: float = 0.1) -> Any:
    """The `p` of the dropout operations."""
    return parameter(
        default,
        kind="float",
        low=0.0,
        high=1.0,
        label=Words("probability p", "概率 p"),
        help=Words(
            "The chance that an entry is dropped; 0 drops nothing.", "每个元素被丢弃的概率；0 表示不丢弃。"
        ),
    )


def seed() -> Any:
    """The `seed` of the stochastic operations."""
    return parameter(
        0,
        kind="int",
        low=0,
        high=2**31 - 1,
        slider=(0, 99),
        label=Words("seed", "随机种子"),
        help=Words("The same seed draws the same entries again.", "相同的种子会抽到相同的元素。"),
    )


@dataclass(frozen=True)
class Grid:
    """Where a mask stands: the positions of its queries and keys, and which keys are padding.

    queries: (query,) and keys: (key,) are token positions. padding: bool, broadcastable to
    (row, 1, query, key), True where only the padding mask forbids the key; None without padding.
    """

    queries: torch.Tensor
    keys: torch.Tensor
    padding: torch.Tensor | None = None


@dataclass(frozen=True)
class Operation:
    """Base of all operations: frozen, comparable, hashable; parameters are checked when it is made."""

    name: ClassVar[str]
    stage: ClassVar[str]
    title: ClassVar[Words]
    summary: ClassVar[Words]
    equation: ClassVar[str]
    # The method of its stage, one of these or `positions`: each operation says what comes in and what goes out.
    projections: ClassVar[Callable[..., Any]]
    scale: ClassVar[Callable[..., Any]]
    mask: ClassVar[Callable[..., Any]]
    scores: ClassVar[Callable[..., Any]]
    weights: ClassVar[Callable[..., Any]]
    output: ClassVar[Callable[..., Any]]
    # What to tell a reader when the operation landed and yet nothing changed.
    when_idle: ClassVar[Words] = Words(
        "It landed, but the model's result is the same without it.",
        "手术已执行，但去掉它模型的结果完全相同。",
    )
    # Works on the padding mask alone: it comes before the other masks, and needs to know which keys are padding.
    lifts_padding: ClassVar[bool] = False
    # Of operations on scores: it makes them anew, from the query and key vectors, and so comes before the others.
    sees_vectors: ClassVar[bool] = False
    # Of position operations: whether a token's new position depends on its own alone, so that text may come in parts.
    token_by_token: ClassVar[bool] = False
    # The steps of attention that are gone where it acts, each by its stage or "softmax"; what is not gone is changed.
    removes: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in cls.__dict__:
            REGISTRY[cls.name] = cls

    def __post_init__(self) -> None:
        for name, about in self.parameters().items():
            value = about.check(name, getattr(self, name), type(self).__name__)
            object.__setattr__(self, name, value)

    @classmethod
    def parameters(cls) -> dict[str, Parameter]:
        """The parameters by name, in order."""
        return {f.name: f.metadata["parameter"] for f in dataclasses.fields(cls)}

    @property
    def values(self) -> dict[str, Any]:
        """The parameters' values by name."""
        return {name: getattr(self, name) for name in self.parameters()}

    @property
    def stochastic(self) -> bool:
        """Whether it draws random numbers (from its own `seed`)."""
        return "seed" in self.parameters()

    @property
    def neutral(self) -> bool:
        """Whether these parameters change nothing on any input; such an operation is never run."""
        return False

    def at(self, where: str | None = None, *, layers: Any = None, heads: Any = None) -> Step:
        """This operation on some layers and heads: `op.at("L0-3.H1,5")` or `op.at(layers="0-3", heads=[1, 5])`.

        Raises SelectionError for a selection that cannot be read.
        """
        return Step(self, Selection.of(where, layers=layers, heads=heads))

    def check(self, tokens: int) -> None:
        """Raises OperationError if a text of so many tokens cannot be operated on."""

    def check_heads(self, heads: int) -> None:
        """Raises OperationError if a model of so many heads cannot be operated on."""

    def describe(self, lang: str = "en") -> str:
        """Title and parameters on one line."""
        comma = Words(", ", "，").say(lang)
        about = self.parameters()
        values = comma.join(f"{about[name].label.say(lang)} = {_short(v)}" for name, v in self.values.items())
        brackets = Words(" ({})", "（{}）").say(lang)
        return self.title.say(lang) + (brackets.format(values) if values else "")


def _short(value: Any) -> str:
    """A value on little room: 0.5; 0, 3; a picture by its size."""
    if isinstance(value, tuple) and any(isinstance(part, str) for part in value):
        return f"{len(value)} × {len(value)}"
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else f"{value:g}"
    return text if len(text) <= 40 else f"{text[:37]}..."


@dataclass(frozen=True)
class Step:
    """One operation on one selection: an entry of a plan."""

    operation: Operation
    selection: Selection = EVERYWHERE


def known(name: str) -> type[Operation]:
    """The operation called `name` (snake case). Raises OperationError naming the nearest known ones."""
    if name in REGISTRY:
        return REGISTRY[name]
    name = str(name)[:60]
    near = difflib.get_close_matches(name, REGISTRY, n=1, cutoff=0.4)
    en = f" Did you mean {near[0]}?" if near else ""
    zh = f"您是否想用 {near[0]}？" if near else ""
    raise OperationError(
        f"There is no operation called {name!r}.{en} All of them: {', '.join(sorted(REGISTRY))}.",
        f"没有名为 {name!r} 的手术。{zh}可用的有：{'、'.join(sorted(REGISTRY))}。",
    )
