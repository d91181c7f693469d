"""What to keep of a run: the tensors of chosen layers, or only their statistics."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from surgery.tally import Rows, Tally

GROUP = 4 * 2**20  # bytes of weights that are measured at once


@dataclass(frozen=True)
class Site:
    """What one layer's attention did. no_key: bool, (row, head, query), True where no key was permitted.

    allowed: bool, (row, head, query, key), True = may attend; None where every pair may.
    """

    scores: Tensor | Any  # (row, head, query, key); None where nobody asked for them
    weights: Tensor  # (row, head, query, key)
    output: Tensor  # (row, head, query, d_v)
    no_key: Tensor
    allowed: Tensor | None = None


def site(scores: Tensor | None, weights: Tensor, output: Tensor, allowed: Tensor | None) -> Site:
    """A layer as a witness sees it."""
    no_key = torch.zeros_like(weights[..., 0], dtype=torch.bool)
    if allowed is not None:
        no_key |= ~allowed.any(-1)
        allowed = allowed.expand(weights.shape)
    scores = None if scores is None else scores.float()
    return Site(scores, weights.float(), output.float(), no_key, allowed)


@dataclass
class Keep:
    """Keeps the sites of chosen layers (None = all), with or without scores."""

    layers: frozenset[int] | None = None
    scores: bool = True
    sites: dict[int, Site] = field(default_factory=dict)

    def __call__(self, layer: int) -> "_Writer | None":
        return _Writer(self, layer) if self.layers is None or layer in self.layers else None

    def add(self, layer: int, seen: Site) -> None:
        self.sites[layer] = seen


@dataclass
class Stream:
    """Compares the two halves of a batch layer by layer and keeps numbers only, no (token x token) matrix."""

    real: Tensor
    separators: Tensor
    changes: dict[int, dict[str, Tensor]] = field(default_factory=dict)

    def __call__(self, layer: int) -> "_Teller":
        return _Teller(self, layer, Tally(self.real, self.separators))


@dataclass(frozen=True)
class _Teller:
    """A witness that is shown a few queries at a time."""

    book: Stream
    layer: int
    tally: Tally
    bytes_at_a_time: int = 14 * 2**17
    needs_scores = True

    def see_queries(self, start: int, scores: Tensor, weights: Tensor, allowed: Tensor | None) -> None:
        half = len(weights) // 2
        masks = (None, None) if allowed is None else allowed.expand(2 * half, -1, -1, -1).split(half)
        seen = zip(scores.float().split(half), weights.float().split(half), masks, strict=True)
        self.tally.add(start, *(Rows(*run) for run in seen))

    def see_output(self, output: Tensor) -> None:
        self.tally.outputs(*output.float().split(len(output) // 2))
        self.book.changes[self.layer] = self.tally.result()

    def see(self, scores: Tensor, weights: Tensor, output: Tensor, allowed: Tensor | None) -> None:
        self.see_queries(0, scores, weights, allowed)
        self.see_output(output)


@dataclass(frozen=True)
class _Writer:
    """A witness that hands one layer on."""

    book: Keep
    layer: int

    @property
    def needs_scores(self) -> bool:
        return self.book.scores

    def see(self, scores: Tensor | None, weights: Tensor, output: Tensor, allowed: Tensor | None) -> None:
        self.book.add(self.layer, site(scores, weights, output, allowed))


@dataclass(frozen=True)
class Halves:
    """Keeps the two halves of a batch, each as a run of its own."""

    first: Keep
    second: Keep

    def __call__(self, layer: int) -> "_Splitter | None":
        return _Splitter(self, layer) if self.first(layer) else None


@dataclass(frozen=True)
class _Splitter:
    """A witness that hands each half of the rows on."""

    books: Halves
    layer: int
    needs_scores = True

    def see(self, scores: Tensor, weights: Tensor, output: Tensor, allowed: Tensor | None) -> None:
        half = len(weights) // 2
        masks = (None, None) if allowed is None else allowed.expand(2 * half, -1, -1, -1).split(half)
        runs = zip(scores.split(half), weights.split(half), output.split(half), masks, strict=True)
        for book, run in zip((self.books.first, self.books.second), runs, strict=True):
            book.add(self.layer, site(*run))


def changes(
    before: dict[int, Site], after: dict[int, Site], real: Tensor, separators: Tensor
) -> dict[int, dict[str, Tensor]]:
    """How each layer changed: layer -> numbers, each (row, head), means over real queries.

    real, separators: bool, (row, token). `scores` is the mean |difference| over real query-key pairs; `output` the relative
    L2 difference of a head's output over all its real tokens (NaN where there was no output). Layers are measured together,
    as many as GROUP bytes of weights allow: small tensors one by one would cost more in calls than in arithmetic.
    """
    layers, rows = sorted(before), len(real)
    found: dict[int, Any] = {}
    size = max(1, GROUP // before[layers[0]].weights.nbytes) if layers else 1
    for start in range(0, len(layers), size):
        group = layers[start : start + size]
        first, second = (_together([sites[layer] for layer in group]) for sites in (before, after))
        tally = Tally(real.repeat(len(group), 1), separators.repeat(len(group), 1))
        tally.add(0, *(Rows(run.scores, run.weights, run.allowed) for run in (first, second)))
        tally.outputs(first.output, second.output)
        split = {name: values.split(rows) for name, values in tally.result().items()}
        found |= {layer: {name: parts[n] for name, parts in split.items()} for n, layer in enumerate(group)}
    return found


def _together(sites: list[Site]) -> Site:
    """Layers as rows of one."""
    if len(sites) == 1:
        return sites[0]
    allowed = None
    if any(site.allowed is not None for site in sites):
        allowed = torch.cat(
            [
                torch.ones_like(site.weights, dtype=torch.bool) if site.allowed is None else site.allowed
                for site in sites
            ]
        )
    columns = ((s.scores, s.weights, s.output, s.no_key) for s in sites)
    scores, weights, output, no_key = (torch.cat(column) for column in zip(*columns, strict=True))
    return Site(scores, weights, output, no_key, allowed)
