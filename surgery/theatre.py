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
from surgery import anatomy as anatomies
from surgery.anatomy import Anatomy, Call, UnsupportedError
from surgery.attention import Witness, attend
from surgery.cut import Cut, Touch
from surgery.operation import REGISTRY, Operation, Step
from surgery.plan import Plan

_open: ContextVar[tuple["Scope | _Probe", ...]] = ContextVar("open surgery scopes", default=())
_admitted: weakref.WeakKeyDictionary[nn.Module, Anatomy] = weakref.WeakKeyDictionary()
_lock = threading.RLock()
_PREFIX = "surgery_"


class ScopeError(SurgeryError):
    """A scope that was closed where it is not open, or out of order."""


# --- admitting a model --------------------------------------------------------------------------------------


def admit(model: nn.Module) -> Anatomy:
    """Readies `model` (once) and returns its anatomy. Without a plan it computes exactly what it did before.

    Raises UnsupportedError for a model that surgery cannot reach; the model is then left as it was.
    """
    with _lock:
        if model not in _admitted:
            _admitted[model] = _admit(model)
        return _admitted[model]


def _admit(model: nn.Module) -> Anatomy:
    anatomies.family_of(model)
    original = model.config._attn_implementation or "eager"
    ours = _register(original.removeprefix(_PREFIX))  # a copy of the model may bring our name from elsewhere
    model.set_attn_implementation(ours)
    try:
        anatomy = anatomies.examine(model, _probe(model))
    except BaseException:
        model.set_attn_implementation(original)
        raise
    base = getattr(model, "base_model", model)
    _admitted.setdefault(base, anatomy)
    for module in {model, base}:
        if _before_forward not in module._forward_pre_hooks.values():  # a copy brings its hooks along
            module.register_forward_pre_hook(_before_forward, with_kwargs=True)
    for module in anatomy.position_modules:
        if _after_positions not in module._forward_hooks.values():
            module.register_forward_hook(_after_positions, with_kwargs=True)
    return anatomy


def _register(original: str) -> str:
    """Our name over the attention and mask functions called `original`."""
    name = _PREFIX + original
    attention = _eager if original == "eager" else ALL_ATTENTION_FUNCTIONS[original]
    AttentionInterface.register(name, functools.partial(_attention, stock=attention))
    AttentionMaskInterface.register(
        name, functools.partial(_mask, stock=ALL_MASK_ATTENTION_FUNCTIONS[original])
    )
    return name


