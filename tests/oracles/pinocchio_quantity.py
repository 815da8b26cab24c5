"""Every quantity that Pinocchio has too: the table of comparisons."""

from __future__ import annotations

from typing import Any

import numpy as np

import linkwise as lw
from linkwise.spatial.array import Array
from tests.oracles.compared_quantity import Quantity, homogeneous
from tests.oracles.pinocchio_case import PinocchioCase

VIEWS = {
    "node axes": ("LOCAL", {"frame": "node"}),
    "world axes": ("LOCAL_WORLD_ALIGNED", {"frame": "world"}),
    "about the world's origin": ("WORLD", {"frame": "world", "about": "world"}),
}


def _mass(it: PinocchioCase) -> str | None:
    return None if it.mech.total_mass > 0.0 else "no mass"


def _constant(it: PinocchioCase) -> str | None:
    kept = len(it.constant) == it.mech.nv
    return None if kept else "joints whose map moves: Pinocchio leaves its rate out"


def _rotors(it: PinocchioCase) -> str | None:
    """Its energy of the rotors lacks those of oblique axes, which its mass matrix has."""
    oblique = [b for b in it.mech.bodies if isinstance(b.hinge, lw.hinges.Pin | lw.hinges.Helical)]
    parts = [it.mech.armature[it.mech.v_slice(b.hinge_name)] for b in oblique]
    result = any(part.any() for part in parts)
    return "armature of oblique joints: Pinocchio leaves it out" if result else None


def _matrix(pose: Any) -> Array:
    return homogeneous(pose.rot, pose.p)


def _momenta(it: PinocchioCase) -> Array:
    return np.abs(it.momentum_matrix()) @ np.abs(it.v)


def _rates(it: PinocchioCase) -> float:
    """Products of velocities, of which accelerations at v̇ = 0 are sums."""
    V = it.moved().each("getFrameVelocity", it.bodies, "WORLD")
    return max(1.0, float(np.abs(V).max())) * float(np.abs(V).max())


def _slopes(it: PinocchioCase) -> float:
    """Velocities by entries of Jacobians, of which their rates are sums."""
    V = it.moved().each("getFrameVelocity", it.bodies, "WORLD")
    return float(np.abs(V).max()) * float(np.abs(it.jacobian("WORLD")).max())


def _coriolis(it: PinocchioCase) -> float:
    """Inertias by velocities."""
    return float(np.abs(it.symmetric("crba")).max() * np.abs(it.v).max())


def _motion(it: PinocchioCase) -> Any:
    return it.long_inverse @ (it.x - it.T.T @ it.ask("nonLinearEffects", it.v))


def _pushed(it: PinocchioCase) -> Array:
    """Forces at nodes as joint forces."""
    return it.jacobian("LOCAL").T @ np.concatenate(list(it.f.values()))


def _corners(matrix: Any) -> Any:
    """Rows and columns of the first and the last freedom."""
    ends = [0, len(matrix) - 1]
    return matrix[np.ix_(ends, ends)]


