"""Can the contacts of a grasp balance every force on the object?

The forces that the contacts can hold are cones; the forces on the object that they can make are the
sum K of these cones, carried to C by A*. Force closure: K is all of space. It is so when zero is in
the interior of the hull of what single forces w_k do, that is when

    rank w = 6   and   Σ c_k w_k = 0  for some  c_k > 0                 a squeeze inside all cones

Otherwise a velocity y of the object exists with y* w_k ≤ 0 for all k (Farkas): along -y no contact
resists, and the force -y on the object can be balanced by none of them.

How good a closure is, is the radius of the largest ball about zero in the forces on the object
that normal forces of 1 N altogether can make (Ferrari and Canny 1992), moments being divided by a
length. It is bounded from both sides: below by the hull of some forces, above by the extreme forces
along the weakest direction of that hull, which are added until the bounds are 3 % apart.

Form closure is the same for contacts without friction; here of first order, without the curvature
of the surfaces.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from linkwise.arguments import count, number
from linkwise.grasp.cone import edges, extreme
from linkwise.grasp.grasp import Grasp, check_grasp, grasp_map
from linkwise.grasp.internal_force import force_space, screw_in_words, typical_length
from linkwise.grasp.solver import scipy
from linkwise.spatial.array import Array, ArrayLike

INSIDE = 1e-9
"""The smallest share c_k, of a mean of 1, and the smallest work [W] that count as positive."""

AT_ONCE = 10
"""Facets of a hull whose directions are looked at in one round."""

ACCURATE = 0.03
"""How far apart, as a part of them, the bounds of a margin may be."""

MOST_ROUNDS = 100
"""Of adding extreme forces, before a grasp between open and closed is called open."""

MOST_FORCES = 250
"""In a hull, before the bounds so far are taken."""

ASKED = "force_closure"


@dataclass(frozen=True, slots=True, eq=False)
class ForceClosure:
    """Whether a grasp can balance every force.

    Attributes:
        closed: Whether it can.
        rank: Independent forces it can put on the object, limits aside.
        margin: Radius [N] of the ball of forces on the object that normal forces of 1 N altogether
            can balance, at least; 0 where the grasp is not closed.
        margin_most: The same, at most.
        squeeze: Contact forces (ℓ, 6) that cancel, inside all cones, with a largest normal force of
            1 N; zero for contacts without limits, None where there are none.
        witness: A force on the object (6,) at C that no contact forces balance; None if closed.
        escape: A velocity of the object (6,) at C that no contact resists; None if closed.
        length: By which moments are divided [m].
        friction: False where friction was left out, so that this is about form closure.
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
                f"forces of 1 N altogether (moments over {self.length:.4g} m)"
            )
        assert self.escape is not None
        return f"no {kind}, rank {self.rank}: not held is {screw_in_words(self.escape)}"


def force_closure(
    grasp: Grasp,
    point: ArrayLike = (0.0, 0.0, 0.0),
    *,
    sides: int = 6,
    length: float | None = None,
    friction: bool = True,
) -> ForceClosure:
    """Whether contact forces inside their limits can balance every force on the object.

    Found by linear programming over forces inside the curved cones, to which extreme ones are added
    until one of the answers is proved; it comes with a squeeze or an escape that anyone can check.

    Args:
        grasp: The grasp.
        point: C in the object's frame (3,) [m].
        sides: Of the polygons that stand for circles at first, at least 3.
        length: By which moments are divided [m]; by default `typical_length`.
        friction: False tests form closure: each contact as if it had no friction.

    Raises:
        ModelError: What is given is no grasp; a length that is not positive, too few sides.
        MissingExtraError: SciPy is not installed.
    """
    check_grasp(grasp, ASKED)
    if length is not None:
        length = number(length, "length", least=1e-9, most=1e9)
    sides = count(sides, "sides", least=3, most=1000)
    if not friction:
        grasp = _slick(grasp)
    length = typical_length(grasp) if length is None else float(length)
    cones = _Cones(grasp, point, length, sides)
    rank = force_space(grasp, point, length=length).rank
    y = np.zeros(6)
    for _ in range(MOST_ROUNDS):
        share = _positive_balance(cones.w)
        if rank == 6 and share is not None:
            squeeze = np.tensordot(share, np.stack(cones.forces), axes=1)
            squeeze = squeeze / max(_largest_push(grasp, squeeze), np.finfo(np.float64).tiny)
            return ForceClosure(True, rank, *cones.radius(), squeeze, None, None, length, friction)
        y = _separating(cones.w)
        if cones.add(y) <= INSIDE:  # no force of the curved cones works along y either
            break
    witness, escape = -y / cones.scale, -y * cones.scale
    return ForceClosure(False, rank, 0.0, 0.0, None, witness, escape, length, friction)


