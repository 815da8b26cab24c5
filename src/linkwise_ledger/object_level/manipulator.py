"""A manipulator, and what is observed of its effector: the subject of the statements.

The paper writes (linear, angular), Linkwise (angular, linear): rows are swapped here, and all
that follows is in the paper's order. The effector is described by x, position and roll, pitch
and yaw.

What statements are held against comes from elsewhere: accelerations of the joints from the
articulated bodies, those of the effector from its poses along the motion that follows, energies
and moments from the momenta of bodies seen at nine times.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from linkwise.algebra.dense import Dense
from linkwise.algebra.symbols import B, D, H, I, J, K, M, a, a_g, bias, mass, phi, psi, rot_W
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose
from linkwise.spatial.rotation import rpy_of, unskew
from linkwise.spatial.vector import blocks, cross
from linkwise_ledger.jpl_88_11.motion import FIRST, SECOND

SWAP = np.kron(np.array([[0.0, 1.0], [1.0, 0.0]]), np.eye(3))
"""From (angular, linear) to (linear, angular), and back."""

STEP = 0.008
"""How far joints move between two of nine pictures, at most: in units of their coordinates."""

ARTICULATED = (I - H @ psi @ K).T @ D.inv @ (I - H @ psi @ K)
"""A⁻¹ that no A is needed for."""


def inverted(matrix: Array) -> Array:
    """matrix⁻¹, by elimination."""
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


class Manipulator:
    """A manipulator in a state.

    Args:
        mech: The mechanism.
        node: The operational point, and the axes that are fixed in the effector.
        q: Joint positions.
        v: Joint velocities, the paper's q̇.
        seed: Of everything drawn for it.
        n_macro: How many of its velocities, the first, are the macro-manipulator's.
    """

    QUANTITIES = ("A", "b", "g", "J_0", "bent", "E", "turning")
    """What statements are made of; what they are held against does not come of these."""

    def __init__(
        self, mech: Mechanism, node: str, q: Array, v: Array, seed: int, n_macro: int = 0
    ) -> None:
        self.mech, self.node, self.q, self.v = mech, node, q, v
        self.seed, self.n_macro = seed, n_macro
        self.dense = Dense(mech, q, v, nodes=[node])
        self.pose = mech.pose(q, node)

    def again(self) -> Manipulator:
        """The same, with nothing computed yet."""
        return Manipulator(self.mech, self.node, self.q, self.v, self.seed, self.n_macro)

    def drawn(self, size: int, which: int = 0) -> Array:
        """A vector, the same each time; `which` tells several apart."""
        return np.random.default_rng((self.seed, 3, which)).standard_normal(size)

    @property
    def n(self) -> int:
        """Number of degrees of freedom."""
        return self.mech.nv

    # ------------------------------------------------------------------ as the paper has it

    @cached_property
    def A(self) -> Array:
        """A(q), the kinetic energy matrix of the joint space."""
        return self.dense(mass)

    @cached_property
    def A_inv(self) -> Array:
        """A⁻¹, by elimination."""
        return inverted(self.A)

    @cached_property
    def g(self) -> Array:
        """g(q), gravity."""
        return self.dense(H @ phi @ M @ phi.T @ a_g)

    @cached_property
    def b(self) -> Array:
        """b(q, q̇), centrifugal and Coriolis forces."""
        return self.dense(bias) - self.dense(H @ phi @ M @ phi.T @ a_g)

    @cached_property
    def J_0(self) -> Array:
        """J_0(q), the basic Jacobian, rows (v, ω)."""
        return SWAP @ self.dense(rot_W @ J)

    @cached_property
    def bent(self) -> Array:
        """J̇_0 q̇, rows (v, ω)."""
        velocity = self.dense(rot_W @ J) @ self.v
        ordinary = np.concatenate([cross(velocity[:3], velocity[3:]), np.zeros(3)])
        return SWAP @ self.dense(rot_W @ B.T @ phi.T @ (a - a_g)) + ordinary

    @cached_property
    def turned(self) -> Array:
        """ω = W (rates of roll, pitch, yaw); columns are the axes of the three turns."""
        _, pitch, yaw = rpy_of(self.pose.rot)
        cy, sy, cp, sp = np.cos(yaw), np.sin(yaw), np.cos(pitch), np.sin(pitch)
        return np.array([[cy * cp, -sy, 0.0], [sy * cp, cy, 0.0], [-sp, 0.0, 1.0]])

    @cached_property
    def E(self) -> Array:
        """E(x) for position, roll, pitch and yaw: ẋ = E ϑ."""
        return blocks(np.eye(3), np.zeros((3, 3)), np.zeros((3, 3)), inverted(self.turned))

    @cached_property
    def turning(self) -> Array:
        """Ė: axes of later turns are turned by the earlier ones."""
        about = self.turned
        _, pitch_rate, yaw_rate = np.linalg.solve(
            about, (SWAP @ self.dense(rot_W @ J) @ self.v)[3:]
        )
        yaw = yaw_rate * about[:, 2]
        rates = [cross(yaw + pitch_rate * about[:, 1], about[:, 0]), cross(yaw, about[:, 1])]
        back = inverted(about)
        rate = back @ np.column_stack([*rates, np.zeros(3)]) @ back
        zero = np.zeros((3, 3))
        return -blocks(zero, zero, zero, rate)

    @property
    def J(self) -> Array:
        """J(q) = E J_0, (4)."""
        return self.E @ self.J_0

    @property
    def x_bent(self) -> Array:
        """J̇ q̇ of the coordinates x."""
        return self.E @ self.bent + self.turning @ self.J_0 @ self.v

    @property
    def compliance(self) -> Array:
        """J A⁻¹ Jᵀ, (17)."""
        return self.J @ self.A_inv @ self.J.T

    @property
    def Lambda(self) -> Array:
        """Λ of (17)."""
        return inverted(self.compliance)

    @property
    def Lambda_0(self) -> Array:
        """Λ_0 of section 4."""
        return inverted(self.J_0 @ self.A_inv @ self.J_0.T)

    @property
    def J_bar(self) -> Array:
        """The dynamically consistent inverse, (22)."""
        return self.A_inv @ self.J.T @ self.Lambda

    @property
    def mu(self) -> Array:
        """(24)."""
        return self.J_bar.T @ self.b - self.Lambda @ self.x_bent

    @property
    def p(self) -> Array:
        """(25)."""
        return self.J_bar.T @ self.g

    @property
    def null_torque(self) -> Array:
        """I - Jᵀ J̄ᵀ, (27)."""
        return np.eye(self.n) - self.J.T @ self.J_bar.T

    @property
    def mu_0(self) -> Array:
        """μ_0 of (9): (24) with J_0."""
        return self.Lambda_0 @ (self.J_0 @ self.A_inv @ self.b - self.bent)

    @property
    def p_0(self) -> Array:
        """p_0 of (9): (25) with J_0."""
        return self.Lambda_0 @ self.J_0 @ self.A_inv @ self.g

    # -------------------------------------------------------------------------- what is seen

    def forward(self, torque: Array, wrench: Array | None = None) -> Array:
        """q̈ from torques and a force (force, moment) on the effector, by articulated bodies."""
        push = torque - self.dense(bias)
        if wrench is not None:
            push = push + self.dense(rot_W @ J).T @ (SWAP @ wrench)
        return self.dense(ARTICULATED) @ push

    def still(self) -> Manipulator:
        """The same at rest."""
        return Manipulator(self.mech, self.node, self.q, 0.0 * self.v, self.seed, self.n_macro)

    @cached_property
    def weightless(self) -> Manipulator:
        """The same without gravity."""
        mech = self.mech.with_gravity(np.zeros(3))
        return Manipulator(mech, self.node, self.q, self.v, self.seed, self.n_macro)

    def moved(self, velocity: Array, acceleration: Array | None = None) -> tuple[Array, float]:
        """Nine configurations of a motion, and the time between them."""
        rate = acceleration if acceleration is not None else 0.0 * velocity
        pace = max(float(np.abs(velocity).max()), 0.3 * float(np.sqrt(np.abs(rate).max())), 1e-9)
        h = STEP / pace
        t = h * np.arange(-4.0, 5.0)[:, None]
        return self.mech.integrate(np.tile(self.q, (9, 1)), velocity * t + 0.5 * rate * t * t), h

    def pictures(self, velocity: Array, acceleration: Array | None = None) -> tuple[Pose, float]:
        """The effector at nine times of a motion, and the time between them."""
        states, h = self.moved(velocity, acceleration)
        return self.mech.pose(states, self.node), h

    def twist(self, velocity: Array) -> Array:
        """ϑ = (v, ω) of the effector, seen."""
        seen, h = self.pictures(velocity)
        turning = np.tensordot(FIRST, seen.rot, 1) / h
        return np.concatenate([FIRST @ seen.p / h, unskew(turning @ self.pose.rot.T)])

    def twist_rate(self, acceleration: Array) -> Array:
        """ϑ̇ of the effector, seen."""
        seen, h = self.pictures(self.v, acceleration)
        turning = np.tensordot(SECOND, seen.rot, 1) / h**2
        return np.concatenate([SECOND @ seen.p / h**2, unskew(turning @ self.pose.rot.T)])

    def x_rate(self, velocity: Array) -> Array:
        """ẋ, seen."""
        seen, h = self.pictures(velocity)
        return FIRST @ coordinates(seen) / h

    def x_acceleration(self, acceleration: Array) -> Array:
        """ẍ, seen."""
        seen, h = self.pictures(self.v, acceleration)
        return SECOND @ coordinates(seen) / h**2

    @cached_property
    def seen_jacobian(self) -> Array:
        """∂x/∂q, from poses alone."""
        return np.column_stack([self.x_rate(unit) for unit in np.eye(self.n)])

    @cached_property
    def seen_basic(self) -> Array:
        """What every joint does to (v, ω), from poses alone."""
        return np.column_stack([self.twist(unit) for unit in np.eye(self.n)])

    @cached_property
    def seen_response(self) -> Array:
        """(v̇, ω̇) that unit forces and moments on the effector at rest give, in columns."""
        still = self.still()
        held = still.dense(bias)
        pushes = (still.forward(held, unit) for unit in np.eye(6))
        return np.column_stack([still.twist_rate(push) for push in pushes])

    @cached_property
    def energies(self) -> Array:
        """The matrix of the kinetic energy, from energies of bodies at pairs of unit velocities."""
        units = np.eye(self.n)
        return (
            np.array([[self.energy(x + y) - self.energy(x - y) for y in units] for x in units])
            * 0.5
        )

    def energy(self, velocity: Array) -> float:
        """Kinetic energy of the bodies."""
        computed = self.dense(phi.T @ H.T) @ velocity
        return 0.5 * float(computed @ self.dense(M) @ computed)

    def potential(self, q: Array) -> Array:
        """Potential energy of gravity, of many configurations at a time."""
        com = self.mech.poses(q).apply(self.mech.inertias.com)
        masses = np.asarray(self.mech.inertias.mass)
        return -np.einsum("k,...ki,i->...", masses, com, self.mech.gravity)

    def moments(self, acceleration: Array) -> Array:
        """Γ by d'Alembert's principle: rates of the momenta of bodies, seen at nine times."""
        states, h = self.moved(self.v, acceleration)
        poses = self.mech.poses(states)
        rot, inertias = poses.rot, self.mech.inertias
        com = SECOND @ poses.apply(inertias.com).reshape(9, -1) / h**2
        force = np.asarray(inertias.mass)[:, None] * (com.reshape(-1, 3) - self.mech.gravity)
        # ∫ r × r̈ dm about the centre of mass, with the second moments S of the mass.
        trace = np.trace(inertias.J_com, axis1=1, axis2=2)[:, None, None]
        second = 0.5 * trace * np.eye(3) - inertias.J_com
        now = rot[4]
        half = np.tensordot(SECOND, rot, 1) / h**2 @ second @ np.swapaxes(now, 1, 2)
        moment = unskew(half - np.swapaxes(half, 1, 2))
        # To body axes and to the body frame, where the partial velocities φ* H* are.
        back = np.swapaxes(now, 1, 2)
        f = np.einsum("kij,kj->ki", back, force)
        N = np.einsum("kij,kj->ki", back, moment) + cross(inertias.com, f)
        return self.dense(phi.T @ H.T).T @ np.concatenate([N, f], axis=1).ravel()


def coordinates(pose: Pose) -> Array:
    """x: position, roll, pitch and yaw, unwrapped along the first axis."""
    angles = rpy_of(pose.rot)
    if angles.ndim > 1:
        angles = np.unwrap(angles, axis=0)
    return np.concatenate([pose.p, angles], axis=-1)
