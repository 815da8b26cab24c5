"""What one arm feels of the object and of the other arms: the reflected load.

Arm i carries, at its effector, the object and all other arms: a load Λ_⊕ - Λ_i. With it the arm's
joint space inertia is

    𝓜_+i = 𝓜_i + J_i* (Λ_⊕ - Λ_i) J_i                                      (74)

and v̇_i = 𝓜_+i⁻¹ Γ_i is how its own joint forces move it while it holds the object. Theorem 4 takes
the consistent inverse from this inertia,

    J̄_i = 𝓜_+i⁻¹ J_i* (J_i 𝓜_+i⁻¹ J_i*)⁻¹,   Γ_i = J_i* F_i + (1 - J_i* J̄_i*) Γ_0   (75), (76)

and the second part moves nothing at the object.

A remark. 𝓜_+i differs from 𝓜_i by something that only sees J_i v_i; so does the complement of
ker J_i that both call orthogonal. By Woodbury, 𝓜_+i⁻¹ J_i* = 𝓜_i⁻¹ J_i* Λ_i Λ_⊕⁻¹, and (75) is
𝓜_i⁻¹ J_i* Λ_i: the J̄_i of the arm by itself. Where J_i is all of the object's motion, as in the
theorem, every arm can use its own inverse and need not know what it holds. The load matters as soon
as a task is about less than that, the position of the object only, say: for rows S of it

    J̄ = 𝓜_+i⁻¹ J* (J 𝓜_+i⁻¹ J*)⁻¹,   J = S J_i

is consistent in the closed chain, and the same with 𝓜_i is not.

Contacts that let the object turn on the hand, and arms that could move where the object cannot,
have no finite load; what holds always is the response of the arm's joints in the closed chain,

    v̇_i = (𝓜_i⁻¹ - 𝓜_i⁻¹ B* (B 𝓜_i⁻¹ B* + Ω_rest)⁺ B 𝓜_i⁻¹) Γ_i

with Ω_rest = A M_rest⁻¹ A*, the rest seen through the contacts. It is 𝓜_+i⁻¹ where that exists.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise import arguments
from linkwise.dynamics.mass_matrix import mass_matrix
from linkwise.dynamics.velocity_space import one_state, scale
from linkwise.errors import ShapeError
from linkwise.grasp.multi_arm.held_object import Point, arm_of, point_of, rigid_parts
from linkwise.grasp.multi_effector.augmented_object import AugmentedArm, augmented_object
from linkwise.grasp.multi_effector.held_state import CLOSED, TOLERANCE, HeldState, held_states
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats

SAME = 1e-10
"""Singular values below this part of the largest are called zero."""


@dataclass(frozen=True, slots=True, eq=False)
class ReflectedLoad:
    """One arm of several that hold an object, with the load it carries, in one state.

    Attributes:
        arm: The arm as if it held nothing: Λ_i, J_i, J̄_i, where its velocities stand in v.
        load: Λ_⊕ - Λ_i (6, 6) at the point, in the axes of the world.
        mass_matrix: 𝓜_+i (n, n), for rigid grasps of an object that moves in every way in which the
            arm could move it.
        response: (n, n): v̇_i = response Γ_i in the closed chain, forces besides Γ_i aside; the
            inverse of `mass_matrix` where that exists.
        object_response: (6, n): ẍ = object_response Γ_i of the object.
    """

    arm: AugmentedArm
    load: Array
    mass_matrix: Array
    response: Array
    object_response: Array

    def consistent_inverse(self, rows: ArrayLike | None = None) -> Array:
        """J̄_i of Theorem 4 (n, k), for all of the object's motion or for some rows of it.

        Expression:
            J̄* = (J R J*)⁺ J R,   J = S J_i,   J R = S object_response    (75) with R = 𝓜_+i⁻¹

        Args:
            rows: S (k, 6), angular columns first, in the axes of the world; by default all six.
        """
        J, moved = self._task(rows)
        return (np.linalg.pinv(moved @ J.T, rcond=SAME) @ moved).T

    def null_torque(self, tau0: ArrayLike, rows: ArrayLike | None = None) -> Array:
        """(1 - J* J̄*) Γ_0 (n,): what moves the arm and does nothing along the rows (76)."""
        what = f"tau0 of the arm {self.arm.name!r}"
        own = arguments.rows(
            tau0, len(self.arm.rows), what, stacked=False, hint="give tau[arm.rows]"
        )
        J, _ = self._task(rows)
        return own - J.T @ (self.consistent_inverse(rows).T @ own)

    def __str__(self) -> str:
        x, y, z = np.diag(self.load)[3:]
        return (
            f"load of the arm {self.arm.name!r}: diagonal of Λ_⊕ - Λ_i "
            f"x {x:.4g}, y {y:.4g}, z {z:.4g} kg"
        )

    def _task(self, rows: ArrayLike | None) -> tuple[Array, Array]:
        S = np.eye(6) if rows is None else floats(rows, "rows of the task")
        if S.ndim != 2 or S.shape[1] != 6:
            raise ShapeError(f"rows of the task have shape {S.shape}; it must be (k, 6).")
        return S @ self.arm.jacobian, S @ self.object_response


def reflected_load(
    mech: Mechanism,
    q: ArrayLike,
    arm: str,
    *,
    point: Point = None,
    held: str | None = None,
    tolerance: float = TOLERANCE,
) -> ReflectedLoad:
    """The object and the other arms as one arm feels them, and torques that do not disturb them.

    Expression:
        𝓜_+i = 𝓜_i + J_i* (Λ_⊕ - Λ_i) J_i,   J̄_i = 𝓜_+i⁻¹ J_i* (J_i 𝓜_+i⁻¹ J_i*)⁻¹
    Source: 003, Theorem 4, (74)-(76). See the head of this file for when the load matters.

    Args:
        mech: Arms and an object joined by loops alone.
        q: Joint positions (nq,) [m or rad] with loops closed; one state.
        arm: The arm: any of its bodies, its contact or its tip, by name.
        point: The operational point, as in `augmented_object`.
        held: Any body of the object, where it cannot be told by itself.
        tolerance: As in `augmented_object`.

    Raises:
        ModelError: The arm that is named does not hold the object; no object is held.
        UnknownNameError: Nothing has that name.
        ShapeError: q is not one state.
        ClosureError: A loop is open; names it, and says how far.
        SingularHingeError: Nothing resists the hinge of some body, which is named.
    """
    parts = rigid_parts(mech, held)
    name = arm_of(mech, parts, arm)
    at = point_of(mech, parts, point)
    q = one_state(mech, q)
    whole = augmented_object(mech, q, point=point, held=held, tolerance=tolerance)
    own = whole.arms[name]
    (state,) = held_states(mech, parts, q[None], np.zeros((1, mech.nv)), at, tolerance)
    load = whole.inertia - own.inertia
    rows: NDArray[np.int64] = own.rows
    mass = mass_matrix(mech, q)[np.ix_(rows, rows)]
    loaded = mass + own.jacobian.T @ load @ own.jacobian
    response = _response(state, name, mass, scale(mech).rows, scale(mech).length)
    exist = whole.directions
    inverse = exist @ np.linalg.solve(exist.T @ whole.inertia @ exist, exist.T)
    moved = np.asarray(inverse @ own.consistent_inverse.T, dtype=np.float64)
    return ReflectedLoad(own, load, loaded, response, moved)


def _response(state: HeldState, name: str, mass: Array, measure: Array, length: float) -> Array:
    """𝓜⁻¹ - 𝓜⁻¹ B* (B 𝓜⁻¹ B* + Ω_rest)⁺ B 𝓜⁻¹ of one arm."""
    (arm,) = (x for x in state.arms if x.name == name)
    others = [x for x in state.arms if x.name != name]
    rest: Array = state.mass + sum((x.inertia for x in others), np.zeros_like(state.mass))
    blocked = np.concatenate([np.zeros((0, len(rest))), *(x.blocked @ x.A for x in others)])
    free = np.linalg.svd(blocked)[2][_rank(blocked, CLOSED * length) :].T
    seen = arm.A @ free
    Omega: Array = seen @ np.linalg.solve(free.T @ rest @ free, seen.T)
    back = np.asarray(np.linalg.solve(mass, arm.B.T), dtype=np.float64)
    D = measure[arm.rows]
    inner: Array = D[:, None] * (arm.B @ back + Omega) * D
    gain = back * D
    found = np.linalg.inv(mass) - gain @ np.linalg.pinv(inner, rcond=SAME, hermitian=True) @ gain.T
    return np.asarray(found, dtype=np.float64)


def _rank(rows: Array, least: float) -> int:
    return int((np.linalg.svd(rows, compute_uv=False) > least).sum()) if len(rows) else 0
