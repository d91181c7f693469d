"""Dropout before and after the softmax: which one removes a connection, and which keeps rows whole."""

from typing import Any

import torch

from bilingual import Words
from models.tasks.sentences import reading
from surgery.operations import KeyDropout, ScoreDropout, WeightDropout
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

PAIRS = 12
SEEDS = 3
SHOWN = 0.3  # the p of the three that are compared
THREE = {
    "score": ScoreDropout(SHOWN, 0),
    "key": KeyDropout(SHOWN, 0),
    "weight": WeightDropout(SHOWN, 0),
}


def draws(patient: Any, inputs: dict[str, torch.Tensor], plan: Plan) -> list[torch.Tensor]:
    """The weights (layer, row, head, query, key) under several seeds."""
    return [
        bench.stacked(bench.sites(patient, inputs, bench.reseeded(plan, by)), "weights")
        for by in range(SEEDS)
    ]


def facts_of(weights: list[torch.Tensor], pairs: torch.Tensor, rows: torch.Tensor) -> dict[str, float]:
    """Over draws: the share of real connections that are 0; by how much row sums stray from 1; the share of zeros that is
    the same in every draw; and in the head that has fewest, the share of zeros."""
    zero = torch.stack([w == 0 for w in weights])  # (draw, layer, row, head, query, key)
    sums = torch.stack([w.sum(-1) for w in weights])
    real = pairs.expand(zero.shape[1:])
    cells = (zero.float().mean(0) * real).sum((1, 3, 4)) / real.sum((1, 3, 4))  # (layer, head)
    gone = 100 * zero[:, real].float().mean().item()
    always = 100 * zero.all(0)[real].float().mean().item()
    alive = sums[:, rows.expand(sums.shape[1:])]
    alive = alive[alive > 0]  # a row that lost all its keys has no sum to keep
    stray = (alive - 1).abs()
    return {
        "gone": gone,
        "stray": stray.max().item() if len(stray) else float("nan"),
        "always": always,
        "least": 100 * cells.min().item(),
    }


def three(patient: Any, lang: str, seed: int) -> tuple[dict[str, float], dict[str, float]]:
    """The baseline, and the three dropouts that are compared: what they remove and what becomes of row sums."""
    inputs, pairs, rows = texts(lang, seed)
    base = facts_of(draws(patient, inputs, Plan())[:1], pairs, rows)
    facts = {"up": 100 * _grown(patient, inputs, pairs)}
    for name, operation in THREE.items():
        of = facts_of(draws(patient, inputs, Plan(operation)), pairs, rows)
        facts |= {f"{name}_gone": of["gone"], f"{name}_stray": of["stray"]}
    return base, facts


def texts(lang: str, seed: int) -> tuple[dict[str, torch.Tensor], torch.Tensor, torch.Tensor]:
    """Inputs, which query-key pairs are real (1, row, 1, query, key), and which queries are (1, row, 1, query)."""
    inputs = reading(bench.examples(lang, seed, PAIRS).ids)
    real = inputs["attention_mask"].bool()
    pairs = (real[:, None, :, None] & real[:, None, None, :])[None]
    return inputs, pairs, real[None, :, None]


def measured(patient: Any, plan: Plan, lang: str, seed: int) -> Measured:
    """The plan over several seeds, and beside it the three dropouts."""
    base, facts = bench.remembered(patient, (__name__, lang, seed), lambda: three(patient, lang, seed))
    inputs, pairs, rows = texts(lang, seed)
    now = facts_of(draws(patient, inputs, plan), pairs, rows)
    facts = {**facts, "seeds": SEEDS, "always": now["always"], "least": now["least"]}
    keys = ("gone", "stray")
    return {k: base[k] for k in keys}, {k: now[k] for k in keys}, facts


def _grown(patient: Any, inputs: dict[str, torch.Tensor], pairs: torch.Tensor) -> float:
    """Of the first layer's scores that a score dropout sets to 0, the share whose weight goes up."""
    shares = []
    before = bench.sites(patient, inputs, Plan())[0]
    for by in range(SEEDS):
        after = bench.sites(patient, inputs, bench.reseeded(Plan(ScoreDropout(SHOWN, 0)), by))[0]
        dropped = (after.scores == 0).cpu() & pairs[0].expand(after.scores.shape)
        shares.append((after.weights.cpu() > before.weights.cpu())[dropped].float().mean().item())
    return sum(shares) / len(shares)


