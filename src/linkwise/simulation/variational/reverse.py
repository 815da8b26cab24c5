"""The variational integrator in reverse.

A step solves r(w) = 0 for the rates w, and q', p' follow from w. With weights g of them,

    g_w = (∂(q', p')/∂w)* g,   (∂r/∂w)* η = g_w,   λ = (∂(q', p')/∂x)* g − (∂r/∂x)* η

The equation for η is solved as the step is, round by round: η ← η + 𝓜⁻¹ (g_w − (∂r/∂w)* η), which
ends after as many rounds. At the end of a step v' = 𝓜⁻¹ p': its weights become those of p' by one
solution, and those of q' by p(q, v) in reverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwise.codegen.sensitivity import pulled
from linkwise.codegen.stepping.stepping import Segment, Sketch, Stepping
from linkwise.dynamics.passive import Passive
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.integrators.command import add_to, nodes, parted
from linkwise.simulation.integrators.reverse import backwards
from linkwise.simulation.variational.equations import momentum_after
from linkwise.simulation.variational.segments import ROUNDS, Discrete, array, squares

TINY = 1e-37
"""Squares of η below this are nothing; weights may have any size."""


def variational_reverse(
    mech: Mechanism, itemsize: int, passive: Passive | None, sums: Sequence[str]
) -> Stepping:
    """The segments of a mechanism.

    Args:
        sums: Inputs that are the same in all steps; their gradients are added up.
    """
    made = _Reverse(mech, (), "node", itemsize, passive)
    first = made.enter(("q_from", "v_from")), made.round()
    step = (*first, made.end_back(), made.round_back(), made.begin_back())
    return backwards("variational", mech, made.held, step, sums)


class _Reverse(Discrete):
    """Further registers: weights g_q1 and g_p1 of q' and p', g_w, eta and its last change."""

    def end_back(self) -> Segment:
        """Weights of q', p' and w, from those of q' and v'."""
        s, coords = Sketch("end_back"), self.coords
        q, p, w, (h,) = self.unknowns(s)
        self.check_solved(s, w, "change")
        at, momentum = self._after(s, q, p, w, h)
        lambda_q, lambda_v = s.read("lambda_q", self.nq), s.read("lambda_v", self.nv)
        v = self.solved(s, at, coords.velocities(at, momentum))
        g_p = coords.rates(at, self.solved(s, at, lambda_v))
        g_q = lambda_q - self._by_state(at, v, g_p, s)[0]
        s.write("g_q1", g_q)
        s.write("g_p1", g_p)
        (g_w,) = parted(s, pulled(s.graph, nodes(at, momentum), nodes(g_q, g_p), nodes(w)), [w])
        s.write("g_w", g_w)
        s.write("eta", [0.0] * self.nv)
        return s.segment()

    def round_back(self) -> Segment:
        """η ← η + 𝓜⁻¹ (g_w − (∂r/∂w)* η)."""
        s = Sketch("round_back")
        q, p, w, (h,) = self.unknowns(s)
        eta, g_w = s.read("eta", self.nv), s.read("g_w", self.nv)
        _, r = self.equations(s, q, p, w, h)
        (by_w,) = parted(s, pulled(s.graph, nodes(r), nodes(eta), nodes(w)), [w])
        change = self.corrected(s, q, w, h, g_w - by_w)
        s.checks.clear()
        eta = eta + change
        s.write("eta", eta)
        s.write("change_back", change)
        s.write("again_back", [squares(change) - self.enough**2 * squares(eta)])
        return s.segment(again="again_back", most=ROUNDS)

    def begin_back(self) -> Segment:
        """λ of the beginning of the step, and the gradients by inputs."""
        s = Sketch("begin_back")
        q, p, w, (h,) = self.unknowns(s)
        eta = s.read("eta", self.nv)
        self.check_solved(s, eta, "change_back", TINY)
        at, momentum = self._after(s, q, p, w, h)
        _, r = self.equations(s, q, p, w, h)
        ends = nodes(at, momentum, r)
        weights = nodes(s.read("g_q1", self.nq), s.read("g_p1", self.nv), -eta)
        inputs = [s.read(name, n) for name, n in self.held]
        wrt = [q, p, *inputs]
        g_q, g_p, *rest = parted(s, pulled(s.graph, ends, weights, nodes(*wrt)), wrt)
        start_q, start_v = s.read("q_from", self.nq), s.read("v_from", self.nv)
        by_q, by_v = self._by_state(start_q, start_v, g_p, s)
        s.write("lambda_q", g_q + by_q + s.read("w_q", self.nq))
        s.write("lambda_v", by_v + s.read("w_v", self.nv))
        for (name, _), gradient in zip(self.held, rest, strict=True):
            add_to(s, name, gradient)
        return s.segment()

    def _after(self, s: Sketch, q: Any, p: Any, w: Any, h: Any) -> tuple[Any, Any]:
        """q' and p'."""
        force, _ = self.equations(s, q, p, w, h)
        return self.coords.retract(q, w, h), momentum_after(self.coords, force, p, w, h)

    def _by_state(self, q: Any, v: Any, weights: Any, s: Sketch) -> tuple[Any, Any]:
        """Gradients of a weighted p(q, v) by q and v."""
        t = Sketch("momentum")
        at, speed, w = t.read("q", self.nq), t.read("v", self.nv), t.read("w", self.nv)
        p = self.momentum(t, at, speed)
        t.checks.clear()
        by_q, by_v = parted(t, pulled(t.graph, nodes(p), nodes(w), nodes(at, speed)), [at, speed])
        t.write("by_q", by_q)
        t.write("by_v", by_v)
        both = array(s.replay(t.traced(), {"q": q, "v": v, "w": weights}))
        return both[: self.nq], both[self.nq :]
