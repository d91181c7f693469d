"""A transformer decoder, alone (it writes) or behind an encoder (it translates), to be read after encoder.py.

A decoder layer looks twice: at what has been written so far, never ahead (causal self-attention), and, if
there is a source, at all of it (cross-attention: queries from here, keys and values from there; Vaswani et
al. 2017, section 3.2.3). Shapes are those of layers.py; `source` counts the source's places.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    PreTrainedModel,
)
from transformers.masking_utils import create_bidirectional_mask, create_causal_mask
from transformers.modeling_outputs import BaseModelOutput, CausalLMOutput, Seq2SeqLMOutput
from transformers.utils.generic import can_return_tuple
from transformers.utils.output_capturing import OutputRecorder, capture_outputs

from .configuration import ModelError, TransformerConfig
from .encoder import EncoderConfig, EncoderModel
from .layers import FeedForward, MultiHeadAttention, Stack

Side = TypeVar("Side", bound=TransformerConfig)


class DecoderConfig(TransformerConfig):
    """The shape of a decoder. cross_attention: whether its layers also look at a source."""

    model_type = "surgery_decoder"

    causal: bool = True
    cross_attention: bool = False
    bos_token_id: int | None = None
    eos_token_id: int | None = None


class EncoderDecoderConfig(TransformerConfig):
    """The shape of an encoder and of a decoder like it, `num_layers` each, over one vocabulary."""

    model_type = "surgery_encoder_decoder"

    is_encoder_decoder: bool = True
    bos_token_id: int | None = 2  # what the decoder reads before its first word
    eos_token_id: int | None = 3  # what it writes after its last

    def side(self, config_class: type[Side], **more: Any) -> Side:
        """The configuration of one of the two halves."""
        shared: tuple[str, ...] = (
            "vocab_size",
            "d_model",
            "num_heads",
            "num_kv_heads",
            "num_layers",
            "d_ff",
            "max_positions",
        )
        shared += ("positions", "norm", "dropout", "pad_token_id", "initializer_range")
        return config_class(  # type: ignore[call-arg]
            **{name: getattr(self, name) for name in shared},
            attn_implementation=self._attn_implementation,
            **more,
        )


# --- one layer ----------------------------------------------------------------------------------------------


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention if there is a source, feed-forward; each adds to what came in."""

    def __init__(self, config: DecoderConfig, layer_idx: int):
        super().__init__()
        self.pre_norm = config.norm == "pre"
        self.attention = MultiHeadAttention(config, layer_idx)
        self.attention_norm = nn.LayerNorm(config.d_model)
        self.cross_attention: Any = None
        if config.cross_attention:
            self.cross_attention = MultiHeadAttention(config, layer_idx, causal=False)
            self.cross_attention_norm = nn.LayerNorm(config.d_model)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = nn.LayerNorm(config.d_model)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        hidden: Tensor,  # (batch, token, d_model)
        mask: Tensor | None,  # (batch, 1, token, token): what was written before
        rotation: tuple[Tensor, Tensor] | None = None,
        source: Tensor | None = None,  # (batch, source, d_model)
        source_mask: Tensor | None = None,  # (batch, 1, token, source): which of it is padding
        **kwargs: Any,
    ) -> Tensor:
        def look_back(x: Tensor) -> Tensor:
            return self.attention(x, mask, rotation, **kwargs)[0]

        def look_over(x: Tensor) -> Tensor:
            return self.cross_attention(x, source_mask, source=source, **kwargs)[0]

        hidden = self._add(hidden, self.attention_norm, look_back)
        if self.cross_attention is not None:
            hidden = self._add(hidden, self.cross_attention_norm, look_over)
        return self._add(hidden, self.feed_forward_norm, self.feed_forward)

    def _add(self, hidden: Tensor, norm: nn.Module, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.pre_norm:
            return hidden + self.dropout(sublayer(norm(hidden)))
        return norm(hidden + self.dropout(sublayer(hidden)))


# --- the decoder --------------------------------------------------------------------------------------------


class DecoderPreTrainedModel(PreTrainedModel):
    """What transformers needs to know to save, load and capture."""

    config: DecoderConfig
    config_class = DecoderConfig
    base_model_prefix = "decoder"
    _supports_sdpa = True
    _supports_attention_backend = True
    _can_record_outputs = {  # noqa: RUF012
        "hidden_states": DecoderLayer,
        "attentions": OutputRecorder(MultiHeadAttention, index=1, layer_name="attention"),
        "cross_attentions": OutputRecorder(MultiHeadAttention, index=1, layer_name="cross_attention"),
    }


class DecoderModel(Stack, DecoderPreTrainedModel):
    """Token ids (and a source's vectors) in, one vector per token out."""

    def __init__(self, config: DecoderConfig):
        super().__init__(config)
        self._embeddings(config)
        self._build(config, [DecoderLayer(config, i) for i in range(config.num_layers)])
        self.post_init()

    @capture_outputs
    def forward(
        self,
        input_ids: Tensor | None = None,  # (batch, token)
        attention_mask: Tensor | None = None,  # (batch, token); 1 = a word, 0 = padding
        position_ids: Tensor | None = None,  # (batch or 1, token)
        inputs_embeds: Tensor | None = None,  # (batch, token, d_model), instead of input_ids
        source: Tensor | None = None,  # (batch, source, d_model)
        source_attention_mask: Tensor | None = None,  # (batch, source)
        **kwargs: Any,
    ) -> BaseModelOutput:
        if (source is not None) != self.config.cross_attention:
            raise ModelError(
                f"cross_attention={self.config.cross_attention}: this decoder "
                f"{'needs a source to look at' if source is None else 'has nothing to look at a source with'}.",
                f"cross_attention={self.config.cross_attention}：此解码器"
                f"{'需要一个源序列' if source is None else '没有用来注意源序列的层'}。",
            )
        hidden, rotation = self._enter(input_ids, inputs_embeds, position_ids)  # (batch, token, d_model)
        mask = self._mask(hidden, attention_mask)  # (batch, 1, token, token), or None
        source_mask = None
        if source is not None:
            source_mask = create_bidirectional_mask(
                self.config, hidden, source_attention_mask, encoder_hidden_states=source
            )  # (batch, 1, token, source), or None: all may look at all
        for layer in self.layers:
            hidden = layer(hidden, mask, rotation, source, source_mask, **kwargs)  # (batch, token, d_model)
        return BaseModelOutput(last_hidden_state=self.final_norm(hidden))

    def _mask(self, hidden: Tensor, attention_mask: Tensor | None) -> Tensor | None:
        if self.config.causal:
            return create_causal_mask(self.config, hidden, attention_mask, None)  # None: nothing is cached
        return create_bidirectional_mask(self.config, hidden, attention_mask)


class DecoderForCausalLM(DecoderPreTrainedModel):
    """The decoder with a guess after every token: what comes next?"""

    _tied_weights_keys = {"head.weight": "decoder.word_embeddings.weight"}  # noqa: RUF012

    def __init__(self, config: DecoderConfig):
        super().__init__(config)
        self.decoder = DecoderModel(config)
        self.head: nn.Module = nn.Linear(
            config.d_model, config.vocab_size
        )  # its rows are the word embeddings
        self.post_init()

    def get_output_embeddings(self) -> nn.Module:
        return self.head

    def set_output_embeddings(self, value: nn.Module) -> None:
        self.head = value

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,  # (batch, token), the input ids themselves; -100 where nothing is asked
        **kwargs: Any,
    ) -> CausalLMOutput:
        outputs = self.decoder(
            input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            inputs_embeds=inputs_embeds,
            return_dict=True,
            **kwargs,
        )
        logits = self.head(outputs.last_hidden_state)  # (batch, token, vocab_size)
        loss = None
        if labels is not None:  # what stands at i + 1 is guessed at i
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return CausalLMOutput(
            loss=loss, logits=logits, hidden_states=outputs.hidden_states, attentions=outputs.attentions
        )


