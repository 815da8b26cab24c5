"""Forces of actuators in a step of time: one more segment in front of the others.

It adds to the joint forces, which are held over the step, and moves the activations on:

    a' = clip(a + h u)                      integrator
    a' = u + (a − u) exp(−h/T)              filter, exact for a command that is held

For implicit steps it also writes the slopes of the forces, k = −∂τ/∂q and d = −∂τ/∂v, of servos on
one joint, 0 while a bound holds the force.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from linkwise.algebra import J, f, rot_W
from linkwise.codegen.request import Request
from linkwise.codegen.stepping.stepping import STEP, Segment, Sketch, Stepping
from linkwise.codegen.writing import Writing
from linkwise.dynamics.kinematics import forward_kinematics
from linkwise.dynamics.quantity import expression
from linkwise.model.actuator import ALL, Actuator, Range
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.model.state import split_coordinate
from linkwise.simulation.rates import velocities
from linkwise.spatial.array import Array, ArrayLike
from linkwise.spatial.choice import clip, gate, maximum, norm

SLOPES = ("servo_stiffness", "servo_damping")
"""Registers of k and d (nv,)."""

PUSHED = J.T @ f
"""Joint forces of wrenches at nodes."""

PULLED = (rot_W @ J).T @ f
"""Joint forces of wrenches at nodes, in world axes."""

SHORT = 1e-12
"""A cable shorter than this [m] has no direction, and pulls nothing."""

TERMS, HALVINGS = 12, 4
"""Of the exponential: a series for x/16, squared four times; x up to 16 to the last digit."""


def with_activation(mech: Mechanism) -> list[Actuator]:
    """The actuators whose activation has dynamics, in order."""
    return [a for a in mech.actuators if a.dynamics != "none"]


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
    total, after, arm = np.zeros(mech.nv, dtype=object), list[Any](), 0.0
    stiffness, damping = np.zeros(mech.nv, dtype=object), np.zeros(mech.nv, dtype=object)
    wrenches = dict[str, Any]()
    given_numbers = {name: at.read(name, 3 * len(mech.actuators)) for name in numbers}
    for i, (actuator, given) in enumerate(zip(mech.actuators, command, strict=True)):
        u_now = _within(given, actuator.control)
        a = u_now if actuator.dynamics == "none" else next(state)
        if actuator.dynamics != "none":
            after.append(_within(_later(actuator, a, u_now, h), actuator.activation))
        places = _places(mech, actuator)
        length: Any = sum((c * q[i] for i, _, c in places), 0.0)
        rate: Any = sum((c * v[j] for _, j, c in places), 0.0)
        if actuator.cables:
            arm, length, rate = _cables(at, q, v, actuator)
        g, b = (
            given_numbers[name][3 * i : 3 * i + 3] if name in numbers else getattr(actuator, name)
            for name in ("gain", "bias")
        )
        free = (g[0] + g[1] * length + g[2] * rate) * a + b[0] + b[1] * length + b[2] * rate
        force = _within(free, actuator.force)
        for _, j, c in places:
            total[j] = total[j] + c * force
        if actuator.cables:
            total = total + force * arm
        if actuator.node:
            wrench = force * np.array(actuator.wrench)
            wrenches[actuator.node] = wrenches.get(actuator.node, 0.0) + wrench
        if len(places) == 1 and slopes:
            (_, j, c), acts = places[0], _unbounded(free, actuator.force)
            stiffness[j] = stiffness[j] - acts * c * c * (g[1] * a + b[1])
            damping[j] = damping[j] - acts * c * c * (g[2] * a + b[2])
    largest = efforts(mech)
    for j in sorted({j for x in mech.actuators for _, j, _ in _places(mech, x)}):
        bounds = (-largest[j], largest[j])
        acts = _unbounded(total[j], bounds)
        # slopes that would push away are left to the explicit part
        stiffness[j], damping[j] = (acts * maximum(x[j], 0.0) for x in (stiffness, damping))
        total[j] = _within(total[j], bounds)
    if wrenches:
        given = np.concatenate(list(wrenches.values()))
        total = total + at.value(PUSHED, nodes=tuple(wrenches), q=q, f=given)
    at.write("tau", at.read("tau", mech.nv) + total)
    if after:
        at.write("activation", after)
    if slopes:
        for name, values in zip(SLOPES, (stiffness, damping), strict=True):
            at.write(name, values.tolist())


def _cables(at: Writing, q: Any, v: Any, actuator: Actuator) -> tuple[Any, Any, Any]:
    """∂l/∂q (nv,), the length l and its rate, on graph nodes.

    A unit force along each cable, outwards at both ends, has the joint forces ∂l/∂q.
    """
    names = tuple(dict.fromkeys(x for cable in actuator.cables for x in cable[:2]))
    poses = at.value(expression("node_poses"), nodes=names, q=q).reshape(-1, 3, 4)
    forces, length = np.zeros((len(names), 6), dtype=object), 0.0
    for a, b, gear in actuator.cables:
        i, j = names.index(a), names.index(b)
        between = poses[j, :, 3] - poses[i, :, 3]
        size = norm(between)
        length = length + gear * size
        along = gate(size - SHORT, gear / maximum(size, SHORT)) * between
        forces[j, 3:] = forces[j, 3:] + along
        forces[i, 3:] = forces[i, 3:] - along
    arm = at.value(PULLED, nodes=names, q=q, f=forces.ravel())
    return arm, length, sum(x * y for x, y in zip(arm, v, strict=True))


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
        length = sum(c * float(q[j]) for j, _, c in _places(mech, actuator))
        length = cable_length(mech, q, actuator) if actuator.cables else length
        gain = g[0] + g[1] * length
        if b[1] and gain and actuator.dynamics != "integrator":
            commands[i] = -(b[0] + b[1] * length) / gain
        commands[i] = np.clip(commands[i], *actuator.control)
    return commands


def _places(mech: Mechanism, actuator: Actuator) -> list[tuple[int, int, float]]:
    """Places in q and v, and gears, of the joints that move."""
    places = list[tuple[int, int, float]]()
    for name, gear in actuator.joints:
        hinge, index = split_coordinate(name, mech.hinge_index)
        k = mech.hinge_index[hinge]
        if mech.bodies[k].hinge.nv and gear:
            i = index or 0
            places.append((int(mech.q_start[k]) + i, int(mech.v_start[k]) + i, gear))
    return places


@once_per_mechanism
def efforts(mech: Mechanism) -> list[float]:
    """The largest force of the drive of each velocity (nv,)."""
    each = [body.drive.array("effort", body.hinge) for body in mech.bodies]
    return np.concatenate([np.zeros(0), *each]).tolist()


def _within(x: Any, bounds: Range) -> Any:
    low, high = bounds
    if bounds == ALL:
        return x
    return clip(x, low if np.isfinite(low) else -LARGEST, high if np.isfinite(high) else LARGEST)


def _unbounded(x: Any, bounds: Range) -> Any:
    """1 where a force is within its bounds, else 0."""
    low, high = bounds
    inside: Any = 1.0
    if np.isfinite(high):
        inside = gate(high - x, inside)
    return gate(x - low, inside) if np.isfinite(low) else inside


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


LARGEST = math.sqrt(np.finfo(np.float32).max)
"""The bound where there is none."""
