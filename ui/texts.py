"""Every word of the interface, in English and in Chinese: one table, one row per text.

A key is `section.name`. A text may hold named gaps (`{layer}`): `t` fills them here, `word` in the browser.
"""

from bilingual import Words

TEXTS: dict[str, Words] = {
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
    "attention.divergence": Words("Jensen-Shannon divergence", "JS 散度"),
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
