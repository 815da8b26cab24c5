"""The mass matrix and its inverse in extended precision, for hinges that turn or slide, and free.

Numbers of the mechanism are taken as they are; all arithmetic has 64 bits of mantissa, eleven more
than usual. It tells which of two libraries is nearer to the truth where the matrix is so badly
conditioned that both lose digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import linkwise as lw
from linkwise.model.hinges import Free, Pin, Prismatic

Long = Any
"""Arrays of np.longdouble."""


def _long(x: Any) -> Long:
    return np.asarray(x, dtype=np.longdouble)


def _skew(x: Long) -> Long:
    zero = np.longdouble(0.0)
    return np.array([[zero, -x[2], x[1]], [x[2], zero, -x[0]], [-x[1], x[0], zero]])


def _turn(axis: Long, angle: Long) -> Long:
    cross = _skew(axis / np.sqrt(axis @ axis))
    return _long(np.eye(3)) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross


def _quaternion(x: Long) -> Long:
    x = x / np.sqrt(x @ x)
    w, cross = x[0], _skew(x[1:])
    return _long(np.eye(3)) + 2.0 * w * cross + 2.0 * cross @ cross


def _hinge(hinge: Any, q: Long) -> tuple[Long, Long, Long]:
    """Rotation, position, and the columns (6, nv) of H* at the hinge's outer frame."""
    rot, p, columns = _long(np.eye(3)), _long(np.zeros(3)), _long(np.zeros((6, hinge.nv)))
    if isinstance(hinge, Pin):
        rot = _turn(_long(hinge.axis), q[0])
        columns[:3, 0] = _long(hinge.axis)
    elif isinstance(hinge, Prismatic):
        p = q[0] * _long(hinge.axis)
        columns[3:, 0] = _long(hinge.axis)
    elif isinstance(hinge, Free):
        rot, p, columns = _quaternion(q[:4]), q[4:], _long(np.eye(6))
    else:
        raise TypeError(f"a {hinge.kind} hinge")
    return rot, p, columns


def _motion(rot: Long, p: Long) -> Long:
    """What takes a velocity at a frame to one that is at (rot, p) from it, in its axes."""
    back, zero = rot.T, _long(np.zeros((3, 3)))
    return np.block([[back, zero], [-back @ _skew(p), back]])


def mass_matrix(mech: lw.Mechanism, q: Any) -> Long:
    """𝓜 + N = Σ J_k* M_k J_k + N (nv, nv)."""
    nv, q = mech.nv, _long(q)
    J = _long(np.zeros((mech.n_bodies, 6, nv)))
    total = np.diag(_long(mech.armature))
    for k, body in enumerate(mech.bodies):
        rot, p, columns = _hinge(body.hinge, q[mech.q_slice(body.hinge_name)])
        outward = _motion(_long(body.outboard.rot), _long(body.outboard.p))
        if mech.parent[k] >= 0:
            inward = _motion(_long(body.inboard.rot), _long(body.inboard.p))
            J[k] = outward @ _motion(rot, p) @ inward @ J[mech.parent[k]]
        J[k][:, mech.v_slice(body.hinge_name)] += outward @ columns
        ours = mech.inertias[k]
        h = _skew(_long(ours.h))
        M = np.block([[_long(ours.J), h], [-h, np.longdouble(ours.mass) * _long(np.eye(3))]])
        total = total + J[k].T @ M @ J[k]
    return total


def inverse(A: Long) -> Long:
    """Of a positive definite matrix, by its square root."""
    n = len(A)
    root = _long(np.zeros((n, n)))
    for j in range(n):
        root[j, j] = np.sqrt(A[j, j] - root[j, :j] @ root[j, :j])
        for i in range(j + 1, n):
            root[i, j] = (A[i, j] - root[i, :j] @ root[j, :j]) / root[j, j]
    columns = _long(np.eye(n))
    for i in range(n):  # root X = I
        columns[i] = (columns[i] - root[i, :i] @ columns[:i]) / root[i, i]
    return columns.T @ columns
