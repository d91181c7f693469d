"""Comparison -> matplotlib Figure. No pyplot, no shared state: may be called from any thread."""

import os
from typing import IO

import numpy as np
from matplotlib.figure import Figure

from bilingual import SurgeryError, Words
from surgery import panels
from surgery.comparison import Comparison, NotCapturedError
from surgery.page import BODY, GREY, INK, SMALL, Page, literal
from surgery.selection import Selection
from surgery.trends import drift, entropy

__all__ = ["MEASURES", "all_heads", "drift", "entropy", "everything", "heads", "heatmap", "write"]

DPI = 150
NUMBERS_UP_TO = 12  # tokens
LABELS_UP_TO = 64  # tokens

WHICH = {
    "baseline": Words("Baseline", "基线"),
    "operated": Words("Operated", "手术后"),
    "difference": Words("Difference (operated − baseline)", "差值（手术后 − 基线）"),
}
QUERY, KEY = Words("query", "查询"), Words("key", "键")
LAYER, HEAD = Words("layer", "层"), Words("head", "头")
WEIGHT = Words("attention weight", "注意力权重")
NO_DIFFERENCE = Words("no difference", "没有差别")
NO_KEY = Words("no permitted key: weights and output 0", "没有允许的键：权重和输出为 0")
NOT_A_NUMBER = Words("not a number", "非数值")
TOUCHED = Words("outlined: the heads operated on", "框线：手术触及的头")

MEASURES = {
    "js_divergence": Words("Jensen-Shannon divergence (nats)", "JS 散度（nats）"),
    "total_variation": Words("share of attention moved", "移动的注意力份额"),
    "scores": Words("mean |difference| of scores", "分数的平均绝对差"),
    "output": Words("relative L2 change of the output", "输出的相对 L2 变化"),
    **{
        f"{name}_{run}": Words(f"{en}, {run}", f"{zh}，{WHICH[run].zh}")
        for run in ("baseline", "operated")
        for name, en, zh in (
            ("entropy", "entropy (nats)", "熵（nats）"),
            ("diagonal", "weight on itself", "对自身的权重"),
            ("previous", "weight on the previous token", "对前一词元的权重"),
            ("next", "weight on the next token", "对后一词元的权重"),
            ("first", "weight on the first token", "对首个词元的权重"),
            ("separators", "weight on separators", "对分隔符的权重"),
            ("distance", "attention distance (tokens)", "注意力距离（词元）"),
            ("no_key", "queries with no permitted key", "没有允许的键的查询数"),
        )
    },
}


def heatmap(comparison: Comparison, layer: int, head: int, lang: str = "en") -> Figure:
    """Baseline | operated | difference of one head. The first two share one scale, 0 to their joint maximum.

    Raises NotCapturedError for a layer that was not kept, SelectionError for a head that does not exist.
    """
    at = _place(comparison, layer, head)
    before, after = (run.weights[at].numpy() for run in (comparison.baseline, comparison.operated))
    no_key = [run.no_key[at].numpy() for run in (comparison.baseline, comparison.operated)]
    no_key.append(no_key[0] | no_key[1])
    change = after - before
    page = Page(lang)
    labels = page.labels(comparison.tokens)
    _note_rows(page, (before, after), no_key)
    under = comparison.plan.describe(lang)
    if _after_dropout(comparison, after, no_key[1]):
        under += Words("; weights after dropout", "；Dropout 之后的权重").say(lang)
    sheet = _Sheet(page, labels, comparison.reading.kinds)
    sheet.open(_title(comparison, lang, f"{LAYER.say(lang)} {layer} · {HEAD.say(lang)} {head}"), under)
    weights, difference = panels.from_zero(before, after), panels.about_zero(change)
    sheet.panel(0, WHICH["baseline"], before, weights, panels.SEQUENTIAL, no_key[0])
    sheet.panel(1, WHICH["operated"], after, weights, panels.SEQUENTIAL, no_key[1])
    sheet.panel(2, WHICH["difference"], change, difference, panels.DIVERGING, no_key[2])
    return page.close()


