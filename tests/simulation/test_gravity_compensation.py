"""Bodies whose weight is carried from outside, against MuJoCo and by formula."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.scalar.parameters import numbers as inertia_numbers
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


def other_masses(mech):
    """Twice the mass of "c", and half that of "a" at another centre of mass."""
    parts = {x.name: x.inertia for x in mech.bodies}
    heavy = parts["c"].moved(lw.Pose.translation((0.0, 0.05, 0.0)))
    changed = {
        "c": lw.SpatialInertia(2.0 * heavy.mass, 2.0 * heavy.h, 2.0 * heavy.J),
        "a": lw.SpatialInertia(0.5 * parts["a"].mass, 0.4 * parts["a"].h, 0.5 * parts["a"].J),
    }
    bodies = [replace(x, inertia=changed.get(x.name, x.inertia)) for x in mech.bodies]
    return replace(mech, bodies=tuple(bodies))


def tens(mech):
    each = [mech.inertias[k] for k in range(mech.n_bodies)]
    return np.concatenate([inertia_numbers(x) for x in each])


@pytest.mark.parametrize("integrator", ["rk4", "euler", "implicit"])
def test_given_inertias_change_what_is_carried(integrator):
    mech = read(ARM)
    heavy, q = other_masses(mech), mech.random(3)
    assert mech.inertias[0].mass > mech.body("a").inertia.mass  # with what is welded to it
    options = {"duration": 0.1, "step": 1e-3, "integrator": integrator}
    given = lw.rollout(mech, q, parameters={"inertia": tens(heavy)}, **options)
    built = lw.rollout(heavy, q, **options)
    np.testing.assert_allclose(given.q, built.q, rtol=0, atol=1e-12)
    light = lw.rollout(mech, q, **options)
    assert np.abs(given.q[-1] - light.q[-1]).max() > 1e-3
    same = lw.rollout(mech, q, parameters={"inertia": tens(mech)}, **options)
    np.testing.assert_allclose(same.q, light.q, rtol=0, atol=1e-12)


def test_gradients_by_inertias_count_what_is_carried():
    mech = read(ARM)
    q, ten = mech.random(3), tens(mech)
    options = {"duration": 0.02, "step": 2e-3, "integrator": "rk4"}

    def run(ten):
        return lw.rollout(mech, q, parameters={"inertia": ten}, **options)

    weights = np.arange(1.0, 1.0 + mech.nv)
    slopes = run(ten).gradient(v=weights).inputs["inertia"]
    for i in (0, 1, 20, 21):  # masses of "a" and "c", and a first moment of each
        e = 1e-6 * np.eye(len(ten))[i]
        difference = (run(ten + e).v[-1] - run(ten - e).v[-1]) @ weights / 2e-6
        np.testing.assert_allclose(slopes[i], difference, rtol=1e-6, atol=1e-7)
