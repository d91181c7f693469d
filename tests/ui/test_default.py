"""The committed first result is what the model gives now."""

import base64

import numpy as np
import pytest

from ui import default


@pytest.fixture(scope="module")
def both():
    return default.stored(), default.compute()


def decoded(heat, name):
    return np.frombuffer(base64.b64decode(heat[name]), "<u2").astype(float) * heat["scale"] / 65534


@pytest.mark.parametrize("name", ["baseline", "operated"])
def test_the_stored_maps_are_those_of_the_model(both, name):
    stored, fresh = (heat["heat"] for heat in both)
    assert decoded(stored, name) == pytest.approx(decoded(fresh, name), abs=1e-4)


def test_the_rest_of_the_stored_maps_is_the_same(both):
    stored, fresh = (dict(heat["heat"]) for heat in both)
    for name in ("divergence", "largest"):
        assert np.array(stored.pop(name)) == pytest.approx(np.array(fresh.pop(name)), abs=1e-4)
    for heat in (stored, fresh):
        for name in ("baseline", "operated", "stamp", "scale"):
            heat.pop(name)
    assert stored == fresh


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_stored_panels_are_those_of_today(both, lang):
    """If this fails: `python -m ui.default` writes them anew."""
    stored, fresh = both
    assert stored[lang] == fresh[lang]
