"""Surgery on modules that ask nobody for their attention: `torch.nn.MultiheadAttention`, `nn.TransformerEncoder`, and anything
that calls `F.scaled_dot_product_attention` (nanoGPT, timm).

    sg.admit(model, x)              # once, with an input, for nothing else tells how it is called
    with sg.operate(model, plan):   # then as with any model
        model(x)

While such a model runs under a plan that acts, a torch function mode, open in this thread and for this call alone, stands in
for the two functions. Layers are numbered by the order of the calls. Only what can be exact is done: a model that multiplies
its attention out by itself is refused, and so is what would need to know which tokens are padding.

Without a plan that acts nothing is intercepted. Under one, PyTorch does not take its fast path for `nn.TransformerEncoder`,
which fuses whole layers and rounds differently in the last bits.
"""

import inspect
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from surgery.anatomy import Anatomy, Family
from surgery.places import WHOLE, UnsupportedError
from surgery.probe import Call, Probe, counts, places

# query, key, value, mask, scale, dropout, whether causal, whether of one text, whether weights are wanted
#   -> the output (row, query, head, width) and the weights, or None for what the model would compute
Attend = Callable[..., tuple[Tensor, Tensor | None] | None]

_SDPA, _MHA = F.scaled_dot_product_attention, F.multi_head_attention_forward
_SDPA_NAMES = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
_MHA_NAMES = inspect.signature(_MHA)


