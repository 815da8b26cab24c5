"""Derivatives of Jacobians and of the momentum of the whole mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack

from linkwise.brief import brief
from linkwise.codegen.formula import Formula
from linkwise.codegen.sensitivity import slopes
from linkwise.dynamics.kernels import Nodes, Options, RecordOptions, recorded, written
from linkwise.dynamics.kinematics import jacobian_seen
from linkwise.dynamics.momentum import at_roots
from linkwise.dynamics.quantity import expression
from linkwise.dynamics.viewpoint import viewed
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


@brief
class MomentumDerivatives(NamedTuple):
    """How the momentum h = A v and its rate ḣ = A v̇ + Ȧ v change, in the axes of the world.

    Attributes:
        q: ∂h/∂q (6, nv) or (batch, 6, nv), in the tangent space of `mech.integrate`.
        v: ∂h/∂v, the matrix A, which is also ∂ḣ/∂v̇.
        rate_q: ∂ḣ/∂q.
        rate_v: ∂ḣ/∂v.
    """

    q: Array
    v: Array
    rate_q: Array
    rate_v: Array


def jacobian_derivative(
    mech: Mechanism,
    q: ArrayLike,
    node: Nodes,
    *,
    frame: str = "node",
    about: str | None = None,
    **options: Unpack[Options],
) -> Array:
    """How the Jacobian of nodes changes with q: the second derivative of their poses.

    Expression:
        `lw.differentiate(J @ u, "q")` for each unit vector u:   B* φ* [φ̃* H* u ×] H*

    Counted in operations, differentiating the scalar graph of J is cheaper, and that is what runs.

    Args:
        frame: Axes, as in `lw.jacobian`.
        about: The point whose linear velocity is given, as in `lw.jacobian`.

    Returns:
        (6 k, nv, nv) for k nodes, or (batch, 6 k, nv, nv): [i, j, m] is ∂J_ij/∂q_m, in the tangent
        space of `mech.integrate`. In the axes of the nodes, or for velocities of hinges in axes
        that turn, it is not symmetric in j and m.
    """
    return viewed(mech, _jacobian_derivative, node, frame, about)(q, **options)


def momentum_derivatives(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    vdot: ArrayLike,
    *,
    about: Literal["com", "world"] = "com",
    **options: Unpack[RecordOptions],
) -> MomentumDerivatives:
    """Derivatives of the momentum of the whole mechanism and of its rate.

    Expression:
        derivatives of `lw.momentum(mech, q, v)` and of A v̇ + Ȧ v, from the scalar graph.

    Args:
        about: "com" for the centre of mass, or "world" for the origin of the world.
        out: A record of four arrays, such as an earlier result, that receives the matrices.

    Returns:
        (angular, linear) in world axes; the four matrices, from one kernel.
    """
    if about not in MOMENTUM:
        raise ModelError(f"about is {about!r}; it must be 'com' or 'world'.")
    kernel = written(mech, MOMENTUM[about])
    return MomentumDerivatives(**recorded(lambda some: kernel(q, v, vdot, **some), options))


# ------------------------------------------------------------------------------------- kernels


def _jacobian_derivative(at: Writing, frame: str, about: str | None) -> Any:
    if frame == "node" and about is None:
        J = at.value(expression("jacobian"))
    else:
        J = jacobian_seen(at, frame, about)
    (derivative,) = slopes(at, [J], "q")
    return derivative


def _momentum_derivatives(at: Writing, about: str) -> Any:
    h, A, bias = (at_roots(at, f"momentum{x}", about) for x in ("", "_matrix", "_bias"))
    rate = A @ at.read("vdot", at.mech.nv) + bias
    by_q, rate_q = slopes(at, [h, rate], "q")
    (rate_v,) = slopes(at, [rate], "v")
    return by_q, A, rate_q, rate_v


MOMENTUM = {
    about: Formula(_momentum_derivatives, (about,), names=MomentumDerivatives._fields)
    for about in ("com", "world")
}
