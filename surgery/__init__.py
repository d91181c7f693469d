"""Surgery on the attention of a running transformer.

    import surgery as sg
    from models import load

    c = sg.compare(load("minilm"), "The dog bit the man", sg.DropScaling().at("L0-3.H1,5"))
    print(c.verdict())

Operations, selections and plans are here at once; what needs torch is imported when it is first asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any

from bilingual import SurgeryError, Words
from surgery.operation import REGISTRY, STAGES, Grid, Operation, OperationError, Parameter, Step, parameter
from surgery.operations import *  # noqa: F403
from surgery.operations import __all__ as _operations
from surgery.plan import Plan, PlanError
from surgery.selection import Selection, SelectionError

if TYPE_CHECKING:
    from surgery.anatomy import UnsupportedError
    from surgery.answers import TruthError
    from surgery.comparison import Comparison, NotCapturedError, Run
    from surgery.flow import CaptureError, compare
    from surgery.generation import WritingError, Written, generate
    from surgery.reading import TextError
    from surgery.sweeps import SweepError, head_importance, sweep, sweep_stream
    from surgery.theatre import ScopeError, admit, operate, refusals, support
    from surgery.variants import every_head, every_layer, every_pair, grid
    from surgery.watching import Watched, WatchError, patch_grid, watch

_LATER = {
    "UnsupportedError": "anatomy",
    "TruthError": "answers",
    "Comparison": "comparison",
    "NotCapturedError": "comparison",
    "Run": "comparison",
    "CaptureError": "flow",
    "compare": "flow",
    "WritingError": "generation",
    "Written": "generation",
    "generate": "generation",
    "TextError": "reading",
    "SweepError": "sweeps",
    "WatchError": "watching",
    "Watched": "watching",
    "patch_grid": "watching",
    "watch": "watching",
    "every_head": "variants",
    "every_layer": "variants",
    "every_pair": "variants",
    "grid": "variants",
    "head_importance": "sweeps",
    "sweep": "sweeps",
    "sweep_stream": "sweeps",
    "ScopeError": "theatre",
    "admit": "theatre",
    "operate": "theatre",
    "refusals": "theatre",
    "support": "theatre",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"surgery.{_LATER[name]}"), name)
    globals()[name] = value
    return value


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
    "SweepError",
    "TextError",
    "TruthError",
    "UnsupportedError",
    "WatchError",
    "Watched",
    "Words",
    "WritingError",
    "Written",
    "admit",
    "compare",
    "every_head",
    "every_layer",
    "every_pair",
    "generate",
    "grid",
    "head_importance",
    "operate",
    "parameter",
    "patch_grid",
    "refusals",
    "support",
    "sweep",
    "sweep_stream",
    "watch",
    *_operations,
]
