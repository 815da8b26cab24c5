"""One step of time in a formula, with its derivatives by the state.

The step is that of `lw.rollout`: an explicit integrator in rates, dampers and springs of drives
included. Its derivative runs along the integrator's own code; where that asks for v̇, those of
forward dynamics are taken (`dynamics/derivatives.py`) instead of running through its recursion.

Loops and couplings hold in the step of "euler", as in one of "implicit" (`simulation/holding.py`):
velocities after it obey, and a part of what positions are off is closed. In one of "rk4" they hold
at each of its four instants, and what is left is closed at its end, as in rollouts. So the
derivative of the step maps any error to one that loops allow, and covariances have no part across.
A correction by measurements is along motions that loops allow; what bends away from them is closed
at once:

    q ← q − J_c* (J_c J_c*)⁻¹ e,    v ← v − J_c* (J_c J_c*)⁻¹ J_c v
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.codegen.formula import Formula
from linkwise.codegen.request import Request
from linkwise.codegen.stages import traced
from linkwise.dynamics.closed_derivatives import closed_forward
from linkwise.dynamics.closure import closed_expression, closure_nodes, setting_of
from linkwise.dynamics.derivative_formula import ACCELERATION, PUSHED
from linkwise.dynamics.passive import passive
from linkwise.dynamics.path_dependent import path_dependent
from linkwise.dynamics.quantity import expression
from linkwise.dynamics.velocity_space import holonomic, scale
from linkwise.filtering.tangent import Slopes, displaced
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.holding import held
from linkwise.simulation.implicit.equality import constraint_errors
from linkwise.simulation.integrators import INTEGRATORS
from linkwise.simulation.rates import counted, rate_acceleration, rates, velocities
from linkwise.sweeps.factored import factored
from linkwise.sweeps.sparse import times

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

SOFT = 1e-12
"""Of the diagonal of J_c J_c*, so that rows may depend on each other."""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """A state in a formula, and what acts on it.

    Attributes:
        q: Joint positions (nq,).
        v: Joint velocities (nv,).
        extra: Forces at nodes (6 each), then biases of sensors.
        tau: Joint forces (nv,).
    """

    q: Any
    v: Any
    extra: Any
    tau: Any


@dataclass(frozen=True, slots=True)
class Dynamics:
    """How a mechanism moves in a filter.

    Attributes:
        integrator: "euler" or "rk4".
        passive: Whether dampers and springs of drives act.
        nodes: Nodes with unknown forces, which are part of the state.
    """

    integrator: str
    passive: bool
    nodes: tuple[str, ...]

    def stepped(self, at: Writing, x: State, h: Any, slopes: Slopes | None) -> tuple[Any, Any]:
        """q and v after a step h."""
        mech, once = at.mech, self.integrator == "euler"

        def f(t: float, q: Any, u: Any) -> Any:
            v = velocities(mech, q, u)
            here = State(q, v, x.extra, x.tau)
            vdot = self.acceleration(at, here, slopes, h if once else None)
            return rate_acceleration(mech, q, v, vdot)

        step = INTEGRATORS[self.integrator].step
        assert step is not None
        q, u = step(mech, f, 0.0, x.q, rates(mech, x.q, x.v), h)
        v = velocities(mech, q, u)
        return (q, v) if once else closed_again(at, q, v)

    def acceleration(self, at: Writing, x: State, slopes: Slopes | None, h: Any = None) -> Any:
        """v̇ (nv,) of a state; its derivatives are known to `slopes` then.

        Args:
            at: The formula.
            x: The state.
            slopes: Derivatives, or None where they are not wanted.
            h: Length of the step in which loops and couplings hold; None for the instant.
        """
        mech, f = at.mech, self.forces(x)
        closed, pushed = bool(mech.loops or mech.couplings), bool(self.nodes)
        tau = self.acting(at, x)
        if closed and pushed:
            tau = tau + self._jacobian(at, x).T @ f
        given = {"q": x.q, "v": x.v, "tau": tau} | ({"f": f} if pushed and not closed else {})
        if closed and h is not None:
            given["h"] = np.array([h + (1.0 - h.gate(1.0))])  # of no step, any
        # errors that no velocity makes: derivatives run through the recursion
        known = slopes is not None and not path_dependent(mech)
        if not known and not closed:
            name = "forward_dynamics_with_forces" if pushed else "forward_dynamics"
            return at.value(expression(name, frame="world"), nodes=self.nodes, **given)
        if closed:
            formula = (OBEYING if h is None else HELD)[known]
        else:
            formula = PUSHED[ACCELERATION, "world"] if pushed else ACCELERATION
        request = Request(formula, mech, () if closed else self.nodes, itemsize=at.itemsize)
        flat = np.empty(mech.nv * (1 + 3 * mech.nv if known else 1), dtype=object)
        flat[:] = at.replay(traced(request), given)
        if slopes is None or not known:
            return flat
        vdot, by = flat[: mech.nv], flat[mech.nv :].reshape(3, mech.nv, mech.nv)
        self.know(at, x, tau, slopes, vdot, by)
        return vdot

    def forces(self, x: State) -> Any:
        """Forces at nodes (6 each)."""
        return x.extra[: 6 * len(self.nodes)]

    def acting(self, at: Writing, x: State) -> Any:
        """Joint forces (nv,) with those of dampers and springs."""
        return passive(at.mech).added(at, x.tau, x.q, x.v) if self.passive else x.tau

    def know(self, at: Writing, x: State, tau: Any, slopes: Slopes, vdot: Any, by: Any) -> None:
        """Give derivatives of v̇ (nv,) to `slopes`, from those by q, v and tau (3, nv, nv)."""
        along = times(counted(at.mech, x.q).T, slopes.of(x.q)), slopes.of(x.v), slopes.of(tau)
        rows: Any = sum(times(A, d) for A, d in zip(by, along, strict=True))
        if self.nodes and not at.mech.loops and not at.mech.couplings:
            push = times(self._jacobian(at, x).T, slopes.of(self.forces(x)))
            rows = rows + times(by[2], push)
        slopes.know(vdot, rows)

    def _jacobian(self, at: Writing, x: State) -> Any:
        return at.value(expression("jacobian", frame="world"), nodes=self.nodes, q=x.q)


def closed_again(at: Writing, q: Any, v: Any) -> tuple[Any, Any]:
    """q and v after a step towards where loops and couplings hold."""
    mech, measure = at.mech, scale(at.mech)
    if not mech.loops and not mech.couplings:
        return q, v
    J, inverse = _constraints(at, mech, q)
    speeds = J @ (v / measure.columns)
    wide = holonomic(mech)
    if wide is not mech:  # its positions have fewer constraints than its velocities
        nearest = np.empty(mech.nq, dtype=object)
        nearest[:] = at.replay(traced(Request(NEAREST, wide, itemsize=at.itemsize)), {"q": q})
        return nearest, v - measure.columns * (J.T @ (inverse @ speeds[:, None]))[:, 0]
    rows = np.stack([_errors(at, mech, q), speeds], axis=1)
    back = measure.columns[:, None] * (J.T @ (inverse @ rows))
    return displaced(mech, q, -back[:, 0]), v - back[:, 1]


def _constraints(at: Writing, mech: Mechanism, q: Any) -> tuple[Any, Any]:
    """D J_c C, and the inverse of its product with its transpose."""
    measure = scale(mech)
    J = at.value(setting_of(mech).jacobian, nodes=closure_nodes(mech), q=q)
    J = measure.rows[:, None] * J * measure.columns
    return J, factored(J @ J.T + SOFT * measure.length**2 * np.eye(len(J)))


def _errors(at: Writing, mech: Mechanism, q: Any) -> Any:
    """D e (m,)."""
    return np.array(constraint_errors(at, mech, q), dtype=object) * scale(mech).rows


def _nearest(at: Writing) -> Any:
    mech, q = at.mech, at.q
    J, inverse = _constraints(at, mech, q)
    back = J.T @ (inverse @ _errors(at, mech, q)[:, None])
    return displaced(mech, q, -scale(mech).columns * back[:, 0])


NEAREST = Formula(_nearest)
"""A configuration after a step towards where loops and couplings hold, of holonomic hinges. Input:
q (nq,)."""


def _held(at: Writing, derivatives: bool) -> Any:
    """v̇ of a step in which loops hold, and its derivatives by q, v and tau."""
    _ = at.q, at.v
    tau, (h,) = at.read("tau", at.mech.nv), at.read("h", 1)
    rows = held(at, tau, h, None, (), None, derivatives=derivatives)
    if rows.by is None:
        return rows.vdot
    return np.concatenate([rows.vdot, *(part[: at.mech.nv].ravel() for part in rows.by)])


def _obeying(at: Writing, derivatives: bool) -> Any:
    """v̇ at an instant in which loops hold, and its derivatives by q, v and tau."""
    mech, state = at.mech, {"q": at.q, "v": at.v, "tau": at.read("tau", at.mech.nv)}
    motion = closed_expression(mech, "forward_dynamics", plain=False)
    vdot = at.value(motion, nodes=closure_nodes(mech), **state)
    if not derivatives:
        return vdot
    parts = closed_forward(at, state["tau"], "", None, checked=False)  # errors keep loops closed
    return np.concatenate([vdot, *(part.ravel() for part in parts)])


HELD = tuple(Formula(_held, (derivatives,)) for derivatives in (False, True))
"""Without derivatives, and with. Inputs: q (nq,), v, tau (nv,), h (1,)."""

OBEYING = tuple(Formula(_obeying, (derivatives,)) for derivatives in (False, True))
"""Without derivatives, and with. Inputs: q (nq,), v, tau (nv,)."""


def _closed(at: Writing) -> Any:
    return closed_again(at, at.q, at.v)


CLOSED = Formula(_closed, names=("q", "v"))
"""A state after a step towards where loops and couplings hold. Inputs: q (nq,), v (nv,)."""
