"""Films and pictures: what is where in them, and what is missing when a package is."""

from __future__ import annotations

import io
import sys
from itertools import pairwise

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import MissingExtraError, ModelError
from linkwise.viewer.camera import framed
from linkwise.viewer.look import LIGHT
from linkwise.viewer.mesh import Mesh
from linkwise.viewer.render import Renderer
from linkwise.viewer.scene import Part, Scene
from linkwise.viewer.shapes import box

SIZE = (64, 48)


def scene(*parts: Part) -> Scene:
    return Scene(lw.models.pendulum(), parts, (), {}, 1.0)


def drawn(*parts: Part) -> np.ndarray:
    both = scene(*parts)
    q = np.zeros(1)
    frame = framed(both, q, tight=True)
    return Renderer(both, LIGHT, frame, SIZE, grid=False).draw(q)


RED, GREEN = (250, 10, 10), (10, 250, 10)


def hue(pixel: np.ndarray) -> int:
    """The strongest of red, green and blue; 3 for paper."""
    return 3 if np.ptp(pixel.astype(int)) < 30 else int(np.argmax(pixel))


def test_the_nearer_surface_hides_the_other_in_any_order() -> None:
    def cube(y: float, rgb: tuple[int, int, int]) -> Part:
        return Part(
            -1, Mesh(box((0.4, 0.2, 0.4)).vertices + np.array([0.0, y, 0.0]), box(1).faces), rgb
        )

    for parts in (
        (cube(-1.0, RED), cube(1.0, GREEN)),
        (cube(1.0, GREEN), cube(-1.0, RED)),
    ):
        image = drawn(*parts)
        seen = {hue(x) for x in image.reshape(-1, 3)}
        assert seen == {0, 1, 3}
    # The camera looks along +y: the red cube, at y = -1, is nearer, and so it is larger.
    counts = np.bincount([hue(x) for x in image.reshape(-1, 3)], minlength=4)
    assert counts[0] > counts[1] > 0


def test_triangles_that_cross_are_cut_at_their_intersection() -> None:
    """A painter's algorithm, which orders whole triangles, would fail here."""
    low, high = np.array([-1.0, -1.0, -1.0]), np.array([1.0, 1.0, 1.0])
    frame_ = Part(-1, Mesh(np.array([low, high, low]), np.zeros((0, 3), np.int64)), RED)
    plate = np.array([[-1, 0, -1], [1, 0, -1], [1, 0, 1], [-1, 0, 1]], float)
    turned = plate @ np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    faces = np.array([[0, 1, 2], [0, 2, 3]])
    image = drawn(frame_, Part(-1, Mesh(plate, faces), RED), Part(-1, Mesh(turned, faces), GREEN))
    row = [hue(x) for x in image[SIZE[1] // 2]]
    # From the right and in front: the near half of each plate hides the far half of the other.
    stripes = [row[0], *(b for a, b in pairwise(row) if a != b)]
    assert stripes == [3, 1, 0, 3]
    assert abs(row.index(0) - SIZE[0] // 2) <= 2


def test_a_surface_that_is_seen_through_shows_what_is_behind() -> None:
    solid = Part(-1, box((0.5, 0.5, 0.5)), RED)
    glass = Part(-1, box((1.0, 1.0, 1.0)), GREEN, 0.5)
    middle = drawn(solid, glass)[SIZE[1] // 2, SIZE[0] // 2].astype(int)
    assert middle[0] > 60 and middle[1] > 60


@pytest.fixture(scope="module")
def rec() -> lw.Recording:
    return lw.simulate(lw.models.pendulum(), [0.5], duration=0.2, step=0.01)


def test_a_recording_as_gif_and_mp4(rec: lw.Recording, tmp_path) -> None:
    pil = pytest.importorskip("PIL.Image")
    file = lw.viewer.export_video(rec, tmp_path / "run.gif", fps=20.0, size=SIZE)
    with pil.open(file) as film:
        assert film.size == SIZE and film.n_frames == 5
        first = np.asarray(film.convert("RGB")).astype(int)
        film.seek(4)
        assert np.abs(np.asarray(film.convert("RGB")).astype(int) - first).max() > 30
    av = pytest.importorskip("av")
    file = lw.viewer.export_video(rec, tmp_path / "run.mp4", fps=10.0, size=SIZE)
    with av.open(io.BytesIO(file.read_bytes())) as film:
        frames = list(film.decode(video=0))
    assert len(frames) == 3 and (frames[0].width, frames[0].height) == SIZE


def test_save_chooses_the_film_by_its_suffix(rec: lw.Recording, tmp_path, monkeypatch) -> None:
    from linkwise.viewer import video

    made = []
    monkeypatch.setattr(video, "export_video", lambda *args: made.append(args))
    rec.save(tmp_path / "run.mp4")
    assert made == [(rec, tmp_path / "run.mp4")]
    with pytest.raises(ModelError, match=r"\.npz, \.csv, \.mp4, \.gif"):
        rec.save(tmp_path / "run.avi")


def test_missing_packages_and_bad_options_are_named(
    rec: lw.Recording, tmp_path, monkeypatch
) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MissingExtraError, match=r"linkwise\[video\]"):
        rec.save(tmp_path / "run.mp4")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ModelError, match="even pixels"):
        lw.viewer.picture(rec, size=(33, 20))
    with pytest.raises(ModelError, match="no motion to film"):
        lw.viewer.export_video(lw.models.pendulum(), tmp_path / "a.gif")
    with pytest.raises(ModelError, match=r"'a\.avi' is not a film"):
        lw.viewer.export_video(rec, tmp_path / "a.avi")
