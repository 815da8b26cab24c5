"""Motions that cannot go on: not finite any more, or with energy that nothing gave."""

from __future__ import annotations

import numpy as np

from linkwise.dynamics.energy import kinetic_energy, potential_energy
from linkwise.dynamics.mass_matrix import mass_matrix
from linkwise.errors import LinkwiseError, SimulationError
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.acting import Acting
from linkwise.spatial.array import Array

FASTEST = 1e9
"""Nothing moves faster [rad/s or m/s]."""

GROWTH = 1.0
"""Energy may grow by this part of what could ever have become motion, without being driven."""


def blown_up(
    mech: Mechanism,
    t: float,
    q: Array,
    v: Array,
    step: float | None,
    held: float = 0.0,
    why: str = "",
) -> SimulationError:
    """The error for a step that led to what is no number, or faster than anything moves.

    Args:
        mech: The mechanism.
        t: The last time [s] at which all was well.
        q: Joint positions (nq,) there.
        v: Joint velocities (nv,) there.
        step: The step [s]; None for a method that chooses it.
        held: For how long [s] the controller is held; 0 where it is asked all the time.
        why: What else is to be told.
    """
    told = [
        f"{mech.name!r} diverged after t = {t:.9g} s: its speeds grow without bounds.",
        fastest(mech, q, v),
        why,
    ]
    if held:
        told.append(
            f"The controller is held for {held:.3g} s; try a shorter control_step or smaller gains."
        )
        if step is not None:
            told.append(f"If that does not help, try step={0.1 * step:.1g}.")
    elif step is None:
        told.append("Look at gains, stiffnesses and the signs of forces: something feeds it.")
    else:
        told.append(
            f"A step of {step:.3g} s is too long for how fast it moves or how stiff it is; try "
            f"step={0.1 * step:.1g}, look at gains and stiffnesses, or use integrator='adaptive'."
        )
    return SimulationError(" ".join(x for x in told if x))


def gave_up(mech: Mechanism, t: float, q: Array, v: Array, reason: Exception) -> SimulationError:
    """The error for a step that could not be made."""
    told = (
        str(reason) if isinstance(reason, LinkwiseError) else f"{type(reason).__name__}: {reason}"
    )
    return SimulationError(
        f"{mech.name!r} cannot go on after t = {t:.9g} s: {told} {fastest(mech, q, v)}"
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

    def __init__(self, mech: Mechanism, acting: Acting, q: Array, v: Array) -> None:
        self.mech, self.acting = mech, acting
        self.on = not acting.driven and mech.nv > 0
        if self.on:
            self._lowest = self._potential(q)
            self._first = self._lowest + float(kinetic_energy(mech, q, v))

    def _potential(self, q: Array) -> float:
        return float(potential_energy(self.mech, q)) + self.acting.stored(q)

    def check(self, t: float, q: Array, v: Array, step: float) -> None:
        """Look at one state.

        Raises:
            SimulationError: There is more energy than there can be.
        """
        if not self.on:
            return
        potential = self._potential(q)
        total = potential + float(kinetic_energy(self.mech, q, v))
        self._lowest = min(self._lowest, potential)
        room = self._first - self._lowest
        slack = 1e-9 * (abs(self._first) + abs(self._lowest)) + 1e-12
        grown, allowed = total - self._first, GROWTH * room + slack
        if grown <= allowed:
            return
        raise SimulationError(
            f"{self.mech.name!r} diverged at t = {t:.9g} s: nothing drives it, and its energy has "
            f"grown by {grown:.3g} J since the start, from {self._first:.6g} J; no motion it made "
            f"could have more than {allowed:.3g} J. {fastest(self.mech, q, v)} A step of "
            f"{step:.3g} s is too long; try step={0.1 * step:.1g}, or integrator='adaptive'."
        )
