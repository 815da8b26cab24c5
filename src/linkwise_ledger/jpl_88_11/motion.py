"""An arm that moves, seen from outside: JPL 88-11 works in inertial axes.

Velocities, accelerations, forces and moments come from positions alone: points and axes are placed
along a motion of the joints and differentiated with respect to time by differences of eighth order.
No formula of the paper is used, so that each of them can be held against it.

Joint forces of a motion: by the loops (2.1) to (2.13), by operators, and of weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from linkwise.algebra.dense import Dense
from linkwise.algebra.symbols import J, bias, mass
from linkwise.model.builder import Builder
from linkwise.model.hinges import Free, Hinge, Pin, Prismatic, Spherical
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.rotation import random_rotation, skew, unskew
from linkwise.spatial.vector import blocks, cross
from linkwise_ledger.case import Case

STEP = 0.01
"""Time between two pictures of the motion [s]: truncation and rounding stay below 1e-11."""

FIRST = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0.0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])
SECOND = np.array(
    [-1 / 560, 8 / 315, -1 / 5, 8 / 5, -205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560],
)
"""Central differences of eighth order: what to multiply f(-4 h) ... f(4 h) by."""


def first(values: Sequence[Array]) -> Array:
    """First derivative of nine values, `STEP` apart, in their middle."""
    return np.tensordot(FIRST, np.asarray(values), 1) / STEP


def second(values: Sequence[Array]) -> Array:
    """Second derivative of the same."""
    return np.tensordot(SECOND, np.asarray(values), 1) / STEP**2


def times() -> list[float]:
    """When the nine values are taken [s]."""
    return [STEP * i for i in range(-4, 5)]


def shift(arm: Array) -> Array:
    """φ of (3.1), [[I, l~], [0, I]], for the vector l from one point to another."""
    return blocks(np.eye(3), skew(arm), np.zeros((3, 3)), np.eye(3))


@dataclass(frozen=True, slots=True)
class Picture:
    """Where everything is at one time, in world axes.

    Attributes:
        rot: Axes of the links (n, 3, 3).
        O: The points O(k), on the hinge and fixed in link k (n, 3).
        com: Centres of mass (n, 3).
        h: Unit vectors along joint axes (n, 3); zero where a hinge has no single axis.
        axes: Axes of the hinge frames on the inboard side (n, 3, 3).
        tip: The point O(0) where the environment is touched (3,).
    """

    rot: Array
    O: Array
    com: Array
    h: Array
    axes: Array
    tip: Array


def picture(mech: Mechanism, q: Array, node: str) -> Picture:
    """Everything in its place."""
    poses, n = mech.poses(q), mech.n_bodies
    points, h, axes = np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3, 3))
    for k, body in enumerate(mech.bodies):
        hinge_frame = poses[k] @ body.outboard.inverse()
        points[k] = hinge_frame.p
        turned = body.hinge.pose(q[mech.q_slice(body.hinge_name)]).rot
        axes[k] = hinge_frame.rot @ turned.T
        if isinstance(body.hinge, Pin | Prismatic):
            h[k] = hinge_frame.rot @ np.array(body.hinge.axis)
    com = poses.apply(mech.inertias.com)
    return Picture(poses.rot, points, com, h, axes, mech.pose(q, node).p)


class Motion:
    """A mechanism of pins, slides, balls and a free base, in the midst of a motion.

    Arrays have a row for each link and are in world axes; O is the point O(k).

    Attributes:
        theta_dot, theta_ddot: Joint rates W(k) and their rates, a list of vectors.
        w, w_dot, v, v_dot: Velocities and accelerations of the links, at O(k).
        v_com, v_com_dot: The same of the centres of mass.
        F_net, N_net: Rate of momentum, and of angular momentum about the centre of mass.
        F, N: Force and moment about O(k) through joint k, by balance of everything beyond it.
        f_tip: (N(0), F(0)), exerted on the environment at O(0).
    """

    def __init__(self, mech: Mechanism, node: str, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.mech, self.node = mech, node
        self.q, self.qdot = mech.random(rng), mech.random_velocity(rng)
        self.qddot, self.f_tip = rng.standard_normal(mech.nv), rng.standard_normal(6)
        self.n, self.parent = mech.n_bodies, mech.parent
        self.pictures = [picture(mech, self.q_at(t), node) for t in times()]
        now = self.now = self.pictures[4]
        self.rot, self.O, self.com, self.h, self.tip = now.rot, now.O, now.com, now.h, now.tip
        self.tip_link = mech.body_index[mech.node(node).body]
        self._differentiate()
        self._balance()
        self.theta_dot = [self._rate(k, self.qdot, self.w, self.v) for k in range(self.n)]
        self.theta_ddot = [self._rate(k, self.qddot, self.w_dot, self.v_dot) for k in range(self.n)]

    def q_at(self, t: float) -> Array:
        """Coordinates at the time t, with the velocity and the acceleration drawn at t = 0."""
        return self.mech.integrate(self.q, self.qdot * t + 0.5 * self.qddot * t * t)

    def _differentiate(self) -> None:
        shots = self.pictures
        back = np.swapaxes(self.rot, 1, 2)
        self.w = unskew(first([s.rot for s in shots]) @ back)
        self.turning = second([s.rot for s in shots])  # second derivative of the rotations
        self.w_dot = unskew(self.turning @ back)  # of ω̇~ + ω~², the antisymmetric part
        self.v, self.v_dot = first([s.O for s in shots]), second([s.O for s in shots])
        self.v_com = first([s.com for s in shots])
        self.v_com_dot = second([s.com for s in shots])
        self.v_tip, self.v_tip_dot = first([s.tip for s in shots]), second([s.tip for s in shots])

    def _balance(self) -> None:
        """Newton and Euler for everything beyond each joint, link by link."""
        inertias = self.mech.inertias
        self.mass, J_com = np.asarray(inertias.mass), inertias.J_com
        self.I_com = self.rot @ J_com @ np.swapaxes(self.rot, 1, 2)
        self.F_net = self.mass[:, None] * self.v_com_dot
        # ∫ r × r̈ dm = (R̈ S R^T - R S R̈^T) as a vector, with the second moments S of the mass.
        trace = np.trace(J_com, axis1=1, axis2=2)[:, None, None]
        moments = 0.5 * trace * np.eye(3) - J_com
        half = self.turning @ moments @ np.swapaxes(self.rot, 1, 2)
        self.N_net = unskew(half - np.swapaxes(half, 1, 2))
        self.F, self.N = np.zeros((self.n, 3)), np.zeros((self.n, 3))
        for k in range(self.n):
            for j in self.beyond(k):
                self.F[k] += self.F_net[j]
                self.N[k] += self.N_net[j] + cross(self.com[j] - self.O[k], self.F_net[j])
            if self.tip_link in self.beyond(k):
                self.F[k] += self.f_tip[3:]
                self.N[k] += self.f_tip[:3] + cross(self.tip - self.O[k], self.f_tip[3:])

    def beyond(self, k: int) -> list[int]:
        """Link k and everything that hangs on it."""
        values = [k]
        for j in range(k + 1, self.n):
            if int(self.parent[j]) in values:
                values.append(j)
        return values

    def hinge(self, k: int) -> Hinge:
        """The hinge of link k."""
        return self.mech.bodies[k].hinge

    def is_slide(self, k: int) -> bool:
        """Whether joint k slides."""
        return isinstance(self.hinge(k), Prismatic)

    def _rate(self, k: int, rates: Array, angular: Array, linear: Array) -> Array:
        """W(k), or its rate: of a ball in the axes of link k + 1, of a free base in world axes."""
        span = rates[self.mech.v_slice(self.mech.bodies[k].hinge_name)]
        if isinstance(self.hinge(k), Spherical):
            body = self.mech.bodies[k]
            return body.hinge.pose(self.q[self.mech.q_slice(body.hinge_name)]).rot @ span
        if isinstance(self.hinge(k), Free):
            return np.concatenate([angular[k], linear[k]])
        return span

    def up(self, rows: Array, ground: Array | None = None) -> Array:
        """Of each link the row of link k + 1; zero, or `ground`, for the links on the ground."""
        last = np.zeros((1, *rows.shape[1:])) if ground is None else ground[None]
        return np.concatenate([rows, last])[self.parent]

    def gathered(self, rows: Array, tip: Array) -> Array:
        """Of each link the sum over links k - 1; `tip` is what link 0 adds."""
        matrix = np.zeros_like(rows)
        for k in range(self.n):
            if self.parent[k] >= 0:
                matrix[self.parent[k]] += rows[k]
        matrix[self.tip_link] += tip
        return matrix

    @property
    def arm(self) -> Array:
        """l(k + 1, k): from O(k + 1) to O(k), the ground's being the origin (n, 3)."""
        return self.O - self.up(self.O)

    @property
    def p(self) -> Array:
        """From O(k) to the centre of mass (n, 3)."""
        return self.com - self.O


