"""A controller of an object that several arms hold: a pose to go to in, joint forces out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from linkwise.dynamics.velocity_space import states as states_of
from linkwise.errors import ModelError, ShapeError
from linkwise.grasp import Grasp
from linkwise.grasp.internal_force import Split
from linkwise.grasp.multi_arm.held_object import Point
from linkwise.grasp.multi_effector.held_state import TOLERANCE
from linkwise.grasp.multi_effector.object_torque import (
    Compensate,
    ObjectTask,
    ObjectTorque,
    first,
    rows_of,
)
from linkwise.grasp.multi_effector.share import Internal, Share
from linkwise.model.mechanism import Mechanism
from linkwise.spatial import rotation
from linkwise.spatial.array import Array, ArrayLike
from linkwise.spatial.pose import Pose
from linkwise.tasks.control.gain import checked_gain, times
from linkwise.tasks.control.goal import Goal
from linkwise.tasks.control.posture import Posture


@dataclass(frozen=True, slots=True, eq=False)
class AugmentedObjectController:
    """Joint forces of arms that carry an object to its goal.

    Expression:
        F* = ẍ_d + k_v (ẋ_d - ẋ) + k_p e
        F_⊕ = Λ_⊕ F* + μ_⊕ + p_⊕ = Σ F_i                           (68), (67)
        Γ_i = J_i* F_i + (1 - J_i* J̄_i*) Γ_0                        (76)
    With a model that is right the object is a unit mass, ẍ = F* (69), and ë + k_v ė + k_p e = 0.
    Which F_i: see `share`.

    Source: 003, sections 6 and 7.

        carry = lw.grasp.AugmentedObjectController(mech, kp=100.0, kv=20.0, internal={"a-b": 20.0})
        tau = carry(q, v, lw.Goal(pose, velocity, acceleration))

    It holds no state of its own: the same (q, v, goal) give the same τ.

    Attributes:
        mech: Arms and an object joined by loops alone (`multi_arm_parts`).
        kp: Square of the frequency [1/s²]: a number, one for each of (angular, linear), or a
            symmetric positive matrix (6, 6).
        kv: Damping [1/s], like kp; 2 √kp is critical.
        point: The operational point, with the object's axes: a node or body of the object, or (3,)
            in the frame of its body; by default the origin of that.
        share: "internal_force" or "effort", see `object_torque`.
        split: Which contact forces only move the object, as in `internal_forces`.
        internal: The squeeze, see `object_torque`; a call may give another.
        grasp: What the contacts are, where they are not all rigid.
        posture: What redundant arms do besides.
        compensate: Whether bias forces are taken out in all "joints" or as the object feels them,
            "task".
        held: Any body of the object, where it cannot be told by itself.
        tolerance: Motions of an arm at its contacts below this part of its easiest are called lost.

    Raises:
        ModelError: Gains that are not positive; a mechanism in which no object is held; a share or
            internal forces that mean nothing.
        ShapeError: Gains of another shape.
    """

    mech: Mechanism
    kp: ArrayLike
    kv: ArrayLike
    point: Point = None
    share: Share = "internal_force"
    split: Split = "minimum_norm"
    internal: Internal = None
    grasp: Grasp | None = None
    posture: Posture | None = None
    compensate: Compensate = "joints"
    held: str | None = None
    tolerance: float = TOLERANCE
    task: ObjectTask = field(init=False, repr=False)

    def __post_init__(self) -> None:
        task = ObjectTask.of(
            self.mech,
            point=self.point,
            held=self.held,
            share=self.share,
            grasp=self.grasp,
            split=self.split,
            internal=self.internal,
            compensate=self.compensate,
            tolerance=self.tolerance,
        )
        object.__setattr__(self, "task", task)
        name = task.parts.object
        object.__setattr__(self, "kp", checked_gain(self.kp, f"kp of the object {name!r}", 6))
        object.__setattr__(self, "kv", checked_gain(self.kv, f"kv of the object {name!r}", 6))
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

    def explain(
        self,
        q: ArrayLike,
        v: ArrayLike,
        goal: Goal | Pose,
        *,
        internal: Internal = None,
        applied: ArrayLike | None = None,
    ) -> ObjectTorque:
        """Joint forces for a state, with the shares of the arms and the contact forces.

        Args:
            q: Joint positions (nq,) or (batch, nq) [m or rad] with loops closed.
            v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
            goal: A `lw.Goal` with a `Pose` of the point, and ẋ_d and ẍ_d (6,) or (batch, 6) in the
                axes of the world; or the pose alone, at rest.
            internal: A squeeze in place of the controller's.
            applied: Force (6,) at the point that the object shall put on its surroundings.

        Raises:
            ClosureError: A loop is open by more than 1 mm or 1 mrad, or velocities pull it apart;
                names it, and says how far.
        """
        single, q, (v,) = states_of(self.mech, q, v=v)
        states = self.task.states(q, v)
        moving = np.reshape([state.velocity for state in states], (len(q), 6))
        wanted = self._acceleration(q, moving, goal, single)
        pull = None if self.posture is None else self.posture.torque(self.mech, q, v)
        force = None if applied is None else rows_of(applied, 6, len(q), single, "applied")
        found = self.task.torque(q, states, wanted, pull, force, internal)
        return first(found) if single else found

    def pose(self, q: ArrayLike) -> Pose:
        """Where the operational point is, with the object's axes."""
        at = self.mech.pose(self.mech.check_q(q), self.task.parts.object_bodies[0])
        return at @ Pose.translation(self.task.point)

    def error(self, q: ArrayLike, target: Pose) -> Array:
        """e (6,) or (batch, 6): turn [rad] and way [m] to a pose, in the axes of the world."""
        here = self.pose(q)
        turn = rotation.log(np.swapaxes(here.rot, -1, -2) @ target.rot)
        turn = (here.rot @ turn[..., None])[..., 0]
        return np.concatenate(np.broadcast_arrays(turn, target.p - here.p), axis=-1)

    def _acceleration(self, q: Array, moving: Array, goal: Any, single: bool) -> Array:
        """F* (batch, 6)."""
        given = goal if isinstance(goal, Goal) else Goal(goal)
        target: object = given.target
        if not isinstance(target, Pose):
            raise ModelError(
                f"the goal of the object {self.task.parts.object!r} is a "
                f"{type(target).__name__}; it must be a lw.Pose, or a lw.Goal with one."
            )
        if np.shape(target.p) not in ((3,), (len(q), 3)) or np.shape(target.rot)[-2:] != (3, 3):
            raise ShapeError(
                f"the goal has positions of shape {np.shape(target.p)}; it must be (3,)"
                + ("." if single else f" or ({len(q)}, 3).")
            )
        speed, ahead = (
            np.zeros(6) if x is None else rows_of(x, 6, len(q), single, f"{what} of the goal")
            for x, what in ((given.velocity, "velocity"), (given.acceleration, "acceleration"))
        )
        kp, kv = cast(Array, self.kp), cast(Array, self.kv)
        return ahead + times(kv, speed - moving) + times(kp, self.error(q, target))
