"""Text that matplotlib can draw: fonts found by file, and labels that only use glyphs these fonts have."""

import functools
import importlib.util
import threading
import unicodedata
from pathlib import Path

from matplotlib import font_manager

LONGEST = 14  # characters of a token label

_WHEEL = ("pylopdf_fonts_zh_cn", "NotoSansSC-Regular.otf")
_DEBIAN = ("/usr/share/fonts/truetype/wqy/wqy-microhei.ttc", "/usr/share/fonts/wqy-microhei/wqy-microhei.ttc")
_ELSEWHERE = (
    *(
        "Noto Sans CJK SC",
        "Noto Sans SC",
        "Source Han Sans SC",
        "Source Han Sans CN",
        "PingFang SC",
        "Heiti SC",
    ),
    *("Hiragino Sans GB", "STHeiti", "Microsoft YaHei", "SimHei", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei"),
    *("Droid Sans Fallback", "Arial Unicode MS", "Noto Sans CJK JP", "Noto Sans CJK TC"),
)
_JOINERS = "\u200c\u200d"  # change how their neighbours join, and are no bidirectional controls
_lock = threading.Lock()


def families() -> list[str]:
    """Font families in the order they are asked for a glyph: DejaVu Sans, then what is there of Chinese fonts."""
    return list(_found()[0])


def has(character: str) -> bool:
    """Whether one of the `families` can draw this character."""
    return ord(character) in _found()[1]


def drawable(text: str) -> tuple[str, bool]:
    """The text with control characters as escapes and glyphs that no font has as "U+1F9EC".

    Returns it and whether a glyph was missing. Right-to-left text stays in logical order: matplotlib turns it itself.
    """
    parts, missing, after_code = [], False, False
    for character in text:
        escape = _escape(character)
        code = escape is None and not has(character)
        if code:
            escape, missing = f"U+{ord(character):04X}", True
        parts.append((" " if code and after_code else "") + (escape or character))
        after_code = code
    return "".join(parts), missing


def label(token: str, longest: int = LONGEST) -> tuple[str, bool]:
    """A token as a tick label: drawable, never invisible, at most `longest` characters and an ellipsis."""
    seen = token if token.strip() else token.replace(" ", "\u2423")
    text, missing = drawable(seen)
    return (text if len(text) <= longest else text[: longest - 1] + "…"), missing


def wrap(text: str, columns: float, lines: int = 3) -> list[str]:
    """The text in at most `lines` lines, a Chinese character counting as two columns; "…" where it was cut."""
    found, line = [], ""
    for word in _words(text):
        if line and columns_of(line + word.rstrip()) > columns:
            found.append(line.rstrip())
            line = ""
        line += word if line or word.strip() else ""
    found.append(line.rstrip())
    if len(found) > lines:
        found = [*found[: lines - 1], found[lines - 1][: max(1, int(columns) - 1)] + " …"]
    return found


def columns_of(text: str) -> int:
    """How many columns of a typewriter the text takes."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _words(text: str) -> list[str]:
    """Pieces between which a line may break: words, single Chinese characters, at most 40 characters in one."""
    pieces: list[str] = []
    for character in text:
        wide = unicodedata.east_asian_width(character) in "WF"
        closing = character in "，。；：、）！？”"
        if not pieces or pieces[-1][-1] == " " or (wide and not closing) or len(pieces[-1]) >= 40:
            pieces.append(character)
        else:
            pieces[-1] += character
    return pieces


def _escape(character: str) -> str | None:
    """A control character, a surrogate or a separator of lines as Python would write it, else None."""
    category = unicodedata.category(character)
    if category in ("Cc", "Cs", "Zl", "Zp") or (category == "Cf" and character not in _JOINERS):
        return character.encode("unicode_escape", "surrogatepass").decode("ascii")
    return None


def _found() -> tuple[tuple[str, ...], frozenset[int]]:
    with _lock:  # lru_cache alone would let two threads register at once
        return _register()


@functools.lru_cache(maxsize=1)
def _register() -> tuple[tuple[str, ...], frozenset[int]]:
    """Makes the fonts known to matplotlib: (families, code points they can draw)."""
    names: list[str] = []
    points: set[int] = set()
    for path in (font_manager.findfont("DejaVu Sans"), *_chinese()):
        font = font_manager.get_font(path)
        known = {entry.fname for entry in font_manager.fontManager.ttflist}
        if path not in known:
            font_manager.fontManager.addfont(path)
        names.append(font.family_name)
        points.update(font.get_charmap())
    return tuple(names), frozenset(points)


def _chinese() -> list[str]:
    """Files of fonts with Chinese glyphs: the wheel's, Debian's, or any that matplotlib knows."""
    files = [path for path in (_in_wheel(), *map(Path, _DEBIAN)) if path is not None and path.is_file()]
    if files:
        return [str(path) for path in files]
    known = {entry.name: entry.fname for entry in font_manager.fontManager.ttflist}
    return [known[name] for name in _ELSEWHERE if name in known][:1]


def _in_wheel() -> Path | None:
    package, name = _WHEEL
    spec = importlib.util.find_spec(package)  # finds the folder without running the package
    return None if spec is None or spec.origin is None else Path(spec.origin).with_name(name)
