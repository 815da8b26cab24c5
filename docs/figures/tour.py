"""Draw docs/_static/tour.png: a report of the tour, seen in a browser on light and on dark paper.

Run from the repository root, with the extras `tour` and `test` and a Chromium installed:

    python docs/figures/tour.py
"""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

import linkwise as lw
from linkwise.tour.guide import guide

OUTPUT = Path(__file__).parents[1] / "_static" / "tour.png"
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
SIZE = (760, 1000)


def main() -> None:
    """Two windows side by side: the robot, and its hand under control."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "tour.html"
        with contextlib.redirect_stdout(io.StringIO()):
            guide(lw.models.puma560(), report=report)
        with sync_playwright() as started:
            browser = started.chromium.launch(
                executable_path=shutil.which("chromium"), args=list(ARGUMENTS)
            )
            left = seen(browser, report, "light", "body")
            right = seen(browser, report, "dark", "#station-3 figure:has(iframe)", wait=12_000)
            browser.close()
    gap = 20
    sheet = Image.new("RGB", (2 * SIZE[0] + gap, SIZE[1]), "white")
    sheet.paste(left, (0, 0))
    sheet.paste(right, (SIZE[0] + gap, 0))
    sheet = sheet.resize((sheet.width * 3 // 4, sheet.height * 3 // 4), Image.Resampling.LANCZOS)
    sheet.quantize(192).save(OUTPUT, optimize=True)
    print(f"{OUTPUT.name}: {OUTPUT.stat().st_size // 1000} kB")


def seen(browser: Any, report: Path, paper: str, where: str, wait: int = 500) -> Image.Image:
    """A window of the report with an element at its end, or at its beginning."""
    size = {"width": SIZE[0], "height": SIZE[1]}
    page = browser.new_page(viewport=size, color_scheme=paper)
    page.goto(report.as_uri())
    place = "end" if "iframe" in where else "start"
    page.locator(where).evaluate(
        f"e => e.scrollIntoView({{block: '{place}', behavior: 'instant'}})"
    )
    page.wait_for_timeout(wait)
    for frame in page.frames[1:]:  # the notice about software drawing
        with contextlib.suppress(Exception):
            close = frame.locator(".mantine-Notification-closeButton")
            close.evaluate_all("all => all.forEach((e) => e.click())")
    page.wait_for_timeout(2000)
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    page.close()
    return image


if __name__ == "__main__":
    main()
