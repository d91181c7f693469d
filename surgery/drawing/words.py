"""What figures say, in English and in Chinese."""

from bilingual import Words
from surgery.plan import Plan

WHICH = {
    "baseline": Words("Baseline", "基线"),
    "operated": Words("Operated", "手术后"),
    "difference": Words("Difference (operated − baseline)", "差值（手术后 − 基线）"),
}
QUERY, KEY = Words("query", "查询"), Words("key", "键")
LAYER, HEAD = Words("layer", "层"), Words("head", "头")
WEIGHT = Words("attention weight", "注意力权重")
CHANGE = Words("difference of weights", "权重差值")
NO_DIFFERENCE = Words("no difference", "没有差别")
NO_KEY = Words("no permitted key: weights and output 0", "没有允许的键：权重和输出为 0")
CLOSED_ROWS = Words("Rows with no permitted key are 0.", "没有允许的键的行为 0。")
NOT_A_NUMBER = Words("not a number", "非数值")
UNDEFINED = Words("undefined", "无定义")
TOUCHED = Words("Outlined: the heads operated on.", "框线：手术触及的头。")
AFTER_DROPOUT = Words("weights after dropout", "Dropout 之后的权重")

MEASURES = {
    "js_divergence": Words("Jensen-Shannon divergence (nats)", "JS 散度（nats）"),
    "total_variation": Words("total variation", "全变差"),
    "moved": Words("share of attention moved", "移动的注意力份额"),
    "scores": Words("mean |difference| of scores", "分数的平均绝对差"),
    "output": Words("relative L2 change of the head's output", "头输出的相对 L2 变化"),
}
for _run in ("baseline", "operated"):
    for _name, _en, _zh in (
        ("entropy", "entropy (nats)", "熵（nats）"),
        ("diagonal", "weight on the token itself", "对自身的权重"),
        ("previous", "weight on the previous token", "对前一词元的权重"),
        ("next", "weight on the next token", "对后一词元的权重"),
        ("first", "weight on the first token", "对首个词元的权重"),
        ("separators", "weight on separators", "对分隔符的权重"),
        ("distance", "attention distance (tokens)", "注意力距离（词元）"),
        ("no_key", "queries with no permitted key", "没有允许的键的查询数"),
        ("scores_mean", "mean of the scores", "分数的平均值"),
        ("scores_std", "standard deviation of the scores", "分数的标准差"),
        ("scores_min", "smallest score", "最小分数"),
        ("scores_max", "largest score", "最大分数"),
        ("permitted", "permitted query-key pairs", "允许的查询-键对数"),
        ("weight_max", "largest weight of a query (mean)", "每个查询的最大权重（平均）"),
        ("output_rms", "root mean square of the head's output", "头输出的均方根"),
    ):
        MEASURES[f"{_name}_{_run}"] = Words(f"{_en}, {_run}", f"{_zh}，{WHICH[_run].zh}")


def place(layer: int, head: int) -> Words:
    """One head's address."""
    return Words(f"layer {layer}, head {head}", f"第 {layer} 层，第 {head} 头")


def title(model: str, subject: Words) -> Words:
    """A figure's title."""
    return Words(f"{model} · {subject.en}", f"{model} · {subject.zh}")


def under(plan: Plan, lang: str, more: Words | None = None) -> str:
    """The line under a title: the plan, and what else there is to say."""
    return plan.describe(lang) + (f" · {more.say(lang)}" if more else "")
