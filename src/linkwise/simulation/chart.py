"""Local coordinates of configurations: x, with q = chart(x) near a configuration it is about."""

from __future__ import annotations

import numpy as np

from linkwise.model.hinges import Free, Hinge, Spherical
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.rates import moved, turning
from linkwise.spatial.array import Array

FAR = 1.5
"""Rotation vectors longer than this [rad] ask for a new chart; at 2π it ends."""


class Chart:
    """x = (θ, raw): q = q₀ ⊕ θ, and the coordinates themselves of hinges with a rule of their own.

    For hinges with plain coordinates θ̇ = u, for free and ball hinges θ̇ = dexp⁻¹ u
    (`rates.turning`). Planar hinges, rolling balls and others have the entries of q in `raw`, with
    the rate that the hinge says, and quaternions among them are made of unit length.

    Attributes:
        about: The configuration q₀ (nq,) the chart is about.
        size: How many coordinates x has.
    """

    def __init__(self, mech: Mechanism, about: Array) -> None:
        self.mech, self.about = mech, about
        self._others = list[tuple[Hinge, slice, slice, slice]]()
        self._balls = list[int]()
        size = mech.nv
        for k, body in enumerate(mech.bodies):
            in_q = slice(int(mech.q_start[k]), int(mech.q_start[k + 1]))
            in_v = slice(int(mech.v_start[k]), int(mech.v_start[k + 1]))
            if type(body.hinge) in (Free, Spherical):
                self._balls.append(in_v.start)
            elif type(body.hinge).integrate is not Hinge.integrate:
                in_x = slice(size, size + body.hinge.nq)
                size = in_x.stop
                self._others.append((body.hinge, in_q, in_v, in_x))
        self.size = size

    def begin(self) -> Array:
        """x of the configuration that the chart is about."""
        x = np.zeros(self.size)
        for _, in_q, _, in_x in self._others:
            x[in_x] = self.about[in_q]
        return x

    def q(self, x: Array) -> Array:
        """q (nq,) of x (size,)."""
        q = moved(self.mech, self.about, x[: self.mech.nv], 1.0)
        for hinge, in_q, _, in_x in self._others:
            q[in_q] = hinge.normalise(x[in_x])
        return q

    def rate(self, x: Array, q: Array, u: Array) -> Array:
        """ẋ (size,) at x, which is q, with rates u (nv,)."""
        out = np.empty(self.size)
        nv = self.mech.nv
        out[:nv] = turning(self.mech, x[:nv], u)
        for hinge, in_q, in_v, in_x in self._others:
            out[in_v] = 0.0
            out[in_x] = hinge.qdot(q[in_q], u[in_v])
        return out

    def is_far(self, x: Array) -> bool:
        """Whether a rotation vector is long."""
        return any(x[j : j + 3] @ x[j : j + 3] > FAR * FAR for j in self._balls)
