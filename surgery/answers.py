"""What a run says at its end: where the model answers, its best answers, and how they changed."""

from typing import Any

import torch
from torch import Tensor

from surgery import metrics
from surgery.reading import Reading, labels

TOP = 10


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
        names = [patient.labels[i] for i in found.indices.tolist()]
    else:
        names = labels(patient.tokenizer, found.indices.tolist())
    return list(zip(names, found.values.tolist(), strict=True))


def pool(hidden: Tensor, real: Tensor) -> Tensor:
    """The mean of the real tokens' vectors: (row, token, width), bool (row, token) -> (row, width)."""
    keep = real[..., None].to(hidden.dtype)
    return (hidden * keep).sum(1) / keep.sum(1)


def changes(
    patient: Any,
    reading: Reading,
    before: tuple[Tensor, Tensor | None],
    after: tuple[Tensor, Tensor | None],
) -> dict[str, Any]:
    """How the end of a run changed. before, after: (last hidden state (token, width), logits as for `sites`).

    token_cosine: mean over the real tokens; sentence_cosine: of their means; relative_l2: of all of them together;
    sites: per answer the KL divergence (nats), whether the first answer changed, the overlap of the first five.
    """
    (old, old_logits), (new, new_logits) = before, after
    keep = torch.tensor([kind != "padding" for kind in reading.kinds])
    old, new = old[keep], new[keep]
    cosines = metrics.cosine(old, new)
    said = zip(sites(patient, reading, old_logits), sites(patient, reading, new_logits), strict=True)
    return {
        "token_cosine": float(metrics.mean(cosines)),
        "token_cosines": cosines.tolist(),
        "sentence_cosine": float(metrics.cosine(old.mean(0), new.mean(0))),
        "relative_l2": float(metrics.relative_l2(new.flatten(), old.flatten())),
        "sites": [{**where, **_answer(p, q)} for (where, p), (_, q) in said],
    }


def _answer(old: Tensor, new: Tensor) -> dict[str, Any]:
    p, q = old.double().softmax(-1), new.double().softmax(-1)
    return {
        "kl": float(metrics.kl_divergence(p, q)),
        "top1_changed": bool(p.argmax() != q.argmax()),
        "top5_overlap": metrics.top_k_overlap(p, q, 5),
    }
