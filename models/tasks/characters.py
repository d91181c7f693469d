"""A language of lines whose every choice is counted: a decoder learns to write it, letter by letter.

    the (ADJ) NOUN (near the NOUN) VERB (behind the PLACE).

The verb agrees with the first noun, which may be 20 letters back. Since each choice's chance is known, so is the
entropy of the language: no model can do better, and a line is right or wrong beyond dispute.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, TypeVar

import torch
from torch.nn import functional as F
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from ..decoder import DecoderConfig, DecoderForCausalLM, write
from ..vocabulary import CHARACTERS, NEWLINE
from ..words import VISIBLE, character_tokenizer
from .task import Batch, Probe, Recipe, Task

ONE = ("dog", "cat", "fox", "bear", "bird")
MANY = ("dogs", "cats", "foxes", "bears", "birds")
ADJECTIVES = ("big", "old", "small")
BESIDE = ("near", "behind", "under")
PLACES = ("tree", "house", "river")
VERBS = (("sleeps", "sleep"), ("runs", "run"), ("sings", "sing"), ("hides", "hide"))

T = TypeVar("T")

WINDOW = 64  # letters that are trained on at once
ROOM = 128
IDS = {character: i for i, character in enumerate(CHARACTERS)}


def line(r: Random) -> tuple[str, float]:
    """One line, and the natural logarithm of its probability."""
    chance = [0.0]

    def pick(among: Sequence[T]) -> T:
        chance[0] -= math.log(len(among))
        return r.choice(among)

    def flip(p: float) -> bool:
        heads = r.random() < p
        chance[0] += math.log(p if heads else 1 - p)
        return heads

    def noun() -> tuple[str, bool]:
        which, many = pick(range(len(ONE))), flip(0.5)
        return (MANY if many else ONE)[which], many

    words = ["the", *([pick(ADJECTIVES)] if flip(0.4) else [])]
    subject, many = noun()
    words.append(subject)
    if flip(0.5):
        words += [pick(BESIDE), "the", noun()[0]]
    words.append(pick(VERBS)[many])
    if flip(0.3):
        words += [pick(BESIDE), "the", pick(PLACES)]
    return " ".join(words) + "." + NEWLINE, chance[0]


def _any(words: Iterable[str]) -> str:
    return "|".join(words)


_NOUN = _any(ONE + MANY)
_LINE = re.compile(
    rf"the (?:(?:{_any(ADJECTIVES)}) )?({_NOUN})(?: (?:{_any(BESIDE)}) the (?:{_NOUN}))?"
    rf" ({_any(form for verb in VERBS for form in verb)})(?: (?:{_any(BESIDE)}) the (?:{_any(PLACES)}))?\."
)


def obeys(text: str) -> bool:
    """Whether a line is one of the language: its form, and the verb after the first noun's number."""
    match = _LINE.fullmatch(text)
    return match is not None and (match[1] in MANY) == any(match[2] == many for _, many in VERBS)


@functools.cache
def entropy(lines: int = 50_000) -> float:
    """The language's entropy in nats per letter, the least that `nats` can be; from so many lines."""
    r, nats, letters = Random(5), 0.0, 0
    for _ in range(lines):
        text, chance = line(r)
        nats, letters = nats - chance, letters + len(text)
    return nats / letters


class Characters(Task):
    """Windows of text that begin with a line; the answer at each letter is the next one."""

    name = "characters"
    metric = "obeys"
    evaluated = "100 lines that it writes (obeys), and other text of the language (nats per letter)"
    recipe = Recipe(steps=2000, batch=32)
    written = 100  # lines that an evaluation has the model write

    def model(self, **choices: Any) -> DecoderForCausalLM:
        sizes = {"d_model": 64, "num_heads": 4, "num_layers": 2, "d_ff": 256, "max_positions": ROOM}
        own = {"norm": "pre", "bos_token_id": IDS[NEWLINE], "eos_token_id": IDS[NEWLINE]}
        return DecoderForCausalLM(DecoderConfig(vocab_size=len(CHARACTERS), **{**sizes, **own, **choices}))

    def tokenizer(self) -> PreTrainedTokenizerFast:
        return character_tokenizer(CHARACTERS, ROOM)

    @functools.cached_property
    def training(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The text as ids, and where its lines begin (at the newline before)."""
        return _text(100, 400_000)

    @functools.cached_property
    def evaluation(self) -> torch.Tensor:
        """Windows of other text, (row, letter)."""
        ids, starts = _text(7, 30_000)
        return _windows(ids, starts[:128])

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        ids, starts = self.training
        rows = starts[torch.randint(len(starts), (size,), generator=generator)]
        window = _windows(ids, rows)
        return Batch({"input_ids": window[:, :-1]}, window[:, 1:])

    def evaluate(self, model: PreTrainedModel) -> dict[str, float]:
        """obeys: the share of written lines that are in the language. nats: per letter, on unseen text."""
        window = self.evaluation.to(next(model.parameters()).device)
        logits = model(window[:, :-1]).logits.float()
        nats = F.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten()).item()
        lines = self.lines(model)
        return {"obeys": sum(map(obeys, lines)) / len(lines), "nats": nats}

    def lines(self, model: PreTrainedModel, seed: int = 0, temperature: float = 1.0) -> list[str]:
        """Lines that the model writes, each cut at its newline."""
        start = torch.full((self.written, 1), IDS[NEWLINE], device=next(model.parameters()).device)
        generator = torch.Generator().manual_seed(seed)
        ids = write(model, start, WINDOW, IDS[NEWLINE], temperature, generator)
        texts = ("".join(CHARACTERS[i] for i in row[1:]) for row in ids.tolist())
        return [text.split(NEWLINE)[0] for text in texts]

    def probe(self) -> Probe:
        text = NEWLINE + "the old dog near the cats sleeps."
        return Probe(
            {"input_ids": torch.tensor([[IDS[c] for c in text]])}, tuple(VISIBLE.get(c, c) for c in text)
        )


def _text(seed: int, letters: int) -> tuple[torch.Tensor, torch.Tensor]:
    r, text = Random(seed), [NEWLINE]
    while letters > 0:
        text.append(line(r)[0])
        letters -= len(text[-1])
    ids = torch.tensor([IDS[c] for c in "".join(text)])
    starts = (ids == IDS[NEWLINE]).nonzero()[:, 0]
    return ids, starts[starts + WINDOW + 1 <= len(ids)]


def _windows(ids: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
    return ids[starts[:, None] + torch.arange(WINDOW + 1)]
