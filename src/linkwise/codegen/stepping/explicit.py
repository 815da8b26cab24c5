"""Explicit integrators in segments: semi-implicit Euler and two Runge-Kutta methods of order four.

The formulas are those of `linkwise.simulation.integrators`, which does the same in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from linkwise.codegen.scalar.trace import Traced
from linkwise.codegen.stepping import rates
from linkwise.codegen.stepping.passive import Passive
from linkwise.codegen.stepping.segment import Segment, Sketch
from linkwise.codegen.stepping.stepping import STEP, Stepping
from linkwise.model.mechanism import Mechanism


class _Scheme:
    """What the integrators share: sketches over the registers of one mechanism."""

    def __init__(self, mech: Mechanism, forward: Traced, passive: Passive | None) -> None:
        rates.check_supported(mech)
        self.mech, self.nq, self.nv = mech, mech.nq, mech.nv
        self.forward, self.passive = forward, passive
        self.held = tuple(x for x in forward.inputs if x[0] not in ("q", "v"))

    def enter(self) -> Segment:
        """(q, v) to the state (q0, u0)."""
        s = Sketch("enter")
        q, v = s.read("q", self.nq), s.read("v", self.nv)
        s.write("q0", q)
        s.write("u0", rates.rates(self.mech, q, v))
        return s.segment()

    def leave(self) -> Segment:
        """The state (q0, u0) to (q, v)."""
        s = Sketch("leave")
        q, u = s.read("q0", self.nq), s.read("u0", self.nv)
        s.write("q", q)
        s.write("v", rates.velocities(self.mech, q, u))
        return s.segment()

    def accelerate(self, q: str, u: str) -> Segment:
        """a = u̇ of the registers q and u, and of what is held."""
        s = Sketch("accelerate")
        at, rate = s.read(q, self.nq), s.read(u, self.nv)
        v = rates.velocities(self.mech, at, rate)
        given = {"q": at, "v": v} | {name: s.read(name, size) for name, size in self.held}
        if self.passive is not None:
            given["tau"] = self.passive.added(given["tau"], at, v)
        vdot = _array(s.replay(self.forward, given))
        s.write("a", rates.rate_accelerations(self.mech, at, v, vdot))
        return s.segment()

    def made(self, name: str, step: list[Segment]) -> Stepping:
        """The stepping with these segments."""
        parts = (self.enter(),), tuple(step), (self.leave(),)
        return Stepping(name, self.nq, self.nv, self.held, ("q0", "u0"), *parts)


def euler(mech: Mechanism, forward: Traced, passive: Passive | None) -> Stepping:
    """u' = u + h u̇, q' = q ⊕ h u'."""
    scheme = _Scheme(mech, forward, passive)
    s = Sketch("advance")
    q, u = s.read("q0", mech.nq), s.read("u0", mech.nv)
    a, (h,) = s.read("a", mech.nv), s.read(STEP, 1)
    after = u + h * a
    s.write("u0", after)
    s.write("q0", rates.moved(s, mech, q, h * after))
    return scheme.made("euler", [scheme.accelerate("q0", "u0"), s.segment()])


