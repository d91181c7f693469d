"""Which layers and heads an operation touches: read, check against a model, print.

Grammar, 0-based, case ignored:

    selection  =  box { "+" box } | "none"          a union of boxes
    box        =  "L" numbers [ "." "H" numbers ] | "H" numbers
    numbers    =  "*" | range { "," range }         range = 3 | 0-3
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from bilingual import SurgeryError

Numbers = tuple[int, ...] | None  # None = every one
Cell = tuple[int, int]  # (layer, head)

_BOX = re.compile(r"L(?P<layers>[^.LH]+)(?:\.H(?P<heads>[^.LH]+))?|H(?P<every>[^.LH]+)", re.IGNORECASE)
# A selection from outside cannot make us count further, nor name more numbers than this.
_MOST = 4096
_MOST_NAMED = 16 * _MOST


class SelectionError(SurgeryError):
    """A selection that cannot be read, or that names a layer or head the model does not have."""


def _unreadable(value: Any) -> SelectionError:
    return SelectionError(
        f"Selection {value!r:.80} cannot be read: write layers and heads from 0, such as L0-3.H1,5, L*, H2 or L0.H1+L2.H3.",
        f"无法读懂选择 {value!r:.80}：请从 0 开始写层和头，例如 L0-3.H1,5、L*、H2 或 L0.H1+L2.H3。",
    )


def _range(text: str) -> range:
    first, dash, last = text.partition("-")
    ends = (first, last) if dash else (first, first)
    if not all(end.isascii() and end.isdigit() and len(end) <= 100 for end in ends):
        raise _unreadable(text[:60])
    low, high = map(int, ends)
    if low > high or high >= _MOST:
        raise _unreadable(text)
    return range(low, high + 1)


def _numbers(value: Any) -> Numbers:
    """`None`, "*", a number, "0-3,5" or an iterable of numbers as sorted numbers."""
    if value is None or (isinstance(value, str) and value.strip() == "*"):
        return None
    if isinstance(value, str):
        ranges = [_range(part.strip()) for part in value.split(",")]
        if sum(map(len, ranges)) > _MOST_NAMED:
            raise _unreadable(value[:60])
        return tuple(sorted({n for numbers in ranges for n in numbers}))
    values = tuple(value) if isinstance(value, Iterable) else (value,)
    if any(isinstance(v, bool) or not isinstance(v, Integral) or not 0 <= int(v) < _MOST for v in values):
        raise _unreadable(value)
    return tuple(sorted({int(v) for v in values}))


def _spell(numbers: Numbers) -> str:
    if numbers is None:
        return "*"
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][1] + 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


@dataclass(frozen=True)
class Selection:
    """A union of boxes (layers, heads); `None` in a box means all of them. No boxes: nothing is touched."""

    boxes: tuple[tuple[Numbers, Numbers], ...] = ((None, None),)

    @classmethod
    def of(cls, where: Any = None, *, layers: Any = None, heads: Any = None) -> "Selection":
        """A selection from text, or from layers and heads. Raises SelectionError."""
        if isinstance(where, Selection):
            return where
        if where is not None:
            if layers is not None or heads is not None:
                raise _unreadable((where, layers, heads))
            return cls.parse(where)
        box = (_numbers(layers), _numbers(heads))
        return cls(() if () in box else (box,))

    @classmethod
    def parse(cls, text: Any) -> "Selection":
        """The selection that `str(selection)` wrote. Raises SelectionError."""
        if not isinstance(text, str) or not text.strip() or len(text) > 20_000:
            raise _unreadable(text if not isinstance(text, str) else text[:60])
        if text.strip().lower() == "none":
            return cls(())
        boxes, named = [], 0
        for part in text.replace(" ", "").split("+"):
            match = _BOX.fullmatch(part)
            if not match:
                raise _unreadable(text[:60])
            try:
                boxes.append((_numbers(match["layers"]), _numbers(match["heads"] or match["every"])))
            except SelectionError:
                raise _unreadable(text[:60]) from None
            named += sum(len(numbers or ()) for numbers in boxes[-1])
            if named > _MOST_NAMED:
                raise _unreadable(text[:60])
        return cls(tuple(boxes))

    @classmethod
    def from_cells(
        cls, cells: Iterable[Cell], layers: int | None = None, heads: int | None = None
    ) -> "Selection":
        """The shortest spelling of a set of (layer, head) cells, on a model of `layers` x `heads` if given."""
        rows: dict[int, set[int]] = {}
        for layer, head in cells:
            rows.setdefault(int(layer), set()).add(int(head))
        alike: dict[tuple[int, ...], list[int]] = {}
        for layer in sorted(rows):
            alike.setdefault(tuple(sorted(rows[layer])), []).append(layer)

        def whole(numbers: tuple[int, ...], count: int | None) -> Numbers:
            return None if count is not None and numbers == tuple(range(count)) else numbers

        return cls(tuple((whole(tuple(ls), layers), whole(hs, heads)) for hs, ls in alike.items()))

    @property
    def everywhere(self) -> bool:
        """Whether it names all layers and all heads of any model."""
        return any(box == (None, None) for box in self.boxes)

    def cells(self, layers: int, heads: int, name: str = "this model") -> frozenset[Cell]:
        """The (layer, head) cells on a model of so many layers and heads.

        Raises SelectionError for a layer or head that it does not have.
        """
        found: set[Cell] = set()
        for box_layers, box_heads in self.boxes:
            _within(box_layers, layers, ("Layer", "layers"), "层", name)
            _within(box_heads, heads, ("Head", "heads"), "头", name)
            ls = range(layers) if box_layers is None else box_layers
            hs = range(heads) if box_heads is None else box_heads
            found.update((layer, head) for layer in ls for head in hs)
        return frozenset(found)

    def __str__(self) -> str:
        if not self.boxes:
            return "none"
        return "+".join(_box(layers, heads) for layers, heads in self.boxes)


def _box(layers: Numbers, heads: Numbers) -> str:
    if heads is None:
        return f"L{_spell(layers)}"
    return f"H{_spell(heads)}" if layers is None else f"L{_spell(layers)}.H{_spell(heads)}"


def _within(numbers: Numbers, count: int, en: tuple[str, str], zh: str, name: str) -> None:
    beyond = [n for n in numbers or () if n >= count]
    if beyond:
        raise SelectionError(
            f"{en[0]} {beyond[0]} does not exist in {name}: {en[1]} are 0-{count - 1}.",
            f"{name} 没有第 {beyond[0]} {zh}：{zh}的编号是 0-{count - 1}。",
        )


EVERYWHERE = Selection()
