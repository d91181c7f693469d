"""Claims about scores, their scale, the softmax and its gradients."""

import math

import torch
from torch.nn import functional as F

from bilingual import Words
from models import load
from models.tasks import IGNORED
from models.tasks.sentences import reading
from surgery import metrics, theatre
from surgery.operations import DropScaling, Temperature
from surgery.plan import Plan
from workshop import bench
from workshop.claims.claim import DEPENDS, HOLDS, SEEDS, WRONG, Verdict, claim, kept, over


@claim(
    "mean-weight",
    "A mean attention weight between 0.01 and 0.1 is healthy.",
    "平均注意力权重在 0.01 到 0.1 之间是健康的。",
    {
        WRONG: Words(
            "Rows sum to 1, so the mean is 1/n whatever the head does: at n = 8 random {random_8:.4f}, one-hot {onehot_8:.4f}, uniform {uniform_8:.4f}; at n = 128 {random_128:.4f}, {onehot_128:.4f}, {uniform_128:.4f}. Look at the largest weight or at entropy / ln n.",
            "每行之和为 1，因此无论头做什么，平均值都是 1/n：n = 8 时随机 {random_8:.4f}、独热 {onehot_8:.4f}、均匀 {uniform_8:.4f}；n = 128 时为 {random_128:.4f}、{onehot_128:.4f}、{uniform_128:.4f}。请看最大权重或熵 / ln n。",
        )
    },
)
def mean_weight() -> Verdict:
    def measure(generator: torch.Generator) -> dict[str, float]:
        found: dict[str, float] = {}
        for n in (8, 128):
            scores = torch.randn(16, n, n, generator=generator)
            for name, factor in (("random", 1.0), ("onehot", 1e4), ("uniform", 0.0)):
                found[f"{name}_{n}"] = (scores * factor).softmax(-1).mean().item()
        return found

    numbers = over(SEEDS, measure)
    alike = all(
        abs(numbers[f"{k}_{n}"].mean - 1 / n) < 1e-4
        for k in ("random", "onehot", "uniform")
        for n in (8, 128)
    )
    return WRONG if alike else HOLDS, numbers


@claim(
    "variance-one",
    "Dividing by √d_k keeps the variance of the scores at 1.",
    "除以 √d_k 使分数的方差保持为 1。",
    {
        DEPENDS: Words(
            "Only if queries and keys have variance 1 (std of q·k at d_k = 64: {unit_raw:.2f}, divided {unit:.2f}). With the weights that layers start from: nn.Linear's default {linear_raw:.2f} → {linear:.2f}, BERT's 0.02 {bert_raw:.2f} → {bert:.2f}.",
            "只有查询和键的方差为 1 时成立（d_k = 64 时 q·k 的标准差 {unit_raw:.2f}，除后 {unit:.2f}）。用实际的初始权重：nn.Linear 默认 {linear_raw:.2f} → {linear:.2f}，BERT 的 0.02 为 {bert_raw:.2f} → {bert:.2f}。",
        )
    },
)
def variance_one() -> Verdict:
    width, d_k, tokens = 768, 64, 64

    def measure(generator: torch.Generator) -> dict[str, float]:
        x = F.layer_norm(torch.randn(32, tokens, width, generator=generator), (width,))
        bound = 1 / math.sqrt(width)  # what nn.Linear draws from: ±1/√width, the bias too
        found: dict[str, float] = {}
        for name in ("unit", "linear", "bert"):
            if name == "unit":
                q, k = (torch.randn(32, tokens, d_k, generator=generator) for _ in range(2))
            elif name == "linear":
                w = [(torch.rand(width + 1, d_k, generator=generator) * 2 - 1) * bound for _ in range(2)]
                q, k = (x @ m[:-1] + m[-1] for m in w)
            else:
                q, k = (x @ (0.02 * torch.randn(width, d_k, generator=generator)) for _ in range(2))
            raw = (q @ k.transpose(1, 2)).std().item()
            found |= {f"{name}_raw": raw, name: raw / math.sqrt(d_k)}
        return found

    numbers = over(SEEDS, measure)
    unit = abs(numbers["unit"].mean - 1) < 0.05
    others = all(abs(numbers[name].mean - 1) < 0.05 for name in ("linear", "bert"))
    return HOLDS if unit and others else DEPENDS if unit else WRONG, numbers


