from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "static"


@cache
def static_text(name: str) -> str:
    """The text of one of our own JavaScript or CSS files."""
    return (FOLDER / name).read_text(encoding="utf-8")
