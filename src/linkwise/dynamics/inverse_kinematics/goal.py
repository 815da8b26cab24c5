"""Goals of a node: a position, an orientation, both, or a direction to point in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import ModelError, ShapeError
from linkwise.spatial import quaternion, rotation
from linkwise.spatial.array import Array, ArrayLike, floats, unit
from linkwise.spatial.pose import Pose

FURTHEST = 1e9
"""Largest coordinate of a position [m]: beyond it, a millimetre is below rounding."""

if TYPE_CHECKING:
    from linkwise.dynamics.inverse_kinematics.center import Center

GoalLike: TypeAlias = "NodeGoal | Pose | ArrayLike"

Flags: TypeAlias = NDArray[np.bool_]
"""For each node (k,)."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeGoal:
    """The goal of one node, in world axes; parts that are None are free.

    Attributes:
        position: Of the node's origin (3,) or (batch, 3) [m].
        orientation: Of its axes: rotation matrix rot_WN (3, 3) or (batch, 3, 3), or unit
            quaternion (w, x, y, z) (4,) or (batch, 4).
        direction: The direction of `axis` (3,) or (batch, 3), of any length; the turn about it is
            free. Not together with an orientation.
        axis: In the node's axes, for `direction`.
        weight: Weight of this goal relative to others.
        orientation_weight: Weight of the orientation relative to the position; with 1, one radian
            counts as much as an error in position of a quarter of the mechanism's length.
    """

    position: ArrayLike | None = None
    orientation: ArrayLike | None = None
    direction: ArrayLike | None = None
    axis: ArrayLike = (0.0, 0.0, 1.0)
    weight: float = 1.0
    orientation_weight: float = 1.0

    def __post_init__(self) -> None:
        _check_sense(self, "the goal")

    @staticmethod
    def of(value: GoalLike, node: str) -> NodeGoal:
        """A goal from a goal, a pose, a position (3,) or a homogeneous matrix (4, 4)."""
        if isinstance(value, NodeGoal):
            return value
        if isinstance(value, Pose):
            return NodeGoal(position=value.p, orientation=value.rot)
        array = floats(value, f"the goal of {node!r}")
        if array.shape == (3,):
            return NodeGoal(position=array)
        if array.shape == (4, 4):
            pose = Pose.from_matrix(array)
            return NodeGoal(position=pose.p, orientation=pose.rot)
        raise ShapeError(
            f"the goal of {node!r} has shape {array.shape}; it can be a Pose, a position (3,) or "
            "a homogeneous matrix (4, 4). For an orientation, a direction or a batch use "
            "lw.dynamics.NodeGoal(orientation=...), lw.dynamics.NodeGoal(position=...)."
        )


