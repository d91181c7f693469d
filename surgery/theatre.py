"""Readies a model for surgery, and scopes a plan to the calls made inside `with operate(model, plan)`.

Transformers looks attention up by name, and its mask likewise. `admit` gives a model names of ours. What happens
then depends on the scopes that are open in the current context (a ContextVar: other threads and other visitors have
their own): without one, the call goes straight to what the model would have used. Of several over one model the
innermost decides alone; `operate` gives it the outer plan too, `compare` does not.
"""

import functools
import inspect
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, sdpa_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from bilingual import SurgeryError
from surgery import adapter
from surgery import anatomy as anatomies
from surgery import probe as probes
from surgery.anatomy import Anatomy, UnsupportedError
from surgery.attention import Witness, attend, split_mask
from surgery.cut import Cut, Touch
from surgery.operation import REGISTRY, Operation, Step
from surgery.places import Place, moved_bias, read_again
from surgery.plan import Plan
from surgery.probe import Probe

_open: ContextVar[tuple["Scope | Probe", ...]] = ContextVar("open surgery scopes", default=())
_admitted: weakref.WeakKeyDictionary[nn.Module, Anatomy] = weakref.WeakKeyDictionary()
_lock = threading.RLock()
_PREFIX = "surgery_"


class ScopeError(SurgeryError):
    """A scope that was closed where it is not open, or out of order."""


# --- admitting a model --------------------------------------------------------------------------------------


def admit(model: nn.Module, *args: Any, **kwargs: Any) -> Anatomy:
    """Readies `model` (once) and returns its anatomy. Without a plan it computes exactly what it did before.

    args, kwargs: what to call it with, once, for a model that is not one of transformers (see adapter.py). Raises UnsupportedError for a model that surgery cannot reach; the model is then left as it was.
    """
    with _lock:
        if model not in _admitted:
            example = bool(args or kwargs) and not anatomies.known(model)
            _admitted[model] = _adapt(model, args, kwargs) if example else _admit(model)
        return _admitted[model]


def _admit(model: Any) -> Anatomy:
    anatomies.family_of(model)
    original = model.config._attn_implementation or "eager"
    ours = _register(original.removeprefix(_PREFIX))  # a copy of the model may bring our name from elsewhere
    model.set_attn_implementation(ours)
    try:
        anatomy = anatomies.examine(model, _probe(model))
    except BaseException:
        model.set_attn_implementation(original)
        raise
    for module in _entrances(model):
        _admitted.setdefault(module, anatomy)
        if _before_forward not in module._forward_pre_hooks.values():  # a copy brings its hooks along
            module.register_forward_pre_hook(_before_forward, with_kwargs=True)
    _hook_places(anatomy)
    return anatomy


def _hook_places(anatomy: Anatomy) -> None:
    for place in anatomy.places:
        if place.how != "bias" and _after_positions not in place.module._forward_hooks.values():
            place.module.register_forward_hook(_after_positions, with_kwargs=True)


def _adapt(model: nn.Module, args: tuple, kwargs: dict[str, Any]) -> Anatomy:
    with in_eval(model):
        anatomy = adapter.examine(model, args, kwargs, lambda probe: probes.watched(model, probe))
    if _before_call not in model._forward_pre_hooks.values():  # a copy brings its hooks along
        model.register_forward_pre_hook(_before_call, with_kwargs=True)
        model.register_forward_hook(_after_call, always_call=True)
    _hook_places(anatomy)
    return anatomy


def _entrances(model: Any) -> set[nn.Module]:
    """What people and `generate` call: the model, the model without its head, and an encoder of its own."""
    base = getattr(model, "base_model", model)
    encoder = model.get_encoder() if getattr(model.config, "is_encoder_decoder", False) else model
    return {model, base, encoder}


def _register(original: str) -> str:
    """Our name over the attention and mask functions called `original`."""
    name = _PREFIX + original
    attention = _eager if original == "eager" else ALL_ATTENTION_FUNCTIONS[original]
    AttentionInterface.register(name, functools.partial(_attention, stock=attention))
    AttentionMaskInterface.register(
        name, functools.partial(_mask, stock=ALL_MASK_ATTENTION_FUNCTIONS[original])
    )
    return name


