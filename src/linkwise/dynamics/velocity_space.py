"""Velocities that obey loops and couplings, and those that are blocked: J_c of one state, split.

J_c has rows in radians and in metres, for velocities of hinges that turn and that slide. They can
only be compared in one unit: with a length L, turning counts as the distance it covers there,

    D J_c C = U s V*,      D: L for rows that turn, 1 for others;  C: L for hinges that slide, 1 ...

and singular values below a part of the largest count as zero. Rank, blocked and free motions do
not depend on L if redundant rows are exactly redundant. With r the rank,

    R = V_r* C⁻¹ (r, nv)        the rows that count:  R v = 0  where J_c v = 0
    Z = C V_0  (nv, nv - r)     the velocities that are left:  J_c Z = 0.

Rows of R are orthonormal in the measure of C: rows of J_c that are redundant, or nearly so, cost no
digits in results computed from R and Z.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from linkwise.arguments import number
from linkwise.dynamics.closure import closure_nodes, constraint_error, constraint_jacobian
from linkwise.dynamics.kernels import check_mechanism
from linkwise.dynamics.mass_matrix import mass_matrix_inverse_product
from linkwise.errors import ShapeError
from linkwise.model import closure
from linkwise.model.body import Body
from linkwise.model.drive import Drive
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.spatial.pose import Pose, trusted_pose

TOLERANCE = 1e-9
"""Singular values below this part of the largest are zero: loops are closed to 1e-12 or so."""

LEAST = 1e-3
"""Lower bound of the largest singular value, as a part of the length [m]."""


def reach(mech: Mechanism | Embedded, nodes: Sequence[str]) -> float:
    """The length along the bodies from the ground to the farthest node [m], 1 if it is zero.

    It does not depend on q; hinges that slide add nothing.
    """
    return _reach(mech.mech if isinstance(mech, Embedded) else mech, tuple(nodes))


@once_per_mechanism
def _reach(mech: Mechanism, nodes: tuple[str, ...]) -> float:
    longest = 0.0
    for name in nodes:
        node = mech.node(name)
        way, k = float(np.linalg.norm(node.pose.p)), mech.body_index[node.body]
        while k >= 0:
            body, p = mech.bodies[k], int(mech.parent[k])
            way += float(np.linalg.norm(body.outboard.p))
            way += float(np.linalg.norm(body.inboard.p)) if p >= 0 else 0.0
            k = p
        longest = max(longest, way)
    return longest or 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """The units of rows and velocities.

    Attributes:
        length: L, the size of the mechanism at its loops [m].
        rows: Diagonal of D (m,): rows times this are in metres.
        columns: Diagonal of C (nv,): velocities divided by this are in radians a second.
    """

    length: float
    rows: Array
    columns: Array


@once_per_mechanism
def scale(mech: Mechanism) -> Scale:
    """The units in which a mechanism's constraints are compared."""
    nodes = closure_nodes(mech) or tuple(body.name for body in mech.bodies)
    length = reach(mech, nodes)
    rows = list[float]()
    for loop in mech.loops:
        X_ab = loop.hinge.pose(loop.hinge.neutral())
        S = closure.blocked(loop.hinge, _single(X_ab), np.zeros(6)).S
        rows.extend(1.0 / np.linalg.norm(S / np.repeat([length, 1.0], 3), axis=1))
    for coupling in mech.couplings:
        index = mech.coordinate(coupling.dependent)
        units = [c.unit for body in mech.bodies for c in body.hinge.coordinates]
        rows.append(1.0 if units[index] == "m" else length)
    turns = [_turning(body.hinge.hinge_map(body.hinge.neutral())) for body in mech.bodies]
    columns = np.where(np.concatenate([np.zeros(0, dtype=bool), *turns]), 1.0, length)
    return Scale(length, np.array(rows), columns)


def _single(pose: Pose) -> Pose:
    return trusted_pose(np.reshape(pose.rot, (3, 3)), np.reshape(pose.p, 3))


def _turning(H: Array) -> Array:
    return np.linalg.norm(np.reshape(H, (-1, 6))[:, :3], axis=-1) > 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class VelocitySpace:
    """Blocked and free velocities of one state.

    Attributes:
        jacobian: J_c (m, nv).
        rank: Number of independent rows, r.
        singular_values: Of D J_c C (min(m, nv),), the largest first [m].
        left: U_r (m, r).
        right: V_r* (r, nv).
        scale: D, C and L.
    """

    jacobian: Array
    rank: int
    singular_values: Array
    left: Array
    right: Array
    scale: Scale

    @property
    def blocked(self) -> Array:
        """R (r, nv): R v = 0 is equivalent to J_c v = 0, without redundant rows."""
        return self.right / self.scale.columns

    @property
    def free(self) -> Array:
        """Z (nv, nv - r): every velocity that obeys is Z y."""
        if not self.rank:
            return np.diag(self.scale.columns)
        basis = np.linalg.qr(self.right.T, mode="complete")[0]
        return self.scale.columns[:, None] * basis[:, self.rank :]

    def answer(self, rows: Array) -> Array:
        """The least v (..., nv) with J_c v nearest to `rows` (..., m), measured by C and D."""
        inner = (rows * self.scale.rows) @ self.left / self.singular_values[: self.rank]
        return inner @ self.right * self.scale.columns

    def force(self, tau: Array) -> Array:
        """The λ (..., m) of least norm with J_c* λ = τ, for a τ (..., nv) of that kind."""
        inner = (tau * self.scale.columns) @ self.right.T / self.singular_values[: self.rank]
        lam = inner @ self.left.T * self.scale.rows
        # The least of all is in the range of J_c, which is that of D⁻¹ U_r.
        span = np.linalg.qr(self.left / self.scale.rows[:, None])[0]
        return lam @ span @ span.T


