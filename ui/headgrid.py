from collections.abc import Iterable, Sequence
from typing import Any

from ui.component import BrowserComponent
from ui.texts import section

MOST_CELLS = 16_384  # heads of the largest models there are, several times over


def grid_words(lang: str) -> dict[str, str]:
    """The `words` prop of a `HeadGrid` in "en" or "zh"."""
    return section("grid", lang)


def grid_value(layers: int, heads: int, cells: Iterable[Sequence[int]] | None = None) -> dict:
    """The value of a `HeadGrid`: its size and the chosen (layer, head) cells in order; None chooses all.

    Raises ValueError for a cell that the grid does not have.
    """
    if layers < 1 or heads < 1:
        raise ValueError(f"A grid of {layers} layers and {heads} heads has no cell.")
    if cells is None:
        cells = [(layer, head) for layer in range(layers) for head in range(heads)]
    chosen = sorted({(int(layer), int(head)) for layer, head in cells})
    for layer, head in chosen:
        if not (0 <= layer < layers and 0 <= head < heads):
            raise ValueError(
                f"Layer {layer}, head {head} does not exist: "
                f"layers are 0-{layers - 1}, heads are 0-{heads - 1}."
            )
    return {
        "layers": layers,
        "heads": heads,
        "cells": [list(cell) for cell in chosen],
        "all": len(chosen) == layers * heads,
    }


class HeadGrid(BrowserComponent):
    """A layer × head grid to choose cells with mouse, finger or keyboard.

    The value is what `grid_value` returns. `input` fires once per gesture of a person, never when Python sets
    the value. Props that can be changed at any time, each without touching the others: `words` (from
    `grid_words`), `disabled` (a sentence that says why, or "" for enabled) and `heat` (a number of 0 or more
    per cell, drawn as a dot; None for none). (`shared` is for Gradio's updates, not for callers.)
    """

    SCRIPT = "headgrid"
    ROOT = "hg"

    def __init__(
        self,
        value: dict | None = None,
        *,
        words: dict[str, str] | None = None,
        disabled: str = "",
        heat: list[list[float | None]] | None = None,
        shared: dict | None = None,
        **kwargs: Any,
    ):
        self._note_update(["words", "disabled", "heat"])
        defaults = {"words": grid_words("en"), "disabled": "", "heat": None}
        super().__init__(value or grid_value(12, 12), defaults, shared, **kwargs)

    def preprocess(self, payload: Any) -> Any:
        return _checked(payload)

    def postprocess(self, value: Any) -> Any:
        return _checked(value)

    def api_info(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {
                "layers": {"type": "integer", "minimum": 1},
                "heads": {"type": "integer", "minimum": 1},
                "cells": {
                    "type": "array",
                    "items": {"type": "array", "items": {"type": "integer", "minimum": 0}},
                },
            },
            "required": ["layers", "heads", "cells"],
            "description": "The size of the grid and the chosen cells, each [layer, head], 0-based.",
        }

    def example_payload(self) -> dict:
        return grid_value(2, 3, [(0, 1)])

    def example_value(self) -> dict:
        return self.example_payload()


def _checked(value: dict | None) -> dict | None:
    """The value, or ValueError for what is none: it may come from anywhere."""
    if not value:
        return None
    size: list[Any] = [value.get(name) for name in ("layers", "heads")] if isinstance(value, dict) else []
    if (
        not size
        or not all(type(n) is int and 0 < n <= MOST_CELLS for n in size)
        or size[0] * size[1] > MOST_CELLS
    ):
        raise ValueError(f"A grid has 1-{MOST_CELLS} cells.")
    cells = value.get("cells")
    if not isinstance(cells, list) or len(cells) > MOST_CELLS:
        raise ValueError(f"The cells of a grid are a list of at most {MOST_CELLS}.")
    if not all(isinstance(cell, list) and [type(n) for n in cell] == [int, int] for cell in cells):
        raise ValueError("A cell of a grid is [layer, head].")
    return grid_value(size[0], size[1], cells)
