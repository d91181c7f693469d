"""Saturation: the gradient that still reaches the scores."""

from typing import Any

import torch

from bilingual import Words
from models.tasks.sentences import reading
from surgery import theatre
from surgery.capture import Keep
from surgery.operations import Temperature
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
    uses,
)

PAIRS = 60
ASKED = 60  # questions whose gradients are taken
DEAD = 1e-3  # of the baseline's gradient


def gradients(patient: Any, ids: torch.Tensor, plan: Plan) -> tuple[float, float, float]:
    """d (sum of the winning logits) / d scores: the median and the r.m.s. over queries of the size of a query's gradient,
    and the share of a query's keys that its masks permit."""
    inputs = {name: value.to(patient.device) for name, value in reading(ids).items()}
    real, keep = ids != 0, Keep()
    scope = bench.scoped(patient, plan, witnesses=keep)
    with torch.enable_grad(), theatre.in_eval(patient.model), scope:
        logits = patient.model(**inputs).logits
        won = (logits.amax(-1) * real.to(logits.device)).sum()
        scores = [keep.sites[layer].scores for layer in sorted(keep.sites)]
        found = torch.autograd.grad(won, scores, allow_unused=True)
    sizes = torch.stack([torch.zeros_like(s) if g is None else g for g, s in zip(found, scores, strict=True)])
    sizes = sizes.norm(dim=-1).cpu()  # (layer, row, head, query)
    queries = real[None, :, None].expand(sizes.shape)
    allowed = bench.permitted(keep.sites) & real[None, :, None, None, :]
    return (
        sizes[queries].median().item(),
        sizes[queries].square().mean().sqrt().item(),
        allowed.sum(-1)[queries].float().mean().item(),
    )


def measured(patient: Any, plan: Plan, lang: str, seed: int) -> Measured:
    """Gradients at the scores, sharpness, and accuracy."""
    table = bench.examples(lang, seed, PAIRS)
    inputs = reading(table.ids[:ASKED])
    real = inputs["attention_mask"].bool()

    def run(plan: Plan) -> tuple[float, dict[str, float]]:
        weights = bench.stacked(bench.sites(patient, inputs, plan), "weights")
        median, rms, keys = gradients(patient, table.ids[:ASKED], plan)
        return keys, {
            "gradient": median,
            "rms": rms,
            "largest": bench.by_head(weights.amax(-1), real).mean().item(),
            "accuracy": 100 * bench.ask(patient, table, lang, plan).mean,
        }

    keys_before, base = bench.unoperated(run, patient, lang, seed)
    keys_after, operated = run(plan)
    share = operated["gradient"] / base["gradient"]
    return base, operated, {"share": share, "keys_before": keys_before, "keys_after": keys_after}


def fault(plan: Plan, evidence: Evidence) -> Fault:
    """The median gradient must die from sharp scores, not from masks, and the model must go on answering."""
    fact, after = evidence.facts, evidence.operated
    if fact["keys_after"] < 0.99 * fact["keys_before"]:
        return "masked"
    if uses(plan, "ablate_head", "output_dropout", "weight_dropout", "score_dropout"):
        return "cut_off"
    if after["largest"] < evidence.baseline["largest"]:
        return "flat"
    if fact["share"] > 0.9:
        return "no_effect"
    if fact["share"] > DEAD:
        return "not_enough"
    return "broken" if after["accuracy"] < 85 else None


def outcome(evidence: Evidence) -> Outcome:
    """What became of the answers."""
    accuracy = evidence.operated["accuracy"]
    return Outcome("right" if accuracy >= 85 else "half" if accuracy >= 40 else "wrong", accuracy)


