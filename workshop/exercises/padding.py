"""The forgotten padding mask."""

from typing import Any

import torch

from bilingual import Words
from models.tasks.sentences import reading
from surgery.operations import IgnorePaddingMask
from surgery.plan import Plan
from workshop import bench
from workshop.parts import Choice, Evidence, Exercise, Fault, Measured, Number, Outcome, Prediction, Quantity

PAIRS = 48
LITTLE, MUCH = 24, 64  # tokens after padding
HARM = 10.0  # points


def measured(patient: Any, plan: Plan, lang: str, seed: int) -> Measured:
    """Accuracy without padding, with some, with much; and how much weight the padding gets."""
    table = bench.examples(lang, seed, PAIRS)
    width = table.ids.shape[1]
    ids = torch.nn.functional.pad(table.ids, (0, MUCH - width))
    real = ids != 0

    def run(plan: Plan) -> tuple[tuple[str, ...], dict[str, float]]:
        bare = bench.ask(patient, table, lang, plan, None)
        much = bench.ask(patient, table, lang, plan, MUCH)
        weights = bench.stacked(bench.sites(patient, reading(ids[::4]), plan), "weights")
        on_pads = (weights * ~real[None, ::4, None, None, :]).sum(-1)
        return bare.said, {
            "bare": 100 * bare.mean,
            "little": 100 * bench.ask(patient, table, lang, plan, LITTLE).mean,
            "much": 100 * much.mean,
            "weight": 100 * bench.by_head(on_pads, real[::4]).mean().item(),
        }

    said, base = bench.unoperated(run, patient, lang, seed)
    now, operated = run(plan)
    changed = sum(a != b for a, b in zip(said, now, strict=True))
    return base, operated, {"changed": changed, "asked": len(said)}


def fault(plan: Plan, evidence: Evidence) -> Fault:
    """Padding alone must do the harm: nothing changes where there is none."""
    after, changed = evidence.operated, evidence.facts["changed"]
    if changed:
        return ("not_padding_alone", {"changed": changed, "asked": evidence.facts["asked"]})
    if after["weight"] < 0.1:
        return "no_weight"
    return "little_harm" if after["much"] > evidence.baseline["much"] - HARM else None


def outcome(evidence: Evidence) -> Outcome:
    """What padding did, and what was left with much of it."""
    after = evidence.operated
    lost, more = evidence.baseline["little"] - after["little"], evidence.baseline["much"] - after["much"]
    key = "nothing" if more < 2 else "more" if more > lost + 2 else "constant"
    return Outcome(key, after["much"])