def _probe(model: nn.Module) -> Probe:
    probe = Probe()
    with in_eval(model), _opened(probe), probes.watched(model, probe), torch.no_grad():
        model(**probes.inputs(model))
    return probe


@contextmanager
def in_eval(model: nn.Module) -> Iterator[None]:
    """The model in eval mode, so that its own dropouts are off; afterwards every module as it was."""
    training = [module for module in model.modules() if module.training]
    if training:
        model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


# --- scopes -------------------------------------------------------------------------------------------------


class Scope:
    """Plans resolved against one model, and what the calls inside the scope need to share.

    plans[p] acts on rows[p] of the batch (None = every row). joins[k] are the rows of which copies are added to the batch
    before block k; such a row's plan acts from layer since[p] on, for the row that it is a copy of has done the rest.
    Raises UnsupportedError and SelectionError before anything runs.
    """

    def __init__(
        self,
        anatomy: Anatomy,
        plans: Sequence[Plan],
        rows: Sequence[torch.Tensor | None] = (None,),
        witnesses: "Callable[[int], Witness | None]" = lambda layer: None,
        name: str | None = None,
        joins: dict[int, list[int]] | None = None,
        since: Sequence[int] | None = None,
    ):
        self.anatomy = anatomy
        self.joins = joins or {}
        self.witnesses = witnesses
        self.plans = tuple(plans)
        self._cuts = [Cut() for _ in range(anatomy.layers)]
        self._positions: list[tuple[torch.Tensor | None, list[Operation]]] = []
        self._checks: list[Operation] = []
        self._masks: dict[int, tuple[torch.Tensor, dict[str, Any], list[int] | None]] = {}
        self._calls: dict[int, int] = {}
        self.begun = False  # whether a forward pass has started inside
        self._rows: int | None = None
        self._total: int | None = None
        self._padding: tuple[torch.Tensor | None, ...] = ()
        for plan, where, first in zip(plans, rows, since or [0] * len(self.plans), strict=True):
            self._resolve(plan, where, name or anatomy.name, first)

    def _resolve(self, plan: Plan, rows: torch.Tensor | None, name: str, since: int) -> None:
        moves: list[Operation] = []
        for step, repeat in zip(plan, repeats(plan), strict=True):
            operation = step.operation
            cells = step.selection.cells(self.anatomy.layers, self.anatomy.heads, name)
            check(self.anatomy, step)
            if operation.neutral or not cells:
                continue
            self._checks.append(operation)
            if operation.stage == "positions":
                moves += [operation] if since == 0 else []
                continue
            for layer in sorted({layer for layer, _ in cells if layer >= since}):
                heads = sorted(head for at, head in cells if at == layer)
                generator = _generator(operation, layer, repeat)
                whole = len(heads) == self.anatomy.heads
                self._cuts[layer].add(Touch(operation, rows, None if whole else heads, generator))
        if moves:
            self._positions.append((rows, moves))

    def begin(self, rows: int | None, tokens: int | None, cached: int, *masks: torch.Tensor | None) -> None:
        """A forward pass starts, of so many rows and tokens after `cached` ones.

        masks: (row, token), 0 on padding; a second one is that of an encoder-decoder's decoder, and its encoder, which begins
        a pass of its own, leaves it as it was.
        """
        self._total = cached + tokens if len(self.anatomy.kinds) == 1 and tokens is not None else None
        if self._total is not None:
            for operation in self._checks:
                operation.check(self._total)
        if cached:
            self._refuse_cached()
        self.begun = True
        self._calls.clear()
        self._masks.clear()
        self._rows, self._padding = rows, (*masks, *self._padding[len(masks) :])

    def _refuse_cached(self) -> None:
        whole = [type(o).__name__ for _, moves in self._positions for o in moves if not o.token_by_token]
        if whole:
            raise UnsupportedError(
                f"{whole[0]} needs the whole text, and these tokens follow cached ones: pass use_cache=False.",
                f"{whole[0]} 需要整段文本，而这些词元接在缓存之后：请传入 use_cache=False。",
            )

    def knows(self, module: nn.Module) -> bool:
        """Whether this is an attention module of its model."""
        return id(module) in self.anatomy.layers_of

    def remember(self, mask: Any, arguments: dict[str, Any], origins: list[int] | None = None) -> None:
        """Keeps how a mask was made, to tell its padding from the rest. origins: its rows, as rows of what is made so."""
        if isinstance(mask, torch.Tensor):
            self._masks[id(mask)] = (mask, arguments, origins)

    def by_row(self, given: Any, origins: list[int]) -> Any:
        """`given` with each tensor that has an entry for each of the first rows, (row, token, ...), as of the rows `origins`."""
        if isinstance(given, torch.Tensor):
            if given.dim() < 3 or given.shape[0] != self._rows or self._rows == 1:
                return given
            chosen = given[origins]
            if id(given) in self._masks:
                self.remember(chosen, self._masks[id(given)][1], origins)
            return chosen
        if isinstance(given, tuple | list):
            return type(given)(self.by_row(part, origins) for part in given)
        if isinstance(given, dict):
            return {name: self.by_row(part, origins) for name, part in given.items()}
        return given

    def attention(
        self,
        module: nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: Any,
        scaling: float | None,
        dropout: float,
        causal: bool | None,
        bias: torch.Tensor | None = None,
        wanted: bool = False,
        always: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor | None] | None:
        """The layer under its plan, or None where neither an operation nor a witness wants it.

        wanted: weights too. always: do what no operation touches as well, where some other layer is touched.
        """
        layer = self._layer(module)
        cut, witness = self._cuts[layer], self.witnesses(layer)
        moved = self._moved(layer, bias, query.shape[0], key.shape[2])
        if not cut.touches and witness is None and moved is bias and not (always and self.acts):
            return None
        witness = _Blind() if wanted and witness is None else witness
        if self._total is None:
            for touch in cut.touches.get("mask", ()):
                touch.operation.check(key.shape[2])
        causal = getattr(module, "is_causal", True) if causal is None else causal
        allowed, padding, bias = self.split(mask, cut, moved)
        before = self.anatomy.before[layer]
        return attend(
            query,
            key,
            value,
            cut,
            scale=(query.shape[-1] ** -0.5 if scaling is None else scaling) * before,
            before=before,
            first=0
            if self._total is None
            else self._total - key.shape[2],  # a window's cache forgets the first ones
            allowed=allowed,
            padding=padding,
            bias=bias,
            scaled_bias=self.anatomy.family.scaled_bias,
            causal=causal and mask is None,
            dropout=dropout,
            witness=witness,
        )

    def _moved(self, layer: int, bias: torch.Tensor | None, rows: int, keys: int) -> torch.Tensor | None:
        """The position bias of a layer, (row or 1, head, query, key), with some rows' positions changed."""
        own = [p for p in self.anatomy.places if p.how == "bias" and layer in p.layers]
        if bias is None or not own or not self._positions:
            return bias
        ids = torch.arange(keys, device=bias.device)[None].expand(rows, -1)
        real = self._real(own[0], ids)
        bias = bias.expand(rows, -1, -1, -1).clone()
        for where, operations in self._positions:
            where = torch.arange(rows, device=ids.device) if where is None else where.to(ids.device)
            new = _follow(operations, ids[where], real[where])
            if new is None:
                bias[where] = 0.0
            else:
                bias[where] = moved_bias(own[0], bias, new[:, keys - bias.shape[2] :], new)
        return bias

    def _mask_of(self, place: Place) -> torch.Tensor | None:
        """The padding mask of the text whose positions enter there."""
        side = next(i for i, own in enumerate(self.anatomy.places) if own is place)
        return self._padding[side] if side < len(self._padding) else None

    def _real(self, place: Place, ids: torch.Tensor) -> torch.Tensor:
        """bool, (row, token): False on padding."""
        mask = self._mask_of(place)
        return torch.ones_like(ids, dtype=torch.bool) if mask is None else mask[:, -ids.shape[1] :].bool()

    def _layer(self, module: nn.Module) -> int:
        layers = self.anatomy.layers_of[id(module)]
        call = self._calls.get(id(module), 0)
        self._calls[id(module)] = call + 1
        return layers[call % len(layers)]

    def split(
        self, mask: torch.Tensor | None, cut: Cut, bias: torch.Tensor | None
    ) -> tuple[torch.Tensor | None, ...]:
        """A mask as (allowed, forbidden by padding alone, bias): bool, bool, and what is left to add, `bias` included."""
        if mask is None:
            return None, None, bias
        if id(mask) in self._masks:
            mask, arguments, origins = self._masks[id(mask)]
            allowed = mask if mask.dtype == torch.bool else _explicit(arguments, origins)
            padded = cut.lifts_padding and arguments.get("attention_mask") is not None
            unpadded = _explicit({**arguments, "attention_mask": None}, origins) if padded else None
            return allowed, None if unpadded is None else unpadded & ~allowed, bias
        if cut.lifts_padding:
            raise UnsupportedError(
                "IgnorePaddingMask cannot tell padding from the rest in a mask of your own: pass attention_mask as (row, token).",
                "IgnorePaddingMask 无法在自定义的掩码中分辨填充：请用 (行, 词元) 形状的 attention_mask。",
            )
        return split_mask(mask, bias)

    def move(
        self,
        place: Place,
        ids: torch.Tensor,
        encoded: tuple[torch.Tensor, ...],
        again: Callable[[torch.Tensor], tuple[torch.Tensor, ...]],
    ) -> Any:
        """An encoding, parts of (row or 1, token, width) for ids (row or 1, token), with some rows' positions changed."""
        mask = self._mask_of(place)
        rows = ids.shape[0]
        if mask is not None or any(where is not None for where, _ in self._positions):
            rows = self._rows or rows
        ids = ids.expand(rows, -1)  # (row, token)
        real = self._real(place, ids)
        moved = [part.expand(rows, -1, -1).clone() for part in encoded]
        for where, operations in self._positions:
            where = torch.arange(rows, device=ids.device) if where is None else where.to(ids.device)
            new = _follow(operations, ids[where], real[where])
            if new is None:  # what changes nothing: add 0, or turn by cos = 1, sin = 0
                neutral = (0.0,) if len(encoded) == 1 else (1.0, 0.0)
                changed: Sequence[torch.Tensor] = [
                    part.new_tensor(x) for part, x in zip(encoded, neutral, strict=True)
                ]
            else:
                anatomies.check_positions(self.anatomy, place, new[real[where]])
                changed = again(new)
            for part, change in zip(moved, changed, strict=True):
                part[where] = change.to(part.dtype)
        return moved

    def origins(self, block: int) -> list[int]:
        """For each row that runs through `block`, the row among the first ones that it descends from."""
        found = list(range(self._rows or 1))
        for number in range(1, block + 1):
            found += [found[source] for source in self.joins.get(number, ())]
        return found

    @property
    def acts(self) -> bool:
        """Whether any operation touches anything."""
        return bool(self._checks)

    @property
    def intercepts(self) -> bool:
        """Whether calls of attention must be seen: something acts, or somebody watches."""
        return self.acts or any(self.witnesses(layer) is not None for layer in range(self.anatomy.layers))

    @property
    def moves_positions(self) -> bool:
        return bool(self._positions)

    def place(self, module: nn.Module) -> Place | None:
        """The place of its model's positions that `module` is."""
        return next((place for place in self.anatomy.places if place.module is module), None)


