"""What attention does inside a loop of your own: any model that surgery reaches, pictures and sound included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bilingual import SurgeryError
from surgery import theatre
from surgery.capture import Keep
from surgery.operation import Operation, Step
from surgery.plan import Plan


class WatchError(SurgeryError):
    """A layer that was not watched, or that has not run."""


@dataclass(frozen=True)
class Watched:
    """What the last call kept, layer by layer; tensors stay on the model's device."""

    _book: Keep

    @property
    def layers(self) -> tuple[int, ...]:
        """The layers that have run and were kept."""
        return tuple(sorted(self._book.sites))

    def weights(self, layer: int) -> Tensor:
        """(row, head, query, key): attention after the softmax, as it meets the values."""
        return self._site(layer).weights

    def scores(self, layer: int) -> Tensor:
        """(row, head, query, key): q·kᵀ × scale, before mask and softmax. Raises WatchError if they were not to be kept."""
        scores = self._site(layer).scores
        if scores is None:
            raise WatchError(
                "The scores were not kept: call `watch` without scores=False.",
                "没有保留分数：调用 watch 时请不要给 scores=False。",
            )
        return scores

    def output(self, layer: int) -> Tensor:
        """(row, head, query, d_v): weights · v, before the output projection."""
        return self._site(layer).output

    def _site(self, layer: int) -> Any:
        if layer not in self._book.sites:
            kept = ", ".join(map(str, self.layers)) or "none"
            raise WatchError(
                f"Layer {layer} was not kept; kept: {kept}. Call the model inside the `with`, and watch that layer.",
                f"没有保留第 {layer} 层；已保留：{kept}。请在 with 之内调用模型，并观察该层。",
            )
        return self._book.sites[layer]


@contextmanager
def watch(
    model: Any,
    plan: Plan | Operation | Step | None = None,
    layers: Iterable[int] | None = None,
    scores: bool = True,
) -> Iterator[Watched]:
    """`operate`, with what attention did kept: `with watch(model, plan) as seen: model(...)`, then `seen.weights(layer)`.

    layers: those to keep (None: all). A layer that runs several times, as in generation, is kept as it was last. Gradients reach
    what was kept. scores: False keeps no scores, which halves the memory. Raises what `operate` raises.
    """
    model = theatre.model_of(model)
    anatomy = theatre.admit(model)
    book = Keep(None if layers is None else frozenset(layers), scores)
    wrong = sorted(layer for layer in book.layers or () if layer not in range(anatomy.layers))
    if wrong:
        raise WatchError(
            f"Layer {wrong[0]} does not exist in {anatomy.name}: layers are 0-{anatomy.layers - 1}.",
            f"{anatomy.name} 没有第 {wrong[0]} 层：层号为 0-{anatomy.layers - 1}。",
        )
    with theatre.run(model, [theatre.after_outer(anatomy, plan)], witnesses=book):
        yield Watched(book)


def patch_grid(weights: Tensor, height: int, width: int) -> Tensor:
    """A query's weights on the patches of a picture, (..., key) -> (..., height, width).

    The patches are the last height × width keys, row by row; what stands before them ([CLS], registers) is left out. Raises
    WatchError where there are fewer keys than patches.
    """
    if weights.shape[-1] < height * width:
        raise WatchError(
            f"{weights.shape[-1]} keys are fewer than {height} × {width} patches.",
            f"{weights.shape[-1]} 个键少于 {height} × {width} 个图块。",
        )
    return weights[..., -height * width :].unflatten(-1, torch.Size((height, width)))
