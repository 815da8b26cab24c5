"""Joint forces of the arms that give the object an acceleration.

With F* = ẍ wanted, v̇_o = K F* + d the motion of the object's hinge that is that, λ the contact
forces that give it (`share`), and Γ_0 joint forces that may do what they like inside the arms,

    Γ_i = Γ_0i + B_i* {λ_i + Λ_i (A_i v̇_o + γ_i) - J̄_i* (Γ_0i - C_i)}

which is Γ_i = J_i* F_i + (1 - J_i* J̄_i*) Γ_0i of (76) with F_i = Λ_i F* + μ_i + p_i + A_i* λ_i
seen from the point. Summed over the arms it is F_⊕ = Λ_⊕ F* + μ_⊕ + p_⊕ (68), and the object moves
as a unit mass would, ẍ = F* (69), with the contact forces that were chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from linkwise.dynamics.closure import blocked_directions
from linkwise.dynamics.innovations import innovations
from linkwise.dynamics.velocity_space import checked_tolerance, states as states_of
from linkwise.errors import ModelError, ShapeError
from linkwise.grasp import Grasp
from linkwise.grasp.internal_force import Split
from linkwise.grasp.multi_arm.held_object import MultiArm, Point, point_of, rigid_parts
from linkwise.grasp.multi_effector.held_state import TOLERANCE, HeldState, held_states
from linkwise.grasp.multi_effector.share import Internal, Share, Sharing
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats

Compensate: TypeAlias = Literal["task", "joints"]
"""Whether the bias force is taken out in all joints, or as far as the object feels it."""


@dataclass(frozen=True, slots=True, eq=False)
class ObjectTorque:
    """Joint forces of arms that move an object, and what they do.

    For a batch every array has the batch in front.

    Attributes:
        tau: (nv,) [N or N m]; zero for the object, which nothing drives.
        acceleration: ẍ (6,) that the object has under them: what was wanted, as far as the arms let
            it move.
        total: F_⊕ (6,) at the point, in the axes of the world.
        shares: F_i (6,) by arm: total is their sum.
        contact_forces: On the object (6,), by contact, in the axes and at the origin of node b of
            its loop [N m, N].
    """

    tau: Array
    acceleration: Array
    total: Array
    shares: Mapping[str, Array]
    contact_forces: Mapping[str, Array]

    def __str__(self) -> str:
        if self.tau.ndim > 1:
            arms, states = len(self.shares), len(self.tau)
            return f"joint forces of {arms} arms that hold an object, {states} states"
        lines = [f"the object accelerates by ({_cells(self.acceleration)}) rad/s², m/s²"]
        lines += [f"  {name}: F ({_cells(F)}) N m, N" for name, F in self.shares.items()]
        lines += [f"  contact {name}: ({_cells(f)})" for name, f in self.contact_forces.items()]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, eq=False)
class ObjectTask:
    """An object that arms hold, its operational point, and how the arms share: made once.

    Attributes:
        mech: The mechanism.
        parts: Its arms and its object.
        point: The operational point in the frame of the object's body (3,).
        sharing: How contact forces are chosen.
        compensate: Whether the bias force is taken out in all joints.
        tolerance: Motions of an arm below this part of its easiest are lost.
    """

    mech: Mechanism
    parts: MultiArm
    point: Array
    sharing: Sharing
    compensate: Compensate
    tolerance: float = field(default=TOLERANCE)

    @staticmethod
    def of(
        mech: Mechanism,
        *,
        point: Point,
        held: str | None,
        share: Share,
        grasp: Grasp | None,
        split: Split,
        internal: Internal,
        compensate: Compensate,
        tolerance: float,
    ) -> ObjectTask:
        """Check what was asked for, and prepare it."""
        parts = rigid_parts(mech, held)
        checked_tolerance(tolerance)
        if compensate not in ("task", "joints"):
            raise ModelError(f"compensate is {compensate!r}; it must be 'task' or 'joints'.")
        sharing = Sharing.of(mech, parts, share=share, grasp=grasp, split=split, internal=internal)
        at = point_of(mech, parts, point)
        return ObjectTask(mech, parts, at, sharing, compensate, tolerance)

    def states(self, q: Array, v: Array) -> list[HeldState]:
        """Arms and object in a batch of states."""
        return held_states(self.mech, self.parts, q, v, self.point, self.tolerance)

    def torque(
        self,
        q: Array,
        states: list[HeldState],
        wanted: Array,
        pull: Array | None,
        applied: Array | None,
        internal: Internal,
    ) -> ObjectTorque:
        """Joint forces (batch, nv) for accelerations F* (batch, 6) of the point.

        Args:
            q: Joint positions (batch, nq).
            states: Arms and object there.
            wanted: F* (batch, 6).
            pull: Joint forces (batch, nv) for what the object leaves free.
            applied: Force (batch, 6) at the point that the object shall put on its surroundings.
            internal: A squeeze for this call.
        """
        batch, nv = len(states), self.mech.nv
        squeeze = self.sharing.squeezed(internal)
        eps = np.zeros((batch, nv))
        if pull is not None and batch:
            pull = pull.copy()
            pull[:, self.parts.object_rows] = 0.0
            eps = innovations(self.mech, q, pull)
        tau, moved, total = np.zeros((batch, nv)), np.zeros((batch, 6)), np.zeros((batch, 6))
        shares = {name: np.zeros((batch, 6)) for name in (arm.name for arm in self.parts.arms)}
        contacts = {loop.name: np.zeros((batch, 6)) for loop in self.mech.loops}
        for i, state in enumerate(states):
            K = state.to_hinge
            vdot = K @ wanted[i] + state.offset
            wrench = state.mass @ vdot + state.coriolis + state.gravity
            if applied is not None:
                wrench = wrench + state.jacobian.T @ applied[i]
            for arm in state.arms:  # all but B* λ
                free = eps[i, arm.columns]
                own = np.zeros(len(arm.columns)) if pull is None else pull[i, arm.columns]
                if self.compensate == "joints":
                    own = own + arm.forces.sum(axis=0)
                else:
                    free = free - arm.whitened.sum(axis=0)
                tau[i, arm.columns] = own + arm.B.T @ (arm.carried(vdot) - arm.felt(free))
            lam = self.sharing.multipliers(q[i], state, wrench, tau[i], squeeze)
            for arm in state.arms:
                tau[i, arm.columns] += arm.B.T @ lam[arm.rows]
                bias = arm.felt(arm.whitened.sum(axis=0))
                at_contact = lam[arm.rows] + arm.carried(vdot) + bias
                shares[arm.name][i] = K.T @ arm.A.T @ at_contact
            total[i] = sum(x[i] for x in shares.values())
            moved[i] = state.jacobian @ vdot + state.bias
            for f, out in zip(self._contact_forces(q[i], lam), contacts.values(), strict=True):
                out[i] = f
        return ObjectTorque(tau, moved, total, shares, contacts)

    def _contact_forces(self, q: Array, lam: Array) -> list[Array]:
        each, row = list[Array](), 0
        for S, sign in zip(blocked_directions(self.mech, q), self.parts.sign, strict=True):
            each.append(sign * S.T @ lam[row : row + len(S)])
            row += len(S)
        return each


def object_torque(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    acceleration: ArrayLike,
    *,
    point: Point = None,
    held: str | None = None,
    share: Share = "internal_force",
    grasp: Grasp | None = None,
    split: Split = "minimum_norm",
    internal: Internal = None,
    tau0: ArrayLike | None = None,
    applied: ArrayLike | None = None,
    compensate: Compensate = "joints",
    tolerance: float = TOLERANCE,
) -> ObjectTorque:
    """Joint forces of arms that give the object they hold an acceleration.

    Expression:
        F_⊕ = Λ_⊕ F* + μ_⊕ + p_⊕ = Σ F_i,   Γ_i = J_i* F_i + (1 - J_i* J̄_i*) Γ_0
    Source: 003, (67)-(69) and (76); shares as in `share.py`.

    Args:
        mech: Arms and an object joined by loops alone (`multi_arm_parts`).
        q: Joint positions (nq,) or (batch, nq) [m or rad] with loops closed.
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s] that the loops allow.
        acceleration: F* (6,) or (batch, 6): ẍ of the point, (angular, linear) in the axes of the
            world [rad/s², m/s²].
        point: The operational point: a node or body of the object by name, or (3,) in the frame of
            the object's body; by default the origin of that.
        held: Any body of the object, where it cannot be told by itself.
        share: "internal_force": contact forces that only move the object, and `internal`; "effort":
            whatever is least for the actuators, joint forces over their limits.
        grasp: What the contacts are (`Grasp.of`), where they are not all rigid.
        split: Which contact forces only move the object, as in `internal_forces`.
        internal: The squeeze: members of the virtual linkage by name, {"grasp_1-grasp_2": 20.0},
            or contact forces (contacts, 6) that cancel.
        tau0: Joint forces (nv,) or (batch, nv) for what the object leaves free in redundant arms.
        applied: Force (6,) or (batch, 6) that the object shall put on its surroundings, at the
            point in the axes of the world [N m, N].
        compensate: Whether gravity and velocity forces are taken out in all "joints", or as the
            object feels them ("task"), which lets redundant arms fall.
        tolerance: Motions of an arm at its contacts below this part of its easiest are called lost.

    Raises:
        ModelError: No object is held; the contacts are not rigid and no grasp is given; internal
            forces that do not cancel.
        ShapeError: An array does not fit; says which.
        ClosureError: A loop is open, or velocities pull it apart; names it, and says how far.
        SingularHingeError: Nothing resists the hinge of some body, which is named.
    """
    task = ObjectTask.of(
        mech,
        point=point,
        held=held,
        share=share,
        grasp=grasp,
        split=split,
        internal=internal,
        compensate=compensate,
        tolerance=tolerance,
    )
    single, q, (v,) = states_of(mech, q, v=v)
    wanted = rows_of(acceleration, 6, len(q), single, "acceleration")
    pull = None if tau0 is None else rows_of(tau0, mech.nv, len(q), single, "tau0")
    force = None if applied is None else rows_of(applied, 6, len(q), single, "applied")
    found = task.torque(q, task.states(q, v), wanted, pull, force, None)
    return first(found) if single else found


def rows_of(value: ArrayLike, size: int, batch: int, single: bool, what: str) -> Array:
    """(batch, size) of what was given; raises for another shape."""
    found = floats(value, what)
    allowed = f"({size},)" if single else f"({size},) or ({batch}, {size})"
    if found.shape != (size,) and (single or found.shape != (batch, size)):
        raise ShapeError(f"{what} has shape {found.shape}; it must be {allowed}.")
    if not np.isfinite(found).all():
        raise ModelError(f"{what} is not finite.")
    return np.broadcast_to(found, (batch, size))


def first(whole: ObjectTorque) -> ObjectTorque:
    """The one state that was asked for."""
    return ObjectTorque(
        whole.tau[0],
        whole.acceleration[0],
        whole.total[0],
        {name: x[0] for name, x in whole.shares.items()},
        {name: x[0] for name, x in whole.contact_forces.items()},
    )


def _cells(x: Array) -> str:
    return ", ".join(f"{c:.4g}" for c in np.round(x, 9) + 0.0)
