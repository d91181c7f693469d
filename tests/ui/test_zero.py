"""ZeroGPU, mimicked: the run happens in a fork that gets pickled plain data and gives pickled plain data back."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import surgery as sg
from bilingual import Words
from ui import zero
from ui.limits import LimitError
from ui.pool import NotAllowedError

ROOT = Path(__file__).parents[2]
SCRIPT = """
import os, pickle, sys, types, warnings

def GPU(duration):
    assert duration <= 60
    def decorate(function):
        def call(*arguments):
            sent = pickle.dumps(arguments)
            reading, writing = os.pipe()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of forks in processes with threads
                child = os.fork()
            if child == 0:
                try:
                    found = (True, function(*pickle.loads(sent)))
                except BaseException as error:
                    found = (False, error)
                with os.fdopen(writing, "wb") as pipe:
                    pickle.dump(found, pipe)
                os._exit(0)
            os.close(writing)
            with os.fdopen(reading, "rb") as pipe:
                fine, found = pickle.load(pipe)
            os.waitpid(child, 0)
            calls.append(child)
            if not fine:
                raise found
            return found
        return call
    return decorate

calls = []
sys.modules["spaces"] = types.ModuleType("spaces")
sys.modules["spaces"].GPU = GPU
sys.modules["spaces"].__spec__ = types.SimpleNamespace()
os.environ["SPACES_ZERO_GPU"] = "true"

import torch
torch.set_num_threads(1)
import surgery as sg
from ui import operating, present, zero
from ui.link import Setting
from ui.pool import Pool
from ui.steps import from_plan

here, there = Pool("encoder", device="cpu"), Pool("encoder", device="cpu")
zero.prepare(there)
for plan in (sg.Plan(), sg.Plan(sg.Temperature(2.0).at("L0.H1"), sg.WeightDropout(0.3, 7)), sg.Plan(sg.RemovePositions())):
    setting = Setting("the dog [MASK] the cat", other="the cat", model="encoder", steps=from_plan(plan), pad_to=9)
    a, b = (operating.operate(pool, setting).comparison for pool in (here, there))
    assert a.to_dict() == b.to_dict()
    assert torch.equal(a.operated.weights, b.operated.weights) and torch.equal(a.baseline.hidden, b.baseline.hidden)
    assert [a.notices(lang) for lang in ("en", "zh")] == [b.notices(lang) for lang in ("en", "zh")]
    assert present.html(operating.Operated(a, setting), "zh") == present.html(operating.Operated(b, setting), "zh")
try:
    operating.operate(there, Setting("the dog", model="encoder", steps=from_plan(sg.Plan(sg.HideSelf().at("L9")))))
except sg.SurgeryError as error:
    assert "layers are 0-1" in str(error) and "0-1" in error.say("zh")
else:
    raise AssertionError("it was not refused")
print(len(calls), "forks")
"""


def test_a_run_in_a_fork_is_the_run_itself():
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=180
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "4 forks"


def test_what_crosses_is_plain(encoder):
    data = zero.plain(sg.compare(encoder, "the dog saw the cat", sg.HideSelf()))

    def parts(value):
        if isinstance(value, dict):
            value = value.values()
        if isinstance(value, str) or not hasattr(value, "__iter__") or isinstance(value, np.ndarray):
            yield value
            return
        for part in value:
            yield from parts(part)

    assert {type(part) for part in parts(data)} <= {
        str,
        int,
        float,
        bool,
        type(None),
        np.ndarray,
        np.float64,
        np.int64,
    }
    assert not [part for part in parts(data) if isinstance(part, torch.Tensor)]


def test_elsewhere_nothing_changes(monkeypatch):
    class Anything:
        elsewhere = None

    monkeypatch.delenv("SPACES_ZERO_GPU", raising=False)
    pool = Anything()
    zero.prepare(pool)
    assert pool.elsewhere is None


@pytest.mark.parametrize("kind", [sg.SurgeryError, NotAllowedError, LimitError])
def test_errors_cross_processes_in_both_languages(kind):
    error = pickle.loads(pickle.dumps(kind("one", "一")))
    assert type(error) is kind and str(error) == "one" and error.words == Words("one", "一")
    assert pickle.loads(pickle.dumps(LimitError("one", "一", "text"))).place == "text"
