"""Files to take away: a folder for each visitor, emptied when they ask again, leave or are forgotten."""

import secrets
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from bilingual import SurgeryError


class ExportError(SurgeryError):
    """Files that could not be written; none is kept."""


class Outbox:
    """Folders below `root`, with names that nobody can guess. most: how many visitors have one. seconds: how long."""

    def __init__(self, root: Path, most: int, seconds: float, clock: Callable[[], float] = time.monotonic):
        self.root, self.most, self.seconds, self.clock = root, most, seconds, clock
        self._folders: OrderedDict[str, tuple[Path, float]] = OrderedDict()  # visitor: (folder, since when)
        self._lock = threading.Lock()

    def fill(self, visitor: str, write: Callable[[Path], None]) -> list[Path]:
        """The files that `write` writes into the visitor's folder, in place of those that were there.

        Raises ExportError if they cannot all be written.
        """
        self.drop(visitor)
        folder = self.root / secrets.token_hex(16)
        try:
            folder.mkdir(parents=True)
            write(folder)
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError):
                raise ExportError(
                    "The files could not be written: the server's disk is full or not to be written to. None was kept; "
                    "what the page shows is not affected.",
                    "无法写入文件：服务器磁盘已满或不可写。没有保留任何文件；页面上的结果不受影响。",
                ) from error
            raise
        with self._lock:
            self._folders[visitor] = (folder, self.clock())
        self.sweep()
        return sorted(folder.iterdir())

    def drop(self, visitor: str) -> None:
        """Deletes a visitor's files."""
        with self._lock:
            folder, _ = self._folders.pop(visitor, (None, 0))
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def sweep(self) -> None:
        """Deletes what is too old or of too many."""
        with self._lock:
            old = [v for v, (_, since) in self._folders.items() if self.clock() - since > self.seconds]
            more = list(self._folders)[: max(0, len(self._folders) - self.most)]
        for visitor in {*old, *more}:
            self.drop(visitor)
