"""Matrices as pictures: colour scales that start at 0 or are symmetric about it, cells, labels, colour bars, thumbnails."""

from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, Normalize
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator

from surgery.drawing.fonts import columns_of
from surgery.drawing.page import BODY, GREY, INK, SMALL

NAN = "#cf6fae"  # in neither colour map
HATCH: dict[str, Any] = {"hatch": "//////", "facecolor": "none", "edgecolor": "#9aa0ac", "linewidth": 0.0}
BAD: dict[str, Any] = {"facecolor": NAN, "edgecolor": "none"}
SEQUENTIAL: Colormap = matplotlib.colormaps["viridis"].with_extremes(bad=NAN)
DIVERGING: Colormap = matplotlib.colormaps["RdBu_r"].with_extremes(bad=NAN)
TINY = 1e-4  # colours do not stretch differences that are smaller than this
TILE = 88  # pixels of a thumbnail, about
GAP = 6


def largest(*arrays: np.ndarray) -> float:
    """The largest absolute value that is finite, 0 if there is none."""
    found = [np.abs(a[np.isfinite(a)]).max(initial=0.0) for a in map(np.asarray, arrays)]
    return float(max(found, default=0.0))


def from_zero(*arrays: np.ndarray) -> Normalize:
    """One scale for all of them: 0 to their joint maximum."""
    return Normalize(0.0, largest(*arrays) or 1.0)


def about_zero(array: np.ndarray) -> Normalize:
    """A scale with 0 exactly in the middle."""
    limit = max(largest(array), TINY)
    return Normalize(-limit, limit)


def cells(axes: Axes, values: np.ndarray, norm: Normalize, colours: Colormap) -> None:
    """A matrix, row 0 on top, each cell in its colour; what is not finite in its own."""
    rows, columns = values.shape
    shown = np.ma.masked_invalid(values)
    axes.imshow(shown, norm=norm, cmap=colours, aspect="auto", interpolation="nearest", resample=False)
    axes.tick_params(length=2, width=0.6, color=GREY, pad=2)
    for spine in axes.spines.values():
        spine.set(linewidth=0.6, color=GREY)
    if max(rows, columns) <= 16:
        inner = [[(c - 0.5, -0.5), (c - 0.5, rows - 0.5)] for c in range(1, columns)]
        inner += [[(-0.5, r - 0.5), (columns - 0.5, r - 0.5)] for r in range(1, rows)]
        axes.add_collection(LineCollection(inner, colors="white", linewidths=0.5), autolim=False)


def ticks(axis: Any, at: Sequence[float], labels: Sequence[str], size: float, **style: Any) -> None:
    """These ticks with these labels and no others."""
    axis.set_major_locator(FixedLocator(list(at)))
    axis.set_major_formatter(FixedFormatter(list(labels)))
    for text in axis.get_ticklabels():
        text.set(fontsize=size, color=INK, **style)


def numbers(
    axes: Axes,
    values: np.ndarray,
    norm: Normalize,
    colours: Colormap,
    skip: Iterable[int] = (),
    sign: bool = False,
) -> None:
    """Each cell's value in it, dark on light and light on dark. skip: rows to leave blank."""
    skip = set(skip)
    for (row, column), value in np.ndenumerate(values):
        if row in skip or not np.isfinite(value):
            continue
        red, green, blue, _ = colours(norm(value))
        colour = INK if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"
        spelled = short(value, sign)
        axes.text(column, row, spelled, ha="center", va="center_baseline", fontsize=7, color=colour)


def short(value: float, sign: bool = False) -> str:
    """Two decimals and no leading zero: ".12", "1", "+.30", "−.05"; ".00" for almost nothing, "0" for zero itself."""
    if value == 0:
        return "0"
    decimals = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    text = f"{abs(value):.{decimals}f}".removeprefix("0")
    text = "1" if text == "1.00" else text
    if text == ".00":
        return text
    return ("−" if value < 0 else "+" if sign else "") + text


def hatched(axes: Axes, rows: Iterable[int], columns: int) -> None:
    """Marks whole rows."""
    for row in rows:
        axes.add_patch(Rectangle((-0.5, row - 0.5), columns, 1, zorder=3, **HATCH))


