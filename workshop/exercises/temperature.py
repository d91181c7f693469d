"""Temperature: the two sides are not alike."""

from dataclasses import replace
from typing import Any

from bilingual import Words
from models.tasks.sentences import Table, reading
from surgery.operations import Temperature, UniformAttention
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

PAIRS = 80
BROKEN, RIGHT = 70.0, 90.0
HOTTEST = 16.0
NARROW = 0.02  # how far the search for the threshold goes


def turned(plan: Plan) -> Plan:
    """The plan with every temperature t turned into 1/t."""
    return Plan(
        *(
            replace(step, operation=Temperature(1 / step.operation.t))
            if isinstance(step.operation, Temperature)
            else step
            for step in plan
        )
    )


def measured(patient: Any, plan: Plan, lang: str, seed: int) -> Measured:
    """Accuracy and sharpness under the plan, and accuracy with its temperatures turned round."""
    table = bench.examples(lang, seed, PAIRS)
    inputs = reading(table.ids)
    real = inputs["attention_mask"].bool()

    def run(plan: Plan) -> dict[str, float]:
        weights = bench.stacked(bench.sites(patient, inputs, plan), "weights")
        accuracy = 100 * bench.ask(patient, table, lang, plan).mean
        other = turned(plan)
        return {
            "accuracy": accuracy,
            "turned": accuracy if other == plan else 100 * bench.ask(patient, table, lang, other).mean,
            "largest": bench.by_head(weights.amax(-1), real).mean().item(),
        }

    found = bench.remembered(
        patient, (__name__, "threshold", lang, seed), lambda: threshold(patient, table, lang)
    )
    return bench.unoperated(run, patient, lang, seed), run(plan), {"threshold": found}


def threshold(patient: Any, table: Table, lang: str) -> float:
    """The temperature of all heads between 1 and HOTTEST at which accuracy falls below BROKEN, by bisection."""
    right, wrong = 1.0, HOTTEST
    while wrong - right > NARROW:
        middle = (right + wrong) / 2
        if 100 * bench.ask(patient, table, lang, Plan(Temperature(middle))).mean < BROKEN:
            wrong = middle
        else:
            right = middle
    return wrong


def fault(plan: Plan, evidence: Evidence) -> Fault:
    """Broken where it is flat, right where it is equally sharp."""
    after = evidence.operated
    if stages(plan) != {"scale"}:
        return "other_stage"
    if turned(plan) == plan:
        return "no_other_side"
    if after["largest"] > evidence.baseline["largest"]:
        return "sharp"
    if after["accuracy"] > BROKEN:
        return "not_broken"
    return "both_broken" if after["turned"] < RIGHT else None


def outcome(evidence: Evidence) -> Outcome:
    """Which side breaks, and the temperature at which it does."""
    flat, sharp = evidence.operated["accuracy"], evidence.operated["turned"]
    key = "flat" if flat <= BROKEN and sharp >= RIGHT else "both" if flat <= BROKEN else "neither"
    return Outcome(key, evidence.facts["threshold"])


