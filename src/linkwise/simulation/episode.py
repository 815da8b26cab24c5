"""What is random in a rollout, and what ends a motion: more segments in its steps.

Noise adds σ z to the joint forces, with random numbers z from counters (`codegen/stepping/noise`);
a push adds J* f of a random force f at a node. Conditions look at the state after each step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from linkwise.algebra import J, f, rot_W
from linkwise.algebra.expr import Expr
from linkwise.arguments import floats, number, shown
from linkwise.codegen.request import Request
from linkwise.codegen.scalar import status
from linkwise.codegen.stepping.chance import Chance
from linkwise.codegen.stepping.stepping import Segment, Stepping, straight
from linkwise.codegen.writing import Writing
from linkwise.dynamics.quantity import expression
from linkwise.errors import ModelError, ShapeError, unknown_name
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.implicit.ground import ContactPoint
from linkwise.simulation.lasting_state import SHOWN
from linkwise.simulation.observation import Observed, checked_observations, watched
from linkwise.spatial.array import Array

PUSHED = (rot_W @ J).T @ f
"""Joint forces of wrenches at nodes, in world axes."""

PUSH = "push:"


@dataclass(frozen=True, slots=True)
class Stop:
    """A condition: a motion goes on while all numbers of an observation are between bounds."""

    watched: Observed
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Episode:
    """What is random, and what ends a motion."""

    noise: tuple[Chance, ...] = ()
    stop: tuple[Stop, ...] = ()


NOTHING = Episode()


def checked_noise(
    mech: Mechanism, given: Mapping[str, Any] | None, step: float
) -> tuple[tuple[Chance, ...], dict[str, Array]]:
    """Channels of random numbers, and their deviations by the names of held inputs.

    Raises:
        UnknownNameError: A channel that is neither "tau" nor a push at a node.
        ModelError: Deviations or times that are not allowed.
    """
    chances, held = list[Chance](), dict[str, Array]()
    for name, value in _named(given, "noise").items():
        node = name.removeprefix(PUSH)
        if name != "tau" and (not name.startswith(PUSH) or node not in _places(mech)):
            known = ["tau", *(f"{PUSH}{x}" for x in _places(mech))]
            raise unknown_name("noise", name, known, owner=f"a rollout of {mech.name!r}")
        sigma, *times = cast("Any", value) if isinstance(value, tuple) else (value,)
        if len(times) > 2:
            raise ModelError(
                f"noise[{name!r}] has {1 + len(times)} parts; it is a deviation, (deviation, "
                "period) or (deviation, period, duration)."
            )
        counts = [_count(x, f"noise[{name!r}]", step) for x in times]
        period = counts[0] if counts else 1
        active = counts[1] if len(counts) > 1 else period
        if active > period:
            raise ModelError(
                f"noise[{name!r}] acts for {active} steps of a period of {period}: shorten it."
            )
        size = mech.nv if name == "tau" else 3
        array = floats(sigma, f"noise[{name!r}]")
        if array.ndim == 0 or array.shape[-1] == 1:
            array = np.broadcast_to(array, (*array.shape[:-1], size))
        if array.shape[-1] != size:
            raise ShapeError(f"noise[{name!r}] has shape {array.shape}; rows have {size} numbers.")
        if not np.isfinite(array).all() or (array < 0.0).any():
            raise ModelError(f"noise[{name!r}] must be finite and not negative: deviations.")
        chances.append(Chance(name, size, period, active))
        held[f"noise:{name}"] = array
    return tuple(chances), held


def checked_stop(
    mech: Mechanism, given: Mapping[str, Any] | None, itemsize: int
) -> tuple[Stop, ...]:
    """Conditions by name: (low, high) of an observation, or (expression, low, high).

    Raises:
        ModelError: Something else, or bounds that no number is between.
    """
    stops = list[Stop]()
    for name, value in _named(given, "stop").items():
        parts = cast("Any", value) if isinstance(value, tuple | list) else (value,)
        what: Any = name
        if len(parts) == 3 and isinstance(parts[0], Expr):
            what, *parts = parts
        if len(parts) != 2:
            raise ModelError(
                f"stop[{name!r}] is {value!r}; it is (low, high), between which the observation of "
                "that name has to stay, or (expression, low, high)."
            )
        low, high = (number(x, f"stop[{name!r}]", finite=False) for x in parts)
        if not low < high:
            raise ModelError(f"stop[{name!r}] is from {low:g} to {high:g}: nothing is between.")
        (one,) = checked_observations(mech, {name: what}, itemsize=itemsize)
        stops.append(Stop(one, low, high))
    return tuple(stops)


def with_noise(
    stepping: Stepping, mech: Mechanism, chances: Sequence[Chance], itemsize: int
) -> Stepping:
    """Steps whose joint forces are disturbed first."""
    if not chances:
        return stepping
    at = Writing(Request((PUSHED,), mech, (), itemsize=itemsize))
    tau = at.read("tau", mech.nv)
    for chance in chances:
        names = chance.register, f"noise:{chance.name}"
        z, sigma = (at.read(name, chance.size) for name in names)
        if chance.name == "tau":
            tau = tau + sigma * z
            continue
        wrench = np.concatenate([np.zeros(3, dtype=object), sigma * z])
        node = chance.name.removeprefix(PUSH)
        tau = tau + at.value(PUSHED, nodes=(node,), q=at.read("q0", mech.nq), f=wrench)
    at.write("tau", tau)
    first = Segment("disturb", at.traced(), (("tau", mech.nv),))
    held = (*stepping.held, *((f"noise:{x.name}", x.size) for x in chances))
    return replace(stepping, held=held, step=(first, *stepping.step), noise=tuple(chances))


def with_stop(
    stepping: Stepping,
    mech: Mechanism,
    stops: Sequence[Stop],
    points: tuple[ContactPoint, ...],
    itemsize: int,
) -> Stepping:
    """Steps after which conditions are looked at."""
    if not stops:
        return stepping
    at = Writing(Request((expression("body_poses"),), mech, itemsize=itemsize))
    values = watched(mech, stepping, [x.watched for x in stops], points, at)
    for k, (stop, value) in enumerate(zip(stops, values, strict=True)):
        for x in np.ravel(value):
            at.check(status.RESULT, x, -math.inf, math.inf)
            at.check(status.stopped(mech, k), x, stop.low, stop.high)
    at.write("watched", [1.0])
    last = Segment("watch", at.traced(), (("watched", 1),))
    looked = (*(x.renamed(SHOWN) for x in straight(stepping.leave)), last)
    return replace(stepping, step=(*stepping.step, *looked), stops=status.stopped(mech, 0))


def _named(given: Any, what: str) -> dict[str, Any]:
    """Values by name; raises for anything else."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(x, str) for x in cast("Any", given)):
        raise ModelError(f"{what} is {shown(cast(object, given))}; it must be a dictionary.")
    return dict(cast("Any", given))


def _places(mech: Mechanism) -> list[str]:
    return [*mech.node_index, *(body.name for body in mech.bodies)]


def _count(time: Any, what: str, step: float) -> int:
    """A time as a number of steps."""
    steps = number(time, f"time of {what}", above=0.0) / step
    if abs(steps - round(steps)) > 1e-6 * max(steps, 1.0) or round(steps) < 1:
        raise ModelError(f"{what} has a time of {time!r} s: it must be a multiple of {step:g} s.")
    return round(steps)
