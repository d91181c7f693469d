"""What exercises measure with: vectors, accuracies and the stages of attention, without and with a plan."""

import functools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from models.tasks import IGNORED, Question
from models.tasks.grammar import ASKED, questions
from models.tasks.sentences import Table, reading
from models.vocabulary import CHINESE, ENGLISH
from surgery import answers, theatre
from surgery.capture import Keep, Site
from surgery.plan import Plan
from surgery.reading import batch, read

WORDS = {"en": ENGLISH, "zh": CHINESE}


def vectors(patient: Any, texts: Sequence[str], plan: Plan) -> Tensor:
    """The mean of each text's last token vectors, (text, width)."""
    hidden, real = states(patient, texts, plan)
    return answers.pool(hidden, real)


def states(patient: Any, texts: Sequence[str], plan: Plan) -> tuple[Tensor, Tensor]:
    """The last hidden states (text, token, width) and which tokens are real (text, token)."""
    _, inputs = batch(patient, [read(patient, text) for text in texts])
    with torch.inference_mode(), theatre.in_eval(patient.model), theatre.run(patient.model, [plan]):
        out = patient.model(**inputs, output_hidden_states=True)
    return out.hidden_states[-1].float().cpu(), inputs["attention_mask"].bool().cpu()


@functools.lru_cache(maxsize=32)
def examples(lang: str, seed: int, pairs: int = 60, kinds: tuple[str, ...] = ASKED) -> Table:
    """Mirrored pairs of questions about words that met in no training sentence, drawn with `seed`."""
    asked = questions(lang, pairs, 7000 + seed, True, kinds)
    return Table(asked, {word: i for i, word in enumerate(WORDS[lang])})


@dataclass(frozen=True)
class Answers:
    """Which answers were right: bool, (question,); the mean over the kinds of question; the share of mirrored pairs of
    which both are right."""

    right: Tensor
    said: tuple[str, ...]
    mean: float
    by_kind: dict[str, float]
    pairs: float


def ask(patient: Any, table: Table, lang: str, plan: Plan, pad_to: int = 0) -> Answers:
    """Asks a masked language model the questions of a table. pad_to: pads to so many tokens."""
    ids = torch.nn.functional.pad(table.ids, (0, max(0, pad_to - table.ids.shape[1])))
    inputs = {name: value.to(patient.device) for name, value in reading(ids).items()}
    with torch.inference_mode(), theatre.in_eval(patient.model), theatre.run(patient.model, [plan]):
        guesses = patient.model(**inputs).logits.argmax(-1).cpu()[:, : table.ids.shape[1]]
    at = table.answers != IGNORED
    right = (guesses == table.answers)[at]
    by_kind = {kind: right[table.of(kind)].float().mean().item() for kind in _kinds(table.questions)}
    return Answers(
        right,
        tuple(WORDS[lang][i] for i in guesses[at].tolist()),
        sum(by_kind.values()) / len(by_kind),
        by_kind,
        (right[::2] & right[1::2]).float().mean().item(),
    )


def _kinds(asked: Sequence[Question]) -> list[str]:
    return list(dict.fromkeys(question.kind for question in asked))


def sites(patient: Any, inputs: dict[str, Tensor], plan: Plan) -> dict[int, Site]:
    """Every layer's scores, weights and output for (row, token) inputs."""
    keep = Keep()
    inputs = {name: value.to(patient.device) for name, value in inputs.items()}
    scope = theatre.run(patient.model, [plan], witnesses=keep)
    with torch.inference_mode(), theatre.in_eval(patient.model), scope:
        patient.model(**inputs)
    return keep.sites


def draw(seed: int) -> random.Random:
    """The random numbers of a set of examples."""
    return random.Random(9000 + seed)
