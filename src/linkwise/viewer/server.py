"""A page and the server behind it: what `lw.view` returns."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import threading
import time
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.arguments import names, rows
from linkwise.errors import LinkwiseError, ShapeError, ViewerError
from linkwise.io.mesh_path import Roots
from linkwise.model.hinges import Hinge
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.viewer import camera, guard
from linkwise.viewer.controls import Controls
from linkwise.viewer.dial import closed_near
from linkwise.viewer.export import export_html, frame_of
from linkwise.viewer.look import Look, State
from linkwise.viewer.motion import Motion, subject_of
from linkwise.viewer.playback import Playback
from linkwise.viewer.scene import scene_of
from linkwise.viewer.stage import Stage

PANEL = 0.1
"""Interval at which the time bar and the sliders follow a motion [s]."""

PANEL_WIDTH = 340.0
"""Width of the panel [pixel]."""


class Viewer:
    """A page and the server behind it. Made by `lw.view`.

    Attributes:
        mech: The mechanism.
        motion: What is played, or None.
        playback: The clock of the motion.
    """

    def __init__(
        self,
        mech: Mechanism,
        q: Array | None,
        motion: Motion | None,
        layers: Sequence[str],
        nodes: str | Sequence[str],
        look: Look,
        roots: Roots,
        host: str,
        port: int,
        speed: float,
        loop: bool,
    ) -> None:
        self.mech, self.motion = mech, motion
        self._look = look
        self._start = self._first(q)
        self._q = np.array(self._start)
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._panel = 0.0
        scene = scene_of(mech, roots=roots, look=look)
        self._options: dict[str, Any] = {"nodes": nodes, "theme": look, "roots": roots}
        start, end = (0.0, 0.0) if motion is None else (motion.start, motion.end)
        self.playback = Playback(start, end, self._at, loop=loop, speed=speed)
        for node in names(nodes, "nodes"):
            mech.node(node)
        self._host = guard.address(host)
        self._server = guard.start(self._host, port, mech.name)
        try:
            self._build(scene, layers, nodes, look)
        except BaseException:
            guard.stop(self._server)
            raise
        atexit.register(self.close)
        if motion is not None:
            self.resume()
        elif mech.loops:  # compile what a slider needs in advance
            threading.Thread(target=self._warm, name="warming", daemon=True).start()

    def _warm(self) -> None:
        with contextlib.suppress(LinkwiseError):
            closed_near(self.mech, self._start, quick=False)

    def _first(self, q: Array | None) -> Array:
        """The initial state: as given; else neutral, with loops closed if possible."""
        if q is not None:
            return np.array(q)
        near, _ = closed_near(self.mech, self.mech.neutral())
        return self.mech.neutral() if near is None else near

    def _build(self, scene: Any, layers: Sequence[str], nodes: Any, look: Look) -> None:
        server, frame = self._server, camera.framed(scene, self._start, self.motion, layers)
        server.gui.configure_theme(
            dark_mode=look.name == "dark",
            show_logo=False,
            show_share_button=False,
            brand_color=look.slide,
        )
        panel = getattr(server.gui, "main_panel", None)
        if panel is not None:
            panel.dock_right()
            panel.set_width(PANEL_WIDTH)
        camera.aim(server, frame)
        server.on_client_connect(functools.partial(camera.aim_narrow, frame))
        given = (nodes,) if isinstance(nodes, str) else tuple(nodes)
        self._stage = Stage(server.scene, scene, look, given, motion=self.motion)
        self._stage.shown.update(x for x in layers if x == "grid")
        self._stage.floor(frame.ground, frame.middle, 2.0 * frame.radius)
        self._stage.pose(State(self._q))
        for layer in layers:
            self._stage.show(layer)
        self._stage.place(*self._stage.here, force=True)
        self._controls = Controls(server.gui, self)
        if scene.missing:
            self._controls.tell(_missing(scene.missing))

    # ---------------------------------------------------------------------------- what it is

    @property
    def host(self) -> str:
        """The address it listens at."""
        return self._host

    @property
    def port(self) -> int:
        """The port it listens at."""
        return int(self._server.get_port())

    @property
    def url(self) -> str:
        """The page's address, for a browser on this machine."""
        return guard.url(self._host, self.port)

    @property
    def reach(self) -> float:
        """About how large the mechanism is [m]."""
        return self._stage.scene.size

    @property
    def q(self) -> Array:
        """Joint positions that are shown (nq,)."""
        with self._lock:
            return np.array(self._q)

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed.is_set()

    @property
    def clients(self) -> int:
        """The number of connected pages."""
        return len(self._server.get_clients())

    @property
    def greeting(self) -> str:
        """The first lines on the terminal: the address, and missing meshes."""
        lines = [f"{self.mech.name}: {self.url}"]
        scene = self._stage.scene
        if scene.missing:
            lines.append("  " + _missing(scene.missing))
        if not guard.is_loopback(self._host):
            lines.append("  it listens beyond this machine, and asks for no password")
        return "\n".join(lines)

    # ------------------------------------------------------------------------------- its pose

    def set(self, q: ArrayLike) -> None:
        """Show joint positions (nq,); a motion that plays is paused.

        They are shown unchanged: open loops appear open.
        """
        given = self.mech.check_q(q)
        if given.ndim != 1:
            raise ShapeError(
                f"q has shape {given.shape}; one configuration is ({self.mech.nq},). A motion is "
                "shown by viewer.play(recording)."
            )
        self._check_open()
        self.pause()
        self._set(given)

    def _set(self, q: Array, *, but: str | None = None, message: str = "") -> None:
        with self._lock, self._server.atomic():
            if self.closed:
                return
            self._q = np.array(q)
            self._stage.pose(State(self._q))
            self._controls.update(self._q, but=but)
            self._controls.tell(message)

    def dial(self, hinge: str, change: Callable[[Array], Array]) -> None:
        """Move one hinge; the others follow to keep loops closed, or a message says why not."""
        self.pause()
        with self._lock:
            if self.closed:
                return
            turned = change(np.array(self._q))
            rows(turned, self.mech.nq, "what change gives", stacked=False)
            closed, why = closed_near(self.mech, turned, hinge)
            if closed is None:
                self._set(self._q, message=f"{hinge} cannot go there: {why}")
            else:
                self._set(closed, but=hinge)

    def reset(self) -> None:
        """Return to the initial state."""
        self._close_and_set(self._start)

    def neutral(self) -> None:
        """All hinges at neutral; loops are closed near there."""
        self._close_and_set(self.mech.neutral())

    def random(self, seed: int | np.random.Generator | None = None) -> None:
        """A random configuration within the limits, with closed loops if one is found."""
        self._close_and_set(self.mech.random(seed))

    def _close_and_set(self, q: Array) -> None:
        self._check_open()
        self.pause()
        closed, why = closed_near(self.mech, q)
        if closed is None:
            self._set(self._q, message=f"no closed configuration was found there: {why}")
        else:
            self._set(closed)

    # -------------------------------------------------------------------------------- motion

    def play(self, subject: Any, q: ArrayLike | None = None, t: ArrayLike | None = None) -> None:
        """Play a recording of the same mechanism, or a motion of arrays q (k, nq) and t (k,)."""
        self._check_open()
        mech, _, motion = subject_of(subject, q, t)
        if motion is None:
            raise ViewerError("viewer.play takes a recording, or a mechanism with q of (k, nq).")
        other = _difference(mech, self.mech)
        if other:
            raise ViewerError(
                f"the recording is of {mech.name!r}, and this viewer shows {self.mech.name!r}: "
                f"{other}. Use lw.view(recording) for another viewer."
            )
        self.playback.close()
        with self._lock:
            self.motion = self._stage.motion = motion
            self._stage.forget("traces")
            loop, speed = self.playback.loop, self.playback.speed
            self.playback = Playback(motion.start, motion.end, self._at, loop=loop, speed=speed)
            self._server.gui.reset()
            self._controls = Controls(self._server.gui, self)
        self.resume()

    @property
    def playing(self) -> bool:
        """Whether a motion plays."""
        return self.playback.playing

    @property
    def time(self) -> float:
        """The current time of the motion [s]."""
        return self.playback.time

    def resume(self) -> None:
        """Continue the motion."""
        self.playback.play()
        if self.motion is not None:
            self._controls.clock(self.time, self.playing)

    def pause(self) -> None:
        """Stop the motion where it is."""
        if self.playing:
            self.playback.pause()
            with self._lock:
                self._controls.clock(self.time, False)
                self._controls.update(self._q)

    def seek(self, t: float) -> None:
        """Go to a time of the motion [s]."""
        self._check_open()
        self.playback.seek(t)

    def _at(self, t: float) -> None:
        """Show the motion at a time: called by the clock, in its own thread."""
        motion = self.motion
        if motion is None or self.closed:
            return
        state = motion.state(t)
        with self._lock, self._server.atomic():
            self._q = np.array(state.q)
            self._stage.pose(state)
            now = time.perf_counter()
            if now - self._panel > PANEL or not self.playing:
                self._panel = now
                self._controls.clock(t, self.playing)
                self._controls.update(self._q)

    # -------------------------------------------------------------------------------- layers

    def has(self, layer: str) -> bool:
        """Whether there is anything to see in a layer."""
        if layer == "collision":
            return any(part.layer == "collision" for part in self._stage.scene.parts)
        if layer == "traces":
            return self.motion is not None
        if layer == "forces":
            return bool(self.mech.loops) or self.motion is not None
        return True

    def shows(self, layer: str) -> bool:
        """Whether a layer is shown."""
        return layer in self._stage.shown

    def show(self, layer: str, on: bool = True) -> None:
        """Show a layer, "frames" for instance, or hide it."""
        self._check_open()
        if on:
            self._stage.prepare(layer, self.q)  # a motion plays on meanwhile
        with self._lock, self._server.atomic():
            if not self.closed:
                self._stage.show(layer, on)
                self._controls.tick(layer, on)

    # ---------------------------------------------------------------------------------- life

    def open(self) -> bool:
        """Open the page in a browser; False, and a line on the terminal, if there is none."""
        try:
            done = bool(webbrowser.open(self.url))
        except (webbrowser.Error, OSError):
            done = False
        if not done:
            print(f"no browser could be started; open {self.url} in one.", flush=True)
        return done

    def export(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write what is shown as a page that needs no server: see `lw.viewer.export_html`."""
        if self.motion is not None:
            return export_html(self.motion, path, **{**self._shown(), **options})
        return export_html(self.mech, path, self.q, **{**self._shown(), **options})

    def _shown(self) -> dict[str, Any]:
        return {**self._options, "show": sorted(self._stage.shown)}

    def close(self) -> None:
        """Stop the server and free its port. A second time it does nothing."""
        if self._closed.is_set():
            return
        self._closed.set()
        atexit.unregister(self.close)
        self.playback.close()
        with self._lock:  # after pending requests of a page
            guard.stop(self._server)

    def block(self) -> None:
        """Wait until the viewer is closed, or Ctrl-C is pressed, which closes it."""
        try:
            while not self._closed.wait(0.2):
                pass
        except KeyboardInterrupt:
            self.close()

    def _check_open(self) -> None:
        if self.closed:
            raise ViewerError(
                f"the viewer of {self.mech.name!r} was closed; lw.view opens another."
            )

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else self.url
        return f"<Viewer of {self.mech.name!r}: {state}>"

    def _repr_html_(self) -> str:
        return f"<p>{self!r}</p>" if self.closed else frame_of(self.url)


def _difference(mech: Mechanism, shown: Mechanism) -> str:
    """Why a motion of one mechanism cannot be shown by another; empty if it can."""
    if mech is shown:
        return ""
    if mech.n_bodies != shown.n_bodies or mech.nq != shown.nq:
        return (
            f"{mech.n_bodies} bodies and {mech.nq} coordinates, not {shown.n_bodies} and {shown.nq}"
        )
    for a, b in zip(mech.bodies, shown.bodies, strict=True):
        if (a.name, a.parent) != (b.name, b.parent):
            return f"it has {a.name!r} on {a.parent!r} where this has {b.name!r} on {b.parent!r}"
        if a.hinge_name != b.hinge_name or not _alike(a.hinge, b.hinge):
            return f"body {a.name!r} has another hinge, {a.hinge_name!r} for {b.hinge_name!r}"
        for one, two in ((a.inboard, b.inboard), (a.outboard, b.outboard)):
            if not (np.allclose(one.p, two.p) and np.allclose(one.rot, two.rot)):
                return f"hinge {a.hinge_name!r} is at another place"
    return ""


def _alike(a: Hinge, b: Hinge) -> bool:
    """Whether two hinges are of one kind and about the same axes."""
    if type(a) is not type(b):
        return False
    return np.allclose(a.hinge_map(a.neutral()), b.hinge_map(b.neutral()))


def _missing(missing: dict[str, str]) -> str:
    first, reason = next(iter(missing.items()))
    more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
    return f"mesh {first!r}{more} not shown ({reason}); a generated shape replaces it"
