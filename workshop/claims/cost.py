"""Claims about cost."""

import functools
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from bilingual import Words
from models.encoder import EncoderConfig, EncoderModel
from workshop.claims.claim import DEPENDS, HOLDS, WRONG, Measured, Verdict, claim, exact


@claim(
    "double-is-fourfold",
    "Twice the length costs four times as much.",
    "长度加倍，开销变为四倍。",
    {
        DEPENDS: Words(
            "Only the n² part does. A layer of width 768, multiplications: × {at_128:.2f} from 128 to 256 tokens, × {at_512:.2f} from 512, × {at_4096:.2f} from 4,096.",
            "只有 n² 的部分如此。宽 768 的一层（乘法次数）：从 128 到 256 个词元 × {at_128:.2f}，从 512 起 × {at_512:.2f}，从 4096 起 × {at_4096:.2f}。",
        )
    },
)
def double_is_fourfold() -> Verdict:
    width = 768

    def products(n: int) -> int:
        return 12 * n * width * width + 2 * n * n * width  # projections and feed-forward; scores and mixing

    numbers = exact(**{f"at_{n}": products(2 * n) / products(n) for n in (128, 512, 4096)})
    return HOLDS if numbers["at_128"].mean > 3.8 else DEPENDS, numbers


TIMES = Words(
    "On one CPU thread, two layers of width 256, a forward pass of the Transformer takes {short:.1f} times as long as the LSTM's at 100 tokens and {long:.1f} times at 2,000. What it wins is parallel work, on hardware that has it.",
    "单个 CPU 线程、两层、宽 256：Transformer 一次前向的耗时，在 100 个词元时是 LSTM 的 {short:.1f} 倍，2000 个时是 {long:.1f} 倍。它的优势在于可并行，前提是硬件有并行能力。",
)


@claim(
    "faster-than-rnn",
    "A Transformer is faster than an RNN.",
    "Transformer 比 RNN 快。",
    {verdict: TIMES for verdict in (HOLDS, DEPENDS, WRONG)},
    timed=True,
)
def faster_than_rnn() -> Verdict:
    width = 256
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        rnn = nn.LSTM(width, width, 2, batch_first=True).eval()
        sizes: dict[str, Any] = {
            "d_model": width,
            "num_heads": 4,
            "num_layers": 2,
            "d_ff": 512,
            "max_positions": 2048,
        }
        encoder = EncoderModel(EncoderConfig(vocab_size=10, **sizes)).eval()

    def seconds(run: Callable[[], Any]) -> float:
        run()
        times = []
        for _ in range(3):
            started = time.perf_counter()
            run()
            times.append(time.perf_counter() - started)
        return min(times)

    ratios = {}
    with torch.no_grad():
        for name, n in (("short", 100), ("long", 2000)):
            ids, x = torch.ones(1, n, dtype=torch.long), torch.randn(1, n, width)
            ratios[name] = Measured(
                seconds(functools.partial(encoder, ids)) / seconds(functools.partial(rnn, x))
            )
    always = all(ratio.mean < 0.9 for ratio in ratios.values())
    never = all(ratio.mean > 1.1 for ratio in ratios.values())
    return HOLDS if always else WRONG if never else DEPENDS, ratios
