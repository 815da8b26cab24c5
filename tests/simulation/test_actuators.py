"""Actuators: their forces, bounds, filters and files, against formulas and MuJoCo."""

import dataclasses

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, ShapeError, UnknownNameError

STEP = 2e-3


def arm(*actuators, drive=None):
    """Two pins with dampers."""
    b = lw.Builder("arm")
    inertia = lw.SpatialInertia.from_com(1.5, (0.0, 0.02, 0.2), (0.02, 0.02, 0.005))
    drive = lw.Drive(damping=0.3, armature=0.05) if drive is None else drive
    b.body("a", "world", lw.hinges.Pin((0, 1, 0)), inertia=inertia, drive=drive)
    b.body(
        "b", "a", lw.hinges.Pin((0.6, 0.8, 0)), inboard=(0, 0, 0.4), inertia=inertia, drive=drive
    )
    b.node("tip", "b", (0.1, 0.0, 0.4))
    return b.actuator(*actuators).build()


GENERAL = {
    "motor": lw.Actuator.motor("m", "a", gear=3.0, control=(-1.0, 0.7)),
    "velocity": lw.Actuator.velocity("m", "b", kv=2.0),
    "bounded velocity": lw.Actuator.velocity("m", "b", kv=2.0, force=(-0.2, 0.3)),
    "affine gain": lw.Actuator("m", (("a", 2.0),), gain=(1.0, 0.0, -0.1), bias=(0.1, 0.0, -0.2)),
    "tendon": lw.Actuator("m", (("a", 0.5), ("b", -1.5)), force=(-2.0, 2.0)),
    "filter": lw.Actuator("m", (("a", 1.0),), dynamics="filter", time_constant=0.05),
    "integrator": lw.Actuator("m", (("b", 1.0),), dynamics="integrator", activation=(-0.1, 0.1)),
    "node": lw.Actuator("m", node="tip", wrench=(0.0, 0.1, 0.0, 1.0, -2.0, 0.5)),
}
"""Without stiffness: MuJoCo's implicit steps take the slope by velocities only."""


@pytest.mark.oracle
@pytest.mark.parametrize("kind", GENERAL)
def test_motions_with_actuators_are_those_of_mujoco(kind, tmp_path):
    """Through a file: what is written acts in MuJoCo, what is read back acts here."""
    mujoco = pytest.importorskip("mujoco")
    lw.save(arm(GENERAL[kind]), tmp_path / "arm.xml")
    mech = lw.load(tmp_path / "arm.xml")
    assert [dataclasses.astuple(a) for a in mech.actuators] == [dataclasses.astuple(GENERAL[kind])]
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    model.opt.timestep, model.opt.integrator = STEP, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = (0.4, -0.7), (0.5, 1.0)
    controls = np.sin(np.linspace(0.0, 9.0, 200))[:, None]
    runs = lw.rollout(
        mech,
        data.qpos.copy(),
        data.qvel.copy(),
        duration=200 * STEP,
        step=STEP,
        integrator="implicit",
        controls=controls,
    )
    still = lw.rollout(
        mech, data.qpos, data.qvel, duration=200 * STEP, step=STEP, integrator="implicit"
    )
    for u in controls:
        data.ctrl[:] = u
        mujoco.mj_step(model, data)
    np.testing.assert_allclose(runs.q[-1], data.qpos, rtol=0, atol=1e-11)
    np.testing.assert_allclose(runs.v[-1], data.qvel, rtol=0, atol=1e-11)
    assert np.abs(runs.q[-1] - still.q[-1]).max() > 1e-3  # the actuator acts


def test_stiff_servos_are_stable_and_reach_their_commands():
    """kp = 1e6 at 10 ms, where an explicit step multiplies errors by thousands."""
    servos = [lw.Actuator.position(n, n, kp=1e6, kv=100.0) for n in "ab"]
    goal = np.array([0.3, -0.2])
    runs = lw.rollout(
        arm(*servos), [0.0, 0.0], duration=2.0, step=1e-2, integrator="implicit", controls=goal
    )
    np.testing.assert_allclose(runs.q[-1], goal, atol=1e-4)
    assert np.abs(runs.v[-1]).max() < 1e-6