class _Cones:
    """Forces of the contacts, as many as were looked at, and what they do to the object.

    Attributes:
        forces: Contact forces, each (ℓ, 6) and all but one contact's zero.
        w: What they do to the object (k, 6), moments over the length.
        scale: (6,), which divides moments by the length.
    """

    def __init__(self, grasp: Grasp, point: ArrayLike, length: float, sides: int) -> None:
        self.contacts = list(grasp.contacts.values())
        self.A = grasp_map(grasp, point).reshape(-1, 6, 6)
        self.scale = np.array([1.0 / length] * 3 + [1.0] * 3)
        self.forces, self.w = list[Array](), np.zeros((0, 6))
        for i, contact in enumerate(self.contacts):
            rays, lines = edges(contact, sides)
            self._put(i, np.concatenate([rays, lines, -lines]))

    def _put(self, i: int, rows: Array) -> Array:
        """Forces of contact i (k, 6); returns what they do to the object."""
        for row in rows:
            self.forces.append(np.zeros((len(self.contacts), 6)))
            self.forces[-1][i] = row
        w = rows @ self.A[i] * self.scale
        self.w = np.concatenate([self.w, w])
        return w

    def add(self, y: Array) -> float:
        """The extreme force of each contact along y; the most work that one of them does."""
        most = 0.0
        for i, contact in enumerate(self.contacts):
            w = self._put(i, extreme(contact, self.A[i] @ (self.scale * y))[None])
            most = max(most, float(w[0] @ y))
        return most

    def radius(self) -> tuple[float, float]:
        """Bounds of the radius of the largest ball in the hull of all forces.

        The nearest facet of the hull of those looked at is a lower bound, the extreme force along
        its normal an upper one. Those forces are added until both agree, or there are many.
        """
        low, high = self._welded(), np.inf
        while np.isinf(high) or (high - low > ACCURATE * high and len(self.w) < MOST_FORCES):
            # QJ: moved by some 1e-11, so that faces with more than six corners do no harm.
            spatial = scipy("spatial", ASKED)
            try:
                hull = spatial.ConvexHull(self.w, qhull_options="QJ Pp")
            except spatial.QhullError:  # too flat for a hull; how thick it is at most is known
                y = np.linalg.svd(self.w - self.w.mean(axis=0))[2][-1]
                return low, max(low, min(high, self.add(y), self.add(-y)))
            facets = np.asarray(hull.equations, dtype=np.float64)
            nearest = facets[np.argsort(-facets[:, -1])[:AT_ONCE]]
            low = max(low, float(-nearest[0, -1]))
            high = min(high, *(max(self.add(y), low) for y in nearest[:, :-1]))
        return low, high

    def _welded(self) -> float:
        """Radius of what one contact without limits can do alone, forces of norm 1."""
        found = [0.0]
        for i, contact in enumerate(self.contacts):
            if contact.two_sided and contact.rows == 6:
                values = np.linalg.svd(contact.passed @ self.A[i] * self.scale)[1]
                found.append(float(values.min()))
        return max(found)


def _largest_push(grasp: Grasp, forces: Array) -> float:
    """The largest normal force [N]; 1 where no contact has limits."""
    limited = enumerate(grasp.contacts.values())
    push = [float(forces[i, 3:] @ np.array(c.normal)) for i, c in limited if not c.two_sided]
    return max(push, default=1.0)


def _slick(grasp: Grasp) -> Grasp:
    """The same contacts without friction; those that cannot be broken stay."""
    contacts = {
        name: contact if contact.two_sided else dataclasses.replace(contact, kind="frictionless")
        for name, contact in grasp.contacts.items()
    }
    return Grasp(contacts)


def _positive_balance(w: Array) -> Array | None:
    """c (k,) with c* w = 0 and all c_k > 0, of mean 1; None if there is none.

    max t  with  Σ c_k w_k = 0, c_k ≥ t, Σ c_k = k.
    """
    count = len(w)
    linprog = scipy("optimize", ASKED).linprog
    equal = np.zeros((7, count + 1))
    equal[:6, :count], equal[6, :count] = w.T, 1.0
    above = np.concatenate([-np.eye(count), np.ones((count, 1))], axis=1)
    goal = np.append(np.zeros(count), -1.0)
    found = linprog(
        goal,
        A_ub=above,
        b_ub=np.zeros(count),
        A_eq=equal,
        b_eq=np.append(np.zeros(6), count),
        bounds=[(0.0, None)] * count + [(None, 1.0)],
        method="highs",
    )
    if found.status != 0 or found.x[-1] <= INSIDE:
        return None
    return np.asarray(found.x[:-1], dtype=np.float64)


def _separating(w: Array) -> Array:
    """A unit vector y (6,) with w y ≤ 0: the one along which the edges push back the most.

    min Σ w_k* y  with  w y ≤ 0, |y_i| ≤ 1; where that is zero, y is orthogonal to all edges.
    """
    linprog = scipy("optimize", ASKED).linprog
    found = linprog(
        w.sum(axis=0), A_ub=w, b_ub=np.zeros(len(w)), bounds=[(-1.0, 1.0)] * 6, method="highs"
    )
    y = np.zeros(6) if found.x is None else np.asarray(found.x, dtype=np.float64)
    if np.linalg.norm(y) < 1e-6 or np.abs(w @ y).max() < 1e-9:
        y = np.linalg.svd(w)[2][-1]
        y = y if float(y.sum()) >= 0.0 else -y
    return y / np.linalg.norm(y)
