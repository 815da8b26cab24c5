"""The same, compiled: the functions of every day, checked and timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from linkwise import dynamics
from linkwise.algebra.dense import Dense
from linkwise.dynamics.loops import tree_of
from linkwise.errors import LinkwiseError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.tour import peer
from linkwise.tour.block import Cell, Math
from linkwise.tour.machine import versions
from linkwise.tour.stations.algebra import FORWARD, shown
from linkwise.tour.timing import best, first, told
from linkwise.tour.visit import Visit

FUNCTIONS = (
    *("forward_dynamics", "inverse_dynamics", "mass_matrix", "mass_matrix_inverse"),
    *("gravity_force", "jacobian", "potential_energy"),
)


def compiled(visit: Visit) -> None:
    """The same, compiled: every function of every day is such a line, made into machine code."""
    mech = shown(visit)
    state = peer.State.random(mech, 4)
    calls = everyday(mech, state)
    rows, page, found = list[list[str]](), list[list[Cell]](), dict[str, float]()
    for name, call in calls.items():
        expr = dynamics.expression(name)
        begin = first(call)
        found[name] = best(call, seconds=0.02 if visit.quick else 0.1)
        ops = _operations(mech, name)
        row = [f"lw.{name}", str(expr), told(begin), told(found[name]), ops]
        rows.append(row)
        page.append([f"`lw.{name}`", Math(expr.latex()), *row[2:]])
    visit.table(
        ["function", "is", "first call", "later", "operations"],
        rows,
        f"{mech.name}, one state, called from Python on one core. The first call derives, plans "
        "and compiles, or reads machine code that an earlier one kept on disk. Operations are "
        "those of the machine code, after constants were folded.",
        page,
    )
    _checked(visit, mech, state)
    _beside(visit, mech, state, found)


def everyday(mech: Mechanism, state: peer.State) -> dict[str, Callable[[], Any]]:
    """The functions of every day at a state."""
    q, v, tau, vdot = state.q, state.v, state.tau, state.vdot
    tip = mech.bodies[-1].name
    return {
        "forward_dynamics": lambda: dynamics.forward_dynamics(mech, q, v, tau, loops="open"),
        "inverse_dynamics": lambda: dynamics.inverse_dynamics(mech, q, v, vdot, loops="open"),
        "mass_matrix": lambda: dynamics.mass_matrix(mech, q),
        "mass_matrix_inverse": lambda: dynamics.mass_matrix_inverse(mech, q),
        "gravity_force": lambda: dynamics.gravity_force(mech, q),
        "jacobian": lambda: dynamics.jacobian(mech, q, tip),
        "potential_energy": lambda: dynamics.potential_energy(mech, q),
    }


def _operations(mech: Mechanism, name: str) -> str:
    from linkwise.dynamics.kernels import kernel

    nodes = (mech.bodies[-1].name,) if name == "jacobian" else ()
    try:
        return str(kernel(tree_of(mech), name, nodes).ops.total())
    except LinkwiseError:
        return ""


def _checked(visit: Visit, mech: Mechanism, state: peer.State) -> None:
    """Against explicit matrices, and against each other."""
    q, v, tau = state.q, state.v, state.tau
    vdot = dynamics.forward_dynamics(mech, q, v, tau, loops="open")
    dense = np.asarray(Dense(mech, q, v, values={"tau": tau})(FORWARD))
    scale = float(np.abs(dense).max(initial=0.0)) or 1.0
    gap = float(np.abs(vdot - dense).max(initial=0.0)) / scale
    visit.check(f"{mech.name}: machine code against explicit matrices, relative", gap, 1e-9)
    back = dynamics.inverse_dynamics(mech, q, v, vdot, loops="open")
    size = float((np.abs(dynamics.mass_matrix(mech, q)) @ np.abs(vdot)).max(initial=1.0))
    gap = float(np.abs(back - tau).max(initial=0.0)) / size
    visit.check("inverse dynamics undoes forward dynamics, relative", gap, 1e-12)
    power = float(v @ tau)
    rates = np.concatenate([np.abs(v), np.sqrt(np.abs(vdot))])
    fastest = float(rates.max(initial=1.0))  # [1/s]
    coarse, fine = (_gain(mech, q, v, vdot, h / fastest) for h in (1e-3, 5e-4))
    gained = (4.0 * fine - coarse) / 3.0  # Richardson's
    scale = float(np.abs(v) @ (np.abs(tau) + np.abs(dynamics.bias_force(mech, q, v)))) or 1.0
    visit.check(
        "energy changes by the power of the joints, relative", abs(gained - power) / scale, 1e-5
    )


def _gain(mech: Mechanism, q: Array, v: Array, vdot: Array, h: float) -> float:
    """The rate of the energy [W], by differences of two states h [s] ahead and behind."""
    ahead, behind = (
        float(dynamics.energy(mech, mech.integrate(q, v + 0.5 * s * vdot, s), v + s * vdot).total)
        for s in (h, -h)
    )
    return (ahead - behind) / (2.0 * h)


def _beside(visit: Visit, mech: Mechanism, state: peer.State, here: dict[str, float]) -> None:
    """Times of Pinocchio, in the same run."""
    if not peer.installed("pinocchio"):
        visit.note("Pinocchio is not installed here; where it is, its times stand here too.")
        return
    try:
        routes, where = _asked(mech, state)
    except LinkwiseError as error:
        visit.say(f"Pinocchio is not compared: {error}")
        return
    rows, calls = list[list[str]](), everyday(mech, state)
    for name, route in routes.items():
        if name not in calls or not route.agrees:
            continue
        there = best(route.call, seconds=0.02 if visit.quick else 0.1)
        ours = min(here[name], best(calls[name], seconds=0.02))
        rows.append([f"lw.{name}", route.name, told(ours), told(there), f"{there / ours:.1f}"])
    if rows:
        visit.table(
            ["function", "Pinocchio's", "Linkwise", "Pinocchio", "ratio"],
            rows,
            f"Beside Pinocchio {versions().get('pin', '')}, called from Python in this run, "
            f"{where}, with the same results; the ratio is its time over ours.",
            [[f"`{row[0]}`", f"`{row[1]}`", *row[2:]] for row in rows],
        )
    left = sorted(name for name, route in routes.items() if not route.agrees)
    if left:
        visit.say(f"Pinocchio finds something else for {', '.join(left)}: not compared.")


def _asked(mech: Mechanism, state: peer.State) -> tuple[dict[str, peer.Route], str]:
    """Pinocchio at the state, or, where a file has the robot with other hinges, at a random one."""
    try:
        return peer.pinocchio(mech, state), "at the same state"
    except LinkwiseError:
        return peer.pinocchio(mech), "at another state, for its file has other hinges"
