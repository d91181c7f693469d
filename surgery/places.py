"""Where positions enter a model, and how a model is made to read others.

A model numbers its tokens and encodes the numbers in one of these ways (`Place.how`):

    ids     a module is called with position ids: BERT's table, waves, the cos and sin of rotary positions
    table   a module reads rows of its table by itself: OPT, BART, ViT
    bias    a number is added to each score, from the distance of query and key: T5
    output  a module makes them of the input itself: Wav2Vec2's convolution; all that can be done is to leave it out
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from bilingual import SurgeryError

# ids (row or 1, token), what the model makes of them, and how to make it of other ids -> what is made of the moved ones
Move = Callable[[Tensor, tuple[Tensor, ...], Callable[[Tensor], tuple[Tensor, ...]]], tuple[Tensor, ...]]

WHOLE = (torch.int64, torch.int32)  # what an embedding takes


class UnsupportedError(SurgeryError):
    """A model, or an operation on this model, that surgery cannot do; it says why and what would work."""


@dataclass(frozen=True)
class Place:
    """One place where positions enter.

    table: what is looked up in, for "table" and for an `nn.Embedding`. rows: the ids that exist; None = any. full: whether
    every input takes all of them, as a picture does. layers: whose scores the bias is added to.
    """

    how: str
    module: nn.Module
    table: Tensor | None = None
    rows: range | None = None
    full: bool = False
    layers: range = range(0)


def ids_among(module: nn.Module, args: tuple, kwargs: dict) -> tuple[str, dict] | None:
    """The name of the argument that holds position ids, and all arguments by name; None if none is a tensor of integers."""
    given = inspect.signature(module.forward).bind(*args, **kwargs).arguments
    whole = [name for name, value in given.items() if isinstance(value, Tensor) and value.dtype in WHOLE]
    if not whole:
        return None
    long = [name for name in whole if given[name].dtype == torch.long]
    return ("position_ids" if "position_ids" in whole else (long or whole)[0]), given


def read_again(place: Place, args: tuple, kwargs: dict, encoded: Any, move: Move) -> Any:
    """What the place's module gives after `move`; args, kwargs, encoded: what went in and came out of it."""
    if place.how == "table" and place.table is not None:
        with _Reading(place.table, move):
            return place.module.forward(
                *args, **kwargs
            )  # not module(...): its hooks, ours among them, have run
    parts = encoded if isinstance(encoded, tuple) else (encoded,)
    if place.how == "output":
        everything = torch.arange(encoded.shape[1], device=encoded.device).expand(encoded.shape[0], -1)
        return move(everything, parts, _nothing)[0]
    found = ids_among(place.module, args, kwargs)
    if found is None:
        raise UnsupportedError(
            "The positions of this input are no whole numbers, and operations move whole numbers alone: give position_ids of "
            "torch.long.",
            "该输入的位置不是整数，而手术只能移动整数位置：请给 torch.long 类型的 position_ids。",
        )
    name, given = found
    ids = given[name]

    def again(new: Tensor) -> tuple[Tensor, ...]:
        fresh = place.module.forward(**{**given, name: new})
        return _shaped(fresh if isinstance(fresh, tuple) else (fresh,), new)

    ids = ids[None] if ids.dim() == 1 else ids
    moved = move(ids, _shaped(parts, ids), again)
    return tuple(moved) if isinstance(encoded, tuple) else moved[0]


def _shaped(parts: tuple[Tensor, ...], ids: Tensor) -> tuple[Tensor, ...]:
    """Each part as (row, token, width): one row for all may come without its axis, or with one too many."""
    return tuple(part.reshape(*ids.shape, part.shape[-1]) for part in parts)


def _nothing(ids: Tensor) -> tuple[Tensor, ...]:
    raise AssertionError("a place of this kind can only be left out")


class _Reading(TorchFunctionMode):
    """While it is open, whoever looks rows up in `table` gets those that `move` makes of them."""

    def __init__(self, table: Tensor, move: Move):
        super().__init__()
        self.table, self.move = table, move

    def __torch_function__(
        self, function: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if not any(arg is self.table for arg in args) or getattr(function, "__name__", "") == "__get__":
            return function(*args, **kwargs)
        if function is F.embedding:
            return self._rows(args[0])
        if function is Tensor.__getitem__ and isinstance(args[1], Tensor):
            return self._rows(args[1])
        if function is Tensor.__getitem__ and isinstance(args[1], slice):
            return self._rows(torch.arange(len(self.table), device=self.table.device)[args[1]])
        if function in (torch.add, Tensor.add) and self.table.dim() == 3:
            whole = self._rows(torch.arange(self.table.shape[1], device=self.table.device))
            return function(*(whole if arg is self.table else arg for arg in args), **kwargs)
        raise UnsupportedError(
            "The positions of this input are interpolated between those of the table, which no operation can move: "
            "give it the size that the model was made for.",
            "该输入的位置是由位置表插值得到的，无法移动：请使用模型原本的输入大小。",
        )

    def _rows(self, ids: Tensor) -> Tensor:
        table = self.table[0] if self.table.dim() == 3 else self.table

        def again(new: Tensor) -> tuple[Tensor, ...]:
            return (F.embedding(new, table),)

        ids = ids[None] if ids.dim() == 1 else ids
        return self.move(ids, again(ids), again)[0]


def moved_bias(place: Place, bias: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """The bias (row, head, query, key) of tokens at other positions: queries (row, query), keys (row, key)."""
    distance = keys[:, None, :] - queries[:, :, None]  # (row, query, key)
    most = int(distance.abs().max()) + 1
    compute: Any = place.module.compute_bias
    ahead, behind = compute(1, most)[0, :, 0], compute(most, 1)[0, :, :, 0]  # (head, distance)
    table = torch.cat((behind.flip(-1)[:, :-1], ahead), dim=-1)  # (head, -most + 1 ... most - 1)
    return table[:, distance + most - 1].transpose(0, 1).to(bias.dtype)
