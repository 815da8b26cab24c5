"""One step of time on the configuration manifold, of fourth order.

The state (q, v) moves along q̇ = v (on the manifold), v̇ = f(t, q, v). Holding velocities fixed for a
while is what `mech.integrate` does exactly, hinge by hinge, so a step is put together from such
pieces; quaternions stay of unit length and nothing depends on how a hinge counts its coordinates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from linkwise.model.hinges import Hinge
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

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
    held = _held(mech)
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


def _held(mech: Mechanism) -> Callable[[Array, Array, float], Array]:
    """`mech.integrate` of one state, without its checks and with all plain coordinates at once."""
    found = mech.kept.get("velocities held")
    if found is not None:
        return found
    plain_q, plain_v = list[int](), list[int]()
    others = list[tuple[Hinge, slice, slice]]()
    for k, body in enumerate(mech.bodies):
        in_q = slice(int(mech.q_start[k]), int(mech.q_start[k + 1]))
        in_v = slice(int(mech.v_start[k]), int(mech.v_start[k + 1]))
        if type(body.hinge).integrate is Hinge.integrate:
            plain_q += range(in_q.start, in_q.stop)
            plain_v += range(in_v.start, in_v.stop)
        else:
            others.append((body.hinge, in_q, in_v))
    to, of = np.array(plain_q, dtype=np.intp), np.array(plain_v, dtype=np.intp)

    def held(q: Array, v: Array, dt: float) -> Array:
        out = np.empty(len(q))
        out[to] = q[to] + dt * v[of]
        for hinge, in_q, in_v in others:
            out[in_q] = hinge.integrate(q[in_q], v[in_v], dt)
        return out

    mech.kept["velocities held"] = held
    return held
