"""Which of the many things that can be wrong with a hub id is it? Played on 127.0.0.1, in fresh interpreters."""

import contextlib
import functools
import hashlib
import http.server
import json
import shutil
import socket
import threading
import time

import pytest

import models
from models import LoadError, hub

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ASK = """
import sys, time
from bilingual import SurgeryError
from models.folders import find_folder
for name in sys.argv[1:]:
    start = time.perf_counter()
    try:
        print("found", find_folder(name))
    except SurgeryError as error:
        print(round(time.perf_counter() - start, 1), type(error).__name__, error, error.say("zh"))
"""


class Hub(http.server.BaseHTTPRequestHandler):
    """The part of the hub's protocol that a download uses, over one folder of repositories."""

    def __init__(self, *args, root, asked, **kwargs):
        self.root, self.asked = root, asked
        super().__init__(*args, **kwargs)

    def do_HEAD(self):
        self.answer(with_body=False)

    def do_GET(self):
        self.answer(with_body=True)

    def answer(self, with_body):
        self.asked.append(self.path)
        path = self.path.split("?")[0].strip("/").removeprefix("api/models/")
        owner, name, *rest = path.split("/")
        repo = self.root / owner / name
        refused = {"gated": (403, "GatedRepo"), "broken": (500, None), "mirror": (404, None)}.get(owner)
        if refused or not repo.is_dir():
            return self.reply(*(refused or (401, "RepoNotFound")))
        if rest[0] == "resolve":
            file = repo / rest[2]
            if with_body and owner == "breaks" and file.suffix == ".safetensors":
                return self.breaks(file.read_bytes())
            if not file.is_file():
                return self.reply(404, "EntryNotFound")
            return self.reply(200, body=file.read_bytes(), with_body=with_body)
        files = [
            {"rfilename": f.name, "path": f.name, "type": "file", "size": f.stat().st_size, "oid": COMMIT}
            for f in repo.iterdir()
        ]
        listing = files if rest[0] == "tree" else {"id": f"{owner}/{name}", "sha": COMMIT, "siblings": files}
        return self.reply(200, body=json.dumps(listing).encode())

    def breaks(self, body):
        """Refuses in the middle of a file, every time."""
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2])
        self.close_connection = True

    def reply(self, status, error=None, body=b"", with_body=True):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
        if error:
            self.send_header("X-Error-Code", error)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def our_hub(tmp_path):
    """(its address, the folder of its repositories, the paths it was asked for)"""
    root, asked = tmp_path / "hub", []
    root.mkdir()
    handler = functools.partial(Hub, root=root, asked=asked)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", root, asked
        server.shutdown()


