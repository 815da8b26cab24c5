"""Second derivatives of inverse and forward dynamics.

The first derivatives are expressions, derived and swept as all others; their scalar graph is
differentiated again along each velocity. Counted in operations that is cheaper than differentiating
the expressions again, since the entries of one direction are ones and zeros: 22,439 against 45,407
for inverse dynamics of the seven-axis arm. Beyond `STRAIGHT` degrees of freedom the code for all
directions would be long; there the direction is an input, and a state a batch of all directions.
Where that code would be too long as well, from about 20 bodies of a chain on, derivatives of the
expressions run as loops over bodies, for any number of them: ∂(∂τ/∂q u)/∂q for each unit vector u.

Forward dynamics follows from inverse dynamics, τ(q, v, v̇(q, v, τ)) = τ differentiated by x and y:

    𝓜 ∂²v̇/∂x∂y = −(∂²τ/∂x∂y + ∂𝓜/∂x ∂v̇/∂y + ∂𝓜/∂y ∂v̇/∂x)

Passive forces count as a part of τ: their own second derivatives, those of carried weight and of
springs of balls, are subtracted from those of inverse dynamics. With loops and couplings held, the
graph of the first derivatives (`closed_derivatives.py`) is differentiated along each velocity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack, cast

import numpy as np

from linkwise.algebra.differential import differentiate
from linkwise.algebra.space import JOINT
from linkwise.algebra.symbols import mass, vector
from linkwise.brief import brief
from linkwise.codegen.formula import Formula
from linkwise.codegen.sensitivity import NoGraphError, jvp, slopes
from linkwise.dynamics.closed_derivatives import held
from linkwise.dynamics.closure import closed_kernel
from linkwise.dynamics.constrained import obeyed
from linkwise.dynamics.derivative_formula import (
    FORWARD_DERIVATIVES,
    INVERSE_DERIVATIVES,
    WITH_PASSIVE,
)
from linkwise.dynamics.derivatives import forward_dynamics_derivatives
from linkwise.dynamics.directions import STRAIGHT, along_all, along_each
from linkwise.dynamics.forward_dynamics import forward_dynamics
from linkwise.dynamics.joint_force import (
    PASSIVE_CURVATURE,
    has_passive_force,
    is_curved,
    require_passive_slopes,
)
from linkwise.dynamics.kernels import (
    BatchOptions,
    Forces,
    Loops,
    RecordOptions,
    acting,
    check_mechanism,
    is_closed,
    pushed_nodes,
    recorded,
    side_by_side,
    tree_of,
    written,
)
from linkwise.dynamics.quantity import FRAMES, Frame, check_frame, expression
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.pipeline import compile
from linkwise.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel
    from linkwise.codegen.writing import Writing


@brief
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


@brief
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
    forces: Forces | None = None,
    forces_frame: Frame = "node",
    loops: Loops = "closed",
    **options: Unpack[RecordOptions],
) -> InverseDynamicsSecondDerivatives:
    """Second derivatives of joint forces by positions, velocities and accelerations.

    Those that are missing are zero, or follow: τ is linear in v̇, and ∂²τ/∂q∂v has the entries of
    `vq` with the last two indices exchanged.

    With loops or couplings these are the derivatives of the joint forces with which loops carry no
    load, as in `lw.inverse_dynamics_derivatives`.

    Args:
        out: A record of four arrays, such as an earlier result, that receives the tensors.

    Raises:
        ClosureError: v̇ breaks a loop or coupling, which is named. In a batch its numbers are NaN
            instead, reported by a warning or by `status`.
    """
    check_mechanism(mech)
    frame, nodes, given = _acting(forces, forces_frame)
    arrays = {"q": q, "v": v, "vdot": vdot, **given}

    def of_tree(**some: Any) -> dict[str, Array]:
        parts = _of_inverse(tree_of(mech), arrays, cast("BatchOptions", some), frame, nodes)
        return dict(zip(InverseDynamicsSecondDerivatives._fields, parts, strict=True))

    def computed(some: dict[str, Any]) -> dict[str, Array]:
        some.pop("out", None)  # several arrays, made one after another
        return (
            obeyed(mech, q, v, vdot, of_tree, some) if is_closed(mech, loops) else of_tree(**some)
        )

    return InverseDynamicsSecondDerivatives(**recorded(computed, options))


def forward_dynamics_second_derivatives(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    forces: Forces | None = None,
    forces_frame: Frame = "node",
    passive: bool = False,
    loops: Loops = "closed",
    **options: Unpack[RecordOptions],
) -> ForwardDynamicsSecondDerivatives:
    """Second derivatives of joint accelerations by positions, velocities and joint forces.

    Those that are missing are zero, or follow: v̇ is linear in τ, and ∂²v̇/∂q∂v has the entries of
    `vq` with the last two indices exchanged.

    Args:
        passive: Whether `lw.passive_force` acts as well, as in `lw.forward_dynamics`.
        out: A record of four arrays, such as an earlier result, that receives the tensors.

    Raises:
        ClosureError: Loops are singular in this state, or their rows depend on each other only
            while they are closed: there are no derivatives. In a batch they are NaN instead,
            reported by a warning or by `status`.
    """
    check_mechanism(mech)
    if passive and has_passive_force(mech):
        require_passive_slopes(mech)
    given: dict[str, Any] = {"forces": forces, "forces_frame": forces_frame, "passive": passive}
    arrays = {"q": q, "v": v, "tau": tau}

    def computed(some: dict[str, Any]) -> dict[str, Array]:
        some.pop("out", None)  # several arrays, made one after another
        made = _of_closed if is_closed(mech, loops) else _of_tree
        parts = made(mech, arrays, given, cast("BatchOptions", some))
        return dict(zip(ForwardDynamicsSecondDerivatives._fields, parts, strict=True))

    return ForwardDynamicsSecondDerivatives(**recorded(computed, options))


def _of_tree(
    mech: Mechanism, arrays: dict[str, Any], given: dict[str, Any], options: BatchOptions
) -> list[Array]:
    """Those of forward dynamics of a tree; τ acts besides passive forces and forces at nodes."""
    tree = tree_of(mech)
    first = forward_dynamics_derivatives(tree, **arrays, **given, **options)
    codes = np.zeros(first.q.shape[:-2], np.int32)  # what goes wrong has been reported
    vdot = forward_dynamics(tree, **arrays, **given, status=codes)
    frame, nodes, pushing = _acting(given["forces"], given["forces_frame"])
    state = {"q": arrays["q"], "v": arrays["v"]}
    inverse = {**state, "vdot": vdot, **pushing}
    qq, vq, vv, mass_q = _of_inverse(tree, inverse, {"status": codes}, frame, nodes)
    if given["passive"] and is_curved(tree):
        qq = qq - written(tree, PASSIVE_CURVATURE)(**state, status=codes)
    along = np.swapaxes(mass_q, -1, -2)  # ∂𝓜_il/∂q_k as [i, k, l]
    by_q, by_v, by_tau = (along @ x[..., None, :, :] for x in first)
    parts = (qq + by_q + np.swapaxes(by_q, -1, -2), vq + np.swapaxes(by_v, -1, -2))
    parts = (*parts, vv, np.swapaxes(by_tau, -1, -2))
    return [_product(-first.tau, x) for x in parts]


def _of_closed(
    mech: Mechanism, arrays: dict[str, Any], given: dict[str, Any], options: BatchOptions
) -> list[Array]:
    """Those of forward dynamics with loops and couplings held."""
    frame, nodes, pushing = _acting(given["forces"], given["forces_frame"])
    formula = ALONG_CLOSED[given["passive"] and has_passive_force(mech), frame]
    every = {**arrays, **pushing}
    names = (*every, "dq", "dv")

    def along(*rows: Any, **some: Any) -> Array:
        return held(mech, formula, dict(zip(names, rows, strict=True)), some, nodes)["change"]

    warn = closed_kernel(mech, "constraint_jacobian").warn
    by_q, by_v = _by_direction(along_all(along, every, mech.nv, options, warn), mech.nv)
    return [by_q[0], by_q[1], by_v[1], by_q[2]]


def _acting(
    forces: Forces | None, frame: Frame
) -> tuple[Frame | Literal[""], tuple[str, ...], dict[str, Array]]:
    """Axes of the forces at nodes, these nodes, and the forces as inputs; "" without forces."""
    check_frame(frame, "forces_frame")
    if not acting(forces):
        return "", (), {}
    nodes = pushed_nodes(forces)
    return frame, nodes, {"f": side_by_side(forces, nodes)}


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
    tree: Mechanism,
    arrays: dict[str, Any],
    options: BatchOptions,
    frame: Frame | Literal[""],
    nodes: tuple[str, ...],
) -> tuple[Array, Array, Array, Array]:
    """The four tensors of inverse dynamics (..., nv, nv, nv)."""
    if tree.nv <= STRAIGHT:
        parts = written(tree, SECOND[frame], nodes)(**arrays, **options)
        return parts["qq"], parts["vq"], parts["vv"], parts["vdotq"]
    kernel, names = _along(tree, frame, nodes), (*arrays, "dq", "dv")
    if kernel is None:
        return _of_loops(tree, arrays, options, frame, nodes)

    def along(*rows: Any, **some: Any) -> Array:
        return kernel(**dict(zip(names, rows, strict=True)), **some)

    flat = along_all(along, arrays, tree.nv, options, kernel.warn)
    by_q, by_v = _by_direction(flat, tree.nv)
    return by_q[0], by_q[1], by_v[1], by_q[2]


@once_per_mechanism
def _along(tree: Mechanism, frame: Frame | Literal[""], nodes: tuple[str, ...]) -> Kernel | None:
    """The kernel along one direction; None where its straight code would be too long."""
    try:
        return written(tree, ALONG[frame], nodes)
    except NoGraphError:
        return None


def _of_loops(
    tree: Mechanism,
    arrays: dict[str, Any],
    options: BatchOptions,
    frame: Frame | Literal[""],
    nodes: tuple[str, ...],
) -> tuple[Array, Array, Array, Array]:
    """The four tensors by the algebra, in loops over bodies."""
    n, (first, *others) = tree.nv, _kernels_of_loops(tree, frame, nodes)

    def tensor(kernel: Kernel, some: BatchOptions) -> Array:
        given = {name: arrays[name] for name in kernel.arguments if name != "along"}
        names = (*given, "along")

        def along(*rows: Any, **some: Any) -> Array:
            result = kernel(**dict(zip(names, rows, strict=True)), **some)
            return result.reshape(*result.shape[:-2], n * n)

        flat = along_each(along, given, n, some, kernel.warn)
        return np.moveaxis(flat.reshape(*flat.shape[:-1], n, n), -3, -2)

    qq = tensor(first, options)  # it reads all inputs, and reports what is wrong with them
    lead, status = qq.shape[:-3], options.get("status")
    arrays = {k: np.broadcast_to(x, (*lead, np.shape(x)[-1])) for k, x in arrays.items()}
    parts, bad = [qq], ~np.isfinite(qq).all(axis=(-1, -2, -3))
    for kernel in others:
        codes = np.zeros(lead, np.int32)
        parts.append(tensor(kernel, {"status": codes, "threads": options.get("threads")}))
        parts[-1][bad] = np.nan
        if status is not None:
            status[...] = np.maximum(status, codes)
    return parts[0], parts[1], parts[2], parts[3]


@once_per_mechanism
def _kernels_of_loops(
    tree: Mechanism, frame: Frame | Literal[""], nodes: tuple[str, ...]
) -> tuple[Kernel, ...]:
    """Kernels of ∂(∂τ/∂q u)/∂q, ∂(∂τ/∂v u)/∂q, ∂(∂τ/∂v u)/∂v and ∂(𝓜 u)/∂q."""
    name = "inverse_dynamics_with_forces" if frame else "inverse_dynamics"
    expr, u = expression(name, frame=frame or "node"), vector("along", JOINT)
    by_q, by_v = differentiate(expr, "q") @ u, differentiate(expr, "v") @ u
    pairs = ((by_q, "q"), (by_v, "q"), (by_v, "v"), (mass @ u, "q"))
    return tuple(compile(differentiate(of, wrt), tree, nodes=nodes) for of, wrt in pairs)


# ------------------------------------------------------------------------------------- kernels


def _second(at: Writing, pushed: str = "") -> Any:
    by_q, by_v, mass = INVERSE_DERIVATIVES.write(at, pushed)
    qq, vq, mass_q = slopes(at, [by_q, by_v, mass], "q")
    (vv,) = slopes(at, [by_v], "v")
    return qq, vq, vv, mass_q


def _along_closed(at: Writing, pushed: str = "", rank: int | None = None) -> Any:
    """How the derivatives of forward dynamics change along a direction, with loops held."""
    return _change(at, FORWARD_DERIVATIVES, pushed, rank)


def _along_closed_with_passive(at: Writing, pushed: str = "", rank: int | None = None) -> Any:
    return _change(at, WITH_PASSIVE[FORWARD_DERIVATIVES], pushed, rank)


def _change(at: Writing, of: Formula, pushed: str, rank: int | None) -> Any:
    first = Formula(of.write, (pushed, rank), of.names)
    change = jvp(first, "q", "v")
    return (change.write(at, *change.options),)


AXES = ("", *FRAMES)
"""Those of forces at nodes; "" without any."""

SECOND = {
    frame: Formula(_second, (frame,), InverseDynamicsSecondDerivatives._fields) for frame in AXES
}
ALONG = {
    frame: jvp(Formula(INVERSE_DERIVATIVES.write, (frame,), INVERSE_DERIVATIVES.names), "q", "v")
    for frame in AXES
}
ALONG_CLOSED = {
    (passive, frame): Formula(write, (frame,), names=("change",))
    for passive, write in ((False, _along_closed), (True, _along_closed_with_passive))
    for frame in AXES
}
"""By whether passive forces act, and the axes of forces at nodes."""
