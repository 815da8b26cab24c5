"""Take docs/_static/viewer_*.png for docs/how_to/show_and_plot.md, in a headless browser.

Run from the repository root, with the extras `viewer` and `test` and a Chromium installed:

    python docs/figures/viewer.py
"""

from __future__ import annotations

import io
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pages import DOCS
from PIL import Image
from playwright.sync_api import sync_playwright

import linkwise as lw

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
)
OPTIONS: dict[str, Any] = {"open_browser": False, "quiet": True}


def main() -> None:
    """Five pages."""
    arm, walker, linkage = lw.models.puma560(), lw.models.humanoid(), lw.models.four_bar()
    posture = np.array([0.5, -0.7, 0.5, 0.3, 0.9, 0.0])
    bare = replace(
        arm,
        bodies=tuple(replace(body, geometry=()) for body in arm.bodies),
        nodes=tuple(replace(node, geometry=()) for node in arm.nodes),
    )
    falling = lw.simulate(arm, [0.0, -0.6, 0.3, 0.0, 0.4, 0.0], duration=1.0)
    half = lw.loops.assemble(linkage, [1.2, 0.0, 0.0], hold=["crank_pin"]).required()
    pages = {
        "puma": lw.view(arm, posture, **OPTIONS),
        "humanoid": lw.view(walker, show=("shapes", "masses", "inertia", "grid"), **OPTIONS),
        "generated": lw.view(bare, posture, show=("shapes", "belted", "grid"), **OPTIONS),
        "four_bar": lw.view(linkage, half, show=("shapes", "forces", "grid"), **OPTIONS),
    }
    with sync_playwright() as started:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = started.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        for name, viewer in pages.items():
            _take(browser, viewer.url, name)
            viewer.close()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "falling.html"
            lw.viewer.export_html(falling, file, show=("shapes", "traces", "grid"), theme="dark")
            _take(browser, file.as_uri(), "export", at=0.8)
        browser.close()


def _take(browser: Any, url: str, name: str, at: float | None = None) -> None:
    """One picture; of a page that plays, at a part of its time bar."""
    page = browser.new_page(viewport={"width": 920, "height": 540})
    page.goto(url)
    page.locator("canvas").first.wait_for()
    page.wait_for_timeout(9000)  # pages fade in, slowly where software draws them
    notice = page.locator(".mantine-Notification-closeButton")
    if notice.count():
        notice.first.click()
    if at is not None:
        page.keyboard.press("Space")
        page.wait_for_timeout(1500)
        bar = page.locator(".mantine-Slider-track").first.bounding_box()
        page.mouse.click(bar["x"] + at * bar["width"], bar["y"] + 0.5 * bar["height"])
    page.mouse.move(300, 20)
    page.wait_for_timeout(2500)
    shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    coverage, plain = Image.Quantize.MAXCOVERAGE, Image.Dither.NONE
    shot = shot.quantize(256, method=coverage, kmeans=3, dither=plain)  # a fifth of the size
    shot.save(DOCS / "_static" / f"viewer_{name}.png", optimize=True)
    page.close()


if __name__ == "__main__":
    main()
