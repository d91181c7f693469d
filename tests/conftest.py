"""No test asks a hub or a GPU for anything by accident. Set before transformers and torch are imported."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest
import torch

import models


@pytest.fixture(scope="session")
def minilm() -> models.LoadedModel:
    return models.load("minilm", device="cpu")


@pytest.fixture(scope="session")
def encoder() -> models.LoadedModel:
    return models.load("encoder", device="cpu")


@pytest.fixture(autouse=True)
def same_number_of_threads():
    """Bits depend on it: a test that changes it does so for itself alone."""
    before = torch.get_num_threads()
    yield
    if torch.get_num_threads() != before:
        torch.set_num_threads(before)
