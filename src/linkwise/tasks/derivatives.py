"""Derivatives of the equation of motion of tasks: how Λ, J̄, μ and p change with the state.

𝓜 J̄ = J_t* Λ and J_t J̄ = I hold in every state. Their variation is

    δΛ = J̄* δ𝓜 J̄ − Λ δJ_t J̄ − (Λ δJ_t J̄)*
    δJ̄ = 𝓜⁻¹ (δJ_t* Λ + J_t* δΛ − δ𝓜 J̄)

and that of μ = J̄* C_v − Λ γ and p = J̄* g follows. δ𝓜, δJ_t, δC and δγ come from the scalar graph.
`lw.differentiate` of the expressions gives the same numbers; counted in operations this is cheaper,
since all of them share δ𝓜 and δJ_t: 38,399 against 45,734 for the graph of the results, for the
pose of the hand of the seven-axis arm.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from linkwise.algebra import bias, mass
from linkwise.brief import brief
from linkwise.codegen.formula import Formula
from linkwise.codegen.scalar import status as status_code
from linkwise.codegen.scalar.pivots import SINGULAR
from linkwise.codegen.sensitivity import jvp, slopes
from linkwise.dynamics.directions import STRAIGHT, along_all
from linkwise.dynamics.kernels import (
    BatchOptions,
    Loops,
    RecordOptions,
    recorded,
    require_open,
    written,
)
from linkwise.errors import SingularTaskError
from linkwise.model.closure import closure_nodes
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.sweeps.factored import Factored, factored
from linkwise.tasks.space import settled
from linkwise.tasks.task import Tasks
from linkwise.tasks.task_stack import TaskStack, task_stack

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


@brief
class TaskDynamicsDerivatives(NamedTuple):
    """How Λ, J̄, μ and p of tasks with m rows change; the last index is the variable.

    Derivatives by q are in the tangent space of `mech.integrate`. All have the batch in front.

    Attributes:
        inertia_q: ∂Λ/∂q (m, m, nv).
        consistent_inverse_q: ∂J̄/∂q (nv, m, nv).
        coriolis_q: ∂μ/∂q (m, nv).
        coriolis_v: ∂μ/∂v (m, nv).
        gravity_q: ∂p/∂q (m, nv).
    """

    inertia_q: Array
    consistent_inverse_q: Array
    coriolis_q: Array
    coriolis_v: Array
    gravity_q: Array


def task_dynamics_derivatives(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tasks: Tasks,
    *,
    loops: Loops = "closed",
    **options: Unpack[RecordOptions],
) -> TaskDynamicsDerivatives:
    """Derivatives of Λ ẍ + μ + p = F: of the inertia of tasks, its inverse and its bias forces.

    Expression:
        `lw.differentiate((J @ mass.inv @ J.T).inv @ x, "q")` for each unit vector x, and so on:
        δΛ = J̄* δ𝓜 J̄ − Λ δJ_t J̄ − (Λ δJ_t J̄)*,   δJ̄ = 𝓜⁻¹ (δJ_t* Λ + J_t* δΛ − δ𝓜 J̄)
        δμ = δ(J̄* C_v − Λ γ),   δp = δ(J̄* g)
    Source: 003 (17), (22) to (25), varied.

    Args:
        loops: "open" differentiates the tree of a mechanism that has loops or couplings; with
            "closed" such a mechanism is refused.
        out: A record of five arrays, such as an earlier result, that receives the derivatives.

    Returns:
        The five arrays, from one kernel.

    Raises:
        SingularTaskError: The tasks lose a direction in this state, so that there are no
            derivatives. In a batch they are NaN instead, reported by a warning or by `status`.
    """
    stack = task_stack(mech, tasks)
    require_open(mech, loops, "lw.tasks.task_dynamics_derivatives")
    order = None if stack.order is None else tuple(stack.order.tolist())
    straight = mech.nv <= STRAIGHT
    kernel = _kernel(stack, _of_all(order) if straight else _along(order))

    def computed(some: dict[str, Any]) -> dict[str, Array]:
        if straight:
            return kernel(q, v, **some)
        batch = BatchOptions(status=some.get("status"), threads=some.get("threads"))
        flat = along_all(kernel, {"q": q, "v": v}, mech.nv, batch, kernel.warn)
        return _parted(flat, stack.size)

    return TaskDynamicsDerivatives(**recorded(computed, options))


def _kernel(stack: TaskStack, formula: Formula) -> Any:
    try:
        return written(stack.mech, formula, closure_nodes(stack.mech))
    except ZeroDivisionError:
        raise SingularTaskError(
            f"the tasks {', '.join(task.name for task in stack.tasks)} lose a direction of "
            f"{stack.mech.name!r} in every state, so that Λ has no derivatives; "
            "lw.tasks.task_space shows which directions are lost."
        ) from None


def _parted(flat: Array, m: int) -> dict[str, Array]:
    """Derivatives of Λ, J̄, μ and p, from those along each velocity (..., q or v, nv, results)."""
    nv = flat.shape[-2]
    shapes = ((m, m), (nv, m), (m,), (m,))
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    by = [
        [
            np.moveaxis(x.reshape(*x.shape[:-1], *shape), -1 - len(shape), -1)
            for x, shape in zip(np.split(flat[..., i, :, :], ends, axis=-1), shapes, strict=True)
        ]
        for i in (0, 1)
    ]
    parts = (*by[0][:3], by[1][2], by[0][3])
    return dict(zip(TaskDynamicsDerivatives._fields, parts, strict=True))


# ------------------------------------------------------------------------------------- kernels


@cache
def _of_all(order: tuple[int, ...] | None) -> Formula:
    """All derivatives."""
    return Formula(_derivatives, (order,), TaskDynamicsDerivatives._fields)


@cache
def _along(order: tuple[int, ...] | None) -> Formula:
    """The derivative along a direction."""
    return jvp(Formula(_written, (order,), ("inertia", "inverse", "coriolis", "gravity")), "q", "v")


@dataclass(frozen=True, slots=True)
class _Terms:
    """What the equation of motion of tasks is made of, as graph nodes."""

    M: Any
    J: Any
    rate: Any  # γ
    coriolis: Any  # C_v
    gravity: Any  # g
    inverse: Factored  # 𝓜⁻¹, from the tips: zeros between branches stay
    inertia: Any  # Λ
    J_bar: Any


def _terms(at: Writing, order: tuple[int, ...] | None) -> _Terms:
    s = settled(at)
    _ = at.q, at.v  # before other inputs
    M, J, rate, force = at.value(mass, s.jacobian, s.bias, bias)
    if order is not None:
        J, rate = J[list(order)], rate[list(order)]
    gravity = at.value(bias, v=np.zeros(at.mech.nv))
    inverse = _checked(at, M[::-1, ::-1])
    response = (inverse @ J.T[::-1])[::-1]
    inertia = _checked(at, J @ response).matrix
    return _Terms(M, J, rate, force - gravity, gravity, inverse, inertia, response @ inertia)


def _checked(at: Writing, matrix: Any) -> Factored:
    """The inverse of a positive definite matrix; other states get a code."""
    inverse = factored(matrix)
    for i, pivot in enumerate(inverse.pivots):
        at.check(status_code.MATRIX, pivot - SINGULAR[at.itemsize] * matrix[i, i], 0.0, np.inf)
    return inverse


def _written(at: Writing, order: tuple[int, ...] | None) -> Any:
    """Λ, J̄, μ and p."""
    x = _terms(at, order)
    mu = x.J_bar.T @ x.coriolis - x.inertia @ x.rate
    return x.inertia, x.J_bar, mu, x.J_bar.T @ x.gravity


def _derivatives(at: Writing, order: tuple[int, ...] | None) -> Any:
    x = _terms(at, order)
    by_q = slopes(at, [x.M, x.J, x.rate, x.coriolis, x.gravity], "q")
    rate_v, coriolis_v = slopes(at, [x.rate, x.coriolis], "v")
    parts = list[Any]()
    for k in range(at.mech.nv):
        M_k, J_k, rate_k, coriolis_k, gravity_k = (y[..., k] for y in by_q)
        turned, moved = x.inertia @ (J_k @ x.J_bar), M_k @ x.J_bar
        inertia_k = x.J_bar.T @ moved - turned - turned.T
        right = J_k.T @ x.inertia + x.J.T @ inertia_k - moved
        J_bar_k = (x.inverse @ right[::-1])[::-1]
        mu_k = J_bar_k.T @ x.coriolis + x.J_bar.T @ coriolis_k
        mu_k = mu_k - inertia_k @ x.rate - x.inertia @ rate_k
        p_k = J_bar_k.T @ x.gravity + x.J_bar.T @ gravity_k
        parts.append((inertia_k, J_bar_k, mu_k, p_k))
    inertia_q, J_bar_q, mu_q, p_q = (np.stack(y, axis=-1) for y in zip(*parts, strict=True))
    return inertia_q, J_bar_q, mu_q, x.J_bar.T @ coriolis_v - x.inertia @ rate_v, p_q
