"""A head that looks at the answer and is not needed: attention is not explanation."""

import itertools
from typing import Any

import torch

from bilingual import Words
from models.tasks import IGNORED
from models.tasks.sentences import reading
from surgery import theatre
from surgery.operations import AblateHead
from surgery.plan import Plan
from workshop import bench
from workshop.parts import Choice, Evidence, Exercise, Fault, Measured, Number, Outcome, Prediction, Quantity

Cell = tuple[int, int]  # layer and head

PAIRS = 60
LOOKS = 50.0  # per cent of the [MASK]'s weight
COSTS = 3.0  # points


def alone(patient: Any, lang: str, seed: int) -> tuple[dict[Cell, float], dict[Cell, float]]:
    """Of the unoperated model: each head's weight from [MASK] on the answer word, and what it costs to lose that head."""
    table = bench.examples(lang, seed, PAIRS, ("role",))
    anatomy = theatre.admit(patient.model)
    rows, at = torch.arange(len(table.ids)), (table.answers != IGNORED).float().argmax(1)
    answer = table.ids == table.answers[rows, at][:, None]  # (row, key)
    weights = bench.stacked(bench.sites(patient, reading(table.ids), Plan()), "weights")
    asking = weights[:, rows, :, at]  # (row, layer, head, key)
    looks = 100 * (asking * answer[:, None, None, :]).sum(-1).mean(0)  # (layer, head)
    cells = list(itertools.product(range(anatomy.layers), range(anatomy.heads)))
    base = bench.ask(patient, table, lang, Plan()).mean
    cost = {
        cell: 100
        * (base - bench.ask(patient, table, lang, Plan(AblateHead().at(layers=cell[0], heads=cell[1]))).mean)
        for cell in cells
    }
    return {cell: float(looks[cell]) for cell in cells}, cost


def measured(patient: Any, plan: Plan, lang: str, seed: int) -> Measured:
    """For "who did it?": how much the plan's heads look at the answer, and the accuracy without them."""
    table = bench.examples(lang, seed, PAIRS, ("role",))
    looks, cost = bench.remembered(
        patient, (__name__, "alone", lang, seed), lambda: alone(patient, lang, seed)
    )
    mine = [looks[cell] for cell in sorted(bench.touched(patient, plan, "ablate_head"))]
    lookers = [cell for cell in looks if looks[cell] >= LOOKS]
    costs = [cost[cell] for cell in lookers]
    facts = {
        "heads": len(mine),
        "looks": min(mine, default=0.0),
        "most": max(mine, default=0.0),
        "lookers": len(lookers),
        "needless": sum(value <= COSTS for value in costs),
        "names": ", ".join(f"L{layer}.H{head}" for layer, head in lookers),
        "dearest": max(costs, default=0.0),
        "cheapest": min(costs, default=0.0),
    }
    baseline = {"looks": max(looks.values()), "accuracy": 100 * bench.ask(patient, table, lang, Plan()).mean}
    operated = {"looks": facts["looks"], "accuracy": 100 * bench.ask(patient, table, lang, plan).mean}
    return baseline, operated, facts


def fault(plan: Plan, evidence: Evidence) -> Fault:
    """Heads off that all look at the answer, at no cost."""
    fact, after = evidence.facts, evidence.operated
    if {step.operation.name for step in plan} - {"ablate_head"}:
        return "others" if fact["heads"] else "none_off"
    if fact["looks"] < LOOKS:
        return "looks_elsewhere" if fact["heads"] == 1 else "some_elsewhere"
    return "costs" if after["accuracy"] < evidence.baseline["accuracy"] - COSTS else None


def outcome(evidence: Evidence) -> Outcome:
    """Of the heads that look at the answer: are all needed, some, or none? And the weight of the head that was cut."""
    lookers, needless = evidence.facts["lookers"], evidence.facts["needless"]
    key = "all" if needless == 0 else "none" if needless == lookers else "some"
    return Outcome(key, evidence.facts["looks"])


