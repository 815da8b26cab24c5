"""The coordinates in which a mechanism has a discrete Lagrangian, hinge by hinge.

A step holds rates u: q' = q ⊕ h u. What that means is a group for each hinge: numbers add,
quaternions are multiplied from the right by exp(h ω). Free hinges are the product of both, turns in
body axes and positions in the axes of O⁺; so are planar hinges, whose q̇ adds. There the velocities
are seen from axes that turn with the body:

    v = T(q) u,   T = diag(1, R*) for Free, the same with a turn in the plane for Planar, else 1.

T is orthogonal, so forces and momenta are carried by it as velocities are. All of it runs on arrays
of numbers and of graph nodes (dtype object) alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import ModelError
from linkwise.model.hinges import Free, Hinge, Planar, PointOnPlane, Spherical
from linkwise.model.hinges.modified import Reversed, is_plain
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial import quaternion
from linkwise.spatial.choice import cosine, sine
from linkwise.spatial.vector import cross


@dataclass(frozen=True, slots=True)
class Turn:
    """A quaternion.

    Attributes:
        k: The body whose hinge it is.
        q: Where in q its four numbers begin.
        v: Where in v its three angular velocities begin.
    """

    k: int
    q: int
    v: int


@dataclass(frozen=True, slots=True)
class Carried:
    """Linear velocities in axes that turn with the body.

    Attributes:
        q: Where in q the quaternion begins, or the angle stands.
        v: Where in v the linear velocities begin, three or two.
        turn: Where in v the angular velocities begin, three or one.
        planar: Whether the turn is about one axis.
    """

    q: int
    v: int
    turn: int
    planar: bool


@dataclass(frozen=True)
class Coordinates:
    """What is plain, what turns and what is carried along in q and v of a mechanism.

    Attributes:
        mech: The mechanism.
        plain_q: Entries of q that add (n,).
        plain_v: The rates that are added to them (n,).
        turns: The quaternions.
        carried: Velocities that are seen from turning axes.
    """

    mech: Mechanism
    plain_q: NDArray[np.intp]
    plain_v: NDArray[np.intp]
    turns: tuple[Turn, ...]
    carried: tuple[Carried, ...]

    def retract(self, q: Any, u: Any, h: Any) -> Any:
        """q ⊕ h u (nq,)."""
        out = q.copy()
        out[self.plain_q] = q[self.plain_q] + h * u[self.plain_v]
        for turn in self.turns:
            at, step = slice(turn.q, turn.q + 4), h * u[turn.v : turn.v + 3]
            out[at] = quaternion.integrate(q[None, at], step[None])[0]
        return out

    def rates(self, q: Any, x: Any) -> Any:
        """T* x (nv,): velocities, momenta or forces, in rates."""
        return self._carry(q, x, 1.0) if self.carried else x

    def velocities(self, q: Any, x: Any) -> Any:
        """T x (nv,): the way back."""
        return self._carry(q, x, -1.0) if self.carried else x

    def _carry(self, q: Any, x: Any, sense: float) -> Any:
        out = x.copy()
        for c in self.carried:
            if c.planar:
                co, si = cosine(q[c.q]), sense * sine(q[c.q])
                a, b = x[c.v : c.v + 2]
                out[c.v : c.v + 2] = co * a - si * b, si * a + co * b
            else:
                rot = quaternion.to_matrix(q[None, c.q : c.q + 4])[0]
                out[c.v : c.v + 3] = (rot if sense > 0.0 else rot.T) @ x[c.v : c.v + 3]
        return out

    def frame_force(self, v: Any, mu: Any) -> Any:
        """What L_q has besides C_v* v − g, since v are no derivatives of coordinates.

        For directions η of the rates, ζ = T η, the Levi-Civita property of C_v is
        C_ζ v − C_v ζ = 𝓜 [ζ, v] with the bracket of the frames of v. With the terms that T adds:

            turning       ω × μ_ω
            carried       ω × μ_l

        These are the rates of momenta in axes that turn. Armature has none of them: in the equation
        of motion it is N v̇ and no more. So its part of μ is taken here, too, and cancels what (1)
        and (2) of `step` would bring. That force does no work, but it is no derivative of L: with
        armature at free and planar hinges, or an uneven one at a ball joint, the step is of order
        two, and no longer symplectic.
        """
        out = np.zeros(len(v), dtype=v.dtype)
        for t in self.turns:
            at = slice(t.v, t.v + 3)
            out[at] = cross(v[at], mu[at])
        for c in self.carried:
            if c.planar:
                rate = v[c.turn]
                out[c.v : c.v + 2] = -rate * mu[c.v + 1], rate * mu[c.v]
            else:
                at, turn = slice(c.v, c.v + 3), slice(c.turn, c.turn + 3)
                out[at] = cross(v[turn], mu[at])
        return out


@once_per_mechanism
def coordinates(mech: Mechanism) -> Coordinates:
    """Those of a mechanism.

    Raises:
        ModelError: It has loops or couplings, or a hinge that has no discrete Lagrangian; tells
            which, and what to use instead.
    """
    if mech.loops or mech.couplings:
        what = "loops" if mech.loops else "couplings"
        raise ModelError(
            f"integrator='variational' cannot move {mech.name!r}, which has {what}: it is for "
            "trees. Use 'rk4', which keeps them closed."
        )
    plain_q, plain_v = list[int](), list[int]()
    turns, carried = list[Turn](), list[Carried]()
    for k, body in enumerate(mech.bodies):
        hinge: Hinge = body.hinge.hinge if isinstance(body.hinge, Reversed) else body.hinge
        q, v = int(mech.q_start[k]), int(mech.v_start[k])
        kind = type(hinge)
        if kind is Free or kind is Spherical or kind is PointOnPlane:
            turns.append(Turn(k, q, v))
            plain_q += range(q + 4, q + hinge.nq)
            plain_v += range(v + 3, v + hinge.nv)
            if kind is Free:
                carried.append(Carried(q, v + 3, v, planar=False))
        elif kind is Planar or is_plain(hinge):
            plain_q += range(q, q + hinge.nq)
            plain_v += range(v, v + hinge.nv)
            if kind is Planar:
                carried.append(Carried(q + 2, v, v + 2, planar=True))
        else:
            raise ModelError(
                f"integrator='variational' cannot move {mech.name!r}, whose body {body.name!r} "
                f"hangs on a {body.hinge.kind} hinge: what its velocities reach depends on the way "
                "(nonholonomic), or it moves by a special rule. There are pin, prismatic and "
                "all hinges whose v is q̇, spherical, free, planar and point-on-plane ones. Use "
                "'rk4' or 'adaptive'."
            )
    to, of = np.array(plain_q, dtype=np.intp), np.array(plain_v, dtype=np.intp)
    return Coordinates(mech, to, of, tuple(turns), tuple(carried))
