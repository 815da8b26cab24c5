"""The centre of mass among the goals of inverse kinematics.

Its error adds w J_c* J_c to A = J* W J + N, which is of the whole mechanism instead of a node. The
step with it follows from three without it, by the recursion, one for each direction:

    (A + w J_c* J_c)⁻¹ b = x − Y (1/w + J_c Y)⁻¹ J_c x,      x = A⁻¹ b,   Y = A⁻¹ J_c*

Source: the matrix inversion lemma.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from linkwise.dynamics.inverse_kinematics.goal import FURTHEST, GoalArrays
from linkwise.dynamics.momentum import center_with_slope, check_mass
from linkwise.errors import ModelError, ShapeError
from linkwise.model.derived import replaced
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import ArrayLike, floats
from linkwise.sweeps.factored import factored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from linkwise.codegen.writing import Writing


@dataclass(frozen=True, slots=True)
class Center:
    """The centre of mass of a mechanism along some axes.

    Attributes:
        mech: The mechanism with its masses, an open tree.
        axes: Axes of the world along which it has a goal.
    """

    mech: Mechanism
    axes: tuple[int, ...]

    def error(self, at: Writing, q: Any, goal: Any) -> Any:
        """(0, c_d − c) (6,), zero along axes without a goal."""
        c, _ = center_with_slope(at, mech=self.mech, q=q)
        way = np.full(6, 0.0, dtype=object)
        for i in self.axes:
            way[3 + i] = goal[i] - c[i]
        return way

    def rows(self, at: Writing, q: Any) -> Any:
        """J_c (m, nv) along its axes."""
        _, J = center_with_slope(at, jacobian=True, mech=self.mech, q=q)
        return J[list(self.axes)]

    def pull(self, at: Writing, q: Any, force: Any) -> Any:
        """J_c* f (nv,) of a force (6,)."""
        return self.rows(at, q).T @ force[[3 + i for i in self.axes]]

    def answer(
        self, at: Writing, q: Any, weight: Any, x: Any, inverse: Callable[[Any], Any]
    ) -> Any:
        """The step with this goal, from the one without it.

        Args:
            at: The formula.
            q: Joint positions.
            weight: w.
            x: A⁻¹ b.
            inverse: Gives A⁻¹ of a row.
        """
        J = self.rows(at, q)
        Y = np.array([inverse(row) for row in J]).T
        square = J @ Y + np.diag(np.full(len(J), 1.0 / weight, dtype=object))
        return x - Y @ (factored(square) @ (J @ x)[:, None])[:, 0]


@once_per_mechanism
def center_of(mech: Mechanism, along: str) -> Center:
    """The centre of mass along axes given by their letters.

    Raises:
        ModelError: Other letters; a mechanism without a mass.
    """
    check_mass(mech)
    letters = tuple(cast("Iterable[object]", along)) if hasattr(along, "__iter__") else ()
    if not letters or set(letters) - set("xyz") or len(set(letters)) < len(letters):
        raise ModelError(f"center_along is {along!r}; it takes letters x, y, z, each once.")
    axes = tuple(i for i, letter in enumerate("xyz") if letter in letters)
    return Center(replaced(mech, loops=(), couplings=()), axes)


def with_center(goals: GoalArrays, center: Center, point: ArrayLike, length: float) -> GoalArrays:
    """Goals with one for the centre of mass behind those of the nodes.

    Args:
        goals: Goals of nodes.
        center: The centre of mass.
        point: Its goal (3,) or (batch, 3) [m].
        length: As for `goal_arrays`.

    Raises:
        ShapeError: Another shape, or another batch than the goals of nodes have.
        ModelError: A goal that is not finite, or far away.
    """
    place = floats(point, "center_of_mass")
    if place.ndim not in (1, 2) or place.shape[-1] != 3:
        raise ShapeError(
            f"center_of_mass has shape {place.shape}; it must be (3,) or (batch, 3), for any "
            "center_along."
        )
    if not (np.abs(place) <= FURTHEST).all():  # NaN is not
        raise ModelError(
            f"center_of_mass must be finite and at most {FURTHEST:g} m from the world's origin."
        )
    batch = len(place) if place.ndim == 2 else goals.batch
    if goals.batch is not None and batch != goals.batch:
        raise ShapeError(
            f"center_of_mass is a batch of {batch} and the goals of nodes are of {goals.batch}; "
            "all must be of one size, or without the batch axis."
        )
    count, more = 1 if batch is None else batch, {}
    for name, last in (("p", place), ("rot", np.eye(3)), ("heading", np.zeros(3))):
        each = getattr(goals, name)
        each = np.broadcast_to(each, (count, *each.shape[1:]))
        last = np.broadcast_to(last, (count, *each.shape[2:]))
        more[name] = np.concatenate([each, last[:, None]], axis=1)
    for name, last in (("placed", True), ("turned", False), ("pointed", False)):
        more[name] = np.append(getattr(goals, name), last)
    weight = np.repeat([0.0, 1.0 / length**2], 3)
    more["axis"] = np.concatenate([goals.axis, np.zeros((1, 3))])
    more["weights"] = np.concatenate([goals.weights, weight[None]])
    return dataclasses.replace(goals, batch=batch, center=center, **more)