EXERCISE = Exercise(
    name="not-explanation",
    title=Words("Attention is not explanation", "注意力不是解释"),
    question=Words(
        "“The model answers fox because it attends to fox.” Some head does. Is it the reason?",
        "“模型回答‘狐狸’，是因为它注意到了‘狐狸’。”确实有头看着那里。但那就是原因吗？",
    ),
    know=(
        Words(
            "Asked “who did it?”, the model answers at [MASK] with a word of the sentence; so one can measure how much of the [MASK]'s weight lies on that word.",
            "被问“谁做的？”时，模型在 [MASK] 处用句中的一个词回答；因此可以测量 [MASK] 的权重有多少落在那个词上。",
        ),
        Words(
            "A weight says what a head mixes in, not what the rest of the network does with it.",
            "权重说明一个头混入了什么，但不说明网络其余部分拿它做了什么。",
        ),
        Words(
            "A cause is what makes a difference when it is taken away.",
            "所谓原因，就是拿走之后结果会不同的东西。",
        ),
    ),
    equation="look(h) = weight_h([MASK], answer)        cost(h) = accuracy − accuracy(output_h = 0)",
    models=bench.ENCODERS,
    prediction=Prediction(
        Words(
            "Of the heads that give most of the [MASK]'s weight to the answer word, how many are needed (alone)?",
            "在把 [MASK] 的大部分权重给了答案词的那些头中，有多少是（单独）必需的？",
        ),
        (
            Choice("all", Words("All: that is how the answer gets there.", "全部：答案就是这样来的。")),
            Choice("some", Words("Some.", "一部分。")),
            Choice("none", Words("None.", "一个也不是。")),
        ),
        Number(
            Words(
                "How much of the [MASK]'s weight does the needless head give to the answer?",
                "那个非必需的头把 [MASK] 的多少权重给了答案词？",
            ),
            low=0,
            high=100,
            near=10,
            unit=Words(" %", " %"),
        ),
    ),
    task=Words(
        "find a head that gives at least half of the [MASK]'s weight to the answer word, switch it off, and lose at most 3 points.",
        "找一个把 [MASK] 至少一半的权重给了答案词的头，关掉它，而正确率最多下降 3 个百分点。",
    ),
    quantities=(
        Quantity(
            "looks",
            Words(
                "weight from [MASK] on the answer (without the plan: of the head that looks most; with it: of the heads that you cut)",
                "[MASK] 给答案词的权重（基线栏：看得最多的头；手术栏：您切掉的头）",
            ),
            Words(" %", " %"),
            digits=0,
        ),
        Quantity(
            "accuracy", Words("“who did it?” answered right", "“谁做的？”答对"), Words(" %", " %"), digits=1
        ),
    ),
    measured=measured,
    fault=fault,
    hints={
        "none_off": Words(
            "No head is off. Look at the row of [MASK] in each head's map, choose one that looks at the answer, and take it away.",
            "没有关掉任何头。请看每个头的图里 [MASK] 那一行，选一个看着答案的头，把它拿走。",
        ),
        "others": Words(
            "You cut a head and did something else; now nobody knows whose doing the result is. Only switch off.",
            "您切掉了头，又做了别的；结果就说不清是谁造成的了。请只关闭头。",
        ),
        "looks_elsewhere": Words(
            "This head gives {fact[looks]:.0f} % of the [MASK]'s weight to the answer: that it is (or is not) needed says nothing here. Heads that look there: search the last layer.",
            "这个头只把 [MASK] 的 {fact[looks]:.0f} % 权重给了答案词：它必需与否在这里说明不了什么。看着答案的头请到最后一层去找。",
        ),
        "some_elsewhere": Words(
            "Of the {fact[heads]} heads that you cut one gives only {fact[looks]:.0f} % to the answer (another {fact[most]:.0f} %). Cut only heads that look at it.",
            "您切掉的 {fact[heads]} 个头里，有的只把 {fact[looks]:.0f} % 给了答案（另一个是 {fact[most]:.0f} %）。请只切看着答案的头。",
        ),
        "costs": Words(
            "It looks at the answer ({fact[looks]:.0f} %), and without it {after[accuracy]} are left: this one is needed. {fact[lookers]} heads look there; is each of them?",
            "它看着答案（{fact[looks]:.0f} %），没有它只剩 {after[accuracy]}：这个头是必需的。看着答案的头有 {fact[lookers]} 个，每个都必需吗？",
        ),
    },
    outcome=outcome,
    explanation=Words(
        "It gave {fact[looks]:.0f} % of the [MASK]'s weight to the answer, and without it {after[accuracy]} are still right. {fact[lookers]} heads look at the answer ({fact[names]}); losing one of them costs between {fact[cheapest]:.0f} and {fact[dearest]:.0f} points. So a look is a hypothesis, not an explanation: the head may bring what another brings too, or what "
        "nobody reads. In 3 retrained encoders, {known[lookers]} heads each look at the answer with over half of their weight; {known[needless]} of them cost at most 3 points. What explains is an intervention, and you have just made one.",
        "它把 [MASK] 的 {fact[looks]:.0f} % 权重给了答案，没有它仍有 {after[accuracy]} 答对。有 {fact[lookers]} 个头看着答案（{fact[names]}）；失去其中一个的代价在 {fact[cheapest]:.0f} 到 {fact[dearest]:.0f} 个百分点之间。所以“看”只是一个假设，而不是解释：这个头带来的东西，别的头可能也带来了，或者根本没人用。"
        "在 3 个重新训练的编码器里，每个平均有 {known[lookers]} 个头把一半以上的权重给了答案；其中 {known[needless]} 个的代价不超过 3 个百分点。真正能解释的是干预，而您刚刚做了一次。",
    ),
    further=Words(
        "Switch off all heads that look at the answer, together. Were they replacing each other?",
        "把所有看着答案的头一起关掉。它们是在互相替代吗？",
    ),
    further_plan=Plan(AblateHead().at("L1.H1,3")),
    further_plans={"zh": Plan(AblateHead().at("L1"))},
    texts=bench.MIRRORED,
    solution=Plan(AblateHead().at("L1.H3")),
    ask=Words(
        "A colleague shows a heatmap as evidence. What do you ask for?",
        "同事拿一张注意力热图当证据。您会要求看什么？",
    ),
    solutions={"zh": Plan(AblateHead().at("L1.H2"))},
    minutes=12,
)
