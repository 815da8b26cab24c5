"""Force closure: can the contacts of a grasp balance every force on the object?

The forces that contacts can apply form cones. The forces on the object that they can produce are
the sum K of these cones, moved to C by A*. The grasp has force closure if K is the whole space,
that is, if zero is in the interior of the hull of the effects w_k of single forces:

    rank w = 6   and   Σ c_k w_k = 0  for some  c_k > 0                 a squeeze inside all cones

Otherwise there is a velocity y of the object with y* w_k ≤ 0 for all k (Farkas): no contact resists
a motion along -y, and none can balance the force -y.

The quality of a closure is the radius of the largest ball about zero among the forces on the object
that normal forces of 1 N in total can produce (Ferrari and Canny 1992), with moments divided by a
length. A hull of some forces bounds it from below. The extreme forces along the hull's weakest
direction bound it from above; they are added until the bounds differ by 3 %.

Form closure is the same for contacts without friction; here of first order, ignoring the curvature
of the surfaces.
"""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from linkwise.arguments import count
from linkwise.errors import ModelError
from linkwise.grasp.cone_program import scipy
from linkwise.grasp.contact import Contact
from linkwise.grasp.internal_force import force_space, screw_in_words, typical_length
from linkwise.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from linkwise.grasp.grasp import Grasp

INSIDE = 1e-9
"""The smallest share c_k, of a mean of 1, and the smallest work [W] that count as positive."""

AT_ONCE = 10
"""Facets of a hull examined per round."""

ACCURATE = 0.03
"""Largest relative difference between the bounds of a margin."""

MOST_ROUNDS = 100
"""Rounds of adding extreme forces before an undecided grasp is reported as open."""

MOST_FORCES = 250
"""Forces in a hull before the current bounds are returned."""

FUNCTION = "force_closure"
TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, slots=True, eq=False)
class ForceClosure:
    """Whether a grasp can balance every force.

    Attributes:
        closed: Whether it can.
        rank: The number of independent forces it can apply to the object, ignoring limits.
        margin: Lower bound of the radius [N] of the ball of forces on the object that normal forces
            of 1 N in total can balance; 0 if the grasp is not closed.
        margin_most: Upper bound of the same radius.
        squeeze: Contact forces (ℓ, 6) that cancel, inside all cones, with a largest normal force of
            1 N; zero for contacts without limits, None if the grasp is not closed.
        witness: A force on the object (6,) at C that no contact forces balance; None if closed.
        escape: A velocity of the object (6,) at C that no contact resists; None if closed.
        length: Divides moments [m].
        friction: False if friction was ignored: the result is about form closure.
    """

    closed: bool
    rank: int
    margin: float
    margin_most: float
    squeeze: Array | None
    witness: Array | None
    escape: Array | None
    length: float
    friction: bool = True

    def __str__(self) -> str:
        kind = "force closure" if self.friction else "form closure (of first order)"
        if self.closed:
            return (
                f"{kind}, margin {self.margin:.4g} to {self.margin_most:.4g} N for normal "
                f"forces of 1 N in total (moments over {self.length:.4g} m)"
            )
        assert self.escape is not None
        return f"no {kind}, rank {self.rank}: not resisted is {screw_in_words(self.escape)}"


def force_closure(
    grasp: Grasp, point: ArrayLike, sides: int, length: float | None, friction: bool
) -> ForceClosure:
    """Add extreme forces until a squeeze or a separating velocity is proved."""
    length = typical_length(grasp, length)
    sides = count(sides, "sides", least=3, most=1000)
    if not friction:
        grasp = dataclasses.replace(
            grasp,
            contacts={
                name: x if x.two_sided else dataclasses.replace(x, kind="frictionless")
                for name, x in grasp.contacts.items()
            },
        )
    cones = _Cones(grasp, point, length, sides)
    rank = force_space(grasp, point, length).rank
    y = np.zeros(6)
    for _ in range(MOST_ROUNDS):
        share = _positive_balance(cones.w)
        if rank == 6 and share is not None:
            squeeze = np.tensordot(share, np.stack(cones.forces), axes=1)
            squeeze = squeeze / max(_largest_push(grasp, squeeze), TINY)
            return ForceClosure(True, rank, *cones.radius(), squeeze, None, None, length, friction)
        y = _separating(cones.w)
        if cones.add(y) <= INSIDE:  # no force of the curved cones works along y either
            break
    witness, escape = -y / cones.scale, -y * cones.scale
    return ForceClosure(False, rank, 0.0, 0.0, None, witness, escape, length, friction)


