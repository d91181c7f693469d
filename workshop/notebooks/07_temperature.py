# %% [markdown]
# # 7. Hot and cold attention / 注意力的冷与热
#
# Attention can be made flatter (T > 1) or sharper (T < 1). Which of the two does a trained model mind?
#
# 注意力可以变平（T > 1），也可以变尖锐（T < 1）。训练好的模型更怕哪一种？

# %% [markdown]
# ## To know first / 先了解
#
# - The scores are divided by T before the softmax: T = 1 is the model as it is, T → 0 gives all weight to the
# largest score, T → ∞ the same weight to every key.
# - 在 softmax 之前把分数除以 T：T = 1 是原模型；T → 0 时全部权重给最大的分数；T → ∞ 时每个键权重相同。
#
# - T and 1/T are each other's mirror: what one stretches by a factor, the other shrinks by it.
# - T 与 1/T 互为镜像：一个把分数放大多少倍，另一个就缩小多少倍。
#
# - This is the temperature inside attention; the one that language models are sampled with acts on the output
# and is something else.
# - 这里说的是注意力内部的温度；语言模型采样时的温度作用在输出上，是另一回事。
#
#     weights = softmax(q·kᵀ / (√d_k · T))

# %%
import surgery as sg
import workshop
from models import load
from workshop.grading import told

lang = "en"  # "zh": 中文
one = workshop.exercise("temperature")
patient = load(one.model(lang))

# %% [markdown]
# ## Predict / 预测
#
# Which side breaks the answers first?
# 哪一侧会先让答案出错？
#
# - `sharp`: The sharp side, T < 1. / 尖锐的一侧，T < 1。
#
# - `flat`: The flat side, T > 1. / 平坦的一侧，T > 1。
#
# - `both`: Both alike. / 两侧一样。
#
# From which T on, in all heads, are fewer than 70 % right? / 对所有的头，T 升到多少时正确率开始低于 70 %？

# %%
my_choice = None  # one of the keys above, in quotes
my_number = None

# %% [markdown]
# ## Cut / 动手
#
# Task: find a temperature at which at most 70 % of the questions are answered right, while its mirror 1/T
# leaves at least 90 % right.
#
# 任务：找一个温度 T，使答对的问题不超过 70 %，而它的镜像 1/T 仍有至少 90 % 答对。
#
# All operations / 所有操作：`python -m surgery ops`

# %%
plan = sg.Plan()  # for example sg.Plan(sg.HideSelf().at("L0.H1"))

# %% [markdown]
# ## Measure / 测量

# %%
report = workshop.check(one, plan, patient, lang)
print(told(report, lang, my_choice, my_number))
