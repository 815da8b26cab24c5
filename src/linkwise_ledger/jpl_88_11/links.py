"""The blocks of JPL 88-11, link by link, and the operators that they stack up to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from linkwise.algebra.symbols import B, Delta_phi, H, J, M, a, b, bias, mass, phi
from linkwise.model.hinges import Free, Spherical
from linkwise.spatial.array import Array
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import blocks, cross, six
from linkwise_ledger.case import Case
from linkwise_ledger.jpl_88_11.motion import (
    Motion,
    mobile,
    mobile_pins,
    pins,
    shift,
    shouldered,
    slides,
)


@dataclass(frozen=True)
class Links:
    """The blocks, one for each link, and what forward dynamics has to find.

    Attributes:
        parent: Index of link k + 1; -1 for the base.
        phi: φ(k + 1, k).
        H: H(k).
        M: M(k).
        a: a(k).
        b: b(k).
        theta_dot: θ̇(k).
        tip: The link that touches the environment, link 1 of a chain.
        phi_tip: φ(1, 0).
        a_tip: a(0).
        f_tip: f(0).
        T: T(k).
        theta_ddot: θ̈(k), from the inverse of the mass matrix or known beforehand.
        alpha: α(k).
        alpha_tip: α(0).
    """

    parent: Sequence[int]
    phi: list[Array]
    H: list[Array]
    M: list[Array]
    a: list[Array]
    b: list[Array]
    theta_dot: list[Array]
    tip: int
    phi_tip: Array
    a_tip: Array
    f_tip: Array
    T: list[Array]
    theta_ddot: list[Array]
    alpha: list[Array]
    alpha_tip: Array

    @property
    def inward(self) -> list[int]:
        """k = 1 ... N."""
        return list(range(len(self.parent)))[::-1]

    @property
    def outward(self) -> list[int]:
        """k = N ... 1."""
        return list(range(len(self.parent)))

    def children(self, k: int) -> list[int]:
        """The links k - 1: one link on a chain, and none at its tip."""
        return [c for c in range(len(self.parent)) if self.parent[c] == k]


@cache
def body_axes(case: Case) -> Links:
    """The operators of a case, any hinges, as Linkwise has them: gravity is in a(k), (3.21)."""
    rng = np.random.default_rng(case.seed + 100)
    mech, dense = case.mech, case.dense
    f_tip, T = rng.standard_normal(6), rng.standard_normal(mech.nv)
    push = T - case.matrix(bias) - case.matrix(J).T @ f_tip
    vdot = np.asarray(np.linalg.solve(case.matrix(mass), push), dtype=np.float64)
    alpha = case.matrix(phi).T @ (case.matrix(H).T @ vdot + case.matrix(a))
    bodies, joints = range(mech.n_bodies), dense.slices(H.range)
    node = mech.node(case.node)
    return Links(
        parent=[case.parent(k) for k in bodies],
        phi=[case.block(Delta_phi, k) for k in bodies],
        H=[case.block(H, k) for k in bodies],
        M=[case.block(M, k) for k in bodies],
        a=[case.block(a, k) for k in bodies],
        b=[case.block(b, k) for k in bodies],
        theta_dot=[case.v[s] for s in joints],
        tip=mech.body_index[node.body],
        phi_tip=node.pose.shift,
        a_tip=np.zeros(6),
        f_tip=f_tip,
        T=[T[s] for s in joints],
        theta_ddot=[vdot[s] for s in joints],
        alpha=list(alpha.reshape(-1, 6)),
        alpha_tip=case.matrix(B).T @ alpha,
    )


def world_axes(motion: Motion) -> Links:
    """The blocks as the paper defines them, (2.15) to (2.32), in the axes of the world.

    Joint forces are those of the balance (2.22), accelerations those the arm was given.
    """
    n = motion.n
    links = Links(
        parent=[int(p) for p in motion.parent],
        phi=[shift(x) for x in motion.arm],
        H=[hinge_map(motion, k) for k in range(n)],
        M=[inertia(motion, k) for k in range(n)],
        a=[bias_acceleration(motion, k) for k in range(n)],
        b=[bias_force(motion, k) for k in range(n)],
        theta_dot=motion.theta_dot,
        tip=motion.tip_link,
        phi_tip=shift(motion.tip - motion.O[motion.tip_link]),
        a_tip=tip_acceleration(motion),
        f_tip=motion.f_tip,
        T=[],
        theta_ddot=motion.theta_ddot,
        alpha=list(six(motion.w_dot, motion.v_dot)),
        alpha_tip=six(motion.w_dot[motion.tip_link], motion.v_tip_dot),
    )
    links.T.extend(inverse_dynamics(links, links.theta_ddot))
    return links


def inverse_dynamics(links: Links, theta_ddot: Sequence[Array]) -> list[Array]:
    """T(k) by the loops (2.24) to (2.30)."""
    alpha, f = [np.zeros(6)] * len(links.parent), [np.zeros(6)] * len(links.parent)
    for k in links.outward:
        above = alpha[links.parent[k]] if links.parent[k] >= 0 else np.zeros(6)
        alpha[k] = links.phi[k].T @ above + links.H[k].T @ theta_ddot[k] + links.a[k]
    for k in links.inward:
        f[k] = links.M[k] @ alpha[k] + links.b[k]
        for c in links.children(k):
            f[k] = f[k] + links.phi[c] @ f[c]
        if k == links.tip:
            f[k] = f[k] + links.phi_tip @ links.f_tip
    return [links.H[k] @ f[k] for k in links.outward]


def hinge_map(motion: Motion, k: int) -> Array:
    """H(k) of (2.16), (2.31), (b.2), and of a ball."""
    if isinstance(motion.hinge(k), Free):
        return np.eye(6)
    if isinstance(motion.hinge(k), Spherical):
        return np.hstack([motion.now.axes[k].T, np.zeros((3, 3))])
    none = np.zeros(3)
    return six(none, motion.h[k])[None] if motion.is_slide(k) else six(motion.h[k], none)[None]


def inertia(motion: Motion, k: int) -> Array:
    """M(k) of (2.15), with I(k) = Iᶜ(k) - m p~²."""
    m, p = float(motion.mass[k]), skew(motion.p[k])
    return blocks(motion.I_com[k] - m * p @ p, m * p, -m * p, m * np.eye(3))


def bias_acceleration(motion: Motion, k: int, slid: float = 2.0) -> Array:
    """a(k) of (2.19) for what turns, of (2.32) for slides; (2.32) prints `slid` as 1."""
    if isinstance(motion.hinge(k), Free):
        return np.zeros(6)
    w = motion.up(motion.w)[k]
    if motion.is_slide(k):
        rate = motion.h[k] * motion.theta_dot[k]
        return six(np.zeros(3), cross(w, cross(w, motion.arm[k]) + slid * rate))
    return six(cross(w, motion.w[k]), cross(w, cross(w, motion.arm[k])))


def tip_acceleration(motion: Motion) -> Array:
    """a(0): (2.19) for k = 0, where ω(0) = ω(1)."""
    w, arm = motion.w[motion.tip_link], motion.tip - motion.O[motion.tip_link]
    return six(np.zeros(3), cross(w, cross(w, arm)))


def bias_force(motion: Motion, k: int) -> Array:
    """b(k) of (2.23)."""
    m, w, p = float(motion.mass[k]), motion.w[k], motion.p[k]
    moment = cross(w, inertia(motion, k)[:3, :3] @ w)
    return six(moment, m * cross(w, cross(w, p)))


@cache
def pinned(case: Case) -> Links:
    """The tree of a case on pins, in world axes."""
    return world_axes(pins(case))


@cache
def sliding(case: Case) -> Links:
    """With slides among the pins."""
    return world_axes(slides(case))


@cache
def floating(case: Case) -> tuple[tuple[Motion, Links], ...]:
    """On a free base with pins; with balls, slides and pins; and on a ball at the base."""
    motions = (mobile_pins(case), mobile(case), shouldered(case))
    return tuple((x, world_axes(x)) for x in motions)


@dataclass(frozen=True)
class Operators:
    """The operators of section 3 as matrices; rows of the link at the base come first.

    Attributes:
        phi: (3.4).
        H: (3.5).
        M: (3.6).
        B: (3.7).
        E: (3.8), as a column: the block φᵀ(N+1, N) is at the links on the ground.
        a: (3.10).
        b: (3.10).
        theta_dot: (3.9).
        theta_ddot: Its rate.
        T: (3.9).
    """

    phi: Array
    H: Array
    M: Array
    B: Array
    E: Array
    a: Array
    b: Array
    theta_dot: Array
    theta_ddot: Array
    T: Array

    @property
    def J(self) -> Array:
        """(3.13)."""
        return self.B.T @ self.phi.T @ self.H.T

    @property
    def mass(self) -> Array:
        """(3.20)."""
        return self.H @ self.phi @ self.M @ self.phi.T @ self.H.T


def stacked(links: Links) -> Operators:
    """Blocks put where (3.4) to (3.10) put them."""
    n = len(links.parent)
    phi, B, E = np.zeros((6 * n, 6 * n)), np.zeros((6 * n, 6)), np.zeros((6 * n, 6))
    for j in range(n):
        block, i = np.eye(6), j
        while i >= 0:  # φ(i, j) = φ(i, i-1) ... φ(j+1, j), (3.3)
            phi[rows(i), rows(j)] = block
            block, i = links.phi[i] @ block, links.parent[i]
        if links.parent[j] < 0:
            E[rows(j)] = links.phi[j].T
    B[rows(links.tip)] = links.phi_tip
    return Operators(
        phi,
        diagonal(links.H),
        diagonal(links.M),
        B,
        E,
        np.concatenate(links.a),
        np.concatenate(links.b),
        np.concatenate(links.theta_dot),
        np.concatenate(links.theta_ddot),
        np.concatenate(links.T),
    )


def rows(k: int) -> slice:
    """Where link k stands."""
    return slice(6 * k, 6 * k + 6)


def diagonal(blocks: Sequence[Array]) -> Array:
    """diag[...] of blocks of any shapes."""
    height, width = sum(len(x) for x in blocks), sum(x.shape[1] for x in blocks)
    matrix, i, j = np.zeros((height, width)), 0, 0
    for x in blocks:
        matrix[i : i + len(x), j : j + x.shape[1]] = x
        i, j = i + len(x), j + x.shape[1]
    return matrix


@cache
def on_pins(case: Case) -> Operators:
    """The tree of a case on pins, in world axes."""
    return stacked(pinned(case))


@cache
def on_slides(case: Case) -> Operators:
    """With slides among the pins."""
    return stacked(sliding(case))
