"""Which heads are needed? Switch off as many as possible."""

import itertools
from typing import Any

from bilingual import Words
from models.tasks.sentences import reading
from surgery import metrics, theatre
from surgery.operations import AblateHead
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

PAIRS = 120
KEEPS = 90.0
AT_LEAST = 2

Cell = tuple[int, int]  # layer and head


def alone(patient: Any, lang: str, seed: int) -> tuple[dict[Cell, float], dict[Cell, float]]:
    """Of the unoperated model: what each head costs when it alone is off, and where it stands by entropy."""
    table = bench.examples(lang, seed, PAIRS)
    inputs = reading(table.ids[:60])
    anatomy = theatre.admit(patient.model)
    cells = list(itertools.product(range(anatomy.layers), range(anatomy.heads)))
    weights = bench.stacked(bench.sites(patient, inputs, Plan()), "weights")
    entropy = bench.by_head(metrics.entropy(weights), inputs["attention_mask"].bool())
    base = bench.ask(patient, table, lang, Plan()).mean
    cost = {
        cell: 100
        * (base - bench.ask(patient, table, lang, Plan(AblateHead().at(layers=cell[0], heads=cell[1]))).mean)
        for cell in cells
    }
    return cost, {cell: float(entropy[cell]) for cell in cells}


def together(patient: Any, lang: str, seed: int) -> tuple[list[Cell], float]:
    """Heads that can be off together with KEEPS % right, by a greedy search: always the one that then costs least; and
    the accuracy that is left."""
    table = bench.examples(lang, seed, PAIRS)
    anatomy = theatre.admit(patient.model)
    cells = set(itertools.product(range(anatomy.layers), range(anatomy.heads)))
    off: list[Cell] = []
    left = 100.0

    def without(cell: Cell) -> float:
        plan = Plan(AblateHead().at("+".join(map(_name, [*off, cell]))))
        return 100 * bench.ask(patient, table, lang, plan).mean

    while cells:
        right = {cell: without(cell) for cell in sorted(cells)}
        best = max(right, key=right.__getitem__)
        if right[best] < KEEPS:
            break
        off, left, cells = [*off, best], right[best], cells - {best}
    return sorted(off), left


def measured(patient: Any, plan: Plan, lang: str, seed: int) -> Measured:
    """Accuracy, how many heads give no output, and what each head alone costs."""
    table = bench.examples(lang, seed, PAIRS)
    inputs = reading(table.ids[:60])

    def run(plan: Plan) -> dict[str, float]:
        found = bench.sites(patient, inputs, plan)
        silent = bench.stacked(found, "output").abs().amax((1, 3, 4)) == 0  # (layer, head)
        blocked = bench.stacked(found, "no_key").any(1).any(-1)
        off = float((silent & ~blocked).sum())
        return {"off": off, "accuracy": 100 * bench.ask(patient, table, lang, plan).mean}

    cost, entropy = bench.remembered(
        patient, (__name__, "alone", lang, seed), lambda: alone(patient, lang, seed)
    )
    most, left = bench.remembered(
        patient, (__name__, "together", lang, seed), lambda: together(patient, lang, seed)
    )
    ranks = sorted(entropy, key=entropy.get)
    needed = max(cost, key=cost.get)
    facts = {
        "needed": _name(needed),
        "cost": cost[needed],
        "rank": ranks.index(needed) + 1,
        "heads": len(cost),
        "harmless": sum(value < 1.0 for value in cost.values()),
        "sharpest": _name(ranks[0]),
        "sharpest_cost": cost[ranks[0]],
        "flattest": _name(ranks[-1]),
        "flattest_cost": cost[ranks[-1]],
        "most": len(most),
        "most_names": "+".join(map(_name, most)),
        "most_left": left,
        "kinds": len({question.kind for question in table.questions}),
    }
    return bench.unoperated(run, patient, lang, seed), run(plan), facts


def _name(cell: Cell) -> str:
    return f"L{cell[0]}.H{cell[1]}"


def fault(plan: Plan, evidence: Evidence) -> Fault:
    """At least AT_LEAST heads silent, at least KEEPS % right."""
    after = evidence.operated
    if not uses(plan, "ablate_head") and after["off"] == 0:
        return "none_off"
    if after["accuracy"] < KEEPS:
        return "needed"
    if after["off"] < AT_LEAST:
        return "more"
    return None if {step.operation.name for step in plan} == {"ablate_head"} else "others"


def outcome(evidence: Evidence) -> Outcome:
    """Where the head that costs most stands when heads are sorted by entropy; and what it costs."""
    rank, heads = evidence.facts["rank"], evidence.facts["heads"]
    return Outcome(
        "sharpest" if rank == 1 else "flattest" if rank == heads else "between", evidence.facts["cost"]
    )


