"""A query that may look at nothing: -1e9, -inf and half precision."""

import copy
from typing import Any

import torch

from bilingual import Words
from models.tasks.sentences import reading
from surgery import theatre
from surgery.operations import BlockTokens, CausalMask, HideSelf
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
FILL = -1e9
KINDS = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}


def filled(
    scores: torch.Tensor, allowed: torch.Tensor, fill: float, kind: torch.dtype
) -> torch.Tensor | None:
    """What a softmax gives after `masked_fill(~allowed, fill)`, in float32; None where the fill cannot be written."""
    if abs(fill) != float("inf") and abs(fill) > torch.finfo(kind).max:
        return None  # torch refuses: "value cannot be converted ... without overflow"
    return scores.to(kind).masked_fill(~allowed, fill).softmax(-1).float()


def spread_of_nan(patient: Any, inputs: dict[str, torch.Tensor], closed: torch.Tensor) -> float:
    """The share of real tokens whose logits are NaN if the first layer gives NaN at the closed queries, (row, token)."""
    model = copy.deepcopy(patient.model)  # its own, because the hook must not reach other users of the model

    def spoil(module: torch.nn.Module, args: tuple, output: Any) -> Any:
        spoilt = output[0] if isinstance(output, tuple) else output
        spoilt = spoilt.masked_fill(closed[..., None].to(spoilt.device), float("nan"))
        return (spoilt, *output[1:]) if isinstance(output, tuple) else spoilt

    block = theatre.admit(model).blocks[0]
    block.register_forward_hook(spoil)
    with torch.inference_mode():
        logits = model(**{k: v.to(patient.device) for k, v in inputs.items()}).logits
    real = inputs["attention_mask"].bool()
    return logits.isnan().any(-1).cpu()[real].float().mean().item()


def measured(patient: Any, plan: Plan, lang: str, seed: int) -> Measured:
    """Rows without a permitted key, and what each fill makes of them, on the scores of this very plan."""
    inputs = reading(bench.examples(lang, seed, PAIRS).ids)
    real = inputs["attention_mask"].bool()

    def run(plan: Plan) -> tuple[torch.Tensor, dict[str, float]]:
        found = bench.sites(patient, inputs, plan)
        allowed, scores = bench.permitted(found), bench.stacked(found, "scores")
        weights = bench.stacked(found, "weights")
        queries = real[None, :, None].expand(allowed.shape[:4])
        shut = ~allowed.any(-1) & queries  # (layer, row, head, query)
        everywhere = shut.all(2)  # in every head of a layer
        forbidden = {}
        for name, kind in KINDS.items():
            told = filled(scores, allowed, FILL, kind)
            forbidden[name] = None if told is None else _share(told, allowed, shut)
        nan = scores.float().masked_fill(~allowed, float("-inf")).softmax(-1).isnan().any(-1)
        return everywhere, {
            "closed": 100 * everywhere[:, real].float().mean().item(),
            "forbidden": 100 * (forbidden["float32"] or 0.0),
            "nan": 100 * nan[queries].float().mean().item(),
            "ours": weights.sum(-1)[shut].max().item() if shut.any() else float("nan"),
            "bfloat16": 100 * (forbidden["bfloat16"] or 0.0),
        }

    _, base = bench.unoperated(run, patient, lang, seed)
    everywhere, operated = run(plan)
    shut = bool(everywhere.any())
    ends = 100 * spread_of_nan(patient, inputs, everywhere.any(0)) if shut else 0.0
    half = filled(torch.zeros(1), torch.zeros(1, dtype=torch.bool), FILL, torch.float16)
    open_left = bool((real & ~everywhere.any(0)).any())
    facts = {
        "shut": shut,
        "ends": ends,
        "half": half is None,
        "open_left": open_left,
        "largest16": torch.finfo(torch.float16).max,
    }
    return base, operated, facts


