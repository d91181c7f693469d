"""The operations, one per file. A new file in this folder is found by itself."""

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

from surgery.operation import REGISTRY

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...  # they are found while the program runs


globals().update({operation.__name__: operation for operation in REGISTRY.values()})
__all__ = [operation.__name__ for operation in REGISTRY.values()]
