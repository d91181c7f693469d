"""Claims about order and positions."""

from typing import Any

import torch

from bilingual import Words
from models.encoder import EncoderConfig, EncoderModel
from models.layers import RotaryPositions, SinusoidalPositions, rotate
from surgery import metrics
from workshop.claims.claim import DEPENDS, HOLDS, ROUNDING, SEEDS, WRONG, Verdict, claim, exact, kept, over


def model(generator: torch.Generator, **choices: Any) -> EncoderModel:
    """A small encoder of random weights."""
    sizes = {
        "vocab_size": 20,
        "d_model": 64,
        "num_heads": 4,
        "num_layers": 2,
        "d_ff": 128,
        "max_positions": 32,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(torch.randint(2**31, (), generator=generator)))
        return EncoderModel(EncoderConfig(**{**sizes, **choices})).eval()


@torch.no_grad()
def outputs(encoder: EncoderModel, *texts: list[int]) -> list[torch.Tensor]:
    """The last hidden states, (token, width), of each text."""
    return [encoder(torch.tensor([text])).last_hidden_state[0] for text in texts]


def apart(a: torch.Tensor, b: torch.Tensor) -> float:
    return metrics.relative_l2(a, b).max().item()


@claim(
    "abc-cba",
    "Without positions, ABC and CBA give the same output.",
    "没有位置编码，ABC 与 CBA 的输出相同。",
    {
        DEPENDS: Words(
            "Only if outputs are pooled: the means differ by {pooled:r}. Place by place they differ by {place:.2f}; each word carries its output along ({carried:r}).",
            "只有在汇总之后才成立：平均值相差 {pooled:r}。逐个位置相差 {place:.2f}；每个词带着自己的输出走（误差 {carried:r}）。",
        )
    },
)
def abc_cba() -> Verdict:
    def measure(generator: torch.Generator) -> dict[str, float]:
        there, back = outputs(model(generator, positions="none"), [5, 6, 7, 8, 9], [9, 8, 7, 6, 5])
        return {
            "place": apart(there[[0, 1, 3, 4]], back[[0, 1, 3, 4]]),
            "carried": apart(there, back.flip(0)),
            "pooled": apart(there.mean(0), back.mean(0)),
        }

    numbers = over(SEEDS, measure)
    if numbers["place"].mean < ROUNDING:
        return HOLDS, numbers
    return DEPENDS if numbers["pooled"].mean < ROUNDING else WRONG, numbers


@claim(
    "fell-rose",
    "Without positions a model confuses “fell 5 %” with “rose 5 %”.",
    "没有位置编码，模型会混淆“下跌 5 %”和“上涨 5 %”。",
    {
        WRONG: Words(
            "Those are different words: the pooled vectors differ by {words:.2f} without any position. What gets lost is who did it to whom (same words, other order: {order:r}).",
            "那是不同的词：完全没有位置时汇总向量仍相差 {words:.2f}。丢失的是谁对谁做了什么（词相同：{order:r}）。",
        )
    },
)
def fell_rose() -> Verdict:
    def measure(generator: torch.Generator) -> dict[str, float]:
        fell, rose, swapped = outputs(model(generator, positions="none"), [5, 6, 7], [5, 8, 7], [7, 6, 5])
        return {"words": apart(fell.mean(0), rose.mean(0)), "order": apart(fell.mean(0), swapped.mean(0))}

    numbers = over(SEEDS, measure)
    return HOLDS if numbers["words"].mean < ROUNDING else WRONG, numbers


@claim(
    "no-positions-no-order",
    "Without positions a model cannot know the order.",
    "没有位置编码，模型不可能知道顺序。",
    {
        DEPENDS: Words(
            "Only if it looks both ways (the last token differs by {both:r} when two earlier words change places), or has one layer ({one:r}). With a causal mask and two layers it differs by {causal:.2f}.",
            "只有双向时成立（交换前面两个词，最后一个词元只差 {both:r}），或只有一层时成立（{one:r}）。有因果掩码和两层时相差 {causal:.2f}。",
        )
    },
)
def no_positions_no_order() -> Verdict:
    def last(generator: torch.Generator, **choices: Any) -> float:
        a, b = outputs(model(generator, positions="none", **choices), [5, 6, 7, 9], [6, 5, 7, 9])
        return apart(a[-1], b[-1])

    numbers = over(
        SEEDS,
        lambda g: {
            "both": last(g),
            "causal": last(g, causal=True),
            "one": last(g, causal=True, num_layers=1),
        },
    )
    return DEPENDS if numbers["causal"].mean > 100 * ROUNDING else HOLDS, numbers


@claim(
    "sinusoid-difference",
    "The difference of two sinusoidal encodings is another position's encoding, so a model can subtract positions.",
    "两个正弦位置编码之差是另一个位置的编码，所以模型可以做位置减法。",
    {
        WRONG: Words(
            "Of {pairs:.0f} differences {near:.0f} come within 10 % of any encoding. What holds: one rotation carries every PE(p) to PE(p + 17) (largest error {turn:r}), and PE(p)·PE(p + 17) is the same for every p (differences {dot:r}).",
            "{pairs:.0f} 个差中只有 {near:.0f} 个与某个编码相差在 10 % 以内。成立的是：同一个旋转把每个 PE(p) 变成 PE(p + 17)（最大误差 {turn:r}），且 PE(p)·PE(p + 17) 与 p 无关（误差 {dot:r}）。",
        )
    },
)
def sinusoid_difference() -> Verdict:
    width, step = 64, 17
    table = SinusoidalPositions(width)(torch.arange(600)[None])[0].double()
    pairs = [(a, b) for a in range(0, 100, 7) for b in range(0, 100, 7) if a != b]
    near = sum(
        (table[a] - table[b] - table[:512]).norm(dim=1).min().item() < 0.1 * (width / 2) ** 0.5
        for a, b in pairs
    )
    turn = step * 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.double) / width)
    sines, cosines = table[:500, 0::2], table[:500, 1::2]
    moved = torch.stack(
        (sines * turn.cos() + cosines * turn.sin(), cosines * turn.cos() - sines * turn.sin()), -1
    ).flatten(1)
    dots = (table[:500] * table[step : 500 + step]).sum(1)
    numbers = exact(
        pairs=len(pairs),
        near=near,
        turn=(moved - table[step : 500 + step]).abs().max(),
        dot=dots.max() - dots.min(),
    )
    return WRONG if near < 0.05 * len(pairs) else HOLDS, numbers


