"""Time as ratios, counts, bytes, and what the machine could do at best. Needs torch alone, so that it runs beside any peer.

A time is never compared with one from another run or another process: reference and subject take turns, and what is kept
of each turn is the quotient. What the quotients of a reference against itself spread over is the control's band: a ratio
inside it is no difference.
"""

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.utils._python_dispatch import TorchDispatchMode

Act = Callable[[], object]


@dataclass(frozen=True)
class Ratio:
    """Subject's time over reference's: the median over turns, and the quartiles. seconds: the subject's own median."""

    median: float
    low: float
    high: float
    seconds: float

    @property
    def band(self) -> tuple[float, float]:
        """Of a control: what it spreads over, taken both ways, for which of two equals is the reference is chance."""
        return min(self.low, 1 / self.high), max(self.high, 1 / self.low)

    def __str__(self) -> str:
        return f"{self.median:.2f} [{self.low:.2f}, {self.high:.2f}]"


def seconds(act: Act, device: str = "cpu") -> float:
    """What one call takes: CPU time of this process, or on CUDA the time between two events."""
    if device == "cpu":
        start = time.process_time()
        act()
        return time.process_time() - start
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    act()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1000


def ratio(reference: Act, subject: Act, turns: int, device: str = "cpu", times: float = 1.0) -> Ratio:
    """Subject against `times` references, in turns; each time the other one goes first. Both have run before."""
    acts = (reference, subject)
    quotients, spent = [], []
    for turn in range(turns):
        took = [0.0, 0.0]
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            took[which] = seconds(acts[which], device)
        quotients.append(took[1] / (took[0] * times))
        spent.append(took[1])
    quotients.sort()
    quarter = len(quotients) // 4
    return Ratio(
        statistics.median(quotients), quotients[quarter], quotients[-1 - quarter], statistics.median(spent)
    )


class _Count(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.operations = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        self.operations += 1
        return operation(*args, **(kwargs or {}))


def operations(act: Act) -> int:
    """ATen operations of one call."""
    with _Count() as count:
        act()
    return count.operations


def python_calls(act: Act) -> int:
    """Calls of Python functions in one call."""
    calls = 0

    def count(_, event, __):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
    return calls


def peak(act: Act, device: str = "cpu") -> float:
    """MiB that torch's allocator held at most above where the call began."""
    act()  # what is made once and kept is no cost of a call
    if device != "cpu":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        act()
        torch.cuda.synchronize()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        act()
    held = most = 0
    for event in sorted(recorded.profiler.kineto_results.events(), key=lambda e: e.start_ns()):
        if event.name() == "[memory]":
            held += event.nbytes()
            most = max(most, held)
    return most / 2**20


def flops(config, rows: int, tokens: int) -> float:
    """Multiplications and additions of a BERT's blocks, after its config; softmax, norms and GELU not counted."""
    width, inner = config.hidden_size, config.intermediate_size
    projections = 2 * tokens * (4 * width * width + 2 * width * inner)
    attention = 2 * 2 * tokens * tokens * width
    return float(rows * config.num_hidden_layers * (projections + attention))


def gemm(device: str = "cpu", dtype: torch.dtype = torch.float32, times: int = 40) -> float:
    """The most FLOP per second that a plain matrix product reached here: the best of many, for others use the machine too."""
    rows, width, inner = (1024, 768, 3072) if device == "cpu" else (8192, 8192, 8192)
    a, b = (torch.randn(n, width, device=device, dtype=dtype) for n in (rows, inner))
    best = min(seconds(lambda: torch.nn.functional.linear(a, b), device) for _ in range(times))
    return 2 * rows * width * inner / best
