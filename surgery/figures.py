"""Comparison -> matplotlib Figure. No pyplot, nothing shared: may be called from any thread."""

import os
from typing import IO

from matplotlib.figure import Figure

from surgery.comparison import Comparison
from surgery.drawing.channels import gates
from surgery.drawing.grids import all_heads, heads
from surgery.drawing.one_head import heatmap
from surgery.drawing.page import DPI, literal
from surgery.drawing.pictures import overlay
from surgery.drawing.trends import drift, entropy
from surgery.drawing.words import MEASURES, WHICH

__all__ = [
    "MEASURES",
    "all_heads",
    "drift",
    "entropy",
    "everything",
    "gates",
    "heads",
    "heatmap",
    "overlay",
    "write",
]


def everything(comparison: Comparison, lang: str = "en") -> dict[str, Figure]:
    """All figures that what was captured allows, by file stem; of the single heads, the one that changed most."""
    found = {"drift": drift(comparison, lang)}
    if not comparison.heads.empty:
        found["heads"] = heads(comparison, lang=lang)
        found["entropy"] = entropy(comparison, lang)
    top = comparison.top_head
    if comparison.baseline.weights is not None and top is not None:
        found |= {f"all_heads_{which}": all_heads(comparison, which, lang) for which in WHICH}
        layer, head = top
        found[f"heatmap_L{layer}_H{head}"] = heatmap(comparison, layer, head, lang)
    return found


def write(
    figure: Figure, path: str | os.PathLike | IO[bytes], format: str | None = None, dpi: int = DPI
) -> None:
    """Saves a figure as "png" or "svg": by default what the path's name ends with, else PNG. Raises OSError."""
    if format is None:
        format = "svg" if str(getattr(path, "name", path)).lower().endswith(".svg") else "png"
    literal(figure)  # also what was added to the figure since
    figure.savefig(path, format=format, dpi=dpi, facecolor="white", edgecolor="none")
