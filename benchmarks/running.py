"""The real app in a process of its own, on 127.0.0.1, for what asks it many things."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[1]


class Server:
    """`python <script> --port N` until the `with` ends. environment: what is added to ours."""

    def __init__(self, script: Sequence[str] = ("app.py",), **environment: str):
        self.script, self.environment = script, environment

    def __enter__(self) -> Server:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/"
        self.api = f"{self.url}gradio_api/"
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT), **self.environment}
        environment.pop("SPACE_ID", None)
        command = [sys.executable, *self.script, "--port", str(port)]
        self.process = subprocess.Popen(command, cwd=ROOT, env=environment)
        for _ in range(480):
            with suppress(httpx.HTTPError):
                httpx.get(self.url, timeout=5)
                return self
            if self.process.poll() is not None:
                break
            time.sleep(0.25)
        self.__exit__()
        raise RuntimeError(f"{' '.join(command)} did not serve {self.url}")

    def __exit__(self, *_: Any) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def rss(self) -> int:
        """Bytes of memory that the process occupies now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmRSS:")]
        return int(line.split()[1]) * 1024


def call(client: httpx.Client, server: Server, name: str, body: Any) -> tuple[str, Any]:
    """("complete", result), ("error", sentence) or ("refused", answer) of one call by name."""
    joined = post(client, server, f"call/v2/{name}", body)
    if joined.status_code != 200:
        return "refused", joined
    return result(client, server, name, joined.json()["event_id"])


def post(client: httpx.Client, server: Server, route: str, body: Any, **options: Any) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return client.post(
        server.api + route, content=content, headers={"content-type": "application/json"}, **options
    )


def result(client: httpx.Client, server: Server, name: str, event_id: str) -> tuple[str, Any]:
    """What came of a call that was taken."""
    event, data = "", "null"
    with client.stream("GET", f"{server.api}call/{name}/{event_id}") as lines:
        for line in lines.iter_lines():
            kind, _, rest = line.partition(": ")
            if kind == "event":
                event = rest
            elif kind == "data":
                data = rest
                if event in ("complete", "error"):
                    break
    found = json.loads(data)
    return (event, found[0]) if event == "complete" else (event, (found or {}).get("error"))
