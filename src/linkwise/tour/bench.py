"""Times of the everyday functions on one robot, beside other libraries where they are installed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise import dynamics
from linkwise.algebra.dense import Dense
from linkwise.dynamics.kernels import kernel, tree_of
from linkwise.errors import LinkwiseError, ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.tour import peer
from linkwise.tour.algebra import FORWARD, relative
from linkwise.tour.measure import as_time, best, first
from linkwise.tour.posture import hand
from linkwise.tour.robot import small
from linkwise.tour.visit import Visit

FUNCTIONS = (
    *("forward_dynamics", "inverse_dynamics", "mass_matrix", "mass_matrix_inverse"),
    *("bias_force", "gravity_force", "jacobian", "operational_inertia"),
)
LIBRARIES = {"Pinocchio": ("pinocchio", peer.pinocchio), "MuJoCo": ("mujoco", peer.mujoco)}


@dataclass(frozen=True, slots=True)
class Line:
    """The figures of one function.

    Attributes:
        name: The function.
        operations: Operations of its machine code.
        first: Time of the first call, which derives and compiles, or loads a kernel [s].
        one: Time of a later call with one state, from Python [s].
        many: Time of one state in a batch [s].
        peers: Function and time [s] of other libraries, by library.
    """

    name: str
    operations: int
    first: float
    one: float
    many: float
    peers: dict[str, tuple[str, float]]

    def cells(self, libraries: list[str]) -> list[str]:
        """A row of the table."""
        row = [f"lw.{self.name}", str(self.operations), as_time(self.first), as_time(self.one)]
        row.append(as_time(self.many))
        for library in libraries:
            function, seconds = self.peers.get(library, ("", 0.0))
            row += [as_time(seconds), f"{seconds / self.one:.1f}"] if function else ["", ""]
        return row


@dataclass(frozen=True, slots=True)
class Bench:
    """All figures, and why others are missing."""

    lines: list[Line]
    libraries: list[str]
    notes: list[str]

    @property
    def head(self) -> list[str]:
        """The head of the table."""
        names = [x for library in self.libraries for x in (library, "ratio")]
        return ["function", "operations", "first call", "one call", "in a batch", *names]


def speed(visit: Visit) -> None:
    """How fast that is: the everyday functions, compiled, checked and timed."""
    mech = small(visit)
    result = bench(mech, quick=visit.quick, batch=256)
    visit.table(
        result.head,
        [line.cells(result.libraries) for line in result.lines],
        f"{mech.name}: one state called from Python on one core, and one state of a batch of 256. "
        "The first call derives and compiles, or loads machine code from disk. Other libraries "
        "have the same robot and give the same results; the ratio is their time over ours.",
    )
    for note in result.notes:
        visit.say(note)
    _checked(visit, mech, peer.State.random(mech, 4))


def _checked(visit: Visit, mech: Mechanism, state: peer.State) -> None:
    """Compare with explicit matrices, and functions with each other."""
    q, v, tau = state.q, state.v, state.tau
    vdot = dynamics.forward_dynamics(mech, q, v, tau, loops="open")
    dense = np.asarray(Dense(mech, q, v, values={"tau": tau})(FORWARD))
    claim = f"{mech.name}: machine code against explicit matrices, relative"
    mass = dynamics.mass_matrix(mech, q)
    lost = np.finfo(np.float64).eps * float(np.linalg.cond(mass))  # the dense solve loses digits
    visit.check(claim, relative(vdot, dense), max(1e-9, lost))
    back = dynamics.inverse_dynamics(mech, q, v, vdot, loops="open")
    size = float((np.abs(mass) @ np.abs(vdot)).max(initial=1.0))
    gap = float(np.abs(back - tau).max(initial=0.0)) / size
    visit.check("inverse dynamics undoes forward dynamics, relative", gap, 1e-12)
    rates = np.concatenate([np.abs(v), np.sqrt(np.abs(vdot))])
    fastest = float(rates.max(initial=1.0))  # [1/s]
    coarse, fine = (_gain(mech, q, v, vdot, h / fastest) for h in (1e-3, 5e-4))
    gained = (4.0 * fine - coarse) / 3.0  # Richardson's extrapolation
    scale = float(np.abs(v) @ (np.abs(tau) + np.abs(dynamics.bias_force(mech, q, v)))) or 1.0
    gap = abs(gained - float(v @ tau)) / scale
    visit.check("energy changes by the power of the joints, relative", gap, 1e-5)


def _gain(mech: Mechanism, q: Array, v: Array, vdot: Array, h: float) -> float:
    """The rate of the energy [W], by differences of the states h [s] ahead and behind."""
    ahead, behind = (
        float(dynamics.energy(mech, mech.integrate(q, v + 0.5 * s * vdot, s), v + s * vdot).total)
        for s in (h, -h)
    )
    return (ahead - behind) / (2.0 * h)


def bench(mech: Mechanism, *, quick: bool = False, batch: int = 1024) -> Bench:
    """Measure the everyday functions of a robot.

    Raises:
        ModelError: The robot has no degree of freedom.
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
        warnings.simplefilter("ignore")  # about states without a solution
        begin = first(call)
        one = best(call, seconds=seconds)
        each = best(batch, seconds=seconds) / len(many.q)
    peers = dict[str, tuple[str, float]]()
    for library, known in routes.items():
        route = known.get(name)
        if route is not None and route.agrees:
            peers[library] = (route.name, best(route.call, seconds=seconds))
        elif route is not None:
            notes.append(f"{library} computes another {name}: not compared.")
    if name == "operational_inertia":
        notes += _lost(mech, node, state)
    nodes = (node,) if name in ("jacobian", "operational_inertia") and node is not None else ()
    return Line(name, kernel(tree_of(mech), name, nodes).ops.total(), begin, one, each, peers)


def _lost(mech: Mechanism, node: str | None, state: peer.State) -> list[str]:
    """Why the inertia of a hand that cannot move in all directions takes longer."""
    tip = mech.bodies[-1].name if node is None else node
    rank = int(np.asarray(dynamics.operational_space(mech, state.q, tip, loops="open").rank))
    if rank == 6:
        return []
    return [
        f"lw.operational_inertia: {tip!r} moves in {rank} of 6 directions here; NumPy inverts in "
        "these by singular values, which is most of the time and not among the operations."
    ]


def calls(mech: Mechanism, node: str | None, at: peer.State) -> dict[str, Callable[[], Any]]:
    """The everyday functions at a state, or a batch of them."""
    q, tip = at.q, mech.bodies[-1].name if node is None else node
    return peer.everyday(mech, at) | {
        "jacobian": lambda: dynamics.jacobian(mech, q, tip),
        "operational_inertia": lambda: dynamics.operational_inertia(mech, q, tip, loops="open"),
    }


def _peers(mech: Mechanism) -> tuple[dict[str, dict[str, peer.Route]], list[str]]:
    """Functions of the installed libraries, and why others are missing."""
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
