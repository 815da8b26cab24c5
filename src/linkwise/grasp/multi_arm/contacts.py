"""The contacts of a multi-arm system in given states: what they block, and their forces.

All quantities of a contact are in the frame of its loop's node b, at its origin. E moves velocities
there, from the arm's tip or from the object's node (one of them is the identity, the other T of the
loop). With f(0) the force on the object and s = ±1 the side that b is on:

    E_o α_o − E_a α_a + c = H* Ẇ        c = s (V_ab × T V_a − Ḣ* W),   Ẇ that of the hinge times s
    H f(0) = 0                          the force on the object's node is E_o* f(0),
                                        on the tip −E_a* f(0)

This is (b.1c) to (b.1f) of JPL 88-11-II, for any hinge; in the source the two frames are at one
point and E_a is a rotation. The rows of S span the complement of H: f(0) = S* λ.

Contact forces follow from Ω f(0) = r, in all states at once, for any rank of Ω. There are two
forms, which agree where both exist. With the blocked directions S of the contacts

    f = S* λ,   (S Ω S*) λ = S r                                                  "rows"

of size m; and with their free directions H, (b.7) of JPL 88-11-II,

    f = Π r,   Π = Ω⁻¹ − Ω⁻¹ H* (H Ω⁻¹ H*)⁻¹ H Ω⁻¹                                "projection"

which requires Ω to be invertible. Where S Ω S* is singular, λ is the solution of least norm. The
eigenvalues of S Ω S*, with turning measured at a length so that all rows are comparable, decide
what is redundant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.closure import relative_poses
from linkwise.grasp.contact import block_diagonal
from linkwise.grasp.multi_arm.equation import Evaluation
from linkwise.model.closure import blocked, closure_nodes, coordinates, least_squares
from linkwise.model.hinges import Hinge
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose
from linkwise.spatial.vector import cross_velocity

TOLERANCE = 1e-12
"""Eigenvalues of Ω below this fraction of the largest are zero: its rounding is about 1e-15."""


@dataclass(frozen=True, slots=True)
class Contacts:
    """All contacts in a batch of states.

    Attributes:
        sizes: Rows of each contact, 6 minus the degrees of freedom of its hinge.
        E_arm: E of the tips (batch, contacts, 6, 6).
        E_object: E of the object's nodes (batch, contacts, 6, 6).
        S: Blocked directions of all contacts (batch, m, 6 contacts).
        V_ab: Relative velocities (batch, contacts, 6), of b seen from a.
        turning: s V_ab × T V_a (batch, contacts, 6).
        rate: s S (−Ḣ* W) (batch, m).
        X_ab: Pose of b seen from a, of each contact.
        sign: s (contacts,).
    """

    sizes: tuple[int, ...]
    E_arm: Array
    E_object: Array
    S: Array
    V_ab: Array
    turning: Array
    rate: Array
    X_ab: tuple[Pose, ...]
    sign: Array

    def from_tips(self, motion: Array) -> Array:
        """Motions of tips (batch, 6 contacts) in the frames of contacts."""
        return _carried(self.E_arm, motion)

    def from_object(self, motion: Array) -> Array:
        """Motions of the object's nodes (batch, 6 contacts) in the frames of contacts."""
        return _carried(self.E_object, motion)

    def to_tips(self, force: Array) -> Array:
        """Forces at contacts (batch, 6 contacts) as forces at tips."""
        return _carried(np.swapaxes(self.E_arm, -1, -2), force)

    def to_object(self, force: Array) -> Array:
        """Forces at contacts (batch, 6 contacts) as forces at the object's nodes."""
        return _carried(np.swapaxes(self.E_object, -1, -2), force)


