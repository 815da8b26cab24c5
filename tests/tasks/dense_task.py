"""Tasks from matrices alone: Jacobians of nodes, the mass matrix, and NumPy.

A reference for tests. Where the matrices come from is left open: from hinge maps (`dense_world`),
or from another library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import linkwise as lw
from tests.dense_kinematics import mass_matrix, node_jacobian

Array = np.ndarray


@dataclass(frozen=True)
class Node:
    """A node in the world: R, p, J (6, nv) and J̇ v (6,), angular first, in world axes.

    J belongs to the node's origin; J̇ v is the acceleration one would measure there.
    """

    rot: Array
    p: Array
    J: Array
    gamma: Array


@dataclass(frozen=True)
class World:
    """A mechanism in one state, as matrices."""

    nodes: dict[str, Node]
    mass: Array
    coriolis: Array
    gravity: Array
    v: Array


def dense_world(mech: lw.Mechanism, q: Array, v: Array, nodes: Sequence[str]) -> World:
    """From hinge maps; J̇ v, bias and gravity by the library's own functions, tested elsewhere."""
    result = {}
    for name in nodes:
        pose = mech.pose(q, name)
        J = np.kron(np.eye(2), pose.rot) @ node_jacobian(mech, q, name)
        gamma = (
            np.zeros(6)
            if mech.node(name).body == "world"
            else lw.dynamics.jacobian_bias(mech, q, v, name, frame="world")
        )
        result[name] = Node(np.array(pose.rot), np.array(pose.p), J, gamma)
    result["world"] = Node(np.eye(3), np.zeros(3), np.zeros((6, mech.nv)), np.zeros(6))
    gravity = lw.gravity_force(mech, q)
    return World(result, mass_matrix(mech, q), lw.bias_force(mech, q, v) - gravity, gravity, v)


def rows(world: World, S: Array, node: str, relative_to: str = "world", axes: str = "reference"):
    """J_t and γ = J̇_t v of ẋ = S R V_ab.

    In world axes, with r from a to b: ω = ω_b − ω_a and u = v_b − v_a − ω_a × r is how b moves seen
    from a. In axes that turn with ω_R, d/dt (R* y) = R* (ẏ − ω_R × y).
    """
    a, b = world.nodes[relative_to], world.nodes[node]
    r = b.p - a.p
    w_a, w_b = a.J[:3] @ world.v, b.J[:3] @ world.v
    turning = b.J[:3] - a.J[:3]
    moving = b.J[3:] - a.J[3:] + skew(r) @ a.J[:3]
    relative = b.J[3:] @ world.v - a.J[3:] @ world.v
    turning_dot = b.gamma[:3] - a.gamma[:3]
    moving_dot = b.gamma[3:] - a.gamma[3:] - np.cross(a.gamma[:3], r) - np.cross(w_a, relative)
    rot, w = (a.rot, w_a) if axes == "reference" else (b.rot, w_b)
    J = np.vstack([rot.T @ turning, rot.T @ moving])
    turning_dot = turning_dot - np.cross(w, turning @ world.v)
    moving_dot = moving_dot - np.cross(w, moving @ world.v)
    gamma = np.concatenate([rot.T @ turning_dot, rot.T @ moving_dot])
    return S @ J, S @ gamma


def skew(a: Array) -> Array:
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


@dataclass(frozen=True)
class DenseSpace:
    """All of the task space by textbook formulas, 003 (17), (22), (24), (25), (27)."""

    J: Array
    gamma: Array
    world: World

    @property
    def span(self) -> Array:
        """An orthonormal basis of the range of J: the motions that exist."""
        span, values, _ = np.linalg.svd(self.J)
        return span[:, : int((values > 1e-9 * values[0]).sum())]

    @property
    def rank(self) -> int:
        return self.span.shape[1]

    @property
    def yielding(self) -> Array:
        """Ω_t = J 𝓜⁻¹ J*."""
        return self.J @ np.linalg.solve(self.world.mass, self.J.T)

    @property
    def inertia(self) -> Array:
        """Λ: the inverse on the range of J, zero elsewhere."""
        return self.span @ np.linalg.inv(self.span.T @ self.yielding @ self.span) @ self.span.T

    @property
    def consistent_inverse(self) -> Array:
        return np.linalg.solve(self.world.mass, self.J.T) @ self.inertia

    @property
    def null_space(self) -> Array:
        return np.eye(self.J.shape[1]) - self.consistent_inverse @ self.J

    @property
    def coriolis(self) -> Array:
        return self.consistent_inverse.T @ self.world.coriolis - self.inertia @ self.gamma

    @property
    def gravity(self) -> Array:
        return self.consistent_inverse.T @ self.world.gravity

    def torque(self, acceleration: Array, tau0: Array | None = None) -> Array:
        """003 (27) with (23)."""
        force = self.inertia @ acceleration + self.coriolis + self.gravity
        extra = 0.0 if tau0 is None else self.null_space.T @ tau0
        return self.J.T @ force + extra


def space_of(world: World, blocks: Sequence[tuple[Array, Array]]) -> DenseSpace:
    """Tasks one below the other."""
    J, gamma = zip(*blocks, strict=True)
    return DenseSpace(np.vstack(J), np.concatenate(gamma), world)
