"""No test asks a hub or a GPU for anything by accident, and bits do not depend on who ran before.

Set before transformers and torch are imported, and inherited by every process that a test starts.
"""

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"  # float32's last bits depend on it; and the tests share the cores
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest

import models


@pytest.fixture(scope="session")
def minilm() -> models.LoadedModel:
    return models.load("minilm", device="cpu")


@pytest.fixture(scope="session")
def encoder() -> models.LoadedModel:
    return models.load("encoder", device="cpu")
