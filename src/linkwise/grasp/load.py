"""Loads: what an arm carries in its hand, and what it feels of an object and of other arms.

A load of mass m and inertia 𝓘 about its centre of mass C, with r from the operational point O to C,
moves with v_C = v + ω × r. In (angular, linear),

    V_C = φ* V,   φ* = [1 0; -r~ 1],    Λ_L = φ [𝓘 0; 0 m] φ* = [𝓘 - m r~ r~   m r~;  -m r~   m]

which is the spatial inertia of the load about O. With all six rows of the effector in J, the arm
and the load together have

    Λ_arm+load = Λ_arm + Λ_L          in operational space    (Lemma 3)
    𝓜_arm+load = 𝓜 + J* Λ_L J         in joint space          (Lemma 4)

Lemma 4 states that energies add, and always holds. Lemma 3 follows from it by
(J (𝓜 + J* Λ_L J)⁻¹ J*)⁻¹ = Λ + Λ_L, for redundant arms as well, on one condition: the energy of the
load must be a function of ẋ alone. All six rows of the effector are enough. A task of fewer rows is
not: for the position of a hand alone, a load with an inertia about O turns with the hand and adds
more than its mass. Where motions of the effector are lost, the load counts in the remaining ones:
Λ_L between projectors P = U U* on them.

Arm i of several carries the object and all other arms at its effector: a load Λ_⊕ - Λ_i. With it
the joint space inertia of the arm is

    𝓜_+i = 𝓜_i + J_i* (Λ_⊕ - Λ_i) J_i                                      (74)

and v̇_i = 𝓜_+i⁻¹ Γ_i is the effect of its joint forces while it holds the object. Theorem 4 takes
the consistent inverse from this inertia,

    J̄_i = 𝓜_+i⁻¹ J_i* (J_i 𝓜_+i⁻¹ J_i*)⁻¹,   Γ_i = J_i* F_i + (1 - J_i* J̄_i*) Γ_0   (75), (76)

and the second part does not move the object.

A remark. 𝓜_+i and 𝓜_i differ by a term in J_i v_i only, so both define the same complement of ker
J_i. By Woodbury, 𝓜_+i⁻¹ J_i* = 𝓜_i⁻¹ J_i* Λ_i Λ_⊕⁻¹, and (75) is 𝓜_i⁻¹ J_i* Λ_i: the J̄_i of the
arm alone. If J_i is the full motion of the object, as in the theorem, an arm can use its own
inverse and need not know its load. The load matters for tasks of fewer rows S, the position of the
object for instance:

    J̄ = 𝓜_+i⁻¹ J* (J 𝓜_+i⁻¹ J*)⁻¹,   J = S J_i

is consistent in the closed chain, and the same with 𝓜_i is not.

Contacts that let the object turn on the hand, and arms that could move where the object cannot,
have no finite load. The response of the arm's joints in the closed chain always exists,

    v̇_i = (𝓜_i⁻¹ - 𝓜_i⁻¹ B* (B 𝓜_i⁻¹ B* + Ω_rest)⁺ B 𝓜_i⁻¹) Γ_i

with Ω_rest = A M_rest⁻¹ A*, the rest seen through the contacts. It is 𝓜_+i⁻¹ where that exists.

Source: 003, (56)-(62), (72)-(76), with the halves of the vectors in the other order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from linkwise import arguments
from linkwise.dynamics.kernels import Loops, check_mechanism
from linkwise.dynamics.kinematics import jacobian
from linkwise.dynamics.mass_matrix import mass_matrix
from linkwise.dynamics.operational_space import TOLERANCE, OperationalSpace, operational_space
from linkwise.dynamics.quantity import Frame
from linkwise.dynamics.velocity_space import one_state, scale
from linkwise.errors import ModelError, ShapeError
from linkwise.grasp import held_object
from linkwise.grasp.arms import Point, arm_of, point_of, rigid_parts
from linkwise.grasp.augmented_object import AugmentedArm, augmented_object
from linkwise.grasp.held_object import REDUNDANT, HeldState, held_states
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose, PoseLike

SAME = 1e-10
"""Singular values below this fraction of the largest count as zero."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadEffect:
    """An arm and a load at one of its nodes; for a batch every array has the batch in front.

    Attributes:
        node: The node that carries the load.
        load: Λ_L (6, 6) at the node, angular rows first.
        effector: The operational space of the arm without the load.
        inertia: Λ_arm+load (6, 6), in the possible motions of the node.
        mass_matrix: 𝓜_arm+load (nv, nv).
    """

    node: str
    load: Array
    effector: OperationalSpace
    inertia: Array
    mass_matrix: Array

    def __str__(self) -> str:
        if self.inertia.ndim > 2:
            return f"a load at {self.node!r}, {len(self.inertia)} states"
        before, after = (np.trace(x[3:, 3:]) / 3.0 for x in (self.effector.inertia, self.inertia))
        mass = self.load[5, 5]
        return (
            f"a load of {mass:.4g} kg at {self.node!r}: the mean of the diagonal of the linear "
            f"part of Λ goes from {before:.4g} to {after:.4g} kg"
        )


