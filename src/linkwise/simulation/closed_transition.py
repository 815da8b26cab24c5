"""The derivative of one explicit step that ends with a projection, in array code.

The step (`transition.py`) leaves the loops by a little, to q' and v'. What `loop_keeper.settled`
does then moves as little as possible, measured by kinetic energy, q = q' ⊕ d and v = v' + w:

    𝓜 d − J_c* μ = 0,   e(q) = 0            𝓜 w − J_c* λ = 0,   J_c v = 0

so that, with T the motion of q that δq' is while d is held,

    𝓜 δd − J_c* δμ = −∂(𝓜 d − J_c* μ) δq',    J_c (T δq' + δd) = 0           δq = T δq' + δd
    𝓜 δw − J_c* δλ = −∂(𝓜 w − J_c* λ) δq',    J_c (δv' + δw) = −∂(J_c v) δq  δv = δv' + δw

Numbers p that are given change 𝓜, which adds −∂(𝓜 d)/∂p δp and −∂(𝓜 w)/∂p δp to the right sides:
forces of each projection, to which the answers are columns behind those of δτ.

𝓜 and J_c are taken at q. That leaves out products of d with itself and with w, which is h d: d is
about h² in a step by "euler", and h⁵ in one by "rk4".
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algebra import lam, mass, v as speed, vdot
from linkwise.algebra.differential import differentiate
from linkwise.codegen.formula import Formula
from linkwise.dynamics.closed_derivatives import Held
from linkwise.dynamics.closure import closure_nodes, setting_of
from linkwise.dynamics.configuration import places
from linkwise.dynamics.path_dependent import path_dependent
from linkwise.model.hinges.jet import Jet
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.given_numbers import of_mass
from linkwise.simulation.rates import is_traceable
from linkwise.simulation.transition import MOST, to_velocities, transition
from linkwise.sweeps.sparse import times

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


def without_derivative(mech: Mechanism, integrator: str) -> str:
    """Why a step that ends with a projection has no derivative here; "" where it has one."""
    if integrator not in MOST:
        return f"{integrator!r} makes no steps of mechanisms with loops or couplings"
    if mech.nv > MOST[integrator] or mech.flexible or not is_traceable(mech):
        return f"its step by {integrator!r} is too long for one kernel, or has no formula"
    if path_dependent(mech):
        return "velocities of a rolling hinge do not span what a projection changes"
    return ""


@cache
def closed_transition(
    integrator: str, acts: bool, rank: int | None, given: tuple[str, ...] = ()
) -> Formula:
    """A and B of q, v, tau, h, and the state after the step: its q and v side by side.

    With numbers that are given, columns of B are those of forces in each call of the integrator and
    in both projections, and what these forces balance comes with them: q, v and vdot.

    Args:
        integrator: An explicit one.
        acts: Whether passive forces act.
        rank: How many rows of loops and couplings have to be independent.
        given: Numbers of the mechanism that are inputs.
    """
    names = ("A", "B", "q", "v", "vdot") if given else ("A", "B")
    return Formula(_closed_transition, (integrator, acts, rank, given), names=names)


def _closed_transition(
    at: Writing, integrator: str, acts: bool, rank: int | None, given: tuple[str, ...]
) -> Any:
    mech, nv, calls = at.mech, at.mech.nv, list[Any]()
    made = calls if given else None
    q, v, both = transition(at, integrator, acts, True, rank, given, made)
    after = at.read("after", mech.nq + nv)
    after_q, after_v = after[: mech.nq], after[mech.nq :]
    settled, moved = _settled(at, q, v, after_q, after_v, given)
    both = times(settled[:, : 2 * nv], both)
    if not given:
        return both[:, : 2 * nv], both[:, 2 * nv :]
    B = np.concatenate([both[:, 2 * nv :], settled[:, 2 * nv :]], axis=1)
    calls += [(after_q, np.zeros(nv), moved[:, i]) for i in range(2)]
    return both[:, : 2 * nv], B, *(np.stack(x) for x in zip(*calls, strict=True))


def _beginning(at: Writing) -> Any:
    """S: the derivative of the projection of a state in which loops are closed already."""
    return _settled(at, at.q, at.v, at.q, at.v)[0]


BEGINNING = Formula(_beginning)


def _settled(
    at: Writing, q_before: Any, v_before: Any, q: Any, v: Any, given: tuple[str, ...] = ()
) -> tuple[Any, Any]:
    """∂(q, v)/∂(q', v') (2 nv, 2 nv), and d and w side by side.

    With numbers that are given there are columns for forces that act on d and on w, too.
    """
    mech, nodes, nv = at.mech, closure_nodes(at.mech), at.mech.nv
    J, numbers = setting_of(mech).jacobian, of_mass(given)
    M, J_c = at.value(mass, J, nodes=nodes, parameters=numbers, q=q)
    held = Held.of(at, M, J_c)
    d = to_velocities(mech, q, (q - q_before)[:, None])
    moved = np.concatenate([d, (v - v_before)[:, None]], axis=1)
    _, pull, _ = held.solved(np.zeros((nv, 2)), J_c @ moved)
    load = differentiate(mass @ vdot - J.T @ lam, "q")
    some: dict[str, Any] = {"nodes": nodes, "q": q}
    some["parameters"] = at.parameters_of(load, among=numbers, nodes=nodes)
    by_d, by_w = (at.value(load, **some, vdot=moved[:, i], lam=pull[:, i]) for i in range(2))
    turn = _turned(at, q_before, q, d[:, 0])
    out = np.full((2 * nv, (4 if given else 2) * nv), 0.0, dtype=object)
    before, after = slice(0, nv), slice(nv, 2 * nv)
    change, _, _ = held.solved(-by_d, -(J_c @ turn))
    out[before, before] = turn + change
    rows = at.value(differentiate(J @ speed, "q"), nodes=nodes, q=q, v=v)
    right = np.concatenate([-by_w, np.zeros((nv, nv))], axis=1)
    blocked = np.concatenate([-(rows @ out[before, before]), -J_c], axis=1)
    change, _, _ = held.solved(right, blocked)
    out[after, : 2 * nv] = change
    out[after, after] = out[after, after] + np.eye(nv)
    if given:
        answer, _, _ = held.solved(np.eye(nv), np.zeros_like(J_c))
        out[before, 2 * nv : 3 * nv] = out[after, 3 * nv :] = answer
        out[after, 2 * nv : 3 * nv], _, _ = held.solved(np.zeros((nv, nv)), -(rows @ answer))
    return out, moved


def _turned(at: Writing, before: Any, after: Any, d: Any) -> Any:
    """T (nv, nv): velocities at q = q' + N(q') d for those at q', with d held."""
    mech, ((where, of), others) = at.mech, places(at.mech)
    rates = np.full((mech.nq, mech.nv), 0.0, dtype=object)
    rates[where, of] = 1.0
    for hinge, i, j in others:
        for column, e in zip(range(j.start, j.stop), np.eye(hinge.nv), strict=True):
            rate = hinge.qdot(before[None, i], e[None])
            farther = Jet.slope(hinge.qdot, (before[None, i], rate), (d[None, j], None))
            rates[i, column] = rate[0] + farther[0]
    return to_velocities(mech, after, rates)
