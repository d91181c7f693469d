"""Beyond the trained places: where does a learned table of positions end in truth?"""

import functools
from typing import Any

import torch
from torch.nn import functional as F

from bilingual import Words
from models.tasks.characters import IDS, WINDOW, line
from models.vocabulary import NEWLINE
from surgery import theatre
from surgery.operations import ShiftPositions
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
)

ROWS, LETTERS, WARM = 48, 24, 4  # the first letters are hard to guess wherever they stand
STEP_BACK = 8
BROKEN, FINE = 2.0, 1.6  # losses, in units of the baseline's


@functools.lru_cache(maxsize=8)
def texts(seed: int) -> torch.Tensor:
    """Lines of the little language, cut to LETTERS letters, behind a newline: (row, letter)."""
    r = bench.draw(seed)
    rows = ["".join([NEWLINE, *(line(r)[0] for _ in range(3))])[: LETTERS + 1] for _ in range(ROWS)]
    return torch.tensor([[IDS[letter] for letter in row] for row in rows])


def nats(patient: Any, ids: torch.Tensor, plan: Plan) -> float:
    """The loss per letter."""
    ids = ids.to(patient.device)
    with torch.inference_mode(), theatre.in_eval(patient.model), bench.scoped(patient, plan):
        logits = patient.model(ids[:, :-1]).logits.float()[:, WARM:]
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1 + WARM :].flatten()).item()


def places(plan: Plan, tokens: int) -> torch.Tensor | None:
    """The position of each token under a plan, or None where it takes all positions away."""
    ids: torch.Tensor | None = torch.arange(tokens)[None]
    for step in plan:
        operation: Any = step.operation
        if operation.stage == "positions" and not operation.neutral and ids is not None:
            ids = operation.positions(ids, torch.ones_like(ids, dtype=torch.bool))
    return None if ids is None else ids[0]


def measured(patient: Any, plan: Plan, lang: str, seed: int) -> Measured:
    """The loss under the plan; and, if it slides the text, under a slide that stops a little earlier."""
    ids = texts(seed)
    where = places(plan, LETTERS)
    kept = where is not None and bool((where.diff() == 1).all())
    start = int(where[0]) if where is not None and kept else None
    facts = {"kept": kept, "start": start, "window": WINDOW - 1}
    before, after = nats(patient, ids, Plan()), nats(patient, ids, plan)
    base = {"nats": before, "last": LETTERS - 1.0, "earlier": before}
    if start is None:
        return base, {"nats": after, "last": float("nan"), "earlier": float("nan")}, facts
    earlier = nats(patient, ids, Plan(ShiftPositions(max(0, start - STEP_BACK))))
    return base, {"nats": after, "last": start + LETTERS - 1.0, "earlier": earlier}, facts


def fault(plan: Plan, evidence: Evidence) -> Fault:
    """Distances must be kept, the loss doubled here, and a few places earlier still near the baseline."""
    base, nats, earlier = (evidence.baseline["nats"], evidence.operated["nats"], evidence.operated["earlier"])
    if not evidence.facts["kept"]:
        return "order"
    if "positions" not in stages(plan):
        return "not_positions"
    if nats < BROKEN * base:
        return "not_yet"
    if earlier > FINE * base:
        return "too_far"
    others = [step for step in plan if step.operation.stage != "positions"]
    return "others" if others else None


def outcome(evidence: Evidence) -> Outcome:
    """Whether there is an edge, and where the text began when it went over it."""
    base = evidence.baseline["nats"]
    broken, fine = evidence.operated["nats"] >= BROKEN * base, evidence.operated["earlier"] <= FINE * base
    key = "edge" if broken and fine else "slope" if broken else "nothing"
    return Outcome(key, evidence.facts["start"])


