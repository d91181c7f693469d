"""The operations that meet in one layer, stage by stage, each with the rows and heads it touches."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from surgery.operation import Grid, Operation


@dataclass(frozen=True)
class Draw:
    """The random numbers of one stochastic operation in one layer, from a generator of its own.

    Numbers are drawn for all heads of the layer and then the touched ones are taken, so a head's draw does not depend on
    which other heads are selected; on the CPU, so that every device sees the same ones.
    """

    generator: torch.Generator | None
    rows: int
    heads: int
    touched: list[int] | None

    def keep(self, like: torch.Tensor, p: float) -> torch.Tensor:
        """bool, (row, touched head, *rest), True with probability 1 - p; `rest` is taken from `like`.

        Each is a random 32-bit number held against p · 2³²: a third of the time that `bernoulli_` takes, and p as exact.
        """
        shape = (self.rows, self.heads, *like.shape[2:])
        pairs = torch.empty((math.prod(shape) + 1) // 2, dtype=torch.int64)
        numbers = pairs.random_(-(2**63), None, generator=self.generator).view(torch.int32)
        keep = (numbers[: math.prod(shape)] >= min(round(p * 2**32) - 2**31, 2**31 - 1)).view(shape)
        keep = keep if self.touched is None else keep[:, self.touched]
        return keep.to(like.device)

    def drop(self, tensor: torch.Tensor, p: float) -> torch.Tensor:
        """`tensor` (row, touched head, *rest) with entries set to 0 with probability p, the others divided by 1 - p.

        May reuse its memory.
        """
        if p == 1.0:
            return torch.zeros_like(tensor)
        factor = self.keep(tensor, p).to(tensor.dtype).div_(1 - p)
        return tensor * factor if torch.is_grad_enabled() else tensor.mul_(factor)


@dataclass(frozen=True)
class Touch:
    """One operation in one layer: `rows` of the batch (None = all) and `heads` (None = all)."""

    operation: Operation
    rows: torch.Tensor | None
    heads: list[int] | None
    generator: torch.Generator | None

    def draw(self, rows: int, heads: int) -> Draw:
        """Its random numbers for a batch of `rows` in a layer of `heads`."""
        return Draw(self.generator, rows if self.rows is None else len(self.rows), heads, self.heads)

    def block(self, tensor: torch.Tensor) -> torch.Tensor:
        """What it touches of `tensor` (row, head, *rest)."""
        return tensor if self.rows is None and self.heads is None else tensor[self._where(tensor)]

    def edit(self, tensor: torch.Tensor, change: Callable[..., torch.Tensor], *more: Any) -> torch.Tensor:
        """`tensor` (row, head, *rest) with the touched block replaced by `change(block, *more)`; may reuse its memory."""
        if self.rows is None and self.heads is None:
            return change(tensor, *more)
        where = self._where(tensor)
        block = change(tensor[where], *more)
        # Autograd may still need the old values; without it one buffer is enough.
        whole = tensor.clone() if torch.is_grad_enabled() else tensor
        whole[where] = block.to(whole.dtype)
        return whole

    def _where(self, tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows = torch.arange(tensor.shape[0]) if self.rows is None else self.rows
        heads = torch.arange(tensor.shape[1]) if self.heads is None else torch.tensor(self.heads)
        return rows[:, None].to(tensor.device), heads.to(tensor.device)


@dataclass
class Cut:
    """What is done in one layer. Empty: nothing."""

    touches: dict[str, list[Touch]] = field(default_factory=dict)

    def add(self, touch: Touch) -> None:
        """Adds an operation after those of its stage, or before them if it `lifts_padding`."""
        stage = self.touches.setdefault(touch.operation.stage, [])
        stage.insert(0 if touch.operation.lifts_padding else len(stage), touch)

    @property
    def materialises(self) -> bool:
        """Whether the (token x token) matrices must exist."""
        return "scores" in self.touches or "weights" in self.touches

    @property
    def lifts_padding(self) -> bool:
        """Whether an operation must know which keys are padding."""
        return any(touch.operation.lifts_padding for touch in self.touches.get("mask", ()))

    def scale(self, rows: int, heads: int, scale: float) -> tuple[np.ndarray, np.ndarray] | None:
        """The factor on q·kᵀ and the temperature: (row, head) each in float64, or None where no operation changes them.

        scale: the model's own factor.
        """
        if "scale" not in self.touches:
            return None
        scaling, temperature = np.full((rows, heads), scale), np.ones((rows, heads))
        for touch in self.touches["scale"]:
            where = np.ix_(
                range(rows) if touch.rows is None else touch.rows.tolist(),
                range(heads) if touch.heads is None else touch.heads,
            )
            scaling[where], temperature[where] = touch.operation.scale(scaling[where], temperature[where])
        return scaling, temperature

    def project(self, *vectors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """query, key and value, (row, head, token, width), after the operations that see all heads of a layer."""
        for touch in self.touches.get("projections", ()):
            own = [x if touch.rows is None else x[touch.rows.to(x.device)] for x in vectors]
            heads = slice(None) if touch.heads is None else touch.heads
            changed = [new[:, heads] for new in touch.operation.projections(*own)]
            vectors = tuple(
                touch.edit(x.clone(), _instead, new) for x, new in zip(vectors, changed, strict=True)
            )
        return vectors

    def compare(
        self,
        scores: torch.Tensor,
        query: torch.Tensor,
        key: torch.Tensor,
        before: float,
        temperature: np.ndarray | None,
    ) -> torch.Tensor:
        """`scores` (row, head, query, key) where operations make them anew from query and key, (row, head, token, width).

        before: the factor that the query carries. temperature: (row, head); None for 1.
        """
        if not any(touch.operation.sees_vectors for touch in self.touches.get("scores", ())):
            return scores
        given = np.ones(scores.shape[:2]) if temperature is None else temperature
        heat = torch.as_tensor(given, dtype=scores.dtype, device=scores.device)[:, :, None, None]
        for touch in self.touches.get("scores", ()):
            if touch.operation.sees_vectors:
                draw = touch.draw(*scores.shape[:2])
                q, k, t = (touch.block(x) for x in (query / before, key, heat))
                scores = touch.edit(scores, _cooled, touch.operation, draw, q, k, t)
        return scores

    def mask(self, allowed: torch.Tensor | None, grid: Grid, rows: int, heads: int) -> torch.Tensor:
        """What may be attended to after the masks of this layer: bool, (row or 1, head or 1, query, key).

        allowed: what the model permits, the same shape; None for everything.
        """
        if allowed is None:
            allowed = grid.keys.new_ones(1, 1, len(grid.queries), len(grid.keys), dtype=torch.bool)
        whole = (rows, heads, len(grid.queries), len(grid.keys))
        own = False  # masks are shared between layers: only a copy may be written to
        for touch in self.touches["mask"]:
            if (touch.rows is not None or touch.heads is not None) and not (own and allowed.shape == whole):
                allowed, own = allowed.expand(whole).clone(), True
            draw = touch.draw(rows, heads)
            at = Grid(grid.queries, grid.keys, _rows(grid.padding, touch.rows))
            allowed = touch.edit(allowed, touch.operation.mask, at, draw)
        return allowed

    def edit(self, stage: str, tensor: torch.Tensor) -> torch.Tensor:
        """`tensor` (row, head, query, key or d_v) after the operations of "scores", "weights" or "output"."""
        for touch in self.touches.get(stage, ()):
            if touch.operation.sees_vectors:
                continue
            draw = touch.draw(*tensor.shape[:2])
            change = getattr(touch.operation, stage)
            tensor = touch.edit(tensor, change, draw)
        return tensor


def _instead(block: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    return new


def _cooled(
    block: torch.Tensor, made: Operation, draw: Draw, q: torch.Tensor, k: torch.Tensor, t: torch.Tensor
) -> torch.Tensor:
    """The scores that an operation makes anew, at the temperature t."""
    return made.scores(block, draw, q, k) / t


def _rows(tensor: torch.Tensor | None, rows: torch.Tensor | None) -> torch.Tensor | None:
    if tensor is None or rows is None or tensor.shape[0] == 1:
        return tensor
    return tensor[rows.to(tensor.device)]
