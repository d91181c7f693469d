# %% [markdown]
# # 4. Where the table ends / 位置表的尽头
#
# A model has learned a table of 128 positions. Can it read a text that stands at place 100?
#
# 一个模型学到了一张有 128 个位置的表。它能读懂站在第 100 个位置的文本吗？

# %% [markdown]
# ## To know first / 先了解
#
# - A learned position is a row of a table: a vector of its own for each place, which only training on that
# place can shape.
# - 可学习的位置就是一张表的一行：每个位置有自己的向量，只有在该位置上训练过，这个向量才有意义。
#
# - The model writes a small English language letter by letter; it was trained on windows of 64 letters,
# though its table has 128 rows.
# - 模型逐个字母写出一种小型英语；它的表有 128 行，但训练时窗口只有 64 个字母。
#
# - The loss is how surprised it is by the next letter, in nats: 0.3 is as good as the language allows, 3.4 is
# guessing among all letters.
# - 损失表示它对下一个字母有多意外，单位是奈特：约 0.3 已是这种语言的极限，3.4 相当于在所有字母中瞎猜。
#
#     x_i = E[letter_i] + PE[i + k]

# %%
import surgery as sg
import workshop
from models import load
from workshop.grading import told

lang = "en"  # "zh": 中文
one = workshop.exercise("beyond-trained")
patient = load(one.model(lang))

# %% [markdown]
# ## Predict / 预测
#
# The same 24 letters, but starting at place k instead of 0; all distances stay. As k grows, what happens to
# the loss?
# 同样的 24 个字母，从位置 k 而不是 0 开始，彼此的距离不变。k 增大时，损失会怎样？
#
# - `nothing`: Nothing: distances are what counts. / 不变：重要的只是距离。
#
# - `slope`: It grows with every step. / 随 k 逐步上升。
#
# - `edge`: It stays low up to some place, then breaks. / 在某个位置之前一直很低，然后突然崩溃。
#
# At which k has the loss doubled? / k 为多少时损失翻倍？

# %%
my_choice = None  # one of the keys above, in quotes
my_number = None

# %% [markdown]
# ## Cut / 动手
#
# Task: slide the text, keeping all distances, to the first places where the loss is more than 2 times the
# baseline's, while 8 places earlier it is still near it.
#
# 任务：保持所有距离不变，把文本移到损失刚好超过基线 2 倍的地方，而往前 8 个位置时损失仍接近基线。
#
# All operations / 所有操作：`python -m surgery ops`

# %%
plan = sg.Plan()  # for example sg.Plan(sg.HideSelf().at("L0.H1"))

# %% [markdown]
# ## Measure / 测量

# %%
report = workshop.check(one, plan, patient, lang)
print(told(report, lang, my_choice, my_number))