def with_hinges(mech: Mechanism, hinge: Callable[[int, Hinge], Hinge]) -> Mechanism:
    """The same bodies in the same tree on other hinges; without gravity, without drives."""
    b = Builder(f"{mech.name} on other hinges", gravity=(0.0, 0.0, 0.0))
    for k, body in enumerate(mech.bodies):
        b.body(
            body.name,
            body.parent,
            hinge(k, body.hinge),
            inboard=body.inboard,
            outboard=body.outboard,
            inertia=body.inertia,
        )
    for node in mech.nodes:
        b.node(node.name, node.body, node.pose)
    return b.build()


def _axis(k: int, was: Hinge) -> tuple[float, float, float]:
    if isinstance(was, Pin | Prismatic):
        return was.axis
    x, y, z = random_rotation(np.random.default_rng(k))[0]
    return (float(x), float(y), float(z))


@cache
def pins(case: Case) -> Motion:
    """The tree of a case on pins, moving."""
    mech = with_hinges(case.mech, lambda k, was: Pin(_axis(k, was)))
    return Motion(mech, case.node, case.seed)


@cache
def slides(case: Case) -> Motion:
    """The tree of a case with a slide at every second body, pins otherwise."""

    def hinge(k: int, was: Hinge) -> Hinge:
        return Prismatic(_axis(k, was)) if k % 2 else Pin(_axis(k, was))

    return Motion(with_hinges(case.mech, hinge), case.node, case.seed)


