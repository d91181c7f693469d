"""A few hundred random requests to the real server; `python benchmarks/fuzz.py` sends ten thousand."""

from benchmarks import fuzz


def test_every_random_request_gets_a_right_answer_or_a_clear_error():
    check = fuzz.run(300, seed=7)
    assert check.failures == []
    for kind in ("operate: answer", "operate: error", "event: answer", "raw: refused", "good"):
        assert check.counts[kind], kind
