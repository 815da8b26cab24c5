"""Phases of a motion: which contacts hold, and for how long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwise.arguments import all_are, constant, count, is_a, name, number
from linkwise.control.cost import Bound
from linkwise.dynamics.kinematics import forward_kinematics
from linkwise.errors import ModelError
from linkwise.model.body import WORLD, Loop
from linkwise.model.derived import replaced
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.holding import CONTACT
from linkwise.spatial.array import Array, ArrayLike
from linkwise.tasks.task import Task


@dataclass(frozen=True, slots=True, eq=False)
class Foothold:
    """A point that the ground holds while it presses on it.

    The ground pushes and does not pull, and its force stays in the cone of friction. A flat foot is
    held by points at its corners.

    Attributes:
        node: Name of the node at the point.
        friction: μ, the largest ratio of the forces along the ground and across it.
        place: Where the point is held (3,) [m]; default: where it is at the start, or where it
            lands on the ground.
        height: Of the ground, which is level [m].
    """

    node: str
    friction: float = 0.7
    place: ArrayLike | None = None
    height: float = 0.0

    def __post_init__(self) -> None:
        """Check it."""
        name(self.node, "node")
        number(self.friction, "friction", above=0.0)
        number(self.height, "height")
        if self.place is not None:
            constant(self.place, (3,), "place")


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """Some steps of a motion in which the same contacts hold.

    A contact that the phase before did not have begins with an impact without rebound.

    Attributes:
        steps: How many steps it lasts.
        contacts: What holds, each a `Foothold` or the name of a node; nothing in flight.
    """

    steps: int
    contacts: Sequence[Foothold | str] = field(default=())

    def __post_init__(self) -> None:
        """Check it."""
        count(self.steps, "steps", least=1)
        self.each()

    def each(self) -> tuple[Foothold, ...]:
        """Its contacts."""
        given: Any = self.contacts
        one = isinstance(given, Foothold | str)
        every = all_are((Foothold, str), (given,) if one else given, "contacts")
        return tuple(
            Foothold(x) if isinstance(x, str) else is_a(Foothold, x, "a contact") for x in every
        )


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Phases as numbers.

    Attributes:
        mech: The mechanism with a loop for each contact.
        nodes: Nodes of all contacts.
        held: Inputs of the kernels, each (1 or batch, N + 1, 3 contacts).
        bounds: What contacts require.
    """

    mech: Mechanism
    nodes: tuple[str, ...]
    held: dict[str, Array]
    bounds: tuple[Bound, ...]


def steps_of(phases: tuple[Phase, ...]) -> int:
    """Steps of all phases."""
    return sum(phase.steps for phase in phases)


def schedule(mech: Mechanism, phases: tuple[Phase, ...], q: Array, single: bool) -> Schedule:
    """What holds at each knot.

    Args:
        mech: The mechanism.
        phases: The phases.
        q: Positions at the start (batch, nq).
        single: Whether it is a problem alone, without an axis for a batch.
    """
    every = dict[str, Foothold]()
    for phase in phases:
        for x in phase.each():
            known = every.setdefault(x.node, x)
            if (known.friction, known.height) != (x.friction, x.height):
                raise ModelError(
                    f"contacts at {x.node!r} differ in friction or height between phases; they may "
                    "differ only in their place."
                )
    nodes = tuple(every)
    for node in nodes:
        mech.node(node)  # raises for an unknown name
    knots, n = steps_of(phases) + 1, len(nodes)
    on, given = np.zeros((knots, n), dtype=bool), np.full((knots, n, 3), np.nan)
    begin = 0
    for phase in phases:
        rows = slice(begin, knots if phase is phases[-1] else begin + phase.steps)
        for x in phase.each():
            on[rows, nodes.index(x.node)] = True
            if x.place is not None:
                given[rows, nodes.index(x.node)] = constant(x.place, (3,), "place")
        begin += phase.steps
    first = np.stack([forward_kinematics(mech, q, x).p for x in nodes], axis=1) if n else None
    landing = on & ~np.concatenate([on[:1], on[:-1]])
    place = np.zeros((len(q), knots, n, 3))
    pull = np.zeros((knots, n, 3))
    bounds = list[Bound]()
    for i, contact in enumerate(every.values()):
        height, free = contact.height, np.full((knots, 3), np.inf)
        low, high = -free, free.copy()
        low_f, high_f = np.zeros((knots, 2)), np.full((knots, 2), np.inf)
        low_f[~on[:, i]], low_f[-1] = -np.inf, -np.inf
        since = bool(on[0, i])  # held from the start on
        for k in range(knots):
            known = not np.isnan(given[k, i]).any()
            since = since and bool(on[k, i])
            place[:, k, i] = given[k, i] if known else (0.0, 0.0, height)
            if since and not known and first is not None:
                place[:, k, i] = first[:, i]
            pull[k, i] = float(since)  # one that lands stays where it lands
            # the error of a task is goal − position
            if not on[k, i]:
                high[k, 2] = 0.0
            elif landing[k, i]:
                rows = slice(3) if known else slice(2, 3)
                low[k, rows] = high[k, rows] = 0.0
        goals = place[:, :, i].copy()
        goals[:, ~on[:, i]] = (0.0, 0.0, height)
        goal = goals[0] if single else goals
        if not on[:, i].all():
            bounds.append(Bound("task", low, high, goal, Task.position(contact.node)))
        bounds.append(Bound("cone", low_f, high_f, contact=contact))
    loops = [Loop(loop_name(node), WORLD, node, CONTACT) for node in nodes]
    held = {"hold": _each(on), "curve": _each(on & ~landing), "pull": RETURN * pull[None]}
    held = {x: a.reshape(1, knots, 3 * n) for x, a in held.items()}
    held["place"] = place.reshape(len(q), knots, 3 * n)
    variant = replaced(mech, loops=(*mech.loops, *loops)) if loops else mech
    return Schedule(variant, nodes, held if loops else {}, tuple(bounds))


RETURN = 0.5
"""Part of the way back to its place that a contact goes in a step."""


def loop_name(node: str) -> str:
    """Name of the loop of a contact."""
    return f"contact of {node}"


def _each(flags: Any) -> Array:
    """A number for each row of each contact."""
    return np.repeat(flags[None, :, :, None].astype(np.float64), 3, axis=3)
