"""Layouts of other libraries, checked by what those libraries themselves compute with them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import linkwise as lw
from linkwise.convert import libraries
from linkwise.convert.layout import LINEAR_FIRST, Foreign, matched
from linkwise.convert.libraries import _drake_rule as drake_rule
from linkwise.errors import FrameError, ShapeError
from linkwise.model.state import couple
from tests.dense_kinematics import node_jacobian
from tests.dynamics.oracle_state import MUJOCO, in_mujoco, in_pinocchio

URDF = """<robot name="rover">
  <link name="hull"><inertial><mass value="3"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="turret"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="barrel"><inertial><origin xyz="0.3 0 0"/><mass value="1"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="muzzle"><inertial><origin xyz="0.1 0 0"/><mass value="0.5"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="yaw" type="continuous"><parent link="hull"/><child link="turret"/>
    <origin xyz="0 0 0.3" rpy="0.1 0.2 0.3"/><axis xyz="0 0 1"/></joint>
  <joint name="lift" type="revolute"><parent link="turret"/><child link="barrel"/>
    <origin xyz="0.2 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <joint name="recoil" type="prismatic"><parent link="barrel"/><child link="muzzle"/>
    <origin xyz="0.5 0 0"/><axis xyz="1 0 0"/>
    <limit lower="-0.1" upper="0.1" effort="1" velocity="1"/></joint>
</robot>"""

PLANAR = """<robot name="puck">
  <link name="table"/>
  <link name="disc"><inertial><mass value="1"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="slide" type="planar"><parent link="table"/><child link="disc"/>
    <axis xyz="0 0 1"/></joint>
</robot>"""

MJCF = """<mujoco><worldbody>
  <body name="hull" pos="1 2 3"><freejoint name="base"/><geom type="box" size="1 2 3"/>
    <body name="head" pos="0 0 1"><joint name="neck" type="ball"/><geom size="0.3"/>
      <body name="jaw" pos="0.2 0 0"><joint type="hinge" axis="0 1 0"/><geom size="0.1"/>
        <body name="tongue" pos="0.1 0 0">
          <joint name="out" type="slide" axis="1 0 0"/><geom size="0.05"/>
        </body></body></body></body>
