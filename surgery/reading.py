"""Text -> tokens: what the model will read, how people read it, and what had to be said about it."""

import inspect
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import torch

from bilingual import SurgeryError, Words

Text = str | tuple[str, str]

_MASK = re.compile(r"\[mask\]|<mask>", re.IGNORECASE)
SHORTEST = 3  # a word between two special tokens
_MOST_CHARACTERS = 1_000_000
_lock = threading.Lock()  # a fast tokenizer keeps the options of its last call


class TextError(SurgeryError):
    """A text that cannot be read by this model."""


@dataclass(frozen=True)
class Reading:
    """One text as tokens.

    tokens: labels for people. kinds: "word", "special" ([CLS], [SEP] and their like) or "padding". total: how many
    tokens the whole text has; the first `kept` of them are read. unknown: (position, original characters).
    """

    text: Text
    ids: tuple[int, ...]
    segments: tuple[int, ...]
    tokens: tuple[str, ...]
    kinds: tuple[str, ...]
    separators: tuple[bool, ...]
    masks: tuple[int, ...]
    total: int
    unknown: tuple[tuple[int, str], ...]
    notices: tuple[Words, ...]

    @property
    def kept(self) -> int:
        return sum(kind != "padding" for kind in self.kinds)

    @property
    def truncated(self) -> bool:
        return self.kept < self.total


def read(patient: Any, text: Text, *, literal: bool = False, max_tokens: int | None = None) -> Reading:
    """Tokenises one text (or a pair of texts) for `patient`, cut to what the model has positions for.

    max_tokens: cut it shorter than that. literal: typed [CLS], [SEP] and [MASK] are read as characters, not as special tokens. Raises TextError for an
    empty text and for a token that the model has no embedding for.
    """
    parts = _parts(text)
    whole = isinstance(max_tokens, Integral) and not isinstance(max_tokens, bool)
    if max_tokens is not None and not (whole and max_tokens >= SHORTEST):
        raise TextError(
            f"max_tokens = {max_tokens!r} is not possible: give a whole number from {SHORTEST}.",
            f"max_tokens = {max_tokens!r} 不可用：请给不小于 {SHORTEST} 的整数。",
        )
    notices: list[Words] = []
    if not literal:
        parts = tuple(_spell_mask(patient, part, notices) for part in parts)
    with _lock:
        coded = patient.tokenizer(
            *parts,
            return_offsets_mapping=patient.tokenizer.is_fast,
            split_special_tokens=literal,
            verbose=False,
        )
    ids, total = list(coded["input_ids"]), len(coded["input_ids"])
    segments = list(coded.get("token_type_ids") or [0] * total)
    offsets = list(coded.get("offset_mapping") or [(0, 0)] * total)
    owners = coded.sequence_ids() if patient.tokenizer.is_fast else [0] * total
    kept = _kept(patient, ids, min(max_tokens or patient.max_tokens, patient.max_tokens))
    ids, segments, offsets, owners = (
        [column[i] for i in kept] for column in (ids, segments, offsets, owners)
    )
    _check_ids(patient, ids)

    bounds = _ids(patient, "cls", "sep", "bos", "eos", "pad")
    kinds = tuple("special" if i in bounds else "word" for i in ids)
    if "word" not in kinds:
        raise TextError("The text is empty: write at least one word.", "文本为空：请至少写一个词。")
    masks = _ids(patient, "mask") if patient.kind == "masked_lm" else set()
    unknown = (
        []
        if patient.tokenizer.unk_token_id is None
        else [
            (at, parts[owners[at] or 0][slice(*offsets[at])] or "?")
            for at, i in enumerate(ids)
            if i == patient.tokenizer.unk_token_id
        ]
    )
    lost = masks and sum(i in masks for i in coded["input_ids"]) > sum(i in masks for i in ids)
    reading = Reading(
        text=text,
        ids=tuple(ids),
        segments=tuple(segments),
        tokens=labels(patient.tokenizer, ids),
        kinds=kinds,
        separators=tuple(i in _ids(patient, "sep", "eos") for i in ids),
        masks=tuple(at for at, i in enumerate(ids) if i in masks),
        total=total,
        unknown=tuple(unknown),
        notices=(),
    )
    notices += _notices(patient, reading, bool(lost))
    return Reading(**{**reading.__dict__, "notices": tuple(notices)})


