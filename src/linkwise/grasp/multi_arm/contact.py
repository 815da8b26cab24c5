"""The contacts of a multi-arm system in given states: what they block, what they leave free.

Everything of a contact is written in the frame of its loop's node b, at its origin. With E the
carriers of velocities from the arm's tip and from the object's node to there (one of them is the
identity, the other T of the loop), f(0) the force on the object and s = ±1 the side that b is on:

    E_o α_o − E_a α_a + c = H* Ẇ        c = s (V_ab × T V_a − Ḣ* W),   Ẇ that of the hinge times s
    H f(0) = 0                          the force on the object's node is E_o* f(0),
                                        on the tip −E_a* f(0)

This is (b.1c) to (b.1f) of JPL 88-11-II, for any hinge; there the two frames are at one point, and
E_a is a rotation. S are rows that span what H leaves out: f(0) = S* λ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from linkwise.dynamics.closure import relative_poses
from linkwise.grasp.multi_arm.evaluation import Evaluation
from linkwise.model.closure import blocked, closure_nodes, coordinates, least_squares
from linkwise.model.hinges import Hinge
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose
from linkwise.spatial.vector import cross_velocity


@dataclass(frozen=True, slots=True)
class Contacts:
    """All contacts in a batch of states.

    Attributes:
        sizes: Rows of each contact, 6 less the freedoms of its hinge.
        E_arm: Carriers of velocities of tips (batch, contacts, 6, 6).
        E_object: Carriers of velocities of the object's nodes (batch, contacts, 6, 6).
        S: Blocked directions of all contacts (batch, m, 6 contacts).
        V_ab: Relative velocities (batch, contacts, 6), of b seen from a.
        turning: s V_ab × T V_a (batch, contacts, 6).
        rate: s S (−Ḣ* W) (batch, m).
        X_ab: Pose of b seen from a, of each contact.
        sign: s (contacts,).
    """

    sizes: tuple[int, ...]
    E_arm: Array
    E_object: Array
    S: Array
    V_ab: Array
    turning: Array
    rate: Array
    X_ab: tuple[Pose, ...]
    sign: Array

    def from_tips(self, motion: Array) -> Array:
        """Motions of tips (batch, 6 contacts) in the frames of contacts."""
        return _carried(self.E_arm, motion)

    def from_object(self, motion: Array) -> Array:
        """Motions of the object's nodes (batch, 6 contacts) in the frames of contacts."""
        return _carried(self.E_object, motion)

    def to_tips(self, force: Array) -> Array:
        """Forces at contacts (batch, 6 contacts) as forces at tips."""
        return _carried(np.swapaxes(self.E_arm, -1, -2), force)

    def to_object(self, force: Array) -> Array:
        """Forces at contacts (batch, 6 contacts) as forces at the object's nodes."""
        return _carried(np.swapaxes(self.E_object, -1, -2), force)


def contacts(of: Evaluation) -> Contacts:
    """The contacts in the states of an evaluation."""
    mech, batch = of.mech, len(of.q)
    poses = relative_poses(mech, of.q) if of.target == "cpu" else _relative_poses(of)
    V = of.run("node_velocity", closure_nodes(mech)).reshape(batch, -1, 2, 6)
    T = np.stack([np.swapaxes(X_ab.shift, -1, -2) for X_ab in poses], axis=1)
    same, sign = np.broadcast_to(np.eye(6), T.shape), of.parts.sign
    on_object = (sign > 0.0)[:, None, None]
    carried = (T @ V[:, :, 0, :, None])[..., 0]
    V_ab = V[:, :, 1] - carried
    sizes = tuple(loop.rows for loop in mech.loops)
    S, rate = np.zeros((batch, sum(sizes), 6 * len(sizes))), np.zeros((batch, sum(sizes)))
    row = 0
    for i, (loop, X_ab) in enumerate(zip(mech.loops, poses, strict=True)):
        found = blocked(loop.hinge, X_ab, V_ab[:, i])
        own = slice(row, row + loop.rows)
        S[:, own, 6 * i : 6 * i + 6] = found.S
        rate[:, own] = sign[i] * found.rate
        row += loop.rows
    return Contacts(
        sizes,
        np.where(on_object, T, same),
        np.where(on_object, same, T),
        S,
        V_ab,
        sign[:, None] * cross_velocity(V_ab, carried),
        rate,
        tuple(poses),
        sign,
    )


@dataclass(frozen=True, slots=True)
class FreeDirections:
    """What the hinges of the contacts leave free, in all their coordinates.

    Attributes:
        sizes: Freedoms of each contact.
        H: Hinge maps of all contacts (batch, Σ n_g, 6 contacts): H(0) of the source.
        bias: s Ḣ* W (batch, 6 contacts).
    """

    sizes: tuple[int, ...]
    H: Array
    bias: Array


def free_directions(mech: Mechanism, at: Contacts) -> FreeDirections:
    """H(0) and Ḣ*(0) W of the contacts; Θ(0) is found from the pose where it matters."""
    sizes = tuple(loop.hinge.nv for loop in mech.loops)
    batch = len(at.V_ab)
    H, bias = np.zeros((batch, sum(sizes), 6 * len(sizes))), np.zeros((batch, 6 * len(sizes)))
    row = 0
    for i, loop in enumerate(mech.loops):
        own, six = slice(row, row + loop.hinge.nv), slice(6 * i, 6 * i + 6)
        row += loop.hinge.nv
        constant = constant_map(loop.hinge)
        if constant is not None:
            H[:, own, six] = constant
            continue
        for k in range(batch):
            theta = coordinates(loop.hinge, at.X_ab[i][k])
            H[k, own, six] = loop.hinge.hinge_map(theta)
            W = least_squares(H[k, own, six].T, at.V_ab[k, i])
            bias[k, six] = at.sign[i] * loop.hinge.bias(theta, W)
    return FreeDirections(sizes, H, bias)


@lru_cache(maxsize=1024)
def constant_map(hinge: Hinge) -> Array | None:
    """H (nv, 6) of a hinge whose map is the same everywhere, else None: found by trying some."""
    if hinge.nv == 0:
        return np.zeros((0, 6))
    rng, free = np.random.default_rng(0), np.full(hinge.nq, np.inf)
    maps = [hinge.hinge_map(hinge.random(rng, -free, free)) for _ in range(4)]
    return maps[0] if all(np.abs(H - maps[0]).max() < 1e-14 for H in maps[1:]) else None


def _relative_poses(of: Evaluation) -> list[Pose]:
    """X_ab of each loop, without a kernel."""
    mech, q = of.mech, of.q
    return [mech.pose(q, x.node_a).inverse() @ mech.pose(q, x.node_b) for x in mech.loops]


def _carried(E: Array, x: Array) -> Array:
    """E x block by block."""
    six = x.reshape(*E.shape[:2], 6, 1)
    return (E @ six).reshape(x.shape)


def between(E: Array, x: Array) -> Array:
    """E x E* with the blocks E on the diagonal, x (batch, 6 l, 6 l)."""
    batch, count = E.shape[:2]
    left = E @ x.reshape(batch, count, 6, 6 * count)
    turned = np.swapaxes(left.reshape(x.shape), -1, -2).reshape(batch, count, 6, 6 * count)
    return np.swapaxes((E @ turned).reshape(x.shape), -1, -2)