class Calls(TorchFunctionMode):
    """While it is open, calls of attention are shown to `attend`, which may stand in for them."""

    def __init__(self, attend: Attend):
        super().__init__()
        self.attend, self.count = attend, 0

    def __torch_function__(
        self, function: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if function is _SDPA:
            self.count += 1
            done: Any = self._dot_products(**dict(zip(_SDPA_NAMES, args, strict=False)), **kwargs)
        elif function is _MHA:
            self.count += 1
            done = self._multi_head(_MHA_NAMES.bind(*args, **kwargs))
        else:
            return function(*args, **kwargs)
        return function(*args, **kwargs) if done is None else done

    def _dot_products(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor | None:
        if query.dim() != 4:
            raise UnsupportedError(
                "scaled_dot_product_attention was called with tensors that are not (row, head, token, width), so heads cannot "
                "be told: give it that shape.",
                "scaled_dot_product_attention 收到的张量不是（行, 头, 词元, 宽度），无法分辨注意力头：请使用这种形状。",
            )
        one = query.shape[2] == key.shape[2]
        if is_causal and not one:
            raise UnsupportedError(
                "is_causal with fewer queries than keys means another mask to PyTorch than to a cache: pass attn_mask.",
                "查询少于键时，is_causal 对 PyTorch 和对缓存意味着不同的掩码：请传入 attn_mask。",
            )
        done = self.attend(query, key, value, attn_mask, scale, dropout_p, is_causal, one, False)
        return None if done is None else done[0].transpose(1, 2)

    def _multi_head(self, bound: inspect.BoundArguments) -> tuple[Tensor, Tensor | None] | None:
        bound.apply_defaults()
        given = bound.arguments
        extra = ("bias_k", "bias_v", "static_k", "static_v")
        if given["add_zero_attn"] or any(given[name] is not None for name in extra):
            raise UnsupportedError(
                "nn.MultiheadAttention with add_bias_kv or add_zero_attn attends to keys that are no tokens, which no operation "
                "here is written for.",
                "使用 add_bias_kv 或 add_zero_attn 的 nn.MultiheadAttention 会注意不属于任何词元的键，这里没有相应的手术。",
            )
        batched = given["query"].dim() == 3  # (token, row, width); else (token, width)
        heads = given["num_heads"]
        query, key, value = (_heads(x, heads) for x in _projected(given))
        done = self.attend(
            query,
            key,
            value,
            _additive(given, query, key),
            None,
            given["dropout_p"] if given["training"] else 0.0,
            False,
            given["query"] is given["key"],
            given["need_weights"],
        )
        if done is None:
            return None
        mixed, weights = done  # (row, query, head, width), (row, head, query, key)
        output = F.linear(mixed.flatten(2), given["out_proj_weight"], given["out_proj_bias"]).transpose(0, 1)
        if not given["need_weights"]:
            weights = None
        elif weights is not None and given["average_attn_weights"]:
            weights = weights.mean(dim=1)
        if batched:
            return output, weights
        return output[:, 0], None if weights is None else weights[0]


def _projected(given: dict[str, Any]) -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v, (token, row, width) each."""
    inputs = [x if x.dim() == 3 else x[:, None] for x in (given["query"], given["key"], given["value"])]
    if given["use_separate_proj_weight"]:
        weights = [given[f"{name}_proj_weight"] for name in "qkv"]
    else:
        weights = given["in_proj_weight"].chunk(3)
    biases = (None,) * 3 if given["in_proj_bias"] is None else given["in_proj_bias"].chunk(3)
    q, k, v = (F.linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True))
    return q, k, v


def _heads(x: Tensor, heads: int) -> Tensor:
    """(token, row, head * width) -> (row, head, token, width)"""
    return x.unflatten(-1, (heads, -1)).permute(1, 2, 0, 3)


def _additive(given: dict[str, Any], query: Tensor, key: Tensor) -> Tensor | None:
    """Both masks of nn.MultiheadAttention as one to be added, (row or 1, head or 1, query, key). There True = may not."""
    rows, heads, n_query, _ = query.shape
    masks = []
    if given["attn_mask"] is not None:
        mask = given["attn_mask"]
        several = mask.dim() == 3 and mask.shape[0] > 1  # (row * head, query, key)
        masks.append(mask.unflatten(0, (rows, heads)) if several else mask.reshape(1, 1, *mask.shape[-2:]))
    if given["key_padding_mask"] is not None:
        masks.append(given["key_padding_mask"].reshape(rows, 1, 1, key.shape[2]))
    added = [
        torch.zeros_like(m, dtype=query.dtype).masked_fill(m, -torch.inf) if m.dtype == torch.bool else m
        for m in masks
    ]
    return sum(added[1:], added[0]).expand(-1, -1, n_query, -1) if added else None


# --- admitting ----------------------------------------------------------------------------------------------

_FAMILY = Family("a module that calls PyTorch's own attention")


def examine(model: nn.Module, args: tuple, kwargs: dict[str, Any], watch: Callable) -> Anatomy:
    """The anatomy of a model that was called with this. watch: opens a probe over the model.

    Raises UnsupportedError if it never calls PyTorch's attention, or if the calls differ in heads.
    """
    probe, name, crossed = Probe(), type(model).__name__, set()
    whole = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor) and x.dtype in WHOLE]
    if any(counts(x) for x in whole):
        raise UnsupportedError(
            "The words of this example are numbered 0, 1, 2, ..., as positions are: give one with other words, such as "
            "torch.tensor([[3, 1, 4, 1, 5]]).",
            "这个示例的词元编号是 0、1、2……，与位置无法区分：请换别的词元，例如 torch.tensor([[3, 1, 4, 1, 5]])。",
        )

    def attend(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        scale: float | None,
        dropout: float,
        causal: bool,
        one: bool,
        wanted: bool,
    ) -> None:
        if not one:
            crossed.add(len(probe.calls))
        probe.calls.append(probe.call(model, query, key, scale))

    with watch(probe), Calls(attend), torch.no_grad():
        model(*args, **kwargs)
    _check(name, probe.calls)
    first, layers = probe.calls[0], len(probe.calls)
    return Anatomy(
        name=name,
        family=_FAMILY,
        layers=layers,
        heads=first.heads,
        d_k=first.d_k,
        scale=first.scale,
        attention=(model,) * layers,
        before=tuple(call.before for call in probe.calls),
        places=tuple(p for p in places(model, probe, None, {}, []) if p.how == "ids"),
        padded=False,
        blocks=(),
        layers_of={id(model): tuple(range(layers))},
        kinds={"all": range(layers)},
        crossed=frozenset(crossed),
        adapted=True,
    )


def _check(name: str, calls: list[Call]) -> None:
    if not calls:
        raise UnsupportedError(
            f"{name} calls neither F.scaled_dot_product_attention nor nn.MultiheadAttention: it multiplies its attention out by "
            "itself, and nothing can be changed in it.",
            f"{name} 既不调用 F.scaled_dot_product_attention 也不使用 nn.MultiheadAttention：它自己计算注意力，因此无法对它做手术。",
        )
    if len({(call.heads, call.d_k, round(call.scale, 6)) for call in calls}) > 1:
        raise UnsupportedError(
            f"The calls of attention in {name} differ in heads, head width or scale; surgery needs them alike.",
            f"{name} 各次注意力调用的头数、头宽或缩放不同；手术要求它们一致。",
        )


def check_count(anatomy: Anatomy, count: int) -> None:
    """Raises UnsupportedError if attention was called another number of times than in the example."""
    if count != anatomy.layers:
        raise UnsupportedError(
            f"{anatomy.name} called attention {count} times, and {anatomy.layers} times on the example it was admitted with: "
            "layers cannot be told by the order of the calls.",
            f"{anatomy.name} 调用了 {count} 次注意力，而登记时的示例调用了 {anatomy.layers} 次：无法用调用顺序区分各层。",
        )
