"""Manipulators that hold an object rigidly: the subject of sections 6 and 7.

The object is a handful of particles. Its frame, at the operational point, is fixed in every
effector: it is the node that each manipulator has as its own. How all of them move is found without
forces between them: d'Alembert's principle among the motions that the grasps allow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property

import numpy as np

from linkwise import models
from linkwise.algebra.symbols import bias, mass
from linkwise.model.hinges import Pin
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import blocks, cross
from linkwise_ledger.case import Case
from linkwise_ledger.jpl_88_11.links import diagonal
from linkwise_ledger.jpl_88_11.motion import with_hinges
from linkwise_ledger.object_level.manipulator import Manipulator, inverted
from linkwise_ledger.object_level.subject import TURNED, arm, six_joints

GRAVITY = (0.3, -0.5, -9.7)
"""As for single manipulators [m/s²]: no axis is along it."""


class Held:
    """An object, and the manipulators that hold it.

    Args:
        arms: The manipulators; the node of each is the frame of the object.
        seed: Of the object.

    Attributes:
        masses: Of the particles [kg].
        particles: Where they are, from the operational point, in the axes of the world [m].
    """

    QUANTITIES = (
        *("arms.A", "arms.J_0", "arms.b", "arms.g", "arms.bent", "arms.E", "arms.turning"),
        *("m", "r", "I_C"),
    )

    def __init__(self, arms: Sequence[Manipulator], seed: int) -> None:
        self.arms, self.seed = list(arms), seed
        rng = np.random.default_rng((seed, 6))
        self.masses = rng.uniform(0.2, 0.5, 6)
        self.particles = np.array([0.1, 0.2, -0.1]) + 0.3 * rng.standard_normal((6, 3))
        self.theta = arms[0].twist(arms[0].v)

    def again(self) -> Held:
        """The same, with nothing computed yet."""
        return Held([m.again() for m in self.arms], self.seed)

    def drawn(self, size: int, which: int = 0) -> Array:
        """A vector, the same each time."""
        return self.arms[0].drawn(size, which)

    @property
    def sizes(self) -> list[int]:
        """Degrees of freedom of the manipulators."""
        return [m.n for m in self.arms]

    def split(self, stacked: Array) -> list[Array]:
        """The parts of the manipulators, of what is stacked."""
        return np.split(stacked[: sum(self.sizes)], np.cumsum(self.sizes)[:-1])

    # ------------------------------------------------------------------ as the paper has it

    @cached_property
    def m(self) -> float:
        """m_L."""
        return float(self.masses.sum())

    @cached_property
    def r(self) -> Array:
        """From the operational point to the centre of mass."""
        return self.masses @ self.particles / self.masses.sum()

    @cached_property
    def I_C(self) -> Array:
        """ℑ_L(C), about the centre of mass."""
        centre = self.masses @ self.particles / self.masses.sum()
        arms = [skew(p - centre) for p in self.particles]
        total = sum(-m * p @ p for m, p in zip(self.masses, arms, strict=True))
        return np.asarray(total, dtype=np.float64)

    @property
    def load_0(self) -> Array:
        """Λ_L(0) of (59)."""
        r = skew(self.r)
        return blocks(self.m * np.eye(3), -self.m * r, -self.m * r.T, self.I_C + self.m * r.T @ r)

    @property
    def to_twist(self) -> Array:
        """E⁻¹ of the object's coordinates."""
        return inverted(self.arms[0].E)

    @property
    def load(self) -> Array:
        """Λ_L of (61)."""
        return self.to_twist.T @ self.load_0 @ self.to_twist

    @property
    def load_mu(self) -> Array:
        """μ_L: what the object's motion needs when ẍ is zero."""
        w, first = self.theta[3:], self.arms[0]
        about = self.I_C + self.m * skew(self.r).T @ skew(self.r)
        force = np.concatenate([self.m * cross(w, cross(w, self.r)), cross(w, about @ w)])
        return self.to_twist.T @ force - self.load @ (first.turning @ self.theta)

    @property
    def load_p(self) -> Array:
        """p_L: what holds the object up."""
        up = -self.m * self.arms[0].mech.gravity
        return self.to_twist.T @ np.concatenate([up, cross(self.r, up)])

    @property
    def Lambda(self) -> Array:
        """Λ_⊕ of (63) and (71)."""
        return sum((m.Lambda for m in self.arms), self.load)

    @property
    def mu(self) -> Array:
        """μ_⊕ of (65)."""
        return sum((m.mu for m in self.arms), self.load_mu)

    @property
    def p(self) -> Array:
        """p_⊕ of (66)."""
        return sum((m.p for m in self.arms), self.load_p)

    def shares(self, net: Array) -> list[Array]:
        """Forces of the effectors that have this resultant, and squeeze the object."""
        squeeze = self.drawn(6 * len(self.arms), 8).reshape(-1, 6)
        squeeze -= squeeze.mean(axis=0)
        return [net / len(self.arms) + 0.3 * push for push in squeeze]

    # -------------------------------------------------------------------------- what is seen

    @cached_property
    def seen_load(self) -> Array:
        """The kinetic energy matrix of the particles in (v, ω)."""
        ways = [np.hstack([np.eye(3), -skew(p)]) for p in self.particles]
        total = sum(m * way.T @ way for m, way in zip(self.masses, ways, strict=True))
        return np.asarray(total, dtype=np.float64)

    @cached_property
    def particle_bias(self) -> Array:
        """What turning and gravity take of the object, particle by particle."""
        w, matrix = self.theta[3:], np.zeros(6)
        for m, p in zip(self.masses, self.particles, strict=True):
            force = m * (cross(w, cross(w, p)) - self.arms[0].mech.gravity)
            matrix += np.concatenate([force, cross(p, force)])
        return matrix

    @cached_property
    def rows(self) -> Array:
        """[diag(J_i), -I]: what the grasps hold at zero, of (q̇_1, ..., q̇_N, ϑ)."""
        held = np.vstack([np.eye(6)] * len(self.arms))
        jacobians = (m.again().J_0 for m in self.arms)
        return np.hstack([diagonal(list(jacobians)), -held])

    @cached_property
    def freedom(self) -> Array:
        """The velocities that the grasps allow, in columns."""
        _, sizes, ways = np.linalg.svd(self.rows)
        return ways[int((sizes > 1e-9 * sizes[0]).sum()) :].T

    @cached_property
    def pushed(self) -> Array:
        """From forces (Γ_1, ..., Γ_N, on the object) to accelerations, all at rest, no gravity."""
        inertia = diagonal([*(m.dense(mass) for m in self.arms), self.seen_load])
        basis = self.freedom
        return basis @ np.linalg.solve(basis.T @ inertia @ basis, basis.T)

    def forward(self, torques: Sequence[Array]) -> Array:
        """(q̈_1, ..., q̈_N, ϑ̇) by d'Alembert's principle."""
        inertia = diagonal([*(m.dense(mass) for m in self.arms), self.seen_load])
        bent = np.concatenate([m.again().bent for m in self.arms])
        start = np.linalg.pinv(self.rows, rcond=1e-10) @ -bent
        biases = [t - m.dense(bias) for t, m in zip(torques, self.arms, strict=True)]
        push = np.concatenate([*biases, -self.particle_bias])
        return start + self.pushed @ (push - inertia @ start)

    def x_acceleration(self, torques: Sequence[Array]) -> Array:
        """ẍ of the object, seen by the last of its effectors."""
        return self.arms[-1].x_acceleration(self.split(self.forward(torques))[-1])

    def torques(self, net: Array, which: int = 0) -> list[Array]:
        """Γ_i = J_iᵀ F_i + [I - J_iᵀ J̄_iᵀ] Γ_i0, for effectors with this resultant."""
        parts: list[Array] = []
        for m, F in zip(self.arms, self.shares(net), strict=True):
            rest = m.null_torque @ (m.A @ m.drawn(m.n, which) + m.b + m.g)
            parts.append(m.J.T @ F + rest)
        return parts

    def like(self, change: Callable[[Manipulator], Manipulator]) -> Held:
        """The same object, held by manipulators that are changed."""
        return Held([change(m) for m in self.arms], self.seed)

    def loaded(self, i: int) -> Manipulator:
        """Manipulator i alone, with the object in its hand."""
        m = self.arms[i]
        back = m.pose.rot.T
        centre = self.masses @ self.particles / self.masses.sum()
        about = [skew(p - centre) for p in self.particles]
        J_com = -sum(mass_ * p @ p for mass_, p in zip(self.masses, about, strict=True))
        inertia = SpatialInertia.from_com(
            float(self.masses.sum()), back @ centre, back @ J_com @ back.T
        )
        mech = m.mech.with_payload(m.node, inertia, name="load")
        return Manipulator(mech, m.node, m.q, m.v, m.seed)