def _follow(operations: list[Any], ids: torch.Tensor, real: torch.Tensor) -> torch.Tensor | None:
    """The position ids (row, token) after these operations; None where there are none any more."""
    new: torch.Tensor | None = ids
    for operation in operations:
        new = None if new is None else operation.positions(new, real)
    return new


def _explicit(arguments: dict[str, Any], origins: list[int] | None) -> torch.Tensor:
    whole: Any = sdpa_mask(
        **{**arguments, "allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
    )
    return whole if origins is None or whole.shape[0] == 1 else whole[origins]


def _generator(operation: Operation, layer: int, repeat: int) -> torch.Generator | None:
    if not operation.stochastic:
        return None
    state = np.random.SeedSequence([operation.values["seed"], layer, repeat]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state >> np.uint64(1)))


def repeats(plan: Plan) -> list[int]:
    """For each step how many before it draw from the same seed: two dropouts must not drop the same entries twice."""
    seen: dict[int | None, int] = {}
    found = []
    for operation in (step.operation for step in plan):
        seed = operation.values["seed"] if operation.stochastic and operation.stage != "positions" else None
        found.append(0 if seed is None else seen.get(seed, 0))
        seen[seed] = seen.get(seed, 0) + 1
    return found


def check(anatomy: Anatomy, step: Step) -> None:
    """Raises UnsupportedError if the step's operation cannot act on the model, or not on a part of it."""
    reason = anatomies.refusal(anatomy, step.operation) or anatomies.cross_refusal(anatomy, step)
    if reason is not None:
        raise UnsupportedError(*reason)
    step.operation.check_heads(anatomy.heads)
    title = type(step.operation).__name__
    if step.operation.stage == "positions" and not step.selection.everywhere and step.selection.boxes:
        cells = step.selection.cells(anatomy.layers, anatomy.heads)
        if len(cells) < anatomy.layers * anatomy.heads:
            raise UnsupportedError(
                f"{title} acts on the whole model, because positions enter before the first layer: "
                f"leave out the selection {step.selection}.",
                f"{title} 作用于整个模型，因为位置在第一层之前就已加入：请去掉选择 {step.selection}。",
            )


