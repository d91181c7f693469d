"""Many visitors of one server for minutes: is each answered as if alone, and does the server stay as it was?

    python benchmarks/soak.py --clients 20 --seconds 300

Answers are computed one at a time before the load, and compared bit for bit under it. Among the visitors are some that switch
the model, cancel, disconnect midway, send what is refused, or run an operation that breaks (which only the server of this
script has). Prints what it saw; exit code 1 if a promise was broken. Needs Linux, for the memory of a process.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
import weakref
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import httpx

from benchmarks.running import Server, call, post, result

LIMITS = {
    "SESSIONS": "10",
    "REQUESTS_A_MINUTE": "1000000",
    "QUEUE": "200",
    "QUEUE_SHARE": "200",
    "CONNECTIONS": "1000",
}
MODELS = ("minilm", "encoder", "encoder-zh", "characters")
TEXTS = (
    "The dog bit the man",
    "the cat [MASK] the dog",
    "Time flies like an arrow; fruit flies like a banana.",
    "a",
    "狗 看见 猫",
    "x " * 90,
)
BROKEN = {"text": TEXTS[0], "plan": {"version": 1, "operations": [{"operation": "break_down"}]}}
ALLOWED_GROWTH = 0.05  # of memory, over 1,000 operations after the warm-up


# --- the server's side ------------------------------------------------------------------------------------


def serve(port: int, diary: Path) -> None:
    """The app, with an operation that breaks, and a diary of what lives in the process."""
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure

    import models
    from bilingual import Words
    from surgery.operation import Operation
    from ui.app import build
    from ui.app import serve as launch
    from ui.pool import Pool

    @dataclass(frozen=True)
    class BreakDown(Operation):
        """Raises in the middle of a forward pass."""

        name = "break_down"
        stage = "weights"
        title = summary = Words("breaks", "出错")
        equation = "!"

        def weights(self, weights: Any, *_: Any) -> Any:
            raise RuntimeError("broken on purpose")

    alive: list[weakref.ref] = []
    load = models.load

    def watched(*arguments: Any, **options: Any) -> Any:
        patient = load(*arguments, **options)
        alive.append(weakref.ref(patient.model))
        return patient

    models.load = watched
    figures: weakref.WeakSet[Figure] = weakref.WeakSet()
    draw = Figure.__init__

    def drawn(figure: Figure, *arguments: Any, **options: Any) -> None:
        figures.add(figure)
        draw(figure, *arguments, **options)

    Figure.__init__ = drawn  # not gc.get_objects(), which breaks a tuple that another thread is making
    pool = Pool(device="cpu", public=True)
    demo = build(pool)
    pool.warm()

    def note() -> None:
        while True:
            here = [model for ref in alive if (model := ref()) is not None]
            state = {
                "models": len(here),
                "checksums": sorted({_checksum(model) for model in here}),
                "figures": len(figures) + len(plt.get_fignums()),
                "sessions": len(demo.state_holder.session_data) if hasattr(demo, "state_holder") else 0,
                "threads": threading.active_count(),
            }
            del here
            draft = diary.with_suffix(".draft")
            draft.write_text(json.dumps(state))
            draft.replace(diary)
            time.sleep(5)

    threading.Thread(target=note, daemon=True).start()
    launch(demo, server_name="127.0.0.1", server_port=port, quiet=True)


def _checksum(model: Any) -> str:
    digest = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        digest.update(name.encode() + tensor.numpy().tobytes())
    return digest.hexdigest()[:16]


# --- the visitors' side -----------------------------------------------------------------------------------


@dataclass
class Seen:
    """What the visitors met. answers: by kind; wrong: what differed; memory: (operations so far, bytes)."""

    answers: collections.Counter = field(default_factory=collections.Counter)
    wrong: list[str] = field(default_factory=list)
    memory: list[tuple[int, int]] = field(default_factory=list)
    diary: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    lock: Any = field(default_factory=threading.Lock)

    def note(self, kind: str, right: bool, about: Any = "") -> None:
        with self.lock:
            self.answers[kind] += 1
            if not right:
                self.wrong.append(f"{kind}: {str(about)[:400]}")

    @property
    def operations(self) -> int:
        return sum(self.answers.values())

    def level(self, first: float, last: float) -> float:
        """The median memory in bytes between two shares of the operations after the warm-up."""
        late = [(n, size) for n, size in self.memory if n >= self.warm]
        start, span = late[0][0], late[-1][0] - late[0][0]
        return statistics.median(size for n, size in late if first * span <= n - start <= last * span)

    @property
    def warm(self) -> int:
        """So many operations are the warm-up: a fifth, or 400 if that is more and there are enough."""
        return max(self.operations // 5, min(400, self.operations // 2))

    @property
    def growth(self) -> float:
        """By what share memory grew over 1,000 operations after the warm-up: the slope of a line through all readings.

        Models come and go all the time, which moves single readings by more than what is looked for.
        """
        late = [(n, size) for n, size in self.memory if n >= self.warm]
        line = statistics.linear_regression(*zip(*late, strict=True))
        return line.slope * 1000 / statistics.median(size for _, size in late)


def requests(count: int, seed: int) -> list[dict[str, Any]]:
    """Good requests to /operate: random plans, models and texts; among them every model without any plan."""
    from surgery.operation import REGISTRY

    draw = random.Random(seed)
    skipped = ("custom_mask", "break_down")
    names = sorted(name for name in REGISTRY if name not in skipped)
    found = [{"text": TEXTS[0], "model": model} for model in MODELS]
    while len(found) < count:
        steps: list[dict[str, Any]] = []
        for name in draw.sample(names, draw.choice([0, 1, 1, 2])):
            whole = REGISTRY[name].stage == "positions"
            steps.append(
                {"operation": name, "at": "L*" if whole else draw.choice(["L*", "L0", "L1.H1", "H0,2"])}
            )
        plan = {"version": 1, "operations": steps}
        found.append({"text": draw.choice(TEXTS), "model": draw.choice(MODELS), "plan": plan})
    return found


def _differing(wanted: Any, found: Any) -> Any:
    """The entries in which two answers differ; what came, where it is none."""
    if not (isinstance(wanted, dict) and isinstance(found, dict)):
        return found
    return {name: (wanted[name], found.get(name)) for name in wanted if wanted[name] != found.get(name)}


class Crowd:
    """Visitors of one server and what each should be told."""

    def __init__(self, server: Server, diary: Path, variants: int, seed: int):
        self.server, self.diary, self.seen, self.over = server, diary, Seen(), threading.Event()
        with httpx.Client(timeout=120) as client:
            config = client.get(f"{server.url}config").json()
            self.right = [(body, call(client, server, "operate", body)) for body in requests(variants, seed)]
            self.swept = [(body, call(client, server, "sweep", body)) for body in self.sweeps()]
            radio = next(c["id"] for c in config["components"] if c["props"].get("elem_id") == "presets")
            events = [
                d for d in config["dependencies"] if d["backend_fn"] and [radio, "input"] in d["targets"]
            ]
            self.preset, self.radio = events[0], radio
            self.values = {c["id"]: c["props"].get("value") for c in config["components"]}
            self.shown = {name: self.visit(client, name) for name in ("hot", "scale", "causal")}

    @staticmethod
    def sweeps() -> list[dict[str, Any]]:
        plans = [{"version": 1, "operations": [{"operation": "temperature", "t": t}]} for t in (0.5, 2.0)]
        return [{"texts": list(TEXTS[:2]), "plans": plans, "model": model} for model in MODELS[:2]]

    def visit(self, client: httpx.Client, preset: str) -> Any:
        """A click on a preset by a browser that is new here: everything that the page is sent."""
        data = [preset if i == self.radio else self.values.get(i) for i in self.preset["inputs"]]
        session = f"soak{random.randrange(10**12)}"
        body = {"data": data, "fn_index": self.preset["id"], "session_hash": session}
        joined = post(client, self.server, "queue/join", body)
        if joined.status_code != 200:
            return joined.text
        with client.stream("GET", f"{self.server.api}queue/data", params={"session_hash": session}) as lines:
            for line in lines.iter_lines():
                if line.startswith("data: ") and '"process_completed"' in line:
                    output = json.loads(line[6:])["output"]
                    return json.dumps(output.get("data") or output, sort_keys=True)
        return "nothing"

    def one(self, client: httpx.Client, draw: random.Random) -> None:
        kind = draw.random()
        if kind < 0.72:
            body, wanted = draw.choice(self.right)
            found = call(client, self.server, "operate", body)
            name = "operate" if body.get("plan", {}).get("operations") else "baseline"
            self.seen.note(name, found == wanted, (_differing(wanted[1], found[1]), body))
        elif kind < 0.78:
            body, wanted = draw.choice(self.swept)
            found = call(client, self.server, "sweep", body)
            self.seen.note("sweep", found == wanted, (body, found))
        elif kind < 0.88:
            preset = draw.choice(list(self.shown))
            found = self.visit(client, preset)
            self.seen.note("page", found == self.shown[preset], (preset, found))
        elif kind < 0.92:
            event, said = call(client, self.server, "operate", BROKEN)
            self.seen.note("breaks", event == "error" and "went wrong on the server" in said, said)
        elif kind < 0.95:
            event, said = call(client, self.server, "operate", {"text": "x", "model": "/etc"})
            self.seen.note("refused", event == "error" and "This server offers" in said, said)
        else:
            self.leave(client, draw)

    def leave(self, client: httpx.Client, draw: random.Random) -> None:
        """Asks and goes: by cancelling, or by closing the connection."""
        body, _ = draw.choice(self.right)
        answer = post(client, self.server, "call/v2/operate", body)
        event_id = answer.json().get("event_id", "")
        if draw.random() < 0.5:
            cancelled = post(
                client, self.server, "cancel", {"session_hash": event_id, "fn_index": 0, "event_id": event_id}
            )
            self.seen.note("cancels", cancelled.status_code == 200, cancelled.text)
            return
        with suppress(httpx.TimeoutException):
            result(httpx.Client(timeout=draw.choice([0.01, 0.1])), self.server, "operate", event_id)
        self.seen.note("disconnects", answer.status_code == 200, answer.text)

    def _client(self, seed: int) -> None:
        draw = random.Random(seed)
        with httpx.Client(timeout=120) as client:
            while not self.over.is_set():
                try:
                    self.one(client, draw)
                except (httpx.HTTPError, ValueError) as error:
                    self.seen.note("no answer", False, repr(error))

    def watch(self) -> None:
        """Memory and diary, once."""
        self.seen.memory.append((self.seen.operations, self.server.rss()))
        with suppress(OSError, ValueError):
            self.seen.diary.append(json.loads(self.diary.read_text()))

    def storm(self, clients: int, seconds: float, seed: int) -> Seen:
        threads = [threading.Thread(target=self._client, args=(seed * 1000 + n,)) for n in range(clients)]
        start = time.monotonic()
        for thread in threads:
            thread.start()
        while time.monotonic() - start < seconds and self.server.alive:
            time.sleep(1)
            self.watch()
        self.over.set()
        for thread in threads:
            thread.join(150)
        self.seen.seconds = time.monotonic() - start
        with httpx.Client(timeout=120) as client:
            for body, wanted in self.right:
                found = call(client, self.server, "operate", body)
                self.seen.note("afterwards", found == wanted, (body, found))
        time.sleep(6)
        self.watch()
        return self.seen


def run(clients: int, seconds: float, variants: int = 60, seed: int = 0) -> Seen:
    """The whole thing; bounded in time."""
    with tempfile.TemporaryDirectory() as folder:
        diary = Path(folder) / "diary.json"
        environment = {f"SURGERY_{name}": value for name, value in LIMITS.items()}
        with Server((__file__, "--serve", str(diary)), **environment) as server:
            return Crowd(server, diary, variants, seed).storm(clients, seconds, seed)


def report(seen: Seen) -> list[str]:
    """Prints what was seen; returns what was promised and not kept."""
    from ui.limits import PUBLIC

    models = max(entry["models"] for entry in seen.diary)
    most_models = PUBLIC.models + PUBLIC.runs_at_once + 1  # held, in use, being loaded
    figures = [entry["figures"] for entry in seen.diary]
    sums = {checksum for entry in seen.diary for checksum in entry["checksums"]}
    known = set(MODELS)
    print(
        f"{seen.operations} operations in {seen.seconds:.0f} s: "
        + ", ".join(f"{n} {k}" for k, n in sorted(seen.answers.items()))
    )
    print(f"answers that differ from those given alone: {len(seen.wrong)}")
    print(
        f"memory after the warm-up of {seen.warm} operations: {seen.level(0, 1) / 2**20:.0f} MiB, over 1,000 operations {seen.growth:+.1%}"
    )
    tenths = [seen.level(n / 10, (n + 1) / 10) / 2**20 for n in range(10)]
    print(
        "memory in ten equal parts of the operations after that: "
        + ", ".join(f"{size:.0f}" for size in tenths)
    )
    print(
        f"models alive at most: {models} (declared: {most_models}); different parameters seen: {len(sums)} of {len(known)} models"
    )
    print(
        f"figures open: at most {max(figures)}, at the end {figures[-1]}; sessions at the end {seen.diary[-1]['sessions']}; threads {seen.diary[-1]['threads']}"
    )
    broken = seen.wrong[:10]
    broken += [f"{models} models alive"] if models > most_models else []
    broken += ["parameters changed"] if len(sums) > len(known) else []
    broken += [f"{figures[-1]} figures left open"] if figures[-1] else []
    broken += [f"memory grew by {seen.growth:.1%}"] if seen.growth > ALLOWED_GROWTH else []
    return broken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        os.environ["HF_HUB_OFFLINE"] = "1"
        serve(arguments.port, arguments.serve)
        return 0
    broken = report(run(arguments.clients, arguments.seconds, seed=arguments.seed))
    for what in broken:
        print("BROKEN", what)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
