"""Coordinates in which a mechanism is moved through time: q, and rates u in place of v.

For every hinge but `Free` the rates are the velocities, u = v. A free hinge has the velocity of its
origin in the axes of the body, which turn; its rates have it in the fixed axes of O⁺ instead:

    v = (ω, v_lin)        u = (ω, ṗ),   ṗ = R v_lin,   p̈ = R (v̇_lin + ω × v_lin)

and the configuration moves along q ⊕ h u (`retract`): plain coordinates add, quaternions are
multiplied from the right by exp(h ω) and made of unit length, positions of free hinges add h ṗ.
Hinges with a rule of their own, as planar ones and rolling balls, move by that rule with v held.

A free body without forces so moves on a straight line, exactly, however it turns. These are the
coordinates of MuJoCo, too: the same scheme gives the same numbers there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from linkwise.model.hinges import Free, Hinge, Spherical
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike

Acceleration: TypeAlias = Callable[[float, Array, Array], Array]
"""v̇ (nv,) of the time [s], q (nq,) and v (nv,); or u̇ (nv,) of the time, q and u (nv,)."""

Retraction: TypeAlias = Callable[[Array, Array, float], Array]
"""q ⊕ h u (nq,) of q (nq,), u (nv,) and h [s]."""


@once_per_mechanism
def retraction(mech: Mechanism) -> Retraction:
    """q ⊕ h u as a function of q (nq,), u (nv,) and h [s]."""
    plain_q, plain_v = list[int](), list[int]()
    others = list[tuple[Callable[[Array, Array, float], ArrayLike], slice, slice]]()
    for k, body in enumerate(mech.bodies):
        in_q = slice(int(mech.q_start[k]), int(mech.q_start[k + 1]))
        in_v = slice(int(mech.v_start[k]), int(mech.v_start[k + 1]))
        if type(body.hinge).integrate is Hinge.integrate:
            plain_q += range(in_q.start, in_q.stop)
            plain_v += range(in_v.start, in_v.stop)
        elif type(body.hinge) in (Free, Spherical):
            others.append((_turned_and_moved, in_q, in_v))
        else:
            others.append((body.hinge.integrate, in_q, in_v))
    to, of = np.array(plain_q, dtype=np.intp), np.array(plain_v, dtype=np.intp)

    def moved(q: Array, u: Array, h: float) -> Array:
        out = np.empty(len(q))
        out[to] = q[to] + h * u[of]
        for move, in_q, in_v in others:
            out[in_q] = move(q[in_q], u[in_v], h)
        return out

    return moved


def retract(mech: Mechanism, q: Array, u: Array, h: float) -> Array:
    """q ⊕ h u: where a configuration is after rates u were held for a time h.

    Args:
        mech: The mechanism.
        q: Joint positions (nq,).
        u: Rates (nv,).
        h: How long [s].
    """
    return retraction(mech)(q, u, h)


def rates(mech: Mechanism, q: Array, v: Array) -> Array:
    """u (nv,) of velocities v (nv,) at q (nq,)."""
    starts = _free(mech)
    if not starts:
        return v
    u = np.array(v)
    for i, j in starts:
        u[j + 3 : j + 6] = _times(_rotation(q, i), v[j + 3 : j + 6].tolist())
    return u


def velocities(mech: Mechanism, q: Array, u: Array) -> Array:
    """v (nv,) of rates u (nv,) at q (nq,)."""
    starts = _free(mech)
    if not starts:
        return u
    v = np.array(u)
    for i, j in starts:
        v[j + 3 : j + 6] = _times_transposed(_rotation(q, i), u[j + 3 : j + 6].tolist())
    return v


def rate_acceleration(mech: Mechanism, q: Array, v: Array, vdot: Array) -> Array:
    """u̇ (nv,) of v̇ (nv,) at q (nq,) and v (nv,): R (v̇_lin + ω × v_lin) for free hinges."""
    starts = _free(mech)
    if not starts:
        return vdot
    udot = np.array(vdot)
    for i, j in starts:
        w1, w2, w3, x, y, z = v[j : j + 6].tolist()
        a1, a2, a3 = vdot[j + 3 : j + 6].tolist()
        carried = [a1 + w2 * z - w3 * y, a2 + w3 * x - w1 * z, a3 + w1 * y - w2 * x]
        udot[j + 3 : j + 6] = _times(_rotation(q, i), carried)
    return udot


def in_rates(mech: Mechanism, acceleration: Acceleration) -> Acceleration:
    """u̇(t, q, u) of v̇(t, q, v): the same motion told in rates."""
    if not _free(mech):
        return acceleration

    def told(t: float, q: Array, u: Array) -> Array:
        v = velocities(mech, q, u)
        return rate_acceleration(mech, q, v, acceleration(t, q, v))

    return told


def turning(mech: Mechanism, theta: Array, u: Array) -> Array:
    """θ̇ (nv,): how the coordinates θ of q₀ ⊕ θ change while the mechanism moves with rates u.

    For plain coordinates θ̇ = u. Where θ is a rotation vector, of length |θ| < 2π,

        θ̇ = ω + ½ θ × ω + c θ × (θ × ω),    c = (1 − ½|θ| cot ½|θ|) / |θ|² = 1/12 + |θ|²/720 + ...

    which is the inverse of the derivative of the exponential, dexp⁻¹, for turns in body axes. For
    hinges with a rule of their own it is u, right where θ is zero only.

    Args:
        mech: The mechanism.
        theta: θ (nv,), away from q₀.
        u: Rates (nv,) at q₀ ⊕ θ.
    """
    starts = _balls(mech)
    if not starts:
        return u
    out = np.array(u)
    for j in starts:
        out[j : j + 3] = _dexp_inverse(theta[j : j + 3].tolist(), u[j : j + 3].tolist())
    return out


def _dexp_inverse(theta: list[float], omega: list[float]) -> list[float]:
    a, b, c = theta
    x, y, z = omega
    square = a * a + b * b + c * c
    if square < 1e-3:  # the next term is below 1e-15
        factor = 1.0 / 12.0 + square / 720.0 + square * square / 30240.0
    elif not math.isfinite(square):
        return [math.nan] * 3
    else:
        half = 0.5 * math.sqrt(square)
        factor = (1.0 - half / math.tan(half)) / square
    d, e, f = b * z - c * y, c * x - a * z, a * y - b * x  # θ × ω
    return [
        x + 0.5 * d + factor * (b * f - c * e),
        y + 0.5 * e + factor * (c * d - a * f),
        z + 0.5 * f + factor * (a * e - b * d),
    ]


@once_per_mechanism
def _balls(mech: Mechanism) -> list[int]:
    """Where the angular velocities of free and spherical hinges begin in v."""
    which = [k for k, body in enumerate(mech.bodies) if type(body.hinge) in (Free, Spherical)]
    return [int(mech.v_start[k]) for k in which]


@once_per_mechanism
def _free(mech: Mechanism) -> list[tuple[int, int]]:
    """Where the free hinges begin in q and in v."""
    which = [k for k, body in enumerate(mech.bodies) if type(body.hinge) is Free]
    return [(int(mech.q_start[k]), int(mech.v_start[k])) for k in which]


def _turned_and_moved(q: Array, u: Array, h: float) -> list[float]:
    """One spherical or free hinge, in plain numbers, which is quicker for so few of them."""
    q0, q1, q2, q3, *p = q.tolist()
    w1, w2, w3, *rate = u.tolist()
    angle = abs(h) * math.sqrt(w1 * w1 + w2 * w2 + w3 * w3)
    if not math.isfinite(angle):  # a motion that grows without bounds: told by who steps
        return [math.nan] * len(q)
    # sin(½θ)/θ needs no series: the sine of a small number is exact to rounding.
    half = h * math.sin(0.5 * angle) / angle if angle > 0.0 else 0.5 * h
    d0, d1, d2, d3 = math.cos(0.5 * angle), half * w1, half * w2, half * w3
    r0 = q0 * d0 - q1 * d1 - q2 * d2 - q3 * d3
    r1 = q0 * d1 + q1 * d0 + q2 * d3 - q3 * d2
    r2 = q0 * d2 - q1 * d3 + q2 * d0 + q3 * d1
    r3 = q0 * d3 + q1 * d2 - q2 * d1 + q3 * d0
    size = math.sqrt(r0 * r0 + r1 * r1 + r2 * r2 + r3 * r3)
    turned = [r0 / size, r1 / size, r2 / size, r3 / size]
    return [*turned, *(x + h * s for x, s in zip(p, rate, strict=True))]


def _rotation(q: Array, i: int) -> tuple[float, ...]:
    """The rotation matrix, row by row, of the quaternion that begins at entry i of q."""
    w, x, y, z = q[i : i + 4].tolist()
    return (
        1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y),
        2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x),
        2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y),
    )  # fmt: skip


def _times(rot: tuple[float, ...], x: list[float]) -> list[float]:
    a, b, c = x
    return [rot[i] * a + rot[i + 1] * b + rot[i + 2] * c for i in (0, 3, 6)]


def _times_transposed(rot: tuple[float, ...], x: list[float]) -> list[float]:
    a, b, c = x
    return [rot[i] * a + rot[i + 3] * b + rot[i + 6] * c for i in (0, 1, 2)]