@dataclass(frozen=True, slots=True, eq=False)
class GoalArrays:
    """The goals of all nodes, as arrays over (batch, nodes).

    Attributes:
        nodes: Names.
        batch: Number of goals; None if they came without the batch axis.
        p: Positions (batch, k, 3) [m]; zeros where there is none.
        rot: Orientations (batch, k, 3, 3); the identity where there is none.
        heading: Directions to point in (batch, k, 3).
        axis: The axes that point there, in node axes (k, 3).
        placed: Which nodes have a position (k,).
        turned: Which nodes have an orientation (k,).
        pointed: Which nodes have a direction (k,).
        weights: Of errors of each node, three angular and three linear (k, 6).
        center: The centre of mass, if the last of the k goals is its goal.
    """

    nodes: tuple[str, ...]
    batch: int | None
    p: Array
    rot: Array
    heading: Array
    axis: Array
    placed: Flags
    turned: Flags
    pointed: Flags
    weights: Array
    center: Center | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each goal."""
        return self.nodes if self.center is None else (*self.nodes, "centre of mass")


def goal_arrays(goals: Mapping[str, GoalLike], length: float) -> GoalArrays:
    """Goals as arrays; raises for invalid ones.

    Args:
        goals: Goals by the name of a node or body.
        length: An error in position as large as this counts as one radian [m].
    """
    nodes = tuple(goals)
    posed = {n: x for n, x in goals.items() if _is_checked(x)}
    if len(posed) == len(nodes) and all(x.p.ndim == 1 for x in posed.values()):
        p = np.array([x.p for x in posed.values()]).reshape(1, -1, 3)
        rot = np.array([x.rot for x in posed.values()]).reshape(1, -1, 3, 3)
        return GoalArrays(nodes, None, p, rot, *_of_poses(len(nodes), length))
    given = [PLAIN if n in posed else NodeGoal.of(goals[n], n) for n in nodes]
    parts = [
        (posed[n].p, posed[n].rot, None) if n in posed else _checked(goal, n)
        for goal, n in zip(given, nodes, strict=True)
    ]
    sizes = {
        len(x)
        for part in parts
        for x, axes in zip(part, (1, 2, 1), strict=True)
        if x is not None and x.ndim > axes
    }
    if len(sizes) > 1:
        raise ShapeError(
            f"goals come in batches of {' and '.join(str(n) for n in sorted(sizes))}; all must "
            "be of one size, or without the batch axis."
        )
    batch = sizes.pop() if sizes else None
    count, k = batch if batch is not None else 1, len(nodes)
    p, rot, heading = np.zeros((count, k, 3)), np.zeros((count, k, 3, 3)), np.zeros((count, k, 3))
    rot[:] = np.eye(3)
    axis, weights = np.zeros((k, 3)), np.zeros((k, 2))
    for i, (place, turn, direction) in enumerate(parts):
        if place is not None:
            p[:, i] = place
            weights[i, 1] = given[i].weight / length**2
        if turn is not None:
            rot[:, i] = turn
            weights[i, 0] = given[i].weight * given[i].orientation_weight
        if direction is not None:
            heading[:, i] = direction
            axis[i] = unit(given[i].axis, f"the axis of the goal of {nodes[i]!r}")
            weights[i, 0] = given[i].weight * given[i].orientation_weight
    has = np.array([[x is not None for x in part] for part in parts])
    return GoalArrays(
        *(nodes, batch, p, rot, heading, axis, has[:, 0], has[:, 1], has[:, 2]),
        np.repeat(weights, 3, axis=1),
    )


@cache
def _of_poses(k: int, length: float) -> tuple[Array, Array, Flags, Flags, Flags, Array]:
    """What goals of k poses share: headings, axes, which parts they have, and weights."""
    all_, none = np.ones(k, dtype=np.bool_), np.zeros(k, dtype=np.bool_)
    weights = np.tile(np.repeat([1.0, 1.0 / length**2], 3), (k, 1))
    parts = np.zeros((1, k, 3)), np.zeros((k, 3)), all_, all_, none, weights
    for part in parts:
        part.setflags(write=False)
    return parts


def _checked(goal: NodeGoal, node: str) -> tuple[Array | None, Array | None, Array | None]:
    """Position, rotation matrix and unit direction, each alone or a batch."""
    what = f"the goal of {node!r}"
    direction = _check_sense(goal, what)
    for name in ("weight", "orientation_weight"):
        value = floats(getattr(goal, name), f"{name} of {what}")
        if value.ndim or not 0.0 < float(value) < np.inf:
            raise ModelError(f"{name} of {what} is {value}; it must be a positive number.")
    position = None
    if goal.position is not None:
        position = _rows(goal.position, f"position of {what}")
        far = np.abs(position).max(axis=-1)
        if (far > FURTHEST).any():
            row, where = _first(far > FURTHEST)
            raise ModelError(
                f"position of {what}{where} is {far[row]:.3g} m away from the world's origin; at "
                f"most {FURTHEST:g} m are allowed."
            )
    orientation = None
    if goal.orientation is not None:
        orientation = _orientation(goal.orientation, f"orientation of {what}")
    return position, orientation, direction


def _check_sense(goal: NodeGoal, what: str) -> Array | None:
    """Raises for an empty or contradictory goal; gives the unit direction."""
    if goal.position is goal.orientation is goal.direction is None:
        raise ModelError(f"{what} is empty: give a position, orientation or direction.")
    if goal.direction is None:
        return None
    if goal.orientation is not None:
        raise ModelError(
            f"{what} has an orientation and a direction, which it determines: leave one out."
        )
    unit(goal.axis, f"the axis of {what}")
    direction = _rows(goal.direction, f"direction of {what}")
    size = np.linalg.norm(direction, axis=-1, keepdims=True)
    if not (size > 0.0).all():
        _, where = _first(size[..., 0] == 0.0)
        raise ModelError(f"direction of {what}{where} is the zero vector; it must point somewhere.")
    return direction / size


def _first(bad: NDArray[np.bool_] | np.bool_) -> tuple[tuple[int, ...], str]:
    """The first bad row of a batch (batch,), or a single value (); its index, and a phrase."""
    if bad.ndim == 0:
        return (), ""
    rows = np.flatnonzero(bad)
    more = f" (and in {len(rows) - 1} more)" if len(rows) > 1 else ""
    return (int(rows[0]),), f" in row {rows[0]} of {bad.size}{more}"


def _rows(value: ArrayLike, what: str) -> Array:
    array = floats(value, what)
    if array.ndim not in (1, 2) or array.shape[-1] != 3:
        raise ShapeError(f"{what} has shape {array.shape}; it must be (3,) or (batch, 3).")
    return _finite(array, 1, what)


def _finite(array: Array, axes: int, what: str) -> Array:
    """The array itself; raises, with the row of a batch, where it is not finite."""
    bad = ~np.isfinite(array).all(axis=tuple(range(-axes, 0)))
    if bad.any():
        row, where = _first(bad)
        raise ModelError(f"{what}{where} is not finite: {array[row].tolist()}.")
    return array


def _orientation(value: ArrayLike, what: str) -> Array:
    array = floats(value, what)
    if array.ndim in (2, 3) and array.shape[-2:] == (3, 3):
        error = np.asarray(rotation.deviation(_finite(array, 2, what)))
        if (error > 1e-6).any():
            row, where = _first(error > 1e-6)
            raise ModelError(
                f"{what}{where} is not a rotation matrix: rot^T rot differs from 1 by "
                f"{error[row]:.2g}."
            )
        return array
    if array.ndim in (1, 2) and array.shape[-1] == 4:
        size = np.linalg.norm(_finite(array, 1, what), axis=-1)
        bad = np.abs(size - 1.0) > 1e-6
        if bad.any():
            row, where = _first(bad)
            raise ModelError(
                f"{what}{where} is a quaternion of length {size[row]:.6g}; it must be 1."
            )
        return quaternion.to_matrix(quaternion.normalise(array))
    raise ShapeError(
        f"{what} has shape {array.shape}; it must be a rotation matrix (3, 3) or a quaternion "
        "(w, x, y, z) (4,), alone or in a batch."
    )


def _is_checked(value: GoalLike) -> TypeGuard[Pose]:
    """Whether it is a pose within range; poses are checked when they are made."""
    return isinstance(value, Pose) and bool(np.abs(value.p).max(initial=0.0) <= FURTHEST)


PLAIN = NodeGoal(position=(0.0, 0.0, 0.0))
"""Has the weights of a goal that is only a pose."""