# --- encoder and decoder ------------------------------------------------------------------------------------


class EncoderDecoderPreTrainedModel(PreTrainedModel):
    """What transformers needs to know to save and load."""

    config: EncoderDecoderConfig
    config_class = EncoderDecoderConfig
    base_model_prefix = "model"
    _supports_sdpa = True
    _supports_attention_backend = True


class EncoderDecoderForTranslation(EncoderDecoderPreTrainedModel):
    """Reads a sentence, writes another one; both halves and the guess share one table of words."""

    _tied_weights_keys = {  # noqa: RUF012
        "decoder.word_embeddings.weight": "encoder.word_embeddings.weight",
        "head.weight": "encoder.word_embeddings.weight",
    }

    def __init__(self, config: EncoderDecoderConfig):
        super().__init__(config)
        self.encoder = EncoderModel(config.side(EncoderConfig))
        self.decoder = DecoderModel(config.side(DecoderConfig, cross_attention=True))
        self.head: nn.Module = nn.Linear(config.d_model, config.vocab_size)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.encoder.word_embeddings

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.encoder.word_embeddings = self.decoder.word_embeddings = value

    def get_output_embeddings(self) -> nn.Module:
        return self.head

    def set_output_embeddings(self, value: nn.Module) -> None:
        self.head = value

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,  # (batch, source)
        attention_mask: Tensor | None = None,  # (batch, source)
        decoder_input_ids: Tensor | None = None,  # (batch, token); None: only the start, what comes first?
        decoder_attention_mask: Tensor | None = None,  # (batch, token)
        encoder_outputs: Tensor | None = None,  # (batch, source, d_model): a source that was read before
        labels: Tensor | None = None,  # (batch, token): what stands after each token of decoder_input_ids
        **kwargs: Any,
    ) -> Seq2SeqLMOutput:
        read = None
        if encoder_outputs is None:
            read = self.encoder(input_ids, attention_mask=attention_mask, return_dict=True, **kwargs)
        source: Any = encoder_outputs if read is None else read.last_hidden_state
        if decoder_input_ids is None:
            start: Any = self.config.bos_token_id
            decoder_input_ids = torch.full((len(source), 1), start, device=source.device)
        written = self.decoder(
            decoder_input_ids,
            attention_mask=decoder_attention_mask,
            source=source,
            source_attention_mask=attention_mask,
            return_dict=True,
            **kwargs,
        )
        logits = self.head(written.last_hidden_state)  # (batch, token, vocab_size)
        loss = None if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return Seq2SeqLMOutput(
            loss=loss,
            logits=logits,
            decoder_hidden_states=written.hidden_states,
            decoder_attentions=written.attentions,
            cross_attentions=written.get("cross_attentions"),
            encoder_last_hidden_state=source,
            encoder_hidden_states=None if read is None else read.hidden_states,
            encoder_attentions=None if read is None else read.attentions,
        )