def contacts(of: Evaluation) -> Contacts:
    """The contacts in the states of an evaluation."""
    mech, batch = of.mech, len(of.q)
    if of.target == "cpu":
        poses = relative_poses(mech, of.q)
    else:  # without a kernel
        ends = [[mech.pose(of.q, x) for x in (loop.node_a, loop.node_b)] for loop in mech.loops]
        poses = [X_a.inverse() @ X_b for X_a, X_b in ends]
    V = of.run("node_velocity", closure_nodes(mech)).reshape(batch, -1, 2, 6)
    T = np.stack([np.swapaxes(X_ab.shift, -1, -2) for X_ab in poses], axis=1)
    same, sign = np.broadcast_to(np.eye(6), T.shape), of.parts.sign
    on_object = (sign > 0.0)[:, None, None]
    carried = (T @ V[:, :, 0, :, None])[..., 0]
    V_ab = V[:, :, 1] - carried
    sizes = tuple(loop.rows for loop in mech.loops)
    blocks, rates = list[Array](), list[Array]()
    for i, (loop, X_ab) in enumerate(zip(mech.loops, poses, strict=True)):
        directions = blocked(loop.hinge, X_ab, V_ab[:, i])
        blocks.append(np.broadcast_to(directions.S, (batch, loop.rows, 6)))
        rates.append(np.broadcast_to(sign[i] * directions.rate, (batch, loop.rows)))
    S, rate = block_diagonal(blocks), np.concatenate(rates, axis=1)
    return Contacts(
        sizes,
        np.where(on_object, T, same),
        np.where(on_object, same, T),
        S,
        V_ab,
        sign[:, None] * cross_velocity(V_ab, carried),
        rate,
        tuple(poses),
        sign,
    )


@dataclass(frozen=True, slots=True)
class FreeDirections:
    """The motions that the hinges of the contacts leave free.

    Attributes:
        H: Hinge maps of all contacts (batch, Σ n_g, 6 contacts): H(0) of the source.
        bias: s Ḣ* W (batch, 6 contacts).
    """

    H: Array
    bias: Array


def free_directions(mech: Mechanism, at: Contacts) -> FreeDirections:
    """H(0) and Ḣ*(0) W of the contacts; Θ(0) follows from the pose where it matters."""
    sizes = tuple(loop.hinge.nv for loop in mech.loops)
    batch = len(at.V_ab)
    H, bias = np.zeros((batch, sum(sizes), 6 * len(sizes))), np.zeros((batch, 6 * len(sizes)))
    row = 0
    for i, loop in enumerate(mech.loops):
        rows, six = slice(row, row + loop.hinge.nv), slice(6 * i, 6 * i + 6)
        row = rows.stop
        constant = constant_map(loop.hinge)
        if constant is not None:
            H[:, rows, six] = constant
            continue
        for k in range(batch):
            theta = coordinates(loop.hinge, at.X_ab[i][k])
            H[k, rows, six] = loop.hinge.hinge_map(theta)
            W = least_squares(H[k, rows, six].T, at.V_ab[k, i])
            bias[k, six] = at.sign[i] * loop.hinge.bias(theta, W)
    return FreeDirections(H, bias)


@lru_cache(maxsize=1024)
def constant_map(hinge: Hinge) -> Array | None:
    """H (nv, 6) of a hinge whose map is constant, else None: decided from a few samples."""
    if hinge.nv == 0:
        return np.zeros((0, 6))
    rng, free = np.random.default_rng(0), np.full(hinge.nq, np.inf)
    maps = [hinge.hinge_map(hinge.random(rng, -free, free)) for _ in range(4)]
    return maps[0] if all(np.abs(H - maps[0]).max() < 1e-14 for H in maps[1:]) else None


def _carried(E: Array, x: Array) -> Array:
    """E x block by block."""
    six = x.reshape(*E.shape[:2], 6, 1)
    return (E @ six).reshape(x.shape)


def between(E: Array, x: Array) -> Array:
    """E x E* with the blocks E on the diagonal, x (batch, 6 l, 6 l)."""
    batch, count = E.shape[:2]
    left = E @ x.reshape(batch, count, 6, 6 * count)
    turned = np.swapaxes(left.reshape(x.shape), -1, -2).reshape(batch, count, 6, 6 * count)
    return np.swapaxes((E @ turned).reshape(x.shape), -1, -2)


# ---------------------------------------------------------------------------------- contact forces


@dataclass(frozen=True, slots=True)
class Solver:
    """The inverse of symmetric positive semidefinite matrices (batch, m, m), of any rank.

    Attributes:
        matrices: The matrices that are inverted.
        inverse: The inverse, or the matrix of the solution of least norm.
        rank: Of each matrix (batch,).
    """

    matrices: Array
    inverse: Array
    rank: NDArray[np.int64]

    def __call__(self, right: Array) -> Array:
        """The solution (batch, m) for right sides (batch, m)."""
        return refined(self.inverse, self.matrices, right)


def refined(inverse: Array, matrices: Array, right: Array) -> Array:
    """x = A⁻¹ r, then once x + A⁻¹ (r − A x).

    An explicit inverse loses digits in A x = r according to the condition of A; one step of
    refinement restores them. Accelerations, small differences of large ones, gain two to three.
    """
    x = inverse @ right[..., None]
    return (x + inverse @ (right[..., None] - matrices @ x))[..., 0]


