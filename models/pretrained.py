"""A folder of transformers files -> a model whose outputs mean what we say they mean."""

from __future__ import annotations

import contextlib
import inspect
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    MODEL_FOR_PRETRAINING_MAPPING,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING,
    MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
    MODEL_MAPPING,
    AutoConfig,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from bilingual import Words

from .configuration import TransformerConfig
from .decoder import EncoderDecoderConfig  # importing it also teaches AutoModel the from-scratch models
from .folders import require_files
from .loaded import NO_LIMIT, LoadedModel, LoadError

# What a model's outputs mean, by the mapping that its class stands in.
KINDS = {
    "masked_lm": MODEL_FOR_MASKED_LM_MAPPING,
    "causal_lm": MODEL_FOR_CAUSAL_LM_MAPPING,
    "classifier": MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
    "translator": MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING,
}

ModelClass = type[PreTrainedModel]


def load_folder(name: str, folder: Path, device: torch.device, dtype: torch.dtype) -> LoadedModel:
    """The model in `folder`, which holds what transformers' `save_pretrained` writes."""
    require_files(name, folder)
    config = read_config(name, folder)
    tokenizer = read_tokenizer(name, folder)
    model, kind, caveats = read_model(name, folder, config, dtype)
    fit_tokenizer(tokenizer, model)
    labels: Any = config.id2label
    return LoadedModel(
        model=model.to(device).eval(),  # type: ignore[arg-type]  # the library's decorator loses its self
        tokenizer=tokenizer,
        device=device,
        dtype=dtype,
        name=name,
        kind=kind,
        max_tokens=int(min(position_limit(model), tokenizer.model_max_length, NO_LIMIT)),
        caveats=(*caveats, *vocabulary_caveats(tokenizer, model)),
        labels=dict(labels) if kind == "classifier" else None,
        source=str(folder),
    )


# --- configuration: which class, and what do its outputs mean? ----------------------------------------------


def read_config(name: str, folder: Path) -> PreTrainedConfig:
    with reading(name, "configuration", "配置"):
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    if not reads_text(config):
        raise LoadError(
            f'"{name}" is a {config.model_type} model, which reads more or other things than one text. '
            "Choose a text model, for example a BERT.",
            f"“{name}” 是 {config.model_type} 模型，读入的不只是一段文本。请选择文本模型，例如 BERT。",
        )
    if config.is_encoder_decoder and not isinstance(config, EncoderDecoderConfig):
        raise LoadError(
            f'"{name}" ({config.model_type}) reads one text and writes another: encoder-decoder models are '
            "not offered. Choose an encoder (BERT and its relatives) or a decoder (GPT-2 and its relatives).",
            f"“{name}”（{config.model_type}）读一段文本、写另一段文本：不支持编码器-解码器模型。"
            "请选择编码器（BERT 及其同类）或解码器（GPT-2 及其同类）。",
        )
    return config


def reads_text(config: PreTrainedConfig) -> bool:
    has_words = getattr(config, "vocab_size", None) is not None
    return has_words and type(config) in MODEL_MAPPING and bare_class(config).main_input_name == "input_ids"


def decide(config: PreTrainedConfig) -> tuple[str, ModelClass]:
    """Kind and class, from what the config says the checkpoint was saved from; its name has no say."""
    saved_from = set(config.architectures or ())
    offered = {kind: classes(mapping, config) for kind, mapping in KINDS.items()}
    kinds = [kind for kind, found in offered.items() if saved_from & {c.__name__ for c in found}]
    if not saved_from or saved_from & {c.__name__ for c in classes(MODEL_FOR_PRETRAINING_MAPPING, config)}:
        # Nothing said, or for example BertForPreTraining: a masked LM with one more head.
        kinds += [kind for kind in ("masked_lm", "causal_lm") if offered[kind]]
    if kinds and kinds[0] != "classifier" and offered["masked_lm"] and offered["causal_lm"]:
        # A BERT can be either, and a wrong class name is common; is_decoder decides what it may look at.
        kinds = ["causal_lm" if getattr(config, "is_decoder", False) else "masked_lm"]
    if kinds:
        return kinds[0], offered[kinds[0]][0]
    return "encoder", bare_class(config)


def classes(mapping: Any, config: PreTrainedConfig) -> list[ModelClass]:
    """The classes that `mapping` has for this configuration, the one it was saved from first."""
    found = mapping.get(type(config), ())
    found = found if isinstance(found, (list, tuple)) else (found,)
    return sorted(found, key=lambda model_class: model_class.__name__ not in (config.architectures or ()))


def bare_class(config: PreTrainedConfig) -> ModelClass:
    return classes(MODEL_MAPPING, config)[0]


# --- weights ------------------------------------------------------------------------------------------------


def read_model(
    name: str, folder: Path, config: PreTrainedConfig, dtype: torch.dtype
) -> tuple[PreTrainedModel, str, tuple[Words, ...]]:
    """The model, its kind, and what to say about it. A head without weights is not used."""
    kind, model_class = decide(config)
    model, missing = read_weights(name, folder, model_class, dtype)
    caveats: tuple[Words, ...] = ()
    if kind == "encoder":
        caveats = (no_head(config),)
    elif any(belongs_to_head(key, model) for key in missing):
        kind, caveats = "encoder", (headless(model_class, missing),)
        model, missing = read_weights(name, folder, bare_class(config), dtype)
    if missing:
        raise LoadError(
            f'"{name}" lacks {len(missing)} of its weights, among them {sorted(missing)[0]}: its files '
            "are incomplete or belong to another architecture. Get them again.",
            f"“{name}” 缺少 {len(missing)} 个权重，例如 {sorted(missing)[0]}："
            "文件不完整，或属于另一种结构。请重新获取。",
        )
    return model, kind, caveats


