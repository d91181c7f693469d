"""The mini-grammars as one task for one masked language model.

At a [MASK] it answers the question, at any other word it names the part that the word plays: one head, one
vocabulary, five measures.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from ..encoder import EncoderConfig, EncoderForMaskedLM
from ..vocabulary import MASK, PAD, SPECIALS
from ..words import whole_word_tokenizer
from .grammar import ASKED, GRAMMARS, KINDS, questions
from .task import IGNORED, Batch, Probe, Question, Task, guesses, order_blind

# What is harder to learn gets more of the batch.
MIX = ("role", "review", "agree", "review", "role", "reflex", "review")
PAIRS = 12_000
HELD_OUT_PAIRS = 1_200
ROOM = 64


class Sentences(Task):
    """Questions in one language, each at a [MASK], and the parts of words; three rows in ten mask words at random."""

    metric = "mean"
    evaluated = "1,200 mirrored pairs of questions about pairs of words that training never shows"
    masked_rows, masked_words, masked_weight = 0.3, 0.18, 0.3

    def __init__(self, name: str, lang: str = "en", kinds: Sequence[str] = KINDS):
        self.name, self.lang, self.kinds = name, lang, tuple(kinds)
        self.asked = tuple(kind for kind in ASKED if kind in kinds) or ASKED
        self.words = GRAMMARS[lang].words
        self.ids = {word: i for i, word in enumerate(self.words)}

    def model(self, **choices: Any) -> EncoderForMaskedLM:
        sizes = {"d_model": 64, "num_heads": 4, "num_layers": 2, "d_ff": 128, "max_positions": ROOM}
        return EncoderForMaskedLM(EncoderConfig(vocab_size=len(self.words), **{**sizes, **choices}))

    def tokenizer(self) -> PreTrainedTokenizerFast:
        return whole_word_tokenizer(self.words, ROOM)

    @functools.cached_property
    def training(self) -> Table:
        """What is trained on: half as many questions again, since most have a mirror."""
        mix = [kind for kind in MIX if kind in self.asked]
        return Table(questions(self.lang, PAIRS, 1000, False, mix), self.ids)

    @functools.cached_property
    def evaluation(self) -> Table:
        """Questions and mirrors about content pairs that training never shows."""
        return Table(questions(self.lang, HELD_OUT_PAIRS, 7, True, self.asked), self.ids)

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        table = self.training
        rows = torch.randint(len(table.ids), (size,), generator=generator)
        length = int((table.ids[rows] != 0).sum(1).max())
        ids, answers, tags = (part[rows, :length] for part in (table.ids, table.answers, table.tags))
        masked = (torch.rand(size, generator=generator) < self.masked_rows)[:, None]
        ids = torch.where(masked & (answers != IGNORED), answers, ids)  # the answer is put back, and then
        hit = torch.rand(ids.shape, generator=generator) < self.masked_words  # words are masked at random
        hit &= masked & (ids >= len(SPECIALS))
        side = ids.masked_fill(~hit, IGNORED)
        inputs = reading(ids.masked_fill(hit, self.ids[MASK]))
        answers, tags = answers.masked_fill(masked, IGNORED), tags.masked_fill(masked, IGNORED)
        if "tags" not in self.kinds:
            return Batch(inputs, answers, ((side, self.masked_weight),))
        if self.kinds == ("tags",):
            return Batch(inputs, tags, ((side, self.masked_weight),))
        return Batch(inputs, answers, ((tags, 1.0), (side, self.masked_weight)))

    def evaluate(self, model: PreTrainedModel) -> dict[str, float]:
        """Accuracy by kind, their mean, and the share of pairs of which both are right."""
        return self.judge(*self.right(model))

    def judge(self, right: Tensor, tagged: Tensor) -> dict[str, float]:
        """The measures, from what `right` found."""
        table, found = self.evaluation, {}
        for kind in self.kinds:
            answers = tagged if kind == "tags" else right[table.of(kind)]
            found[kind] = answers.float().mean().item()
        found["mean"] = sum(found.values()) / len(found)
        found["pairs"] = (right[::2] & right[1::2]).float().mean().item()
        return found

    def right(self, model: PreTrainedModel, pad_to: int = 0) -> tuple[Tensor, Tensor]:
        """For each question of the evaluation, and for each tag, whether the most probable word is right."""
        table = self.evaluation
        ids = torch.nn.functional.pad(table.ids, (0, max(0, pad_to - table.ids.shape[1])))
        said = guesses(model, reading(ids))[:, : table.ids.shape[1]]
        at, tagged = table.answers != IGNORED, table.tags != IGNORED
        return (said == table.answers)[at], (said == table.tags)[tagged]

    def order_blind(self) -> dict[str, float]:
        asked = self.evaluation.questions
        best = {
            kind: order_blind((q.tokens, q.answer) for q in asked if q.kind == kind)
            for kind in self.kinds
            if kind != "tags"
        }
        if "tags" in self.kinds:
            best["tags"] = order_blind(
                ((*q.tokens, ("asked", q.tokens[place])), tag) for q in asked for place, tag in q.tags
            )
        return {**best, "mean": sum(best.values()) / len(best), "pairs": 0.0}

    def probe(self) -> Probe:
        question = next(q for q in self.evaluation.questions if q.kind == self.asked[0])
        ids = torch.tensor([[self.ids[word] for word in question.tokens]])
        return Probe(reading(ids), question.tokens)


class Table:
    """Questions as tensors, (row, token): ids, answers at the [MASK], tags at the words that have one."""

    def __init__(self, asked: list[Question], ids: dict[str, int]):
        self.questions = asked
        length = max(len(q.tokens) for q in asked)
        rows = [[ids[w] for w in q.tokens] + [ids[PAD]] * (length - len(q.tokens)) for q in asked]
        self.ids = torch.tensor(rows)
        self.answers, self.tags = (torch.full_like(self.ids, IGNORED) for _ in range(2))
        for row, q in enumerate(asked):
            self.answers[row, q.place] = ids[q.answer]
            for place, tag in q.tags:
                self.tags[row, place] = ids[tag]

    def of(self, kind: str) -> Tensor:
        """The rows of one kind."""
        return torch.tensor([i for i, q in enumerate(self.questions) if q.kind == kind])


def reading(ids: Tensor) -> dict[str, Tensor]:
    """A model's inputs: the ids, and where they are not padding."""
    return {"input_ids": ids, "attention_mask": (ids != 0).long()}
