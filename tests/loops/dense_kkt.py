"""A mechanism with loops as one dense system of equations: the slow and obvious reference.

Unknown are the joint accelerations, the accelerations Ẇ inside the loops' hinges and all six
components of each loop's force, on node b, in its frame:

    ⎡ 𝓜   −G*   0  ⎤ ⎡ v̇ ⎤   ⎡ τ − C              ⎤      G = J_b − T J_a,   V_ab = G v = H* W
    ⎢ G    0   −H* ⎥ ⎢ f ⎥ = ⎢ −Ġ v + Ḣ* W        ⎥      the force moves no hinge:  H f = 0
    ⎣ 0    H    0  ⎦ ⎣ Ẇ ⎦   ⎣ 0                  ⎦

Nothing of `linkwise.loops` is used. 𝓜, G come from hinge maps and poses, Ġ v and Ḣ* W from
central differences of eighth order along the motion, C = H φ (M φ* a + b)
from the interpreter. The blocked directions of a loop, in which the library thinks, do not appear.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import linkwise as lw
from linkwise.algebra import bias
from linkwise.spatial.array import Array
from tests.dense_kinematics import body_jacobians, mass_matrix

STEP = 2e-3
"""Of the differences [s]: a truncation error of (12 rad/s · 2e-3 s)⁸ ≈ 1e-13 for arms of 12 links
at 1 rad/s, rounding of 1e-16 / 2e-3."""

WEIGHTS = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
"""Of the eighth-order difference: f′ = Σ w_i (f(i h) − f(−i h)) / h."""


@dataclass(frozen=True)
class Motion:
    """What the dense system gives.

    Attributes:
        vdot: Joint accelerations (nv,).
        forces: Of each loop on its node b, in b's frame (L, 6).
        W_dot: Accelerations inside the loops' hinges, by name.
        condition: Of the whole system, after its rows and columns were scaled.
    """

    vdot: Array
    forces: Array
    W_dot: dict[str, Array]
    condition: float


def node_jacobians(mech: lw.Mechanism, q: Array, names: list[str]) -> list[Array]:
    """J (6, nv) of each node in its own axes; zero for those on the world."""
    bodies = body_jacobians(mech, q)
    result = list[Array]()
    for name in names:
        node = mech.node(name)
        if node.body == "world":
            result.append(np.zeros((6, mech.nv)))
        else:
            result.append(node.pose.shift.T @ bodies[mech.body_index[node.body]])
    return result


def relative_jacobian(mech: lw.Mechanism, q: Array) -> Array:
    """G (6 L, nv): the velocity of each loop's node b seen from a, in b's frame, is G v."""
    ends = [name for loop in mech.loops for name in (loop.node_a, loop.node_b)]
    J = node_jacobians(mech, q, ends)
    J_a, J_b = J[::2], J[1::2]
    poses, rows = mech.poses(q), list[Array]()
    for loop, at_a, at_b in zip(mech.loops, J_a, J_b, strict=True):
        X_AB = _node_pose(mech, poses, loop.node_a).inverse() @ _node_pose(mech, poses, loop.node_b)
        rows.append(at_b - X_AB.shift.T @ at_a)
    return np.concatenate(rows)


def _node_pose(mech: lw.Mechanism, poses: lw.Pose, name: str) -> lw.Pose:
    node = mech.node(name)
    return node.pose if node.body == "world" else poses[mech.body_index[node.body]] @ node.pose


def hinge_maps(mech: lw.Mechanism, theta: dict[str, Array]) -> Array:
    """H (Σ nv, 6 L) of the loops' hinges, block by block."""
    sizes = [loop.hinge.nv for loop in mech.loops]
    out = np.zeros((sum(sizes), 6 * len(sizes)))
    row = 0
    for i, loop in enumerate(mech.loops):
        ours = loop.hinge.nv
        if ours:
            out[row : row + ours, 6 * i : 6 * i + 6] = loop.hinge.hinge_map(theta[loop.name])
        row += ours
    return out


def allowed_velocity(mech: lw.Mechanism, q: Array, theta: dict[str, Array], v: Array) -> Array:
    """The nearest velocity that the loops allow: G v = H* W for some W."""
    G, H = relative_jacobian(mech, q), hinge_maps(mech, theta)
    across = np.linalg.svd(np.vstack([H, np.zeros((1, H.shape[1]))]))[2][len(H) :]
    rows = across @ G
    return v - np.linalg.pinv(rows, rcond=1e-11) @ (rows @ v)


def dense_motion(
    mech: lw.Mechanism, q: Array, v: Array, tau: Array, theta: dict[str, Array]
) -> Motion:
    """Accelerations and forces from the dense system; least squares where it is singular."""
    G, H = relative_jacobian(mech, q), hinge_maps(mech, theta)
    V_ab = G @ v
    W = np.linalg.lstsq(H.T, V_ab, rcond=None)[0] if len(H) else np.zeros(0)
    assert np.abs(H.T @ W - V_ab).max() < 1e-8 * max(1.0, np.abs(v).max()), "v breaks the loops"
    rate = _difference(lambda t: relative_jacobian(mech, mech.integrate(q, v, t)) @ v)
    turning = _difference(lambda t: hinge_maps(mech, _moved(mech, theta, W, t)).T @ W)
    n, m, k = mech.nv, len(G), len(H)
    system = np.zeros((n + m + k, n + m + k))
    system[:n, :n], system[:n, n : n + m] = mass_matrix(mech, q), -G.T
    system[n : n + m, :n], system[n : n + m, n + m :] = G, -H.T
    system[n + m :, n : n + m] = H
    force = tau - lw.compile(bias, mech, target="numpy", derive=False)(q, v)
    right = np.concatenate([force, turning - rate, np.zeros(k)])
    result, condition = _solved(system, right)
    W_dot, row = dict[str, Array](), n + m
    for loop in mech.loops:
        W_dot[loop.name] = result[row : row + loop.hinge.nv]
        row += loop.hinge.nv
    return Motion(result[:n], result[n : n + m].reshape(-1, 6), W_dot, condition)


def _moved(mech: lw.Mechanism, theta: dict[str, Array], W: Array, t: float) -> dict[str, Array]:
    """Where the loops' hinges are after W was held for a while."""
    result, row = dict[str, Array](), 0
    for loop in mech.loops:
        ours = W[row : row + loop.hinge.nv]
        result[loop.name] = loop.hinge.integrate(theta[loop.name], ours, t)
        row += loop.hinge.nv
    return result


def _difference(of) -> Array:  # type: ignore[no-untyped-def]
    """The derivative of a vector by time at zero."""
    parts = [w * (of(i * STEP) - of(-i * STEP)) for i, w in WEIGHTS.items()]
    return sum(parts[1:], parts[0]) / STEP


def _solved(system: Array, right: Array) -> tuple[Array, float]:
    """Scaled so that every row and column is about one, then solved in the least-squares sense."""
    scale = np.ones(len(system))
    for _ in range(10):
        size = np.abs(system * scale * scale[:, None]).max(axis=1)
        scale /= np.sqrt(np.where(size > 0.0, size, 1.0))
    result, _, _, values = np.linalg.lstsq(
        system * scale * scale[:, None], scale * right, rcond=1e-13
    )
    kept = values[values > 1e-13 * values[0]]
    return scale * result, float(kept[0] / kept[-1])
