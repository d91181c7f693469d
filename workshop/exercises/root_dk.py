"""Why √d_k: how far the scores spread without it."""

from typing import Any

import torch

from bilingual import Words
from models.tasks.sentences import reading
from surgery import theatre
from surgery.capture import Site
from surgery.operations import DropScaling, Temperature
from surgery.plan import Plan
from workshop import bench
from workshop.parts import (
    Choice,
    Evidence,
    Exercise,
    Fault,
    Measured,
    Number,
    Outcome,
    Prediction,
    Quantity,
    stages,
)

PAIRS = 60
WIDTHS = (4, 16, 64, 256)
EXACT = 0.02  # the first layer's scores are the same numbers times a factor


def spread(site: Site, real: torch.Tensor) -> torch.Tensor:
    """The standard deviation of the scores of real query-key pairs, (head,)."""
    pair = real[:, None, :, None] & real[:, None, None, :]
    scores = site.scores.cpu()
    return torch.stack([scores[:, head][pair[:, 0]].std() for head in range(scores.shape[1])])


def measured(patient: Any, plan: Plan, lang: str, seed: int) -> Measured:
    """Spread of the first layer's scores by head, sharpness, and accuracy; and dot products of random unit vectors."""
    table = bench.examples(lang, seed, PAIRS)
    inputs = reading(table.ids)
    real = inputs["attention_mask"].bool()

    def run(plan: Plan) -> tuple[torch.Tensor, dict[str, float]]:
        sites = bench.sites(patient, inputs, plan)
        largest = bench.by_head(bench.stacked(sites, "weights").amax(-1), real)[0].mean().item()
        by_head = spread(sites[0], real)
        return by_head, {
            "spread": by_head.mean().item(),
            "largest": largest,
            "accuracy": 100 * bench.ask(patient, table, lang, plan).mean,
        }

    before, base = bench.unoperated(run, patient, lang, seed)
    after, operated = run(plan)
    ratios = after / before
    generator = torch.Generator().manual_seed(seed)
    random = {
        f"random_{d}": torch.randn(4096, d, generator=generator)
        .mul(torch.randn(4096, d, generator=generator))
        .sum(-1)
        .std()
        .item()
        for d in WIDTHS
    }
    d_k = theatre.admit(patient.model).d_k
    facts = {
        "d_k": d_k,
        "root": d_k**0.5,
        "factor": ratios.mean().item(),
        "least": ratios.min().item(),
        "most": ratios.max().item(),
        **random,
    }
    return base, operated, facts


def fault(plan: Plan, evidence: Evidence) -> Fault:
    """Every head of the first layer must have scores exactly √d_k times as large, and by nothing else."""
    fact = evidence.facts
    root, least, most = fact["root"], fact["least"], fact["most"]
    if most < 1.0 + EXACT and least > 1.0 - EXACT:
        return "not_the_scores"
    if most > root * (1 + EXACT):
        return "too_much"
    if most < root * (1 - EXACT):
        return "flatter" if most < 1 else "too_little"
    if least < root * (1 - EXACT):
        return "some_heads"
    return None if stages(plan) == {"scale"} else "others"


def outcome(evidence: Evidence) -> Outcome:
    """Which factor it was, and the accuracy that was left."""
    factor, d_k = evidence.facts["factor"], evidence.facts["d_k"]
    factors = {"root": d_k**0.5, "width": d_k, "fourth": d_k**0.25, "none": 1.0}
    key = min(factors, key=lambda name: abs(factors[name] - factor))
    return Outcome(key, evidence.operated["accuracy"])