@contextmanager
def _opened(scope: "Scope | Probe") -> Iterator[None]:
    _open.set((*_open.get(), scope))
    try:
        yield
    finally:
        before = _open.get()
        _open.set(tuple(other for other in before if other is not scope))
    if not any(other is scope for other in before):
        raise ScopeError(
            "A surgery was closed where it is not open: do not hold it across a yield or pass it to another thread.",
            "手术在未打开的地方被关闭：不要跨 yield 持有它，也不要交给别的线程。",
        )
    if before[-1] is not scope:
        raise ScopeError(
            "Surgeries were closed out of order: close the one that was opened last first. All are closed as asked.",
            "手术的关闭顺序不对：请先关闭最后打开的。它们都已按要求关闭。",
        )


@contextmanager
def run(model: nn.Module, plans: Sequence[Plan], **options: Any) -> Iterator[Scope]:
    """Opens a `Scope` of several plans over `model`; the options are Scope's."""
    scope = Scope(admit(model), plans, **options)
    if scope.joins:
        _let_rows_join(scope.anatomy)
    with _opened(scope):
        yield scope


@contextmanager
def operate(model: Any, plan: Plan | Operation | Step) -> Iterator[nn.Module]:
    """Every call of `model` inside the `with` runs under `plan`: any loop of yours, gradients included.

    model: a transformers model, or what `models.load` returns. Scopes may nest; the inner plan comes after the outer
    one. Only the thread (or task) that opened it is affected. Random operations start from their seed when the scope
    opens and go on from call to call. Raises UnsupportedError or SelectionError before anything runs,
    OperationError from a call whose text does not fit, and ScopeError where an adapted model was not called at all.
    """
    model = model_of(model)
    with run(model, [after_outer(admit(model), plan)]) as scope:
        yield model
    if scope.anatomy.adapted and scope.acts and not scope.begun:
        name = scope.anatomy.name
        raise ScopeError(
            f"Nothing was operated on: {name} itself was not called inside, and a part of it called alone is not seen. "
            "Call the model, or admit that part and operate on it.",
            f"没有做任何手术：在其中没有调用 {name} 本身，单独调用它的一部分是看不到的。请调用整个模型，或登记那一部分并对它做手术。",
        )