@pytest.fixture
def silent_hub():
    """Accepts and never answers."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def ask(python):
    def ask(*names, **env):
        script = f"import sys; sys.argv = {['ask', *names]!r}\n{ASK}"
        return python(script, **env).strip().split("\n")

    return ask


WAYS_OUT = ("HF_ENDPOINT", "minilm", "folder")


def test_names_that_no_hub_needs_to_be_asked_about(our_hub, ask):
    address, _, asked = our_hub
    names = [
        "",
        "not a model id",
        "模型",
        "a--b",
        "x" * 200,
        "/no/such/folder",
        "./no-such",
        "../no-such",
        "~/none",
        "a/b/c",
    ]
    said = ask(*names, "bilingual.py", HF_ENDPOINT=address)
    for line in said[:5]:
        assert "is not a model id" in line and "不是模型名" in line
    for line in said[5:10]:
        assert "does not exist" in line and "不存在" in line
    assert "is a file" in said[10] and "是一个文件" in said[10]
    for line in said:
        assert line.split()[1] == "LoadError"
        assert all(line.count(way) >= 2 for way in WAYS_OUT[:2]) and "folder" in line
    assert asked == []


def test_what_is_not_a_name_at_all():
    for name in (None, 3, b"minilm", ["minilm"]):
        with pytest.raises(LoadError, match="is not a name"):
            models.load(name)


@pytest.mark.parametrize(
    ("name", "says", "in_chinese"),
    [
        ("no-such-org/no-such-model", 'has no model "no-such-org/no-such-model"', "上没有名为"),
        ("mirror/says-no-more-than-404", "has no model", "上没有名为"),
        ("gated/model", "is gated", "需要授权"),
        ("broken/model", "answered 500", "应答为 500"),
        ("real/pictures", "has no config.json", "没有 config.json"),
    ],
)
def test_a_hub_that_answers_no(our_hub, ask, name, says, in_chinese):
    address, root, _ = our_hub
    (root / "real" / "pictures").mkdir(parents=True)
    (line,) = ask(name, HF_ENDPOINT=address)
    assert says in line and in_chinese in line
    assert "No connection" not in line
    assert all(line.count(way) >= 2 for way in WAYS_OUT[:2])


def test_a_hub_that_is_not_there(ask):
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    (line,) = ask("owner/model", HF_ENDPOINT=f"http://127.0.0.1:{port}")
    assert "No connection" in line and "无法连接" in line and str(port) in line
    assert all(line.count(way) >= 2 for way in WAYS_OUT[:2])
    assert float(line.split()[0]) < 10


def test_a_hub_that_never_answers(silent_hub, python):
    said = python(
        "import time, models, torch\n"
        "start = time.perf_counter()\n"
        "try: models.load('owner/model')\n"
        "except models.LoadError as error: print(time.perf_counter() - start, error, error.say('zh'))\n",
        HF_ENDPOINT=silent_hub,
    )
    assert "No connection" in said and "无法连接" in said
    assert float(said.split()[0]) < 10


def test_a_name_server_that_never_answers(monkeypatch):
    monkeypatch.setattr(hub, "ANSWER_WITHIN", 0.1)
    monkeypatch.setattr(hub, "get_hf_file_metadata", lambda *args, **kwargs: time.sleep(2))
    start = time.perf_counter()
    with pytest.raises(LoadError, match=r"No connection.*no answer within 0.1 s"):
        models.load("owner/never-cached")
    assert time.perf_counter() - start < 1


def test_offline_is_honoured(our_hub, ask):
    address, _, asked = our_hub
    (line,) = ask("owner/model", HF_ENDPOINT=address, HF_HUB_OFFLINE="1")
    assert "HF_HUB_OFFLINE is set" in line and "已设置 HF_HUB_OFFLINE" in line
    assert asked == []


def test_a_model_is_fetched_once_and_then_read_from_the_cache(our_hub, save, python):
    address, root, asked = our_hub
    shutil.copytree(save("BertForMaskedLM"), root / "owner" / "bert")
    (root / "owner" / "bert" / "pytorch_model.bin").write_bytes(b"a pickle")
    script = (
        "import models; patient = models.load('owner/bert', device='cpu'); print(patient.name, patient.kind)"
    )
    assert python(script, HF_ENDPOINT=address).split() == ["owner/bert", "masked_lm"]
    fetched = {path.split("?")[0].rsplit("/", 1)[-1] for path in asked}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= fetched
    assert "pytorch_model.bin" not in fetched
    asked.clear()
    assert python(script, HF_ENDPOINT=address).split() == ["owner/bert", "masked_lm"]
    assert asked == []


def test_a_download_that_breaks_off_is_said_and_leaves_nothing_that_looks_whole(our_hub, save, python):
    address, root, _ = our_hub
    repo = shutil.copytree(save("BertForMaskedLM"), root / "breaks" / "bert")
    script = (
        "import models\n"
        "from models.hub import cached\n"
        "try: print(models.load('breaks/bert', device='cpu').kind)\n"
        "except models.LoadError as error: print(error, error.say('zh'), cached('breaks/bert'))\n"
    )
    said = python(script, HF_ENDPOINT=address, HF_HUB_DOWNLOAD_TIMEOUT="2")
    assert "No connection" in said and "无法连接" in said and said.strip().endswith("None")
    shutil.move(repo, root / "owner-bert")
    shutil.copytree(root / "owner-bert", root / "fine" / "bert")
    assert python(script.replace("breaks/", "fine/"), HF_ENDPOINT=address).strip() == "masked_lm"


def test_a_repository_of_pickles_is_refused(our_hub, save, python):
    address, root, _ = our_hub
    repo = shutil.copytree(save("BertForMaskedLM"), root / "owner" / "old")
    (repo / "model.safetensors").rename(repo / "pytorch_model.bin")
    script = "import models\ntry: models.load('owner/old')\nexcept models.LoadError as error: print(error)"
    assert "no complete safetensors" in python(script, HF_ENDPOINT=address)
