# %% [markdown]
# # 2. ABC and CBA / ABC 与 CBA
#
# “Without positions, ABC and CBA give the same output”, says many a tutorial. The same in which sense?
#
# 许多教程说：“没有位置编码，ABC 和 CBA 的输出相同。”是哪一种意义上的相同？

# %% [markdown]
# ## To know first / 先了解
#
# - A function is invariant if its output does not change when the input is rearranged, and equivariant if the
# output is rearranged in the same way.
# - 输入重新排列后输出不变，叫“不变”（invariant）；输出随输入一起重新排列，叫“等变”（equivariant）。
#
# - The model is a small encoder that was trained from scratch on whole words; its text here is [CLS] A B C
# [SEP] with three nouns.
# - 模型是一个以整词为单位、从零训练的小编码器；这里的文本是 [CLS] A B C [SEP]，其中 A、B、C 是三个名词。
#
# - Three distances are measured between the outputs for ABC and CBA: of the same word at its two places, of
# the two words at the same place, and of the mean over all tokens.
# - 我们测量 ABC 与 CBA 两个输出之间的三种距离：同一个词在两个位置上、同一位置上的两个词、以及所有词元的平均。
#
#     f(P·x) = P·f(x)        mean(f(P·x)) = mean(f(x))        ∀ P

# %%
import surgery as sg
import workshop
from models import load
from workshop.grading import told

lang = "en"  # "zh": 中文
one = workshop.exercise("abc-cba")
patient = load(one.model(lang))

# %% [markdown]
# ## Predict / 预测
#
# Without positions, what is equal for ABC and CBA?
# 没有位置信息时，ABC 与 CBA 的什么相同？
#
# - `place`: The outputs, place by place. / 逐个位置的输出都相同。
#
# - `carried`: Each word's own output, which it carries to its new place; so the means are equal too. /
# 每个词自己的输出，随词移到新位置；因此平均值也相同。
#
# - `pooled`: The means only. / 只有平均值相同。
#
# - `nothing`: Nothing. / 都不相同。

# %%
my_choice = None  # one of the keys above, in quotes
my_number = None

# %% [markdown]
# ## Cut / 动手
#
# Task: make each word's output travel with the word, to the last digit, while different words still have
# different outputs.
#
# 任务：让每个词的输出跟着词走（精确到最后一位），同时不同的词仍有不同的输出。
#
# All operations / 所有操作：`python -m surgery ops`

# %%
plan = sg.Plan()  # for example sg.Plan(sg.HideSelf().at("L0.H1"))

# %% [markdown]
# ## Measure / 测量

# %%
report = workshop.check(one, plan, patient, lang)
print(told(report, lang, my_choice, my_number))
