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
            if not file.is_file():
                return self.reply(404, "EntryNotFound")
            return self.reply(200, body=file.read_bytes(), with_body=with_body)
        files = [
            {"rfilename": f.name, "path": f.name, "type": "file", "size": f.stat().st_size, "oid": COMMIT}
            for f in repo.iterdir()
        ]
        listing = files if rest[0] == "tree" else {"id": f"{owner}/{name}", "sha": COMMIT, "siblings": files}
        return self.reply(200, body=json.dumps(listing).encode())

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
