"""A step of an integrator as segments: its own code, traced and cut where it asks for u̇.

The step runs once on graph nodes. Each call of f ends a segment, which writes its arguments into
the registers q1 and u1; the accelerations, one segment that is called each time, put u̇ into a.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.codegen.scalar.trace import Traced
from linkwise.codegen.stepping.stepping import STEP, Segment, Sketch, Stepping
from linkwise.dynamics.passive import Passive
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.integrators.command import nodes
from linkwise.simulation.integrators.cut import Call, cut
from linkwise.simulation.integrators.integrator import Integrator
from linkwise.simulation.rates import check_turns, rate_acceleration, rates, velocities


def traced_stepping(
    scheme: Integrator,
    mech: Mechanism,
    forward: Traced,
    passive: Passive | None,
    more: Sequence[tuple[str, int]] = (),
) -> Stepping:
    """The segments of an explicit integrator on a mechanism; `more` is held besides its inputs."""
    held = (*(x for x in forward.inputs if x[0] not in ("q", "v")), *more)
    s, calls = Sketch("step"), list[list[int]]()
    state, (h,) = (s.read("q0", mech.nq), s.read("u0", mech.nv)), s.read(STEP, 1)

    def f(t: object, q: Any, u: Any) -> Any:
        calls.append(nodes(q, u))
        return s.read(f"a{len(calls)}", mech.nv)

    assert scheme.step is not None
    q, u = scheme.step(mech, f, 0.0, *state, h)
    alone = calls == [nodes(*state)]  # u̇ is evaluated once, at the start
    at = ("q0", "u0") if alone else ("q1", "u1")
    accelerate = accelerated(mech, forward, passive, held, at)
    step = cut(
        s,
        [
            Call((accelerate,), {at[0]: x[: mech.nq], at[1]: x[mech.nq :]}, {f"a{k}": "a"})
            for k, x in enumerate(calls, 1)
        ],
        {"q0": nodes(q), "u0": nodes(u)},
        group=mech.nv,
        check=lambda s: check_turns(s, mech, [s.read(STEP, 1)[0] * x for x in s.writes["u0"]]),
    )
    parts = (_enter(mech),), tuple(step), (leave(mech),)
    return Stepping(scheme.name, mech.nq, mech.nv, held, ("q0", "u0"), *parts)


def _enter(mech: Mechanism) -> Segment:
    """(q, v) to the state (q0, u0)."""
    s = Sketch("enter")
    q, v = s.read("q", mech.nq), s.read("v", mech.nv)
    s.write("q0", q)
    s.write("u0", rates(mech, q, v))
    return s.segment()


def leave(mech: Mechanism) -> Segment:
    """The state (q0, u0) to (q, v)."""
    s = Sketch("leave")
    q, u = s.read("q0", mech.nq), s.read("u0", mech.nv)
    s.write("q", q)
    s.write("v", velocities(mech, q, u))
    return s.segment()


def accelerated(
    mech: Mechanism,
    forward: Traced,
    passive: Passive | None,
    held: Sequence[tuple[str, int]],
    at: tuple[str, str],
) -> Segment:
    """a = u̇ of the registers of q and u, and of what is held."""
    s = Sketch("accelerate")
    q, u = s.read(at[0], mech.nq), s.read(at[1], mech.nv)
    v = velocities(mech, q, u)
    given = {"q": q, "v": v} | {name: s.read(name, size) for name, size in held}
    if passive is not None:
        given["tau"] = passive.added(s, given["tau"], q, v, given)
    vdot = np.empty(mech.nv, dtype=object)
    vdot[:] = s.replay(forward, given)
    s.write("a", rate_acceleration(mech, q, v, vdot))
    return s.segment()