@cache
def mobile(case: Case) -> Motion:
    """The tree of a case on a free base, with balls, slides and pins."""

    def hinge(k: int, was: Hinge) -> Hinge:
        kinds = (Pin(_axis(k, was)), Spherical(), Prismatic(_axis(k, was)))
        return Free() if case.mech.parent[k] < 0 else kinds[k % 3]

    return Motion(with_hinges(case.mech, hinge), case.node, case.seed)


@cache
def mobile_pins(case: Case) -> Motion:
    """The tree of a case on a free base, pins otherwise."""

    def hinge(k: int, was: Hinge) -> Hinge:
        return Free() if case.mech.parent[k] < 0 else Pin(_axis(k, was))

    return Motion(with_hinges(case.mech, hinge), case.node, case.seed)


@cache
def shouldered(case: Case) -> Motion:
    """The tree of a case with a ball at the base, pins otherwise."""

    def hinge(k: int, was: Hinge) -> Hinge:
        return Spherical() if case.mech.parent[k] < 0 else Pin(_axis(k, was))

    return Motion(with_hinges(case.mech, hinge), case.node, case.seed)


def joint_forces(x: Motion, raised: Array | None = None) -> Array:
    """T (n,) of an arm of pins by the loops as printed; the base has the acceleration `raised`."""
    n, none = x.n, np.zeros(3)
    w, w_dot, v_dot = np.zeros((n + 1, 3)), np.zeros((n + 1, 3)), np.zeros((n + 1, 3))
    v_com_dot = np.zeros((n, 3))
    v_dot[n] = none if raised is None else raised  # link N + 1 comes last: its index is -1
    arm, p, rate = x.arm, x.p, x.h * x.qdot[:, None]
    for k in range(n):
        i = int(x.parent[k])
        w[k] = w[i] + rate[k]  # (2.2)
        w_dot[k] = w_dot[i] + x.h[k] * x.qddot[k] + cross(w[i], rate[k])  # (2.4)
        v_dot[k] = v_dot[i] + cross(w_dot[i], arm[k]) + cross(w[i], cross(w[i], arm[k]))  # (2.5)
        turned = cross(w_dot[k], p[k]) + cross(w[k], cross(w[k], p[k]))
        v_com_dot[k] = v_dot[k] + turned  # (2.6)
    F, N, T = np.zeros((n, 3)), np.zeros((n, 3)), np.zeros(n)
    F[x.tip_link] = x.f_tip[3:]  # (2.8)
    N[x.tip_link] = x.f_tip[:3] + cross(x.tip - x.O[x.tip_link], x.f_tip[3:])
    for k in reversed(range(n)):
        moment = x.I_com[k] @ w_dot[k] + cross(w[k], x.I_com[k] @ w[k])  # (2.9)
        force = x.mass[k] * v_com_dot[k]  # (2.10)
        F[k] += force  # (2.11), the links k - 1 having been added before
        N[k] += cross(p[k], force) + moment  # (2.12)
        T[k] = x.h[k] @ N[k]  # (2.13)
        if x.parent[k] >= 0:
            F[x.parent[k]] += F[k]
            N[x.parent[k]] += N[k] + cross(arm[k], F[k])
    return T


@cache
def by_operators(x: Motion) -> Array:
    """𝓜 v̇ + C + J* f (nv,), from Linkwise's operators in the axes of the bodies."""
    dense = Dense(x.mech, x.q, x.qdot, nodes=[x.node])
    back = x.mech.pose(x.q, x.node).rot.T
    f = np.concatenate([back @ x.f_tip[:3], back @ x.f_tip[3:]])
    return dense(mass) @ x.qddot + dense(bias) + dense(J).T @ f


def slope_of_potential_energy(x: Motion, gravity: Array) -> Array:
    """Joint forces (nv,) that carry the weights: -Σ m g* c, differentiated along each axis."""

    def energy(v: Array) -> Array:
        com = picture(x.mech, x.mech.integrate(x.q, v), x.node).com
        return -(x.mass @ com) @ gravity

    return np.array(
        [first([energy(STEP * i * e) for i in range(-4, 5)]) for e in np.eye(x.mech.nv)]
    )
