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

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra import mass
from linkwise.arguments import rows
from linkwise.bare_call import begins_bare
from linkwise.brief import brief
from linkwise.codegen.formula import Formula
from linkwise.codegen.scalar.orthogonal import (
    complement,
    factored,
    independent,
    packed,
    solved,
    solved_below,
)
from linkwise.dynamics.batched import Batched
from linkwise.dynamics.kernels import no_call, written
from linkwise.dynamics.mass_root import mass_root
from linkwise.dynamics.velocity_space import checked_tolerance, states as states_of
from linkwise.errors import ShapeError, unknown_name
from linkwise.grasp.arms import MultiArm, Point, point_of, rigid_parts
from linkwise.grasp.held_object import TOLERANCE, evaluated, held_object
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import keep_bare_call, once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike, floats

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel
    from linkwise.codegen.writing import Writing

SAME = 1e-14
"""What is left of a row of a contact below this part of the longest is rounding."""


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


@begins_bare("point", "body", "tolerance")
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
    kernel = _kernel(mech, parts.object_bodies[0])
    if kernel.shapes["gap"][0]:
        bare = _one_state(mech, parts, kernel, at, tolerance)
        keep_bare_call(mech, "augmented_object", (point, body, tolerance), bare)
    results = evaluated(mech, kernel, q, v, at, tolerance)
    given = {name: x[0] if single else x for name, x in results.items()}
    return _recorded(mech, parts, given)


# ------------------------------------------------------------------------------------- formula

OF_OBJECT = (
    *("own_inertia", "own_coriolis", "own_gravity", "inertia", "coriolis", "gravity"),
    *("rank", "basis", "enforced", "velocity", "gap", "speed", "trouble"),
)
OF_ARM = ("rank", "inertia", "coriolis", "gravity", "jacobian", "consistent_inverse")


@once_per_mechanism
def _kernel(mech: Mechanism, body: str) -> Kernel:
    arms = rigid_parts(mech, body).arms
    names = [*OF_OBJECT, *(f"{x}_{i}" for i in range(len(arms)) for x in OF_ARM)]
    return written(mech, Formula(augmented, (body,), tuple(names)), body)


def _one_state(
    mech: Mechanism, parts: MultiArm, kernel: Kernel, point: Array, tolerance: float
) -> Callable[..., AugmentedObject | None]:
    """The bare call for one state in which the arms hold the object; otherwise None."""
    bare, still = kernel.device.fast or no_call, np.zeros(mech.nv)
    names, least = tuple(kernel.shapes), np.array([tolerance])

    def one_state(q: ArrayLike, v: ArrayLike = still) -> AugmentedObject | None:
        results = bare(q, v, point, least)
        if results is None:
            return None
        given = dict(zip(names, results, strict=True))
        return _recorded(mech, parts, given) if given["trouble"] <= 0.0 else None

    return one_state


def augmented(at: Writing, body: str) -> Any:
    """The formula of `AugmentedObject`."""
    held, arms = held_object(at, body)
    parts, K, d = rigid_parts(at.mech, body), held.to_hinge, held.offset
    root = mass_root(at, at.value(mass)).triangle
    coriolis, gravity = held.forces
    of_object = K.T @ held.mass @ K, K.T @ (held.mass @ d + coriolis), K.T @ gravity
    total, results = of_object, list[Any]()
    for of, arm in zip(parts.arms, arms, strict=True):
        seen = arm.A @ K
        half = arm.G @ seen
        inertia = half.T @ half
        falling, hanging = (seen.T @ arm.felt(x) for x in arm.whitened)
        falling = seen.T @ arm.carried(d) + falling
        J = held.jacobian @ _least(at, arm.A, arm.B)
        inverse = solved_below(root[np.ix_(of.columns, of.columns)], arm.Q @ half)
        results += [arm.mobility, inertia, falling, hanging, J, inverse]
        total = tuple(x + y for x, y in zip(total, (inertia, falling, hanging), strict=True))
    lost = complement(at, held.motions.T, held.exists)
    basis = np.zeros((6, 6), dtype=object)
    basis[: len(held.exists)] = packed(held.motions.T, held.exists)
    basis = basis + packed(lost.rows[::-1], lost.exists[::-1])[::-1]
    rank, enforced = held.exists.sum(), held.enforced_acceleration
    checks = held.gap, held.speed, held.trouble
    return *of_object, *total, rank, basis.T, enforced, held.velocity, *checks, *results


def _least(at: Writing, A: Any, B: Any) -> Any:
    """The least X for which A X is as near as possible to B: A = T V, T = Q R, X = V* R⁻¹ Q* B."""
    V, exists, _ = independent(at, A, SAME, 0.0)
    Q, R = factored(A @ V.T, exists)
    return V.T @ solved(R, Q.T @ B)


def _recorded(mech: Mechanism, parts: MultiArm, given: dict[str, Any]) -> AugmentedObject:
    """The record of the results of the kernel."""
    of_object = (given[f"own_{name}"] for name in ("inertia", "coriolis", "gravity"))
    arms = dict[str, AugmentedArm]()
    for i, arm in enumerate(parts.arms):
        rank, *rest = (given[f"{name}_{i}"] for name in OF_ARM)
        contacts = tuple(mech.loops[j].name for j in arm.contacts)
        arms[arm.name] = AugmentedArm(arm.name, contacts, arm.columns, _integer(rank), *rest)
    return AugmentedObject(
        AugmentedPart(parts.object_bodies[0], *of_object),
        arms,
        given["inertia"],
        given["coriolis"],
        given["gravity"],
        _integer(given["rank"]),
        given["basis"],
        given["enforced"],
        given["velocity"],
    )


def _integer(rank: Any) -> Any:
    """A rank as an integer."""
    return rank.astype(np.int64) if rank.ndim else int(rank)
