"""What is asked of a mechanism whose arms hold an object, and where its operational point is."""

from __future__ import annotations

from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.closed.multi_arm.held_object import MultiArm, multi_arm_parts
from linkwise.errors import ModelError, ShapeError, unknown_name
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, constant

TOLERANCE = 1e-10
"""Motions of an arm at its contacts below this part of its easiest are called lost."""

Point: TypeAlias = str | ArrayLike | None
"""The operational point: a node or body of the object, or (3,) in its frame; its origin."""


def held_parts(mech: Mechanism, held: str | None = None) -> MultiArm:
    """The parts of a mechanism whose object is one rigid body; raises for others."""
    parts = multi_arm_parts(mech, held)
    if len(parts.object_bodies) > 1:
        inside = ", ".join(repr(name) for name in parts.object_bodies)
        raise ModelError(
            f"the object {parts.object!r} of {mech.name!r} has freedoms inside ({inside}), so that "
            "arms that hold different parts of it do not add up at one point. The augmented object "
            "is one rigid body; lw.effective_inertia and lw.multi_arm_dynamics take any."
        )
    return parts


def point_of(mech: Mechanism, parts: MultiArm, point: Point) -> Array:
    """The operational point in the frame of the object's body (3,)."""
    body = parts.object_bodies[0]
    if point is None:
        return np.zeros(3)
    if not isinstance(point, str):
        return np.array(constant(point, (3,), f"point of the object {body!r}"))
    node = mech.node(point)
    way, name = node.pose, node.body
    while name != body:  # bodies that are fixed to the object count as it
        found = mech.body_index.get(name)
        if found is None or mech.bodies[found].hinge.nv or mech.parent[found] < 0:
            raise ModelError(
                f"the operational point {point!r} is on {node.body!r}; it must be on the object "
                f"{body!r} that is held, or be (3,) coordinates in its frame."
            )
        whole = mech.bodies[found]
        step = whole.pose(whole.hinge.neutral())
        way, name = step @ way, mech.bodies[int(mech.parent[found])].name
    return np.array(way.p)


def check_tolerance(tolerance: object) -> None:
    """Raise unless it is a part of one."""
    fine = isinstance(tolerance, int | float) and not isinstance(tolerance, bool)
    if not fine or not 0.0 < float(cast("float", tolerance)) < 1.0:
        raise ModelError(f"tolerance is {tolerance!r}; it must be a number between 0 and 1.")


def batch_of(mech: Mechanism, q: ArrayLike, v: ArrayLike | None) -> tuple[Array, Array, bool]:
    """q and v with a batch in front, and whether there was none."""
    q = mech.check_q(q)
    v = np.zeros(mech.nv) if v is None else mech.check_v(v)
    try:
        lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    except ValueError:
        lead = (0, 0)
    if len(lead) > 1:
        raise ShapeError(
            f"q has shape {q.shape} and v {v.shape}: each must be one state, or both one batch."
        )
    rows = lead or (1,)
    return np.broadcast_to(q, (*rows, mech.nq)), np.broadcast_to(v, (*rows, mech.nv)), lead == ()


def tree_rows(mech: Mechanism, root: str) -> NDArray[np.int64]:
    """Where the velocities of the tree of a first body stand in v."""
    inside = {mech.body_index[root]}
    for k in range(mech.n_bodies):
        if int(mech.parent[k]) in inside:
            inside.add(k)
    rows = [r for k in sorted(inside) for r in range(mech.v_start[k], mech.v_start[k + 1])]
    return np.array(rows, dtype=np.int64)


def arm_of(mech: Mechanism, parts: MultiArm, name: str) -> str:
    """The name of an arm that holds the object, by any of its bodies, a contact or its tip.

    Raises:
        ModelError: A body whose tree does not hold the object, or is the object.
        UnknownNameError: Nothing of this name.
    """
    for arm, numbers in parts.arms:
        if any(name in (mech.loops[i].name, parts.tips[i]) for i in numbers):
            return arm
    holding = [arm for arm, _ in parts.arms]
    if name not in mech.body_index:
        known = [*holding, *(loop.name for loop in mech.loops), *parts.tips]
        raise unknown_name("arm", name, known, owner=f"mechanism {mech.name!r}")
    k = mech.body_index[name]
    while mech.parent[k] >= 0:
        k = int(mech.parent[k])
    root = mech.bodies[k].name
    if root in holding:
        return root
    what = "is the object itself" if root == parts.object else "does not hold the object"
    raise ModelError(
        f"{name!r} of {mech.name!r} was named as an arm, but it {what} {parts.object!r}; arms that "
        f"hold it: {', '.join(repr(x) for x in holding)}."
    )
