"""ABC and CBA without positions: what is equal, what is mirrored."""

from typing import Any

from bilingual import Words
from surgery import metrics
from surgery.operations import CausalMask, RemovePositions
from surgery.plan import Plan
from workshop import bench
from workshop.parts import Choice, Evidence, Exercise, Fault, Measured, Outcome, Prediction, Quantity, stages

TRIPLES = 8
ROUNDING = 1e-5


def measured(patient: Any, plan: Plan, lang: str, seed: int) -> Measured:
    """Three nouns A B C between [CLS] and [SEP], and the same three as C B A."""
    r = bench.draw(seed)
    triples = [r.sample(bench.NOUNS[lang], 3) for _ in range(TRIPLES)]
    inputs = bench.rows(lang, [text for t in triples for text in (t, t[::-1])])

    def run(plan: Plan) -> dict[str, float]:
        last = bench.hidden(patient, inputs, plan)[-1]
        there, back = last[::2], last[1::2]  # (triple, token, width)
        mirrored = back[:, [0, 3, 2, 1, 4]]  # [CLS] and [SEP] stay, A meets A
        return {
            "carried": metrics.relative_l2(there, mirrored).max().item(),
            "place": metrics.relative_l2(there, back)[:, [1, 3]].min().item(),
            "pooled": metrics.relative_l2(there.mean(1), back.mean(1)).max().item(),
        }

    return bench.unoperated(run, patient, lang, seed), run(plan), {}


def fault(plan: Plan, evidence: Evidence) -> Fault:
    """Each word must carry its vector along to rounding, and words must still differ from one another."""
    carried, place = evidence.operated["carried"], evidence.operated["place"]
    if carried <= ROUNDING:
        return "nothing_left" if place < 0.01 else None
    places = [step.operation for step in plan if step.operation.stage == "positions"]
    gone = any(operation.name in ("remove_positions", "same_position") for operation in places)
    if gone:
        return "noise" if plan.stochastic else "mask_counts"
    if places:
        return "other_positions"
    return "mask" if "mask" in stages(plan) else "still_placed"


def outcome(evidence: Evidence) -> Outcome:
    """What is equal in the two outputs."""
    after = evidence.operated
    if after["place"] <= ROUNDING:
        return Outcome("place")
    if after["carried"] <= ROUNDING:
        return Outcome("carried")
    return Outcome("pooled" if after["pooled"] <= ROUNDING else "nothing")


