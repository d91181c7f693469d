# %% [markdown]
# # 1. Who bit whom? / 谁咬了谁？
#
# “The dog bit the man” and “The man bit the dog”: what in a Transformer makes these two different sentences?
#
# “The dog bit the man”（狗咬了人）与“The man bit the dog”（人咬了狗）：Transformer 靠什么把这两句话区分开？

# %% [markdown]
# ## To know first / 先了解
#
# - Attention compares every token with every other one and adds up what it finds; a sum does not know in
# which order its terms came.
# - 注意力把每个词元与其他词元逐一比较，再把结果加权求和；而求和并不知道各项的先后。
#
# - So a Transformer is told the order from outside: a vector for each place is added to each token before the
# first layer.
# - 因此顺序必须从外部告诉模型：在第一层之前，给每个词元加上代表其位置的向量。
#
# - The model is all-MiniLM-L6-v2, a BERT trained for sentence vectors; their cosine says how alike it finds
# two texts (1 = the same direction).
# - 模型是 all-MiniLM-L6-v2（一个训练来产生句向量的英文 BERT）；两个句向量的余弦表示它认为两句话有多像（1 = 方向相同）。
#
#     x_i = E[token_i] + PE(i)      attention(permute(x)) = permute(attention(x))

# %%
import surgery as sg
import workshop
from models import load
from workshop.grading import told

lang = "en"  # "zh": 中文
one = workshop.exercise("order-lost")
patient = load(one.model(lang))

# %% [markdown]
# ## Predict / 预测
#
# Once the model cannot see the order of the words, what happens to the cosine of the two sentences?
# 当模型看不到词序之后，这两句话的余弦会怎样？
#
# - `farther`: It falls: the model is confused. / 下降：模型被弄糊涂了。
#
# - `closer`: It rises a little, short of 1. / 略微上升，但不到 1。
#
# - `same`: It becomes exactly 1. / 恰好变成 1。
#
# And the cosine of “The dog bit the man” and “A cold rain fell on the town” then? / 那时“The dog bit the
# man”与“A cold rain fell on the town”（一场冷雨落在镇上）的余弦是多少？

# %%
my_choice = None  # one of the keys above, in quotes
my_number = None

# %% [markdown]
# ## Cut / 动手
#
# Task: make the two sentences one and the same for the model, to the last digit, while it can still tell them
# from a sentence with other words.
#
# 任务：让这两句话在模型看来完全相同（精确到最后一位），同时它仍能把它们与用词不同的句子区分开。
#
# All operations / 所有操作：`python -m surgery ops`

# %%
plan = sg.Plan()  # for example sg.Plan(sg.HideSelf().at("L0.H1"))

# %% [markdown]
# ## Measure / 测量

# %%
report = workshop.check(one, plan, patient, lang)
print(told(report, lang, my_choice, my_number))
