"""One step of discrete mechanics, in momenta: the equations solved round by round in NumPy."""

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
from linkwise.simulation.variational.coordinates import Turn, coordinates
from linkwise.simulation.variational.equations import (
    LAGRANGIAN_FORCE,
    MOMENTUM,
    at_the_middle,
    momentum_after,
    residual,
)
from linkwise.spatial.array import Array

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel

Force: TypeAlias = Callable[[float, Array, Array], Array]
"""τ (nv,) of the time [s], q (nq,) and v (nv,): all forces besides gravity."""

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
    """Momenta p (nv,) of a state: T* 𝓜 v."""
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
        f: Forces τ(t, q, v), asked at the middle of the step; None for gravity alone.
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
        mu, force = _momentum_and_force(mech, middle, seen)
        force = force if f is None else force + f(t + 0.5 * h, middle, seen)
        force, momentum = at_the_middle(coords, middle, seen, mu, force)
        r = residual(coords, force, momentum, p, w, h)
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
    return Stepped(after, momentum_after(coords, force, p, w, h), w, rounds, left)


def _momentum_and_force(mech: Mechanism, q: Array, v: Array) -> tuple[Array, Array]:
    both = _kernel(mech)(q, v)
    return both["momentum"], both["force"]


@once_per_mechanism
def _kernel(mech: Mechanism) -> Kernel:
    return compile({"momentum": MOMENTUM, "force": LAGRANGIAN_FORCE}, mech)


def _check_turn(mech: Mechanism, turn: Turn, w: Array, t: float, h: float) -> None:
    name, angle = mech.bodies[turn.k].name, abs(h) * float(np.linalg.norm(w[turn.v : turn.v + 3]))
    if angle > LARGEST_TURN:
        raise SimulationError(
            f"integrator='variational': body {name!r} of {mech.name!r} turns by {angle:.3g} "
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