@claim(
    "scale-is-temperature",
    "Leaving out 1/√d_k is a temperature of 1/√d_k, nothing else.",
    "去掉 1/√d_k 就相当于温度 1/√d_k，仅此而已。",
    {
        HOLDS: Words(
            "On the trained encoder (d_k = 16) the logits without the scale and those at T = 1/4 differ by {apart:r}; from the unoperated ones both differ by {moved:.2f} on average.",
            "在训练好的编码器上（d_k = 16），去掉缩放与 T = 1/4 的 logits 相差 {apart:r}；两者与未手术时平均相差 {moved:.2f}。",
        )
    },
)
def scale_is_temperature() -> Verdict:
    patient = load("encoder", device="cpu")

    def logits(inputs: dict[str, torch.Tensor], plan: Plan) -> torch.Tensor:
        with torch.inference_mode(), theatre.run(patient.model, [plan]):
            return patient.model(**inputs).logits

    def measure(generator: torch.Generator) -> dict[str, float]:
        inputs = reading(bench.examples("en", generator.initial_seed(), 20).ids)
        plans = Plan(), Plan(DropScaling()), Plan(Temperature(0.25))
        plain, dropped, cold = (logits(inputs, plan) for plan in plans)
        return {"apart": (dropped - cold).abs().max().item(), "moved": (dropped - plain).abs().mean().item()}

    numbers = over(range(3), measure)
    return HOLDS if numbers["apart"].mean < 1e-3 * numbers["moved"].mean else WRONG, numbers


@claim(
    "no-scale-no-training",
    "Without √d_k training does not work.",
    "不除以 √d_k 就无法训练。",
    {
        DEPENDS: Words(
            "It depends on the width of a head and on the rate. The same encoder at a constant rate of 3e-3, {scale_steps:.0f} steps: one head of 64, {scale_with:.0f} % right with it and {scale_without:.0f} % without; four heads of 16, {small_with:.0f} % and {small_without:.0f} %.",
            "取决于头的宽度和学习率。同样的编码器，学习率恒为 3e-3，{scale_steps:.0f} 步：一个宽 64 的头，有它 {scale_with:.0f} %，没有 {scale_without:.0f} %；四个宽 16 的头，{small_with:.0f} % 与 {small_without:.0f} %。",
        )
    },
    trained=True,
)
def no_scale_no_training() -> Verdict:
    numbers = kept("scale_steps", "scale_with", "scale_without", "small_with", "small_without")
    wide = numbers["scale_with"].mean - numbers["scale_without"].mean
    small = numbers["small_with"].mean - numbers["small_without"].mean
    return HOLDS if wide > 30 and small > 30 else DEPENDS if wide > 5 or small > 5 else WRONG, numbers


@claim(
    "vanishing-gradients",
    "Large scores give vanishing gradients.",
    "分数太大会导致梯度消失。",
    {
        DEPENDS: Words(
            "For most rows: the median gradient at the scores falls from {median_1:.0e} (scores of std 1) to {median_8:.0e} (std 8). Its root mean square does not vanish ({rms_1:.3f} → {rms_8:.3f}): the few undecided rows keep nearly all of it.",
            "对大多数行成立：分数处梯度的中位数从 {median_1:.0e}（标准差 1）降到 {median_8:.0e}（标准差 8）。均方根却没有消失（{rms_1:.3f} → {rms_8:.3f}）：少数犹豫不决的行保留了几乎全部梯度。",
        )
    },
)
def vanishing_gradients() -> Verdict:
    def measure(generator: torch.Generator) -> dict[str, float]:
        found: dict[str, float] = {}
        for std in (1, 8):
            scores = (torch.randn(2000, 32, generator=generator) * std).requires_grad_()
            total = (scores.softmax(-1) * torch.randn(2000, 32, generator=generator)).sum()
            (gradient,) = torch.autograd.grad(total, scores)
            found |= {
                f"median_{std}": gradient.abs().median().item(),
                f"rms_{std}": gradient.square().mean().sqrt().item(),
            }
        return found

    numbers = over(SEEDS, measure)
    median = numbers["median_8"].mean < 1e-3 * numbers["median_1"].mean
    rms = numbers["rms_8"].mean < 0.1 * numbers["rms_1"].mean
    return HOLDS if median and rms else DEPENDS if median else WRONG, numbers


@claim(
    "large-scores-nan",
    "Large scores, or a missing 1/√d_k, give NaN.",
    "分数太大，或缺少 1/√d_k，会出现 NaN。",
    {
        WRONG: Words(
            "Finite scores never do: of softmax rows with scores up to 1e30, {finite:.0f} % are NaN. What does: a row of −∞ only ({closed:.0f} %), and a score of +∞ ({infinite:.0f} %).",
            "有限的分数不会：分数高达 1e30 时，NaN 的行占 {finite:.0f} %。会出现 NaN 的是：整行都是 −∞（{closed:.0f} %），或有分数为 +∞（{infinite:.0f} %）。",
        )
    },
)
def large_scores_nan() -> Verdict:
    def share(scores: torch.Tensor) -> float:
        return 100 * scores.softmax(-1).isnan().any(-1).float().mean().item()

    def measure(generator: torch.Generator) -> dict[str, float]:
        scores = torch.randn(500, 32, generator=generator)
        open_end = scores.clone()
        open_end[:, 0] = math.inf
        return {
            "finite": share(scores / scores.abs().max() * 1e30),
            "closed": share(torch.full_like(scores, -math.inf)),
            "infinite": share(open_end),
        }

    numbers = over(SEEDS, measure)
    return WRONG if numbers["finite"].mean == 0 else HOLDS, numbers


