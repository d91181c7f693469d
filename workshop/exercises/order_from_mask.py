"""Order without positions: a mask that depends on place tells it."""

from typing import Any

from bilingual import Words
from models.tasks.sentences import reading
from surgery import metrics
from surgery.answers import pool
from surgery.operations import CausalMask, LocalMask, RemovePositions
from surgery.plan import Plan
from workshop import bench
from workshop.parts import Choice, Evidence, Exercise, Fault, Measured, Outcome, Prediction, Quantity, stages

ROUNDING = 1e-5
SEEN = 1e-3  # a distance that no rounding makes
PAIRS = 12


def measured(patient: Any, plan: Plan, lang: str, seed: int) -> Measured:
    """One word four times, to see positions enter; and sentences with their mirrors, to see order at the end."""
    word = bench.draw(seed).choice(bench.NOUNS[lang])
    table = bench.examples(lang, seed, PAIRS, ("role",))
    inputs = reading(table.ids)
    real = inputs["attention_mask"].bool()

    def run(plan: Plan) -> dict[str, float]:
        first = bench.hidden(patient, bench.rows(lang, [[word] * 4]), plan)[0, 0, 1:5]  # (place, width)
        pooled = pool(bench.hidden(patient, inputs, plan)[-1], real)
        return {
            "entry": metrics.relative_l2(first[1:], first[:-1]).max().item(),
            "apart": metrics.relative_l2(pooled[::2], pooled[1::2]).min().item(),
        }

    return bench.unoperated(run, patient, lang, seed), run(plan), {}


def fault(plan: Plan, evidence: Evidence) -> Fault:
    """No position may enter, and sentence and mirror must differ at the end."""
    entry, apart = evidence.operated["entry"], evidence.operated["apart"]
    if entry > ROUNDING:
        return "positions_in" if "positions" not in stages(plan) else "other_positions"
    if apart < SEEN:
        return "blind_mask" if "mask" in stages(plan) else "no_order"
    return "noise" if plan.stochastic else None


def outcome(evidence: Evidence) -> Outcome:
    """Whether order came back."""
    return Outcome("yes" if evidence.operated["apart"] >= SEEN else "no")