def test_efforts_bound_the_sum_of_actuators_at_a_joint():
    drive = lw.Drive(effort=2.0)
    two = arm(*(lw.Actuator.motor(n, "a") for n in "xy"), drive=drive)
    plain = arm(drive=drive)
    options = {"duration": 0.1, "integrator": "rk4"}
    runs = lw.rollout(two, [0.1, 0.2], controls=[1.5, 3.0], **options)
    same = lw.rollout(plain, [0.1, 0.2], tau=[2.0, 0.0], **options)
    np.testing.assert_allclose(runs.q, same.q, rtol=1e-12)


@pytest.mark.parametrize("integrator", ["rk4", "euler", "implicit"])
def test_motors_are_joint_forces_in_every_integrator(integrator):
    motors = [lw.Actuator.motor(n, n, gear=2.0) for n in "ab"]
    tau = np.array([0.4, -0.6])
    options = {"duration": 0.2, "integrator": integrator}
    runs = lw.rollout(arm(*motors), [0.1, 0.2], controls=0.5 * tau, **options)
    same = lw.rollout(arm(), [0.1, 0.2], tau=tau, **options)
    np.testing.assert_allclose(runs.q, same.q, rtol=1e-12, atol=1e-14)
    assert np.abs(runs.q[-1] - runs.q[0]).max() > 1e-2


def test_mistakes_are_named():
    with pytest.raises(ModelError, match="'c'"):
        arm(lw.Actuator.motor("m", "c"))
    with pytest.raises(ModelError, match="'m'"):
        arm(lw.Actuator.motor("m", "a"), lw.Actuator.motor("m", "b"))
    with pytest.raises(ModelError, match="needs joints, a node, or cables"):
        lw.Actuator("m")
    with pytest.raises(ModelError, match="has no actuators"):
        lw.rollout(arm(), [0.0, 0.0], duration=0.1, controls=[1.0])
    with pytest.raises(ModelError, match="goes from 1 to -1"):
        lw.Actuator.motor("m", "a", control=(1.0, -1.0))


def test_parts_of_mechanisms_keep_their_actuators():
    one = arm(lw.Actuator.motor("m", "a"), lw.Actuator.motor("n", "b"))
    assert [a.name for a in one.extract("b").actuators] == ["n"]
    both = one.mount(one, at="tip", prefix="other_")
    assert [a.name for a in both.actuators] == ["m", "n", "other_m", "other_n"]
    assert both.actuators[2].joints == (("other_a", 1.0),)
    assert [a.name for a in one.without("m").actuators] == ["n"]
    assert [a.name for a in one.lock(["a"]).actuators] == ["m", "n"]


def servos():
    return arm(lw.Actuator.position("p", "a", kp=20.0), lw.Actuator.motor("m", "b"))


@pytest.mark.parametrize("integrator", ["rk4", "implicit"])
def test_commands_are_given_by_name(integrator):
    mech, q, ramp = servos(), [0.1, 0.2], np.linspace(0.0, 1.0, 5)
    options = {"duration": 0.01, "step": 2e-3, "integrator": integrator}
    many, zeros = ramp[:3, None], np.zeros(5)
    for named, rows in (
        ({"p": 0.1}, [0.1, 0.0]),
        ({"m": ramp}, np.column_stack([zeros, ramp])),
        ({"m": ramp, "p": 0.3}, np.column_stack([zeros + 0.3, ramp])),
        ({"m": many}, np.stack([0.0 * many, many], axis=-1)),
        (0.4, [0.4, 0.4]),
        ({}, [0.0, 0.0]),
    ):
        run = lw.rollout(mech, q, controls=named, **options)
        same = lw.rollout(mech, q, controls=rows, **options)
        assert np.array_equal(run.q, same.q)
    if integrator == "implicit":
        sim = lw.simulate(mech, q, controls={"p": 0.1}, record_every=1, **options)
        run = lw.rollout(mech, q, controls={"p": 0.1}, **options)
        np.testing.assert_allclose(sim.q, run.q, rtol=0, atol=1e-14)
    run = lw.rollout(mech, q, controls={"p": 0.1}, **options)
    assert run.gradient(q=[1.0, 0.0]).inputs["control"].shape == (2,)
    model = lw.linearize(mech, q, [0.0, 0.0], [0.0, 0.0], controls={"p": 0.1}, step=2e-3)
    other = lw.linearize(mech, q, [0.0, 0.0], [0.0, 0.0], controls=[0.1, 0.0], step=2e-3)
    assert np.array_equal(model.A, other.A)
    given = (mech, q, [0.0, 0.0], [0.0, 0.0])
    named, row = (lw.forward_dynamics(*given, controls=u) for u in ({"p": 0.1}, [0.1, 0.0]))
    assert np.array_equal(named, row)


