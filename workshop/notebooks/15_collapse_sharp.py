# %% [markdown]
# # 15. Collapse, the sharp kind / 塌缩之一：尖锐
#
# “With large initial weights attention collapses onto the diagonal: every token sees only itself.” Does it?
#
# “初始权重太大时，注意力会塌缩到对角线上：每个词元只看自己。”真的吗？

# %% [markdown]
# ## To know first / 先了解
#
# - This is the encoder before training: all weights are random, W_q and W_k are drawn apart from each other.
# - 这是训练之前的编码器：权重都是随机的，W_q 与 W_k 彼此独立地抽取。
#
# - Larger weights make larger scores; dividing the scores by a small T has the same effect on the softmax.
# - 权重更大，分数就更大；把分数除以很小的 T，对 softmax 的效果相同。
#
# - A one-hot row gives everything to the key with the largest score: which one that is depends on q·k.
# - 独热的一行把全部权重给分数最大的键：是哪一个，取决于 q·k。
#
#     T → 0: weight_ij → [j = argmax_k (W_q x_i)·(W_k x_k)]

# %%
import surgery as sg
import workshop
from models import load
from workshop.grading import told

lang = "en"  # "zh": 中文
one = workshop.exercise("collapse-sharp")
patient = load(one.model(lang))

# %% [markdown]
# ## Predict / 预测
#
# When this attention becomes one-hot, where does it land?
# 当注意力变成独热时，会落在哪里？
#
# - `self`: On the token itself: the diagonal. / 自己：对角线。
#
# - `first`: On the first token. / 第一个词元。
#
# - `anywhere`: Anywhere; on itself no more often than by chance. / 任意位置；落在自己身上的次数不比随机多。
#
# In how many per cent of the rows on the token itself? / 有百分之多少的行落在自己身上？

# %%
my_choice = None  # one of the keys above, in quotes
my_number = None

# %% [markdown]
# ## Cut / 动手
#
# Task: make every head of the untrained encoder nearly one-hot (largest weight at least 0.95 on average) by
# its scores, with all keys permitted.
#
# 任务：让未训练编码器的每个头都接近独热（最大权重平均至少 0.95），只通过分数，所有键仍被允许。
#
# All operations / 所有操作：`python -m surgery ops`

# %%
plan = sg.Plan()  # for example sg.Plan(sg.HideSelf().at("L0.H1"))

# %% [markdown]
# ## Measure / 测量

# %%
report = workshop.check(one, plan, patient, lang)
print(told(report, lang, my_choice, my_number))
