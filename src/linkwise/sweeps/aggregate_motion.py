"""How the hinges inside an aggregate body follow the independent ones: 𝒳 and 𝔵.

    v = 𝒳 u                              v̇ = 𝒳 u̇ + 𝔵

Couplings are applied one by one, each after those it needs: v_d = Σ f_j v_j. The loops G w = 0
divide the remaining velocities w into independent and dependent ones, G_i u + G_d w_d = 0, and

    w_d = -G_d⁺ G_i u                    ẇ_d = -G_d⁺ (G_i u̇ + γ)

by least squares (`orthogonal.py`), so that redundant rows, as in a planar loop of pins, do no harm.
Source: jain2012embedding; the rows of loops and couplings are in `model/closure.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from linkwise.errors import ClosureError
from linkwise.model import closure
from linkwise.model.body import Loop
from linkwise.model.embedded import Aggregate, Embedded, undetermined
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.spatial.vector import cross_velocity
from linkwise.sweeps.factored import Orthogonal, orthogonal

LOST = {8: 1e-14, 4: 1e-7}
"""Least pivot of G_d, relative to the trace of G* G, by bytes of a number: the square of the angle
between what a dependent velocity does to the loops and what the others do."""


class Kinematics(Protocol):
    """What is needed of the arithmetic of a run (see `Arithmetic`)."""

    itemsize: int
    q: Any

    def shift(self, pose: Pose) -> Any:
        """φ."""
        ...

    def check_loops(self, g: int, margins: Sequence[Any]) -> None:
        """The loops of aggregate g determine its dependent velocities if these are positive."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """The hinge of one body, in one state: arrays of numbers or of graph nodes."""

    pose: Pose  # x_pk, of the body seen from its parent
    shift: Any  # φ(p, k), with `@` and `T`
    H: Array  # hinge map about the body frame (nv, 6)
    bias: Callable[[Array], Array]  # ḣ* v about the body frame, for a given v (nv,)


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One end of a loop, relative to the body from which its two sides branch off."""

    pose: Pose  # of the node
    J: Array  # its velocity for each velocity of the aggregate (6, n)


