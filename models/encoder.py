"""A transformer encoder written to be read from top to bottom, and to be operated on.

It is the encoder of "Attention Is All You Need" (Vaswani et al. 2017) with the choices that tutorials argue
about left open: where positions come from, where the normalisation sits, whether a token may look ahead.
It is also an ordinary `PreTrainedModel`: `save_pretrained` and `from_pretrained` work, and each layer asks
transformers by name for its attention function, so what is registered there serves this model and BERT alike.
Its parts, and the names of the shapes, are in layers.py.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    PreTrainedModel,
)
from transformers.masking_utils import create_bidirectional_mask, create_causal_mask
from transformers.modeling_outputs import BaseModelOutput, MaskedLMOutput, SequenceClassifierOutput
from transformers.utils.generic import can_return_tuple
from transformers.utils.output_capturing import capture_outputs

from .configuration import NORMS, POSITIONS, ModelError, TransformerConfig
from .layers import (
    FeedForward,
    MultiHeadAttention,
    RotaryPositions,
    SinusoidalPositions,
    Stack,
    eager_attention_forward,
    rotate,
)

__all__ = [
    "NORMS",
    "POSITIONS",
    "EncoderConfig",
    "EncoderForMaskedLM",
    "EncoderForSequenceClassification",
    "EncoderLayer",
    "EncoderModel",
    "EncoderPreTrainedModel",
    "FeedForward",
    "ModelError",
    "MultiHeadAttention",
    "RotaryPositions",
    "SinusoidalPositions",
    "eager_attention_forward",
    "rotate",
]


class EncoderConfig(TransformerConfig):
    """The shape of an encoder; its fields are `TransformerConfig`'s."""

    model_type = "surgery_encoder"


# --- one layer ----------------------------------------------------------------------------------------------


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

    def forward(
        self,
        hidden: Tensor,
        attention_mask: Tensor | None,
        rotation: tuple[Tensor, Tensor] | None = None,
        **kwargs: Any,
    ) -> Tensor:
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


class EncoderModel(Stack, EncoderPreTrainedModel):
    """Token ids in, one vector per token out."""

    def __init__(self, config: EncoderConfig):
        super().__init__(config)
        self._embeddings(config)
        self._build(config, [EncoderLayer(config, i) for i in range(config.num_layers)])
        self.post_init()

    @capture_outputs
    def forward(
        self,
        input_ids: Tensor | None = None,  # (batch, token)
        attention_mask: Tensor | None = None,  # (batch, token); 1 = a word, 0 = padding
        position_ids: Tensor | None = None,  # (batch or 1, token)
        inputs_embeds: Tensor | None = None,  # (batch, token, d_model), instead of input_ids
        **kwargs: Any,
    ) -> BaseModelOutput:
        hidden, rotation = self._enter(input_ids, inputs_embeds, position_ids)  # (batch, token, d_model)
        mask = self._mask(hidden, attention_mask)  # (batch, 1, query, key), or None: all may look at all
        for layer in self.layers:
            hidden = layer(hidden, mask, rotation, **kwargs)  # (batch, token, d_model)
        return BaseModelOutput(last_hidden_state=self.final_norm(hidden))

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
        self.decoder: nn.Module = nn.Linear(
            config.d_model, config.vocab_size
        )  # its rows are the word embeddings
        self.post_init()

    def get_output_embeddings(self) -> nn.Module:
        return self.decoder

    def set_output_embeddings(self, value: nn.Module) -> None:
        self.decoder = value

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,  # (batch, token); -100 where nothing is asked
        **kwargs: Any,
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


class EncoderForSequenceClassification(EncoderPreTrainedModel):
    """The encoder with one answer for the whole text, read off its first token ([CLS])."""

    def __init__(self, config: EncoderConfig):
        super().__init__(config)
        self.encoder = EncoderModel(config)
        self.transform = nn.Linear(config.d_model, config.d_model)
        labels: Any = config.num_labels
        self.classifier = nn.Linear(config.d_model, labels)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,  # (batch,)
        **kwargs: Any,
    ) -> SequenceClassifierOutput:
        outputs = self.encoder(
            input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            inputs_embeds=inputs_embeds,
            return_dict=True,
            **kwargs,
        )
        first = torch.tanh(self.transform(outputs.last_hidden_state[:, 0]))  # (batch, d_model)
        logits = self.classifier(first)  # (batch, num_labels)
        loss = None if labels is None else F.cross_entropy(logits, labels)
        return SequenceClassifierOutput(
            loss=loss, logits=logits, hidden_states=outputs.hidden_states, attentions=outputs.attentions
        )


# So that AutoModel.from_pretrained opens a saved encoder by itself.
AutoConfig.register(EncoderConfig.model_type, EncoderConfig, exist_ok=True)
AutoModel.register(EncoderConfig, EncoderModel, exist_ok=True)
AutoModelForMaskedLM.register(EncoderConfig, EncoderForMaskedLM, exist_ok=True)
AutoModelForSequenceClassification.register(EncoderConfig, EncoderForSequenceClassification, exist_ok=True)
