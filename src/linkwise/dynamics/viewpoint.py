"""Viewpoints of velocities and forces of nodes: their axes and their point.

Velocities V_W = (ω, v) of a node N, in world axes and at its origin, become

    y = R (ω, v + ω × p),   R = rot_FW,   p = p_NP_W                                        (1)

in the axes of a frame F and for the point P, as if it were fixed on the node's body. Both move:

    ẏ = R (ω̇, v̇ + ω̇ × p + ω × ṗ) − R (ω_F × ω, ω_F × (v + ω × p)),   ṗ = v_P − v_N           (2)

Forces f at P in the axes of F act in world axes about N with the adjoint of (1):

    f_W = (R* n + p × R* f, R* f)                                                           (3)

The axes of the node or of the world about the node's origin need none of this: kernels have them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.codegen.formula import Formula
from linkwise.dynamics.kernels import Nodes, check_mechanism, node_names, written
from linkwise.dynamics.quantity import expression
from linkwise.errors import ModelError, UnknownNameError, unknown_name
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.rotation import skew

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


@dataclass(frozen=True, slots=True)
class Viewpoint:
    """Axes and point for k nodes, in a formula.

    Attributes:
        rot: R (k, 3, 3), from world axes to those of F.
        p: p_NP_W (k, 3), from each node to the point [m].
    """

    rot: Any
    p: Any

    def moved(self, J: Any) -> Any:
        """(1) for the columns of J (k, 6, m)."""
        return self.turned(J[:, :3], J[:, 3:] - skew(self.p) @ J[:, :3])

    def turned(self, angular: Any, linear: Any) -> Any:
        """Columns (k, 3, m) from world axes to those of F."""
        return np.concatenate([self.rot @ angular, self.rot @ linear], axis=1)

    def to_node(self, f: Any) -> Any:
        """(3) for forces (k, 6)."""
        back = np.swapaxes(self.rot, -1, -2)
        moment, force = (back @ f[:, i : i + 3, None] for i in (0, 3))
        return np.concatenate([moment + skew(self.p) @ force, force], axis=1)[..., 0]


@dataclass(frozen=True, slots=True)
class Motion:
    """How nodes and their viewpoint move, in world axes.

    Attributes:
        V: Velocities of the nodes (k, 6), at their origins.
        w_F: ω_F (k, 3) [rad/s].
        pdot: ṗ (k, 3) [m/s].
    """

    V: Any
    w_F: Any
    pdot: Any

    def rate(self, at: Viewpoint, J: Any, J_dot: Any) -> Any:
        """(2) for the columns of J (k, 6, m), with J_dot their rate in world axes.

        Both are at the origins of the nodes.
        """
        turn, move = J[:, :3], J[:, 3:] - skew(at.p) @ J[:, :3]
        turn_dot = J_dot[:, :3]
        move_dot = J_dot[:, 3:] - skew(self.pdot) @ turn - skew(at.p) @ turn_dot
        carried = skew(self.w_F)
        return at.turned(turn_dot - carried @ turn, move_dot - carried @ move)


def by_node(J: Any) -> Any:
    """Rows (6 k, m) as (k, 6, m), and (6 k,) as (k, 6, 1)."""
    return J.reshape(len(J) // 6, 6, *J.shape[1:] or (1,))


def check(mech: Mechanism | Embedded, frame: object, about: object) -> None:
    """Raise unless the frame and the point belong to the mechanism."""
    check_mechanism(mech)
    known = [*mech.node_index, *mech.body_index]
    for what, name, more in (("frame", frame, ("node",)), ("about", about, ())):
        if isinstance(name, str) and (name in known or name in more):
            continue
        if what == "about" and name is None:
            continue
        allowed = "'node' or 'world'" if more else "'world'"
        near = str(unknown_name("node or body", name, known, owner=f"mechanism {mech.name!r}"))
        raise UnknownNameError(
            f"{what} is {name!r}; it must be {allowed}, or the name of a node or body: {near}"
        )


def viewed(
    mech: Mechanism | Embedded,
    write: Callable[..., Any],
    nodes: Nodes,
    frame: str,
    about: str | None,
) -> Any:
    """The kernel of a formula `write(at, frame, about)` on nodes: made once, then kept."""
    names = nodes if isinstance(nodes, str) else node_names(nodes)
    return _viewed(mech, write, names, frame, about)


@once_per_mechanism
def _viewed(
    mech: Mechanism | Embedded,
    write: Callable[..., Any],
    nodes: str | tuple[str, ...],
    frame: str,
    about: str | None,
) -> Any:
    check(mech, frame, about)
    if not nodes:
        raise ModelError("this function needs a node, and none was given; name at least one.")
    return written(mech, Formula(write, (frame, about)), nodes)


def viewpoint(at: Writing, frame: str, about: str | None) -> Viewpoint:
    """F and P as seen from each node, in a formula."""
    poses = at.value(expression("node_poses"), nodes=_with_ends(at, frame, about))
    poses = poses.reshape(-1, 3, 4)
    rot, p = poses[:-2, :, :3], poses[:-2, :, 3]
    if frame != "node":
        rot = np.broadcast_to(poses[-2, :, :3], rot.shape)
    towards = np.zeros(p.shape) if about is None else poses[-1, :, 3] - p
    return Viewpoint(np.swapaxes(rot, -1, -2), towards)


def motion(at: Writing, frame: str, about: str | None) -> Motion:
    """How F and P move in the world while the joints move with v, in a formula."""
    velocity = expression("node_velocity", frame="world")
    V = at.value(velocity, nodes=_with_ends(at, frame, about)).reshape(-1, 6)
    V_N = V[:-2]
    w_F = V_N[:, :3] if frame == "node" else np.broadcast_to(V[-2, :3], V_N[:, :3].shape)
    pdot = np.zeros(w_F.shape) if about is None else V[-1, 3:] - V_N[:, 3:]
    return Motion(V_N, w_F, pdot)


def _with_ends(at: Writing, frame: str, about: str | None) -> tuple[str, ...]:
    """The nodes, then F, then P; the world for the one that is not needed."""
    return (*at.nodes, "world" if frame == "node" else frame, about or "world")
