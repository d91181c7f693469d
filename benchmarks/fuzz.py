"""Random requests to the real server: every one gets a right answer or a clear error, and the server goes on.

    python benchmarks/fuzz.py --count 10000 --seed 0

Answers of /operate and /sweep are compared with those of the same code in this process. Every fiftieth request is a good one
whose answer is known. Ends with exit code 1 if anything was neither right nor clear.
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import os
import random
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import httpx

from benchmarks.running import Server, call, post
from bilingual import SurgeryError
from surgery.operation import REGISTRY
from surgery.plan import pack

GOOD = {"text": "The dog bit the man", "plan": {"version": 1, "operations": [{"operation": "drop_scaling"}]}}
LIMITS = {
    "TRAIN_STEPS": "3",
    "SWEEP_TEXTS": "3",
    "SWEEP_PLANS": "80",
    "REQUESTS_A_MINUTE": "1000000",
    "QUEUE": "500",
}
MODELS = ["minilm", "encoder", "encoder-zh", "characters", "encoder-untrained"]
TEXTS = [
    "the dog saw the cat", "狗 看见 猫", "[MASK] [CLS] </s> <s>", "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "**x** | $\\frac$",
    "\u202eabc\u200b", "\x00\x07\x1b[31m", "\ud800", "", " ", "\n", "a" * 3000, "word " * 900, "x" * 200_000, "x" * 1_200_000, "'; DROP TABLE", "../../etc/passwd",
    "https://example.org/x", "file:///etc/passwd", "{{7*7}}", "%s%n", "שלום עולם", "😀🧬𠮷", "NaN", "null", "L0.H1", "1e308",
]  # fmt: skip
# No answer names a folder of the computer that this runs on, but those that the requests themselves name.
FOLDERS = [f"/{entry.name}/" for entry in os.scandir("/") if entry.is_dir()]
TELLS = re.compile(
    "|".join(
        ["Traceback", "site-packages", "root:x", "Something went wrong", "服务器出错"]
        + [re.escape(folder) for folder in FOLDERS if not any(folder in text for text in TEXTS)]
    )
)
NUMBERS = [0, 1, -1, 2, 3, 8, 64, 128, 129, 512, 2**31 - 1, 2**31, 2**63, -(2**63), 10**30, 0.0, -0.0, 0.1, 0.5, 1.0, 2.0, 1.5, 1e-4, 1e-320, 1e308, -1e308,
           math.nan, math.inf, -math.inf, 1e22]  # fmt: skip
PLACES = [
    "L*", "L0", "L0-1", "L0.H1,2", "H0", "none", "L0.H0+L1.H1", "L5.H11", "L99", "L-1", "L0-999999999", "L0.H-1", "H4096", "l0.h1", "", "x", "L", "L0..H1", "L0-4095.H0-4095",
    "+".join(["L0-4095"] * 40), "L" + ",".join(map(str, range(3000))),
]  # fmt: skip


class Fuzz:
    """Makes requests from one seed."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)

    def junk(self, depth: int = 0) -> Any:
        kind = self.random.random()
        if depth < 5 and kind < 0.2:
            return [self.junk(depth + 1) for _ in range(self.random.randint(0, 4))]
        if depth < 5 and kind < 0.35:
            names = [
                "operation",
                "t",
                "p",
                "at",
                "seed",
                "rows",
                "version",
                "operations",
                "on",
                "layer",
                "x",
                "path",
                "meta",
                "__type__",
            ]
            return {self.random.choice(names): self.junk(depth + 1) for _ in range(self.random.randint(0, 4))}
        if kind < 0.4:
            return self.random.choice([None, True, False])
        return self.random.choice(TEXTS if kind < 0.7 else NUMBERS)

    def operation(self) -> Any:
        if self.random.random() < 0.08:
            return self.junk()
        name = self.random.choice(sorted(REGISTRY))
        found: dict[str, Any] = {"operation": name}
        for parameter, about in REGISTRY[name].parameters().items():
            if self.random.random() < 0.08:
                found[parameter] = self.junk()
            elif self.random.random() < 0.8:
                found[parameter] = self.value(about)
        if self.random.random() < 0.7:
            chance = self.random.random()
            found["at"] = (
                self.random.choice(PLACES[:6] if chance < 0.7 else PLACES) if chance < 0.95 else self.junk()
            )
        if self.random.random() < 0.05:
            found[self.random.choice(["extra", "layers", "on"])] = self.junk()
        return found

    def value(self, about: Any) -> Any:
        if about.kind == "picture":
            size = self.random.choice([1, 2, 5, 7, 8, 300])
            return [
                "".join(self.random.choices("01", k=size))
                for _ in range(size + self.random.choice([0, 0, 0, 1]))
            ]
        if about.kind == "positions":
            return [self.random.choice([0, 1, 2, 5, -1, 10**6]) for _ in range(self.random.randint(0, 4))]
        low, high = about.slider or (max(about.low, -10), min(about.high, 10))
        number = self.random.uniform(low, high)
        return round(number) if about.kind == "int" else number

    def plan(self) -> Any:
        if self.random.random() < 0.06:
            return self.junk()
        count = self.random.choice([0, 1, 1, 1, 1, 2, 2, 3, 20, 70])
        return {
            "version": self.random.choice([1] * 60 + [0, 2, -1, "1", 1.0, None, 99]),
            "operations": [self.operation() for _ in range(count)],
        }

    def text(self) -> Any:
        chance = self.random.random()
        return self.random.choice(TEXTS[:9] if chance < 0.6 else TEXTS) if chance < 0.97 else self.junk()

    def setting(self) -> dict[str, Any]:
        found: dict[str, Any] = {"text": self.text(), "plan": self.plan()}
        for name, make in {
            "model": lambda: self.random.choice([*MODELS, "translator", "/etc", "../x", "gpt2", "a/b", ""]),
            "other": self.text,
            "pad_to": lambda: self.random.choice(NUMBERS[:11]),
            "literal": lambda: self.random.choice([True, False]),
            "lang": lambda: self.random.choice(["en", "zh", "fr"]),
        }.items():
            if self.random.random() < 0.25:
                found[name] = make() if self.random.random() < 0.9 else self.junk()
        if self.random.random() < 0.03:
            found[self.random.choice(["txet", "plans", "session_hash"])] = self.junk()
        return found

    def sweep(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "texts": [self.text() for _ in range(self.random.choice([0, 1, 1, 2, 3, 4]))],
            "plans": [
                self.plan() if self.random.random() < 0.3 else GOOD["plan"]
                for _ in range(self.random.choice([0, 1, 2, 3, 100]))
            ],
            "model": self.random.choice(MODELS),
            "seeds": self.random.choice([1, 1, 1, 2, 0, -1, 21, 1.0, True, None]),
        }
        if self.random.random() < 0.3:
            found[self.random.choice(sorted(found))] = self.junk()
        return found

    def bomb(self) -> bytes:
        depth = self.random.choice([10, 17, 40, 1000, 200_000])
        return self.random.choice(
            [
                b"[" * depth, b'{"data":' * depth, b'{"data":' + b"[" * depth + b"]" * depth + b"}", b'{"data": [' + b"9" * depth + b"]}", b"\xff" * depth,
                b'{"data": "' + b"\\u0000" * depth, b"", b"null", b"{}", b'{"data": ' + b'["a",' * depth, b'{"a": 1' + b', "a": 1' * min(depth, 50_000) + b"}",
            ]
        )  # fmt: skip

    def cells(self) -> dict[str, Any]:
        """A grid of layers and heads as a component sends it."""
        size = self.random.choice([1, 6, -1, 100_000, 1e308, math.nan, "6"])
        many = [[0, n] for n in range(self.random.choice([0, 3, 100_000]))]
        return {
            "layers": size,
            "heads": self.random.choice([12, 4, 0, 100_000]),
            "cells": self.random.choice([many, [[-1, 0]], [["a"]], 3]),
        }