@claim(
    "temperature-confidence",
    "A lower attention temperature makes predictions more confident.",
    "降低注意力温度会让预测更自信。",
    {
        WRONG: Words(
            "That is the temperature of the output softmax. On the trained encoder attention at T = 1/4 has a mean confidence of {cold:.3f} against {normal:.3f} at T = 1; the output at T = 1/4 has {output:.3f}.",
            "那是输出 softmax 的温度。在训练好的编码器上，注意力 T = 1/4 时平均置信度为 {cold:.3f}，T = 1 时为 {normal:.3f}；输出 T = 1/4 时为 {output:.3f}。",
        )
    },
)
def temperature_confidence() -> Verdict:
    patient = load("encoder", device="cpu")

    def measure(generator: torch.Generator) -> dict[str, float]:
        table = bench.examples("en", generator.initial_seed(), 100)
        inputs = reading(table.ids)
        asked = table.answers != IGNORED

        def confidence(plan: Plan, output: float = 1.0) -> float:
            with torch.inference_mode(), theatre.run(patient.model, [plan]):
                logits = patient.model(**inputs).logits[asked]
            return (logits / output).softmax(-1).amax(-1).mean().item()

        cold = Plan(Temperature(0.25))
        return {"normal": confidence(Plan()), "cold": confidence(cold), "output": confidence(Plan(), 0.25)}

    numbers = over(range(3), measure)
    return WRONG if numbers["cold"].mean <= numbers["normal"].mean else HOLDS, numbers


@claim(
    "diagonal-collapse",
    "Large initial weights make attention collapse onto the diagonal.",
    "初始权重太大会使注意力塌缩到对角线。",
    {
        WRONG: Words(
            "With W_q and W_k drawn apart rows become one-hot (largest weight {largest:.2f}) at arbitrary places: on themselves {apart:.1f} % of the time, chance is {chance:.1f} %. The diagonal needs W_q ≈ W_k ({same:.1f} %). W_v is not in the scores at all.",
            "W_q 与 W_k 独立抽取时，行会变成独热（最大权重 {largest:.2f}），但位置任意：落在自己身上 {apart:.1f} %，随机期望 {chance:.1f} %。要有对角线需 W_q ≈ W_k（{same:.1f} %）。W_v 根本不在分数里。",
        )
    },
)
def diagonal_collapse() -> Verdict:
    tokens, width = 16, 64

    def measure(generator: torch.Generator) -> dict[str, float]:
        x = torch.randn(100, tokens, width, generator=generator)
        w_q, w_k = (torch.randn(100, width, width, generator=generator) for _ in range(2))  # std 1: large
        found = {"chance": 100 / tokens}
        for name, other in (("apart", w_k), ("same", w_q)):
            weights = (x @ w_q @ (x @ other).transpose(1, 2) / math.sqrt(width)).softmax(-1)
            found[name] = 100 * (weights.argmax(-1) == torch.arange(tokens)).float().mean().item()
            if name == "apart":
                found["largest"] = weights.amax(-1).mean().item()
        return found

    numbers = over(SEEDS, measure)
    return WRONG if numbers["apart"].mean < 2 * numbers["chance"].mean else HOLDS, numbers


@claim(
    "five-tokens-entropy",
    "“Entropies of 2.10 and 1.85 for 5 tokens” (a printed example).",
    "“5 个词元的熵为 2.10 和 1.85”（某个示例的输出）。",
    {
        WRONG: Words(
            "Impossible: the largest entropy of 5 keys is ln 5 = {most:.3f} nats; of 2,000 random rows the largest was {seen:.3f}. Averages over padded queries do it: 20 pad rows lift a head of 0.5 to {padded:.2f}.",
            "不可能：5 个键的最大熵是 ln 5 = {most:.3f} 奈特；2000 个随机行中最大的是 {seen:.3f}。把填充的查询也平均进去就会这样：20 行填充会把熵 0.5 的头抬到 {padded:.2f}。",
        )
    },
)
def five_tokens_entropy() -> Verdict:
    def measure(generator: torch.Generator) -> dict[str, float]:
        rows = (3 * torch.randn(2000, 5, generator=generator)).softmax(-1)
        sharp = torch.full((12,), 0.5)
        pads = metrics.entropy(torch.ones(20, 12))
        return {
            "most": math.log(5),
            "seen": metrics.entropy(rows).max().item(),
            "padded": torch.cat((sharp, pads)).mean().item(),
        }

    numbers = over(SEEDS, measure)
    return WRONG if numbers["seen"].mean <= math.log(5) + 1e-6 < 1.85 else HOLDS, numbers
