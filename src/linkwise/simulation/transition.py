"""One explicit step of a tree with its derivative, in array code.

    δx' = A δx + B δτ,   x = (q, v), with δq and δq' along velocities

The integrator's own code runs once on graph nodes; each of its calls of u̇ is an input there. With
the accelerations and their derivatives of the algebra at each call, the chain rule gives the rest.
It comes in factors, δx' = F δx + G W (δx, δτ): W has the derivatives of v̇ at all calls one below
the other, F and G are those of the integrator, sparse where hinges are plain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from linkwise.codegen.formula import Formula
from linkwise.codegen.scalar.trace import Sketch, Traced
from linkwise.codegen.sensitivity import pushed
from linkwise.dynamics.closed_derivatives import closed_moving
from linkwise.dynamics.configuration import places
from linkwise.dynamics.derivative_formula import moving
from linkwise.dynamics.passive import Passive, carried_numbers, passive
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.integrators import INTEGRATORS
from linkwise.simulation.rates import check_turns, rate_acceleration, rates, velocities
from linkwise.sweeps.factored import factored
from linkwise.sweeps.sparse import times

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

MOST = {"euler": 24, "rk4": 10, "rk4_mujoco": 10}
"""Most velocities of a mechanism whose step is one kernel: its code grows with their third power.
Other integrators take the rollout and its gradient."""

Slopes: TypeAlias = "Callable[[Any, Any], tuple[Any, Any, Any, Any]]"
"""v̇ of q and v, with its derivatives by q, v and τ, (nv, nv) each."""


def chained(
    at: Writing, integrator: str, h: Any, accelerated: Slopes, calls: list[Any] | None = None
) -> tuple[Any, Any, Any, Any, Any]:
    """q and v after a step of length h, with F (2 nv, 2 nv), G (2 nv, k) and W (k, 3 nv).

    Columns of W are those of δq, δv and δτ.

    Args:
        calls: Where the q, v and v̇ of each call of the integrator go. Columns of δτ are then apart
            for the joint forces of each call.
    """
    mech, nv = at.mech, at.mech.nv
    if integrator == "euler" and not places(mech)[1]:
        vdot, *by = accelerated(at.q, at.v)
        if calls is not None:
            calls.append((at.q, at.v, vdot))
        v = at.v + h * vdot
        W = np.concatenate([h * by[0], h * by[1] + np.eye(nv), h * by[2]], axis=1)
        F, G = _zeros(2 * nv, 2 * nv), _zeros(2 * nv, nv)
        F[:nv, :nv] = G[nv:] = np.eye(nv)
        G[:nv] = h * np.eye(nv)
        return at.q + h * v, v, F, G, W
    return _through(at, integrator, h, accelerated, calls)


def accelerated_by(
    at: Writing,
    tau: Any,
    forces: Passive | None,
    given: tuple[str, ...] = (),
    closed: bool = False,
    rank: int | None = None,
) -> Slopes:
    """The accelerations of a mechanism with joint forces τ (nv,), dampers and springs.

    Args:
        tau: Joint forces (nv,).
        forces: Dampers and springs, or None.
        given: Numbers of the mechanism that are inputs.
        closed: Whether loops and couplings hold.
        rank: How many of their rows have to be independent; None for any number.
    """

    def accelerated(q: Any, v: Any) -> tuple[Any, Any, Any, Any]:
        force, slopes = tau, None
        if forces is not None:
            nv = at.mech.nv
            force = forces.added(at, tau, q, v, carried_numbers(at, at.mech, given))
            flat = passive_rates(at, q, v, forces, given)
            slopes = flat[:, :nv], flat[:, nv:]
        state = {"q": q, "v": v}
        numbers = tuple(x for x in given if x not in ("damping", "stiffness"))
        if closed:
            return closed_moving(at, force, "", rank, state, slopes, numbers)
        return moving(at, force, "", numbers, state, slopes)

    return accelerated


def acting(mech: Mechanism, acts: bool, given: tuple[str, ...] = ()) -> Passive | None:
    """The dampers and springs of a mechanism if they act and there are any, or None."""
    forces = passive(mech)
    varied = "damping" in given or "stiffness" in given
    return forces if acts and (forces.any or varied) else None


def passive_rates(at: Writing, q: Any, v: Any, forces: Passive, given: tuple[str, ...] = ()) -> Any:
    """How dampers and springs change with q and v (nv, 2 nv)."""
    graph, nv = _passive_slopes(at.mech, forces, given), at.mech.nv
    arrays = {"q": q, "v": v} | carried_numbers(at, at.mech, given)
    return np.array(at.replay(graph, arrays), dtype=object).reshape(nv, 2 * nv)


def _passive_slopes(mech: Mechanism, forces: Passive, given: tuple[str, ...]) -> Traced:
    """How dampers and springs change with q and v (nv, 2 nv), as a graph."""
    s = Sketch()
    q, v = s.read("q", mech.nq), s.read("v", mech.nv)
    numbers = carried_numbers(s, mech, given)
    force = forces.added(s, np.full(mech.nv, 0.0, dtype=object), q, v, numbers)
    nodes, columns = [s.scalar(x).node for x in force], list[Any]()
    for seed in (*_along_q(mech, q), *_along(v)):
        rate = {node: s.scalar(x).node for node, x in seed.items()}
        columns.append(s.scalars(pushed(s.graph, nodes, rate)))
    s.write("slopes", list(np.stack(columns, axis=1).ravel()))
    return s.traced()


def _zeros(*shape: int) -> Any:
    return np.full(shape, 0.0, dtype=object)


def _through(
    at: Writing, integrator: str, h: Any, accelerated: Slopes, made: list[Any] | None
) -> tuple[Any, Any, Any, Any, Any]:
    """The same for any integrator and any hinges."""
    mech, nv, scheme = at.mech, at.mech.nv, INTEGRATORS[integrator]
    s = Sketch()
    q, v, (step,) = s.read("q", mech.nq), s.read("v", nv), s.read("h", 1)
    calls = list[Any]()

    def f(t: object, q: Any, u: Any) -> Any:
        now = velocities(mech, q, u)
        calls.append((q, now))
        return rate_acceleration(mech, q, now, s.read(f"a{len(calls)}", nv))

    assert scheme.step is not None
    q_to, u_to = scheme.step(mech, f, 0.0, q, rates(mech, q, v), step)  # pyright: ignore
    ends = [*calls, (q_to, velocities(mech, q_to, u_to))]
    count = len(calls)
    seeds = [*_along_q(mech, q), *_along(v)]
    seeds += [column for i in range(count) for column in _along(s.reads[f"a{i + 1}"])]
    for i, (place, speed) in enumerate(ends):
        nodes = [s.scalar(x).node for x in (*place, *speed)]
        columns = list[Any]()
        for seed in seeds:
            rate = {node: s.scalar(x).node for node, x in seed.items()}
            columns.append(s.scalars(pushed(s.graph, nodes, rate)))
        full = np.stack(columns, axis=1)
        s.write(f"x{i}", [*place, *speed])
        slopes = np.concatenate([to_velocities(mech, place, full[: mech.nq]), full[mech.nq :]])
        s.write(f"d{i}", list(slopes.ravel()))
    graph, known = s.traced(), dict[str, Any]()
    known |= {"q": at.q, "v": at.v, "h": [h]}
    known |= {f"a{i + 1}": [0.0] * nv for i in range(count)}
    wide = 2 * nv + count * nv
    sizes = [x for _ in ends for x in (mech.nq + nv, 2 * nv * wide)]
    W = _zeros(count * nv, (3 if made is None else 2 + count) * nv)
    parts = list[Any]()
    for i in range(count + 1):  # the arguments of a call depend on the accelerations before it
        flat = np.array(at.replay(graph, known), dtype=object)
        parts = np.split(flat, np.cumsum(sizes)[:-1])
        slopes = parts[2 * i + 1].reshape(2 * nv, wide)
        if i == count:
            break
        x = parts[2 * i]
        vdot, *by = accelerated(x[: mech.nq], x[mech.nq :])
        known[f"a{i + 1}"] = vdot
        if made is not None:
            made.append((x[: mech.nq], x[mech.nq :], vdot))
        A = np.concatenate(by[:2], axis=1)
        total = times(A, slopes[:, : 2 * nv])
        earlier = times(times(A, slopes[:, 2 * nv :]), W)
        W[i * nv : (i + 1) * nv] = earlier
        W[i * nv : (i + 1) * nv, : 2 * nv] = W[i * nv : (i + 1) * nv, : 2 * nv] + total
        forced = slice((2 if made is None else 2 + i) * nv, (3 if made is None else 3 + i) * nv)
        W[i * nv : (i + 1) * nv, forced] = W[i * nv : (i + 1) * nv, forced] + by[2]
    q, v = parts[-2][: mech.nq], parts[-2][mech.nq :]
    slopes = parts[-1].reshape(2 * nv, wide)
    F, G = slopes[:, : 2 * nv], slopes[:, 2 * nv :]
    if count == 1:
        return q, v, F, G, W
    A = times(G, W)  # (2 nv, 3 nv): shorter than all stages
    A[:, : 2 * nv] = A[:, : 2 * nv] + F
    one = np.eye(2 * nv).astype(object)
    return q, v, _zeros(2 * nv, 2 * nv), one, A


def _along(x: Any) -> list[dict[int, Any]]:
    return [{entry.node: 1.0} for entry in x]


def _along_q(mech: Mechanism, q: Any) -> list[dict[int, Any]]:
    """Rates of the entries of q for each velocity."""
    out = list[dict[int, Any]]()
    for k, body in enumerate(mech.bodies):
        part = q[mech.q_start[k] : mech.q_start[k + 1]]
        for e in np.eye(body.hinge.nv):
            rate = body.hinge.qdot(part[None], e[None])[0]
            out.append({x.node: y for x, y in zip(part, rate, strict=True)})
    return out


def to_velocities(mech: Mechanism, q: Any, rates: Any) -> Any:
    """Velocities (nv, c) of rates of the entries of q (nq, c)."""
    out, ((where, of), others) = _zeros(mech.nv, rates.shape[1]), places(mech)
    out[of] = rates[where]
    for hinge, i, j in others:
        N = np.stack([hinge.qdot(q[None, i], e[None])[0] for e in np.eye(hinge.nv)], axis=-1)
        out[j] = factored(N.T @ N) @ (N.T @ rates[i])
    return out


def transition(
    at: Writing,
    integrator: str,
    acts: bool,
    closed: bool = False,
    rank: int | None = None,
    given: tuple[str, ...] = (),
    calls: list[Any] | None = None,
) -> tuple[Any, Any, Any]:
    """q and v after a step, with A and B side by side (2 nv, 3 nv); for `calls` see `chained`."""
    mech, nv = at.mech, at.mech.nv
    _ = at.q, at.v  # the order in which inputs are read is that of the arguments
    tau, (h,) = at.read("tau", nv), at.read("h", 1)
    forces = acting(mech, acts, given)
    accelerated = accelerated_by(at, tau, forces, given, closed, rank)
    q, v, F, G, W = chained(at, integrator, h, accelerated, calls)
    check_turns(at, mech, h * rates(mech, q, v))
    both = times(G, W)
    both[:, : 2 * nv] = both[:, : 2 * nv] + F
    return q, v, both


def _transition(at: Writing, integrator: str, acts: bool) -> Any:
    """A (2 nv, 2 nv) and B (2 nv, nv)."""
    _, _, both = transition(at, integrator, acts)
    return both[:, : 2 * at.mech.nv], both[:, 2 * at.mech.nv :]


TRANSITION = {
    (integrator, acts): Formula(_transition, (integrator, acts), names=("A", "B"))
    for integrator in ("euler", "rk4", "rk4_mujoco")
    for acts in (False, True)
}
"""Of explicit integrators, with and without passive forces: of q, v, tau and h."""
