"""Every number of an MJCF file changes what is read, or the report names it: by changing each."""

from __future__ import annotations

import json
import warnings
import xml.etree.ElementTree as ElementTree

import pytest

import linkwise as lw

TEXT = """
<mujoco model="all">
  <compiler angle="radian"/>
  <option timestep="0.003" gravity="0.1 0 -9" density="1.2" viscosity="0.1" wind="1 0 0"
    impratio="2" cone="elliptic" noslip_iterations="3" integrator="implicitfast" tolerance="1e-9">
    <flag contact="enable" frictionloss="enable" eulerdamp="enable" gravity="enable"/></option>
  <default><default class="d"><joint damping="0.3" solimpfriction="0.9 0.95 0.002"/>
    <geom friction="0.7 0.01 0.002" solimp="0.8 0.9 0.002"/></default>
  </default>
  <worldbody>
    <geom name="floor" type="plane" size="3 3 1" pos="0 0 -0.4" friction="0.4" condim="4"/>
    <body name="a" pos="0.1 0.2 0.3" quat="1 0.2 0.1 0" gravcomp="0.5" childclass="d">
      <joint name="j" pos="0.01 0 0" axis="0 1 0.2" range="-1 2" stiffness="3" springref="0.1"
        armature="0.02" frictionloss="0.1" ref="0.05" actuatorfrcrange="-5 5" margin="0.01"
        solreflimit="0.03 1" springdamper="0 0"/>
      <inertial pos="0 0 0.1" quat="1 0.1 0 0" mass="2" diaginertia="0.03 0.04 0.05"/>
      <geom name="g" type="capsule" size="0.03 0.1" pos="0 0.1 0" euler="0.1 0 0" priority="1"
        margin="0.002" gap="0.001" solmix="2" solref="0.03 1" contype="3" conaffinity="5"/>
      <site name="s" pos="0.1 0 0" euler="0 0.3 0" size="0.02"/>
      <body name="b" pos="0 0 0.3">
        <joint name="k" type="slide" axis="1 0 0" damping="0.4"/>
        <geom name="h" type="box" size="0.1 0.05 0.04" density="700"/>
        <geom name="i" type="sphere" size="0.05" mass="0.4" pos="0.1 0 0"/>
        <site name="r" pos="0 0.1 0"/>
        <body name="c" pos="0.2 0 0"><joint name="ball" type="ball" range="0 1.2"
          stiffness="0.5" damping="0.02"/><geom size="0.06"/></body>
      </body>
    </body>
    <body name="m" pos="1 0 0"><joint name="l" axis="0 0 1"/><geom size="0.1"/></body>
  </worldbody>
  <contact><pair geom1="g" geom2="floor" condim="6" friction="0.5 0.5 0.01 0.001 0.001"
      margin="0.003" gap="0.001" solref="0.05 1"/><exclude body1="a" body2="m"/></contact>
  <tendon><fixed name="t"><joint joint="j" coef="0.7"/><joint joint="k" coef="-0.4"/></fixed>
    <fixed name="stiff" stiffness="3" damping="0.2" frictionloss="0.1" range="0 1"
      springlength="0.3" armature="0.1"><joint joint="k" coef="1"/></fixed>
    <spatial name="rope" width="0.01"><site site="s"/><pulley divisor="2"/><site site="s"/>
      <site site="r"/></spatial></tendon>
  <equality><joint joint1="l" joint2="k" polycoef="0 2 0.1 0 0" solref="0.04 1"/>
    <connect body1="b" body2="m" anchor="0.1 0 0.1" solimp="0.9 0.95 0.001" active="true"/>
  </equality>
  <actuator>
    <motor name="m1" joint="j" gear="3" ctrlrange="-1 1" forcerange="-2 2"/>
    <position name="p1" joint="k" kp="30" kv="2" ctrlrange="-0.5 0.5" class="d"/>
    <position name="p2" joint="j" kp="20" timeconst="0.05"/>
    <velocity name="v1" tendon="t" kv="4" gear="0.5"/>
    <intvelocity name="i1" joint="l" kp="9" actrange="-1 2"/>
    <damper name="d1" joint="l" kv="3" ctrlrange="0 1"/>
    <cylinder name="c1" joint="k" timeconst="0.2" area="0.3" bias="0.1 0.2 0.3"/>
    <general name="g1" site="s" gear="1 0 0 0 0.2 0" gaintype="affine" gainprm="2 0 0.1"
      biastype="affine" biasprm="0.1 0 -0.2" dyntype="filterexact" dynprm="0.1" actearly="true"/>
    <motor name="r1" tendon="rope" gear="2"/>
  </actuator>
</mujoco>"""

WORDS = {"true": "false", "enable": "disable", "elliptic": "pyramidal", "implicitfast": "Euler"}
COUNTS = ("condim", "contype", "conaffinity", "priority")


def other(attr, text):
    """Another value, or None for a name."""
    if text in WORDS:
        return WORDS[text]
    try:
        values = [float(x) for x in text.split()]
    except ValueError:
        return None
    if attr in COUNTS:
        return str({6: 4, 4: 3}.get(int(values[0]), 6) if attr == "condim" else int(values[0]) + 1)
    return " ".join(f"{1.07 * x + (0.003 if x >= 0 else -0.003):.9g}" for x in values)


def content(text, folder):
    """All numbers of the mechanism, and its report."""
    mech = lw.load(text)
    lw.save(mech, folder / "m.json")
    numbers = json.loads((folder / "m.json").read_text())
    numbers.pop("load_report", None)
    return json.dumps(numbers, sort_keys=True), mech.load_report


def test_no_number_is_silent(tmp_path):
    root = ElementTree.fromstring(TEXT)
    parents = {child: parent for parent in root.iter() for child in parent}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before, report = content(TEXT, tmp_path)
        left = [x for x in report if x.effect != "kept"]
        changed, reported, silent = [], [], []
        for element in root.iter():
            if element.tag == "default" or parents.get(element) is None:
                continue
            for attr, text in list(element.attrib.items()):
                value = None if attr in ("name", "class") else other(attr, text)
                if value is None:
                    continue
                key = element.tag, attr, element.get("name", "")
                if any(names(x, element, attr, parents[element]) for x in left):
                    reported.append(key)
                    continue
                element.set(attr, value)
                try:
                    after, _ = content(ElementTree.tostring(root, encoding="unicode"), tmp_path)
                except lw.errors.LinkwiseError:
                    after = ""  # refused: it was read
                element.set(attr, text)
                (changed if after != before else silent).append(key)
    assert not silent
    assert len(changed) > 80 and len(reported) > 20


def names(item, element, attr, parent):
    """Whether an item of a report is about an attribute, or about an element as a whole."""
    if f"'{attr}'" in item.reason or f"({attr}" in item.reason or f" {attr}" in item.reason:
        return item.element.startswith(f"<{element.tag}")
    labels = (f'name="{x.get("name")}"' for x in (element, parent))
    return "tendon forces" in item.reason and any(x in item.element for x in labels)


@pytest.mark.parametrize("attr", ["solmix", "actearly", "noslip_iterations"])
def test_the_check_can_fail(attr, tmp_path):
    """Without the report these would be silent."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        without = ElementTree.fromstring(TEXT)
        for element in without.iter():
            element.attrib.pop(attr, None)
        one = content(TEXT, tmp_path)[0]
        two = content(ElementTree.tostring(without, encoding="unicode"), tmp_path)[0]
    assert one == two
