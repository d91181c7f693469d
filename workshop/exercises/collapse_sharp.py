"""Collapse, the sharp kind: one-hot attention of random weights, and where it lands."""

from typing import Any

import torch

from bilingual import Words
from models.tasks.sentences import reading
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
ONE_HOT = 0.95


def measured(patient: Any, plan: Plan, lang: str, seed: int) -> Measured:
    """How sharp attention is, and how often the largest weight is on the token itself or on the first token."""
    inputs = reading(bench.examples("en", seed, PAIRS).ids)
    real = inputs["attention_mask"].bool()
    places = torch.arange(real.shape[1])

    def run(plan: Plan) -> tuple[float, dict[str, float]]:
        found = bench.sites(patient, inputs, plan)
        weights, keys = bench.stacked(found, "weights"), bench.permitted(found)
        keys = (keys & real[None, :, None, None, :]).sum(-1)
        top = weights.argmax(-1)  # (layer, row, head, query)
        return bench.by_head(keys.float(), real).mean().item(), {
            "largest": bench.by_head(weights.amax(-1), real).min().item(),
            "self": 100 * bench.by_head((top == places).float(), real).mean().item(),
            "first": 100 * bench.by_head((top == 0).float(), real).mean().item(),
            "chance": 100 * bench.by_head(1 / keys.clamp(min=1), real).mean().item(),
        }

    keys_before, base = bench.unoperated(run, patient, lang, seed)
    keys_after, operated = run(plan)
    return base, operated, {"keys_before": keys_before, "keys_after": keys_after}


def fault(plan: Plan, evidence: Evidence) -> Fault:
    """Nearly one-hot in every head, by the scores alone."""
    fact, after = evidence.facts, evidence.operated
    if fact["keys_after"] < 0.99 * fact["keys_before"]:
        return "masked"
    if after["largest"] < evidence.baseline["largest"]:
        return "flatter"
    if after["largest"] < ONE_HOT:
        return "some_heads" if _partly(plan) else "not_sharp"
    return None if stages(plan) == {"scale"} else "others"


def _partly(plan: Plan) -> bool:
    return any(not step.selection.everywhere for step in plan)


def outcome(evidence: Evidence) -> Outcome:
    """Where one-hot attention lands, and how often on the token itself."""
    after = evidence.operated
    near, first = after["self"] > 3 * after["chance"], after["first"] > 3 * after["chance"]
    return Outcome("self" if near else "first" if first else "anywhere", after["self"])


