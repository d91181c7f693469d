"""HTML from templates. Whatever is put into a template is text: it is escaped there, always."""

import re
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ui.numbers import number, percent
from ui.texts import t

FOLDER = Path(__file__).parent / "templates"
HTML_LANGUAGE = {"en": "en", "zh": "zh-CN"}

# What cannot be seen or would reorder the text around it: control characters, line separators, direction marks.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def render(template: str, lang: str, **data: object) -> Markup:
    """`templates/<template>.html` filled with `data`, in "en" or "zh"."""
    page = _environment().get_template(f"{template}.html")
    return Markup(
        page.render(
            t=lambda key, **gaps: t(key, lang, **gaps),
            n=lambda value, digits=4: number(value, lang, digits),
            lang=lang,
            html_lang=HTML_LANGUAGE[lang],
            **data,
        )
    )


def printable(text: str) -> str:
    """A token with escapes for what cannot be seen; a bare space becomes visible."""
    if text == "":
        return "''"
    if not text.strip(" "):
        return "␣" * len(text)
    return _UNSEEN.sub(_escape, text)


def _escape(match: re.Match) -> str:
    character = match.group()
    code = ord(character)
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"printable": printable, "percent": percent}
    return environment
