"""Every word of the interface, in English and in Chinese: one table, one row per text.

A key is `section.name`. A text may hold named gaps (`{layer}`): `t` fills them here, `word` in the browser.
"""

from bilingual import Words

TEXTS: dict[str, Words] = {
    # The page
    "app.title": Words("Attention surgery", "注意力手术台"),
    "app.purpose": Words(
        "Cut a piece out of a running transformer and see what it was for.",
        "切掉运行中的 Transformer 的一部分，看看它有什么用。",
    ),
    "app.language": Words("Language", "语言"),
    "app.text": Words("Text", "文本"),
    "app.text_info": Words(
        "Any language; {mask} is a word to guess, where the model can.",
        "任何语言；模型支持时，{mask} 是要猜的词。",
    ),
    "app.examples": Words("Examples", "示例"),
    "app.model": Words("Model", "模型"),
    "app.presets": Words("Cut on one click", "一键手术"),
    "app.fine": Words(
        "Fine control: parameters, layers, heads, several operations", "精细控制：参数、层、头、多个操作"
    ),
    "app.more": Words(
        "More: second text, padding, typed special tokens", "更多：第二个文本、填充、手写特殊词元"
    ),
    "app.other": Words("A second text to compare", "用于比较的第二个文本"),
    "app.other_info": Words(
        "Its similarity to the first, before and after.", "它与第一个文本在手术前后的相似度。"
    ),
    "app.pad_to": Words("Pad to so many tokens (0: not)", "填充到多少个词元（0：不填充）"),
    "app.literal": Words(
        "Read typed [CLS], [SEP], [MASK] as characters", "把手写的 [CLS]、[SEP]、[MASK] 当作普通字符"
    ),
    "app.operate": Words("Operate", "开始手术"),
    "app.reset": Words("Reset", "还原"),
    "app.cancel": Words("Cancel", "取消"),
    "app.running": Words("Running …", "正在运行……"),
    "app.queue": Words("place in the queue", "排队位置"),
    "app.stale": Words(
        "Settings changed: press Operate to see their result.", "设置已更改：请点“开始手术”查看结果。"
    ),
    "app.loading": Words(
        "This result was computed beforehand; the live model is loading.",
        "此结果是预先计算的；模型正在加载。",
    ),
    "app.ready": Words("{model} is ready on {device}.", "{model} 已就绪（{device}）。"),
    "app.failed": Words("The model could not be loaded: {why}", "模型无法加载：{why}"),
    "app.fallback": Words("{why} Showing {model} instead.", "{why} 改用 {model}。"),
    "app.copy_link": Words("Copy link", "复制链接"),
    "app.link_copied": Words("Link copied", "已复制链接"),
    "app.link_not_copied": Words(
        "Could not copy: take the link from the address bar.", "无法复制：请从地址栏复制链接。"
    ),
    "app.files": Words("Make files to take away", "生成可下载的文件"),
    "app.downloads": Words(
        "Files: PNG, SVG, CSV, JSON, NPZ and a report", "文件：PNG、SVG、CSV、JSON、NPZ 和报告"
    ),
    "form.operation": Words("Operation", "操作"),
    "form.not_here": Words("not on this model", "此模型不支持"),
    "form.where": Words("Where: layers and heads, from 0", "位置：层和头，从 0 开始"),
    "form.where_info": Words("For example {example}; L* is everywhere.", "例如 {example}；L* 表示全部。"),
    "form.whole": Words(
        "Positions enter before the first layer: this acts on the whole model.",
        "位置在第一层之前加入：此操作作用于整个模型。",
    ),
    "form.add": Words("Add another operation", "再加一个操作"),
    "form.empty": Words(
        "The plan is empty: both runs are the same. Choose an operation, or press “{add}”.",
        "计划为空：两次运行相同。请选择一个操作，或点“{add}”。",
    ),
    "form.no_step": Words("The plan is empty: there is nothing to place.", "计划为空：没有要放置的操作。"),
    "tabs.outputs": Words("Outputs", "输出"),
    "tabs.heads": Words("Heads", "注意力头"),
    "tabs.layers": Words("Layers", "各层"),
    "tabs.receipt": Words("Receipt", "回执"),
    "tabs.pipeline": Words("Pipeline", "流程"),
    "tabs.code": Words("Code", "代码"),
    "tabs.share": Words("Share", "分享"),
    "tabs.sweep": Words("Sweep", "扫描"),
    "tabs.train": Words("Train", "训练"),
    # Training
    "train.task": Words("What to learn", "学习什么"),
    "train.steps": Words("Steps", "步数"),
    "train.seed": Words("Seed", "随机种子"),
    "train.operated": Words("Under the plan, from the first step on", "从第一步起就在计划下训练"),
    "train.run": Words("Train", "开始训练"),
    "train.stop": Words("Stop", "停止"),
    "train.replay": Words(
        "Replay: attention before training, and at this moment", "回放：训练前与此刻的注意力"
    ),
    "train.before": Words("Before training", "训练前"),
    "train.now": Words("Now", "此刻"),
    "train.none": Words(
        "A small model learns from nothing, here and now: as it is, or without the part that you cut out.",
        "一个小模型在这里从零学起：按原样，或者去掉您切除的部分。",
    ),
    "train.progress": Words("Step {step} of {steps}.", "第 {step} 步，共 {steps} 步。"),
    "train.plain": Words("No operation.", "没有手术。"),
    "train.loss": Words("Training loss", "训练损失"),
    "train.accuracy": Words("Right on examples that training never shows", "在训练未见过的例子上的正确率"),
    "train.axis_step": Words("training step", "训练步"),
    "train.axis_loss": Words("loss (nats)", "损失（奈特）"),
    "train.loss_help": Words(
        "Cross-entropy, which training makes small: mean over the steps since the last point, any side questions included. 0 is best.",
        "交叉熵，即训练要减小的量：自上一个点以来各步的平均，含附带问题（如有）。0 为最好。",
    ),
    "train.axis_accuracy": Words("share right (0 to 1)", "正确率（0 到 1）"),
    "train.accuracy_help": Words(
        "0 is none, 1 is all; measured at every step of a short run, about eight times in a long one.",
        "0 表示全错，1 表示全对；短的训练每步都测，长的训练约测八次。",
    ),
    "train.chance_help": Words(
        "Dashed: the best that an answer can do which ignores the order of the words.",
        "虚线：不看词序的答案所能达到的最好结果。",
    ),
    "train.chance": Words("best without order", "不看顺序的最好结果"),
    "train.measures": Words("The last evaluation", "最后一次评估"),
    "train.legend": Words("Same scale for before and now", "训练前与现在使用同一色标"),
    "train.measure": Words("measure", "指标"),
    "train.value": Words("value", "数值"),
    # The sweep
    "sweep.texts": Words("Texts, one a line", "文本，每行一个"),
    "sweep.texts_info": Words(
        "With right answers, the loss is measured: … [MASK] tired => are",
        "若给出正确答案，则测量损失：… [MASK] tired => are",
    ),
    "sweep.file": Words("or a text file, one text a line", "或文本文件，每行一个文本"),
    "sweep.unreadable": Words("This file is not text in UTF-8.", "该文件不是 UTF-8 文本。"),
    "sweep.kind": Words("What to vary", "改变什么"),
    "sweep.run": Words("Sweep", "开始扫描"),
    "sweep.none": Words(
        "A sweep runs many plans on your texts in one go and shows which of them matter.",
        "扫描会在您的文本上一次运行许多计划，并显示哪些有影响。",
    ),
    "sweep.progress": Words("{done} of {of} texts.", "已完成 {of} 个文本中的 {done} 个。"),
    "sweep.kl": Words(
        "KL divergence of the answers from the baseline's (nats), mean over the texts.",
        "答案相对基线的 KL 散度（奈特），对文本取平均。",
    ),
    "sweep.loss": Words(
        "Rise of the loss (−ln of the right answer's probability, nats), mean over the texts; below 0 the answer got better.",
        "损失的升高（正确答案概率的 −ln，奈特），对文本取平均；小于 0 表示答案变好。",
    ),
    "sweep.relative_l2": Words(
        "Relative L2 change of the last hidden states, mean over the texts.",
        "最后隐藏状态的相对 L2 变化，对文本取平均。",
    ),
    "sweep.heads_help": Words(
        "One head is off at a time; click one to open it.", "每次关闭一个头；点击可打开该头。"
    ),
    "sweep.temperatures_help": Words("T = 1 is the unmodified model.", "T = 1 是未修改的模型。"),
    "sweep.layers_help": Words(
        "Each operation acts on all heads of one layer.", "每个操作作用于一层的所有头。"
    ),
    "sweep.curve": Words("Effect of the temperature", "温度的影响"),
    "sweep.curve_help": Words(
        "From sharp (left) to flat (right), the band is ± one standard deviation over the texts.",
        "从尖锐（左）到平坦（右），色带为各文本间 ± 一个标准差。",
    ),
    "sweep.curve_heard": Words(
        "Effect from {first} at the lowest to {last} at the highest temperature; numbers in the table.",
        "影响从最低温度的 {first} 到最高温度的 {last}；数值见表格。",
    ),
    "sweep.effect": Words("effect", "影响"),
    "sweep.csv": Words("Download all numbers as CSV", "下载全部数据（CSV）"),
    # The workshop
    "lesson.mode": Words("Page", "页面"),
    "lesson.mode_playground": Words("Playground", "手术台"),
    "lesson.mode_workshop": Words("Workshop", "工作坊"),
    "lesson.list": Words("Exercises", "练习"),
    "lesson.progress": Words("{passed} of {of} exercises passed", "已通过 {of} 个练习中的 {passed} 个"),
    "lesson.state_new": Words("new", "未开始"),
    "lesson.state_predicted": Words("predicted", "已预测"),
    "lesson.state_passed": Words("passed", "已通过"),
    "lesson.export": Words("Take your progress away (JSON)", "导出进度（JSON）"),
    "lesson.minutes": Words("about {n} minutes", "约 {n} 分钟"),
    "lesson.know": Words("To know first", "先了解"),
    "lesson.predict": Words("1 · Predict, before you cut", "1 · 动手之前先预测"),
    "lesson.range": Words("from {low} to {high}", "{low} 到 {high}"),
    "lesson.commit": Words("Commit my prediction", "提交我的预测"),
    "lesson.first": Words(
        "Commit to a prediction first: then what you measure can surprise you.",
        "请先提交预测：这样测量结果才可能让您意外。",
    ),
    "lesson.you_said": Words("You predicted:", "您的预测："),
    "lesson.cut": Words("2 · Cut and measure", "2 · 手术与测量"),
    "lesson.where": Words(
        "Make your plan below, on one click or under Fine control; then check it here.",
        "请在下方制定计划（一键手术或精细控制），然后在这里检查。",
    ),
    "lesson.check": Words("Check my plan", "检查我的计划"),
    "lesson.plan": Words("Your plan:", "您的计划："),
    "lesson.no_plan": Words("empty", "空"),
    "lesson.measured": Words("measured", "测量"),
    "lesson.baseline": Words("baseline", "基线"),
    "lesson.operated": Words("operated", "手术后"),
    "lesson.passed": Words("Passed", "通过"),
    "lesson.not_yet": Words("Not yet", "还没有"),
    "lesson.tries": Words("Tries: {n}.", "已尝试 {n} 次。"),
    "lesson.again": Words("Load this plan and show its result", "载入该计划并显示结果"),
    "lesson.further": Words("One step further:", "更进一步："),
    "lesson.load_further": Words("Load below: {plan}", "在下方载入：{plan}"),
    "lesson.next": Words("Go on to exercise {n}", "继续练习 {n}"),
    "lesson.class": Words("What the class predicts", "全班的预测"),
    "lesson.class_help": Words(
        "Anonymous, counted in this server's memory only, and gone when it stops. Renewed by itself.",
        "匿名，仅在本服务器内存中计数，服务器停止后即消失。自动更新。",
    ),
    "lesson.class_total": Words("{total} predicted, {passed} passed", "{total} 人已预测，{passed} 人已通过"),
    "lesson.class_numbers": Words(
        "median {median}, from {low} to {high}", "中位数 {median}，{low} 到 {high}"
    ),
    "lesson.class_none": Words("Nobody has predicted anything yet.", "还没有人提交预测。"),
    # The attention maps
    "attention.empty": Words("No result yet.", "尚无结果。"),
    "attention.baseline": Words("Baseline", "基线"),
    "attention.operated": Words("Operated", "手术后"),
    "attention.difference": Words("Difference", "差值"),
    "attention.difference_detail": Words("operated − baseline", "手术后 − 基线"),
    "attention.layer": Words("Layer", "层"),
    "attention.head": Words("Head", "头"),
    "attention.average": Words("average", "平均"),
    "attention.not_captured": Words("not captured", "未采集"),
    "attention.previous_layer": Words("Previous layer", "上一层"),
    "attention.next_layer": Words("Next layer", "下一层"),
    "attention.previous_head": Words("Previous head", "上一个头"),
    "attention.next_head": Words("Next head", "下一个头"),
    "attention.largest_change": Words("Largest change", "变化最大"),
    "attention.largest_change_help": Words(
        "Go to the head that changed most: layer {layer}, head {head}",
        "转到变化最大的头：第 {layer} 层，第 {head} 头",
    ),
    "attention.scale": Words("Colour scale", "色标"),
    "attention.scale_shared": Words("shared maximum", "共同最大值"),
    "attention.scale_unit": Words("0 to 1", "0 到 1"),
    "attention.specials": Words("Special tokens", "特殊词元"),
    "attention.specials_shown": Words("shown", "显示"),
    "attention.specials_greyed": Words("grey", "变灰"),
    "attention.specials_hidden": Words("hidden", "隐藏"),
    "attention.hidden_note": Words(
        "{count} special or padding tokens are hidden. The remaining weights are not renormalised, "
        "so a row may add up to less than 1.",
        "已隐藏 {count} 个特殊或填充词元。其余权重未重新归一化，因此一行之和可能小于 1。",
    ),
    "attention.query": Words("query", "查询"),
    "attention.key": Words("key", "键"),
    "attention.maps_help": Words(
        "Attention maps, {place}. Arrow keys move from cell to cell, Enter pins the query, Escape lets go.",
        "注意力图，{place}。方向键移动单元格，回车键固定查询词元，Esc 键取消。",
    ),
    "attention.hint": Words(
        "Point at a cell for its values; click to pin its query.",
        "指向单元格查看数值；点击可固定查询词元。",
    ),
    "attention.token_at": Words(" (token {position})", "（第 {position} 个词元）"),
    "attention.pinned": Words("Pinned", "已固定"),
    "attention.unpin": Words("Unpin", "取消固定"),
    "attention.place": Words("layer {layer}, head {head}", "第 {layer} 层，第 {head} 头"),
    "attention.place_average": Words("layer {layer}, average of all heads", "第 {layer} 层，所有头的平均"),
    "attention.weight": Words("attention weight", "注意力权重"),
    "attention.legend_shared": Words("Same scale for baseline and operated", "基线与手术后使用同一色标"),
    "attention.no_difference": Words("no difference", "没有差别"),
    "attention.tiny_difference": Words("all differences below 0.0001", "所有差值均小于 0.0001"),
    "attention.no_key": Words("no permitted key", "没有允许的键"),
    "attention.nan": Words("not a number", "非数值"),
    "attention.special_swatch": Words("special or padding token", "特殊或填充词元"),
    "attention.overview": Words("All heads", "所有头"),
    "attention.overview_by": Words("Colour by", "着色依据"),
    "attention.overview_baseline": Words("baseline", "基线"),
    "attention.overview_operated": Words("operated", "手术后"),
    "attention.overview_divergence": Words("divergence", "散度"),
    "attention.divergence": Words("Jensen-Shannon divergence (nats)", "JS 散度（奈特）"),
    "attention.overview_help": Words(
        "All heads: one row per layer, one column per head. Arrow keys move, Enter opens a head above.",
        "所有头：每行一层，每列一个头。方向键移动，回车键在上方打开。",
    ),
    "attention.overview_hint": Words("Click a head to open it above.", "点击一个头，在上方打开。"),
    "attention.table": Words("The same values as a table", "以表格查看同样的数值"),
    "attention.table_caption": Words(
        "Attention weights, {place}: baseline → operated. Rows are queries, columns are keys.",
        "注意力权重，{place}：基线 → 手术后。行为查询，列为键。",
    ),
    "attention.table_cut": Words("Only the first {count} tokens are listed.", "仅列出前 {count} 个词元。"),
    # The grid of layers and heads
    "grid.label": Words("Layers and heads to operate on", "要手术的层与头"),
    "grid.corner": Words("All", "全部"),
    "grid.corner_help": Words("All layers and heads", "所有层与头"),
    "grid.row": Words("Layer {layer}, all heads", "第 {layer} 层，所有头"),
    "grid.column": Words("Head {head}, all layers", "第 {head} 头，所有层"),
    "grid.cell": Words("Layer {layer}, head {head}", "第 {layer} 层，第 {head} 头"),
    "grid.heat": Words("change {value}", "变化 {value}"),
    "grid.count": Words("{count} of {total} heads", "已选 {count} / {total} 个头"),
    "grid.none": Words("No head is selected", "未选择任何头"),
    "grid.everything": Words("All {total} heads", "全部 {total} 个头"),
    "grid.hint": Words(
        "Click or drag. Arrow keys move, Space toggles, Shift + arrow extends.",
        "点击或拖动。方向键移动，空格键切换，Shift + 方向键扩展。",
    ),
    # The fields of an operation
    "fields.slider": Words("{label}, by slider", "{label}（滑块）"),
    "fields.preview": Words(
        "The mask, {n} × {n}: rows are queries, columns are keys; filled cells may attend.",
        "掩码，{n} × {n}：行为查询，列为键；填色的格可以注意。",
    ),
    # Numbers
    "numbers.infinite": Words("infinite", "无穷大"),
    # Panels: what they share
    "panel.baseline": Words("Baseline", "基线"),
    "panel.operated": Words("Operated", "手术后"),
    "panel.before": Words("before", "前"),
    "panel.after": Words("after", "后"),
    "panel.change": Words("Change", "变化"),
    "panel.copy": Words("Copy", "复制"),
    "panel.copied": Words("Copied", "已复制"),
    "panel.not_copied": Words("Could not copy", "无法复制"),
    "panel.download": Words("Download", "下载"),
    "panel.show_all": Words("Show all {count}", "显示全部 {count} 行"),
    "panel.show_fewer": Words("Show only {count}", "只显示 {count} 行"),
    "panel.no_attention": Words(
        "The attention of this run was not captured.",
        "本次运行没有采集注意力。",
    ),
    "panel.open": Words(
        "Open layer {layer}, head {head} in the maps", "在注意力图中打开第 {layer} 层第 {head} 头"
    ),
    "panel.everywhere": Words("all layers and heads", "所有层与头"),
    "panel.nowhere": Words("no head", "不作用于任何头"),
    # The verdict
    "verdict.label": Words("What happened", "结果"),
    "verdict.moved": Words("attention moved", "注意力移动"),
    "verdict.moved_most": Words("on average; {share} of", "平均值；移动 {share} 的是"),
    "verdict.sentence": Words("sentence cosine", "句向量余弦"),
    "verdict.tokens": Words("tokens on average {cosine}", "词元平均 {cosine}"),
    "verdict.answer": Words("answer", "答案"),
    "verdict.answer_class": Words("class", "类别"),
    "verdict.answer_next": Words("next token", "下一个词元"),
    "verdict.answers_changed": Words(
        "{changed} of {count} answers changed", "{count} 个答案中变了 {changed} 个"
    ),
    "verdict.heads": Words("heads changed most", "变化最大的头"),
    "verdict.with": Words("with", "另一文本："),
    "verdict.heads_by": Words("by Jensen-Shannon divergence", "按 JS 散度"),
    "verdict.no_heads": Words("no head changed", "没有头发生变化"),
    "verdict.similarity": Words("similarity of the two texts", "两个文本的相似度"),
    "verdict.tokens_read": Words("{count} tokens", "{count} 个词元"),
    "verdict.notices": Words("Mind", "请注意"),
    # Outputs
    "outputs.mask": Words("Mask at token {position}", "第 {position} 个词元处的掩码"),
    "outputs.next": Words("Next token, after token {position}", "第 {position} 个词元之后的下一个词元"),
    "outputs.class": Words("Class", "类别"),
    "outputs.caption": Words(
        "The most probable answers, baseline and operated", "概率最高的答案，基线与手术后"
    ),
    "outputs.rank": Words("Rank", "名次"),
    "outputs.kl": Words("KL(baseline ‖ operated)", "KL（基线 ‖ 手术后）"),
    "outputs.nats": Words("{value} nats", "{value} 奈特"),
    "outputs.top1": Words("first answer", "首选答案"),
    "outputs.top1_changed": Words("changed", "已改变"),
    "outputs.top1_same": Words("the same", "未变"),
    "outputs.top5": Words("first five in common", "前五名相同比例"),
    "outputs.new": Words("new", "新"),
    "outputs.bare": Words(
        "This model gives vectors, not predictions: what changed is how it represents the text.",
        "此模型给出向量而不是预测：改变的是它对文本的表示。",
    ),
    "outputs.no_mask": Words(
        "Nothing to predict in this text: write {mask} where the model should fill in a word.",
        "此文本中没有要预测的词：请在想让模型填词的地方写 {mask}。",
    ),
    "written.write": Words("Let both runs write on", "让两次运行继续写"),
    "written.ends": Words("A text ends at ⏎.", "文本在 ⏎ 处结束。"),
    "written.same": Words(
        "Draw {draw}: both write the same, with the same random numbers.",
        "第 {draw} 次抽样：使用相同的随机数，两次运行写出的内容相同。",
    ),
    "written.parted": Words(
        "Draw {draw}: with the same random numbers they part after {count} tokens. Press again for another draw.",
        "第 {draw} 次抽样：使用相同的随机数，写出 {count} 个词元后开始不同。再点一次可重新抽样。",
    ),
    "outputs.vectors": Words("Vectors", "向量"),
    "outputs.sentence_cosine": Words("sentence cosine", "句向量余弦"),
    "outputs.token_cosine": Words("mean token cosine", "词元余弦平均值"),
    "outputs.relative_l2": Words("relative L2 distance", "相对 L2 距离"),
    "outputs.sentence_help": Words(
        "between the mean vectors of the two runs; 1 is unchanged",
        "两次运行平均向量之间；1 表示未变",
    ),
    "outputs.token_help": Words(
        "between a token’s last vectors in the two runs", "同一词元在两次运行中的末层向量之间"
    ),
    "outputs.l2_help": Words(
        "of all last vectors; 0 is unchanged, 1 is a change as large as the vectors",
        "所有末层向量；0 表示未变，1 表示变化与向量本身一样大",
    ),
    "outputs.strip": Words(
        "Cosine of every token’s last vector to the baseline", "每个词元末层向量与基线的余弦"
    ),
    "outputs.strip_help": Words(
        "The fuller the bar, the further the token turned away.", "条越满，词元偏离得越远。"
    ),
    "outputs.similarity": Words("Similarity of the two texts", "两个文本的相似度"),
    "outputs.similarity_help": Words(
        "cosine of their mean vectors under each run", "每次运行中两者平均向量的余弦"
    ),
    # Heads
    "heads.caption": Words(
        "Every head, baseline and operated. Means over the queries; divergence and entropy in nats, "
        "distance in tokens, the others as shares of weight.",
        "每个头的基线与手术后数值。均为对查询取平均；散度与熵的单位是奈特，距离的单位是词元，其余为权重份额。",
    ),
    "heads.head": Words("Head", "头"),
    "heads.js_divergence": Words("JS divergence", "JS 散度"),
    "heads.moved": Words("moved", "移动份额"),
    "heads.entropy": Words("entropy", "熵"),
    "heads.distance": Words("distance", "距离"),
    "heads.first": Words("first token", "首个词元"),
    "heads.separators": Words("separators", "分隔符"),
    "heads.diagonal": Words("itself", "自身"),
    "heads.previous": Words("previous", "前一个"),
    "heads.next": Words("next", "后一个"),
    "heads.touched": Words("operated on", "做过手术"),
    "heads.chart": Words("Entropy and divergence of every head", "每个头的熵与散度"),
    "heads.chart_help": Words(
        "Dots: entropy before (hollow) and after (solid), from 0 to ln n = {limit} (dashed), the entropy of attention "
        "spread evenly over the {count} tokens. Bars: Jensen-Shannon divergence, from 0 to ln 2 = 0.69.",
        "圆点：手术前（空心）与手术后（实心）的熵，范围从 0 到 ln n = {limit}（虚线），即注意力平均分布在 {count} 个词元上时的熵。"
        "条形：JS 散度，范围从 0 到 ln 2 = 0.69。",
    ),
    "heads.dot": Words(
        "Layer {layer}, head {head}: entropy {before} → {after}, divergence {divergence}",
        "第 {layer} 层第 {head} 头：熵 {before} → {after}，散度 {divergence}",
    ),
    "heads.chart_layer": Words(
        "Layer {layer}: the entropy of its heads before and after, and their divergence",
        "第 {layer} 层：各头手术前后的熵与散度",
    ),
    # Layers
    "layers.caption": Words(
        "How far the hidden states drift from the baseline, layer by layer",
        "隐藏状态逐层偏离基线的程度",
    ),
    "layers.layer": Words("Hidden state", "隐藏状态"),
    "layers.embeddings": Words("0, embeddings", "0（嵌入）"),
    "layers.cosine": Words("cosine", "余弦"),
    "layers.relative_l2": Words("relative L2", "相对 L2"),
    "layers.cka": Words("linear CKA", "线性 CKA"),
    "layers.cosine_help": Words("mean over tokens; 1 is unchanged", "对词元取平均；1 表示未变"),
    "layers.relative_l2_help": Words("0 is unchanged", "0 表示未变"),
    "layers.cka_help": Words(
        "similarity of the tokens’ geometry; 1 is unchanged", "词元几何结构的相似度；1 表示未变"
    ),
    "layers.chart": Words(
        "{measure} by depth: {first} at the embeddings, {last} at the end",
        "{measure}随深度的变化：嵌入处 {first}，末层 {last}",
    ),
    "layers.note": Words(
        "Hidden state 0 is the embeddings; state k is what layer k − 1 gives.",
        "隐藏状态 0 是嵌入；状态 k 是第 k − 1 层的输出。",
    ),
    # The receipt
    "receipt.empty": Words(
        "No operation was made, so there is nothing to account for.", "没有做手术，因此没有可记的账。"
    ),
    "receipt.cells": Words("{count} heads reached", "作用于 {count} 个头"),
    "receipt.scores": Words("scores changed", "分数改变"),
    "receipt.weights": Words("weight moved", "权重移动"),
    "receipt.output": Words("output changed", "输出改变"),
    "receipt.result": Words("result changed", "结果改变"),
    "receipt.scores_help": Words(
        "mean absolute difference of the scores, over real query-key pairs of the heads reached",
        "所作用的头中，真实查询与键之间分数之差的绝对值的平均",
    ),
    "receipt.weights_help": Words(
        "share of the attention weight that went elsewhere, mean over the heads reached",
        "转移到别处的注意力权重份额，对所作用的头取平均",
    ),
    "receipt.output_help": Words(
        "relative L2 difference of the heads’ output, mean over the heads reached",
        "注意力头输出的相对 L2 差异，对所作用的头取平均",
    ),
    "receipt.result_help": Words(
        "relative L2 difference of the last hidden state", "末层隐藏状态的相对 L2 差异"
    ),
    "receipt.alone": Words(
        "What the result owes to this step: the difference from the baseline.",
        "该步骤对结果的贡献：与基线之差。",
    ),
    "receipt.among": Words(
        "What the result owes to each step: the difference from the same plan without it.",
        "每个步骤对结果的贡献：与去掉该步骤的同一计划之差。",
    ),
    "receipt.idle": Words("changed nothing", "没有改变"),
    # The pipeline
    "pipeline.intro": Words(
        "Attention step by step, with the shapes of this run: {heads} heads, {tokens} tokens, d_k = {d_k}. "
        "Open a step for its numbers in layer {layer}, head {head}.",
        "逐步展示注意力及本次运行的张量形状：{heads} 个头，{tokens} 个词元，d_k = {d_k}。"
        "展开某一步可查看第 {layer} 层第 {head} 头的数值。",
    ),
    "pipeline.is_gone": Words("removed", "已去掉"),
    "pipeline.is_gone_in": Words("removed in {where}", "在 {where} 去掉"),
    "pipeline.is_changed": Words("changed", "已改变"),
    "pipeline.is_changed_in": Words("changed in {where}", "在 {where} 改变"),
    "pipeline.is_idle": Words("unchanged", "未改变"),
    "pipeline.positions": Words("Positions", "位置编码"),
    "pipeline.projections": Words("Queries and keys", "查询与键"),
    "pipeline.scale": Words("Scale", "缩放"),
    "pipeline.scores": Words("Scores", "分数"),
    "pipeline.mask": Words("Mask", "掩码"),
    "pipeline.softmax": Words("Softmax", "归一化 softmax"),
    "pipeline.weights": Words("Weights", "权重"),
    "pipeline.values": Words("Mix the values", "混合值向量"),
    "pipeline.output": Words("Output", "输出"),
    "pipeline.positions_help": Words(
        "Each token’s vector is told where the token stands.", "告诉每个词元的向量它所在的位置。"
    ),
    "pipeline.projections_help": Words(
        "Every head asks (q) and offers (k) in a space of its own.",
        "每个头在自己的空间里提问（q）与应答（k）。",
    ),
    "pipeline.scale_help": Words(
        "Dividing by √d_k keeps the softmax from saturating.", "除以 √d_k 使 softmax 不至于饱和。"
    ),
    "pipeline.scores_help": Words("How well each query fits each key.", "每个查询与每个键的匹配程度。"),
    "pipeline.mask_help": Words("Pairs that are not permitted get no weight.", "不允许的词元对得不到权重。"),
    "pipeline.softmax_help": Words(
        "Every query shares out a weight of 1 among its permitted keys.",
        "每个查询把总和为 1 的权重分给允许的键。",
    ),
    "pipeline.weights_help": Words(
        "The attention weights that the maps show.", "注意力图所显示的注意力权重。"
    ),
    "pipeline.values_help": Words("The weights mix the values of the keys.", "用权重混合各个键的值向量。"),
    "pipeline.output_help": Words(
        "The heads are joined and projected back to the width of the model.",
        "各头拼接后投影回模型宽度。",
    ),
    "pipeline.axes_hidden": Words("tokens, width", "词元，宽度"),
    "pipeline.axes_heads": Words("heads, tokens, d_k", "头，词元，d_k"),
    "pipeline.axes_pairs": Words("heads, queries, keys", "头，查询，键"),
    "pipeline.shape": Words("shape of the result", "结果的形状"),
    "pipeline.measure": Words("Measure", "指标"),
    "pipeline.no_statistics": Words("Nothing was measured here for this head.", "此处没有测量该头的数值。"),
    "pipeline.input_cosine": Words("cosine of what the layer reads", "该层输入的余弦"),
    "pipeline.input_l2": Words("relative L2 of what the layer reads", "该层输入的相对 L2"),
    "pipeline.embedding_cosine": Words("cosine of the embeddings", "嵌入的余弦"),
    "pipeline.embedding_l2": Words("relative L2 of the embeddings", "嵌入的相对 L2"),
    "pipeline.factor": Words("factor on q·kᵀ", "q·kᵀ 的系数"),
    "pipeline.scores_mean": Words("mean", "平均值"),
    "pipeline.scores_std": Words("standard deviation", "标准差"),
    "pipeline.scores_min": Words("minimum", "最小值"),
    "pipeline.scores_max": Words("maximum", "最大值"),
    "pipeline.scores_moved": Words("mean absolute difference", "差值绝对值的平均"),
    "pipeline.permitted": Words("permitted pairs of {count}", "允许的词元对（共 {count} 对）"),
    "pipeline.no_key": Words("queries without a permitted key", "没有允许的键的查询"),
    "pipeline.entropy": Words("entropy in nats, at most {limit}", "熵（奈特），最大 {limit}"),
    "pipeline.weight_max": Words("largest weight of a query, mean", "每个查询的最大权重，取平均"),
    "pipeline.weight_moved": Words("share of weight moved", "移动的权重份额"),
    "pipeline.distance": Words("mean distance in tokens", "平均距离（词元数）"),
    "pipeline.output_rms": Words("root mean square", "均方根"),
    "pipeline.output_moved": Words("relative L2 difference", "相对 L2 差异"),
    # Code
    "code.intro": Words(
        "Each of these gives exactly the numbers shown here, random draws included.",
        "以下每一段都会得到与此处完全相同的数值，包括随机抽样。",
    ),
    "code.python": Words("Python code", "Python 代码"),
    "code.shell": Words("Command line", "命令行"),
    "code.json": Words("The plan as JSON", "计划（JSON 格式）"),
    "code.json_help": Words("Read by {python} and by {shell}.", "可用 {python} 或 {shell} 读取。"),
    "code.no_shell": Words(
        "The command line takes one text, not a pair: use the Python code.",
        "命令行只接受单个文本，不接受文本对：请使用 Python 代码。",
    ),
    # The report
    "report.title": Words("Attention surgery: report", "注意力手术报告"),
    "report.plan": Words("Operations", "手术"),
    "report.no_plan": Words("None: both runs are the same.", "无：两次运行完全相同。"),
    "report.text": Words("Text and tokens", "文本与词元"),
    "report.maps": Words("Attention, layer {layer}, head {head}", "注意力，第 {layer} 层第 {head} 头"),
    "report.maps_alt": Words(
        "Maps of the attention of layer {layer}, head {head}, for the baseline, operated, and their difference. "
        "Its numbers are in the table of heads.",
        "第 {layer} 层第 {head} 头的注意力图，依次为基线、手术后及其差值。数值见各头的表格。",
    ),
    "report.overview_alt": Words(
        "A grid of all heads coloured by divergence. The numbers are in the table of heads.",
        "按散度着色的所有头的网格。数值见各头的表格。",
    ),
    "report.outputs": Words("Outputs", "输出"),
    "report.heads": Words("Heads", "注意力头"),
    "report.layers": Words("Layers", "层"),
    "report.receipt": Words("Receipt", "回执"),
    "report.code": Words("To repeat this", "重现方法"),
    "report.made": Words("Made on {date} with {versions}.", "生成于 {date}，使用 {versions}。"),
    # The plan being edited
    "plan.label": Words("Operations, in order", "手术步骤（按顺序）"),
    "plan.empty": Words("No operation yet. Choose one.", "尚无手术。请选择一个。"),
    "plan.edit": Words("Edit step {number}, {title}", "编辑第 {number} 步（{title}）"),
    "plan.on": Words("Step {number} takes part", "启用第 {number} 步"),
    "plan.up": Words("Move step {number} up", "上移第 {number} 步"),
    "plan.down": Words("Move step {number} down", "下移第 {number} 步"),
    "plan.remove": Words("Remove step {number}", "删除第 {number} 步"),
}


def t(key: str, lang: str, **values: object) -> str:
    """The text `key` in `lang`, its gaps filled with `values`. Raises KeyError for an unknown key."""
    if key not in TEXTS:
        raise KeyError(f"No text is called {key!r}: add it to TEXTS in ui/texts.py.")
    text = TEXTS[key].say(lang)
    return text.format(**values) if values else text


def section(name: str, lang: str) -> dict[str, str]:
    """All texts of one section by their short keys, and the language: what a browser component is given."""
    prefix = f"{name}."
    words = {key.removeprefix(prefix): t(key, lang) for key in TEXTS if key.startswith(prefix)}
    if not words:
        raise KeyError(f"No text belongs to the section {name!r}.")
    return {"lang": lang, **words}
