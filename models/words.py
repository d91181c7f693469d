"""A tokenizer that cuts at spaces and punctuation only, so that one cell of a heatmap is one word."""

from collections.abc import Sequence

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from .vocabulary import CLS, MASK, PAD, SEP, UNK


def whole_word_tokenizer(words: Sequence[str], max_tokens: int) -> PreTrainedTokenizerFast:
    """Ids follow the order of `words`, which begin with the special tokens; any other word becomes [UNK]."""
    ids = {word: i for i, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=UNK))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
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
        model_input_names=["input_ids", "attention_mask"],  # the encoder has no segments
    )
