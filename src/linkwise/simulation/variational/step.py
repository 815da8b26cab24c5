"""One step of discrete mechanics, in momenta.

Rates w are held over the step; the discrete Lagrangian is the midpoint rule,

    L_d(q, q') = h L(q_m, w),   q' = q ⊕ h w,   q_m = q ⊕ ½h w,

and forces τ act at q_m. Momenta are p = −∂L_d/∂q before and p' = ∂L_d/∂q' after the step, by
turns of each hinge from the right. With μ = ∂L/∂w = 𝓜 w and f = L_q + τ at q_m, where
L_q = C_w* w − g + (what frames that turn add, `Coordinates.frame_force`):

    plain          μ = p + ½h f                              p' = p + h f             (1)
    quaternion     S μ = p_m + ½h (f − t × f)                p' = E* (p_m + h f)      (2)

with the turn E = exp(½h ω) of half a step, p_m = E* p, t = tan(θ/4) n and S = n n* + s (1 − n n*),
s = ½θ / sin ½θ, where h ω = θ n. (2) is what the derivative of the exponential leaves: multiplied
by E* from the left it has the symmetric function ½x/sinh ½x of x = h ω×, and ½ (1 − tanh ¼x).
In axes that do not turn, both say the same: a momentum changes by h times the force in the middle.

Armature is N v̇ in the equation of motion, with N constant in the axes of v and no gyroscopic force
with it. Where these axes turn, no Lagrangian has that: the rest is a force in f that does no work.

Source: marsden2001discrete for the principle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from linkwise.dynamics.kernels import named
from linkwise.errors import SimulationError
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.pipeline import compile
from linkwise.simulation.variational.coordinates import Coordinates, Turn, coordinates
from linkwise.simulation.variational.expression import LAGRANGIAN_FORCE, MOMENTUM
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array
from linkwise.spatial.vector import cross

if TYPE_CHECKING:
    from linkwise.codegen.several import Several

Force: TypeAlias = Callable[[float, Array, Array], Array]
"""τ (nv,) of the time [s], q (nq,) and v (nv,): all that acts besides gravity."""

ROUNDS = 100
"""Rounds after which a step is given up; the error falls by a factor of about h |w| in each."""

LARGEST_TURN = math.pi
"""By how much a quaternion may turn in one step [rad]."""


@dataclass(frozen=True, slots=True)
class Stepped:
    """Where a step has led.

    Attributes:
        q: Joint positions (nq,) after it.
        p: Momenta (nv,) after it.
        w: The rates (nv,) that were held.
        rounds: How many rounds it took to solve for w.
        residual: What is left of equations (1) and (2), in parts of the largest momentum.
    """

    q: Array
    p: Array
    w: Array
    rounds: int
    residual: float


def enter(mech: Mechanism, q: Array, v: Array) -> Array:
    """Momenta p (nv,) of a state: T* 𝓜 v.

    Args:
        mech: The mechanism, a tree.
        q: Joint positions (nq,).
        v: Joint velocities (nv,).
    """
    mu, _ = _momentum_and_force(mech, q, v)
    return coordinates(mech).rates(q, mu + mech.armature * v)


def leave(mech: Mechanism, q: Array, p: Array) -> Array:
    """Velocities v (nv,) of momenta p (nv,) at q (nq,): 𝓜⁻¹ T p."""
    return named(mech, "mass_matrix_inverse_product")(q, coordinates(mech).velocities(q, p))


def step(
    mech: Mechanism,
    f: Force | None,
    t: float,
    q: Array,
    p: Array,
    h: float,
    *,
    guess: Array | None = None,
) -> Stepped:
    """One step of order two that keeps the structure of mechanics.

    Equations (1) and (2) are solved for w by rounds w ← w − 𝓜⁻¹ r(w), each O(N).

    Args:
        mech: The mechanism, a tree.
        f: Forces τ(t, q, v), asked at the middle of the step; None for gravity alone.
        t: The time at the beginning of the step [s].
        q: Joint positions (nq,) there.
        p: Momenta (nv,) there (`enter`).
        h: The length of the step [s].
        guess: Rates (nv,) to begin with; by default those of p at q.

    Raises:
        SimulationError: The rounds do not end, or a quaternion turns too far: the step is too long.
    """
    coords = coordinates(mech)
    solve = named(mech, "mass_matrix_inverse_product")
    w = coords.rates(q, leave(mech, q, p)) if guess is None else guess
    last, rounds = math.inf, 0
    bound = 1e6 * (1.0 + float(np.abs(w).max(initial=0.0)))
    while True:
        middle = coords.retract(q, w, 0.5 * h)
        seen = coords.velocities(middle, w)
        force, momentum = _at_the_middle(coords, f, t + 0.5 * h, middle, seen)
        r = _residual(coords, force, momentum, p, w, h)
        change = coords.rates(middle, solve(middle, coords.velocities(middle, r)))
        w, rounds = w - change, rounds + 1
        size = float(np.abs(change).max(initial=0.0))
        scale = float(np.abs(w).max(initial=0.0))
        # Rounding is reached where small changes stop shrinking.
        if size <= 1e-15 * scale or (size <= 1e-12 * scale and size >= last):
            break
        if rounds >= ROUNDS or not size < bound:
            raise _too_long(mech, t, h, rounds, size, scale)
        last = size
    for turn in coords.turns:
        _check_turn(mech, turn, w, t, h)
    after = coords.retract(q, w, h)
    left = float(np.abs(r).max(initial=0.0)) / max(float(np.abs(p).max(initial=0.0)), 1e-300)
    return Stepped(after, _after(coords, force, p, w, h), w, rounds, left)


def _at_the_middle(
    coords: Coordinates, f: Force | None, t: float, q: Array, v: Array
) -> tuple[Array, Array]:
    """L_q + τ and ∂L/∂w in rates."""
    mu, force = _momentum_and_force(coords.mech, q, v)
    mu = mu + coords.mech.armature * v
    force = force + coords.frame_force(v, mu)
    if f is not None:
        force = force + f(t, q, v)
    return coords.rates(q, force), coords.rates(q, mu)


def _momentum_and_force(mech: Mechanism, q: Array, v: Array) -> tuple[Array, Array]:
    both = _kernel(mech)(q, v)
    return both["momentum"], both["force"]


@once_per_mechanism
def _kernel(mech: Mechanism) -> Several:
    return compile({"momentum": MOMENTUM, "force": LAGRANGIAN_FORCE}, mech)


def _residual(
    coords: Coordinates, force: Array, momentum: Array, p: Array, w: Array, h: float
) -> Array:
    """Left side less right side of (1), and of (2) for turns, in the axes of the middle."""
    r = momentum - p - (0.5 * h) * force
    for turn in coords.turns:
        at = slice(turn.v, turn.v + 3)
        half = _half_turn(w[at], h)
        t = half[1:] / half[0]
        r[at] = (
            _stretched(momentum[at], w[at], h)
            - _turned_back(half, p[at])
            - (0.5 * h) * (force[at] - cross(t, force[at]))
        )
    return r


def _after(coords: Coordinates, force: Array, p: Array, w: Array, h: float) -> Array:
    """p' of (1) and (2)."""
    out = p + h * force
    for turn in coords.turns:
        at = slice(turn.v, turn.v + 3)
        half = _half_turn(w[at], h)
        out[at] = _turned_back(half, _turned_back(half, p[at]) + h * force[at])
    return out


