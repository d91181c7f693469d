"""All heads at once: one number each, or one thumbnail each."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bilingual import Words
from surgery.comparison import Comparison
from surgery.drawing import facts, panels, words
from surgery.drawing.page import BODY, DPI, GREY, SMALL, Page

LEFT, BELOW, BAR = 0.5, 0.46, 0.9  # inches for the layers' labels, the heads' labels, and the colour bar
NUMBERS_UP_TO = 16  # heads


def heads(comparison: Comparison, measure: str = "js_divergence", lang: str = "en") -> Figure:
    """One measure of `comparison.heads` for each layer and head; the heads operated on are outlined.

    Raises NotCapturedError if nothing of attention was kept, SurgeryError for a measure that does not exist.
    """
    table = facts.table(comparison)
    facts.chosen(measure, [name for name in table if name not in ("layer", "head", "touched")])
    values, touched = (table.pivot(index="layer", columns="head", values=v) for v in (measure, "touched"))
    layers, values, touched = list(values.index), values.to_numpy(float), touched.to_numpy(bool)
    signed = bool((values < 0).any())
    norm = panels.about_zero(values) if signed else panels.from_zero(values)
    norm.vmax = max(norm.vmax or 0.0, panels.TINY)
    colours = panels.DIVERGING if signed else panels.SEQUENTIAL

    page = Page(lang)
    _note(page, values, touched)
    name = words.MEASURES.get(measure, Words(measure, measure))
    wide = values.shape[1] <= NUMBERS_UP_TO
    size = [
        n * cell for n, cell in zip(values.shape[::-1], (0.44, 0.34) if wide else (0.24, 0.24), strict=True)
    ]
    axes, bar = _open(page, comparison, name, max(size[0], 2.4), max(size[1], 1.0))
    panels.cells(axes, values, norm, colours)
    if wide:
        panels.numbers(axes, values, norm, colours)
    panels.outlined(axes, touched)
    _label(page, axes, layers, values.shape[1])
    panels.colour_bar(bar, norm, colours, "", signed)
    return page.close()


def all_heads(comparison: Comparison, which: str = "baseline", lang: str = "en") -> Figure:
    """Every head at once as a thumbnail. which: "baseline", "operated" (on one scale) or "difference".

    Raises NotCapturedError if no weights were kept, SurgeryError for another `which`.
    """
    facts.chosen(which, list(words.WHICH))
    before, after = facts.captured(comparison)
    _, no_key = facts.closed(comparison)
    signed = which == "difference"
    values = after - before if signed else {"baseline": before, "operated": after}[which]
    norm = panels.about_zero(values) if signed else panels.from_zero(before, after)
    colours = panels.DIVERGING if signed else panels.SEQUENTIAL
    picture = panels.tiles(values, norm, colours)
    rows, columns, tokens, _ = values.shape
    layers = list(comparison.baseline.layers)
    touched = facts.touched(comparison, columns)[layers] & (which != "baseline")

    page = Page(lang)
    _note(page, values, touched)
    block, _ = panels.thumbnail_size(rows, columns, tokens)
    if block > 1:
        page.note(
            Words(
                f"One pixel is {block} × {block} weights: the one furthest from 0.",
                f"每个像素代表 {block} × {block} 个权重：取其中离 0 最远的一个。",
            )
        )
    if no_key.any() and which != "baseline":
        page.note(words.CLOSED_ROWS)
    drops = which != "baseline" and facts.after_dropout(comparison, after, no_key)
    width, height = (pixels / DPI for pixels in picture.shape[1::-1])
    axes, bar = _open(
        page, comparison, words.WHICH[which], width, height, more=words.AFTER_DROPOUT if drops else None
    )
    panels.sheet(axes, picture, rows, columns)
    if signed and not np.any(values):
        panels.centred(axes, page.say(words.NO_DIFFERENCE))
    panels.outlined(axes, touched, halo=False)
    _label(page, axes, layers, columns)
    panels.colour_bar(bar, norm, colours, page.say(words.CHANGE if signed else words.WEIGHT), signed)
    return page.close()


def _note(page: Page, values: np.ndarray, touched: np.ndarray) -> None:
    if touched.any():
        page.note(words.TOUCHED)
    if not np.isfinite(values).all():
        page.note(words.UNDEFINED, panels.BAD)


def _open(
    page: Page, comparison: Comparison, subject: Words, width: float, height: float, more: Words | None = None
) -> tuple[Axes, Axes]:
    """The axes of the grid, `width` x `height` inches, and of its colour bar."""
    title = words.title(comparison.model, subject)
    under = words.under(comparison.plan, page.lang, more)
    page.open(LEFT + width + BAR, BELOW + height + 0.06, title, under)
    return page.axes(LEFT, BELOW, width, height), page.axes(LEFT + width + 0.12, BELOW, 0.12, height)


def _label(page: Page, axes: Axes, layers: Sequence[int], heads: int) -> None:
    size = SMALL + 0.5
    panels.ticks(axes.yaxis, range(len(layers)), [str(layer) for layer in layers], size)
    panels.ticks(axes.xaxis, range(heads), [str(head) for head in range(heads)], size)
    axes.tick_params(length=0, pad=4)
    axes.set_xlabel(page.say(words.HEAD), fontsize=BODY, color=GREY)
    panels.name_upright(axes, page.say(words.LAYER), BODY)
