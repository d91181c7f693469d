import re
import string
from pathlib import Path

import pytest

from ui.texts import TEXTS, section, t


def gaps(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("key", TEXTS)
def test_both_languages_say_something_with_the_same_gaps(key):
    english, chinese = TEXTS[key]
    assert english.strip()
    assert re.search("[一-鿿]", chinese), f"{key} has no Chinese"
    assert gaps(english) == gaps(chinese)


@pytest.mark.parametrize("key", TEXTS)
def test_chinese_has_its_own_punctuation(key):
    assert not re.search(r"[,;:?!]", TEXTS[key].zh)


def test_gaps_are_filled():
    assert t("grid.cell", "en", layer=2, head=0) == "Layer 2, head 0"


def test_an_unknown_key_or_language_raises():
    with pytest.raises(KeyError, match=r"grid\.nonsense"):
        t("grid.nonsense", "en")
    with pytest.raises(ValueError, match="fr"):
        t("grid.cell", "fr")


def test_a_section_has_short_keys_and_its_language():
    words = section("grid", "zh")
    assert words["lang"] == "zh"
    assert words["corner"] == TEXTS["grid.corner"].zh
    with pytest.raises(KeyError):
        section("nothing", "en")


def test_every_text_is_used():
    folder = Path(__file__).parents[2] / "ui"
    files = [path for path in folder.rglob("*") if path.suffix in (".py", ".js", ".html")]
    sources = "\n".join(path.read_text(encoding="utf-8") for path in files if path.name != "texts.py")

    def quoted(*words: str) -> bool:
        return all(re.search(rf"[\"'`]{re.escape(word)}[\"'`]", sources) for word in words)

    def used(key: str) -> bool:
        """Named in full; or in parts, where a section's names are put together."""
        section_, short = key.split(".")
        sections = rf"""f"{section_}\.\{{|["']{section_}\.(\w+_)?["'] ~|section\("{section_}\""""
        words = short.split("_")
        cuts = [("_".join(words[:i]), "_".join(words[i:])) for i in range(1, len(words))]
        in_parts = quoted(short) or any(
            (quoted(a) and quoted(b)) or (b == "help" and quoted(a)) or (quoted(b) and f"{a}_" in sources)
            for a, b in cuts
        )
        return quoted(key) or bool(re.search(sections, sources) and in_parts)

    assert [key for key in TEXTS if not used(key)] == []
