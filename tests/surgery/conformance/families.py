"""The families that surgery is checked on, one tiny random model each. A new family is one line here and one row in
`surgery.anatomy.FAMILIES`.

All sizes are small; a head is 10 wide (even, for rotary positions). Weights are drawn anew so that nothing is near 0: queries
are wide (attention is far from uniform), biases and norms random.
"""

import copy
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import transformers

import models
from tests.surgery.bench import seeded

ROWS, TOKENS, WRITTEN, SHORT, VOCAB, LAYERS = 2, 11, 7, 8, 53, 3

_BERT = {
    "vocab_size": VOCAB,
    "hidden_size": 30,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 3,
    "intermediate_size": 31,
    "max_position_embeddings": 41,
    "pad_token_id": 0,
}
_ROBERTA = {**_BERT, "pad_token_id": 1}
_LLAMA = {**_BERT, "hidden_size": 60, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 10}
_BART = {
    "vocab_size": VOCAB,
    "d_model": 30,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 31,
    "decoder_ffn_dim": 31,
    "max_position_embeddings": 41,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}
_MODERN = {"eos_token_id": 2, "bos_token_id": 1, "cls_token_id": 1, "sep_token_id": 2}
_VIT = {
    "hidden_size": 30,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 3,
    "intermediate_size": 31,
    "image_size": 12,
    "patch_size": 4,
    "num_channels": 3,
}
_WAV2VEC = {
    **_BERT,
    "conv_dim": (16, 16),
    "conv_kernel": (5, 3),
    "conv_stride": (3, 2),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
    "mask_time_prob": 0.0,
}
_OURS = {
    "vocab_size": VOCAB,
    "d_model": 30,
    "num_heads": 3,
    "num_layers": LAYERS,
    "d_ff": 31,
    "max_positions": 41,
}
_SEQ2SEQ = ("encoder", "decoder", "cross")


@dataclass(frozen=True)
class Case:
    """A tiny model of a family, and what is known of it without looking into surgery.

    reads: "words", "picture", "sound" (samples) or "frames". kinds: its kinds of attention in the order of their layers.
    causal: the kinds that see no future. half_window: of the layers that see only neighbours. scaled: whether q·kᵀ is divided
    by √d_k. positions: how an independent model is made whose tokens stand elsewhere: "told" (it takes position_ids), "table"
    (a copy with rearranged rows), "bias" (its scores' bias rearranged), or None. silent: a pattern of the parameters and
    buffers which, at 0, leave no positions. front: where a permutation of the input can be done, for inputs that are not words.
    """

    title: str
    model: str
    config: dict = field(hash=False)
    reads: str = "words"
    kinds: tuple[str, ...] = ("self",)
    causal: tuple[str, ...] = ()
    half_window: dict[int, int] = field(default_factory=dict, hash=False)
    scaled: bool = True
    scaled_bias: bool = False
    positions: str | None = "told"
    silent: str | None = r".*position_embeddings\.weight"
    first: str = "zero"
    front: str | None = None
    pads: bool = True

    def __repr__(self) -> str:
        return self.title

    def build(self, implementation: str = "sdpa") -> torch.nn.Module:
        """The model, with weights drawn anew."""
        library = transformers if hasattr(transformers, self.model) else models
        kind = getattr(library, self.model)
        config = kind.config_class(**copy.deepcopy(self.config), attn_implementation=implementation)
        with seeded(5):
            return _lively(kind(config).eval())


_QUERIES = re.compile(
    r".*(query|q_proj|q_lin|linear_q|SelfAttention\.q|EncDecAttention\.q|query_key_value|Wqkv|c_attn|q_norm)\.weight"
)


def _lively(model: torch.nn.Module) -> torch.nn.Module:
    tables = {id(m.weight) for m in model.modules() if isinstance(m, torch.nn.Embedding)}
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("bias") and "relative_attention_bias" not in name:
                weight.normal_(0, 0.2)
            elif weight.dim() < 2:
                weight.normal_(1, 0.2)
            elif id(weight) in tables or (weight.dim() == 3 and "position" in name):
                weight.normal_(0, 0.7)
            elif "original0" not in name:  # the length of a weight-normed convolution stays
                weight.normal_(0, (weight.numel() / weight.shape[0]) ** -0.5)
            if _QUERIES.fullmatch(name):
                weight.mul_(3.0)
    return model


