import functools

import pytest
import torch

from models import load


@pytest.fixture(scope="session")
def patients():
    """name -> the loaded model; each is loaded once."""
    return functools.cache(lambda name: load(name, device="cpu"))


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """The models here are so small that threads within an operation only get in each other's way."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
