"""What has to be decided before the first weight of a from-scratch model is drawn, and what cannot be built."""

import dataclasses
import difflib
import math
from typing import Any

from transformers import PreTrainedConfig

from bilingual import SurgeryError

POSITIONS = ("none", "sinusoidal", "learned", "rotary")
NORMS = ("pre", "post")


class ModelError(SurgeryError, ValueError):
    """A configuration that cannot be built, or an input that the configuration has no room for."""


class TransformerConfig(PreTrainedConfig):
    """The fields that encoder, decoder and encoder-decoder have in common.

    positions      "none": a bag of words; "sinusoidal": fixed waves added to the words (Vaswani et al. 2017,
                   section 3.5); "learned": a trained table added to the words (BERT); "rotary": queries and
                   keys turned by an angle that grows with the position (Su et al. 2021)
    norm           "post": normalise after each residual addition (2017, BERT); "pre": before each sublayer
                   (GPT-2)
    causal         True: a token sees itself and what comes before it
    num_kv_heads   heads of keys and values, each shared by a group of query heads (Ainslie et al. 2023);
                   None: one for each query head
    max_positions  rows of the learned table; the other encodings have no such limit
    dropout        probability of zeroing, in training, embeddings, attention weights and sublayer outputs
    """

    # transformers' names on the left, the textbook's on the right: both work.
    attribute_map = {  # noqa: RUF012
        "hidden_size": "d_model",
        "num_attention_heads": "num_heads",
        "num_key_value_heads": "num_kv_heads",
        "num_hidden_layers": "num_layers",
        "intermediate_size": "d_ff",
        "max_position_embeddings": "max_positions",
    }

    vocab_size: int = 100
    d_model: int = 64
    num_heads: int = 4
    num_kv_heads: int | None = None
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

    def __post_init__(self, **kwargs: Any) -> None:
        self._check_names(kwargs)
        super().__post_init__(**kwargs)
        self._check_choices()
        self._check_sizes()
        if self.num_kv_heads is None:
            self.num_kv_heads = self.num_heads
        self._check_heads()
        if self.initializer_range is None:
            self.initializer_range = self.d_model**-0.5

    @property
    def d_head(self) -> int:
        """Width of one head."""
        return self.d_model // self.num_heads

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values, however many `num_kv_heads` names."""
        return self.num_heads if self.num_kv_heads is None else self.num_kv_heads

    def _check_names(self, others: dict[str, Any]) -> None:
        """Transformers keeps whatever it does not know: a misspelt field would silently do nothing."""
        ours = [kind for kind in type(self).__mro__ if issubclass(kind, TransformerConfig)]
        own = [
            f.name for f in dataclasses.fields(self) if any(f.name in kind.__annotations__ for kind in ours)
        ]
        for name in others:
            known = name in self.attribute_map or hasattr(PreTrainedConfig, name)
            if not known and (near := difflib.get_close_matches(name, own, n=1, cutoff=0.7)):
                raise ModelError(
                    f"{name} is not a field of {type(self).__name__}: did you mean {near[0]}?",
                    f"{type(self).__name__} 没有字段 {name}：是否想写 {near[0]}？",
                )

    def _check_choices(self) -> None:
        for field, allowed in (("positions", POSITIONS), ("norm", NORMS)):
            value = getattr(self, field)
            if value not in allowed:
                names = ", ".join(f'"{name}"' for name in allowed)
                raise ModelError(
                    f"{field}={value!r} is not known: choose one of {names}.",
                    f"{field}={value!r} 无法识别：请从 {names} 中选择。",
                )

    def _check_sizes(self) -> None:
        for field in ("vocab_size", "d_model", "num_heads", "num_layers", "d_ff", "max_positions"):
            value = getattr(self, field)
            if value < 1:
                raise ModelError(
                    f"{field}={value} is too small: it must be at least 1.",
                    f"{field}={value} 太小：至少为 1。",
                )
        if not 0 <= self.dropout < 1:
            raise ModelError(
                f"dropout={self.dropout} is not a probability below 1: choose 0 (off) or more, less than 1.",
                f"dropout={self.dropout} 不是小于 1 的概率：请取 0（关闭）到 1（不含）之间的值。",
            )

    def _check_heads(self) -> None:
        if self.d_model % self.num_heads:
            raise ModelError(*self._uneven_heads())
        if self.kv_heads < 1 or self.num_heads % self.kv_heads:
            groups = ", ".join(str(n) for n in range(1, self.num_heads + 1) if self.num_heads % n == 0)
            raise ModelError(
                f"num_kv_heads={self.num_kv_heads} cannot serve num_heads={self.num_heads} in equal groups: "
                f"choose one of {groups}.",
                f"num_kv_heads={self.num_kv_heads} 无法平均服务于 num_heads={self.num_heads} 个查询头："
                f"可选 {groups}。",
            )
        if self.positions == "rotary" and self.d_head % 2:
            raise ModelError(
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
