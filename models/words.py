"""Tokenizers that keep words whole, so that one cell of a heatmap is one word (or one character)."""

import re
import unicodedata
from collections.abc import Sequence

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from .vocabulary import CLS, MASK, NEWLINE, PAD, SEP, UNK


def whole_word_tokenizer(words: Sequence[str], max_tokens: int) -> PreTrainedTokenizerFast:
    """Ids follow the order of `words`, which begin with the special tokens; any other word becomes [UNK].

    Text is cut at spaces and punctuation; where Chinese runs on without spaces, at the longest known word from
    the left, and an unknown character stands alone.
    """
    ids = {word: i for i, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=UNK))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Lowercase(), *_full_width(words)]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*_chinese(words), pre_tokenizers.BertPreTokenizer()])
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{CLS} $A {SEP}",
        pair=f"{CLS} $A {SEP} $B {SEP}",
        special_tokens=[(CLS, ids[CLS]), (SEP, ids[SEP])],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        unk_token=UNK,
        cls_token=CLS,
        sep_token=SEP,
        mask_token=MASK,
        model_max_length=max_tokens,
        model_input_names=["input_ids", "attention_mask"],  # the from-scratch models have no segments
    )


VISIBLE = {NEWLINE: "⏎", " ": "␣"}


def character_tokenizer(characters: Sequence[str], max_tokens: int) -> PreTrainedTokenizerFast:
    """One token a character, after a newline that begins the text. Tokens are visible, and decoding gives text back."""
    ids = {VISIBLE.get(character, character): i for i, character in enumerate(characters)}
    start = VISIBLE[NEWLINE]
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=UNK))
    shown = [normalizers.Replace(plain, visible) for plain, visible in VISIBLE.items()]
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase(), *shown])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), behavior="isolated")
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{start} $A", special_tokens=[(start, ids[start])]
    )
    plain = [decoders.Replace(visible, plain) for plain, visible in VISIBLE.items()]
    tokenizer.decoder = decoders.Sequence([*plain, decoders.Fuse()])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        unk_token=UNK,
        bos_token=start,
        eos_token=start,
        model_max_length=max_tokens,
        model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
    )


def _full_width(words: Sequence[str]) -> list[normalizers.Normalizer]:
    """NFKC turns ？ into ?; where the vocabulary has ？, back again."""
    narrow = ((unicodedata.normalize("NFKC", word), word) for word in words)
    return [normalizers.Replace(plain, word) for plain, word in narrow if plain != word]


def _chinese(words: Sequence[str]) -> list[pre_tokenizers.PreTokenizer]:
    known = sorted((word for word in words if not word.isascii()), key=len, reverse=True)
    if not known:
        return []
    pattern = "|".join(
        [*map(re.escape, known), r"\p{Han}"]
    )  # of several that fit here, the first: the longest
    return [pre_tokenizers.Split(Regex(pattern), behavior="isolated")]