class _Cones:
    """The forces of the contacts examined so far, and their effects on the object.

    Attributes:
        forces: Contact forces, each (ℓ, 6), nonzero for one contact.
        w: Their effects on the object (k, 6), moments over the length.
        scale: (6,), divides moments by the length.
    """

    def __init__(self, grasp: Grasp, point: ArrayLike, length: float, sides: int) -> None:
        self.contacts = list(grasp.contacts.values())
        self.A = grasp.map(point).reshape(-1, 6, 6)
        self.scale = np.array([1.0 / length] * 3 + [1.0] * 3)
        self.forces, self.w = list[Array](), np.zeros((0, 6))
        for i, contact in enumerate(self.contacts):
            rays, lines = edges(contact, sides)
            self._put(i, np.concatenate([rays, lines, -lines]))

    def _put(self, i: int, rows: Array) -> Array:
        """Add forces of contact i (k, 6); returns their effects on the object."""
        for row in rows:
            self.forces.append(np.zeros((len(self.contacts), 6)))
            self.forces[-1][i] = row
        w = rows @ self.A[i] * self.scale
        self.w = np.concatenate([self.w, w])
        return w

    def add(self, y: Array) -> float:
        """Add the extreme force of each contact along y; returns the largest work of one."""
        most = 0.0
        for i, contact in enumerate(self.contacts):
            w = self._put(i, extreme(contact, self.A[i] @ (self.scale * y))[None])
            most = max(most, float(w[0] @ y))
        return most

    def radius(self) -> tuple[float, float]:
        """Bounds of the radius of the largest ball in the hull of all forces.

        The nearest facet of the current hull is a lower bound, the extreme force along its normal
        an upper one. Extreme forces are added until both agree or there are too many.
        """
        welded = [
            float(np.linalg.svd(c.passed @ self.A[i] * self.scale)[1].min())
            for i, c in enumerate(self.contacts)
            if c.two_sided and c.rows == 6
        ]
        low, high = max(welded, default=0.0), np.inf
        while np.isinf(high) or (high - low > ACCURATE * high and len(self.w) < MOST_FORCES):
            # QJ: joggled by some 1e-11, so that faces with more than six corners do no harm.
            spatial = scipy("spatial", FUNCTION)
            try:
                hull = spatial.ConvexHull(self.w, qhull_options="QJ Pp")
            except spatial.QhullError:  # too flat for a hull; its thickness bounds the radius
                y = np.linalg.svd(self.w - self.w.mean(axis=0))[2][-1]
                return low, max(low, min(high, self.add(y), self.add(-y)))
            facets = np.asarray(hull.equations, dtype=np.float64)
            nearest = facets[np.argsort(-facets[:, -1])[:AT_ONCE]]
            low = max(low, float(-nearest[0, -1]))
            high = min(high, *(max(self.add(y), low) for y in nearest[:, :-1]))
        return low, high


def _largest_push(grasp: Grasp, forces: Array) -> float:
    """The largest normal force [N]; 1 where no contact has limits."""
    limited = enumerate(grasp.contacts.values())
    push = [float(forces[i, 3:] @ np.array(c.normal)) for i, c in limited if not c.two_sided]
    return max(push, default=1.0)


def _positive_balance(w: Array) -> Array | None:
    """c (k,) with c* w = 0 and all c_k > 0, of mean 1; None if there is none.

    max t  with  Σ c_k w_k = 0, c_k ≥ t, Σ c_k = k.
    """
    size = len(w)
    equal = np.zeros((7, size + 1))
    equal[:6, :size], equal[6, :size] = w.T, 1.0
    result = scipy("optimize", FUNCTION).linprog(
        np.append(np.zeros(size), -1.0),
        A_ub=np.concatenate([-np.eye(size), np.ones((size, 1))], axis=1),
        b_ub=np.zeros(size),
        A_eq=equal,
        b_eq=np.append(np.zeros(6), size),
        bounds=[(0.0, None)] * size + [(None, 1.0)],
        method="highs",
    )
    if result.status != 0 or result.x[-1] <= INSIDE:
        return None
    return np.asarray(result.x[:-1], dtype=np.float64)


def _separating(w: Array) -> Array:
    """A unit vector y (6,) with w y ≤ 0: the one along which the edges push back the most.

    min Σ w_k* y  with  w y ≤ 0, |y_i| ≤ 1; where that is zero, y is orthogonal to all edges.
    """
    result = scipy("optimize", FUNCTION).linprog(
        w.sum(axis=0), A_ub=w, b_ub=np.zeros(len(w)), bounds=[(-1.0, 1.0)] * 6, method="highs"
    )
    y = np.zeros(6) if result.x is None else np.asarray(result.x, dtype=np.float64)
    if np.linalg.norm(y) < 1e-6 or np.abs(w @ y).max() < 1e-9:
        y = np.linalg.svd(w)[2][-1]
        y = y if float(y.sum()) >= 0.0 else -y
    return y / np.linalg.norm(y)


