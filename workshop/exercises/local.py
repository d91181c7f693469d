"""The smallest window that keeps the answers."""

from dataclasses import replace
from typing import Any

import torch

from bilingual import Words
from models.tasks.sentences import reading
from surgery.operations import LocalMask
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

PAIRS = 240
KEEPS = 98.0
LESS = 2  # tokens on each side, for the comparison


def narrower(plan: Plan) -> Plan:
    """The plan with every window LESS tokens narrower on each side."""
    return Plan(
        *(
            replace(step, operation=LocalMask(max(0, step.operation.half_width - LESS)))
            if isinstance(step.operation, LocalMask)
            else step
            for step in plan
        )
    )


def measured(patient: Any, plan: Plan, lang: str, seed: int) -> Measured:
    """Accuracy under the plan and under narrower windows, and how far any head still looks."""
    table = bench.examples(lang, seed, PAIRS)
    inputs = reading(table.ids[:60])
    real = inputs["attention_mask"].bool()
    places = torch.arange(table.ids.shape[1])
    apart = (places[:, None] - places).abs()

    def run(plan: Plan) -> dict[str, float]:
        allowed = bench.permitted(bench.sites(patient, inputs, plan))
        allowed = allowed & real[None, :, None, :, None] & real[None, :, None, None, :]
        accuracy = 100 * bench.ask(patient, table, lang, plan).mean
        other = narrower(plan)
        less = accuracy if other == plan else 100 * bench.ask(patient, table, lang, other).mean
        return {"reach": float((allowed * apart).max()), "accuracy": accuracy, "narrower": less}

    longest = int(real.sum(1).max())
    return bench.unoperated(run, patient, lang, seed), run(plan), {"longest": longest, "far": longest - 1}


def fault(plan: Plan, evidence: Evidence) -> Fault:
    """At least KEEPS % right, and fewer with a window LESS narrower."""
    after = evidence.operated
    if not uses(plan, "local_mask"):
        return "no_window"
    if after["reach"] >= evidence.baseline["reach"]:
        return "still_far"
    if stages(plan) != {"mask"}:
        return "others"
    if after["accuracy"] < KEEPS:
        return "too_narrow"
    return "too_wide" if after["narrower"] >= KEEPS else None


def outcome(evidence: Evidence) -> Outcome:
    """How the width compares with the sentence, and the half-width."""
    reach, longest = evidence.operated["reach"], evidence.facts["longest"]
    key = "near" if reach <= 3 else "half" if reach <= 0.5 * longest else "most"
    return Outcome(key, reach)


EXERCISE = Exercise(
    name="local",
    title=Words("How far must it see?", "要看多远？"),
    question=Words(
        "Long texts are read with windows: each token sees only its neighbours. How wide must the window be, and what decides it?",
        "长文本常用窗口来读：每个词元只看邻居。窗口要多宽？由什么决定？",
    ),
    know=(
        Words(
            "With half-width w a token sees 2w + 1 tokens; with two layers, news can travel 2w.",
            "半宽为 w 时，一个词元能看到 2w + 1 个词元；两层之后，信息最多走 2w。",
        ),
        Words(
            "The longest questions here have about twenty tokens; some answers need a word from the beginning of the sentence.",
            "这里最长的问题约有二十个词元；有些答案需要句子开头的词。",
        ),
        Words(
            "The model was trained with full sight, so it never learned to pass news on in steps.",
            "模型是在全视野下训练的，因此从没学过接力传递信息。",
        ),
    ),
    equation="allowed(i, j) = (|i − j| ≤ w)",
    models=bench.ENCODERS,
    prediction=Prediction(
        Words(
            "Up to which half-width can the window shrink, with 98 % of the questions still right?",
            "窗口的半宽最小能缩到多少，仍有 98 % 的问题答对？",
        ),
        (
            Choice("near", Words("3 or less: grammar is local.", "3 以内：语法是局部的。")),
            Choice("half", Words("Up to half of the longest question.", "不超过最长问题的一半。")),
            Choice("most", Words("More than half of it.", "超过一半。")),
        ),
        Number(Words("The smallest half-width", "最小半宽"), low=0, high=24, near=2),
    ),
    task=Words(
        "find the narrowest window on all heads that leaves at least 98 % of the answers right: with a half-width smaller by two, it is fewer.",
        "为所有头找到最窄的窗口，使至少 98 % 的答案正确：半宽再小二就不够了。",
    ),
    quantities=(
        Quantity(
            "reach",
            Words("the farthest that any head may look", "任何头最远能看到的距离"),
            Words(" tokens", " 个词元"),
            digits=0,
        ),
        Quantity("accuracy", Words("questions answered right", "答对的问题"), Words(" %", " %"), digits=1),
        Quantity(
            "narrower",
            Words("the same, half-width smaller by 2", "同上，半宽再小 2"),
            Words(" %", " %"),
            digits=1,
        ),
    ),
    measured=measured,
    fault=fault,
    hints={
        "no_window": Words(
            "Some head may still look {after[reach]} far, and what you did is no window. Which mask depends on the distance?",
            "仍有头能看到 {after[reach]} 远，而您做的并不是窗口。哪种掩码取决于距离？",
        ),
        "still_far": Words(
            "Some head may still look {after[reach]} far, as in the baseline: the window is wider than the sentence, or heads are left out.",
            "仍有头能看到 {after[reach]} 远，与基线相同：要么窗口比句子还宽，要么漏掉了一些头。",
        ),
        "others": Words(
            "The window is one thing; your plan does another as well, and {after[accuracy]} is the result of both. Keep the window only.",
            "除了窗口，您的计划还做了别的，{after[accuracy]} 是两者的共同结果。请只保留窗口。",
        ),
        "too_narrow": Words(
            "A reach of {after[reach]} leaves {after[accuracy]} right: too narrow for 98 %.",
            "能看到 {after[reach]} 远时正确率为 {after[accuracy]}：太窄，不到 98 %。",
        ),
        "too_wide": Words(
            "{after[accuracy]} right, but two tokens narrower still gives {after[narrower]}: go on.",
            "正确率 {after[accuracy]}，但半宽再小二仍有 {after[narrower]}：继续缩小。",
        ),
    },
    outcome=outcome,
    explanation=Words(
        "A half-width of {after[reach]} keeps {after[accuracy]}; two less, {after[narrower]}. That is no property of the language but of the questions: “who did it?” stands at the end and its answer near the beginning, so the window must span nearly the whole "
        "text ({fact[longest]} tokens). Two layers could pass news on in two steps of half the length; this model never had to learn that. Long-context models are therefore trained with their windows, and keep a few tokens that everybody may see.",
        "半宽 {after[reach]} 时正确率 {after[accuracy]}；再小二，只有 {after[narrower]}。这不是语言的性质，而是问题的性质：“谁做的？”在末尾，答案却靠近开头，窗口几乎要覆盖整段文本（{fact[longest]} 个词元）。"
        "两层本可以分两步接力，但这个模型从来不必学会。因此长上下文模型会带着窗口训练，并保留少数人人可见的词元。",
    ),
    further=Words(
        "Narrow the window in the first layer only, then in the second only: which one needs the sight?",
        "只在第一层缩小窗口，再只在第二层：哪一层需要看得远？",
    ),
    further_plan=Plan(LocalMask(4).at(layers=0)),
    solution=Plan(LocalMask(13)),
    solutions={"zh": Plan(LocalMask(14))},
    ask=Words(
        "You may choose one token that everybody can always see. Which one, and what would it be for?",
        "如果可以指定一个所有词元始终可见的词元，您选哪个？它有什么用？",
    ),
    minutes=10,
)
