"""Which trees of a mechanism are arms, and which is the object that they hold?

A multi-arm system is a mechanism whose loops all join the object to an arm. The object is a
separate tree, usually one body on a free hinge; it may have inner degrees of freedom. An arm is a
tree too, and may branch: two hands of one torso are one arm with two contacts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.kernels import check_mechanism
from linkwise.errors import ModelError, unknown_name
from linkwise.model.body import WORLD, Loop
from linkwise.model.embedded import Embedded
from linkwise.model.hinges import Free
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike, constant

_INSTEAD = "lw.forward_dynamics accepts any mechanism with loops and couplings."


Point: TypeAlias = str | ArrayLike | None
"""The operational point: a node or body of the object, or (3,) in its frame; None: its origin."""


@dataclass(frozen=True, slots=True, eq=False)
class Arm:
    """One arm that holds the object.

    Attributes:
        name: The first body of its tree.
        contacts: Numbers of its contacts.
        columns: Indices of its velocities in v (n,).
        rows: Indices of its contacts among the constraint rows (k,).
    """

    name: str
    contacts: tuple[int, ...]
    columns: NDArray[np.int64]
    rows: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MultiArm:
    """The parts of a multi-arm system.

    Attributes:
        object: Name of the object's first body, the one joined to the ground; C is its frame.
        tips: Node on the arm's side of each contact, in the order of the loops.
        grasps: Node on the object's side.
        sign: +1 where the loop's node b is on the object, -1 where it is on the arm (contacts,).
        arms: The arms that touch the object.
        arm_bodies: Moving bodies that are not the object's.
        object_bodies: Moving bodies of the object.
        arm_rows: Indices of the velocities of `arm_bodies` in v.
        object_rows: The same for `object_bodies`.
    """

    object: str
    tips: tuple[str, ...]
    grasps: tuple[str, ...]
    sign: NDArray[np.float64]
    arms: tuple[Arm, ...]
    arm_bodies: tuple[str, ...]
    object_bodies: tuple[str, ...]
    arm_rows: NDArray[np.int64]
    object_rows: NDArray[np.int64]


def multi_arm_parts(mech: Mechanism, body: str | None = None) -> MultiArm:
    """The arms, the object and the contacts of a mechanism.

    Args:
        mech: The mechanism; each of its loops is a contact.
        body: Any body of the object. Default: the tree that every loop ends on; if all loops join
            the same two trees, the one on a free hinge.

    Raises:
        ModelError: The mechanism is not of this kind; names the loop or coupling that does not fit.
        UnknownNameError: `body` is not a body.
    """
    check_mechanism(mech)
    if isinstance(mech, Embedded):
        raise ModelError(
            f"{mech.name!r} has its loops built in, so it has no contacts; pass the mechanism that "
            "was embedded."
        )
    if not isinstance(cast(object, body), str | None):
        raise unknown_name("body", body, mech.body_index, owner=f"mechanism {mech.name!r}")
    return _parts(mech, body)


def rigid_parts(mech: Mechanism, body: str | None = None) -> MultiArm:
    """`multi_arm_parts` of a mechanism whose object is one rigid body; raises for others."""
    parts = multi_arm_parts(mech, body)
    if len(parts.object_bodies) > 1:
        inside = ", ".join(repr(name) for name in parts.object_bodies)
        raise ModelError(
            f"the object {parts.object!r} of {mech.name!r} has several moving bodies ({inside}), "
            "so arms that hold different parts of it do not add up at one point. The augmented "
            "object is one rigid body; lw.operational_inertia and "
            "lw.forward_dynamics accept any object."
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
    while name != body:  # bodies that are welded to the object count as part of it
        k = mech.body_index.get(name)
        if k is None or mech.bodies[k].hinge.nv or mech.parent[k] < 0:
            raise ModelError(
                f"the operational point {point!r} is on {node.body!r}; it must be on the object "
                f"{body!r}, or be (3,) coordinates in its frame."
            )
        welded = mech.bodies[k]
        step = welded.pose(welded.hinge.neutral())
        way, name = step @ way, mech.bodies[int(mech.parent[k])].name
    return np.array(way.p)


def arm_of(mech: Mechanism, parts: MultiArm, name: str) -> str:
    """The name of an arm that holds the object, by any of its bodies, a contact or its tip.

    Raises:
        ModelError: A body whose tree does not hold the object, or is the object.
        UnknownNameError: Nothing of this name.
    """
    for arm in parts.arms:
        if any(name in (mech.loops[i].name, parts.tips[i]) for i in arm.contacts):
            return arm.name
    holding = [arm.name for arm in parts.arms]
    if name not in mech.body_index:
        known = [*holding, *(loop.name for loop in mech.loops), *parts.tips]
        raise unknown_name("arm", name, known, owner=f"mechanism {mech.name!r}")
    root = mech.bodies[_roots(mech)[mech.body_index[name]]].name
    if root in holding:
        return root
    what = "is the object itself" if root == parts.object else "does not hold the object"
    raise ModelError(
        f"{name!r} of {mech.name!r} was named as an arm, but it {what} {parts.object!r}; arms that "
        f"hold it: {', '.join(repr(x) for x in holding)}."
    )


def _roots(mech: Mechanism) -> list[int]:
    """The first body of each body's tree."""
    roots = list[int]()
    for k in range(mech.n_bodies):
        p = int(mech.parent[k])
        roots.append(k if p < 0 else roots[p])
    return roots