def after_outer(anatomy: Anatomy, plan: Plan | Operation | Step | None) -> Plan:
    """`plan` after that of the scope which is open over the model, if there is one."""
    outer = _scopes(anatomy)
    return Plan(outer[-1].plans[0] if outer else Plan(), Plan() if plan is None else plan)


def model_of(thing: Any) -> nn.Module:
    """The transformers model in what a caller gave. Raises UnsupportedError if there is none."""
    model = thing if isinstance(thing, nn.Module) else getattr(thing, "model", None)
    if not isinstance(model, nn.Module):
        raise UnsupportedError(
            f"{type(thing).__name__} is not a model: give a transformers model or what models.load returns.",
            f"{type(thing).__name__} 不是模型：请给 transformers 的模型，或 models.load 的结果。",
        )
    return model


def support(model: Any) -> dict[str, str]:
    """For each operation "yes", or why it cannot act on `model` and what would work instead.

    Raises UnsupportedError for a model that surgery cannot reach at all.
    """
    return {name: why.say("en") if why else "yes" for name, why in refusals(model).items()}


def refusals(model: Any) -> dict[str, Any]:
    """For each operation None, or the reason (in both languages) why it cannot act on `model`."""
    anatomy = admit(model_of(model))
    return {name: anatomies.refusal(anatomy, operation()) for name, operation in REGISTRY.items()}