class _Sheet:
    """Where the three panels of `heatmap` stand."""

    def __init__(self, page: Page, labels: list[str], kinds: tuple[str, ...]):
        self.page, self.labels, self.kinds = page, labels, kinds
        n = len(labels)
        self.side = max(1.9, 0.36 * n) if n <= 14 else min(max(5.04, 0.1 * n), 6.4)
        self.cell = self.side / n
        self.step = -(-n // LABELS_UP_TO)
        self.size = float(np.clip(self.cell * self.step * 72 * 0.72, 4.5, 9.0))
        self.slanted = self.cell >= 0.24
        label = page.widest(labels, self.size) + 0.06
        self.below = (label * 0.71 + 0.12 if self.slanted else label) + 0.26
        self.lefts = [0.22 + label, 0.22 + label + self.side + 0.22]
        self.lefts.append(self.lefts[1] + self.side + 1.05 + label)
        if self.step > 1:
            page.note(
                Words(
                    f"{n} tokens: every {self.step} are labelled once.", f"{n} 个词元：每 {self.step} 个标注一个。"
                )
            )

    def open(self, title: str, under: str) -> None:
        self.page.open(self.lefts[2] + self.side + 0.85, self.below + self.side + 0.3, title, under)

    def panel(self, index, title, values, norm, colours, no_key) -> None:
        """One matrix with its ticks; the second and third with a colour bar."""
        axes, signed = self.page.axes(self.lefts[index], self.below, self.side, self.side), index == 2
        rows, nothing = np.flatnonzero(no_key), signed and not np.any(values)
        panels.cells(axes, values, norm, colours)
        panels.hatched(axes, rows, len(values))
        if nothing:
            self._centred(axes, len(values))
        elif len(values) <= NUMBERS_UP_TO:
            panels.numbers(axes, values, norm, colours, rows, signed)
        self._ticks(axes, with_queries=index != 1)
        axes.set_title(self.page.say(title), fontsize=BODY + 0.5, color=INK, pad=5)
        if index:
            bar = self.page.axes(self.lefts[index] + self.side + 0.1, self.below, 0.12, self.side)
            panels.colour_bar(bar, norm, colours, self.page.say(WEIGHT), signed)

    def _centred(self, axes, n: int) -> None:
        middle = (n - 1) / 2
        axes.text(
            middle, middle, self.page.say(NO_DIFFERENCE), ha="center", va="center", fontsize=BODY + 1, color=INK
        )

    def _ticks(self, axes, with_queries: bool) -> None:
        at = range(0, len(self.labels), self.step)
        names = [self.labels[i] for i in at]
        turn = {"rotation": 45, "ha": "right", "va": "top"} if self.slanted else {"rotation": 90}
        panels.ticks(axes.xaxis, at, names, self.size, rotation_mode="anchor" if self.slanted else "default", **turn)
        panels.ticks(axes.yaxis, at, names if with_queries else [""] * len(names), self.size)
        for axis in (axes.xaxis, axes.yaxis):
            for i, text in zip(at, axis.get_ticklabels(), strict=True):
                text.set_color(INK if self.kinds[i] == "word" else GREY)
        self._axis_names(axes, with_queries)

    def _axis_names(self, axes, with_queries: bool) -> None:
        axes.set_xlabel(self.page.say(KEY), fontsize=SMALL, color=GREY)
        axes.xaxis.set_label_coords(0.5, 0.2 / self.side - self.below / self.side, transform=axes.transAxes)
        if with_queries:
            axes.set_ylabel(self.page.say(QUERY), fontsize=SMALL, color=GREY)


def heads(comparison: Comparison, measure: str = "js_divergence", lang: str = "en") -> Figure:
    """One measure of `comparison.heads` for each layer and head; the heads operated on are outlined.

    Raises NotCapturedError if nothing of attention was kept, SurgeryError for a measure that does not exist.
    """
    table = _table(comparison)
    if measure not in table or measure in ("layer", "head", "touched"):
        known = ", ".join(c for c in table if c not in ("layer", "head", "touched"))
        raise SurgeryError(f"There is no measure {measure!r}: choose one of {known}.", f"没有 {measure!r} 这个指标：请选 {known}。")
    grid = table.pivot(index="layer", columns="head", values=measure)
    values, touched = grid.to_numpy(float), table.pivot(index="layer", columns="head", values="touched").to_numpy(bool)
    norm = panels.from_zero(values)
    rows, columns = values.shape
    page, wide = Page(lang), columns <= 16
    name = MEASURES.get(measure, Words(measure, measure))
    if touched.any():
        page.note(TOUCHED)
    if not np.isfinite(values).all():
        page.note(Words("undefined there", "此处无定义"), panels.UNDEFINED)
    width, height = max(2.5, columns * (0.46 if wide else 0.26)), max(0.6, rows * (0.36 if wide else 0.26))
    page.open(0.6 + width + 0.9, 0.5 + height, _title(comparison, lang, page.say(name)), comparison.plan.describe(lang))
    axes = page.axes(0.6, 0.5, width, height)
    panels.cells(axes, values, norm, panels.SEQUENTIAL)
    if wide:
        panels.numbers(axes, values, norm, panels.SEQUENTIAL)
    panels.outlined(axes, touched)
    _grid_ticks(page, axes, grid.index, grid.columns)
    panels.colour_bar(page.axes(0.7 + width, 0.5, 0.12, height), norm, panels.SEQUENTIAL, "")
    return page.close()


def all_heads(comparison: Comparison, which: str = "baseline", lang: str = "en") -> Figure:
    """Every head at once as a thumbnail. which: "baseline", "operated" (on one scale) or "difference".

    Raises NotCapturedError if no weights were kept, SurgeryError for another `which`.
    """
    if which not in WHICH:
        known = ", ".join(WHICH)
        raise SurgeryError(f"which = {which!r}: choose one of {known}.", f"which = {which!r}：请选 {known}。")
    if comparison.baseline.weights is None:
        comparison.layer(0)
    before, after = (run.weights.numpy() for run in (comparison.baseline, comparison.operated))
    signed = which == "difference"
    values = {"baseline": before, "operated": after}[which] if not signed else after - before
    norm = panels.about_zero(values) if signed else panels.from_zero(before, after)
    colours = panels.DIVERGING if signed else panels.SEQUENTIAL
    picture = panels.tiles(values, norm, colours)
    rows, columns, tokens, _ = values.shape
    width, height = picture.shape[1] / DPI, picture.shape[0] / DPI
    touched = _touched(comparison, columns)[list(comparison.baseline.layers)] & (which != "baseline")
    page = Page(lang)
    _note_tiles(page, values, touched, panels.thumbnail_size(rows, columns, tokens)[0])
    page.open(0.6 + max(width, 3.2) + 0.9, 0.5 + height, _title(comparison, lang, page.say(WHICH[which])), comparison.plan.describe(lang))
    axes = page.axes(0.6, 0.5, width, height)
    axes.imshow(picture, extent=(-0.5, columns - 0.5, rows - 0.5, -0.5), aspect="auto", interpolation="nearest")
    for spine in axes.spines.values():
        spine.set_visible(False)
    if signed and not np.any(values):
        axes.text((columns - 1) / 2, (rows - 1) / 2, page.say(NO_DIFFERENCE), ha="center", va="center", color=INK)
    panels.outlined(axes, touched)
    _grid_ticks(page, axes, comparison.baseline.layers, range(columns))
    panels.colour_bar(page.axes(0.7 + width, 0.5, 0.12, height), norm, colours, page.say(WEIGHT), signed)
    return page.close()


def everything(comparison: Comparison, lang: str = "en") -> dict[str, Figure]:
    """All figures that what was captured allows, by file stem; of the single heads, the one that changed most."""
    found = {"drift": drift(comparison, lang)}
    if not comparison.heads.empty:
        found["heads"] = heads(comparison, lang=lang)
        found["entropy"] = entropy(comparison, lang)
    if comparison.baseline.weights is not None:
        found |= {f"all_heads_{which}": all_heads(comparison, which, lang) for which in WHICH}
        layer, head = _most_changed(comparison)
        found[f"heatmap_L{layer}_H{head}"] = heatmap(comparison, layer, head, lang)
    return found


def write(figure: Figure, path: str | os.PathLike | IO[bytes], format: str | None = None, dpi: int = DPI) -> None:
    """Saves a figure as "png" or "svg": by default what the path's name ends with, else PNG. Raises OSError."""
    if format is None:
        format = "svg" if str(getattr(path, "name", path)).lower().endswith(".svg") else "png"
    literal(figure)  # also what was added to the figure since
    figure.savefig(path, format=format, dpi=dpi, facecolor="white", bbox_inches=None)
