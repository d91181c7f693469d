"""A decoder goes on writing, without and with surgery."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor

from bilingual import SurgeryError
from surgery import theatre
from surgery.operation import Operation, Step
from surgery.plan import Plan
from surgery.reading import Text, labels, read


class WritingError(SurgeryError):
    """Writing that this model, or these options, cannot do."""


@dataclass(frozen=True)
class Written:
    """What a decoder wrote after `text`: tokens as people read them, and the text of each run.

    parted: the number of tokens that both runs wrote alike before they differed, None where they never did.
    """

    text: str
    baseline_tokens: tuple[str, ...]
    operated_tokens: tuple[str, ...]
    baseline: str
    operated: str
    parted: int | None


def generate(
    patient: Any,
    text: Text,
    plan: Plan | Operation | Step | None = None,
    *,
    tokens: int = 40,
    temperature: float = 0.0,
    seed: int = 0,
) -> Written:
    """Lets a decoder continue `text` by up to `tokens` tokens, without and with `plan`.

    temperature: of the output's softmax (not attention's); 0 takes the most probable token. Both runs draw with the same random
    numbers (argmax of logits / temperature + Gumbel noise; Maddison et al. 2014), so they part only where surgery makes them.
    Every step reads the whole text again, under the whole plan: no cache can keep what surgery would change. Random operations
    start from their seed at each step.

    Raises WritingError for a model that does not write, and what `compare` raises.
    """
    if patient.kind != "causal_lm":
        raise WritingError(
            f"{patient.name} does not write: give a decoder, such as characters.",
            f"{patient.name} 不会续写：请用解码器，例如 characters。",
        )
    if isinstance(tokens, bool) or not isinstance(tokens, Integral) or tokens < 1:
        raise WritingError(
            f"tokens = {tokens!r} is not possible: give a whole number from 1.",
            f"tokens = {tokens!r} 不可用：请给不小于 1 的整数。",
        )
    if isinstance(temperature, bool) or not isinstance(temperature, Real) or not 0 <= temperature <= 1e4:
        raise WritingError(
            f"temperature = {temperature!r} is not possible: give a number from 0 to 10000.",
            f"temperature = {temperature!r} 不可用：请给 0 到 10000 之间的数。",
        )
    if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= seed < 2**31:
        raise WritingError(
            f"seed = {seed!r} is not possible: give a whole number from 0 to {2**31 - 1}.",
            f"seed = {seed!r} 不可用：请给 0 到 {2**31 - 1} 之间的整数。",
        )
    plan = Plan() if plan is None else Plan(plan)
    ids = _open(patient, read(patient, text).ids)
    room = min(tokens, patient.max_tokens - len(ids))
    if room < 1:
        raise WritingError(
            f"{patient.name} holds {patient.max_tokens} tokens and the text fills them: shorten it.",
            f"{patient.name} 最多容纳 {patient.max_tokens} 个词元，文本已占满：请缩短。",
        )
    draw = (float(temperature), int(seed))
    operated = _write(patient, ids, plan, room, draw)  # what cannot be done fails here
    baseline = _write(patient, ids, Plan(), room, draw)
    both = [labels(patient.tokenizer, run) for run in (baseline, operated)]
    alike = next((i for i, (a, b) in enumerate(zip(baseline, operated, strict=False)) if a != b), None)
    if alike is None and len(baseline) != len(operated):
        alike = min(len(baseline), len(operated))
    said = [patient.tokenizer.decode(run, skip_special_tokens=True) for run in (baseline, operated)]
    return Written(text if isinstance(text, str) else " ".join(text), *both, *said, alike)


def _open(patient: Any, ids: tuple[int, ...]) -> list[int]:
    """The ids without what closes a text."""
    closing = {patient.tokenizer.eos_token_id, patient.tokenizer.sep_token_id} - {None}
    found = list(ids)
    while len(found) > 1 and found[-1] in closing:
        found.pop()
    return found


def _noise(classes: int, random: torch.Generator) -> Tensor:
    uniform = torch.rand(classes, dtype=torch.float64, generator=random)
    return -(-uniform.clamp_min(1e-300).log()).log()


def _write(patient: Any, ids: list[int], plan: Plan, room: int, draw: tuple[float, int]) -> list[int]:
    """The ids of up to `room` new tokens. draw: temperature and seed; the same numbers at the same step whatever was written."""
    temperature, seed = draw
    random = torch.Generator().manual_seed(seed)
    takes = inspect.signature(patient.model.forward).parameters
    options = {"use_cache": False} if "use_cache" in takes else {}
    new: list[int] = []
    for _ in range(room):
        given = torch.tensor([ids + new], device=patient.device)
        scope = theatre.run(patient.model, [plan], name=patient.name)
        with torch.inference_mode(), theatre.in_eval(patient.model), scope:
            logits = patient.model(input_ids=given, attention_mask=torch.ones_like(given), **options).logits
        last = logits[0, -1].double().cpu()
        new.append(int((last + temperature * _noise(len(last), random)).argmax()))
        if new[-1] == patient.tokenizer.eos_token_id:
            break
    return new
