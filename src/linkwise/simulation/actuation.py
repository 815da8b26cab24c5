"""Forces of actuators in a step of time: one more segment in front of the others.

It adds to the joint forces, which are held over the step, and moves the activations on:

    a' = clip(a + h u)                      integrator
    a' = u + (a − u) exp(−h/T)              filter, exact for a command that is held

For implicit steps it also writes the slopes of the forces, k = −∂τ/∂q and d = −∂τ/∂v, of servos on
one joint, 0 while a bound holds the force.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from linkwise.codegen.request import Request
from linkwise.codegen.stepping.stepping import STEP, Segment, Sketch, Stepping
from linkwise.codegen.writing import Writing
from linkwise.dynamics.actuator_force import (
    PUSHED,
    actuator_forces,
    joint_places,
    with_activation,
    within,
)
from linkwise.dynamics.kinematics import forward_kinematics
from linkwise.model.actuator import Actuator
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.rates import velocities
from linkwise.spatial.array import Array, ArrayLike

SLOPES = ("servo_stiffness", "servo_damping")
"""Registers of k and d (nv,)."""

TERMS, HALVINGS = 12, 4
"""Of the exponential: a series for x/16, squared four times; x up to 16 to the last digit."""


def with_actuators(
    stepping: Stepping, mech: Mechanism, itemsize: int, numbers: Sequence[str] = ()
) -> Stepping:
    """An explicit step with the forces of actuators at its beginning, held over the step."""
    count = len(with_activation(mech))
    s = Sketch("rest")
    s.write("activation", [0.0] * count)
    state = (*stepping.state, *(("activation",) if count else ()))
    return replace(
        stepping,
        held=(*stepping.held, *inputs(mech, numbers)),
        state=state,
        enter=(*stepping.enter, *([s.segment()] if count else [])),
        step=(actuate(mech, itemsize, slopes=False, numbers=numbers), *stepping.step),
    )


def inputs(mech: Mechanism, numbers: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """What actuators take in each step, with lengths: commands, and `numbers` of them."""
    count = len(mech.actuators)
    return ("control", count), *((name, 3 * count) for name in numbers)


def actuate(
    mech: Mechanism, itemsize: int, *, slopes: bool, numbers: Sequence[str] = ()
) -> Segment:
    """The segment: reads q0, u0, control, activation and tau; writes tau and activation.

    Args:
        mech: The mechanism.
        itemsize: Bytes of a number.
        slopes: Whether slopes are needed.
        numbers: Of "gain" and "bias", those that are read as well.
    """
    at = Writing(Request((PUSHED,), mech, (), itemsize=itemsize))
    write_actuation(at, mech, slopes=slopes, numbers=numbers)
    writes = tuple((key, len(values)) for key, values in at.writes.items())
    return Segment("actuate", at.traced(), writes)


def write_actuation(at: Any, mech: Mechanism, *, slopes: bool, numbers: Sequence[str] = ()) -> None:
    """What `actuate` reads and writes, on the nodes of a graph or on numbers."""
    q, u = at.read("q0", mech.nq), at.read("u0", mech.nv)
    v, (h,) = velocities(mech, q, u), at.read(STEP, 1)
    command = at.read("control", len(mech.actuators))
    state = iter(at.read("activation", len(with_activation(mech))))
    activations, after = list[Any](), list[Any]()
    given = {name: at.read(name, 3 * len(mech.actuators)) for name in numbers}
    for actuator, number in zip(mech.actuators, command, strict=True):
        u_now = within(number, actuator.control)
        a = u_now if actuator.dynamics == "none" else next(state)
        if actuator.dynamics != "none":
            after.append(within(_later(actuator, a, u_now, h), actuator.activation))
        activations.append(a)
    total, *each = actuator_forces(at, q, v, activations, slopes=slopes, numbers=given)
    at.write("tau", at.read("tau", mech.nv) + total)
    if after:
        at.write("activation", after)
    if slopes:
        for name, values in zip(SLOPES, each, strict=True):
            at.write(name, values.tolist())


def cable_length(mech: Mechanism, q: Array, actuator: Actuator) -> float:
    """Σ c |p_b − p_a| at a pose [m]."""
    first, last, gears = zip(*actuator.cables, strict=True)
    ends = [forward_kinematics(mech, q, list(names)).p for names in (first, last)]
    return float(np.array(gears) @ np.linalg.norm(ends[1] - ends[0], axis=-1))


def hold_commands(mech: Mechanism, q: ArrayLike | None = None) -> Array:
    """Commands with which the servos of a mechanism pull towards a pose.

    A position servo gets the command at which its force is zero there, within its range. Motors,
    velocity servos and integrators get 0, or what of their range is nearest.

    Args:
        mech: The mechanism.
        q: The pose (nq,) [m or rad]; default: neutral.

    Returns:
        Commands (a,), in the order of the actuators.
    """
    q = mech.check_q(mech.couple(mech.neutral()) if q is None else q)
    commands = np.zeros(len(mech.actuators))
    for i, actuator in enumerate(mech.actuators):
        g, b = actuator.gain, actuator.bias
        length = sum(c * float(q[j]) for j, _, c in joint_places(mech, actuator))
        length = cable_length(mech, q, actuator) if actuator.cables else length
        gain = g[0] + g[1] * length
        if b[1] and gain and actuator.dynamics != "integrator":
            commands[i] = -(b[0] + b[1] * length) / gain
        commands[i] = np.clip(commands[i], *actuator.control)
    return commands


def _later(actuator: Actuator, a: Any, u: Any, h: Any) -> Any:
    """a' after a step."""
    if actuator.dynamics == "integrator":
        return a + h * u
    return u + (a - u) * _decay(h * (1.0 / actuator.time_constant))


def _decay(x: Any) -> Any:
    """exp(−x)."""
    y = x * (-(0.5**HALVINGS))
    total: Any = 1.0
    for n in range(TERMS, 0, -1):
        total = 1.0 + total * y * (1.0 / n)
    for _ in range(HALVINGS):
        total = total * total
    return total
