"""Attached models against MuJoCo's model of the same files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ParseError
from tests.oracles.mujoco_oracle import agreement, read_model

pytestmark = pytest.mark.oracle
pytest.importorskip("mujoco")

LEG = """<mujoco model="leg">
  <compiler angle="radian" eulerseq="zyx" autolimits="true"/>
  <option gravity="1 2 3"/>
  <default>
    <joint damping="0.3" armature="0.02"/>
    <geom density="500"/>
    <position kp="30" kv="2"/>
    <default class="soft"><joint stiffness="4" springref="0.2" damping="0.1"/></default>
  </default>
  <worldbody>
    <geom name="post" type="box" size="0.1 0.1 0.1" pos="1 0 0"/>
    <body name="hip" pos="0.1 0.2 0.3" euler="0.1 0.2 0.3">
      <joint name="hip" axis="0 1 0" range="-0.5 0.7" ref="0.1"/>
      <geom name="thigh" type="box" size="0.1 0.02 0.03" pos="0.1 0 0" axisangle="1 0 0 0.4"/>
      <body name="shin" pos="0.2 0 0" childclass="soft">
        <joint name="knee" axis="0 1 0" limited="true" range="-1 1"/>
        <joint name="slide" type="slide" axis="1 0 0" class="soft" stiffness="9"/>
        <geom type="capsule" size="0.02 0.1" euler="0 1.2 0"/>
        <site name="toe" pos="0.1 0 0"/>
      </body>
    </body>
    <body name="other"><joint name="other"/><geom size="0.1"/></body>
  </worldbody>
  <contact><exclude body1="hip" body2="shin"/><exclude body1="hip" body2="other"/></contact>
  <equality>
    <joint joint1="hip" joint2="knee" polycoef="0 0.5"/>
    <joint joint1="hip" joint2="other"/>
  </equality>
  <tendon><fixed name="both"><joint joint="hip" coef="1"/><joint joint="knee" coef="-2"/></fixed>
  </tendon>
  <actuator>
    <position name="hip" joint="hip" kv="1"/>
    <motor name="both" tendon="both" gear="3"/>
    <motor name="other" joint="other"/>
  </actuator>
</mujoco>"""

ROBOT = """<mujoco model="robot">
  <default><joint damping="7" armature="5"/><geom density="100"/><position kp="3"/></default>
  <asset><model name="leg" file="leg.xml"/></asset>
  <worldbody>
    <body name="base" pos="0 0 1" euler="30 0 0">
      <freejoint/>
      <geom type="box" size="0.2 0.2 0.1"/>
      <frame pos="0.2 0 0" euler="0 0 90"><attach model="leg" {body} prefix="left_"/></frame>
      <body name="mount" pos="-0.2 0 0"><joint name="turn" range="-90 90"/><geom size="0.05"/>
        <attach model="leg" {body} prefix="right_"/></body>
    </body>
  </worldbody>
  <actuator><position name="turn" joint="turn"/><motor joint="left_knee" name="k"/></actuator>
</mujoco>"""


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.xml").write_text(text)
    return folder / "robot.xml"


@pytest.mark.parametrize("body", ['body="hip"', 'body="shin"', ""])
def test_attached_models_are_those_of_mujoco(body: str, tmp_path: Path) -> None:
    robot = ROBOT.format(body=body)
    path = written(tmp_path, leg=LEG, robot=robot)
    mech, model = lw.load(path), read_model(path)
    gaps = agreement(mech, model)
    assert gaps.dof[0] == gaps.dof[1] and gaps.bodies > 3
    assert max(gaps.worst, gaps.axes, gaps.inertia, gaps.drive) < 1e-9
    assert sorted(x.name for x in mech.actuators) == sorted(
        model.actuator(i).name for i in range(model.nu)
    )
    for i in range(model.nu):
        one = next(x for x in mech.actuators if x.name == model.actuator(i).name)
        gain, bias = model.actuator_gainprm[i, :3], model.actuator_biasprm[i, :3]
        np.testing.assert_allclose(one.gain, gain)
        np.testing.assert_allclose(one.bias, bias * (model.actuator_biastype[i] > 0))
    assert len(mech.couplings) == model.neq
    assert len(mech.contact_rules.excludes) == model.nexclude
    np.testing.assert_array_equal(mech.gravity, (0.0, 0.0, -9.81))
    reasons = [x.reason for x in mech.load_report.items if x.effect == "ignored"]
    assert any("options of an attached model" in x for x in reasons)
    assert any("'other' is not attached" in x for x in reasons) == bool(body)


def test_models_attach_others(tmp_path: Path) -> None:
    pair = """<mujoco><asset><model file="leg.xml"/></asset><worldbody><body name="pair">
      <joint name="pair" axis="1 0 0" range="-10 10"/><geom size="0.1"/>
      <attach model="leg" body="hip" prefix="a_"/></body></worldbody></mujoco>"""
    robot = """<mujoco><asset><model name="p" file="pair.xml"/></asset><worldbody>
      <attach model="p" body="pair" prefix="x_"/></worldbody></mujoco>"""
    path = written(tmp_path, leg=LEG, pair=pair, robot=robot)
    mech, model = lw.load(path), read_model(path)
    gaps = agreement(mech, model)
    assert gaps.dof == (4, 4) and max(gaps.worst, gaps.axes, gaps.drive) < 1e-9
    assert "x_a_knee" in mech.hinge_index and len(mech.actuators) == model.nu == 2


@pytest.mark.parametrize(
    ("robot", "message"),
    [
        (ROBOT.format(body='body="hand"'), "'hand' is no body of model 'leg'|unknown|hand"),
        (ROBOT.format(body="").replace('model="leg"', 'model="arm"'), "arm"),
        (ROBOT.format(body="").replace("leg.xml", "arm.xml"), "'arm.xml' does not exist"),
        (ROBOT.format(body="").replace("leg.xml", "../leg.xml"), "lies outside"),
        (ROBOT.format(body="").replace("leg.xml", "robot.xml"), "attaches itself"),
        (ROBOT.format(body='suffix="x"'), "unknown attribute 'suffix'"),
        (ROBOT.format(body="").replace("right_", "left_"), "used twice|defined twice"),
    ],
)
def test_mistakes_are_named(robot: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ParseError, match=message):
        lw.load(written(tmp_path, leg=LEG, robot=robot))


def test_a_file_has_one_meaning(tmp_path: Path) -> None:
    """A part that the robot includes and an attached model, too, would have two compilers."""
    part = '<mujoco><worldbody><body name="b"><joint/><geom size="1"/></body></worldbody></mujoco>'
    leg = '<mujoco><compiler angle="radian"/><include file="part.xml"/></mujoco>'
    robot = """<mujoco><include file="part.xml"/><asset><model name="l" file="leg.xml"/></asset>
      <worldbody><attach model="l" prefix="p"/></worldbody></mujoco>"""
    with pytest.raises(ParseError, match=r"both a part of the model and attached"):
        lw.load(written(tmp_path, leg=leg, part=part, robot=robot))
