"""From where velocities and forces of nodes are looked at: in which axes, about which point.

Velocities V_W = (ω, v) of a node N, in world axes and at its origin, become

    y = R (ω, v + ω × p),   R = rot_FW,   p = p_NP_W                                        (1)

in the axes of a frame F and for the point P, as if it were fixed on the node's body. Both move:

    ẏ = R (ω̇, v̇ + ω̇ × p + ω × ṗ) − R (ω_F × ω, ω_F × (v + ω × p)),   ṗ = v_P − v_N           (2)

Forces f at P in the axes of F act in world axes about N with the adjoint of (1):

    f_W = (R* n + p × R* f, R* f)                                                           (3)

What kernels do themselves, the axes of the node or of the world about the node's own origin, needs
none of this.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.dynamics.codes import Codes
from linkwise.dynamics.kernels import Nodes, check_mechanism, kernel, node_names
from linkwise.dynamics.stacked import six_each
from linkwise.errors import UnknownNameError, unknown_name
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.spatial.rotation import skew


@dataclass(frozen=True, slots=True)
class Viewpoint:
    """Axes and point for k nodes; leading axes are those of a batch, or none.

    Attributes:
        rot: R (..., k, 3, 3), from world axes to those of F.
        p: p_NP_W (..., k, 3), from each node to the point [m].
    """

    rot: Array
    p: Array

    def moved(self, J: Array) -> Array:
        """(1) for the columns of J (..., k, 6, m), in place."""
        J[..., 3:, :] -= skew(self.p) @ J[..., :3, :]
        return self.turned(J)

    def turned(self, J: Array) -> Array:
        """Columns (..., k, 6, m) from world axes to those of F, in place."""
        J[..., :3, :] = self.rot @ J[..., :3, :]
        J[..., 3:, :] = self.rot @ J[..., 3:, :]
        return J

    def to_node(self, f: Array) -> Array:
        """(3) for forces (..., k, 6)."""
        back = np.swapaxes(self.rot, -1, -2)
        moment, force = (back @ f[..., i : i + 3, None] for i in (0, 3))
        return np.concatenate([moment + skew(self.p) @ force, force], axis=-2)[..., 0]


@dataclass(frozen=True, slots=True)
class Motion:
    """How nodes and their viewpoint move, in world axes.

    Attributes:
        V: Velocities of the nodes (..., k, 6), at their origins.
        w_F: ω_F (..., k, 3) [rad/s].
        pdot: ṗ (..., k, 3) [m/s].
    """

    V: Array
    w_F: Array
    pdot: Array

    def rate(self, at: Viewpoint, J: Array, J_dot: Array) -> Array:
        """(2) for the columns of J (..., k, 6, m), with J_dot their rate in world axes, in place.

        Both are at the origins of the nodes.
        """
        J_dot[..., 3:, :] -= skew(self.pdot) @ J[..., :3, :]
        J_dot[..., 3:, :] -= skew(at.p) @ J_dot[..., :3, :]
        J[..., 3:, :] -= skew(at.p) @ J[..., :3, :]
        J_dot[..., :3, :] -= skew(self.w_F) @ J[..., :3, :]
        J_dot[..., 3:, :] -= skew(self.w_F) @ J[..., 3:, :]
        return at.turned(J_dot)


def by_node(J: Array) -> Array:
    """Rows (..., 6 k, m) as (..., k, 6, m): the same memory."""
    return J.reshape(*J.shape[:-2], J.shape[-2] // 6, 6, J.shape[-1])


def check(mech: Mechanism | Embedded, frame: object, about: object) -> None:
    """Raise unless the frame and the point are of the mechanism."""
    check_mechanism(mech)
    known = [*mech.node_index, *mech.body_index]
    for what, asked, more in (("frame", frame, ("node",)), ("about", about, ())):
        if isinstance(asked, str) and (asked in known or asked in more):
            continue
        if what == "about" and asked is None:
            continue
        allowed = "'node' or 'world'" if more else "'world'"
        near = str(unknown_name("node or body", asked, known, owner=f"mechanism {mech.name!r}"))
        raise UnknownNameError(
            f"{what} is {asked!r}; it must be {allowed}, or the name of a node or body: {near}"
        )


def viewpoint(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    nodes: Nodes,
    frame: str,
    about: str | None,
    codes: Codes,
) -> Viewpoint:
    """Where F and P are, seen from each node, at q; NaN where q is no configuration."""
    rows = codes.run(kernel(mech, "node_poses", _with_ends(nodes, frame, about)), q)
    poses = rows.reshape(*rows.shape[:-1], rows.shape[-1] // 12, 3, 4)
    rot, p = poses[..., :-2, :, :3], poses[..., :-2, :, 3]
    if frame != "node":
        rot = np.broadcast_to(poses[..., -2:-1, :, :3], rot.shape)
    towards = np.zeros_like(p) if about is None else poses[..., -1:, :, 3] - p
    return Viewpoint(np.swapaxes(rot, -1, -2), towards)


def motion(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    v: ArrayLike,
    nodes: Nodes,
    frame: str,
    about: str | None,
    codes: Codes,
) -> Motion:
    """How F and P move in the world while the joints move with v."""
    every = _with_ends(nodes, frame, about)
    rows = codes.run(kernel(mech, "node_velocity", every, frame="world"), q, v)
    V = six_each(rows)
    own = V[..., :-2, :]
    w_F = (
        own[..., :3] if frame == "node" else np.broadcast_to(V[..., -2:-1, :3], own[..., :3].shape)
    )
    pdot = np.zeros_like(w_F) if about is None else V[..., -1:, 3:] - own[..., 3:]
    return Motion(own, w_F, pdot)


def _with_ends(nodes: Nodes, frame: str, about: str | None) -> tuple[str, ...]:
    """The nodes, then F, then P; the world for what is not needed."""
    return (*node_names(nodes), "world" if frame == "node" else frame, about or "world")
