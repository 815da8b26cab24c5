"""Coordinates that follow others: gears and mimic joints.

A coupling q_d = offset + Σ c q_i + ... asks of a step that G δ = 0, with G = (1, −slopes). Of all
steps that obey, the best one is the free one less what breaks the rule,

    δ − A⁻¹ G* (G A⁻¹ G*)⁻¹ G δ,      A = J* W J + N,

in which A⁻¹ G* is made by the same recursion, once for each coupling.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import ModelError
from linkwise.model.body import Coupling
from linkwise.model.hinges.modified import is_plain
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array


@dataclass(frozen=True, slots=True, eq=False)
class Couplings:
    """The couplings of a mechanism, in an order in which all is known.

    Attributes:
        mech: The mechanism.
        rows: The couplings.
        freedom: The freedom of each coordinate that takes part, by its name.
        lower: Lower limits of the coordinates that follow (nq,), -inf for all others.
        upper: Upper limits of the coordinates that follow (nq,), inf for all others.
    """

    mech: Mechanism
    rows: tuple[Coupling, ...]
    freedom: dict[str, int]
    lower: Array
    upper: Array

    def followed(self, q: Array) -> Array:
        """q (s, nq) with the followers where they belong, rounding beyond a limit taken off."""
        if not self.rows:
            return q
        q = self.mech.couple(q)
        near = np.clip(q, self.lower, self.upper)
        return np.where(np.abs(near - q) < 1e-9, near, q)

    def outside(self, q: Array) -> NDArray[np.bool_]:
        """Samples (s,) some follower of which is beyond its limits."""
        if not self.rows:
            return np.zeros(len(q), dtype=bool)
        return np.any(self.beyond(q), axis=1)

    def beyond(self, q: Array) -> NDArray[np.bool_]:
        """Followers (..., nq) that are beyond their limits."""
        return (q < self.lower) | (q > self.upper)

    def held_with(self, fixed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Freedoms (nv,) that stand still if some do: what a held follower follows, and back."""
        found = fixed.copy()
        for coupling in reversed(self.rows):
            if found[self.freedom[coupling.dependent]]:
                found[[self.freedom[name] for name, _ in coupling.terms]] = True
        for coupling in self.rows:
            if all(found[self.freedom[name]] for name, _ in coupling.terms):
                found[self.freedom[coupling.dependent]] = True
        return found


def couplings(mech: Mechanism, moved: Iterable[int], *, limits: bool) -> Couplings:
    """The couplings that take part.

    Args:
        moved: Bodies whose hinges move the targets; couplings with no part in them are left out.
        limits: Whether limits count.
    """
    coordinates = {i for k in moved for i in range(*mech.q_start[k : k + 2].tolist())}
    rows = list[Coupling]()
    waiting = list(mech.couplings_in_order)
    while taken := [c for c in waiting if coordinates & _coordinates(mech, c)]:
        rows += taken
        waiting = [c for c in waiting if c not in taken]
        coordinates = coordinates.union(*(_coordinates(mech, c) for c in taken))
    freedom = dict[str, int]()
    lower, upper = np.full(mech.nq, -np.inf), np.full(mech.nq, np.inf)
    for coupling in rows:
        for name in (coupling.dependent, *(name for name, _ in coupling.terms)):
            i = mech.coordinate(name)
            k = int(np.searchsorted(mech.q_start, i, side="right")) - 1
            if not is_plain(mech.bodies[k].hinge):
                raise ModelError(
                    f"coupling {coupling.name!r} takes part of a {mech.bodies[k].hinge.kind} hinge "
                    f"({name!r}), whose coordinates do not change as its velocities; inverse "
                    f"kinematics cannot follow it. Take it away: mech.without({coupling.name!r})."
                )
            freedom[name] = int(mech.v_start[k]) + i - int(mech.q_start[k])
        i = mech.coordinate(coupling.dependent)
        if limits:
            lower[i], upper[i] = mech.lower[i], mech.upper[i]
    order = {c.name: i for i, c in enumerate(mech.couplings_in_order)}
    return Couplings(mech, tuple(sorted(rows, key=lambda c: order[c.name])), freedom, lower, upper)


def _coordinates(mech: Mechanism, coupling: Coupling) -> set[int]:
    names = (coupling.dependent, *(name for name, _ in coupling.terms))
    return {mech.coordinate(name) for name in names}


def tightened(couplings: Couplings, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Limits (nq,) in which those of a follower are limits of the one coordinate it follows.

    Only where it follows one coordinate linearly; else a step that takes it too far is refused.
    """
    mech, lower, upper = couplings.mech, lower.copy(), upper.copy()
    for coupling in reversed(couplings.rows):
        d = mech.coordinate(coupling.dependent)
        if len(coupling.terms) == 1 and len(coupling.terms[0][1]) == 1:
            name, (c,) = coupling.terms[0]
            i = mech.coordinate(name)
            if c != 0.0:
                ends = sorted(((lower[d] - coupling.offset) / c, (upper[d] - coupling.offset) / c))
                lower[i], upper[i] = max(lower[i], ends[0]), min(upper[i], ends[1])
        lower[d], upper[d] = -np.inf, np.inf
    return lower, upper