def velocity_spaces(
    mech: Mechanism, q: Array, tolerance: float | None = None, jacobians: Array | None = None
) -> list[VelocitySpace]:
    """Blocked and free velocities of each of several states (batch, nq), J_c known or not."""
    least = TOLERANCE if tolerance is None else checked_tolerance(tolerance)
    measure = scale(mech)
    if not len(q):
        return []
    J_c = constraint_jacobian(mech, q) if jacobians is None else jacobians
    scaled = measure.rows[:, None] * J_c * measure.columns
    spaces = list[VelocitySpace]()
    for J, A in zip(J_c, scaled, strict=True):
        left, s, right = np.linalg.svd(A, full_matrices=False)
        largest = max(float(s.max(initial=0.0)), LEAST * measure.length)
        r = int((s > least * largest).sum())
        spaces.append(VelocitySpace(J, r, s, left[:, :r], right[:r], measure))
    return spaces


def checked_tolerance(tolerance: object) -> float:
    """The part of the largest singular value below which others are zero, checked."""
    return number(tolerance, "tolerance", above=0.0, below=1.0)


def velocity_space(mech: Mechanism, q: ArrayLike, tolerance: float | None = None) -> VelocitySpace:
    """Blocked and free velocities of one state (nq,)."""
    return velocity_spaces(mech, one_state(mech, q)[None], tolerance)[0]


def one_state(mech: Mechanism, q: ArrayLike) -> Array:
    """A checked q (nq,); raises for a batch."""
    check_mechanism(mech)
    q = mech.check_q(q)
    if q.ndim != 1:
        raise ShapeError(
            f"q has shape {q.shape}; this takes one state, ({mech.nq},): ranks differ from "
            "state to state. Call it for each state of a batch."
        )
    return q


def states(mech: Mechanism, q: ArrayLike, **others: ArrayLike) -> tuple[bool, Array, list[Array]]:
    """Whether it is a single state; q (batch, nq) and other vectors (batch, nv), all checked."""
    check_mechanism(mech)
    arrays = [mech.check_q(q), *(mech.check_v(x, name) for name, x in others.items())]
    for name, array in zip(("q", *others), arrays, strict=True):
        if array.ndim > 2:
            size = array.shape[-1]
            raise ShapeError(
                f"{name} has shape {array.shape}; it must be ({size},) or (batch, {size})."
            )
    try:
        lead = np.broadcast_shapes(*(array.shape[:-1] for array in arrays))
    except ValueError:
        shown = ", ".join(
            f"{name} {array.shape}" for name, array in zip(("q", *others), arrays, strict=True)
        )
        raise ShapeError(f"{shown} do not fit: their batches differ.") from None
    rows = lead or (1,)
    first, *rest = [np.broadcast_to(array, (*rows, array.shape[-1])) for array in arrays]
    return not lead, first, rest


def inertia_products(mech: Mechanism, q: Array, rows: list[Array]) -> list[Array]:
    """A 𝓜⁻¹ (k, nv) for the rows A (k, nv) of each state of q (batch, nq): O(n) a row."""
    counts = [len(x) for x in rows]
    if not sum(counts):
        return [np.zeros((0, mech.nv)) for _ in rows]
    products = mass_matrix_inverse_product(
        mech, np.repeat(q, counts, axis=0), np.concatenate(rows, axis=0)
    )
    return np.split(products, np.cumsum(counts)[:-1])


@once_per_mechanism
def holonomic(mech: Mechanism) -> Mechanism:
    """The mechanism with hinges that reach the same positions and are holonomic.

    A rolling ball must not slip, which concerns velocities, and must stay on the plane, which
    concerns positions: less. Without such hinges it is the mechanism itself. q is the same.
    """
    hinges = [loop.hinge for loop in mech.loops] + [body.hinge for body in mech.bodies]
    if all(hinge.hull is hinge for hinge in hinges):
        return mech
    loops = tuple(replace(loop, hinge=loop.hinge.hull) for loop in mech.loops)
    bodies = tuple(body if body.hinge.hull is body.hinge else _slips(body) for body in mech.bodies)
    return replace(mech, bodies=bodies, loops=loops)


def _slips(body: Body) -> Body:
    """A body on the hull of its hinge; its drive keeps only the limits of positions."""
    limits = body.drive
    drive = Drive(lower=limits.lower, upper=limits.upper, max_angle=limits.max_angle)
    return replace(body, hinge=body.hinge.hull, drive=drive)


def worst(mech: Mechanism, q: Array) -> tuple[str, str, float]:
    """The constraint with the largest error at q: "loop" or "coupling", name, error [rad or m]."""
    error = np.abs(constraint_error(mech, q))
    sizes = closure.constraint_sizes(mech)
    each = [float(part.max(initial=0.0)) for part in np.split(error, np.cumsum(sizes)[:-1])]
    i = int(np.argmax(np.nan_to_num(each, nan=np.inf)))
    if i < len(mech.loops):
        return "loop", mech.loops[i].name, each[i]
    return "coupling", mech.couplings[i - len(mech.loops)].name, each[i]
