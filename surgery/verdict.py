"""A comparison in words."""

from bilingual import Words
from surgery.comparison import UNCHANGED, Comparison
from surgery.plan import Plan

# Cosines between baseline and operated: above the first little changed, below the second much.
EASED, MARKED = 0.999, 0.9


def verdict(comparison: Comparison) -> Words:
    """What happened, in one or two sentences with the numbers that matter."""
    plan = comparison.plan
    if not len(plan) and not _changed(comparison):
        return Words("Nothing was operated on: both runs are the same.", "没有做手术：两次运行完全相同。")
    if not _changed(comparison):
        return Words(*(_idle(comparison, lang) for lang in ("en", "zh")))
    attention, result = _attention(comparison), _result(comparison)
    return Words(
        f"{plan.describe('en')}: {attention.en}{result.en}",
        f"{plan.describe('zh')}：{attention.zh}{result.zh}",
    )


def _idle(comparison: Comparison, lang: str) -> str:
    """Each step with its own reason for changing nothing."""
    colon, gap = Words(": ", "：").say(lang), Words(" ", "").say(lang)
    steps = zip(comparison.plan, comparison.receipt, strict=True)
    return gap.join(Plan(step).describe(lang) + colon + entry["note"].say(lang) for step, entry in steps)


def percent(share: float) -> str:
    """A share of 1 in per cent; what is not 0 but rounds to it is "<1%"."""
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"


def _changed(comparison: Comparison) -> bool:
    """Whether anything did; each of two equal steps changes nothing, for the other one is still there."""
    if any(entry["changed"] for entry in comparison.receipt):
        return True
    weights = comparison.heads.get("moved")
    moved = 0.0 if weights is None else weights.max()
    return max(comparison.output["relative_l2"], moved) > UNCHANGED


def _attention(comparison: Comparison) -> Words:
    heads = comparison.heads
    top = comparison.top_head
    if top is None or heads["moved"].isna().all():
        return Words("", "")
    moved = heads["moved"].mean()
    if heads["moved"].max() == 0:
        return Words("no attention weight moved; ", "注意力权重没有移动；")
    layer, head = top
    share = comparison.head(layer, head)["moved"]
    return Words(
        f"{percent(moved)} of the attention moved on average; layer {layer} head {head} diverged most "
        f"({percent(share)} of its weight moved); ",
        f"平均有 {percent(moved)} 的注意力移动，第 {layer} 层第 {head} 头的分布变化最大（其权重移动了 {percent(share)}）；",
    )


def _result(comparison: Comparison) -> Words:
    sites = comparison.output["sites"]
    if sites:
        changed = sum(site["top1_changed"] for site in sites)
        shown = next((at for at, site in enumerate(sites) if site["top1_changed"]), 0)
        before, after = comparison.baseline.predictions[shown][0], comparison.operated.predictions[shown][0]
        if changed:
            return Words(
                f"the answer changed from “{before[0]}” ({percent(before[1])}) to “{after[0]}” ({percent(after[1])})"
                + (f", {changed} of {len(sites)} answers in all." if len(sites) > 1 else "."),
                f"答案从“{before[0]}”（{percent(before[1])}）变为“{after[0]}”（{percent(after[1])}）"
                + (f"，共 {len(sites)} 个答案中变了 {changed} 个。" if len(sites) > 1 else "。"),
            )
        return Words(
            f"the answer is still “{before[0]}” ({percent(before[1])} before, {percent(after[1])} now).",
            f"答案仍是“{before[0]}”（之前 {percent(before[1])}，现在 {percent(after[1])}）。",
        )
    cosine = comparison.output["sentence_cosine"]
    en, zh = "changed", "有变化"
    if comparison.output["relative_l2"] <= UNCHANGED:
        en, zh = "did not change", "没有变化"
    elif cosine > EASED:
        en, zh = "hardly changed", "几乎没变"
    elif cosine < MARKED:
        en, zh = "changed a lot", "变化很大"
    return Words(
        f"the sentence vector {en} (cosine {cosine:.3f} to the baseline).",
        f"句向量{zh}（与基线的余弦为 {cosine:.3f}）。",
    )
