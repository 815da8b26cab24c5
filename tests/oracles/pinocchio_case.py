"""A robot in one state here and in Pinocchio, and what Pinocchio says about it.

Velocities and forces of joints are taken over by T (v_pin = T v, a permutation); spatial vectors
are (linear, angular) there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

import linkwise as lw
from linkwise.dynamics import kernel
from linkwise.spatial.array import Array
from tests.dynamics.oracle_state import InPinocchio
from tests.oracles import extended_precision
from tests.oracles.pinocchio_oracle import SWAPPED


@dataclass
class PinocchioCase(InPinocchio):
    """A robot in one state in both libraries; x are joint forces, y joint accelerations."""

    nodes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        rng = np.random.default_rng(3)
        self.y = rng.standard_normal(self.mech.nv)
        self.f = {name: rng.standard_normal(6) for name in self.nodes}
        self.bodies = [body.name for body in self.mech.bodies]

    def ask(self, function: str, *arrays: Any) -> Any:
        """A function of Pinocchio, of our arrays for the joints."""
        import pinocchio as pin

        there = [self.T @ x if isinstance(x, np.ndarray) else x for x in arrays]
        return getattr(pin, function)(self.model, self.data, self.q_pin, *there)

    def frame(self, name: str) -> int:
        import pinocchio as pin

        renamed = "world" if name == "world_link" else name  # a floating root of that name
        if self.model.existBodyName(renamed):
            return self.model.getFrameId(renamed, pin.FrameType.BODY)
        return self.model.getFrameId(renamed)

    def moved(self, vdot: Array | None = None) -> PinocchioCase:
        """With all poses, velocities and accelerations computed there."""
        import pinocchio as pin

        still = np.zeros(self.mech.nv)
        self.ask("forwardKinematics", self.v, still if vdot is None else vdot)
        pin.updateFramePlacements(self.model, self.data)
        return self

    def each(self, function: str, names: list[str], axes: str) -> Array:
        """A motion of frames (k, 6), angular part first."""
        import pinocchio as pin

        kind = getattr(pin.ReferenceFrame, axes)
        of = getattr(pin, function)
        rows = [of(self.model, self.data, self.frame(name), kind).vector for name in names]
        return np.stack(rows)[:, SWAPPED]

    def jacobian(self, axes: str, *, rate: bool = False) -> Array:
        import pinocchio as pin

        kind = getattr(pin.ReferenceFrame, axes)
        self.ask("computeJointJacobiansTimeVariation", self.v)
        pin.updateFramePlacements(self.model, self.data)
        of = pin.getFrameJacobianTimeVariation if rate else pin.getFrameJacobian
        rows = [of(self.model, self.data, self.frame(n), kind)[SWAPPED] for n in self.nodes]
        return np.concatenate(rows) @ self.T

    def poses(self, names: list[str]) -> Array:
        self.moved()
        return np.stack([self.data.oMf[self.frame(name)].homogeneous for name in names])

    def pushes(self) -> Any:
        """The forces at nodes, as Pinocchio has them: one a joint, in its frame."""
        import pinocchio as pin

        result = [pin.Force.Zero() for _ in range(self.model.njoints)]
        for name, six in self.f.items():
            frame = self.model.frames[self.frame(name)]
            result[frame.parentJoint] += frame.placement.act(pin.Force(six[SWAPPED]))
        out = pin.StdVec_Force()
        out.extend(result)
        return out

    def symmetric(self, function: str) -> Array:
        """A symmetric matrix over the joints, of which the upper half is filled."""
        half = np.array(self.ask(function))
        return self.T.T @ (np.triu(half) + np.triu(half, 1).T) @ self.T

    def at_bodies(self, values: Any) -> Array:
        """Motions or forces at joints as those at body frames (n_bodies, 6)."""
        rows = [self.placed(n).actInv(values[self.joint(n)]).vector for n in self.bodies]
        return np.stack(rows)[:, SWAPPED]

    def hinge_forces(self, vdot: Array) -> Array:
        self.ask("rnea", self.v, vdot)
        return self.at_bodies(self.data.f)

    def forces_of(self, vdot: Array) -> Array:
        return self.T.T @ self.ask("rnea", self.v, vdot)

    def inertias(self, result: Any) -> Array:
        """Inertias at joints as those at body frames (n_bodies, 6, 6)."""
        out = list[Array]()
        for name in self.bodies:
            ours = np.array(result[self.joint(name)])[np.ix_(SWAPPED, SWAPPED)]
            back = self.mech.body(name).outboard.inverse().shift
            out.append(back @ ours @ back.T)
        return np.stack(out)

    def composite(self) -> Array:
        import pinocchio as pin

        pin.crba(self.model, self.data, self.q_pin, pin.Convention.LOCAL)
        return self.inertias([Y.matrix() for Y in self.data.Ycrb])

    def articulated(self) -> Array:
        """What aba leaves behind: P⁺, except for joints on the ground, which keep P."""
        import pinocchio as pin

        force, local = self.T @ self.x, pin.Convention.LOCAL
        pin.aba(self.model, self.data, self.q_pin, self.v_pin, force, local)
        return self.inertias(self.data.Yaba)

    def articulated_here(self) -> Array:
        P = lw.dynamics.articulated_inertias(self.mech, self.q)
        result = kernel(self.mech, "articulated_inertias_inboard")(self.q).reshape(P.shape)
        for k, name in enumerate(self.bodies):
            if self.model.parents[self.joint(name)] == 0:
                result[k] = P[k]
        return result

    @cached_property
    def long_inverse(self) -> Any:
        """𝓜⁻¹ in extended precision."""
        return extended_precision.inverse(extended_precision.mass_matrix(self.mech, self.q))

    @property
    def constant(self) -> list[int]:
        """Freedoms whose hinge map is constant: of others Pinocchio's J̇ lacks the rate of it."""
        turning = lw.hinges.Gimbal | lw.hinges.Universal | lw.hinges.Screws
        kept = (b for b in self.mech.bodies if not isinstance(b.hinge, turning))
        return [i for b in kept for i in range(self.mech.nv)[self.mech.v_slice(b.hinge_name)]]

    def momentum(self) -> Array:
        self.ask("computeCentroidalMomentum", self.v)
        return np.array(self.data.hg.vector)[SWAPPED]

    def momentum_bias(self) -> Array:
        self.ask("computeCentroidalMomentumTimeVariation", self.v, 0.0 * self.y)
        return np.array(self.data.dhg.vector)[SWAPPED]

    def momentum_matrix(self) -> Array:
        return np.array(self.ask("computeCentroidalMap"))[SWAPPED] @ self.T

    def whole_inertia(self) -> Array:
        self.ask("ccrba", self.v)
        return self.data.Ig.matrix()[np.ix_(SWAPPED, SWAPPED)]

    def com(self, part: str) -> Array:
        self.ask("centerOfMass", self.v, 0.0 * self.y)
        return np.array(getattr(self.data, part)[0])

    def yielding(self) -> Array:
        J = self.jacobian("LOCAL")
        return J @ self.symmetric("computeMinverse") @ J.T

    def solved(self, force: Array) -> Array:
        return self.symmetric("computeMinverse") @ force

    def coriolis(self) -> Array:
        return self.T.T @ np.array(self.ask("computeCoriolisMatrix", self.v)) @ self.T

    def relative(self) -> Array:
        first, *rest = self.poses(self.nodes)
        return np.stack([np.linalg.inv(first) @ other for other in rest])
