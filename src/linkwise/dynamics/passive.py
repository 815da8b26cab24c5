"""Forces that nobody commands: dampers, springs, and weight that is carried from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise.brief import brief
from linkwise.codegen.scalar.parameters import size
from linkwise.dynamics.carried_weight import carried_energy, carried_force, carrying
from linkwise.model.hinges import Spherical
from linkwise.model.hinges.modified import is_plain
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array

if TYPE_CHECKING:
    from linkwise.codegen.scalar.trace import Sketch

EMPTY: Mapping[str, Any] = MappingProxyType({})

BALL = Spherical()
"""The hinge whose spring turns it back the short way."""


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Passive:
    """Forces −d v − k s of drives with the stretch s of their springs, and carried weight.

    s = q − rest where velocities are rates of coordinates. Of a spherical hinge it is the rotation
    vector from neutral to q, at most half a turn; ½ k s² is then the energy of its spring if the
    three k are the same.

    Attributes:
        damping: d (nv,).
        stiffness: k (nv,); zero where springs have no such formula.
        rest: Where springs are at rest (nv,).
        at: The coordinate that goes with each velocity (nv,); -1 where springs have no formula.
        balls: Quaternions in q and velocities of spherical hinges with springs.
        lifted: The mechanism if some of its weight is carried (`mech.gravity_compensation`).
    """

    damping: Array
    stiffness: Array
    rest: Array
    at: NDArray[np.intp]
    balls: tuple[tuple[slice, slice], ...] = ()
    lifted: Mechanism | None = None

    @property
    def any(self) -> bool:
        """Whether there are such forces."""
        return self.yields or self.lifted is not None

    @property
    def yields(self) -> bool:
        """Whether there are dampers or springs."""
        return bool(self.damping.any() or self.stiffness.any())

    def stretch(self, q: Array) -> Array:
        """s (..., nv) of q (..., nq)."""
        out = np.where(self.at < 0, 0.0, q[..., self.at] - self.rest)
        for i, j in self.balls:
            out[..., j] = BALL.difference(BALL.neutral(), q[..., i])
        return out

    def force(self, q: Array, v: Array) -> Array:
        """All of them, of q (..., nq) and v (..., nv)."""
        out = -self.damping * v - self.stiffness * self.stretch(q)
        return out if self.lifted is None else out + carried_force(self.lifted, q)

    def energy(self, q: Array) -> Array:
        """½ Σ k s² and the energy of what carries weight [J], of q (..., nq)."""
        out = 0.5 * self.stretch(q) ** 2 @ self.stiffness
        return out if self.lifted is None else out + carried_energy(self.lifted, q)

    def slopes(self, given: Mapping[str, Any] = EMPTY) -> tuple[Any, Any]:
        """d and k (nv,) in formulas on `Scalar`, those given or these."""
        sprung = self.at >= 0
        for _, j in self.balls:
            sprung[j] = True
        k = given.get("stiffness", self.stiffness)
        return given.get("damping", self.damping), np.where(sprung, k, 0.0)

    def drawn(self, tau: Any, q: Any, v: Any, given: Mapping[str, Any] = EMPTY) -> Any:
        """`tau` with the forces of dampers and springs, likewise."""
        out, ball = tau.copy(), dict[int, Any]()
        for i, j in self.balls:
            turn = BALL.difference(BALL.neutral()[None], q[None, i])[0]
            ball |= dict(zip(range(j.start, j.stop), turn, strict=True))
        for i, (d, k) in enumerate(zip(*self.slopes(given), strict=True)):
            if not _is_none(d):
                out[i] = out[i] - d * v[i]
            if not _is_none(k):
                s = ball[i] if i in ball else q[int(self.at[i])] - float(self.rest[i])
                out[i] = out[i] - k * s
        return out

    def added(self, s: Sketch, tau: Any, q: Any, v: Any, given: Mapping[str, Any] = EMPTY) -> Any:
        """`tau` with all of these forces, in a graph.

        Args:
            s: The graph.
            tau: Joint forces (nv,).
            q: Joint positions (nq,).
            v: Joint velocities (nv,).
            given: Numbers that replace those of the mechanism: "damping", "stiffness", "gravity"
                and "inertia" count.
        """
        out = self.drawn(tau, q, v, given)
        if self.lifted is None:
            return out
        numbers = {"q": q, "gravity": given.get("gravity", self.lifted.gravity)}
        if "inertia" in given:
            numbers["inertia"] = given["inertia"]
        return out + np.array(s.replay(carrying(self.lifted, "inertia" in given), numbers))


VARIED = ("gravity", "inertia", "damping", "stiffness")
"""Numbers on which passive forces depend."""


def carried_numbers(s: Sketch, mech: Mechanism, names: Sequence[str]) -> dict[str, Any]:
    """Those among inputs of a kernel, as `Passive.added` takes them."""
    sizes = {"damping": mech.nv, "stiffness": mech.nv}
    return {x: s.read(x, sizes.get(x) or size(mech, x)) for x in VARIED if x in names}


def _is_none(x: Any) -> bool:
    """Whether a number is zero in every motion."""
    return isinstance(x, float) and x == 0.0


@once_per_mechanism
def passive(mech: Mechanism) -> Passive:
    """The dampers and springs of a mechanism, and what carries its weight.

    Springs of other hinges whose velocities are no rates of coordinates, and springs of spherical
    hinges that differ between axes, have no such formula and are left out; reports name them.
    """
    stiffness, rest = mech.stiffness.copy(), np.zeros(mech.nv)
    at, balls = np.full(mech.nv, -1, dtype=np.intp), list[tuple[slice, slice]]()
    for k, body in enumerate(mech.bodies):
        in_v = slice(int(mech.v_start[k]), int(mech.v_start[k + 1]))
        start = int(mech.q_start[k])
        if is_plain(body.hinge):
            at[in_v] = np.arange(start, start + body.hinge.nv)
            rest[in_v] = body.drive.array("rest", body.hinge)
        elif body.drive.has_spring(body.hinge):
            balls.append((slice(start, start + 4), in_v))
        else:
            stiffness[in_v] = 0.0
    lifted = mech if mech.gravity_compensation else None
    return Passive(mech.damping, stiffness, rest, at, tuple(balls), lifted)
