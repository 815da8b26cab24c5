"""Moving on the configuration manifold, in formulas without branches.

Integrators work with rates u. They are the velocities v of a mechanism but for free bodies, whose u
is (ω in body axes, ṗ in world axes) where v is (ω, Rᵀ ṗ), both in body axes. So a body that flies
keeps its ṗ, and steps are those that MuJoCo makes in its coordinates.

    ṗ = R v_l,     p̈ = R (v̇_l + ω × v_l)

A rate held for the time h leads to q ⊕ h u: numbers are added, a quaternion is multiplied by that
of the turn h ω, from the right. Its sine and cosine are polynomials here, good to rounding up to
half a turn in one step; more than that is trouble with a code of its own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linkwise.codegen.scalar import status
from linkwise.codegen.stepping.segment import Sketch
from linkwise.errors import LoweringError
from linkwise.model.hinges import Free, Hinge, Planar, Spherical
from linkwise.model.hinges.plain import is_plain
from linkwise.model.mechanism import Mechanism

TERMS = 12
"""Of the series in x = (θ/2)² ≤ (π/2)²: the first one left out is below 1e-18."""


def supported(hinge: Hinge) -> bool:
    """Whether there are formulas for a hinge."""
    return is_plain(hinge) or type(hinge) in (Free, Spherical, Planar)


def check_supported(mech: Mechanism) -> None:
    """Refuse mechanisms with a hinge that has no formula.

    Raises:
        LoweringError: Names the hinge.
    """
    for body in mech.bodies:
        if not supported(body.hinge):
            raise LoweringError(
                f"a motion of {mech.name!r} cannot be compiled: hinge {body.hinge_name!r} is "
                f"{body.hinge.kind}, whose steps have no formula without branches; there are those "
                "of hinges with plain coordinates, spherical, free and planar ones. lw.simulate "
                "moves it step by step."
            )


def turn_code(mech: Mechanism, k: int) -> int:
    """The code for: body k turns by more than half a turn in one step."""
    return status.HINGES + 2 * mech.n_bodies + k


def velocities(mech: Mechanism, q: Any, u: Any) -> Any:
    """v from u."""
    v = u.copy()
    for at, w in _free(mech):
        v[w][3:] = _turned(q[at][:4], u[w][3:], back=True)
    return v


def rates(mech: Mechanism, q: Any, v: Any) -> Any:
    """u from v."""
    u = v.copy()
    for at, w in _free(mech):
        u[w][3:] = _turned(q[at][:4], v[w][3:])
    return u


def rate_accelerations(mech: Mechanism, q: Any, v: Any, vdot: Any) -> Any:
    """u̇ from v̇."""
    out = vdot.copy()
    for at, w in _free(mech):
        linear = vdot[w][3:] + _cross(v[w][:3], v[w][3:])
        out[w][3:] = _turned(q[at][:4], linear)
    return out


def moved(sketch: Sketch, mech: Mechanism, q: Any, w: Any) -> Any:
    """q ⊕ w, with w = h u."""
    out = np.empty(mech.nq, dtype=object)
    for k, body in enumerate(mech.bodies):
        in_q = slice(int(mech.q_start[k]), int(mech.q_start[k + 1]))
        in_v = slice(int(mech.v_start[k]), int(mech.v_start[k + 1]))
        at, step = q[in_q], w[in_v]
        if type(body.hinge) in (Free, Spherical):
            out[in_q][:4] = _with_turn(sketch, turn_code(mech, k), at[:4], step[:3])
            if len(at) > 4:
                out[in_q][4:] = at[4:] + step[3:]
        elif type(body.hinge) is Planar:
            out[in_q] = _on_plane(sketch, turn_code(mech, k), at, step)
        else:
            out[in_q] = at + step
    return out


def turning(mech: Mechanism, theta: Any, u: Any) -> Any:
    """θ̇: how θ of q₀ ⊕ θ changes while the mechanism moves with rates u.

    For a rotation vector it is dexp⁻¹, ω + ½ θ × ω + c θ × (θ × ω), where c is a quotient of two
    series in y = (|θ|/2)²:

        c = (1 − ½|θ| cot ½|θ|) / |θ|² = ¼ Σ (1/(2i+2)! − 1/(2i+3)!) (−y)ⁱ / Σ (−y)ⁱ / (2i+1)!
    """
    out = u.copy()
    for j in balls(mech):
        turn, omega = theta[j : j + 3], u[j : j + 3]
        y = 0.25 * (turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2])
        above: Any = 0.0
        for i in range(TERMS, -1, -1):
            term = 1.0 / math.factorial(2 * i + 2) - 1.0 / math.factorial(2 * i + 3)
            above = above * (-y) + term
        c = 0.25 * above * _series(y, 1).reciprocal()
        once = _cross(turn, omega)
        out[j : j + 3] = omega + 0.5 * once + c * _cross(turn, once)
    return out


def balls(mech: Mechanism) -> list[int]:
    """Where the angular velocities of spherical and free hinges begin in v."""
    kinds = (Free, Spherical)
    return [int(mech.v_start[k]) for k, body in enumerate(mech.bodies) if type(body.hinge) in kinds]


def half_turn(square: Any) -> tuple[Any, Any]:
    """cos(θ/2) and sin(θ/2)/θ of θ²."""
    x = 0.25 * square
    cosine, sine = _series(x, 0), _series(x, 1)
    return cosine, 0.5 * sine


def _series(x: Any, odd: int) -> Any:
    """Σ (−x)ⁱ / (2i + odd)!, by Horner's rule: cos √x, or sin √x / √x."""
    total: Any = 0.0
    for i in range(TERMS, -1, -1):
        total = total * (-x) + 1.0 / math.factorial(2 * i + odd)
    return total


