"""Claims about masks and dropout."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from bilingual import Words
from models import load
from surgery.operations import IgnorePaddingMask
from surgery.plan import Plan
from workshop import bench
from workshop.claims.claim import DEPENDS, HOLDS, SEEDS, WRONG, Verdict, claim, over


@claim(
    "score-dropout-removes",
    "Dropout on the scores before the softmax removes connections at random.",
    "在 softmax 之前对分数做 Dropout，会随机移除连接。",
    {
        WRONG: Words(
            "A dropped score becomes 0, and e⁰ = 1: {zero:.0f} % of the dropped connections have weight 0, {up:.0f} % even went up. After a −∞ mask 0 · (−∞) makes {nan:.0f} % of the rows NaN; after −1e9 padding gets a weight over 0.01 in {pad:.0f} % of the rows. A key set to −∞ (DropKey), or dropout after the softmax, does remove.",
            "被丢弃的分数变成 0，而 e⁰ = 1：被丢弃的连接中权重为 0 的占 {zero:.0f} %，{up:.0f} % 反而上升。在 −∞ 掩码之后，0 · (−∞) 使 {nan:.0f} % 的行成为 NaN；在 −1e9 之后，{pad:.0f} % 的行里填充得到超过 0.01 的权重。把键置为 −∞（DropKey）或在 softmax 之后 Dropout 才真的移除。",
        )
    },
)
def score_dropout_removes() -> Verdict:
    def measure(generator: torch.Generator) -> dict[str, float]:
        scores = 2 * torch.randn(4000, 32, generator=generator)
        keep = torch.rand(scores.shape, generator=generator) >= 0.1
        before, after = scores.softmax(-1), (scores * keep / 0.9).softmax(-1)
        masked = torch.tensor([2.0, 1.0, -math.inf, -math.inf]).repeat(4000, 1)
        few = torch.rand(masked.shape, generator=generator) >= 0.1
        nan = (masked * few / 0.9).softmax(-1).isnan().any(-1)
        large = (masked.clamp(min=-1e9) * few / 0.9).softmax(-1)[:, 2:].sum(-1) > 0.01
        return {
            "zero": 100 * (after[~keep] == 0).float().mean().item(),
            "up": 100 * (after > before)[~keep].float().mean().item(),
            "nan": 100 * nan.float().mean().item(),
            "pad": 100 * large.float().mean().item(),
        }

    numbers = over(SEEDS, measure)
    return WRONG if numbers["zero"].mean < 1 else HOLDS, numbers


@claim(
    "sums-after-dropout",
    "The weights of a row sum to 1, with dropout too.",
    "即使有 Dropout，每行权重之和也为 1。",
    {
        DEPENDS: Words(
            "Only if dropout comes before the softmax. After it (the Transformer's own) sums scatter: {sum:.2f} on average with a standard deviation of {scatter:.2f} between rows (p = 0.1).",
            "只有 Dropout 在 softmax 之前才成立。之后（Transformer 原始做法）行和会分散：平均 {sum:.2f}，行间标准差 {scatter:.2f}（p = 0.1）。",
        )
    },
)
def sums_after_dropout() -> Verdict:
    def measure(generator: torch.Generator) -> dict[str, float]:
        weights = (2 * torch.randn(4000, 32, generator=generator)).softmax(-1)
        keep = torch.rand(weights.shape, generator=generator) >= 0.1
        sums = (weights * keep / 0.9).sum(-1)
        return {"sum": sums.mean().item(), "scatter": sums.std().item()}

    numbers = over(SEEDS, measure)
    return DEPENDS if numbers["scatter"].mean > 0.01 else HOLDS, numbers


@claim(
    "fill-safety",
    "−1e9 harms gradients; −∞ is the safer fill.",
    "−1e9 会损害梯度，−∞ 更安全。",
    {
        WRONG: Words(
            "Where a key is left both give the same weights and gradients (largest difference {weights:r} and {gradients:r}). Where none is left −1e9 gives {uniform:.2f} to each of 6 forbidden keys, and −∞ gives NaN in {nan:.0f} % of the rows. In float16 −1e9 cannot be written: {half:.0f} % of the attempts raise an error.",
            "只要还剩一个键，两者的权重和梯度都相同（最大差 {weights:r} 与 {gradients:r}）。一个不剩时，−1e9 给 6 个被禁的键各 {uniform:.2f}，−∞ 使 {nan:.0f} % 的行成为 NaN。float16 写不下 −1e9：{half:.0f} % 的尝试报错。",
        )
    },
)
def fill_safety() -> Verdict:
    open_keys = torch.tensor([True, True, True, False, False, False])

    def through(
        scores: torch.Tensor, allowed: torch.Tensor, fill: float, value: torch.Tensor
    ) -> tuple[torch.Tensor, Any]:
        scores = scores.clone().requires_grad_()
        weights = scores.masked_fill(~allowed, fill).softmax(-1)
        (weights @ value).sum().backward()
        return weights.detach(), scores.grad

    def measure(generator: torch.Generator) -> dict[str, float]:
        scores, value = torch.randn(200, 6, generator=generator), torch.randn(6, generator=generator)
        (w1, g1), (w2, g2) = (through(scores, open_keys, fill, value) for fill in (-1e9, -math.inf))
        closed = torch.zeros(6, dtype=torch.bool)
        (u, _), (n, _) = (through(scores, closed, fill, value) for fill in (-1e9, -math.inf))
        return {
            "weights": (w1 - w2).abs().max().item(),
            "gradients": (g1 - g2).abs().max().item(),
            "uniform": u.mean().item(),
            "nan": 100 * n.isnan().any(-1).float().mean().item(),
            "half": 100.0 * _refuses_half(scores, open_keys),
        }

    numbers = over(SEEDS, measure)
    same = numbers["gradients"].mean < 1e-6 and numbers["nan"].mean > 0
    return WRONG if same else HOLDS, numbers


def _refuses_half(scores: torch.Tensor, allowed: torch.Tensor) -> bool:
    try:
        scores.half().masked_fill(~allowed, -1e9)
    except RuntimeError:
        return True
    return False


@claim(
    "mask-broadcasts",
    "A padding mask of shape (batch, 1, n), or a causal one made with .unsqueeze(1), broadcasts over (batch, heads, n, n).",
    "形状为 (batch, 1, n) 的填充掩码，或用 .unsqueeze(1) 得到的因果掩码，会广播到 (batch, heads, n, n)。",
    {
        WRONG: Words(
            "With batch 2 and 4 heads {errors:.0f} of 2 raise an error. With batch = heads = 4 there is none, and {sees:.0f} of 4 heads of the padded sentence see its padding; a causal mask unsqueezed at 1 lets a head put {future:.2f} of a row's weight on the future (n = heads = 10). The shape must be (batch, 1, 1, n).",
            "batch 2、4 个头时，两种写法中 {errors:.0f} 种报错。batch = heads = 4 时不报错，但带填充的句子有 {sees:.0f} 个头（共 4 个）能看到填充；在第 1 维 unsqueeze 的因果掩码让某个头把一行中 {future:.2f} 的权重放到后文（n = heads = 10）。正确的形状是 (batch, 1, 1, n)。",
        )
    },
)
def mask_broadcasts() -> Verdict:
    def measure(generator: torch.Generator) -> dict[str, float]:
        def padded(batch: int, heads: int, n: int = 6) -> torch.Tensor:
            mask = torch.ones(batch, 1, n, dtype=torch.bool)
            mask[0, :, 3:] = False  # the first sentence is padded
            scores = torch.randn(batch, heads, n, n, generator=generator)
            return scores.masked_fill(~mask, -math.inf).softmax(-1)[0, :, :, 3:].sum(-1)

        def causal(heads: int, n: int = 10) -> torch.Tensor:
            mask = torch.ones(n, n, dtype=torch.bool).tril()
            scores = torch.randn(2, heads, n, n, generator=generator)
            return scores.masked_fill(~mask.unsqueeze(1), -math.inf).softmax(-1).triu(1).sum(-1)

        errors = _raises(lambda: padded(2, 4)) + _raises(lambda: causal(4))
        sees = (padded(4, 4) > 0).any(-1).sum().item()
        return {"errors": float(errors), "sees": float(sees), "future": causal(10).max().item()}

    numbers = over(SEEDS, measure)
    return WRONG if numbers["errors"].mean > 0 or numbers["sees"].mean > 0 else HOLDS, numbers


def _raises(attempt: Callable[[], Any]) -> bool:
    try:
        attempt()
    except RuntimeError:
        return True
    return False


@claim(
    "bool-mask-is-added",
    "Any mask can be added to the scores.",
    "任何掩码都可以直接加到分数上。",
    {
        WRONG: Words(
            "A boolean mask that is added adds 0 or 1: forbidden keys keep {added:.2f} of a row's weight (3 of 6 keys forbidden). Given to scaled_dot_product_attention as booleans they keep {given:.2f}.",
            "把布尔掩码加上去只会加 0 或 1：被禁的键仍占一行权重的 {added:.2f}（6 个键，3 个被禁）。作为布尔掩码传给 scaled_dot_product_attention 时为 {given:.2f}。",
        )
    },
)
def bool_mask_is_added() -> Verdict:
    allowed = torch.tensor([True, True, True, False, False, False])

    def measure(generator: torch.Generator) -> dict[str, float]:
        q, k = (torch.randn(50, 1, 6, 16, generator=generator) for _ in range(2))
        value = (
            (~allowed).float()[:, None].expand(50, 1, 6, 1)
        )  # what comes back is the weight on forbidden keys
        scores = q @ k.transpose(2, 3) / 4
        given = F.scaled_dot_product_attention(q, k, value, attn_mask=allowed[None, None, None])
        return {"added": ((scores + allowed).softmax(-1) @ value).mean().item(), "given": given.mean().item()}

    numbers = over(SEEDS, measure)
    return WRONG if numbers["added"].mean > 0.01 else HOLDS, numbers


@claim(
    "padding-changes-answers",
    "Without the padding mask an answer depends on what else is in the batch.",
    "没有填充掩码时，答案取决于同一批次里还有什么。",
    {
        HOLDS: Words(
            "Padded to 64 tokens, {without:.0f} % of the trained encoder's answers change without the mask, {within:.0f} % with it.",
            "填充到 64 个词元时，没有掩码会使训练好的编码器 {without:.0f} % 的答案改变，有掩码时为 {within:.0f} %。",
        )
    },
)
def padding_changes_answers() -> Verdict:
    patient = load("encoder", device="cpu")

    def measure(generator: torch.Generator) -> dict[str, float]:
        table = bench.examples("en", generator.initial_seed(), 60)
        bare = bench.ask(patient, table, "en", Plan(), None).said

        def changed(plan: Plan) -> float:
            padded = bench.ask(patient, table, "en", plan, 64).said
            return 100 * sum(a != b for a, b in zip(bare, padded, strict=True)) / len(bare)

        return {"within": changed(Plan()), "without": changed(Plan(IgnorePaddingMask()))}

    numbers = over(range(3), measure)
    return HOLDS if numbers["without"].mean > 5 > numbers["within"].mean else WRONG, numbers
