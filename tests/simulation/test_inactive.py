"""Rollouts, simulators and recordings say what did not act."""

import warnings

import numpy as np
import pytest

import linkwise as lw

SCENE = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <geom name="table" type="box" size="0.2 0.2 0.2" pos="0 0 0.2"/>
    <body name="arm" pos="0 0 1">
      <joint name="hinge" axis="0 1 0" damping="0.1" range="-1 1" frictionloss="0.2"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02"/>
    </body>
  </worldbody>
  <tendon><fixed name="band" stiffness="50"><joint joint="hinge" coef="1"/></fixed></tendon>
  <actuator><position name="servo" joint="hinge" kp="10"/></actuator>
</mujoco>"""

TABLE = "world shapes 'table': only planes and height fields are touched"
FRICTION = "Coulomb friction of 'hinge': use integrator='implicit'"
LIMITS = "joint limits of 'hinge': use integrator='implicit'"
SERVO = "actuators 'servo': no controls were given"
BETWEEN = "contacts between bodies: they pass through each other"
BAND = 'of the file, <fixed name="band">: tendon forces and limits (stiffness) are not supported'
GROUND = "contacts: bodies pass through each other and through the ground"
DAMPER = "dampers and springs of 'hinge': passive=False"


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    path = tmp_path_factory.mktemp("scene") / "scene.xml"
    path.write_text(SCENE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return lw.load(path)


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ({}, [FRICTION, LIMITS, SERVO, GROUND, BAND]),
        ({"integrator": "implicit"}, [SERVO, BETWEEN, TABLE, BAND]),
        ({"integrator": "implicit", "controls": [0.1]}, [BETWEEN, TABLE, BAND]),
        (
            {"integrator": "implicit", "passive": False, "contacts": ()},
            [
                "Coulomb friction of 'hinge': passive=False", SERVO, DAMPER,
                "contacts: nothing can touch, bodies pass through each other and the ground", BAND,
            ],
        ),
    ],
)  # fmt: skip
def test_a_rollout_lists_what_did_not_act(arm, options, lines):
    run = lw.rollout(arm, arm.neutral(), duration=0.002, **options)
    assert list(run.not_modelled) == lines
    assert str(run).splitlines()[1:] == [f"  not modelled: {x}" for x in lines]


def test_what_is_listed_does_not_act_and_the_rest_does(arm):
    q = np.array([1.2])  # beyond its limit
    free = lw.rollout(arm, q, duration=0.1)
    held = lw.rollout(arm, q, duration=0.3, integrator="implicit", controls=[1.2])
    assert free.q[-1, 0] > 1.21  # the limit does not act, the arm falls
    assert held.q[-1, 0] < 1.1


def test_a_simulator_and_a_recording_list_it(arm):
    sim = lw.Simulator(arm)
    assert list(sim.not_modelled) == [BETWEEN, TABLE, BAND]
    assert TABLE in str(sim)
    assert "\n" not in repr(sim)
    report = lw.simulate(arm, arm.neutral(), duration=0.002).report
    assert BAND in report.notes.not_modelled


@pytest.mark.parametrize("contacts", [None, (), lw.simulation.Ground()])
def test_a_simulation_by_implicit_steps_lists_what_a_rollout_does(arm, contacts):
    options = {"duration": 0.002, "integrator": "implicit", "contacts": contacts}
    run = lw.rollout(arm, arm.neutral(), **options)
    rec = lw.simulate(arm, arm.neutral(), **options)
    assert sorted(rec.report.notes.not_modelled) == sorted(run.not_modelled)
    assert "contacts but those given" not in str(rec)


def test_nothing_is_listed_that_a_mechanism_does_not_have():
    free = lw.models.pendulum()
    run = lw.rollout(free, free.neutral(), duration=0.002)
    assert not any("friction of" in x or "of the file" in x for x in run.not_modelled)
