"""The augmented object: several arms and the object they hold, as one body at one point.

At the operational point of the object, with x its position and attitude,

    Λ_⊕ ẍ + μ_⊕ + p_⊕ = F_⊕,      F_⊕ = Σ F_i                              (64), (67)
    Λ_⊕ = Λ_L + Σ Λ_i,   μ_⊕ = μ_L + Σ μ_i,   p_⊕ = p_L + Σ p_i            (63), (65), (66), (71)

The terms of arm i are those of the arm alone, as if its hand reached to the point. For redundant
arms they are the projections by its dynamically consistent inverse J̄_i. For contacts that let the
object turn on the hand, Λ_i counts only the directions that the contact blocks.

The object has the m ≤ min m_i motions U that every arm allows (70). All of the above is then
between projectors P = U U*; Λ_⊕ is the effective inertia of the closed chain there.

A remark on (71). If the object has fewer motions than the hand of arm i, m < m_i, projecting the
arm like a single redundant arm gives (U* J_i 𝓜_i⁻¹ J_i* U)⁻¹: an arm that is free to move in the
other m_i - m directions. It is not free, because it holds the object. The correct term is U* (J_i
𝓜_i⁻¹ J_i*)⁻¹ U, which is larger. Both agree for m = m_i.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import rows
from linkwise.brief import brief
from linkwise.dynamics.batched import Batched
from linkwise.dynamics.innovations import velocity_from_diagonal
from linkwise.dynamics.velocity_space import checked_tolerance, states as states_of
from linkwise.errors import ShapeError, unknown_name
from linkwise.grasp.arms import Arm, MultiArm, Point, point_of, rigid_parts
from linkwise.grasp.held_object import TOLERANCE, HeldState, held_states
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats


@brief
@dataclass(frozen=True, slots=True, eq=False)
class AugmentedPart(Batched):
    """The contribution of the object itself to the augmented object.

    Attributes:
        name: Of its body.
        inertia: Λ_L (6, 6), angular rows first, in the axes of the world.
        coriolis: μ_L (6,).
        gravity: p_L (6,).
    """

    WHAT: ClassVar[str] = "part of an augmented object"
    AXES: ClassVar[tuple[str, int]] = ("inertia", 2)

    name: str
    inertia: Array
    coriolis: Array
    gravity: Array


@brief
@dataclass(frozen=True, slots=True, eq=False)
class AugmentedArm(Batched):
    """The contribution of an arm to the augmented object.

    Attributes:
        name: First body of the arm.
        contacts: Names of the loops by which it holds the object.
        rows: Indices of its velocities in v (n,).
        rank: m_i, the number of motions of the object that it allows; an array for a batch.
        inertia: Λ_i (6, 6), angular rows first, in the axes of the world.
        coriolis: μ_i (6,).
        gravity: p_i (6,).
        jacobian: J_i (6, n): from the arm's velocities to the point, as if both were one body.
            Where a contact lets the object turn on the hand, the smallest such motion.
        consistent_inverse: J̄_i (n, 6): F_i = J̄_i* Γ_i, and (1 - J_i* J̄_i*) Γ does not move the
            object.
    """

    WHAT: ClassVar[str] = "arm of an augmented object"
    AXES: ClassVar[tuple[str, int]] = ("inertia", 2)
    SHARED: ClassVar[frozenset[str]] = frozenset({"rows"})

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
        """F_i = J̄_i* Γ_i (..., 6): the effect of joint forces (..., n) of the arm at the point."""
        what = f"the joint force of the arm {self.name!r}"
        gamma = rows(tau, len(self.rows), what, hint="give tau[..., arm.rows]")
        return (np.swapaxes(self.consistent_inverse, -1, -2) @ gamma[..., None])[..., 0]

    def torque(self, force: ArrayLike) -> Array:
        """Γ_i = J_i* F_i (..., n), joint forces of the arm for a force (..., 6) at the point."""
        F = rows(force, 6, "force")
        return (np.swapaxes(self.jacobian, -1, -2) @ F[..., None])[..., 0]

    def null_torque(self, tau0: ArrayLike) -> Array:
        """(1 - J_i* J̄_i*) Γ_0 (..., n): the part of joint forces that does not move the object."""
        moving = self.torque(self.force(tau0))
        return floats(tau0, "tau0") - moving


@dataclass(frozen=True, slots=True, eq=False)
class AugmentedObject(Batched):
    """Arms and the object that they hold, as one body at the operational point.

    Everything is in the axes of the world at the point: ẋ = (ω, v). For a batch every array has the
    batch in front, and `result[i]` is one state of it.

    Attributes:
        object: The contribution of the object itself.
        arms: The contribution of each arm, by its name.
        inertia: Λ_⊕ (6, 6), zero for impossible motions of the object.
        coriolis: μ_⊕ (6,).
        gravity: p_⊕ (6,).
        rank: m, the number of motions of the object; an array for a batch.
        basis: Orthonormal columns (6, 6): the first `rank` are motions of the object.
        enforced: (6,): the part of ẍ that arms with fewer than six motions determine; zero where
            the object has all six.
        velocity: ẋ (6,).
    """

    WHAT: ClassVar[str] = "augmented object"
    AXES: ClassVar[tuple[str, int]] = ("inertia", 2)

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
        return self._single().basis[:, : int(self.rank)]

    @property
    def lost(self) -> Array:
        """The motions that the arms block (6, 6 - rank)."""
        return self._single().basis[:, int(self.rank) :]

    def force(self, acceleration: ArrayLike) -> Array:
        """F_⊕ = Λ_⊕ ẍ + μ_⊕ + p_⊕ (..., 6) for an acceleration (..., 6) (68)."""
        a = rows(acceleration, 6, "acceleration", hint="(angular, linear)")
        return (self.inertia @ a[..., None])[..., 0] + self.coriolis + self.gravity

    def acceleration(self, force: ArrayLike) -> Array:
        """ẍ (6,) of one state under a total force F_⊕ (6,)."""
        exist = self.directions
        F = rows(force, 6, "force", stacked=False, hint="(angular, linear)")
        inner = exist.T @ (F - self.coriolis - self.gravity)
        return exist @ np.linalg.solve(exist.T @ self.inertia @ exist, inner) + self.enforced

    def total_force(self, tau: ArrayLike) -> Array:
        """F_⊕ = Σ J̄_i* Γ_i (..., 6) of joint forces τ (..., nv) of the mechanism."""
        least = 1 + max(int(arm.rows.max()) for arm in self.arms.values())
        forces = floats(tau, "tau")
        if forces.ndim == 0 or forces.shape[-1] < least:
            raise ShapeError(
                f"tau has shape {forces.shape}; it must be (..., nv), of the mechanism."
            )
        return np.sum([arm.force(forces[..., arm.rows]) for arm in self.arms.values()], axis=0)

    def arm(self, name: str) -> AugmentedArm:
        """An arm by its first body or by one of its contacts.

        Raises:
            UnknownNameError: No arm of this name holds the object.
        """
        for arm in self.arms.values():
            if name == arm.name or name in arm.contacts:
                return arm
        holds = [x for arm in self.arms.values() for x in (arm.name, *arm.contacts)]
        raise unknown_name("arm", name, holds, owner=f"those that hold {self.object.name!r}")

    def __str__(self) -> str:
        text = f"{self.object.name!r}, held by {len(self.arms)} arm{'s' * (len(self.arms) > 1)}"
        if self.is_batch:
            return f"augmented object {text}, {len(self)} states"
        lines = [f"augmented object {text}: {self.rank} of 6 motions; diagonal of Λ [kg]"]
        parts = {self.object.name: self.object.inertia}
        parts |= {name: arm.inertia for name, arm in self.arms.items()}
        width = max(len(name) for name in (*parts, "together"))
        for name, Lambda in (*parts.items(), ("together", self.inertia)):
            x, y, z = np.diag(Lambda)[3:]
            lines.append(f"  {name:<{width}}  x {x:8.3f}  y {y:8.3f}  z {z:8.3f}")
        return "\n".join(lines)


def augmented_object(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    point: Point = None,
    body: str | None = None,
    tolerance: float = TOLERANCE,
) -> AugmentedObject:
    """The inertia and forces of arms and the object they hold, at a point of the object.

    Expression:
        Λ_⊕ = Λ_L + Σ Λ_i,   μ_⊕ = μ_L + Σ μ_i,   p_⊕ = p_L + Σ p_i,   Λ_⊕ ẍ + μ_⊕ + p_⊕ = Σ F_i
    with Λ_i = A* (B 𝓜_i⁻¹ B*)⁺ A of the contacts that block A v_o = B v_i, all at the point and
    restricted to the possible motions of the object.

    Source: 003, Theorem 3, (63)-(67), (70), (71).
    Departs: contacts of any kind; arms that are singular or have fewer than six degrees of freedom;
    (71) where arms could move in ways that the object cannot.

    Args:
        mech: Arms and an object joined only by loops (`multi_arm_parts`); the object is one rigid
            body, usually on a free hinge.
        q: Joint positions (nq,) or (batch, nq) [m or rad] with closed loops.
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s] that the loops allow; default: at
            rest.
        point: The operational point: a node or body of the object by name, or (3,) in the frame of
            the object's body [m]. Default: the origin of that frame.
        body: Any body of the object, if the loops do not identify it.
        tolerance: Motions of an arm at its contacts below this fraction of its largest count as
            lost: the object does not move along them.

    Raises:
        ModelError: No object is held, or it has several moving bodies; the point is not on it.
        ShapeError: The named array does not fit.
        ClosureError: The named loop is open, or velocities pull it apart.
        SingularHingeError: Nothing resists the hinge of the named body.
    """
    parts = rigid_parts(mech, body)
    at = point_of(mech, parts, point)
    checked_tolerance(tolerance)
    single, q, (v,) = states_of(mech, q, v=np.zeros(mech.nv) if v is None else v)
    states = held_states(mech, parts, q, v, at, tolerance)
    result = _stacked(mech, parts, q, states)
    return result[0] if single else result


# ------------------------------------------------------------------------------------------- result


def _stacked(
    mech: Mechanism, parts: MultiArm, q: Array, states: list[HeldState]
) -> AugmentedObject:
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
    part = AugmentedPart(parts.object_bodies[0], inertia, coriolis, gravity)
    arms = {
        arm.name: _arm(mech, k, tuple(mech.loops[j].name for j in arm.contacts), arm, q, states)
        for k, arm in enumerate(parts.arms)
    }
    terms = [part, *arms.values()]
    return AugmentedObject(
        part,
        arms,
        np.sum([x.inertia for x in terms], axis=0),
        np.sum([x.coriolis for x in terms], axis=0),
        np.sum([x.gravity for x in terms], axis=0),
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
        rank[i] = arm.mobility
    if batch:
        back = velocity_from_diagonal(mech, np.repeat(q, 6, axis=0), whitened.reshape(-1, mech.nv))
        whitened = np.reshape(back, whitened.shape)
    inverse = np.ascontiguousarray(np.swapaxes(whitened[:, :, rows], 1, 2))
    return AugmentedArm(of.name, contacts, rows, rank, inertia, coriolis, gravity, J, inverse)