EXERCISE = Exercise(
    name="heads-off",
    title=Words("Which heads are needed?", "哪些头是必需的？"),
    question=Words(
        "The encoder has 2 layers of 4 heads. How many of the eight can be switched off, and can one tell from the pictures which?",
        "这个编码器有 2 层、每层 4 个头。八个头里可以关掉多少个？从注意力图上看得出是哪些吗？",
    ),
    know=(
        Words(
            "Switching a head off sets its output to 0; the residual connection and the other heads go on.",
            "关闭一个头，就是把它的输出置 0；残差连接和其他头照常工作。",
        ),
        Words(
            "The entropy of a row says how spread its weights are: 0 is one key, ln n is n keys alike.",
            "一行权重的熵表示它有多分散：0 表示只看一个键，ln n 表示平均看 n 个键。",
        ),
        Words(
            "Low entropy makes a handsome picture; whether the model needs the head is another question, which only cutting answers.",
            "熵低的头图案漂亮；但模型需不需要它是另一回事，只有切掉才知道。",
        ),
    ),
    equation="output_h = 0        cost(h) = accuracy − accuracy(output_h = 0)",
    models=bench.ENCODERS,
    prediction=Prediction(
        Words(
            "Sort the eight heads by entropy. Where does the head stand that costs most when it is off?",
            "把八个头按熵排序。关掉后损失最大的那个头排在哪里？",
        ),
        (
            Choice("sharpest", Words("It is the sharpest (lowest entropy).", "最尖锐的（熵最低）。")),
            Choice("between", Words("Somewhere between.", "在中间某处。")),
            Choice("flattest", Words("It is the flattest (highest entropy).", "最平坦的（熵最高）。")),
        ),
        Number(
            Words("How many points does it cost?", "它让正确率下降多少个百分点？"),
            low=0,
            high=100,
            near=8,
        ),
    ),
    task=Words(
        "switch off at least two heads, as many as you can, and keep at least 90 % of the answers right.",
        "关掉至少两个头（越多越好），同时保持至少 90 % 的答案正确。",
    ),
    quantities=(
        Quantity("off", Words("heads without output", "没有输出的头"), digits=0),
        Quantity(
            "accuracy",
            Words("questions answered right, mean over four kinds", "答对的问题（四类问题的平均）"),
            Words(" %", " %"),
            digits=1,
        ),
    ),
    measured=measured,
    fault=fault,
    hints={
        "none_off": Words(
            "All eight heads still bring something. To learn whether a head is needed, take its output away.",
            "八个头都还有输出。要知道一个头是否必需，请拿走它的输出。",
        ),
        "needed": Words(
            "Heads off: {after[off]}; that leaves {after[accuracy]}, so one that is needed is among them. Try them one by one; {fact[harmless]} of the {fact[heads]} cost less than a point alone.",
            "关掉 {after[off]} 个头后剩 {after[accuracy]}：其中有必需的头。请逐个试；{fact[heads]} 个头里有 {fact[harmless]} 个单独关掉时损失不到 1 个百分点。",
        ),
        "more": Words(
            "{after[accuracy]} right. Heads off: {after[off]}; at least two are asked for, so go on.",
            "关掉 {after[off]} 个头后仍有 {after[accuracy]}：请继续，至少要关两个。",
        ),
        "others": Words(
            "Heads are off, but the plan does something else as well. Leave only what switches heads off.",
            "头确实关掉了，但计划还做了别的。请只保留关闭头的操作。",
        ),
    },
    outcome=outcome,
    explanation=Words(
        "{after[off]} of {fact[heads]} heads off, {after[accuracy]} right. What is possible: a search that always switches off the head that then costs least gets to {fact[most]} ({fact[most_names]}) with {fact[most_left]:.0f} % right. The accuracy is the mean over {fact[kinds]} kinds of question: a sweep over one kind misleads, for a head may do nothing "
        "for it and all for another. The head that the model needs most is {fact[needed]}: without it {fact[cost]:.0f} points are gone. By entropy it is number {fact[rank]} of {fact[heads]}. The sharpest, {fact[sharpest]}, costs {fact[sharpest_cost]:.0f}; the flattest, {fact[flattest]}, "
        "{fact[flattest_cost]:.0f}; {fact[harmless]} heads cost less than one point each. Over the heads of 3 retrained encoders the rank correlation of entropy and cost is {known[entropy_cost]} (−1 would be: the sharper, the more needed). A picture shows where a head looks, not whether anybody listens. "
        "And the number of heads is the task's affair: where eight neighbours must be fetched, one head gets {known[fetch_1]} % right, four {known[fetch_4]} %, eight {known[fetch_8]} %.",
        "{fact[heads]} 个头关掉了 {after[off]} 个，正确率 {after[accuracy]}。能关多少？每次都关掉当下损失最小的头，可以关到 {fact[most]} 个（{fact[most_names]}），正确率 {fact[most_left]:.0f} %。正确率是 {fact[kinds]} 类问题的平均：只扫描一类问题会误导，一个头可能对这类毫无作用，对另一类却不可或缺。"
        "模型最需要的是 {fact[needed]}：没有它就下降 {fact[cost]:.0f} 个百分点；按熵从低到高它排第 {fact[rank]}（共 {fact[heads]} 个）。最尖锐的 {fact[sharpest]} 损失 {fact[sharpest_cost]:.0f}，最平坦的 {fact[flattest]} 损失 {fact[flattest_cost]:.0f}；"
        "有 {fact[harmless]} 个头各自损失不到 1 个百分点。在 3 个重新训练的编码器的所有头上，熵与损失的秩相关为 {known[entropy_cost]}（−1 才表示越尖锐越必需）。注意力图显示一个头看哪里，并不显示有没有人听它的。需要多少个头由任务决定：当必须取来八个邻居时，一个头的正确率为 {known[fetch_1]} %，四个头 {known[fetch_4]} %，八个头 {known[fetch_8]} %。",
    ),
    further=Words(
        "Replace the most needed head by uniform attention instead of switching it off: is it what it brings, or where it looks?",
        "对最必需的头，用均匀注意力代替关闭：重要的是它带来的内容，还是它看的地方？",
    ),
    solution=Plan(AblateHead().at("L0.H2+L1.H0")),
    ask=Words(
        "Two heads cost nothing alone and much together. What does that tell you?",
        "两个头单独关掉都没有损失，一起关掉却损失很大。这说明什么？",
    ),
    solutions={"zh": Plan(AblateHead().at("L1.H0,2"))},
    minutes=12,
    each_needed=False,
)
