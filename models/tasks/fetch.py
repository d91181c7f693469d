"""Many heads: one layer has to bring eight neighbours to every place, and one head can only look one way."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import MaskedLMOutput
from transformers.utils.generic import can_return_tuple

from ..encoder import EncoderConfig, EncoderModel, EncoderPreTrainedModel
from .task import IGNORED, Batch, Probe, Recipe, Task

OFFSETS = (-4, -3, -2, -1, 1, 2, 3, 4)
LETTERS = "abcdefghijklmnop"
LENGTH = 16


class EncoderForNeighbours(EncoderPreTrainedModel):
    """The encoder with a guess at every place for each offset: which letter stands there?"""

    def __init__(self, config: EncoderConfig):
        super().__init__(config)
        self.encoder = EncoderModel(config)
        self.guess = nn.Linear(config.d_model, len(OFFSETS) * len(LETTERS))
        self.post_init()

    @can_return_tuple
    def forward(
        self, input_ids: Tensor | None = None, attention_mask: Tensor | None = None, **kwargs: Any
    ) -> MaskedLMOutput:
        out = self.encoder(input_ids, attention_mask=attention_mask, return_dict=True, **kwargs)
        logits = self.guess(out.last_hidden_state).unflatten(-1, (len(OFFSETS), len(LETTERS)))
        return MaskedLMOutput(  # logits: (batch, token, offset, letter)
            logits=logits, hidden_states=out.hidden_states, attentions=out.attentions
        )


class Fetch(Task):
    """Random letters; at each place the letters 4, 3, 2, 1 before and 1, 2, 3, 4 after are asked for."""

    name = "fetch"
    recipe = Recipe(steps=1500, weight_decay=0.0, clip=None)

    def model(self, **choices: Any) -> EncoderForNeighbours:
        sizes = {"d_model": 64, "num_heads": 8, "num_layers": 1, "d_ff": 128, "max_positions": LENGTH}
        return EncoderForNeighbours(EncoderConfig(vocab_size=1 + len(LETTERS), **{**sizes, **choices}))

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        ids = torch.randint(1, 1 + len(LETTERS), (size, LENGTH), generator=generator)
        targets = torch.full((size, LENGTH, len(OFFSETS)), IGNORED)
        for i, offset in enumerate(OFFSETS):
            here = slice(max(0, -offset), LENGTH - max(0, offset))
            there = slice(max(0, offset), LENGTH - max(0, -offset))
            targets[:, here, i] = ids[:, there] - 1
        return Batch({"input_ids": ids}, targets)

    def evaluate(self, model: PreTrainedModel) -> dict[str, float]:
        """The share of neighbours that are right."""
        batch = self.batch(200, torch.Generator().manual_seed(7)).to(next(model.parameters()).device)
        said = model(**batch.inputs).logits.argmax(-1)
        asked = batch.targets != IGNORED
        return {"accuracy": (said == batch.targets)[asked].float().mean().item()}

    def probe(self) -> Probe:
        ids = self.batch(1, torch.Generator().manual_seed(7)).inputs["input_ids"]
        return Probe({"input_ids": ids}, tuple(LETTERS[i - 1] for i in ids[0].tolist()))
