"""Motions as films: `rec.save("run.mp4")`, `rec.save("run.gif")`, and pictures of one state."""

from __future__ import annotations

import importlib
import io
import os
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.arguments import count, number
from linkwise.atomic_file import write_file
from linkwise.errors import MissingExtraError, ModelError
from linkwise.io.mesh_path import Roots
from linkwise.spatial.array import ArrayLike
from linkwise.viewer.camera import framed
from linkwise.viewer.dial import closed_near
from linkwise.viewer.look import Look, check_layers, look_of
from linkwise.viewer.motion import subject_of
from linkwise.viewer.render import Image, Renderer
from linkwise.viewer.scene import scene_of

SUFFIXES = (".mp4", ".gif")
"""Formats of films."""


def export_video(
    subject: Any,
    path: str | os.PathLike[str],
    q: ArrayLike | None = None,
    *,
    t: ArrayLike | None = None,
    fps: float = 30.0,
    size: tuple[int, int] = (640, 480),
    show: Iterable[str] = ("shapes", "grid"),
    theme: Look | str = "light",
    roots: Roots = (),
    detail: int = 3000,
) -> Path:
    """Write a motion as a film, with the shapes of the viewer. No display is needed.

    `rec.save("run.mp4")` does the same with the default options.

    Args:
        subject: A recording, or a mechanism together with `q`.
        path: The file, .mp4 (H.264) or .gif; an existing one is replaced once the film is complete.
        q: Joint positions (k, nq) of a motion of the mechanism.
        t: Times of that motion (k,) [s]; default: 60 per second.
        fps: Pictures per second, which plays in real time.
        size: Width and height [pixel]; even numbers.
        show: "shapes", and "grid" for the floor.
        roots: Folders that may contain meshes, besides the model's own folder and package.
        detail: Most triangles of a mesh.

    Returns:
        The file.

    Raises:
        MissingExtraError: The extra `video` is not installed.
        ModelError: The subject has no motion, or an option is not valid.
        WriteError: The file cannot be written; an existing one is unchanged.
    """
    file = Path(path)
    if file.suffix.lower() not in SUFFIXES:
        raise ModelError(
            f"'{file.name}' is not a film; its suffix must be {' or '.join(SUFFIXES)}."
        )
    mech, start, motion = subject_of(subject, q, t)
    if motion is None or start is None:
        raise ModelError(
            f"{mech.name!r} has no motion to film; give a recording, or joint positions (k, nq)."
        )
    rate = number(fps, "fps", above=0.0, most=240.0)
    encode = _encoder(file.suffix.lower())
    look, shown = look_of(theme), _size(size)
    scene = scene_of(mech, roots=roots, look=look, most=count(detail, "detail", least=1))
    renderer = Renderer(
        scene, look, framed(scene, start, motion), shown, grid="grid" in check_layers(show)
    )
    pictures = max(1, round(motion.duration * rate) + 1)
    times = np.linspace(motion.start, motion.end, pictures)
    frames = (renderer.draw(motion.at(float(time))[0]) for time in times)
    write_file(file, encode(frames, rate, shown))
    return file


def picture(
    subject: Any,
    q: ArrayLike | None = None,
    *,
    size: tuple[int, int] = (640, 480),
    show: Iterable[str] = ("shapes", "grid"),
    theme: Look | str = "light",
    roots: Roots = (),
    detail: int = 6000,
) -> Image:
    """A picture of a mechanism with its shapes; no display is needed.

    Args:
        subject: A mechanism, or a recording, of which the first state is drawn.
        q: Joint positions (nq,); default: neutral, with loops closed.
        size: Width and height [pixel]; even numbers.
        show: "shapes", and "grid" for the floor.
        roots: Folders that may contain meshes, besides the model's own folder and package.
        detail: Most triangles of a mesh.

    Returns:
        Red, green and blue (height, width, 3), 0 to 255.
    """
    mech, start, motion = subject_of(subject, q)
    if start is None:
        near, _ = closed_near(mech, mech.neutral())
        start = mech.neutral() if near is None else near
    look = look_of(theme)
    scene = scene_of(mech, roots=roots, look=look, most=count(detail, "detail", least=1))
    frame = framed(scene, start, motion, tight=True)
    return Renderer(scene, look, frame, _size(size), grid="grid" in check_layers(show)).draw(start)


def _size(size: object) -> tuple[int, int]:
    try:
        width, height = (int(x) for x in size)  # type: ignore[union-attr]
    except (TypeError, ValueError):
        width, height = 0, 0
    if not (2 <= width <= 8192 and 2 <= height <= 8192) or width % 2 or height % 2:
        raise ModelError(
            f"size is {size!r}; it must be (width, height) in even pixels, up to 8192."
        )
    return width, height


def _encoder(suffix: str) -> Any:
    """A function of pictures, rate and size that gives the file; raises if a package is missing."""
    package, encode = ("av", _mp4) if suffix == ".mp4" else ("PIL.Image", _gif)
    try:
        importlib.import_module(package)
    except ImportError:
        name = "av" if suffix == ".mp4" else "pillow"
        raise MissingExtraError(f"a film {suffix}", package=name, extra="video") from None
    return encode


def _mp4(frames: Iterator[Image], rate: float, size: tuple[int, int]) -> bytes:
    av: Any = importlib.import_module("av")
    file = io.BytesIO()
    with av.open(file, mode="w", format="mp4") as container:
        stream = container.add_stream("h264", rate=Fraction(rate).limit_denominator(1000))
        stream.width, stream.height = size
        stream.pix_fmt, stream.options = "yuv420p", {"crf": "20"}
        for image in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode())
    return file.getvalue()


def _gif(frames: Iterator[Image], rate: float, size: tuple[int, int]) -> bytes:
    pil: Any = importlib.import_module("PIL.Image")
    images = [pil.fromarray(image).quantize(128) for image in frames]
    file = io.BytesIO()
    images[0].save(
        file, format="GIF", save_all=True, append_images=images[1:], loop=0,
        duration=max(20, round(1000.0 / rate)),
    )  # fmt: skip
    return file.getvalue()
