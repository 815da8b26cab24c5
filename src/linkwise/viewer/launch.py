"""A mechanism or a motion in a web page on this machine: `lw.view`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from linkwise.io.mesh_path import Roots
from linkwise.spatial.array import ArrayLike
from linkwise.viewer import guard
from linkwise.viewer.look import Look, check_layers, look_of
from linkwise.viewer.motion import subject_of
from linkwise.viewer.server import Viewer


def view(
    subject: Any,
    q: ArrayLike | None = None,
    *,
    t: ArrayLike | None = None,
    port: int = 0,
    host: str = "127.0.0.1",
    open_browser: bool | None = None,
    show: Iterable[str] = ("shapes", "grid"),
    nodes: str | Sequence[str] = (),
    theme: Look | str = "light",
    roots: Roots = (),
    speed: float = 1.0,
    loop: bool = True,
    quiet: bool = False,
) -> Viewer:
    """Show a mechanism, or play a recording, in a web page that this machine serves.

    The page has a slider for each coordinate, a checkbox for each layer, and a time bar for a
    motion. The server runs in the background: `lw.view` returns at once. `viewer.close()`, `with`
    or the end of the program closes it; `viewer.block()` waits.

    Args:
        subject: A mechanism, or a recording: what `lw.simulate` and `lw.rollout` return.
        q: Initial joint positions (nq,), default: neutral; or (k, nq), a motion.
        t: Times of that motion (k,) [s]; default: 60 per second.
        port: Port to listen at; 0 selects a free one.
        host: Address to listen at; default: only this machine can see the page. "0.0.0.0" admits
            everybody who can reach the machine: there is no password.
        open_browser: Whether to open a browser; None opens one if there is a display. The address
            is printed.
        show: Layers: "shapes", "collision", "frames", "axes", "masses", "inertia", "belted",
            "forces", "traces", "names", "grid".
        nodes: Nodes of belted ellipsoids and traces; default: the ends of the mechanism.
        theme: "light" or "dark".
        roots: Folders that may contain meshes, besides the model's own folder and package.
        speed: Speed of a motion; 1 for real time.
        loop: Whether a motion restarts at its end.
        quiet: Whether to print nothing.

    Returns:
        A `Viewer`.

    Raises:
        MissingExtraError: viser is not installed.
        ViewerError: The port is busy (a free one is named) or the address cannot be used.
        ModelError: The subject is neither a mechanism nor a recording.
    """
    guard.viser("lw.view")
    mech, start, motion = subject_of(subject, q, t)
    layers, look = check_layers(show), look_of(theme)
    viewer = Viewer(mech, start, motion, layers, nodes, look, roots, host, port, speed, loop)
    if not quiet:
        print(viewer.greeting, flush=True)
    if open_browser or (open_browser is None and has_display()):
        viewer.open()
    return viewer


def has_display() -> bool:
    """Whether a browser window would be visible: a display, and no remote login."""
    if os.environ.get("CI") or os.environ.get("SSH_CONNECTION") or "ipykernel" in sys.modules:
        return False
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