EXERCISE = Exercise(
    name="collapse-sharp",
    title=Words("Collapse, the sharp kind", "塌缩之一：尖锐"),
    question=Words(
        "“With large initial weights attention collapses onto the diagonal: every token sees only itself.” Does it?",
        "“初始权重太大时，注意力会塌缩到对角线上：每个词元只看自己。”真的吗？",
    ),
    know=(
        Words(
            "This is the encoder before training: all weights are random, W_q and W_k are drawn apart from each other.",
            "这是训练之前的编码器：权重都是随机的，W_q 与 W_k 彼此独立地抽取。",
        ),
        Words(
            "Larger weights make larger scores; dividing the scores by a small T has the same effect on the softmax.",
            "权重更大，分数就更大；把分数除以很小的 T，对 softmax 的效果相同。",
        ),
        Words(
            "A one-hot row gives everything to the key with the largest score: which one that is depends on q·k.",
            "独热的一行把全部权重给分数最大的键：是哪一个，取决于 q·k。",
        ),
    ),
    equation="T → 0: weight_ij → [j = argmax_k (W_q x_i)·(W_k x_k)]",
    models={"en": "encoder-untrained", "zh": "encoder-untrained"},
    prediction=Prediction(
        Words("When this attention becomes one-hot, where does it land?", "当注意力变成独热时，会落在哪里？"),
        (
            Choice("self", Words("On the token itself: the diagonal.", "自己：对角线。")),
            Choice("first", Words("On the first token.", "第一个词元。")),
            Choice(
                "anywhere",
                Words(
                    "Anywhere; on itself no more often than by chance.",
                    "任意位置；落在自己身上的次数不比随机多。",
                ),
            ),
        ),
        Number(
            Words("In how many per cent of the rows on the token itself?", "有百分之多少的行落在自己身上？"),
            low=0,
            high=100,
            near=5,
            unit=Words(" %", " %"),
        ),
    ),
    task=Words(
        "make every head of the untrained encoder nearly one-hot (largest weight at least 0.95 on average) by its scores, with all keys permitted.",
        "让未训练编码器的每个头都接近独热（最大权重平均至少 0.95），只通过分数，所有键仍被允许。",
    ),
    quantities=(
        Quantity(
            "largest",
            Words("mean largest weight, in the flattest head", "最大权重的平均值（最平坦的头）"),
            digits=2,
        ),
        Quantity(
            "self",
            Words("rows with the largest weight on themselves", "最大权重落在自己的行"),
            Words(" %", " %"),
            digits=1,
        ),
        Quantity(
            "first",
            Words("rows with the largest weight on the first token", "最大权重落在第一个词元的行"),
            Words(" %", " %"),
            digits=1,
        ),
        Quantity("chance", Words("by chance", "随机期望"), Words(" %", " %"), digits=1),
    ),
    measured=measured,
    fault=fault,
    hints={
        "masked": Words(
            "One-hot, perhaps, but because you took the other keys away ({fact[keys_after]:.1f} permitted instead of {fact[keys_before]:.1f}): you chose the place, not the scores. Leave all keys and make the scores decide.",
            "也许是独热，但那是因为您拿走了其他键（允许 {fact[keys_after]:.1f} 个，原来 {fact[keys_before]:.1f} 个）：位置是您选的，不是分数选的。请保留所有键，让分数决定。",
        ),
        "flatter": Words(
            "Flatter than before ({after[largest]} instead of {before[largest]}): the other direction.",
            "比原来更平（{after[largest]}，原来 {before[largest]}）：方向反了。",
        ),
        "not_sharp": Words(
            "Sharper ({after[largest]}), but not one-hot: larger scores still.",
            "更尖锐了（{after[largest]}），但还不是独热：分数要再大一些。",
        ),
        "some_heads": Words(
            "In the flattest head the largest weight is {after[largest]}: your selection leaves heads out.",
            "最平坦的头里最大权重是 {after[largest]}：您的选择漏掉了一些头。",
        ),
        "others": Words(
            "Sharp it is, but you also changed another stage. Only the size of the scores.",
            "确实尖锐了，但您还改动了别的阶段。请只改变分数的大小。",
        ),
    },
    outcome=outcome,
    explanation=Words(
        "Largest weight {after[largest]}; on the token itself in {after[self]} of the rows, where chance gives {after[chance]}. With W_q and W_k drawn apart there is no reason why a token should match itself. The diagonal appears if W_q ≈ W_k: random layers of width 64 give {known[diagonal_apart]} % of rows to the token itself with independent "
        "matrices, {known[diagonal_same]} % with W_q = W_k (chance: {known[diagonal_chance]} %). W_v has no part in it: it is not in the scores. What large initial weights really do is to choose at random and, as exercise 6 shows, leave hardly a gradient to change the choice.",
        "最大权重 {after[largest]}；有 {after[self]} 的行落在自己身上，随机期望是 {after[chance]}。W_q 与 W_k 独立抽取，没有理由让词元与自己最匹配。只有 W_q ≈ W_k 时才会出现对角线：宽 64 的随机层，两矩阵独立时 {known[diagonal_apart]} % 的行落在自己，W_q = W_k 时为 {known[diagonal_same]} %（随机期望 {known[diagonal_chance]} %）。"
        "W_v 与此无关，它不在分数里。初始权重过大的真正后果是随机地作了选择，而且如练习 6 所示，几乎没有梯度能改变这个选择。",
    ),
    further=Words(
        "How sharp does dropping 1/√d_k alone make it? Is that a collapse?",
        "只去掉 1/√d_k 会有多尖锐？那算塌缩吗？",
    ),
    further_plan=Plan(DropScaling()),
    solution=Plan(Temperature(0.002)),
    ask=Words(
        "How would you initialise W_q and W_k so that every token begins by looking at itself?",
        "怎样初始化 W_q 和 W_k，才能让每个词元一开始就看着自己？",
    ),
    minutes=8,
)
