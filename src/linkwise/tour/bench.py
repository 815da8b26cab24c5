"""Times of the everyday functions on one robot, beside other libraries where they are installed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise import dynamics
from linkwise.dynamics.kernels import kernel
from linkwise.dynamics.loops import tree_of
from linkwise.errors import LinkwiseError, ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.tour import peer
from linkwise.tour.posture import hand
from linkwise.tour.timing import best, first, told

FUNCTIONS = (
    *("forward_dynamics", "inverse_dynamics", "mass_matrix", "mass_matrix_inverse"),
    *("bias_force", "gravity_force", "jacobian", "operational_inertia"),
    *("kinetic_energy", "potential_energy"),
)
LIBRARIES = {"Pinocchio": ("pinocchio", peer.pinocchio), "MuJoCo": ("mujoco", peer.mujoco)}


@dataclass(frozen=True, slots=True)
class Line:
    """The figures of one function.

    Attributes:
        name: Of the function.
        operations: Of its machine code.
        first: Of the first call, which derives and compiles, or reads a kept kernel [s].
        one: Of a later call with one state, from Python [s].
        many: Of one state in a batch [s].
        peers: Function and time [s] of other libraries, by the library.
    """

    name: str
    operations: int
    first: float
    one: float
    many: float
    peers: dict[str, tuple[str, float]]

    def cells(self, libraries: list[str]) -> list[str]:
        """As a row of a table."""
        row = [f"lw.{self.name}", str(self.operations), told(self.first), told(self.one)]
        row.append(told(self.many))
        for library in libraries:
            function, seconds = self.peers.get(library, ("", 0.0))
            row += [told(seconds), f"{seconds / self.one:.1f}"] if function else ["", ""]
        return row


@dataclass(frozen=True, slots=True)
class Bench:
    """All figures, and why others are missing."""

    lines: list[Line]
    libraries: list[str]
    notes: list[str]

    @property
    def head(self) -> list[str]:
        """Of the table."""
        names = [x for library in self.libraries for x in (library, "ratio")]
        return ["function", "operations", "first call", "one call", "in a batch", *names]


def bench(mech: Mechanism, *, quick: bool = False, batch: int = 1024) -> Bench:
    """Measure the everyday functions of a robot.

    Args:
        mech: The robot.
        quick: Whether to be content with rough figures.
        batch: States of a batch.

    Raises:
        ModelError: A robot that does not move.
    """
    if not mech.nv:
        raise ModelError(f"{mech.name!r} has no degree of freedom: there is nothing to measure.")
    rng, seconds = np.random.default_rng(0), 0.02 if quick else 0.2
    state = peer.State.random(mech)
    many = peer.State(
        np.stack([mech.random(rng) for _ in range(batch)]),
        *rng.standard_normal((3, batch, mech.nv)),
    )
    routes, notes = _peers(mech)
    node, lines = hand(mech), list[Line]()
    for name in FUNCTIONS:
        try:
            lines.append(_line(mech, name, node, state, many, routes, seconds, notes))
        except LinkwiseError as error:
            notes.append(f"lw.{name}: {error}")
    return Bench(lines, [library for library in LIBRARIES if library in routes], notes)


def _line(
    mech: Mechanism,
    name: str,
    node: str | None,
    state: peer.State,
    many: peer.State,
    routes: dict[str, dict[str, peer.Route]],
    seconds: float,
    notes: list[str],
) -> Line:
    call, batch = calls(mech, node, state)[name], calls(mech, node, many)[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of states that have no answer, or not in all directions
        begin = first(call)
        one = best(call, seconds=seconds)
        each = best(batch, seconds=seconds) / len(many.q)
    found = dict[str, tuple[str, float]]()
    for library, known in routes.items():
        route = known.get(name)
        if route is None:
            continue
        if route.agrees:
            found[library] = (route.name, best(route.call, seconds=seconds))
        else:
            notes.append(f"{library} finds another {name}: not compared.")
    if name == "operational_inertia":
        notes += _lost(mech, node, state)
    nodes = (node,) if name in ("jacobian", "operational_inertia") and node is not None else ()
    return Line(name, kernel(tree_of(mech), name, nodes).ops.total(), begin, one, each, found)


def _lost(mech: Mechanism, node: str | None, state: peer.State) -> list[str]:
    """Why the inertia of a hand that cannot move in all directions takes so much longer."""
    tip = mech.bodies[-1].name if node is None else node
    rank = int(np.asarray(dynamics.operational_space(mech, state.q, tip, loops="open").rank))
    if rank == 6:
        return []
    return [
        f"lw.operational_inertia: {tip!r} moves in {rank} of 6 directions here, and an inverse in "
        "these alone is found by singular values in NumPy: this is most of the time, and not among "
        "the operations."
    ]


def calls(mech: Mechanism, node: str | None, at: peer.State) -> dict[str, Callable[[], Any]]:
    """The everyday functions at a state, or a batch of them."""
    q, v, tau, vdot = at.q, at.v, at.tau, at.vdot
    tip = mech.bodies[-1].name if node is None else node
    return {
        "forward_dynamics": lambda: dynamics.forward_dynamics(mech, q, v, tau, loops="open"),
        "inverse_dynamics": lambda: dynamics.inverse_dynamics(mech, q, v, vdot, loops="open"),
        "mass_matrix": lambda: dynamics.mass_matrix(mech, q),
        "mass_matrix_inverse": lambda: dynamics.mass_matrix_inverse(mech, q),
        "bias_force": lambda: dynamics.bias_force(mech, q, v),
        "gravity_force": lambda: dynamics.gravity_force(mech, q),
        "jacobian": lambda: dynamics.jacobian(mech, q, tip),
        "operational_inertia": lambda: dynamics.operational_inertia(mech, q, tip, loops="open"),
        "kinetic_energy": lambda: dynamics.kinetic_energy(mech, q, v),
        "potential_energy": lambda: dynamics.potential_energy(mech, q),
    }


def _peers(mech: Mechanism) -> tuple[Any, list[str]]:
    """Functions of the libraries that are installed, by library; and why others are not there."""
    routes, notes = dict[str, dict[str, peer.Route]](), list[str]()
    for library, (package, ask) in LIBRARIES.items():
        if not peer.installed(package):
            notes.append(f"{library} is not installed: it is not compared.")
            continue
        try:
            routes[library] = ask(mech)
        except LinkwiseError as error:
            notes.append(f"{library} is not compared: {error}")
    return routes, notes
