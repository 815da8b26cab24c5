"""Joint forces of arms that move the object they hold, to a goal or with a given acceleration.

With F* = ẍ the acceleration of the object, v̇_o = K F* + d that of its hinge, λ the contact forces
that produce it (`load_sharing`), and Γ_0 arbitrary joint forces inside the arms,

    Γ_i = Γ_0i + B_i* {λ_i + Λ_i (A_i v̇_o + γ_i) - J̄_i* (Γ_0i - C_i)}

This is Γ_i = J_i* F_i + (1 - J_i* J̄_i*) Γ_0i of (76) with F_i = Λ_i F* + μ_i + p_i + A_i* λ_i seen
from the point. Summed over the arms it is F_⊕ = Λ_⊕ F* + μ_⊕ + p_⊕ (68), and the object moves like
a unit mass, ẍ = F* (69), with the chosen contact forces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias, cast

import numpy as np

from linkwise.documented import documented
from linkwise.dynamics.batched import Batched
from linkwise.dynamics.innovations import innovations
from linkwise.dynamics.velocity_space import checked_tolerance, states as states_of
from linkwise.errors import ModelError, ShapeError
from linkwise.grasp.arms import MultiArm, Point, point_of, rigid_parts
from linkwise.grasp.grasp import Grasp
from linkwise.grasp.held_object import TOLERANCE, HeldState, held_states
from linkwise.grasp.internal_force import Split, cells
from linkwise.grasp.load_sharing import Internal, Share, Sharing
from linkwise.model.mechanism import Mechanism
from linkwise.spatial import rotation
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.spatial.pose import Pose
from linkwise.tasks.control.gain import checked_gain, times
from linkwise.tasks.control.goal import Goal
from linkwise.tasks.control.posture import Posture

Compensate: TypeAlias = Literal["task", "joints"]
"""Whether the bias force is compensated in all joints, or only as far as the object feels it."""


@dataclass(frozen=True, slots=True, eq=False)
class ObjectTorque(Batched):
    """Joint forces of arms that move an object, and their effects.

    For a batch every array has the batch in front, and `result[i]` is one state of it.

    Attributes:
        tau: (nv,) [N or N m]; zero for the object, which nothing drives.
        acceleration: The resulting ẍ (6,): the requested one, as far as the arms allow it.
        total: F_⊕ (6,) at the point, in the axes of the world.
        shares: F_i (6,) by arm: total is their sum.
        contact_forces: On the object (6,), by contact, in the axes and at the origin of node b of
            its loop [N m, N].
    """

    WHAT: ClassVar[str] = "joint force for an object"
    AXES: ClassVar[tuple[str, int]] = ("tau", 1)

    tau: Array
    acceleration: Array
    total: Array
    shares: Mapping[str, Array]
    contact_forces: Mapping[str, Array]

    def __str__(self) -> str:
        if self.is_batch:
            arms, states = len(self.shares), len(self)
            return f"joint forces of {arms} arms that hold an object, {states} states"
        lines = [f"the object accelerates by ({cells(self.acceleration)}) rad/s², m/s²"]
        lines += [f"  {name}: F ({cells(F)}) N m, N" for name, F in self.shares.items()]
        lines += [f"  contact {name}: ({cells(f)})" for name, f in self.contact_forces.items()]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, eq=False)
class ObjectController:
    """Joint forces of arms that carry an object to its goal.

    Expression:
        F* = ẍ_d + k_v (ẋ_d - ẋ) + k_p e
        F_⊕ = Λ_⊕ F* + μ_⊕ + p_⊕ = Σ F_i                           (68), (67)
        Γ_i = J_i* F_i + (1 - J_i* J̄_i*) Γ_0                        (76)
    With an exact model the object is a unit mass, ẍ = F* (69), and ë + k_v ė + k_p e = 0.

    Source: 003, sections 6 and 7.

        carry = lw.grasp.ObjectController(mech, kp=100.0, kv=20.0, internal={"a-b": 20.0})
        tau = carry(q, v, lw.Goal(pose, velocity, acceleration))
        tau = carry.torque(q, v, acceleration).tau

    It has no state: the same (q, v, goal) give the same τ.

    Attributes:
        mech: Arms and an object joined only by loops (`multi_arm_parts`).
        kp: Square of the frequency [1/s²]: a number, one for each of (angular, linear), or a
            symmetric positive matrix (6, 6). `torque` needs no gains.
        kv: Damping [1/s], like kp; 2 √kp is critical.
        point: The operational point, with the object's axes: a node or body of the object, or (3,)
            in the frame of its body. Default: the origin of that frame.
        share: "internal_force": contact forces that only move the object, plus `internal`;
            "effort": least joint forces relative to their limits.
        split: Which contact forces only move the object, as in `Grasp.internal_forces`.
        internal: The squeeze: members of the virtual linkage by name, {"grasp_1-grasp_2": 20.0}, or
            contact forces (contacts, 6) that cancel. A call may give another.
        grasp: The contacts (`Grasp.of`), if they are not all rigid.
        posture: What redundant arms do in addition.
        compensate: Whether gravity and velocity forces are compensated in all "joints", or only as
            the object feels them ("task"), which lets redundant arms fall.
        body: Any body of the object, if the loops do not identify it.
        tolerance: Motions of an arm at its contacts below this fraction of its largest are lost.

    Raises:
        ModelError: Gains that are not positive; a mechanism in which no object is held; contacts
            that are not rigid without a grasp; internal forces that do not cancel.
        ShapeError: Gains of another shape.
    """

    mech: Mechanism
    kp: ArrayLike | None = None
    kv: ArrayLike | None = None
    point: Point = None
    share: Share = "internal_force"
    split: Split = "minimum_norm"
    internal: Internal = None
    grasp: Grasp | None = None
    posture: Posture | None = None
    compensate: Compensate = "joints"
    body: str | None = None
    tolerance: float = TOLERANCE
    parts: MultiArm = field(init=False, repr=False)
    _point: Array = field(init=False, repr=False)
    _sharing: Sharing = field(init=False, repr=False)

    def __post_init__(self) -> None:
        put: Any = object.__setattr__
        parts = rigid_parts(self.mech, self.body)
        put(self, "parts", parts)
        checked_tolerance(self.tolerance)
        if self.compensate not in ("task", "joints"):
            raise ModelError(f"compensate is {self.compensate!r}; it must be 'task' or 'joints'.")
        put(self, "_point", point_of(self.mech, parts, self.point))
        options = (self.share, self.grasp, self.split, self.internal)
        put(self, "_sharing", Sharing.of(self.mech, parts, *options))
        for name in ("kp", "kv"):
            gain = getattr(self, name)
            if gain is not None:
                put(self, name, checked_gain(gain, f"{name} of the object {parts.object!r}", 6))
        posture = cast(object, self.posture)
        if posture is not None and not isinstance(posture, Posture):
            raise ModelError(
                f"posture is a {type(posture).__name__}; it must be a lw.tasks.Posture."
            )

    def __call__(
        self,
        q: ArrayLike,
        v: ArrayLike,
        goal: Goal | Pose,
        *,
        internal: Internal = None,
        applied: ArrayLike | None = None,
    ) -> Array:
        """Joint forces (nv,) or (batch, nv) for a state; see `explain`."""
        return self.explain(q, v, goal, internal=internal, applied=applied).tau

    @documented
    def explain(
        self,
        q: ArrayLike,
        v: ArrayLike,
        goal: Goal | Pose,
        *,
        internal: Internal = None,
        applied: ArrayLike | None = None,
    ) -> ObjectTorque:
        """Joint forces that drive the object to a goal, with the arms' shares and contact forces.

        Args:
            goal: A `lw.Goal` with a `Pose` of the point, and ẋ_d and ẍ_d (6,) or (batch, 6) in the
                axes of the world; or the pose alone, at rest.
            internal: A squeeze in place of the controller's.
            applied: Force (6,) or (batch, 6) that the object applies to its surroundings, at the
                point in the axes of the world [N m, N].

        Raises:
            ClosureError: The named loop is open by more than 1 mm or 1 mrad, or velocities pull it
                apart.
        """
        if self.kp is None or self.kv is None:
            raise ModelError(
                f"a controller of the object {self.parts.object!r} without gains was given a goal; "
                "set kp and kv, or call .torque(q, v, acceleration)."
            )
        single, q, (v,) = states_of(self.mech, q, v=v)
        states = self._states(q, v)
        velocity = np.reshape([state.object.velocity for state in states], (len(q), 6))
        acceleration = self._acceleration(q, velocity, goal, single)
        tau0 = None if self.posture is None else self.posture.torque(self.mech, q, v)
        result = self._torque(q, states, single, acceleration, tau0, applied, internal)
        return result[0] if single else result

    @documented
    def torque(
        self,
        q: ArrayLike,
        v: ArrayLike,
        acceleration: ArrayLike,
        *,
        tau0: ArrayLike | None = None,
        internal: Internal = None,
        applied: ArrayLike | None = None,
    ) -> ObjectTorque:
        """Joint forces that give the object an acceleration.

        Args:
            acceleration: F* (6,) or (batch, 6): ẍ of the point, (angular, linear) in the axes of
                the world [rad/s², m/s²].
            tau0: Joint forces (nv,) or (batch, nv) in the null space of redundant arms.
            internal: A squeeze in place of the controller's.
            applied: Force (6,) or (batch, 6) that the object applies to its surroundings, at the
                point in the axes of the world [N m, N].

        Raises:
            ShapeError: The named array does not fit.
            ClosureError: The named loop is open, or velocities pull it apart.
            SingularHingeError: Nothing resists the hinge of the named body.
        """
        single, q, (v,) = states_of(self.mech, q, v=v)
        ahead = _rows(acceleration, 6, len(q), single, "acceleration")
        pull = None if tau0 is None else _rows(tau0, self.mech.nv, len(q), single, "tau0")
        result = self._torque(q, self._states(q, v), single, ahead, pull, applied, internal)
        return result[0] if single else result

    def pose(self, q: ArrayLike) -> Pose:
        """Pose of the operational point, with the object's axes."""
        at = self.mech.pose(self.mech.check_q(q), self.parts.object_bodies[0])
        return at @ Pose.translation(self._point)

    def error(self, q: ArrayLike, goal: Pose) -> Array:
        """e (6,) or (batch, 6): rotation [rad] and distance [m] to a pose, in world axes."""
        here = self.pose(q)
        turn = rotation.log(np.swapaxes(here.rot, -1, -2) @ goal.rot)
        turn = (here.rot @ turn[..., None])[..., 0]
        return np.concatenate(np.broadcast_arrays(turn, goal.p - here.p), axis=-1)

    def _states(self, q: Array, v: Array) -> list[HeldState]:
        return held_states(self.mech, self.parts, q, v, self._point, self.tolerance)

    def _acceleration(self, q: Array, velocity: Array, goal: Any, single: bool) -> Array:
        """F* (batch, 6)."""
        goal = goal if isinstance(goal, Goal) else Goal(goal)
        position: object = goal.position
        if not isinstance(position, Pose):
            raise ModelError(
                f"the goal of the object {self.parts.object!r} is a {type(position).__name__}; it "
                "must be a lw.Pose, or a lw.Goal with one."
            )
        if np.shape(position.p) not in ((3,), (len(q), 3)) or np.shape(position.rot)[-2:] != (3, 3):
            raise ShapeError(
                f"the goal has positions of shape {np.shape(position.p)}; it must be (3,)"
                + ("." if single else f" or ({len(q)}, 3).")
            )
        speed, ahead = (
            np.zeros(6) if x is None else _rows(x, 6, len(q), single, f"{what} of the goal")
            for x, what in ((goal.velocity, "velocity"), (goal.acceleration, "acceleration"))
        )
        kp, kv = cast(Array, self.kp), cast(Array, self.kv)
        return ahead + times(kv, speed - velocity) + times(kp, self.error(q, position))

    def _torque(
        self,
        q: Array,
        states: list[HeldState],
        single: bool,
        acceleration: Array,
        tau0: Array | None,
        applied: ArrayLike | None,
        internal: Internal,
    ) -> ObjectTorque:
        """Joint forces (batch, nv) for accelerations F* (batch, 6) of the point."""
        mech, parts = self.mech, self.parts
        batch, nv = len(states), mech.nv
        force = None if applied is None else _rows(applied, 6, batch, single, "applied")
        squeeze = self._sharing.squeezed(internal)
        pull, eps = np.zeros((2, batch, nv))
        if tau0 is not None and batch:
            pull = tau0.copy()
            pull[:, parts.object_rows] = 0.0
            eps = innovations(mech, q, pull)
        tau, moved = np.zeros((batch, nv)), np.zeros((batch, 6))
        shares = {arm.name: np.zeros((batch, 6)) for arm in parts.arms}
        contacts = {loop.name: np.zeros((batch, 6)) for loop in mech.loops}
        for i, state in enumerate(states):
            K = state.object.to_hinge
            vdot = K @ acceleration[i] + state.object.offset
            wrench = state.object.mass @ vdot + state.object.forces.sum(axis=0)
            if force is not None:
                wrench = wrench + state.object.jacobian.T @ force[i]
            for arm in state.arms:  # everything except B* λ
                inner, free = pull[i, arm.columns], eps[i, arm.columns]
                if self.compensate == "joints":
                    inner = inner + arm.numbers.forces.sum(axis=0)
                else:
                    free = free - arm.numbers.whitened.sum(axis=0)
                tau[i, arm.columns] = inner + arm.numbers.B.T @ (
                    arm.numbers.carried(vdot) - arm.numbers.felt(free)
                )
            lam = self._sharing.multipliers(state, wrench, tau[i], squeeze)
            for arm in state.arms:
                tau[i, arm.columns] += arm.numbers.B.T @ lam[arm.rows]
                bias = arm.numbers.felt(arm.numbers.whitened.sum(axis=0))
                at_contact = lam[arm.rows] + arm.numbers.carried(vdot) + bias
                shares[arm.name][i] = K.T @ arm.numbers.A.T @ at_contact
            moved[i] = state.object.jacobian @ vdot + state.object.bias
            row = 0
            for out, S, sign in zip(contacts.values(), state.loops, parts.sign, strict=True):
                out[i] = sign * S.T @ lam[row : row + len(S)]
                row += len(S)
        total = np.sum(list(shares.values()), axis=0)
        return ObjectTorque(tau, moved, total, shares, contacts)


def _rows(value: ArrayLike, size: int, batch: int, single: bool, what: str) -> Array:
    """(batch, size) of an argument; raises for another shape."""
    array = floats(value, what)
    allowed = f"({size},)" if single else f"({size},) or ({batch}, {size})"
    if array.shape != (size,) and (single or array.shape != (batch, size)):
        raise ShapeError(f"{what} has shape {array.shape}; it must be {allowed}.")
    if not np.isfinite(array).all():
        raise ModelError(f"{what} is not finite.")
    return np.broadcast_to(array, (batch, size))