EXERCISE = Exercise(
    name="padding",
    title=Words("The forgotten padding mask", "忘记的填充掩码"),
    question=Words(
        "Sentences of a batch are filled up to one length with [PAD]. What happens if nobody tells the model which tokens are padding?",
        "一个批次里的句子用 [PAD] 填充到同样长度。如果没人告诉模型哪些是填充，会发生什么？",
    ),
    know=(
        Words(
            "[PAD] is a token like any other: it has a vector, so it has a key and a value, and softmax gives every permitted key some weight.",
            "[PAD] 和其他词元一样有向量，因此也有键和值；softmax 会给每个允许的键分一些权重。",
        ),
        Words(
            "attention_mask says which tokens are real; with it the padding's weight is exactly 0 and no answer depends on the length of the batch.",
            "attention_mask 说明哪些词元是真实的；有了它，填充的权重恰好为 0，答案与批次长度无关。",
        ),
        Words(
            f"The same questions are asked bare, padded to {LITTLE} and padded to {MUCH} tokens.",
            f"同样的问题分别在不填充、填充到 {LITTLE} 个词元、填充到 {MUCH} 个词元时提问。",
        ),
    ),
    equation="allowed(i, j) = attention_mask(j)",
    models=bench.ENCODERS,
    prediction=Prediction(
        Words(
            "The mask is forgotten. How do the right answers change with the amount of padding?",
            "忘了掩码。正确率会怎样随填充量变化？",
        ),
        (
            Choice(
                "nothing",
                Words("Hardly: [PAD] means nothing to the model.", "几乎不变：[PAD] 对模型没有意义。"),
            ),
            Choice("constant", Words("They fall once, however much padding.", "下降一次，与填充多少无关。")),
            Choice("more", Words("They fall further with every pad.", "填充越多，下降越多。")),
        ),
        Number(
            Words(f"Right answers with padding to {MUCH} tokens", f"填充到 {MUCH} 个词元时的正确率"),
            low=0,
            high=100,
            near=10,
            unit=Words(" %", " %"),
        ),
    ),
    task=Words(
        f"make the model lose at least {HARM:.0f} points by padding alone: padded to {MUCH} tokens it fails, without padding not one answer changes.",
        f"只靠填充让模型至少丢 {HARM:.0f} 分：填充到 {MUCH} 个词元时出错，而不填充时一个答案也不变。",
    ),
    quantities=(
        Quantity("bare", Words("right without padding", "不填充时答对"), Words(" %", " %"), digits=1),
        Quantity(
            "little",
            Words(f"right, padded to {LITTLE}", f"填充到 {LITTLE} 时答对"),
            Words(" %", " %"),
            digits=1,
        ),
        Quantity(
            "much", Words(f"right, padded to {MUCH}", f"填充到 {MUCH} 时答对"), Words(" %", " %"), digits=1
        ),
        Quantity(
            "weight",
            Words(f"weight on [PAD], padded to {MUCH}", f"[PAD] 得到的权重（填充到 {MUCH}）"),
            Words(" %", " %"),
            digits=1,
        ),
    ),
    measured=measured,
    fault=fault,
    hints={
        "not_padding_alone": Words(
            "{changed} of {asked} answers change even without padding: your plan does harm of its own. Look for the one thing that only padding can feel.",
            "即使不填充，{asked} 个答案中也有 {changed} 个变了：您的计划本身就有破坏。请找只有填充才感觉得到的那一处。",
        ),
        "no_weight": Words(
            "The padding still gets {after[weight]} of the weight: the mask holds, whatever else you did. Which operation lifts it?",
            "填充得到的权重仍是 {after[weight]}：无论您做了什么，掩码仍在起作用。哪个操作会取消它？",
        ),
        "little_harm": Words(
            "Padding is seen ({after[weight]} of the weight), but the answers hold ({after[much]}). You lifted the mask in too few heads to matter.",
            "填充被看到了（占权重 {after[weight]}），但答案没变（{after[much]}）。取消掩码的头太少，影响不大。",
        ),
    },
    outcome=outcome,
    explanation=Words(
        "Without the mask [PAD] draws {after[weight]} of the weight, and the answers fall from {before[much]} to {after[much]} (padded to 24: {after[little]}); bare sentences are answered as before. So whether a sentence is understood depends on "
        "which sentences share its batch: a bug that unit tests with one sentence never see. Retrained encoders, padded to 64: {known[padding_64]} % right (mean ± sd of 3 seeds); one that never had the mask in training does better ({known[padding_trained]} %), though so much padding is new to it too. "
        "The mask matters most to those who grew up with it.",
        "没有掩码时，[PAD] 吸走了 {after[weight]} 的权重，正确率从 {before[much]} 降到 {after[much]}（填充到 24 时为 {after[little]}）；不填充的句子答案不变。于是一个句子能否被理解，取决于它和哪些句子同批：只用一个句子的单元测试永远发现不了。"
        "重新训练的编码器填充到 64 时正确率为 {known[padding_64]} %（3 个种子的均值 ± 标准差）；训练时就没有掩码的模型好一些（{known[padding_trained]} %），但这么多填充对它来说也是新的。越是习惯了掩码的模型，越离不开它。",
    ),
    further=Words(
        "Lift the mask in one layer only. Which layer minds more?",
        "只在一层取消掩码。哪一层受影响更大？",
    ),
    further_plan=Plan(IgnorePaddingMask().at(layers=0)),
    solution=Plan(IgnorePaddingMask()),
    ask=Words(
        "How would you test your own code for this bug with two sentences?",
        "怎样只用两个句子测试自己的代码有没有这个错误？",
    ),
    minutes=8,
)