class Inside:
    """The motion inside one aggregate, in one state.

    Args:
        tree: The mechanism in independent velocities.
        g: The index of the aggregate.
        joints: The hinge of each body of the mechanism, by its index.
        u: Independent velocities of the aggregate.
        numbers: The arithmetic of the run.
    """

    def __init__(
        self, tree: Embedded, g: int, joints: Callable[[int], Joint], u: Array, numbers: Kinematics
    ) -> None:
        self.tree = tree
        self.mech: Mechanism = tree.mech
        self.group: Aggregate = tree.bodies[g]
        self.g, self.joints, self.u, self.numbers = g, joints, u, numbers
        self.q: Array = numbers.q
        self.place = {i: j for j, i in enumerate(self.group.velocities)}
        """Place in the aggregate of an entry of v."""

    # --------------------------------------------------------------------------- velocities

    @cached_property
    def X(self) -> Array:
        """𝒳 (n, n_u): all velocities of the aggregate from the independent ones."""
        group = self.group
        X_c = self._followed
        if not group.loops:
            return X_c[:, list(group.independent)]
        free, bound = list(group.independent), list(group.dependent)
        if not bound:
            return X_c[:, free]
        G = self._rows
        return X_c[:, free] - X_c[:, bound] @ self._parted.solve(G[:, free])

    @cached_property
    def v(self) -> Array:
        """𝒳 u (n,)."""
        return self.X @ self.u

    @cached_property
    def _followed(self) -> Array:
        """X_c (n, n): v by the couplings alone; columns of coupled velocities are zero."""
        group, n = self.group, len(self.group.velocities)
        X_c = np.eye(n, dtype=self.q.dtype if group.couplings else np.float64)
        for coupling, d in zip(group.couplings, group.coupled, strict=True):
            row = 0.0 * X_c[d]
            for k, values in self._others(coupling, self._still):
                row = row - values @ X_c[self._of(k)]
            X_c[d] = row
        return X_c

    @property
    def _still(self) -> Array:
        return np.zeros(self.mech.nv)

    def _others(self, coupling: Any, v: Array) -> list[tuple[int, Array]]:
        """Coefficients of the velocities that a coupling reads, by body."""
        follower = closure.follower(self.mech, coupling, self.q[None], v[None])
        return [(k, np.asarray(values)[0]) for k, values in follower.terms[1:]]

    def _of(self, k: int) -> list[int]:
        start, stop = int(self.mech.v_start[k]), int(self.mech.v_start[k + 1])
        return [self.place[i] for i in range(start, stop)]

    # -------------------------------------------------------------------------------- loops

    @cached_property
    def _sides(self) -> list[tuple[Side, Side]]:
        return [
            (self._side(loop.node_a, c), self._side(loop.node_b, c))
            for loop, c in ((loop, fork(self.mech, loop)) for loop in self.group.loops)
        ]

    def _side(self, node: str, fork: int) -> Side:
        """From the body where the sides branch off to a node."""
        at, n = self.mech.node(node), len(self.group.velocities)
        pose, J = Pose.identity(), np.zeros((6, n), dtype=self.q.dtype)
        for k in path(self.mech, self.mech.body_index[at.body], fork):
            joint = self.joints(k)
            pose = composed(pose, joint.pose)
            J = joint.shift.T @ J
            J[:, self._of(k)] = joint.H.T
        return Side(composed(pose, at.pose), at.pose.shift.T @ J)

    @cached_property
    def _between(self) -> list[tuple[Pose, Any]]:
        """X_ab and T of each loop."""
        pairs = list[tuple[Pose, Any]]()
        for a, b in self._sides:
            back = a.pose.rot.T
            pose = composed(trusted_pose(back, -(back @ a.pose.p)), b.pose)
            pairs.append((pose, self.numbers.shift(pose).T))
        return pairs

    @cached_property
    def _rows(self) -> Array:
        """G (rows, n): the rows of the loops for w."""
        parts = list[Array]()
        for loop, (a, b), (X_ab, T) in zip(
            self.group.loops, self._sides, self._between, strict=True
        ):
            still = np.zeros((1, 6))
            S = closure.blocked(loop.hinge, leading(X_ab), still).S
            parts.append((S[0] if np.ndim(S) == 3 else S) @ (b.J - T @ a.J))
        return np.concatenate(parts) @ self._followed

    @cached_property
    def _parted(self) -> Orthogonal:
        """G_d, by its factors."""
        G = self._rows
        try:
            factors = orthogonal(G[:, list(self.group.dependent)])
        except ZeroDivisionError:
            raise ClosureError(f"{undetermined(self.tree, self.g)}.") from None
        chosen = [*self.group.independent, *self.group.dependent]
        scale = sum(x * x for x in G[:, chosen].ravel())
        least = LOST[self.numbers.itemsize] * scale
        self.numbers.check_loops(self.g, [d - least for d in factors.pivots])
        return factors

    # ------------------------------------------------------------------------ accelerations

    @cached_property
    def x(self) -> Array:
        """𝔵 (n,): the accelerations of the hinges while u̇ = 0."""
        group = self.group
        x_c = self._followed_bias
        if not group.loops or not group.dependent:
            return x_c
        bound = list(group.dependent)
        gamma = np.concatenate([self._gamma(i, x_c) for i in range(len(group.loops))])
        return x_c - (self._followed[:, bound] @ self._parted.solve(gamma[:, None]))[:, 0]

    @cached_property
    def _followed_bias(self) -> Array:
        """v̇ by the couplings alone, the velocities they leave free being constant."""
        group = self.group
        x_c = np.zeros(len(group.velocities), dtype=self.v.dtype)
        if not group.couplings:
            return x_c
        v = np.zeros(self.mech.nv, dtype=self.v.dtype)
        v[list(group.velocities)] = self.v
        for coupling, d in zip(group.couplings, group.coupled, strict=True):
            follower = closure.follower(self.mech, coupling, self.q[None], v[None])
            total = -np.asarray(follower.rate)[0]
            for k, values in follower.terms[1:]:
                total = total - np.asarray(values)[0] @ x_c[self._of(k)]
            x_c[d] = total
        return x_c

    def _gamma(self, i: int, x_c: Array) -> Array:
        """γ of a loop: S (α_b - T α_a + V_ab × T V_a) - S Ḣ* W, with α that of v̇ = x_c."""
        loop, (X_ab, T) = self.group.loops[i], self._between[i]
        c = fork(self.mech, loop)
        V_a, A_a = self._moved(loop.node_a, c, x_c)
        V_b, A_b = self._moved(loop.node_b, c, x_c)
        carried = T @ V_a
        V_ab = V_b - carried
        turned = cross_velocity(V_ab.T, carried.T).T
        blocked = closure.blocked(loop.hinge, leading(X_ab), V_ab.T)
        S = blocked.S[0] if np.ndim(blocked.S) == 3 else blocked.S
        rate = blocked.rate[0] if np.ndim(blocked.rate) == 2 else blocked.rate
        return (S @ (A_b - T @ A_a + turned))[:, 0] + rate

    def _moved(self, node: str, fork: int, x_c: Array) -> tuple[Array, Array]:
        """Velocity and acceleration (6, 1) of a node, relative to where the sides branch off."""
        end = self.mech.node(node)
        V = A = np.zeros((6, 1), dtype=self.v.dtype)
        for k in path(self.mech, self.mech.body_index[end.body], fork):
            joint, at = self.joints(k), self._of(k)
            relative = joint.H.T @ self.v[at][:, None]
            V = joint.shift.T @ V + relative
            bias = joint.bias(self.v[at])[:, None] + joint.H.T @ x_c[at][:, None]
            A = joint.shift.T @ A + cross_velocity(V.T, relative.T).T + bias
        return end.pose.shift.T @ V, end.pose.shift.T @ A


def path(mech: Mechanism, body: int, above: int) -> list[int]:
    """The bodies from `above` (not counted) down to a body."""
    bodies = list[int]()
    while body != above:
        bodies.append(body)
        body = int(mech.parent[body])
    return bodies[::-1]


def fork(mech: Mechanism, loop: Loop) -> int:
    """The body from which the two sides of a loop branch off; -1 for the ground."""
    ends = [mech.body_index[mech.node(x).body] for x in (loop.node_a, loop.node_b)]
    return common(mech, ends)


def common(mech: Mechanism, bodies: Sequence[int]) -> int:
    """The outermost body that carries all of these, or is one of them; -1 for the ground."""
    above = list(bodies)
    while len(set(above)) > 1:
        last = max(above)  # parents have smaller numbers
        above = [int(mech.parent[k]) if k == last else k for k in above]
    return above[0]


def composed(first: Pose, second: Pose) -> Pose:
    """X_AB X_BC, of poses without leading axes."""
    if first is Pose.identity():
        return second
    return trusted_pose(first.rot @ second.rot, first.rot @ second.p + first.p)


def leading(pose: Pose) -> Pose:
    """With the leading axis that formulas on graph nodes need."""
    return trusted_pose(pose.rot[None], pose.p[None])
