"""Claims about heads and what they show."""

import torch

from bilingual import Words
from models.encoder import EncoderConfig
from models.layers import MultiHeadAttention
from surgery import metrics
from workshop.claims.claim import DEPENDS, HOLDS, SEEDS, WRONG, Measured, Verdict, claim, exact, kept, over


@claim(
    "more-heads-more-parameters",
    "More heads mean more parameters.",
    "头越多，参数越多。",
    {
        WRONG: Words(
            "At d_model 512: {h1:,.0f} with 1 head, {h8:,.0f} with 8, {h64:,.0f} with 64. Each head reads all {reads:.0f} channels, not a slice of the input.",
            "d_model 512：1 个头 {h1:,.0f}，8 个头 {h8:,.0f}，64 个头 {h64:,.0f}。每个头读取全部 {reads:.0f} 个通道，而不是输入的一段。",
        )
    },
)
def more_heads_more_parameters() -> Verdict:
    def attention(heads: int) -> MultiHeadAttention:
        return MultiHeadAttention(EncoderConfig(vocab_size=10, d_model=512, num_heads=heads), 0)

    found = {f"h{h}": sum(p.numel() for p in attention(h).parameters()) for h in (1, 8, 64)}
    x = torch.randn(1, 512, generator=torch.Generator().manual_seed(0)).requires_grad_()
    (gradient,) = torch.autograd.grad(attention(8).query(x)[0, :64].sum(), x)  # the first head's query
    numbers = exact(**found, reads=int((gradient != 0).sum()))
    return WRONG if found["h1"] == found["h64"] else HOLDS, numbers


@claim(
    "must-divide",
    "d_model must be divisible by the number of heads.",
    "d_model 必须能被头数整除。",
    {
        DEPENDS: Words(
            "Only by convention: a head may have any width if the output projection fits. d_model 65 with 4 heads of 16 gives an output of width {width:.0f}; cutting 65 channels into 4 equal heads fails in {errors:.0f} of 1 attempts.",
            "只是惯例：只要输出投影匹配，头可以任意宽。d_model 65、4 个宽 16 的头，输出宽度 {width:.0f}；而把 65 个通道平均切成 4 个头，1 次尝试中 {errors:.0f} 次失败。",
        )
    },
)
def must_divide() -> Verdict:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 5, 65, generator=generator)
    q, k, v = (
        (x @ torch.randn(65, 64, generator=generator)).view(2, 5, 4, 16).transpose(1, 2) for _ in range(3)
    )
    mixed = ((q @ k.transpose(2, 3) / 4).softmax(-1) @ v).transpose(1, 2).flatten(2)
    out = mixed @ torch.randn(64, 65, generator=generator)
    try:
        x.view(2, 5, 4, -1)
        errors = 0
    except RuntimeError:
        errors = 1
    return DEPENDS if out.shape == x.shape and errors else WRONG, exact(width=out.shape[-1], errors=errors)


@claim(
    "eight-heads",
    "Eight heads are the sweet spot.",
    "八个头是最佳选择。",
    {
        DEPENDS: Words(
            "It is the task's affair. Where eight neighbours must be brought: 1 head {fetch_1:.0f} %, 4 heads {fetch_4:.0f} %, 8 heads {fetch_8:.0f} %. The encoder's five questions need no eight: 1 head {scale_with:.0f} %, 4 heads {small_with:.0f} % after {scale_steps:.0f} steps.",
            "由任务决定。必须取来八个邻居时：1 个头 {fetch_1:.0f} %，4 个头 {fetch_4:.0f} %，8 个头 {fetch_8:.0f} %。编码器的五种问题不需要八个：{scale_steps:.0f} 步后 1 个头 {scale_with:.0f} %，4 个头 {small_with:.0f} %。",
        )
    },
    trained=True,
)
def eight_heads() -> Verdict:
    numbers = kept("fetch_1", "fetch_4", "fetch_8", "scale_with", "small_with", "scale_steps")
    needs = numbers["fetch_8"].mean - numbers["fetch_1"].mean > 10
    does_not = numbers["small_with"].mean > 90
    return DEPENDS if needs and does_not else HOLDS if needs else WRONG, numbers


