"""One step of time in a formula, with its derivatives by the state.

The step is that of `lw.rollout`: an explicit integrator in rates, dampers and springs of drives
included. Its derivative runs along the integrator's own code; where that asks for v̇, those of
forward dynamics are taken (`dynamics/derivatives.py`) instead of running through its recursion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.codegen.request import Request
from linkwise.codegen.stages import traced
from linkwise.dynamics.derivative_formula import ACCELERATION, PUSHED
from linkwise.dynamics.passive import passive
from linkwise.dynamics.quantity import expression
from linkwise.filtering.tangent import Slopes
from linkwise.simulation.integrators import INTEGRATORS
from linkwise.simulation.rates import counted, rate_acceleration, rates, velocities
from linkwise.sweeps.sparse import times

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


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
        mech = at.mech

        def f(t: float, q: Any, u: Any) -> Any:
            v = velocities(mech, q, u)
            here = State(q, v, x.extra, x.tau)
            return rate_acceleration(mech, q, v, self.acceleration(at, here, slopes))

        step = INTEGRATORS[self.integrator].step
        assert step is not None
        q, u = step(mech, f, 0.0, x.q, rates(mech, x.q, x.v), h)
        return q, velocities(mech, q, u)

    def acceleration(self, at: Writing, x: State, slopes: Slopes | None) -> Any:
        """v̇ (nv,) of a state; its derivatives are known to `slopes` then."""
        mech, f = at.mech, x.extra[: 6 * len(self.nodes)]
        tau = passive(mech).added(at, x.tau, x.q, x.v) if self.passive else x.tau
        given = {"q": x.q, "v": x.v, "tau": tau} | ({"f": f} if self.nodes else {})
        if slopes is None:
            name = "forward_dynamics_with_forces" if self.nodes else "forward_dynamics"
            return at.value(expression(name, frame="world"), nodes=self.nodes, **given)
        formula = PUSHED[ACCELERATION, "world"] if self.nodes else ACCELERATION
        request = Request(formula, mech, self.nodes, itemsize=at.itemsize)
        flat = np.empty(mech.nv * (1 + 3 * mech.nv), dtype=object)
        flat[:] = at.replay(traced(request), given)
        vdot, by = flat[: mech.nv], flat[mech.nv :].reshape(3, mech.nv, mech.nv)
        along = times(counted(mech, x.q).T, slopes.of(x.q)), slopes.of(x.v), slopes.of(tau)
        rows: Any = sum(times(A, d) for A, d in zip(by, along, strict=True))
        if self.nodes:
            J = at.value(expression("jacobian", frame="world"), nodes=self.nodes, q=x.q)
            rows = rows + times(by[2], times(J.T, slopes.of(f)))
        slopes.know(vdot, rows)
        return vdot
