"""The words of the from-scratch models' mini-grammars: few enough that a whole heatmap can be read."""

PAD, UNK, CLS, SEP, MASK = SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

_ENGLISH = {
    "function": "the was were is are by who did it to whom where ? , not and but although overall today yesterday",
    "self": "himself herself itself themselves",
    "man": "king boy man brother uncle",
    "woman": "queen girl woman sister aunt",
    "animal": "dog cat fox bear horse rabbit",
    "verb": "chased followed helped watched called pushed visited greeted",
    "adjective": "big small old young quick quiet",
    "place": "near behind beside",
    "state": "hungry tired happy asleep",
    "thing": "film soup hotel room music food service book",
    "good": "good great lovely nice",
    "bad": "bad awful dull dirty",
    "degree": "very really",
}
ENGLISH_CLASSES: dict[str, tuple[str, ...]] = {name: tuple(text.split()) for name, text in _ENGLISH.items()}

_IRREGULAR_PLURALS = {"man": "men", "woman": "women", "fox": "foxes"}


def plural(noun: str) -> str:
    """dog -> dogs, woman -> women."""
    return _IRREGULAR_PLURALS.get(noun, noun + "s")


def _english() -> tuple[str, ...]:
    singular = [word for name in ("man", "woman", "animal") for word in ENGLISH_CLASSES[name]]
    plurals = [plural(noun) for noun in singular]
    return (*SPECIALS, *(word for words in ENGLISH_CLASSES.values() for word in words), *plurals)


ENGLISH = _english()
"""Every token of the English encoder; a token's place is its id."""

_CHINESE = {
    "function": "的 了 把 被 是 谁 做 对 ？ ， 不 太 而且 但是 虽然 总之 这 那 看见 说",
    "measure": "位 只 条 头 匹",
    "pronoun": "他 她 它",
    "part": "主动 被动 旁观",
    "man": "爸爸 哥哥 叔叔 国王 爷爷",
    "woman": "妈妈 姐姐 阿姨 王后 奶奶",
    "animal": "猫 狗 狐狸 熊 马 兔子",
    "verb": "追 叫醒 推倒 打败 赶走 抓住 吓跑 送走 救出",
    "adjective": "大 小 老 年轻 安静 调皮",
    "place": "旁边 后面 前面",
    "state": "累 饿 高兴 困",
    "thing": "电影 汤 酒店 房间 音乐 菜 服务 书",
    "good": "好 棒 出色 迷人",
    "bad": "差 糟 平庸 烦人",
    "degree": "很 非常",
}
CHINESE_CLASSES: dict[str, tuple[str, ...]] = {name: tuple(text.split()) for name, text in _CHINESE.items()}
CHINESE: tuple[str, ...] = (*SPECIALS, *(word for words in CHINESE_CLASSES.values() for word in words))
"""Every token of the Chinese encoder; a token's place is its id."""

NEWLINE = "\n"
CHARACTERS: tuple[str, ...] = (PAD, UNK, NEWLINE, ".", " ", *"abcdefghijklmnopqrstuvwxyz")
"""Every token of the character model; a line begins after a newline and ends with one."""

TRANSLATIONS: dict[str, dict[str, str]] = {
    "noun": {
        "king": "国王", "queen": "王后", "boy": "男孩", "girl": "女孩", "man": "男人", "woman": "女人", "uncle": "叔叔",
        "aunt": "阿姨", "dog": "狗", "cat": "猫", "fox": "狐狸", "bear": "熊", "horse": "马", "rabbit": "兔子",
    },
    "verb": {
        "chased": "追", "woke": "叫醒", "pushed": "推倒", "beat": "打败", "caught": "抓住", "scared": "吓跑", "saved": "救出",
    },
    "adjective": {"big": "大", "small": "小", "old": "老", "young": "年轻", "quiet": "安静"},
    "place": {"beside": "旁边", "behind": "后面", "before": "前面"},
    "time": {"today": "今天", "yesterday": "昨天"},
}  # fmt: skip
"""English words of the translator with their Chinese ones."""


def _translation() -> tuple[str, ...]:
    english = [word for words in TRANSLATIONS.values() for word in words]
    chinese = [word for words in TRANSLATIONS.values() for word in words.values()]
    return (
        *SPECIALS,
        *["the", "this", "that", "was", "by"],
        *english,
        *["这", "那", "位", "只", "头", "匹", "的", "了", "被"],
        *chinese,
    )


TRANSLATION = _translation()
"""Every token of the translator, of both languages; a token's place is its id."""
