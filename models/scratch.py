"""The from-scratch encoder by name: its configuration, its vocabulary and its weights."""

from __future__ import annotations

import torch

from bilingual import Words

from .encoder import EncoderConfig, EncoderForMaskedLM
from .loaded import LoadedModel
from .vocabulary import ENGLISH, PAD
from .words import whole_word_tokenizer

SEED = 0
UNTRAINED = Words(
    f"Untrained: seeded random weights (seed {SEED}). What it attends to and predicts means nothing.",
    f"未经训练：权重是随机的（种子 {SEED}）。它关注什么、预测什么都没有意义。",
)


def load_encoder(name: str, device: torch.device, dtype: torch.dtype) -> LoadedModel:
    config = EncoderConfig(
        vocab_size=len(ENGLISH),
        d_model=64,
        num_heads=4,
        num_layers=2,
        d_ff=128,
        max_positions=64,
        positions="learned",
        norm="post",
        pad_token_id=ENGLISH.index(PAD),
    )
    with torch.random.fork_rng(devices=[]):  # the caller's own random numbers go on as if nothing happened
        torch.manual_seed(SEED)
        model = EncoderForMaskedLM(config)
    return LoadedModel(
        model=model.to(device, dtype).eval(),  # type: ignore[arg-type]  # the library's decorator loses its self
        tokenizer=whole_word_tokenizer(ENGLISH, config.max_positions),
        device=device,
        dtype=dtype,
        name=name,
        kind="masked_lm",
        max_tokens=config.max_positions,
        trained=False,
        caveats=(UNTRAINED,),
    )
