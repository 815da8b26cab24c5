"""A mechanism with loops in Pinocchio: its tree, and a rigid constraint for each loop.

A weld is a 6-D constraint there, a ball a 3-D one; it has none for other hinges. Its constraint
forces act on the first of the two joints, in the frame of the constraint on it, which is our node
a, (linear, angular).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import linkwise as lw
from linkwise.spatial.array import Array
from tests.dynamics.oracle_state import InPinocchio
from tests.oracles.pinocchio_oracle import SWAPPED
from tests.oracles.pinocchio_tree import model_of

SETTINGS = (1e-14, 0.0, 1)
"""Accuracy, μ and iterations of its proximal solver: μ = 0 is the rigid problem, solved at once.
Where constraints are redundant that is singular, and 1e-8 with a hundred iterations serves."""


def model_with_inertias(mech: lw.Mechanism) -> Any:
    """The tree in Pinocchio, with the inertias of its bodies."""
    import pinocchio as pin

    model = model_of(mech)
    for k, body in enumerate(mech.bodies):
        ours, place = mech.inertias[k], pin.SE3(np.array(body.outboard.rot), body.outboard.p)
        com = np.asarray(ours.h) / float(ours.mass)
        about = np.asarray(ours.J) - float(ours.mass) * (com @ com * np.eye(3) - np.outer(com, com))
        inertia = pin.Inertia(float(ours.mass), com, about)
        model.appendBodyToJoint(model.getJointId(body.hinge_name), inertia, place)
    return model


def rigid_constraints(mech: lw.Mechanism, model: Any) -> Any:
    """A constraint of Pinocchio for each loop."""
    import pinocchio as pin

    kinds = {
        lw.hinges.Locked: pin.ContactType.CONTACT_6D,
        lw.hinges.Spherical: pin.ContactType.CONTACT_3D,
    }
    result = pin.StdVec_RigidConstraintModel()
    for loop in mech.loops:
        a, b = (model.frames[model.getFrameId(name)] for name in (loop.node_a, loop.node_b))
        kind, local = kinds[type(loop.hinge)], pin.ReferenceFrame.LOCAL
        ends = (a.parentJoint, a.placement, b.parentJoint, b.placement)
        result.append(pin.RigidConstraintModel(kind, model, *ends, local))
    return result


@dataclass
class LoopsInPinocchio(InPinocchio):
    """A mechanism with loops here and there, in one state; x are joint forces."""

    def __post_init__(self) -> None:
        import pinocchio as pin

        super().__post_init__()
        self.constraints = rigid_constraints(self.mech, self.model)
        self.work = pin.StdVec_RigidConstraintData()
        for constraint in self.constraints:
            self.work.append(constraint.createData())
        pin.initConstraintDynamics(self.model, self.data, self.constraints, self.work)

    def vdot(self, settings: tuple[float, float, int] = SETTINGS) -> Array:
        """Joint accelerations by `constraintDynamics`, in our order."""
        import pinocchio as pin

        state = (self.q_pin, self.v_pin, self.T @ self.x)
        proximal = pin.ProximalSettings(*settings)
        result = pin.constraintDynamics(
            self.model, self.data, *state, self.constraints, self.work, proximal
        )
        return self.T.T @ result

    def forces(self) -> Array:
        """On node b of each loop, in its frame (L, 6), after `vdot`."""
        rows = list[Array]()
        for loop, data in zip(self.mech.loops, self.work, strict=True):
            on_a = np.array(data.contact_force.vector)[SWAPPED]
            X_AB = self.mech.pose(self.q, loop.node_a).inverse() @ self.mech.pose(
                self.q, loop.node_b
            )
            rows.append(-X_AB.inverse().shift_force(on_a))
        return np.stack(rows)


def loops_in_pinocchio(mech: lw.Mechanism, q: Array, v: Array, tau: Array) -> LoopsInPinocchio:
    """A mechanism whose loops are welds and balls, in one state."""
    return LoopsInPinocchio(mech, model_with_inertias(mech), q, v, tau)
