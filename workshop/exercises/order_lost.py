"""Who bit whom? What a sentence vector knows without positions."""

from typing import Any

from bilingual import Words
from surgery import metrics
from surgery.operations import RemovePositions, SamePosition
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

PAIRS = 8
FELL = (
    0.01  # of the control's distance: so little is left where all words stand on a place that the model knows
)
ROUNDING = 1e-5  # float32, through six layers
NOUNS = ("dog", "man", "cat", "boy", "king", "queen", "teacher", "student", "wolf", "nurse", "ball", "car")
VERBS = ("bit", "saw", "hit", "loves", "asked", "found", "followed", "paid")
OTHER = "A cold rain fell on the town"
FALLEN = Words(
    "That is almost nothing: you put every word on one place that the model knows as [CLS], so order is gone, and most of the meaning with it.",
    "这几乎是零：您把所有词都放到了模型认作 [CLS] 的那个位置，顺序没了，大部分意义也随之没了。",
)
KEPT = Words(
    "So the words still count; only their order does not.",
    "可见用词仍然算数，只有词序不再算数。",
)


def measured(patient: Any, plan: Plan, lang: str, seed: int) -> Measured:
    """Sentences and their mirrors; the dog and the man are always among them."""
    r = bench.draw(seed)
    pairs: list[tuple[str, ...]] = [("dog", "man", "bit")]
    pairs += [(*r.sample(NOUNS, 2), r.choice(VERBS)) for _ in range(PAIRS - 1)]
    texts = [f"The {x} {verb} the {y}" for a, b, verb in pairs for x, y in ((a, b), (b, a))]

    def run(plan: Plan) -> dict[str, float]:
        vectors = bench.vectors(patient, [*texts, OTHER], plan)
        one, mirror, other = vectors[:-1:2], vectors[1:-1:2], vectors[-1]
        return {
            "cosine": metrics.cosine(one[0], mirror[0]).item(),
            "other": metrics.cosine(one[0], other).item(),
            "apart": metrics.relative_l2(one, mirror).max().item(),
            "control": metrics.relative_l2(one, other.expand_as(one)).min().item(),
        }

    before, after = bench.unoperated(run, patient, lang, seed), run(plan)
    fell = after["control"] < FELL * before["control"]
    return before, after, {"control": FALLEN if fell else KEPT}


def fault(plan: Plan, evidence: Evidence) -> Fault:
    """Order must be gone to rounding, and something else must still be told apart."""
    apart, control = evidence.operated["apart"], evidence.operated["control"]
    if apart <= ROUNDING:
        return "nothing_left" if control < 20 * apart else None
    if uses(plan, "uniform_attention", "temperature", "ablate_head", "drop_scaling"):
        return "attention_alone"
    if "positions" in stages(plan):
        return "other_positions"
    if "mask" in stages(plan):
        return "mask"
    return "still_apart"


def outcome(evidence: Evidence) -> Outcome:
    """What became of the two sentences, and of the cosine with a sentence of other words."""
    before, after = evidence.baseline["cosine"], evidence.operated["cosine"]
    other = evidence.operated["other"]
    if evidence.operated["apart"] <= ROUNDING:
        return Outcome("same", other)
    return Outcome("closer" if after > before else "farther", other)


