# %% [markdown]
# # 3. Order without positions / 没有位置编码的顺序
#
# “Without positions a model cannot know the order.” Is there another way in?
#
# “没有位置编码，模型就不可能知道顺序。”顺序还有别的入口吗？

# %% [markdown]
# ## To know first / 先了解
#
# - A mask says which keys a query may attend to; the others get weight 0.
# - 掩码规定一个查询可以注意哪些键；其余的键权重为 0。
#
# - Some masks depend on where the tokens stand (before, near), others do not (all but myself, no padding).
# - 有些掩码取决于词元的位置（之前的、附近的），有些则不然（除自己以外、非填充）。
#
# - Here each sentence has a mirror: the same words, with the one who acts and the one who suffers exchanged.
# - 这里每个句子都有一个镜像：词相同，只是施事者与受事者互换。
#
#     weights = softmax(scores + log allowed(i, j))

# %%
import surgery as sg
import workshop
from models import load
from workshop.grading import told

lang = "en"  # "zh": 中文
one = workshop.exercise("order-from-mask")
patient = load(one.model(lang))

# %% [markdown]
# ## Predict / 预测
#
# The positions are gone. Can a mask bring order back into the model's vectors?
# 位置已经去掉。掩码能把顺序带回模型的向量里吗？
#
# - `no`: No: a mask only hides words. / 不能：掩码只是遮住一些词。
#
# - `yes`: Yes: if place decides who sees whom, place shows in the result. / 能：如果位置决定谁能看谁，结果里就有位置。

# %%
my_choice = None  # one of the keys above, in quotes
my_number = None

# %% [markdown]
# ## Cut / 动手
#
# Task: keep every position out of the words' vectors, and yet make the model's result tell a sentence from
# its mirror, without the help of chance.
#
# 任务：不让任何位置进入词向量，却让模型的结果能区分句子与其镜像，而且不借助随机性。
#
# All operations / 所有操作：`python -m surgery ops`

# %%
plan = sg.Plan()  # for example sg.Plan(sg.HideSelf().at("L0.H1"))

# %% [markdown]
# ## Measure / 测量

# %%
report = workshop.check(one, plan, patient, lang)
print(told(report, lang, my_choice, my_number))
