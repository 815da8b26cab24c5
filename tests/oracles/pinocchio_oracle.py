"""Pinocchio as an outside reference: its conventions are converted here and nowhere else in tests.

Pinocchio puts the position before the quaternion of a free joint, the quaternion as (x, y, z, w),
and an unlimited revolute joint as (cos, sin).
"""

from __future__ import annotations

import io
import os
from contextlib import redirect_stderr
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.model.hinges import Free, Hinge, Locked, Pin, Planar, Prismatic, Spherical
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array


@dataclass(frozen=True, slots=True)
class Agreement:
    """Largest differences between a mechanism and Pinocchio's model of the same file."""

    dof: tuple[int, int]
    mass: float
    com: float
    pose: float
    frames: int

    @property
    def worst(self) -> float:
        return max(self.mass, self.com, self.pose)


def read_model(path: str | os.PathLike[str], *, mimic: bool = False, free: bool = False) -> Any:
    """Pinocchio's model of a URDF; raises ValueError where it finds none."""
    import pinocchio as pin

    with redirect_stderr(io.StringIO()):
        if free:  # the joint is called root_joint there too
            return pin.buildModelFromUrdf(os.fspath(path), pin.JointModelFreeFlyer())
        return pin.buildModelFromUrdf(os.fspath(path), mimic)


def to_pinocchio(mech: Mechanism, model: Any, q: Array) -> Array:
    """Coordinates (nq,) of a mechanism in Pinocchio's layout; hinges are matched by name."""
    import pinocchio as pin

    out = pin.neutral(model)
    for body in mech.bodies:
        if isinstance(body.hinge, Locked):
            continue
        joint = model.joints[model.getJointId(body.hinge_name)]
        if joint.nq == 0:  # a mimic joint that is switched on
            continue
        ours = _converted(body.hinge, q[mech.q_slice(body.hinge_name)], joint.nq)
        assert len(ours) == joint.nq, (body.hinge_name, joint.shortname())
        out[joint.idx_q : joint.idx_q + joint.nq] = ours
    return out


def velocity_order(mech: Mechanism, model: Any) -> list[int]:
    """Where each entry of a velocity of ours stands in Pinocchio's: `v_pin[order] = v`.

    A free joint is (linear, angular) there, in body axes as here.
    """
    order = list[int]()
    for body in mech.bodies:
        if body.hinge.nv == 0:
            continue
        first = model.joints[model.getJointId(body.hinge_name)].idx_v
        ours = [3, 4, 5, 0, 1, 2] if isinstance(body.hinge, Free) else range(body.hinge.nv)
        order += [first + i for i in ours]
    return order


SWAPPED = [3, 4, 5, 0, 1, 2]
"""Spatial vectors are (linear, angular) in Pinocchio."""


def agreement(
    mech: Mechanism, path: str | os.PathLike[str], *, samples: int = 3, free: bool = False
) -> Agreement:
    """Compare dof, total mass, centre of mass and the pose of every link at random q."""
    rng = np.random.default_rng(0)
    qs = [mech.normalise(rng.uniform(-2.5, 2.5, mech.nq)) for _ in range(samples)]
    return _compared(mech, read_model(path, free=free), np.stack(qs), mech.nv)


def mimic_agreement(mech: Mechanism, path: str | os.PathLike[str]) -> Agreement:
    """The same where couplings hold, against Pinocchio with its mimic joints switched on."""
    qs = np.stack([mech.random(seed) for seed in range(3)])
    return _compared(mech, read_model(path, mimic=True), qs, mech.nv - len(mech.couplings))


def _compared(mech: Mechanism, model: Any, qs: Array, dof: int) -> Agreement:
    import pinocchio as pin

    data = model.createData()
    links = [f for f in model.frames if f.type == pin.FrameType.BODY and f.name != "universe"]
    # A floating root link that a file calls "world" has another name here.
    renamed = {"world": "world_link"} if "world_link" in mech.body_index else {}
    poses = [mech.pose(qs, renamed.get(frame.name, frame.name)) for frame in links]
    com = pose = 0.0
    for i, q in enumerate(qs):
        q_pin = to_pinocchio(mech, model, q)
        pin.forwardKinematics(model, data, q_pin)
        pin.updateFramePlacements(model, data)
        for frame, ours in zip(links, poses, strict=True):
            theirs = data.oMf[model.getFrameId(frame.name, pin.FrameType.BODY)]
            pose = max(pose, np.abs(ours.rot[i] - theirs.rotation).max())
            pose = max(pose, np.abs(ours.p[i] - theirs.translation).max())
        if mech.total_mass > 0:
            theirs_com = pin.centerOfMass(model, data, q_pin)
            com = max(com, float(np.abs(mech.center_of_mass(q) - theirs_com).max()))
    mass = abs(float(mech.total_mass) - pin.computeTotalMass(model))
    return Agreement((dof, model.nv), mass, com, float(pose), len(links))


def _converted(hinge: Hinge, q: Array, nq: int) -> Array:
    if isinstance(hinge, Pin) and nq == 2:
        return np.array([np.cos(q[0]), np.sin(q[0])])
    if isinstance(hinge, Pin | Prismatic):
        return q
    if isinstance(hinge, Planar):
        return np.array([q[0], q[1], np.cos(q[2]), np.sin(q[2])])
    if isinstance(hinge, Spherical):
        return np.roll(q, -1)
    if isinstance(hinge, Free):
        return np.concatenate([q[4:], np.roll(q[:4], -1)])
    raise TypeError(f"no layout for a {hinge.kind} hinge")
