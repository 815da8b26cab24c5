"""Couplings built in, against Pinocchio's mimic joints: its own minimal coordinates.

Pinocchio has mimic joints in `crba`, `rnea` and Jacobians (not in `aba`), with a factor and an
offset. Its velocities are those of the joints that do not follow, in the order of the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw

pytestmark = pytest.mark.oracle

LINK = """<link name="{0}"><inertial><origin xyz="{1}" rpy="0.1 0.2 0.3"/><mass value="{2}"/>
  <inertia ixx="0.03" iyy="0.04" izz="0.02" ixy="0.001" ixz="-0.002" iyz="0.003"/></inertial></link>
"""
JOINT = """<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/>
  <origin xyz="{4}" rpy="0.3 -0.2 0.5"/><axis xyz="{5}"/>
  <limit lower="-3" upper="3" effort="10" velocity="5"/>{6}</joint>
"""
MIMIC = '<mimic joint="{}" multiplier="{}" offset="{}"/>'


def hand() -> str:
    """An arm of two joints with two fingers; knuckles follow, and so does a slider in the palm."""
    rows = [
        # joint, type, parent, child, mimic
        ("shoulder", "revolute", "base", "upper", ""),
        ("elbow", "revolute", "upper", "palm", ""),
        ("finger_1", "revolute", "palm", "prox_1", ""),
        ("knuckle_1", "revolute", "prox_1", "dist_1", MIMIC.format("finger_1", 0.8, 0.1)),
        ("finger_2", "revolute", "palm", "prox_2", MIMIC.format("finger_1", -1.0, 0.0)),
        ("knuckle_2", "revolute", "prox_2", "dist_2", MIMIC.format("finger_1", -0.8, 0.2)),
        ("slider", "prismatic", "palm", "rack", MIMIC.format("elbow", 0.05, 0.0)),
        ("thumb", "revolute", "rack", "tip", ""),
    ]
    text = ['<robot name="hand">', LINK.format("base", "0 0 0", 1.0)]
    for i, (joint, kind, parent, child, mimic) in enumerate(rows):
        axis = ("0 1 0", "1 0 0", "0 0.6 0.8")[i % 3]
        text.append(LINK.format(child, f"0.02 {0.01 * i} 0.1", 0.5 + 0.1 * i))
        text.append(JOINT.format(joint, kind, parent, child, f"0.05 {0.02 * i} 0.2", axis, mimic))
    return "".join([*text, "</robot>"])


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[lw.loops.Embedded, Any]:
    pin = pytest.importorskip("pinocchio")
    path = tmp_path_factory.mktemp("embedding") / "hand.urdf"
    path.write_text(hand())
    return lw.loops.embed(lw.load(path)), pin.buildModelFromXML(hand(), True)


def test_mimic_joints_agree_with_pinocchio(both: tuple[lw.loops.Embedded, Any]) -> None:
    import pinocchio as pin

    e, model = both
    m = e.mech
    assert e.nv == model.nv == 4 and len(m.couplings) == 4
    names = [
        model.names[j] for j in range(1, model.njoints) if "imic" not in model.joints[j].shortname()
    ]
    order = [names.index(name) for name in e.velocity_names]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        q = m.random(rng)
        theirs = np.array([q[m.coordinate(name)] for name in names])
        u, udot = rng.standard_normal((2, e.nv))
        v, a = np.empty((2, e.nv))
        v[order], a[order] = u, udot
        data = model.createData()  # with mimic joints crba (4.1.0) adds to what it left in data.M
        M = pin.crba(model, data, theirs)
        M = np.triu(M) + np.triu(M, 1).T
        pick = np.ix_(order, order)
        np.testing.assert_allclose(lw.mass_matrix(e, q), M[pick], rtol=0.0, atol=1e-11)
        tau = pin.rnea(model, data, theirs, v, a)[order]
        np.testing.assert_allclose(lw.inverse_dynamics(e, q, u, udot), tau, rtol=0.0, atol=1e-10)
        np.testing.assert_allclose(lw.forward_dynamics(e, q, u, tau), udot, rtol=0.0, atol=1e-8)
        frame = model.getFrameId("tip")
        J = pin.computeFrameJacobian(model, data, theirs, frame, pin.ReferenceFrame.LOCAL)
        ours = lw.jacobian(e, q, "tip")
        np.testing.assert_allclose(ours, J[[3, 4, 5, 0, 1, 2]][:, order], rtol=0.0, atol=1e-11)


MJCF = """<mujoco><compiler angle="radian" autolimits="true"/><worldbody>
  <body name="table"><joint name="turn" axis="0 0 1"/><geom type="box" size=".1 .1 .05" mass="2"/>
    <body name="crank" pos="0 0 .1"><joint name="crank" axis="0 1 0" armature=".05"/>
      <geom type="capsule" fromto="0 0 0 0 0 .3" size=".02" mass="1"/>
      <body name="coupler" pos="0 0 .3"><joint name="coupler" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 .25 0 .05" size=".02" mass="1"/>
        <body name="tool" pos=".1 0 .1"><joint name="tool" axis="0 .6 .8"/>
          <geom type="capsule" fromto="0 0 0 0 .1 .2" size=".02" mass=".5"/></body></body></body>
    <body name="rocker" pos=".2 0 .1"><joint name="rocker" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .05 0 .35" size=".02" mass="1"/></body>
    <body name="flap" pos="-.1 0 .1"><joint name="flap" axis="1 0 0" armature=".1"/>
      <geom type="capsule" fromto="0 0 0 0 0 .2" size=".02" mass=".4"/></body></body>
  </worldbody><equality>
  <connect name="loop" body1="coupler" body2="rocker" anchor=".25 0 .05"/>
  <joint name="cam" joint1="flap" joint2="crank" polycoef=".1 -.5 .3 .2 0"/></equality></mujoco>"""


def test_a_four_bar_with_a_cam_agrees_with_mujoco(tmp_path: Path) -> None:
    """A loop by `connect`, a polynomial joint equality, armature on what follows: all at once.

    MuJoCo's own solver, its softness scaled down to 1e-9: what is left of that is below 1e-6 of the
    accelerations; the dense rigid solution with its M, C and J has only rounding left.
    """
    mujoco = pytest.importorskip("mujoco")
    from tests.oracles.mujoco_equality import SOFTNESS, EqualityCase

    path = tmp_path / "four_bar.xml"
    path.write_text(MJCF)
    mech = lw.load(path)
    for seed in range(2):
        case = EqualityCase(mech, mujoco.MjModel.from_xml_string(MJCF), seed)
        e = lw.loops.embed(mech, at=case.q, independent=["turn", "crank"])
        assert e.velocity_names == ("turn", "crank", "tool") and e.n_bodies == 3
        u = lw.loops.independent_velocity(e, case.v)
        np.testing.assert_allclose(
            lw.loops.full_velocity(e, case.q, u), case.v, rtol=0.0, atol=1e-9
        )
        udot = lw.forward_dynamics(e, case.q, u, lw.loops.independent_force(e, case.q, case.tau))
        vdot = lw.loops.full_acceleration(e, case.q, u, udot)
        ours = case.layout.vdot_to(case.q, case.v, vdot)
        size = float(np.abs(ours).max())
        np.testing.assert_allclose(ours, case.rigid(), rtol=0.0, atol=1e-8 * size)
        np.testing.assert_allclose(ours, case.solved(SOFTNESS), rtol=0.0, atol=1e-6 * size)
