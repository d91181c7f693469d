"""A transformer encoder written to be read from top to bottom, and to be operated on.

It is the encoder of "Attention Is All You Need" (Vaswani et al. 2017) with the choices that tutorials argue
about left open: where positions come from, where the normalisation sits, whether a token may look ahead.
It is also an ordinary `PreTrainedModel`: `save_pretrained` and `from_pretrained` work, and each layer asks
transformers by name for its attention function, so what is registered there serves this model and BERT alike.

Shapes, used all the way down:
    batch    rows that run together, padded to one length
    token    places in a row; `query` and `key` are the same places, seen from the two sides of attention
    head     attention heads, `num_heads` of them
    d_model  width of a token's vector
    d_head   width of one head, d_model / num_heads
"""

import dataclasses
import difflib
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, PreTrainedConfig, PreTrainedModel
from transformers.masking_utils import create_bidirectional_mask, create_causal_mask
from transformers.modeling_outputs import BaseModelOutput, MaskedLMOutput
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.utils.generic import can_return_tuple
from transformers.utils.output_capturing import capture_outputs

from bilingual import SurgeryError

POSITIONS = ("none", "sinusoidal", "learned", "rotary")
NORMS = ("pre", "post")


class EncoderError(SurgeryError, ValueError):
    """A configuration that cannot be built, or an input that the configuration has no room for."""


# --- configuration ------------------------------------------------------------------------------------------