def grasped(arms: Sequence[tuple[Mechanism, str, Array]], v: Array, seed: int) -> Held:
    """Arms that take an object between their hands, and move on with it as the first one does.

    Args:
        arms: Mechanisms, the names of their hands, and their postures.
        v: Joint velocities of the first.
        seed: Of the object.
    """
    hands = [mech.pose(q, hand) for mech, hand, q in arms]
    point = np.mean([hand.p for hand in hands], axis=0)
    parts: list[Manipulator] = []
    theta = np.zeros(6)
    for (mech, hand, q), pose in zip(arms, hands, strict=True):
        frame = pose.inverse() @ Pose(TURNED, point)
        mech = mech.with_gravity(GRAVITY).with_node("object", hand, frame)
        if parts:
            v = np.linalg.pinv(Manipulator(mech, "object", q, np.zeros(mech.nv), seed).J_0) @ theta
        parts.append(Manipulator(mech, "object", q, v, seed))
        theta = parts[0].J_0 @ parts[0].v
    return Held(parts, seed)


@cache
def held(case: Case) -> Held:
    """A PUMA, a gantry and another PUMA hold an object: none of them is redundant."""
    arms = [six_joints(case.seed + i) for i in range(2)]
    arms.append((arms[0][0], arms[0][1] + np.array([0.3, -0.1, 0.1, 0.2, -0.2, 0.1])))
    v = 0.3 * np.random.default_rng((case.seed, 61)).uniform(-1.0, 1.0, 6)
    return grasped([(mech, "hand", q) for mech, q in arms], v, case.seed)


@cache
def held_redundantly(case: Case) -> Held:
    """The redundant manipulator of a case, an arm of seven pins and one of six joints."""
    first, seven = arm(case), models.seven_dof_arm().without_armature()
    posture = np.array([0.3, 0.6, -0.4, 1.1, 0.5, 0.7, -0.2])
    six, q = six_joints(case.seed)
    parts = [(first.mech, "mini_hand", first.q), (seven, "hand", posture), (six, "hand", q)]
    return grasped(parts, 0.5 * first.v, case.seed)


@cache
def poorly_held(case: Case) -> Held:
    """The mechanism of a case, an arm of four parallel pins and one of six joints."""
    flat = with_hinges(models.chain(4, length=0.4, mass=1.0), lambda k, was: Pin((0.0, 0.0, 1.0)))
    six, q = six_joints(case.seed)
    parts = [
        (case.mech.without_armature(), case.node, case.q),
        (flat, flat.nodes[-1].name, np.array([0.4, 0.5, -0.7, 0.9])),
        (six, "hand", q),
    ]
    return grasped(parts, 0.0 * case.v, case.seed)
