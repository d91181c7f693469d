"""A few hundred random requests to the real server; `python benchmarks/fuzz.py` sends ten thousand."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_random_request_gets_a_right_answer_or_a_clear_error():
    # In a process of its own: right answers are compared bit for bit, and other tests change the number of threads.
    command = [sys.executable, "benchmarks/fuzz.py", "--count", "300", "--seed", "7"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    for kind in ("operate: answer", "operate: error", "event: answer", "raw: refused", "good"):
        assert kind in done.stdout, kind
