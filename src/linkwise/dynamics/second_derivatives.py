"""Second derivatives of inverse and forward dynamics.

The first derivatives are expressions, derived and swept as all others; their scalar graph is
differentiated again along each velocity. Counted in operations that is cheaper than differentiating
the expressions again, since the entries of one direction are ones and zeros: 22,439 against 45,407
for inverse dynamics of the seven-axis arm. Beyond `STRAIGHT` degrees of freedom the code for all
directions would be long; there the direction is an input, and a state a batch of all directions.

Forward dynamics follows from inverse dynamics, τ(q, v, v̇(q, v, τ)) = τ differentiated by x and y:

    𝓜 ∂²v̇/∂x∂y = −(∂²τ/∂x∂y + ∂𝓜/∂x ∂v̇/∂y + ∂𝓜/∂y ∂v̇/∂x)

With loops and couplings held, the graph of the first derivatives (`closed_derivatives.py`) is
differentiated along each velocity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, cast

import numpy as np

from linkwise.codegen.formula import Formula
from linkwise.codegen.sensitivity import jvp, slopes
from linkwise.dynamics.closed_derivatives import held
from linkwise.dynamics.closure import closed_kernel
from linkwise.dynamics.constrained import obeyed
from linkwise.dynamics.derivatives import (
    FORWARD_DERIVATIVES,
    INVERSE_DERIVATIVES,
    forward_dynamics_derivatives,
)
from linkwise.dynamics.directions import STRAIGHT, along_all
from linkwise.dynamics.forward_dynamics import forward_dynamics
from linkwise.dynamics.kernels import (
    BatchOptions,
    Loops,
    check_mechanism,
    is_closed,
    tree_of,
    written,
)
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


class InverseDynamicsSecondDerivatives(NamedTuple):
    """How the derivatives of inverse dynamics change: [..., i, j, k] is of τ_i.

    The last index is the variable that comes second. Derivatives by q are in the tangent space of
    `mech.integrate` at the state itself, so that `qq` is symmetric in j and k for hinges with one
    degree of freedom, and differs by a commutator for velocities in axes that turn.

    Attributes:
        qq: ∂(∂τ_i/∂q_j)/∂q_k (nv, nv, nv) or (batch, nv, nv, nv).
        vq: ∂(∂τ_i/∂v_j)/∂q_k.
        vv: ∂(∂τ_i/∂v_j)/∂v_k, symmetric in j and k.
        vdotq: ∂𝓜_ij/∂q_k.
    """

    qq: Array
    vq: Array
    vv: Array
    vdotq: Array


class ForwardDynamicsSecondDerivatives(NamedTuple):
    """How the derivatives of forward dynamics change: [..., i, j, k] is of v̇_i.

    Attributes:
        qq: ∂(∂v̇_i/∂q_j)/∂q_k (nv, nv, nv) or (batch, nv, nv, nv), as for inverse dynamics.
        vq: ∂(∂v̇_i/∂v_j)/∂q_k.
        vv: ∂(∂v̇_i/∂v_j)/∂v_k, symmetric in j and k.
        tauq: ∂(𝓜⁻¹)_ij/∂q_k.
    """

    qq: Array
    vq: Array
    vv: Array
    tauq: Array


def inverse_dynamics_second_derivatives(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    vdot: ArrayLike,
    *,
    loops: Loops = "closed",
    **options: Unpack[BatchOptions],
) -> InverseDynamicsSecondDerivatives:
    """Second derivatives of joint forces by positions, velocities and accelerations.

    Those that are missing are zero, or follow: τ is linear in v̇, and ∂²τ/∂q∂v has the entries of
    `vq` with the last two indices exchanged.

    With loops or couplings these are the derivatives of the joint forces with which loops carry no
    load, as in `lw.inverse_dynamics_derivatives`.

    Raises:
        ClosureError: v̇ breaks a loop or coupling, which is named. In a batch its numbers are NaN
            instead, reported by a warning or by `status`.
    """
    check_mechanism(mech)
    arrays = {"q": q, "v": v, "vdot": vdot}

    def of_tree(**some: Any) -> dict[str, Array]:
        parts = _of_inverse(tree_of(mech), arrays, cast("BatchOptions", some))
        return dict(zip(InverseDynamicsSecondDerivatives._fields, parts, strict=True))

    if is_closed(mech, loops):
        return InverseDynamicsSecondDerivatives(**obeyed(mech, q, v, vdot, of_tree, options))
    return InverseDynamicsSecondDerivatives(**of_tree(**options))


def forward_dynamics_second_derivatives(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    loops: Loops = "closed",
    **options: Unpack[BatchOptions],
) -> ForwardDynamicsSecondDerivatives:
    """Second derivatives of joint accelerations by positions, velocities and joint forces.

    Those that are missing are zero, or follow: v̇ is linear in τ, and ∂²v̇/∂q∂v has the entries of
    `vq` with the last two indices exchanged.

    Raises:
        ClosureError: Loops are singular in this state, or their rows depend on each other only
            while they are closed: there are no derivatives. In a batch they are NaN instead,
            reported by a warning or by `status`.
    """
    check_mechanism(mech)
    if is_closed(mech, loops):
        return _of_closed(mech, {"q": q, "v": v, "tau": tau}, options)
    tree = tree_of(mech)
    first = forward_dynamics_derivatives(tree, q, v, tau, **options)
    codes = np.zeros(first.q.shape[:-2], np.int32)  # what goes wrong has been reported
    vdot = forward_dynamics(tree, q, v, tau, status=codes)
    qq, vq, vv, mass_q = _of_inverse(tree, {"q": q, "v": v, "vdot": vdot}, {"status": codes})
    along = np.swapaxes(mass_q, -1, -2)  # ∂𝓜_il/∂q_k as [i, k, l]
    by_q, by_v, by_tau = (along @ x[..., None, :, :] for x in first)
    parts = (qq + by_q + np.swapaxes(by_q, -1, -2), vq + np.swapaxes(by_v, -1, -2))
    parts = (*parts, vv, np.swapaxes(by_tau, -1, -2))
    return ForwardDynamicsSecondDerivatives(*(_product(-first.tau, x) for x in parts))


def _of_closed(
    mech: Mechanism, arrays: dict[str, ArrayLike], options: BatchOptions
) -> ForwardDynamicsSecondDerivatives:
    """Those of forward dynamics with loops and couplings held."""
    names = (*arrays, "dq", "dv")

    def along(*rows: Any, **some: Any) -> Array:
        return held(mech, ALONG_CLOSED, dict(zip(names, rows, strict=True)), some)["change"]

    warn = closed_kernel(mech, "constraint_jacobian").warn
    by_q, by_v = _by_direction(along_all(along, arrays, mech.nv, options, warn), mech.nv)
    return ForwardDynamicsSecondDerivatives(by_q[0], by_q[1], by_v[1], by_q[2])


def _by_direction(flat: Array, nv: int) -> tuple[Array, Array]:
    """By q and by v: (of q, v or the third, ..., i, j, k), from (..., q or v, k, results)."""
    every = np.moveaxis(flat.reshape(*flat.shape[:-1], 3, nv, nv), -4, -1)
    by_q, by_v = (np.moveaxis(every[..., x, :, :, :, :], -4, 0) for x in (0, 1))
    return by_q, by_v


def _product(A: Array, x: Array) -> Array:
    """A x for tensors x (..., nv, nv, nv), over the first of their indices."""
    flat = x.reshape(*x.shape[:-2], -1)
    return (A @ flat).reshape(x.shape)


def _of_inverse(
    tree: Mechanism, arrays: dict[str, ArrayLike], options: BatchOptions
) -> tuple[Array, Array, Array, Array]:
    """The four tensors of inverse dynamics (..., nv, nv, nv)."""
    if tree.nv <= STRAIGHT:
        parts = written(tree, SECOND)(*arrays.values(), **options)
        return parts["qq"], parts["vq"], parts["vv"], parts["vdotq"]
    kernel = written(tree, ALONG)
    flat = along_all(kernel, arrays, tree.nv, options, kernel.warn)
    by_q, by_v = _by_direction(flat, tree.nv)
    return by_q[0], by_q[1], by_v[1], by_q[2]


# ------------------------------------------------------------------------------------- kernels


def _second(at: Writing) -> Any:
    by_q, by_v, mass = INVERSE_DERIVATIVES.write(at)
    qq, vq, mass_q = slopes(at, [by_q, by_v, mass], "q")
    (vv,) = slopes(at, [by_v], "v")
    return qq, vq, vv, mass_q


SECOND = Formula(_second, names=("qq", "vq", "vv", "vdotq"))
ALONG = jvp(INVERSE_DERIVATIVES, "q", "v")


def _along_closed(at: Writing, pushed: str = "", rank: int | None = None) -> Any:
    """How the derivatives of forward dynamics change along a direction, with loops held."""
    first = Formula(FORWARD_DERIVATIVES.write, (pushed, rank), FORWARD_DERIVATIVES.names)
    change = jvp(first, "q", "v")
    return (change.write(at, *change.options),)


ALONG_CLOSED = Formula(_along_closed, names=("change",))