def test_a_simulator_takes_actions_by_name():
    for mech, names in ((servos(), "pm"), (arm(), "ab")):
        one, two = (lw.Simulator(mech, batch=3) for _ in range(2))
        first = one.step({names[1]: 0.3}).copy()
        assert np.array_equal(first, two.step(np.tile([0.0, 0.3], (3, 1))))
        each = one.step({names[0]: [0.1, 0.2, 0.3]}).copy()
        assert np.array_equal(each, two.step(np.array([[0.1, 0], [0.2, 0], [0.3, 0]])))
        with pytest.raises(UnknownNameError, match="'knee'"):
            one.step({"knee": 1.0})
        with pytest.raises((ShapeError, ValueError)):
            one.step({names[0]: [0.1, 0.2]})


def test_wrong_names_and_shapes_are_named():
    options = {"duration": 0.01, "step": 2e-3}
    with pytest.raises(UnknownNameError, match=r"no actuator called 'P' in .*did you mean 'p'"):
        lw.rollout(servos(), [0.1, 0.2], controls={"P": 0.1}, **options)
    with pytest.raises(ShapeError, match=r"different shapes: 'p' \(5,\), 'm' \(4,\)"):
        lw.rollout(servos(), [0.1, 0.2], controls={"p": np.ones(5), "m": np.ones(4)}, **options)
    with pytest.raises(ShapeError, match=r"control has shape \(4, 2\)"):
        lw.rollout(servos(), [0.1, 0.2], controls={"p": np.ones(4)}, **options)


FILTERED = """<mujoco><option timestep="0.002" gravity="0 0 0"/><worldbody><body>
  <joint name="j" type="slide"/><geom size="0.1" contype="0" conaffinity="0"/></body></worldbody>
  <actuator>{}</actuator></mujoco>"""


@pytest.mark.parametrize(
    ("actuator", "reported"),
    [
        ('<general joint="j" dyntype="filter" dynprm="0.05"/>', True),
        ('<general joint="j" dyntype="filterexact" dynprm="0.05"/>', False),
        ('<cylinder joint="j" timeconst="0.05"/>', True),
        ('<position joint="j" timeconst="0.05"/>', False),
        ('<general joint="j" dyntype="integrator"/>', False),
    ],
)
@pytest.mark.oracle
def test_filters_that_mujoco_steps_by_eulers_method_are_reported(actuator, reported):
    mujoco = pytest.importorskip("mujoco")
    text = FILTERED.format(actuator)
    mech, model = lw.load(text), mujoco.MjModel.from_xml_string(text)
    items = [x for x in mech.load_report if "filterexact" in x.reason]
    assert [(x.effect, x.affects) for x in items] == [("approximate", "other")] * reported
    data = mujoco.MjData(model)
    data.ctrl[:] = 1.0
    run = lw.rollout(mech, [0.0], duration=0.1, step=2e-3, integrator="euler", controls=[1.0])
    for _ in range(50):
        mujoco.mj_step(model, data)
    assert (abs(run.v[-1, 0] - data.qvel[0]) > 1e-6) == reported  # the others agree


DRAG = lw.Actuator(
    "drag", node="tip", wrench=(0.0, 0.1, 0.0, 1.0, -2.0, 0.5), gain=(1.0, 0.0, 0.3),
    bias=(0.2, 0.0, -0.7),
)  # fmt: skip


