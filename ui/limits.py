"""Every limit of the server in one place: how much a visitor may ask for, and how much is kept."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bilingual import SurgeryError, Words

PREFIX = "SURGERY_"  # of the environment variables that change a limit


class LimitError(SurgeryError):
    """More than this server takes. place: the field that it is said beside, if it is about one."""

    def __init__(self, en: str, zh: str, place: str | None = None):
        super().__init__(en, zh)
        self.place = place


class SettingsError(SurgeryError):
    """A limit in the environment that is none."""


@dataclass(frozen=True)
class Limits:
    """The limits of a server for oneself; `PUBLIC` are those for strangers. Whole numbers, from 1 (proxies: from 0)."""

    text_characters: int = 100_000  # characters of one text
    tokens: int = 128  # tokens of a text that are read, of padding too; less on models with many heads
    map_cells: int = 1_500_000  # attention weights of one run that are sent to the browser
    plan_steps: int = 64  # operations of a plan
    name_characters: int = 1_000  # characters of a model's name, a path included
    sweep_texts: int = 50  # texts of a sweep
    sweep_tokens: int = 512  # tokens of a text that a sweep reads
    sweep_plans: int = 512  # plans times seeds of a sweep
    sweep_seeds: int = 20  # seeds of a random plan in a sweep
    write_tokens: int = 90  # tokens that a decoder writes on, for each run
    train_steps: int = 2_000  # steps of a training run on the page
    file_bytes: int = 4_000_000  # bytes of an uploaded file
    request_bytes: int = 4_000_000  # bytes of any other request
    request_depth: int = 32  # lists and objects inside each other in a request
    request_seconds: int = 60  # seconds within which a request has to have arrived
    requests_a_minute: int = 12_000  # requests of one address, on average over a minute
    connections: int = 1_000  # requests of one address that are open at a time
    queue: int = 64  # runs that wait
    queue_share: int = 64  # runs of one address that wait
    runs_at_once: int = 2  # runs that touch a model at a time
    models: int = 2  # models alive at a time, besides those still in use
    sessions: int = 100  # visitors whose plan and results are remembered
    seconds_kept: int = 3_600  # seconds that a result and a file for download are kept
    proxies: int = 0  # reverse proxies before this server, whose word on a caller's address is taken

    @classmethod
    def of(cls, public: bool, environment: Mapping[str, str] = os.environ) -> Limits:
        """The limits for oneself or for strangers, as the environment changes them (SURGERY_TEXT_CHARACTERS=500).

        Raises SettingsError for a value that is no whole number from 1, and for a name that is no limit.
        """
        changed = {"proxies": 1} if environment.get("SPACE_ID") else {}
        for variable, value in environment.items():
            if not variable.startswith(PREFIX):
                continue
            name = variable.removeprefix(PREFIX).lower()
            if name not in names():
                raise SettingsError(
                    f"{variable} is no limit. Limits: {', '.join(PREFIX + n.upper() for n in names())}.",
                    f"{variable} 不是限制项。可用的有：{'、'.join(PREFIX + n.upper() for n in names())}。",
                )
            low = 0 if name == "proxies" else 1
            if not (value.isascii() and value.isdigit() and low <= int(value[:20]) <= 10**12):
                raise SettingsError(
                    f"{variable} = {value[:40]!r} is not possible: give a whole number from {low}.",
                    f"{variable} = {value[:40]!r} 不可用：请给不小于 {low} 的整数。",
                )
            changed[name] = int(value)
        return dataclasses.replace(PUBLIC if public else cls(), **changed)

    def check(self, name: str, value: int, what: Words, place: str | None = None) -> None:
        """Raises LimitError if `value` is more than the limit `name`. what: of what it is the number."""
        most = getattr(self, name)
        if value > most:
            raise LimitError(
                f"{value} {what.en} are too many: this server takes at most {most}.",
                f"{what.zh}为 {value}，太多了：本服务器最多接受 {most}。",
                place,
            )


OWN = Limits()
PUBLIC = Limits(
    text_characters=5_000,
    plan_steps=16,
    name_characters=100,
    sweep_texts=20,
    sweep_tokens=128,
    sweep_plans=256,
    sweep_seeds=10,
    train_steps=1_000,
    file_bytes=250_000,
    request_bytes=1_000_000,
    request_depth=16,
    request_seconds=20,
    requests_a_minute=1_200,
    connections=200,
    queue_share=32,
)


def names() -> list[str]:
    """The names of the limits, in order."""
    return [field.name for field in dataclasses.fields(Limits)]


def table() -> str:
    """The limits as the README lists them: a row for each, with the comments of the code as explanations."""
    source = Path(__file__).read_text(encoding="utf-8")
    about = dict(re.findall(r"^    (\w+): int = [\d_]+  # (.*)$", source, re.MULTILINE))
    rows = [
        f"| `{PREFIX}{name.upper()}` | {getattr(OWN, name):,} | {getattr(PUBLIC, name):,} | {about[name]} |"
        for name in names()
    ]
    return "\n".join(["| variable | for oneself | `--public` | |", "|---|---|---|---|", *rows])


if __name__ == "__main__":
    print(table())
