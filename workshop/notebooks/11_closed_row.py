# %% [markdown]
# # 11. A query that may look at nothing / 什么也不能看的查询
#
# Masks are written as −1e9 or −∞ added before the softmax. Which is safer? It shows where no key is left.
#
# 掩码的写法是在 softmax 之前填入 −1e9 或 −∞。哪一种更安全？当一个键都不剩时就见分晓。

# %% [markdown]
# ## To know first / 先了解
#
# - softmax looks at differences: if all scores of a row are −1e9, they are all equal.
# - softmax 只看差值：如果一行的分数全是 −1e9，它们就都相等。
#
# - −∞ minus −∞ is not a number (NaN), and 0 times NaN is NaN.
# - −∞ 减 −∞ 不是数（NaN），而 0 乘 NaN 还是 NaN。
#
# - float16 ends at 65,504; bfloat16 reaches as far as float32, with fewer digits. This project gives a query
# without a key the weights 0 and says so.
# - float16 最大只到 65504；bfloat16 的范围与 float32 相同，只是位数少。本项目给没有键的查询权重 0，并明确说明。
#
#     softmax(s)_j = e^(s_j − max s) / Σ_k e^(s_k − max s)

# %%
import surgery as sg
import workshop
from models import load
from workshop.grading import told

lang = "en"  # "zh": 中文
one = workshop.exercise("closed-row")
patient = load(one.model(lang))

# %% [markdown]
# ## Predict / 预测
#
# In a row where every key is forbidden, what are the weights after filling in −1e9?
# 当一行里所有键都被禁止时，填入 −1e9 之后权重是什么？
#
# - `zeros`: All 0: nothing may be seen. / 全为 0：什么也看不到。
#
# - `uniform`: Equal weights on the forbidden keys. / 被禁止的键平分权重。
#
# - `nan`: NaN. / NaN。
#
# With −∞ instead: if one layer does it, which share of all tokens is NaN after the whole model? / 若改用
# −∞，只要有一层这样做：走完整个模型之后，所有词元中有多大比例是 NaN？

# %%
my_choice = None  # one of the keys above, in quotes
my_number = None

# %% [markdown]
# ## Cut / 动手
#
# Task: leave some query without any key that it may see, in every head of a layer, while other queries still
# see something.
#
# 任务：让某个查询在某一层的所有头里都没有可看的键，而其他查询仍能看到东西。
#
# All operations / 所有操作：`python -m surgery ops`

# %%
plan = sg.Plan()  # for example sg.Plan(sg.HideSelf().at("L0.H1"))

# %% [markdown]
# ## Measure / 测量

# %%
report = workshop.check(one, plan, patient, lang)
print(told(report, lang, my_choice, my_number))
