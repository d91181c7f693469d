"""Trains the from-scratch models: one run (`Training`), many (`grid`), and those that are shipped (`ship`)."""

from .grid import Cell, cells, run_cell, stream, summary, table
from .loop import Capture, Surgery, Training, shorter
from .schedule import TrainingError, check_targets, rate_at, scored_loss
from .ship import ship

__all__ = [
    "Capture",
    "Cell",
    "Surgery",
    "Training",
    "TrainingError",
    "cells",
    "check_targets",
    "rate_at",
    "run_cell",
    "scored_loss",
    "ship",
    "shorter",
    "stream",
    "summary",
    "table",
]
