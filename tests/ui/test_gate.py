"""A server for strangers: what it refuses before reading, what it says when something breaks, what it keeps of a visitor."""

import asyncio
import dataclasses
import json
import re
import threading
import time
from pathlib import Path

import httpx
import pytest

from tests.ui.conftest import untidy
from ui import operating
from ui.app import ENDPOINTS, build
from ui.app import serve as launch
from ui.gate import Gate, Rates, address, depth
from ui.limits import PUBLIC
from ui.outbox import ExportError, Outbox
from ui.pool import Pool

SMALL = dataclasses.replace(
    PUBLIC, request_bytes=20_000, file_bytes=5_000, queue=3, queue_share=2, sessions=4, proxies=1
)
GOOD = {"text": "the dog saw the cat", "model": "encoder", "plan": {"version": 1, "operations": []}}


class Server:
    """The app in this process."""

    def __init__(self, limits=SMALL):
        pool = Pool("encoder", device="cpu", public=True, limits=limits)
        with untidy():
            self.demo = build(pool)
            _, url, _ = launch(self.demo, server_name="127.0.0.1", prevent_thread_lock=True, quiet=True)
        self.api = f"{url}gradio_api/"
        pool.get("encoder")

    def post(self, route, body=None, **options):
        content = body if isinstance(body, bytes) else json.dumps(body)
        headers = {"content-type": "application/json", **options.pop("headers", {})}
        return httpx.post(self.api + route, content=content, headers=headers, timeout=60, **options)

    def ask(self, name="operate", body=None, **options):
        """(event, data) of one call."""
        given = self.post(f"call/v2/{name}", GOOD if body is None else body, **options)
        assert given.status_code == 200, given.text
        said = httpx.get(f"{self.api}call/{name}/{given.json()['event_id']}", timeout=60).text
        event, data = re.findall("event: (.*)\ndata: (.*)", said)[-1]
        return event, json.loads(data)

    def close(self):
        with untidy():
            self.demo.close(verbose=False)


@pytest.fixture(scope="module")
def server():
    one = Server()
    yield one
    one.close()


def said(answer, status, pattern):
    assert answer.status_code == status, answer.text
    assert re.search(pattern, answer.json()["detail"]), answer.text
    assert answer.json()["detail"] == answer.json()["error"]
    assert not re.search("Traceback|site-packages|/opt|/home|/tmp", answer.text)


def test_a_good_request_is_answered(server):
    event, (found,) = server.ask()
    assert event == "complete" and found["tokens"][1] == "the"


@pytest.mark.parametrize("route", ["call/v2/operate", "call/operate", "queue/join", "run/predict", "cancel"])
@pytest.mark.parametrize(
    "body, status, what",
    [
        (json.dumps({"text": "x" * 20_000}).encode(), 413, "bytes in a request.* 20000"),
        (b'{"a":' * 17 + b"1" + b"}" * 17, 413, "inside each other.* 16"),
        (b"[" * 10_000, 413, "inside each other"),
        (b'{"text": "' + b'\\"' * 9_000, 400, "not a JSON object"),
        (b'{"text": ' + b"9" * 5_000 + b"}", 400, "not a JSON object"),
        (b'{"text"', 400, "not a JSON object"),
        (b"[1]", 400, "not a JSON object"),
        (b"\xff\xfe", 400, "not a JSON object"),
    ],
    ids=["large", "deep", "deeper", "unclosed", "digits", "cut", "list", "bytes"],
)
def test_what_is_too_large_too_deep_or_no_json_is_refused_before_it_is_read(
    server, route, body, status, what
):
    said(server.post(route, body), status, what)
    chinese = server.post(route, body, headers={"accept-language": "zh-CN,zh"}).json()["detail"]
    assert re.search("[一-鿿]", chinese)


@pytest.mark.parametrize(
    "route",
    ["vibe-edit", "process_recording", "component_server", "stream/x", "run-history/connect", "login", "x", "call/nothing", "call/v2/_run", "call/v2/"],
)  # fmt: skip
def test_nothing_else_can_be_posted_to(server, route):
    said(server.post(route, {}), 404, "no such address")


