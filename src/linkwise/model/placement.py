"""Where bodies are and what they weigh: the plain recursion, kept as the readable reference.

X_WB(k) = X_WB(parent) · inboard(k) · hinge pose(q_k) · outboard(k)      (document 002)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwise.errors import ModelError
from linkwise.spatial.array import Array, frozen
from linkwise.spatial.inertia import SpatialInertia, trusted_inertia
from linkwise.spatial.pose import Pose, trusted_pose

if TYPE_CHECKING:
    from linkwise.model.mechanism import Mechanism


def body_poses(mech: Mechanism, q: Array) -> Pose:
    """World poses of all bodies: rot (..., n, 3, 3), p (..., n, 3)."""
    q = mech.check_q(q)
    lead = q.shape[:-1]
    rot, p = np.empty((mech.n_bodies, *lead, 3, 3)), np.empty((mech.n_bodies, *lead, 3))
    for k, (body, above) in enumerate(zip(mech.bodies, mech.parent.tolist(), strict=True)):
        start, stop = mech.q_start[k], mech.q_start[k + 1]
        step = body.pose(q[..., start:stop])
        here = step if above < 0 else trusted_pose(rot[above], p[above]) @ step
        rot[k], p[k] = here.rot, here.p
    if not np.isfinite(p).all():
        far = mech.bodies[int(np.argwhere(~np.isfinite(p))[0][0])].name
        raise ModelError(f"the place of body {far!r} is too far away to be a number.")
    return trusted_pose(np.moveaxis(rot, 0, len(lead)), np.moveaxis(p, 0, len(lead)))


def pose(mech: Mechanism, q: Array, name: str) -> Pose:
    """World pose of one body or node: only the way from the base is walked."""
    node = mech.node(name)
    q = mech.check_q(q)
    way = list[int]()
    k = mech.body_index[node.body]
    while k >= 0:
        way.append(k)
        k = int(mech.parent[k])
    here = Pose.identity()
    for k in reversed(way):
        here = here @ mech.bodies[k].pose(q[..., mech.q_start[k] : mech.q_start[k + 1]])
    here = here @ node.pose
    lead = q.shape[:-1]
    if here.p.shape[:-1] == lead and here.rot.shape[:-2] == lead:
        return here
    return trusted_pose(
        np.broadcast_to(here.rot, (*lead, 3, 3)), np.broadcast_to(here.p, (*lead, 3))
    )


def total_inertias(mech: Mechanism) -> SpatialInertia:
    """Own inertia of each body plus that of its nodes, stacked (n, ...)."""
    total = [body.inertia for body in mech.bodies]
    for node in mech.nodes:
        k = mech.body_index[node.body]
        if node.inertia is not None and k >= 0:
            total[k] = total[k] + node.inertia.moved(node.pose)
    n = mech.n_bodies
    return trusted_inertia(
        frozen(np.array([m.mass for m in total], dtype=np.float64).reshape(n)),
        frozen(np.array([m.h for m in total], dtype=np.float64).reshape(n, 3)),
        frozen(np.array([m.J for m in total], dtype=np.float64).reshape(n, 3, 3)),
    )


def center_of_mass(mech: Mechanism, q: Array) -> Array:
    """Σ m_k c_k / Σ m_k over all that is not fixed to the ground, (..., 3) [m]."""
    if mech.total_mass <= 0.0:
        raise ModelError(f"{mech.name!r} has no mass, so it has no centre of mass.")
    poses, inertias = body_poses(mech, q), mech.inertias
    moments = (poses.rot @ inertias.h[..., None])[..., 0] + inertias.mass[:, None] * poses.p
    return moments.sum(axis=-2) / mech.total_mass
