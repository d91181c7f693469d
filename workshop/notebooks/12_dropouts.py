# %% [markdown]
# # 12. Where does a dropped connection go? / 被丢弃的连接去了哪里？
#
# Dropout may sit before the softmax or after it. Which one removes connections, and what happens to the rest
# of the row?
#
# Dropout 可以放在 softmax 之前，也可以放在之后。哪一种真的移除了连接？同一行的其余部分又会怎样？

# %% [markdown]
# ## To know first / 先了解
#
# - Dropout sets entries to 0 with probability p and divides the others by 1 − p.
# - Dropout 以概率 p 把元素置 0，其余除以 1 − p。
#
# - A weight of 0 is no connection; a score of 0 is a score like any other, and e⁰ = 1.
# - 权重为 0 表示没有连接；而分数为 0 只是一个普通的分数，e⁰ = 1。
#
# - A softmax makes every row sum to 1, whatever comes in; what happens after it is not put right again.
# - 无论输入什么，softmax 都会让每行之和为 1；softmax 之后发生的事不会再被修正。
#
#     softmax(keep·s/(1−p))      softmax(s + log keep)      keep·softmax(s)/(1−p)

# %%
import surgery as sg
import workshop
from models import load
from workshop.grading import told

lang = "en"  # "zh": 中文
one = workshop.exercise("dropouts")
patient = load(one.model(lang))

# %% [markdown]
# ## Predict / 预测
#
# Which dropout gives dropped connections the weight 0 and still has rows that sum to 1?
# 哪一种 Dropout 使被丢弃的连接权重为 0，同时每行之和仍为 1？
#
# - `score`: On the scores, set to 0 before the softmax. / 作用于分数：softmax 之前置 0。
#
# - `key`: On the keys, set to −∞ before the softmax. / 作用于键：softmax 之前置 −∞。
#
# - `weight`: On the weights, after the softmax. / 作用于权重：softmax 之后置 0。
#
# - `none`: None of them. / 都不是。
#
# When a score is set to 0 before the softmax, how often does the weight of that connection go UP? / softmax
# 之前把分数置 0 时，该连接的权重有多大比例反而上升？

# %%
my_choice = None  # one of the keys above, in quotes
my_number = None

# %% [markdown]
# ## Cut / 动手
#
# Task: cut random connections in every head so that their weight is exactly 0 and each row still sums to 1,
# with other connections for every seed.
#
# 任务：在每个头里随机切断一些连接，使其权重恰好为 0，而每行之和仍为 1，并且每个种子切断的连接不同。
#
# All operations / 所有操作：`python -m surgery ops`

# %%
plan = sg.Plan()  # for example sg.Plan(sg.HideSelf().at("L0.H1"))

# %% [markdown]
# ## Measure / 测量

# %%
report = workshop.check(one, plan, patient, lang)
print(told(report, lang, my_choice, my_number))
