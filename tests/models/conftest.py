"""Tiny random checkpoints on disk, and a hub of our own on 127.0.0.1."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

ROOT = Path(__file__).parents[2]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "dog", "cat", "bit", "man", "a", "and", "?"]
TINY = {
    "vocab_size": len(WORDS),
    "hidden_size": 10,
    "num_hidden_layers": 2,
    "num_attention_heads": 5,
    "intermediate_size": 7,
    "max_position_embeddings": 11,
}


def build_tokenizer(extra=(), segments=True):
    """Splits at spaces; [CLS] a [SEP] b [SEP], with segment ids 0 and 1."""
    words = [*WORDS, *extra]
    ids = {word: i for i, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = ["input_ids", "token_type_ids", "attention_mask"] if segments else ["input_ids", "attention_mask"]
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=names,
    )


@pytest.fixture
def tiny_tokenizer():
    return build_tokenizer


@pytest.fixture
def save(tmp_path):
    """save("BertForMaskedLM", ...) -> the folder of a tiny random checkpoint; keywords go to its config."""

    def save(class_name, tokenizer=None, folder="model", **config):
        model_class = getattr(transformers, class_name)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model = model_class(model_class.config_class(**(TINY | config)))
        model.save_pretrained(tmp_path / folder)
        (tokenizer or build_tokenizer()).save_pretrained(tmp_path / folder)
        return tmp_path / folder

    return save


@pytest.fixture
def edit_config():
    """Change fields of a saved config.json; None removes a field."""

    def edit(folder, **fields):
        path = folder / "config.json"
        config = json.loads(path.read_text()) | fields
        path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))
        return folder

    return edit


@pytest.fixture
def python(tmp_path):
    """Run a script in a fresh interpreter with extra environment variables; returns its standard output."""

    def run(script, **env):
        clean = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", script],
            cwd=ROOT,
            env=clean | {"HF_HOME": str(tmp_path / "hf")} | env,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
