"""Collapse, the flat kind: every token is brought the same, and what keeps tokens apart."""

from typing import Any

import torch
from torch.nn import functional as F

from bilingual import Words
from models.tasks.sentences import reading
from surgery.operations import SamePosition, UniformAttention
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

PAIRS = 40
SAME = 0.999


def alike(vectors: torch.Tensor, real: torch.Tensor) -> float:
    """The mean cosine of two different real tokens of a text: vectors (row, token, width), real (row, token)."""
    unit = F.normalize(vectors, dim=-1)
    pairs = real[:, :, None] & real[:, None, :]
    pairs = pairs & ~torch.eye(real.shape[1], dtype=torch.bool)
    return (unit @ unit.transpose(1, 2))[pairs].mean().item()


def measured(patient: Any, plan: Plan, lang: str, seed: int) -> Measured:
    """How alike tokens are in what each head brings them, and at the end of the model."""
    table = bench.examples(lang, seed, PAIRS)
    inputs = reading(table.ids)
    real = inputs["attention_mask"].bool()

    def run(plan: Plan) -> tuple[float, dict[str, float]]:
        brought = bench.stacked(
            bench.sites(patient, inputs, plan), "output"
        )  # (layer, row, head, query, d_v)
        heads = [
            alike(brought[layer, :, head], real)
            for layer in range(len(brought))
            for head in range(brought.shape[2])
        ]
        size = brought.norm(dim=-1).mean((1, 3)).min().item()
        return size, {
            "brought": min(heads),
            "end": alike(bench.hidden(patient, inputs, plan)[-1], real),
            "accuracy": 100 * bench.ask(patient, table, lang, plan).mean,
        }

    size_before, base = bench.unoperated(run, patient, lang, seed)
    size_after, operated = run(plan)
    return base, operated, {"silent": size_after < 0.01 * size_before, "rise": operated["end"] - base["end"]}


def fault(plan: Plan, evidence: Evidence) -> Fault:
    """Every head must bring every token the same, and bring something."""
    after = evidence.operated
    if evidence.facts["silent"]:
        return "silent"
    if "positions" in stages(plan) and after["brought"] < SAME:
        return "positions"
    if after["brought"] < evidence.baseline["brought"]:
        return "more_different"
    if after["brought"] < SAME:
        return "some_heads" if any(not step.selection.everywhere for step in plan) else "not_same"
    return None


def outcome(evidence: Evidence) -> Outcome:
    """Whether the tokens themselves became one."""
    end, rise = evidence.operated["end"], evidence.facts["rise"]
    return Outcome("one" if end > 0.95 else "closer" if rise > 0.02 else "apart", end)