@pytest.mark.parametrize(
    "route, body",
    [
        ("queue/join", {"data": [], "fn_index": 10_000, "session_hash": "x"}),
        ("queue/join", {"data": [], "fn_index": -1, "session_hash": "x"}),
        ("run/predict", {"data": [], "fn_index": 10_000}),
        ("call/v2/operate", {"txet": "hello"}),
        ("call/v2/operate", {}),
    ],
)
def test_what_the_framework_trips_over_is_said_in_a_sentence(server, route, body):
    said(server.post(route, body), 400, "cannot be read")
    assert server.ask()[0] == "complete"


def test_files_and_runs_are_read_from_nowhere_but_the_uploads(server):
    for path in ("/etc/passwd", "app.py", "../app.py", str(Path.cwd() / "app.py")):
        found = httpx.get(f"{server.api}file={path}")
        assert found.status_code in (403, 404) and "root:" not in found.text and "import" not in found.text
    index = next(i for i, fn in server.demo.fns.items() if fn.name == "on_sweep_file")
    file = {"path": str(Path.cwd() / "app.py"), "meta": {"_type": "gradio.FileData"}}
    found = server.post("run/predict", {"data": [file, "zh"], "fn_index": index, "session_hash": "reader"})
    assert found.json()["error"] == "请求中有一个值的类型不被本服务器接受。"


def test_an_upload_is_limited_and_not_kept_after_it_was_read(server):
    def upload(content):
        return httpx.post(f"{server.api}upload", files={"files": ("a<b>.txt", content)}, timeout=30)

    said(upload(b"x" * 16_000), 413, "bytes in a request")
    (path,) = upload(b"the dog\nthe cat").json()
    assert Path(path).is_file()
    index = next(i for i, fn in server.demo.fns.items() if fn.name == "on_sweep_file")
    file = {"path": path, "meta": {"_type": "gradio.FileData"}, "orig_name": "a.txt"}
    found = server.post("run/predict", {"data": [file, "en"], "fn_index": index, "session_hash": "reader"})
    assert found.json()["data"][0] == "the dog\nthe cat"
    assert not Path(path).exists()


@pytest.mark.parametrize("lang, words", [("en", "Something went wrong on the server"), ("zh", "服务器出错")])
def test_an_unexpected_error_reaches_the_caller_as_one_sentence(server, monkeypatch, caplog, lang, words):
    def broken(*_):
        raise RuntimeError(f"secret in {__file__}")

    monkeypatch.setattr(operating, "operate", broken)
    event, data = server.ask(body=GOOD | {"lang": lang})
    assert event == "error" and words in data["error"]
    assert "secret" not in json.dumps(data) and __file__ not in json.dumps(data)
    assert "secret" in caplog.text and "Traceback" in caplog.text
    monkeypatch.undo()
    assert server.ask()[0] == "complete"


def test_a_script_leaves_nothing_behind_on_the_server(server):
    before = len(server.demo.state_holder.session_data)
    for _ in range(2 * SMALL.sessions):
        server.ask()
    assert len(server.demo.state_holder.session_data) <= before


# --- rate and queue ---------------------------------------------------------------------------------------


def test_a_full_queue_says_so_and_nobody_takes_all_of_it(server, monkeypatch):
    gate = threading.Event()
    real = operating.operate
    monkeypatch.setattr(operating, "operate", lambda *a: gate.wait(60) and real(*a))

    def ask(who):
        return server.post("call/v2/operate", GOOD, headers={"x-forwarded-for": f"9.9.9.9, {who}"})

    def settled(count):
        for _ in range(200):
            if len(server.demo._queue) == count:
                return
            time.sleep(0.02)
        raise AssertionError(len(server.demo._queue))

    try:
        for _ in range(SMALL.runs_at_once):
            assert ask("1.1.1.1").status_code == 200
            settled(0)
        assert [ask("1.1.1.1").status_code for _ in range(2)] == [200, 200]
        settled(2)
        said(ask("1.1.1.1"), 429, "queue is full: 2 .* 2 may")
        assert ask("2.2.2.2").status_code == 200
        settled(3)
        said(ask("3.3.3.3"), 429, "queue is full: 3 .* 3 may")
    finally:
        gate.set()
    settled(0)
    assert server.ask()[0] == "complete"


