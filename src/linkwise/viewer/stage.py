"""A scene on a page: the only module that uses viser's scene."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwise.model.mechanism import Mechanism
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array
from linkwise.viewer.look import GLASS, INSIDE, ON_BODIES, Look, State, check_layers, check_nodes
from linkwise.viewer.motion import Motion
from linkwise.viewer.overlay import (
    Arrows,
    axis_arrows,
    belted_mesh,
    belted_scale,
    constraint_arrows,
    contact_arrows,
    inertia_parts,
    mass_parts,
    tips,
    trace,
)
from linkwise.viewer.scene import Part, Scene, frame_poses, frames


@dataclass(eq=False)
class Stage:
    """A scene on a page, drawn layer by layer on request.

    Attributes:
        page: viser's scene.
        scene: What is drawn.
        look: Colours.
        nodes: Nodes of belted ellipsoids and traces.
        resolution: Points around a belted ellipsoid.
    """

    page: Any
    scene: Scene
    look: Look
    nodes: tuple[str, ...] = ()
    resolution: int = 40
    motion: Motion | None = None
    belted_nodes: tuple[str, ...] = ()
    shown: set[str] = field(default_factory=set[str])
    _frames: dict[int, Any] = field(default_factory=dict[int, Any])
    _handles: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    _scales: dict[str, float] = field(default_factory=dict[str, float])
    _last: tuple[Array, Array] | None = None
    _state: State | None = None

    def __post_init__(self) -> None:
        given = check_nodes(self.mech, self.nodes)
        self.nodes = given or tips(self.mech)[:4]
        # A kernel is compiled for each; of large mechanisms that takes seconds.
        self.belted_nodes = given or self.nodes[: 4 if self.mech.nv <= 12 else 2]

    def prepare(self, layer: str, q: Array) -> None:
        """Compute ahead what takes long the first time, without touching the page."""
        if layer in self._scales or layer not in ("belted", "forces"):
            return
        if layer == "belted":
            scale = belted_scale(self.mech, q, self.belted_nodes, self.scene.size)
        else:
            scale = min((s for s in self._force_scales(q) if s > 0.0), default=0.0)
        if scale > 0.0:
            self._scales[layer] = scale

    def _force_scales(self, q: Array) -> Iterator[float]:
        """Metres for each newton that would be good for some states; the least is for all."""
        motion, size = self.motion, self.scene.size
        if motion is None:
            yield constraint_arrows(self.mech, q, size=size)[1]
            return
        yield contact_arrows(motion, motion.start, None, size)[1]
        for i in range(0, len(motion.t), max(1, len(motion.t) // 20)):
            v = None if motion.v is None else motion.v[i]
            tau = None if motion.tau is None else motion.tau[i]
            yield constraint_arrows(self.mech, motion.q[i], v, tau, size=size)[1]

    @property
    def mech(self) -> Mechanism:
        """The mechanism."""
        return self.scene.mech

    # ---------------------------------------------------------------------------- what is seen

    def show(self, layer: str, on: bool = True) -> None:
        """Show a layer or hide it."""
        check_layers([layer])
        if not on:
            self.shown.discard(layer)
            for handle in self._handles.get(layer, ()):
                handle.visible = False
        else:
            self.shown.add(layer)
            self._reveal(layer)
        self._glaze()

    def _reveal(self, layer: str) -> None:
        if layer in ON_BODIES:
            if layer not in self._handles:
                self._handles[layer] = self._on_bodies(layer)
                if self._last is not None:
                    self.place(*self._last, force=True)
            for handle in self._handles[layer]:
                handle.visible = True
        elif layer != "grid":
            for handle in self._handles.get(layer, ()):
                handle.visible = True
            self.dress(self._state, (layer,))
        else:
            for handle in self._handles.get("grid", ()):
                handle.visible = True

    def _glaze(self) -> None:
        """Shapes are seen through while something inside of them is shown."""
        glass = any(layer in self.shown for layer in INSIDE)
        parts = [part for part in self.scene.parts if part.layer == "shapes"]
        for handle, part in zip(self._handles.get("shapes", ()), parts, strict=False):
            opacity = GLASS * part.opacity if glass else part.opacity
            shown = None if opacity >= 1.0 else opacity
            if handle.opacity != shown:
                handle.opacity = shown

    def floor(self, height: float, middle: Array, span: float) -> None:
        """A grid at this height [m] under a point, for a scene of this width."""
        cell = round_length(0.3 * span)
        at = (round(float(middle[0]) / cell) * cell, round(float(middle[1]) / cell) * cell, height)
        handle = self.page.add_grid(
            "/floor",
            width=40.0 * span,
            height=40.0 * span,
            plane="xy",
            cell_size=float(0.2 * cell),
            section_size=float(cell),
            cell_color=self.look.grid,
            section_color=self.look.section,
            fade_distance=float(7.0 * span),
            fade_strength=1.5,
            fade_from="origin",
            shadow_opacity=0.16,
            position=at,
            visible="grid" in self.shown,
        )
        self._handles["grid"] = [handle]

    # ------------------------------------------------------------------------------- movement

    def place(self, turned: Array, placed: Array, *, force: bool = False) -> None:
        """Put all frames where they are: quaternions (n, 4) and positions (n, 3)."""
        before = None if force else self._last
        for k, handle in self._frames.items():
            if k < 0:
                continue
            if before is None or not np.array_equal(before[0][k], turned[k]):
                handle.wxyz = turned[k]
            if before is None or not np.array_equal(before[1][k], placed[k]):
                handle.position = placed[k]
        self._last = (np.array(turned), np.array(placed))

    @property
    def here(self) -> tuple[Array, Array]:
        """Where all frames are: quaternions (n, 4) and positions (n, 3)."""
        assert self._last is not None, "nothing was placed yet"
        return self._last

    def pose(self, state: State) -> None:
        """Show a state: bodies, and what is drawn over them."""
        self._state = state
        self.place(*frames(frame_poses(self.mech, state.q)))
        self.dress(state)

    def dress(self, state: State | None, layers: Sequence[str] | None = None) -> None:
        """Draw anew what depends on the state, as far as it is shown."""
        self._state = state
        if state is None:
            return
        for layer in layers or tuple(self.shown):
            if layer in self.shown and layer not in ON_BODIES and layer != "grid":
                getattr(self, f"_{layer}")(state)

    # --------------------------------------------------------------------------------- layers

    def _path(self, k: int) -> str:
        bodies = self.mech.bodies
        name = "ground" if k < 0 else bodies[k].name if k < len(bodies) else "bending"
        path = f"/robot/{k + 1} {re.sub(r'[/]', '_', name)}"
        if k not in self._frames:
            self._frames[k] = self.page.add_frame(path, show_axes=False)
        return path

    def _on_bodies(self, layer: str) -> list[Any]:
        size, look = self.scene.size, self.look
        if layer == "frames":
            return self._axes_of_frames()
        if layer == "names":
            return [
                self.page.add_label(f"{self._path(k)}/name", body.name, font_screen_scale=0.8)
                for k, body in enumerate(self.mech.bodies)
            ]
        parts: Sequence[Part] = (
            mass_parts(self.mech, size, look)
            if layer == "masses"
            else inertia_parts(self.mech, look)
            if layer == "inertia"
            else [part for part in self.scene.parts if part.layer == layer]
        )
        return [self._surface(f"{layer} {i}", part) for i, part in enumerate(parts)]

    def _surface(self, name: str, part: Part) -> Any:
        seen_through = part.opacity < 1.0
        return self.page.add_mesh_simple(
            f"{self._path(part.body)}/{name}",
            part.mesh.vertices.astype(np.float32),
            part.mesh.faces.astype(np.uint32),
            color=part.rgb,
            opacity=part.opacity if seen_through else None,
            cast_shadow=not seen_through,
            receive_shadow=not seen_through,
        )

    def _axes_of_frames(self) -> list[Any]:
        length = 0.075 * self.scene.size
        style = {"axes_length": length, "axes_radius": 0.045 * length, "origin_radius": 0.0}
        handles = [
            self.page.add_frame(f"{self._path(k)}/frame", **style)
            for k in range(self.mech.n_bodies)
        ]
        for i, node in enumerate(self.mech.nodes):
            if node.body in self.mech.body_index and node.body != "world":
                k = self.mech.body_index[node.body]
                handle = self.page.add_frame(
                    f"{self._path(k)}/node {i}",
                    wxyz=quaternion.from_matrix(node.pose.rot),
                    position=np.asarray(node.pose.p),
                    axes_length=0.6 * length,
                    axes_radius=0.03 * length,
                    origin_radius=0.0,
                )
                handles.append(handle)
        return handles

    def _axes(self, state: State) -> None:
        arrows = axis_arrows(self.mech, state.q, self.scene.size)
        colors = {"turn": self.look.hinge, "slide": self.look.slide}
        self._arrows("axes", arrows, colors, 0.006 * self.scene.size)

    def _forces(self, state: State) -> None:
        self.prepare("forces", state.q)
        scale, size = self._scales.get("forces"), self.scene.size
        arrows, scale = constraint_arrows(self.mech, state.q, state.v, state.tau, scale, size)
        more, _ = contact_arrows(self.motion, state.time, scale or None, size)
        both = Arrows(np.concatenate([arrows.points, more.points]), (*arrows.kinds, *more.kinds))
        colors = {"constraint": self.look.force, "contact": self.look.hinge}
        self._arrows("forces", both, colors, 0.008 * self.scene.size)

    def _arrows(self, layer: str, arrows: Arrows, colors: dict[str, Any], radius: float) -> None:
        """Arrows of a layer; they are one object of the page, with new points each time."""
        handles = self._handles.get(layer, [])
        tint = np.array([colors[kind] for kind in arrows.kinds], dtype=np.uint8).reshape(-1, 3)
        if not len(arrows):
            for handle in handles:
                handle.visible = False
            return
        if handles and len(handles[0].points) == len(arrows):
            handles[0].points = arrows.points.astype(np.float32)
            handles[0].visible = True
            return
        for handle in handles:
            handle.remove()
        self._handles[layer] = [
            self.page.add_arrows(
                f"/over/{layer}",
                arrows.points.astype(np.float32),
                tint,
                shaft_radius=radius,
                head_radius=2.4 * radius,
                head_length=5.0 * radius,
            )
        ]

    def _belted(self, state: State) -> None:
        self.prepare("belted", state.q)
        scale = self._scales.get("belted", 0.0)
        handles = dict(zip(self.belted_nodes, self._handles.get("belted", ()), strict=False))
        made = list[Any]()
        for i, node in enumerate(self.belted_nodes):
            mesh = belted_mesh(self.mech, state.q, node, scale, self.resolution)
            handle = handles.get(node)
            if mesh is None:
                if handle is not None:
                    handle.visible = False
                    made.append(handle)
                continue
            points = mesh.vertices.astype(np.float32)
            if handle is not None and len(handle.vertices) == len(points):
                handle.vertices = points
                handle.visible = True
            else:
                handle = self.page.add_mesh_simple(
                    f"/over/belted {i}",
                    points,
                    mesh.faces.astype(np.uint32),
                    color=self.look.belted,
                    opacity=0.55,
                    side="double",
                    cast_shadow=False,
                    receive_shadow=False,
                )
            made.append(handle)
        self._handles["belted"] = made

    def _traces(self, state: State) -> None:
        if self.motion is None or self._handles.get("traces"):
            return
        made = list[Any]()
        for i, node in enumerate(self.nodes):
            path = trace(self.mech, self.motion.q, node)
            path = path[:: max(1, len(path) // 400)]
            if len(path) < 2 or np.ptp(path, axis=0).max() < 1e-6 * self.scene.size:
                continue
            handle = self.page.add_line_segments(
                f"/over/trace {i}",
                np.stack([path[:-1], path[1:]], axis=1).astype(np.float32),
                self.look.traces[i % len(self.look.traces)],
                thickness=2.5,
                thickness_units="screen",
            )
            made.append(handle)
        self._handles["traces"] = made

    def forget(self, layer: str) -> None:
        """Take a layer off the page; it is drawn again on request."""
        for handle in self._handles.pop(layer, ()):
            handle.remove()


def round_length(length: float) -> float:
    """The largest of 1, 2, 5, 10 ... [m] that is not longer."""
    power = 10.0 ** np.floor(np.log10(length))
    return float(power * max(x for x in (1.0, 2.0, 5.0) if x * power <= length * (1.0 + 1e-9)))