def belongs_to_head(key: str, model: PreTrainedModel) -> bool:
    """A classifier's pooler sits inside the base model and is a part of its head all the same."""
    return not key.startswith(f"{model.base_model_prefix}.") or ".pooler." in key


def no_head(config: PreTrainedConfig) -> Words:
    saved_from = ", ".join(config.architectures or ()) or config.model_type
    return Words(
        f"No prediction head is used ({saved_from}): this model gives hidden states, not predictions.",
        f"不使用预测头（{saved_from}）：此模型只给出隐藏状态，不作预测。",
    )


def headless(model_class: ModelClass, missing: set[str]) -> Words:
    return Words(
        f"The checkpoint lacks the head of {model_class.__name__} ({len(missing)} weights, which would be "
        "random): it is not used, and this model gives hidden states, not predictions.",
        f"检查点缺少 {model_class.__name__} 的预测头（{len(missing)} 个权重，否则将是随机值）："
        "因此不使用它，此模型只给出隐藏状态，不作预测。",
    )


def read_weights(
    name: str, folder: Path, model_class: ModelClass, dtype: torch.dtype
) -> tuple[PreTrainedModel, set[str]]:
    """The model, and the weights that the checkpoint does not have (those tied to others are not missed)."""
    # A pooler is often untrained, and nothing here reads it.
    pooler = "add_pooling_layer" in inspect.signature(model_class.__init__).parameters
    bare: dict[str, Any] = {"add_pooling_layer": False} if pooler else {}
    with reading(name, "weights", "权重"), undisturbed():
        loaded: Any = model_class.from_pretrained(
            folder,
            dtype=dtype,
            attn_implementation="sdpa" if model_class._supports_sdpa else "eager",
            use_safetensors=True,
            local_files_only=True,
            output_loading_info=True,
            **bare,
        )
    model, report = loaded
    broken = next((key for key, tensor in model.named_parameters() if not tensor.isfinite().all()), None)
    if broken is not None:
        raise LoadError(
            f'"{name}" has numbers in {broken} that are not finite (NaN or infinite): its files are damaged, or its '
            "training failed. Get them again, or choose another checkpoint.",
            f"“{name}” 的 {broken} 中有非有限的数（NaN 或无穷大）：文件损坏，或训练失败。请重新获取，或换一个检查点。",
        )
    return model, set(report["missing_keys"])


# from_pretrained swaps torch's initialisers and default dtype for the whole process while it works.
_one_at_a_time = threading.Lock()


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """One load at a time, silent, and the caller's random numbers go on as if nothing happened."""
    with _one_at_a_time, torch.random.fork_rng(devices=[]):
        verbosity, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
        logging.set_verbosity_error()  # its report of missing weights is read below, and what follows is said
        logging.disable_progress_bar()
        try:
            yield
        finally:
            logging.set_verbosity(verbosity)
            if bar:
                logging.enable_progress_bar()


@contextlib.contextmanager
def reading(name: str, part: str, part_zh: str) -> Iterator[None]:
    """Whatever a stranger's files do to the libraries that read them, the reader hears one sentence."""
    try:
        yield
    except Exception as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise LoadError(
            f'The {part} of "{name}" cannot be read: {reason}',
            f"无法读取“{name}”的{part_zh}：{reason}",
        ) from error


# --- tokenizer and limits -----------------------------------------------------------------------------------


def read_tokenizer(name: str, folder: Path) -> PreTrainedTokenizerBase:
    with reading(name, "tokenizer", "分词器"):
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


def fit_tokenizer(tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel) -> None:
    """Have the tokenizer give what this model takes, segment ids only if it has rows for them."""
    takes = set(inspect.signature(model.forward).parameters)
    if getattr(model.config, "type_vocab_size", 2) < 2:
        takes.discard("token_type_ids")
    tokenizer.model_input_names = [name for name in tokenizer.model_input_names if name in takes]
    if tokenizer.pad_token is None and tokenizer.eos_token is not None:
        tokenizer.pad_token = tokenizer.eos_token  # GPT-2 has none; the attention mask hides what is padded


def position_limit(model: PreTrainedModel) -> int:
    """How many tokens have a position."""
    config = model.config
    limit = getattr(config, "max_position_embeddings", None) or NO_LIMIT
    if limit < 1 or (isinstance(config, TransformerConfig) and config.positions != "learned"):
        return NO_LIMIT
    for path, module in model.named_modules():
        if (
            path.endswith("position_embeddings")
            and isinstance(module, nn.Embedding)
            and module.padding_idx is not None
        ):
            return limit - module.padding_idx - 1  # RoBERTa counts from the row after padding's
    return limit


def vocabulary_caveats(tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel) -> tuple[Words, ...]:
    table: Any = model.get_input_embeddings()
    rows = table.weight.shape[0]
    highest = max(tokenizer.get_vocab().values())
    if highest < rows:
        return ()
    return (
        Words(
            f"The tokenizer gives ids up to {highest} and the model has vectors for 0-{rows - 1}: a text with "
            "a higher id cannot be run.",
            f"分词器的编号最大为 {highest}，而模型只有 0-{rows - 1} 的词向量：含有更大编号的文本无法运行。",
        ),
    )
