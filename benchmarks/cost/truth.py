"""A BERT in float64 NumPy around `tests/reference.py`: what every contender's output is held against.

A contender is right where it is at most twice as far from float64 as the same equations in float32 are. A flat tolerance
would not do: with strong settings float32's own error grows by orders of magnitude.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tests import reference

ALLOWED = 2.0  # times float32's own error


class Encoder:
    """A transformers BertModel's weights, and its equations in any precision. cuts: layer -> what `reference.attention` takes."""

    def __init__(self, model: Any):
        self.config = model.config
        # of a model in bfloat16 the rounded weights: its rounding is no error of the run
        self.weights = {name: value.double().cpu().numpy() for name, value in model.state_dict().items()}

    def __call__(
        self,
        ids: Any,
        cuts: Mapping[int, dict] | None = None,
        positions: bool = True,
        dtype: Any = np.float64,
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """The last hidden state, (row, token, width), and each layer's weights, (row, head, query, key)."""
        own = {name: value.astype(dtype, copy=False) for name, value in self.weights.items()}

        def linear(x, name):
            return x @ own[f"{name}.weight"].T + own[f"{name}.bias"]

        def norm(x, name):
            centred = x - x.mean(-1, keepdims=True)
            variance = (centred**2).mean(-1, keepdims=True)
            scaled = centred / np.sqrt(variance + dtype(self.config.layer_norm_eps))
            return scaled * own[f"{name}.weight"] + own[f"{name}.bias"]

        ids = np.asarray(ids)
        rows, tokens = ids.shape
        heads = self.config.num_attention_heads
        tables = {
            kind: own[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")
        }
        x = tables["word"][ids] + tables["token_type"][0]
        if positions:
            x = x + tables["position"][:tokens]
        x = norm(x, "embeddings.LayerNorm")
        maps = []
        for layer in range(self.config.num_hidden_layers):
            name = f"encoder.layer.{layer}"
            q, k, v = (
                linear(x, f"{name}.attention.self.{part}").reshape(rows, tokens, heads, -1).swapaxes(1, 2)
                for part in ("query", "key", "value")
            )
            found = reference.attention(q, k, v, dtype=dtype, **(cuts or {}).get(layer, {}))
            maps.append(found.weights)
            mixed = found.output.swapaxes(1, 2).reshape(rows, tokens, -1)
            x = norm(
                linear(mixed, f"{name}.attention.output.dense") + x, f"{name}.attention.output.LayerNorm"
            )
            inner = gelu(linear(x, f"{name}.intermediate.dense"))
            x = norm(linear(inner, f"{name}.output.dense") + x, f"{name}.output.LayerNorm")
        return x, maps


def gelu(x: np.ndarray) -> np.ndarray:
    """x · Φ(x); NumPy has no error function."""
    half = torch.erf(torch.from_numpy(x) / 2**0.5).numpy()
    return (x * (1 + half) / 2).astype(x.dtype)


def distance(found: Any, right: np.ndarray) -> float:
    """Relative, in the L2 norm."""
    if isinstance(found, torch.Tensor):
        found = found.double().cpu().numpy()
    return float(np.linalg.norm(np.asarray(found, np.float64) - right) / np.linalg.norm(right))


@dataclass(frozen=True)
class Verdict:
    """How far from float64, in units of float32's own distance (or of another precision's)."""

    times: float
    distance: float

    @property
    def right(self) -> bool:
        return self.times <= ALLOWED

    def __str__(self) -> str:
        return f"{self.times:.1f}" if self.right else f"WRONG ({self.distance:.0e})"


class Judge:
    """Holds runs of one model on one batch against float64."""

    def __init__(self, model: Any, ids: Any, precision: float = 1.0, end: Callable = lambda hidden: hidden):
        """precision: how far the dtype that is judged rounds, in units of float32. end: from hidden states to what is judged."""
        self.encoder, self.ids, self.precision, self.end = Encoder(model), ids, precision, end
        self.noise: float | None = (
            None  # of another dtype than float32: how far the stock model is from float64
        )

    def __call__(self, found: Any, maps: Any = None, **changes: Any) -> Verdict:
        """found: last hidden state. maps: weights by layer, or None. changes: `cuts` and `positions` of `Encoder`."""
        (right, right_maps), (single, single_maps) = self.both(**changes) if changes else self.plain
        verdicts = [self._verdict(found, self.end(right), self.end(single))]
        if maps is not None:
            verdicts += [self._verdict(*three) for three in zip(maps, right_maps, single_maps, strict=True)]
        return max(verdicts, key=lambda verdict: verdict.times)

    def both(self, **changes: Any) -> list[tuple[np.ndarray, list[np.ndarray]]]:
        """In float64 and in float32."""
        return [self.encoder(self.ids, **changes, dtype=dtype) for dtype in (np.float64, np.float32)]

    @functools.cached_property
    def plain(self) -> list[tuple[np.ndarray, list[np.ndarray]]]:
        return self.both()

    def _verdict(self, found: Any, right: np.ndarray, single: np.ndarray) -> Verdict:
        off = distance(found, right)
        return Verdict(off / (distance(single, right) * self.precision), off)
