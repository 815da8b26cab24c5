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

All of it is array code for one state, of which kernels are made (`linkwise.codegen.formula`).
Directions that are lost are carried along as zeros.
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
"""Motions below this fraction of the easiest one of a level are lost: rounding of J is 1e-15."""

SHORT = 0.25
"""The easiest motion of a level is taken for at least this part of the reach: also what moves along
one row only, or along all rows of a level, may go."""

FADING = 0.1
"""Share below which joints of an arm with spare freedoms are held less and less."""

FULL = 1e-12
"""What is left of a freedom that is taken in full is below this: rounding, whose root is none."""


class Size(NamedTuple):
    """How large the motions of a level are by itself.

    Attributes:
        largest: Largest singular value of the scaled J, or what it is taken for; of A for damping.
        metres: The same of J in any case [m].
        reach: Of the mechanism at the nodes of the level [m].
    """

    largest: Any
    metres: Any
    reach: Any


class Directions(NamedTuple):
    """The directions of a level in what those before it leave free.

    Attributes:
        rows: U (m, m): directions, the columns, over the scaled rows of the level.
        values: σ (m,), the largest first [m], or those of S A_k.
        joints: V* (m, nv): joint velocities that go with them, of unit length.
        largest: Largest singular value of the level by itself, or what it is taken for.
        relative: σ over the largest (m,).
        exists: 0 for directions with σ below the tolerance, else 1 (m,).
        share: What is given of what is asked for (m,).
        hold: How much joints are told what to do besides (m,), from 0 to 1.
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
"""Joint accelerations v_i* v̇ (m,) for the part of directions that a level is not given.

