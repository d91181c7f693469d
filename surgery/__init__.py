"""Surgery on the attention of a running transformer.

import surgery as sg
from models import load

c = sg.compare(load("minilm"), "The dog bit the man", sg.DropScaling().at("L0-3.H1,5"))
print(c.verdict())
"""

from bilingual import SurgeryError, Words
from surgery.anatomy import UnsupportedError
from surgery.compare import CaptureError, compare
from surgery.comparison import Comparison, NotCapturedError, Run
from surgery.operation import REGISTRY, STAGES, Grid, Operation, OperationError, Parameter, Step, parameter
from surgery.operations import *  # noqa: F403
from surgery.operations import __all__ as _operations
from surgery.plan import Plan, PlanError
from surgery.reading import TextError
from surgery.selection import Selection, SelectionError
from surgery.theatre import ScopeError, admit, operate, refusals, support

__all__ = [
    "REGISTRY",
    "STAGES",
    "CaptureError",
    "Comparison",
    "Grid",
    "NotCapturedError",
    "Operation",
    "OperationError",
    "Parameter",
    "Plan",
    "PlanError",
    "Run",
    "ScopeError",
    "Selection",
    "SelectionError",
    "Step",
    "SurgeryError",
    "TextError",
    "UnsupportedError",
    "Words",
    "admit",
    "compare",
    "operate",
    "parameter",
    "refusals",
    "support",
    *_operations,
]
