"""Every quantity that MuJoCo has too: the table of comparisons."""

from __future__ import annotations

from typing import Any

import numpy as np

import linkwise as lw
from linkwise.spatial.array import Array
from tests.oracles.compared_quantity import Quantity, homogeneous
from tests.oracles.mujoco_case import MujocoCase


def _mass(it: MujocoCase) -> str | None:
    return None if it.mech.total_mass > 0.0 else "no mass"


def _bodies(it: MujocoCase, result: Any) -> Any:
    return np.asarray(result)[it.rows]


def _pose(pose: Any) -> Array:
    return homogeneous(pose.rot, pose.p)


def _fast(it: MujocoCase) -> float:
    """The largest velocity of a body, at least one."""
    return max(1.0, float(np.abs(it.velocities(it.bodies, local=False)).max()))


def _bias(it: MujocoCase) -> float:
    """Itself, or inertias by squares of velocities: in a plane these may leave nothing."""
    ours = np.abs(it.driven(0.0 * it.y).data.qfrc_inverse).max()
    return max(float(ours), float(np.abs(it.mass_matrix()).max() * np.abs(it.v).max() ** 2))


def _table() -> tuple[Quantity, ...]:
    rows = list[Quantity]()
    rows += [
        Quantity(
            "forward dynamics",
            "forward_dynamics",
            "mj_forward, qacc",
            lambda it: lw.forward_dynamics(it.mech, it.q, it.v, it.x),
            lambda it: it.run(it.x, it.v).vdot,
        ),
        *(
            Quantity(
                f"forward dynamics, {name}",
                f"forward_dynamics(method={name!r})",
                "mj_forward, qacc",
                lambda it, name=name: lw.forward_dynamics(it.mech, it.q, it.v, it.x, method=name),
                lambda it: it.run(it.x, it.v).vdot,
            )
            for name in ("FD1", "FD2", "FD3", "FD4")
        ),
        Quantity(
            "forward dynamics with forces at nodes",
            "forward_dynamics(forces=)",
            "mj_applyFT, mj_forward",
            lambda it: lw.forward_dynamics(
                it.mech, it.q, it.v, it.x, forces=it.f, forces_frame="world"
            ),
            lambda it: it.run(it.x, it.v, it.pushed()).vdot,
        ),
        Quantity(
            "forces that its accelerations need",
            "forward_dynamics",
            "mj_inverse after it",
            lambda it: (
                it.T.T @ it.driven(lw.forward_dynamics(it.mech, it.q, it.v, it.x)).data.qfrc_inverse
            ),
            lambda it: it.x,
            size=lambda it: (
                np.abs(it.mass_matrix()) @ np.abs(lw.forward_dynamics(it.mech, it.q, it.v, it.x))
                + np.abs(it.x)
            ),
        ),
        Quantity(
            "inverse dynamics",
            "inverse_dynamics",
            "mj_inverse",
            lambda it: lw.inverse_dynamics(it.mech, it.q, it.v, it.y),
            lambda it: it.T.T @ it.driven(it.y).data.qfrc_inverse,
        ),
        Quantity(
            "bias force",
            "bias_force",
            "mj_inverse at v̇ = 0",
            lambda it: lw.bias_force(it.mech, it.q, it.v),
            lambda it: it.T.T @ it.driven(0.0 * it.y).data.qfrc_inverse,
            size=_bias,
        ),
        Quantity(
            "gravity force",
            "gravity_force",
            "qfrc_bias at rest",
            lambda it: lw.gravity_force(it.mech, it.q),
            lambda it: it.T.T @ it.run(it.x, 0.0 * it.v).data.qfrc_bias,
        ),
        Quantity(
            "Coriolis force",
            "coriolis_force",
            "mj_inverse less gravity",
            lambda it: lw.dynamics.coriolis_force(it.mech, it.q, it.v),
            lambda it: (
                it.T.T @ it.driven(0.0 * it.y).data.qfrc_inverse
                - it.T.T @ it.run(it.x, 0.0 * it.v).data.qfrc_bias
            ),
            size=_bias,
        ),
        Quantity(
            "mass matrix",
            "mass_matrix",
            "mj_fullM",
            lambda it: lw.mass_matrix(it.mech, it.q),
            lambda it: it.mass_matrix(),
        ),
        Quantity(
            "inverse of the mass matrix",
            "mass_matrix_inverse",
            "mj_solveM",
            lambda it: lw.mass_matrix_inverse(it.mech, it.q),
            lambda it: it.solved(np.eye(it.mech.nv)),
        ),
        Quantity(
            "that inverse by a force",
            "mass_matrix_inverse_product",
            "mj_solveM",
            lambda it: lw.dynamics.mass_matrix_inverse_product(it.mech, it.q, it.x),
            lambda it: it.solved(it.x[:, None])[:, 0],
        ),
        Quantity(
            "accelerations of forces at nodes",
            "tip_force_correction",
            "mj_applyFT, mj_solveM",
            lambda it: lw.papers.tip_force_correction(it.mech, it.q, it.f, forces_frame="world"),
            lambda it: it.solved((it.T.T @ it.pushed())[:, None])[:, 0],
        ),
        Quantity(
            "how nodes yield, J 𝓜⁻¹ J*",
            "operational_inertia_inverse",
            "mj_jac, mj_solveM",
            lambda it: lw.dynamics.operational_inertia_inverse(
                it.mech, it.q, it.nodes, frame="world"
            ),
            lambda it: it.jacobian() @ it.T @ it.solved((it.jacobian() @ it.T).T),
        ),
        Quantity(
            "poses of bodies",
            "forward_kinematics",
            "xpos, xmat",
            lambda it: _pose(lw.forward_kinematics(it.mech, it.q))[it.rows],
            lambda it: it.poses(it.bodies),
        ),
        Quantity(
            "poses of nodes",
            "forward_kinematics",
            "xpos, site_xpos",
            lambda it: _pose(lw.forward_kinematics(it.mech, it.q, it.nodes)),
            lambda it: it.poses(it.nodes),
        ),
        Quantity(
            "relative poses",
            "relative_pose",
            "xpos, xmat",
            lambda it: _pose(lw.dynamics.relative_pose(it.mech, it.q, it.nodes[1:], it.nodes[0])),
            lambda it: it.relative(),
            lambda it: None if len(it.nodes) > 1 else "one node",
        ),
        *(
            Quantity(
                f"velocities of bodies, {frame} axes",
                "body_velocities",
                "mj_objectVelocity",
                lambda it, frame=frame: _bodies(
                    it, lw.dynamics.body_velocities(it.mech, it.q, it.v, frame=frame)
                ),
                lambda it, frame=frame: it.velocities(it.bodies, local=frame == "body"),
            )
            for frame in ("body", "world")
        ),
        *(
            Quantity(
                f"velocities of nodes, {frame} axes",
                "node_velocity",
                "mj_objectVelocity",
                lambda it, frame=frame: lw.node_velocity(
                    it.mech, it.q, it.v, it.nodes, frame=frame
                ),
                lambda it, frame=frame: it.velocities(it.nodes, local=frame == "node").ravel(),
            )
            for frame in ("node", "world")
        ),
        *(
            Quantity(
                f"Jacobians, {frame} axes",
                "jacobian",
                "mj_jac",
                lambda it, frame=frame: lw.jacobian(it.mech, it.q, it.nodes, frame=frame),
                lambda it, frame=frame: it.jacobian(frame) @ it.T,
            )
            for frame in ("node", "world")
        ),
        Quantity(
            "J̇, world axes",
            "jacobian_dot",
            "mj_jacDot",
            lambda it: lw.jacobian_dot(it.mech, it.q, it.v, it.nodes, frame="world"),
            lambda it: it.jacobian_rate(),
            size=lambda it: np.abs(it.jacobian()).max() * _fast(it),
        ),
        Quantity(
            "J̇ v, world axes",
            "jacobian_bias",
            "mj_jacDot",
            lambda it: lw.dynamics.jacobian_bias(it.mech, it.q, it.v, it.nodes, frame="world"),
            lambda it: it.jacobian_rate() @ it.v,
            size=lambda it: _fast(it) ** 2,
        ),
        Quantity(
            "joint forces of forces at nodes, world axes",
            "equivalent_force",
            "mj_applyFT",
            lambda it: lw.dynamics.equivalent_force(it.mech, it.q, it.f, frame="world"),
            lambda it: it.T.T @ it.pushed(),
        ),
        Quantity(
            "accelerations of bodies",
            "body_accelerations",
            "mj_objectAcceleration",
            lambda it: _bodies(it, lw.dynamics.body_accelerations(it.mech, it.q, it.v, vdot=it.y)),
            lambda it: it.driven(it.y).accelerations(it.bodies, local=True, classical=False),
        ),
        *(
            Quantity(
                f"accelerations of nodes, classical, {frame} axes",
                "node_acceleration(kind='classical')",
                "mj_objectAcceleration",
                lambda it, frame=frame: lw.node_acceleration(
                    it.mech, it.q, it.v, it.nodes, vdot=it.y, kind="classical", frame=frame
                ),
                lambda it, frame=frame: (
                    it.driven(it.y).accelerations(it.nodes, local=frame == "node").ravel()
                ),
            )
            for frame in ("node", "world")
        ),
        Quantity(
            "forces through hinges, of a motion",
            "hinge_forces(vdot=)",
            "cfrc_int",
            lambda it: _bodies(it, lw.hinge_forces(it.mech, it.q, it.v, vdot=it.y)),
            lambda it: it.driven(it.y).hinge_forces(),
        ),
        Quantity(
            "forces through hinges, of joint forces",
            "hinge_forces",
            "mj_forward, cfrc_int",
            lambda it: _bodies(it, lw.hinge_forces(it.mech, it.q, it.v, tau=it.x)),
            lambda it: it.run(it.x, it.v).hinge_forces(),
        ),
        Quantity(
            "composite inertias",
            "composite_inertias",
            "crb",
            lambda it: _bodies(it, lw.dynamics.composite_inertias(it.mech, it.q)),
            lambda it: it.composite(),
        ),
        Quantity(
            "centre of mass",
            "center_of_mass",
            "subtree_com",
            lambda it: lw.center_of_mass(it.mech, it.q),
            lambda it: it.run(it.x, it.v).com(),
            _mass,
        ),
        Quantity(
            "velocity of the centre of mass",
            "center_of_mass_velocity",
            "subtree_linvel",
            lambda it: lw.center_of_mass(it.mech, it.q, it.v, what="velocity"),
            lambda it: it.run(it.x, it.v).com_velocity(),
            _mass,
        ),
        Quantity(
            "Jacobian of the centre of mass",
            "center_of_mass_jacobian",
            "mj_jacSubtreeCom",
            lambda it: lw.center_of_mass(it.mech, it.q, what="jacobian"),
            lambda it: it.run(it.x, it.v).com_jacobian(),
            _mass,
        ),
        Quantity(
            "momentum",
            "momentum",
            "subtree_angmom, subtree_linvel",
            lambda it: lw.momentum(it.mech, it.q, it.v),
            lambda it: it.momentum(),
            _mass,
            size=lambda it: np.abs(it.momentum_matrix()) @ np.abs(it.v),
        ),
        Quantity(
            "centroidal momentum matrix",
            "momentum_matrix",
            "mj_angmomMat, mj_jacSubtreeCom",
            lambda it: lw.momentum(it.mech, it.q, what="matrix"),
            lambda it: it.momentum_matrix(),
            _mass,
        ),
        Quantity(
            "rate of that matrix, by v",
            "momentum_bias",
            "cfrc_int of the roots",
            lambda it: lw.momentum(it.mech, it.q, it.v, what="bias"),
            lambda it: it.momentum_bias(),
            _mass,
            size=lambda it: (
                it.masses().sum() * np.abs(it.mech.gravity).max()
                + np.abs(it.momentum_matrix()).max() * _fast(it) ** 2
            ),
        ),
        Quantity(
            "kinetic energy",
            "kinetic_energy",
            "mj_energyVel",
            lambda it: lw.dynamics.kinetic_energy(it.mech, it.q, it.v),
            lambda it: it.kinetic(),
        ),
        Quantity(
            "potential energy",
            "potential_energy",
            "mj_energyPos",
            lambda it: lw.dynamics.potential_energy(it.mech, it.q),
            lambda it: it.potential(),
            _mass,
        ),
    ]
    return tuple(rows)


TABLE = _table()
