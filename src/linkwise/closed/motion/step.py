"""One step of time on the configuration manifold, of fourth order.

The state (q, v) moves along q̇ = v (on the manifold), v̇ = f(t, q, v). Holding velocities fixed for a
while is what `mech.integrate` does exactly, hinge by hinge, so a step is put together from such
pieces; quaternions stay of unit length and nothing depends on how a hinge counts its coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from linkwise.model.hinges import Free, Hinge
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

Acceleration: TypeAlias = Callable[[float, Array, Array], Array]
"""v̇ (nv,) of the time [s], q (nq,) and v (nv,)."""


def rk4_step(
    mech: Mechanism, f: Acceleration, t: float, q: Array, v: Array, step: float
) -> tuple[Array, Array]:
    """The commutator-free Runge-Kutta method of order four with four stages.

    With exp(w) for a motion with w held for one second, written from left to right as it happens:

        v₁ = v                q₁ = q                              a₁ = f(t, q₁, v₁)
        v₂ = v + ½h a₁        q₂ = q exp(½h v₁)                   a₂ = f(t + ½h, q₂, v₂)
        v₃ = v + ½h a₂        q₃ = q exp(½h v₂)                   a₃ = f(t + ½h, q₃, v₃)
        v₄ = v + h a₃         q₄ = q₂ exp(h v₃ − ½h v₁)           a₄ = f(t + h, q₄, v₄)
        v' = v + h/6 (a₁ + 2 a₂ + 2 a₃ + a₄)
        q' = q exp(h/12 (3 v₁ + 2 v₂ + 2 v₃ − v₄)) exp(h/12 (−v₁ + 2 v₂ + 2 v₃ + 3 v₄))

    For hinges whose velocities are the rates of their coordinates it is the classical method.
    Source: celledoni2003commutatorfree; that it keeps its order here is tested, on quaternions.

    Args:
        mech: The mechanism.
        f: The accelerations.
        t: The time at the beginning of the step [s].
        q: Joint positions (nq,) there.
        v: Joint velocities (nv,) there.
        step: The length h of the step [s].

    Returns:
        q and v at t + h.
    """
    h, half = step, 0.5 * step
    held = velocities_held(mech)
    a1 = f(t, q, v)
    v2, q2 = v + half * a1, held(q, v, half)
    a2 = f(t + half, q2, v2)
    v3, q3 = v + half * a2, held(q, v2, half)
    a3 = f(t + half, q3, v3)
    v4, q4 = v + h * a3, held(q2, v3 - 0.5 * v, h)
    a4 = f(t + h, q4, v4)
    middle = v2 + v3
    early = (3.0 * v + 2.0 * middle - v4) / 12.0
    late = (2.0 * middle + 3.0 * v4 - v) / 12.0
    after = held(held(q, early, h), late, h)
    return after, v + (h / 6.0) * (a1 + 2.0 * (a2 + a3) + a4)


def velocities_held(mech: Mechanism) -> Callable[[Array, Array, float], Array]:
    """`mech.integrate` of one state, without its checks and with all plain coordinates at once."""
    found = mech.kept.get("velocities held")
    if found is not None:
        return found
    plain_q, plain_v = list[int](), list[int]()
    others = list[tuple[Callable[[Array, Array, float], ArrayLike], slice, slice]]()
    for k, body in enumerate(mech.bodies):
        in_q = slice(int(mech.q_start[k]), int(mech.q_start[k + 1]))
        in_v = slice(int(mech.v_start[k]), int(mech.v_start[k + 1]))
        if type(body.hinge).integrate is Hinge.integrate:
            plain_q += range(in_q.start, in_q.stop)
            plain_v += range(in_v.start, in_v.stop)
        elif type(body.hinge) is Free:
            others.append((free_held, in_q, in_v))
        else:
            others.append((body.hinge.integrate, in_q, in_v))
    to, of = np.array(plain_q, dtype=np.intp), np.array(plain_v, dtype=np.intp)

    def held(q: Array, v: Array, dt: float) -> Array:
        out = np.empty(len(q))
        out[to] = q[to] + dt * v[of]
        for move, in_q, in_v in others:
            out[in_q] = move(q[in_q], v[in_v], dt)
        return out

    mech.kept["velocities held"] = held
    return held


def free_held(q: Array, v: Array, dt: float) -> list[float]:
    """`Free().integrate` of one state in plain numbers, which is quicker for so few of them.

    With θ = |ω| dt the turn is the quaternion (cos ½θ, sin ½θ ω/|ω|), and the path, in body axes,
    u + b w × u + c w × (w × u) with w = ω dt, u = v dt, b = (1 - cos θ)/θ², c = (θ - sin θ)/θ³.
    """
    q0, q1, q2, q3, x, y, z = q.tolist()
    w1, w2, w3, u1, u2, u3 = (dt * v).tolist()
    angle = math.sqrt(w1 * w1 + w2 * w2 + w3 * w3)
    half = math.sin(0.5 * angle) / angle if angle > 0.0 else 0.5
    b = 2.0 * half * half
    c = (angle - math.sin(angle)) / angle**3 if angle > 1e-4 else 1.0 / 6.0 - angle**2 / 120.0
    c1, c2, c3 = w2 * u3 - w3 * u2, w3 * u1 - w1 * u3, w1 * u2 - w2 * u1  # w × u
    p1 = u1 + b * c1 + c * (w2 * c3 - w3 * c2)
    p2 = u2 + b * c2 + c * (w3 * c1 - w1 * c3)
    p3 = u3 + b * c3 + c * (w1 * c2 - w2 * c1)
    # Turned by q: p + 2 q₀ (r × p) + 2 r × (r × p) with r its vector part.
    t1, t2, t3 = q2 * p3 - q3 * p2, q3 * p1 - q1 * p3, q1 * p2 - q2 * p1
    x += p1 + 2.0 * (q0 * t1 + q2 * t3 - q3 * t2)
    y += p2 + 2.0 * (q0 * t2 + q3 * t1 - q1 * t3)
    z += p3 + 2.0 * (q0 * t3 + q1 * t2 - q2 * t1)
    d0, d1, d2, d3 = math.cos(0.5 * angle), half * w1, half * w2, half * w3
    r0 = q0 * d0 - q1 * d1 - q2 * d2 - q3 * d3
    r1 = q0 * d1 + q1 * d0 + q2 * d3 - q3 * d2
    r2 = q0 * d2 - q1 * d3 + q2 * d0 + q3 * d1
    r3 = q0 * d3 + q1 * d2 - q2 * d1 + q3 * d0
    size = math.sqrt(r0 * r0 + r1 * r1 + r2 * r2 + r3 * r3)
    return [r0 / size, r1 / size, r2 / size, r3 / size, x, y, z]
