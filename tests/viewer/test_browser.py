"""The pages in a real browser: they load, show the robot, obey the mouse, play, and call nobody."""

import shutil

import numpy as np
import pytest

from tests.waiting import until

pytest.importorskip("viser")
playwright = pytest.importorskip("playwright.sync_api")
imageio = pytest.importorskip("imageio.v3")

import linkwise as lw  # noqa: E402

CHROMIUM = next(
    (
        result
        for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
        if (result := shutil.which(name))
    ),
    None,
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium or Chrome on this machine")

ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
    *("--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)


class Watched:
    """A page, what it complains about, and whom it calls."""

    def __init__(self, page, url):
        self.page, self.errors, self.requests = page, [], []
        page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("websocket", lambda ws: self.requests.append(ws.url))
        page.goto(url)
        page.locator("canvas").first.wait_for(timeout=300_000)

    @property
    def calls(self):
        """What was asked for, without what the page has inside of itself."""
        return [url for url in self.requests if not url.startswith(("data:", "blob:"))]

    def picture(self):
        """The canvas as it is now (h, w, 3)."""
        image = imageio.imread(self.page.screenshot(timeout=300_000))[..., :3].astype(np.int64)
        box = self.page.locator("canvas").first.bounding_box(timeout=300_000)
        low, left = int(box["y"]), int(box["x"])
        # Without the notice about software rendering in the upper left corner.
        return image[low + 130 : low + int(box["height"]) - 2, left : left + int(box["width"])]

    def still(self, tries=400):
        """The picture, as soon as it no longer changes: pages fade in."""
        before = self.picture()
        for _ in range(tries):
            self.page.wait_for_timeout(300)
            now = self.picture()
            if np.abs(now - before).max() < 8:
                return now
            before = now
        pytest.fail("the picture never came to rest")


def changed(a, b):
    """Part of the pixels that differ visibly."""
    return float((np.abs(a - b).max(axis=-1) > 24).mean())


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        made = started.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield made
        made.close()


@pytest.fixture
def look(browser):
    pages = []

    def opened(url):
        page = browser.new_page(viewport={"width": 720, "height": 460})
        pages.append(page)
        return Watched(page, url)

    yield opened
    for page in pages:
        page.close()


def swing(mech, seconds=2.0):
    """Times and joint positions of a slow wave through all hinges."""
    t = np.linspace(0.0, seconds, 40)
    return t, 0.6 * np.sin(2.0 * np.pi * t / seconds)[:, None] * np.ones(mech.nq)


def shown(subject, *args, **options):
    """A viewer without shadows, which software draws slowly."""
    viewer = lw.view(subject, *args, open_browser=False, quiet=True, **options)
    viewer._server.scene.configure_default_lights(True, False)
    return viewer


@pytest.mark.prove
def test_robot_is_there_a_slider_moves_it_and_a_motion_plays(look):
    with shown(lw.models.puma560(), show=("shapes",)) as viewer:
        page = look(viewer.url)
        page.page.get_by_text("joint_1 [rad]").wait_for(timeout=300_000)
        robot = page.still()
        viewer.show("shapes", False)
        empty = page.still()
        assert changed(robot, empty) > 0.02, "the picture with the robot is as empty as without"
        viewer.show("shapes")
        page.still()

        # By hand: the thumb of the first slider, to three quarters of its way.
        thumb = page.page.get_by_role("slider").nth(0).bounding_box()
        track = page.page.locator(".mantine-Slider-track").nth(0).bounding_box()
        mouse, middle = page.page.mouse, thumb["y"] + 0.5 * thumb["height"]
        mouse.move(thumb["x"] + 0.5 * thumb["width"], middle)
        mouse.down()
        mouse.move(track["x"] + 0.75 * track["width"], middle, steps=4)
        mouse.up()
        until(lambda: abs(viewer.q[0] - 1.396) < 0.1, lambda s: page.page.wait_for_timeout(1e3 * s))
        # ±160° is the range: three quarters are at 80° = 1.396; a pixel is 2 mm of 160.
        assert viewer.q[0] == pytest.approx(1.396, abs=0.1) and not viewer.q[1:].any()
        assert changed(robot, page.still()) > 0.01, "the slider moved, the robot did not"

        # A layer by its box.
        page.page.get_by_text("frames", exact=True).scroll_into_view_if_needed()
        page.page.get_by_role("checkbox").nth(1).click()
        until(lambda: viewer.shows("frames"), lambda s: page.page.wait_for_timeout(1e3 * s))

        # The same page plays a motion, and its button stops it.
        t, q = swing(viewer.mech)
        viewer.play(viewer.mech, q, t)
        button = page.page.get_by_role("button", name="Pause")
        button.wait_for(timeout=300_000)
        first = page.picture()
        until(
            lambda: changed(first, page.picture()) > 0.002,
            lambda s: page.page.wait_for_timeout(1e3 * s),
        )
        button.click()
        page.page.get_by_role("button", name="Play", exact=True).wait_for(timeout=300_000)
        assert not viewer.playing
        page.still()

        assert page.errors == []
        here = (viewer.url, viewer.url.replace("http", "ws"))
        assert all(url.startswith(here) for url in page.calls), page.calls


@pytest.mark.prove
def test_static_page_plays_from_a_file_and_asks_for_nothing(look, tmp_path):
    mech = lw.models.puma560()
    t, q = swing(mech)
    path, layers = tmp_path / "an arm.html", ("shapes", "axes", "belted")
    file = lw.viewer.export_html(mech, path, q, t=t, show=layers, theme="dark", title="An <arm>")
    assert file.stat().st_size < 1.5e6
    page = look(file.as_uri())
    assert page.page.title() == "An <arm>"
    first = page.picture()
    until(
        lambda: changed(first, page.picture()) > 0.002,
        lambda s: page.page.wait_for_timeout(1e3 * s),
    )
    page.page.keyboard.press("Space")
    picture = page.still()
    paper = picture[2, 2]
    assert paper.mean() < 50  # dark
    assert (np.abs(picture - paper).max(axis=-1) > 24).mean() > 0.02, "there is no robot"
    assert page.calls == [file.as_uri()]
    assert page.errors == []
