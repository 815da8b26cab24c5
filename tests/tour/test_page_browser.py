"""The report in a real browser: no errors, nobody called, nothing wider than the page."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

playwright = pytest.importorskip("playwright.sync_api")
imageio = pytest.importorskip("imageio.v3")

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = next((result for name in NAMES if (result := shutil.which(name))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium or Chrome on this machine")

ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
    *("--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
OVERLAPS = """() => {
  const boxes = [...document.querySelectorAll("main section > *, header > *")]
    .map((e) => [e.tagName, e.getBoundingClientRect()]).filter(([, b]) => b.height > 0);
  const found = [];
  for (let i = 1; i < boxes.length; i++) {
    if (boxes[i][1].top < boxes[i - 1][1].bottom - 1) found.push(boxes[i][0]);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        made = started.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield made
        made.close()


class Opened:
    """The report in a window, what it complains about and whom it calls."""

    def __init__(self, browser, toured, width, scheme):
        window = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, offline=True
        )
        self.page, self.errors, self.calls = window.new_page(), list[str](), list[str]()
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else 0)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.calls.append(request.url))
        self.page.on("websocket", lambda socket: self.calls.append(socket.url))
        self.page.goto(toured.report.as_uri())
        self.calls = [url for url in self.calls if url != toured.report.as_uri()]

    @property
    def outside(self):
        return [url for url in self.calls if not url.startswith(("data:", "blob:", "about:"))]


@pytest.mark.prove
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (420, "dark")])
def test_it_fits_and_is_quiet(browser, toured, width, scheme):
    it = Opened(browser, toured, width, scheme)
    page = it.page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(OVERLAPS) == []
    pictures = page.locator("figure picture img")
    assert pictures.count() >= 4
    for i in range(pictures.count()):
        assert pictures.nth(i).evaluate("e => e.naturalWidth") > 100
        assert pictures.nth(i).evaluate("e => e.currentSrc").startswith("data:image/")
    heights = page.locator(".formula math").evaluate_all(
        "all => all.map((e) => e.getBoundingClientRect().height)"
    )
    assert len(heights) > 20 and min(heights) > 8 and max(heights) < 80  # lines, not heaps
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, paper[4:-1].split(","))) > 380) == (scheme == "light")
    assert it.errors == []
    assert it.outside == []
    page.context.close()


@pytest.mark.prove
def test_dark_pictures_are_dark(browser, toured):
    it = Opened(browser, toured, 1280, "dark")
    image = imageio.imread(it.page.locator("figure picture img").first.screenshot())[..., :3]
    assert np.median(image) < 60
    it.page.context.close()


@pytest.mark.prove
def test_every_link_of_the_contents_leads_somewhere(browser, toured):
    it = Opened(browser, toured, 1280, "light")
    links = it.page.locator("nav a")
    assert links.count() == len(toured.visit.sections)
    for i in range(links.count()):
        assert it.page.locator(links.nth(i).get_attribute("href")).count() == 1
    it.page.context.close()


@pytest.mark.slow  # drawn without a graphics card; tests/viewer plays a page in every run
def test_a_motion_plays_inside(browser, toured):
    """The robot is seen in its frame, and moves; nobody is called."""
    it = Opened(browser, toured, 720, "light")
    frame = it.page.locator("figure.playback iframe").first
    frame.scroll_into_view_if_needed()
    inside = frame.content_frame
    inside.locator("canvas").first.wait_for(timeout=300_000)
    box = frame.bounding_box()

    def seen():
        image = imageio.imread(it.page.screenshot(timeout=300_000))[..., :3].astype(int)
        top, left = int(box["y"]) + 150, int(box["x"]) + 4  # below the notice of software drawing
        return image[top : int(box["y"] + box["height"]) - 60, left : left + int(box["width"]) - 8]

    pictures, colours = list[np.ndarray](), 0
    for _ in range(40):
        it.page.wait_for_timeout(250)
        pictures.append(seen())
        colours = len(np.unique(pictures[-1].reshape(-1, 3) // 16, axis=0))
        moved = np.abs(pictures[-1] - pictures[0]).max(axis=-1) > 24
        if colours > 20 and moved.mean() > 0.01:
            break
    assert colours > 20, "the picture is blank"
    assert moved.mean() > 0.01, "nothing moves"
    assert it.errors == []
    assert it.outside == []
    it.page.context.close()
