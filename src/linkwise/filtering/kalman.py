"""How a Kalman filter of a mechanism is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from linkwise.arguments import flag, names, number, option
from linkwise.dynamics.kernels import Loops, is_closed, tree_of
from linkwise.errors import ModelError
from linkwise.filtering.allowed import whole_mechanism
from linkwise.filtering.consistency import quantile
from linkwise.filtering.filter import Filter, deviations
from linkwise.filtering.hinge_rule import check_hinges
from linkwise.filtering.motion import Dynamics
from linkwise.filtering.sensor import Sensor
from linkwise.filtering.tangent import error_size
from linkwise.filtering.tick import MOST_STATES, Structure
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.implicit.equality import without_formula
from linkwise.spatial.array import ArrayLike, floats

METHODS = ("extended", "unscented")


def kalman_filter(
    mech: Mechanism,
    sensors: Sequence[Sensor],
    *,
    step: float,
    method: str = "extended",
    integrator: str = "euler",
    passive: bool = True,
    force: ArrayLike = 0.1,
    position: ArrayLike = 0.0,
    velocity: ArrayLike = 0.0,
    pushed: Sequence[str] = (),
    pushing: ArrayLike = 10.0,
    gate: float | None = None,
    spread: float | None = None,
    loops: Loops = "closed",
) -> Filter:
    """A Kalman filter of the state of a mechanism, on the manifold of its configurations.

    Expression:
        x⁻ = f(x̂),  P⁻ = F P F* + Q,  D = H P⁻ H* + R,  x̂⁺ = x⁻ ⊕ P⁻ H* D⁻¹ ε,
        P⁺ = P⁻ − P⁻ H* D⁻¹ H P⁻
    with the step f of `lw.rollout` and its exact derivative F.

    Args:
        sensors: What is measured: `encoders`, `gyroscope`, `marker` and others of `lw.filtering`,
            or a `Sensor` of your own. They are taken in this order.
        step: Length of a tick [s].
        method: "extended" takes derivatives; "unscented" moves points.
        integrator: "euler" (semi-implicit) or "rk4".
        passive: Whether dampers and springs of drives act.
        force: Noise of the joint forces, a number or (nv,): the standard deviation of their
            impulse after one second [N √s or N m √s].
        position: The same of positions [m/√s or rad/√s], a number or one for each number in
            their error: (nv,), more for rolling balls and soft fingers.
        velocity: The same of velocities.
        pushed: Nodes with unknown forces, six numbers of the state each, in world axes.
        pushing: How far these drift in one second [N m, N], a number or (6,).
        gate: Probability with which a good measurement passes, such as 0.999: the others are
            refused. Default: all are used.
        spread: Distance of the points of "unscented", in standard deviations; at least
            √(n + nv), the default, so that all weights are positive.
        loops: "closed" holds loops and couplings in each step; "open" leaves them open.

    Returns:
        The filter, whose `start`, `tick` and `run` give estimates.

    Raises:
        ModelError: An unknown node, two sensors of one name, a
            hinge of a user whose coordinates do not move by its velocities, or more than 64 bodies.
        MissingExtraError: A gate, and SciPy is not installed (extra `simulate`).
    """
    whole_mechanism(mech, "a filter")
    mech = mech if is_closed(mech, loops) else tree_of(mech)
    unscented = option(method, METHODS, "method") == "unscented"
    integrator, passive = (
        option(integrator, ("euler", "rk4"), "integrator"),
        flag(passive, "passive"),
    )
    nodes = names(pushed, "pushed")
    for node in nodes:
        mech.node(node)
    dynamics = Dynamics(integrator, passive, nodes)
    each = _checked_sensors(mech, sensors)
    if is_closed(mech):
        loop = without_formula(mech)
        if loop is not None:
            raise ModelError(
                f"a filter of {mech.name!r} was requested; loop {loop.name!r} has a hinge of kind "
                f"{loop.hinge.kind}, which has no formula in steps with loops, since its "
                "free directions change with its coordinates. Build that hinge "
                "as a body between the two nodes and close the loop by a weld, or use "
                "loops='open'."
            )
    plain = Structure(dynamics, tuple(x.structure for x in each), unscented, 0.0, False)
    check_hinges(mech)
    n, nv, ways = plain.errors(mech), mech.nv, error_size(mech)
    plain = replace(plain, large=n > MOST_STATES)
    least = float(np.sqrt(n + nv))
    if unscented:
        far = least if spread is None else number(spread, "spread", least=least - 1e-9)
        plain = replace(plain, spread=far)
    elif spread is not None:
        raise ModelError("spread belongs to method='unscented'; leave it out.")
    density = [
        deviations(x, size, w, positive=False)
        for x, size, w in (
            (force, nv, "force"),
            (position, ways, "position"),
            (velocity, nv, "velocity"),
        )
    ]
    density += [deviations(pushing, 6, "pushing", positive=False)] * len(nodes)
    parts, place = dict[str, slice](), 0
    for node in nodes:
        parts[node], place = slice(place, place + 6), place + 6
    for sensor in each:
        if sensor.bias is not None:
            density.append(floats(sensor.bias, "bias"))
            parts[sensor.name], place = slice(place, place + sensor.size), place + sensor.size
    limits = [np.inf if gate is None else quantile(gate, len(b)) for b in plain.blocks]
    variance = np.concatenate([floats(x.noise, "noise") ** 2 for x in each])
    inputs = {
        "density": np.concatenate(density),
        "variance": variance,
        "limit": np.minimum(np.array(limits), 1e300),
    }
    formulas = {x: replace(plain, smoothing=x).formula for x in (False, True)}
    named = {x.name: x for x in each}
    return Filter(mech, named, plain, number(step, "step", above=0.0), inputs, parts, formulas)


def _checked_sensors(mech: Mechanism, sensors: Sequence[Sensor]) -> tuple[Sensor, ...]:
    each = (sensors,) if isinstance(sensors, Sensor) else tuple(sensors)
    for x in each:
        if not isinstance(x, Sensor):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ModelError(f"{x!r} is not a sensor; make one like lw.filtering.encoders(mech).")
    if not each:
        raise ModelError("a filter needs a sensor, and none was given.")
    called = [x.name for x in each]
    for name in called:
        if called.count(name) > 1:
            raise ModelError(f"two sensors are called {name!r}; give each another name.")
    return each