def _half_turn(w: Array, h: float) -> Array:
    """The quaternion of E = exp(½h ω)."""
    return quaternion.exp((0.5 * h) * w)


def _turned_back(half: Array, x: Array) -> Array:
    """E* x."""
    return x @ quaternion.to_matrix(half)


def _stretched(mu: Array, w: Array, h: float) -> Array:
    """S μ = s μ + (1 − s) n n* μ; with e = h ω, (1 − s)/θ² is −1/24 − 7 θ²/5760 for small θ."""
    e = h * w
    square = float(e @ e)
    if square < 1e-6:
        c = -1.0 / 24.0 - 7.0 * square / 5760.0
    else:
        half = 0.5 * math.sqrt(square)
        c = (1.0 - half / math.sin(half)) / square
    return (1.0 - c * square) * mu + (c * float(e @ mu)) * e


def _check_turn(mech: Mechanism, turn: Turn, w: Array, t: float, h: float) -> None:
    angle = abs(h) * float(np.linalg.norm(w[turn.v : turn.v + 3]))
    if angle > LARGEST_TURN:
        raise SimulationError(
            f"integrator='variational': body {turn.body!r} of {mech.name!r} turns by {angle:.3g} "
            f"rad in one step of {h:.3g} s at t = {t:.6g} s; it may turn by half a turn at most. "
            "Take a shorter step."
        )


def _too_long(
    mech: Mechanism, t: float, h: float, rounds: int, size: float, scale: float
) -> SimulationError:
    return SimulationError(
        f"integrator='variational': the step of {h:.3g} s at t = {t:.6g} s of {mech.name!r} has no "
        f"solution after {rounds} rounds: the rates, of size {scale:.3g}, still change by "
        f"{size:.2g}. Take a shorter step; for stiff springs and dampers as much shorter as they "
        "are stiff."
    )
