"""The augmented object: several arms and what they hold, as one body at one point.

At the operational point of the object, with x its position and attitude,

    Λ_⊕ ẍ + μ_⊕ + p_⊕ = F_⊕,      F_⊕ = Σ F_i                              (64), (67)
    Λ_⊕ = Λ_L + Σ Λ_i,   μ_⊕ = μ_L + Σ μ_i,   p_⊕ = p_L + Σ p_i            (63), (65), (66), (71)

The parts of arm i are those of the arm alone, as if its hand reached to the point. For redundant
arms they are the projections by its dynamically consistent inverse J̄_i, and for contacts that let
the object turn on the hand, Λ_i counts only the directions that the contact blocks.

The object has the motions that every arm allows, m ≤ min m_i of them (70), U. All of the above is
then between projectors P = U U*; Λ_⊕ is the effective inertia of the closed chain there.

A remark on (71). Where the object has fewer motions than the hand of arm i, m < m_i, projecting the
arm into them as a single redundant arm is projected gives (U* J_i 𝓜_i⁻¹ J_i* U)⁻¹: an arm that is
free to move in the other m_i - m directions. It is not, it holds the object: what counts is
U* (J_i 𝓜_i⁻¹ J_i*)⁻¹ U, which is larger. Both agree for m = m_i.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import row, rows
from linkwise.dynamics.innovations import velocity_from_diagonal
from linkwise.dynamics.velocity_space import checked_tolerance, states as states_of
from linkwise.errors import ShapeError, unknown_name
from linkwise.grasp.multi_arm.held_object import Arm, MultiArm, Point, point_of, rigid_parts
from linkwise.grasp.multi_effector.held_state import TOLERANCE, HeldState, held_states
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats


@dataclass(frozen=True, slots=True, eq=False)
class AugmentedPart:
    """What the object by itself brings to the augmented object.

    Attributes:
        name: Of its body.
        inertia: Λ_L (6, 6), angular rows first, in the axes of the world.
        coriolis: μ_L (6,).
        gravity: p_L (6,).
    """

    name: str
    inertia: Array
    coriolis: Array
    gravity: Array


@dataclass(frozen=True, slots=True, eq=False)
class AugmentedArm:
    """What an arm brings to the augmented object.

    Attributes:
        name: First body of the arm.
        contacts: Names of the loops by which it holds the object.
        rows: Where its velocities stand in v (n,).
        rank: m_i, how many motions of the object it allows; an array for a batch.
        inertia: Λ_i (6, 6), angular rows first, in the axes of the world.
        coriolis: μ_i (6,).
        gravity: p_i (6,).
        jacobian: J_i (6, n): the point's motion of the arm's, as if both were one body. Where a
            contact lets the object turn on the hand, the smallest such motion.
        consistent_inverse: J̄_i (n, 6): F_i = J̄_i* Γ_i, and no motion of the object comes of
            (1 - J_i* J̄_i*) Γ.
    """

    name: str
    contacts: tuple[str, ...]
    rows: NDArray[np.int64]
    rank: int | NDArray[np.int64]
    inertia: Array
    coriolis: Array
    gravity: Array
    jacobian: Array
    consistent_inverse: Array

    def force(self, tau: ArrayLike) -> Array:
        """F_i = J̄_i* Γ_i (..., 6): what joint forces (..., n) of the arm do at the point."""
        own = self._own(tau)
        return (np.swapaxes(self.consistent_inverse, -1, -2) @ own[..., None])[..., 0]

    def torque(self, force: ArrayLike) -> Array:
        """Γ_i = J_i* F_i (..., n), joint forces of the arm for a force (..., 6) at the point."""
        F = rows(force, 6, "force")
        return (np.swapaxes(self.jacobian, -1, -2) @ F[..., None])[..., 0]

    def null_torque(self, tau0: ArrayLike) -> Array:
        """(1 - J_i* J̄_i*) Γ_0 (..., n): of joint forces, what moves the arm and not the object."""
        own = self._own(tau0)
        return own - self.torque(self.force(own))

    def _own(self, tau: ArrayLike) -> Array:
        what = f"the joint force of the arm {self.name!r}"
        return rows(tau, len(self.rows), what, hint="give tau[..., arm.rows]")


@dataclass(frozen=True, slots=True, eq=False)
class AugmentedObject:
    """Arms and the object that they hold, as one body at the operational point.

    Everything is in the axes of the world at the point: ẋ = (ω, v). For a batch every array has the
    batch in front, and `found[i]` is one state of it.

    Attributes:
        object: What the object brings.
        arms: What each arm brings, by its name.
        inertia: Λ_⊕ (6, 6), zero for what is not a motion of the object.
        coriolis: μ_⊕ (6,).
        gravity: p_⊕ (6,).
        rank: m, how many motions the object has; an array for a batch.
        basis: Orthonormal columns (6, 6): the first `rank` are motions of the object.
        enforced: (6,): the part of ẍ that arms with fewer than six motions leave no choice about;
            zero where the object has all six.
        velocity: ẋ (6,).
    """

    object: AugmentedPart
    arms: Mapping[str, AugmentedArm]
    inertia: Array
    coriolis: Array
    gravity: Array
    rank: int | NDArray[np.int64]
    basis: Array
    enforced: Array
    velocity: Array

    @property
    def directions(self) -> Array:
        """U (6, rank): the motions of the object."""
        return self._one().basis[:, : int(self.rank)]

    @property
    def lost(self) -> Array:
        """What the arms do not let the object do (6, 6 - rank)."""
        return self._one().basis[:, int(self.rank) :]

    def force(self, acceleration: ArrayLike) -> Array:
        """F_⊕ = Λ_⊕ ẍ + μ_⊕ + p_⊕ (..., 6) for an acceleration (..., 6) (68)."""
        a = _six(acceleration, "acceleration")
        return (self.inertia @ a[..., None])[..., 0] + self.coriolis + self.gravity

    def acceleration(self, force: ArrayLike) -> Array:
        """ẍ (6,) of one state under a total force F_⊕ (6,)."""
        exist = self.directions
        F = rows(force, 6, "force", stacked=False, hint="(angular, linear)")
        inner = exist.T @ (F - self.coriolis - self.gravity)
        return exist @ np.linalg.solve(exist.T @ self.inertia @ exist, inner) + self.enforced

    def total_force(self, tau: ArrayLike) -> Array:
        """F_⊕ = Σ J̄_i* Γ_i (..., 6) of joint forces τ (..., nv) of the mechanism."""
        needed = 1 + max(int(arm.rows.max()) for arm in self.arms.values())
        whole = floats(tau, "tau")
        if whole.ndim == 0 or whole.shape[-1] < needed:
            raise ShapeError(
                f"tau has shape {whole.shape}; it must be (..., nv), of the mechanism."
            )
        return np.sum([arm.force(whole[..., arm.rows]) for arm in self.arms.values()], axis=0)

    def arm(self, name: str) -> AugmentedArm:
        """An arm by its first body or by one of its contacts.

        Raises:
            UnknownNameError: No arm of this name holds the object; lists those that do.
        """
        for arm in self.arms.values():
            if name == arm.name or name in arm.contacts:
                return arm
        holds = [x for arm in self.arms.values() for x in (arm.name, *arm.contacts)]
        raise unknown_name("arm", name, holds, owner=f"those that hold {self.object.name!r}")

    def __len__(self) -> int:
        if self.inertia.ndim == 2:
            raise ShapeError("this is the augmented object of one state; it has no length.")
        return len(self.inertia)

    def __getitem__(self, i: int) -> AugmentedObject:
        """One state of a batch."""
        i = row(i, None if self.inertia.ndim == 2 else len(self.inertia), "this augmented object")
        part = self.object
        return AugmentedObject(
            AugmentedPart(part.name, part.inertia[i], part.coriolis[i], part.gravity[i]),
            {name: _chosen(arm, i) for name, arm in self.arms.items()},
            self.inertia[i],
            self.coriolis[i],
            self.gravity[i],
            int(np.asarray(self.rank)[i]),
            self.basis[i],
            self.enforced[i],
            self.velocity[i],
        )

    def __str__(self) -> str:
        held = f"{self.object.name!r}, held by {len(self.arms)} arm{'s' * (len(self.arms) > 1)}"
        if self.inertia.ndim == 3:
            return f"augmented object {held}, {len(self)} states"
        lines = [f"augmented object {held}: {self.rank} of 6 motions; diagonal of Λ [kg]"]
        parts = {self.object.name: self.object.inertia}
        parts |= {name: arm.inertia for name, arm in self.arms.items()}
        width = max(len(name) for name in (*parts, "together"))
        for name, Lambda in (*parts.items(), ("together", self.inertia)):
            x, y, z = np.diag(Lambda)[3:]
            lines.append(f"  {name:<{width}}  x {x:8.3f}  y {y:8.3f}  z {z:8.3f}")
        return "\n".join(lines)

    def _one(self) -> AugmentedObject:
        if self.inertia.ndim == 3:
            raise ShapeError(
                f"this is the augmented object of {len(self)} states, with ranks of their own; "
                "choose one of them first: found[0]."
            )
        return self


def augmented_object(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    point: Point = None,
    held: str | None = None,
    tolerance: float = TOLERANCE,
) -> AugmentedObject:
    """The inertia and the forces of arms and an object that they hold, at a point of the object.

    Expression:
        Λ_⊕ = Λ_L + Σ Λ_i,   μ_⊕ = μ_L + Σ μ_i,   p_⊕ = p_L + Σ p_i,   Λ_⊕ ẍ + μ_⊕ + p_⊕ = Σ F_i
    with Λ_i = A* (B 𝓜_i⁻¹ B*)⁺ A of the contacts that block A v_o = B v_i, all at the point and in
    the motions that the object has (see the head of this file).

    Source: 003, Theorem 3, (63)-(67), (70), (71).
    Departs: contacts of any kind; arms that are singular or have fewer than six freedoms; (71)
    where arms could move in ways that the object cannot.

    Args:
        mech: Arms and an object joined by loops alone (`multi_arm_parts`); the object is one rigid
            body on a hinge of its own, mostly a free one.
        q: Joint positions (nq,) or (batch, nq) [m or rad] with loops closed.
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s] that the loops allow; by default at
            rest.
        point: The operational point: a node or body of the object by name, or (3,) in the frame of
            the object's body [m]; by default the origin of that.
        held: Any body of the object, where it cannot be told by itself.
        tolerance: Motions of an arm at its contacts below this part of its easiest are called lost:
            the object is not moved along them.

    Returns:
        An `AugmentedObject`.

    Raises:
        ModelError: No object is held, or it has freedoms inside; the point is not on it.
        ShapeError: An array does not fit; says which.
        ClosureError: A loop is open, or velocities pull it apart; names it, and says how far.
        SingularHingeError: Nothing resists the hinge of some body, which is named.
    """
    parts = rigid_parts(mech, held)
    at = point_of(mech, parts, point)
    checked_tolerance(tolerance)
    single, q, (v,) = states_of(mech, q, v=np.zeros(mech.nv) if v is None else v)
    states = held_states(mech, parts, q, v, at, tolerance)
    found = _stacked(mech, parts, q, states)
    return found[0] if single else found


# ------------------------------------------------------------------------------------------- result


def _stacked(
    mech: Mechanism, parts: MultiArm, q: Array, states: list[HeldState]
) -> AugmentedObject:
    """Every number of the result, with the batch in front."""
    batch = len(states)
    inertia, basis = np.zeros((2, batch, 6, 6))
    coriolis, gravity, enforced, velocity = np.zeros((4, batch, 6))
    rank = np.zeros(batch, dtype=np.int64)
    for i, state in enumerate(states):
        K, d = state.to_hinge, state.offset
        inertia[i] = K.T @ state.mass @ K
        coriolis[i] = K.T @ (state.mass @ d + state.coriolis)
        gravity[i] = K.T @ state.gravity
        exist = state.directions
        rank[i] = exist.shape[1]
        basis[i] = np.linalg.qr(exist, mode="complete")[0] if rank[i] else np.eye(6)
        basis[i, :, : rank[i]] = exist
        enforced[i], velocity[i] = state.enforced_acceleration, state.velocity
    own = AugmentedPart(parts.object_bodies[0], inertia, coriolis, gravity)
    arms = {
        arm.name: _arm(mech, k, tuple(mech.loops[j].name for j in arm.contacts), arm, q, states)
        for k, arm in enumerate(parts.arms)
    }
    whole = [own, *arms.values()]
    return AugmentedObject(
        own,
        arms,
        np.sum([x.inertia for x in whole], axis=0),
        np.sum([x.coriolis for x in whole], axis=0),
        np.sum([x.gravity for x in whole], axis=0),
        rank,
        basis,
        enforced,
        velocity,
    )


def _arm(
    mech: Mechanism,
    k: int,
    contacts: tuple[str, ...],
    of: Arm,
    q: Array,
    states: list[HeldState],
) -> AugmentedArm:
    """What one arm brings, in all states."""
    batch, rows = len(states), of.columns
    inertia, coriolis, gravity = np.zeros((batch, 6, 6)), *np.zeros((2, batch, 6))
    J, whitened = np.zeros((batch, 6, len(rows))), np.zeros((batch, 6, mech.nv))
    rank = np.zeros(batch, dtype=np.int64)
    for i, state in enumerate(states):
        arm, K, d = state.arms[k], state.to_hinge, state.offset
        inertia[i] = K.T @ arm.inertia @ K
        coriolis[i] = K.T @ arm.A.T @ (arm.carried(d) + arm.felt(arm.whitened[0]))
        gravity[i] = K.T @ arm.A.T @ arm.felt(arm.whitened[1])
        J[i] = state.jacobian @ np.linalg.pinv(arm.A) @ arm.B
        whitened[i][:, rows] = (arm.Q @ arm.G @ arm.A @ K).T  # l* J̄, one row a column
        rank[i] = arm.freedoms
    if batch:
        back = velocity_from_diagonal(mech, np.repeat(q, 6, axis=0), whitened.reshape(-1, mech.nv))
        whitened = np.reshape(back, whitened.shape)
    inverse = np.ascontiguousarray(np.swapaxes(whitened[:, :, rows], 1, 2))
    return AugmentedArm(of.name, contacts, rows, rank, inertia, coriolis, gravity, J, inverse)


def _chosen(arm: AugmentedArm, i: int) -> AugmentedArm:
    return AugmentedArm(
        arm.name,
        arm.contacts,
        arm.rows,
        int(np.asarray(arm.rank)[i]),
        arm.inertia[i],
        arm.coriolis[i],
        arm.gravity[i],
        arm.jacobian[i],
        arm.consistent_inverse[i],
    )


def _six(value: ArrayLike, what: str) -> Array:
    return rows(value, 6, what, hint="(angular, linear)")
