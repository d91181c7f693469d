"""What the README shows is what happens."""

import contextlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_scripts_run_in_order_and_print_what_is_shown():
    names: dict = {}
    scripts = re.findall(r"```python\n(.*?)```((?:(?!```python).)*)", README, re.DOTALL)
    shown = 0
    for script, until_the_next in scripts:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(script, names)
        for wanted in re.findall(r"```text\n(.*?)```", until_the_next, re.DOTALL):
            assert printed.getvalue() == wanted
            shown += 1
    assert shown == len(blocks("text")) == 2


COMMANDS = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("python -m ")]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_shell_commands_run(command, tmp_path):
    words = [sys.executable, *shlex.split(command)[1:]]
    done = subprocess.run(words, cwd=tmp_path, env=_environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(ROOT)}


def test_ci_installs_what_the_readme_says_and_calls_its_test_command():
    ci = (ROOT / ".ci" / "run").read_text()
    (command,) = [line for block in blocks("sh") for line in block.splitlines() if "pytest" in line]
    for part in re.split(r"; | && ", command):
        part = part.removeprefix("sudo ")
        essential = part.replace("pip install ", "pip install -q ").replace("install -y ", "install -y -q ")
        assert part in ci or essential in ci, part


def test_every_file_that_the_readme_links_to_exists():
    targets = re.findall(r"\]\(([^)#:]+)\)", README)
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []
