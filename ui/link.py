"""What a share link holds: text, model, steps, options and view; nothing of it is kept on the server."""

from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any

from bilingual import SurgeryError
from surgery.plan import PlanError, pack, unpack
from ui import steps as steps_

VERSION = 1


class LinkError(SurgeryError):
    """A link that this page cannot read."""


class SettingError(SurgeryError):
    """A value of the wrong kind."""


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
            kind = about.default_factory if default is MISSING else type(default)
            if type(value) is not kind:
                raise SettingError(
                    f"{about.name} = {value!r:.60} is not possible: it must be {kind.__name__}.",
                    f"{about.name} = {value!r:.60} 不可用：应为 {kind.__name__}。",
                )
        if not all(isinstance(step, dict) and isinstance(step.get("on"), bool) for step in self.steps):
            raise SettingError("steps must be operations that are on or off.", "steps 应为带开关的操作列表。")

    def to_token(self) -> str:
        """URL-safe letters for `?s=`."""
        return pack({"version": VERSION, **asdict(self)})

    @classmethod
    def from_token(cls, token: str) -> "Setting":
        """The setting that `to_token` wrote, every value checked. Raises LinkError and what a plan raises."""
        bad = LinkError(
            "This link cannot be read: it was cut off or made by another version. The page starts afresh.",
            "无法读取该链接：可能被截断，或来自其他版本。页面已重新开始。",
        )
        try:
            data = unpack(token)
        except PlanError as error:
            raise bad from error
        if not isinstance(data, dict) or data.get("version") != VERSION or "text" not in data:
            raise bad
        try:
            setting = cls(**{about.name: data[about.name] for about in fields(cls) if about.name in data})
        except SettingError as error:
            raise bad from error
        steps_.to_plan([{**step, "on": True} for step in setting.steps])  # raises for what is no operation
        setting.selected = min(max(setting.selected, 0), max(len(setting.steps) - 1, 0))
        return setting
