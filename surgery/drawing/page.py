"""A figure laid out in inches: title above, panels, notes below. All its text is literal and drawable."""

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from bilingual import Words
from surgery.drawing import fonts

INK, GREY = "#1b1f2a", "#5c6370"
TITLE, BODY, SMALL = 12.0, 9.5, 8.0  # points
MARGIN = 0.18  # inches
DPI = 150

_NO_GLYPH = Words(
    "Some characters have no glyph in the fonts found here: their codes are shown (U+…).",
    "部分字符在本机字体中没有字形：显示其编码（U+…）。",
)


class Page:
    """One figure being made. First measure and note, then `open`, then draw on `axes`, then `close`."""

    def __init__(self, lang: str):
        self.lang = lang
        self.figure = Figure(figsize=(4, 3), dpi=100)
        self.renderer = FigureCanvasAgg(self.figure).get_renderer()
        self._notes: list[tuple[str, dict[str, Any] | None]] = []
        self._missing = False
        self._origin = (0.0, 0.0)
        self._size = (0.0, 0.0)

    # --- words ------------------------------------------------------------------------------------------

    def say(self, words: Words | str) -> str:
        """The words in this page's language, drawable."""
        return self._seen(fonts.drawable(words if isinstance(words, str) else words.say(self.lang)))

    def labels(self, tokens: Sequence[str]) -> list[str]:
        """Tokens as tick labels."""
        return [self._seen(fonts.label(token)) for token in tokens]

    def _seen(self, found: tuple[str, bool]) -> str:
        text, missing = found
        self._missing |= missing
        return text

    def note(self, words: Words | str, swatch: dict[str, Any] | None = None) -> None:
        """A line at the foot. swatch: what the line explains, as keywords of a Rectangle."""
        line = (self.say(words), swatch)
        if line not in self._notes:
            self._notes.append(line)

    # --- sizes ------------------------------------------------------------------------------------------

    def extent(self, text: str, size: float) -> tuple[float, float]:
        """Width and height of a text, in inches."""
        probe = Text(0, 0, text, fontsize=size, family=fonts.families(), parse_math=False)
        probe.set_figure(self.figure)
        box = probe.get_window_extent(self.renderer)
        return box.width / self.figure.dpi, box.height / self.figure.dpi

    def widest(self, texts: Sequence[str], size: float) -> float:
        """Width of the widest of some texts, in inches."""
        return max((self.extent(text, size)[0] for text in texts), default=0.0)

    def open(self, width: float, height: float, title: Words | str, under: Words | str = "") -> None:
        """Makes room for panels of `width` x `height` inches under a title and a smaller line, and writes these."""
        head = [(line, TITLE, INK) for line in self._wrapped(self.say(title), width, TITLE, 2)]
        head += [(line, BODY, GREY) for line in self._wrapped(self.say(under), width, BODY, 2)]
        if self._missing:
            self.note(_NO_GLYPH)
        foot = [
            (line, swatch if first else None, swatch is not None)
            for text, swatch in self._notes
            for first, line in _firsts(self._wrapped(text, width - 0.3, SMALL, 3))
        ]
        above = _even(sum(_height(size) for _, size, _ in head) + 0.12)
        below = _even(sum(_height(SMALL) for _ in foot) + (0.1 if foot else 0.0))
        self._size = (width + 2 * MARGIN, height + above + below + 2 * MARGIN)
        self._origin = (MARGIN, MARGIN + below)
        self.figure.set_size_inches(*self._size)
        self._write_head(head)
        self._write_foot(foot)

    def _wrapped(self, text: str, width: float, size: float, lines: int) -> list[str]:
        return fonts.wrap(text, width * 72 / (size * 0.6), lines) if text else []

    def _write_head(self, head: list[tuple[str, float, str]]) -> None:
        top = self._size[1] - MARGIN
        for line, size, colour in head:
            self._text(MARGIN, top - _height(size) / 2, line, fontsize=size, color=colour)
            top -= _height(size)

    def _write_foot(self, foot: list[tuple[str, dict[str, Any] | None, bool]]) -> None:
        y = MARGIN + _height(SMALL) * (len(foot) - 0.5)
        for line, swatch, indented in foot:
            if swatch is not None:
                box = Rectangle(
                    (MARGIN / self._size[0], (y - 0.06) / self._size[1]),
                    0.2 / self._size[0],
                    0.12 / self._size[1],
                    transform=self.figure.transFigure,
                    **swatch,
                )
                self.figure.add_artist(box)
            self._text(MARGIN + (0.28 if indented else 0), y, line, fontsize=SMALL, color=GREY)
            y -= _height(SMALL)

    def _text(self, x: float, y: float, text: str, **style: Any) -> None:
        self.figure.text(x / self._size[0], y / self._size[1], text, va="center", ha="left", **style)

    # --- panels -----------------------------------------------------------------------------------------

    def axes(self, left: float, bottom: float, width: float, height: float) -> Axes:
        """Axes at a place in inches from the lower left corner of the panels' room."""
        (x, y), (w, h) = self._origin, self._size
        return self.figure.add_axes(((x + left) / w, (y + bottom) / h, width / w, height / h))

    def close(self) -> Figure:
        """The finished figure: each text in it is literal and has the fonts."""
        return literal(self.figure)


def literal(figure: Figure) -> Figure:
    """Lets no text of the figure be read as mathematics. Set on each text: `rc_context` is shared by all threads."""
    for text in figure.findobj(Text):
        text.set_parse_math(False)
        text.set_fontfamily(fonts.families())
    return figure


def _height(size: float) -> float:
    """The height of a line of text of so many points, in inches."""
    return size * 1.45 / 72


def _even(inches: float) -> float:
    """Rounded up to whole pixels at 50, 100, 150 ... dots per inch, so that images meet the pixels."""
    return math.ceil(inches * 50) / 50


def _firsts(lines: list[str]) -> list[tuple[bool, str]]:
    return [(i == 0, line) for i, line in enumerate(lines)]