# --- writing ------------------------------------------------------------------------------------------------


@torch.no_grad()
def write(
    model: PreTrainedModel,
    prefix: Tensor,  # (batch, token); all rows equally long
    most: int,
    stop: int | None = None,
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """`prefix` and up to `most` tokens more, one at a time; after `stop` a row only repeats it.

    temperature: of the output, 0 takes the most probable token. generator: on the CPU. The model reads the whole
    text anew for each token: slower than a cache, and whatever is done to attention acts on all of it.
    """
    done = torch.zeros(len(prefix), dtype=torch.bool, device=prefix.device)
    for _ in range(most):
        logits = model(prefix).logits[:, -1].float()  # (batch, vocab_size)
        token = _draw(logits, temperature, generator)  # (batch,)
        if stop is not None:
            token = token.masked_fill(done, stop)
            done |= token == stop
        prefix = torch.cat((prefix, token[:, None]), dim=1)
        if done.all():
            break
    return prefix


@torch.no_grad()
def translate(
    model: EncoderDecoderForTranslation,
    input_ids: Tensor,  # (batch, source)
    attention_mask: Tensor | None = None,
    most: int = 32,
) -> Tensor:
    """The most probable translation word by word, (batch, token), from the start token on."""
    config: Any = model.config
    written = torch.full((len(input_ids), 1), config.bos_token_id, device=input_ids.device)
    done = torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)
    given = {"input_ids": input_ids}
    for _ in range(most):
        out = model(**given, attention_mask=attention_mask, decoder_input_ids=written)
        given = {"encoder_outputs": out.encoder_last_hidden_state}  # the source is read once
        logits = out.logits[:, -1]  # (batch, vocab_size)
        token = logits.argmax(-1).masked_fill(done, config.eos_token_id)
        written = torch.cat((written, token[:, None]), dim=1)
        done |= token == config.eos_token_id
        if done.all():
            break
    return written


def _draw(logits: Tensor, temperature: float, generator: torch.Generator | None) -> Tensor:
    if temperature == 0:
        return logits.argmax(-1)
    chances = (logits / temperature).softmax(-1).cpu()
    return torch.multinomial(chances, 1, generator=generator)[:, 0].to(logits.device)


# So that Auto classes open what was saved by themselves.
for _config in (DecoderConfig, EncoderDecoderConfig):
    AutoConfig.register(_config.model_type, _config, exist_ok=True)
AutoModel.register(DecoderConfig, DecoderModel, exist_ok=True)
AutoModelForCausalLM.register(DecoderConfig, DecoderForCausalLM, exist_ok=True)
AutoModel.register(EncoderDecoderConfig, EncoderDecoderForTranslation, exist_ok=True)
AutoModelForSeq2SeqLM.register(EncoderDecoderConfig, EncoderDecoderForTranslation, exist_ok=True)