def rk4(mech: Mechanism, forward: Traced, passive: Passive | None) -> Stepping:
    """The commutator-free method of order four (`closed/motion/step.py` has its formulas).

    Registers: q1 and u1 the state of a stage, q2 that of the second one, middle = u₂ + u₃ and
    sum = a₁ + 2 a₂ + 2 a₃ as they come.
    """
    scheme = _Scheme(mech, forward, passive)
    nq, nv = mech.nq, mech.nv
    accelerate = scheme.accelerate("q1", "u1")

    def begin(s: Sketch) -> None:
        s.write("q1", s.read("q0", nq))
        s.write("u1", s.read("u0", nv))

    def second(s: Sketch) -> None:
        q, u, a, (h,) = s.read("q0", nq), s.read("u0", nv), s.read("a", nv), s.read(STEP, 1)
        there = rates.moved(s, mech, q, 0.5 * h * u)
        u2 = u + 0.5 * h * a
        s.write("q1", there)
        s.write("q2", there)
        s.write("u1", u2)
        s.write("sum", a)
        s.write("middle", u2)

    def third(s: Sketch) -> None:
        q, u, a, (h,) = s.read("q0", nq), s.read("u0", nv), s.read("a", nv), s.read(STEP, 1)
        u2 = s.read("u1", nv)
        u3 = u + 0.5 * h * a
        s.write("q1", rates.moved(s, mech, q, 0.5 * h * u2))
        s.write("u1", u3)
        s.write("sum", s.read("sum", nv) + 2.0 * a)
        s.write("middle", u2 + u3)

    def fourth(s: Sketch) -> None:
        u, a, (h,) = s.read("u0", nv), s.read("a", nv), s.read(STEP, 1)
        u3 = s.read("u1", nv)
        s.write("q1", rates.moved(s, mech, s.read("q2", nq), h * u3 - 0.5 * h * u))
        s.write("u1", u + h * a)
        s.write("sum", s.read("sum", nv) + 2.0 * a)

    def finish(s: Sketch) -> None:
        q, u, a, (h,) = s.read("q0", nq), s.read("u0", nv), s.read("a", nv), s.read(STEP, 1)
        u4, middle = s.read("u1", nv), s.read("middle", nv)
        twelfth = (1.0 / 12.0) * h
        early = twelfth * (3.0 * u + 2.0 * middle - u4)
        late = twelfth * (2.0 * middle + 3.0 * u4 - u)
        s.write("q0", _twice_moved(s, mech, q, early, late))
        s.write("u0", u + (1.0 / 6.0) * h * (s.read("sum", nv) + a))

    stages = [_sketched(f) for f in (begin, second, third, fourth, finish)]
    step = [x for stage in stages[:-1] for x in (stage, accelerate)]
    return scheme.made("rk4", [*step, stages[-1]])


def rk4_mujoco(mech: Mechanism, forward: Traced, passive: Passive | None) -> Stepping:
    """The method of Runge, Kutta and Munthe-Kaas, which is MuJoCo's RK4.

    Each stage is q ⊕ θ from the beginning, with θ = h Σ a_ij k_j and k the rate of θ (`turning`).
    Registers: q1 and u1 the state of a stage, k1 that rate, middle = k₁ + 2 k₂ + 2 k₃ and
    sum = a₁ + 2 a₂ + 2 a₃ as they come.
    """
    scheme = _Scheme(mech, forward, passive)
    nq, nv = mech.nq, mech.nv
    accelerate = scheme.accelerate("q1", "u1")
    rate = "k1" if rates.balls(mech) else "u1"

    def begin(s: Sketch) -> None:
        s.write("q1", s.read("q0", nq))
        s.write("u1", s.read("u0", nv))
        s.write(rate, s.read("u0", nv))

    def stage(part: float, weight: float, first: bool) -> Callable[[Sketch], None]:
        def sketched(s: Sketch) -> None:
            q, u, a, (h,) = s.read("q0", nq), s.read("u0", nv), s.read("a", nv), s.read(STEP, 1)
            last = s.read(rate, nv)
            theta, after = part * h * last, u + part * h * a
            s.write("q1", rates.moved(s, mech, q, theta))
            s.write("u1", after)
            s.write(rate, rates.turning(mech, theta, after))
            s.write("sum", a if first else s.read("sum", nv) + weight * a)
            s.write("middle", last if first else s.read("middle", nv) + weight * last)

        return sketched

    def finish(s: Sketch) -> None:
        q, u, a, (h,) = s.read("q0", nq), s.read("u0", nv), s.read("a", nv), s.read(STEP, 1)
        sixth = (1.0 / 6.0) * h
        way = sixth * (s.read("middle", nv) + s.read(rate, nv))
        s.write("q0", rates.moved(s, mech, q, way))
        s.write("u0", u + sixth * (s.read("sum", nv) + a))

    parts = (stage(0.5, 1.0, True), stage(0.5, 2.0, False), stage(1.0, 2.0, False))
    stages = [_sketched(f) for f in (begin, *parts, finish)]
    step = [x for s in stages[:-1] for x in (s, accelerate)]
    return scheme.made("rk4_mujoco", [*step, stages[-1]])


def _twice_moved(s: Sketch, mech: Mechanism, q: Any, early: Any, late: Any) -> Any:
    """(q ⊕ early) ⊕ late."""
    return rates.moved(s, mech, rates.moved(s, mech, q, early), late)


def _sketched(write: Callable[[Sketch], None]) -> Segment:
    s = Sketch(write.__name__)
    write(s)
    return s.segment()


def _array(values: list[Any]) -> Any:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


EXPLICIT: dict[str, Callable[[Mechanism, Traced, Passive | None], Stepping]] = {
    "euler": euler,
    "rk4": rk4,
    "rk4_mujoco": rk4_mujoco,
}
