"""The parts that encoder and decoder are built of: positions, attention, feed-forward, and how text enters.

Shapes, used all the way down:
    batch    rows that run together, padded to one length
    token    places in a row; `query` and `key` are places seen from the two sides of attention
    head     attention heads, `num_heads` of them; `kv head` where keys and values have fewer
    d_model  width of a token's vector
    d_head   width of one head, d_model / num_heads
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from .configuration import ModelError, TransformerConfig

# --- positions ----------------------------------------------------------------------------------------------


def angles(position_ids: Tensor, width: int) -> Tensor:
    """position / 10000^(2i / width) for i = 0, 1, ...: the clock hands that both fixed encodings read.

    The first hand turns once every 6 positions, the last once every 60,000.
    """
    # Float32 loses the fast hands at far positions; Apple's GPU has nothing wider.
    precision = torch.float32 if position_ids.device.type == "mps" else torch.float64
    i = torch.arange(math.ceil(width / 2), dtype=precision, device=position_ids.device)
    return position_ids.to(precision)[..., None] * 10000.0 ** (
        -2 * i / width
    )  # (batch or 1, token, ⌈width/2⌉)


class SinusoidalPositions(nn.Module):
    """PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos(p / 10000^(2i/d)). No weights, any position."""

    def __init__(self, d_model: int):
        super().__init__()
        self.d_model = d_model

    def forward(self, position_ids: Tensor) -> Tensor:
        angle = angles(position_ids, self.d_model)
        waves = torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)  # sin, cos, sin, cos, ...
        return waves[..., : self.d_model].float()  # (batch or 1, token, d_model); an odd width ends on a sine


class RotaryPositions(nn.Module):
    """cos and sin of the angle by which each channel pair of a query or key is turned."""

    def __init__(self, d_head: int):
        super().__init__()
        self.d_head = d_head

    def forward(self, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        angle = angles(position_ids, self.d_head).repeat_interleave(2, dim=-1)  # one angle for two channels
        return angle.cos().float(), angle.sin().float()  # 2 x (batch or 1, token, d_head)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each pair (a, b) of neighbouring channels to (a cos - b sin, b cos + a sin).

    Both sides of q·k turn, so a score depends on how far apart the tokens are and not on where they stand.
    """
    turned = torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)  # each (a, b) becomes (-b, a)
    cos, sin = cos[:, None].to(x.dtype), sin[:, None].to(x.dtype)  # (batch or 1, 1, token, d_head)
    return x * cos + turned * sin  # (batch, head, token, d_head)


# --- attention ----------------------------------------------------------------------------------------------


def eager_attention_forward(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **kwargs: Any,
) -> tuple[Tensor, Tensor]:
    """softmax(q·kᵀ × scaling + mask) · v, written out. Unlike a fused kernel it returns the weights too."""
    if scaling is None:
        scaling = query.shape[-1] ** -0.5
    if key.shape[1] < query.shape[1]:  # grouped queries: each key/value head serves a group of query heads
        group = query.shape[1] // key.shape[1]
        key, value = (x.repeat_interleave(group, dim=1) for x in (key, value))  # (batch, head, key, d_head)
    scores = query @ key.transpose(2, 3) * scaling  # (batch, head, query, key)
    if attention_mask is not None:
        scores = scores + attention_mask  # 0 where a query may look, a huge negative number where it may not
    weights = scores.softmax(dim=-1)  # (batch, head, query, key); each row sums to 1
    weights = F.dropout(weights, p=dropout, training=module.training)
    output = weights @ value  # (batch, head, query, d_head)
    return output.transpose(1, 2).contiguous(), weights  # (batch, query, head, d_head)


class MultiHeadAttention(nn.Module):
    """Each head compares tokens in its own d_head channels; `output` mixes what the heads brought back.

    Self-attention asks and answers in one text; cross-attention asks in one (`hidden`) and is answered by
    another (`source`).
    """

    def __init__(self, config: TransformerConfig, layer_idx: int, causal: bool | None = None):
        super().__init__()
        self.config = config
        self.layer_idx = layer_idx
        self.num_heads = config.num_heads
        self.num_kv_heads = config.kv_heads
        self.num_key_value_groups = config.num_heads // config.kv_heads  # what a fused kernel looks for
        self.head_dim = config.d_head
        self.scaling = self.head_dim**-0.5  # keeps the spread of q·k from growing with the head's width
        # The fused kernel is told this way when no mask is passed.
        self.is_causal = config.causal if causal is None else causal
        width = config.kv_heads * config.d_head
        self.query = nn.Linear(config.d_model, config.d_model)
        self.key = nn.Linear(config.d_model, width)
        self.value = nn.Linear(config.d_model, width)
        self.output = nn.Linear(config.d_model, config.d_model)

    def forward(
        self,
        hidden: Tensor,  # (batch, query, d_model)
        attention_mask: Tensor | None,  # (batch, 1, query, key)
        rotation: tuple[Tensor, Tensor] | None = None,
        source: Tensor | None = None,  # (batch, key, d_model); None: self-attention
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        source = hidden if source is None else source
        query = self._split(self.query(hidden))  # (batch, head, query, d_head)
        key = self._split(self.key(source))  # (batch, kv head, key, d_head)
        value = self._split(self.value(source))  # (batch, kv head, key, d_head)
        if rotation is not None:
            query, key = rotate(query, *rotation), rotate(key, *rotation)

        attend: Callable = ALL_ATTENTION_FUNCTIONS.get_interface(
            self.config._attn_implementation, eager_attention_forward
        )
        mixed, weights = attend(
            self,
            query,
            key,
            value,
            attention_mask,
            scaling=self.scaling,
            dropout=self.config.dropout if self.training else 0.0,
            **kwargs,
        )  # (batch, query, head, d_head) and (batch, head, query, key) or None
        return self.output(mixed.flatten(2)), weights  # (batch, query, d_model)

    def _split(self, x: Tensor) -> Tensor:
        """(batch, token, head * d_head) -> (batch, head, token, d_head)"""
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)


