"""The statistics of a layer, added up a few queries at a time, so that no (token x token) matrix need exist at once."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from surgery import metrics

RUNS = ("baseline", "operated")
OFFSETS = (("diagonal", 0), ("previous", -1), ("next", 1))


@dataclass(frozen=True)
class Rows:
    """Consecutive queries of one run: scores and weights (row, head, query, key), allowed the same shape or None."""

    scores: Tensor
    weights: Tensor
    allowed: Tensor | None


@dataclass
class Tally:
    """Sums over real queries, each (row, head), of what changed between two runs.

    real, separators: bool, (row, token). `add` takes all queries, in blocks; `outputs` both runs' outputs; `result` the means.
    """

    real: Tensor
    separators: Tensor
    _sums: dict[str, Tensor] = field(default_factory=dict)
    _counts: dict[str, Tensor] = field(default_factory=dict)
    _ends: dict[str, Tensor] = field(default_factory=dict)

    def add(self, start: int, before: Rows, after: Rows) -> None:
        """Queries `start` and on of both runs."""
        stop = start + before.weights.shape[-2]
        keep = self.real[:, None, start:stop]  # (row, 1, query)
        pairs = (keep[..., None] & self.real[:, None, None, :]).expand_as(before.scores)
        self._mean("js_divergence", metrics.js_divergence(before.weights, after.weights), keep)
        self._mean("total_variation", metrics.total_variation(before.weights, after.weights), keep)
        self._mean("moved", metrics.weight_moved(before.weights, after.weights), keep)
        self._mean("scores", (after.scores - before.scores).abs().flatten(2), pairs.flatten(2))
        for name, seen in zip(RUNS, (before, after), strict=True):
            self._weights(name, start, seen.weights, keep)
            self._scores(name, seen.scores.flatten(2), pairs.flatten(2))
            permitted = pairs if seen.allowed is None else pairs & seen.allowed
            self._sum(f"permitted_{name}", permitted.sum((-2, -1)))
            closed = torch.zeros_like(pairs[..., 0]) if seen.allowed is None else ~seen.allowed.any(-1)
            self._sum(f"no_key_{name}", (closed & keep).sum(-1))

    def outputs(self, before: Tensor, after: Tensor) -> None:
        """Both runs' outputs, (row, head, query, d_v), of all queries."""
        keep = self.real[:, None, :]
        moved = (after - before).double().square().sum(-1)
        was = before.double().square().sum(-1)
        self._ends["output"] = ((moved * keep).sum(-1) / (was * keep).sum(-1)).sqrt().float()
        for name, output in zip(RUNS, (before, after), strict=True):
            size = metrics.mean(output.double().square().mean(-1), keep)
            self._ends[f"output_rms_{name}"] = size.sqrt().float()

    def result(self) -> dict[str, Tensor]:
        """The numbers, each (row, head): means over what was kept, NaN where nothing was."""
        found = {}
        for name, total in self._sums.items():
            count = self._counts.get(name)
            found[name] = total if count is None else (total / count).float()
        for name in RUNS:
            square = found.pop(f"scores_square_{name}").double()
            mean = found[f"scores_mean_{name}"].double()
            found[f"scores_std_{name}"] = (square - mean.square()).clamp_min(0).sqrt().float()
        return found | self._ends

    def _weights(self, name: str, start: int, weights: Tensor, keep: Tensor) -> None:
        self._mean(f"entropy_{name}", metrics.entropy(weights), keep)
        for where, offset in OFFSETS:
            neighbour = self.real.roll(-offset, dims=1)[:, None, start : start + weights.shape[-2]]
            there = keep & neighbour  # padding is nobody's neighbour
            self._mean(f"{where}_{name}", metrics.mass_at_offset(weights, offset, start), there)
        places = torch.arange(weights.shape[-1], device=weights.device)[None, :]
        first = places == self.real.int().argmax(1, keepdim=True)
        self._mean(f"first_{name}", metrics.mass_on(weights, first[:, None, :]), keep)
        self._mean(f"separators_{name}", metrics.mass_on(weights, self.separators[:, None, :]), keep)
        self._mean(f"distance_{name}", metrics.attention_distance(weights, start), keep)
        self._mean(f"weight_max_{name}", weights.amax(-1), keep)

    def _scores(self, name: str, scores: Tensor, use: Tensor) -> None:
        self._mean(f"scores_mean_{name}", scores, use)
        self._mean(f"scores_square_{name}", scores.double().square(), use)
        for end, fill, better in (("min", torch.inf, torch.minimum), ("max", -torch.inf, torch.maximum)):
            extreme = scores.masked_fill(~use, fill)
            extreme = extreme.amin(-1) if end == "min" else extreme.amax(-1)
            key = f"scores_{end}_{name}"
            self._ends[key] = better(self._ends[key], extreme) if key in self._ends else extreme

    def _mean(self, name: str, values: Tensor, keep: Tensor) -> None:
        use = keep & ~values.isnan()
        self._sum(name, torch.where(use, values, 0).sum(-1, dtype=torch.float64))
        count = use.sum(-1)
        self._counts[name] = self._counts[name] + count if name in self._counts else count

    def _sum(self, name: str, values: Tensor) -> None:
        self._sums[name] = self._sums[name] + values if name in self._sums else values
