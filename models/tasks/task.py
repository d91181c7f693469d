"""What a task is: examples with exact truth, a model that fits them, and how right a model is.

A task knows the best that an answer can be which ignores order: "chance" is computed, not assumed.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..vocabulary import MASK

IGNORED = -100
"""A target where nothing is asked."""


@dataclass(frozen=True)
class Recipe:
    """How a task is trained: AdamW, a warm-up, then a schedule ("cosine", "constant" or "noam")."""

    steps: int = 1600
    batch: int = 64
    rate: float = 3e-3
    warmup: int = 100
    schedule: str = "cosine"
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.01
    clip: float | None = 1.0


@dataclass(frozen=True)
class Batch:
    """What a model reads, and what it should say where.

    inputs: the keywords of the model's forward. targets: of the shape of the logits without their last axis, IGNORED
    where nothing is asked. more: further targets, each with the weight of its loss.
    """

    inputs: dict[str, Tensor]
    targets: Tensor
    more: tuple[tuple[Tensor, float], ...] = ()

    @property
    def parts(self) -> tuple[tuple[Tensor, float], ...]:
        """All targets with their weights."""
        return ((self.targets, 1.0), *self.more)

    def to(self, device: torch.device) -> Batch:
        """The same batch on a device."""
        inputs = {name: tensor.to(device) for name, tensor in self.inputs.items()}
        more = tuple((targets.to(device), weight) for targets, weight in self.more)
        return Batch(inputs, self.targets.to(device), more)


@dataclass(frozen=True)
class Probe:
    """One example to watch while a model learns: what is read, and its tokens for people."""

    inputs: dict[str, Tensor]
    tokens: tuple[str, ...]
    written: tuple[str, ...] = ()  # what a decoder behind an encoder has read


class Task(ABC):
    """A source of batches and a judge of models. `name` is what the command line calls it."""

    name: str
    metric: str = "accuracy"  # the entry of `evaluate` that says it in one number, higher is better
    evaluated: str = "examples that training never shows"
    recipe: Recipe = Recipe()

    @abstractmethod
    def model(self, **choices: Any) -> PreTrainedModel:
        """A fresh model, random numbers from torch's generator; `choices` change its configuration."""

    @abstractmethod
    def batch(self, size: int, generator: torch.Generator) -> Batch:
        """Training examples, drawn with `generator` alone."""

    @abstractmethod
    def evaluate(self, model: PreTrainedModel) -> dict[str, float]:
        """How right the model is on examples that training never shows."""

    @abstractmethod
    def probe(self) -> Probe:
        """The example that is watched."""

    def tokenizer(self) -> PreTrainedTokenizerBase | None:
        """What turns text into this task's ids, or None where people do not write them."""
        return None

    def order_blind(self) -> dict[str, float]:
        """The accuracy of the best answer that ignores order, for each entry of `evaluate` that has one."""
        return {}

    def __repr__(self) -> str:
        return f"<task {self.name}>"


@dataclass(frozen=True)
class Question:
    """A sentence with one [MASK], the word that belongs there, and (place, part) of the words that play one."""

    kind: str
    tokens: tuple[str, ...]
    answer: str
    tags: tuple[tuple[int, str], ...] = ()
    pair: int = field(default=-1, compare=False)  # a question and its mirror share this number

    @property
    def place(self) -> int:
        """Where the [MASK] is."""
        return self.tokens.index(MASK)


def order_blind(examples: Iterable[tuple[Iterable[Hashable], Hashable]]) -> float:
    """The accuracy of the best function from the multiset of tokens to an answer, on exactly these examples.

    examples: (tokens, answer). For each multiset the best function gives the answer that is most often right.
    """
    answers: dict[frozenset, Counter] = defaultdict(Counter)
    for tokens, answer in examples:
        answers[frozenset(Counter(tokens).items())][answer] += 1
    total = sum(sum(counts.values()) for counts in answers.values())
    return sum(max(counts.values()) for counts in answers.values()) / max(1, total)


def held_out(*key: str) -> bool:
    """Whether a pair of content words is kept for evaluation: one in five, whatever the order of the two."""
    return zlib.crc32("|".join(sorted(key)).encode()) % 5 == 0


@torch.no_grad()
def guesses(model: PreTrainedModel, inputs: dict[str, Tensor], rows: int = 256) -> Tensor:
    """The most probable answer everywhere, (row, token), computed `rows` at a time on the model's device."""
    device, found = next(model.parameters()).device, []
    total = len(next(iter(inputs.values())))
    for start in range(0, total, rows):
        part = {name: tensor[start : start + rows].to(device) for name, tensor in inputs.items()}
        found.append(model(**part).logits.argmax(-1).cpu())
    return torch.cat(found)
