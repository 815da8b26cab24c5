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
from typing import TYPE_CHECKING

import numpy as np

from linkwise.algebra import X_B, J, f, mass, tau
from linkwise.errors import SingularHingeError
from linkwise.model.derived import replaced
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.pipeline import compile
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import SpatialInertia

if TYPE_CHECKING:
    from linkwise.codegen.cpu.kernel import Kernel

STEP = mass.inv @ (J.T @ f)
"""The step, on the mechanism that has no inertia but the weights of its targets."""

ANSWER = mass.inv @ tau
"""The same for forces at the joints: how far they would go; for coupled coordinates."""

PULL = J.T @ f
"""What the targets pull with at each joint: the slope of the error, with the sign changed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Kernels:
    """What runs in each iteration, for one set of nodes; arrays are (s, n), one row a sample.

    Attributes:
        poses: X_B.
        pull: `PULL`.
        step: `STEP`.
        answer: `ANSWER`; None where nothing is coupled.
    """

    poses: Kernel
    pull: Kernel
    step: Kernel
    answer: Kernel | None

    def rows(self, kernel: Kernel, *arrays: Array) -> Array:
        """A kernel on samples; one that is in trouble gives NaN, and no step is made of it."""
        if len(arrays[0]) != 1:
            return kernel(*arrays, status=np.empty(len(arrays[0]), dtype=np.int32))
        try:  # the call for one state is the quick one
            return kernel(*[a[0] if a.ndim == 2 else a for a in arrays])[None]
        except SingularHingeError:
            return np.full((1, *kernel.signature.shape), np.nan)


@once_per_mechanism
def kernels(mech: Mechanism, nodes: tuple[str, ...], coupled: bool) -> Kernels:
    """The kernels for targets at some nodes, with coupled hinges or without."""
    bare = weightless(mech)
    inputs = [*(f"payload:{node}" for node in nodes), "armature", "locked"]
    return Kernels(
        compile(X_B, bare, nodes=nodes),
        compile(PULL, bare, nodes=nodes),
        compile(STEP, bare, nodes=nodes, parameters=inputs),
        compile(ANSWER, bare, nodes=nodes, parameters=inputs) if coupled else None,
    )


def weightless(mech: Mechanism) -> Mechanism:
    """The same tree with no inertia anywhere."""
    none = SpatialInertia.zero()
    bodies = tuple(dataclasses.replace(b, inertia=none, geometry=()) for b in mech.bodies)
    nodes = tuple(
        dataclasses.replace(n, inertia=None, kind="frame", geometry=()) for n in mech.nodes
    )
    return replaced(mech, bodies=bodies, nodes=nodes, loops=(), couplings=())


def weight_numbers(position: float, orientation: Array) -> Array:
    """A weight as the ten numbers of an inertia about the node: W = [[Θ, 0], [0, m 1]].

    Args:
        position: m, the weight of errors in position.
        orientation: Θ (3, 3), the weight of errors in orientation, in the node's axes.
    """
    t = orientation
    moments = [t[0, 0], t[1, 1], t[2, 2], t[0, 1], t[0, 2], t[1, 2]]
    return np.array([position, 0.0, 0.0, 0.0, *moments])
