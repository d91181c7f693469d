"""Things that break: each is said in words, what was there before still works, nothing is half-written."""

import dataclasses
import os
import re
import shutil
import socket
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import models
import surgery as sg
from models import LoadError, shipped
from surgery.flow import capture_bytes
from ui import guard, operating
from ui.app import _operate_api
from ui.guard import Refused
from ui.limits import OWN
from ui.link import Setting
from ui.pool import Pool

ROOT = Path(__file__).parents[1]
CHINESE = "[一-鿿]"


@pytest.fixture
def checkpoint(tmp_path):
    """A copy of the English encoder's folder, to be spoiled."""
    return Path(shutil.copytree(shipped.CHECKPOINTS / "encoder", tmp_path / "encoder"))


@pytest.fixture(scope="module")
def pool():
    return Pool("encoder", device="cpu")


def spoil(folder, change):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path, metadata={"format": "pt"})


def refused_and_goes_on(pool, folder, says):
    """The pool refuses the folder in words; the model that was there answers as before."""
    before = operating.operate(pool, Setting("the dog", model="encoder")).comparison
    with pytest.raises(LoadError, match=says) as caught:
        pool.get(str(folder))
    assert re.search(CHINESE, caught.value.say("zh")) and "\n" not in str(caught.value)
    assert pool.ready("encoder") and not pool.ready(str(folder))
    after = operating.operate(pool, Setting("the dog", model="encoder")).comparison
    assert torch.equal(before.operated.hidden, after.operated.hidden)


# --- checkpoints ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused(pool, checkpoint, value):
    name = sorted(load_file(checkpoint / "model.safetensors"))[3]
    spoil(checkpoint, lambda tensors: tensors[name].view(-1)[-1:].fill_(value))
    refused_and_goes_on(pool, checkpoint, "not finite")


def test_a_corrupt_checkpoint_is_refused(pool, checkpoint):
    path = checkpoint / "model.safetensors"
    path.write_bytes(b"\xff" * 100 + path.read_bytes()[100:])
    refused_and_goes_on(pool, checkpoint, "weights .* cannot be read")


def test_a_cut_checkpoint_is_refused(pool, checkpoint):
    path = checkpoint / "model.safetensors"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    refused_and_goes_on(pool, checkpoint, "weights .* cannot be read")


def test_a_tokenizer_that_does_not_fit_is_said_and_its_text_is_refused(checkpoint):
    spoil(checkpoint, lambda tensors: [_cut_rows(tensors, name) for name in list(tensors)])
    config = checkpoint / "config.json"
    vocabulary = models.load("encoder").vocab_size
    config.write_text(config.read_text().replace(f'"vocab_size": {vocabulary}', '"vocab_size": 20'))
    patient = models.load(checkpoint, device="cpu")
    assert any("tokenizer gives ids up to" in caveat.en for caveat in patient.caveats)
    words = [word for word, i in patient.tokenizer.get_vocab().items() if i >= 20 and word.isalpha()]
    with pytest.raises(sg.SurgeryError, match="does not belong to this model"):
        sg.compare(patient, words[0])


def _cut_rows(tensors, name):
    vocabulary = models.load("encoder").vocab_size
    if tensors[name].shape[0] == vocabulary:
        tensors[name] = tensors[name][:20].clone()


# --- disk -------------------------------------------------------------------------------------------------


@pytest.fixture
def full_disk(monkeypatch):
    """The disk fills up in the middle of an export."""

    def full(*_, **__):
        raise OSError(28, "No space left on device", "weights.npz")

    monkeypatch.setattr(np, "savez_compressed", full)


def test_a_full_disk_leaves_nothing_half_written(encoder, tmp_path, full_disk, monkeypatch):
    comparison = sg.compare(encoder, "the dog", sg.HideSelf())
    (tmp_path / "plan.json").write_text("older")
    with pytest.raises(OSError, match="No space left"):
        comparison.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]
    assert (tmp_path / "plan.json").read_text() == "older"
    monkeypatch.undo()
    assert len(comparison.save(tmp_path)) > 5


