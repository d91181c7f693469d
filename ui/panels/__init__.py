"""What the app shows beside the maps: pure functions (comparison, lang) -> HTML, for a `ui.panel.Panel`."""

from ui.panels.code import code
from ui.panels.heads import heads
from ui.panels.layers import layers
from ui.panels.lesson import classroom, graded, kept, lesson, lessons, task
from ui.panels.outputs import outputs
from ui.panels.pipeline import pipeline
from ui.panels.plan import plan
from ui.panels.receipt import receipt
from ui.panels.sweep import sweep
from ui.panels.train import train
from ui.panels.verdict import verdict
from ui.panels.written import written

__all__ = [
    "classroom", "code", "graded", "heads", "kept", "layers", "lesson", "lessons", "outputs", "pipeline", "plan", "receipt", "sweep",
    "task", "train", "verdict", "written",
]  # fmt: skip