class _Probe:
    """Watches one forward pass and notes the calls of attention in their order."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def knows(self, module: nn.Module) -> bool:
        """It looks at every module."""
        return True

    def attention(self, module, query, key, value, mask, scaling: float | None, *_: Any) -> None:
        d_k = query.shape[-1]
        self.calls.append(Call(module, query.shape[1], d_k, d_k**-0.5 if scaling is None else float(scaling)))

    def remember(self, mask: Any, arguments: dict[str, Any]) -> None:
        """Masks tell nothing about anatomy."""


def _probe(model: nn.Module) -> list[Call]:
    devices = (parameter.device for parameter in model.parameters())
    device = next(
        (d for d in devices if d.type != "meta"), "cpu"
    )  # "meta": kept elsewhere by accelerate, which moves inputs
    padding = getattr(model.config, "pad_token_id", None)
    ids = torch.full((1, 2), 1 if padding == 0 else 0, device=device)
    probe = _Probe()
    with in_eval(model), _opened(probe), torch.no_grad():
        model(input_ids=ids, attention_mask=torch.ones_like(ids))
    return probe.calls


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
        self._masks: dict[int, tuple[torch.Tensor, dict[str, Any]]] = {}
        self._calls: dict[int, int] = {}
        self._rows: int | None = None
        self._padding: tuple[torch.Tensor | None, ...] = ()
        for plan, where, first in zip(plans, rows, since or [0] * len(self.plans), strict=True):
            self._resolve(plan, where, name or anatomy.name, first)

    def _resolve(self, plan: Plan, rows: torch.Tensor | None, name: str, since: int) -> None:
        seen: dict[tuple[str, int], int] = {}
        moves: list[Operation] = []
        for step in plan:
            operation = step.operation
            cells = step.selection.cells(self.anatomy.layers, self.anatomy.heads, name)
            check(self.anatomy, step)
            kind = (operation.name, getattr(operation, "seed", 0))
            seen[kind] = seen.get(kind, -1) + 1  # the same dropout twice must not drop the same entries twice
            if operation.neutral or not cells:
                continue
            self._checks.append(operation)
            if operation.stage == "positions":
                moves += [operation] if since == 0 else []
                continue
            for layer in sorted({layer for layer, _ in cells if layer >= since}):
                heads = sorted(head for at, head in cells if at == layer)
                generator = _generator(operation, layer, seen[kind])
                whole = len(heads) == self.anatomy.heads
                self._cuts[layer].add(Touch(operation, rows, None if whole else heads, generator))
        if moves:
            self._positions.append((rows, moves))

    def begin(self, rows: int | None, tokens: int | None, cached: int, *masks: torch.Tensor | None) -> None:
        """A forward pass starts, of so many rows and tokens after `cached` ones.

        masks: (row, token), 0 on padding; a second one is that of an encoder-decoder's decoder.
        """
        if tokens is not None:
            for operation in self._checks:
                operation.check(cached + tokens)
        if cached:
            self._refuse_cached()
        self._calls.clear()
        self._masks.clear()
        self._rows, self._padding = rows, masks

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

    def remember(self, mask: Any, arguments: dict[str, Any]) -> None:
        """Keeps how a mask was made, to tell its padding from the rest."""
        if isinstance(mask, torch.Tensor):
            self._masks[id(mask)] = (mask, arguments)

    def attention(
        self,
        module: nn.Module,
        query,
        key,
        value,
        mask,
        scaling: float | None,
        dropout: float,
        causal: bool | None,
    ) -> tuple[torch.Tensor, torch.Tensor | None] | None:
        """The layer under its plan, or None where neither an operation nor a witness wants it."""
        layer = self._layer(module)
        cut, witness = self._cuts[layer], self.witnesses(layer)
        if not cut.touches and witness is None:
            return None
        causal = getattr(module, "is_causal", True) if causal is None else causal
        allowed, padding, bias = self._split(mask, cut)
        return attend(
            query,
            key,
            value,
            cut,
            scale=query.shape[-1] ** -0.5 if scaling is None else scaling,
            allowed=allowed,
            padding=padding,
            bias=bias,
            causal=causal and mask is None,
            dropout=dropout,
            witness=witness,
        )

    def _layer(self, module: nn.Module) -> int:
        layers = self.anatomy.layers_of[id(module)]
        call = self._calls.get(id(module), 0)
        self._calls[id(module)] = call + 1
        return layers[call % len(layers)]

    def _split(self, mask: torch.Tensor | None, cut: Cut) -> tuple[torch.Tensor | None, ...]:
        """A mask as (allowed, forbidden by padding alone, bias): bool, bool, and what is left to add."""
        if mask is None:
            return None, None, None
        if id(mask) in self._masks:
            mask, arguments = self._masks[id(mask)]
            allowed = mask if mask.dtype == torch.bool else _explicit(arguments)
            padded = cut.lifts_padding and arguments.get("attention_mask") is not None
            return (
                allowed,
                _explicit({**arguments, "attention_mask": None}) & ~allowed if padded else None,
                None,
            )
        if cut.lifts_padding:
            raise UnsupportedError(
                "IgnorePaddingMask cannot tell padding from the rest in a mask of your own: pass attention_mask as (row, token).",
                "IgnorePaddingMask 无法在自定义的掩码中分辨填充：请用 (行, 词元) 形状的 attention_mask。",
            )
        if mask.dtype == torch.bool:
            return mask, None, None
        allowed = mask > torch.finfo(mask.dtype).min / 2
        bias = mask.masked_fill(~allowed, 0)
        return allowed, None, bias if bool(bias.any()) else None

    def move(self, module: nn.Module, ids: torch.Tensor, encoded: tuple[torch.Tensor, ...]) -> Any:
        """The position module's result, each (row or 1, token, width), with some rows' positions changed."""
        rows = self._rows or ids.shape[0]
        ids = ids.expand(rows, -1)  # (row, token)
        side = next(i for i, own in enumerate(self.anatomy.position_modules) if own is module)
        mask = self._padding[side] if side < len(self._padding) else None
        real = torch.ones_like(ids) if mask is None else mask[:, -ids.shape[1] :]
        real = real.bool()
        moved = [part.expand(rows, -1, -1).clone() for part in encoded]
        for where, operations in self._positions:
            where = torch.arange(rows, device=ids.device) if where is None else where.to(ids.device)
            new: torch.Tensor | None = ids[where]
            for operation in operations:
                new = None if new is None else operation.positions(new, real[where])
            if new is not None:
                anatomies.check_positions(self.anatomy, new[real[where]])
            for part, change in zip(moved, _encode(module, new, encoded), strict=True):
                part[where] = change.to(part.dtype)
        return moved

    @property
    def acts(self) -> bool:
        """Whether any operation touches anything."""
        return bool(self._checks)

    @property
    def moves_positions(self) -> bool:
        return bool(self._positions)


def _encode(
    module: nn.Module, ids: torch.Tensor | None, encoded: tuple[torch.Tensor, ...]
) -> tuple[torch.Tensor, ...]:
    """What `module` gives for `ids`; for None what changes nothing: add 0, or turn by cos = 1, sin = 0."""
    if ids is None:
        neutral = (0.0,) if len(encoded) == 1 else (1.0, 0.0)
        return tuple(part.new_tensor(value) for part, value in zip(encoded, neutral, strict=True))
    fresh = module.forward(ids)  # not module(ids): its hooks, ours among them, have run
    return fresh if isinstance(fresh, tuple) else (fresh,)


def _explicit(arguments: dict[str, Any]) -> torch.Tensor:
    return sdpa_mask(**{**arguments, "allow_is_causal_skip": False, "allow_is_bidirectional_skip": False})


def _generator(operation: Operation, layer: int, repeat: int) -> torch.Generator | None:
    if not operation.stochastic:
        return None
    state = np.random.SeedSequence([operation.seed, layer, repeat]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state >> np.uint64(1)))


def check(anatomy: Anatomy, step: Step) -> None:
    """Raises UnsupportedError if the step's operation cannot act on the model, or not on a part of it."""
    reason = anatomies.refusal(anatomy, step.operation) or anatomies.cross_refusal(anatomy, step)
    if reason is not None:
        raise UnsupportedError(*reason)
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
def _opened(scope: "Scope | _Probe") -> Iterator[None]:
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
    opens and go on from call to call. Raises UnsupportedError or SelectionError before anything runs, and
    OperationError from a call whose text does not fit.
    """
    model = model_of(model)
    anatomy = admit(model)
    outer = _scopes(anatomy)
    with run(model, [Plan(outer[-1].plans[0] if outer else Plan(), plan)]):
        yield model


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


# --- what transformers calls --------------------------------------------------------------------------------


def _attention(module, query, key, value, attention_mask, scaling=None, dropout=0.0, *, stock, **kwargs):
    scopes = _open.get()
    scope = next((scope for scope in reversed(scopes) if scope.knows(module)), None) if scopes else None
    if scope is not None:
        done = scope.attention(
            module, query, key, value, attention_mask, scaling, dropout, kwargs.get("is_causal")
        )
        if done is not None:
            return done
    return stock(module, query, key, value, attention_mask, scaling=scaling, dropout=dropout, **kwargs)


def _eager(module, *args, **kwargs):
    """The eager attention of the file that defines `module`."""
    return sys.modules[type(module).__module__].eager_attention_forward(module, *args, **kwargs)


def _mask(*args, stock, **kwargs):
    mask = stock(*args, **kwargs)
    for scope in _open.get():
        scope.remember(mask, kwargs)
    return mask


def _before_forward(model: nn.Module, args: tuple, kwargs: dict[str, Any]) -> None:
    name = model.config._attn_implementation
    if name.startswith(_PREFIX) and name not in ALL_ATTENTION_FUNCTIONS:  # unpickled in another process
        _register(name.removeprefix(_PREFIX))
    if not _open.get():
        return
    given = {**dict(zip(_parameters(type(model)), args, strict=False)), **kwargs}
    ids = given.get("input_ids") if given.get("input_ids") is not None else given.get("inputs_embeds")
    rows, tokens = (None, None) if ids is None else ids.shape[:2]
    masks = [given.get("attention_mask"), given.get("decoder_attention_mask")]
    masks = [m if isinstance(m, torch.Tensor) and m.dim() == 2 else None for m in masks]
    cache = given.get("past_key_values") or given.get("cache")
    cached = cache.get_seq_length() if cache else 0
    scopes = _scopes(_admitted.get(model))
    if any(scope.acts for scope in scopes) and torch.is_grad_enabled() and model.training:
        _refuse_checkpointing(model)
    for scope in scopes:
        scope.begin(rows, tokens, cached, *masks)


@functools.cache
def _parameters(kind: type[nn.Module]) -> tuple[str, ...]:
    """The names of the parameters of its forward, in order."""
    return tuple(inspect.signature(kind.forward).parameters)[1:]


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
    """Lets rows join the batch: copies of rows that have done the same so far."""
    for scope in _open.get():
        if isinstance(scope, Scope) and scope.joins:
            number = next((k for k, own in enumerate(scope.anatomy.blocks) if own is block), None)
            sources = scope.joins.get(number, ())
            if sources:
                hidden = args[0] if args else kwargs["hidden_states"]  # (row, token, width)
                hidden = torch.cat((hidden, hidden[sources]))
                return ((hidden, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": hidden})
    return None


def _after_positions(module: nn.Module, args: tuple, kwargs: dict[str, Any], encoded: Any) -> Any:
    own = [
        s
        for s in _open.get()
        if isinstance(s, Scope) and any(m is module for m in s.anatomy.position_modules)
    ]
    if not own or not own[-1].moves_positions:
        return encoded
    parts = encoded if isinstance(encoded, tuple) else (encoded,)
    moved = own[-1].move(module, args[0] if args else next(iter(kwargs.values())), parts)
    return tuple(moved) if isinstance(encoded, tuple) else moved[0]


def _scopes(anatomy: Anatomy | None) -> list[Scope]:
    """The open scopes of one model (with or without its head), outermost first."""
    if anatomy is None:
        return []
    return [s for s in _open.get() if isinstance(s, Scope) and s.knows(anatomy.attention[0])]
