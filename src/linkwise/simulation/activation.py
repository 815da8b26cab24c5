"""Activations of actuators as known inputs, which is what derivatives of steps need.

Activations follow commands alone: no position or velocity changes them. So a motion with them is
that of actuators without dynamics whose commands are the activations aₖ of its steps,

    a₀ = 0,   aₖ₊₁ = clip(D aₖ + E clip(uₖ)),   D = exp(−h/T), E = 1 − D   filter
                                                D = 1, E = h               integrator

and gradients by aₖ give those by commands: from the last step to the first, with the weights wₖ,

    m ← wₖ + s D m,   by uₖ: s E m with m of the step after it;   s = 0 where a bound holds, else 1
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwise.codegen import arrays
from linkwise.codegen.formula import Formula
from linkwise.codegen.sensitivity import pushed
from linkwise.codegen.writing import Writing
from linkwise.dynamics.actuator_force import (
    NamedCommands,
    actuator_commands,
    driven,
    instant_commands,
)
from linkwise.dynamics.kernels import written
from linkwise.errors import ModelError
from linkwise.model.actuator import ALL, Actuator
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike


@once_per_mechanism
def without_dynamics(mech: Mechanism) -> Mechanism:
    """The mechanism whose actuators with an activation take it as their command."""
    known = (
        replace(x, dynamics="none", time_constant=0.0, control=ALL, activation=ALL)
        if x.dynamics != "none"
        else x
        for x in mech.actuators
    )
    return replace(mech, actuators=tuple(known))


def lasting(mech: Mechanism) -> list[int]:
    """Places of the actuators with an activation."""
    return [i for i, x in enumerate(mech.actuators) if x.dynamics != "none"]


@dataclass(frozen=True, slots=True)
class Following:
    """How activations follow commands in steps of one length.

    Attributes:
        mech: The mechanism.
        step: h [s].
    """

    mech: Mechanism
    step: float

    def along(self, commands: Any, steps: int) -> tuple[Any, Any, Any]:
        """Activations over a motion that begins with zeros, and what they follow.

        Args:
            commands: (a,), (steps, a), (batch, 1, a) or (batch, steps, a); of NumPy or CuPy.

        Returns:
            What acts in each step (steps, a) or (batch, steps, a): activations, and the commands of
            actuators without. Then D and E of actuators, 0 in steps in which a bound holds.
        """
        library: Any = arrays.cupy() if arrays.is_on_gpu(commands) else np
        rows = commands[None] if commands.ndim == 1 else commands
        shape = (*rows.shape[:-2], steps, rows.shape[-1])
        rows = library.broadcast_to(rows, shape)
        acts = rows.copy()
        keeps, takes = library.zeros(shape, rows.dtype), library.ones(shape, rows.dtype)
        places, *numbers = self._numbers(library, rows.dtype)
        keep, take, low, high, least, most = numbers
        a = library.zeros((*shape[:-2], len(places)), rows.dtype)
        for k in range(steps):
            acts[..., k, places] = a
            u = rows[..., k, places]
            free = keep * a + take * library.clip(u, least, most)
            inside = (free >= low) & (free <= high)
            keeps[..., k, places] = keep * inside
            takes[..., k, places] = take * (inside & (u >= least) & (u <= most))
            a = library.clip(free, low, high)
        return acts, keeps, takes

    def back(self, weights: Any, keeps: Any, takes: Any) -> Any:
        """Gradients by commands (batch, steps, a), from those by what acts."""
        places = lasting(self.mech)
        out, m = weights.copy(), 0.0 * weights[:, :, places].sum(axis=1)
        for k in reversed(range(weights.shape[1])):
            out[:, k, places] = takes[..., k, places] * m
            m = weights[:, k, places] + keeps[..., k, places] * m
        return out

    def once(self, commands: Array, activations: Array) -> Array:
        """∂a'/∂a of one step (..., n), from commands (..., a) and activations (..., n)."""
        places, keep, take, low, high, least, most = self._numbers(np, np.float64)
        free = keep * activations + take * np.clip(commands[..., places], least, most)
        return keep * ((free >= low) & (free <= high))

    def _numbers(self, library: Any, dtype: Any) -> tuple[Any, ...]:
        """Places of the actuators with an activation, D, E, and bounds of both."""
        places = lasting(self.mech)
        rows = [self._of(self.mech.actuators[i]) for i in places]
        table = library.asarray(np.array(rows).reshape(-1, 6), dtype=dtype)
        return (places, *table.T)

    def _of(self, actuator: Actuator) -> tuple[float, ...]:
        bounds = *actuator.activation, *actuator.control
        if actuator.dynamics == "integrator":
            return 1.0, self.step, *bounds
        keep = float(np.exp(-self.step / actuator.time_constant))
        return keep, -float(np.expm1(-self.step / actuator.time_constant)), *bounds


