# %% [markdown]
# # 8. The forgotten padding mask / 忘记的填充掩码
#
# Sentences of a batch are filled up to one length with [PAD]. What happens if nobody tells the model which
# tokens are padding?
#
# 一个批次里的句子用 [PAD] 填充到同样长度。如果没人告诉模型哪些是填充，会发生什么？

# %% [markdown]
# ## To know first / 先了解
#
# - [PAD] is a token like any other: it has a vector, so it has a key and a value, and softmax gives every
# permitted key some weight.
# - [PAD] 和其他词元一样有向量，因此也有键和值；softmax 会给每个允许的键分一些权重。
#
# - attention_mask says which tokens are real; with it the padding's weight is exactly 0 and no answer depends
# on the length of the batch.
# - attention_mask 说明哪些词元是真实的；有了它，填充的权重恰好为 0，答案与批次长度无关。
#
# - The same questions are asked bare, padded to 24 and padded to 64 tokens.
# - 同样的问题分别在不填充、填充到 24 个词元、填充到 64 个词元时提问。
#
#     allowed(i, j) = attention_mask(j)

# %%
import surgery as sg
import workshop
from models import load
from workshop.grading import told

lang = "en"  # "zh": 中文
one = workshop.exercise("padding")
patient = load(one.model(lang))

# %% [markdown]
# ## Predict / 预测
#
# The mask is forgotten. How do the right answers change with the amount of padding?
# 忘了掩码。正确率会怎样随填充量变化？
#
# - `nothing`: Hardly: [PAD] means nothing to the model. / 几乎不变：[PAD] 对模型没有意义。
#
# - `constant`: They fall once, however much padding. / 下降一次，与填充多少无关。
#
# - `more`: They fall further with every pad. / 填充越多，下降越多。
#
# Right answers with padding to 64 tokens / 填充到 64 个词元时的正确率

# %%
my_choice = None  # one of the keys above, in quotes
my_number = None

# %% [markdown]
# ## Cut / 动手
#
# Task: make the model lose at least 10 points by padding alone: padded to 64 tokens it fails, without padding
# not one answer changes.
#
# 任务：只靠填充让模型至少丢 10 分：填充到 64 个词元时出错，而不填充时一个答案也不变。
#
# All operations / 所有操作：`python -m surgery ops`

# %%
plan = sg.Plan()  # for example sg.Plan(sg.HideSelf().at("L0.H1"))

# %% [markdown]
# ## Measure / 测量

# %%
report = workshop.check(one, plan, patient, lang)
print(told(report, lang, my_choice, my_number))