EXERCISE = Exercise(
    name="beyond-trained",
    title=Words("Where the table ends", "位置表的尽头"),
    question=Words(
        "A model has learned a table of 128 positions. Can it read a text that stands at place 100?",
        "一个模型学到了一张有 128 个位置的表。它能读懂站在第 100 个位置的文本吗？",
    ),
    know=(
        Words(
            "A learned position is a row of a table: a vector of its own for each place, which only training on that place can shape.",
            "可学习的位置就是一张表的一行：每个位置有自己的向量，只有在该位置上训练过，这个向量才有意义。",
        ),
        Words(
            "The model writes a small English language letter by letter; it was trained on windows of {n} letters, though its table has 128 rows.".replace(
                "{n}", str(WINDOW)
            ),
            "模型逐个字母写出一种小型英语；它的表有 128 行，但训练时窗口只有 {n} 个字母。".replace(
                "{n}", str(WINDOW)
            ),
        ),
        Words(
            "The loss is how surprised it is by the next letter, in nats: 0.3 is as good as the language allows, 3.4 is guessing among all letters.",
            "损失表示它对下一个字母有多意外，单位是奈特：约 0.3 已是这种语言的极限，3.4 相当于在所有字母中瞎猜。",
        ),
    ),
    equation="x_i = E[letter_i] + PE[i + k]",
    models={"en": "characters", "zh": "characters"},
    prediction=Prediction(
        Words(
            f"The same {LETTERS} letters, but starting at place k instead of 0; all distances stay. As k grows, what happens to the loss?",
            f"同样的 {LETTERS} 个字母，从位置 k 而不是 0 开始，彼此的距离不变。k 增大时，损失会怎样？",
        ),
        (
            Choice("nothing", Words("Nothing: distances are what counts.", "不变：重要的只是距离。")),
            Choice("slope", Words("It grows with every step.", "随 k 逐步上升。")),
            Choice(
                "edge",
                Words(
                    "It stays low up to some place, then breaks.", "在某个位置之前一直很低，然后突然崩溃。"
                ),
            ),
        ),
        Number(
            Words("At which k has the loss doubled?", "k 为多少时损失翻倍？"),
            low=0,
            high=104,
            near=6,
            digits=0,
        ),
    ),
    task=Words(
        f"slide the text, keeping all distances, to the first places where the loss is more than {BROKEN:.0f} times the baseline's, while {STEP_BACK} places earlier it is still near it.",
        f"保持所有距离不变，把文本移到损失刚好超过基线 {BROKEN:.0f} 倍的地方，而往前 {STEP_BACK} 个位置时损失仍接近基线。",
    ),
    quantities=(
        Quantity("nats", Words("loss per letter", "每个字母的损失"), Words(" nats", " 奈特"), digits=2),
        Quantity("last", Words("place of the last letter", "最后一个字母的位置"), digits=0),
        Quantity(
            "earlier",
            Words(f"loss if it began {STEP_BACK} places earlier", f"若提前 {STEP_BACK} 个位置，损失为"),
            Words(" nats", " 奈特"),
            digits=2,
        ),
    ),
    measured=measured,
    fault=fault,
    hints={
        "order": Words(
            "The loss is {after[nats]}, but the letters no longer stand in a row: this breaks order, not the table. Keep all distances and slide the whole text.",
            "损失为 {after[nats]}，但字母已不再依次排列：被破坏的是顺序，而不是位置表。请保持距离，整体平移。",
        ),
        "not_positions": Words(
            "The text still starts at place 0; your plan works on attention itself (loss {after[nats]}). The question is about the places.",
            "文本仍从位置 0 开始；您的计划改动的是注意力本身（损失 {after[nats]}）。这个问题问的是位置。",
        ),
        "not_yet": Words(
            "At this place the loss is {after[nats]} (baseline {before[nats]}): the model still copes. The last letter stands at {after[last]}; which places did training show?",
            "在这里损失是 {after[nats]}（基线 {before[nats]}）：模型还应付得来。最后一个字母在位置 {after[last]}；训练时出现过哪些位置？",
        ),
        "too_far": Words(
            f"Broken ({{after[nats]}}), but {STEP_BACK} places earlier it is broken too ({{after[earlier]}}). Go back to where it begins.",
            f"确实崩溃了（{{after[nats]}}），但提前 {STEP_BACK} 个位置也已崩溃（{{after[earlier]}}）。请退回到崩溃开始的地方。",
        ),
        "others": Words(
            "You slid the text and did something else as well; the loss of {after[nats]} is the sum of both. Slide only.",
            "您平移了文本，同时还做了别的；{after[nats]} 的损失是两者的共同结果。请只做平移。",
        ),
    },
    outcome=outcome,
    explanation=Words(
        "With the last letter at place {after[last]} the loss went from {before[nats]} to {after[nats]}; eight places earlier it was {after[earlier]}. The table has 128 rows, but training never went beyond "
        "place {fact[window]}: the later rows are still the random numbers that they began as. A table is as long as its training, not as long as its shape. Formulas do not save you by "
        "themselves: a small model trained on 3-16 words and asked at 32 is right in {known[first_learned_32]} % of texts with a learned table, {known[first_sinusoidal_32]} % with sinusoids, {known[first_rotary_32]} % with "
        "rotary positions (50 % is chance, mean ± sd of 3 seeds); slid by 20 places instead, {known[first_learned_slid]} %, {known[first_sinusoidal_slid]} % and {known[first_rotary_slid]} %. Rotary positions do not mind where a text stands; how "
        "long it is, they do.",
        "最后一个字母位于 {after[last]} 时，损失从 {before[nats]} 升到 {after[nats]}；提前八个位置时只有 {after[earlier]}。表有 128 行，但训练从未超过位置 {fact[window]}：后面的行仍是最初的随机数。位置表的有效长度取决于训练，而不是它的形状。"
        "用公式也不会自动解决问题：一个用 3–16 个词训练的小模型，在 32 个词时的正确率：可学习位置 {known[first_learned_32]} %，正弦位置 {known[first_sinusoidal_32]} %，旋转位置 {known[first_rotary_32]} %（50 % 是瞎猜；3 个种子的均值 ± 标准差）；"
        "若只是整体平移 20 个位置，则分别为 {known[first_learned_slid]} %、{known[first_sinusoidal_slid]} %、{known[first_rotary_slid]} %。旋转位置不在乎文本站在哪里，但在乎文本有多长。",
    ),
    further=Words(
        "Slide the text to the very end (k = 104) and look at the loss: is a random row worse than the edge itself?",
        "把文本移到最末（k = 104）再看损失：随机的行比边缘处更糟吗？",
    ),
    further_plan=Plan(ShiftPositions(128 - LETTERS)),
    solution=Plan(ShiftPositions(46)),
    ask=Words(
        "A model card says “context 8,192”. Which question would you ask its makers?",
        "模型说明写着“上下文 8192”。您会问作者什么问题？",
    ),
    minutes=12,
)
