"""What exercises measure with: vectors, accuracies and the stages of attention, without and with a plan."""

import functools
import random
import weakref
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from models.tasks import IGNORED, Question
from models.tasks.grammar import ASKED, questions
from models.tasks.sentences import Table, reading
from models.vocabulary import CHINESE, CHINESE_CLASSES, CLS, ENGLISH, ENGLISH_CLASSES, PAD, SEP
from surgery import answers, theatre
from surgery.capture import Keep, Site
from surgery.operation import Operation
from surgery.plan import Plan
from surgery.reading import batch, read

WORDS = {"en": ENGLISH, "zh": CHINESE}
ENCODERS = {"en": "encoder", "zh": "encoder-zh"}
NOUNS = {
    lang: [word for kind in ("man", "woman", "animal") for word in classes[kind]]
    for lang, classes in (("en", ENGLISH_CLASSES), ("zh", CHINESE_CLASSES))
}
MIRRORED = {
    "en": (
        "the queen called the man [SEP] who did it ? [MASK]",
        "the man called the queen [SEP] who did it ? [MASK]",
    ),
    "zh": ("猫被狗打败了[SEP]是谁做的？[MASK]", "狗被猫打败了[SEP]是谁做的？[MASK]"),
}
"""A question to each encoder about a sentence, and the same about its mirror."""


def scoped(patient: Any, plan: Plan, **options: Any) -> AbstractContextManager:
    """A scope of a plan over a patient, whose name errors give."""
    return theatre.run(patient.model, [plan], name=patient.name, **options)


def vectors(patient: Any, texts: Sequence[str], plan: Plan) -> Tensor:
    """The mean of each text's last token vectors, (text, width)."""
    hidden, real = states(patient, texts, plan)
    return answers.pool(hidden, real)


def states(patient: Any, texts: Sequence[str], plan: Plan) -> tuple[Tensor, Tensor]:
    """The last hidden states (text, token, width) and which tokens are real (text, token)."""
    _, inputs = batch(patient, [read(patient, text) for text in texts])
    with torch.inference_mode(), theatre.in_eval(patient.model), scoped(patient, plan):
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


def ask(patient: Any, table: Table, lang: str, plan: Plan, pad_to: int | None = 0) -> Answers:
    """Asks a masked language model the questions of a table.

    pad_to: pads to so many tokens, at least to the longest question; None: no padding at all, questions of one length
    run together.
    """
    width = table.ids.shape[1]
    ids = torch.nn.functional.pad(table.ids, (0, max(0, (pad_to or 0) - width)))
    lengths = (table.ids != 0).sum(1)
    groups = (
        [torch.arange(len(ids))]
        if pad_to is not None
        else [(lengths == n).nonzero()[:, 0] for n in lengths.unique()]
    )
    guesses = torch.zeros_like(table.ids)
    for group in groups:
        some = ids[group] if pad_to is not None else ids[group, : int(lengths[group[0]])]
        inputs = {name: value.to(patient.device) for name, value in reading(some).items()}
        with torch.inference_mode(), theatre.in_eval(patient.model), scoped(patient, plan):
            said = patient.model(**inputs).logits.argmax(-1).cpu()[:, :width]
        guesses[group, : said.shape[1]] = said
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
    scope = scoped(patient, plan, witnesses=keep)
    with torch.inference_mode(), theatre.in_eval(patient.model), scope:
        patient.model(**inputs)
    return keep.sites


def draw(seed: int) -> random.Random:
    """The random numbers of a set of examples."""
    return random.Random(9000 + seed)


_seen: weakref.WeakKeyDictionary[torch.nn.Module, dict[Hashable, Any]] = weakref.WeakKeyDictionary()


def remembered(patient: Any, key: Hashable, make: Callable[[], Any]) -> Any:
    """What `make()` measured on this very model: without surgery it never changes, so it is measured once."""
    kept = _seen.setdefault(patient.model, {})
    if key not in kept:
        if len(kept) >= 64:
            kept.clear()
        kept[key] = make()
    return kept[key]


def unoperated(run: Callable[[Plan], Any], patient: Any, lang: str, seed: int) -> Any:
    """`run(Plan())` of an exercise, measured once for each set of examples."""
    return remembered(patient, (run.__module__, lang, seed), lambda: run(Plan()))


def rows(lang: str, texts: Sequence[Sequence[str]]) -> dict[str, Tensor]:
    """An encoder's inputs for lists of its own words, each between [CLS] and [SEP]."""
    ids = {word: i for i, word in enumerate(WORDS[lang])}
    lists = [[ids[word] for word in (CLS, *text, SEP)] for text in texts]
    longest = max(map(len, lists))
    return reading(torch.tensor([row + [ids[PAD]] * (longest - len(row)) for row in lists]))


def hidden(patient: Any, inputs: dict[str, Tensor], plan: Plan) -> Tensor:
    """All hidden states, (layer + 1, row, token, width); 0 is the embeddings."""
    inputs = {name: value.to(patient.device) for name, value in inputs.items()}
    with torch.inference_mode(), theatre.in_eval(patient.model), scoped(patient, plan):
        out = patient.model(**inputs, output_hidden_states=True)
    return torch.stack([h.float().cpu() for h in out.hidden_states])


def stacked(found: dict[int, Site], name: str) -> Tensor:
    """One tensor of every layer's site, (layer, row, head, query, ...)."""
    return torch.stack([getattr(found[layer], name).cpu() for layer in sorted(found)])


def permitted(found: dict[int, Site]) -> Tensor:
    """Which pairs every layer permits: bool, (layer, row, head, query, key)."""
    layers = [found[layer] for layer in sorted(found)]
    return torch.stack([(s.scores == s.scores if s.allowed is None else s.allowed).cpu() for s in layers])


def by_head(values: Tensor, real: Tensor) -> Tensor:
    """The mean over real queries, (layer, head), of values (layer, row, head, query) that are defined there."""
    keep = real[None, :, None, :].expand(values.shape)
    kept = values.where(keep, torch.nan).transpose(1, 2).flatten(2)  # (layer, head, row * query)
    return kept.nanmean(-1)


def touched(patient: Any, plan: Plan, *names: str) -> frozenset:
    """The (layer, head) cells that a plan's steps reach; names: of these operations only."""
    anatomy = theatre.admit(patient.model)
    cells: frozenset = frozenset()
    for step in plan:
        if not names or step.operation.name in names:
            cells |= step.selection.cells(anatomy.layers, anatomy.heads, patient.name)
    return cells


def reseeded(plan: Plan, by: int) -> Plan:
    """The same plan with other random draws."""
    return Plan(
        *(
            replace(step, operation=_redrawn(step.operation, by)) if step.operation.stochastic else step
            for step in plan
        )
    )


def _redrawn(operation: Operation, by: int) -> Operation:
    seed = (operation.values["seed"] + 101 * by) % 2**31
    return replace(operation, seed=seed)  # type: ignore[call-arg]