def _ends(mech: Mechanism, loop: Loop) -> tuple[int, int]:
    """Trees that a loop joins, by their first bodies."""
    roots, ends = _roots(mech), list[int]()
    for name in (loop.node_a, loop.node_b):
        body = mech.node(name).body
        if body == WORLD:
            raise ModelError(
                f"loop {loop.name!r} of {mech.name!r} ends on the world; in a multi-arm system "
                f"every loop joins an arm to the object. {_INSTEAD}"
            )
        ends.append(roots[mech.body_index[body]])
    return ends[0], ends[1]


def _object(mech: Mechanism, body: str | None) -> int:
    """Index of the object's first body."""
    if not mech.loops:
        raise ModelError(
            f"{mech.name!r} has no loops, so no arm holds anything. Builder.loop joins the tip of "
            "an arm to a node of the object."
        )
    if mech.couplings:
        raise ModelError(
            f"{mech.name!r} has the coupling {mech.couplings[0].name!r}; only contacts may "
            f"constrain arms that hold an object. {_INSTEAD}"
        )
    if body is not None:
        if body not in mech.body_index:
            raise unknown_name("body", body, mech.body_index, owner=f"mechanism {mech.name!r}")
        return _roots(mech)[mech.body_index[body]]
    pairs = [_ends(mech, loop) for loop in mech.loops]
    common = [k for k in sorted(set(pairs[0])) if all(k in pair for pair in pairs)]
    if len(common) > 1:  # two trees, joined by every loop
        common = [k for k in common if isinstance(mech.bodies[k].hinge, Free)] or common
    if len(common) != 1:
        names = ", ".join(repr(mech.bodies[k].name) for k in common) or "no tree"
        raise ModelError(
            f"the object of {mech.name!r} is ambiguous: every loop ends on {names}. Name a "
            f"body of the object: body=. {_INSTEAD}"
        )
    return common[0]


@once_per_mechanism
def _parts(mech: Mechanism, body: str | None) -> MultiArm:
    held = _object(mech, body)
    tips, grasps, sign = list[str](), list[str](), list[float]()
    arms = dict[int, list[int]]()
    for i, loop in enumerate(mech.loops):
        a, b = _ends(mech, loop)
        if (a == held) == (b == held):
            where = "both ends" if a == held else "no end"
            raise ModelError(
                f"loop {loop.name!r} of {mech.name!r} has {where} on the object "
                f"{mech.bodies[held].name!r}; every loop must join an arm to it. {_INSTEAD}"
            )
        ends = (loop.node_a, loop.node_b) if b == held else (loop.node_b, loop.node_a)
        tips.append(ends[0])
        grasps.append(ends[1])
        sign.append(1.0 if b == held else -1.0)
        arms.setdefault(a if b == held else b, []).append(i)
    roots = _roots(mech)
    loop_of_row = np.repeat(np.arange(len(mech.loops)), [x.rows for x in mech.loops])
    moving = [k for k, body in enumerate(mech.bodies) if body.hinge.nv]
    of_object = [k for k in moving if roots[k] == held]
    others = [k for k in moving if roots[k] != held]
    if not of_object:
        raise ModelError(
            f"the object {mech.bodies[held].name!r} of {mech.name!r} cannot move; put it on "
            f"a hinge, a free one for an object that is carried. {_INSTEAD}"
        )
    return MultiArm(
        mech.bodies[held].name,
        tuple(tips),
        tuple(grasps),
        np.array(sign),
        tuple(
            Arm(
                mech.bodies[k].name,
                tuple(numbers),
                _rows(mech, [j for j, root in enumerate(roots) if root == k]),
                np.flatnonzero(np.isin(loop_of_row, numbers)),
            )
            for k, numbers in arms.items()
        ),
        tuple(mech.bodies[k].name for k in others),
        tuple(mech.bodies[k].name for k in of_object),
        _rows(mech, others),
        _rows(mech, of_object),
    )


def _rows(mech: Mechanism, bodies: list[int]) -> NDArray[np.int64]:
    return np.array([i for k in bodies for i in range(mech.v_start[k], mech.v_start[k + 1])], int)