class Check:
    """Sends requests and judges what comes back."""

    def __init__(self, server: Server, config: dict[str, Any], wanted: Any):
        from ui.pool import Pool

        self.server, self.config, self.wanted = server, config, wanted
        self.pool = Pool(device="cpu", public=True, limits=None)
        self.counts: collections.Counter[str] = collections.Counter()
        self.failures: list[str] = []
        self.lock = threading.Lock()
        self.events = [d for d in config["dependencies"] if d["backend_fn"]]
        self.values = {c["id"]: c["props"].get("value") for c in config["components"]}

    def note(self, what: str, fine: bool, sent: Any, came: Any) -> None:
        with self.lock:
            self.counts[what] += 1
            if not fine:
                self.failures.append(f"{what}: sent {str(sent)[:600]} -> {str(came)[:600]}")

    def sentence(self, said: Any) -> bool:
        return isinstance(said, str) and 0 < len(said) < 2_000 and not TELLS.search(said)

    def refused(self, kind: str, sent: Any, answer: httpx.Response) -> None:
        try:
            said = answer.json().get("detail")
        except (ValueError, AttributeError):
            said = None
        self.note(
            f"{kind}: refused", 400 <= answer.status_code < 500 and self.sentence(said), sent, answer.text
        )

    def named(self, client: httpx.Client, name: str, body: Any) -> None:
        event, found = call(client, self.server, name, body)
        if event == "refused":
            self.refused(name, body, found)
        elif event == "error":
            self.note(f"{name}: error", self.sentence(found), body, found)
        else:
            self.note(f"{name}: answer", found == self.right(name, body), body, found)

    def right(self, name: str, body: Any) -> Any:
        """The same, asked in this process."""
        from ui import app

        make = {"operate": app._operate_api, "sweep": app._sweep_api, "models": app._models_api}[name]
        try:
            with self.lock:
                return json.loads(json.dumps(make(self.pool)(**body)))
        except SurgeryError as error:
            return f"refused here: {error}"

    def good(self, client: httpx.Client) -> None:
        event, found = call(client, self.server, "operate", GOOD)
        self.note("good", event == "complete" and found == self.wanted, GOOD, found)

    def private(self, client: httpx.Client, fuzz: Fuzz) -> None:
        """An event of the page, with values that no widget would send."""
        event = fuzz.random.choice(self.events)
        data = [self.values.get(i) for i in event["inputs"]]
        for at in range(len(data)):
            if fuzz.random.random() < 0.35:
                data[at] = fuzz.random.choice([fuzz.junk, fuzz.cells, fuzz.plan, fuzz.text])()
        session = f"fuzz{fuzz.random.randrange(10**9)}"
        body = {"data": data, "fn_index": event["id"], "session_hash": session, "event_data": fuzz.junk()}
        if fuzz.random.random() < 0.1:
            body |= {fuzz.random.choice(["data", "fn_index", "event_data", "trigger_id", "x"]): fuzz.junk()}
        if not event["queue"] and body["fn_index"] == event["id"]:
            answer = post(client, self.server, "run/predict", body)
            if answer.status_code == 500:
                said = answer.json().get("error")
                self.note("event: error", self.sentence(said), body, answer.text)
            elif answer.status_code != 200:
                self.refused("event", body, answer)
            else:
                self.note("event: answer", isinstance(answer.json().get("data"), list), body, answer.text)
            return
        query = (
            {
                "s": pack(
                    {"version": 1, "text": "x"}
                    | {
                        "steps": [
                            fuzz.random.choice(
                                [3, None, "x", {"operation": "temperature", "t": "hot", "on": True}]
                            )
                        ]
                    }
                )
            }
            if fuzz.random.random() < 0.1
            else None
        )
        answer = post(client, self.server, "queue/join", body, params=query)
        if answer.status_code != 200:
            self.refused("event", body, answer)
            return
        done = self.completed(client, session)
        output = (done or {}).get("output") or {}
        fine = done is not None and (done["success"] or self.sentence(output.get("error")))
        self.note("event: answer" if done and done["success"] else "event: error", fine, body, done)

    def completed(self, client: httpx.Client, session: str) -> dict[str, Any] | None:
        with client.stream("GET", f"{self.server.api}queue/data", params={"session_hash": session}) as lines:
            for line in lines.iter_lines():
                if line.startswith("data: "):
                    message = json.loads(line[6:])
                    if message["msg"] == "process_completed":
                        return message
        return None

    def raw(self, client: httpx.Client, fuzz: Fuzz) -> None:
        routes = [
            "call/v2/operate",
            "call/operate",
            "call/sweep",
            "queue/join",
            "run/predict",
            "cancel",
            "reset",
            "upload",
            "x",
            "call/x",
            "component_server",
        ]
        route, body = fuzz.random.choice(routes), fuzz.bomb()
        answer = post(client, self.server, route, body)
        if answer.status_code == 200:
            self.note("raw: taken", True, (route, body[:40]), answer.text)
        else:
            self.refused("raw", (route, body[:40]), answer)

    def upload(self, client: httpx.Client, fuzz: Fuzz) -> None:
        name = fuzz.random.choice(
            ["a.txt", "../../x.txt", "<img src=x>.csv", "a" * 300, "x.pkl", "\u202e.txt", ""]
        )
        content = fuzz.random.choice([b"a\nb", b"\xff\x00", b"x" * 300_000, b""])
        answer = client.post(f"{self.server.api}upload", files={"files": (name, content)})
        if answer.status_code == 200:
            self.note(
                "upload: taken", "etc" not in answer.text and ".." not in answer.text, name, answer.text
            )
        else:
            self.refused("upload", name, answer)

    def one(self, client: httpx.Client, fuzz: Fuzz) -> None:
        kind = fuzz.random.random()
        if kind < 0.5:
            self.named(client, "operate", fuzz.setting())
        elif kind < 0.6:
            self.named(client, "sweep", fuzz.sweep())
        elif kind < 0.62:
            self.named(client, "models", fuzz.random.choice([{}, {"lang": "zh"}, {"lang": fuzz.junk()}]))
        elif kind < 0.85:
            self.private(client, fuzz)
        elif kind < 0.96:
            self.raw(client, fuzz)
        else:
            self.upload(client, fuzz)


