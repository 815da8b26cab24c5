"""Skeletons of mechanisms: lines through their joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.arguments import number
from linkwise.errors import ShapeError
from linkwise.inertial.ellipsoid import Plane, plane_basis
from linkwise.model.hinges import Free, Locked, Prismatic
from linkwise.model.lumps import wires
from linkwise.model.mechanism import Mechanism
from linkwise.plot.canvas import Axes, ThemeLike, axes_for, hold, metres, opacity, themed, tint
from linkwise.spatial.array import Array, ArrayLike


@dataclass(frozen=True, slots=True, eq=False)
class Bones:
    """What a skeleton is made of, in the world [m].

    Attributes:
        links: Lines of bodies (k, 2, 3): from their hinges to those of their children and to nodes.
        slides: Lines of hinges that slide (k, 2, 3).
        pins: Places of hinges that turn (k, 3).
        ground: Points where bodies are attached to the ground (k, 3).
        tips: Nodes at the ends (k, 3).
    """

    links: Array
    slides: Array
    pins: Array
    ground: Array
    tips: Array

    @property
    def points(self) -> Array:
        """All of them (k, 3)."""
        lines = (self.links.reshape(-1, 3), self.slides.reshape(-1, 3))
        return np.concatenate([*lines, self.pins, self.ground, self.tips])


def bones(mech: Mechanism, q: ArrayLike, nodes: Sequence[str] = ()) -> Bones:
    """The lines of a mechanism in one state; nodes that are named are shown as well."""
    q = mech.check_q(q)
    if q.ndim != 1:
        raise ShapeError(f"q has shape {q.shape}; a skeleton is of one state, ({mech.nq},).")
    poses = mech.poses(q)
    leaves = {body.name for k, body in enumerate(mech.bodies) if not mech.children[k]}
    ends = {name for loop in mech.loops for name in (loop.node_a, loop.node_b)}
    links, slides = list[Array](), list[Array]()
    pins, ground, tips = list[Array](), list[Array](), list[Array]()
    outer = list[Array]()  # O of each body
    bent = {wire.body: wire for wire in wires(mech)}
    for k, body in enumerate(mech.bodies):
        X_WB, above = poses[k], int(mech.parent[k])
        inner = body.inboard if above < 0 else poses[above] @ body.inboard  # O⁺
        outer.append(np.asarray((X_WB @ body.outboard.inverse()).p))
        at = np.asarray(inner.p)
        if isinstance(body.hinge, Free):  # on nothing: neither the ground nor its parent holds it
            continue
        if above < 0:
            ground.append(at)
        else:
            links.append(np.stack([outer[above], at]))
        if k in bent:  # the lines of a flexible body, from its reference frame
            line = inner.apply(bent[k].nodes(q[mech.q_start[k] : mech.q_start[k + 1]]))
            links += [line[[a, b]] for a, b in bent[k].pairs]
            continue
        if isinstance(body.hinge, Prismatic) or np.linalg.norm(outer[k] - at) > 1e-12:
            slides.append(np.stack([at, outer[k]]))
        if not isinstance(body.hinge, Prismatic | Locked):
            pins.append(outer[k])
    for node in mech.nodes:
        if node.body in mech.body_index and (node.body in leaves or node.name in {*nodes, *ends}):
            k = mech.body_index[node.body]
            tips.append(np.asarray((poses[k] @ node.pose).p))
            links.append(np.stack([outer[k], tips[-1]]))
    return Bones(_rows(links, 2), _rows(slides, 2), _rows(pins), _rows(ground), _rows(tips))


def _rows(parts: Sequence[Array], lines: int = 0) -> Array:
    shape = (len(parts), 2, 3) if lines else (len(parts), 3)
    return np.asarray(parts, dtype=np.float64).reshape(shape)


def skeleton(
    mech: Mechanism,
    q: ArrayLike,
    *,
    plane: Plane | None = None,
    nodes: Sequence[str] = (),
    ax: Axes | None = None,
    theme: ThemeLike = "light",
    color: str | None = None,
    width: float = 3.0,
    alpha: float = 1.0,
) -> Axes:
    """Lines through the joints of a mechanism.

    Links are lines, bent ones where they are flexible. Hinges that turn are rings, those that slide
    are double lines with a square at the end, the ground is a triangle, nodes at ends are dots.

    Args:
        q: Joint positions (nq,) [m or rad].
        plane: Seen along the normal of this plane, "xz" or two directions (2, 3); by default in
            space.
        nodes: More nodes to be shown, by their names.
        color: Of all; by default the ink of the theme.
        width: Of links [points].
        alpha: 1 for solid, less for a shadow of itself.

    Returns:
        The Axes.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    look = themed(theme)
    basis = np.eye(3) if plane is None else plane_basis(plane)
    drawn = bones(mech, q, nodes)
    board = axes_for(ax, 3 if plane is None else 2, look)
    ink, alpha = tint(color, look.ink), opacity(alpha)
    width = number(width, "width", least=0.0)
    line = {"color": ink, "alpha": alpha, "solid_capstyle": "round", "zorder": 3}
    for a, b in drawn.links @ basis:
        board.plot(*np.stack([a, b], axis=-1), lw=width, **line)
    for a, b in drawn.slides @ basis:
        board.plot(*np.stack([a, b], axis=-1), lw=0.9 * width, **line)
        board.plot(*np.stack([a, b], axis=-1), lw=0.35 * width, **{**line, "color": look.paper})
    mark = {"linestyle": "none", "alpha": alpha, "zorder": 4, "markeredgecolor": ink}
    size = 2.1 * width
    below = {"marker": 6, "ms": 2.0 * size, "markerfacecolor": ink}  # its tip is at the point
    board.plot(*(drawn.ground @ basis).T, **below, **mark)
    carriages = drawn.slides[:, 1] @ basis
    board.plot(*carriages.T, marker="s", ms=0.9 * size, **mark, markerfacecolor=ink)
    rings = {"markerfacecolor": look.paper, "markeredgewidth": 0.45 * width}
    board.plot(*(drawn.pins @ basis).T, marker="o", ms=size, **mark, **rings)
    board.plot(*(drawn.tips @ basis).T, marker="o", ms=0.8 * size, **mark, markerfacecolor=ink)
    metres(board, plane if isinstance(plane, str) else "xyz" if plane is None else "uv")
    hold(board, drawn.points)
    return board