Given the directions, and L⁻¹ v_i as rows (m, nv).
"""

Brake = Callable[[Directions], tuple[Any, Any, Any]]
"""Bounds of v_i* v̇ (m,), below and above, where the last one (m,) is positive."""


def everything(relative: Any) -> Any:
    """Every direction in full: the plain inverse."""
    return np.full(len(relative), 1.0, dtype=object)


def smooth(x: Any) -> Any:
    """From 0 to 1 as x does, level at both ends: x² (3 - 2 x)."""
    x = clip(x, 0.0, 1.0)
    return x * x * (3.0 - 2.0 * x)


class Taken(NamedTuple):
    """A factor I - X Y* of S, and L X and L Y, all (nv, k)."""

    X: Any
    Y: Any
    LX: Any
    LY: Any


class Hierarchy:
    """Levels that are added one after the other to an acceleration.

    Attributes:
        root: The root of the mass matrix.
        w: Whitened acceleration (nv,).
        force: τ - C = L w (nv,).
        free: How many freedoms are left.
        levels: How many levels there are so far, without single freedoms before them.
    """

    def __init__(self, mass: MassRoot, drive: Any, tolerance: Any) -> None:
        """Begin with no level: all of the torque is the one for what tasks leave free.

        Args:
            mass: The root of the mass matrix.
            drive: Γ₀ - C (nv,).
            tolerance: Below this fraction of the largest, singular values are called zero.
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
        wanted: Any,
        size: Size | None,
        share: Share,
        aside: Aside | None = None,
        brake: Brake | None = None,
        *,
        reach: Any = 0.0,
        inertial: bool = False,
    ) -> tuple[Directions, Any]:
        """One more level; returns its directions, and where joints would be too fast (m,).

        Args:
            J: Its Jacobian (m, nv), of rows that are all speeds.
            wanted: J v̇ that it asks for (m,): ẍ - γ.
            size: How large its motions are; None for those of the first level, which are at hand.
            share: How much of it is given, from σ over the largest.
            aside: What joints do in directions that are not given in full; by default nothing, so
                that these are left to the levels that follow.
            brake: Between which bounds all of that is kept.
            reach: Of the mechanism at the nodes of the level [m].
            inertial: Whether directions are those of S A_k instead of J_k N_prev.
        """
        A_star = self.root.whitened(J.T).T
        white, inside = self.left(A_star, J)
        span, values = singular(self.at, white if inertial else inside)
        if size is None:
            size = sized(self.at, J, values[0], reach, inertial)
        found = self._directions(span, values, inside, size, share, aside is not None)
        if inertial:
            along = (span.T @ white) * (found.exists / where(found.exists, values, 1.0))[:, None]
        else:
            along = self.root.whitened(found.joints.T).T  # rows (L⁻¹ v_i)*
        missing = wanted - A_star @ self.w
        asked = found.exists * (span.T @ missing) / where(found.exists, values, 1.0)  # as v_i* v̇
        now, other, slowed = along @ self.w, 0.0 * asked, 0.0 * asked
        if aside is not None:
            other = aside(found, along) - now
        if brake is not None:
            low, high, on = brake(found)
            within = where(on, clip(asked, low - now, high - now), asked)
            slowed = found.exists * where(within - asked, 1.0, gate(asked - within, 1.0))
            asked, other = within, where(on, clip(other, low - now, high - now), other)
        self._change(along, found, asked, other)
        return found, slowed

    def add_joints(self, which: list[int], wanted: Any, share: Any) -> None:
        """Accelerations of single freedoms before all levels, each with a share of its own.

        With A_i = L⁻¹ e_i, W² = share and K = W A* A W + (1 - W²) diag(A* A), w changes by A f with
        f = W K⁻¹ W asked: A_i* w is as asked where a share is 1, and f_i = 0 where it is 0. What is
        left of w is I - A W K⁻¹ W A*, the square of a symmetric S.

        Args:
            which: Places in v of the k freedoms.
            wanted: Their v̇ (k,).
            share: How much of that is given (k,); with 0 it is as if it were not there.
        """
        axes = np.eye(len(self.w))[:, which].astype(object)
        A = self.root.whitened(axes)
        Omega = A.T @ A
        half = in_part(Omega, share)
        f = half.T @ (half @ (wanted - self.acceleration[which]))
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
        """Singular values of J N_prev, and how much is given along each of the directions."""
        m, n = inside.shape
        relative = values / where(size.largest, size.largest, 1.0)
        exists = gate(
            relative - self.tolerance, gate(relative * size.metres - ROUNDING * size.reach, 1.0)
        )
        given = exists * share(relative)
        # The v_i of one level with as many rows as there are freedoms span all accelerations: all
        # can be told what to do. Else v_i of a direction that is lost is any motion of the kernel,
        # some of which stay free: the nearer that is, the less is v_i told what to do.
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

    def _change(self, along: Any, found: Directions, asked: Any, other: Any) -> None:
        """w ← w + S Q y and S ← S (I - Q Q*) with L⁻¹ V = Q R.

        With r_i* y = v_i* of the change of v̇, share s and hold h, from the largest σ on:

            r_i* y = s asked_i + (1 - s) (h other_i + (1 - h) what the directions before make of it)
        """
        Q, forced, y, left = list[Any](), list[Any](), list[Any](), list[Any]()
        for i, (row, joint) in enumerate(zip(along, found.joints, strict=True)):
            have: Any = 0.0
            for q, f, step in zip(Q, forced, y, strict=True):
                part = dot(q, row)
                row, joint, have = row - part * q, joint - part * f, have + part * step
            share, hold = found.share[i], (1.0 - found.share[i]) * found.hold[i]
            used, length = share + hold, dot(row, row)
            over = gate(used, 1.0) / root(where(gate(used, length), length, 1.0))
            here = share * (asked[i] - have) + hold * (other[i] - have)
            Q.append(over * row)
            forced.append(over * joint)
            y.append(over * here)
            left.append((1.0 - share) * (1.0 - found.hold[i]))
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
    """How large the motions of a level are.

    Args:
        at: The formula.
        J: Its Jacobian (m, nv), of rows that are all speeds.
        alone: Largest singular value of J, or of A where directions are those.
        reach: Of the mechanism at the nodes of the level [m].
        inertial: Whether they are.
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

    Without rows where they are 0; see `Hierarchy.add_joints`.

    Args:
        Omega: A* A (k, k).
        share: How much is given of each of the k (k,).
        exists: 0 for those that are not there, whose rows of A* A are zero, else 1.
    """
    weight = root(share)
    own = np.diag(Omega) * (1.0 - share) + (1.0 - exists)
    K = weight[:, None] * Omega * weight + np.diag(own)
    return solved(triangle_of(K), np.diag(weight))