# --- what PyTorch calls, of models that ask nobody ------------------------------------------------------------


class _Blind:
    """A witness that looks away; for its sake the weights exist."""

    needs_scores = False

    def see(self, *stages: torch.Tensor | None) -> None: ...


_calls: ContextVar[tuple[adapter.Calls, ...]] = ContextVar("open function modes", default=())


def _before_call(model: nn.Module, args: tuple, kwargs: dict[str, Any]) -> None:
    scopes = _scopes(_admitted.get(model))
    if not scopes:
        return
    for scope in scopes:
        scope.begin(None, None, 0)

    def attend(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None,
        scale: float | None,
        dropout: float,
        causal: bool,
        one: bool,
        wanted: bool,
    ) -> tuple[torch.Tensor, torch.Tensor | None] | None:
        return scope.attention(model, query, key, value, mask, scale, dropout, causal, wanted=wanted)

    mode = adapter.Calls(attend)
    if scope.intercepts:
        mode.__enter__()
    _calls.set((*_calls.get(), mode))


def _after_call(model: nn.Module, args: tuple, output: Any) -> None:
    if not _scopes(_admitted.get(model)) or not _calls.get():
        return
    *outer, mode = _calls.get()
    _calls.set(tuple(outer))
    scope = _scopes(_admitted[model])[-1]
    if scope.intercepts:
        mode.__exit__(None, None, None)
        if output is not None:
            adapter.check_count(scope.anatomy, mode.count)


# --- what transformers calls --------------------------------------------------------------------------------


def _attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: Any,
    scaling: float | None = None,
    dropout: float = 0.0,
    *,
    stock: Callable[..., Any],
    **kwargs: Any,
) -> Any:
    scopes = _open.get()
    scope = next((scope for scope in reversed(scopes) if scope.knows(module)), None) if scopes else None
    bias = kwargs.get("position_bias")
    if isinstance(scope, Scope):
        shows = (
            stock is _eager
        )  # by itself: then only what is touched must; of any other, all layers show or none does
        asked = bool(kwargs.get("output_attentions"))
        done = scope.attention(
            module,
            query,
            key,
            value,
            attention_mask,
            scaling,
            dropout,
            kwargs.get("is_causal"),
            bias,
            wanted=asked or shows,
            always=asked and not shows,
        )
        if done is not None:
            return done
    result = stock(module, query, key, value, attention_mask, scaling=scaling, dropout=dropout, **kwargs)
    if isinstance(scope, Probe):
        scope.attention(module, query, key, value, attention_mask, scaling, bias, kwargs, result[0])
    return result


