from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from surgery.plan import Plan
from ui.markup import render

if TYPE_CHECKING:
    from surgery.reading import Text


def code(
    model: str,
    text: Text,
    plan: Plan,
    *,
    other: Text | None = None,
    pad_to: int | None = None,
    literal: bool = False,
    max_tokens: int | None = None,
    lang: str,
    still: bool = False,
) -> str:
    """This run as Python code, as a command, and its plan as JSON, to copy and to download. still: without buttons.

    other, pad_to, literal, max_tokens: what `compare` was given besides.
    """
    options: dict[str, Any] = {"other": other, "pad_to": pad_to, "literal": literal, "max_tokens": max_tokens}
    blocks = [
        ("python", "surgery.py", python(model, text, plan, **options)),
        ("shell", "surgery.sh", shell(model, text, plan, **options)),
        ("json", "plan.json", plan.to_json(indent=2) + "\n"),
    ]
    return render(
        "code",
        lang,
        blocks=[
            {"name": name, "file": file, "text": block, "link": _link(block)} for name, file, block in blocks
        ],
        still=still,
    )


def python(
    model: str,
    text: Text,
    plan: Plan,
    *,
    other: Text | None,
    pad_to: int | None,
    literal: bool,
    max_tokens: int | None,
) -> str:
    """A program that makes this comparison as `c` and prints its verdict."""
    options = [
        *([f"other={other!r}"] if other is not None else []),
        *([f"pad_to={pad_to!r}"] if pad_to is not None else []),
        *(["literal=True"] if literal else []),
        *([f"max_tokens={max_tokens!r}"] if max_tokens is not None else []),
    ]
    arguments = ", ".join(["patient", "text", "plan", *options])
    return (
        "import surgery as sg\n"
        "from models import load\n\n"
        f"patient = load({model!r})\n"
        f"text = {text!r}\n"
        f"plan = {plan.to_python()}\n\n"
        f"c = sg.compare({arguments})\n"
        "print(c.verdict())\n"
    )


def shell(
    model: str,
    text: Text,
    plan: Plan,
    *,
    other: Text | None,
    pad_to: int | None,
    literal: bool,
    max_tokens: int | None,
) -> str | None:
    """The same as a command for a POSIX shell; None if the command line cannot be given such a text."""
    if not isinstance(text, str) or not isinstance(other, str | None) or "\0" in (other or ""):
        return None
    before, words = _text_words(text)
    words = [
        *_option("model", model),
        *words,
        *(word for spelled in plan.to_words() for word in _option("op", spelled)),
        *(_option("other", other) if other is not None else []),
        *(_option("pad-to", str(pad_to)) if pad_to is not None else []),
        *(["--literal"] if literal else []),
        *(_option("max-tokens", str(max_tokens)) if max_tokens is not None else []),
    ]
    return before + "python -m surgery run " + " \\\n  ".join(words) + "\n"


def _text_words(text: str) -> tuple[str, list[str]]:
    """A command that writes the text to a pipe, where it cannot be an argument, and the words that name it."""
    if text != "-" and "\0" not in text:
        return "", _option("text", text)
    program = f"import sys; sys.stdout.buffer.write({text.encode()!r})"
    return f"python -c {shlex.quote(program)} | ", ["--text -"]


def _option(name: str, value: str) -> list[str]:
    glue = "=" if value.startswith("-") else " "
    return [f"--{name}{glue}{shlex.quote(value)}"]


def _link(text: str | None) -> str:
    return "" if text is None else "data:text/plain;charset=utf-8," + quote(text, errors="replace")