class EncoderConfig(PreTrainedConfig):
    """Everything that has to be decided before the first weight is drawn.

    positions      "none": a bag of words; "sinusoidal": fixed waves added to the words (Vaswani et al. 2017,
                   section 3.5); "learned": a trained table added to the words (BERT); "rotary": queries and
                   keys turned by an angle that grows with the position (Su et al. 2021)
    norm           "post": normalise after each residual addition (2017, BERT); "pre": before each sublayer
                   (GPT-2)
    causal         True: a token sees itself and what comes before it
    max_positions  rows of the learned table; the other encodings have no such limit
    dropout        probability of zeroing, in training, embeddings, attention weights and sublayer outputs
    """

    model_type = "surgery_encoder"
    # transformers' names on the left, the textbook's on the right: both work.
    attribute_map = {  # noqa: RUF012
        "hidden_size": "d_model",
        "num_attention_heads": "num_heads",
        "num_hidden_layers": "num_layers",
        "intermediate_size": "d_ff",
        "max_position_embeddings": "max_positions",
    }

    vocab_size: int = 100
    d_model: int = 64
    num_heads: int = 4
    num_layers: int = 2
    d_ff: int = 128
    max_positions: int = 64
    positions: str = "learned"
    norm: str = "post"
    causal: bool = False
    dropout: float = 0.0
    pad_token_id: int | None = 0
    initializer_range: float | None = None  # None: 1 / sqrt(d_model)
    tie_word_embeddings: bool = True

    def __post_init__(self, **kwargs):
        self._check_names(kwargs)
        super().__post_init__(**kwargs)
        self._check_choices()
        self._check_sizes()
        self._check_heads()
        if self.initializer_range is None:
            self.initializer_range = self.d_model**-0.5

    @property
    def d_head(self) -> int:
        """Width of one head."""
        return self.d_model // self.num_heads

    def _check_names(self, others: dict):
        """Transformers keeps whatever it does not know: a misspelt field would silently do nothing."""
        own = [field.name for field in dataclasses.fields(self) if field.name in type(self).__annotations__]
        for name in others:
            known = name in self.attribute_map or hasattr(PreTrainedConfig, name)
            if not known and (near := difflib.get_close_matches(name, own, n=1, cutoff=0.7)):
                raise EncoderError(
                    f"{name} is not a field of EncoderConfig: did you mean {near[0]}?",
                    f"EncoderConfig 没有字段 {name}：是否想写 {near[0]}？",
                )

    def _check_choices(self):
        for field, allowed in (("positions", POSITIONS), ("norm", NORMS)):
            value = getattr(self, field)
            if value not in allowed:
                names = ", ".join(f'"{name}"' for name in allowed)
                raise EncoderError(
                    f"{field}={value!r} is not known: choose one of {names}.",
                    f"{field}={value!r} 无法识别：请从 {names} 中选择。",
                )

    def _check_sizes(self):
        for field in ("vocab_size", "d_model", "num_heads", "num_layers", "d_ff", "max_positions"):
            value = getattr(self, field)
            if value < 1:
                raise EncoderError(
                    f"{field}={value} is too small: it must be at least 1.",
                    f"{field}={value} 太小：至少为 1。",
                )
        if not 0 <= self.dropout < 1:
            raise EncoderError(
                f"dropout={self.dropout} is not a probability below 1: choose 0 (off) or more, less than 1.",
                f"dropout={self.dropout} 不是小于 1 的概率：请取 0（关闭）到 1（不含）之间的值。",
            )

    def _check_heads(self):
        if self.d_model % self.num_heads:
            raise EncoderError(*self._uneven_heads())
        if self.positions == "rotary" and self.d_head % 2:
            raise EncoderError(
                f"Rotary positions turn a head's channels in pairs, and d_model={self.d_model} over "
                f"num_heads={self.num_heads} gives an odd head width of {self.d_head}. "
                f"Choose d_model={self.num_heads * (self.d_head + 1)}, or other positions.",
                f"旋转位置编码把每个头的通道两两配对旋转，而 d_model={self.d_model} 除以 "
                f"num_heads={self.num_heads} 得到奇数头宽 {self.d_head}。"
                f"请改用 d_model={self.num_heads * (self.d_head + 1)}，或换一种位置编码。",
            )

    def _uneven_heads(self) -> tuple[str, str]:
        heads = ", ".join(str(n) for n in range(1, self.d_model + 1) if self.d_model % n == 0)
        wider = math.ceil(self.d_model / self.num_heads) * self.num_heads
        return (
            f"d_model={self.d_model} cannot be shared evenly among num_heads={self.num_heads}: the heads "
            f"split the width of a token's vector between them. d_model={self.d_model} fits {heads} heads; "
            f"{self.num_heads} heads fit d_model={wider}.",
            f"d_model={self.d_model} 无法平均分给 num_heads={self.num_heads} 个头：各个头均分词向量的宽度。"
            f"d_model={self.d_model} 可用的头数为 {heads}；{self.num_heads} 个头可用 d_model={wider}。",
        )


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
    **kwargs,
) -> tuple[Tensor, Tensor]:
    """softmax(q·kᵀ × scaling + mask) · v, written out. Unlike a fused kernel it returns the weights too."""
    if scaling is None:
        scaling = query.shape[-1] ** -0.5
    scores = query @ key.transpose(2, 3) * scaling  # (batch, head, query, key)
    if attention_mask is not None:
        scores = scores + attention_mask  # 0 where a query may look, a huge negative number where it may not
    weights = scores.softmax(dim=-1)  # (batch, head, query, key); each row sums to 1
    weights = F.dropout(weights, p=dropout, training=module.training)
    output = weights @ value  # (batch, head, query, d_head)
    return output.transpose(1, 2).contiguous(), weights  # (batch, query, head, d_head)


