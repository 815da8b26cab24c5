"""One implicit step by dense matrices in extended precision: what the kernels are compared with.

    M̂ v' = M̂ v̂ + J_c* μ + G* λ,   v̂ without impulses,   J_c v' = c,   u = G v' by their laws

Every matrix is formed, each law is solved row by row, with one number for each row, and sweeps go
on until nothing changes. Nothing of `linkwise.simulation` is used but the numbers of its laws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import linkwise as lw

Long = np.longdouble
STILL, MOST = 1e-17, 20_000
RECOVERY, FASTEST, SLOW = 0.2, 1.0, 0.05


@dataclass
class Dense:
    """The problem of one step.

    Attributes:
        free: v̂ (nv,) [m/s or rad/s], with loops held.
        columns: M̂⁻¹ G* (nv, rows), likewise.
        rows: G (rows, nv).
        room: β (rows,): u + β ≥ 0 in normal rows.
        joints: (h f, low, high) of the first rows.
        contacts: (first row, ground) of each contact.
    """

    free: np.ndarray
    columns: np.ndarray
    rows: np.ndarray
    room: np.ndarray
    joints: list[tuple[float, float, float]]
    contacts: list[tuple[int, Any]]


def solved(A, B):
    """A⁻¹ B in extended precision, by elimination with pivots."""
    A, B = np.array(A, Long), np.array(B, Long)
    for k in range(len(A)):
        p = k + int(np.argmax(np.abs(A[k:, k])))
        A[[k, p]], B[[k, p]] = A[[p, k]], B[[p, k]]
        for i in range(len(A)):
            if i != k:
                factor = A[i, k] / A[k, k]
                A[i] -= factor * A[k]
                B[i] -= factor * B[k]
    return B / np.diag(A)[(slice(None),) + (None,) * (B.ndim - 1)]


def closing(gap, h):
    """The speed that closes a gap in one step, or undoes a part of a penetration."""
    return max((gap if gap > 0.0 else RECOVERY * gap) / h, -FASTEST)


def turned(mech, v):
    """ω × v of a free base: its axes turn while its velocity stays."""
    out = np.zeros(mech.nv)
    if isinstance(mech.bodies[0].hinge, lw.hinges.Free):
        out[3:6] = np.cross(v[:3], v[3:6])
    return out


def contact_rows(mech, q, point):
    """Rows of a ball at a plane, and its gap."""
    ground, pose = point.ground, mech.pose(q, point.body)
    n = np.array(ground.normal)
    J = lw.jacobian(mech, q, point.body)
    turning, moving = pose.rot @ J[:3], pose.rot @ J[3:]
    arm = pose.rot @ np.array(point.point) - point.radius * n
    at = moving - np.stack([np.cross(arm, column) for column in turning.T], axis=1)
    axes = ground.axes
    rows = [*(axes @ at)]
    rows += [n @ turning] * (ground.torsional > 0.0)
    rows += [*(axes[1:] @ turning)] * (ground.rolling > 0.0)
    centre = pose.p + pose.rot @ np.array(point.point)
    return rows, n @ (centre - np.array(ground.point)) - point.radius


def problem(mech, q, v, tau, h, points, command=()):
    """The step of a tree of plain joints, with or without a free base, loops and couplings.

    Actuators are servos kp (u - q) - kv v of one joint each.
    """
    nv = mech.nv
    tree = lw.Mechanism(mech.name, mech.bodies, mech.nodes, gravity=mech.gravity)
    of = {name: np.zeros(nv) for name in ("damping", "friction", "stiffness")}
    values, rest = np.zeros(nv), np.zeros(nv)
    lower, upper = np.full(nv, -np.inf), np.full(nv, np.inf)
    for i, body in enumerate(mech.bodies):
        at = slice(mech.v_start[i], mech.v_start[i + 1])
        for name, x in of.items():
            x[at] = body.drive.array(name, body.hinge)
        if body.hinge.nv == body.hinge.nq:
            values[at] = q[mech.q_start[i] : mech.q_start[i + 1]]
            each = (body.drive.array(name, body.hinge) for name in ("rest", "lower", "upper"))
            rest[at], lower[at], upper[at] = each
    d, k = of["damping"], of["stiffness"]
    tau = np.array(tau, float)
    for servo, u in zip(mech.actuators, command, strict=True):
        ((name, _),) = servo.joints
        j = mech.v_start[mech.hinge_index[name]]
        kp, kv = servo.gain[0], -servo.bias[2]
        d[j], k[j], tau[j] = d[j] + kv, k[j] + kp, tau[j] + kp * u
        tau[j] -= kp * rest[j]
    M = lw.mass_matrix(tree, q).astype(Long) + np.diag(h * d + h * h * k).astype(Long)
    push = tau - lw.inverse_dynamics(tree, q, v, np.zeros(nv)) - d * v
    push = push - k * (values + h * v - rest)
    still = v + h * turned(mech, v)
    free = still + h * solved(M, push)
    rows, joints = list[np.ndarray](), []
    for j in range(nv):
        low, high = lower[j], upper[j]
        if of["friction"][j] or np.isfinite([low, high]).any():
            rows.append(np.eye(nv)[j])
            ends = (-closing(values[j] - low, h) if np.isfinite(low) else -np.inf,
                    closing(high - values[j], h) if np.isfinite(high) else np.inf)  # fmt: skip
            joints.append((h * of["friction"][j], *ends))
    contacts, gaps = [], []
    for point in points:
        contacts.append((len(rows), point.ground))
        each, gap = contact_rows(mech, q, point)
        rows += each
        gaps.append(gap)
    G = np.array(rows).reshape(len(rows), nv)
    coming, room = G @ v, np.zeros(len(G))
    for (i, ground), gap in zip(contacts, gaps, strict=True):
        room[i] = closing(gap, h)
        if ground.restitution and -coming[i] > SLOW:  # it bounces in the step after it arrived
            room[i] = 1e6 if gap > 0.0 else min(room[i], ground.restitution * coming[i])
    columns = solved(M, G.T)
    if mech.loops or mech.couplings:
        J = lw.loops.constraint_jacobian(mech, q)
        error, bend = lw.loops.constraint_error(mech, q), lw.loops.constraint_bias(mech, q, v)
        goal = J @ (0.5 * h * turned(mech, v)) - 0.5 * h * bend - RECOVERY * error / h
        X = solved(M, J.T)
        inner = J @ X
        free = free + X @ solved(inner, goal - J @ free)
        columns = columns - X @ solved(inner, J @ columns)
    return Dense(free, columns, G, room, joints, contacts)


def in_disc(x, radius):
    """The nearest point of a disc."""
    size = np.sqrt(x @ x)
    return x if size <= radius else x * (radius / size)


def impulses(given):
    """λ (rows,), and the largest change of a velocity in the last sweep."""
    A, b = given.rows @ given.columns, given.rows @ given.free + given.room
    push = np.zeros(len(A), Long)
    change = np.inf
    for _ in range(MOST):
        before = push.copy()
        for i, (rub, low, high) in enumerate(given.joints):
            if A[i, i] < 1e-12:
                continue
            free = push[i] - (A[i] @ push + b[i]) / A[i, i]
            least, most = free + low / A[i, i], free + high / A[i, i]
            # with friction alone, then moved so that the velocity stays within the limits
            push[i] = min(max(min(max(free, -rub), rub), least), most)
        for i, ground in given.contacts:
            push[i] = max(push[i] - (A[i] @ push + b[i]) / A[i, i], 0)
            pairs = [(i + 1, ground.friction)]
            at = i + 3
            if ground.torsional:
                most = ground.torsional * push[i]
                push[at] = np.clip(push[at] - (A[at] @ push + b[at]) / A[at, at], -most, most)
                at += 1
            if ground.rolling:
                pairs.append((at, ground.rolling))
            for j, share in pairs:
                both = slice(j, j + 2)
                size = A[j, j] + A[j + 1, j + 1]  # a bound of their block
                push[both] = in_disc(
                    push[both] - (A[both] @ push + b[both]) / size, share * push[i]
                )
        change = np.abs(A @ (push - before)).max(initial=0)
        if change < STILL:
            break
    return push, float(change)


def stepped(mech, q, v, tau, h, points, command=()):
    """v' (nv,) in the axes before the step, λ (rows,), and what the last sweep changed."""
    given = problem(mech, q, v, tau, h, points, command)
    push, change = impulses(given)
    return np.asarray(given.free + given.columns @ push, float), np.asarray(push, float), change
