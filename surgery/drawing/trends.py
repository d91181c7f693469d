"""How attention and the hidden states change through depth."""

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bilingual import Words
from surgery.comparison import Comparison
from surgery.drawing import facts, panels, words
from surgery.drawing.page import BODY, GREY, INK, SMALL, Page
from surgery.selection import Selection

BASELINE, OPERATED, THIRD = (
    "#0072b2",
    "#d55e00",
    "#009e73",
)  # told apart by colour-blind readers (Okabe & Ito)
ENTROPY = Words("entropy (nats)", "熵（nats）")
SHADE = "#f1f2f5"
COSINE = Words("cosine of the tokens (mean)", "词元的余弦（平均）")
CKA = Words("linear CKA", "线性 CKA")
RELATIVE_L2 = Words("relative L2 difference", "相对 L2 差")
STATE = Words(
    "hidden state: 0 = embeddings, k = after layer k − 1", "隐藏状态：0 = 嵌入，k = 第 k − 1 层之后"
)
REACHED = {True: Words("operated on", "手术触及"), False: Words("not touched", "未触及")}


def entropy(comparison: Comparison, lang: str = "en") -> Figure:
    """Each head's entropy before and after, and its divergence, layer by layer. A head is at the same place in both.

    Raises NotCapturedError if nothing of attention was kept.
    """
    table = _spread(facts.table(comparison))
    layers = sorted(table["layer"].unique())
    page = Page(lang)
    _note_undefined(page, table)
    width = max(3.4, 0.75 * len(layers))
    title = words.title(comparison.model, Words("entropy and divergence of each head", "每个头的熵与散度"))
    page.open(2 * width + 1.5, 3.2, title, comparison.plan.describe(lang))
    left, right = page.axes(0.55, 0.46, width, 2.45), page.axes(width + 1.35, 0.46, width, 2.45)

    runs = {run: page.say(words.WHICH[run]) for run in ("baseline", "operated")}
    both = [pd.DataFrame({"x": table["x"], "y": table[f"entropy_{run}"], "by": runs[run]}) for run in runs]
    points = pd.concat(both, ignore_index=True)
    before, after = table["entropy_baseline"], table["entropy_operated"]
    left.vlines(table["x"], before, after, colors="#c3c7d0", linewidth=1.0, zorder=1)
    _points(left, points, {runs["baseline"]: BASELINE, runs["operated"]: OPERATED})
    n = _choices(comparison, points["y"].max())
    _limit(left, math.log(n), page.say(Words(f"uniform: ln {n}", f"均匀：ln {n}")))
    left.set_ylim(0, 1.05 * math.log(max(n, 2)))
    _dress(page, left, layers, ENTROPY)

    reached = {key: page.say(said) for key, said in REACHED.items()}
    points = pd.DataFrame({"x": table["x"], "y": table["js_divergence"], "by": table["touched"].map(reached)})
    _points(right, points, {reached[False]: GREY, reached[True]: OPERATED})
    right.set_ylim(0, max(0.01, 1.15 * np.nanmax([*points["y"], 0.0])))
    if right.get_ylim()[1] > math.log(2):
        _limit(right, math.log(2), page.say(Words("nothing in common: ln 2", "毫无重合：ln 2")))
    _dress(page, right, layers, words.MEASURES["js_divergence"])
    return page.close()


