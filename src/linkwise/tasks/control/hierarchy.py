"""Tasks in order of priority: each acts in the null space of those before it.

With 𝓜 = L L* the whitened acceleration w = L* v̇ and the whitened torque L⁻¹ (τ - C) are the same
vector, and half of its square is the kinetic energy that a torque costs. Level k requests

    J_k v̇ = a_k,       J_k v̇ = A_k* w  with  A_k = L⁻¹ J_k*,

and changes w inside S, the null space of the levels before; S = I at first:

    S A_k = L⁻¹ V σ U*,     the singular values of J_k N_prev = U σ V*
    w ← w + S z,            U* A_k* (w + S z) = U* a_k,     z of least length
    S ← S (I - Q Q*),       Q orthonormal, spanning the z of the level

This is the factorisation of the stacked Ω = A* A by blocks, A by orthogonal triangles instead of Ω
by Schur complements Ω_kk|prev = J_k N_prev 𝓜⁻¹ N_prev* J_k*: the same numbers, nothing squared. S
projects w to accelerations that do not disturb the levels before, S* L⁻¹ projects torques: N*.

Along each direction u of U a level may get a share from 0 to 1 of its request: near singular
configurations, or with damping. Directions are processed from the largest σ to the smallest, so
that small ones do not disturb the others. For damping they are those of S A_k itself, whose shares
turn Ω⁻¹ into (Ω + d²)⁻¹.

This is array code for one state, which kernels trace (`linkwise.codegen.formula`). Lost directions
are carried along as zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.codegen.scalar.orthogonal import completed, dot, singular, solved, triangle_of
from linkwise.dynamics.mass_root import MassRoot
from linkwise.spatial.choice import clip, gate, maximum, root, where
from linkwise.tasks.space import ROUNDING

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

TOLERANCE = 1e-10
"""Motions below this fraction of the largest one of a level are lost: rounding of J is 1e-15."""

SHORT = 0.25
"""The largest motion of a level counts as at least this fraction of the reach: levels of one row
or of only small motions, can lose directions too."""

FADING = 0.1
"""Share below which the joints of a redundant arm are controlled less and less."""

FULL = 1e-12
"""A fully used direction leaves less than this: rounding, treated as zero."""


class Size(NamedTuple):
    """The size of the motions of a level alone.

    Attributes:
        largest: Largest singular value of the scaled J, at least `SHORT` of the reach; of A for
            damping.
        metres: The same of J in both cases [m].
        reach: Of the mechanism at the nodes of the level [m].
    """

    largest: Any
    metres: Any
    reach: Any


class Directions(NamedTuple):
    """The directions of a level in the null space of those before it.

    Attributes:
        rows: U (m, m): directions, the columns, over the scaled rows of the level.
        values: σ (m,), the largest first [m], or those of S A_k.
        joints: V* (m, nv): the corresponding joint velocities, of unit length.
        largest: Largest singular value of the level alone, see `Size`.
        relative: σ over the largest (m,).
        exists: 0 for directions with σ below the tolerance, else 1 (m,).
        share: The given fraction of the request (m,).
        hold: How much joints are controlled separately (m,), from 0 to 1.
    """

    rows: Any
    values: Any
    joints: Any
    largest: Any
    relative: Any
    exists: Any
    share: Any
    hold: Any


Share = Callable[[Any], Any]
"""From σ over the largest (m,) to shares (m,)."""

Aside = Callable[[Directions, Any], Any]
"""From the directions and L⁻¹ v_i as rows (m, nv) to joint accelerations v_i* v̇ (m,), for the part
of the directions that a level does not get."""

Brake = Callable[[Directions], tuple[Any, Any, Any]]
"""Lower and upper bounds of v_i* v̇ (m,), which apply where the third result (m,) is positive."""


def everything(relative: Any) -> Any:
    """Every direction in full: the plain inverse."""
    return np.full(len(relative), 1.0, dtype=object)


def smooth(x: Any) -> Any:
    """From 0 to 1 like x, with zero slope at both ends: x² (3 - 2 x)."""
    x = clip(x, 0.0, 1.0)
    return x * x * (3.0 - 2.0 * x)


class Taken(NamedTuple):
    """A factor I - X Y* of S, and L X and L Y, all (nv, k)."""

    X: Any
    Y: Any
    LX: Any
    LY: Any


class Hierarchy:
    """Levels, added in order of priority to an acceleration.

    Attributes:
        root: The root of the mass matrix.
        w: Whitened acceleration (nv,).
        force: τ - C = L w (nv,).
        free: The number of remaining degrees of freedom.
        levels: The number of levels so far, without single joints before them.
    """

    def __init__(self, mass: MassRoot, drive: Any, tolerance: Any) -> None:
        """Begin with no level: the torque is that of the null space.

        Args:
            mass: The root of the mass matrix.
            drive: Γ₀ - C (nv,).
            tolerance: Singular values below this fraction of the largest count as zero.
        """
        self.at, self.root, self.tolerance = mass.at, mass, tolerance
        self.w, self.force = mass.whitened(drive), drive
        self.free: Any = float(len(drive))
        self.levels = 0
        self._taken = list[Taken]()

    @property
    def acceleration(self) -> Any:
        """v̇ = L⁻* w (nv,)."""
        return self.root.acceleration(self.w, self.force)

    def add(
        self,
        J: Any,
        acceleration: Any,
        size: Size | None,
        share: Share,
        aside: Aside | None = None,
        brake: Brake | None = None,
        *,
        reach: Any = 0.0,
        inertial: bool = False,
    ) -> tuple[Directions, Any]:
        """Add a level; returns its directions, and where joints would be too fast (m,).

        Args:
            J: Its Jacobian (m, nv), of rows that are all speeds.
            acceleration: The requested J v̇ (m,): ẍ - γ.
            size: The size of its motions; None for the first level, where it follows from J.
            share: From σ over the largest to the share of the request.
            aside: Motion of joints in directions with a share below 1. Default: none, which leaves
                them to the following levels.
            brake: Bounds of all of that.
            reach: Of the mechanism at the nodes of the level [m].
            inertial: Whether the directions are those of S A_k instead of J_k N_prev.
        """
        A_star = self.root.whitened(J.T).T
        white, inside = self.left(A_star, J)
        span, values = singular(self.at, white if inertial else inside)
        if size is None:
            size = sized(self.at, J, values[0], reach, inertial)
        directions = self._directions(span, values, inside, size, share, aside is not None)
        if inertial:
            along = (span.T @ white) * (directions.exists / where(directions.exists, values, 1.0))[
                :, None
            ]
        else:
            along = self.root.whitened(directions.joints.T).T  # rows (L⁻¹ v_i)*
        missing = acceleration - A_star @ self.w
        requested = (
            directions.exists * (span.T @ missing) / where(directions.exists, values, 1.0)
        )  # as v_i* v̇
        now, other, slowed = along @ self.w, 0.0 * requested, 0.0 * requested
        if aside is not None:
            other = aside(directions, along) - now
        if brake is not None:
            low, high, on = brake(directions)
            within = where(on, clip(requested, low - now, high - now), requested)
            slowed = directions.exists * where(
                within - requested, 1.0, gate(requested - within, 1.0)
            )
            requested, other = within, where(on, clip(other, low - now, high - now), other)
        self._change(along, directions, requested, other)
        return directions, slowed

    def add_joints(self, which: list[int], acceleration: Any, share: Any) -> None:
        """Accelerations of single joints before all levels, each with its share.

        With A_i = L⁻¹ e_i, W² = share and K = W A* A W + (1 - W²) diag(A* A), w changes by A f with
        f = W K⁻¹ W times the request: A_i* w is as requested where a share is 1, and f_i = 0 where
        it is 0. The remaining space is I - A W K⁻¹ W A*, the square of a symmetric S.

        Args:
            which: Indices of the k joints in v.
            acceleration: Their v̇ (k,).
            share: Their shares (k,); 0 has no effect.
        """
        axes = np.eye(len(self.w))[:, which].astype(object)
        A = self.root.whitened(axes)
        Omega = A.T @ A
        half = in_part(Omega, share)
        f = half.T @ (half @ (acceleration - self.acceleration[which]))
        self.w, self.force = self.w + A @ f, self.force + axes @ f
        turn, values = singular(self.at, half @ Omega @ half.T)  # both of them symmetric
        left = 1.0 - values
        left = gate(left - FULL, left)
        # 1 - √(1 - x) = x / (1 + √(1 - x)): S = I - A X A*
        X = half.T @ ((turn / (1.0 + root(left))) @ turn.T) @ half
        self._taken.append(Taken(A @ X, A, axes @ X, axes))
        self.free = self.free - len(which) + left.sum()

    def _directions(
        self, span: Any, values: Any, inside: Any, size: Size, share: Share, holding: bool
    ) -> Directions:
        """Singular values of J N_prev, and the share of each direction."""
        m, n = inside.shape
        relative = values / where(size.largest, size.largest, 1.0)
        exists = gate(
            relative - self.tolerance, gate(relative * size.metres - ROUNDING * size.reach, 1.0)
        )
        given = exists * share(relative)
        # The v_i of one level with as many rows as joints span all accelerations, so all can be
        # controlled. Otherwise v_i of a lost direction is some motion of the kernel, part of which
        # stays free: the closer to being lost, the less v_i is controlled.
        spanning = not self.levels and m == n
        joints = (span.T @ inside) * (exists / where(exists, values, 1.0))[:, None]
        if spanning and holding:
            joints = completed(joints, exists)
        hold = 0.0 * given
        if holding:
            hold = gate(1.0 - given, 1.0 if spanning else smooth(given / FADING))
        self.levels += 1
        rest = (relative, exists, given, hold)
        return Directions(span, values, joints, size.largest, *rest)

    def left(self, A_star: Any, J: Any) -> tuple[Any, Any]:
        """A* S and J N_prev = A* S L* (m, nv)."""
        for taken in self._taken:
            part = A_star @ taken.X
            A_star, J = A_star - part @ taken.Y.T, J - part @ taken.LY.T
        return A_star, J

    def _change(self, along: Any, directions: Directions, requested: Any, other: Any) -> None:
        """w ← w + S Q y and S ← S (I - Q Q*) with L⁻¹ V = Q R.

        With r_i* y = v_i* of the change of v̇, share s and hold h, from the largest σ on:

            r_i* y = s request_i + (1 - s) (h other_i + (1 - h) the result of the directions before)
        """
        Q, forced, y, left = list[Any](), list[Any](), list[Any](), list[Any]()
        for i, (row, joint) in enumerate(zip(along, directions.joints, strict=True)):
            have: Any = 0.0
            for q, f, step in zip(Q, forced, y, strict=True):
                part = dot(q, row)
                row, joint, have = row - part * q, joint - part * f, have + part * step
            share, hold = directions.share[i], (1.0 - directions.share[i]) * directions.hold[i]
            used, length = share + hold, dot(row, row)
            over = gate(used, 1.0) / root(where(gate(used, length), length, 1.0))
            here = share * (requested[i] - have) + hold * (other[i] - have)
            Q.append(over * row)
            forced.append(over * joint)
            y.append(over * here)
            left.append((1.0 - share) * (1.0 - directions.hold[i]))
        columns, forces = np.array(Q, dtype=object).T, np.array(forced, dtype=object).T
        steps, left = np.array(y, dtype=object), np.array(left, dtype=object)
        z, f = columns @ steps, forces @ steps
        for taken in reversed(self._taken):
            part = taken.Y.T @ z
            z, f = z - taken.X @ part, f - taken.LX @ part
        self.w, self.force = self.w + z, self.force + f
        used = 1.0 - root(left)
        self._taken.append(Taken(columns * used, columns, forces * used, forces))
        self.free = self.free - len(left) + left.sum()


def sized(at: Writing, J: Any, alone: Any, reach: Any, inertial: bool) -> Size:
    """The size of the motions of a level.

    Args:
        at: The formula.
        J: Its Jacobian (m, nv), of rows that are all speeds.
        alone: Largest singular value of J, or of A if inertial.
        reach: Of the mechanism at the nodes of the level [m].
        inertial: Whether directions are those of A.
    """
    if inertial:
        return Size(alone, largest(at, J), reach)
    alone = maximum(alone, SHORT * reach)
    return Size(alone, alone, reach)


def largest(at: Writing, J: Any) -> Any:
    """Largest singular value of a matrix (m, n)."""
    return singular(at, J, vectors=False)[1][0]


def in_part(Omega: Any, share: Any, exists: Any = 1.0) -> Any:
    """K^(-½) W (k, k), a triangle: its square is the inverse of A* A where shares are 1.

    Rows with share 0 are zero; see `Hierarchy.add_joints`.

    Args:
        Omega: A* A (k, k).
        share: The share of each of the k (k,).
        exists: 0 for lost ones, whose rows of A* A are zero, else 1.
    """
    weight = root(share)
    diagonal = np.diag(Omega) * (1.0 - share) + (1.0 - exists)
    K = weight[:, None] * Omega * weight + np.diag(diagonal)
    return solved(triangle_of(K), np.diag(weight))
