"""What a share link holds: text, model, steps, options and view; nothing of it is kept on the server."""

from collections.abc import Callable
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any

from bilingual import SurgeryError, Words
from surgery.plan import PlanError, pack, unpack
from ui import steps as steps_

VERSION = 1
_MOST = 4096  # layers, heads and tokens that a view may name


class LinkError(SurgeryError):
    """A link that this page cannot read."""


class SettingError(SurgeryError):
    """A value of the wrong kind."""


def _place(value: Any) -> bool:
    return value is None or (type(value) is int and 0 <= value < _MOST)


def _one_of(*names: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in names


VIEW: dict[str, Callable[[Any], bool]] = {  # what a view may hold, and whether a value may stand there
    "layer": _place,
    "head": _place,
    "average": lambda value: isinstance(value, bool),
    "scale": _one_of("shared", "unit"),
    "specials": _one_of("shown", "greyed", "hidden"),
    "pinned": _place,
    "overview": _one_of("divergence", "baseline", "operated"),
}


def known_view(view: Any) -> dict[str, Any]:
    """What is right of a view that came from outside."""
    if not isinstance(view, dict):
        return {}
    return {name: value for name, value in view.items() if name in VIEW and VIEW[name](value)}


@dataclass
class Setting:
    """All that a visitor has set."""

    text: str = ""
    other: str = ""
    model: str = "minilm"
    steps: list[dict[str, Any]] = field(default_factory=list)
    selected: int = 0
    pad_to: int = 0
    literal: bool = False
    view: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for about in fields(self):
            value, default = getattr(self, about.name), about.default
            kind: Any = about.default_factory if default is MISSING else type(default)
            if type(value) is not kind:
                raise SettingError(
                    f"{about.name} = {value!r:.60} is not possible: it must be {_KINDS[kind].en}.",
                    f"{about.name} = {value!r:.60} 不可用：应为{_KINDS[kind].zh}。",
                )
        if not all(isinstance(step, dict) and isinstance(step.get("on"), bool) for step in self.steps):
            raise SettingError("steps must be operations that are on or off.", "steps 应为带开关的操作列表。")

    def to_token(self) -> str:
        """URL-safe letters for `?s=`."""
        return pack({"version": VERSION, **asdict(self)})

    @classmethod
    def from_token(cls, token: str) -> "Setting":
        """The setting that `to_token` wrote, every value checked. Raises LinkError."""
        try:
            data = unpack(token)
        except PlanError as error:
            raise _unreadable(_CUT) from error
        if not isinstance(data, dict) or data.get("version") != VERSION or "text" not in data:
            raise _unreadable(_CUT)
        try:
            setting = cls(**{about.name: data[about.name] for about in fields(cls) if about.name in data})
            setting.steps = steps_.canonical(setting.steps)
        except SurgeryError as error:
            raise _unreadable(error.words) from error
        if known_view(setting.view) != setting.view:
            odd = next(name for name in setting.view if name not in known_view(setting.view))
            raise _unreadable(
                Words(
                    f"its view has an unknown {str(odd)[:40]!r}.", f"其视图中的 {str(odd)[:40]!r} 无法识别。"
                )
            )
        setting.selected = min(max(setting.selected, 0), max(len(setting.steps) - 1, 0))
        return setting


_CUT = Words("it was cut off or made by another version.", "可能被截断，或来自其他版本。")
_KINDS = {
    str: Words("a text", "文本"),
    int: Words("a whole number", "整数"),
    bool: Words("true or false", " true 或 false"),
    list: Words("a list", "列表"),
    dict: Words("an object", "对象"),
}


def _unreadable(why: Words) -> LinkError:
    return LinkError(
        f"This link cannot be read: {why.en} The page starts afresh.",
        f"无法读取该链接：{why.zh}页面已重新开始。",
    )
