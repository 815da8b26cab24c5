"""Bodies in another order: the quantities of a mechanism with other body numbers.

Numbering changes only places: with the permutation P of bodies, every operator A becomes P A P*.
So E_φ stays nilpotent, φ = (I − E_φ)⁻¹ stays its resolvent, and scatter and gather are unchanged
(002, "Reversed body indices", "What about randomized indices?"). Only the pattern differs: with the
tips first, as in the source documents, φ is lower triangular; with the base first, as here, upper
triangular; in any other order it has no such pattern.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.kernels import check_mechanism
from linkwise.errors import ModelError, ShapeError, unknown_name
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Renumbering:
    """A permutation of the bodies of a mechanism, and of everything stacked over them.

    Attributes:
        mech: The mechanism, in its order.
        order: Names of the bodies in the new order.
        bodies: The body of the mechanism at each new place (n,).
        is_back: Whether it leads from the new order back to that of the mechanism.
    """

    mech: Mechanism
    order: tuple[str, ...]
    bodies: Index
    is_back: bool = False

    @cached_property
    def joints(self) -> Index:
        """The joint velocity of the mechanism at each new place (nv,)."""
        return self._stacked(self.mech.v_start)

    @cached_property
    def coordinates(self) -> Index:
        """The joint position of the mechanism at each new place (nq,)."""
        return self._stacked(self.mech.q_start)

    def back(self) -> Renumbering:
        """The permutation back to the order of the mechanism."""
        return Renumbering(self.mech, self.order, self.bodies, not self.is_back)

    def q(self, q: ArrayLike) -> Array:
        """Joint positions (..., nq) in the new order."""
        return self._taken(q, self.coordinates, "q", 1)

    def joint_vector(self, x: ArrayLike) -> Array:
        """Velocities, forces or accelerations of joints (..., nv) in the new order: P x."""
        return self._taken(x, self.joints, "the joint vector", 1)

    def joint_matrix(self, A: ArrayLike) -> Array:
        """A matrix over the joints (..., nv, nv) in the new order: P A P*."""
        return self._taken(A, self.joints, "the joint matrix", 2)

    def body_vector(self, x: ArrayLike) -> Array:
        """Six numbers for each body (..., n, 6) in the new order."""
        array = floats(x, "the body vector")
        if array.ndim < 2 or array.shape[-2:] != (self.mech.n_bodies, 6):
            raise ShapeError(
                f"the body vector has shape {array.shape}; it must be "
                f"(..., {self.mech.n_bodies}, 6)."
            )
        return array[..., self._way(self.bodies), :]

    def body_matrix(self, A: ArrayLike) -> Array:
        """A matrix over the bodies (..., 6 n, 6 n) in the new order: P A P*."""
        return self._taken(A, _sixes(self.bodies), "the body matrix", 2)

    def columns(self, J: ArrayLike) -> Array:
        """A matrix with a column for each joint velocity (..., m, nv), for instance a Jacobian."""
        return self._taken(J, self.joints, "the matrix", 1)

    @cached_property
    def joint_permutation(self) -> Array:
        """P (nv, nv) with x_new = P x."""
        return np.eye(self.mech.nv)[self._way(self.joints)]

    @cached_property
    def body_permutation(self) -> Array:
        """P (6 n, 6 n) with x_new = P x for vectors stacked over the bodies."""
        return np.eye(6 * self.mech.n_bodies)[self._way(_sixes(self.bodies))]

    def _stacked(self, starts: Index) -> Index:
        parts = [np.arange(int(starts[k]), int(starts[k + 1])) for k in self.bodies.tolist()]
        return np.concatenate([np.zeros(0, dtype=np.int64), *parts])

    def _way(self, index: Index) -> Index:
        return np.argsort(index) if self.is_back else index

    def _taken(self, value: ArrayLike, index: Index, what: str, axes: int) -> Array:
        array, n = floats(value, what), len(index)
        if array.ndim < axes or array.shape[array.ndim - axes :] != (n,) * axes:
            shape = ", ".join([str(n)] * axes)
            raise ShapeError(f"{what} has shape {array.shape}; it must be (..., {shape}).")
        for axis in range(1, axes + 1):
            array = np.take(array, self._way(index), axis=-axis)
        return array


def renumbering(mech: Mechanism, order: Sequence[str] = "tips first") -> Renumbering:
    """The bodies of a mechanism in another order, as a permutation of vectors stacked over them.

    `mech.renumber` gives a mechanism in another order, with parents still before their children.
    Here any order is allowed: only arrays are rearranged.

    Args:
        order: Names of all bodies, each once; or "tips first", as in the source documents: the
            order of the mechanism reversed, each body before its parent.

    Raises:
        ModelError: A body is missing or named twice.
        UnknownNameError: A body that the mechanism does not have; lists those it has.
    """
    check_mechanism(mech)
    names = [body.name for body in mech.bodies]
    if isinstance(order, str):
        if order != "tips first":
            raise ModelError(
                f"order is {order!r}; it must be 'tips first', or the names of all bodies."
            )
        order = names[::-1]
    known = set(names)
    for name in order:
        if name not in known:
            raise unknown_name("body", name, names, owner=f"mechanism {mech.name!r}")
    times = Counter(order)
    if len(order) != len(names) or len(times) != len(names):
        missing = [name for name in names if name not in times]
        twice = [name for name in names if times[name] > 1]
        what = f"{missing[0]!r} is missing" if missing else f"{twice[0]!r} is named twice"
        raise ModelError(f"an order names each of the {len(names)} bodies once; {what}.")
    bodies = np.array([mech.body_index[name] for name in order], dtype=np.int64)
    return Renumbering(mech, tuple(order), bodies)


def _sixes(bodies: Index) -> Index:
    return (6 * bodies[:, None] + np.arange(6)).ravel()
