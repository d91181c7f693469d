"""The exercises in teaching order: one file each, texts beside the logic."""

import importlib

ORDER = (
    "order_lost",
    "abc_cba",
    "order_from_mask",
    "beyond_trained",
    "root_dk",
    "saturation",
    "temperature",
    "padding",
    "causal",
    "local",
    "closed_row",
    "dropouts",
    "heads_off",
    "not_explanation",
    "collapse_sharp",
    "collapse_flat",
)

EXERCISES = tuple(importlib.import_module(f"{__name__}.{name}").EXERCISE for name in ORDER)
