"""What glibc does with freed memory: by default each of many threads keeps its own, and the process seems to grow."""

import ctypes
import sys

_ARENA_MAX = -8  # of mallopt(3)
ARENAS = 2


def few_arenas() -> bool:
    """Has all threads share a few arenas; False where the C library is not glibc. To be called before there are many."""
    library = _glibc()
    return library is not None and bool(library.mallopt(_ARENA_MAX, ARENAS))


def trim() -> bool:
    """Gives freed memory back to the system."""
    library = _glibc()
    return library is not None and bool(library.malloc_trim(0))


def _glibc() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "malloc_trim") and hasattr(library, "mallopt") else None
