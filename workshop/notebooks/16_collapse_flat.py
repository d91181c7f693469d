# %% [markdown]
# # 16. Collapse, the flat kind / 塌缩之二：平坦
#
# If every head brings every token the same mixture, do all tokens become one and the same?
#
# 如果每个头给每个词元带来的都是同一种混合，所有词元会变得一模一样吗？

# %% [markdown]
# ## To know first / 先了解
#
# - A head adds a weighted mean of values to each token; if all rows have the same weights, all tokens are
# given the same.
# - 一个头给每个词元加上值的加权平均；如果每一行权重都相同，所有词元得到的就一样。
#
# - Stacked attention without anything else makes all tokens alike, quickly with depth (“rank collapse”, Dong
# et al. 2021).
# - 只堆叠注意力而没有别的部分时，词元会随深度迅速变得相同（“秩塌缩”，Dong 等，2021）。
#
# - A Transformer also has residual connections: what is brought is added to what the token already is.
# - Transformer 还有残差连接：带来的东西是加到词元原有的内容上的。
#
#     x_i ← x_i + Σ_j weight_ij · v_j

# %%
import surgery as sg
import workshop
from models import load
from workshop.grading import told

lang = "en"  # "zh": 中文
one = workshop.exercise("collapse-flat")
patient = load(one.model(lang))

# %% [markdown]
# ## Predict / 预测
#
# Every head brings all tokens the same. How alike (mean cosine of two tokens) are the tokens at the end?
# 每个头带给所有词元的都一样。最后词元之间有多像（两个词元的平均余弦）？
#
# - `one`: They are one: cosine nearly 1. / 变成一个：余弦接近 1。
#
# - `closer`: Closer than before, far from one. / 比原来更近，但远不是一个。
#
# - `apart`: As far apart as before, or farther. / 和原来一样远，或更远。
#
# The mean cosine at the end / 最后的平均余弦

# %%
my_choice = None  # one of the keys above, in quotes
my_number = None

# %% [markdown]
# ## Cut / 动手
#
# Task: make every head bring every token the same thing (mean cosine at least 0.999 in each head), and do
# bring something.
#
# 任务：让每个头带给每个词元的东西都相同（每个头的平均余弦至少 0.999），而且确实带来了东西。
#
# All operations / 所有操作：`python -m surgery ops`

# %%
plan = sg.Plan()  # for example sg.Plan(sg.HideSelf().at("L0.H1"))

# %% [markdown]
# ## Measure / 测量

# %%
report = workshop.check(one, plan, patient, lang)
print(told(report, lang, my_choice, my_number))
