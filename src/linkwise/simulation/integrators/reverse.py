"""A step in reverse: the gradient of whatever comes after it, from its end to its beginning.

A rollout makes x' = Φ(x, i) of the state x = (q, v) and of inputs i: joint forces or the inputs of
a control law, and parameters of the mechanism. With weights w of the records, its gradient is

    λ = w'                      at the end
    λ ← (∂Φ/∂x)* λ + w          from the last step to the first
    g = (∂Φ/∂i)* λ              for each step, or added up where an input is the same in all

That is a motion as well, backwards, so it is a `Stepping` and runs by the same kernels: its
registers q and v hold λ (by raw entries of q), v with all g behind it; x, i and w are held.

The graph of an explicit integrator, with its calls of u̇ = f(q, u), is run in reverse
(`codegen.sensitivity`). Each call becomes one of its adjoint. Forward dynamics is not run in
reverse, though: with r = τ − 𝓜 v̇ − C, which is zero, and μ = 𝓜⁻¹ (weights of v̇), the gradient is
that of μ* r at fixed v̇ and μ, one solution and one inverse dynamics in reverse.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.codegen.scalar.graph import Scalar
from linkwise.codegen.scalar.trace import Traced
from linkwise.codegen.sensitivity import pulled
from linkwise.codegen.stepping.stepping import STEP, Segment, Sketch, Stepping
from linkwise.dynamics.passive import Passive
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.integrators.command import (
    Inputs,
    add_to,
    command,
    command_back,
    held_inputs,
    nodes,
    parted,
)
from linkwise.simulation.integrators.cut import Call, cut
from linkwise.simulation.integrators.integrator import Integrator
from linkwise.simulation.integrators.traced import accelerated
from linkwise.simulation.rates import (
    rate_acceleration,
    rates,
    velocities,
    velocity_acceleration,
)

COMMANDS = ("control", "gain", "bias")
"""Inputs of actuators."""


@dataclass(frozen=True, slots=True, eq=False)
class Dynamics:
    """The graphs of a mechanism that a step in reverse is made of.

    Attributes:
        forward: v̇ of q, v, tau and parameters.
        inverse: τ of q, v, vdot and parameters.
        solve: 𝓜⁻¹ x of q, x and parameters.
        passive: Dampers and springs, or None.
        law: Joint forces of q, v and the inputs of a law, or None.
        actuate: tau with the forces of actuators, of registers q0, u0, h, control and tau, and of
            gain and bias where they are given; or None.
        more: Inputs of the passive forces, with lengths.
    """

    forward: Traced
    inverse: Traced
    solve: Traced
    passive: Passive | None
    law: Traced | None
    actuate: Traced | None = None
    more: Inputs = ()


def reverse_stepping(
    scheme: Integrator, mech: Mechanism, dynamics: Dynamics, sums: Sequence[str]
) -> Stepping:
    """An explicit integrator in reverse.

    Args:
        sums: Inputs that are the same in all steps; their gradients are added up.
    """
    s = Sketch("reverse")
    q, v = s.read("q_from", mech.nq), s.read("v_from", mech.nv)
    args, values = list[tuple[Any, Any]](), list[Any]()

    def f(t: object, q: Any, u: Any) -> Any:
        args.append((q, u))
        values.append(s.read(f"a{len(args)}", mech.nv))
        return values[-1]

    assert scheme.step is not None
    q_to, u_to = scheme.step(mech, f, 0.0, q, rates(mech, q, v), s.read(STEP, 1)[0])
    held = (*(x for x in dynamics.forward.inputs if x[0] not in ("q", "v")), *dynamics.more)
    accelerate = accelerated(mech, dynamics.forward, dynamics.passive, held, ("q1", "u1"))
    back = _accelerated_back(mech, dynamics, held)
    calls = [
        Call((accelerate,), {"q1": nodes(at), "u1": nodes(u)}, {f"a{k}": "a"})
        for k, (at, u) in enumerate(args, 1)
    ]
    ends = nodes(q_to, velocities(mech, q_to, u_to))
    weights = nodes(s.read("lambda_q", mech.nq), s.read("lambda_v", mech.nv))
    for k in range(len(args), 0, -1):
        (at, u), a = args[k - 1], values[k - 1]
        given = {"q1": nodes(at), "u1": nodes(u), "a1": nodes(a)}
        given["g_a"] = pulled(s.graph, ends, weights, nodes(a))
        calls.append(Call((back,), given, {f"g_q{k}": "g_q1", f"g_u{k}": "g_u1"}))
        ends += nodes(at, u)
        weights += nodes(s.read(f"g_q{k}", mech.nq), s.read(f"g_u{k}", mech.nv))
    if dynamics.actuate is not None:
        motors_back = _actuated(mech, dynamics.actuate, back=True)
        calls.append(Call((motors_back,), {}, {x: x for x in ("motor_q", "motor_v")}))
        ends += nodes(q, v)
        weights += nodes(s.read("motor_q", mech.nq), s.read("motor_v", mech.nv))
    if dynamics.law is not None:
        law_back = command_back(*_start("command_back", mech, dynamics.law))
        calls.append(Call((law_back,), {}, {x: x for x in ("law_q", "law_v")}))
        ends += nodes(q, v)
        weights += nodes(s.read("law_q", mech.nq), s.read("law_v", mech.nv))
    ends += nodes(q, v)
    weights += nodes(s.read("w_q", mech.nq), s.read("w_v", mech.nv))
    result = pulled(s.graph, ends, weights, nodes(q, v))
    final = {"lambda_q": result[: mech.nq], "lambda_v": result[mech.nq :]}
    step = cut(s, calls, final, group=mech.nv)
    inputs = held_inputs(held, dynamics.law)
    if dynamics.actuate is not None:
        step = [_actuated(mech, dynamics.actuate, back=False), *step]
        inputs += tuple(x for x in dynamics.actuate.inputs if x[0] in COMMANDS)
    if dynamics.law is not None:
        step = [command(*_start("command", mech, dynamics.law)), *step]
    return backwards(scheme.name, mech, inputs, step, sums)


def _actuated(mech: Mechanism, actuate: Traced, *, back: bool) -> Segment:
    """tau with the forces of actuators; in reverse, gradients by the state and by commands.

    The gradient by the joint forces that they are added to is that by tau.
    """
    s = Sketch("actuate_back" if back else "actuate")
    q, v = s.read("q_from", mech.nq), s.read("v_from", mech.nv)
    given = {"q0": q, "u0": rates(mech, q, v)}
    given |= {name: s.read(name, n) for name, n in actuate.inputs if name not in given}
    tau = s.replay(actuate, given)
    if not back:
        s.write("tau", tau)
        return s.segment()
    names = [name for name, _ in actuate.inputs if name in COMMANDS]
    wrt = [q, v, *(given[name] for name in names)]
    weights = nodes(s.read("g_tau", mech.nv))
    by_q, by_v, *rest = parted(s, pulled(s.graph, nodes(tau), weights, nodes(*wrt)), wrt)
    s.write("motor_q", by_q)
    s.write("motor_v", by_v)
    for name, part in zip(names, rest, strict=True):
        add_to(s, name, part)
    s.checks.clear()
    return s.segment()


def _start(name: str, mech: Mechanism, law: Traced) -> tuple[Sketch, Traced, Any, Any]:
    """A segment about the beginning of the step."""
    s = Sketch(name)
    return s, law, s.read("q_from", mech.nq), s.read("v_from", mech.nv)


def _accelerated_back(mech: Mechanism, dynamics: Dynamics, held: Inputs) -> Segment:
    """Gradients by q1, u1 and inputs, from the weights g_a of a = u̇ and its value a1."""
    s = Sketch("accelerate_back")
    q, u, g_a = s.read("q1", mech.nq), s.read("u1", mech.nv), s.read("g_a", mech.nv)
    given = {name: s.read(name, n) for name, n in held}
    v = velocities(mech, q, u)
    vdot = s.read("vdot", mech.nv)
    a = rate_acceleration(mech, q, v, vdot)
    (by_vdot,) = parted(s, pulled(s.graph, nodes(a), nodes(g_a), nodes(vdot)), [vdot])
    mu = s.replay(dynamics.solve, given | {"q": q, "x": by_vdot})
    tau = given["tau"]
    tau = tau if dynamics.passive is None else dynamics.passive.added(s, tau, q, v, given)
    r = tau - np.array(s.replay(dynamics.inverse, given | {"q": q, "v": v, "vdot": vdot}))
    wrt = [q, u, *given.values()]
    parts = parted(s, pulled(s.graph, nodes(a, r), nodes(g_a, mu), nodes(*wrt)), wrt)
    s.write("g_q1", parts[0])
    s.write("g_u1", parts[1])
    for name, part in zip(given, parts[2:], strict=True):
        add_to(s, name, part)
    s.checks.clear()  # forward dynamics had the same
    # v̇ was an input up to here, so that it counted as fixed
    t = Sketch(s.name)
    known = {name: t.read(name, len(x)) for name, x in s.reads.items() if name != "vdot"}
    at, udot = known["q1"], t.read("a1", mech.nv)
    known["vdot"] = velocity_acceleration(mech, at, velocities(mech, at, known["u1"]), udot)
    results = iter(t.replay(s.traced(), known))
    for name, values in s.writes.items():
        t.write(name, [next(results) for _ in values])
    return t.segment()


def backwards(
    name: str,
    mech: Mechanism,
    inputs: Inputs,
    step: Iterable[Segment],
    sums: Sequence[str],
) -> Stepping:
    """The motion whose step this is: λ begins and ends in q and v, with gradients behind v."""
    parts = (("lambda_v", mech.nv), *((f"g_{name}", n) for name, n in inputs))
    size = sum(n for _, n in parts)
    enter, leave = Sketch("enter"), Sketch("leave")
    enter.write("lambda_q", enter.read("q", mech.nq))
    rest, flat = enter.read("v", size), list[Scalar]()
    leave.write("q", leave.read("lambda_q", mech.nq))
    for register, n in parts:
        enter.write(register, rest[:n])
        rest = rest[n:]
        flat += list(leave.read(register, n))
    leave.write("v", flat)
    clear = Sketch("clear")
    for register, n in {**dict(parts[1:]), "g_tau": mech.nv}.items():
        if register.removeprefix("g_") not in sums:
            clear.write(register, [0.0] * n)
    first = (clear.segment(),) if clear.writes else ()
    held = (
        ("q_from", mech.nq), ("v_from", mech.nv), ("w_q", mech.nq), ("w_v", mech.nv), *inputs
    )  # fmt: skip
    state = ("lambda_q", *(register for register, _ in parts))
    both = (enter.segment(),), (*first, *step), (leave.segment(),)
    return Stepping(name, mech.nq, size, held, state, *both, divides=False)
