import pytest
import torch

import models
from models.placement import choose_device, choose_dtype, present_devices


@pytest.fixture
def machine(monkeypatch):
    """machine(cuda=2, mps=True): pretend to be one with these."""

    def pretend(cuda=0, mps=False):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)

    return pretend


@pytest.mark.parametrize(
    ("has", "present"),
    [
        ({}, ["cpu"]),
        ({"mps": True}, ["mps", "cpu"]),
        ({"cuda": 2}, ["cuda:0", "cuda:1", "cpu"]),
        ({"cuda": 1, "mps": True}, ["cuda:0", "mps", "cpu"]),
    ],
)
def test_auto_takes_the_best_that_is_here(machine, has, present):
    machine(**has)
    assert present_devices() == present
    assert choose_device() == torch.device(present[0])


def test_an_explicit_device(machine):
    machine(cuda=2)
    assert choose_device("cpu") == choose_device(torch.device("cpu")) == torch.device("cpu")
    assert choose_device("cpu:0") == torch.device("cpu")
    assert choose_device("cuda") == torch.device("cuda:0")
    assert choose_device("cuda:1") == torch.device("cuda:1")


@pytest.mark.parametrize("asked", ["cuda", "cuda:0", "mps", "gpu", "meta", "", 3, None, torch.device("cuda")])
def test_a_device_that_is_not_here_is_refused_with_what_is(machine, asked):
    machine()
    with pytest.raises(models.LoadError, match="Here are: cpu") as error:
        models.load("minilm", device=asked)
    assert "cpu" in error.value.say("zh")


def test_a_device_too_many(machine):
    machine(cuda=2)
    with pytest.raises(models.LoadError, match=r"'cuda:2'.*cuda:0, cuda:1, cpu"):
        choose_device("cuda:2")


@pytest.mark.parametrize(
    ("asked", "dtype"),
    [
        ("auto", torch.float32),
        ("float32", torch.float32),
        ("bfloat16", torch.bfloat16),
        ("float16", torch.float16),
        (torch.bfloat16, torch.bfloat16),
    ],
)
def test_dtypes(asked, dtype):
    assert choose_dtype(asked) == dtype


@pytest.mark.parametrize("asked", ["float64", "int8", "", "half", torch.float64, torch.int8, None, 16])
def test_other_dtypes_are_refused(asked):
    with pytest.raises(models.LoadError, match="float32, bfloat16, float16"):
        models.load("encoder", dtype=asked)
