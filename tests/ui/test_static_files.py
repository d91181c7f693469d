import re

import pytest

from ui.static_files import FOLDER, static_text
from ui.texts import TEXTS

SCRIPTS = sorted(path.name for path in FOLDER.glob("*.js"))
SHEETS = sorted(path.name for path in FOLDER.glob("*.css"))


@pytest.mark.parametrize("name", SHEETS)
def test_a_style_sheet_passes_through_the_template_engines_unchanged(name):
    assert not re.search(r"`|\\|\$\{|\{\{", static_text(name))


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_never_turn_text_into_markup(name):
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", static_text(name)
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_use_no_address(name):
    assert "://" not in static_text(name)


def test_scripts_ask_only_for_words_that_exist():
    for name, prefix in (("heatmap.js", "attention"), ("headgrid.js", "grid")):
        asked = set(re.findall(r'\bword\("(\w+)"', static_text(name)))
        assert asked
        assert {f"{prefix}.{key}" for key in asked} <= set(TEXTS)


def test_the_browser_gets_less_than_100_kilobytes():
    assert sum(len(static_text(name).encode()) for name in SCRIPTS + SHEETS) < 100_000
