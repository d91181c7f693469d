# %% [markdown]
# # 14. Attention is not explanation / 注意力不是解释
#
# “The model answers fox because it attends to fox.” Some head does. Is it the reason?
#
# “模型回答‘狐狸’，是因为它注意到了‘狐狸’。”确实有头看着那里。但那就是原因吗？

# %% [markdown]
# ## To know first / 先了解
#
# - Asked “who did it?”, the model answers at [MASK] with a word of the sentence; so one can measure how much
# of the [MASK]'s weight lies on that word.
# - 被问“谁做的？”时，模型在 [MASK] 处用句中的一个词回答；因此可以测量 [MASK] 的权重有多少落在那个词上。
#
# - A weight says what a head mixes in, not what the rest of the network does with it.
# - 权重说明一个头混入了什么，但不说明网络其余部分拿它做了什么。
#
# - A cause is what makes a difference when it is taken away.
# - 所谓原因，就是拿走之后结果会不同的东西。
#
#     look(h) = weight_h([MASK], answer)        cost(h) = accuracy − accuracy(output_h = 0)

# %%
import surgery as sg
import workshop
from models import load
from workshop.grading import told

lang = "en"  # "zh": 中文
one = workshop.exercise("not-explanation")
patient = load(one.model(lang))

# %% [markdown]
# ## Predict / 预测
#
# Of the heads that give most of the [MASK]'s weight to the answer word, how many are needed (alone)?
# 在把 [MASK] 的大部分权重给了答案词的那些头中，有多少是（单独）必需的？
#
# - `all`: All: that is how the answer gets there. / 全部：答案就是这样来的。
#
# - `some`: Some. / 一部分。
#
# - `none`: None. / 一个也不是。
#
# How much of the [MASK]'s weight does the needless head give to the answer? / 那个非必需的头把 [MASK] 的多少权重给了答案词？

# %%
my_choice = None  # one of the keys above, in quotes
my_number = None

# %% [markdown]
# ## Cut / 动手
#
# Task: find a head that gives at least half of the [MASK]'s weight to the answer word, switch it off, and
# lose at most 3 points.
#
# 任务：找一个把 [MASK] 至少一半的权重给了答案词的头，关掉它，而正确率最多下降 3 个百分点。
#
# All operations / 所有操作：`python -m surgery ops`

# %%
plan = sg.Plan()  # for example sg.Plan(sg.HideSelf().at("L0.H1"))

# %% [markdown]
# ## Measure / 测量

# %%
report = workshop.check(one, plan, patient, lang)
print(told(report, lang, my_choice, my_number))
