"""Derivatives of forward dynamics while loops and couplings hold.

The equations of motion τ = 𝓜 v̇ + C − J_c* λ, 0 = J_c v̇ + γ hold in every state. Their variation
is the same system again, with other right sides:

    𝓜 δv̇ − J_c* δλ = δτ − ∂(𝓜 v̇ + C − J_c* λ) δx
    J_c δv̇         =    − ∂(J_c v̇ + γ) δx                     x = (q, v), with v̇ and λ held

so one factorisation of 𝓜 and one of Ω = J_c 𝓜⁻¹ J_c* serve v̇, λ and all derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algebra import H, bias, lam, mass, phi, vdot
from linkwise.algebra.differential import differentiate
from linkwise.codegen.formula import Formula
from linkwise.codegen.scalar import status as status_code
from linkwise.codegen.scalar.closure_solve import solved
from linkwise.codegen.scalar.pivots import SINGULAR
from linkwise.dynamics.closure import closure_nodes, setting_of
from linkwise.dynamics.closure_rank import batch_of, is_singular_here, known_rank
from linkwise.dynamics.kernels import one_call, usual_rank, written
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import floats
from linkwise.sweeps.factored import factored

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

CONSISTENT = {8: 1e-7, 4: 1e-2}
"""Largest part of the right sides that rows of constraints may leave unsolved."""


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """The equations 𝓜 x − J_c* y = forces, J_c x = rows in one state, factored.

    Attributes:
        at: The formula.
        J_c: The rows of loops and couplings (m, nv).
        inverse: 𝓜⁻¹ with bodies in reverse order.
        answer: 𝓜⁻¹ J_c*.
        omega: J_c 𝓜⁻¹ J_c*.
    """

    at: Writing
    J_c: Any
    inverse: Any
    answer: Any
    omega: Any

    @staticmethod
    def of(at: Writing, M: Any, J_c: Any) -> Held:
        """With checks of the mass matrix."""
        inverse = factored(M[::-1, ::-1])  # from the tips: zeros between branches stay
        for pivot, scale in zip(inverse.pivots, np.diag(M)[::-1], strict=True):
            at.check(status_code.MATRIX, pivot - SINGULAR[at.itemsize] * scale, 0.0, np.inf)
        answer = (inverse @ J_c.T[::-1])[::-1]
        return Held(at, J_c, inverse, answer, J_c @ answer)

    def solved(self, forces: Any, rows: Any, checked: bool = True) -> tuple[Any, Any, Any]:
        """x (nv, c) and y (m, c) for right sides with c columns; how many rows are independent.

        Rows that depend on others have to agree with them; unchecked, they are left out.
        """
        size, mech = self.at.itemsize, self.at.mech
        free = (self.inverse @ forces[::-1])[::-1]
        moved = self.J_c @ free
        missing = rows - moved
        y, independent = solved(self.omega, missing, size, mech.total_mass, counted=True)
        if not checked:
            return free + self.answer @ y, y, independent
        off, terms = missing - self.omega @ y, np.sum(rows * rows) + np.sum(moved * moved)
        slack = CONSISTENT[size] ** 2 * terms - np.sum(off * off)
        self.at.check(status_code.undefined(mech), slack, -1e-30, np.inf)
        return free + self.answer @ y, y, independent


def closed_forward(
    at: Writing,
    tau: Any,
    pushed: str,
    rank: int | None,
    slopes: tuple[Any, Any] | None = None,
    *,
    checked: bool = True,
) -> Any:
    """∂v̇/∂q, ∂v̇/∂v and ∂v̇/∂τ of a mechanism with loops or couplings: see `closed_moving`."""
    state = {"q": at.q, "v": at.v}
    return closed_moving(at, tau, pushed, rank, state, slopes, checked=checked)[1:]


def closed_moving(
    at: Writing,
    tau: Any,
    pushed: str,
    rank: int | None,
    state: Mapping[str, Any],
    slopes: tuple[Any, Any] | None = None,
    parameters: tuple[str, ...] = (),
    *,
    checked: bool = True,
) -> Any:
    """v̇ of a mechanism with loops or couplings, with its derivatives by q, v and τ.

    Args:
        tau: Joint forces (nv,).
        pushed: Axes of forces at the nodes of the formula; "" without forces.
        rank: How many rows have to be independent.
        state: "q" and "v".
        slopes: How `tau` changes with q and v (nv, nv) each; default: not.
        parameters: Numbers of the mechanism that are inputs.
        checked: Whether rows that depend on others have to do so next to this state, too. If not,
            derivatives hold along changes of the state that keep the loops closed.
    """
    mech, nodes = at.mech, (*closure_nodes(at.mech), *at.nodes)
    closed = setting_of(mech, pushed)

    def value(*exprs: Any, **given: Any) -> Any:
        depending = at.parameters_of(*exprs, among=parameters, nodes=nodes)
        return at.value(*exprs, nodes=nodes, parameters=depending, **given)

    M, c, J_c, gamma = value(mass, bias, closed.jacobian, closed.bias, **state)
    held = Held.of(at, M, J_c)
    force, given = tau - c, dict[str, Any]()
    loads = mass @ vdot + bias - closed.jacobian.T @ lam
    if closed.push is not None:
        push = H @ phi @ closed.push
        none = np.zeros(6 * len(closure_nodes(mech)))
        given["f"] = np.concatenate([none, at.read("f", 6 * len(at.nodes))])
        force, loads = force + at.value(push, nodes=nodes, q=state["q"], **given), loads - push
    motion, pull, independent = held.solved(force[:, None], -gamma[:, None], checked)
    if rank is not None:
        at.check(status_code.singular(mech), independent, rank - 0.5, rank + 0.5)
    rows = closed.jacobian @ vdot + closed.bias
    parts = [differentiate(y, x) for y in (loads, rows) for x in ("q", "v")]
    given |= {**state, "vdot": motion[:, 0], "lam": pull[:, 0]}
    by_q, by_v, rows_q, rows_v = value(*parts, **given)
    nv = mech.nv
    if slopes is not None:
        by_q, by_v = by_q - slopes[0], by_v - slopes[1]
    right = np.concatenate([-by_q, -by_v, np.eye(nv)], axis=1)
    rates = np.concatenate([-rows_q, -rows_v, np.zeros((len(J_c), nv))], axis=1)
    change, _, _ = held.solved(right, rates, checked)
    return motion[:, 0], change[:, :nv], change[:, nv : 2 * nv], change[:, 2 * nv :]


@cache
def _ranked(formula: Formula, rank: int | None) -> Formula:
    """The formula for states in which this many rows are independent."""
    pushed = formula.options or ("",)
    return Formula(formula.write, (*pushed, rank), formula.names)


def held_call(mech: Mechanism, formula: Formula, record: Any) -> Callable[..., Any]:
    """The bare call of a formula for one state of a closed chain; None where `held` is needed."""

    def call(*arrays: Any) -> Any:
        rank = usual_rank(mech).rank
        parts = None if rank is None else one_call(mech, _ranked(formula, rank))(*arrays)
        return None if parts is None else record(*parts)

    return call


def held(
    mech: Mechanism,
    formula: Formula,
    arrays: Mapping[str, Any],
    options: Mapping[str, Any],
    nodes: tuple[str, ...] = (),
) -> dict[str, Any]:
    """The results of a formula whose last option is the rank, with loops and couplings held.

    States in which loops are singular have no derivatives: one alone raises, those of a batch are
    NaN and have a code.
    """
    rank, lead = known_rank(mech, arrays["q"]), batch_of(arrays)
    if rank is None or lead is None:
        return written(mech, _ranked(formula, None), nodes)(**arrays)  # says what does not fit
    status = options.get("status")
    codes = np.zeros(lead, np.int32) if status is None else status
    kernel = written(mech, _ranked(formula, rank), nodes)
    parts = kernel(**arrays, **{**options, "status": codes})
    if (codes == status_code.singular(mech)).any():
        q = np.broadcast_to(floats(arrays["q"], "q"), (*lead, mech.nq))
        other = np.zeros(lead, np.bool_)  # states in which another rank is the usual one
        for i in np.ndindex(*lead):
            if codes[i] == status_code.singular(mech):
                other[i] = not is_singular_here(mech, q[i])
        if other.any():
            again = np.zeros(lead, np.int32)
            plain = written(mech, _ranked(formula, None), nodes)(**arrays, status=again)
            for name, x in parts.items():
                x[other] = plain[name][other]
            codes[other] = again[other]
    if status is None and codes.any():
        if lead:
            kernel.warn(codes)
        elif codes != status_code.singular(mech):
            kernel(**arrays)  # raises
        else:
            raise status_code.error(int(codes), mech)
    return parts
