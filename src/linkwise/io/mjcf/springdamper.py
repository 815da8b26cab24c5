"""Which stiffness and damping follow from a joint's `springdamper`?

The file gives a time constant T and a damping ratio ζ. With the joint's inertia I = 1 / (M⁻¹)_jj
at the configuration the file describes (the mean over the freedoms of a ball or free joint),

    stiffness = I / (T ζ)²,   damping = 2 I / T.

M is the mass matrix with armature, here formed densely: it is needed once, while reading. MuJoCo
leaves the armature out for bodies at the end of a tree that only slide along their own axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from linkwise.io.mjcf.compiler import Options
from linkwise.io.mjcf.joint import FREEDOMS, Joint
from linkwise.io.mjcf.tree import BodyRecord
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose

MAX_FREEDOMS: Final = 2000
"""Most freedoms for which the dense mass matrix is formed."""


def resolve_springdampers(
    records: Sequence[BodyRecord],
    joints: Sequence[Sequence[Joint]],
    inertias: Sequence[SpatialInertia],
    poses: Sequence[Pose],
    options: Options,
) -> None:
    """Replace stiffness and damping of the joints that have a `springdamper`.

    Args:
        records: Bodies, the world first.
        joints: Joints of each body.
        inertias: Inertia of each body about its frame.
        poses: World pose of each body at the configuration the file describes.
        options: Whether springs and dampers act.
    """
    timed = [joint for group in joints for joint in group if joint.springdamper is not None]
    if not timed:
        return
    total = sum(FREEDOMS[joint.kind] for group in joints for joint in group)
    if total > MAX_FREEDOMS:
        raise timed[0].element.error(
            f"'springdamper' needs the mass matrix; the model has {total} freedoms, and at most "
            f"{MAX_FREEDOMS} are supported with it"
        )
    mass = mass_matrix(records, joints, inertias, poses)
    try:
        inverse = np.diag(np.linalg.inv(mass))
    except np.linalg.LinAlgError:
        inverse = np.full(total, np.nan)
    start = 0
    for group in joints:
        for joint in group:
            stop = start + FREEDOMS[joint.kind]
            if joint.springdamper is not None:
                inertia = 1.0 / max(float(inverse[start:stop].mean()), 1e-15)
                if not np.isfinite(inertia):
                    raise joint.element.error(
                        "'springdamper' needs joints that move some inertia, each in its own way"
                    )
                time, ratio = joint.springdamper
                joint.drive = replace(
                    joint.drive,
                    stiffness=inertia / (time * ratio) ** 2 if options.springs else 0.0,
                    damping=2.0 * inertia / time if options.dampers else 0.0,
                )
            start = stop


def mass_matrix(
    records: Sequence[BodyRecord],
    joints: Sequence[Sequence[Joint]],
    inertias: Sequence[SpatialInertia],
    poses: Sequence[Pose],
) -> Array:
    """M_ij = S_i* R S_j with R the composite inertia of the outer one, all in the world frame."""
    composite = [inertia.moved(pose).matrix for inertia, pose in zip(inertias, poses, strict=True)]
    for k in range(len(records) - 1, 0, -1):
        composite[records[k].parent] = composite[records[k].parent] + composite[k]
    screws = [_screws(group, pose) for group, pose in zip(joints, poses, strict=True)]
    starts = np.concatenate([[0], np.cumsum([len(rows) for rows in screws])])
    mass = np.zeros((int(starts[-1]), int(starts[-1])))
    for k, rows in enumerate(screws):
        if not len(rows):
            continue
        momentum = rows @ composite[k]
        here = slice(starts[k], starts[k + 1])
        a = k
        while a > 0:
            above = slice(starts[a], starts[a + 1])
            mass[here, above] = momentum @ screws[a].T
            mass[above, here] = mass[here, above].T
            a = records[a].parent
    armature = [np.full(FREEDOMS[j.kind], _armature(j)) for group in joints for j in group]
    return mass + np.diag(np.concatenate([np.zeros(0), *armature]))


def _armature(joint: Joint) -> float:
    drive = joint.drive
    assert isinstance(drive.armature, float)
    assert isinstance(drive.gear_ratio, float)
    assert isinstance(drive.rotor_inertia, float)
    return drive.armature + drive.gear_ratio**2 * drive.rotor_inertia


def _screws(joints: Sequence[Joint], pose: Pose) -> Array:
    """Unit velocities (n, 6) of the freedoms, angular first, at the world's origin."""
    rows: list[Array] = []
    for joint in joints:
        point = pose.apply(joint.p)
        if joint.kind == "slide":
            rows.append(np.concatenate([np.zeros(3), pose.rot @ joint.axis]))
            continue
        if joint.kind == "free":
            rows += list(np.hstack([np.zeros((3, 3)), np.eye(3)]))
        axes = [pose.rot @ joint.axis] if joint.kind == "hinge" else list(pose.rot.T)
        rows += [np.concatenate([axis, np.cross(point, axis)]) for axis in axes]
    return np.array(rows).reshape(-1, 6)
