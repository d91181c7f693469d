"""A name -> the folder of its files: a local one first, then what the hub's cache or the hub itself has."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from .loaded import LoadError

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
TOKENIZERS = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "spm.model",
)
PATH_LIKE = re.compile(r"^[/~.\\]|^[A-Za-z]:|\\|/$|/.*/")


def find_folder(name: str | Path) -> Path:
    """The folder of a model's files. Raises LoadError, telling apart what is wrong."""
    if not isinstance(name, (str, os.PathLike)):
        raise LoadError(
            f'{name!r} is not a name: give a string, for example "minilm", a folder\'s path or a hub id.',
            f"{name!r} 不是名称：请给出字符串，例如 “minilm”、文件夹路径或 hub 上的模型名。",
        )
    asked = os.fspath(name)
    folder = os.path.expanduser(asked)
    if asked and os.path.isdir(folder):
        return Path(folder)
    if PATH_LIKE.search(asked) or isinstance(name, os.PathLike) or os.path.isfile(folder):
        raise no_such_folder(asked)
    from .hub import fetch  # not needed for a folder

    return fetch(asked)


def no_such_folder(asked: str) -> LoadError:
    is_file = os.path.isfile(os.path.expanduser(asked))
    return LoadError(
        f"{asked} {'is a file' if is_file else 'does not exist'}: a local model is a folder with "
        f"config.json, {WEIGHTS} and a tokenizer. Give such a folder, a hub id (HF_ENDPOINT chooses the hub) "
        'or "minilm", which needs no network.',
        f"{asked} {'是一个文件' if is_file else '不存在'}：本地模型是一个文件夹，"
        f"内含 config.json、{WEIGHTS} 和分词器。"
        "请给出这样的文件夹、hub 上的模型名（HF_ENDPOINT 可指定镜像），或使用无需网络的 “minilm”。",
    )


def is_complete(folder: Path) -> bool:
    """Are configuration, weights and tokenizer all here?"""
    return (folder / "config.json").is_file() and has_weights(folder) and has_tokenizer(folder)


def has_tokenizer(folder: Path) -> bool:
    return any((folder / file).is_file() for file in TOKENIZERS)


def has_weights(folder: Path) -> bool:
    """One safetensors file, or all the files that an index lists."""
    if (folder / WEIGHTS).is_file():
        return True
    try:
        shards = set(json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"].values())
    except (OSError, ValueError, LookupError, AttributeError):
        return False
    return all((folder / shard).is_file() for shard in shards)


def require_files(name: str, folder: Path) -> None:
    """Refuse a folder that cannot be loaded, naming what it lacks."""
    if not (folder / "config.json").is_file():
        raise LoadError(
            f'"{name}" has no config.json, so its architecture is unknown. A model folder is what '
            'save_pretrained writes; give such a folder, a hub id, or "minilm".',
            f"“{name}” 没有 config.json，无法得知其结构。模型文件夹由 save_pretrained 写出；"
            "请给出这样的文件夹、hub 上的模型名，或 “minilm”。",
        )
    if not has_weights(folder):
        raise no_weights(name, folder)
    if not has_tokenizer(folder):
        raise LoadError(
            f'"{name}" has no tokenizer (none of {", ".join(TOKENIZERS)}). Save it beside the model: '
            "tokenizer.save_pretrained(folder).",
            f"“{name}” 没有分词器（{'、'.join(TOKENIZERS)} 都不存在）。"
            "请把分词器与模型存在一起：tokenizer.save_pretrained(folder)。",
        )


def no_weights(name: str, folder: Path) -> LoadError:
    pickled = sorted(file.name for file in folder.iterdir() if file.suffix in PICKLES)
    found = f", only {', '.join(pickled)}" if pickled else ""
    found_zh = f"，只有 {'、'.join(pickled)}" if pickled else ""
    return LoadError(
        f'"{name}" has no complete safetensors weights ({WEIGHTS}){found}. Pickled weights are not opened '
        "here, because opening them can run code. Convert them to safetensors where you trust them: "
        "AutoModel.from_pretrained(folder).save_pretrained(new_folder).",
        f"“{name}” 没有完整的 safetensors 权重（{WEIGHTS}）{found_zh}。"
        "这里不打开 pickle 权重，因为打开它可能执行代码。请在可信环境中转换为 safetensors："
        "AutoModel.from_pretrained(folder).save_pretrained(new_folder)。",
    )
