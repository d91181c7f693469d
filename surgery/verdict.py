"""A comparison in words."""

from bilingual import Words
from surgery.comparison import UNCHANGED, Comparison

EASED, MARKED = (
    0.999,
    0.9,
)  # cosines between baseline and operated: above the first little changed, below the second much


def verdict(comparison: Comparison) -> Words:
    """What happened, in one or two sentences with the numbers that matter."""
    plan = comparison.plan
    if not len(plan):
        return Words("Nothing was operated on: both runs are the same.", "没有做手术：两次运行完全相同。")
    if not _changed(comparison):
        notes = [entry["note"] for entry in comparison.receipt]
        return Words(*(f"{plan.describe(lang)}: {notes[0].say(lang)}" for lang in ("en", "zh")))
    attention, result = _attention(comparison), _result(comparison)
    return Words(
        f"{plan.describe('en')}: {attention.en}{result.en}",
        f"{plan.describe('zh')}：{attention.zh}{result.zh}",
    )


def _changed(comparison: Comparison) -> bool:
    """Whether anything did; each of two equal steps changes nothing, for the other one is still there."""
    if any(entry["changed"] for entry in comparison.receipt):
        return True
    weights = comparison.heads.get("total_variation")
    moved = 0.0 if weights is None else weights.max()
    return max(comparison.output["relative_l2"], moved) > UNCHANGED


def _attention(comparison: Comparison) -> Words:
    heads = comparison.heads
    if heads.empty or heads["total_variation"].isna().all():
        return Words("", "")
    moved = heads["total_variation"].mean()
    if heads["total_variation"].max() == 0:
        return Words("no attention weight moved; ", "注意力权重没有移动；")
    layer, head = comparison.top_head
    share = comparison.head(layer, head)["total_variation"]
    return Words(
        f"{moved:.0%} of the attention moved on average; layer {layer} head {head} changed most ({share:.0%}); ",
        f"平均有 {moved:.0%} 的注意力移动，第 {layer} 层第 {head} 头变化最大（{share:.0%}）；",
    )


def _result(comparison: Comparison) -> Words:
    sites = comparison.output["sites"]
    if sites:
        changed = sum(site["top1_changed"] for site in sites)
        shown = next((at for at, site in enumerate(sites) if site["top1_changed"]), 0)
        before, after = comparison.baseline.predictions[shown][0], comparison.operated.predictions[shown][0]
        if changed:
            return Words(
                f"the answer changed from “{before[0]}” ({before[1]:.0%}) to “{after[0]}” ({after[1]:.0%})"
                + (f", {changed} of {len(sites)} answers in all." if len(sites) > 1 else "."),
                f"答案从“{before[0]}”（{before[1]:.0%}）变为“{after[0]}”（{after[1]:.0%}）"
                + (f"，共 {len(sites)} 个答案中变了 {changed} 个。" if len(sites) > 1 else "。"),
            )
        return Words(
            f"the answer is still “{before[0]}” ({before[1]:.0%} before, {after[1]:.0%} now).",
            f"答案仍是“{before[0]}”（之前 {before[1]:.0%}，现在 {after[1]:.0%}）。",
        )
    cosine = comparison.output["sentence_cosine"]
    en, zh = ("hardly changed", "几乎没变") if cosine > EASED else ("changed", "有变化")
    if cosine < MARKED:
        en, zh = "changed a lot", "变化很大"
    return Words(
        f"the sentence vector {en} (cosine {cosine:.3f} to the baseline).",
        f"句向量{zh}（与基线的余弦为 {cosine:.3f}）。",
    )
