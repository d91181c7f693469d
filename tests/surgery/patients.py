"""Tiny patients of each kind, with tokenizers built here: random weights, real tokenisation."""

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers import models as kinds
from transformers import PreTrainedTokenizerFast

from models import LoadedModel
from tests.surgery import bench

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
_WORDS = "the a dog cat man fox bit saw chased ran big red and not who ? . you good bad 你 好 ##s"
WORDS = [*SPECIAL, *_WORDS.split()]


def word_tokenizer(limit: int = 1000) -> PreTrainedTokenizerFast:
    """BERT's: lower case, word pieces, [CLS] a [SEP] b [SEP] with segments 0 and 1."""
    ids = {word: i for i, word in enumerate(WORDS)}
    tokenizer = Tokenizer(kinds.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = dict(
        zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True)
    )
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=limit, model_input_names=inputs, **names
    )


def byte_tokenizer(roberta: bool = False) -> PreTrainedTokenizerFast:
    """GPT-2's or RoBERTa's: every byte is a piece, and a few words are merged."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"] if roberta else ["<|endoftext|>"]
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("c", "a"), ("ca", "t"), ("Ġ", "cat"), ("æ", "ľ")]
    tokens = [*special, *alphabet, *("".join(pair) for pair in merges)]
    tokenizer = Tokenizer(kinds.BPE({token: i for i, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    if not roberta:
        end = special[0]
        return PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, bos_token=end, eos_token=end, pad_token=end
        )
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    mask = AddedToken("<mask>", lstrip=True, special=True)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>",
        unk_token="<unk>", pad_token="<pad>", mask_token=mask,
    )  # fmt: skip


def patient(class_name: str, kind: str, tokenizer=None, room: int = 41, **config) -> LoadedModel:
    """A tiny random model of transformers' class `class_name`; only its name and kind matter."""
    tokenizer = tokenizer or word_tokenizer()
    sizes = {
        "hidden_size": 35,
        "num_hidden_layers": 3,
        "num_attention_heads": 5,
        "intermediate_size": 31,
        "max_position_embeddings": room,
    }
    if class_name.startswith("GPT2"):
        end = tokenizer.eos_token_id
        sizes = {
            "n_embd": 35,
            "n_layer": 3,
            "n_head": 5,
            "n_inner": 31,
            "n_positions": room,
            "bos_token_id": end,
            "eos_token_id": end,
        }
    if class_name.startswith("DistilBert"):
        sizes = {"dim": 35, "n_layers": 3, "n_heads": 5, "hidden_dim": 31, "max_position_embeddings": room}
    if class_name.startswith("Roberta"):
        sizes |= {"pad_token_id": 1, "type_vocab_size": 1, "max_position_embeddings": room + 2}
    config = {"vocab_size": len(tokenizer), **sizes, **config}
    with bench.seeded(3):
        model_class = getattr(transformers, class_name)
        model = model_class(model_class.config_class(**config)).eval()
    return LoadedModel(
        model=bench.widened(model, "query"),
        tokenizer=tokenizer,
        device=torch.device("cpu"),
        dtype=torch.float32,
        name="tiny",
        kind=kind,
        max_tokens=room,
        labels=dict(model.config.id2label) if kind == "classifier" else None,
    )
