"""The texts of a sweep spread over processes or a cluster (joblib), and their results kept in a folder (Parquet).

joblib has the engines: processes here by default; inside `joblib.parallel_config(backend="dask")` or `"ray"` a cluster.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from bilingual import SurgeryError

if TYPE_CHECKING:
    import torch

    from surgery.sweeps import _Work

CHUNK = 16  # texts that a worker takes at a time, at most


class SpreadError(SurgeryError):
    """A folder that holds another sweep, or workers that are lost."""


def tables(
    patient: Any, work: _Work, asked: Sequence[tuple[Any, Any]], n_jobs: int | None, out: str | Path | None
) -> Iterator[tuple[int, pd.DataFrame]]:
    """(how many texts, their rows) as they are done; first what `out` has already.

    asked: (text, right answer or None) for each text.
    """
    store = None if out is None else _Store(Path(out), patient, work, asked)
    missing = list(range(len(asked)))
    if store is not None:
        for numbers, table in store.finished():
            missing = [number for number in missing if number not in numbers]
            yield len(numbers), work.shaped(table)
    for chunk, table in _computed(patient, work, asked, _chunks(missing, n_jobs), n_jobs):
        if store is not None:
            store.write(chunk, table)
        yield len(chunk), table


def _chunks(numbers: list[int], n_jobs: int | None) -> list[range]:
    """Runs of consecutive texts."""
    size = 1 if n_jobs in (None, 1) else max(1, min(CHUNK, len(numbers) // 8))
    found = []
    for _, group in itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        run = [number for _, number in group]
        found += [range(run[i], min(run[i] + size, run[-1] + 1)) for i in range(0, len(run), size)]
    return found


def _computed(
    patient: Any, work: Any, asked: Any, chunks: list[range], n_jobs: int | None
) -> Iterator[tuple[range, pd.DataFrame]]:
    if n_jobs in (None, 1):
        for chunk in chunks:
            yield chunk, _chunk(lambda: patient, work, chunk, [asked[n] for n in chunk])[1]
        return
    left = {chunk.start: chunk for chunk in chunks}
    try:
        for start, table in _parallel(patient, work, asked, chunks, n_jobs):
            yield left.pop(start), table
        return
    except BrokenProcessPool:
        pass  # a worker was killed (out of memory, most often): what is left goes one by one, to find the text
    for number in itertools.chain(*left.values()):
        chunk = range(number, number + 1)
        try:
            yield chunk, next(_parallel(patient, work, asked, [chunk], n_jobs))[1]
        except BrokenProcessPool as lost:
            if not work.keep_going:
                raise SpreadError(
                    f"A worker was lost twice on text {number}; on_error='row' goes on without it.",
                    f"处理文本 {number} 的工作进程两次丢失；用 on_error='row' 可跳过它。",
                ) from lost
            yield chunk, work.failed(number, lost)


def _parallel(
    patient: Any, work: Any, asked: Any, chunks: list[range], n_jobs: int | None
) -> Iterator[tuple[int, pd.DataFrame]]:
    from joblib import Parallel, delayed

    source = functools.partial(_loaded, patient.name, str(patient.device), patient.dtype)
    jobs = (delayed(_chunk)(source, work, chunk, [asked[n] for n in chunk]) for chunk in chunks)
    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="4*n_jobs")(jobs)


def _chunk(source: Callable[[], Any], work: _Work, chunk: range, asked: list) -> tuple[int, pd.DataFrame]:
    patient = source()
    found = [work(patient, number, *one) for number, one in zip(chunk, asked, strict=True)]
    return chunk.start, pd.concat(found, ignore_index=True)


@functools.lru_cache(maxsize=1)
def _loaded(name: str, device: str, dtype: torch.dtype) -> Any:
    """The model of a worker process, loaded once; one thread each, for the workers share the cores."""
    import torch

    from models import load

    torch.set_num_threads(1)
    return load(name, device=device, dtype=dtype)


class _Store:
    """A folder with one Parquet file per chunk and a note of which sweep it holds."""

    def __init__(self, folder: Path, patient: Any, work: _Work, asked: Sequence[tuple[Any, Any]]):
        try:
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise SpreadError(
                "out= writes Parquet and needs pyarrow: pip install pyarrow.",
                "out= 写 Parquet 文件，需要 pyarrow：请运行 pip install pyarrow。",
            ) from error
        self.folder = folder
        plans = [plan.to_json() for plan in work.plans]
        # the texts by their digest alone: they may be many, or private
        digest = hashlib.sha256(json.dumps([list(map(str, one)) for one in asked]).encode()).hexdigest()
        model = {"model": patient.name, "dtype": str(patient.dtype)}
        own = {**model, "plans": plans, "seeds": work.seeds, "texts": len(asked), "sha256": digest}
        note = folder / "_sweep.json"
        there = json.loads(note.read_text(encoding="utf-8")) if note.exists() else None
        if there != own and (there is not None or any(self._files())):
            raise SpreadError(
                f"{folder} holds another sweep (other texts, plans, seeds or model): choose another folder.",
                f"{folder} 中是另一次扫描的结果（文本、计划、种子或模型不同）：请换一个文件夹。",
            )
        if there is not None:
            return
        if folder.exists() and not folder.is_dir():
            raise SpreadError(
                f"{folder} is a file, and results are written into a folder: choose another name.",
                f"{folder} 是文件，而结果要写入文件夹：请换一个名称。",
            )
        folder.mkdir(parents=True, exist_ok=True)
        _whole(note, lambda path: path.write_text(json.dumps(own, ensure_ascii=False), encoding="utf-8"))

    def _files(self) -> list[Path]:
        return sorted(p for p in self.folder.glob("*.parquet") if re.fullmatch(r"texts-\d+-\d+", p.stem))

    def finished(self) -> Iterator[tuple[set[int], pd.DataFrame]]:
        """The texts that an earlier call finished. Those that failed are forgotten, to be tried again."""
        seen: set[int] = set()
        for path in self._files():
            table = pd.read_parquet(path)
            if "error" in table and table["error"].notna().any():
                table = table[table["error"].isna()]
                _whole(path, functools.partial(table.to_parquet, index=False))
            table = table[~table["text"].isin(seen)]  # two calls at once may have done the same text
            seen |= (own := set(table["text"]))
            if own:
                yield own, table

    def write(self, chunk: range, table: pd.DataFrame) -> None:
        """Adds a chunk, whole or not at all."""
        path = self.folder / f"texts-{chunk.start:09}-{chunk.stop - 1:09}.parquet"
        _whole(path, functools.partial(table.to_parquet, index=False))


def _whole(path: Path, write: Callable[[Path], Any]) -> None:
    part = path.with_name("_" + path.name)  # readers of Parquet leave out what begins so
    write(part)
    os.replace(part, path)
