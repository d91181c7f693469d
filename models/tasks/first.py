"""Positions and length: which of two marked words came first? Trained short, asked long."""

from __future__ import annotations

from typing import Any

import torch
from transformers import PreTrainedModel

from ..encoder import EncoderConfig, EncoderForMaskedLM
from ..vocabulary import MASK, PAD
from .sentences import reading
from .task import IGNORED, Batch, Probe, Recipe, Task, order_blind

MARKED = ("red", "blue")
FILLERS = ("tea", "cup", "hat", "pen", "fan", "box", "key", "bag", "map", "bell")
WORDS = (PAD, MASK, *MARKED, *FILLERS)
SHORTEST, LONGEST = 3, 16
ROOM = 160


class First(Task):
    """Fillers with one "red" and one "blue" among them, then [MASK]: the one that came first.

    The [MASK] stands last, so that a model under a causal mask can answer too.
    """

    name = "first"
    recipe = Recipe(steps=1200, clip=None)

    def model(self, **choices: Any) -> EncoderForMaskedLM:
        sizes = {"d_model": 32, "num_heads": 2, "num_layers": 2, "d_ff": 64, "max_positions": ROOM}
        return EncoderForMaskedLM(EncoderConfig(vocab_size=len(WORDS), **{**sizes, **choices}))

    def batch(
        self,
        size: int,
        generator: torch.Generator,
        lengths: tuple[int, int] = (SHORTEST, LONGEST),
    ) -> Batch:
        low, high = lengths
        length = torch.randint(low, high + 1, (size, 1), generator=generator)
        ids = torch.randint(2 + len(MARKED), len(WORDS), (size, high + 1), generator=generator)
        places = torch.arange(high + 1)
        noise = torch.rand(size, high + 1, generator=generator)
        two = noise.masked_fill(places >= length, 2.0).argsort(1)[:, :2]  # two different places of the text
        ids.scatter_(1, two, torch.tensor([[2, 3]]).expand(size, -1))
        ids = ids.masked_fill(places > length, 0).scatter(1, length, 1)
        earlier = torch.where(two[:, 0] < two[:, 1], 2, 3)[:, None]
        targets = torch.full_like(ids, IGNORED).scatter(1, length, earlier)
        return Batch(reading(ids), targets)

    def evaluate(self, model: PreTrainedModel, lengths: tuple[int, ...] = (LONGEST,)) -> dict[str, float]:
        """Accuracy at the longest trained length; under "at n" at other lengths that are asked for."""
        device, found = next(model.parameters()).device, {}
        for length in lengths:
            batch = self.batch(500, torch.Generator().manual_seed(99), (length, length)).to(device)
            said = model(**batch.inputs).logits.argmax(-1)
            right = ((said == batch.targets) & (batch.targets != IGNORED)).any(1).float().mean().item()
            found["accuracy" if length == LONGEST else f"at {length}"] = right
        return found

    def order_blind(self) -> dict[str, float]:
        """Of texts and their mirrors, in which red and blue have changed places."""
        batch = self.batch(500, torch.Generator().manual_seed(99), (LONGEST, LONGEST))
        examples = []
        for row, target in zip(
            batch.inputs["input_ids"].tolist(), batch.targets.amax(1).tolist(), strict=True
        ):
            examples += [(row, target), ([{2: 3, 3: 2}.get(i, i) for i in row], 5 - target)]
        return {"accuracy": order_blind(examples)}

    def probe(self) -> Probe:
        ids = self.batch(1, torch.Generator().manual_seed(7), (LONGEST, LONGEST)).inputs["input_ids"]
        return Probe(reading(ids), tuple(WORDS[i] for i in ids[0].tolist()))
