"""The variational integrator in segments: rounds that solve for the rates, then the step itself.

One round is w ← w − 𝓜⁻¹ r(w) with the residual r of `equations.py`; it is run until it changes
nothing but rounding. What the last one still changes is checked. With dampers d and springs k the
rounds have N + ½h d + ¼h² k in the place of N, what they do to r(w), so that these may be as stiff
as they like.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.codegen.request import Request
from linkwise.codegen.scalar import status
from linkwise.codegen.stages import traced
from linkwise.codegen.stepping.stepping import STEP, Segment, Sketch, Stepping
from linkwise.dynamics.passive import Passive
from linkwise.dynamics.quantity import Frame
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.variational.coordinates import coordinates
from linkwise.simulation.variational.equations import (
    MOMENTUM,
    SOLUTION,
    at_the_middle,
    lagrangian_force,
    momentum_after,
    residual,
)

ROUNDS = 40
"""Rounds of a step, at most. Each makes the error smaller by a factor of about h |w|."""

ENOUGH = {8: 1e-13, 4: 1e-5}
"""A round that changes w by less, in parts of it, is the last; by the bytes of a number."""

LEFT = {8: 1e-9, 4: 1e-3}
"""What the last of all rounds may still change."""

TINY = 1e-24
"""Squares of rates [1/s²] below this are nothing."""


def variational_stepping(
    mech: Mechanism, nodes: Sequence[str], frame: Frame, itemsize: int, passive: Passive | None
) -> Stepping:
    """The segments of a mechanism.

    Raises:
        ModelError: A hinge that has no discrete Lagrangian; names it.
    """
    made = Discrete(mech, nodes, frame, itemsize, passive)
    state = ("q0", "p0", "w")
    parts = (made.enter(),), (made.round(), made.advance()), (made.leave(),)
    return Stepping("variational", mech.nq, mech.nv, made.held, state, *parts)


class Discrete:
    """Sketches over the registers q0, p0 and w (the state), force, change and again."""

    def __init__(
        self,
        mech: Mechanism,
        nodes: Sequence[str],
        frame: Frame,
        itemsize: int,
        passive: Passive | None,
    ) -> None:
        self.mech, self.nq, self.nv, self.passive = mech, mech.nq, mech.nv, passive
        self.coords = coordinates(mech)
        force = lagrangian_force(nodes=bool(nodes), frame=frame)
        self.both = traced(Request((MOMENTUM, force), mech, tuple(nodes), itemsize=itemsize))
        inputs = () if passive is None else ("armature",)
        self.solve = traced(Request((SOLUTION,), mech, (), inputs, itemsize))
        self.enough, self.left = ENOUGH[itemsize], LEFT[itemsize]
        others = tuple(x for x in self.both.inputs if x[0] not in ("q", "v"))
        self.held = (("tau", mech.nv), *others)

    def enter(self, at: tuple[str, str] = ("q", "v")) -> Segment:
        """(q, v), from two registers, to the state."""
        s = Sketch("enter")
        q, v = s.read(at[0], self.nq), s.read(at[1], self.nv)
        p = self.momentum(s, q, v)
        self.solved(s, q, p)  # for its checks: hinges that nothing resists
        s.write("q0", q)
        s.write("p0", p)
        s.write("w", self.coords.rates(q, v))
        return s.segment()

    def leave(self) -> Segment:
        """The state to (q, v)."""
        s = Sketch("leave")
        q, p = s.read("q0", self.nq), s.read("p0", self.nv)
        s.write("q", q)
        s.write("v", self.solved(s, q, self.coords.velocities(q, p)))
        return s.segment()

    def round(self) -> Segment:
        """w ← w − 𝓜⁻¹ r(w); force and change are kept for the end of the step."""
        s = Sketch("round")
        q, p, w, (h,) = self.unknowns(s)
        force, r = self.equations(s, q, p, w, h)
        change = self.corrected(s, q, w, h, r)
        s.checks.clear()  # `advance` reports rounds that diverge
        s.write("w", w - change)
        s.write("force", force)
        s.write("change", change)
        s.write("again", [squares(change) - self.enough**2 * squares(w) - TINY])
        return s.segment(again="again", most=ROUNDS)

    def advance(self) -> Segment:
        """q0 and p0 of the next step, and whether w was good enough."""
        s = Sketch("advance")
        q, p, w, (h,) = self.unknowns(s)
        force = s.read("force", self.nv)
        self.check_solved(s, w, "change")
        for turn in self.coords.turns:
            square = squares(h * w[turn.v : turn.v + 3])
            s.check(status.turned(self.mech, turn.k), square, -1.0, math.pi**2)
        s.write("q0", self.coords.retract(q, w, h))
        s.write("p0", momentum_after(self.coords, force, p, w, h))
        return s.segment()

    def check_solved(self, s: Sketch, x: Any, change: str, tiny: float = TINY) -> None:
        """Trouble unless the last round has changed x by little, as a register says."""
        left = squares(s.read(change, self.nv)) - self.left**2 * squares(x) - tiny
        s.check(status.unsolved(self.mech), left, -math.inf, 0.0)

    def unknowns(self, s: Sketch) -> tuple[Any, Any, Any, Any]:
        """q0, p0, w and h."""
        q, p, w = s.read("q0", self.nq), s.read("p0", self.nv), s.read("w", self.nv)
        return q, p, w, s.read(STEP, 1)

    def momentum(self, s: Sketch, q: Any, v: Any) -> Any:
        """p of a state."""
        mu, _ = self._both(s, q, v, {name: np.zeros(n, dtype=object) for name, n in self.held})
        return self.coords.rates(q, mu + self.mech.armature * v)

    def equations(self, s: Sketch, q: Any, p: Any, w: Any, h: Any) -> tuple[Any, Any]:
        """The force in the middle of a step, and the residual r(w)."""
        coords = self.coords
        middle = coords.retract(q, w, 0.5 * h)
        v = coords.velocities(middle, w)
        mu, force = self._both(s, middle, v, {name: s.read(name, n) for name, n in self.held})
        force, momentum = at_the_middle(coords, middle, v, mu, force)
        return force, residual(coords, force, momentum, p, w, h)

    def corrected(self, s: Sketch, q: Any, w: Any, h: Any, r: Any) -> Any:
        """𝓜⁻¹ r in the middle of a step, with what makes rounds stable."""
        middle = self.coords.retract(q, w, 0.5 * h)
        r = self.coords.velocities(middle, r)
        return self.coords.rates(middle, self.solved(s, middle, r, self.stiffened(h)))

    def _both(self, s: Sketch, q: Any, v: Any, held: dict[str, Any]) -> tuple[Any, Any]:
        """𝓜 v, and C_v* v − g with all forces."""
        values = array(s.replay(self.both, held | {"q": q, "v": v}))
        tau = held["tau"] if self.passive is None else self.passive.added(s, held["tau"], q, v)
        return values[: self.nv], values[self.nv :] + tau

    def solved(self, s: Sketch, q: Any, x: Any, armature: Any = None) -> Any:
        """𝓜⁻¹ x."""
        held = self.mech.armature if armature is None else armature
        return array(s.replay(self.solve, {"q": q, "x": x, "armature": held}))

    def stiffened(self, h: Any) -> Any:
        """The armature, with what dampers and springs add to it in one round."""
        out = self.mech.armature.astype(object)
        if self.passive is not None:
            out = out + 0.5 * self.passive.damping * h + 0.25 * self.passive.stiffness * h * h
        return out


def squares(x: Any) -> Any:
    """x* x."""
    total: Any = 0.0
    for entry in x:
        total = total + entry * entry
    return total


def array(values: list[Any]) -> Any:
    """An array of `Scalar`."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out