@claim(
    "first-token-second-word",
    "On random input “the first token attends most to the second word, as intuition says”.",
    "在随机输入上，“第一个词元最关注第二个词，符合直觉”。",
    {
        WRONG: Words(
            "Chance: over 400 random layers the first of 5 tokens attends most to the 1st … 5th in {p0:.0f}, {p1:.0f}, {p2:.0f}, {p3:.0f}, {p4:.0f} % of the cases (20 is chance).",
            "纯属偶然：400 个随机层中，5 个词元里的第一个最关注第 1 … 5 个的比例为 {p0:.0f}、{p1:.0f}、{p2:.0f}、{p3:.0f}、{p4:.0f} %（随机期望 20）。",
        )
    },
)
def first_token_second_word() -> Verdict:
    def measure(generator: torch.Generator) -> dict[str, float]:
        x = torch.randn(400, 5, 64, generator=generator)
        q, k = (x @ torch.randn(400, 64, 16, generator=generator) for _ in range(2))
        top = (q @ k.transpose(1, 2))[:, 0].argmax(-1)
        return {f"p{i}": 100 * (top == i).float().mean().item() for i in range(5)}

    numbers = over(SEEDS, measure)
    return WRONG if abs(numbers["p1"].mean - 20) < 6 else HOLDS, numbers


@claim(
    "equal-entropy-equal-heads",
    "Heads of equal entropy do the same.",
    "熵相等的头做同样的事。",
    {
        WRONG: Words(
            "A head on the previous token and one on the next: entropies {previous:.2f} and {next:.2f}, and {overlap:.2f} of their weight in common.",
            "一个看前一个词元的头和一个看后一个的头：熵分别为 {previous:.2f} 和 {next:.2f}，共有的权重为 {overlap:.2f}。",
        )
    },
)
def equal_entropy_equal_heads() -> Verdict:
    previous, following = torch.eye(12).roll(-1, 1), torch.eye(12).roll(1, 1)
    numbers = exact(
        previous=metrics.entropy(previous).mean(),
        next=metrics.entropy(following).mean(),
        overlap=torch.minimum(previous, following).sum(-1).mean(),
    )
    return WRONG if numbers["overlap"].mean < 0.5 else HOLDS, numbers


@claim(
    "sharp-heads-matter",
    "Heads of low entropy are the important ones.",
    "熵低的头就是重要的头。",
    {
        WRONG: Words(
            "In retrained encoders the rank correlation of a head's entropy with what its loss costs is {entropy_cost:.2f} (−1 would be the claim).",
            "在重新训练的编码器里，头的熵与关闭它的代价之间的秩相关是 {entropy_cost:.2f}（若说法成立应为 −1）。",
        ),
        DEPENDS: Words(
            "A weak hint at best: in retrained encoders the rank correlation of a head's entropy with what its loss costs is {entropy_cost:.2f} (−1 would be the claim), and it differs from training to training.",
            "至多是个微弱的线索：在重新训练的编码器里，头的熵与关闭它的代价之间的秩相关是 {entropy_cost:.2f}（若说法成立应为 −1），而且每次训练都不同。",
        ),
    },
    trained=True,
)
def sharp_heads_matter() -> Verdict:
    numbers = kept("entropy_cost")
    value: Measured = numbers["entropy_cost"]
    return HOLDS if value.mean < -0.8 else DEPENDS if value.mean < -0.3 else WRONG, numbers


@claim(
    "attention-explains",
    "A head that attends to the answer is the reason for the answer.",
    "看着答案的头就是得出答案的原因。",
    {
        WRONG: Words(
            "In retrained encoders {lookers:.1f} heads give more than half of the [MASK]'s weight to the answer; {needless:.1f} of them cost at most 3 points when they are switched off. Cut, then speak of reasons.",
            "在重新训练的编码器里，有 {lookers:.1f} 个头把 [MASK] 一半以上的权重给了答案；其中 {needless:.1f} 个关掉后损失不超过 3 个百分点。先切掉，再谈原因。",
        ),
    },
    trained=True,
)
def attention_explains() -> Verdict:
    numbers = kept("lookers", "needless")
    return WRONG if numbers["needless"].mean > 0 else HOLDS, numbers
