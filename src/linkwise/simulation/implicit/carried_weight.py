"""Gravity compensation: a share of the weight of some bodies is carried from outside."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.algebra import J, f
from linkwise.codegen.writing import Writing
from linkwise.dynamics.quantity import expression
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.vector import cross

PUSHED = J.T @ f
"""Joint forces of wrenches at nodes."""


def carried_mass(mech: Mechanism) -> dict[str, tuple[float, Array]]:
    """For each moving body the mass that is carried [kg], and its first moment (3,) [kg m]."""
    carried = dict[str, tuple[float, Array]]()
    for name, share in mech.gravity_compensation:
        if name in mech.node_index:
            node = mech.node(name)
            body, part = node.body, node.inertia
            part = None if part is None else part.moved(node.pose)
        else:
            body, part = name, mech.body(name).inertia
        if part is not None and mech.body_index[body] >= 0:
            mass, moment = carried.get(body, (0.0, np.zeros(3)))
            carried[body] = mass + share * float(part.mass), moment + share * np.asarray(part.h)
    return carried


def carrying_force(at: Writing, q: Any, given: dict[str, Any]) -> Any:
    """The joint forces (nv,) that carry it: Σ J* (h × a, m a), a = −gravity in body axes."""
    carried = carried_mass(at.mech)
    names = tuple(carried)
    poses = at.value(expression("node_poses"), nodes=names, q=q).reshape(-1, 3, 4)
    up = -given.get("gravity", at.mech.gravity)
    wrenches = list[Any]()
    for pose, (mass, moment) in zip(poses, carried.values(), strict=True):
        a = pose[:, :3].T @ up
        wrenches += [*cross(moment.astype(object), a), *(mass * a)]
    return at.value(PUSHED, nodes=names, q=q, f=np.array(wrenches, dtype=object))
