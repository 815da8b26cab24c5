"""Bodies whose weight is carried from outside, against MuJoCo and by formula."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import UnknownNameError
from linkwise.io.mjcf.write import write_mjcf
from linkwise.io.report import Reporter
from tests.io.mjcf_text import read

ARM = """<mujoco><worldbody>
  <body name="a" gravcomp="1"><joint axis="0 1 0"/><geom size="0.1" pos="0.3 0 0.1"/>
    <body name="welded" pos="0.1 0.2 0" gravcomp="0.7"><geom size="0.05" pos="0 0.1 0"/></body>
    <body name="b" pos="0.5 0 0"><joint axis="1 1 0"/><geom size="0.1" pos="0.2 0 0"/>
      <body name="c" pos="0.5 0 0" gravcomp="0.4"><joint type="ball"/>
        <geom size="0.05 0.1 0.2" type="box" pos="0.2 0.1 0"/></body></body></body>
</worldbody></mujoco>"""


def first_step(mech, q):
    """Accelerations from rest: the step is exact there."""
    run = lw.rollout(mech, q, duration=1e-3, step=1e-3, integrator="implicit")
    return run.v[-1] / 1e-3


@pytest.mark.oracle
def test_compensated_bodies_accelerate_as_in_mujoco():
    mujoco = pytest.importorskip("mujoco")
    mech, model = read(ARM), mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(model)
    q = mech.random(3)
    data.qpos[:] = q
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(first_step(mech, q), data.qacc, rtol=1e-8, atol=1e-8)


def test_what_is_carried_entirely_floats_and_is_written():
    afloat = read(ARM.replace('name="b"', 'name="b" gravcomp="1"').replace("0.7", "1"))
    arm = read(write_mjcf(afloat, Reporter("arm.xml")))
    assert dict(arm.gravity_compensation) == dict(afloat.gravity_compensation)
    without = arm.extract("a", "b")
    assert dict(without.gravity_compensation) == {"a": 1.0, "welded": 1.0, "b": 1.0}
    assert np.abs(first_step(without, without.random(1))).max() < 1e-12
    two = without.mount(without, at="world", prefix="x_")
    assert np.abs(first_step(two, two.random(1))).max() < 1e-12
    free = without.without("welded")
    assert dict(free.gravity_compensation) == {"a": 1.0, "b": 1.0}
    with pytest.raises(UnknownNameError, match="nobody"):
        lw.Mechanism("m", arm.bodies, gravity_compensation=(("nobody", 1.0),))
