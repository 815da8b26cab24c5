"""A step x' = f(x, τ) in array code, with its derivative in factors δx' = F δx + G W (δx, δτ).

The integrator's own code runs once on graph nodes; each of its calls of u̇ is an input there. With
the accelerations and their derivatives of the algebra at each call, the chain rule gives the rest:
W has the derivatives of v̇ at all calls one below the other, F and G are those of the integrator,
sparse where hinges are plain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.codegen.scalar.trace import Sketch, Traced
from linkwise.codegen.sensitivity import pushed
from linkwise.control.holding import Held, held
from linkwise.dynamics.configuration import places
from linkwise.dynamics.derivatives import moving
from linkwise.dynamics.passive import Passive
from linkwise.dynamics.quantity import expression
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.integrators import INTEGRATORS
from linkwise.simulation.rates import check_turns, rate_acceleration, rates, velocities
from linkwise.sweeps.factored import factored
from linkwise.sweeps.sparse import times

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

INTEGRATED = ("euler", "rk4")
"""Integrators whose steps are optimised through, by name."""


def stepped(
    at: Writing, integrator: str, tau: Any, h: Any, forces: Passive | None, given: tuple[str, ...]
) -> tuple[Any, Any, Any]:
    """q and v after a step with joint forces τ (nv,) held, of length h [s]; and forces λ of rows.

    Args:
        integrator: A name of `INTEGRATED`.
        forces: Dampers and springs, or None.
        given: Numbers of the mechanism that are inputs.
    """
    mech, pull = at.mech, np.zeros(0, dtype=object)

    def f(t: object, q: Any, u: Any) -> Any:
        nonlocal pull
        v = velocities(mech, q, u)
        if mech.loops or mech.couplings:
            rows = held(at, tau, h, forces, given, None, derivatives=False)
            pull = rows.force
            return rate_acceleration(mech, q, v, rows.vdot)
        force = tau if forces is None else forces.added(at, tau, q, v)
        name = expression("forward_dynamics")
        return rate_acceleration(mech, q, v, at.value(name, parameters=given, q=q, v=v, tau=force))

    scheme = INTEGRATORS[integrator]
    assert scheme.step is not None
    q, u = scheme.step(mech, f, 0.0, at.q, rates(mech, at.q, at.v), h)  # pyright: ignore
    check_turns(at, mech, h * u)
    return q, velocities(mech, q, u), pull


def transition(
    at: Writing, integrator: str, tau: Any, h: Any, forces: Passive | None, given: tuple[str, ...]
) -> tuple[Any, Any, Any, Any, Any, Held | None]:
    """q and v after a step, with F (2 nv, 2 nv), G (2 nv, k), W (k, 3 nv), and what rows do.

    Columns of W are those of δq, δv and δτ.
    """
    mech, nv, rows = at.mech, at.mech.nv, None
    if mech.loops or mech.couplings:
        more = None if forces is None else _passive_rates(at, at.q, at.v, forces)
        rows = held(at, tau, h, forces, given, more, derivatives=True)

    def accelerated(q: Any, v: Any) -> tuple[Any, Any, Any, Any]:
        if rows is None:
            return _accelerated(at, q, v, tau, forces, given)
        assert rows.by is not None
        return rows.vdot, *(x[:nv] for x in rows.by)

    if integrator == "euler" and not places(mech)[1]:
        vdot, *by = accelerated(at.q, at.v)
        v = at.v + h * vdot
        W = np.concatenate([h * by[0], h * by[1] + np.eye(nv), h * by[2]], axis=1)
        F, G = _zeros(2 * nv, 2 * nv), _zeros(2 * nv, nv)
        F[:nv, :nv] = G[nv:] = np.eye(nv)
        G[:nv] = h * np.eye(nv)
        return at.q + h * v, v, F, G, W, rows
    return *_through(at, integrator, h, accelerated), rows


def _accelerated(
    at: Writing, q: Any, v: Any, tau: Any, forces: Passive | None, given: tuple[str, ...]
) -> tuple[Any, Any, Any, Any]:
    """v̇ with its derivatives by q, v and τ, with dampers and springs."""
    force = tau if forces is None else forces.added(at, tau, q, v)
    vdot, by_q, by_v, by_tau = moving(at, force, "", given, {"q": q, "v": v})
    if forces is None:
        return vdot, by_q, by_v, by_tau
    flat, nv = _passive_rates(at, q, v, forces), at.mech.nv
    by_q, by_v = by_q + times(by_tau, flat[:, :nv]), by_v + times(by_tau, flat[:, nv:])
    return vdot, by_q, by_v, by_tau


def _passive_rates(at: Writing, q: Any, v: Any, forces: Passive) -> Any:
    """How dampers and springs change with q and v (nv, 2 nv)."""
    graph, nv = _passive_slopes(at.mech, forces), at.mech.nv
    return np.array(at.replay(graph, {"q": q, "v": v}), dtype=object).reshape(nv, 2 * nv)


def _passive_slopes(mech: Mechanism, forces: Passive) -> Traced:
    """How dampers and springs change with q and v (nv, 2 nv), as a graph."""
    s = Sketch()
    q, v = s.read("q", mech.nq), s.read("v", mech.nv)
    force = forces.added(s, np.full(mech.nv, 0.0, dtype=object), q, v)
    nodes, columns = [s.scalar(x).node for x in force], list[Any]()
    for seed in (*_along_q(mech, q), *_along(v)):
        rate = {node: s.scalar(x).node for node, x in seed.items()}
        columns.append(s.scalars(pushed(s.graph, nodes, rate)))
    s.write("slopes", list(np.stack(columns, axis=1).ravel()))
    return s.traced()


def _zeros(*shape: int) -> Any:
    return np.full(shape, 0.0, dtype=object)


def _through(
    at: Writing, integrator: str, h: Any, accelerated: Callable[[Any, Any], tuple[Any, ...]]
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
        slopes = np.concatenate([_to_velocities(mech, place, full[: mech.nq]), full[mech.nq :]])
        s.write(f"d{i}", list(slopes.ravel()))
    graph, known = s.traced(), dict[str, Any]()
    known |= {"q": at.q, "v": at.v, "h": [h]}
    known |= {f"a{i + 1}": [0.0] * nv for i in range(count)}
    wide = 2 * nv + count * nv
    sizes = [x for _ in ends for x in (mech.nq + nv, 2 * nv * wide)]
    W = _zeros(count * nv, 3 * nv)
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
        A = np.concatenate(by[:2], axis=1)
        total = times(A, slopes[:, : 2 * nv])
        earlier = times(times(A, slopes[:, 2 * nv :]), W)
        W[i * nv : (i + 1) * nv] = earlier
        W[i * nv : (i + 1) * nv, : 2 * nv] = W[i * nv : (i + 1) * nv, : 2 * nv] + total
        W[i * nv : (i + 1) * nv, 2 * nv :] = W[i * nv : (i + 1) * nv, 2 * nv :] + by[2]
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


def _to_velocities(mech: Mechanism, q: Any, rates: Any) -> Any:
    """Velocities (nv, c) of rates of the entries of q (nq, c)."""
    out, ((where, of), others) = _zeros(mech.nv, rates.shape[1]), places(mech)
    out[of] = rates[where]
    for hinge, i, j in others:
        N = np.stack([hinge.qdot(q[None, i], e[None])[0] for e in np.eye(hinge.nv)], axis=-1)
        out[j] = factored(N.T @ N) @ (N.T @ rates[i])
    return out
