# %% [markdown]
# # 6. A softmax that is sure / 过于自信的 softmax
#
# “Large scores give vanishing gradients.” How large, which gradients, and what does it matter to a trained
# model?
#
# “分数太大，梯度就会消失。”要多大？哪些梯度？对训练好的模型又有什么影响？

# %% [markdown]
# ## To know first / 先了解
#
# - The slope of the softmax at a key with weight p is p(1 − p): almost nothing where p is near 0 or near 1.
# - softmax 在权重为 p 的键处的斜率是 p(1 − p)：p 接近 0 或 1 时几乎为零。
#
# - What cannot get back through the softmax cannot teach the queries and keys anything.
# - 回不到 softmax 之前的梯度，就教不了查询和键任何东西。
#
# - Measured here, by real backpropagation through the encoder: for each query the size of the gradient at its
# scores; the median and the root mean square over all queries.
# - 这里用真实的反向传播来测：每个查询在其分数处的梯度大小；取所有查询的中位数与均方根。
#
#     ∂w_i / ∂s_j = w_i (δ_ij − w_j)

# %%
import surgery as sg
import workshop
from models import load
from workshop.grading import told

lang = "en"  # "zh": 中文
one = workshop.exercise("saturation")
patient = load(one.model(lang))

# %% [markdown]
# ## Predict / 预测
#
# Once almost no gradient gets back through the softmax, how does the trained encoder answer?
# 当几乎没有梯度能穿过 softmax 时，训练好的编码器答题会怎样？
#
# - `wrong`: It is lost: under 40 % right. / 完全不行：正确率低于 40 %。
#
# - `half`: Half and half: 40 to 85 %. / 一半一半：40 % 到 85 %。
#
# - `right`: It goes on: at least 85 % right. / 照常回答：至少 85 % 正确。
#
# Questions still answered right / 仍能答对的问题

# %%
my_choice = None  # one of the keys above, in quotes
my_number = None

# %% [markdown]
# ## Cut / 动手
#
# Task: make the scores so large that the median gradient at the scores falls below a thousandth of the
# baseline's, with every key still permitted and every head at work.
#
# 任务：让分数大到使分数处梯度的中位数降到基线的千分之一以下，同时所有键仍被允许、所有头仍在工作。
#
# All operations / 所有操作：`python -m surgery ops`

# %%
plan = sg.Plan()  # for example sg.Plan(sg.HideSelf().at("L0.H1"))

# %% [markdown]
# ## Measure / 测量

# %%
report = workshop.check(one, plan, patient, lang)
print(told(report, lang, my_choice, my_number))
