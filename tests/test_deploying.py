"""What a Space and a container are told: checked as far as that goes without either."""

import importlib
import json
import re
import shlex
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from ui.limits import Limits

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def front_matter():
    head = (ROOT / "README.md").read_text(encoding="utf-8").split("---\n")[1]
    return dict(re.findall(r"^(\w+): *(.*)$", head, re.MULTILINE))


def test_the_front_matter_is_that_of_a_gradio_space():
    about = front_matter()
    assert about["sdk"] == "gradio" and about["license"] == "apache-2.0"
    assert (ROOT / about["app_file"]).is_file()
    assert about["suggested_hardware"].startswith(("cpu", "zero", "t4"))
    assert len(about["short_description"]) <= 60
    assert about["python_version"].strip('"') in ("3.10", "3.11", "3.12", "3.13")
    colours = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
    assert {about["colorFrom"], about["colorTo"]} <= colours


def test_the_space_takes_a_gradio_that_the_requirements_allow():
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    (wanted,) = [Requirement(line) for line in lines if line.startswith("gradio")]
    assert front_matter()["sdk_version"] in wanted.specifier and version("gradio") in wanted.specifier


def test_on_a_space_strangers_limits_hold_and_one_proxy_is_trusted(monkeypatch):
    app = importlib.import_module("app")
    made = {}

    class Pool:
        def __init__(self, *_, **options):
            made.update(options)

        def warm(self):
            pass

    monkeypatch.setenv("SPACE_ID", "owner/space")
    monkeypatch.setattr("ui.pool.Pool", Pool)
    monkeypatch.setattr("ui.app.build", lambda pool, room: pool)
    monkeypatch.setattr("ui.app.serve", lambda demo, **options: made.update(options))
    monkeypatch.setattr("sys.argv", ["app.py"])
    app.main()
    assert made["public"] is True and made["server_name"] == "0.0.0.0"
    assert Limits.of(True).proxies == 1
    monkeypatch.delenv("SPACE_ID")
    app.main()
    assert made["public"] is False and made["server_name"] == "127.0.0.1"


# --- the container ----------------------------------------------------------------------------------------


def instructions():
    joined = DOCKERFILE.replace("\\\n", " ")
    return [line.split(None, 1) for line in joined.splitlines() if line.strip() and not line.startswith("#")]


def test_the_container_ends_as_an_ordinary_user():
    users = [rest for word, rest in instructions() if word == "USER"]
    assert users and users[-1] not in ("root", "0")
    assert f" {users[-1]}" in next(rest for word, rest in instructions() if "useradd" in rest)
    words = [word for word, _ in instructions()]
    assert words[0] == "FROM" and words[-1] == "CMD" and words.index("USER") < words.index("CMD")
    assert "RUN" not in words[words.index("USER") :] and "ADD" not in words


def test_the_container_copies_what_the_app_needs():
    copied = [name for word, rest in instructions() if word == "COPY" for name in rest.split()[:-1]]
    assert all((ROOT / name).exists() for name in copied)
    ours = {path.name for path in ROOT.iterdir() if (path / "__init__.py").is_file()} | {
        "app.py",
        "bilingual.py",
    }
    needed = {"app.py", "bilingual.py"}
    for path in [
        ROOT / "app.py",
        *(ROOT / "ui").rglob("*.py"),
        *(ROOT / "surgery").rglob("*.py"),
        *(ROOT / "models").rglob("*.py"),
    ]:
        found = re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        needed |= {name for name in found if name in ours}
    assert needed <= set(copied)


def test_the_container_runs_a_command_that_the_app_knows():
    app = importlib.import_module("app")
    command = json.loads(next(rest for word, rest in instructions() if word == "CMD"))
    assert command[:2] == ["python", "app.py"]
    options = app.arguments().parse_args(command[2:])
    assert options.public and options.host == "0.0.0.0"
    exposed = next(rest for word, rest in instructions() if word == "EXPOSE")
    assert options.port == int(exposed) and f":{exposed}/" in DOCKERFILE


# --- versions ---------------------------------------------------------------------------------------------


def test_the_constraints_are_exact_and_fit_the_requirements():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert "torch" not in pinned
    for name in ("requirements.txt", "requirements-dev.txt"):
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
            bare = line.partition("#")[0].strip()
            if not bare or bare.startswith(("-r", "torch", "setuptools")):
                continue
            need = Requirement(bare)
            assert pinned[need.name.lower()] in SpecifierSet(str(need.specifier)), bare


def test_every_licence_is_listed(capsys, monkeypatch):
    from benchmarks import licences

    monkeypatch.setattr("sys.argv", ["licences.py"])
    assert licences.main() == 0
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    assert {"torch", "transformers", "gradio", "matplotlib", "pytest", "starlette"} <= listed


@pytest.mark.parametrize(
    "block", re.findall(r"```sh\n(.*?)```", (ROOT / "docs/deploying.md").read_text("utf-8"), re.DOTALL)
)
def test_the_commands_of_the_document_name_files_that_exist(block):
    for line in block.splitlines():
        words = shlex.split(line)
        if words[0] == "python":
            assert (ROOT / words[1]).is_file()