_ROTARY = r".*inv_freq"
_CAUSAL = ("self",)

FAMILIES: list[Case] = [
    Case("BERT", "BertModel", _BERT),
    Case("RoBERTa", "RobertaModel", _ROBERTA, first="roberta"),
    Case("XLM-R", "XLMRobertaModel", _ROBERTA, first="roberta"),
    Case("CamemBERT", "CamembertModel", _ROBERTA, first="roberta"),
    Case("ELECTRA", "ElectraModel", {**_BERT, "embedding_size": 13}),
    Case("ERNIE", "ErnieModel", _BERT),
    Case("Data2Vec-text", "Data2VecTextModel", _ROBERTA, first="roberta"),
    Case("DistilBERT", "DistilBertModel", {"vocab_size": VOCAB, "dim": 30, "n_layers": 3, "n_heads": 3, "hidden_dim": 31, "max_position_embeddings": 41}, positions="table"),
    Case("ALBERT", "AlbertModel", {**_BERT, "embedding_size": 13}),
    Case("from-scratch encoder", "EncoderModel", _OURS),
    Case("from-scratch encoder, rotary", "EncoderModel", {**_OURS, "positions": "rotary"}, silent=None),
    Case("GPT-2", "GPT2Model", {"vocab_size": VOCAB, "n_embd": 30, "n_layer": 3, "n_head": 3, "n_inner": 31, "n_positions": 41, "bos_token_id": 2, "eos_token_id": 2}, causal=_CAUSAL, silent=r"wpe\.weight"),
    Case("OPT", "OPTModel", {**_BERT, "ffn_dim": 31, "word_embed_proj_dim": 30}, causal=_CAUSAL, first="real", silent=r".*embed_positions\.weight"),
    Case("ESM", "EsmModel", {**_BERT, "position_embedding_type": "rotary", "token_dropout": False}, silent=_ROTARY),
    Case("ESM-1b", "EsmModel", {**_ROBERTA, "position_embedding_type": "absolute", "token_dropout": False}, first="roberta"),
    Case("GPT-NeoX", "GPTNeoXModel", _BERT, causal=_CAUSAL, silent=_ROTARY),
    Case("Llama", "LlamaModel", _LLAMA, causal=_CAUSAL, silent=_ROTARY),
    Case("Mistral", "MistralModel", {**_LLAMA, "sliding_window": 4}, causal=_CAUSAL, half_window={0: 3, 1: 3, 2: 3}, silent=_ROTARY),
    Case("Qwen2", "Qwen2Model", _LLAMA, causal=_CAUSAL, silent=_ROTARY),
    Case("Qwen3", "Qwen3Model", _LLAMA, causal=_CAUSAL, silent=_ROTARY),
    Case("Gemma", "GemmaModel", _LLAMA, causal=_CAUSAL, silent=_ROTARY),
    Case("ModernBERT", "ModernBertModel", {**_BERT, "layer_types": ["full_attention", "sliding_attention", "sliding_attention"], "local_attention": 6, **_MODERN}, half_window={1: 3, 2: 3}, silent=_ROTARY),
    Case("MobileBERT", "MobileBertModel", {**_BERT, "embedding_size": 13, "true_hidden_size": 30, "intra_bottleneck_size": 30, "num_feedforward_networks": 2}),
    Case("NomicBERT", "NomicBertModel", _BERT, silent=_ROTARY),
    Case("ViT", "ViTModel", _VIT, reads="picture", positions="table", silent=r".*position_embeddings", pads=False),
    Case("DeiT", "DeiTModel", _VIT, reads="picture", positions="table", silent=r".*position_embeddings", pads=False),
    Case("DINOv2", "Dinov2Model", {**_VIT, "mlp_ratio": 1}, reads="picture", positions="table", silent=r".*position_embeddings", pads=False),
    Case("CLIP text", "CLIPTextModel", {**_BERT, "bos_token_id": 1, "eos_token_id": 2}, causal=_CAUSAL, silent=r".*position_embedding\.weight"),
    Case("CLIP vision", "CLIPVisionModel", _VIT, reads="picture", positions="table", silent=r".*position_embedding\.weight", pads=False),
    Case("CLIP", "CLIPModel", {"text_config": {**_BERT, "bos_token_id": 1, "eos_token_id": 2}, "vision_config": _VIT, "projection_dim": 7}, reads="both", kinds=("text", "vision"), causal=("text",), positions="table", silent=r".*position_embedding\.weight"),
    Case("T5", "T5Model", {"vocab_size": VOCAB, "d_model": 30, "d_kv": 10, "num_heads": 3, "num_layers": 2, "d_ff": 31, "relative_attention_num_buckets": 8, "relative_attention_max_distance": 9}, kinds=_SEQ2SEQ, causal=("decoder",), scaled=False, positions="bias", silent=r".*relative_attention_bias\.weight"),
    Case("BART", "BartModel", _BART, kinds=_SEQ2SEQ, causal=("decoder",), positions="table", first="two", silent=r".*embed_positions\.weight"),
    Case("Whisper", "WhisperModel", {**_BART, "num_mel_bins": 5, "max_source_positions": 13, "max_target_positions": 41}, reads="frames", kinds=_SEQ2SEQ, causal=("decoder",), positions="table", silent=r".*embed_positions\.weight", pads=False),
    Case("Wav2Vec2", "Wav2Vec2Model", _WAV2VEC, reads="sound", positions=None, silent=r".*pos_conv_embed.*(original0|bias)"),
    Case("Wav2Vec2-Conformer", "Wav2Vec2ConformerModel", {**_WAV2VEC, "position_embeddings_type": "relative", "conv_depthwise_kernel_size": 3}, reads="sound", scaled_bias=True, positions=None),
    Case("Wav2Vec2-Conformer, rotary", "Wav2Vec2ConformerModel", {**_WAV2VEC, "position_embeddings_type": "rotary", "conv_depthwise_kernel_size": 3}, reads="sound", positions=None),
]  # fmt: skip


# --- what they are shown ------------------------------------------------------------------------------------


def inputs(case: Case, padding: str | None = "right") -> dict[str, torch.Tensor]:
    """Random inputs; padding ("right", "left" or None) is in the second row."""
    return _INPUTS[case.reads](case, padding)


def _words(case: Case, padding: str | None) -> dict[str, torch.Tensor]:
    with seeded(1):
        ids = torch.randint(4, VOCAB, (ROWS, TOKENS))
        written = torch.randint(4, VOCAB, (ROWS, WRITTEN))
    mask = torch.ones_like(ids)
    if padding:
        where = slice(SHORT, None) if padding == "right" else slice(0, TOKENS - SHORT)
        ids[1, where], mask[1, where] = case.config.get("pad_token_id") or 0, 0
    made = {"input_ids": ids, "attention_mask": mask}
    return {**made, "decoder_input_ids": written} if "cross" in case.kinds else made


def _picture(case: Case, padding: str | None) -> dict[str, torch.Tensor]:
    with seeded(2):
        return {"pixel_values": torch.randn(ROWS, 3, 12, 12)}


def _frames(case: Case, padding: str | None) -> dict[str, torch.Tensor]:
    with seeded(3):
        frames = torch.randn(ROWS, case.config["num_mel_bins"], 2 * case.config["max_source_positions"])
        return {"input_features": frames, "decoder_input_ids": torch.randint(4, VOCAB, (ROWS, WRITTEN))}


def _sound(case: Case, padding: str | None) -> dict[str, torch.Tensor]:
    with seeded(4):
        sound = torch.randn(ROWS, 6 * TOKENS + 5)
    mask = torch.ones(sound.shape, dtype=torch.long)
    if padding:
        where = slice(6 * SHORT + 5, None) if padding == "right" else slice(0, 0)
        mask[1, where] = 0
    return {"input_values": sound, "attention_mask": mask}


def _both(case: Case, padding: str | None) -> dict[str, torch.Tensor]:
    return {**_words(case, padding), **_picture(case, padding)}


_INPUTS: dict[str, Callable] = {
    "words": _words, "picture": _picture, "frames": _frames, "sound": _sound, "both": _both,
}  # fmt: skip