EXERCISE = Exercise(
    name="saturation",
    title=Words("A softmax that is sure", "过于自信的 softmax"),
    question=Words(
        "“Large scores give vanishing gradients.” How large, which gradients, and what does it matter to a trained model?",
        "“分数太大，梯度就会消失。”要多大？哪些梯度？对训练好的模型又有什么影响？",
    ),
    know=(
        Words(
            "The slope of the softmax at a key with weight p is p(1 − p): almost nothing where p is near 0 or near 1.",
            "softmax 在权重为 p 的键处的斜率是 p(1 − p)：p 接近 0 或 1 时几乎为零。",
        ),
        Words(
            "What cannot get back through the softmax cannot teach the queries and keys anything.",
            "回不到 softmax 之前的梯度，就教不了查询和键任何东西。",
        ),
        Words(
            "Measured here, by real backpropagation through the encoder: for each query the size of the gradient at its scores; the median and the root mean square over all queries.",
            "这里用真实的反向传播来测：每个查询在其分数处的梯度大小；取所有查询的中位数与均方根。",
        ),
    ),
    equation="∂w_i / ∂s_j = w_i (δ_ij − w_j)",
    models=bench.ENCODERS,
    prediction=Prediction(
        Words(
            "Once almost no gradient gets back through the softmax, how does the trained encoder answer?",
            "当几乎没有梯度能穿过 softmax 时，训练好的编码器答题会怎样？",
        ),
        (
            Choice("wrong", Words("It is lost: under 40 % right.", "完全不行：正确率低于 40 %。")),
            Choice("half", Words("Half and half: 40 to 85 %.", "一半一半：40 % 到 85 %。")),
            Choice("right", Words("It goes on: at least 85 % right.", "照常回答：至少 85 % 正确。")),
        ),
        Number(
            Words("Questions still answered right", "仍能答对的问题"),
            low=0,
            high=100,
            near=5,
            unit=Words(" %", " %"),
        ),
    ),
    task=Words(
        "make the scores so large that the median gradient at the scores falls below a thousandth of the baseline's, with every key still permitted and every head at work.",
        "让分数大到使分数处梯度的中位数降到基线的千分之一以下，同时所有键仍被允许、所有头仍在工作。",
    ),
    quantities=(
        Quantity(
            "gradient", Words("median gradient at a query's scores", "查询分数处梯度的中位数"), small=True
        ),
        Quantity("rms", Words("root mean square of the same", "同上，均方根"), digits=2),
        Quantity("largest", Words("mean largest weight of a query", "每个查询的最大权重（平均）"), digits=2),
        Quantity("accuracy", Words("questions answered right", "答对的问题"), Words(" %", " %"), digits=1),
    ),
    measured=measured,
    fault=fault,
    hints={
        "masked": Words(
            "You took keys away ({fact[keys_after]:.1f} permitted for a query instead of {fact[keys_before]:.1f}). Of course a lone key has no gradient: it always gets weight 1. Saturate with all keys in place.",
            "您拿走了一些键（每个查询允许 {fact[keys_after]:.1f} 个，原来 {fact[keys_before]:.1f} 个）。只剩一个键当然没有梯度：它的权重永远是 1。请在键齐全的情况下让它饱和。",
        ),
        "cut_off": Words(
            "The gradient is gone because you cut the head or its connections, not because the softmax is sure of itself. Leave everything connected and change how large the scores are.",
            "梯度没了，是因为您切断了头或连接，而不是 softmax 太自信。请保持连接，只改变分数的大小。",
        ),
        "flat": Words(
            "Attention became flatter (largest weight {after[largest]} instead of {before[largest]}) and gradients pass well ({after[gradient]}). Saturation lies on the other side.",
            "注意力变平了（最大权重 {after[largest]}，原来 {before[largest]}），梯度很容易通过（{after[gradient]}）。饱和在另一侧。",
        ),
        "no_effect": Words(
            "As much gradient as before ({after[gradient]}). You need larger scores in most heads.",
            "梯度和原来差不多（{after[gradient]}）。需要让大多数头的分数更大。",
        ),
        "not_enough": Words(
            "The right direction: the median gradient is {fact[share]:.4f} of the baseline's, the largest weight {after[largest]}. Dropping 1/√d_k multiplies scores of 16-wide heads by 4 only; go further, in all heads.",
            "方向对了：梯度中位数是基线的 {fact[share]:.4f} 倍，最大权重 {after[largest]}。对宽 16 的头，去掉 1/√d_k 只把分数放大 4 倍；请在所有头上再进一步。",
        ),
        "broken": Words(
            "The gradient is gone, but so are the answers ({after[accuracy]}): something else broke as well. Only make the scores larger.",
            "梯度没了，但答案也没了（{after[accuracy]}）：还有别的东西坏了。请只放大分数。",
        ),
    },
    outcome=outcome,
    explanation=Words(
        "The median gradient fell from {before[gradient]} to {after[gradient]}, the largest weight of a query rose to {after[largest]}, and still {after[accuracy]} of the questions are answered right: saturation hardly hurts answering, it hurts learning. "
        "But look at the root mean square: {before[rms]} before, {after[rms]} now. The few queries that stand undecided between two keys still get nearly all of it. So: “vanishing” is right for most queries and wrong for the sum; and a softmax "
        "can be too sure for training while it is just right for use.",
        "梯度中位数从 {before[gradient]} 降到 {after[gradient]}，最大权重升到 {after[largest]}，但仍有 {after[accuracy]} 的问题答对：饱和几乎不妨碍回答，它妨碍的是学习。再看均方根：原来 {before[rms]}，现在 {after[rms]}。"
        "少数在两个键之间犹豫不决的查询，仍然得到几乎全部梯度。所以“梯度消失”对大多数查询成立，对总和却不成立；对训练来说过于自信的 softmax，用来回答却刚刚好。",
    ),
    further=Words(
        "Go on to a temperature of 0.001. When does the root mean square fall too?",
        "继续降到温度 0.001。均方根什么时候也会下降？",
    ),
    further_plan=Plan(Temperature(0.001)),
    solution=Plan(Temperature(0.04)),
    ask=Words(
        "Why does BERT start from small weights (standard deviation 0.02)?",
        "BERT 为什么从很小的权重（标准差 0.02）开始训练？",
    ),
    minutes=12,
)