def fault(plan: Plan, evidence: Evidence) -> Fault:
    """Random connections must be 0 in every head, and every row that has a key must still sum to 1."""
    after, fact = evidence.operated, evidence.facts
    if after["gone"] == 0:
        return "score" if uses(plan, "score_dropout") else "none_gone"
    if after["stray"] > 1e-3:
        return "sums"
    if after["gone"] > 95:
        return "too_many"
    if fact["always"] > 0.9 * after["gone"]:
        return "always_same"
    return "some_heads" if fact["least"] < 1 else None


def outcome(evidence: Evidence) -> Outcome:
    """Which of the three removes connections and keeps sums, and how many dropped scores go up."""
    fact = evidence.facts
    good = [n for n in THREE if fact[f"{n}_gone"] > 1 and fact[f"{n}_stray"] < 1e-3]
    return Outcome(good[0] if len(good) == 1 else "none", fact["up"])


EXERCISE = Exercise(
    name="dropouts",
    title=Words("Where does a dropped connection go?", "被丢弃的连接去了哪里？"),
    question=Words(
        "Dropout may sit before the softmax or after it. Which one removes connections, and what happens to the rest of the row?",
        "Dropout 可以放在 softmax 之前，也可以放在之后。哪一种真的移除了连接？同一行的其余部分又会怎样？",
    ),
    know=(
        Words(
            "Dropout sets entries to 0 with probability p and divides the others by 1 − p.",
            "Dropout 以概率 p 把元素置 0，其余除以 1 − p。",
        ),
        Words(
            "A weight of 0 is no connection; a score of 0 is a score like any other, and e⁰ = 1.",
            "权重为 0 表示没有连接；而分数为 0 只是一个普通的分数，e⁰ = 1。",
        ),
        Words(
            "A softmax makes every row sum to 1, whatever comes in; what happens after it is not put right again.",
            "无论输入什么，softmax 都会让每行之和为 1；softmax 之后发生的事不会再被修正。",
        ),
    ),
    equation="softmax(keep·s/(1−p))      softmax(s + log keep)      keep·softmax(s)/(1−p)",
    models=bench.ENCODERS,
    prediction=Prediction(
        Words(
            "Which dropout gives dropped connections the weight 0 and still has rows that sum to 1?",
            "哪一种 Dropout 使被丢弃的连接权重为 0，同时每行之和仍为 1？",
        ),
        (
            Choice(
                "score",
                Words("On the scores, set to 0 before the softmax.", "作用于分数：softmax 之前置 0。"),
            ),
            Choice(
                "key", Words("On the keys, set to −∞ before the softmax.", "作用于键：softmax 之前置 −∞。")
            ),
            Choice("weight", Words("On the weights, after the softmax.", "作用于权重：softmax 之后置 0。")),
            Choice("none", Words("None of them.", "都不是。")),
        ),
        Number(
            Words(
                "When a score is set to 0 before the softmax, how often does the weight of that connection go UP?",
                "softmax 之前把分数置 0 时，该连接的权重有多大比例反而上升？",
            ),
            low=0,
            high=100,
            near=10,
            unit=Words(" %", " %"),
        ),
    ),
    task=Words(
        "cut random connections in every head so that their weight is exactly 0 and each row still sums to 1, with other connections for every seed.",
        "在每个头里随机切断一些连接，使其权重恰好为 0，而每行之和仍为 1，并且每个种子切断的连接不同。",
    ),
    quantities=(
        Quantity(
            "gone",
            Words("connections with weight 0, over 3 seeds", "权重为 0 的连接（3 个种子）"),
            Words(" %", " %"),
            digits=1,
        ),
        Quantity("stray", Words("largest |row sum − 1|", "|行和 − 1| 的最大值"), small=True),
    ),
    measured=measured,
    fault=fault,
    hints={
        "score": Words(
            "Not one connection is gone. You set scores to 0, and e⁰ = 1 is a weight: in {fact[up]:.0f} % of the cases it even went up. What number before the softmax becomes 0 after it?",
            "一个连接也没有消失。您把分数置为 0，而 e⁰ = 1 也是权重：{fact[up]:.0f} % 的情况下它反而上升了。softmax 之前放什么数，之后才会是 0？",
        ),
        "none_gone": Words(
            "No connection has the weight 0 under any seed: your plan drops nothing at this place.",
            "在任何种子下都没有权重为 0 的连接：您的计划在这里没有丢弃任何东西。",
        ),
        "sums": Words(
            "Connections are gone ({after[gone]}), but rows no longer sum to 1 (off by up to {after[stray]}): whatever comes after the softmax is not normalised again. Drop earlier.",
            "连接消失了（{after[gone]}），但每行之和不再是 1（最多偏差 {after[stray]}）：softmax 之后不会再归一化。请更早丢弃。",
        ),
        "always_same": Words(
            "{after[gone]} of the connections are 0 and rows sum to 1, but they are the same ones under every seed: nothing is drawn at random here, so this is no dropout.",
            "{after[gone]} 的连接为 0，每行之和也是 1，但每个种子都一样：这里没有任何随机性，不是 Dropout。",
        ),
        "too_many": Words(
            "{after[gone]} of the connections are gone: hardly anything is left to share the weight. A smaller p.",
            "{after[gone]} 的连接都没了：几乎没有剩下的来分担权重。请减小 p。",
        ),
        "some_heads": Words(
            "It works where you put it, but in some head only {fact[least]:.1f} % of the connections are dropped. All heads, please.",
            "在您选的地方有效，但某个头里只丢弃了 {fact[least]:.1f} % 的连接。请作用于所有头。",
        ),
    },
    outcome=outcome,
    explanation=Words(
        "With p = 0.3, over {fact[seeds]} seeds: scores set to 0 remove {fact[score_gone]:.1f} % of the connections (and {fact[up]:.0f} % of the dropped ones go up: a negative score rises to 0); keys set to −∞ remove {fact[key_gone]:.1f} %, rows off by at most {fact[key_stray]:.0e}; weights set to 0 after the "
        "softmax remove {fact[weight_gone]:.1f} %, rows off by up to {fact[weight_stray]:.2f}. Many tutorials write the first and describe the second. The Transformer's own code does the third, whose rows sum to 1 only on average. What it buys on little data: {known[dropout_none]} % held-out without any, {known[dropout_weight]} % with 0.1 "
        "on weights (mean ± sd of 3 seeds): about the spread between seeds.",
        "p = 0.3，{fact[seeds]} 个种子：把分数置 0 移除了 {fact[score_gone]:.1f} % 的连接（被丢弃者中有 {fact[up]:.0f} % 反而上升：负分数升到了 0）；把键置 −∞ 移除 {fact[key_gone]:.1f} %，行和最多偏差 {fact[key_stray]:.0e}；softmax 之后把权重置 0 移除 {fact[weight_gone]:.1f} %，行和最多偏差 {fact[weight_stray]:.2f}。"
        "许多教程写的是第一种，说的却是第二种。Transformer 原始代码用的是第三种，行和只在平均意义上为 1。数据很少时它带来多少好处？不用 Dropout 时留出集正确率 {known[dropout_none]} %，权重 Dropout 0.1 时 {known[dropout_weight]} %（3 个种子的均值 ± 标准差）：与种子之间的差异差不多大。",
    ),
    further=Words(
        "Put 0.3 on the scores of the trained encoder and look at what it attends to: do you see what was dropped?",
        "在训练好的编码器的分数上加 0.3 的 Dropout，看看注意力图：您看得出哪些被丢弃了吗？",
    ),
    further_plan=Plan(ScoreDropout(SHOWN, 0)),
    solution=Plan(KeyDropout(0.2, 1)),
    ask=Words(
        "A score was −4 and is dropped before the softmax. Does the connection get more or less weight?",
        "一个分数是 −4，在 softmax 之前被丢弃。这条连接的权重变大还是变小？",
    ),
    minutes=12,
)
