"""The wheel: what is in it, what it needs, and that it works where there is no checkout and no Gradio."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

tomllib = pytest.importorskip("tomllib")  # Python 3.11
ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OURS = ("bilingual.py", "surgery/", "models/", "workshop/")


def run(*command, **options):
    done = subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, timeout=300, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy of what git tracks, without the network."""
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("built")
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    assert listed.returncode == 0, listed.stderr
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    run("-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-q", "-w", built, source)
    (path,) = built.glob("*.whl")
    return path


def test_the_wheel_holds_the_packages_their_data_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    packed = {name for name in names if ".dist-info/" not in name}
    assert all(name.startswith(OURS) for name in packed)
    tracked = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    code = {name for name in tracked.stdout.splitlines() if name.startswith(OURS) and name.endswith(".py")}
    assert {name for name in packed if name.endswith(".py")} == code
    for model in ("encoder", "encoder-zh", "characters", "translator"):
        for file in ("model.safetensors", "config.json", "tokenizer.json", "README.md"):
            assert f"models/checkpoints/{model}/{file}" in packed
    assert {"surgery/py.typed", "models/py.typed"} <= packed
    assert not [name for name in packed if "__pycache__" in name or name.endswith((".bin", ".pt", ".pkl"))]
    assert wheel.stat().st_size < 5_000_000


def test_the_wheel_needs_no_gradio_and_its_version_is_semantic(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        about = message_from_bytes(archive.read(name))
    assert (
        re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", about["Version"])
        and about["Version"] == PROJECT["version"]
    )
    plain = [need for need in about.get_all("Requires-Dist") if "extra ==" not in need]
    assert not [need for need in plain if "gradio" in need.lower()]
    assert {"app", "dev", "bench", "sweeps"} <= set(about.get_all("Provides-Extra"))


def test_it_works_alone_where_gradio_cannot_be_imported(wheel, tmp_path):
    target = tmp_path / "site"
    run("-m", "pip", "install", "--no-deps", "--no-index", "-q", "--target", target, wheel)
    script = (
        "import sys; sys.modules['gradio'] = None\n"
        "import surgery as sg, models\n"
        f"assert sg.__file__.startswith({str(target)!r}) and models.__file__.startswith({str(target)!r})\n"
        "for name in ('encoder', 'encoder-zh', 'minilm'):\n"
        "    print(sg.compare(models.load(name), 'the dog', sg.RemovePositions()).verdict())\n"
    )
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    said = run(
        "-c", script, cwd=tmp_path, env={**environment, "PYTHONPATH": str(target), "HF_HUB_OFFLINE": "1"}
    )
    assert len(said.strip().splitlines()) == 3


def test_nothing_that_is_installed_imports_gradio():
    for package in ("surgery", "models", "workshop"):
        for path in (ROOT / package).rglob("*.py"):
            assert not re.search(
                r"^\s*(import|from) gradio\b", path.read_text(encoding="utf-8"), re.MULTILINE
            ), path


def requirements(name):
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return {line.partition("#")[0].strip() for line in lines} - {""}


def test_the_requirements_are_those_of_the_project():
    extras = PROJECT["optional-dependencies"]
    assert requirements("requirements.txt") == {*PROJECT["dependencies"], *extras["app"]}
    developer = {*extras["dev"], *extras["sweeps"], *extras["bench"]} - {
        "attention-surgery[app,sweeps,bench]"
    }
    assert requirements("requirements-dev.txt") - {"-r requirements.txt"} == developer