class MultiHeadAttention(nn.Module):
    """Each head compares tokens in its own d_head channels; `output` mixes what the heads brought back."""

    def __init__(self, config: EncoderConfig, layer_idx: int):
        super().__init__()
        self.config = config
        self.layer_idx = layer_idx
        self.num_heads = config.num_heads
        self.head_dim = config.d_head
        self.scaling = self.head_dim**-0.5  # keeps the spread of q·k from growing with the head's width
        self.is_causal = config.causal  # the fused kernel is told this way when no mask is passed
        self.query = nn.Linear(config.d_model, config.d_model)
        self.key = nn.Linear(config.d_model, config.d_model)
        self.value = nn.Linear(config.d_model, config.d_model)
        self.output = nn.Linear(config.d_model, config.d_model)

    def forward(
        self,
        hidden: Tensor,
        attention_mask: Tensor | None,
        rotation: tuple[Tensor, Tensor] | None = None,
        **kwargs,
    ) -> tuple[Tensor, Tensor | None]:
        query = self._split(self.query(hidden))  # (batch, head, query, d_head)
        key = self._split(self.key(hidden))  # (batch, head, key, d_head)
        value = self._split(self.value(hidden))  # (batch, head, key, d_head)
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
        return self.output(mixed.flatten(2)), weights  # (batch, token, d_model)

    def _split(self, x: Tensor) -> Tensor:
        """(batch, token, d_model) -> (batch, head, token, d_head)"""
        return x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)


# --- one layer ----------------------------------------------------------------------------------------------


class FeedForward(nn.Module):
    """Two linear maps with a bend between them, for each token on its own."""

    def __init__(self, config: EncoderConfig):
        super().__init__()
        self.expand = nn.Linear(config.d_model, config.d_ff)
        self.contract = nn.Linear(config.d_ff, config.d_model)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.contract(F.gelu(self.expand(hidden)))  # (batch, token, d_ff) in between


class EncoderLayer(nn.Module):
    """Attention, then feed-forward; each adds to what came in, and is normalised before or after."""

    def __init__(self, config: EncoderConfig, layer_idx: int):
        super().__init__()
        self.pre_norm = config.norm == "pre"
        self.attention = MultiHeadAttention(config, layer_idx)
        self.attention_norm = nn.LayerNorm(config.d_model)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = nn.LayerNorm(config.d_model)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, hidden: Tensor, attention_mask: Tensor | None, rotation=None, **kwargs) -> Tensor:
        if self.pre_norm:
            attended, _ = self.attention(self.attention_norm(hidden), attention_mask, rotation, **kwargs)
            hidden = hidden + self.dropout(attended)
            return hidden + self.dropout(self.feed_forward(self.feed_forward_norm(hidden)))
        attended, _ = self.attention(hidden, attention_mask, rotation, **kwargs)
        hidden = self.attention_norm(hidden + self.dropout(attended))
        return self.feed_forward_norm(hidden + self.dropout(self.feed_forward(hidden)))


# --- the whole model ----------------------------------------------------------------------------------------


class EncoderPreTrainedModel(PreTrainedModel):
    """What transformers needs to know to save, load and capture."""

    config: EncoderConfig
    config_class = EncoderConfig
    base_model_prefix = "encoder"
    _supports_sdpa = True
    _supports_attention_backend = True
    _can_record_outputs = {  # noqa: RUF012
        "hidden_states": EncoderLayer,
        "attentions": MultiHeadAttention,
    }