def _table() -> tuple[Quantity, ...]:
    rows = list[Quantity]()
    rows += [
        Quantity(
            "forward dynamics",
            "forward_dynamics",
            "aba",
            lambda it: lw.forward_dynamics(it.mech, it.q, it.v, it.x),
            lambda it: it.T.T @ it.ask("aba", it.v, it.x),
            truth=_motion,
        ),
        *(
            Quantity(
                f"forward dynamics, {name}",
                f"forward_dynamics(method={name!r})",
                "aba",
                lambda it, name=name: lw.forward_dynamics(it.mech, it.q, it.v, it.x, method=name),
                lambda it: it.T.T @ it.ask("aba", it.v, it.x),
                truth=_motion,
            )
            for name in ("FD1", "FD2", "FD3", "FD4")
        ),
        Quantity(
            "forward dynamics with forces at nodes",
            "forward_dynamics(forces=)",
            "aba(fext)",
            lambda it: lw.forward_dynamics(it.mech, it.q, it.v, it.x, forces=it.f),
            lambda it: it.T.T @ it.ask("aba", it.v, it.x, it.pushes()),
        ),
        Quantity(
            "forces that its accelerations need",
            "forward_dynamics",
            "rnea after it",
            lambda it: it.forces_of(lw.forward_dynamics(it.mech, it.q, it.v, it.x)),
            lambda it: it.x,
            size=lambda it: (
                np.abs(it.symmetric("crba"))
                @ np.abs(lw.forward_dynamics(it.mech, it.q, it.v, it.x))
                + np.abs(it.x)
            ),
        ),
        Quantity(
            "inverse dynamics",
            "inverse_dynamics",
            "rnea",
            lambda it: lw.inverse_dynamics(it.mech, it.q, it.v, it.y),
            lambda it: it.forces_of(it.y),
        ),
        Quantity(
            "inverse dynamics with forces at nodes",
            "inverse_dynamics(forces=)",
            "rnea(fext)",
            lambda it: lw.inverse_dynamics(it.mech, it.q, it.v, it.y, forces=it.f),
            lambda it: it.T.T @ it.ask("rnea", it.v, it.y, it.pushes()),
        ),
        Quantity(
            "bias force",
            "bias_force",
            "nonLinearEffects",
            lambda it: lw.bias_force(it.mech, it.q, it.v),
            lambda it: it.T.T @ it.ask("nonLinearEffects", it.v),
        ),
        Quantity(
            "gravity force",
            "gravity_force",
            "computeGeneralizedGravity",
            lambda it: lw.gravity_force(it.mech, it.q),
            lambda it: it.T.T @ it.ask("computeGeneralizedGravity"),
        ),
        Quantity(
            "Coriolis force",
            "coriolis_force",
            "nonLinearEffects less gravity",
            lambda it: lw.dynamics.coriolis_force(it.mech, it.q, it.v),
            lambda it: (
                it.T.T @ (it.ask("nonLinearEffects", it.v) - it.ask("computeGeneralizedGravity"))
            ),
            size=lambda it: np.abs(it.T.T @ it.ask("nonLinearEffects", it.v)),
        ),
        Quantity(
            "Coriolis matrix",
            "coriolis_matrix",
            "computeCoriolisMatrix",
            lambda it: lw.coriolis_matrix(it.mech, it.q, it.v),
            lambda it: it.coriolis(),
            _constant,
            _coriolis,
        ),
        Quantity(
            "Coriolis matrix by another velocity",
            "coriolis_product",
            "computeCoriolisMatrix",
            lambda it: lw.dynamics.coriolis_product(it.mech, it.q, it.v, it.y),
            lambda it: it.coriolis() @ it.y,
            _constant,
            size=lambda it: _coriolis(it) * np.abs(it.y).max(),
        ),
        Quantity(
            "mass matrix",
            "mass_matrix",
            "crba",
            lambda it: lw.mass_matrix(it.mech, it.q),
            lambda it: it.symmetric("crba"),
        ),
        Quantity(
            "inverse of the mass matrix",
            "mass_matrix_inverse",
            "computeMinverse",
            lambda it: lw.mass_matrix_inverse(it.mech, it.q),
            lambda it: it.symmetric("computeMinverse"),
            truth=lambda it: it.long_inverse,
        ),
        Quantity(
            "blocks of that inverse",
            "mass_matrix_inverse_block",
            "computeMinverse",
            lambda it: lw.dynamics.mass_matrix_inverse_block(it.mech, it.q, [0, it.mech.nv - 1]),
            lambda it: _corners(it.symmetric("computeMinverse")),
            truth=lambda it: _corners(it.long_inverse),
        ),
        Quantity(
            "that inverse by a force",
            "mass_matrix_inverse_product",
            "computeMinverse",
            lambda it: lw.dynamics.mass_matrix_inverse_product(it.mech, it.q, it.x),
            lambda it: it.solved(it.x),
            truth=lambda it: it.long_inverse @ it.x,
        ),
        Quantity(
            "accelerations of forces at nodes",
            "tip_force_correction",
            "computeMinverse",
            lambda it: lw.papers.tip_force_correction(it.mech, it.q, it.f),
            lambda it: it.solved(_pushed(it)),
            truth=lambda it: it.long_inverse @ _pushed(it),
        ),
        Quantity(
            "how nodes yield, J 𝓜⁻¹ J*",
            "operational_inertia_inverse",
            "computeMinverse",
            lambda it: lw.dynamics.operational_inertia_inverse(it.mech, it.q, it.nodes),
            lambda it: it.yielding(),
            truth=lambda it: it.jacobian("LOCAL") @ it.long_inverse @ it.jacobian("LOCAL").T,
        ),
        Quantity(
            "logarithm of the determinant of 𝓜",
            "log_det_mass_matrix",
            "crba",
            lambda it: lw.dynamics.log_det_mass_matrix(it.mech, it.q),
            lambda it: np.linalg.slogdet(it.symmetric("crba"))[1],
            size=lambda it: float(it.mech.nv),
        ),
        Quantity(
            "poses of bodies",
            "forward_kinematics",
            "oMf",
            lambda it: _matrix(lw.forward_kinematics(it.mech, it.q)),
            lambda it: it.poses(it.bodies),
        ),
        Quantity(
            "poses of nodes",
            "forward_kinematics",
            "oMf",
            lambda it: _matrix(lw.forward_kinematics(it.mech, it.q, it.nodes)),
            lambda it: it.poses(it.nodes),
        ),
        Quantity(
            "relative poses",
            "relative_pose",
            "oMf",
            lambda it: _matrix(lw.dynamics.relative_pose(it.mech, it.q, it.nodes[1:], it.nodes[0])),
            lambda it: it.relative(),
            lambda it: None if len(it.nodes) > 1 else "one node",
        ),
    ]
    rows += [
        Quantity(
            f"velocities of bodies, {where}",
            "body_velocities",
            "getFrameVelocity",
            lambda it, frame=frame: lw.dynamics.body_velocities(it.mech, it.q, it.v, frame=frame),
            lambda it, axes=axes: it.moved().each("getFrameVelocity", it.bodies, axes),
        )
        for where, frame, axes in (
            ("body axes", "body", "LOCAL"),
            ("world axes", "world", "LOCAL_WORLD_ALIGNED"),
            ("about the world's origin", "inertial", "WORLD"),
        )
    ]
    for where, (axes, view) in VIEWS.items():
        acceleration = (
            "getFrameClassicalAcceleration" if where == "world axes" else "getFrameAcceleration"
        )
        rows += [
            Quantity(
                f"Jacobians, {where}",
                "jacobian",
                "getFrameJacobian",
                lambda it, view=view: lw.jacobian(it.mech, it.q, it.nodes, **view),
                lambda it, axes=axes: it.jacobian(axes),
            ),
            Quantity(
                f"velocities of nodes, {where}",
                "node_velocity",
                "getFrameVelocity",
                lambda it, view=view: lw.node_velocity(it.mech, it.q, it.v, it.nodes, **view),
                lambda it, axes=axes: it.moved().each("getFrameVelocity", it.nodes, axes).ravel(),
            ),
            Quantity(
                f"J̇ v, {where}",
                "jacobian_bias",
                acceleration,
                lambda it, view=view: lw.dynamics.jacobian_bias(
                    it.mech, it.q, it.v, it.nodes, **view
                ),
                lambda it, axes=axes, of=acceleration: it.moved().each(of, it.nodes, axes).ravel(),
                size=_rates,
            ),
            Quantity(
                f"joint forces of forces at nodes, {where}",
                "equivalent_force",
                "getFrameJacobian",
                lambda it, view=view: lw.dynamics.equivalent_force(it.mech, it.q, it.f, **view),
                lambda it, axes=axes: it.jacobian(axes).T @ np.concatenate(list(it.f.values())),
            ),
        ]
        if where != "node axes":  # theirs is not the rate of the components there
            rows.append(
                Quantity(
                    f"J̇, {where}",
                    "jacobian_dot",
                    "getFrameJacobianTimeVariation",
                    lambda it, view=view: lw.jacobian_dot(it.mech, it.q, it.v, it.nodes, **view)[
                        :, it.constant
                    ],
                    lambda it, axes=axes: it.jacobian(axes, rate=True)[:, it.constant],
                    size=_slopes,
                )
            )
    rows += [
        Quantity(
            "accelerations of bodies",
            "body_accelerations",
            "forwardKinematics",
            lambda it: lw.dynamics.body_accelerations(it.mech, it.q, it.v, vdot=it.y),
            lambda it: it.at_bodies(it.moved(it.y).data.a),
        ),
        *(
            Quantity(
                f"accelerations of nodes, {kind}, {frame} axes",
                f"node_acceleration(kind={kind!r})",
                of,
                lambda it, kind=kind, frame=frame: lw.node_acceleration(
                    it.mech, it.q, it.v, it.nodes, vdot=it.y, kind=kind, frame=frame
                ),
                lambda it, of=of, axes=axes: it.moved(it.y).each(of, it.nodes, axes).ravel(),
            )
            for kind, of in (
                ("spatial", "getFrameAcceleration"),
                ("classical", "getFrameClassicalAcceleration"),
            )
            for frame, axes in (("node", "LOCAL"), ("world", "LOCAL_WORLD_ALIGNED"))
        ),
        Quantity(
            "forces through hinges, of a motion",
            "hinge_forces(vdot=)",
            "rnea, data.f",
            lambda it: lw.hinge_forces(it.mech, it.q, it.v, vdot=it.y),
            lambda it: it.hinge_forces(it.y),
        ),
        Quantity(
            "forces through hinges, of joint forces",
            "hinge_forces",
            "aba, then rnea, data.f",
            lambda it: lw.hinge_forces(it.mech, it.q, it.v, tau=it.x),
            lambda it: it.hinge_forces(it.T.T @ it.ask("aba", it.v, it.x)),
        ),
        Quantity(
            "composite inertias",
            "composite_inertias",
            "crba, data.Ycrb",
            lambda it: lw.dynamics.composite_inertias(it.mech, it.q),
            lambda it: it.composite(),
        ),
        Quantity(
            "articulated inertias",
            "articulated_inertias",
            "aba, data.Yaba",
            lambda it: it.articulated_here(),
            lambda it: it.articulated(),
            size=lambda it: np.abs(it.composite()),
        ),
        Quantity(
            "centre of mass",
            "center_of_mass",
            "centerOfMass",
            lambda it: lw.center_of_mass(it.mech, it.q),
            lambda it: it.com("com"),
            _mass,
        ),
        Quantity(
            "velocity of the centre of mass",
            "center_of_mass_velocity",
            "centerOfMass, vcom",
            lambda it: lw.center_of_mass(it.mech, it.q, it.v, what="velocity"),
            lambda it: it.com("vcom"),
            _mass,
        ),
        Quantity(
            "acceleration of the centre of mass at v̇ = 0",
            "center_of_mass_bias",
            "centerOfMass, acom",
            lambda it: lw.center_of_mass(it.mech, it.q, it.v, what="bias"),
            lambda it: it.com("acom"),
            _mass,
            _rates,
        ),
        Quantity(
            "Jacobian of the centre of mass",
            "center_of_mass_jacobian",
            "jacobianCenterOfMass",
            lambda it: lw.center_of_mass(it.mech, it.q, what="jacobian"),
            lambda it: np.array(it.ask("jacobianCenterOfMass")) @ it.T,
            _mass,
        ),
        Quantity(
            "momentum",
            "momentum",
            "computeCentroidalMomentum",
            lambda it: lw.momentum(it.mech, it.q, it.v),
            lambda it: it.momentum(),
            _mass,
            _momenta,
        ),
        Quantity(
            "centroidal momentum matrix",
            "momentum_matrix",
            "computeCentroidalMap",
            lambda it: lw.momentum(it.mech, it.q, what="matrix"),
            lambda it: it.momentum_matrix(),
            _mass,
        ),
        Quantity(
            "rate of that matrix, by v",
            "momentum_bias",
            "computeCentroidalMomentumTimeVariation",
            lambda it: lw.momentum(it.mech, it.q, it.v, what="bias"),
            lambda it: it.momentum_bias(),
            _mass,
            lambda it: _momenta(it).max() * max(1.0, np.abs(it.v).max()),
        ),
        Quantity(
            "centroidal inertia",
            "centroidal_inertia",
            "ccrba, Ig",
            lambda it: lw.dynamics.centroidal_inertia(it.mech, it.q),
            lambda it: it.whole_inertia(),
            _mass,
        ),
        Quantity(
            "kinetic energy",
            "kinetic_energy",
            "computeKineticEnergy",
            lambda it: lw.dynamics.kinetic_energy(it.mech, it.q, it.v),
            lambda it: it.ask("computeKineticEnergy", it.v),
            _rotors,
        ),
        Quantity(
            "kinetic energy, by the mass matrix",
            "kinetic_energy",
            "½ v* crba v",
            lambda it: lw.dynamics.kinetic_energy(it.mech, it.q, it.v),
            lambda it: 0.5 * it.v @ it.symmetric("crba") @ it.v,
        ),
        Quantity(
            "potential energy",
            "potential_energy",
            "computePotentialEnergy",
            lambda it: lw.dynamics.potential_energy(it.mech, it.q),
            lambda it: it.ask("computePotentialEnergy"),
        ),
    ]
    return tuple(rows)


TABLE = _table()
