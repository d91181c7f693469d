import pytest
import torch

from tests.surgery import bench


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """The models here are so small that threads within an operation only get in each other's way."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session", params=bench.SPECIMENS)
def specimen(request) -> bench.Specimen:
    """Each of the tiny models."""
    return bench.SPECIMENS[request.param]()


@pytest.fixture(scope="session")
def tiny() -> bench.Specimen:
    """One tiny model, where one is enough."""
    return bench.SPECIMENS["bert"]()
