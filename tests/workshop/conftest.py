import functools

import pytest

from models import load


@pytest.fixture(scope="session")
def patients():
    """name -> the loaded model; each is loaded once."""
    return functools.cache(lambda name: load(name, device="cpu"))