EXERCISE = Exercise(
    name="order-from-mask",
    title=Words("Order without positions", "没有位置编码的顺序"),
    question=Words(
        "“Without positions a model cannot know the order.” Is there another way in?",
        "“没有位置编码，模型就不可能知道顺序。”顺序还有别的入口吗？",
    ),
    know=(
        Words(
            "A mask says which keys a query may attend to; the others get weight 0.",
            "掩码规定一个查询可以注意哪些键；其余的键权重为 0。",
        ),
        Words(
            "Some masks depend on where the tokens stand (before, near), others do not (all but myself, no padding).",
            "有些掩码取决于词元的位置（之前的、附近的），有些则不然（除自己以外、非填充）。",
        ),
        Words(
            "Here each sentence has a mirror: the same words, with the one who acts and the one who suffers exchanged.",
            "这里每个句子都有一个镜像：词相同，只是施事者与受事者互换。",
        ),
    ),
    equation="weights = softmax(scores + log allowed(i, j))",
    models=bench.ENCODERS,
    prediction=Prediction(
        Words(
            "The positions are gone. Can a mask bring order back into the model's vectors?",
            "位置已经去掉。掩码能把顺序带回模型的向量里吗？",
        ),
        (
            Choice("no", Words("No: a mask only hides words.", "不能：掩码只是遮住一些词。")),
            Choice(
                "yes",
                Words(
                    "Yes: if place decides who sees whom, place shows in the result.",
                    "能：如果位置决定谁能看谁，结果里就有位置。",
                ),
            ),
        ),
    ),
    task=Words(
        "keep every position out of the words' vectors, and yet make the model's result tell a sentence from its mirror, without the help of chance.",
        "不让任何位置进入词向量，却让模型的结果能区分句子与其镜像，而且不借助随机性。",
    ),
    quantities=(
        Quantity(
            "entry",
            Words(
                "one word at four places, before the first layer: largest distance",
                "同一个词在四个位置、第一层之前：最大距离",
            ),
            small=True,
        ),
        Quantity(
            "apart",
            Words("sentence and mirror at the end: smallest distance", "句子与镜像的最终向量：最小距离"),
            small=True,
        ),
    ),
    measured=measured,
    fault=fault,
    hints={
        "positions_in": Words(
            "The same word still enters differently at different places ({after[entry]}): with positions present nobody can say who brought the order. Take them "
            "away first, then add what you want to test.",
            "同一个词在不同位置进入时仍不同（{after[entry]}）：位置还在，就说不清顺序是谁带来的。请先去掉位置，再加上要检验的东西。",
        ),
        "other_positions": Words(
            "The words have other positions, but they still have some: one word at four places differs by {after[entry]} at the entrance.",
            "词的位置变了，但仍然有位置：同一个词在四处的入口相差 {after[entry]}。",
        ),
        "no_order": Words(
            "Good, the positions are out: but sentence and mirror are now one ({after[apart]}). What you have so far treats all places alike. Which part of attention "
            "could depend on where a token stands?",
            "很好，位置已去掉，但句子与镜像也成了一样（{after[apart]}）。目前的计划对所有位置一视同仁。注意力的哪个部分可以依赖词元所在的位置？",
        ),
        "blind_mask": Words(
            "You use a mask, but what it hides does not depend on where the two nouns stand, so sentence and mirror stay one ({after[apart]}). Let the mask know "
            "before from after, or near from far.",
            "您用了掩码，但它遮住什么与两个名词的位置无关，因此句子与镜像仍相同（{after[apart]}）。请让掩码分得出前与后，或远与近。",
        ),
        "noise": Words(
            "They differ ({after[apart]}), but your plan throws dice for each place: with another seed the difference would be another one. Find something that "
            "tells order, not noise.",
            "两者确实不同（{after[apart]}），但您的计划在每个位置掷骰子：换个种子，差别就变了。请找能说明顺序的东西，而不是噪声。",
        ),
    },
    outcome=outcome,
    explanation=Words(
        "Nothing about place enters ({after[entry]}), and yet sentence and mirror differ by {after[apart]}. The mask did it: whom a token may see depends on where it stands, so its vector tells "
        "how much came before it, or what stood near. That is why decoders work without positions: a small model trained with a causal mask and no positions finds out which of two words came first in {known[first_causal_16]} % of "
        "texts, against {known[first_none_16]} % without the mask, and at four times the trained length still in {known[first_causal_64]} %. “No positions, no order” holds only for attention that may look both ways.",
        "没有任何位置进入模型（{after[entry]}），但句子与镜像相差 {after[apart]}。这是掩码的作用：一个词元能看到谁取决于它站在哪里，于是它的向量透露出前面有多少内容、附近有什么。解码器没有位置编码也能工作，"
        "原因就在这里：一个用因果掩码、不用位置编码训练的小模型，判断两个词谁先出现的正确率为 {known[first_causal_16]} %，没有掩码则是 {known[first_none_16]} %；到训练长度的四倍时仍有 {known[first_causal_64]} %。“没有位置就没有顺序”只适用于双向注意力。",
    ),
    further=Words(
        "Which other masks do it? Try a local window, then one that hides only the token itself.",
        "还有哪些掩码能做到？试试局部窗口，再试试只遮住自己的掩码。",
    ),
    further_plan=Plan(RemovePositions(), LocalMask(1)),
    texts=bench.MIRRORED,
    solution=Plan(RemovePositions(), CausalMask()),
    ask=Words(
        "With a causal mask and one layer only, can the last token know the order of what it sees?",
        "如果只有一层、带因果掩码，最后一个词元能知道它看到的内容的顺序吗？",
    ),
    minutes=10,
)
