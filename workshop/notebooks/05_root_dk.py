# %% [markdown]
# # 5. Divided by √d_k / 除以 √d_k
#
# Why are the dot products of queries and keys divided by √d_k, and not by d_k, or by nothing?
#
# 查询与键的点积为什么要除以 √d_k，而不是除以 d_k，或者干脆不除？

# %% [markdown]
# ## To know first / 先了解
#
# - A score is a sum of d_k products; if the products are independent and of variance 1, variances add up, so
# the variance of the sum is d_k.
# - 一个分数是 d_k 个乘积之和；若各乘积独立且方差为 1，方差相加，总和的方差就是 d_k。
#
# - The standard deviation is the root of the variance; softmax looks at differences between scores, so their
# spread decides how sharp it is.
# - 标准差是方差的平方根；softmax 看的是分数之间的差，因此分数的离散程度决定了它有多尖锐。
#
# - This encoder has heads that are 16 channels wide, and was trained with the division.
# - 这个编码器每个头宽 16 个通道，并且是带着这个除法训练的。
#
#     score = q·k / √d_k        Var(q_i k_i) = 1  ⇒ Var(q·k) = Σ_i Var(q_i k_i) = d_k

# %%
import surgery as sg
import workshop
from models import load
from workshop.grading import told

lang = "en"  # "zh": 中文
one = workshop.exercise("root-dk")
patient = load(one.model(lang))

# %% [markdown]
# ## Predict / 预测
#
# Without the division, by which factor does the standard deviation of the scores grow in the first layer?
# 去掉这个除法后，第一层分数的标准差会放大多少倍？
#
# - `none`: 1: the softmax evens it out. / 1 倍：softmax 会把它抹平。
#
# - `fourth`: 2 = ⁴√16 / 2 倍 = ⁴√16
#
# - `root`: 4 = √16 / 4 倍 = √16
#
# - `width`: 16 = d_k / 16 倍 = d_k
#
# And how many per cent of the questions will the trained encoder still answer right? / 训练好的编码器还能答对百分之多少的问题？

# %%
my_choice = None  # one of the keys above, in quotes
my_number = None

# %% [markdown]
# ## Cut / 动手
#
# Task: make the scores of every head of the first layer exactly as large as raw dot products, and change
# nothing else.
#
# 任务：让第一层每个头的分数恰好等于未缩放的点积，其他什么也不改。
#
# All operations / 所有操作：`python -m surgery ops`

# %%
plan = sg.Plan()  # for example sg.Plan(sg.HideSelf().at("L0.H1"))

# %% [markdown]
# ## Measure / 测量

# %%
report = workshop.check(one, plan, patient, lang)
print(told(report, lang, my_choice, my_number))
