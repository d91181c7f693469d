"""What a run says at its end: where the model answers, its best answers, and how they changed."""

import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from bilingual import SurgeryError
from surgery import metrics
from surgery.reading import Reading, after_space, labels

TOP = 10


class TruthError(SurgeryError):
    """A right answer that the model could not give."""


def sites(patient: Any, reading: Reading, logits: Tensor | None) -> list[tuple[dict[str, Any], Tensor]]:
    """Where the model says something: ({"kind", "position"}, logits (class,)).

    logits: (token, class), or (class,) of a classifier; None from a bare encoder, which says nothing.
    """
    if logits is None or patient.kind == "encoder":
        return []
    if patient.kind == "classifier":
        return [({"kind": "class", "position": None}, logits)]
    if patient.kind == "causal_lm":
        last = reading.kept - 1
        return [({"kind": "next", "position": last}, logits[last])]
    return [({"kind": "mask", "position": at}, logits[at]) for at in reading.masks]


def best(patient: Any, logits: Tensor) -> list[tuple[str, float]]:
    """The TOP most probable (label, probability) of (class,), most probable first."""
    found = logits.double().softmax(-1).topk(min(TOP, logits.numel()))
    if patient.kind == "classifier":
        names: Sequence[str] = [patient.labels[i] for i in found.indices.tolist()]
    else:
        names = labels(patient.tokenizer, found.indices.tolist())
    return list(zip(names, found.values.tolist(), strict=True))


def pool(hidden: Tensor, real: Tensor) -> Tensor:
    """The mean of the real tokens' vectors: (row, token, width), bool (row, token) -> (row, width)."""
    keep = real[..., None].to(hidden.dtype)
    return (hidden * keep).sum(1) / keep.sum(1)


def judged(lines: Sequence[str]) -> tuple[list[str], list[list[str]] | None]:
    """Texts and their right answers from lines "text => answer", a tab serving as well; of several [MASK]s the answers
    stand behind one another, with spaces. None where no line has one. Raises TruthError where only some have.
    """
    parts = [re.split(r"\t|\s=>\s", line.strip(), maxsplit=1) for line in lines]
    with_answer = sum(len(part) > 1 for part in parts)
    if with_answer not in (0, len(parts)):
        raise TruthError(
            f"{with_answer} of {len(parts)} texts have a right answer: give all of them one, or none.",
            f"{len(parts)} 个文本中 {with_answer} 个有正确答案：请全部给出，或都不给。",
        )
    return [part[0] for part in parts], [part[1].split() for part in parts] if with_answer else None


def truths(patient: Any, reading: Reading, truth: str | Sequence[str]) -> list[int]:
    """The right answer at each site as the number of its class: a word for each [MASK] or next token, or a label.

    Raises TruthError where answers and sites differ in number, and for a word that is not one token or no label.
    """
    words = [truth] if isinstance(truth, str) else list(truth)
    words = (
        [" ".join(words)] if patient.kind == "classifier" and words else words
    )  # a label may be several words
    asked = len(reading.masks) if patient.kind == "masked_lm" else 0 if patient.kind == "encoder" else 1
    if len(words) != asked:
        raise TruthError(
            f"{patient.name} answers {asked} times in {reading.text!r:.60}, and {len(words)} right answers were given: "
            "give one for each [MASK], or one for the next token or the class.",
            f"{patient.name} 在 {reading.text!r:.60} 中回答 {asked} 次，而给出了 {len(words)} 个正确答案：每个 [MASK] 一个，"
            "或为下一个词元、类别各给一个。",
        )
    spaced = after_space(patient, reading.text)[: len(words)]
    return [_class(patient, word, space) for word, space in zip(words, spaced, strict=True)]


def _class(patient: Any, word: str, spaced: bool) -> int:
    if patient.kind == "classifier":
        found = [number for number, label in patient.labels.items() if label == word]
    else:  # pieces of bytes hold the space before them: "cat" and " cat" are two tokens
        spellings = (" " + word, word) if spaced else (word,)
        coded = (patient.tokenizer(s, add_special_tokens=False)["input_ids"] for s in spellings)
        found = next((ids for ids in coded if len(ids) == 1), [])
        found = [i for i in found if i != patient.tokenizer.unk_token_id]
    if not found:
        raise TruthError(
            f"{word!r} is not one of the answers that {patient.name} can give: a right answer is one token, or a label.",
            f"{word!r} 不是 {patient.name} 能给出的答案：正确答案须是一个词元，或一个类别名。",
        )
    return int(found[0])


def changes(
    patient: Any,
    reading: Reading,
    before: tuple[Tensor, Tensor | None],
    after: tuple[Tensor, Tensor | None],
    truth: Sequence[int] | None = None,
) -> dict[str, Any]:
    """How the end of a run changed. before, after: (last hidden state (token, width), logits as for `sites`).

    token_cosine: mean over the real tokens; sentence_cosine: of their means; relative_l2: of all of them together;
    sites: per answer the KL divergence (nats), whether the first answer changed, the overlap of the first five; with `truth`
    (see `truths`) also loss (-ln of the right answer's probability, nats) and accuracy (1 if it comes first), each run's.
    """
    (old, old_logits), (new, new_logits) = before, after
    keep = torch.tensor([kind != "padding" for kind in reading.kinds])
    old, new = old[keep], new[keep]
    cosines = metrics.cosine(old, new)
    said = list(zip(sites(patient, reading, old_logits), sites(patient, reading, new_logits), strict=True))
    right = [None] * len(said) if truth is None else truth
    return {
        "token_cosine": float(metrics.mean(cosines)),
        "token_cosines": cosines.tolist(),
        "sentence_cosine": float(metrics.cosine(old.mean(0), new.mean(0))),
        "relative_l2": float(metrics.relative_l2(new.flatten(), old.flatten())),
        "sites": [
            {**where, **_answer(p, q), **_score(p, q, number)}
            for ((where, p), (_, q)), number in zip(said, right, strict=True)
        ],
    }


def _answer(old: Tensor, new: Tensor) -> dict[str, Any]:
    p, q = old.double().softmax(-1), new.double().softmax(-1)
    return {
        "kl": float(metrics.kl_divergence(p, q)),
        "top1_changed": bool(p.argmax() != q.argmax()),
        "top5_overlap": metrics.top_k_overlap(p, q, 5),
    }


def _score(old: Tensor, new: Tensor, right: int | None) -> dict[str, float]:
    if right is None:
        return {}
    return {
        "loss_baseline": float(-old.double().log_softmax(-1)[right]),
        "loss": float(-new.double().log_softmax(-1)[right]),
        "accuracy_baseline": float(old.argmax() == right),
        "accuracy": float(new.argmax() == right),
    }