def test_rates_are_of_an_address_and_their_memory_is_bounded(monkeypatch):
    now = [0.0]
    rates = Rates(60, clock=lambda: now[0])
    assert [rates.may("a") for _ in range(16)] == [True] * 15 + [False]
    assert rates.may("b")
    now[0] = 1.5
    assert [rates.may("a") for _ in range(2)] == [True, False]
    monkeypatch.setattr("ui.gate.ADDRESSES", 10)
    for number in range(100):
        rates.may(str(number))
    assert len(rates.buckets) == 10


def test_too_many_requests_are_refused_in_words(server):
    gate = Gate(None, dataclasses.replace(SMALL, requests_a_minute=4), server.demo)
    scope = {"type": "http", "method": "POST", "path": "/gradio_api/upload", "headers": []}
    gate.open["x"] = 1
    assert gate.refusal(scope, "x") is None
    status, words = gate.refusal(scope, "x")
    assert status == 429 and "4" in words.en and "4" in words.zh
    gate.open["x"] = SMALL.connections + 1
    assert gate.refusal(scope | {"method": "GET"}, "x")[0] == 429


def test_a_body_that_never_ends_is_given_up(server):
    gate = Gate(None, dataclasses.replace(SMALL, request_seconds=1), server.demo)
    sent = []

    async def receive():
        await asyncio.sleep(0.4)
        return {"type": "http.request", "body": b" ", "more_body": True}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/gradio_api/cancel", "headers": []}
    one = threading.Thread(
        target=lambda: asyncio.run(gate(scope, receive, send))
    )  # Playwright has a loop in ours
    one.start()
    one.join(20)
    assert sent[0]["status"] == 408 and not gate.open


def test_an_address_is_believed_only_from_our_own_proxies():
    scope = {"headers": [(b"x-forwarded-for", b"6.6.6.6, 1.2.3.4")], "client": ("127.0.0.1", 1)}
    assert [address(scope, proxies) for proxies in (0, 1, 2, 3)] == [
        "127.0.0.1",
        "1.2.3.4",
        "6.6.6.6",
        "127.0.0.1",
    ]


def test_depth_counts_no_brackets_in_texts_and_takes_little_time():
    assert depth(b'{"a": "[[[[\\"[[[["}', 9) == 1
    assert depth(b"[[[]],[[[]]]]", 9) == 4
    for bomb in (b'"\\' * 500_000, b'\\"' * 500_000, b'"' * 1_000_000, b'"a' * 500_000, b"[" * 1_000_000):
        start = time.perf_counter()
        depth(bomb, 16)
        assert time.perf_counter() - start < 2


def test_only_the_endpoints_for_scripts_are_public(server):
    public = {fn.api_name for fn in server.demo.fns.values() if fn.api_visibility == "public"}
    assert public == set(ENDPOINTS)


# --- files to take away -----------------------------------------------------------------------------------


def write(folder):
    (folder / "a.txt").write_text("a")


def test_the_outbox_holds_one_folder_of_each_visitor_for_a_while(tmp_path):
    now = [0.0]
    box = Outbox(tmp_path, most=2, seconds=10, clock=lambda: now[0])
    (first,) = box.fill("anna", write)
    (again,) = box.fill("anna", write)
    assert not first.parent.exists() and again.read_text() == "a"
    box.fill("bert", write)
    box.fill("cleo", write)
    assert not again.exists() and len(list(tmp_path.iterdir())) == 2
    now[0] = 11
    (last,) = box.fill("dora", write)
    assert list(tmp_path.iterdir()) == [last.parent]
    box.drop("dora")
    box.drop("nobody")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_said_and_leaves_nothing_half_written(tmp_path):
    def full(folder):
        write(folder)
        raise OSError(28, "No space left on device")

    box = Outbox(tmp_path, most=2, seconds=10)
    with pytest.raises(ExportError, match="disk is full") as caught:
        box.fill("anna", full)
    assert re.search("磁盘", caught.value.say("zh")) and str(tmp_path) not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    assert box.fill("anna", write)