# ------------------------------------------------------------------------- the cone of one contact


def edges(contact: Contact, sides: int) -> tuple[Array, Array]:
    """Forces whose non-negative combinations a contact can apply: an inner approximation.

    Each curved limit is replaced by the hull of points on it. With n sides a circle of radius 1
    loses 1 - cos(π/n) of it: 7.6 % for 8 sides, 1.9 % for 16.

    Args:
        contact: The contact.
        sides: Of the polygon that approximates a circle, at least 3.

    Returns:
        Rays (k, 6) with a normal force of 1 N each, and lines (m, 6), forces in both directions
        that need no normal force; in the contact's frame.
    """
    if not isinstance(cast(object, sides), int | np.integer) or sides < 3:
        raise ModelError(f"a cone has {sides!r} sides; it must have a whole number, at least 3.")
    if contact.two_sided:
        return np.zeros((0, 6)), np.array(contact.passed)
    first, second, normal = contact.axes
    turn = 2.0 * np.pi * np.arange(sides) / sides
    ring = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    parts, lines = [_tangential(contact, ring, sides)], list[Array]()
    arm = contact.twist_arm
    if contact.kind not in ("point", "frictionless"):
        spin = np.append(normal, np.zeros(3))
        if np.isinf(arm):
            lines.append(spin)
        elif not contact.elliptic:
            parts.append(np.stack([arm * spin, -arm * spin]) if arm > 0.0 else np.zeros((1, 6)))
    tangents = [second] if contact.kind == "edge" else [first, second]
    if contact.kind in ("edge", "rigid"):
        bends = np.stack([np.append(x, np.zeros(3)) for x in tangents])
        if np.isinf(contact.tip_arm):
            lines += list(bends)
        elif contact.kind == "edge":
            parts.append(contact.tip_arm * np.concatenate([bends, -bends]))
        else:
            parts.append(contact.tip_arm * ring @ bends)
    push = np.append(np.zeros(3), normal)
    rays = [push + sum(choice, np.zeros(6)) for choice in itertools.product(*parts)]
    return np.unique(np.round(rays, 15), axis=0), np.reshape(lines, (-1, 6))


def _tangential(contact: Contact, ring: Array, sides: int) -> Array:
    """Tangential forces, with the moment of the elliptic law, for a normal force of 1 N."""
    if contact.kind == "frictionless" or contact.friction == 0.0:
        return np.zeros((1, 6))
    first, second, normal = contact.axes
    tangents = np.zeros((2, 6))
    tangents[:, 3:] = first, second
    flat = contact.friction * ring @ tangents
    if not contact.elliptic:
        return flat
    spin = contact.twist_arm * np.append(normal, np.zeros(3))
    rings = [np.stack([spin, -spin])]
    for height in np.linspace(-0.5, 0.5, sides // 2 + 1)[1:-1] * np.pi:
        rings.append(np.cos(height) * flat + np.sin(height) * spin)
    return np.concatenate(rings)


def extreme(contact: Contact, V: Array) -> Array:
    """The force (6,) of a contact that does the most work along V (6,), exactly.

    With a normal force of 1 N; for a contact without limits, of norm 1. Forces that need no normal
    force (the lines of `edges`) are left out.
    """
    if contact.two_sided:
        along = contact.passed.T @ (contact.passed @ V)
        return along / max(float(np.linalg.norm(along)), TINY)
    turn, move = contact.axes @ V[:3], contact.axes @ V[3:]
    moment, force = np.zeros(3), np.array([0.0, 0.0, 1.0])
    mu, arm = contact.friction, contact.twist_arm
    if contact.elliptic:
        # max f_t·v_t + m ω under |f_t/μ|² + (m/γ)² ≤ 1 is along (μ v_t, γ ω).
        direction = np.array([mu * move[0], mu * move[1], arm * turn[2]])
        direction = direction / max(float(np.linalg.norm(direction)), TINY)
        force[:2], moment[2] = mu * direction[:2], arm * direction[2]
    elif contact.kind != "frictionless":
        force[:2] = mu * move[:2] / max(float(np.hypot(move[0], move[1])), TINY)
        if 0.0 < arm < np.inf:
            moment[2] = arm * np.sign(turn[2])
    if np.isfinite(contact.tip_arm):
        bend = np.array([0.0 if contact.kind == "edge" else turn[0], turn[1]])
        moment[:2] = contact.tip_arm * bend / max(float(np.linalg.norm(bend)), TINY)
    return np.concatenate([moment @ contact.axes, force @ contact.axes])