def _with_turn(sketch: Sketch, code: int, at: Any, turn: Any) -> Any:
    """The quaternion after a turn in body axes, of unit length."""
    square = turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2]
    sketch.check(code, square, -1.0, math.pi**2)
    cosine, half = half_turn(square)
    d0, d1, d2, d3 = cosine, *(half * x for x in turn)
    q0, q1, q2, q3 = at
    out = np.array(
        [
            q0 * d0 - q1 * d1 - q2 * d2 - q3 * d3,
            q0 * d1 + q1 * d0 + q2 * d3 - q3 * d2,
            q0 * d2 - q1 * d3 + q2 * d0 + q3 * d1,
            q0 * d3 + q1 * d2 - q2 * d1 + q3 * d0,
        ],
        dtype=object,
    )
    size = (out[0] * out[0] + out[1] * out[1] + out[2] * out[2] + out[3] * out[3]).sqrt()
    return out * size.reciprocal()


def _on_plane(sketch: Sketch, code: int, at: Any, step: Any) -> Any:
    """The arc of a circle, as `Planar.integrate` has it."""
    x, y, turn = step
    sketch.check(code, turn * turn, -1.0, math.pi**2)
    _, half = half_turn(turn * turn)
    shrink, middle = 2.0 * half, at[2] + 0.5 * turn
    c, s = shrink * middle.cos(), shrink * middle.sin()
    return np.array([at[0] + c * x - s * y, at[1] + s * x + c * y, at[2] + turn], dtype=object)


def _free(mech: Mechanism) -> list[tuple[slice, slice]]:
    return [
        (
            slice(int(mech.q_start[k]), int(mech.q_start[k + 1])),
            slice(int(mech.v_start[k]), int(mech.v_start[k + 1])),
        )
        for k, body in enumerate(mech.bodies)
        if type(body.hinge) is Free
    ]


def _turned(quaternion: Any, x: Any, *, back: bool = False) -> Any:
    """R x, or Rᵀ x: x + 2 q₀ (r × x) + 2 r × (r × x) with r the vector part, or its negative."""
    r = -quaternion[1:] if back else quaternion[1:]
    t = 2.0 * _cross(r, x)
    return x + quaternion[0] * t + _cross(r, t)


def _cross(a: Any, b: Any) -> Any:
    return np.array(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]],
        dtype=object,
    )