def _eager(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
    """The eager attention of the file that defines `module`."""
    return sys.modules[type(module).__module__].eager_attention_forward(module, *args, **kwargs)


def _mask(*args: Any, stock: Callable[..., Any], **kwargs: Any) -> Any:
    mask = stock(*args, **kwargs)
    for scope in _open.get():
        scope.remember(mask, kwargs)
    return mask


def _before_forward(model: Any, args: tuple, kwargs: dict[str, Any]) -> None:
    kind: Any = type(model)
    name = model.config._attn_implementation
    if name.startswith(_PREFIX) and name not in ALL_ATTENTION_FUNCTIONS:  # unpickled in another process
        _register(name.removeprefix(_PREFIX))
    if not _open.get():
        return
    given = {**dict(zip(_parameters(kind), args, strict=False)), **kwargs}
    ids = given.get("input_ids") if given.get("input_ids") is not None else given.get("inputs_embeds")
    rows, tokens = (None, None) if ids is None else ids.shape[:2]
    # A mask over samples of sound says nothing of the tokens that are made of them.
    masks = [given.get("attention_mask") if tokens else None]
    if "decoder_attention_mask" in _parameters(kind):
        masks.append(given.get("decoder_attention_mask"))
    masks = [m if isinstance(m, torch.Tensor) and m.dim() == 2 else None for m in masks]
    cache = given.get("past_key_values") or given.get("cache")
    cached = cache.get_seq_length() if cache else 0
    scopes = _scopes(_admitted.get(model))
    if any(scope.acts for scope in scopes):
        _refuse_static(cache)
        if torch.is_grad_enabled() and model.training:
            _refuse_checkpointing(model)
    for scope in scopes:
        scope.begin(rows, tokens, cached, *masks)


@functools.cache
def _parameters(kind: type[nn.Module]) -> tuple[str, ...]:
    """The names of the parameters of its forward, in order."""
    return tuple(inspect.signature(kind.forward).parameters)[1:]


def _refuse_static(cache: Any) -> None:
    """Such a cache hands attention keys of tokens that do not exist yet: where they stand cannot be told."""
    if getattr(cache, "is_compileable", False):
        raise UnsupportedError(
            "This cache has room for keys that do not exist yet (a static cache), and surgery must know where each key stands: "
            "use the default cache, or use_cache=False.",
            "这个缓存为尚不存在的键预留了位置（静态缓存），而手术必须知道每个键的位置：请使用默认缓存，或 use_cache=False。",
        )


def _refuse_checkpointing(model: nn.Module) -> None:
    """Checkpointing runs layers again during backward(): outside the scope, or with other random draws."""
    if any(getattr(module, "gradient_checkpointing", False) for module in model.modules()):
        name = type(model).__name__
        raise UnsupportedError(
            f"{name} recomputes its layers in backward() (gradient checkpointing), where no surgery is open: "
            "turn it off with model.gradient_checkpointing_disable().",
            f"{name} 在 backward() 中重新计算各层（梯度检查点），那时手术并未打开："
            "请用 model.gradient_checkpointing_disable() 关闭。",
        )


def _let_rows_join(anatomy: Anatomy) -> None:
    """Hooks the blocks, once; only here, so that a model that never sweeps pays nothing."""
    with _lock:
        for block in anatomy.blocks:
            if _before_block not in block._forward_pre_hooks.values():
                block.register_forward_pre_hook(_before_block, with_kwargs=True)


def _before_block(
    block: nn.Module, args: tuple, kwargs: dict[str, Any]
) -> tuple[tuple, dict[str, Any]] | None:
    """Lets rows join the batch: copies of rows that have done the same so far.

    What else a block is given by row, such as the rotation of its positions, comes anew for each block, for the first rows.
    """
    for scope in _open.get():
        if isinstance(scope, Scope) and scope.joins:
            number = next((k for k, own in enumerate(scope.anatomy.blocks) if own is block), None)
            if number is None or min(scope.joins) > number:
                continue
            hidden = args[0] if args else kwargs["hidden_states"]  # (row, token, width)
            hidden = torch.cat((hidden, hidden[scope.joins.get(number, [])]))
            rest = {name: x for name, x in kwargs.items() if name != "hidden_states"}
            more, rest = scope.by_row((args[1:], rest), scope.origins(number))
            return ((hidden, *more), rest) if args else ((), {**rest, "hidden_states": hidden})
    return None


def _after_positions(module: nn.Module, args: tuple, kwargs: dict[str, Any], encoded: Any) -> Any:
    for scope in reversed(_open.get()):
        if isinstance(scope, Scope) and (place := scope.place(module)) is not None:
            if not scope.moves_positions:
                return encoded
            return read_again(place, args, kwargs, encoded, functools.partial(scope.move, place))
    return encoded


def _scopes(anatomy: Anatomy | None) -> list[Scope]:
    """The open scopes of one model (with or without its head), outermost first."""
    if anatomy is None:
        return []
    return [s for s in _open.get() if isinstance(s, Scope) and s.knows(anatomy.attention[0])]