def _by_command(at: Writing) -> Any:
    """∂τ/∂u (nv, a) of the forces of actuators."""
    force = driven(at, at.q, at.v)
    nodes, one = [at.scalar(x).node for x in force], at.graph.constant(1.0)
    command = at.read("control", len(at.mech.actuators))
    columns = [at.scalars(pushed(at.graph, nodes, {x.node: one})) for x in command]
    return np.stack(columns, axis=1)


BY_COMMAND = Formula(_by_command)


@dataclass(frozen=True, slots=True, eq=False)
class Activated:
    """Commands and activations about which motion is linearised.

    Attributes:
        mech: The mechanism.
        commands: (..., a).
        acting: The same with activations, within their bounds, in their places.
    """

    mech: Mechanism
    commands: Array
    acting: Array

    @property
    def activations(self) -> Array:
        """(..., n)."""
        return self.acting[..., lasting(self.mech)]

    def forces(self, q: ArrayLike, v: ArrayLike) -> Array:
        """∂τ/∂a (..., nv, n)."""
        slopes = written(without_dynamics(self.mech), BY_COMMAND)(q, v, self.acting)
        return slopes[..., lasting(self.mech)]

    def rates(self) -> Array:
        """∂ȧ/∂a (..., n) in continuous time: 0 where a bound holds the activation."""
        slopes, now = np.zeros(self.activations.shape), self.activations
        for i, place in enumerate(lasting(self.mech)):
            actuator = self.mech.actuators[place]
            if actuator.dynamics == "filter":
                u = np.clip(self.commands[..., place], *actuator.control)
                a, (low, high) = now[..., i], actuator.activation
                held = ((a >= high) & (u > a)) | ((a <= low) & (u < a))
                slopes[..., i] = np.where(held, 0.0, -1.0 / actuator.time_constant)
        return slopes

    def step(self, step: float) -> Array:
        """∂a'/∂a (..., n) of a step."""
        return Following(self.mech, step).once(self.commands, self.activations)

    def added(self, A: Array, B: Array, by: Array, lasts: Array) -> dict[str, Array]:
        """A and B of (q, v, a), from those of (q, v), those by a, and ∂a'/∂a or ∂ȧ/∂a."""
        lead = np.broadcast_shapes(A.shape[:-2], by.shape[:-2], lasts.shape[:-1])
        m, n = by.shape[-2:]
        full = np.zeros((*lead, m + n, m + n)), np.zeros((*lead, m + n, B.shape[-1]))
        full[0][..., :m, :m], full[0][..., :m, m:], full[1][..., :m, :] = A, by, B
        full[0][..., range(m, m + n), range(m, m + n)] = lasts
        return {"A": full[0], "B": full[1]}


def activated(mech: Any, controls: NamedCommands | None, activations: NamedCommands) -> Activated:
    """Commands and activations, checked."""
    if controls is None:
        raise ModelError("activations were given without controls, without which none act.")
    acting = np.array(instant_commands(mech, controls, activations))
    commands = np.broadcast_to(actuator_commands(mech, controls), acting.shape)
    for i in lasting(mech):
        acting[..., i] = np.clip(acting[..., i], *mech.actuators[i].activation)
    return Activated(mech, commands, acting)
