from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bilingual import SurgeryError, Words

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

NO_LIMIT = 1_000_000  # tokens; said of a model that has no position table and a tokenizer that names no limit


class LoadError(SurgeryError):
    """A model that cannot be had as asked: which, why, and what would work."""


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model ready to be run, with what a caller has to know about it.

    kind        what its outputs mean: "masked_lm" and "causal_lm" (logits over the vocabulary), "classifier"
                (logits over `labels`), "encoder" (hidden states only), "translator" (reads one text, writes another)
    max_tokens  the longest text it has positions for, special tokens included
    trained     False where the weights are random
    caveats     what should be said wherever the model is shown
    source      the folder that its weights came from, or None
    """

    model: PreTrainedModel = field(repr=False)
    tokenizer: PreTrainedTokenizerBase = field(repr=False)
    device: torch.device
    dtype: torch.dtype
    name: str
    kind: str
    max_tokens: int
    trained: bool = True
    caveats: tuple[Words, ...] = ()
    labels: dict[int, str] | None = None
    source: str | None = None

    @property
    def mask_token(self) -> str | None:
        """How this model's tokenizer writes the word to be guessed, for example "[MASK]"."""
        return self.tokenizer.mask_token

    @property
    def vocab_size(self) -> int:
        """Rows of the embedding table: token ids from here on have no vector."""
        table: Any = self.model.get_input_embeddings()
        return table.weight.shape[0]
