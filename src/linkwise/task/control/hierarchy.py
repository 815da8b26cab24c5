"""Tasks in order of priority: each does what it can in the null space of those before it.

With 𝓜 = L L* the whitened acceleration w = L* v̇ and the whitened torque L⁻¹ (τ - C) are the same
vector, and half of its square is what a torque costs in kinetic energy. Level k asks

    J_k v̇ = a_k,       J_k v̇ = A_k* w  with  A_k = L⁻¹ J_k*,

and changes w inside S, what the levels before leave free; S = I at first:

    S A_k = L⁻¹ V σ U*,     the singular values of J_k N_prev = U σ V*
    w ← w + S z,            U* A_k* (w + S z) = U* a_k,     z of least length
    S ← S (I - Q Q*),       Q orthonormal, of the z that the level can ask for

This is the factorisation of the stacked Ω = A* A by blocks, A by orthogonal triangles instead of Ω
by Schur complements Ω_kk|prev = J_k N_prev 𝓜⁻¹ N_prev* J_k*: the same numbers, nothing squared. S
takes w to accelerations that leave all levels before alone, S* L⁻¹ takes torques there: N*.

Along each direction u of U a level may be given less than it asks for, a share from 0 to 1: near
singular configurations, or with damping. Directions are dealt with from the largest σ to the
smallest, so that what happens at the small ones does not disturb the others. For damping they are
those of S A_k itself, which shares then make (Ω + d²)⁻¹ of Ω⁻¹.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import SingularHingeError
from linkwise.spatial.array import Array
from linkwise.task.space import ROUNDING

TOLERANCE = 1e-10
"""Motions below this fraction of the easiest one of a level are lost: rounding of J is 1e-15."""

SHORT = 0.25
"""The easiest motion of a level is taken for at least this part of the reach: also what moves along
one row only, or along all rows of a level, may go."""

FADING = 0.1
"""Share below which joints of an arm with spare freedoms are held less and less."""


@dataclass(frozen=True, slots=True, eq=False)
class Directions:
    """The directions of a level in what those before it leave free, for a batch.

    Attributes:
        rows: U (batch, m, m): directions, the columns, over the scaled rows of the level.
        values: σ (batch, m), the largest first [m], or those of S A_k.
        joints: V* (batch, m, nv): joint velocities that go with them, of unit length.
        largest: Largest singular value of the level by itself (batch,), or what it is taken for.
        share: What is given of what is asked for (batch, m).
        lost: Directions with σ below the tolerance (batch, m).
        hold: How much joints are told what to do besides (batch, m), from 0 to 1.
        slowed: Directions in which joints would be too fast (batch, m).
    """

    rows: Array
    values: Array
    joints: Array
    largest: Array
    share: Array
    lost: NDArray[np.bool_]
    hold: Array
    slowed: NDArray[np.bool_]


Share = Callable[[Array], Array]
"""From σ over the largest (batch, m) to shares (batch, m)."""

Aside = Callable[[Directions], Array]
"""Joint accelerations v_i* v̇ (batch, m) for the part of directions that a level is not given."""

Brake = Callable[[Array, Array, Array, Array], tuple[Array, Array]]
"""From U, σ, V* and the largest σ to the bounds of v_i* v̇ (batch, m) of what is asked for."""


def everything(relative: Array) -> Array:
    """Every direction in full: the plain inverse."""
    return np.ones(relative.shape)


def smooth(x: Array) -> Array:
    """From 0 to 1 as x does, level at both ends: x² (3 - 2 x)."""
    x = np.clip(x, 0.0, 1.0)
    return x**2 * (3.0 - 2.0 * x)


class Hierarchy:
    """Levels that are added one after the other to an acceleration.

    Attributes:
        w: Whitened acceleration (batch, nv).
        S: What is still free (batch, nv, nv), a projector unless shares were given away in part.
        free: How many freedoms that is (batch,).
        levels: How many levels there are so far, without single freedoms before them.
    """

    def __init__(self, mass: Array, drive: Array, tolerance: float = TOLERANCE) -> None:
        """Begin with no level: all of the torque is the one for what tasks leave free.

        Args:
            mass: 𝓜 (batch, nv, nv).
            drive: Γ₀ - C (batch, nv).
            tolerance: Below this fraction of the largest, singular values are called zero.
        """
        try:
            self.root = np.asarray(np.linalg.cholesky(mass), dtype=np.float64)
        except np.linalg.LinAlgError:
            raise SingularHingeError(
                "the mass matrix is not positive definite: nothing resists some hinge, so no task "
                "can be controlled. Give its body a mass, or its drive an armature."
            ) from None
        self.unroot = np.asarray(np.linalg.inv(self.root), dtype=np.float64)
        self.w = _times(self.unroot, drive)
        batch, n = drive.shape
        self.S = np.broadcast_to(np.eye(n), (batch, n, n)).copy()
        self.free = np.full(batch, float(n))
        self.levels = 0
        self.tolerance = tolerance

    @property
    def acceleration(self) -> Array:
        """v̇ = L⁻* w (batch, nv)."""
        return _times(np.swapaxes(self.unroot, -1, -2), self.w)

    @property
    def force(self) -> Array:
        """τ - C = L w (batch, nv)."""
        return _times(self.root, self.w)

    def free_response(self, force: Array) -> Array:
        """𝓜⁻¹ f (batch, nv): the acceleration that a force gives by itself."""
        return _times(np.swapaxes(self.unroot, -1, -2), _times(self.unroot, force))

    def add(
        self,
        J: Array,
        wanted: Array,
        scale: Array,
        share: Share = everything,
        aside: Aside | None = None,
        brake: Brake | None = None,
        *,
        inertial: bool = False,
        reach: float = 0.0,
    ) -> Directions:
        """One more level.

        Args:
            J: Its Jacobian (batch, m, nv).
            wanted: J v̇ that it asks for (batch, m): ẍ - γ.
            scale: What makes all its rows speeds (m,).
            share: How much of it is given, from σ over the largest.
            aside: What joints do in directions that are not given in full; by default nothing, so
                that these are left to the levels that follow.
            brake: Between which bounds all of that is kept.
            inertial: Whether directions are those of S A_k instead of J_k N_prev.
            reach: Of the mechanism at the nodes of the level [m].
        """
        J = J * scale[:, None]
        A_star = J @ np.swapaxes(self.unroot, -1, -2)
        found = self._directions(J, A_star, share, aside is not None, inertial, reach)
        along = found.joints @ np.swapaxes(self.unroot, -1, -2)  # rows (L⁻¹ v_i)*
        missing = scale * wanted - _times(A_star, self.w)
        asked = _times(np.swapaxes(found.rows, -1, -2), missing)
        asked = asked / np.where(found.lost, np.inf, found.values)  # as v_i* v̇
        other = np.zeros(asked.shape)
        if aside is not None and found.hold.any():
            other = aside(found) - _times(along, self.w)
        if brake is not None:
            bounds = brake(found.rows, found.values, found.joints, found.largest)
            low, high = (bound - _times(along, self.w) for bound in bounds)
            within = np.clip(asked, low, high)
            slowed = np.asarray((within != asked) & ~found.lost, dtype=np.bool_)
            found, asked, other = replace(found, slowed=slowed), within, np.clip(other, low, high)
        self._change(along, found, asked, other)
        return found

    def add_joints(self, which: NDArray[np.int64], wanted: Array, share: Array) -> None:
        """Accelerations of single freedoms before all levels, each with a share of its own.

        Args:
            which: Places in v of the k freedoms.
            wanted: Their v̇ (batch, k).
            share: How much of that is given (batch, k); with 0 it is as if it were not there.
        """
        A = self.unroot[:, :, which]  # A_i = L⁻¹ e_i
        A_star = np.swapaxes(A, -1, -2)
        part, eye = in_part(A_star @ A, share), np.eye(self.w.shape[1])
        self.w = self.w + _times(A @ part, wanted - self.acceleration[:, which])
        values, vectors = np.linalg.eigh(eye - A @ part @ A_star)
        root = np.sqrt(np.clip(values, 0.0, 1.0))
        S = (vectors * root[:, None, :]) @ np.swapaxes(vectors, -1, -2)
        # The root of a rounding error is none: freedoms in full are taken out once more.
        keep = eye - A @ in_part(A_star @ A, (share == 1.0) * 1.0) @ A_star
        self.S = keep @ S @ keep
        self.free = (root**2).sum(axis=1)

    def _directions(
        self,
        J: Array,
        A_star: Array,
        share: Share,
        holding: bool,
        inertial: bool,
        reach: float,
    ) -> Directions:
        """Singular values of J N_prev, and how much is given along each of the directions."""
        batch, m, n = J.shape
        alone, inside = (A_star, A_star @ self.S) if inertial else (J, self._left(A_star))
        rows, least, joints = np.linalg.svd(inside, full_matrices=m > n)
        if inertial:
            joints = joints @ np.swapaxes(self.root, -1, -2)
        values, with_it = np.zeros((batch, m)), np.zeros((batch, m, n))
        values[:, : min(m, n)] = least
        with_it[:, : min(m, n)] = joints[:, : min(m, n)]
        untouched = bool((self.free == n).all())
        largest = values[:, 0] if untouched else np.linalg.norm(alone, 2, axis=(1, 2))
        size = np.linalg.norm(J, 2, axis=(1, 2)) if inertial else np.maximum(largest, SHORT * reach)
        largest = largest if inertial else size
        relative = values / np.where(largest > 0.0, largest, 1.0)[:, None]
        lost = (relative <= self.tolerance) | (relative * size[:, None] <= ROUNDING * reach)
        given = np.where(lost, 0.0, share(relative))
        hold = np.where(given < 1.0, float(holding), 0.0)
        # The v_i of one level with as many rows as there are freedoms span all accelerations: all
        # can be told what to do. Else v_i of a direction that is lost is any motion of the kernel,
        # some of which stay free: the nearer that is, the less is v_i told what to do.
        if self.levels or m != n:
            hold = hold * smooth(given / FADING)
        self.levels += 1
        none = np.zeros(lost.shape, dtype=np.bool_)
        return Directions(rows, values, with_it, np.asarray(largest), given, lost, hold, none)

    def _left(self, A_star: Array) -> Array:
        """J N_prev = A* S L* (batch, m, nv)."""
        return (A_star @ self.S) @ np.swapaxes(self.root, -1, -2)

    def _change(self, along: Array, found: Directions, asked: Array, other: Array) -> None:
        """w ← w + S Q y and S ← S (I - Q Q*) with L⁻¹ V = Q R."""
        m = min(along.shape[-2:])
        Q, R = np.linalg.qr(np.swapaxes(along[:, :m], -1, -2))
        if (found.share == 1.0).all():  # R* y = what is asked for
            solved = np.linalg.solve(np.swapaxes(R, -1, -2), asked[..., None])[..., 0]
            y, used = np.asarray(solved, dtype=np.float64), np.ones(solved.shape)
        else:
            y, used = _one_by_one(R, found, asked, other)
        self.w = self.w + _times(self.S, _times(Q, y))
        taken_out = 1.0 - np.sqrt(np.maximum(1.0 - used, 0.0))
        self.S = self.S - ((self.S @ Q) * taken_out[:, None, :]) @ np.swapaxes(Q, -1, -2)
        self.free = self.free - used.sum(axis=1)


def in_part(Omega: Array, share: Array) -> Array:
    """The inverse of A* A (batch, k, k) where shares are 1, without rows where they are 0.

    W K⁻¹ W with W² = share and K = W A* A W + (1 - W²) diag(A* A): the change of w by A f with
    f = W K⁻¹ W asked makes A_i* w as asked where a share is 1, and has f_i = 0 where it is 0.
    I - A W K⁻¹ W A* is what is left of w.

    Args:
        Omega: A* A (batch, k, k).
        share: How much is given of each of the k (batch, k).
    """
    weight, eye = np.sqrt(share), np.eye(share.shape[-1])
    own = np.diagonal(Omega, axis1=-2, axis2=-1) * (1.0 - share)
    K = weight[:, :, None] * Omega * weight[:, None, :] + own[:, :, None] * eye
    solved = np.linalg.solve(K, weight[:, :, None] * eye)
    return np.asarray(weight[:, :, None] * solved, dtype=np.float64)


def _one_by_one(R: Array, found: Directions, asked: Array, other: Array) -> tuple[Array, Array]:
    """y, and how much of each direction is used up, from the largest σ to the smallest.

    With r_i* y = v_i* of the change of v̇, share s and hold h:

        r_i* y = s asked_i + (1 - s) (h other_i + (1 - h) what the directions before make of it).
    """
    y, used = np.zeros(R.shape[:-1]), np.zeros(R.shape[:-1])
    for i in range(R.shape[-1]):
        have = (R[:, :i, i] * y[:, :i]).sum(axis=1)
        share, pivot = found.share[:, i], R[:, i, i]
        hold = (1.0 - share) * found.hold[:, i]
        here = share * (asked[:, i] - have) + hold * (other[:, i] - have)
        taken = (share + hold > 0.0) & (pivot != 0.0)
        y[:, i] = np.where(taken, here / np.where(pivot == 0.0, 1.0, pivot), 0.0)
        used[:, i] = np.where(found.hold[:, i] == 1.0, 1.0, share + hold)
    return y, used


def _times(matrix: Array, x: Array) -> Array:
    return (matrix @ x[..., None])[..., 0]
