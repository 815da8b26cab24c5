"""Poses, Jacobians in every frame, their rates, forces at nodes: against Pinocchio and MuJoCo."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.io.mjcf import write_mjcf
from linkwise.io.report import Reporter
from linkwise.spatial.array import Array
from tests.cases import close, state
from tests.dynamics.test_oracles import MJCF, ROBOTS, ROTATED, robot
from tests.oracles.pinocchio_tree import HINGES, model_of

pytestmark = pytest.mark.oracle
pin = pytest.importorskip("pinocchio")

TREES = {
    "every hinge that both have": (len(HINGES), 21, {}),
    "again, floating": (6, 22, {"floating": True}),
    "branched pins": (6, 23, {"hinges": ("pin",), "branching": 0.8}),
}
VIEWS = {
    pin.ReferenceFrame.LOCAL: ("node", None),
    pin.ReferenceFrame.LOCAL_WORLD_ALIGNED: ("world", None),
    pin.ReferenceFrame.WORLD: ("world", "world"),
}


@dataclass
class Both:
    """A mechanism here and in Pinocchio, in one state; `T` takes velocities there."""

    mech: lw.Mechanism
    model: Any
    q: Array
    v: Array
    nodes: list[str]

    def __post_init__(self) -> None:
        layout = lw.convert.pinocchio_layout(self.mech, self.model)
        self.data = self.model.createData()
        self.q_pin, self.v_pin = layout.q_to(self.q), layout.v_to(self.q, self.v)
        self.T = np.stack([layout.v_to(self.q, e) for e in np.eye(self.mech.nv)], axis=-1)
        still = np.zeros(self.model.nv)
        pin.forwardKinematics(self.model, self.data, self.q_pin, self.v_pin, still)
        pin.updateFramePlacements(self.model, self.data)
        pin.computeJointJacobiansTimeVariation(self.model, self.data, self.q_pin, self.v_pin)

    @property
    def constant(self) -> list[int]:
        """Joints whose hinge map is constant: of others Pinocchio's J̇ lacks the rate of it.

        The first turn of a gimbal on the ground shows it: its axis stands still in the world, but
        their column changes. Their accelerations are complete.
        """
        kept = (
            b
            for b in self.mech.bodies
            if not isinstance(b.hinge, lw.hinges.Gimbal | lw.hinges.Universal)
        )
        return [i for b in kept for i in range(self.mech.nv)[self.mech.v_slice(b.hinge_name)]]

    def frame(self, name: str) -> int:
        if self.model.existBodyName(name):
            return self.model.getFrameId(name, pin.FrameType.BODY)
        return self.model.getFrameId(name)


@cache
def both(name: str) -> Both:
    if name in ROBOTS:
        it = robot(name)
        names = [it.mech.bodies[-1].name, it.mech.bodies[it.mech.n_bodies // 2].name]
        return Both(it.mech, it.model, it.q, it.v, names)
    n, seed, options = TREES[name]
    mech = lw.models.random_tree(n, seed, **{"hinges": HINGES, **options})
    mech = mech.with_node("tool", mech.bodies[-1].name, lw.Pose.rpy((0.3, 0.5, -1), (0.1, 0.2, 0)))
    q, v, _ = state(mech)
    return Both(mech, model_of(mech), q, v, ["tool", mech.bodies[n // 2].name])


@pytest.fixture(params=[*TREES, *ROBOTS])
def it(request) -> Both:
    return both(request.param)


def stacked(rows: list[Array]) -> Array:
    return np.concatenate([np.asarray(row)[ROTATED] for row in rows])


def test_poses(it):
    for name in it.nodes:
        theirs = it.data.oMf[it.frame(name)]
        close(lw.forward_kinematics(it.mech, it.q, name).matrix, theirs.homogeneous, 1e-12)
    first, second = (it.data.oMf[it.frame(name)] for name in it.nodes)
    result = lw.dynamics.relative_pose(it.mech, it.q, it.nodes[1], it.nodes[0])
    close(result.matrix, first.actInv(second).homogeneous, 1e-12)


@pytest.mark.few(1)
def test_jacobians_velocities_and_rates(it):
    ids = [it.frame(name) for name in it.nodes]
    for axes, (frame, about) in VIEWS.items():
        view = {"frame": frame, "about": about}
        theirs = [pin.getFrameJacobian(it.model, it.data, i, axes) for i in ids]
        close(lw.jacobian(it.mech, it.q, it.nodes, **view), stacked(theirs) @ it.T, 1e-11)
        theirs = [pin.getFrameVelocity(it.model, it.data, i, axes).vector for i in ids]
        close(lw.node_velocity(it.mech, it.q, it.v, it.nodes, **view), stacked(theirs), 1e-11)
        if axes != pin.ReferenceFrame.LOCAL:  # theirs is not the rate of the LOCAL components
            rates = [pin.getFrameJacobianTimeVariation(it.model, it.data, i, axes) for i in ids]
            J_dot = lw.jacobian_dot(it.mech, it.q, it.v, it.nodes, **view)
            close(J_dot[:, it.constant], (stacked(rates) @ it.T)[:, it.constant], 1e-10)
        if axes == pin.ReferenceFrame.LOCAL_WORLD_ALIGNED:
            theirs = [pin.getFrameClassicalAcceleration(it.model, it.data, i, axes) for i in ids]
        else:
            theirs = [pin.getFrameAcceleration(it.model, it.data, i, axes) for i in ids]
        result = lw.dynamics.jacobian_bias(it.mech, it.q, it.v, it.nodes, **view)
        close(result, stacked([motion.vector for motion in theirs]), 1e-10)


def test_velocities_of_all_bodies(it):
    names = [body.name for body in it.mech.bodies]
    for axes, frame in (
        (pin.ReferenceFrame.LOCAL, "body"),
        (pin.ReferenceFrame.LOCAL_WORLD_ALIGNED, "world"),
        (pin.ReferenceFrame.WORLD, "inertial"),
    ):
        theirs = [pin.getFrameVelocity(it.model, it.data, it.frame(n), axes).vector for n in names]
        result = lw.dynamics.body_velocities(it.mech, it.q, it.v, frame=frame)
        close(result, np.stack(theirs)[:, ROTATED], 1e-11)


def test_forces_at_nodes(it):
    f = np.random.default_rng(1).standard_normal((2, 6))
    for axes, (frame, about) in VIEWS.items():
        theirs = sum(
            pin.getFrameJacobian(it.model, it.data, it.frame(name), axes)[ROTATED].T @ x
            for name, x in zip(it.nodes, f, strict=True)
        )
        forces = dict(zip(it.nodes, f, strict=True))
        result = lw.dynamics.equivalent_force(it.mech, it.q, forces, frame=frame, about=about)
        close(result, it.T.T @ theirs, 1e-11)


# ------------------------------------------------------------------------------------ MuJoCo

WRITTEN = ("pin", "prismatic", "spherical", "cylindrical", "universal", "gimbal", "translation")


def random_mjcf(seed: int, **options: Any) -> str:
    """A random tree with a site at its tip; hinges that MJCF has not become rows of joints."""
    mech = lw.models.random_tree(6, seed, hinges=WRITTEN, drives=False, **options)
    place = lw.Pose.rpy((0.3, 0.5, -1), (0.1, 0.2, 0))
    return write_mjcf(mech.with_node("tool", mech.bodies[-1].name, place), Reporter("tree"))


@pytest.mark.parametrize("source", ["robot", "tree", "floating tree"])
def test_mujoco(source, tmp_path):
    mujoco = pytest.importorskip("mujoco")
    text, site = MJCF, "foot"
    if source != "robot":
        text, site = random_mjcf(31, floating="floating" in source), "tool"
    path = tmp_path / "robot.xml"
    path.write_text(text, encoding="utf-8")
    mech, model = lw.load(path), mujoco.MjModel.from_xml_string(text)
    data, layout = mujoco.MjData(model), lw.convert.mujoco_layout(mech, model)
    q, v, _ = state(mech, 4)
    data.qpos[:], data.qvel[:] = layout.q_to(q), layout.v_to(q, v)
    mujoco.mj_forward(model, data)
    T = np.stack([layout.v_to(q, e) for e in np.eye(mech.nv)], axis=-1)
    number = model.site(site).id
    jac, rate = np.zeros((2, 3, model.nv)), np.zeros((2, 3, model.nv))
    mujoco.mj_jacSite(model, data, jac[1], jac[0], number)
    body = model.site_bodyid[number]
    mujoco.mj_jacDot(model, data, rate[1], rate[0], data.site_xpos[number], body)
    J, J_dot = jac.reshape(6, -1), rate.reshape(6, -1)
    close(lw.jacobian(mech, q, site, frame="world"), J @ T, 1e-11)
    close(lw.node_velocity(mech, q, v, site, frame="world"), J @ data.qvel, 1e-11)
    # v_mujoco = T(q) v, so that d/dt (J_mujoco T) = J̇_mujoco T + J_mujoco Ṫ.
    step = 1e-5
    ahead, behind = (
        np.stack([layout.v_to(mech.integrate(q, s * v, 1.0), e) for e in np.eye(mech.nv)], axis=-1)
        for s in (step, -step)
    )
    T_dot = (ahead - behind) / (2.0 * step)
    moving = np.abs(T_dot).max() > 0.0  # differences: good to 1e-9 only
    result = lw.jacobian_dot(mech, q, v, site, frame="world")
    close(result, J_dot @ T + J @ T_dot, 1e-8 if moving else 1e-10)
    result = lw.dynamics.jacobian_bias(mech, q, v, site, frame="world")
    close(result, J_dot @ data.qvel + J @ T_dot @ v, 1e-8 if moving else 1e-10)
    f = np.array([0.3, -0.2, 0.1, 4.0, 5.0, -6.0])
    pushed = np.zeros(model.nv)
    mujoco.mj_applyFT(model, data, f[3:], f[:3], data.site_xpos[number], body, pushed)
    ours = lw.dynamics.equivalent_force(mech, q, {site: f}, frame="world")
    close(ours, T.T @ pushed, 1e-11)
    for k in range(1, model.nbody):
        name = model.body(k).name
        if name in mech.body_index:
            close(lw.forward_kinematics(mech, q)[mech.body_index[name]].p, data.xpos[k], 1e-11, 1.0)