EXERCISE = Exercise(
    name="root-dk",
    title=Words("Divided by √d_k", "除以 √d_k"),
    question=Words(
        "Why are the dot products of queries and keys divided by √d_k, and not by d_k, or by nothing?",
        "查询与键的点积为什么要除以 √d_k，而不是除以 d_k，或者干脆不除？",
    ),
    know=(
        Words(
            "A score is a sum of d_k products; if the products are independent and of variance 1, variances add up, so the variance of the sum is d_k.",
            "一个分数是 d_k 个乘积之和；若各乘积独立且方差为 1，方差相加，总和的方差就是 d_k。",
        ),
        Words(
            "The standard deviation is the root of the variance; softmax looks at differences between scores, so their spread decides how sharp it is.",
            "标准差是方差的平方根；softmax 看的是分数之间的差，因此分数的离散程度决定了它有多尖锐。",
        ),
        Words(
            "This encoder has heads that are 16 channels wide, and was trained with the division.",
            "这个编码器每个头宽 16 个通道，并且是带着这个除法训练的。",
        ),
    ),
    equation="score = q·k / √d_k        Var(q_i k_i) = 1  ⇒ Var(q·k) = Σ_i Var(q_i k_i) = d_k",
    models=bench.ENCODERS,
    prediction=Prediction(
        Words(
            "Without the division, by which factor does the standard deviation of the scores grow in the first layer?",
            "去掉这个除法后，第一层分数的标准差会放大多少倍？",
        ),
        (
            Choice("none", Words("1: the softmax evens it out.", "1 倍：softmax 会把它抹平。")),
            Choice("fourth", Words("2 = ⁴√16", "2 倍 = ⁴√16")),
            Choice("root", Words("4 = √16", "4 倍 = √16")),
            Choice("width", Words("16 = d_k", "16 倍 = d_k")),
        ),
        Number(
            Words(
                "And how many per cent of the questions will the trained encoder still answer right?",
                "训练好的编码器还能答对百分之多少的问题？",
            ),
            low=0,
            high=100,
            near=5,
            unit=Words(" %", " %"),
        ),
    ),
    task=Words(
        "make the scores of every head of the first layer exactly as large as raw dot products, and change nothing else.",
        "让第一层每个头的分数恰好等于未缩放的点积，其他什么也不改。",
    ),
    quantities=(
        Quantity(
            "spread", Words("standard deviation of the scores, first layer", "第一层分数的标准差"), digits=2
        ),
        Quantity(
            "largest",
            Words("mean largest weight of a query, first layer", "第一层每个查询的最大权重（平均）"),
            digits=2,
        ),
        Quantity("accuracy", Words("questions answered right", "答对的问题"), Words(" %", " %"), digits=1),
    ),
    measured=measured,
    fault=fault,
    hints={
        "not_the_scores": Words(
            "The scores of the first layer have not changed in size (factor {fact[factor]:.2f}). What you cut acts elsewhere; look for what multiplies q·k.",
            "第一层分数的大小没有变（倍数 {fact[factor]:.2f}）。您切的是别处；请找乘在 q·k 上的那个因子。",
        ),
        "flatter": Words(
            "The scores became smaller (factor {fact[factor]:.2f}): that is dividing once more. Raw dot products are larger than the scores.",
            "分数变小了（倍数 {fact[factor]:.2f}）：这相当于又除了一次。未缩放的点积应比分数更大。",
        ),
        "too_little": Words(
            "Larger, but by {fact[factor]:.2f} only; the raw dot products are √d_k = {fact[root]:.0f} times the scores.",
            "变大了，但只有 {fact[factor]:.2f} 倍；未缩放的点积是分数的 √d_k = {fact[root]:.0f} 倍。",
        ),
        "too_much": Words(
            "The scores grew by up to {fact[most]:.2f}: more than raw dot products, which are √d_k = {fact[root]:.0f} times as large. Undo the division, no more.",
            "分数最多放大了 {fact[most]:.2f} 倍：超过了未缩放的点积（√d_k = {fact[root]:.0f} 倍）。只需去掉除法，不要再放大。",
        ),
        "some_heads": Words(
            "In some heads the factor is {fact[most]:.2f}, in others {fact[least]:.2f}: your selection leaves heads of the first layer out.",
            "有的头放大了 {fact[most]:.2f} 倍，有的只有 {fact[least]:.2f} 倍：您的选择漏掉了第一层的一些头。",
        ),
        "others": Words(
            "The factor is right, but the plan also works at another stage. One cut at a time.",
            "倍数对了，但计划还改动了别的阶段。一次只切一刀。",
        ),
    },
    outcome=outcome,
    explanation=Words(
        "Factor {fact[factor]:.2f}: √16. The same with vectors of random numbers: dot products of width 4, 16, 64, 256 have standard deviations {fact[random_4]:.1f}, {fact[random_16]:.1f}, {fact[random_64]:.1f}, {fact[random_256]:.1f}; "
        "dividing by the root keeps them at 1 for every width, dividing by d_k would make wide heads flat. In the model the largest weight of a query went from {before[largest]} to {after[largest]}. And the answers? {after[accuracy]} are still "
        "right: heads that learned to be sharp stay right when they get sharper. The division is there for learning: with one wide head, trained for {known[scale_steps]} steps, accuracy is {known[scale_with]} % with it and {known[scale_without]} % "
        "without (mean ± sd of 3 seeds); with four small heads it is {known[small_with]} % and {known[small_without]} %. And “it keeps the variance at 1” holds for vectors of variance 1 only: here the scores' spread was {before[spread]} to begin with.",
        "放大 {fact[factor]:.2f} 倍，即 √16。随机向量也是如此：宽度为 4、16、64、256 时，点积的标准差为 {fact[random_4]:.1f}、{fact[random_16]:.1f}、{fact[random_64]:.1f}、{fact[random_256]:.1f}；除以平方根后无论多宽都约为 1，而除以 d_k 会让宽的头变得平坦。"
        "在模型里，每个查询的最大权重从 {before[largest]} 变为 {after[largest]}。答案呢？仍有 {after[accuracy]} 是对的：学会了尖锐的头，更尖锐时依然正确。这个除法是为学习准备的：用一个宽头训练 {known[scale_steps]} 步，有它时正确率为 {known[scale_with]} %，"
        "没有时为 {known[scale_without]} %（3 个种子的均值 ± 标准差）；用四个小头则为 {known[small_with]} % 和 {known[small_without]} %。“它让方差保持为 1”只对方差为 1 的向量成立：这里分数的标准差原本就是 {before[spread]}。",
    ),
    further=Words(
        "Now the other way: divide by d_k, which is one √d_k = 4 more (T = 4). Which way do the answers mind more? And which T would be “no 1/√d_k” on MiniLM, whose heads are 32 wide?",
        "再反过来：除以 d_k，也就是再除一次 √d_k = 4（T = 4）。答案更怕哪一种？MiniLM 的头宽 32，哪个 T 相当于“去掉 1/√d_k”？",
    ),
    further_plan=Plan(Temperature(4.0)),
    solution=Plan(DropScaling()),
    ask=Words(
        "If somebody trains 1 head of 256 instead of 16 of 16, what changes for the softmax?",
        "如果把 16 个宽 16 的头换成 1 个宽 256 的头来训练，softmax 会有什么变化？",
    ),
    minutes=12,
)