def drift(comparison: Comparison, lang: str = "en") -> Figure:
    """How far the hidden states have moved: cosine and CKA, relative L2. 0 is the embeddings, k is after layer k - 1."""
    table, page = comparison.layers, Page(lang)
    count = len(table)
    reached = [layer + 1 for layer in facts.touched_layers(comparison)]
    if reached:
        page.note(
            Words("Shaded: after a layer operated on.", "阴影：手术触及的层之后。"), {"facecolor": SHADE}
        )
    blank = [name for name in ("cosine", "relative_l2", "cka") if not np.isfinite(table[name]).all()]
    if blank:
        listed = ", ".join(blank)
        page.note(Words(f"Undefined at some points: {listed}.", f"部分点无定义：{listed}。"))
    width = max(3.4, 0.42 * count)
    subject = Words("how far the hidden states drift", "隐藏状态的漂移")
    page.open(2 * width + 1.5, 3.2, words.title(comparison.model, subject), comparison.plan.describe(lang))
    left, right = page.axes(0.55, 0.46, width, 2.45), page.axes(width + 1.35, 0.46, width, 2.45)

    style: dict[str, Any] = {"markersize": 5, "linewidth": 1.5, "clip_on": False, "zorder": 3}
    left.plot(table["layer"], table["cosine"], "o-", color=BASELINE, label=page.say(COSINE), **style)
    left.plot(table["layer"], table["cka"], "s--", color=THIRD, label=page.say(CKA), **style)
    right.plot(
        table["layer"], table["relative_l2"], "D-", color=OPERATED, label=page.say(RELATIVE_L2), **style
    )
    lowest = np.nanmin([*table["cosine"], *table["cka"], 1.0])
    left.set_ylim(min(0.9, math.floor(lowest * 10) / 10), 1.0)
    right.set_ylim(0, max(0.1, 1.1 * panels.largest(table["relative_l2"])))
    for axes in (left, right):
        for at in reached:
            axes.axvspan(at - 0.5, at + 0.5, color=SHADE, linewidth=0, zorder=0)
        _dress(page, axes, list(table["layer"]), Words("", ""), STATE)
    return page.close()


def _spread(table: pd.DataFrame) -> pd.DataFrame:
    """The heads of a layer side by side about the layer's place."""
    rank = {layer: i for i, layer in enumerate(sorted(table["layer"].unique()))}
    heads = table["head"].max() + 1
    return table.assign(x=table["layer"].map(rank) + 0.76 * ((table["head"] + 0.5) / heads - 0.5))


def _points(axes: Axes, points: pd.DataFrame, colours: dict[str, str]) -> None:
    import seaborn  # imports pyplot, and takes a second

    order = list(colours)
    seaborn.scatterplot(
        points, x="x", y="y", hue="by", hue_order=order, style="by", style_order=order, palette=colours, clip_on=False, zorder=3,
        markers=["o", "D"], s=20, linewidth=0.3, ax=axes,
    )  # fmt: skip


def _choices(comparison: Comparison, highest: float) -> int:
    """Among how many tokens attention can choose: the real ones, or all if padding is read too."""
    kept = comparison.reading.kept
    return kept if not highest > math.log(kept) + 1e-4 else len(comparison.tokens)


def _limit(axes: Axes, y: float, said: str) -> None:
    axes.axhline(y, color=INK, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1, label=said)


def _dress(page: Page, axes: Axes, layers: list[int], y: Words, x: Words = words.LAYER) -> None:
    step = -(-len(layers) // 24)
    axes.set_xlim(-0.5, len(layers) - 0.5)
    panels.ticks(axes.xaxis, range(0, len(layers), step), [str(n) for n in layers[::step]], SMALL + 0.5)
    axes.set_xlabel(page.say(x), fontsize=BODY, color=GREY)
    panels.name_upright(axes, page.say(y), BODY)
    axes.tick_params(labelsize=SMALL + 0.5, length=2, width=0.6, color=GREY, labelcolor=INK)
    axes.grid(axis="y", color="#e4e6eb", linewidth=0.7)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set(visible=side in ("left", "bottom"), linewidth=0.6, color=GREY)
    axes.legend(
        fontsize=SMALL, frameon=False, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, borderaxespad=0.2,
        handletextpad=0.4, columnspacing=1.2, labelcolor=INK, title=None,
    )  # fmt: skip


def _note_undefined(page: Page, table: pd.DataFrame) -> None:
    """Names the heads that have no point."""
    for name, column in (
        (Words("entropy", "熵"), ["entropy_baseline", "entropy_operated"]),
        (Words("divergence", "散度"), ["js_divergence"]),
    ):
        lost = table[~np.isfinite(table[column]).all(axis=1)]
        if len(lost):
            where = Selection.from_cells(zip(lost["layer"], lost["head"], strict=True))
            page.note(
                Words(
                    f"No {name.en} is defined for {len(lost)} heads (no permitted key): {where}",
                    f"有 {len(lost)} 个头的{name.zh}无定义（没有允许的键）：{where}",
                )
            )
