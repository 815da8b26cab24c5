"""One state of a mechanism here, in Pinocchio and in MuJoCo: robots, and random trees."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.io.mjcf import write_mjcf
from linkwise.io.report import Reporter
from linkwise.spatial.array import Array
from tests.cases import state
from tests.dynamics.test_oracles import MJCF, ROBOTS, robot
from tests.oracles.mujoco_oracle import parse_model
from tests.oracles.pinocchio_oracle import SWAPPED
from tests.oracles.pinocchio_tree import HINGES, model_of, seated

TREES = {
    "every hinge that both have": (len(HINGES), 21, {}),
    "floating": (5, 22, {"floating": True}),
    "branched pins": (6, 23, {"hinges": ("pin",), "branching": 0.8}),
}
"""Random trees, with armature, of hinges that Pinocchio has."""

PINOCCHIO = (*TREES, *ROBOTS)

JOINTS = ("pin", "prismatic", "spherical")
"""Hinges that are one joint of a body in MuJoCo."""

MUJOCO = ("robot", "tree", "floating tree")


@dataclass
class InPinocchio:
    """A mechanism here and in Pinocchio, in one state; `T` takes velocities there."""

    mech: lw.Mechanism
    model: Any
    q: Array
    v: Array
    x: Array

    def __post_init__(self) -> None:
        layout = lw.convert.pinocchio_layout(self.mech, self.model)
        self.layout = layout
        self.T = np.stack([layout.v_to(self.q, e) for e in np.eye(self.mech.nv)], axis=-1)
        assert np.array_equal(np.abs(self.T).sum(axis=0), np.ones(self.mech.nv))
        self.model.armature[:] = np.abs(self.T) @ self.mech.armature
        self.model.gravity.linear = np.array(self.mech.gravity)
        self.data = self.model.createData()
        self.q_pin, self.v_pin = layout.q_to(self.q), layout.v_to(self.q, self.v)

    def accelerated(self, vdot: Array) -> Array:
        """Joint accelerations there; both have velocities of a free base in its own axes."""
        return self.T @ vdot

    def placed(self, name: str) -> Any:
        """From the frame of a body here to the frame of its joint there."""
        import pinocchio as pin

        outboard = self.mech.body(name).outboard
        return pin.SE3(np.array(outboard.rot), np.array(outboard.p))

    def joint(self, name: str) -> int:
        """The joint that carries a body."""
        return self.model.getJointId(self.mech.body(name).hinge_name)


@cache
def in_pinocchio(name: str) -> InPinocchio:
    """By a name of `PINOCCHIO`."""
    pytest.importorskip("pinocchio")
    if name in ROBOTS:
        it = robot(name)
        model = it.model.copy()  # the robot belongs to other tests too
        return InPinocchio(it.mech.with_gravity((0.4, 1.0, -9.0)), model, it.q, it.v, it.x)
    n, seed, options = TREES[name]
    return tree_in_pinocchio(n, seed, **options)


def tree_in_pinocchio(n: int, seed: int, **options: Any) -> InPinocchio:
    """A random tree of hinges that Pinocchio has, with armature and a tool."""
    import pinocchio as pin

    mech = seated(lw.models.random_tree(n, seed, **{"hinges": HINGES, **options}))
    mech = mech.with_gravity((0.3, -9.0, 2.0))
    mech = mech.with_node("tool", mech.bodies[-1].name, lw.Pose.rpy((0.3, 0.5, -1), (0.1, 0.2, 0)))
    model = model_of(mech)
    for k, body in enumerate(mech.bodies):
        ours, place = mech.inertias[k], pin.SE3(np.array(body.outboard.rot), body.outboard.p)
        com = np.asarray(ours.h) / float(ours.mass)
        about = np.asarray(ours.J) - float(ours.mass) * (com @ com * np.eye(3) - np.outer(com, com))
        inertia = pin.Inertia(float(ours.mass), com, about)
        model.appendBodyToJoint(model.getJointId(body.hinge_name), inertia, place)
    return InPinocchio(mech, model, *state(mech))


def spatial_force(six: Array) -> Array:
    """(linear, angular) as (angular, linear), and back."""
    return np.asarray(six)[..., SWAPPED]


@dataclass
class InMujoco:
    """A mechanism here and in MuJoCo, in one state, driven by joint forces."""

    mech: lw.Mechanism
    model: Any
    site: str
    q: Array
    v: Array
    tau: Array

    def __post_init__(self) -> None:
        import mujoco

        layout = lw.convert.mujoco_layout(self.mech, self.model)
        self.layout, self.data = layout, mujoco.MjData(self.model)
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
        self.T = np.stack([layout.v_to(self.q, e) for e in np.eye(self.mech.nv)], axis=-1)
        self.data.qpos[:], self.data.qvel[:] = layout.q_to(self.q), layout.v_to(self.q, self.v)
        self.data.qfrc_applied[:] = layout.force_to(self.q, self.tau)
        mujoco.mj_forward(self.model, self.data)
        mujoco.mj_rnePostConstraint(self.model, self.data)

    def accelerated(self, vdot: Array) -> Array:
        """qacc of joint accelerations: the linear part of a free joint is in world axes there."""
        there = self.T @ vdot
        for body in self.mech.bodies:
            if isinstance(body.hinge, lw.hinges.Free):
                ours = self.v[self.mech.v_slice(body.hinge_name)]
                turned = self.mech.pose(self.q, body.name).rot @ np.cross(ours[:3], ours[3:])
                first = self.model.jnt_dofadr[self.model.joint(body.hinge_name).id]
                there[first : first + 3] += turned
        return there


@cache
def in_mujoco(source: str) -> InMujoco:
    """By a name of `MUJOCO`."""
    pytest.importorskip("mujoco")
    text, site = MJCF, "foot"
    if source != "robot":
        options = {"floating": "floating" in source, "branching": 0.5}
        mech = lw.models.random_tree(5, 31, hinges=JOINTS, drives=False, **options)
        place = lw.Pose.rpy((0.3, 0.5, -1), (0.1, 0.2, 0))
        mech = mech.with_node("tool", mech.bodies[-1].name, place)
        text, site = write_mjcf(mech, Reporter("tree")), "tool"
    mech = _loaded(text)
    return InMujoco(mech, parse_model(text), site, *state(mech, 4))


def _loaded(text: str) -> lw.Mechanism:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.xml"
        path.write_text(text, encoding="utf-8")
        return lw.load(path)