def padded(reading: Reading, length: int, pad: str) -> Reading:
    """The same text with padding up to `length` tokens; `pad` is the label of a padding token."""
    more = length - len(reading.ids)
    return Reading(
        **{
            **reading.__dict__,
            "tokens": reading.tokens + (pad,) * more,
            "kinds": reading.kinds + ("padding",) * more,
            "separators": reading.separators + (False,) * more,
        }
    )


def batch(
    patient: Any, readings: Sequence[Reading], pad_to: int | None = None
) -> tuple[list[Reading], dict[str, Any]]:
    """The readings padded to one length (at least `pad_to`), and the model's inputs, (row, token) each.

    Raises TextError if `pad_to` is more than the model has positions for, or less than a text needs.
    """
    length = max(len(reading.ids) for reading in readings)
    if pad_to is not None and (isinstance(pad_to, bool) or not isinstance(pad_to, Integral)):
        raise TextError(
            f"pad_to = {pad_to!r}: give a number of tokens.", f"pad_to = {pad_to!r}：请给出词元数。"
        )
    if pad_to is not None and not length <= pad_to <= patient.max_tokens:
        raise TextError(
            f"Padding to {pad_to} tokens is not possible: this text has {length}, {patient.name} takes up to {patient.max_tokens}.",
            f"无法填充到 {pad_to} 个词元：文本有 {length} 个，{patient.name} 最多 {patient.max_tokens} 个。",
        )
    length = max(length, pad_to or 0)
    tokenizer = patient.tokenizer
    fill = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
    label = tokenizer.pad_token or "[PAD]"

    def table(rows: list[tuple[int, ...]], pad: int) -> torch.Tensor:
        return torch.tensor([[*row, *[pad] * (length - len(row))] for row in rows], device=patient.device)

    inputs = {
        "input_ids": table([r.ids for r in readings], fill),
        "attention_mask": table([(1,) * len(r.ids) for r in readings], 0),
    }
    segments = table([r.segments for r in readings], 0)
    if _takes_segments(patient, int(segments.max())):
        inputs["token_type_ids"] = segments
    return [padded(r, length, label) for r in readings], inputs


def labels(tokenizer: Any, ids: Sequence[int]) -> tuple[str, ...]:
    """Tokens as people read them: pieces of bytes as characters ("▁" marks a space before), "##ing" as it is."""
    tokens = tokenizer.convert_ids_to_tokens(list(ids))
    if "ByteLevel" not in str(getattr(getattr(tokenizer, "backend_tokenizer", None), "decoder", "")):
        return tuple(tokens)
    return tuple(t if t in tokenizer.all_special_tokens else _from_bytes(t) for t in tokens)


