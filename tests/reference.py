"""Attention in float64 NumPy, every operation written from its equation. Shares no code with `surgery`.

Attention(Q, K, V) = softmax(Q Kᵀ · scaling / temperature) V       (Vaswani et al. 2017, equation 1)

Shapes: q (row, head, query, d_k); k (row, head, key, d_k); v (row, head, key, d_v); scores, weights and allowed
(row, head, query, key), allowed broadcastable and True where a query may attend. `dtype` is the precision in which
everything is computed: what float32 does to the same equations is float32's own error.
"""

from dataclasses import dataclass

import numpy as np

POSITIONS = {
    "same_position": lambda n: [0 for _ in range(n)],
    "reverse_positions": lambda n: [n - 1 - i for i in range(n)],
}


@dataclass
class Reference:
    scores: np.ndarray
    weights: np.ndarray
    output: np.ndarray


def attention(
    q,
    k,
    v,
    *,
    scaling=None,
    bias=0.0,
    temperature=1.0,
    allowed=None,
    score_factor=1.0,
    weight_factor=1.0,
    output_factor=1.0,
    uniform=False,
    features=None,
    dtype=np.float64,
) -> Reference:
    """Attention with a factor at each place where something can be multiplied, and a mask. bias: the model's, on its scores. features: a positive function whose product stands where exp(q·k) would."""
    q, k, v = (np.asarray(x, dtype=dtype) for x in (q, k, v))
    d_k = q.shape[-1]
    scaling = dtype(1 / np.sqrt(d_k) if scaling is None else scaling)
    products = q @ np.swapaxes(k, -1, -2) * scaling
    if features is not None:
        products = np.log(features(q) @ np.swapaxes(features(k), -1, -2))
    scores = (products + np.asarray(bias, dtype)) / dtype(temperature)
    scores = scores * np.asarray(score_factor, dtype)
    allowed = np.broadcast_to(True if allowed is None else allowed, scores.shape)
    weights = equal_shares(allowed, dtype) if uniform else softmax(scores, allowed)
    weights = weights * np.asarray(weight_factor, dtype)
    output = weights @ v * np.asarray(output_factor, dtype)
    return Reference(scores, weights, output)


def elu_plus_one(x: np.ndarray) -> np.ndarray:
    """φ of Katharopoulos et al. 2020, equation 7: x + 1 above 0, e^x below."""
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def grouped_means(x: np.ndarray, groups: int) -> np.ndarray:
    """(row, head, token, width) where each head has the mean of its group of neighbouring heads."""
    means = np.empty_like(x)
    size = x.shape[1] // groups
    for head in range(x.shape[1]):
        first = head // size * size
        means[:, head] = sum(x[:, first + i] for i in range(size)) / size
    return means


def softmax(scores: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Row by row, over the permitted keys alone; nothing permitted, nothing given."""
    weights = np.zeros_like(scores)
    for index in np.ndindex(scores.shape[:-1]):
        keys = np.flatnonzero(allowed[index])
        if len(keys):
            powers = np.exp(scores[index][keys] - scores[index][keys].max())
            weights[index][keys] = powers / powers.sum()
    return weights


def equal_shares(allowed: np.ndarray, dtype=np.float64) -> np.ndarray:
    """1/m on each of m permitted keys."""
    weights = np.zeros(allowed.shape, dtype)
    for index in np.ndindex(allowed.shape[:-1]):
        m = allowed[index].sum()
        if m:
            weights[index][allowed[index]] = 1 / m
    return weights


def sharpened(weights: np.ndarray, temperature: float) -> np.ndarray:
    """Oracle O: w^(1/T), renormalised, is what temperature T makes of a row of weights w."""
    powers = np.power(np.asarray(weights, np.float64), 1 / temperature)
    return powers / powers.sum(-1, keepdims=True)


# --- masks, pair by pair ------------------------------------------------------------------------------------


def mask(n: int, permits) -> np.ndarray:
    """(query, key), from a question about each pair: may query i attend to key j?"""
    return np.array([[bool(permits(i, j)) for j in range(n)] for i in range(n)])


def causal(n: int) -> np.ndarray:
    return mask(n, lambda i, j: j <= i)


def local(n: int, half_width: int) -> np.ndarray:
    return mask(n, lambda i, j: -half_width <= i - j <= half_width)


def without_self(n: int) -> np.ndarray:
    return mask(n, lambda i, j: i != j)


def self_alone(n: int) -> np.ndarray:
    return mask(n, lambda i, j: i == j)


def mask_keys(n: int, positions) -> np.ndarray:
    """(1, key): False at these positions, whatever the number of queries."""
    return np.array([[j not in positions for j in range(n)]])


def without(n: int, positions) -> np.ndarray:
    return mask(n, lambda i, j: j not in positions)


def picture(*rows: str) -> np.ndarray:
    """What "#" permits and "." forbids."""
    return np.array([[{"#": True, ".": False}[cell] for cell in row] for row in rows])
