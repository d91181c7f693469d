"""A causal mask on a model that was trained to look both ways."""

from typing import Any

from bilingual import Words
from models.tasks.grammar import ASKED
from models.tasks.sentences import reading
from surgery.operations import CausalMask
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
    uses,
)

PAIRS = 100
KINDS = {
    "role": Words("who did it?", "谁做的？"),
    "review": Words("good or bad overall?", "总体是好是坏？"),
    "agree": Words("the form that fits the subject", "与主语相配的词形（量词）"),
    "reflex": Words("the pronoun that fits the subject", "与主语相配的代词"),
}


def measured(patient: Any, plan: Plan, lang: str, seed: int) -> Measured:
    """Accuracy by kind of question, and the weight that looks ahead and back."""
    table = bench.examples(lang, seed, PAIRS)
    inputs = reading(table.ids[::4])
    real = inputs["attention_mask"].bool()

    def run(plan: Plan) -> dict[str, float]:
        weights = bench.stacked(bench.sites(patient, inputs, plan), "weights")
        ahead = bench.by_head(weights.triu(1).sum(-1), real)
        back = bench.by_head(weights.tril(-1).sum(-1), real)
        found = bench.ask(patient, table, lang, plan)
        kinds = {kind: 100 * value for kind, value in found.by_kind.items()}
        return {"ahead": 100 * ahead.max().item(), "back": 100 * back.mean().item(), **kinds}

    base, operated = bench.unoperated(run, patient, lang, seed), run(plan)
    worst = min(ASKED, key=lambda kind: operated[kind] - base[kind])
    best = max(ASKED, key=lambda kind: operated[kind] - base[kind])
    facts = {
        "key": worst,
        "worst": KINDS[worst],
        "left": operated[worst],
        "best": KINDS[best],
        "kept": operated[best],
    }
    return base, operated, facts


def fault(plan: Plan, evidence: Evidence) -> Fault:
    """No weight ahead in any head, weight back as before, nothing else."""
    after = evidence.operated
    if after["ahead"] > 0.01:
        return "some_heads" if uses(plan, "causal_mask") else "ahead"
    if after["back"] < 20:
        return "no_past"
    return None if stages(plan) <= {"mask"} else "others"


def outcome(evidence: Evidence) -> Outcome:
    """The kind of question that suffers most, and what is left of it."""
    return Outcome(evidence.facts["key"], evidence.facts["left"])


EXERCISE = Exercise(
    name="causal",
    title=Words("Nobody may look ahead", "谁也不许往后看"),
    question=Words(
        "A decoder never sees what comes later. What does an encoder lose that was trained to look both ways, if it may no longer look ahead?",
        "解码器从来看不到后文。一个训练时可以双向看的编码器，如果不许再看后文，会失去什么？",
    ),
    know=(
        Words(
            "A causal mask permits key j to query i only if j ≤ i.", "因果掩码只允许查询 i 看 j ≤ i 的键。"
        ),
        Words(
            "The answer stands at [MASK]; in two kinds of question it comes last, in the others words follow it.",
            "答案在 [MASK] 处；有两类问题它在最后，另外两类后面还有词。",
        ),
        Words(
            "Even an answer that comes last may depend on tokens that looked ahead one layer earlier.",
            "即使答案在最后，也可能依赖于上一层曾经往后看过的词元。",
        ),
    ),
    equation="allowed(i, j) = (j ≤ i)",
    models=bench.ENCODERS,
    prediction=Prediction(
        Words("Which kind of question will lose most?", "哪一类问题损失最大？"),
        tuple(Choice(kind, words) for kind, words in KINDS.items()),
        Number(
            Words("What is left of it?", "它还剩多少正确率？"),
            low=0,
            high=100,
            near=10,
            unit=Words(" %", " %"),
        ),
    ),
    task=Words(
        "let no head give any weight to a later token, while it may still look back; then compare the four kinds of question.",
        "让所有头都不给后面的词元任何权重，但仍可以往前看；然后比较四类问题。",
    ),
    quantities=(
        Quantity(
            "ahead",
            Words("weight on later tokens, in the head that has most", "后文得到的权重（最多的头）"),
            Words(" %", " %"),
            digits=1,
        ),
        Quantity(
            "back",
            Words("weight on earlier tokens, mean", "前文得到的权重（平均）"),
            Words(" %", " %"),
            digits=1,
        ),
        *(Quantity(kind, words, Words(" %", " %"), digits=0) for kind, words in KINDS.items()),
    ),
    measured=measured,
    fault=fault,
    hints={
        "ahead": Words(
            "Some head still gives {after[ahead]} of its weight to later tokens. What decides whom a query may see?",
            "仍有头把 {after[ahead]} 的权重给了后文。是什么决定查询能看谁？",
        ),
        "some_heads": Words(
            "Some heads obey, others still give {after[ahead]} to later tokens: what one head may not see, another tells it. Close all of them.",
            "有的头遵守了，但仍有头把 {after[ahead]} 的权重给了后文：一个头看不到的，另一个会告诉它。请全部关上。",
        ),
        "no_past": Words(
            "Nothing looks ahead any more, but hardly anything looks back either ({after[back]} of the weight): you shut both doors. Leave the past open.",
            "确实没有人往后看了，但也几乎没有人往前看（占权重 {after[back]}）：您把两扇门都关了。请把前文留着。",
        ),
        "others": Words(
            "Nobody looks ahead, but the plan also works at another stage, so the losses are not the mask's alone. Keep the mask only.",
            "没有人往后看了，但计划还改动了别的阶段，因此损失不全来自掩码。请只保留掩码。",
        ),
    },
    outcome=outcome,
    explanation=Words(
        "What was lost most is “{fact[worst]}”, with {fact[left]:.0f} % left; “{fact[best]}” keeps {fact[kept]:.0f} %. Whether words follow the [MASK] does not decide it: what counts is whether this network let a word learn from later ones in its "
        "first layer. That is a matter of chance in training: over retrained encoders (mean ± sd of 3 seeds) who-did-it keeps {known[causal_role]} %, reviews {known[causal_review]} %, the verb {known[causal_agree]} % and the pronoun {known[causal_reflex]} %. An encoder "
        "trained with the mask from the start reaches {known[causal_trained]} % on average: the task could be done, these networks just do it the other way.",
        "损失最大的是“{fact[worst]}”，只剩 {fact[left]:.0f} %；“{fact[best]}”仍有 {fact[kept]:.0f} %。[MASK] 后面有没有词并不是决定因素：关键在于这个网络的第一层是否让词向后文学习。这取决于训练中的偶然：重新训练的英文编码器"
        "（3 个种子的均值 ± 标准差），“谁做的”剩 {known[causal_role]} %，评价 {known[causal_review]} %，动词 {known[causal_agree]} %，代词 {known[causal_reflex]} %。从一开始就带着掩码训练的编码器平均能达到 {known[causal_trained]} %：任务本来可以完成，只是这些网络走了另一条路。",
    ),
    further=Words(
        "Put the mask on one layer only. Where does the looking ahead happen?",
        "只在一层加掩码。往后看发生在哪一层？",
    ),
    further_plan=Plan(CausalMask().at(layers=0)),
    solution=Plan(CausalMask()),
    ask=Words(
        "What would you have to do to turn an encoder into a decoder, besides adding the mask?",
        "除了加掩码，要把编码器变成解码器还需要做什么？",
    ),
    minutes=10,
)