def _byte_alphabet() -> dict[str, int]:
    """Byte-level BPE writes each byte as a printable character: this is the way back."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in plain]
    return {chr(b): b for b in plain} | {chr(256 + n): b for n, b in enumerate(rest)}


_BYTES = _byte_alphabet()


def _from_bytes(token: str) -> str:
    if any(character not in _BYTES for character in token):
        return token
    raw = bytes(_BYTES[character] for character in token)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return f"<{raw.hex(' ').upper()}>"  # part of a character
    return "▁" + text[1:] if text.startswith(" ") else text


def _parts(text: Any) -> tuple[str, ...]:
    parts = text if isinstance(text, tuple) else (text,)
    if len(parts) not in (1, 2) or not all(isinstance(part, str) for part in parts):
        raise TextError(
            f"A text is a string or a pair of strings, not {type(text).__name__}.",
            f"文本应为字符串或一对字符串，而不是 {type(text).__name__}。",
        )
    size = sum(map(len, parts))
    if size > _MOST_CHARACTERS:
        raise TextError(
            f"The text has {size} characters; at most {_MOST_CHARACTERS} are read.",
            f"文本有 {size} 个字符；最多读取 {_MOST_CHARACTERS} 个。",
        )
    half = next((c for part in parts for c in part if "\ud800" <= c <= "\udfff"), None)
    if half is not None:  # an emoji cut in two, or bytes of another encoding
        raise TextError(
            f"The text holds U+{ord(half):04X}, which is no character: remove it, or give the text in UTF-8.",
            f"文本中有 U+{ord(half):04X}，它不是字符：请删除它，或以 UTF-8 编码给出文本。",
        )
    if not any(part.strip() for part in parts):
        raise TextError("The text is empty: write at least one word.", "文本为空：请至少写一个词。")
    return parts


def _spell_mask(patient: Any, text: str, notices: list[Words]) -> str:
    own = patient.tokenizer.mask_token
    if patient.kind != "masked_lm" or own is None:
        return text
    wrong = sorted({found for found in _MASK.findall(text) if found != own})
    if wrong:
        listed = ", ".join(wrong)
        notices.append(
            Words(
                f"{listed} was read as {own}, this model's mask.", f"{listed} 已按本模型的掩码 {own} 读取。"
            )
        )
    return _MASK.sub(lambda _: own, text)


def after_space(patient: Any, text: Text) -> list[bool]:
    """For each place where `patient` answers about `text`, whether what it says there begins a new word after a space."""
    parts = _parts(text)
    if patient.kind != "masked_lm":
        return [not parts[-1][-1:].isspace()]
    mask = re.compile(f"{re.escape(patient.mask_token)}|{_MASK.pattern}", re.IGNORECASE)
    places = [(part, found.start()) for part in parts for found in mask.finditer(part)]
    return [part[at - 1 : at].isspace() for part, at in places]


def _kept(patient: Any, ids: list[int], most: int) -> list[int]:
    """Which tokens to keep: from the front, with the special tokens that close the text."""
    if len(ids) <= most:
        return list(range(len(ids)))
    bounds = _ids(patient, "sep", "eos")
    tail = 0
    while tail < min(2, most - 1) and ids[-1 - tail] in bounds:
        tail += 1
    front = range(most - tail)
    return [*front, *range(len(ids) - tail, len(ids))]


def _ids(patient: Any, *roles: str) -> set[int]:
    found = (getattr(patient.tokenizer, f"{role}_token_id", None) for role in roles)
    return {number for number in found if number is not None}


def _check_ids(patient: Any, ids: list[int]) -> None:
    size = patient.vocab_size
    beyond = next((i for i in ids if i >= size), None)
    if beyond is not None:
        raise TextError(
            f"Token id {beyond} is outside the vocabulary of {patient.name}, which has {size} entries (0-{size - 1}): "
            "the tokenizer does not belong to this model.",
            f"词元编号 {beyond} 超出 {patient.name} 的词表（共 {size} 项，0-{size - 1}）：分词器与模型不匹配。",
        )


def _takes_segments(patient: Any, highest: int) -> bool:
    """Whether the model has an embedding for these segment ids (DistilBERT has none, RoBERTa only for 0)."""
    known = getattr(patient.model.config, "type_vocab_size", 0) or 0
    return highest < known and "token_type_ids" in inspect.signature(patient.model.forward).parameters


def _notices(patient: Any, reading: Reading, lost_mask: bool) -> list[Words]:
    found = []
    if reading.truncated:
        kept, total = reading.kept, reading.total
        found.append(
            Words(
                f"The text was cut: kept {kept} of {total} tokens.",
                f"文本已截断：保留 {total} 个词元中的 {kept} 个。",
            )
        )
    if lost_mask:
        found.append(Words("A mask was cut off with the end of the text.", "有掩码随文本末尾一起被截掉了。"))
    if reading.unknown:
        shown = " ".join(dict.fromkeys(piece for _, piece in reading.unknown))[:60]
        n = len(reading.unknown)
        found.append(Words(f"{n} unknown to this model: {shown}", f"本模型不认识其中 {n} 个：{shown}"))
    if patient.kind == "masked_lm" and not reading.masks and not lost_mask:
        own = patient.tokenizer.mask_token
        found.append(
            Words(
                f"Nothing to guess: write {own} where {patient.name} should fill in a word.",
                f"没有要猜的词：请在想让 {patient.name} 填词的地方写 {own}。",
            )
        )
    return found
