import pytest

from tests.surgery import bench


@pytest.fixture(scope="session", params=bench.SPECIMENS)
def specimen(request) -> bench.Specimen:
    """Each of the tiny models."""
    return bench.SPECIMENS[request.param]()


@pytest.fixture(scope="session")
def tiny() -> bench.Specimen:
    """One tiny model, where one is enough."""
    return bench.SPECIMENS["bert"]()