def solver(matrices: Array, scale: Array) -> Solver:
    """The inverses of symmetric matrices, with rows and columns scaled to comparable size.

    A Cholesky factor L decides quickly: 1/‖L⁻¹‖² bounds the least eigenvalue from below.
    Eigenvalues are computed only where this bound leaves a doubt.

    Args:
        matrices: Positive semidefinite (batch, m, m); not finite ones give NaN, rank 0.
        scale: Factor of each row (batch, m).
    """
    batch, m = matrices.shape[:2]
    inverse, rank = np.full(matrices.shape, np.nan), np.zeros(batch, dtype=np.int64)
    fine = np.isfinite(matrices).all(axis=(1, 2))
    alike = matrices * scale[:, :, None] * scale[:, None, :]
    try:
        root = np.linalg.inv(np.linalg.cholesky(alike[fine]))
        least = 1.0 / (root**2).sum(axis=(1, 2))
        largest = np.trace(alike[fine], axis1=1, axis2=2)
        sure = np.zeros(batch, dtype=np.bool_)
        sure[fine] = least > 10.0 * TOLERANCE * largest
        kept = root[sure[fine]] * scale[sure][:, None, :]
        inverse[sure], rank[sure] = np.swapaxes(kept, 1, 2) @ kept, m
        left = np.flatnonzero(fine & ~sure)
    except np.linalg.LinAlgError:  # some of them are singular
        left = np.flatnonzero(fine)
    for i in left:
        inverse[i], rank[i] = _of_least_norm(alike[i], scale[i])
    return Solver(matrices, inverse, rank)


def _of_least_norm(alike: Array, scale: Array) -> tuple[Array, int]:
    """The matrix of the solution x of least |x|, and the rank."""
    values, vectors = np.linalg.eigh(0.5 * (alike + alike.T))
    kept = values > TOLERANCE * max(float(values[-1]), 0.0)
    root = vectors[:, kept] / np.sqrt(values[kept])
    some = scale[:, None] * (root @ root.T) * scale
    lost = np.linalg.qr(scale[:, None] * vectors[:, ~kept])[0]  # the kernel, before scaling
    left = np.eye(len(scale)) - lost @ lost.T
    return left @ some @ left, int(kept.sum())


@dataclass(frozen=True, slots=True)
class ContactSolver:
    """f(0) = Π r and Ẇ for any right side r (batch, 6 contacts).

    Attributes:
        force: From r to f(0).
        rank: The number of independent rows of contact (batch,).
        size: The number of rows.
    """

    force: Callable[[Array], Array]
    rank: NDArray[np.int64]
    size: int


def by_rows(Omega: Array, at: Contacts, length: float) -> ContactSolver:
    """f = S* (S Ω S*)⁻¹ S r."""
    S = at.S
    across = np.swapaxes(S, -1, -2)
    solve = solver(S @ Omega @ across, row_scale(S, length))

    def force(r: Array) -> Array:
        return (across @ solve((S @ r[..., None])[..., 0])[..., None])[..., 0]

    return ContactSolver(force, solve.rank, S.shape[1])


def by_projection(Omega: Array, at: Contacts, free: FreeDirections, length: float) -> ContactSolver:
    """f = Π r (b.9c), (b.9d); `by_rows` in the states where Ω is singular."""
    identity = np.broadcast_to(np.eye(Omega.shape[-1]), Omega.shape)
    solve = solver(Omega, row_scale(identity, length))
    usual = solve.rank == Omega.shape[-1]
    across = np.swapaxes(free.H, -1, -2)
    inside = free.H @ solve.inverse @ across
    other = by_rows(Omega, at, length)
    Pi = np.full(Omega.shape, np.nan)
    if usual.any():
        gain = solve.inverse[usual] @ across[usual]
        Pi[usual] = solve.inverse[usual] - gain @ np.linalg.solve(
            inside[usual], np.swapaxes(gain, -1, -2)
        )

    def force(r: Array) -> Array:
        return np.where(usual[:, None], refined(Pi, Omega, r), other.force(r))  # as Π H* = 0

    return ContactSolver(force, other.rank, other.size)


def row_scale(S: Array, length: float) -> Array:
    """The length of a unit motion along each row, turns measured at a length: (batch, m)."""
    squares = (S**2).reshape(*S.shape[:2], -1, 2, 3).sum(axis=(2, 4))
    return np.sqrt(length**2 * squares[..., 0] + squares[..., 1])