def load_inertia(load: SpatialInertia, pose: PoseLike | None = None) -> Array:
    """Λ_L: the inertia of a load at the operational point.

    Expression:
        Λ_L = φ M_L φ* = [𝓘_C - m r~ r~   m r~;  -m r~   m]
    with r from the operational point to the centre of mass of the load.
    Source: 003 (56)-(59). Departs: (angular, linear); the load may be given about any frame.

    Args:
        load: Mass, centre of mass and inertia of the load in its own frame.
        pose: Of that frame in the operational frame; default: identical. A stack of poses gives a
            stack of inertias.

    Returns:
        (6, 6), or with a stack of poses (batch, 6, 6), at the origin of the operational frame and
        in its axes, angular rows first [kg m², kg m, kg].

    Raises:
        ModelError: The load is not a SpatialInertia.
    """
    if not isinstance(cast(object, load), SpatialInertia):
        raise ModelError(
            f"load is a {type(load).__name__}; it must be a SpatialInertia, which "
            "lw.SpatialInertia.from_com, .point, .solid_box and others make."
        )
    at = Pose.identity() if pose is None else pose if isinstance(pose, Pose) else Pose.of(pose)
    with np.errstate(over="ignore", invalid="ignore"):
        inertia = np.array(load.moved(at).matrix)
    if not np.isfinite(inertia).all():
        raise ModelError("the inertia of the load is not finite: it is too far away, or too heavy.")
    return inertia


def load_effect(
    mech: Mechanism,
    q: ArrayLike,
    load: SpatialInertia,
    *,
    node: str,
    pose: PoseLike | None = None,
    frame: Frame = "node",
    tolerance: float = TOLERANCE,
    loops: Loops = "closed",
) -> LoadEffect:
    """The inertia of an arm at a node with a load fixed there.

    Expression:
        Λ_arm+load = Λ + P Λ_L P,   P on the possible motions        (62)
        𝓜_arm+load = 𝓜 + J* Λ_L J                                    (72)
    Source: 003, Lemmas 3 and 4. `mech.with_payload` builds the mechanism that carries the load.

    Args:
        load: The load, in its own frame.
        node: Name of the node or body that carries it: the operational point.
        pose: Of the load's frame in the node's; default: identical.
        frame: Axes of the inertias: those of the "node" or of the "world".
        tolerance: Motions of the node below this fraction of the largest count as lost.

    Raises:
        ModelError: The load is not a SpatialInertia.
        UnknownNameError: The mechanism has no such node.
    """
    check_mechanism(mech)
    space = operational_space(mech, q, node, frame=frame, tolerance=tolerance, loops=loops)
    at_node = load_inertia(load, pose)
    J = np.asarray(jacobian(mech, q, node, frame="node"))
    mass = mass_matrix(mech, q) + np.swapaxes(J, -1, -2) @ at_node @ J
    if frame == "world":
        rot = mech.pose(mech.check_q(q), node).rot
        turn = np.zeros((*rot.shape[:-2], 6, 6))
        turn[..., :3, :3] = turn[..., 3:, 3:] = rot
        at_node = turn @ at_node @ np.swapaxes(turn, -1, -2)
    kept = np.arange(6) < np.asarray(space.rank)[..., None]
    exist = (space.basis * kept[..., None, :]) @ np.swapaxes(space.basis, -1, -2)
    added = np.broadcast_to(at_node, exist.shape)
    return LoadEffect(node, np.array(added), space, space.inertia + exist @ added @ exist, mass)


