"""Every package that the project stands on, with its version and licence, as they are installed here.

python benchmarks/licences.py                  the table
python benchmarks/licences.py --constraints    the versions, as constraints.txt holds them
"""

from __future__ import annotations

import argparse
import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
FILES = ("requirements.txt", "requirements-dev.txt")
HEAD = """\
# The versions that the tests were run with: pip install -r requirements.txt -c constraints.txt
# Made by `python benchmarks/licences.py --constraints`. torch is left to you: which build is right depends on the accelerator.
"""


def wanted() -> list[Requirement]:
    """What the requirement files ask for."""
    lines = [line for name in FILES for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]
    bare = [line.partition("#")[0].strip() for line in lines]
    return [Requirement(line) for line in bare if line and not line.startswith("-r")]


def installed(requirements: list[Requirement]) -> dict[str, Distribution]:
    """Those that are installed, and what they need in turn, by name."""
    found: dict[str, Distribution] = {}
    waiting = [(need, extra) for need in requirements for extra in ("", *need.extras)]
    seen = set()
    while waiting:
        need, extra = waiting.pop()
        if (need.name, extra) in seen or (need.marker and not need.marker.evaluate({"extra": extra})):
            continue
        seen.add((need.name, extra))
        try:
            package = distribution(need.name)
        except PackageNotFoundError:
            continue
        found[_name(need.name)] = package
        for line in package.requires or ():
            further = Requirement(line)
            if further.marker is None or further.marker.evaluate({"extra": extra}):
                waiting += [(Requirement(line.partition(";")[0]), more) for more in ("", *further.extras)]
    return dict(sorted(found.items()))


def licence(package: Distribution) -> str:
    """The licence that a package names, in one line."""
    about = package.metadata
    if about.get("License-Expression"):
        return str(about["License-Expression"])
    named = [
        c.rpartition("::")[2].strip() for c in about.get_all("Classifier", []) if c.startswith("License ::")
    ]
    return ", ".join(named) or (about.get("License") or "not named").strip().split("\n")[0][:60]


def constraints(packages: dict[str, Distribution]) -> str:
    """The contents of constraints.txt."""
    left_out = re.compile(r"torch$|nvidia|cuda|triton|pip$|setuptools$")
    lines = [f"{name}=={package.version}" for name, package in packages.items() if not left_out.match(name)]
    return HEAD + "\n".join(lines) + "\n"


def _name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--constraints", action="store_true")
    packages = installed(wanted())
    if parser.parse_args().constraints:
        print(constraints(packages), end="")
        return 0
    for name, package in packages.items():
        print(f"{name:28} {package.version:14} {licence(package)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
