"""Motions that cannot continue: not finite, or with energy that no force supplied."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from linkwise.dynamics.energy import energy
from linkwise.dynamics.mass_matrix import mass_matrix
from linkwise.errors import LinkwiseError, SimulationError
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.applied_force import AppliedForces
from linkwise.simulation.stiff_drive import remedy
from linkwise.spatial.array import Array

if TYPE_CHECKING:
    from linkwise.simulation.moment import Moment
    from linkwise.simulation.observer import States
    from linkwise.simulation.stepper import Stepper

FASTEST = 1e9
"""Nothing moves faster [rad/s or m/s]."""

GROWN = 10.0
"""Speeds this many times as large as in the first half of a run have begun to grow."""

RESOLVED = 0.1
"""Part of the change in a step by which shorter ones may differ where the step is short enough."""

GROWTH = 1.0
"""Energy may grow by this part of what could ever have become motion, without being driven."""


class DivergenceError(SimulationError):
    """Speeds grow without bounds; `advice` says what to do."""


def blown_up(mech: Mechanism, t: float, q: Array, v: Array, why: str = "") -> DivergenceError:
    """The error for a step that led to NaN, or to impossible speeds."""
    message = f"{mech.name!r} diverged after t = {t:.9g} s: its speeds grow without bounds."
    return DivergenceError(" ".join(x for x in (message, fastest(mech, q, v), why) if x))


def advice(stepper: Stepper, at: Moment, states: States) -> str:
    """What to do about a motion that diverged: a shorter step where that can help.

    Where the speeds have begun to grow, one step of the run is compared with ten shorter ones, for
    which the controller is asked all the time. If both lead to the same state, the growth is that
    of the mechanism and of what acts on it, not of the steps.

    Args:
        states: t (k,), q (k, nq), v (k, nv) ... of what was recorded.
    """
    if stepper.held_for and stepper.length is None:
        return (
            f"The controller is held for {stepper.held_for:.3g} s; try a shorter control_step or "
            "smaller gains."
        )
    if stepper.scheme.step is None or stepper.length is None:
        return "Look at gains, stiffnesses and the signs of forces: something feeds it."
    t, q, v, _, work = states
    speeds = np.abs(v).max(axis=1, initial=0.0)
    usual = float(speeds[: max(1, len(speeds) // 2)].max())
    last = int(np.flatnonzero(speeds <= GROWN * usual)[-1])
    begun = dataclasses.replace(at, t=float(t[last]), q=q[last], v=v[last], work=work[last])
    off, step, held = _resolution(stepper, begun), stepper.length, stepper.held_for
    if off <= RESOLVED:
        return (
            f"Shorter steps do not help: at t = {begun.t:.6g} s, where its speeds were up to "
            f"{float(np.abs(begun.v).max(initial=0.0)):.3g}, ten steps of {0.1 * step:.1g} s lead "
            f"to the same velocities as one of {step:.3g} s, to {off:.1g} of their change. "
            "Something feeds it: look at the signs and gains of the controller and of forces, at "
            "what the base can carry, and at the stiffness of springs."
        )
    if held:
        return (
            f"The controller is held for {held:.3g} s; try a shorter control_step or smaller gains."
            f" If that does not help, try step={0.1 * step:.1g}."
        )
    return (
        f"A step of {step:.3g} s is too long for how fast it moves or how stiff it is; try "
        f"step={0.1 * step:.1g}, look at gains and stiffnesses, or use integrator='adaptive'."
        + remedy(stepper.mech)
    )


def _resolution(stepper: Stepper, at: Moment) -> float:
    """How far one step and ten shorter ones are apart, as a part of what they change."""
    assert stepper.length is not None
    held, h = stepper.held, stepper.length
    try:
        if stepper.held_for:
            stepper.held = stepper.applied.command(0, at.t, at.q, at.v)
        steps = min(max(1, round(stepper.held_for / h)), 20)  # a tick of the controller, or a step
        coarse = stepper.advance(at, h, steps)
        stepper.held = None if stepper.held_for else held
        fine = at
        for _ in range(10 * steps):
            fine = stepper.advance(fine, 0.1 * h)
    except (LinkwiseError, ArithmeticError):
        return np.inf
    finally:
        stepper.held = held
    change = float(np.abs(fine.v - at.v).max(initial=0.0))
    gap = float(np.abs(coarse.v - fine.v).max(initial=0.0))
    return gap / change if change > 0.0 else np.inf


def gave_up(mech: Mechanism, t: float, q: Array, v: Array, reason: Exception) -> SimulationError:
    """The error for a step that could not be made."""
    message = (
        str(reason) if isinstance(reason, LinkwiseError) else f"{type(reason).__name__}: {reason}"
    )
    return SimulationError(
        f"{mech.name!r} cannot go on after t = {t:.9g} s: {message} {fastest(mech, q, v)}"
    )


def is_bounded(q: Array, v: Array) -> bool:
    """Whether a state is one of a motion that goes on."""
    return bool(np.isfinite(q).all()) and float(np.abs(v).max(initial=0.0)) < FASTEST


def fastest(mech: Mechanism, q: Array, v: Array) -> str:
    """The hinge with most of the kinetic energy, in words."""
    if not mech.nv or not (np.isfinite(v).all() and np.isfinite(q).all()):
        return ""
    share = np.abs(v)
    try:
        weighted = share * np.sqrt(np.diagonal(mass_matrix(mech, q)))
        share = weighted if np.isfinite(weighted).all() else share
    except (LinkwiseError, ArithmeticError):
        pass
    i = int(np.argmax(share))
    k = int(np.searchsorted(mech.v_start, i, side="right")) - 1
    unit = [x.unit for body in mech.bodies for x in body.hinge.velocities][i]
    return (
        f"Most of the motion is at hinge {mech.velocity_names[i]!r} of body "
        f"{mech.bodies[k].name!r}, which moves with {v[i]:.3g} {unit or '1'}/s."
    )


class EnergyGuard:
    """Looks at the energy of a mechanism that nothing drives: it cannot grow.

    Gravity, springs and surfaces only store energy, dampers and friction take it. Let E be all of
    it, and E₀ what there was at the beginning. No motion had more kinetic energy than E₀ − U, with
    the smallest potential energy U it met; where E is above E₀ by as much, the step is too long.

    Attributes:
        on: Whether there is something to look at.
    """

    def __init__(self, mech: Mechanism, applied: AppliedForces, q: Array, v: Array) -> None:
        self.mech, self.applied = mech, applied
        self.on = not applied.driven and mech.nv > 0
        if self.on:
            self._lowest = np.inf
            potential, total = self._energies(q, v)
            self._lowest, self._first = float(potential[0]), float(total[0])

    def _energies(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Potential and all energy (k,) of one state or several."""
        both = energy(self.mech, q, v)
        potential = np.atleast_1d(both.potential + self.applied.stored(q))
        return potential, potential + both.kinetic

    def sound(self, q: Array, v: Array) -> int:
        """How many states (k, ...), from the first one on, have an energy that there can be."""
        if not self.on:
            return len(q)
        potential, total = self._energies(q, v)
        lowest, grown, allowed = self._bounds(potential, total)
        count = len(q) if (grown <= allowed).all() else int(np.argmin(grown <= allowed))
        self._lowest = float(lowest[count - 1]) if count else self._lowest
        return count

    def _bounds(self, potential: Array, total: Array) -> tuple[Array, Array, Array]:
        """The smallest potential energy so far, by how much it grew and by how much it may."""
        lowest = np.minimum(np.minimum.accumulate(potential), self._lowest)
        slack = 1e-9 * (abs(self._first) + np.abs(lowest)) + 1e-12
        return lowest, total - self._first, GROWTH * (self._first - lowest) + slack

    def check(self, t: float, q: Array, v: Array, step: float | None) -> None:
        """Look at one state; `step` [s] is None for a method that chooses it.

        Raises:
            SimulationError: There is more energy than there can be.
        """
        if not self.on:
            return
        (lowest,), (grown,), (allowed,) = self._bounds(*self._energies(q, v))
        self._lowest = float(lowest)
        if grown <= allowed:
            return
        raise SimulationError(
            f"{self.mech.name!r} diverged at t = {t:.9g} s: nothing drives it, and its energy has "
            f"grown by {grown:.3g} J since the start, from {self._first:.6g} J; no motion it made "
            f"could have more than {allowed:.3g} J. {fastest(self.mech, q, v)} "
            + (
                "Use smaller rtol and atol."
                if step is None
                else f"A step of {step:.3g} s is too "
                f"long; try step={0.1 * step:.1g}, or integrator='adaptive'." + remedy(self.mech)
            )
        )