EXERCISE = Exercise(
    name="abc-cba",
    title=Words("ABC and CBA", "ABC 与 CBA"),
    question=Words(
        "“Without positions, ABC and CBA give the same output”, says many a tutorial. The same in which sense?",
        "许多教程说：“没有位置编码，ABC 和 CBA 的输出相同。”是哪一种意义上的相同？",
    ),
    know=(
        Words(
            "A function is invariant if its output does not change when the input is rearranged, and equivariant if the output is rearranged in the same way.",
            "输入重新排列后输出不变，叫“不变”（invariant）；输出随输入一起重新排列，叫“等变”（equivariant）。",
        ),
        Words(
            "The model is a small encoder that was trained from scratch on whole words; its text here is [CLS] A B C [SEP] with three nouns.",
            "模型是一个以整词为单位、从零训练的小编码器；这里的文本是 [CLS] A B C [SEP]，其中 A、B、C 是三个名词。",
        ),
        Words(
            "Three distances are measured between the outputs for ABC and CBA: of the same word at its two places, of the two words at the same place, and of the mean over all tokens.",
            "我们测量 ABC 与 CBA 两个输出之间的三种距离：同一个词在两个位置上、同一位置上的两个词、以及所有词元的平均。",
        ),
    ),
    equation="f(P·x) = P·f(x)        mean(f(P·x)) = mean(f(x))        ∀ P",
    models=bench.ENCODERS,
    prediction=Prediction(
        Words("Without positions, what is equal for ABC and CBA?", "没有位置信息时，ABC 与 CBA 的什么相同？"),
        (
            Choice("place", Words("The outputs, place by place.", "逐个位置的输出都相同。")),
            Choice(
                "carried",
                Words(
                    "Each word's own output, which it carries to its new place; so the means are equal too.",
                    "每个词自己的输出，随词移到新位置；因此平均值也相同。",
                ),
            ),
            Choice("pooled", Words("The means only.", "只有平均值相同。")),
            Choice("nothing", Words("Nothing.", "都不相同。")),
        ),
    ),
    task=Words(
        "make each word's output travel with the word, to the last digit, while different words still have different outputs.",
        "让每个词的输出跟着词走（精确到最后一位），同时不同的词仍有不同的输出。",
    ),
    quantities=(
        Quantity(
            "carried",
            Words("same word, its two places: largest distance", "同一个词、两个位置：最大距离"),
            small=True,
        ),
        Quantity(
            "place", Words("same place, two words: smallest distance", "同一位置、两个词：最小距离"), digits=2
        ),
        Quantity(
            "pooled", Words("means over the tokens: largest distance", "词元平均：最大距离"), small=True
        ),
    ),
    measured=measured,
    fault=fault,
    hints={
        "nothing_left": Words(
            "The words are carried along, but now all words look the same ({after[place]} apart): that is no result about order.",
            "词确实被带着走了，但现在所有词都一样（相距 {after[place]}）：这不能说明顺序的问题。",
        ),
        "mask_counts": Words(
            "The positions are out, and still the same word differs by {after[carried]} between its places: your mask lets the place decide who sees whom. What "
            "happens with the positions' cut alone?",
            "位置已去掉，但同一个词在两处仍相差 {after[carried]}：您的掩码让位置决定谁能看谁。只去掉位置会怎样？",
        ),
        "noise": Words(
            "The positions are out, but your plan also draws random numbers for each place, so the same word still differs by {after[carried]}. Leave chance out.",
            "位置已去掉，但您的计划还为每个位置抽取随机数，同一个词仍相差 {after[carried]}。请去掉随机操作。",
        ),
        "other_positions": Words(
            "Every word has another place now, but it has one: the same word differs by {after[carried]}. Can place be made to say nothing?",
            "每个词换了位置，但仍然有位置：同一个词相差 {after[carried]}。能不能让位置什么也不说？",
        ),
        "mask": Words(
            "A mask chooses what is mixed, but the words came in with their places already added: the same word differs by {after[carried]}. Cut earlier.",
            "掩码只决定混合哪些内容，而词进入模型时已加上了位置：同一个词相差 {after[carried]}。请在更早的地方下刀。",
        ),
        "still_placed": Words(
            "The same word at two places still differs by {after[carried]}. You changed how words are compared; where they stand is still written into their vectors.",
            "同一个词在两处仍相差 {after[carried]}。您改变了词与词的比较方式，而它们站在哪里仍写在各自的向量里。",
        ),
    },
    outcome=outcome,
    explanation=Words(
        "The claim is half right. Each word carries its output along (the two differ by {after[carried]}, rounding), so the means agree as well ({after[pooled]}). Place by place the outputs are "
        "different, by at least {after[place]}: A stands where C stood. Attention without positions is equivariant; only what is pooled is invariant. Whoever reads the token at place 1 of a "
        "tagger sees different answers for ABC and CBA; whoever pools sees one.",
        "这种说法只对了一半。每个词带着自己的输出走（两者只差 {after[carried]}，即舍入误差），因此平均值也一致（{after[pooled]}）。但逐个位置比较，输出不同，至少相差 {after[place]}：原来 C 的位置上站着 A。"
        "没有位置的注意力是等变的，只有汇总之后才是不变的。读第 1 个位置标签的人会看到 ABC 与 CBA 的差别；只看平均的人则看不到。",
    ),
    further=Words(
        "Keep the positions out and add a causal mask: is the word still carried along? Exercise 3 asks what that means.",
        "保持去掉位置，再加上因果掩码：词的输出还跟着走吗？练习 3 会问这意味着什么。",
    ),
    further_plan=Plan(RemovePositions(), CausalMask()),
    texts={"en": ("dog king queen", "queen king dog"), "zh": ("狗爸爸姐姐", "姐姐爸爸狗")},
    solution=Plan(RemovePositions()),
    ask=Words(
        "A classifier reads only [CLS]. Is its answer invariant or equivariant without positions?",
        "一个分类器只读 [CLS]。没有位置时，它的答案是不变的还是等变的？",
    ),
    minutes=8,
)
