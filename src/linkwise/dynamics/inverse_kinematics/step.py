"""One step towards the targets: a damped least-squares step, as forward dynamics.

Errors e at the nodes are to be undone by joint steps δ. What is wanted is the δ that makes

    (e − J δ)* W (e − J δ) + δ* N δ,      δ = (J* W J + N)⁻¹ J* W e,      J = B* φ* H*

least: W weighs the errors, N holds the joints back. Now J* W J + N = H φ (B W B*) φ* H* + N is a
mass matrix: that of a mechanism without any inertia but W at its nodes, and with armature N. So
the step is the acceleration 𝓜⁻¹ J* f of that mechanism, pulled at its nodes with the forces
f = W e, and has the recursion of forward dynamics: a Kalman filter from the tips to the base, in
which W is the covariance of the process noise and N that of the measurements, and a Bryson-Frazier
smoother back. A freedom that stands at a limit is held: D⁻¹ is zero in its direction.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from linkwise.algebra import J, f, mass, tau
from linkwise.model.derived import replaced
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.inertia import SpatialInertia

STEP = mass.inv @ (J.T @ f + tau)
"""The step, on the mechanism that has no inertia but the weights of its targets."""

PULL = J.T @ f
"""What the targets pull with at each joint: the slope of the error, with the sign changed."""


@once_per_mechanism
def weightless(mech: Mechanism) -> Mechanism:
    """The same tree with no inertia anywhere."""
    none = SpatialInertia.zero()
    bodies = tuple(dataclasses.replace(b, inertia=none, geometry=()) for b in mech.bodies)
    nodes = tuple(
        dataclasses.replace(n, inertia=None, kind="frame", geometry=()) for n in mech.nodes
    )
    return replaced(mech, bodies=bodies, nodes=nodes, loops=(), couplings=())


def weight_numbers(position: Any, orientation: Any) -> Any:
    """A weight as the ten numbers of an inertia about the node: W = [[Θ, 0], [0, m 1]].

    Args:
        position: m, the weight of errors in position.
        orientation: Θ (3, 3), the weight of errors in orientation, in the node's axes.
    """
    t = orientation
    moments = [t[0, 0], t[1, 1], t[2, 2], t[0, 1], t[0, 2], t[1, 2]]
    return np.array([position, 0.0, 0.0, 0.0, *moments])
