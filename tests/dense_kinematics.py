"""Slow and obvious kinematics, straight from the definitions: a reference for tests.

All velocities are those of a body's frame, at its origin and in its own axes, (angular, linear).
"""

from __future__ import annotations

import numpy as np

from linkwise.model import Loop, Mechanism
from linkwise.spatial import Array, Pose
from linkwise.spatial.pose import log


def body_jacobians(mech: Mechanism, q: Array) -> Array:
    """J (n, 6, nv) with V_k = J_k v, from the hinge maps: V_k = φ_Ok* H_k* v_k + φ_pk* V_p."""
    J = np.zeros((mech.n_bodies, 6, mech.nv))
    for k, body in enumerate(mech.bodies):
        q_k = q[mech.q_slice(body.hinge_name)]
        if mech.parent[k] >= 0:
            X_pk = body.inboard @ body.hinge.pose(q_k) @ body.outboard
            J[k] = X_pk.shift.T @ J[mech.parent[k]]
        J[k][:, mech.v_slice(body.hinge_name)] += (
            body.outboard.shift.T @ body.hinge.hinge_map(q_k).T
        )
    return J


def difference_jacobians(mech: Mechanism, q: Array, step: float = 1e-6) -> Array:
    """The same from central differences of the poses alone; good to about 1e-9."""
    J = np.zeros((mech.n_bodies, 6, mech.nv))
    for i in range(mech.nv):
        v = np.zeros(mech.nv)
        v[i] = step
        ahead = mech.poses(mech.integrate(q, v, 1.0))
        behind = mech.poses(mech.integrate(q, -v, 1.0))
        J[:, :, i] = log(behind.inverse() @ ahead) / (2.0 * step)
    return J


def mass_matrix(mech: Mechanism, q: Array) -> Array:
    """Sum over bodies of J* M J, with the armature on the diagonal."""
    J, M = body_jacobians(mech, q), mech.inertias.matrix
    return np.einsum("kai,kab,kbj->ij", J, M, J) + np.diag(mech.armature)


def node_jacobian(mech: Mechanism, q: Array, name: str) -> Array:
    """J (6, nv) of a node's frame, in the node's axes; zero for a node on the world."""
    node = mech.node(name)
    if node.body == "world":
        return np.zeros((6, mech.nv))
    k = [body.name for body in mech.bodies].index(node.body)
    return node.pose.shift.T @ body_jacobians(mech, q)[k]


def gravity_torque(mech: Mechanism, q: Array, step: float = 1e-6) -> Array:
    """Joint forces (nv,) that hold the mechanism still: the slope of the potential energy."""

    def energy(v: Array) -> float:
        com = mech.center_of_mass(mech.integrate(q, v, 1.0))
        return -float(mech.total_mass * np.asarray(mech.gravity) @ com)

    steps = step * np.eye(mech.nv)
    return np.array([(energy(v) - energy(-v)) / (2.0 * step) for v in steps])


def loop_pose(mech: Mechanism, q: Array, loop: Loop) -> Pose:
    """Pose of the loop's second node seen from its first."""
    return mech.pose(q, loop.node_a).inverse() @ mech.pose(q, loop.node_b)


def loop_gap(mech: Mechanism, q: Array, loop: Loop) -> Array:
    """What is left of a loop's closure (6,) at the best coordinates of its hinge, by Newton."""
    X_AB, hinge = loop_pose(mech, q, loop), loop.hinge
    theta = hinge.neutral()
    for _ in range(20):
        theta = hinge.integrate(
            theta, np.linalg.pinv(hinge.hinge_map(theta).T) @ _gap(hinge.pose(theta), X_AB)
        )
    return _gap(hinge.pose(theta), X_AB)


def _gap(X_AO: Pose, X_AB: Pose) -> Array:
    return log(X_AO.inverse() @ X_AB)


def constraint_jacobian(mech: Mechanism, q: Array) -> Array:
    """Rows (6 - nv_hinge a loop, nv): relative velocity of the nodes across the free directions.

    Written at the second node; valid where a loop's hinge is at neutral or free to turn only.
    """
    rows: list[Array] = []
    for loop in mech.loops:
        X_AB = loop_pose(mech, q, loop)
        relative = node_jacobian(mech, q, loop.node_b) - X_AB.shift.T @ node_jacobian(
            mech, q, loop.node_a
        )
        H = loop.hinge.hinge_map(loop.hinge.neutral())
        _, _, vt = np.linalg.svd(np.vstack([H, np.zeros((1, 6))]))
        rows.append(vt[loop.hinge.nv :] @ relative)
    return np.vstack(rows)
