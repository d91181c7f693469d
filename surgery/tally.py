"""The statistics of a layer, a few queries at a time, so that no (token x token) matrix need exist at once.

What a query did is kept as numbers; means over queries are taken once, at the end.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from surgery import metrics

RUNS = ("baseline", "operated")
OFFSETS = (("diagonal", 0), ("previous", -1), ("next", 1))


@dataclass(frozen=True)
class Rows:
    """Consecutive queries of one run: scores and weights (row, head, query, key), allowed None or broadcastable to it."""

    scores: Tensor
    weights: Tensor
    allowed: Tensor | None


@dataclass
class Tally:
    """What changed between two runs: numbers for each query, then means over real ones, each (row, head).

    real, separators: bool, (row, token). `add` takes all queries, in blocks; `outputs` both runs' outputs; `result` the means.
    """

    real: Tensor
    separators: Tensor
    _seen: dict[str, list[Tensor]] = field(default_factory=dict)  # blocks of (row, head, query)
    _ends: dict[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._whole = bool(self.real.all())
        self._first = self.real.int().argmax(1)  # (row,)

    def add(self, start: int, before: Rows, after: Rows) -> None:
        """Queries `start` and on of both runs."""
        divergence, *entropies = metrics.divergence_and_entropies(before.weights, after.weights)
        self._see("js_divergence", divergence)
        self._see("total_variation", metrics.total_variation(before.weights, after.weights))
        self._see("moved", metrics.weight_moved(before.weights, after.weights))
        self._see("scores", self._over_keys((after.scores - before.scores).abs_()))
        places = self._places(start, before.weights)
        for run, seen, entropy in zip(RUNS, (before, after), entropies, strict=True):
            self._see(f"entropy_{run}", entropy)
            for name, values in self._weights(start, seen.weights, places):
                self._see(f"{name}_{run}", values)
            for name, values in (*self._scores(seen.scores), *self._permitted(seen)):
                self._see(f"{name}_{run}", values)

    def outputs(self, before: Tensor, after: Tensor) -> None:
        """Both runs' outputs, (row, head, query, d_v), of all queries."""
        keep = self.real[:, None, :]
        moved = (after - before).double().square().sum(-1)
        was = before.double().square().sum(-1)
        self._ends["output"] = ((moved * keep).sum(-1) / (was * keep).sum(-1)).sqrt().float()
        for run, output in zip(RUNS, (before, after), strict=True):
            size = metrics.mean(output.double().square().mean(-1), keep)
            self._ends[f"output_rms_{run}"] = size.sqrt().float()

    def result(self) -> dict[str, Tensor]:
        """The numbers, each (row, head): means over what was kept, NaN where nothing was."""
        seen = {name: torch.cat(blocks, -1) for name, blocks in self._seen.items()}
        keep = self.real[:, None, :]  # (row, 1, query)
        found = {}
        for run in RUNS:
            for where, offset in OFFSETS:  # padding is nobody's neighbour
                there = self._neighbours(offset)[:, None, :]
                seen[f"{where}_{run}"] = seen[f"{where}_{run}"].masked_fill(~there, math.nan)
            found[f"scores_min_{run}"] = seen.pop(f"scores_min_{run}").masked_fill(~keep, math.inf).amin(-1)
            found[f"scores_max_{run}"] = seen.pop(f"scores_max_{run}").masked_fill(~keep, -math.inf).amax(-1)
            for name in (f"permitted_{run}", f"no_key_{run}"):
                found[name] = (seen.pop(name) * keep).sum(-1)
            within = metrics.mean(seen.pop(f"scores_within_{run}").double(), keep)
            average = seen[f"scores_mean_{run}"].double()
            between = metrics.mean((average - metrics.mean(average, keep)[..., None]).square(), keep)
            found[f"scores_std_{run}"] = (within + between).sqrt().float()
        means = metrics.mean(torch.stack(list(seen.values())).double(), keep).float()  # (measure, row, head)
        return dict(zip(seen, means, strict=True)) | found | self._ends

    def _neighbours(self, offset: int) -> Tensor:
        """Which queries have a real key so far away: bool, (row, query)."""
        there = self.real.roll(-offset, dims=1)
        if offset:
            there[:, -1 if offset > 0 else 0] = False
        return there

    def _places(self, start: int, weights: Tensor) -> Tensor:
        """The keys at each of OFFSETS, and the first real one: (row, 1, query, 4)."""
        n_query, n_key = weights.shape[-2:]
        queries = torch.arange(start, start + n_query, device=weights.device)
        apart = torch.tensor([offset for _, offset in OFFSETS], device=weights.device)
        near = (queries[:, None] + apart).clamp_(0, n_key - 1).expand(len(self.real), -1, -1)
        first = self._first[:, None, None].expand(-1, n_query, 1)
        return torch.cat((near, first), -1)[:, None]

    def _weights(self, start: int, weights: Tensor, places: Tensor) -> Iterator[tuple[str, Tensor]]:
        at = weights.gather(-1, places.expand(-1, weights.shape[1], -1, -1)).unbind(-1)
        yield from zip((*(name for name, _ in OFFSETS), "first"), at, strict=True)
        yield "separators", metrics.mass_on(weights, self.separators[:, None, :])
        yield "distance", metrics.attention_distance(weights, start)
        yield "weight_max", weights.amax(-1)

    def _scores(self, scores: Tensor) -> Iterator[tuple[str, Tensor]]:
        mean = self._over_keys(scores)  # (row, head, query)
        yield "scores_mean", mean
        yield "scores_within", self._over_keys((scores - mean[..., None]).square_())
        unreal = None if self._whole else ~self.real[:, None, None, :]
        yield "scores_min", (scores if unreal is None else scores.masked_fill(unreal, math.inf)).amin(-1)
        yield "scores_max", (scores if unreal is None else scores.masked_fill(unreal, -math.inf)).amax(-1)

    def _permitted(self, seen: Rows) -> Iterator[tuple[str, Tensor]]:
        """Of each query the number of real keys that it may see, and whether it may see none at all."""
        shape = seen.weights.shape[:-1]
        if seen.allowed is None:
            yield "permitted", self.real.sum(-1)[:, None, None].expand(shape)
            yield "no_key", self.real.new_zeros(()).expand(shape)
        else:
            keys = seen.allowed if self._whole else seen.allowed & self.real[:, None, None, :]
            yield "permitted", keys.sum(-1).expand(shape)
            yield "no_key", (~seen.allowed.any(-1)).expand(shape)

    def _over_keys(self, values: Tensor) -> Tensor:
        """The mean over real keys: (row, head, query, key) -> (row, head, query)."""
        if self._whole:
            return values.mean(-1)
        real = self.real[:, None, None, :]
        return values.masked_fill(~real, 0).sum(-1) / real.sum(-1)

    def _see(self, name: str, values: Tensor) -> None:
        self._seen.setdefault(name, []).append(values)