# --- feed-forward -------------------------------------------------------------------------------------------


class FeedForward(nn.Module):
    """Two linear maps with a bend between them, for each token on its own."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.expand = nn.Linear(config.d_model, config.d_ff)
        self.contract = nn.Linear(config.d_ff, config.d_model)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.contract(F.gelu(self.expand(hidden)))  # (batch, token, d_ff) in between


# --- how text enters ----------------------------------------------------------------------------------------


class Stack:
    """What an encoder and a decoder do alike: words and positions in, layers, a last normalisation."""

    config: Any  # the model's, which names its kind

    def _build(self, config: TransformerConfig, layers: list[nn.Module]) -> None:
        post = config.norm == "post"
        self.embedding_norm = nn.LayerNorm(config.d_model) if post else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(layers)
        # Pre-norm layers leave their sum unnormalised, so it is normalised once at the end.
        self.final_norm = nn.Identity() if post else nn.LayerNorm(config.d_model)

    def _embeddings(self, config: TransformerConfig) -> None:
        self.word_embeddings: nn.Module = nn.Embedding(
            config.vocab_size, config.d_model, padding_idx=config.pad_token_id
        )
        self.position_embeddings: nn.Module | None = None
        self.rotary: nn.Module | None = None
        if config.positions == "learned":
            self.position_embeddings = nn.Embedding(config.max_positions, config.d_model)
        elif config.positions == "sinusoidal":
            self.position_embeddings = SinusoidalPositions(config.d_model)
        elif config.positions == "rotary":
            self.rotary = RotaryPositions(config.d_head)

    def get_input_embeddings(self) -> nn.Module:
        return self.word_embeddings

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.word_embeddings = value

    def _enter(
        self, input_ids: Tensor | None, inputs_embeds: Tensor | None, position_ids: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor] | None]:
        """What the first layer sees, (batch, token, d_model), and the rotation of rotary positions."""
        if (input_ids is None) == (inputs_embeds is None):
            raise ModelError(
                "Give exactly one of input_ids and inputs_embeds.",
                "input_ids 与 inputs_embeds 必须且只能给出一个。",
            )
        given: Any = input_ids if inputs_embeds is None else inputs_embeds
        position_ids = self._positions(given, position_ids)
        words = self.word_embeddings(input_ids) if inputs_embeds is None else inputs_embeds
        rotation = None if self.rotary is None else self.rotary(position_ids)
        return self._embed(words, position_ids), rotation

    def _positions(self, given: Tensor, position_ids: Tensor | None) -> Tensor:
        """Position ids, refused before any computation if the learned table has no row for them."""
        needed = given.shape[1]
        if position_ids is None:
            position_ids = torch.arange(needed, device=given.device)[None]  # (1, token)
        elif self.config.positions == "learned":
            needed = int(position_ids.max()) + 1
        if self.config.positions == "learned" and needed > self.config.max_positions:
            raise ModelError(
                f"{needed} positions are needed and the learned table has {self.config.max_positions}: there "
                "is no vector for what was never trained. Shorten the text, or configure a larger "
                'max_positions or positions="sinusoidal".',
                f"需要 {needed} 个位置，而可学习的位置表只有 {self.config.max_positions} 个："
                "没有训练过的位置就没有向量。"
                '请缩短文本，或把 max_positions 设得更大，或使用 positions="sinusoidal"。',
            )
        return position_ids

    def _embed(self, words: Tensor, position_ids: Tensor) -> Tensor:
        if self.config.positions == "sinusoidal":
            words = words * math.sqrt(self.config.d_model)  # as in 2017: lifts the words to the waves' size
        if self.position_embeddings is not None:
            words = words + self.position_embeddings(position_ids).to(words.dtype)
        return self.dropout(self.embedding_norm(words))
