"""The pictures of the README: `python docs/screenshots.py` starts the app, opens it in Chromium and takes them."""

import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
URL = "http://127.0.0.1:7899/"
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
SHOTS = {
    "page": {"viewport": {"width": 1400, "height": 900}, "color_scheme": "light", "locale": "en-US"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark", "locale": "zh-CN"},
}


def main() -> None:
    """Writes docs/images/*.png."""
    server = subprocess.Popen([sys.executable, "app.py", "--port", "7899"], cwd=ROOT)
    try:
        for _ in range(240):
            with suppress(OSError), urllib.request.urlopen(URL, timeout=2):
                break
            time.sleep(0.25)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            for name, options in SHOTS.items():
                page = browser.new_context(**options).new_page()
                page.goto(URL)
                page.wait_for_selector(".badge.ready", timeout=60_000)
                page.wait_for_timeout(1000)  # fonts and fades have settled
                page.screenshot(path=ROOT / "docs" / "images" / f"{name}.png")
                print(f"docs/images/{name}.png")
            browser.close()
    finally:
        server.terminate()
        server.wait(20)


if __name__ == "__main__":
    main()
