"""What runs on one click: a name and a plan each. And texts to try."""

from typing import NamedTuple

import surgery.operations as ops
from bilingual import Words
from surgery.plan import Plan

PRESETS: dict[str, tuple[Words, Plan]] = {
    "positions": (Words("No positions", "去掉位置"), Plan(ops.RemovePositions())),
    "scale": (Words("No 1/√d_k", "去掉 1/√d_k"), Plan(ops.DropScaling())),
    "hot": (Words("Hot: T = 4", "高温 T = 4"), Plan(ops.Temperature(4.0))),
    "cold": (Words("Cold: T = ¼", "低温 T = ¼"), Plan(ops.Temperature(0.25))),
    "causal": (Words("Causal mask", "因果掩码"), Plan(ops.CausalMask())),
    "local": (Words("Local window", "局部窗口"), Plan(ops.LocalMask(1))),
    "uniform": (Words("Uniform", "均匀"), Plan(ops.UniformAttention())),
    "dropout": (Words("Dropout on scores", "分数 Dropout"), Plan(ops.ScoreDropout(0.3, 0))),
    "head": (Words("Head L0.H1 off", "关闭头 L0.H1"), Plan(ops.AblateHead().at("L0.H1"))),
    "none": (Words("Nothing", "不做手术"), Plan()),
}
FIRST = "positions"


class Example(NamedTuple):
    """Something to try: a text, a second one to compare it with, and the model that shows it best."""

    label: Words
    text: str
    other: str = ""
    model: str = "minilm"


EXAMPLES: dict[str, Example] = {
    "dog": Example(Words("Who bit whom", "谁咬了谁"), "The dog bit the man", "The man bit the dog"),
    "animal": Example(
        Words("What is “it”?", "“it”指什么"),
        "The animal didn't cross the street because it was too tired.",
        "The animal didn't cross the street because it was too wide.",
    ),
    "agree": Example(
        Words("is or are?", "is 还是 are？"), "today the dogs near the cat [MASK] tired", model="encoder"
    ),
    "who": Example(
        Words("Chinese: who did it?", "谁做的？"), "猫被狗打败了[SEP]是谁做的？[MASK]", model="encoder-zh"
    ),
    "writer": Example(Words("Letter by letter", "逐字母续写"), "the old bear ", model="characters"),
    "odd": Example(
        Words("Odd tokens", "奇怪的词元"), "Price: $5 or $x_$? <b>bold</b> & “quotes” 🧬 naïve 你好"
    ),
}