@dataclass(frozen=True, slots=True, eq=False)
class ReflectedLoad:
    """One of several arms that hold an object, with the load it carries, in one state.

    Attributes:
        arm: The arm without a load: Λ_i, J_i, J̄_i and the indices of its velocities in v.
        load: Λ_⊕ - Λ_i (6, 6) at the point, in the axes of the world.
        mass_matrix: 𝓜_+i (n, n), for rigid grasps of an object that the arm can move freely.
        response: (n, n): v̇_i = response Γ_i in the closed chain, without other forces; the inverse
            of `mass_matrix` where that exists.
        object_response: (6, n): ẍ = object_response Γ_i of the object.
    """

    arm: AugmentedArm
    load: Array
    mass_matrix: Array
    response: Array
    object_response: Array

    def consistent_inverse(self, rows: ArrayLike | None = None) -> Array:
        """J̄_i of Theorem 4 (n, k), for the full motion of the object or some rows of it.

        Expression:
            J̄* = (J R J*)⁺ J R,   J = S J_i,   J R = S object_response    (75) with R = 𝓜_+i⁻¹

        Args:
            rows: S (k, 6), angular columns first, in the axes of the world; default: all six.
        """
        J, moved = self._task(rows)
        return (np.linalg.pinv(moved @ J.T, rcond=SAME) @ moved).T

    def null_torque(self, tau0: ArrayLike, rows: ArrayLike | None = None) -> Array:
        """(1 - J* J̄*) Γ_0 (n,): the part that does not move the object along the rows (76)."""
        what = f"tau0 of the arm {self.arm.name!r}"
        gamma = arguments.rows(
            tau0, len(self.arm.rows), what, stacked=False, hint="give tau[arm.rows]"
        )
        J, _ = self._task(rows)
        return gamma - J.T @ (self.consistent_inverse(rows).T @ gamma)

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
    body: str | None = None,
    tolerance: float = held_object.TOLERANCE,
) -> ReflectedLoad:
    """The load of an arm: the object and the other arms, and torques that do not disturb them.

    Expression:
        𝓜_+i = 𝓜_i + J_i* (Λ_⊕ - Λ_i) J_i,   J̄_i = 𝓜_+i⁻¹ J_i* (J_i 𝓜_+i⁻¹ J_i*)⁻¹
    Source: 003, Theorem 4, (74)-(76).

    Args:
        mech: Arms and an object joined only by loops.
        q: Joint positions (nq,) [m or rad] with closed loops; one state.
        arm: Any body of the arm, its contact or its tip, by name.
        point: The operational point, as in `augmented_object`.
        body: Any body of the object, if the loops do not identify it.
        tolerance: As in `augmented_object`.

    Raises:
        ModelError: The named arm does not hold the object; no object is held.
        UnknownNameError: Nothing has that name.
        ShapeError: q is not one state.
        ClosureError: The named loop is open.
        SingularHingeError: Nothing resists the hinge of the named body.
    """
    parts = rigid_parts(mech, body)
    name = arm_of(mech, parts, arm)
    at = point_of(mech, parts, point)
    q = one_state(mech, q)
    total = augmented_object(mech, q, point=point, body=body, tolerance=tolerance)
    part = total.arms[name]
    (state,) = held_states(mech, parts, q[None], np.zeros((1, mech.nv)), at, tolerance)
    load = total.inertia - part.inertia
    rows: NDArray[np.int64] = part.rows
    mass = mass_matrix(mech, q)[np.ix_(rows, rows)]
    loaded = mass + part.jacobian.T @ load @ part.jacobian
    response = _response(state, name, mass, scale(mech).rows, scale(mech).length)
    exist = total.directions
    inverse = exist @ np.linalg.solve(exist.T @ total.inertia @ exist, exist.T)
    moved = np.asarray(inverse @ part.consistent_inverse.T, dtype=np.float64)
    return ReflectedLoad(part, load, loaded, response, moved)


def _response(state: HeldState, name: str, mass: Array, measure: Array, length: float) -> Array:
    """𝓜⁻¹ - 𝓜⁻¹ B* (B 𝓜⁻¹ B* + Ω_rest)⁺ B 𝓜⁻¹ of one arm."""
    (rows,) = (x.rows for x in state.arms if x.name == name)
    (arm,) = (x.numbers for x in state.arms if x.name == name)
    others = [x.numbers for x in state.arms if x.name != name]
    inertia: Array = state.object.mass
    rest: Array = inertia + sum((x.inertia for x in others), np.zeros_like(inertia))
    blocked = np.concatenate([np.zeros((0, len(rest))), *(x.blocked @ x.A for x in others)])
    values, right = np.linalg.svd(blocked)[1:]
    free = right[int((values > REDUNDANT * length).sum()) :].T
    seen: Array = arm.A @ free
    Omega: Array = seen @ np.linalg.solve(free.T @ rest @ free, seen.T)
    back = np.asarray(np.linalg.solve(mass, arm.B.T), dtype=np.float64)
    D = measure[rows]
    inner: Array = D[:, None] * (arm.B @ back + Omega) * D
    gain = back * D
    lost = gain @ np.linalg.pinv(inner, rcond=SAME, hermitian=True) @ gain.T
    return np.asarray(np.linalg.inv(mass) - lost, dtype=np.float64)
