"""States between two records: cubics on the configuration manifold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise.model.hinges import Hinge
from linkwise.model.mechanism import Mechanism
from linkwise.spatial import quaternion, rotation
from linkwise.spatial.array import Array


def between(mech: Mechanism, t: Array, q: Array, v: Array, times: Array) -> tuple[Array, Array]:
    """q and v at times between records, with q and its rate right at both ends of each interval.

    A coordinate goes along the cubic of Hermite through its values and rates. A quaternion turns
    with the mean ω̄ = ½ (ω_i + ω_{i+1}), and θ, such a cubic, is what it is away from that: at the
    part s of an interval h

        q = q_i exp(s h ω̄) exp(θ),        ω = exp(θ)* ω̄ + J_r(θ) θ̇,

    from θ = 0 to log(exp(−h ω̄) q_i⁻¹ q_{i+1}), with the rates that give ω_i and ω_{i+1}, and the
    right Jacobian of the exponential

        J_r(θ) = 1 − (1 − cos |θ|)/|θ|² θ~ + (|θ| − sin |θ|)/|θ|³ θ~²

    So a body may make any number of turns between two records, if both velocities agree with it:
    θ at the end must be below half a turn, and it is of size h³.

    v is what has that rate of q. Over an interval h the error is O(h⁴) in q and O(h³) in v; where
    the acceleration jumps within it, O(h²) and O(h).

    Args:
        times: Wanted ones (m,) [s], between the first and the last record.

    Returns:
        q (m, nq) and v (m, nv).
    """
    if len(t) == 1:
        return np.repeat(q, len(times), axis=0), np.repeat(v, len(times), axis=0)
    i = np.clip(np.searchsorted(t, times, side="right") - 1, 0, len(t) - 2)
    h = (t[i + 1] - t[i])[:, None]
    s = (times[:, None] - t[i][:, None]) / h
    at_q, at_v = np.empty((len(times), mech.nq)), np.empty((len(times), mech.nv))
    for k, body in enumerate(mech.bodies):
        in_q = slice(int(mech.q_start[k]), int(mech.q_start[k + 1]))
        in_v = slice(int(mech.v_start[k]), int(mech.v_start[k + 1]))
        ends = (q[i, in_q], q[i + 1, in_q]), (v[i, in_v], v[i + 1, in_v])
        if body.hinge.nv:
            at_q[:, in_q], at_v[:, in_v] = _of_hinge(body.hinge, *ends, s, h)
    _exact(at_q, q, s, i)
    _exact(at_v, v, s, i)
    return at_q, at_v


def _exact(states: Array, records: Array, s: Array, i: NDArray[np.intp]) -> None:
    """At a record, the record itself, to the last bit."""
    for end in (0, 1):
        rows = s[:, 0] == end
        states[rows] = records[i[rows] + end]


def _of_hinge(
    hinge: Hinge, q: tuple[Array, Array], v: tuple[Array, Array], s: Array, h: Array
) -> tuple[Array, Array]:
    """q (m, nq) and v (m, nv) of one hinge from both ends of each interval."""
    rates = hinge.qdot(q[0], v[0]), hinge.qdot(q[1], v[1])
    at, rate = _hermite(q[0], q[1], rates[0], rates[1], s, h)
    part = hinge.quaternion
    if part is not None:
        w = [_spin(q[end][:, part], rates[end][:, part]) for end in (0, 1)]
        mean = 0.5 * (w[0] + w[1])
        even = quaternion.multiply(q[0][:, part], quaternion.exp(h * mean))
        end = quaternion.log(quaternion.multiply(quaternion.conjugate(even), q[1][:, part]))
        left = (w[1] - _turned_back(end, mean))[..., None]
        last = np.asarray(np.linalg.solve(_right_jacobian(end), left)[..., 0], np.float64)
        away, leaving = _hermite(np.zeros_like(end), end, w[0] - mean, last, s, h)
        spin = _turned_back(away, mean) + (_right_jacobian(away) @ leaving[..., None])[..., 0]
        turn = quaternion.multiply(quaternion.exp(s * h * mean), quaternion.exp(away))
        at[:, part] = quaternion.multiply(q[0][:, part], turn)
        at[:, part] /= np.linalg.norm(at[:, part], axis=-1, keepdims=True)
        rate[:, part] = quaternion.rate(at[:, part], spin)
    return at, _velocity(hinge, at, rate)


def _hermite(
    a: Array, b: Array, rate_a: Array, rate_b: Array, s: Array, h: Array
) -> tuple[Array, Array]:
    """Value and rate at s in [0, 1] of the cubic between two values with two rates."""
    step = b - a
    value = a + s * s * (3.0 - 2.0 * s) * step
    value = value + h * s * (1.0 - s) * ((1.0 - s) * rate_a - s * rate_b)
    rate = 6.0 * s * (1.0 - s) * step / h
    rate = rate + (1.0 - s) * (1.0 - 3.0 * s) * rate_a + s * (3.0 * s - 2.0) * rate_b
    return value, rate


def _velocity(hinge: Hinge, q: Array, qdot: Array) -> Array:
    """v with a given rate of q: least squares in N(q) v = q̇, whose columns are rates of unit v."""
    if type(hinge).qdot is Hinge.qdot:
        return qdot
    units = np.eye(hinge.nv)
    columns = [np.broadcast_to(hinge.qdot(q, unit), q.shape) for unit in units]
    to_rate = np.stack(columns, axis=-1)
    return (np.linalg.pinv(to_rate) @ qdot[..., None])[..., 0]


def _spin(q: Array, qdot: Array) -> Array:
    """ω with q̇ = ½ q (0, ω)."""
    return 2.0 * quaternion.multiply(quaternion.conjugate(q), qdot)[..., 1:]


def _turned_back(w: Array, x: Array) -> Array:
    """exp(w)* x (..., 3)."""
    rot = quaternion.to_matrix(quaternion.exp(w))
    return (x[..., None, :] @ rot)[..., 0, :]


def _right_jacobian(w: Array) -> Array:
    """J_r (..., 3, 3) at a rotation vector w (..., 3)."""
    angle = np.linalg.norm(w, axis=-1)[..., None, None]
    safe = np.where(angle < 1e-4, 1.0, angle)
    # Below 1e-4 the next terms of the series are under 1e-9 of these, where θ~ itself is 1e-4.
    first = np.where(angle < 1e-4, 0.5 - angle**2 / 24.0, (1.0 - np.cos(safe)) / safe**2)
    second = np.where(angle < 1e-4, 1.0 / 6.0 - angle**2 / 120.0, (safe - np.sin(safe)) / safe**3)
    skew = rotation.skew(w)
    return np.eye(3) - first * skew + second * (skew @ skew)
