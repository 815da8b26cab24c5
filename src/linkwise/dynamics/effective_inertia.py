"""Effective inertia: what a mechanism with closed loops weighs at its nodes.

Forces at nodes meet the inertia of everything that has to move along. With J the Jacobian of the
nodes and J_c that of the constraints,

    Λ_c⁻¹ = J (𝓜⁻¹ - 𝓜⁻¹ J_c* (J_c 𝓜⁻¹ J_c*)⁺ J_c 𝓜⁻¹) J*.

With rows whitened, A = D^(-½) (I - H ψ K) J* and A_c of J_c likewise, one sweep a row, it is

    Λ_c⁻¹ = A* (I - Q Q*) A,      A_c = Q T

a product of a matrix with its own adjoint: nothing is squared before it is inverted, and nothing is
subtracted of what is large. Redundant rows of J_c are left out first.
"""

from __future__ import annotations

import numpy as np

from linkwise.arguments import number
from linkwise.dynamics.diagonal import innovations
from linkwise.dynamics.kernels import Nodes, check_mechanism, node_names
from linkwise.dynamics.kinematics import jacobian
from linkwise.dynamics.operational_space import TOLERANCE, OperationalSpace, reach
from linkwise.dynamics.quantity import Frame
from linkwise.dynamics.velocity_space import VelocitySpace, states, velocity_spaces
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike


def effective_space(
    mech: Mechanism,
    q: ArrayLike,
    node: Nodes,
    *,
    frame: Frame = "node",
    length: float | None = None,
    tolerance: float = TOLERANCE,
) -> OperationalSpace:
    """The motions of nodes that loops and couplings leave, and their inertia.

    Expression:
        Λ_c⁻¹ = J (𝓜⁻¹ - 𝓜⁻¹ J_c* (J_c 𝓜⁻¹ J_c*)⁺ J_c 𝓜⁻¹) J*
        Λ_c = U (U* Λ_c⁻¹ U)⁻¹ U*,   U an orthonormal basis of the motions that exist
    Source: 000 (5.11) and section 6: the effective inertia of the closed chain at a point.

    The same as `lw.operational_space`, for the mechanism with its loops closed.

    Args:
        q: Joint positions (nq,) or (batch, nq) [m or rad], with closed loops.
        frame: See `operational_space`.
        length: See `operational_space`.
        tolerance: Motions below this fraction of the easiest one of the open mechanism are called
            lost.

    Returns:
        An `OperationalSpace`: `inertia`, `inverse`, `rank`, what is `lost`.

    Raises:
        SingularHingeError: Nothing resists the hinge of some body, which is named.
    """
    check_mechanism(mech)
    nodes = node_names(node)
    if not nodes:
        raise ModelError("the effective inertia at no node was asked for; name at least one.")
    length = number(reach(mech, nodes) if length is None else length, "length", above=0.0)
    tolerance = number(tolerance, "tolerance", above=0.0)
    single, rows, _ = states(mech, q)
    size = 6 * len(nodes)
    inertia, inverse, basis = np.zeros((3, len(rows), size, size))
    values, condition = np.zeros((len(rows), size)), np.ones(len(rows))
    rank = np.zeros(len(rows), dtype=np.int64)
    if len(rows):
        J = jacobian(mech, rows, nodes, frame=frame)
        spaces = velocity_spaces(mech, rows)
        for i, A in enumerate(_whitened(mech, rows, J, spaces)):
            inverse[i] = A @ A.T
            found = _decomposed(J[i], A, spaces[i], length, tolerance)
            inertia[i], basis[i], values[i], condition[i], rank[i] = found
    whole = OperationalSpace(nodes, frame, inertia, inverse, rank, basis, values, condition, length)
    return whole[0] if single else whole


def _whitened(mech: Mechanism, q: Array, J: Array, spaces: list[VelocitySpace]) -> list[Array]:
    """A* (I - Q Q*) (6 k, nv) of each state: one sweep a row of J and of J_c."""
    both = [np.concatenate([J_i, x.blocked]) for J_i, x in zip(J, spaces, strict=True)]
    counts = [len(x) for x in both]
    eps = innovations(mech, np.repeat(q, counts, axis=0), np.concatenate(both))
    found = list[Array]()
    for rows in np.split(eps, np.cumsum(counts)[:-1]):
        A, A_c = rows[: J.shape[1]], rows[J.shape[1] :]
        across = np.linalg.qr(A_c.T)[0]  # Q
        for _ in range(2):  # twice, so that what is left is orthogonal to the last digit
            A = A - A @ across @ across.T
        found.append(A)
    return found


def _decomposed(
    J: Array, A: Array, space: VelocitySpace, length: float, tolerance: float
) -> tuple[Array, Array, Array, float, int]:
    """Λ, basis, singular values, condition and rank of one state."""
    size = len(J)
    scale = np.tile([length] * 3 + [1.0] * 3, size // 6)[:, None]
    opened = scale * J * space.scale.columns
    motions = opened - opened @ space.right.T @ space.right
    span, values, _ = np.linalg.svd(motions)
    values = np.concatenate([values, np.zeros(size - len(values))])
    easiest = float(np.linalg.norm(opened, 2)) if opened.size else 0.0
    r = int((values > tolerance * easiest).sum())
    basis, inertia = np.zeros((size, size)), np.zeros((size, size))
    exist = np.linalg.qr(span[:, :r] / scale)[0]  # U
    basis[:, :r] = exist
    basis[:, r:] = np.linalg.qr(span[:, r:] * scale)[0]
    if not r:
        return inertia, basis, values, 1.0, 0
    R = np.linalg.qr(A.T @ exist)[1]  # A U = Q R, Λ = U (R* R)⁻¹ U*
    root = np.linalg.solve(R.T, exist.T)
    spread = np.linalg.svd(R @ exist.T @ (span[:, :r] * scale), compute_uv=False)
    return root.T @ root, basis, values, float((spread[0] / spread[-1]) ** 2), r


def effective_inertia(
    mech: Mechanism, q: ArrayLike, node: Nodes, *, frame: Frame = "node"
) -> Array:
    """The inertia at nodes of the mechanism with its loops closed: Λ_c.

    Expression:
        Λ_c = (J (𝓜⁻¹ - 𝓜⁻¹ J_c* (J_c 𝓜⁻¹ J_c*)⁺ J_c 𝓜⁻¹) J*)⁺
    Where the nodes cannot move in all directions it is that of the motions they have, and zero for
    the others; `lw.loops.effective_space` has the rank, and which are lost.

    Args:
        q: See `effective_space`.
        node: See `effective_space`.
        frame: See `effective_space`.

    Returns:
        (6 k, 6 k) or (batch, 6 k, 6 k), angular rows first.
    """
    return effective_space(mech, q, node, frame=frame).inertia


def effective_inertia_inverse(
    mech: Mechanism, q: ArrayLike, node: Nodes, *, frame: Frame = "node"
) -> Array:
    """How easily nodes of the mechanism with its loops closed are moved: Λ_c⁻¹.

    Expression:
        J (𝓜⁻¹ - 𝓜⁻¹ J_c* (J_c 𝓜⁻¹ J_c*)⁺ J_c 𝓜⁻¹) J*

    Args:
        q: See `effective_space`.
        node: See `effective_space`.
        frame: See `effective_space`.

    Returns:
        (6 k, 6 k) or (batch, 6 k, 6 k): acceleration at rest per force, angular rows first.
    """
    return effective_space(mech, q, node, frame=frame).inverse
