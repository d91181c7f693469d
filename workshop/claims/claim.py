"""What a claim is, and how its measurement becomes a verdict."""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch

from bilingual import Words
from workshop.known import FILE

SEEDS = range(5)
ROUNDING = 1e-5  # float32, through a few layers

HOLDS, DEPENDS, WRONG = "holds", "depends", "wrong"
VERDICTS: dict[str, Words] = {
    HOLDS: Words("holds", "成立"),
    DEPENDS: Words("holds only if …", "有条件地成立"),
    WRONG: Words("wrong", "不成立"),
}


class Measured(NamedTuple):
    """A mean with its standard deviation over seeds; sd is None where nothing varies. `f"{m:.1f}"` prints both,
    `f"{m:r}"` says of what should be rounding that it is."""

    mean: float
    sd: float | None = None

    def __format__(self, spec: str) -> str:
        if spec == "r":  # rounding differs between machines: how small it is, not its digits
            return f"< {ROUNDING:.0e}" if abs(self.mean) < ROUNDING else f"{self.mean:.0e}"
        value = _printed(self.mean, spec)
        if self.sd is None or float(_printed(self.sd, spec).replace(",", "")) == 0:
            return value  # a spread too small to be seen at this precision
        return f"{value} ± {_printed(self.sd, spec)}"


def _printed(value: float, spec: str) -> str:
    return "NaN" if math.isnan(value) else format(value, spec)


Numbers = Mapping[str, Measured]
Verdict = tuple[str, Numbers]
Check = Callable[[], Verdict]


def over(
    seeds: Iterable[int], measure: Callable[[torch.Generator], Mapping[str, float]]
) -> dict[str, Measured]:
    """What `measure` finds with a generator of each seed, as means with spreads."""
    found = [measure(torch.Generator().manual_seed(seed)) for seed in seeds]
    return {
        name: Measured(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None)
        for name in found[0]
        for values in [[f[name] for f in found]]
    }


def exact(**numbers: float | torch.Tensor) -> dict[str, Measured]:
    """Numbers without any spread."""
    return {name: Measured(float(value)) for name, value in numbers.items()}


def kept(*names: str) -> dict[str, Measured]:
    """Numbers of `measured.json` (`python -m workshop measure`): what takes minutes of training."""
    import json

    entries = json.loads(FILE.read_text(encoding="utf-8"))
    return {name: Measured(entries[name]["value"], entries[name]["sd"]) for name in names}


@dataclass(frozen=True)
class Claim:
    """Something that tutorials say. check() -> (verdict, numbers); said: what to say under each verdict, a template over
    the numbers. timed: its numbers are seconds of this machine; trained: they come from `measured.json`."""

    name: str
    claim: Words
    check: Check
    said: Mapping[str, Words]
    timed: bool = False
    trained: bool = False


@dataclass(frozen=True)
class Found:
    """A claim with what this run found."""

    claim: Claim
    verdict: str
    numbers: Numbers

    def words(self) -> Words:
        """What to say of it. A verdict that nobody foresaw is said with its bare numbers."""
        template = self.claim.said.get(self.verdict)
        if template is None:
            bare = ", ".join(f"{name} = {value:.3g}" for name, value in self.numbers.items())
            return Words(f"This run found otherwise: {bare}.", f"这次运行的结果不同：{bare}。")
        return Words(*(template.say(lang).format(**self.numbers) for lang in ("en", "zh")))


REGISTRY: dict[str, Claim] = {}


def claim(
    name: str, en: str, zh: str, said: Mapping[str, Words], **options: bool
) -> Callable[[Check], Check]:
    """Registers a check as a claim."""

    def register(check: Check) -> Check:
        REGISTRY[name] = Claim(name, Words(en, zh), check, said, **options)
        return check

    return register
