"""One knot of a trajectory as graphs: its expansion, its Riccati step, and its step in time.

With z = (δx, δu), a knot of min Σ l_k(x_k, u_k), x_{k+1} = f(x_k, u_k), is expanded to

    δx' = F δx + G W z + g,   l ≈ l + l_z* z + ½ z* L z,   g = f(x, u) ⊖ x'   (1)

where g is the gap that multiple shooting leaves. W is dense; F and G are sparse: with semi-implicit
Euler δv' = W z and δq' = δq + h δv'. Residuals r with weights w give l_z = r_z* w r, L = r_z* w r_z
(Gauss-Newton). From P and p of the value function at x' follow, backwards in time,

    p⁺ = p + P g,   S = G* P G,   C = F* P G
    Q_z = l_z + W* G* p⁺ + F* p⁺,   Q = L + F* P F + C W + W* C* + W* S W   (2)
    (Q_uu + ρ 1) k = −Q_u,   (Q_uu + ρ 1) K = −Q_ux   (3)
    P = Q_xx + Q_ux* K,   p = Q_x + Q_ux* k

the Riccati recursion of `lw.lqr` with time in place of the tree. Where each joint is driven and u
has no bounds, the velocities y = δv' can be chosen instead of δu, which is what they take, δu = D z
with z = (δx, y). D has the derivatives of inverse dynamics, and W is not needed: with R = L_uu

    δx' = F δx + G y + g,   Q = L_xx + (F G)* P (F G) + D* (R + ρ 1) D
    Q_yy k_y = −Q_y,   Q_yy K_y = −Q_yx,   k = D_y k_y,   K = D_x + D_y K_y   (5)
    P = Q_xx + Q_xy K_y,   p = Q_x + Q_xy k_y

gives the same k, K, P and p as (2) and (3). With bounds on u, (3) is a
quadratic programme: inputs at a bound that pushes outward keep their k and have no gain. The step
forward in time, with a share α of the way, is

    u = u_k + α k + K (x ⊖ x_k),   x' = f(x, u) ⊕ (α − 1) g   (4)

so that a full step closes all gaps (multiple shooting, as in FDDP). The last knot has no successor
that counts: P = 0 and p = 0 there, no weight on u, and g = 0 by the input "joined".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.control.residual import Term, rows_of
from linkwise.control.transition import balanced, stepped, transition
from linkwise.dynamics.configuration import missing, moved, places
from linkwise.dynamics.passive import Passive, passive as dampers_and_springs
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.choice import maximum
from linkwise.sweeps.sparse import is_zero, times

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


@dataclass(frozen=True, slots=True)
class Structure:
    """Everything the kernels of a problem depend on besides the mechanism.

    Attributes:
        terms: Rows of costs and constraints.
        driven: Places in v of the joint forces u.
        integrator: Name of the integrator.
        passive: Whether dampers and springs act.
        boxed: Whether u has bounds.
        parameters: Numbers of the mechanism that are inputs.
    """

    terms: tuple[Term, ...]
    driven: tuple[int, ...]
    integrator: str
    passive: bool
    boxed: bool
    parameters: tuple[str, ...]

    @property
    def rows(self) -> int:
        """Rows of all terms."""
        return sum(term.rows for term in self.terms)

    @property
    def bounds(self) -> int:
        """Rows of constraints, which come last."""
        return sum(term.rows for term in self.terms if term.bounded)


@dataclass(frozen=True, slots=True)
class Layout:
    """An array whose numbers are constants or entries of a vector."""

    shape: tuple[int, ...]
    entries: tuple[float | int, ...]  # floats are constants

    def of(self, vector: Any) -> Any:
        """The array."""
        flat = np.empty(len(self.entries), dtype=object)
        flat[:] = [x if isinstance(x, float) else vector[x] for x in self.entries]
        return flat.reshape(self.shape)


def chooses_velocities(mech: Mechanism, s: Structure) -> bool:
    """Whether the Riccati step is (5): each joint is driven, has a plain hinge, and no bound on u.

    Costs of u stand alone then, one for each joint force.
    """
    plain = not (mech.loops or mech.couplings or places(mech)[1])
    driven = s.driven == tuple(range(mech.nv))
    return s.integrator == "euler" and plain and driven and not s.boxed


# -------------------------------------------------------------------------------------- formulas


def _forces(at: Writing, s: Structure) -> tuple[Any, Any]:
    """u (nu,), and the joint forces (nv,)."""
    u = at.read("u", len(s.driven))
    tau = np.full(at.mech.nv, 0.0, dtype=object)
    tau[list(s.driven)] = u
    return u, tau


def _expanded(at: Writing, s: Structure) -> tuple[Any, ...]:
    """F, G, W (or D), the gap g, l_z, l_zz, l and the largest violation of a knot, (1)."""
    mech, (u, tau) = at.mech, _forces(at, s)
    (h,) = at.read("h", 1)
    given, held = (_passive(mech, s), s.parameters), None
    if chooses_velocities(mech, s):
        q, v, F, G, W = balanced(at, tau, h, *given)
    else:
        q, v, F, G, W, held = transition(at, s.integrator, tau, h, *given)
        W = np.concatenate([W[:, : 2 * mech.nv], W[:, 2 * mech.nv :][:, list(s.driven)]], axis=1)
    after = at.read("q_next", mech.nq), at.read("v_next", mech.nv)
    gap = at.read("joined", 1) * np.concatenate([missing(mech, after[0], q), v - after[1]])
    pull = None
    if held is not None:
        assert held.by is not None
        change = [x[mech.nv :] for x in held.by]
        pull = held.force, [*change[:2], change[2][:, list(s.driven)]]
    r, by, off = rows_of(at, s.terms, u, derivatives=True, pull=pull)
    weight = at.read("weight", s.rows)
    by_z = np.concatenate(by, axis=1)
    weighted = weight[:, None] * by_z
    l_z = times(weighted.T, r[:, None])[:, 0]
    l_zz = symmetric(by_z.T, weighted)
    cost = 0.5 * sum((w * x * x for w, x in zip(weight, r, strict=True)), 0.0)
    worst: Any = 0.0
    for w, x in zip(weight[s.rows - len(off) :], off, strict=True):
        worst = maximum(worst, w.gate(x))  # rows that do not hold have no weight
    return F, G, W, gap, l_z, l_zz, np.array([cost, worst], dtype=object)


def knot(at: Writing, s: Structure) -> tuple[Any, Any, tuple[Layout, ...]]:
    """W (or D) (k, n + m), all other numbers of an expansion, and where each of these is."""
    arrays = _expanded(at, s)
    W, rest = arrays[2], tuple(x for i, x in enumerate(arrays) if i != 2)
    values, layout = _layout(at, rest)
    return W, values, (*layout[:2], Layout(W.shape, ()), *layout[2:])


def _layout(at: Writing, arrays: tuple[Any, ...]) -> tuple[Any, tuple[Layout, ...]]:
    places, layouts = dict[int, int](), list[Layout]()
    for array in arrays:
        entries = list[float | int]()
        for x in np.asarray(array, dtype=object).ravel():
            node = at.scalar(x).node
            if at.graph.op[node] == "const":
                entries.append(float(at.graph.value[node]))
            else:
                entries.append(places.setdefault(node, len(places)))
        layouts.append(Layout(np.shape(array), tuple(entries)))
    return at.scalars(list(places)), tuple(layouts)


def step_of(at: Writing, s: Structure) -> tuple[Any, Any, Any, Any]:
    """u, q and v after the step of a knot, and λ of loops, couplings and contacts (m,)."""
    u, tau = _forces(at, s)
    (h,) = at.read("h", 1)
    return u, *stepped(at, s.integrator, tau, h, _passive(at.mech, s), s.parameters)


def forces_of_rows(at: Writing, s: Structure) -> Any:
    """λ alone."""
    return step_of(at, s)[3]


def forward(at: Writing, s: Structure) -> tuple[Any, ...]:
    """u, the next state, the cost of this knot, and (P g)* (x ⊖ x_k): (4)."""
    mech, m = at.mech, len(s.driven)
    n, (h,), (alpha,) = 2 * mech.nv, at.read("h", 1), at.read("alpha", 1)
    old = at.read("q_old", mech.nq), at.read("v_old", mech.nv)
    away = np.concatenate([missing(mech, old[0], at.q), at.v - old[1]])
    u = at.read("u_old", m) + alpha * at.read("k", m) + at.read("K", m * n).reshape(m, n) @ away
    if s.boxed:
        low, high = at.read("u_low", m), at.read("u_high", m)
        u = np.array([_clipped(*x) for x in zip(u, low, high, strict=True)], dtype=object)
    tau = np.full(mech.nv, 0.0, dtype=object)
    tau[list(s.driven)] = u
    q, v, pull = stepped(at, s.integrator, tau, h, _passive(mech, s), s.parameters)
    rest = (alpha - 1.0) * at.read("gap", n)
    q, v = moved(mech, q, rest[: mech.nv]), v + rest[mech.nv :]
    r, _, _ = rows_of(at, s.terms, u, derivatives=False, pull=(pull, None))
    weight = at.read("weight", s.rows)
    cost = 0.5 * sum((w * x * x for w, x in zip(weight, r, strict=True)), 0.0)
    change = at.read("pulled", n) @ away
    return u, q, v, np.array([cost], dtype=object), np.array([change], dtype=object)


def _clipped(x: Any, low: Any, high: Any) -> Any:
    over, under = x - high, low - x
    return x - over.gate(over) + under.gate(under)


def _passive(mech: Mechanism, s: Structure) -> Passive | None:
    forces = dampers_and_springs(mech)
    return forces if s.passive and forces.any else None


# -------------------------------------------------------------------------------------- matrices


def symmetric(a: Any, b: Any) -> Any:
    """a b, of which only the upper half is computed: it is symmetric."""
    n = len(a)
    out = np.full((n, n), 0.0, dtype=object)
    rows = [[(j, x) for j, x in enumerate(row) if not is_zero(x)] for row in a.tolist()]
    columns = [{j: x for j, x in enumerate(c) if not is_zero(x)} for c in b.T.tolist()]
    for i in range(n):
        for k in range(i, n):
            total: Any = 0.0
            for j, x in rows[i]:
                if j in columns[k]:
                    total = x * columns[k][j] + total
            out[i, k] = out[k, i] = total
    return out


def sum_products(a: Any, x: Any) -> Any:
    """a x, of which no entry is a constant."""
    return np.array([sum((p * q for p, q in zip(row, x, strict=True)), 0.0) for row in a])
