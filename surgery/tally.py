"""The statistics of a layer, added up a few queries at a time, so that no (token x token) matrix need exist at once."""

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
    """Sums over real queries, each (row, head), of what changed between two runs.

    real, separators: bool, (row, token). `add` takes all queries, in blocks; `outputs` both runs' outputs; `result` the means.
    """

    real: Tensor
    separators: Tensor
    _sums: dict[str, Tensor] = field(default_factory=dict)
    _counts: dict[str, Tensor] = field(default_factory=dict)
    _ends: dict[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._whole = bool(self.real.all())

    def add(self, start: int, before: Rows, after: Rows) -> None:
        """Queries `start` and on of both runs."""
        keep = self.real[:, None, start : start + before.weights.shape[-2]]  # (row, 1, query)
        divergence, *entropies = metrics.divergence_and_entropies(before.weights, after.weights)
        self._mean("js_divergence", divergence, keep)
        self._mean("total_variation", metrics.total_variation(before.weights, after.weights), keep)
        self._mean("moved", metrics.weight_moved(before.weights, after.weights), keep)
        self._mean("scores", self._over_keys((after.scores - before.scores).abs_()), keep)
        for name, seen, entropy in zip(RUNS, (before, after), entropies, strict=True):
            self._mean(f"entropy_{name}", entropy, keep)
            self._weights(name, start, seen.weights, keep)
            self._scores(name, seen.scores, keep)
            self._permitted(name, seen.allowed, keep, seen.weights.shape[1])

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
            found[name] = total if count is None else total / count
        for name in (
            RUNS
        ):  # of all pairs: the mean variance within a query's scores, and the variance between queries
            within, square = found.pop(f"scores_within_{name}"), found.pop(f"scores_square_{name}")
            between = (square - found[f"scores_mean_{name}"].square()).clamp_min(0)
            found[f"scores_std_{name}"] = (within + between).sqrt()
        found = {name: value.float() if value.is_floating_point() else value for name, value in found.items()}
        return found | self._ends

    def _weights(self, name: str, start: int, weights: Tensor, keep: Tensor) -> None:
        for where, offset in OFFSETS:
            neighbour = self.real.roll(-offset, dims=1)[:, None, start : start + weights.shape[-2]]
            there = keep & neighbour  # padding is nobody's neighbour
            self._mean(f"{where}_{name}", metrics.mass_at_offset(weights, offset, start), there)
        first = self.real.int().argmax(1)[:, None, None, None].expand(*weights.shape[:-1], 1)
        self._mean(f"first_{name}", weights.gather(-1, first).squeeze(-1), keep)
        self._mean(f"separators_{name}", metrics.mass_on(weights, self.separators[:, None, :]), keep)
        self._mean(f"distance_{name}", metrics.attention_distance(weights, start), keep)
        self._mean(f"weight_max_{name}", weights.amax(-1), keep)

    def _scores(self, name: str, scores: Tensor, keep: Tensor) -> None:
        mean = self._over_keys(scores)  # (row, head, query)
        self._mean(f"scores_mean_{name}", mean, keep)
        self._mean(f"scores_square_{name}", mean.double().square(), keep)
        self._mean(f"scores_within_{name}", self._over_keys((scores - mean[..., None]).square_()), keep)
        unreal = None if self._whole else ~(keep[..., None] & self.real[:, None, None, :])
        for end, fill, better in (("min", torch.inf, torch.minimum), ("max", -torch.inf, torch.maximum)):
            extreme = scores if unreal is None else scores.masked_fill(unreal, fill)
            extreme = extreme.amin((-2, -1)) if end == "min" else extreme.amax((-2, -1))
            key = f"scores_{end}_{name}"
            self._ends[key] = better(self._ends[key], extreme) if key in self._ends else extreme

    def _permitted(self, name: str, allowed: Tensor | None, keep: Tensor, heads: int) -> None:
        pairs = keep[..., None] & self.real[:, None, None, :]  # (row, 1, query, key)
        closed = torch.zeros_like(keep) if allowed is None else ~allowed.any(-1) & keep
        for what, marked in (
            ("permitted", pairs if allowed is None else pairs & allowed),
            ("no_key", closed[..., None]),
        ):
            self._sum(f"{what}_{name}", marked.sum((-2, -1)).expand(-1, heads))

    def _over_keys(self, values: Tensor) -> Tensor:
        """The mean over real keys: (row, head, query, key) -> (row, head, query)."""
        if self._whole:
            return values.mean(-1)
        real = self.real[:, None, None, :]
        return values.masked_fill(~real, 0).sum(-1) / real.sum(-1)

    def _mean(self, name: str, values: Tensor, keep: Tensor) -> None:
        use = keep & ~values.isnan()
        self._sum(name, torch.where(use, values, 0).sum(-1, dtype=torch.float64))
        count = use.sum(-1)
        self._counts[name] = self._counts[name] + count if name in self._counts else count

    def _sum(self, name: str, values: Tensor) -> None:
        self._sums[name] = self._sums[name] + values if name in self._sums else values