def test_at_a_node_the_rate_is_that_of_the_node():
    """f = (g0 + g2 l̇) u + b0 + b2 l̇ with l̇ = w* V, in every call; it used to be 0."""
    mech, q, v, u = arm(DRAG), np.array([0.4, -0.7]), np.array([0.5, 1.0]), 0.6
    rate = np.array(DRAG.wrench) @ lw.jacobian(mech, q, "tip") @ v
    force = (1.0 + 0.3 * rate) * u + 0.2 - 0.7 * rate
    tau = lw.jacobian(mech, q, "tip").T @ (force * np.array(DRAG.wrench))
    acting = lw.forward_dynamics(mech, q, v, np.zeros(2), controls=[u])
    np.testing.assert_allclose(acting, lw.forward_dynamics(mech, q, v, tau), rtol=1e-12)
    assert abs(rate) > 0.5


@pytest.mark.oracle
def test_a_rate_at_a_node_is_that_of_mujoco(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    lw.save(arm(DRAG, drive=lw.Drive(armature=0.05)), tmp_path / "arm.xml")
    mech = lw.load(tmp_path / "arm.xml")
    assert mech.actuators == (DRAG,)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    model.opt.timestep, model.opt.integrator = STEP, mujoco.mjtIntegrator.mjINT_EULER
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = (0.4, -0.7), (0.5, 1.0)
    controls = np.sin(np.linspace(0.0, 9.0, 200))[:, None]
    runs = lw.rollout(
        mech, data.qpos.copy(), data.qvel.copy(), duration=200 * STEP, step=STEP,
        integrator="euler", controls=controls,
    )  # fmt: skip
    for u in controls:
        data.ctrl[:] = u
        mujoco.mj_step(model, data)
    np.testing.assert_allclose(runs.q[-1], data.qpos, rtol=0, atol=1e-11)


def test_activations_act_in_forward_dynamics():
    """v̇ beside the first step of a rollout that has moved the activations."""
    lagged = lw.Actuator("lagged", (("a", 2.0),), dynamics="filter", time_constant=0.05)
    summed = lw.Actuator("summed", (("b", 1.0),), gain=(3.0, 0.0, 0.0), dynamics="integrator",
                         activation=(-0.1, 0.02))  # fmt: skip
    mech = arm(lagged, lw.Actuator.motor("plain", "b"), summed)
    q, v, u = np.array([0.4, -0.7]), np.array([0.5, 1.0]), np.array([0.8, -0.3, 5.0])
    rec = lw.simulate(mech, q, v, duration=0.1, integrator="implicit", controls=u, step=1e-3)
    a = rec["activation"][-1]
    assert 0.5 < a[0] < 0.8 and a[1] == 0.02
    state = rec.q[-1], rec.v[-1]
    acting = lw.forward_dynamics(mech, *state, np.zeros(2), controls=u, activations=a)
    tau = np.array([2.0 * a[0], -0.3 + 3.0 * a[1]])
    np.testing.assert_allclose(acting, lw.forward_dynamics(mech, *state, tau), rtol=1e-12)
    named = {"controls": {"plain": -0.3}, "activations": {"lagged": a[0], "summed": 9.0}}
    same = lw.forward_dynamics(mech, *state, np.zeros(2), **named)  # 9 is cut to the range
    np.testing.assert_allclose(same, acting, rtol=1e-12)
    many = lw.forward_dynamics(
        mech, rec.q, rec.v, np.zeros(2), controls=u, activations=rec["activation"]
    )
    np.testing.assert_allclose(many[-1], acting, rtol=1e-12)
    with pytest.raises(ModelError, match="'lagged', 'summed' have an activation"):
        lw.forward_dynamics(mech, q, v, np.zeros(2), controls=u)
    with pytest.raises(ModelError, match="without controls"):
        lw.forward_dynamics(mech, q, v, np.zeros(2), activations=a)
    with pytest.raises(ShapeError, match=r"activations has shape \(3,\)"):
        lw.forward_dynamics(mech, q, v, np.zeros(2), controls=u, activations=u)
    with pytest.raises(UnknownNameError, match="plain"):
        lw.forward_dynamics(mech, q, v, np.zeros(2), controls=u, activations={"plain": 1.0})
    with pytest.raises(ModelError, match="no actuator of"):
        lw.forward_dynamics(arm(DRAG), q, v, np.zeros(2), controls=[0.1], activations=a)