EXERCISE = Exercise(
    name="collapse-flat",
    title=Words("Collapse, the flat kind", "塌缩之二：平坦"),
    question=Words(
        "If every head brings every token the same mixture, do all tokens become one and the same?",
        "如果每个头给每个词元带来的都是同一种混合，所有词元会变得一模一样吗？",
    ),
    know=(
        Words(
            "A head adds a weighted mean of values to each token; if all rows have the same weights, all tokens are given the same.",
            "一个头给每个词元加上值的加权平均；如果每一行权重都相同，所有词元得到的就一样。",
        ),
        Words(
            "Stacked attention without anything else makes all tokens alike, quickly with depth (“rank collapse”, Dong et al. 2021).",
            "只堆叠注意力而没有别的部分时，词元会随深度迅速变得相同（“秩塌缩”，Dong 等，2021）。",
        ),
        Words(
            "A Transformer also has residual connections: what is brought is added to what the token already is.",
            "Transformer 还有残差连接：带来的东西是加到词元原有的内容上的。",
        ),
    ),
    equation="x_i ← x_i + Σ_j weight_ij · v_j",
    models=bench.ENCODERS,
    prediction=Prediction(
        Words(
            "Every head brings all tokens the same. How alike (mean cosine of two tokens) are the tokens at the end?",
            "每个头带给所有词元的都一样。最后词元之间有多像（两个词元的平均余弦）？",
        ),
        (
            Choice("one", Words("They are one: cosine nearly 1.", "变成一个：余弦接近 1。")),
            Choice("closer", Words("Closer than before, far from one.", "比原来更近，但远不是一个。")),
            Choice("apart", Words("As far apart as before, or farther.", "和原来一样远，或更远。")),
        ),
        Number(
            Words("The mean cosine at the end", "最后的平均余弦"),
            low=0,
            high=1,
            near=0.1,
            step=0.01,
            digits=2,
        ),
    ),
    task=Words(
        "make every head bring every token the same thing (mean cosine at least 0.999 in each head), and do bring something.",
        "让每个头带给每个词元的东西都相同（每个头的平均余弦至少 0.999），而且确实带来了东西。",
    ),
    quantities=(
        Quantity(
            "brought",
            Words(
                "how alike: what a head brings to two tokens (the head where they differ most)",
                "一个头带给两个词元的内容有多像（差别最大的头）",
            ),
            digits=3,
        ),
        Quantity("end", Words("how alike: two tokens at the end", "最后两个词元有多像"), digits=2),
        Quantity("accuracy", Words("questions answered right", "答对的问题"), Words(" %", " %"), digits=1),
    ),
    measured=measured,
    fault=fault,
    hints={
        "silent": Words(
            "Some head brings nothing any more: zeros are alike, but that is no collapse, it is silence. Let all heads speak.",
            "有的头什么也不带来了：零当然都一样，但这不是塌缩，而是沉默。请让所有头都发声。",
        ),
        "positions": Words(
            "You changed places, and heads still bring different things to different words ({after[brought]}): they choose by word as well. Take the choosing away.",
            "您改动了位置，但头仍给不同的词带来不同的东西（{after[brought]}）：它们也按词选择。请让它们不再选择。",
        ),
        "more_different": Words(
            "Heads now bring more different things ({after[brought]} instead of {before[brought]}): you made them choosier. The other direction.",
            "现在头带来的东西差别更大了（{after[brought]}，原来 {before[brought]}）：您让它们更挑剔了。请反过来。",
        ),
        "not_same": Words(
            "More alike ({after[brought]}), but there still are differences between rows. What makes all rows equal?",
            "更像了（{after[brought]}），但各行之间仍有差别。怎样让所有行都相同？",
        ),
        "some_heads": Words(
            "In some head it is still {after[brought]}: your selection leaves heads out.",
            "有的头仍是 {after[brought]}：您的选择漏掉了一些头。",
        ),
    },
    outcome=outcome,
    explanation=Words(
        "Every head brings all tokens the same ({before[brought]} → {after[brought]}), and the answers are gone ({after[accuracy]}); yet two tokens at the end have a cosine of {after[end]} (before: {before[end]}). The residual connection keeps each token what it was; attention only adds a common part. “Attention collapse” in deep networks is real where the "
        "residual is weak or attention is stacked alone; in MiniLM's six layers uniform attention leaves {known[collapse_minilm_uniform]} (before: {known[collapse_minilm]}). Look at both numbers before you call something collapsed: what is brought, and what becomes of the tokens.",
        "每个头带给所有词元的都一样了（{before[brought]} → {after[brought]}），答案也没了（{after[accuracy]}）；但最后两个词元的余弦是 {after[end]}（原来 {before[end]}）。残差连接保住了每个词元原来的内容，注意力只是加上了共同的部分。深层网络中的“注意力塌缩”在残差很弱或只堆叠注意力时确实存在；"
        "在 MiniLM 的六层里，均匀注意力后为 {known[collapse_minilm_uniform]}（原来 {known[collapse_minilm]}）。说“塌缩”之前请看两个数：带来了什么，以及词元变成了什么。",
    ),
    further=Words(
        "Put all tokens at the same place as well: now what told them apart at the entrance is smaller. How alike do they end?",
        "再让所有词元站在同一位置：入口处区分它们的东西更少了。最后有多像？",
    ),
    further_plan=Plan(UniformAttention(), SamePosition()),
    solution=Plan(UniformAttention()),
    ask=Words(
        "Which part of the block would you remove to make tokens collapse for good?",
        "要让词元真正塌缩，您会去掉模块中的哪一部分？",
    ),
    minutes=8,
)