EXERCISE = Exercise(
    name="order-lost",
    title=Words("Who bit whom?", "谁咬了谁？"),
    question=Words(
        "“The dog bit the man” and “The man bit the dog”: what in a Transformer makes these two different sentences?",
        "“The dog bit the man”（狗咬了人）与“The man bit the dog”（人咬了狗）：Transformer 靠什么把这两句话区分开？",
    ),
    know=(
        Words(
            "Attention compares every token with every other one and adds up what it finds; a sum does not know in which order its terms came.",
            "注意力把每个词元与其他词元逐一比较，再把结果加权求和；而求和并不知道各项的先后。",
        ),
        Words(
            "So a Transformer is told the order from outside: a vector for each place is added to each token before the first layer.",
            "因此顺序必须从外部告诉模型：在第一层之前，给每个词元加上代表其位置的向量。",
        ),
        Words(
            "The model is all-MiniLM-L6-v2, a BERT trained for sentence vectors; their cosine says how alike it finds two texts (1 = the same direction).",
            "模型是 all-MiniLM-L6-v2（一个训练来产生句向量的英文 BERT）；两个句向量的余弦表示它认为两句话有多像（1 = 方向相同）。",
        ),
    ),
    equation="x_i = E[token_i] + PE(i)      attention(permute(x)) = permute(attention(x))",
    models={"en": "minilm", "zh": "minilm"},
    prediction=Prediction(
        Words(
            "Once the model cannot see the order of the words, what happens to the cosine of the two sentences?",
            "当模型看不到词序之后，这两句话的余弦会怎样？",
        ),
        (
            Choice("farther", Words("It falls: the model is confused.", "下降：模型被弄糊涂了。")),
            Choice("closer", Words("It rises a little, short of 1.", "略微上升，但不到 1。")),
            Choice("same", Words("It becomes exactly 1.", "恰好变成 1。")),
        ),
        Number(
            Words(
                f"And the cosine of “The dog bit the man” and “{OTHER}” then?",
                f"那时“The dog bit the man”与“{OTHER}”（一场冷雨落在镇上）的余弦是多少？",
            ),
            low=0.0,
            high=1.0,
            near=0.1,
            step=0.01,
            digits=2,
        ),
    ),
    task=Words(
        "make the two sentences one and the same for the model, to the last digit, while it can still tell them from a sentence with other words.",
        "让这两句话在模型看来完全相同（精确到最后一位），同时它仍能把它们与用词不同的句子区分开。",
    ),
    quantities=(
        Quantity(
            "cosine", Words("cosine of dog-bites-man and man-bites-dog", "“狗咬人”与“人咬狗”的余弦"), digits=3
        ),
        Quantity(
            "other",
            Words("cosine of dog-bites-man and the cold rain", "“狗咬人”与“一场冷雨”的余弦"),
            digits=3,
        ),
        Quantity(
            "apart",
            Words(
                "largest distance of a sentence and its mirror, relative to its length (8 pairs)",
                "句子与其镜像的最大相对距离（8 对）",
            ),
            small=True,
        ),
        Quantity(
            "control",
            Words("smallest distance from a sentence with other words", "与用词不同的句子的最小相对距离"),
            small=True,
        ),
    ),
    measured=measured,
    fault=fault,
    hints={
        "nothing_left": Words(
            "Now the model tells nothing apart: a sentence with other words is as near ({after[control]}) as the mirror ({after[apart]}). Destroying everything "
            "proves nothing about order. Take away less.",
            "现在模型什么也分不清了：用词不同的句子（{after[control]}）和镜像（{after[apart]}）一样近。把一切都毁掉并不能说明顺序的作用。请少切一些。",
        ),
        "attention_alone": Words(
            "Close: the cosine is {after[cosine]}, but a sentence and its mirror are still {after[apart]} apart, and rounding would be 1e-6. You flattened attention, yet each token "
            "still carries its place in its own vector. Where does the place get in?",
            "接近了：余弦为 {after[cosine]}，但句子与镜像仍相差 {after[apart]}（舍入误差约 1e-6）。您改动的是注意力本身，而每个词元的向量里仍带着它的位置。位置是从哪里进入的？",
        ),
        "other_positions": Words(
            "You gave the words other places, and the sentences still differ by {after[apart]}: wrong places are places too. Can all words have the same one, or none?",
            "您给了词语别的位置，两句话仍相差 {after[apart]}：错的位置也是位置。能不能让所有词共用一个位置，或者干脆没有？",
        ),
        "mask": Words(
            "A mask decides who may look at whom by place: it adds order rather than taking it away (the cosine went from {before[cosine]} to {after[cosine]}). Look at what is added to "
            "the words before the first layer.",
            "掩码按位置规定谁能看谁：它增加了顺序信息，而不是去掉（余弦从 {before[cosine]} 变为 {after[cosine]}）。请看看第一层之前给词语加上了什么。",
        ),
        "still_apart": Words(
            "A sentence and its mirror are still {after[apart]} apart; without order it would be about 1e-6. What tells the model where a word stands?",
            "句子与镜像仍相差 {after[apart]}；没有顺序时应约为 1e-6。是什么告诉模型一个词站在哪里？",
        ),
    },
    outcome=outcome,
    explanation=Words(
        "Without positions the sentences are one bag of words: the cosine went from {before[cosine]} to {after[cosine]}, and sentence and mirror now differ by {after[apart]}, which is rounding. "
        "Attention itself has no idea of order; all of it came in with the vectors that were added before the first layer. Notice the {before[cosine]} before the cut, too: even "
        "with positions a sentence vector hardly tells who bit whom. Look at your control: a sentence with other words was {before[control]} away and is now {after[control]}. "
        "{fact[control]}",
        "没有位置，两句话就成了同一袋词：余弦从 {before[cosine]} 变为 {after[cosine]}，句子与镜像只差 {after[apart]}，这只是舍入误差。注意力本身不懂顺序，顺序全部来自第一层之前加上的位置向量。"
        "也请注意手术前的 {before[cosine]}：即使有位置，句向量也几乎分不出谁咬了谁。再看对照：用词不同的句子原来相距 {before[control]}，现在是 {after[control]}。{fact[control]}",
    ),
    further=Words(
        "Put every word on the same place instead of none (or the other way round). Order is lost either way; compare the control.",
        "换一种做法：让所有词站在同一位置，而不是去掉位置（或反过来）。两种做法都会丢失顺序；请比较对照一栏。",
    ),
    further_plan=Plan(SamePosition()),
    solution=Plan(RemovePositions()),
    ask=Words(
        "If a review site uses such sentence vectors, which complaints will it file in the wrong drawer?",
        "如果一个评论网站使用这样的句向量，哪些投诉会被归错类？",
    ),
    minutes=8,
)
