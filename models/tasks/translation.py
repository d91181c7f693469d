"""A toy translation, English to Chinese, whose word order differs: cross-attention has to find each word.

    this old dog near the cat chased that fox yesterday
    昨天 猫 旁边 的 这 只 老 狗 追 了 那 只 狐狸

Time goes to the front, "near the cat" before its noun, a passive verb to the end, and a measure word appears
that depends on the noun. Every Chinese word knows which English word it comes from.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from ..decoder import EncoderDecoderConfig, EncoderDecoderForTranslation, translate
from ..vocabulary import CLS, PAD, SEP, TRANSLATION, TRANSLATIONS
from ..words import whole_word_tokenizer
from .grammar import Chinese
from .sentences import reading
from .task import IGNORED, Batch, Probe, Recipe, Task, held_out, order_blind

IDS = {word: i for i, word in enumerate(TRANSLATION)}
ROOM = 32
NOUNS = tuple(TRANSLATIONS["noun"])
MEANINGS = frozenset(word for words in TRANSLATIONS.values() for word in words.values())


@dataclass(frozen=True)
class Sentence:
    """English, Chinese, and for each Chinese word the place of the English one that it comes from."""

    english: tuple[str, ...]
    chinese: tuple[str, ...]
    origin: tuple[int, ...]
    key: tuple[str, str]


def sentence(r: Random) -> Sentence:
    """A scene in both languages."""
    english: list[str] = []

    def say(kind: str, word: str) -> tuple[str, int]:
        """Says an English word; returns its Chinese one and where it comes from."""
        english.append(word)
        return TRANSLATIONS[kind][word], len(english) - 1

    def any_of(kind: str) -> tuple[str, int]:
        return say(kind, r.choice(list(TRANSLATIONS[kind])))

    def phrase(noun: str, beside: str | None) -> list[tuple[str, int]]:
        which = r.choice(["the", "this", "that"])
        english.append(which)
        at = len(english) - 1
        quality = [any_of("adjective")] if r.random() < 0.35 else []
        chinese, where = say("noun", noun)
        counted = []
        if which != "the":
            counted = [("这" if which == "this" else "那", at), (Chinese.MEASURES.get(chinese, "位"), where)]
        place = []
        if beside:
            preposition = any_of("place")
            english.append("the")
            place = [say("noun", beside), preposition, ("的", preposition[1])]
        return [*place, *counted, *quality, (chinese, where)]

    a, b, c = r.sample(NOUNS, 3)
    passive, beside = r.random() < 0.5, r.random()
    first = phrase(a, c if beside < 0.35 else None)
    if passive:
        english.append("was")
    verb, at = any_of("verb")
    by = len(english)
    if passive:
        english.append("by")
    second = phrase(b, c if 0.35 <= beside < 0.5 else None)
    time = [any_of("time")] if r.random() < 0.5 else []
    did = [(verb, at), ("了", at)]
    body = [*first, ("被", by), *second, *did] if passive else [*first, *did, *second]
    chinese, origin = zip(*time, *body, strict=True)
    return Sentence(tuple(english), chinese, origin, (a, b))


def sentences(count: int, seed: int, evaluation: bool) -> list[Sentence]:
    """Seeded sentences; the two nouns of an evaluation sentence never met in training."""
    r = Random(seed)
    found: list = []
    while len(found) < count:
        made = sentence(r)
        if held_out(*made.key) == evaluation:
            found.append(made)
    return found


class Translation(Task):
    """English in, Chinese out, word by word."""

    name = "translator"
    metric = "sentences"
    evaluated = "500 sentences about pairs of nouns that training never shows"
    recipe = Recipe(steps=1000)

    def model(self, **choices: Any) -> EncoderDecoderForTranslation:
        sizes = {"d_model": 64, "num_heads": 4, "num_layers": 1, "d_ff": 128, "max_positions": ROOM}
        own = {"bos_token_id": IDS[CLS], "eos_token_id": IDS[SEP]}
        config = EncoderDecoderConfig(vocab_size=len(TRANSLATION), **{**sizes, **own, **choices})
        return EncoderDecoderForTranslation(config)

    def tokenizer(self) -> PreTrainedTokenizerFast:
        return whole_word_tokenizer(TRANSLATION, ROOM)

    @functools.cached_property
    def training(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Source and target ids, (row, token)."""
        return _tables(sentences(20_000, 1000, False))

    @functools.cached_property
    def evaluation(self) -> list[Sentence]:
        """Sentences about pairs of nouns that training never shows."""
        return sentences(500, 7, True)

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        source, target = self.training
        rows = torch.randint(len(source), (size,), generator=generator)
        source, target = source[rows], target[rows]
        return Batch(
            {**reading(source), "decoder_input_ids": target[:, :-1]},
            target[:, 1:].masked_fill(target[:, 1:] == IDS[PAD], IGNORED),
        )

    def evaluate(self, model: Any) -> dict[str, float]:
        """sentences: the share that is right word for word. aligned: of the Chinese words with a meaning of their
        own, the share for which cross-attention (the mean over heads) looks most at the word it comes from."""
        device = next(model.parameters()).device
        source, _ = _tables(self.evaluation)
        inputs = {name: tensor.to(device) for name, tensor in reading(source).items()}
        said = translate(model, **inputs, most=ROOM - 1).tolist()
        right = [_until_end(row) == made.chinese for row, made in zip(said, self.evaluation, strict=True)]
        aligned = self.aligned(model)
        found = {"sentences": sum(right) / len(right)}
        return found if aligned is None else {**found, "aligned": aligned}

    def aligned(self, model: PreTrainedModel) -> float | None:
        """The alignment of the last layer's cross-attention; None where a fused kernel keeps its weights to itself."""
        if not model.config._attn_implementation.endswith("eager"):
            return None
        made = self.evaluation
        source, target = _tables(made)
        inputs = {**reading(source), "decoder_input_ids": target[:, :-1]}
        device = next(model.parameters()).device
        out = model(**{name: t.to(device) for name, t in inputs.items()}, output_attentions=True)
        if not out.cross_attentions:
            return None
        looks = out.cross_attentions[-1].mean(1).argmax(-1).tolist()  # (row, word)
        hits = [
            looks[row][word] == origin + 1  # the English sentence stands after [CLS]
            for row, s in enumerate(made)
            for word, origin in enumerate(s.origin)
            if s.chinese[word] in MEANINGS
        ]
        return sum(hits) / len(hits)

    def order_blind(self) -> dict[str, float]:
        """Of sentences and their mirrors, in which the two nouns have changed places."""
        return {"sentences": order_blind(_mirrored(self.evaluation))}

    def probe(self) -> Probe:
        made = next(s for s in self.evaluation if 8 <= len(s.english) <= 10 and "by" in s.english)
        source, target = _tables([made])
        written = (CLS, *made.chinese)
        inputs = {**reading(source), "decoder_input_ids": target[:, :-1]}
        return Probe(inputs, (CLS, *made.english, SEP), written)


def _tables(made: list[Sentence]) -> tuple[torch.Tensor, torch.Tensor]:
    return _table([s.english for s in made]), _table([s.chinese for s in made])


def _table(texts: list[tuple[str, ...]]) -> torch.Tensor:
    rows = [[IDS[word] for word in (CLS, *text, SEP)] for text in texts]
    length = max(map(len, rows))
    return torch.tensor([row + [IDS[PAD]] * (length - len(row)) for row in rows])


def _until_end(row: list[int]) -> tuple[str, ...]:
    words = [TRANSLATION[i] for i in row[1:]]
    return tuple(words[: words.index(SEP)] if SEP in words else words)


def _mirrored(made: list[Sentence]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Each sentence, and the one in which its two nouns have changed places: the same English words."""
    found = []
    for s in made:
        a, b = s.key
        swap = {a: b, b: a}
        x, y = TRANSLATIONS["noun"][a], TRANSLATIONS["noun"][b]
        other = {x: y, y: x}
        found.append((s.english, s.chinese))
        found.append((tuple(swap.get(w, w) for w in s.english), tuple(other.get(w, w) for w in s.chinese)))
    return found
