# %% [markdown]
# # 9. Nobody may look ahead / 谁也不许往后看
#
# A decoder never sees what comes later. What does an encoder lose that was trained to look both ways, if it
# may no longer look ahead?
#
# 解码器从来看不到后文。一个训练时可以双向看的编码器，如果不许再看后文，会失去什么？

# %% [markdown]
# ## To know first / 先了解
#
# - A causal mask permits key j to query i only if j ≤ i.
# - 因果掩码只允许查询 i 看 j ≤ i 的键。
#
# - The answer stands at [MASK]; in two kinds of question it comes last, in the others words follow it.
# - 答案在 [MASK] 处；有两类问题它在最后，另外两类后面还有词。
#
# - Even an answer that comes last may depend on tokens that looked ahead one layer earlier.
# - 即使答案在最后，也可能依赖于上一层曾经往后看过的词元。
#
#     allowed(i, j) = (j ≤ i)

# %%
import surgery as sg
import workshop
from models import load
from workshop.grading import told

lang = "en"  # "zh": 中文
one = workshop.exercise("causal")
patient = load(one.model(lang))

# %% [markdown]
# ## Predict / 预测
#
# Which kind of question will lose most?
# 哪一类问题损失最大？
#
# - `role`: who did it? / 谁做的？
#
# - `review`: good or bad overall? / 总体是好是坏？
#
# - `agree`: the form that fits the subject / 与主语相配的词形（量词）
#
# - `reflex`: the pronoun that fits the subject / 与主语相配的代词
#
# What is left of it? / 它还剩多少正确率？

# %%
my_choice = None  # one of the keys above, in quotes
my_number = None

# %% [markdown]
# ## Cut / 动手
#
# Task: let no head give any weight to a later token, while it may still look back; then compare the four
# kinds of question.
#
# 任务：让所有头都不给后面的词元任何权重，但仍可以往前看；然后比较四类问题。
#
# All operations / 所有操作：`python -m surgery ops`

# %%
plan = sg.Plan()  # for example sg.Plan(sg.HideSelf().at("L0.H1"))

# %% [markdown]
# ## Measure / 测量

# %%
report = workshop.check(one, plan, patient, lang)
print(told(report, lang, my_choice, my_number))