</worldbody></mujoco>"""


def saved(tmp_path, text, name):
    path = tmp_path / name
    path.write_text(text)
    return path


def states(mech, count=5):
    for seed in range(count):
        yield mech.random(seed), mech.random_velocity(seed + 100), mech.random_velocity(seed + 200)


def check_rates(layout, mech, q, v, vdot):
    """Accelerations are the rates of velocities, by central differences; and they come back.

    With steps of 1e-5 these are right to 1e-10 times a few times |v|³, and rounding to 1e-10.
    """
    h = 1e-5
    after = layout.v_to(mech.integrate(q, v, h), v + h * vdot)
    before = layout.v_to(mech.integrate(q, v, -h), v - h * vdot)
    there = layout.vdot_to(q, v, vdot)
    np.testing.assert_allclose(there, (after - before) / (2 * h), atol=3e-8)
    np.testing.assert_allclose(layout.vdot_from(q, v, there), vdot, atol=1e-13)
    many = layout.vdot_to(q, np.stack([v, 2 * v]), vdot)
    np.testing.assert_array_equal(many[0], there)
    np.testing.assert_array_equal(many[1], layout.vdot_to(q, 2 * v, vdot))
    np.testing.assert_array_equal(
        layout.vdot_from(q, np.stack([v, v]), there)[1], layout.vdot_from(q, v, there)
    )


def check_round_trips(layout, mech):
    for q, v, tau in states(mech):
        back = layout.q_from(layout.q_to(q))
        np.testing.assert_allclose(mech.poses(back).matrix, mech.poses(q).matrix, atol=1e-13)
        np.testing.assert_allclose(layout.v_from(q, layout.v_to(q, v)), v, atol=1e-14)
        np.testing.assert_allclose(layout.force_from(q, layout.force_to(q, tau)), tau, atol=1e-14)
        check_rates(layout, mech, q, v, tau)
        power = layout.v_to(q, v) @ layout.force_to(q, tau)
        np.testing.assert_allclose(power, v @ tau, atol=1e-12)
    V = np.arange(12.0).reshape(2, 6)
    np.testing.assert_array_equal(layout.spatial_velocity_from(layout.spatial_velocity_to(V)), V)
    np.testing.assert_array_equal(layout.spatial_force_from(layout.spatial_force_to(V)), V)
    stacked = np.array([q for q, _, _ in states(mech, 3)])
    np.testing.assert_array_equal(layout.q_to(stacked)[1], layout.q_to(stacked[1]))


def check_reduced(layout, mech):
    """A follower that the other side has not: its velocity follows, its force is not lost."""
    for q, v, tau in states(mech):
        v[mech.v_slice("recoil")] = 0.1 * v[mech.v_slice("lift")]
        v_there = layout.v_to(q, v)
        np.testing.assert_allclose(layout.v_from(q, v_there), v, atol=1e-14)
        np.testing.assert_allclose(v_there @ layout.force_to(q, tau), v @ tau, atol=1e-12)
        vdot = mech.random_velocity(7)
        vdot[mech.v_slice("recoil")] = 0.1 * vdot[mech.v_slice("lift")]
        there = layout.vdot_to(q, v, vdot)
        np.testing.assert_allclose(layout.vdot_from(q, v, there), vdot, atol=1e-13)
        tau_there = layout.force_to(q, tau)
        power = v @ layout.force_from(q, tau_there)
        np.testing.assert_allclose(power, v_there @ tau_there, atol=1e-12)
        stack = layout.force_to(q, np.stack([tau, 2 * tau]))
        np.testing.assert_allclose(stack[1], 2 * tau_there, atol=1e-12)


@pytest.mark.oracle
@pytest.mark.parametrize("mimic", [False, True])
def test_pinocchio(tmp_path, mimic):
    pin = pytest.importorskip("pinocchio")
    text = URDF
    if mimic:
        text = URDF.replace(
            '<axis xyz="1 0 0"/>',
            '<axis xyz="1 0 0"/><mimic joint="lift" multiplier="0.1" offset="0.02"/>',
        )
    mech = lw.load(saved(tmp_path, text, "rover.urdf"), base="free")
    model = pin.buildModelFromXML(text, pin.JointModelFreeFlyer(), mimic=mimic)
    data, layout = model.createData(), lw.convert.pinocchio_layout(mech, model)
    if not mimic:
        check_round_trips(layout, mech)
    else:
        check_reduced(layout, mech)
    assert model.nv == layout.nv == (8 if mimic else 9)
    for q, v, _ in states(mech):
        if mimic:  # the follower's velocity follows as well
            v[mech.v_slice("recoil")] = 0.1 * v[mech.v_slice("lift")]
        pin.forwardKinematics(model, data, layout.q_to(q), layout.v_to(q, v))
        joint = model.getJointId("recoil")
        here, there = mech.pose(q, "muzzle"), data.oMi[joint]
        np.testing.assert_allclose(here.matrix, there.homogeneous, atol=1e-13)
        V = node_jacobian(mech, q, "muzzle") @ v
        np.testing.assert_allclose(layout.spatial_velocity_to(V), data.v[joint].vector, atol=1e-13)
        np.testing.assert_allclose(
            mech.poses(layout.q_from(layout.q_to(q))).matrix, mech.poses(q).matrix, atol=1e-13
        )


@pytest.mark.oracle
def test_pinocchio_planar(tmp_path):
    pin = pytest.importorskip("pinocchio")
    mech = lw.load(saved(tmp_path, PLANAR, "puck.urdf"))
    model = pin.buildModelFromXML(PLANAR)
    data, layout = model.createData(), lw.convert.pinocchio_layout(mech, model)
    check_round_trips(layout, mech)
    for q, v, _ in states(mech):
        pin.forwardKinematics(model, data, layout.q_to(q), layout.v_to(q, v))
        np.testing.assert_allclose(mech.pose(q, "disc").matrix, data.oMi[1].homogeneous, atol=1e-14)
        V = node_jacobian(mech, q, "disc") @ v
        np.testing.assert_allclose(layout.spatial_velocity_to(V), data.v[1].vector, atol=1e-14)


@pytest.mark.oracle
def test_mujoco(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    path = saved(tmp_path, MJCF, "head.xml")
    mech, model = lw.load(path), mujoco.MjModel.from_xml_path(str(path))
    data, layout = mujoco.MjData(model), lw.convert.mujoco_layout(mech, model)
    check_round_trips(layout, mech)
    tip = model.body("tongue").id
    for q, v, _ in states(mech):
        data.qpos, data.qvel = layout.q_to(q), layout.v_to(q, v)
        mujoco.mj_forward(model, data)
        here = mech.pose(q, "tongue")
        np.testing.assert_allclose(here.p, data.xpos[tip], atol=1e-13)
        np.testing.assert_allclose(here.rot.ravel(), data.xmat[tip], atol=1e-13)
        V = np.zeros(6)  # in the body's own axes, at its frame
        kind = mujoco.mjtObj.mjOBJ_XBODY
        mujoco.mj_objectVelocity(model, data, kind, tip, V, 1)
        expected = node_jacobian(mech, q, "tongue") @ v
        np.testing.assert_allclose(layout.spatial_velocity_from(V), expected, atol=1e-12)


def in_drake(tmp_path, text):
    """A robot in Drake and here."""
    plant_module = pytest.importorskip("pydrake.multibody.plant")
    parsing = pytest.importorskip("pydrake.multibody.parsing")
    path = saved(tmp_path, text, "robot.urdf")
    plant = plant_module.MultibodyPlant(0.0)
    (instance,) = parsing.Parser(plant).AddModels(str(path))
    if text is PLANAR:
        plant.WeldFrames(plant.world_frame(), plant.GetFrameByName("table", instance))
    plant.Finalize()
    return plant, lw.load(path, base="fixed" if text is PLANAR else "free")


@pytest.mark.oracle
@pytest.mark.parametrize(("text", "tip"), [(URDF, "muzzle"), (PLANAR, "disc")])
def test_drake(tmp_path, text, tip):
    plant, mech = in_drake(tmp_path, text)
    context, layout = plant.CreateDefaultContext(), lw.convert.drake_layout(mech, plant)
    check_round_trips(layout, mech)
    body = plant.GetBodyByName(tip)
    for q, v, _ in states(mech):
        plant.SetPositions(context, layout.q_to(q))
        plant.SetVelocities(context, layout.v_to(q, v))
        here = mech.pose(q, tip)
        there = plant.EvalBodyPoseInWorld(context, body).GetAsMatrix4()
        np.testing.assert_allclose(here.matrix, there, atol=1e-13)
        V = node_jacobian(mech, q, tip) @ v
        world = np.concatenate([here.rot @ V[:3], here.rot @ V[3:]])
        velocity = plant.EvalBodySpatialVelocityInWorld(context, body)
        result = np.concatenate([velocity.rotational(), velocity.translational()])
        np.testing.assert_allclose(layout.spatial_velocity_from(result), world, atol=1e-13)


@pytest.mark.oracle
def test_drake_ball_joint():
    plant_module = pytest.importorskip("pydrake.multibody.plant")
    tree = pytest.importorskip("pydrake.multibody.tree")
    plant = plant_module.MultibodyPlant(0.0)
    inertia = tree.SpatialInertia.SolidSphereWithMass(1.0, 0.1)
    body = plant.AddRigidBody("eye", inertia)
    plant.AddJoint(tree.BallRpyJoint("socket", plant.world_frame(), body.body_frame()))
    plant.Finalize()
    b = lw.Builder("eye").body("eye", "world", lw.hinges.Spherical(), hinge_name="socket")
    mech = b.build()
    context, layout = plant.CreateDefaultContext(), lw.convert.drake_layout(mech, plant)
    check_round_trips(layout, mech)
    for q, v, _ in states(mech):
        plant.SetPositions(context, layout.q_to(q))
        plant.SetVelocities(context, layout.v_to(q, v))
        here = mech.pose(q, "eye")
        there = plant.EvalBodyPoseInWorld(context, body).GetAsMatrix4()
        np.testing.assert_allclose(here.matrix, there, atol=1e-13)
        spin = plant.EvalBodySpatialVelocityInWorld(context, body).rotational()
        np.testing.assert_allclose(here.rot @ v, spin, atol=1e-13)


# -------------------------------------------------------------------- accelerations


@pytest.mark.oracle
@pytest.mark.parametrize("name", MUJOCO)
def test_accelerations_of_mujoco(name):
    it = in_mujoco(name)
    ours = lw.forward_dynamics(it.mech, it.q, it.v, it.tau)
    theirs = np.array(it.data.qacc)
    size = np.abs(theirs).max()
    np.testing.assert_allclose(it.layout.vdot_to(it.q, it.v, ours), theirs, atol=1e-10 * size)
    np.testing.assert_allclose(it.layout.vdot_from(it.q, it.v, theirs), ours, atol=1e-10 * size)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["floating", "every hinge that both have", "solo12.urdf"])
def test_accelerations_of_pinocchio(name):
    pin = pytest.importorskip("pinocchio")
    it = in_pinocchio(name)
    ours = lw.forward_dynamics(it.mech, it.q, it.v, it.x)
    theirs = pin.aba(it.model, it.data, it.q_pin, it.v_pin, it.layout.force_to(it.q, it.x))
    size = np.abs(theirs).max()
    np.testing.assert_allclose(it.layout.vdot_to(it.q, it.v, ours), theirs, atol=1e-10 * size)
    np.testing.assert_allclose(it.layout.vdot_from(it.q, it.v, theirs), ours, atol=1e-10 * size)


@pytest.mark.oracle
@pytest.mark.parametrize("text", [URDF, PLANAR], ids=["floating", "planar"])
def test_accelerations_of_drake(tmp_path, text):
    plant, mech = in_drake(tmp_path, text)
    context, layout = plant.CreateDefaultContext(), lw.convert.drake_layout(mech, plant)
    for q, v, tau in states(mech, 3):
        plant.SetPositions(context, layout.q_to(q))
        plant.SetVelocities(context, layout.v_to(q, v))
        port = plant.get_applied_generalized_force_input_port()
        port.FixValue(context, layout.force_to(q, tau))
        theirs = plant.EvalTimeDerivatives(context).CopyToVector()[plant.num_positions() :]
        ours = lw.forward_dynamics(mech, q, v, tau)
        size = np.abs(theirs).max()
        np.testing.assert_allclose(layout.vdot_to(q, v, ours), theirs, atol=1e-10 * size)
        np.testing.assert_allclose(layout.vdot_from(q, v, theirs), ours, atol=1e-10 * size)


def test_accelerations_of_a_follower_that_the_other_side_lacks():
    b = lw.Builder("cam").body("shin", "world", lw.hinges.Pin(), hinge_name="knee")
    b.body("tappet", "shin", lw.hinges.Prismatic(), hinge_name="lift")
    b.couple("cam", "lift", {"knee": (0.5, -0.3, 0.2)}, offset=0.1)
    mech = b.build()
    layout = lw.convert.pinocchio_layout(mech, FakeModel())
    q, knee = mech.couple(np.array([0.7, 0.0])), mech.v_slice("knee")
    v = layout.v_from(q, np.array([1.3]))
    vdot = layout.vdot_from(q, v, np.array([-0.4]))
    assert vdot[knee] == -0.4
    x = 0.7  # the second derivative in time of 0.5 x - 0.3 x² + 0.2 x³
    slope, curvature = 0.5 - 0.6 * x + 0.6 * x**2, -0.6 + 1.2 * x
    np.testing.assert_allclose(vdot[mech.v_slice("lift")], slope * -0.4 + curvature * 1.3**2)


class FakeJoint:
    """Enough of a Pinocchio joint for the layout to ask."""

    nq, nv, idx_q, idx_v = 1, 1, 0, 0

    def shortname(self):
        return "JointModelRZ"


class FakeModel:
    names, joints, nq, nv = ["universe", "knee"], [None, FakeJoint()], 1, 1


def test_models_that_do_not_match_are_told_apart_by_name():
    mech = lw.models.pendulum(2)
    with pytest.raises(FrameError, match=r"only in Linkwise: .*; only in Pinocchio: knee"):
        lw.convert.pinocchio_layout(mech, FakeModel())


def test_shapes_are_checked():
    b = lw.Builder("one").body("shin", "world", lw.hinges.Pin(), hinge_name="knee")
    layout = lw.convert.pinocchio_layout(b.build(), FakeModel())
    with pytest.raises(ShapeError, match="q in Pinocchio's layout has shape"):
        layout.q_from(np.zeros(3))
    with pytest.raises(ShapeError, match="spatial force"):
        layout.spatial_force_to(np.zeros(5))
    assert "knee" in str(layout)
    free = lw.Builder("one").body("shin", "world", lw.hinges.Free(), hinge_name="knee").build()
    with pytest.raises(FrameError, match="'knee' is a free hinge here"):
        lw.convert.pinocchio_layout(free, FakeModel())


# ------------------------------------------------------------------- followers, here and there

KINDS = ("pin", "prismatic", "spherical", "planar", "free", "translation")
WIDTHS = {  # coordinates of each kind over there
    "Pinocchio": {
        "pin": 2,
        "prismatic": 1,
        "spherical": 4,
        "planar": 4,
        "free": 7,
        "translation": 3,
    },
    "MuJoCo": {"pin": 1, "prismatic": 1, "spherical": 4, "free": 7},
    "Drake": {"pin": 1, "prismatic": 1, "spherical": 3, "planar": 3, "free": 7},
}
RULES = {
    "Pinocchio": libraries._pinocchio_rule,
    "MuJoCo": libraries._mujoco_rule,
    "Drake": libraries._drake_rule,
}
MUJOCO_KINDS = {"spherical": "ball", "free": "free"}


def coupled_tree(seed, library):
    """A random tree whose last sliders and pins follow the first, one through another."""
    kinds = [kind for kind in KINDS if kind in WIDTHS[library]]
    mech = lw.models.random_tree(12, seed, hinges=kinds, floating=True)
    hinges = [x.hinge_name for x in mech.bodies if x.hinge.kind in ("pin", "prismatic")]
    leader, second, third = hinges[:3]
    couplings = (
        lw.Coupling("first", second, ((leader, (0.7, -0.2)),), 0.1),
        lw.Coupling("second", third, ((second, (-1.3,)), (leader, (0.4,))), -0.2),
    )
    return dataclasses.replace(mech, couplings=couplings), (leader, second, third)


def layout_of(library, mech, missing):
    """The layout of a model over there that lacks some hinges, in another order."""
    joints, nq, nv = [], 0, 0
    for body in reversed(mech.bodies):
        kind, name = body.hinge.kind, body.hinge_name
        if name in missing:
            continue
        width = WIDTHS[library][kind]
        joints.append(Foreign(name, MUJOCO_KINDS.get(kind, kind), nq, width, nv, body.hinge.nv))
        nq, nv = nq + width, nv + body.hinge.nv
    orders = (LINEAR_FIRST, LINEAR_FIRST)
    return matched(library, mech, joints, RULES[library], aliases={}, size=(nq, nv), orders=orders)


@pytest.mark.parametrize("library", RULES)
@pytest.mark.parametrize("seed", range(3))
def test_coordinates_that_the_other_side_has_are_kept(library, seed):
    mech, hinges = coupled_tree(seed, library)
    for lacks in ((), hinges[2:], hinges[1:2], hinges[1:]):
        layout = layout_of(library, mech, lacks)
        q, v, tau = next(states(mech, 1))
        for k in (1, 2):  # off their couplings, as far as the other side can hold that
            q[mech.q_slice(hinges[k])] += 0.05 * k
        followed = couple(mech, q, layout.reduced)
        assert (np.abs(followed - mech.couple(followed)).max() > 1e-3) == (len(lacks) < 2)
        v = layout.v_from(followed, layout.v_to(followed, layout._v_followed(followed, v)))
        back = layout.q_from(layout.q_to(followed))
        assert np.abs(back[mech.q_slice(hinges[1])]).max() > 1e-3
        np.testing.assert_allclose(mech.difference(followed, back), np.zeros(mech.nv), atol=1e-13)
        np.testing.assert_allclose(layout.v_from(followed, layout.v_to(followed, v)), v, atol=1e-13)
        vdot = layout._vdot_followed(followed, v, tau)
        there = layout.vdot_to(followed, v, vdot)
        np.testing.assert_allclose(layout.vdot_from(followed, v, there), vdot, atol=1e-12)
        power = layout.v_to(followed, v) @ layout.force_to(followed, tau)
        np.testing.assert_allclose(power, v @ tau, rtol=1e-11)


def test_fingers_apart_stay_apart():
    b = lw.Builder("hand").body("left", "world", lw.hinges.Prismatic(), hinge_name="left")
    b.body("right", "world", lw.hinges.Prismatic(), hinge_name="right")
    mech = b.couple("mimic", "right", {"left": 1.0}).build()
    joints = [Foreign("left", "slide", 0, 1, 0, 1), Foreign("right", "slide", 1, 1, 1, 1)]
    layout = matched(
        "MuJoCo", mech, joints, libraries._mujoco_rule, aliases={}, size=(2, 2),
        orders=(LINEAR_FIRST, LINEAR_FIRST),
    )  # fmt: skip
    np.testing.assert_array_equal(layout.q_from([0.01, 0.03]), [0.01, 0.03])


def test_what_the_other_side_cannot_hold_is_an_error():
    mech, hinges = coupled_tree(0, "Drake")
    layout, q, v = layout_of("Drake", mech, hinges[1:2]), mech.random(1), mech.random_velocity(2)
    layout.q_to(q)
    with pytest.raises(FrameError, match=r"v of '.*' is .* but its coupling 'first' says"):
        layout.v_to(q, v)
    with pytest.raises(FrameError, match="vdot of"):
        layout.vdot_to(q, layout._v_followed(q, v), v)
    q[mech.q_slice(hinges[1])] += 0.1
    with pytest.raises(FrameError, match=r"Use mech.couple\(q\)"):
        layout.q_to(q)
    with pytest.raises(ShapeError, match="is not finite"):
        layout.q_from(np.full(layout.nq, np.nan))


def test_joints_of_drake_that_turn_otherwise_are_not_converted():
    """A floating base by roll, pitch and yaw has six coordinates: no rule has it, and none fits."""
    for kind, nq, fits in (("free", 7, True), ("free", 6, False), ("spherical", 3, True)):
        assert (drake_rule(kind, Foreign("base", kind, 0, nq, 0, 6)) is not None) == fits
    assert drake_rule("spherical", Foreign("ball", "ball", 0, 4, 0, 3)) is None


def test_a_freedom_that_a_hinge_has_not_is_a_stranger():
    """ "disc[1]" is the second freedom of a planar hinge; it has no fourth, "disc[3]"."""
    mech = lw.Builder("one").body("disc", "world", lw.hinges.Planar(), hinge_name="disc").build()

    def layout(last):
        names = ("disc[0]", "disc[1]", last)
        joints = [Foreign(x, "slide", i, 1, i, 1) for i, x in enumerate(names)]
        orders = (LINEAR_FIRST, LINEAR_FIRST)
        rule = lambda kind, joint: libraries._mujoco_rule("prismatic", joint)  # noqa: E731
        return matched("MuJoCo", mech, joints, rule, aliases={}, size=(3, 3), orders=orders)

    assert [part.v_here for part in layout("disc[2]").parts] == [slice(i, i + 1) for i in range(3)]
    with pytest.raises(FrameError, match=r"only in MuJoCo: disc\[3\]"):
        layout("disc[3]")


def test_a_follower_may_be_wrong_by_rounding_alone():
    """By 1e-9 of 1 + |what its coupling says|, and not by twice that."""
    mech, hinges = coupled_tree(0, "Drake")
    layout, q = layout_of("Drake", mech, hinges[1:2]), mech.couple(mech.random(1))
    place = mech.q_slice(hinges[1])
    allowed = 1e-9 * (1.0 + abs(q[place].item()))
    q[place] += 0.9 * allowed
    layout.q_to(q)
    q[place] += 0.2 * allowed
    with pytest.raises(FrameError, match="its coupling 'first' says"):
        layout.q_to(q)