def _share(told: torch.Tensor, allowed: torch.Tensor, shut: torch.Tensor) -> float:
    """The mean weight on forbidden keys in the closed rows."""
    on = (told * ~allowed).sum(-1)[shut]
    return on.mean().item() if len(on) else 0.0


def fault(plan: Plan, evidence: Evidence) -> Fault:
    """Some query must be closed in every head of a layer, and some must stay open."""
    fact, after = evidence.facts, evidence.operated
    if fact["shut"] and not fact["open_left"]:
        return "all_shut"
    if fact["shut"]:
        return "by_chance" if plan.stochastic else None
    if after["nan"] > evidence.baseline["nan"]:
        return "by_chance" if plan.stochastic else "some_heads"
    if uses(plan, "ablate_head"):
        return "head_off"
    return "one_key" if "mask" in stages(plan) else "no_mask"


def outcome(evidence: Evidence) -> Outcome:
    """What -1e9 makes of a closed row; and how far NaN gets."""
    forbidden = evidence.operated["forbidden"]
    return Outcome("uniform" if forbidden > 50 else "zeros", evidence.facts["ends"])


EXERCISE = Exercise(
    name="closed-row",
    title=Words("A query that may look at nothing", "什么也不能看的查询"),
    question=Words(
        "Masks are written as −1e9 or −∞ added before the softmax. Which is safer? It shows where no key is left.",
        "掩码的写法是在 softmax 之前填入 −1e9 或 −∞。哪一种更安全？当一个键都不剩时就见分晓。",
    ),
    know=(
        Words(
            "softmax looks at differences: if all scores of a row are −1e9, they are all equal.",
            "softmax 只看差值：如果一行的分数全是 −1e9，它们就都相等。",
        ),
        Words(
            "−∞ minus −∞ is not a number (NaN), and 0 times NaN is NaN.",
            "−∞ 减 −∞ 不是数（NaN），而 0 乘 NaN 还是 NaN。",
        ),
        Words(
            "float16 ends at 65,504; bfloat16 reaches as far as float32, with fewer digits. This project gives a query without a key the weights 0 and says so.",
            "float16 最大只到 65504；bfloat16 的范围与 float32 相同，只是位数少。本项目给没有键的查询权重 0，并明确说明。",
        ),
    ),
    equation="softmax(s)_j = e^(s_j − max s) / Σ_k e^(s_k − max s)",
    models=bench.ENCODERS,
    prediction=Prediction(
        Words(
            "In a row where every key is forbidden, what are the weights after filling in −1e9?",
            "当一行里所有键都被禁止时，填入 −1e9 之后权重是什么？",
        ),
        (
            Choice("zeros", Words("All 0: nothing may be seen.", "全为 0：什么也看不到。")),
            Choice("uniform", Words("Equal weights on the forbidden keys.", "被禁止的键平分权重。")),
            Choice("nan", Words("NaN.", "NaN。")),
        ),
        Number(
            Words(
                "With −∞ instead: if one layer does it, which share of all tokens is NaN after the whole model?",
                "若改用 −∞，只要有一层这样做：走完整个模型之后，所有词元中有多大比例是 NaN？",
            ),
            low=0,
            high=100,
            near=10,
            unit=Words(" %", " %"),
        ),
    ),
    task=Words(
        "leave some query without any key that it may see, in every head of a layer, while other queries still see something.",
        "让某个查询在某一层的所有头里都没有可看的键，而其他查询仍能看到东西。",
    ),
    quantities=(
        Quantity(
            "closed",
            Words("queries without any key, in all heads", "在所有头里都没有键的查询"),
            Words(" %", " %"),
            digits=1,
        ),
        Quantity(
            "forbidden",
            Words("their weight on forbidden keys, −1e9 in float32", "它们给被禁键的权重（float32 填 −1e9）"),
            Words(" %", " %"),
            digits=0,
        ),
        Quantity("bfloat16", Words("the same in bfloat16", "同上（bfloat16）"), Words(" %", " %"), digits=0),
        Quantity(
            "nan", Words("rows that are NaN with −∞", "填 −∞ 时为 NaN 的行"), Words(" %", " %"), digits=1
        ),
        Quantity("ours", Words("sum of their weights here", "在本项目中它们的权重之和"), digits=1),
    ),
    measured=measured,
    fault=fault,
    hints={
        "no_mask": Words(
            "Every query still has keys: your plan permits what the baseline permits. Which stage forbids?",
            "每个查询都还有键：您的计划并没有禁止什么。哪个阶段负责禁止？",
        ),
        "one_key": Words(
            "You forbade keys, but every query has at least one left (itself, perhaps). Two masks together may leave none.",
            "您禁止了一些键，但每个查询至少还剩一个（也许是它自己）。两个掩码叠加才可能一个不剩。",
        ),
        "some_heads": Words(
            "Queries are closed in some heads of a layer, but other heads of it still see something. Close them in every head.",
            "有些查询在某些头里没有键，但同层的其他头仍能看到东西。请在所有头里都关上。",
        ),
        "by_chance": Words(
            "Chance closed a few queries ({after[nan]} of the rows) in some heads: with another seed others. Forbid on purpose.",
            "随机地关上了少数查询（{after[nan]} 的行），换个种子就变了。请有目的地禁止。",
        ),
        "head_off": Words(
            "A head that is off still looks at all its keys; only its output is thrown away. Forbid keys instead.",
            "被关闭的头仍然看着所有的键，只是输出被丢弃。请改为禁止键。",
        ),
        "all_shut": Words(
            "Now no query sees anything. Leave some open, so that you can see whether NaN stays where it began.",
            "现在所有查询都看不到东西了。请留一些开着，才能看出 NaN 会不会扩散。",
        ),
    },
    outcome=outcome,
    explanation=Words(
        "In {after[closed]} of the rows no key was left. −1e9 gives {after[forbidden]} of their weight to keys that are forbidden, evenly and without a word (bfloat16: {after[bfloat16]}); in float16 it cannot even be written (largest number {fact[largest16]:.0f}), torch raises an error. "
        "−∞ gives NaN in {after[nan]} of the rows, and from one layer it reaches {fact[ends]:.0f} % of all tokens, because 0 times NaN is NaN: loud, but everything is lost. So “−1e9 harms gradients, −∞ is safer” has it wrong: where a key is left both give the same; "
        "where none is left one lies and the other shouts. Real masks meet this often: causal and padded on the left, or a window over padding. Safe is to say what a closed row means: here weights 0, output 0, and a note.",
        "有 {after[closed]} 的行一个键也没剩。−1e9 把它们 {after[forbidden]} 的权重平均给了被禁止的键，而且悄无声息（bfloat16：{after[bfloat16]}）；在 float16 里根本写不进去（最大数 {fact[largest16]:.0f}），torch 会报错。−∞ 使 {after[nan]} 的行成为 NaN，"
        "并从一层扩散到 {fact[ends]:.0f} % 的词元，因为 0 乘 NaN 仍是 NaN：声音很大，但什么都没了。所以“−1e9 伤害梯度，−∞ 更安全”说反了：只要还剩一个键，两者完全一样；一个不剩时，一个撒谎，一个大叫。现实中常会遇到：左填充加因果掩码，或窗口落在填充上。"
        "安全的做法是规定空行的含义：本项目里权重为 0、输出为 0，并给出提示。",
    ),
    further=Words(
        "Block the first token under a causal mask: that is what padding on the left does. Which queries are closed, and how many would be with ten tokens of padding?",
        "在因果掩码下屏蔽第一个词元：左填充做的就是这件事。哪些查询没有键了？如果左边填充十个词元呢？",
    ),
    further_plan=Plan(CausalMask(), BlockTokens([0])),
    solution=Plan(CausalMask(), HideSelf()),
    ask=Words(
        "Your loss becomes NaN at step 1. Which two lines of code do you look at first?",
        "您的损失在第 1 步变成 NaN。您先看哪两行代码？",
    ),
    minutes=12,
)