def test_a_full_disk_is_a_sentence_on_the_command_line(tmp_path, full_disk, capsys):
    from surgery.__main__ import main

    folder = tmp_path / "out"
    for lang, word in (("en", "Error"), ("zh", "错误")):
        assert (
            main(["run", "--model", "encoder", "--text", "the dog", "--out", str(folder), "--lang", lang])
            == 2
        )
        said = capsys.readouterr().err
        assert said.startswith(word) and "No space left" in said and "Traceback" not in said
        assert not folder.exists() or list(folder.iterdir()) == []


# --- memory -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang, says", [("en", "--device cpu"), ("zh", "显存不足")])
def test_an_accelerator_without_memory_is_said_and_freed(pool, monkeypatch, caplog, lang, says):
    freed = []

    def full(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")

    with monkeypatch.context() as patch:
        patch.setattr(sg, "compare", full)
        patch.setattr(guard, "free", lambda: freed.append(True))
        with pytest.raises(Refused) as caught:
            _operate_api(pool)("the dog", model="encoder", lang=lang)
    assert says in caught.value.message and "GiB" not in caught.value.message
    assert freed and "out of memory" in caplog.text
    assert _operate_api(pool)("the dog", model="encoder")["tokens"]


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("full"), RuntimeError("broken"), sg.OperationError("No.", "不行。")]
)
def test_a_refusal_lets_go_of_what_the_error_held(error):
    held = []

    def run():
        tensor = torch.zeros(3)
        held.append(weakref.ref(tensor))
        raise error

    def told():
        try:
            run()
        except Exception as raised:
            raise sg.PlanError("That, too.", "还有。") from raised

    for what in (run, told):
        try:
            what()
        except Exception as raised:
            guard.refusal(raised, "en")
            assert held.pop()() is None


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_would_take_too_much_says_its_size_and_keeps_statistics(encoder, lang):
    text = "the dog saw the cat"
    whole = sg.compare(encoder, text, sg.HideSelf())
    size = capture_bytes(2, 4, 1, len(whole.tokens))
    assert sg.compare(encoder, text, sg.HideSelf(), most_bytes=size).baseline.weights is not None
    c = sg.compare(encoder, text, sg.HideSelf(), most_bytes=size - 1)
    assert c.baseline.weights is None and len(c.heads) == 8
    assert any("MiB" in said and "2 × 4" in said for said in c.notices(lang))
    assert c.heads["js_divergence"].tolist() == pytest.approx(whole.heads["js_divergence"].tolist(), abs=1e-5)
    assert sg.compare(encoder, text, sg.HideSelf(), [1], most_bytes=1).baseline.layers == (1,)


def test_512_tokens_of_a_large_bert_are_more_than_is_kept():
    assert capture_bytes(24, 16, 1, 512) > 2**30 > capture_bytes(12, 12, 1, 512)


# --- servers ----------------------------------------------------------------------------------------------


def test_a_second_server_on_one_port_says_so():
    with socket.create_server(("127.0.0.1", 0)) as first:
        port = first.getsockname()[1]
        environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
        command = [sys.executable, "app.py", "--model", "encoder", "--port", str(port)]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert f"Port {port} cannot be had" in done.stderr and f"端口 {port}" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_limit_that_is_none_ends_the_start_in_a_sentence():
    environment = {**os.environ, "SURGERY_TOKENS": "many"}
    done = subprocess.run(
        [sys.executable, "app.py"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1 and "SURGERY_TOKENS = 'many' is not possible" in done.stderr
    assert "Traceback" not in done.stderr


def test_models_are_let_go_when_others_come():
    import gc

    pool = Pool("encoder", device="cpu", limits=dataclasses.replace(OWN, models=2))
    alive = []
    for turn in range(10):
        name = ("encoder", "encoder-zh", "characters", "encoder-untrained")[turn % 4]
        patient = pool.get(name)
        operating.operate(pool, Setting("the dog", model=name))
        with pytest.raises(sg.SurgeryError):
            operating.operate(pool, Setting("", model=name))
        alive.append(weakref.ref(patient.model))
        del patient
        gc.collect()
        assert len({id(model) for ref in alive if (model := ref()) is not None}) <= 2
