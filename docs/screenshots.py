"""Take the screenshots of the page of an explanation: ``python docs/screenshots.py``, by hand, with Chromium."""

from __future__ import annotations

import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from handgrad import Adam, Linear, Network, SoftmaxCrossEntropy, Tanh, explain, train
from handgrad.data import moons
from handgrad.explaining.page import render_page
from handgrad.explaining.snapshots import Recorder, with_training

STATIC = Path(__file__).parent / "_static"
EPOCHS = 150
FRAME = """() => [
  document.documentElement.scrollWidth,
  document.querySelector("#step").getBoundingClientRect().bottom + scrollY + 16,
]"""
"""How wide the page is, and where the section with program and cards ends: what the picture shows."""


def page() -> str:
    """Return the page of a small network after its training."""
    rows = moons(rows=200)
    network = Network(Linear(2, 16), Tanh(), Linear(16, 2), loss=SoftmaxCrossEntropy())
    optimiser = Adam()
    recorder = Recorder(network, rows.x, rows.t, epochs=EPOCHS, moments=16, optimiser=optimiser)
    train(network, rows.x, rows.t, optimiser=optimiser, epochs=EPOCHS, after_epoch=recorder)
    return render_page(with_training(explain(network, *recorder.batch), recorder.snapshots))


def shoot(browser: Browser, path: Path, scheme: str) -> None:
    """Photograph the page in one of its two themes, at the gradient of the first weight: no panel cut, none clipped."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000}, color_scheme=scheme)  # type: ignore[arg-type]
    tab = context.new_page()
    tab.goto(path.as_uri())
    tab.click(".line:has(code:text('dW1 ='))")
    tab.evaluate("scrollTo(0, 0)")
    tab.wait_for_timeout(300)
    width, height = tab.evaluate(FRAME)
    picture = Image.open(
        io.BytesIO(tab.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": width, "height": height}))
    )
    picture.convert("RGB").save(STATIC / f"explain-{scheme}.png", optimize=True)
    context.close()


def main() -> None:
    """Write both pictures."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "page.html"
        path.write_text(page(), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            shoot(browser, path, scheme)
        browser.close()


if __name__ == "__main__":
    main()