EXERCISE = Exercise(
    name="temperature",
    title=Words("Hot and cold attention", "注意力的冷与热"),
    question=Words(
        "Attention can be made flatter (T > 1) or sharper (T < 1). Which of the two does a trained model mind?",
        "注意力可以变平（T > 1），也可以变尖锐（T < 1）。训练好的模型更怕哪一种？",
    ),
    know=(
        Words(
            "The scores are divided by T before the softmax: T = 1 is the model as it is, T → 0 gives all weight to the largest score, T → ∞ the same weight to every key.",
            "在 softmax 之前把分数除以 T：T = 1 是原模型；T → 0 时全部权重给最大的分数；T → ∞ 时每个键权重相同。",
        ),
        Words(
            "T and 1/T are each other's mirror: what one stretches by a factor, the other shrinks by it.",
            "T 与 1/T 互为镜像：一个把分数放大多少倍，另一个就缩小多少倍。",
        ),
        Words(
            "This is the temperature inside attention; the one that language models are sampled with acts on the output and is something else.",
            "这里说的是注意力内部的温度；语言模型采样时的温度作用在输出上，是另一回事。",
        ),
    ),
    equation="weights = softmax(q·kᵀ / (√d_k · T))",
    models=bench.ENCODERS,
    prediction=Prediction(
        Words("Which side breaks the answers first?", "哪一侧会先让答案出错？"),
        (
            Choice("sharp", Words("The sharp side, T < 1.", "尖锐的一侧，T < 1。")),
            Choice("flat", Words("The flat side, T > 1.", "平坦的一侧，T > 1。")),
            Choice("both", Words("Both alike.", "两侧一样。")),
        ),
        Number(
            Words(
                "From which T on, in all heads, are fewer than 70 % right?",
                "对所有的头，T 升到多少时正确率开始低于 70 %？",
            ),
            low=1,
            high=HOTTEST,
            near=0.25,
            relative=True,
            step=0.1,
            digits=1,
        ),
    ),
    task=Words(
        "find a temperature at which at most 70 % of the questions are answered right, while its mirror 1/T leaves at least 90 % right.",
        "找一个温度 T，使答对的问题不超过 70 %，而它的镜像 1/T 仍有至少 90 % 答对。",
    ),
    quantities=(
        Quantity("accuracy", Words("questions answered right", "答对的问题"), Words(" %", " %"), digits=1),
        Quantity(
            "turned", Words("the same, with 1/T for T", "同上，T 换成 1/T"), Words(" %", " %"), digits=1
        ),
        Quantity("largest", Words("mean largest weight of a query", "每个查询的最大权重（平均）"), digits=2),
    ),
    measured=measured,
    fault=fault,
    hints={
        "other_stage": Words(
            "This plan does something else than change a temperature ({after[accuracy]} right). Leave masks, positions and heads alone.",
            "这个计划做的不是改变温度（正确率 {after[accuracy]}）。请不要动掩码、位置和头。",
        ),
        "no_other_side": Words(
            "That has no mirror to compare with: T = ∞ or a fixed factor. Choose a finite T, so that 1/T can be tried too.",
            "它没有可比较的镜像：T = ∞ 或固定倍数。请选一个有限的 T，这样才能同时试 1/T。",
        ),
        "sharp": Words(
            "This is the sharp side (largest weight {after[largest]} instead of {before[largest]}), and {after[accuracy]} are still right. Its mirror has {after[turned]}: turn round.",
            "这是尖锐的一侧（最大权重 {after[largest]}，原来 {before[largest]}），仍有 {after[accuracy]} 答对；它的镜像是 {after[turned]}。请换到另一侧。",
        ),
        "not_broken": Words(
            "Flatter, and still {after[accuracy]} right: the model takes it. Hotter, or in more heads.",
            "变平了，但仍有 {after[accuracy]} 答对：模型承受得住。请升温，或作用于更多的头。",
        ),
        "both_broken": Words(
            "Broken ({after[accuracy]}), but the mirror is down to {after[turned]} as well. A milder T shows that the sides differ.",
            "确实坏了（{after[accuracy]}），但镜像也降到了 {after[turned]}。用温和一些的 T 才能看出两侧的差别。",
        ),
    },
    outcome=outcome,
    explanation=Words(
        "{after[accuracy]} right on the flat side, {after[turned]} at its mirror. Tried out with one T in all heads, fewer than 70 % are right from T = {fact[threshold]:.1f} on. A head that has learned whom to look at keeps looking there when it gets sharper: the largest weight was the right one. When it gets flatter (largest weight {after[largest]} instead of "
        "{before[largest]}) it mixes in everything that it had learned to leave out. Retrained encoders agree: T = 4 leaves {known[hot_mean]} %, T = 1/4 leaves {known[cold_mean]} % (mean ± sd of 3 seeds). And an encoder trained with T = 4 reaches {known[hot_trained]} %: "
        "training makes its scores larger and takes the temperature out again.",
        "平坦一侧正确率 {after[accuracy]}，其镜像 {after[turned]}。让所有的头用同一个 T 试下来，从 T = {fact[threshold]:.1f} 起正确率低于 70 %。一个学会了看谁的头，变尖锐后看的仍是同一处：权重最大的本来就是对的。变平之后（最大权重 {after[largest]}，原来 {before[largest]}），它把学会忽略的东西全都混了进来。"
        "重新训练的编码器也是如此：T = 4 时剩 {known[hot_mean]} %，T = 1/4 时剩 {known[cold_mean]} %（3 个种子的均值 ± 标准差）。而从一开始就以 T = 4 训练的编码器能达到 {known[hot_trained]} %：训练会把分数放大，抵消温度。",
    ),
    further=Words(
        "Go to the end of the flat side: uniform attention. What can be answered without choosing?",
        "走到平坦一侧的尽头：均匀注意力。不做选择还能答对什么？",
    ),
    further_plan=Plan(UniformAttention()),
    solution=Plan(Temperature(5.0)),
    ask=Words(
        "“A lower attention temperature makes the model more confident.” Which confidence, and how would you check?",
        "“注意力温度越低，模型越自信。”指的是哪种自信？您会怎样检验？",
    ),
    minutes=10,
)