def outlined(axes: Axes, marked: np.ndarray, halo: bool = True) -> None:
    """A line around the marked cells, (row, column), where they border on others. halo: seen on any colour."""
    padded = np.pad(marked, 1)
    across = [
        [(c - 0.5, r - 0.5), (c + 0.5, r - 0.5)] for r, c in np.argwhere(padded[1:] != padded[:-1]) - [0, 1]
    ]
    down = [
        [(c - 0.5, r - 0.5), (c - 0.5, r + 0.5)]
        for r, c in np.argwhere(padded[:, 1:] != padded[:, :-1]) - [1, 0]
    ]
    for colour, width in (("white", 3.2), (INK, 1.6))[not halo :]:
        lines = LineCollection(
            across + down, colors=colour, linewidths=width, capstyle="projecting", zorder=4
        )
        lines.set_clip_on(False)
        axes.add_collection(lines, autolim=False)


def sheet(axes: Axes, picture: np.ndarray, rows: int, columns: int) -> None:
    """A picture made by `tiles`: thumbnail (row, column) is centred on these coordinates."""
    extent = (-0.5, columns - 0.5, rows - 0.5, -0.5)
    axes.imshow(picture, extent=extent, aspect="auto", interpolation="nearest")
    for spine in axes.spines.values():
        spine.set_visible(False)


def centred(axes: Axes, text: str) -> None:
    """Words in the middle of the axes."""
    axes.text(
        0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=BODY + 1, color=INK
    )


def colour_bar(axes: Axes, norm: Normalize, colours: Colormap, label: str, sign: bool = False) -> None:
    """A colour bar that names the ends of its scale."""
    low: Any = norm.vmin
    high: Any = norm.vmax
    bar = axes.figure.colorbar(ScalarMappable(norm, colours), cax=axes)
    room = 0.08 * (high - low)
    inner = [t for t in MaxNLocator(4, symmetric=sign).tick_values(low, high) if low + room < t < high - room]
    at = [low, *inner, high]
    spelled = [f"{t:+.3g}".replace("-", "−") if sign and t else f"{t:.3g}" for t in at]
    ticks(bar.ax.yaxis, at, spelled, SMALL)
    bar.ax.tick_params(length=2, width=0.6, color=GREY, pad=2)
    bar.ax.minorticks_off()
    bar.outline.set(linewidth=0.6, color=GREY)
    name_upright(bar.ax, label, SMALL)


def name_upright(axes: Axes, name: str, size: float) -> None:
    """Names the upright axis: Chinese from top to bottom, other scripts turned by 90 degrees."""
    if not name or columns_of(name) != 2 * len(name):
        axes.set_ylabel(name, fontsize=size, color=GREY)
        return
    side = {"left": "right", "right": "left"}[axes.yaxis.get_label_position()]
    axes.set_ylabel(
        "\n".join(name), fontsize=size, color=GREY, rotation=0, ha=side, va="center", linespacing=1.0
    )


def thumbnail_size(rows: int, columns: int, tokens: int) -> tuple[int, int]:
    """For so many thumbnails of so many tokens: (tokens in one pixel, pixels of one token)."""
    side = int(np.clip(1600 // max(rows, columns), 24, TILE))
    return -(-tokens // (side * 3 // 2)), max(1, round(side / tokens))


def tiles(values: np.ndarray, norm: Normalize, colours: Colormap) -> np.ndarray:
    """All thumbnails of (row, column, query, key) as one picture, (height, width, RGBA), bytes.

    Where several cells share a pixel it shows the one that is furthest from 0.
    """
    rows, columns, tokens, _ = values.shape
    block, scale = thumbnail_size(rows, columns, tokens)
    values = furthest(values, block)
    side = values.shape[-1] * scale
    pixels = colours(norm(np.ma.masked_invalid(values)), bytes=True)
    pixels = pixels.repeat(scale, axis=2).repeat(scale, axis=3)
    sheet = np.zeros((rows, side + GAP, columns, side + GAP, 4), np.uint8)
    half = GAP // 2
    sheet[:, half : half + side, :, half : half + side] = pixels.transpose(0, 2, 1, 3, 4)
    return sheet.reshape(rows * (side + GAP), columns * (side + GAP), 4)


def furthest(values: np.ndarray, block: int) -> np.ndarray:
    """Square blocks of the last two axes as one value each: the one furthest from 0; NaN if one is NaN."""
    if block == 1:
        return values
    *lead, n, _ = values.shape
    more = -n % block
    values = np.pad(values, [(0, 0)] * len(lead) + [(0, more), (0, more)])
    m = (n + more) // block
    parts = values.reshape(*lead, m, block, m, block)
    high, low = parts.max((-1, -3)), parts.min((-1, -3))
    return np.where(high >= -low, high, low)