@claim(
    "sinusoid-extrapolates",
    "Sinusoidal positions extrapolate to longer texts without trouble.",
    "正弦位置编码可以毫无困难地外推到更长的文本。",
    {
        WRONG: Words(
            "Trained on 3-16 words: {first_sinusoidal_16:.0f} % right at 16, {first_sinusoidal_32:.0f} % at 32, {first_sinusoidal_64:.0f} % at 64 (50 is chance). Rotary: {first_rotary_32:.0f} and {first_rotary_64:.0f} %. No positions but a causal mask: {first_causal_64:.0f} % at 64.",
            "用 3–16 个词训练：16 个词时正确率 {first_sinusoidal_16:.0f} %，32 时 {first_sinusoidal_32:.0f} %，64 时 {first_sinusoidal_64:.0f} %（瞎猜 50）。旋转位置：{first_rotary_32:.0f} 与 {first_rotary_64:.0f} %。无位置但有因果掩码：64 时 {first_causal_64:.0f} %。",
        )
    },
    trained=True,
)
def sinusoid_extrapolates() -> Verdict:
    numbers = kept(*(f"first_{k}_{n}" for k in ("sinusoidal", "rotary", "causal") for n in (16, 32, 64)))
    return WRONG if numbers["first_sinusoidal_64"].mean < 75 else HOLDS, numbers


@claim(
    "rotary-any-length",
    "Rotary positions depend on distances alone, so they work at any place and any length.",
    "旋转位置只取决于距离，所以在任何位置、任何长度都有效。",
    {
        DEPENDS: Words(
            "Any place, yes: slid by 20 places {first_rotary_slid:.0f} % right (learned {first_learned_slid:.0f} %). Any length, no: {first_rotary_64:.0f} % at four times the trained length.",
            "任何位置：是，平移 20 个位置仍有 {first_rotary_slid:.0f} %（可学习位置 {first_learned_slid:.0f} %）。任何长度：否，训练长度的四倍时只有 {first_rotary_64:.0f} %。",
        )
    },
    trained=True,
)
def rotary_any_length() -> Verdict:
    numbers = kept("first_rotary_slid", "first_learned_slid", "first_rotary_64")
    place, length = numbers["first_rotary_slid"].mean > 95, numbers["first_rotary_64"].mean > 95
    return HOLDS if place and length else DEPENDS if place else WRONG, numbers


@claim(
    "rotary-distance",
    "With rotary positions a score depends on how far apart two tokens are, not on where they stand.",
    "使用旋转位置时，分数只取决于两个词元相距多远，与它们站在哪里无关。",
    {
        HOLDS: Words(
            "A query and a key 5 apart: moved from places 0-25 to places up to 1,000, their score changes by {moved:r} (scores themselves: std {size:.2f}); moved apart from each other it changes by {farther:.2f}.",
            "相距 5 的查询和键：从位置 0–25 移到最远 1000 处，分数变化 {moved:r}（分数本身的标准差 {size:.2f}）；而拉开彼此的距离则变化 {farther:.2f}。",
        )
    },
)
def rotary_distance() -> Verdict:
    turn = RotaryPositions(16)

    def at(x: torch.Tensor, place: int) -> torch.Tensor:
        return rotate(x, *turn(torch.full((1, 1), place)))

    def measure(generator: torch.Generator) -> dict[str, float]:
        q, k = (torch.randn(200, 1, 1, 16, generator=generator) for _ in range(2))
        scores = {p: (at(q, p) * at(k, p + 5)).sum(-1) / 4 for p in (0, 20, 100, 995)}
        farther = (at(q, 0) * at(k, 50)).sum(-1) / 4
        return {
            "moved": max((scores[p] - scores[0]).abs().max().item() for p in scores),
            "size": scores[0].std().item(),
            "farther": (farther - scores[0]).abs().mean().item(),
        }

    numbers = over(SEEDS, measure)
    return HOLDS if numbers["moved"].mean < 1e-4 < numbers["farther"].mean else WRONG, numbers


@claim(
    "decoder-without-positions",
    "A decoder can do without position encodings.",
    "解码器可以不用位置编码。",
    {
        HOLDS: Words(
            "Which of two words came first, with a causal mask and no positions: {first_causal_16:.0f} % right at 16 words, {first_causal_64:.0f} % at 64 (trained on 3-16). Without the mask {first_none_16:.0f} %.",
            "判断两个词谁先出现，有因果掩码而无位置编码：16 个词时正确率 {first_causal_16:.0f} %，64 个词时 {first_causal_64:.0f} %（用 3–16 个词训练）。没有掩码时 {first_none_16:.0f} %。",
        )
    },
    trained=True,
)
def decoder_without_positions() -> Verdict:
    numbers = kept("first_causal_16", "first_causal_64", "first_none_16")
    return HOLDS if numbers["first_causal_16"].mean > 95 else WRONG, numbers
