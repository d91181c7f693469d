"""Baseline | operated | difference of one head."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure

from bilingual import Words
from surgery.comparison import Comparison
from surgery.drawing import facts, panels, words
from surgery.drawing.fonts import columns_of
from surgery.drawing.page import BODY, GREY, INK, SMALL, Page

NUMBERS_UP_TO = 12  # tokens
LABELS_UP_TO = 64  # tokens


def heatmap(comparison: Comparison, layer: int, head: int, lang: str = "en") -> Figure:
    """Baseline | operated | difference of one head. The first two share one scale, 0 to their joint maximum.

    Raises SelectionError for a layer or head that does not exist, NotCapturedError for a layer that was not kept.
    """
    at = facts.place(comparison, layer, head)
    before, after = (weights[at] for weights in facts.captured(comparison))
    no_key = [closed[at] for closed in facts.closed(comparison)]
    matrices = (before, after, after - before)
    closed = (*no_key, no_key[0] | no_key[1])
    scale = panels.from_zero(before, after)
    scales = (scale, scale, panels.about_zero(matrices[2]))

    page = Page(lang)
    sheet = _Sheet(page, comparison)
    _note(page, matrices, closed[2])
    drops = facts.after_dropout(comparison, after, no_key[1])
    under = words.under(comparison.plan, lang, words.AFTER_DROPOUT if drops else None)
    sheet.open(words.title(comparison.model, words.place(layer, head)), under)
    for index, (values, norm, rows) in enumerate(zip(matrices, scales, closed, strict=True)):
        sheet.panel(index, values, norm, np.flatnonzero(rows))
    return page.close()


def _note(page: Page, matrices: tuple[np.ndarray, ...], closed: np.ndarray) -> None:
    if closed.any():
        page.note(words.NO_KEY, panels.HATCH)
    if not np.isfinite(matrices[:2]).all():
        page.note(words.NOT_A_NUMBER, panels.BAD)
    change = panels.largest(matrices[2])
    if 0 < change < panels.TINY:
        page.note(
            Words(
                f"All differences are below {panels.TINY:g}: largest {change:.1g}.",
                f"所有差值均小于 {panels.TINY:g}：最大 {change:.1g}。",
            )
        )


class _Sheet:
    """Where the three panels stand, in inches."""

    def __init__(self, page: Page, comparison: Comparison):
        self.page, self.kinds = page, comparison.reading.kinds
        self.labels = page.labels(comparison.tokens)
        n = len(self.labels)
        self.side = max(1.9, 0.36 * n) if n <= 14 else min(max(5.04, 0.1 * n), 6.4)
        self.step = -(-n // LABELS_UP_TO)
        room = self.side / n * self.step  # for one label
        self.size = float(np.clip(room * 72 * 0.72, 4.5, 9.0))
        self.slanted = room >= 0.24
        label = page.widest(self.labels, self.size) + 0.08
        self.below = (0.71 * label + 0.1 if self.slanted else label) + 0.27
        self.lefts = [0.22 + label, 0.22 + label + self.side + 0.22]
        self.lefts.append(self.lefts[1] + self.side + 1.12 + label)
        if self.step > 1:
            page.note(Words(f"One token in {self.step} is labelled.", f"每 {self.step} 个词元标注 1 个。"))

    def open(self, title: Words, under: str) -> None:
        self.page.open(self.lefts[2] + self.side + 0.85, self.below + self.side + 0.3, title, under)

    def panel(self, index: int, values: np.ndarray, norm: Normalize, closed: np.ndarray) -> None:
        """One matrix with its ticks; the second and the third have a colour bar."""
        signed = index == 2
        colours = panels.DIVERGING if signed else panels.SEQUENTIAL
        axes = self.page.axes(self.lefts[index], self.below, self.side, self.side)
        panels.cells(axes, values, norm, colours)
        panels.hatched(axes, closed, len(values))
        if signed and not np.any(values):
            panels.centred(axes, self.page.say(words.NO_DIFFERENCE))
        elif len(values) <= NUMBERS_UP_TO:
            panels.numbers(axes, values, norm, colours, closed, signed)
        title = list(words.WHICH.values())[index]
        axes.set_title(self.page.say(title), fontsize=BODY + 0.5, color=INK, pad=5)
        self._ticks(axes, with_queries=index != 1)
        if index:
            self._bar(index, norm, colours)

    def _bar(self, index: int, norm: Normalize, colours: Colormap) -> None:
        axes = self.page.axes(self.lefts[index] + self.side + 0.1, self.below, 0.12, self.side)
        label = words.CHANGE if index == 2 else words.WEIGHT
        panels.colour_bar(axes, norm, colours, self.page.say(label), sign=index == 2)

    def _ticks(self, axes: Axes, with_queries: bool) -> None:
        at = range(0, len(self.labels), self.step)
        names = [self.labels[i] for i in at]
        turn = (
            {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if self.slanted else {"rotation": 90}
        )
        panels.ticks(axes.xaxis, at, names, self.size, **turn)
        panels.ticks(axes.yaxis, at, names if with_queries else [""] * len(names), self.size)
        for axis in (axes.xaxis, axes.yaxis):
            for i, text in zip(at, axis.get_ticklabels(), strict=True):
                text.set_color(INK if self.kinds[i] == "word" else GREY)
        for text, name in zip(axes.get_xticklabels(), names, strict=True):
            if len(name) == 1 and columns_of(name) == 2:  # a Chinese character stays upright
                text.set(rotation=0, ha="center", va="top", rotation_mode="default")
        axes.set_xlabel(self.page.say(words.KEY), fontsize=SMALL, color=GREY)
        if with_queries:
            panels.name_upright(axes, self.page.say(words.QUERY), SMALL)
