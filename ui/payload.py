"""Attention weights as the browser receives them: 16-bit numbers in base64, every head at once."""

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence

import numpy as np

KINDS = ("word", "special", "padding")
NOT_A_NUMBER = 65535  # the highest code is kept for NaN and infinity
HIGHEST = 65534  # the code of the value `scale`


def attention_payload(
    baseline: np.ndarray,
    operated: np.ndarray,
    tokens: Sequence[str],
    kinds: Sequence[str],
    divergence: np.ndarray,
    no_key_baseline: np.ndarray | None = None,
    no_key_operated: np.ndarray | None = None,
    *,
    layers: int | None = None,
    captured: Sequence[int] | None = None,
    notes: Sequence[Mapping[str, str]] = (),
    stamp: str | None = None,
) -> dict:
    """What `AttentionView` shows, as JSON-able data.

    baseline, operated  weights (layer, head, query, key), 0 or more; NaN and infinity show as "not a number"
    tokens, kinds       one per token; a kind is "word", "special" or "padding"
    divergence          (layer, head): how much each head changed
    no_key_*            (layer, head, query) bool: True where a query had no permitted key
    layers, captured    of how many layers the model has, which ones the arrays hold; default: all of them
    notes               remarks to show under the maps, each {"en": ..., "zh": ...}
    stamp               names this result; the component repeats it once drawn; default: a hash of the content

    Both sides share one step, scale / 65534, where scale is 1, or the largest weight if dropout raised some
    above 1. So equal weights stay equal, and a value is off by at most half a step (8e-6 at scale 1).
    """
    baseline, operated = _weights(baseline, "baseline"), _weights(operated, "operated")
    if baseline.shape != operated.shape:
        raise ValueError(
            f"baseline is {baseline.shape} but operated is {operated.shape}: they must be equal."
        )
    kept, heads, size = baseline.shape[:3]
    captured = list(range(kept)) if captured is None else [int(layer) for layer in captured]
    layers = max(captured, default=-1) + 1 if layers is None else layers
    _check_layers(captured, kept, layers)
    _check_tokens(tokens, kinds, size)
    scale = max(1.0, _largest(baseline), _largest(operated))
    content = {
        "layers": layers,
        "heads": heads,
        "captured": captured,
        "tokens": [str(token) for token in tokens],
        "kinds": list(kinds),
        "scale": scale,
        "baseline": _encode(baseline, scale),
        "operated": _encode(operated, scale),
        "no_key_baseline": _encode_bits(no_key_baseline, (kept, heads, size), "no_key_baseline"),
        "no_key_operated": _encode_bits(no_key_operated, (kept, heads, size), "no_key_operated"),
        "divergence": _numbers(divergence, (kept, heads), "divergence"),
        "largest": _largest_differences(baseline, operated),
        "notes": [{"en": note["en"], "zh": note["zh"]} for note in notes],
    }
    return {"stamp": _hash(content) if stamp is None else stamp, **content}


def _weights(array: np.ndarray, name: str) -> np.ndarray:
    array = np.asarray(array, dtype=np.float32)
    if array.ndim != 4 or array.shape[2] != array.shape[3]:
        raise ValueError(
            f"{name} has shape {array.shape}: it must be (layer, head, query, key), query = key."
        )
    if (array < -1e-6).any():
        raise ValueError(f"{name} holds {np.nanmin(array):.4g}: attention weights are 0 or more.")
    return array


def _check_layers(captured: list[int], kept: int, layers: int) -> None:
    if len(captured) != kept or sorted(set(captured)) != captured:
        raise ValueError(f"captured is {captured}: it must name the {kept} layers held, each once, in order.")
    if captured and not 0 <= captured[0] <= captured[-1] < layers:
        raise ValueError(f"captured is {captured}: the model has layers 0-{layers - 1}.")


def _check_tokens(tokens: Sequence[str], kinds: Sequence[str], size: int) -> None:
    if len(tokens) != size or len(kinds) != size:
        raise ValueError(f"{len(tokens)} tokens and {len(kinds)} kinds for weights over {size} tokens.")
    unknown = sorted(set(kinds) - set(KINDS))
    if unknown:
        raise ValueError(f"Kind {unknown[0]!r} is not known: kinds are {', '.join(KINDS)}.")


def _largest(array: np.ndarray) -> float:
    return float(np.max(array, initial=0.0, where=np.isfinite(array)))


def _encode(weights: np.ndarray, scale: float) -> str:
    finite = np.isfinite(weights)
    codes = np.rint(np.where(finite, weights, 0.0).clip(0) * (HIGHEST / scale))
    return _base64(np.where(finite, codes, NOT_A_NUMBER).astype("<u2"))


def _encode_bits(flags: np.ndarray | None, shape: tuple[int, ...], name: str) -> str:
    flags = np.zeros(shape, bool) if flags is None else np.asarray(flags, bool)
    if flags.shape != shape:
        raise ValueError(f"{name} has shape {flags.shape}: it must be {shape}.")
    return _base64(np.packbits(flags.ravel(), bitorder="little"))


def _base64(array: np.ndarray) -> str:
    return base64.b64encode(array.tobytes()).decode("ascii")


def _numbers(array: np.ndarray, shape: tuple[int, ...], name: str) -> list[list[float | None]]:
    array = np.asarray(array, dtype=float)
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}: it must be {shape}.")
    return [[float(f"{x:.6g}") if math.isfinite(x) else None for x in row] for row in array]


def _largest_differences(baseline: np.ndarray, operated: np.ndarray) -> list[list[float | None]]:
    """Per (layer, head) the largest |operated - baseline|; None where only one side is a number."""
    known_baseline, known_operated = np.isfinite(baseline), np.isfinite(operated)
    both = known_baseline & known_operated
    change = np.abs(np.where(both, operated, 0.0) - np.where(both, baseline, 0.0)).max(
        axis=(2, 3), initial=0.0
    )
    change = np.where((known_baseline != known_operated).any(axis=(2, 3)), np.nan, change)
    return _numbers(change, baseline.shape[:2], "largest")


def _hash(content: dict) -> str:
    return hashlib.blake2s(repr(content).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
