"""Actuators whose class is of another kind: the numbers of MuJoCo, or left out by name."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from linkwise.io.mjcf.actuator_class import MIXED
from tests.io.mjcf_text import read
from tests.oracles.mujoco_oracle import parse_model

pytestmark = pytest.mark.oracle
pytest.importorskip("mujoco")

CLASSES = (
    '<general gaintype="affine" gainprm="7 0.5 0.2" biastype="affine" biasprm="0.1 -3 -0.4"/>',
    '<general gainprm="7"/>',
    '<general dyntype="filterexact" dynprm="0.3" biastype="affine" biasprm="0 -2"/>',
    '<general dyntype="integrator" gear="2 3" ctrlrange="-1 2"/>',
    '<motor ctrlrange="-1 1" gear="3"/>',
    '<position kp="50" kv="3"/>',
    '<position kp="50" timeconst="0.2"/>',
    '<position kp="50" dampratio="1"/>',
    '<position forcerange="-3 4"/>',
    '<velocity kv="4"/>',
    '<intvelocity kp="5" actrange="-1 1"/>',
    '<damper kv="2" ctrlrange="0 1"/>',
    '<cylinder area="3" timeconst="0.5" bias="1 2 3"/>',
    '<cylinder diameter="2"/>',
    '<muscle timeconst="0.1 0.2"/>',
    '<muscle ctrllimited="true" ctrlrange="0 1"/>',
    '<position kp="50" kv="3"/></default><default class="c"><velocity kv="4"/>',
    '<general biastype="affine" gainprm="400" biasprm="0 -200 -100"/>',
    '<general gainprm="400 3 2" biasprm="1 -200 -100"/>',
    '<general gainprm="4" dyntype="filter" dynprm="0.3"/>',
    '<general gainprm="4" biasprm="0 0 2"/>',
    '<general gainprm="3" biastype="affine" biasprm="1 -7 -8"/></default><default class="c">'
    '<position kp="50"/>',
    '<general gainprm="3"/></default><default class="c"><velocity kv="5"/>',
    '<position kp="3"/></default><default class="c"><general gainprm="5"/>',
    '<general gainprm="7 8"/></default><default class="c"><general gainprm="9"/>',
)
OWN = (
    "<general {}/>",
    '<general gainprm="9" {}/>',
    "<motor {}/>",
    '<position kp="20" kv="2" {}/>',
    '<position kp="20" timeconst="0.4" {}/>',
    "<position {}/>",
    '<position kp="20" {}/>',
    '<position kv="1" {}/>',
    '<position kp="20" dampratio="0.5" {}/>',
    "<velocity {}/>",
    '<velocity kv="2" {}/>',
    '<intvelocity kp="3" actrange="-1 1" {}/>',
    '<damper ctrlrange="0 1" {}/>',
    '<damper kv="3" ctrlrange="0 1" {}/>',
    "<cylinder {}/>",
    '<cylinder area="2" {}/>',
)
DYNAMICS = {0: "none", 1: "integrator", 2: "filter", 3: "filter"}


@pytest.mark.parametrize(("default", "actuator"), list(product(CLASSES, OWN)))
def test_numbers_are_those_of_mujoco(default: str, actuator: str) -> None:
    nested = "</default><default" in default
    default = default.replace("</default><default", "<default") + "</default>" * nested
    actuator = actuator.format('name="a" joint="j"' + ' class="c"' * nested)
    text = (
        f"<mujoco><default>{default}</default><worldbody><body><joint name='j' axis='0 1 0'/>"
        f"<geom size='0.1'/></body></worldbody><actuator>{actuator}</actuator></mujoco>"
    )
    try:
        model: Any = parse_model(text)
    except ValueError:
        pytest.skip("MuJoCo refuses it")
    mech = read(text)
    if not mech.actuators:
        reasons = [item.reason for item in mech.load_report.items if item.effect == "ignored"]
        assert any("does not act" in x or "is not combined" in x for x in reasons)
        mixed = ("dampratio", "diameter", "dyntype", 'biasprm="0 0 2"')
        assert nested or any(x in default for x in mixed) or model.actuator_dyntype[0] > 3
        return
    (one,) = mech.actuators
    assert model.actuator_gaintype[0] in (0, 1) and model.actuator_biastype[0] in (0, 1)
    gain, bias = model.actuator_gainprm[0, :3].copy(), model.actuator_biasprm[0, :3].copy()
    gain[1:] *= model.actuator_gaintype[0]
    bias *= model.actuator_biastype[0]
    np.testing.assert_allclose(one.gain, gain, rtol=1e-12)
    np.testing.assert_allclose(one.bias, bias, rtol=1e-12)
    assert one.dynamics == DYNAMICS[int(model.actuator_dyntype[0])]
    if one.dynamics == "filter":
        assert one.time_constant == pytest.approx(model.actuator_dynprm[0, 0])
    assert one.joints == (("j", model.actuator_gear[0, 0]),)
    for name, bounds in (("ctrl", one.control), ("force", one.force), ("act", one.activation)):
        limited = getattr(model, f"actuator_{name}limited")[0]
        given = getattr(model, f"actuator_{name}range")[0] if limited else (-np.inf, np.inf)
        np.testing.assert_allclose(bounds, given)


def test_the_mark_of_a_mixed_law_is_no_attribute() -> None:
    assert " " in MIXED
    assert "law of a <general>" in str(
        read(
            "<mujoco><default><general biasprm='0 0 2'/></default><worldbody><body>"
            "<joint name='j'/><geom size='0.1'/></body></worldbody><actuator>"
            "<position joint='j'/></actuator></mujoco>"
        ).load_report
    )


def test_muscles_of_a_class_do_not_act(tmp_path: Path) -> None:
    """A <general> of a class of muscles is a muscle, not a motor."""
    text = (
        "<mujoco><default><default class='m'><muscle ctrlrange='0 1'/></default></default>"
        "<worldbody><body><joint name='j'/><geom size='0.1'/></body></worldbody><actuator>"
        "<general class='m' joint='j' gainprm='0.75 1 10' lengthrange='0 1'/></actuator></mujoco>"
    )
    mech = read(text)
    assert not mech.actuators
    assert any("default muscle" in x.reason for x in mech.load_report.affecting("motion"))