def run(count: int, seed: int, workers: int = 3) -> Check:
    """Sends `count` random requests and returns what came back."""
    environment = {f"SURGERY_{name}": value for name, value in LIMITS.items()}
    with Server(("app.py", "--public", "--device", "cpu"), **environment) as server:
        with httpx.Client(timeout=120) as client:
            config = client.get(f"{server.url}config").json()
            event, wanted = call(client, server, "operate", GOOD)
        assert event == "complete", wanted
        check = Check(server, config, wanted)
        threads = [
            threading.Thread(target=_work, args=(check, range(first, count, workers), seed))
            for first in range(workers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with httpx.Client(timeout=120) as client:
            check.good(client)
        check.note("the process is alive", server.alive, "", "")
    return check


def _work(check: Check, numbers: range, seed: int) -> None:
    with httpx.Client(timeout=120) as client:
        for number in numbers:
            try:
                check.one(client, Fuzz(seed * 1_000_003 + number))
                if number % 50 == 0:
                    check.good(client)
            except (httpx.HTTPError, ValueError, KeyError) as error:
                check.note("no answer", False, number, repr(error))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    start = time.monotonic()
    check = run(arguments.count, arguments.seed)
    for what, number in sorted(check.counts.items()):
        print(f"{number:7} {what}")
    for failure in check.failures[:20]:
        print("NOT RIGHT", failure)
    seconds = time.monotonic() - start
    print(
        f"seed {arguments.seed}: {arguments.count} requests in {seconds:.0f} s, {len(check.failures)} neither right nor clear"
    )
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
