"""A page in one file that needs no server and no network; also inside a notebook."""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.arguments import count
from linkwise.atomic_file import write_file
from linkwise.errors import ModelError
from linkwise.io.mesh_path import Roots
from linkwise.spatial.array import Array, ArrayLike
from linkwise.viewer import camera, guard
from linkwise.viewer.dial import closed_near
from linkwise.viewer.look import Look, State, check_layers, look_of
from linkwise.viewer.motion import subject_of
from linkwise.viewer.scene import frame_poses, frames, scene_of
from linkwise.viewer.stage import Stage

STYLE = "border:1px solid #d8d5cc;border-radius:6px;display:block"


def frame_of(url: str) -> str:
    """A frame with the page of a running viewer."""
    return (
        f'<iframe src="{html.escape(url, quote=True)}" width="100%" height="480" '
        f'style="{STYLE}"></iframe>'
    )


@dataclass(frozen=True, slots=True)
class Embedded3D:
    """A page that needs no server, shown by a notebook where this is the value of a cell.

    Attributes:
        page: The HTML.
        height: Of the frame [pixel].
    """

    page: str
    height: int = 480

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.page, quote=True)}" width="100%" '
            f'height="{int(self.height)}" style="{STYLE}"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<3-D page of {len(self.page) / 1e6:.1f} MB>"


def embedded(
    subject: Any, q: ArrayLike | None = None, *, height: int = 480, **options: Any
) -> Embedded3D:
    """A mechanism or a recording inside a notebook; it stays when the notebook is saved.

    Args:
        subject: A mechanism or a recording.
        q: Joint positions (nq,), or (k, nq).
        height: Of the frame [pixel].
        options: As of `lw.viewer.export_html`.
    """
    height = count(height, "height [pixel]", least=1)
    return Embedded3D(html_page(subject, q, **options), height)


MOST_FRAMES = 900
"""Most pictures of a motion; longer motions get fewer per second."""

GRID = 2.0**-17
"""Quaternions, and positions over the reach of the mechanism, are rounded to this, for a small
file: 8 µrad, 8 µm of a metre. No picture resolves that."""


def export_html(
    subject: Any,
    path: str | os.PathLike[str],
    q: ArrayLike | None = None,
    *,
    t: ArrayLike | None = None,
    show: Iterable[str] = ("shapes", "grid"),
    nodes: str | Sequence[str] = (),
    theme: Look | str = "light",
    title: str | None = None,
    fps: float = 30.0,
    roots: Roots = (),
    detail: int = 6000,
) -> Path:
    """Write a mechanism, or a recording with its playback, as one HTML file.

    The file is complete: it can be sent by mail, and opened without a server or a network. Its time
    bar begins at zero, whenever the motion began.

    Args:
        subject: A mechanism, or a recording: what `lw.simulate` and `lw.rollout` return.
        path: The file, in an existing folder; an existing file is replaced once the page is
            complete.
        q: Joint positions (nq,), default: neutral; or (k, nq), a motion.
        t: Times of that motion (k,) [s]; default: 60 per second.
        show: Layers, as for `lw.view`.
        nodes: Nodes of belted ellipsoids and traces; default: the ends of the mechanism.
        theme: "light" or "dark".
        title: Title of the page; default: the mechanism's name.
        fps: Pictures per second.
        roots: Folders that may contain meshes, besides the model's own folder and package.
        detail: Most triangles of a mesh.

    Returns:
        The file.

    Raises:
        MissingExtraError: viser is not installed.
        ModelError: The subject is neither a mechanism nor a recording.
        WriteError: The file cannot be written; an existing one is unchanged.
    """
    page = html_page(
        subject,
        q,
        t=t,
        show=show,
        nodes=nodes,
        theme=theme,
        title=title,
        fps=fps,
        roots=roots,
        detail=detail,
    )
    file = Path(path)
    write_file(file, page)
    return file


def html_page(
    subject: Any,
    q: ArrayLike | None = None,
    *,
    t: ArrayLike | None = None,
    show: Iterable[str] = ("shapes", "grid"),
    nodes: str | Sequence[str] = (),
    theme: Look | str = "light",
    title: str | None = None,
    fps: float = 30.0,
    roots: Roots = (),
    detail: int = 6000,
) -> str:
    """The text of that page, which `export_html` writes to a file.

    Args:
        subject: See `export_html`, as for all arguments.
        q: Joint positions.
        t: Times of the motion (k,) [s].
        show: Names of the layers.
        nodes: Nodes of ellipsoids and traces.
        title: Title of the page.
        fps: Pictures per second.
        roots: Folders with meshes.
        detail: Most triangles of a mesh.
    """
    guard.viser("lw.viewer.export_html")
    mech, start, motion = subject_of(subject, q, t)
    layers, look = check_layers(show), look_of(theme)
    if not 0.0 < fps <= 240.0:
        raise ModelError(f"fps is {fps!r}; it must be a positive number up to 240.")
    scene = scene_of(mech, roots=roots, look=look, most=detail)
    if start is None:
        near, _ = closed_near(mech, mech.neutral())
        start = mech.neutral() if near is None else near
    given = (nodes,) if isinstance(nodes, str) else tuple(nodes)
    server = guard.start(
        "127.0.0.1", 0, mech.name
    )  # viser keeps its scene in a server; nobody connects
    try:
        frame = camera.framed(scene, start, motion, layers)
        server.gui.configure_theme(dark_mode=look.name == "dark", show_logo=False)
        camera.aim(server, frame)
        stage = Stage(server.scene, scene, look, given, resolution=24, motion=motion)
        stage.shown.update(x for x in layers if x == "grid")
        stage.floor(frame.ground, frame.middle, 2.0 * frame.radius)
        stage.pose(State(start))
        for layer in layers:
            stage.show(layer)
        stage.place(*stage.here, force=True)
        record = server.get_scene_serializer()
        if motion is not None and motion.duration > 0.0:
            rate = min(fps, MOST_FRAMES / motion.duration)
            pictures = max(2, round(motion.duration * rate) + 1)
            times = np.linspace(motion.start, motion.end, pictures)
            slow = max(1, round(rate / 6.0))  # overlays, six times per second
            grid = GRID * 2.0 ** np.floor(np.log2(scene.size))
            for i, time in enumerate(times):
                state = motion.state(float(time))
                turned, placed = frames(frame_poses(mech, state.q))
                stage.place(_rounded(turned, GRID), _rounded(placed, grid))
                if i % slow == 0:
                    stage.dress(state)
                record.insert_sleep(float(times[1] - times[0]))
        page: str = record.as_html(dark_mode=look.name == "dark")
    finally:
        guard.stop(server)
    name = html.escape(mech.name if title is None else title)
    return page.replace("<title>Viser</title>", f"<title>{name}</title>", 1)


def _rounded(values: Array, grid: float) -> Array:
    return np.rint(values / grid) * grid
