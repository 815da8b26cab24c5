"""An implicit step in reverse: the gradient of whatever comes after it (`integrators/reverse.py`).

The impulses are the fixed point of a sweep S, λ = S(λ, w, θ) with w = e + Y λ, where θ are rows,
velocities and bounds. Their derivative is that of the fixed point. With weights of w at the end of
the step, a sweep in reverse is repeated at the solution,

    (λ̂, ŵ) ← (∂S/∂(λ, w))* (λ̂, ŵ),      θ̂ ← θ̂ + (∂S/∂θ)* (λ̂, ŵ)

until ŵ stays: it converges as the sweeps do. So contacts that stick, slide or are open stay so
while a state is varied: nothing is smoothed, and there are jumps where one becomes the other. What
slides keeps λ_t = −μ λ_n u_t / |u_t|, whose direction varies. At the end ê = ŵ and Ŷ takes ŵ λ*.
Weights of mobilities stay out: no fixed point depends on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from linkwise.codegen.scalar.trace import Traced
from linkwise.codegen.sensitivity import pulled
from linkwise.codegen.stepping.stepping import Segment, Sketch, Stepping
from linkwise.codegen.writing import Writing
from linkwise.dynamics.passive import Passive
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.actuation import actuate
from linkwise.simulation.implicit.ground import ContactPoint
from linkwise.simulation.implicit.joint import Joint
from linkwise.simulation.implicit.segments import Implicit
from linkwise.simulation.integrators.command import held_inputs, law_given, nodes, parted
from linkwise.simulation.integrators.cut import Call, cut
from linkwise.simulation.integrators.reverse import backwards
from linkwise.simulation.motion_parameters import OF_ACTUATORS
from linkwise.simulation.rates import rates, velocities
from linkwise.spatial.choice import absolute, maximum

SWEEPS = 100
"""Sweeps to find the impulses again, at most: they begin with those of the step after this one."""

ROUNDS = 300
"""Sweeps in reverse, at most."""

STILL = {8: 1e-13, 4: 1e-6}
"""Change of the weights, relative to them, at which these end; by bytes of a number."""

THETA = ("rows", "b", "bounds", "ground_friction")
"""Registers that a fixed point depends on."""


class _Known(Writing):
    """A formula in which some registers are known."""

    known: dict[str, Any]

    def read(self, name: str, size: int) -> Any:
        """The numbers of a register (size,)."""
        known = self.__dict__.setdefault("known", {})
        return known[name] if name in known else super().read(name, size)


def implicit_reverse(
    mech: Mechanism,
    itemsize: int,
    passive: Passive | None,
    joints: tuple[Joint, ...],
    points: tuple[ContactPoint, ...],
    sums: Sequence[str],
    *,
    actuated: bool,
    numbers: tuple[str, ...],
    law: Traced | None,
) -> Stepping:
    """Implicit steps in reverse; the arguments are those of `implicit_stepping`.

    Args:
        sums: Inputs that are the same in all steps; their gradients are added up.
        law: What gives the joint forces, or None.
    """
    made = Implicit(mech, itemsize, passive, joints, points, actuated, numbers, False)
    made.late = 0.0  # weights are those of the solution
    held = held_inputs(made.held, law)
    at = _Known(made.request, plain=True)
    q, v = at.read("q_from", mech.nq), at.read("v_from", mech.nv)
    at.known |= {"q0": q, "u0": rates(mech, q, v)}
    given = {name: at.read(name, n) for name, n in held}
    if law is not None:
        force = at.replay(law, law_given(at, law, q, v))
        at.known["tau"] = at.scalars(nodes(force))
    if actuated:
        _actuate(at, mech, itemsize, [x for x in numbers if x in OF_ACTUATORS])
    step = made.written(at, SWEEPS)
    ends = nodes(step.q, velocities(mech, step.q, step.u))
    weights = nodes(at.read("lambda_q", mech.nq), at.read("lambda_v", mech.nv))
    calls = list(step.calls)
    if calls:
        call = calls[0] = replace(calls[0], results={"solved": "w", "pushed": "impulse"})
        (_, sweep), size = call.segments, made.size
        solved, push = at.read("solved", mech.nv), at.read("pushed", size)
        theta = [(x, n) for x, n in sweep.reads if x in THETA]
        weight = pulled(at.graph, ends, weights, nodes(solved))
        calls.append(Call((_start_back(sweep),), {"start_w": weight}, {}))
        results = {f"of_{x}": f"by_{x}" for x, _ in (("w", 0), *theta)}
        calls.append(Call((_sweep_back(sweep, itemsize),), {}, results))
        # w = e + Y λ at the solution, where λ counts as given
        w = step.free.copy()
        for row, x in zip(step.rows, push, strict=True):
            for i, y in row.items():
                w[i] = w[i] + y * x
        ends, weights = [*ends, *nodes(w)], [*weights, *nodes(at.read("of_w", mech.nv))]
        for name, n in theta:
            by = nodes(at.read(f"of_{name}", n))
            ends += call.arguments.get(name, nodes(given.get(name, ())))
            weights += by
    ends += nodes(q, v)
    weights += nodes(at.read("w_q", mech.nq), at.read("w_v", mech.nv))
    wrt = [q, v, *given.values()]
    by_q, by_v, *rest = parted(at, pulled(at.graph, ends, weights, nodes(*wrt)), wrt)
    final = {"lambda_q": nodes(by_q), "lambda_v": nodes(by_v)}
    for name, part in zip(given, rest, strict=True):
        final[f"g_{name}"] = nodes(at.read(f"g_{name}", len(part)) + part)
    segments = cut(cast("Any", at), calls, final, group=mech.nv)
    stepping = backwards("implicit", mech, held, segments, sums)
    if not calls:
        return stepping
    s = Sketch("rest")
    s.write("impulse", [0.0] * made.size)
    return replace(
        stepping, enter=(*stepping.enter, s.segment()), state=(*stepping.state, "impulse")
    )


def _actuate(at: _Known, mech: Mechanism, itemsize: int, numbers: Sequence[str]) -> None:
    """Joint forces with those of actuators, and their slopes, as parts of the formula."""
    segment = actuate(mech, itemsize, slopes=True, numbers=numbers)
    given = {name: at.read(name, n) for name, n in segment.reads}
    values = iter(at.replay(segment.traced, given))
    for name, n in segment.writes:
        at.known[name] = at.scalars([next(values).node for _ in range(n)])


def _start_back(sweep: Segment) -> Segment:
    """The weights that sweeps in reverse begin with."""
    s = Sketch("start_back")
    for name, n in sweep.reads:
        if name in ("impulse", *THETA):
            s.write(f"by_{name}", [0.0] * n)
    s.write("by_w", s.read("start_w", dict(sweep.reads)["w"]))
    return s.segment()


def _sweep_back(sweep: Segment, itemsize: int) -> Segment:
    """One sweep in reverse, at the solution."""
    s = Sketch("sweep_back")
    given = {name: s.read(name, n) for name, n in sweep.reads}
    values = iter(s.replay(sweep.traced, given))
    results = {name: [next(values) for _ in range(n)] for name, n in sweep.writes}
    sizes = dict(sweep.reads)
    before = {name: s.read(f"by_{name}", sizes[name]) for name in ("impulse", "w")}
    names = [name for name in sizes if name in ("impulse", "w", *THETA)]
    ends, weights = nodes(*(results[x] for x in before)), nodes(*before.values())
    parts = pulled(s.graph, ends, weights, nodes(*(given[x] for x in names)))
    change: Any = 0.0
    scale: Any = 0.0
    for name, part in zip(names, parted(s, parts, [given[x] for x in names]), strict=True):
        if name in before:
            s.write(f"by_{name}", part)
        else:
            s.write(f"by_{name}", s.read(f"by_{name}", sizes[name]) + part)
        if name == "w":
            for new, old in zip(part, before["w"], strict=True):
                change, scale = maximum(change, absolute(new - old)), maximum(scale, absolute(new))
    s.write("again", [change - STILL[itemsize] * scale])
    s.checks.clear()
    return s.segment(again="again", most=ROUNDS)
