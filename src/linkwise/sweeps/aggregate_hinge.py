"""An aggregate body as one hinge: how its map H* changes with the positions.

The velocities of the bodies of an aggregate, relative to what carries it, are

    H*(q) u = φ* H_in* 𝒳 u

for independent velocities u, so that the aggregate is a hinge with 6 m rows whose coordinates move
with q̇ = N(q) 𝒳(q) u. Its derivatives along such velocities are found as for any hinge without
special formulas: the map runs on Taylor series of the motion (`model/hinges/jet.py`). The other
leaves of derivatives need nothing new, since body by body an aggregate moves as its bodies do:

    (δE_φ*) x = [E_φ* x ×] H* δq         a = V × H* u + Ḣ* u + a_g
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.model.embedded import Embedded
from linkwise.model.hinges import Hinge
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.spatial.vector import cross_velocity
from linkwise.sweeps.aggregate_motion import Inside, Joint


class AggregateHinge:
    """The motion of an aggregate as that of a hinge (see `Hinge`), in one state.

    Leading axes of arrays have length 1.

    Args:
        tree: The mechanism in independent velocities.
        g: The index of the aggregate.
    """

    def __init__(self, tree: Embedded, g: int) -> None:
        self.tree, self.g = tree, g
        self.nv, self.nq = len(tree.bodies[g].independent), tree.nq

    hinge_map_rate = Hinge.hinge_map_rate
    bias_derivative = Hinge.bias_derivative

    def hinge_map(self, q: Array) -> Array:
        """H (..., nv, 6 m): the velocities of its bodies are H* u."""
        inside = self._inside(q)
        return outward(inside, inside.X).T.reshape(*q.shape[:-1], self.nv, -1)

    def bias(self, q: Array, v: Array) -> Array:
        """Ḣ* u (..., 6 m): accelerations at u̇ = 0 while what carries the aggregate is at rest."""
        inside = self._inside(q, v.ravel())
        V = outward(inside, inside.v[:, None]).reshape(-1, 6)
        turned = bias_accelerations(inside, V)
        return outward(inside, inside.x[:, None], turned).reshape(*q.shape[:-1], -1)

    def qdot(self, q: Array, v: Array) -> Array:
        """N(q) 𝒳(q) u (..., nq); zero for the coordinates of other aggregates."""
        mech, group = self.tree.mech, self.tree.bodies[self.g]
        moved, rate, at = self._inside(q).X @ v.ravel(), np.zeros(q.shape, dtype=object), 0
        for k in group.bodies:
            hinge, entries = mech.bodies[k].hinge, slice(mech.q_start[k], mech.q_start[k + 1])
            part = moved[at : at + hinge.nv].reshape(*q.shape[:-1], hinge.nv)
            rate[..., entries] = hinge.qdot(q[..., entries], part)
            at += hinge.nv
        return rate

    def _inside(self, q: Array, u: Array | None = None) -> Inside:
        state, u = q.reshape(self.nq), np.zeros(self.nv) if u is None else u
        return Inside(self.tree, self.g, _Joints(self.tree, state), u, _Series(state))


class _Joints(dict[int, Joint]):
    """The hinge of each body at positions q (nq,), numbers or Taylor series; made when needed."""

    def __init__(self, tree: Embedded, q: Array) -> None:
        super().__init__()
        self.mech, self.q = tree.mech, q

    def __call__(self, k: int) -> Joint:
        """That of body k."""
        if k not in self:
            self[k] = self._made(k)
        return self[k]

    def _made(self, k: int) -> Joint:
        body = self.mech.bodies[k]
        q_k = self.q[None, self.mech.q_start[k] : self.mech.q_start[k + 1]]
        pose = body.pose(q_k)
        pose, away = trusted_pose(_one(pose.rot, 2), _one(pose.p, 1)), body.outboard.shift

        def bias(v_k: Array) -> Array:
            return away.T @ _one(body.hinge.bias(q_k, v_k[None]), 1)

        return Joint(pose, pose.shift, _one(body.hinge.hinge_map(q_k), 2) @ away, bias)


class _Series:
    """The arithmetic of Taylor series: nothing is checked, since the value itself has been."""

    itemsize = 8

    def __init__(self, q: Array) -> None:
        self.q = q

    def shift(self, pose: Pose) -> Array:
        """φ (6, 6)."""
        return pose.shift

    def check_loops(self, g: int, margins: Sequence[Any]) -> None:
        """Nothing."""


def _one(array: Any, axes: int) -> Any:
    return array[0] if np.ndim(array) > axes else array


def outward(inside: Inside, x: Array, added: Array | None = None) -> Array:
    """φ* (H_in* x + y) inside the aggregate, for x (n, c) and y, `added` (6 m, c)."""
    group, rows, at = inside.group, list[Array](), 0
    for i, (k, inner) in enumerate(zip(group.bodies, group.inner, strict=True)):
        joint = inside.joints(k)
        part = joint.H.T @ x[at : at + len(joint.H)]
        at += len(joint.H)
        if added is not None:
            part = part + added[6 * i : 6 * i + 6]
        rows.append(part if inner < 0 else joint.shift.T @ rows[inner] + part)
    return np.concatenate(rows)


def bias_accelerations(inside: Inside, V: Array) -> Array:
    """V × H_in* v + Ḣ_in* v of each body, as a column (6 m, 1), for velocities V (m, 6)."""
    rows, at = list[Array](), 0
    for V_k, k in zip(V, inside.group.bodies, strict=True):
        joint = inside.joints(k)
        v_k = inside.v[at : at + len(joint.H)]
        at += len(joint.H)
        rows.append(cross_velocity(V_k[None], (joint.H.T @ v_k)[None])[0] + joint.bias(v_k))
    return np.concatenate(rows)[:, None]
