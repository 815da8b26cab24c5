"""Independent velocities: some of the joint velocities of the tree that determine all others.

All velocities that obey loops and couplings are v = Z y. Rows of Z that are independent belong to
velocities that can be chosen at will; with Z_i these rows,

    v = X v_i,          X = Z Z_i⁻¹
    v̇ = X v̇_i + x,      J_c x = -γ and x_i = 0.

Pivots decide which rows to take: always the row that is longest after the parts along those already
taken were removed, as in a QR decomposition with pivots.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import rows
from linkwise.dynamics.closure import constraint_bias
from linkwise.dynamics.velocity_space import VelocitySpace, one_state, velocity_space
from linkwise.errors import unknown_name
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

LEAST = 1e-6
"""A preferred velocity of which less than this part is independent depends on those before it."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IndependentCoordinates:
    """Velocities that determine all others, in one configuration.

    Attributes:
        mech: The mechanism.
        q: The configuration (nq,).
        indices: Places of the independent ones in v (f,), in the order of v.
        names: Their names.
        dependent: Places of the others (nv - f,).
        dependent_names: Their names.
        map: X (nv, f): v = X v_i.
        rejected: Preferred velocities that depend on others before them.
        condition: Of the choice: largest over smallest singular value of X, with turning measured
            at the mechanism's length; large where another choice is needed.
        space: Blocked and free velocities.
    """

    mech: Mechanism
    q: Array
    indices: NDArray[np.int64]
    names: tuple[str, ...]
    dependent: NDArray[np.int64]
    dependent_names: tuple[str, ...]
    map: Array
    rejected: tuple[str, ...]
    condition: float
    space: VelocitySpace

    def __len__(self) -> int:
        return len(self.indices)

    def velocity(self, independent: ArrayLike) -> Array:
        """All velocities v (..., nv) from the independent ones (..., f)."""
        return self._given(independent) @ self.map.T

    def bias(self, v: ArrayLike) -> Array:
        """x (nv,) of v̇ = X v̇_i + x at the velocities v (nv,), zero for independent ones.

        Args:
            v: Joint velocities that obey the constraints, (nv,) or (batch, nv) [m/s or rad/s].
        """
        v = self.mech.check_v(v)
        gamma = constraint_bias(self.mech, np.broadcast_to(self.q, (*v.shape[:-1], len(self.q))), v)
        some = -self.space.answer(gamma)
        x = some - some[..., self.indices] @ self.map.T
        x[..., self.indices] = 0.0
        return x

    def acceleration(self, v: ArrayLike, independent: ArrayLike) -> Array:
        """All accelerations v̇ (..., nv) from the independent ones (..., f): X v̇_i + x."""
        return self._given(independent) @ self.map.T + self.bias(v)

    def _given(self, independent: ArrayLike) -> Array:
        shown = ", ".join(self.names) or "nothing can move"
        return rows(independent, len(self), "the independent part", hint=shown)

    def __repr__(self) -> str:
        shown = ", ".join(self.names) or "none"
        return f"<IndependentCoordinates of {self.mech.name!r}: {shown}>"


def independent_coordinates(
    mech: Mechanism,
    q: ArrayLike,
    *,
    prefer: Iterable[str] = (),
    tolerance: float | None = None,
) -> IndependentCoordinates:
    """Velocities that can serve as minimal coordinates, and how all others follow from them.

    Expression:
        v = X v_i,  v̇ = X v̇_i + x,   X = Z Z_i⁻¹, Z a basis of the kernel of J_c

    At a singular configuration the kernel is larger than the set of motions; there are then more
    independent velocities than degrees of freedom of the mechanism (see `lw.loops.mobility`).

    Args:
        q: Joint positions (nq,) [m or rad], with closed loops.
        prefer: Names of velocities, of hinges or of bodies that shall be independent, in order of
            preference: the driven ones, for instance. Those that depend on earlier ones are
            `rejected`; pivots select the rest.
        tolerance: Singular values of J_c below this part of the largest count as zero.

    Raises:
        UnknownNameError: A name that is not a velocity, a hinge or a body.
    """
    q = one_state(mech, q)
    preferred = [j for name in _names(prefer) for j in velocity_indices(mech, name)]
    space = velocity_space(mech, q, tolerance)
    free, columns = space.free, space.scale.columns
    taken, rejected = _pivots(free / columns[:, None], list(dict.fromkeys(preferred)))
    taken.sort()
    others = [j for j in range(mech.nv) if j not in taken]
    indices = np.array(taken, dtype=np.int64)
    X = np.zeros((mech.nv, len(taken)))
    X[:] = np.linalg.solve(free[indices].T, free.T).T
    X[indices] = np.eye(len(taken))
    scaled = X * columns[indices] / columns[:, None]
    spread = np.linalg.svd(scaled, compute_uv=False)
    names = mech.velocity_names
    return IndependentCoordinates(
        mech,
        q,
        indices,
        tuple(names[j] for j in taken),
        np.array(others, dtype=np.int64),
        tuple(names[j] for j in others),
        X,
        tuple(names[j] for j in rejected),
        float(spread[0] / spread[-1]) if len(spread) else 1.0,
        space,
    )


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def velocity_indices(mech: Mechanism, name: str) -> list[int]:
    """The places in v of a velocity, or of those of a hinge or body."""
    if name in mech.hinge_index or name in mech.body_index:
        part = mech.v_slice(name)
        return list(range(part.start, part.stop))
    if name in mech.velocity_names:
        return [mech.velocity_names.index(name)]
    known = [*mech.hinge_index, *(body.name for body in mech.bodies), *mech.velocity_names]
    raise unknown_name(
        "velocity, hinge or body", name, known, owner=f"mechanism {mech.name!r}",
        loops=[loop.name for loop in mech.loops],
    )  # fmt: skip


def _pivots(rows: Array, preferred: list[int]) -> tuple[list[int], list[int]]:
    """As many independent rows as there are columns, preferred ones first; and those rejected."""
    left, taken, rejected = rows.copy(), list[int](), list[int]()

    def take(j: int) -> None:
        along = left[j] / np.linalg.norm(left[j])
        left[:] -= np.outer(left @ along, along)
        left[j] = 0.0
        taken.append(j)

    for j in preferred:
        if len(taken) < rows.shape[1] and np.linalg.norm(left[j]) > LEAST:
            take(j)
        else:
            rejected.append(j)
    while len(taken) < rows.shape[1]:
        take(int(np.argmax((left**2).sum(axis=1))))
    return taken, rejected
