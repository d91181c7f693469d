# %% [markdown]
# # 13. Which heads are needed? / 哪些头是必需的？
#
# The encoder has 2 layers of 4 heads. How many of the eight can be switched off, and can one tell from the
# pictures which?
#
# 这个编码器有 2 层、每层 4 个头。八个头里可以关掉多少个？从注意力图上看得出是哪些吗？

# %% [markdown]
# ## To know first / 先了解
#
# - Switching a head off sets its output to 0; the residual connection and the other heads go on.
# - 关闭一个头，就是把它的输出置 0；残差连接和其他头照常工作。
#
# - The entropy of a row says how spread its weights are: 0 is one key, ln n is n keys alike.
# - 一行权重的熵表示它有多分散：0 表示只看一个键，ln n 表示平均看 n 个键。
#
# - Low entropy makes a handsome picture; whether the model needs the head is another question, which only
# cutting answers.
# - 熵低的头图案漂亮；但模型需不需要它是另一回事，只有切掉才知道。
#
#     output_h = 0        cost(h) = accuracy − accuracy(output_h = 0)

# %%
import surgery as sg
import workshop
from models import load
from workshop.grading import told

lang = "en"  # "zh": 中文
one = workshop.exercise("heads-off")
patient = load(one.model(lang))

# %% [markdown]
# ## Predict / 预测
#
# Sort the eight heads by entropy. Where does the head stand that costs most when it is off?
# 把八个头按熵排序。关掉后损失最大的那个头排在哪里？
#
# - `sharpest`: It is the sharpest (lowest entropy). / 最尖锐的（熵最低）。
#
# - `between`: Somewhere between. / 在中间某处。
#
# - `flattest`: It is the flattest (highest entropy). / 最平坦的（熵最高）。
#
# How many points does it cost? / 它让正确率下降多少个百分点？

# %%
my_choice = None  # one of the keys above, in quotes
my_number = None

# %% [markdown]
# ## Cut / 动手
#
# Task: switch off at least two heads, as many as you can, and keep at least 90 % of the answers right.
#
# 任务：关掉至少两个头（越多越好），同时保持至少 90 % 的答案正确。
#
# All operations / 所有操作：`python -m surgery ops`

# %%
plan = sg.Plan()  # for example sg.Plan(sg.HideSelf().at("L0.H1"))

# %% [markdown]
# ## Measure / 测量

# %%
report = workshop.check(one, plan, patient, lang)
print(told(report, lang, my_choice, my_number))
