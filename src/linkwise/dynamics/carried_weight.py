"""Gravity compensation: a share of the weight of some bodies is carried from outside.

Where the inertias of bodies are inputs of a kernel ("inertia"), each is that of a body with all
that is welded to it. What differs from the mechanism then counts as the body's, with its share;
what is welded to it keeps its weight and share. A payload is not carried.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algebra import J, f
from linkwise.codegen.formula import Formula
from linkwise.codegen.request import Request
from linkwise.codegen.scalar.parameters import INERTIA, size
from linkwise.dynamics.kernels import kernel, written
from linkwise.dynamics.quantity import expression
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.vector import cross

if TYPE_CHECKING:
    from linkwise.codegen.scalar.trace import Traced
    from linkwise.codegen.writing import Writing

PUSHED = J.T @ f
"""Joint forces of wrenches at nodes."""


@once_per_mechanism
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


def carrying_force(at: Writing, q: Any, gravity: Any, inertia: Any = None) -> Any:
    """The joint forces (nv,) that carry it: Σ J* (h × a, m a), a = −gravity in body axes.

    Args:
        inertia: Ten numbers for each body that replace those of the mechanism; default: none.
    """
    carried = _carried_parts(at.mech, inertia)
    names = tuple(carried)
    poses = at.value(expression("node_poses"), nodes=names, q=q).reshape(-1, 3, 4)
    up = -np.asarray(gravity)
    wrenches = list[Any]()
    for pose, (mass, moment) in zip(poses, carried.values(), strict=True):
        a = pose[:, :3].T @ up
        wrenches += [*cross(moment.astype(object), a), *(mass * a)]
    return at.value(PUSHED, nodes=names, q=q, f=np.array(wrenches, dtype=object))


def _carried_parts(mech: Mechanism, inertia: Any) -> dict[str, tuple[Any, Any]]:
    """`carried_mass`, with the ten numbers of each body in place of those of the mechanism."""
    carried: dict[str, tuple[Any, Any]] = dict(carried_mass(mech))
    if inertia is None:
        return carried
    for name, share in mech.gravity_compensation:
        k = -1 if name in mech.node_index else mech.body_index[name]
        if k < 0:
            continue
        mass, moment = carried[name]
        ten, usual = inertia[INERTIA * k : INERTIA * (k + 1)], mech.inertias[k]
        mass = mass + share * (ten[0] - float(usual.mass))
        moment = moment + share * (ten[1:4] - np.asarray(usual.h))
        carried[name] = mass, moment
    return carried


def _carried(at: Writing) -> Any:
    return carrying_force(at, at.q, at.mech.gravity)


CARRIED = Formula(_carried)


@once_per_mechanism
def carrying(mech: Mechanism, inertia: bool) -> Traced:
    """The joint forces that carry it as a graph of q and gravity, without checks of q.

    Args:
        mech: The mechanism.
        inertia: Whether the inertias of bodies are an input as well.
    """
    from linkwise.codegen.writing import Writing

    at = Writing(Request((PUSHED,), mech, ()), plain=True)
    q, gravity = at.read("q", mech.nq), at.read("gravity", 3)
    tens = at.read("inertia", size(mech, "inertia")) if inertia else None
    force = carrying_force(at, q, gravity, tens)
    at.write("force", force.tolist())
    return replace(at.traced(), checks=())


def carried_force(mech: Mechanism, q: Array) -> Array:
    """The same as numbers (..., nv), of q (..., nq)."""
    flat = written(mech, CARRIED)(np.ascontiguousarray(q).reshape(-1, mech.nq))
    return flat.reshape(*q.shape[:-1], mech.nv)


def carried_energy(mech: Mechanism, q: Array) -> Array:
    """The energy of what carries it, Σ m g · c [J] with c its centre of mass, of q (..., nq)."""
    carried = carried_mass(mech)
    if not carried:
        return np.zeros(q.shape[:-1])
    flat = np.ascontiguousarray(q).reshape(-1, mech.nq)
    poses = kernel(mech, "node_poses", tuple(carried))(flat).reshape(len(flat), -1, 3, 4)
    mass = np.array([m for m, _ in carried.values()])
    moment = np.array([h for _, h in carried.values()])
    places = (poses[..., :3] @ moment[..., None])[..., 0] + mass[:, None] * poses[..., 3]
    return (places @ mech.gravity).sum(axis=-1).reshape(q.shape[:-1])
