"""The exercises in teaching order: one file each, texts beside the logic."""

import importlib

ORDER = ("order_lost",)

EXERCISES = tuple(importlib.import_module(f"{__name__}.{name}").EXERCISE for name in ORDER)
