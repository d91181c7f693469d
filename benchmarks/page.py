"""How long the page takes: `python benchmarks/page.py`. Medians of 10 in one run, the model's forward time beside them.

Prints milliseconds of this machine and, for what the model does, ratios to its own two forward passes in the same run.
"""

import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[1]
URL = "http://127.0.0.1:7898/"
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
TIMES = 10
STAMP = "document.querySelector('#maps .av').dataset.stamp"


def forward(tokens: int) -> float:
    """Milliseconds of one forward pass of MiniLM, the median of TIMES."""
    import torch

    sys.path.insert(0, str(ROOT))
    from models import load

    patient = load("minilm")
    ids = torch.full((1, tokens), 2000)
    with torch.inference_mode():
        return median(lambda: patient.model(input_ids=ids))


def median(act: Callable[[], object]) -> float:
    act()
    spent = []
    for _ in range(TIMES):
        start = time.perf_counter()
        act()
        spent.append(time.perf_counter() - start)
    return 1000 * statistics.median(spent)


def opened(browser) -> float:
    """From the request to the first figure, in a new browser profile each time."""

    def act() -> None:
        context = browser.new_context(viewport={"width": 1400, "height": 900})
        page = context.new_page()
        page.goto(URL, wait_until="commit")
        page.wait_for_selector("#maps [data-drawn]")
        context.close()

    return median(act)


def operated(page: Page, tokens: int) -> float:
    """From a click on a preset to the new figure, on a text of so many tokens."""
    page.locator("#text textarea").fill("word " * (tokens - 2))

    def act() -> None:
        old = page.evaluate(STAMP)
        other = "cold" if page.locator("#presets input[value='hot']").is_checked() else "hot"
        page.locator(f"#presets label:has(input[value='{other}'])").click()
        page.wait_for_function(f"old => {STAMP} !== old", arg=old, polling=10)

    return median(act)


def switched(page: Page) -> float:
    """From choosing another head to its figure; nothing is asked of the server."""
    script = """() => new Promise(done => {
      const root = document.querySelector('#maps .av'), start = performance.now(), old = root.dataset.drawn;
      const select = root.querySelector('[data-control=head]');
      select.value = String((Number(select.value) + 1) % select.options.length);
      select.dispatchEvent(new Event('change', { bubbles: true }));
      const wait = () => root.dataset.drawn !== old ? requestAnimationFrame(() => done(performance.now() - start))
                                                    : requestAnimationFrame(wait);
      wait();
    })"""
    return statistics.median(page.evaluate(script) for _ in range(TIMES))


def weight(browser) -> None:
    """Bytes of our own scripts, styles and first result, beside all that the page loads."""
    own = sum(path.stat().st_size for path in (ROOT / "ui" / "static").iterdir())
    first = (ROOT / "ui" / "data" / "default.json").stat().st_size
    print(f"our scripts and styles {own / 1000:.0f} kB, first result in two languages {first / 1000:.0f} kB")


def main() -> None:
    server = subprocess.Popen(
        [sys.executable, "app.py", "--port", "7898"], cwd=ROOT, stdout=subprocess.DEVNULL
    )
    try:
        for _ in range(240):
            with suppress(OSError), urllib.request.urlopen(URL, timeout=2):
                break
            time.sleep(0.25)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
            page.goto(URL)
            page.wait_for_selector(".badge.ready", timeout=60_000)
            print(f"page opened -> first figure: {opened(browser):.0f} ms")
            for tokens in (16, 32, 64):
                click, alone = operated(page, tokens), forward(tokens)
                rest = click - 2 * alone
                print(
                    f"{tokens} tokens: click -> figure {click:.0f} ms = 2 forwards of {alone:.0f} ms + {rest:.0f} ms; "
                    f"another head {switched(page):.0f} ms"
                )
            weight(browser)
            browser.close()
    finally:
        server.terminate()
        server.wait(20)


if __name__ == "__main__":
    main()
