# %% [markdown]
# # 10. How far must it see? / 要看多远？
#
# Long texts are read with windows: each token sees only its neighbours. How wide must the window be, and what
# decides it?
#
# 长文本常用窗口来读：每个词元只看邻居。窗口要多宽？由什么决定？

# %% [markdown]
# ## To know first / 先了解
#
# - With half-width w a token sees 2w + 1 tokens; with two layers, news can travel 2w.
# - 半宽为 w 时，一个词元能看到 2w + 1 个词元；两层之后，信息最多走 2w。
#
# - The longest questions here have about twenty tokens; some answers need a word from the beginning of the
# sentence.
# - 这里最长的问题约有二十个词元；有些答案需要句子开头的词。
#
# - The model was trained with full sight, so it never learned to pass news on in steps.
# - 模型是在全视野下训练的，因此从没学过接力传递信息。
#
#     allowed(i, j) = (|i − j| ≤ w)

# %%
import surgery as sg
import workshop
from models import load
from workshop.grading import told

lang = "en"  # "zh": 中文
one = workshop.exercise("local")
patient = load(one.model(lang))

# %% [markdown]
# ## Predict / 预测
#
# Up to which half-width can the window shrink, with 98 % of the questions still right?
# 窗口的半宽最小能缩到多少，仍有 98 % 的问题答对？
#
# - `near`: 3 or less: grammar is local. / 3 以内：语法是局部的。
#
# - `half`: Up to half of the longest question. / 不超过最长问题的一半。
#
# - `most`: More than half of it. / 超过一半。
#
# The smallest half-width / 最小半宽

# %%
my_choice = None  # one of the keys above, in quotes
my_number = None

# %% [markdown]
# ## Cut / 动手
#
# Task: find the narrowest window on all heads that leaves at least 98 % of the answers right: with a half-
# width smaller by two, it is fewer.
#
# 任务：为所有头找到最窄的窗口，使至少 98 % 的答案正确：半宽再小二就不够了。
#
# All operations / 所有操作：`python -m surgery ops`

# %%
plan = sg.Plan()  # for example sg.Plan(sg.HideSelf().at("L0.H1"))

# %% [markdown]
# ## Measure / 测量

# %%
report = workshop.check(one, plan, patient, lang)
print(told(report, lang, my_choice, my_number))
