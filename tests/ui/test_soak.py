"""A minute of many visitors; `python benchmarks/soak.py` takes five."""

import sys

import pytest

from benchmarks import soak


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the memory of a process from /proc")
def test_many_visitors_are_each_answered_as_if_alone(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS")  # as a server runs that nobody set up for tests
    seen = soak.run(clients=8, seconds=60, variants=16)
    assert seen.wrong == []
    broken = [what for what in soak.report(seen) if not what.startswith("memory grew")]
    assert broken == []
    assert seen.level(0.8, 1) < 1.25 * seen.level(
        0, 0.2
    )  # a minute is mostly warm-up; what it settles at is for the longer run
    for kind in ("operate", "baseline", "page", "breaks", "afterwards"):
        assert seen.answers[kind], kind