class EncoderModel(EncoderPreTrainedModel):
    """Token ids in, one vector per token out."""

    def __init__(self, config: EncoderConfig):
        super().__init__(config)
        self.word_embeddings = nn.Embedding(
            config.vocab_size, config.d_model, padding_idx=config.pad_token_id
        )
        self.position_embeddings = None
        self.rotary = None
        if config.positions == "learned":
            self.position_embeddings = nn.Embedding(config.max_positions, config.d_model)
        elif config.positions == "sinusoidal":
            self.position_embeddings = SinusoidalPositions(config.d_model)
        elif config.positions == "rotary":
            self.rotary = RotaryPositions(config.d_head)
        post = config.norm == "post"
        self.embedding_norm = nn.LayerNorm(config.d_model) if post else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(EncoderLayer(config, i) for i in range(config.num_layers))
        # Pre-norm layers leave their sum unnormalised, so it is normalised once at the end.
        self.final_norm = nn.Identity() if post else nn.LayerNorm(config.d_model)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.word_embeddings

    def set_input_embeddings(self, value: nn.Module):
        self.word_embeddings = value

    @capture_outputs
    def forward(
        self,
        input_ids: Tensor | None = None,  # (batch, token)
        attention_mask: Tensor | None = None,  # (batch, token); 1 = a word, 0 = padding
        position_ids: Tensor | None = None,  # (batch or 1, token)
        inputs_embeds: Tensor | None = None,  # (batch, token, d_model), instead of input_ids
        **kwargs,
    ) -> BaseModelOutput:
        if (input_ids is None) == (inputs_embeds is None):
            raise EncoderError(
                "Give exactly one of input_ids and inputs_embeds.",
                "input_ids 与 inputs_embeds 必须且只能给出一个。",
            )
        given = input_ids if inputs_embeds is None else inputs_embeds
        position_ids = self._positions(given, position_ids)

        words = self.word_embeddings(input_ids) if inputs_embeds is None else inputs_embeds
        hidden = self._embed(words, position_ids)  # (batch, token, d_model)
        rotation = None if self.rotary is None else self.rotary(position_ids)
        mask = self._mask(hidden, attention_mask)  # (batch, 1, query, key), or None: all may look at all
        for layer in self.layers:
            hidden = layer(hidden, mask, rotation, **kwargs)  # (batch, token, d_model)
        return BaseModelOutput(last_hidden_state=self.final_norm(hidden))

    def _positions(self, given: Tensor, position_ids: Tensor | None) -> Tensor:
        """Position ids, refused before any computation if the learned table has no row for them."""
        needed = given.shape[1]
        if position_ids is None:
            position_ids = torch.arange(needed, device=given.device)[None]  # (1, token)
        elif self.config.positions == "learned":
            needed = int(position_ids.max()) + 1
        if self.config.positions == "learned" and needed > self.config.max_positions:
            raise EncoderError(
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

    def _mask(self, hidden: Tensor, attention_mask: Tensor | None) -> Tensor | None:
        if self.config.causal:
            return create_causal_mask(self.config, hidden, attention_mask, None)  # None: nothing is cached
        return create_bidirectional_mask(self.config, hidden, attention_mask)


class EncoderForMaskedLM(EncoderPreTrainedModel):
    """The encoder with a guess at every place: which word of the vocabulary stands (or stood) here?"""

    _tied_weights_keys = {"decoder.weight": "encoder.word_embeddings.weight"}  # noqa: RUF012

    def __init__(self, config: EncoderConfig):
        super().__init__(config)
        self.encoder = EncoderModel(config)
        self.transform = nn.Linear(config.d_model, config.d_model)
        self.transform_norm = nn.LayerNorm(config.d_model)
        self.decoder = nn.Linear(config.d_model, config.vocab_size)  # its rows are the word embeddings
        self.post_init()

    def get_output_embeddings(self) -> nn.Module:
        return self.decoder

    def set_output_embeddings(self, value: nn.Module):
        self.decoder = value

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,  # (batch, token); -100 where nothing is asked
        **kwargs,
    ) -> MaskedLMOutput:
        outputs = self.encoder(
            input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            inputs_embeds=inputs_embeds,
            return_dict=True,
            **kwargs,
        )
        hidden = self.transform_norm(F.gelu(self.transform(outputs.last_hidden_state)))
        logits = self.decoder(hidden)  # (batch, token, vocab_size)
        loss = None if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return MaskedLMOutput(
            loss=loss, logits=logits, hidden_states=outputs.hidden_states, attentions=outputs.attentions
        )


# So that AutoModel.from_pretrained opens a saved encoder by itself.
AutoConfig.register(EncoderConfig.model_type, EncoderConfig, exist_ok=True)
AutoModel.register(EncoderConfig, EncoderModel, exist_ok=True)
AutoModelForMaskedLM.register(EncoderConfig, EncoderForMaskedLM, exist_ok=True)
