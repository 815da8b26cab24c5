"""Coordinates in which a mechanism is moved through time: q, and rates u in place of v.

For every hinge but `Free` the rates are the velocities, u = v. A free hinge has the velocity of its
origin in the axes of the body, which turn; its rates have it in the fixed axes of O⁺ instead:

    v = (ω, v_lin)        u = (ω, ṗ),   ṗ = R v_lin,   p̈ = R (v̇_lin + ω × v_lin)

and the configuration moves along q ⊕ h u (`moved`): plain coordinates add, quaternions are
multiplied from the right by exp(h ω) and made of unit length, positions of free hinges add h ṗ.
Hinges with a special rule, such as planar ones and rolling balls, move by it with v held.

A free body without forces so moves on a straight line, exactly, however it turns. These are the
coordinates of MuJoCo, too: the same scheme gives the same numbers there.

All of it runs on arrays of numbers and of graph nodes (dtype object) alike. Integrators are traced
with it, and on numbers each function is a small separate kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from linkwise.codegen import arrays
from linkwise.codegen.formula import Formula
from linkwise.codegen.scalar import status
from linkwise.codegen.scalar.trace import Sketch
from linkwise.codegen.stages import MOST_BODIES
from linkwise.dynamics.configuration import places
from linkwise.dynamics.kernels import written
from linkwise.model.hinges import Free, Hinge, Spherical
from linkwise.model.hinges.modified import is_plain
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.pipeline import compile
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array
from linkwise.spatial.vector import cross
from linkwise.sweeps.factored import factored

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

Acceleration: TypeAlias = Callable[[float, Array, Array], Array]
"""v̇ (nv,) of the time [s], q (nq,) and v (nv,); or u̇ (nv,) of the time, q and u (nv,)."""

QUARTER = 9
"""Terms of sine and cosine up to ¼π beyond the first: what is left out is below 1e-20."""

TERMS = 12
"""Of the series in y = ¼|θ|²: up to a whole turn the first one left out is below 1e-16."""


def moved(mech: Mechanism, q: Any, u: Any, h: Any) -> Any:
    """q ⊕ h u (nq,): where a configuration is after rates u were held for a time h."""
    if not places(mech)[1]:
        return q + h * u
    result = _by_kernel(mech, _MOVED, q, u, np.array([h]))
    return _moved(mech, q, h * u) if result is None else result


def rates(mech: Mechanism, q: Any, v: Any) -> Any:
    """u (nv,) of velocities v (nv,) at q (nq,)."""
    if not _free(mech):
        return v
    result = _by_kernel(mech, _RATES, q, v)
    return _turned(mech, q, v, 1.0) if result is None else result


def velocities(mech: Mechanism, q: Any, u: Any) -> Any:
    """v (nv,) of rates u (nv,) at q (nq,)."""
    if not _free(mech):
        return u
    result = _by_kernel(mech, _BACK, q, u)
    return _turned(mech, q, u, -1.0) if result is None else result


def rate_acceleration(mech: Mechanism, q: Any, v: Any, vdot: Any) -> Any:
    """u̇ (nv,) of v̇ (nv,) at q (nq,) and v (nv,): R (v̇_lin + ω × v_lin) for free hinges."""
    if not _free(mech):
        return vdot
    result = _by_kernel(mech, _ACCELERATION, q, v, vdot)
    return _turned(mech, q, carried(mech, v, vdot), 1.0) if result is None else result


def velocity_acceleration(mech: Mechanism, q: Any, v: Any, udot: Any) -> Any:
    """v̇ (nv,) of u̇ (nv,) at q (nq,) and v (nv,), on graph nodes: the way back."""
    out = _turned(mech, q, udot, -1.0)
    for _, j in _free(mech):
        out[j.start + 3 : j.stop] = out[j][3:] - cross(v[j][:3], v[j][3:])
    return out


def in_rates(mech: Mechanism, acceleration: Acceleration) -> Acceleration:
    """u̇(t, q, u) of v̇(t, q, v): the same motion in rates."""
    if not _free(mech):
        return acceleration

    def in_u(t: float, q: Array, u: Array) -> Array:
        v = velocities(mech, q, u)
        return rate_acceleration(mech, q, v, acceleration(t, q, v))

    return in_u


def turning(mech: Mechanism, theta: Any, u: Any) -> Any:
    """θ̇ (nv,): how the coordinates θ of q₀ ⊕ θ change while the mechanism moves with rates u.

    For plain coordinates θ̇ = u. Where θ is a rotation vector, of length |θ| < 2π, it is the inverse
    of the derivative of the exponential, dexp⁻¹, for turns in body axes. Its factor is a quotient
    of two series in y = ¼|θ|². For hinges with a special rule it is u, exact where θ is zero.

        θ̇ = ω + ½ θ × ω + c θ × (θ × ω)
        c = (1 − ½|θ| cot ½|θ|) / |θ|² = ¼ Σ (1/(2i+2)! − 1/(2i+3)!) (−y)ⁱ / Σ (−y)ⁱ / (2i+1)!
    """
    if not balls(mech):
        return u
    result = _by_kernel(mech, _TURNING, theta, u)
    return _turning(mech, theta, u) if result is None else result


def balls(mech: Mechanism) -> list[int]:
    """Where the angular velocities of spherical and free hinges begin in v."""
    kinds = (Free, Spherical)
    return [j.start for hinge, _, j in places(mech)[1] if type(hinge) in kinds]


def check_turns(at: Sketch, mech: Mechanism, w: Any) -> None:
    """Trouble where a body turns by more than half a turn in w (nv,), unless it is by a pin."""
    for k, body in enumerate(mech.bodies):
        if not is_plain(body.hinge):
            units = [x.unit for x in body.hinge.velocities]
            turn = [x for x, unit in zip(w[int(mech.v_start[k]) :], units, strict=False)
                    if unit == "rad"]  # fmt: skip
            at.check(status.turned(mech, k), sum(x * x for x in turn), -1.0, math.pi**2)


def along_velocities(mech: Mechanism, q: Array, gradient: Array) -> Array:
    """N* g (batch, nv), with q̇ = N v: the gradient along velocities, from that by entries of q."""
    if arrays.is_on_gpu(q):
        return _along_on_gpu(mech, str(q.dtype))(q, gradient)
    return written(mech, _ALONG)(q, gradient).astype(gradient.dtype, copy=False)


@once_per_mechanism
def _along_on_gpu(mech: Mechanism, dtype: str) -> Any:
    return compile(_ALONG, mech, target="cuda", dtype=dtype)


def as_velocities(mech: Mechanism, q: Array) -> Array:
    """N (N* N)⁻¹ (batch, nq, nv): what entries of a change of q count in each velocity."""
    return written(mech, _AS)(q)


# ------------------------------------------------------------------------------------- formulas


def _moved(mech: Mechanism, q: Any, w: Any) -> Any:
    """q ⊕ w."""
    out, ((at, of), others) = q.copy(), places(mech)
    out[at] = q[at] + w[of]
    for hinge, i, j in others:
        if type(hinge) in (Free, Spherical):
            turn = _exp(w[j][:3]) if w.dtype == object else quaternion.exp(w[j][:3])
            after = quaternion.multiply(q[None, i][:, :4], turn[None])
            out[i] = np.concatenate([quaternion.normalise(after)[0], q[i][4:] + w[j][3:]])
        else:
            out[i] = hinge.integrate(q[None, i], w[None, j])[0]
    return out


def _exp(w: Any) -> Any:
    """The quaternion of a rotation vector of at most half a turn, without roots and choices.

    With y = |w|²/16, c = cos ¼|w| = Σ (−y)ⁱ/(2i)! and s = sin ¼|w| / ¼|w| = Σ (−y)ⁱ/(2i+1)! it is
    (2 c² − 1, ½ s c w).
    """
    y = (1.0 / 16.0) * (w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
    c: Any = 0.0
    s: Any = 0.0
    for i in range(QUARTER, -1, -1):
        c = c * (-y) + 1.0 / math.factorial(2 * i)
        s = s * (-y) + 1.0 / math.factorial(2 * i + 1)
    return np.array([2.0 * c * c - 1.0, *(0.5 * s * c * w)])


def _turned(mech: Mechanism, q: Any, x: Any, sense: float) -> Any:
    """Linear parts of free hinges turned by R, or back."""
    out = x.copy()
    for i, j in _free(mech):
        rot = quaternion.to_matrix(q[None, i][:, :4])[0]
        out[j.start + 3 : j.stop] = (rot if sense > 0.0 else rot.T) @ x[j][3:]
    return out


def carried(mech: Mechanism, v: Any, vdot: Any) -> Any:
    """v̇ with the part of turning axes, v̇_lin + ω × v_lin."""
    out = vdot.copy()
    for _, j in _free(mech):
        out[j.start + 3 : j.stop] = vdot[j][3:] + cross(v[j][:3], v[j][3:])
    return out


def _turning(mech: Mechanism, theta: Any, u: Any) -> Any:
    out = u.copy()
    for j in balls(mech):
        turn, omega = theta[j : j + 3], u[j : j + 3]
        y = 0.25 * (turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2])
        above: Any = 0.0
        below: Any = 0.0
        for i in range(TERMS, -1, -1):
            odd = 1.0 / math.factorial(2 * i + 3)
            above = above * (-y) + 1.0 / math.factorial(2 * i + 2) - odd
            below = below * (-y) + 1.0 / math.factorial(2 * i + 1)
        once = cross(turn, omega)
        out[j : j + 3] = omega + 0.5 * once + (0.25 * above / below) * cross(turn, once)
    return out


def _write_moved(at: Writing) -> Any:
    q, v, (h,) = at.q, at.v, at.read("h", 1)
    check_turns(at, at.mech, h * v)  # more than that is left to the exact rules of hinges
    return _moved(at.mech, q, h * v)


def _write_turned(at: Writing, sense: float) -> Any:
    q, v = at.q, at.v
    return _turned(at.mech, q, v, sense)


def _write_acceleration(at: Writing) -> Any:
    q, v, vdot = at.q, at.v, at.read("vdot", at.mech.nv)
    return _turned(at.mech, q, carried(at.mech, v, vdot), 1.0)


def _write_turning(at: Writing) -> Any:
    theta, u = at.read("theta", at.mech.nv), at.v
    return _turning(at.mech, theta, u)


def _write_along(at: Writing) -> Any:
    q, g = at.q, at.read("gradient", at.mech.nq)
    out, ((where, of), others) = np.zeros(at.mech.nv, dtype=object), places(at.mech)
    out[of] = g[where]
    for hinge, i, j in others:
        out[j] = g[i] @ _rate_map(hinge, q[i])
    return out


def _write_as(at: Writing) -> Any:
    q = at.q
    return counted(at.mech, q)


def counted(mech: Mechanism, q: Any) -> Any:
    """N (N* N)⁻¹ (nq, nv) in a formula: `as_velocities`."""
    out, ((where, of), others) = np.zeros((mech.nq, mech.nv), dtype=object), places(mech)
    out[where, of] = 1.0
    for hinge, i, j in others:
        N = _rate_map(hinge, q[i])
        out[i, j] = (factored(N.T @ N) @ N.T).T
    return out


def rate_map(mech: Mechanism, q: Any) -> Any:
    """N (nq, nv) of q̇ = N v in a formula."""
    out, ((where, of), others) = np.zeros((mech.nq, mech.nv), dtype=object), places(mech)
    out[where, of] = 1.0
    for hinge, i, j in others:
        out[i, j] = _rate_map(hinge, q[i])
    return out


def _rate_map(hinge: Hinge, q: Any) -> Any:
    """N (nq, nv) of a hinge."""
    return np.stack([hinge.qdot(q[None], e[None])[0] for e in np.eye(hinge.nv)], axis=-1)


_MOVED = Formula(_write_moved)
_RATES, _BACK = Formula(_write_turned, (1.0,)), Formula(_write_turned, (-1.0,))
_ACCELERATION = Formula(_write_acceleration)
_TURNING = Formula(_write_turning)
_ALONG, _AS = Formula(_write_along), Formula(_write_as)

# ------------------------------------------------------------------------------------- on numbers


def _by_kernel(mech: Mechanism, formula: Formula, *arrays: Any) -> Array | None:
    """A formula on numbers by a kernel; None for graph nodes, and for what no kernel takes."""
    if arrays[0].dtype == object or not is_traceable(mech) or mech.n_bodies > MOST_BODIES:
        return None
    quick = written(mech, formula).quick
    return None if quick is None else quick(*arrays)


@once_per_mechanism
def is_traceable(mech: Mechanism) -> bool:
    """Whether all hinges move by formulas that run on graph nodes."""
    s = Sketch()
    try:
        _moved(mech, s.read("q", mech.nq), s.read("v", mech.nv))
    except (TypeError, ValueError, AttributeError):  # a hinge of a user, with branches
        return False
    return True


@once_per_mechanism
def _free(mech: Mechanism) -> list[tuple[slice, slice]]:
    """Where the free hinges are in q and in v."""
    return [(i, j) for hinge, i, j in places(mech)[1] if type(hinge) is Free]
