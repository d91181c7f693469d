import gc
import os
import socket
import subprocess
import sys
import time
import urllib.request
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"

import numpy as np
import pytest

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
DESKTOP = {"width": 1400, "height": 900}
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="session")
def browser():
    if not CHROMIUM.exists():
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"{CHROMIUM} is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield chromium
        chromium.close()


class Visit:
    """A page in its own browser profile, and whatever it did that it should not have done."""

    def __init__(self, browser, url: str, viewport=DESKTOP, scheme="light", **options):
        self.context = browser.new_context(viewport=viewport, color_scheme=scheme, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(90_000)  # tests share two cores with servers that start
        self.errors: list[str] = []
        self.leaks: list[str] = []
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", self._watch)
        self.page.goto(url)

    def _watch(self, request) -> None:
        if not request.url.startswith(("http://127.0.0.1", "data:", "blob:")):
            self.leaks.append(request.url)

    def close(self) -> None:
        wide = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        self.context.close()
        assert self.errors == []
        assert self.leaks == []
        assert wide <= 0, "the page scrolls sideways"


@pytest.fixture
def visit(browser):
    """`visit(url, viewport=..., scheme=...)` opens a page; at the end every page must have behaved."""
    visits = []

    def open_page(url: str, **options) -> Visit:
        visits.append(Visit(browser, url, **options))
        return visits[-1]

    yield open_page
    for one in visits:
        one.close()


@pytest.fixture(scope="module")
def serve():
    """`serve(blocks)` starts a Gradio page on 127.0.0.1 and returns its address."""
    running = []

    def start(blocks) -> str:
        with untidy():
            _, url, _ = blocks.queue().launch(
                server_name="127.0.0.1", prevent_thread_lock=True, quiet=True, footer_links=[]
            )
        running.append(blocks)
        return url

    yield start
    with untidy():
        for blocks in running:
            blocks.close(verbose=False)


@contextmanager
def untidy():
    """Gradio leaves sockets and event loops to the garbage collector, which says so: warnings of its making."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()


@pytest.fixture(scope="session")
def fabricate():
    """`fabricate(layers, heads, size, seed)`: baseline and operated weights with rows that add up to 1."""

    def make(layers: int, heads: int, size: int, seed: int = 0):
        generator = np.random.default_rng(seed)
        scores = generator.normal(size=(2, layers, heads, size, size)) * 2
        weights = np.exp(scores)
        weights /= weights.sum(-1, keepdims=True)
        return weights.astype(np.float32)

    return make


class App:
    """`python app.py` in a process of its own, which can end and begin again at one address."""

    def __init__(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"

    def __enter__(self):
        command = [sys.executable, "app.py", "--port", str(self.port)]
        root, environment = Path(__file__).parents[2], {**os.environ, "HF_HUB_OFFLINE": "1"}
        self.process = subprocess.Popen(command, cwd=root, env=environment)
        for _ in range(240):
            with suppress(OSError), urllib.request.urlopen(self.url, timeout=2):
                return self
            if self.process.poll() is not None:
                break
            time.sleep(0.25)
        self.__exit__()
        pytest.fail(f"app.py did not answer at {self.url}")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)


@pytest.fixture(scope="session")
def app_url():
    """The address of `python app.py`, running in a process of its own."""
    with App() as app:
        yield app.url
