"""Dextrous dynamic coordination (003, section 5.3): what it pulls, and what a run shows."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise import models
from linkwise.errors import ModelError, ShapeError, UnknownNameError
from tests.dense_kinematics import mass_matrix, node_jacobian

SPLIT = "mini_shoulder"
PLANE = lw.Task.position("tip", "xy")


@pytest.fixture(scope="module")
def arm():
    return models.planar_macro_mini()


@pytest.fixture(scope="module")
def tuned(arm):
    return lw.papers.DextrousCoordination.tuned(
        arm, arm.neutral(), PLANE, split=SPLIT, frequency=8.0, ratio=1.5
    )


@pytest.fixture(scope="module")
def example():
    path = Path(__file__).parents[2] / "examples" / "dextrous_coordination.py"
    spec = importlib.util.spec_from_file_location("dextrous_coordination", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def dense_null_torque(mech, q, tau):
    """(I - J* J̄*) τ with J̄ = A⁻¹ J* (J A⁻¹ J*)⁻¹, from matrices made by the definitions."""
    rot = mech.pose(q, "tip").rot
    J = (np.kron(np.eye(2), rot) @ node_jacobian(mech, q, "tip"))[3:5]
    A_inv = np.linalg.inv(mass_matrix(mech, q))
    J_bar = A_inv @ J.T @ np.linalg.inv(J @ A_inv @ J.T)
    return tau - J.T @ (J_bar.T @ tau), J @ A_inv, A_inv


def test_the_torque_is_the_slope_of_the_potential(arm):
    """(53), (54): V = Σ k_d (q_i - middle)², Γ = -∇V; nothing at the joints of the macro."""
    lopsided = arm.with_drive(["mini_elbow"], lower=-0.2, upper=0.8)
    pull = lw.papers.DextrousCoordination(lopsided, SPLIT, kd=[20.0, 7.0])
    q = lopsided.random(3)
    middle = np.array([0.0, 0.3])
    assert pull.potential(q) == pytest.approx(np.sum([20.0, 7.0] * (q[2:] - middle) ** 2))
    step = 1e-6
    slope = [
        (pull.potential(q + step * e) - pull.potential(q - step * e)) / (2 * step)
        for e in np.eye(4)
    ]
    # A quadratic has no error of third order: what is left is rounding, 1e-16 / 1e-6.
    np.testing.assert_allclose(pull.torque(q), -np.array(slope), rtol=0, atol=1e-8)
    np.testing.assert_array_equal(pull.torque(q)[:2], 0.0)
    np.testing.assert_array_equal(pull.torque(q, np.ones(4)), pull.torque(q))  # no damping asked
    damped = lw.papers.DextrousCoordination(lopsided, SPLIT, kd=[20.0, 7.0], kv=3.0)
    np.testing.assert_allclose(damped.torque(q, np.ones(4)) - damped.torque(q), [0, 0, -3, -3])
    batch = np.stack([q, lopsided.random(4)])
    assert pull.potential(batch).shape == (2,) and pull.torque(batch).shape == (2, 4)


def test_the_tip_feels_nothing_and_the_mini_is_drawn_in(arm, tuned):
    """(55): against dense matrices; J A⁻¹ Γ_nd = 0; the mini accelerates to its middle."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        q = arm.random(rng)
        result = tuned.null_torque(q, None, PLANE)
        expected, response, A_inv = dense_null_torque(arm, q, tuned.torque(q))
        scale = np.abs(expected).max()
        np.testing.assert_allclose(result, expected, rtol=0, atol=1e-10 * scale)
        assert np.abs(response @ result).max() < 1e-10 * np.abs(response).max() * scale
        # dV/dt starts with Γ_d* A⁻¹ N* Γ_d ≥ 0 of what is pulled: V goes down.
        assert tuned.torque(q) @ A_inv @ result > 0.0


def test_frequency_of_a_slider_on_a_slider():
    """M ẍ = 2 k_d (x_tip - x): the macro follows at √(2 k_d / M), whatever the mini weighs."""
    M_macro, m_mini, k = 7.0, 0.4, 31.0
    b = lw.Builder("two sliders")
    b.body(
        "macro", "world", lw.hinges.Prismatic((1, 0, 0)), inertia=lw.SpatialInertia.point(M_macro)
    )
    b.body(
        "mini",
        "macro",
        lw.hinges.Prismatic((1, 0, 0)),
        inertia=lw.SpatialInertia.point(m_mini),
        drive=lw.Drive(lower=-0.1, upper=0.1),
    )
    mech, task = b.build(), lw.Task.position("mini", "x")
    pull = lw.papers.DextrousCoordination(mech, "mini", kd=k)
    result = pull.frequencies([0.3, 0.05], task)
    np.testing.assert_allclose(result, [np.sqrt(2.0 * k / M_macro)], rtol=1e-12)
    # N* Γ = (-Γ_mini, 0): what pulls the mini back is the macro.
    np.testing.assert_allclose(pull.null_torque([0.3, 0.05], None, task), [2 * k * 0.05, 0.0])
    tuned = lw.papers.DextrousCoordination.tuned(
        mech, [0, 0], task, split="mini", frequency=5.0, ratio=0.7
    )
    np.testing.assert_allclose(tuned.kd, 0.5 * 25.0 * M_macro)
    np.testing.assert_allclose(tuned.kv, 2 * 0.7 * 5.0 * M_macro)


def test_frequencies_are_those_of_the_joints_when_the_tip_is_held(arm, tuned):
    """q̈ of the mini for a tip that does not accelerate, by forward dynamics: -ω² along modes."""
    q0 = arm.neutral()
    result = tuned.frequencies(q0, PLANE)
    assert result[-1] == pytest.approx(8.0, rel=1e-9) and len(result) == 2
    stiff = np.zeros((2, 2))
    for j in range(2):
        q = q0.copy()
        q[2 + j] = 1e-5
        still = np.zeros(4)
        pull = tuned.torque(q)
        tau = lw.tasks.task_torque(arm, q, still, PLANE, [0.0, 0.0], tau0=pull, compensate="joints")
        stiff[:, j] = -lw.forward_dynamics(arm, q, still, tau)[2:] / 1e-5
    # The state moves by 1e-5 rad, so the matrix is off by about that part.
    np.testing.assert_allclose(np.sort(np.linalg.eigvals(stiff)), result**2, rtol=1e-3)


def test_plain_control_runs_into_the_stops_and_coordination_does_not(arm, tuned, example):
    """The tip goes farther than the mini reaches: 003, section 5.3, in one second."""
    home = lw.tasks.task_position(arm, arm.neutral(), PLANE)
    path = example.journey(home)
    runs = {}
    for name, posture in (("plain", None), ("coordinated", tuned.posture)):
        controller = lw.TaskController(arm, example.SERVO, posture=posture)
        runs[name] = lw.simulate(
            arm,
            arm.neutral(),
            np.zeros(4),
            controller=(controller, path),
            control_step=4e-3,
            duration=1.0,
            step=4e-3,
            watch=tuned.watch(),
        )
    lost = runs["plain"].events
    assert runs["plain"].stopped and lost[0].name == "range of mini_shoulder"
    assert 0.4 < lost[0].t < 0.8
    assert np.isclose(tuned.share(runs["plain"].q[-1]).max(), 1.0, atol=1e-6)
    followed = runs["coordinated"]
    assert not followed.stopped and followed.t[-1] == pytest.approx(1.0)
    assert tuned.share(followed.q).max() < 0.35
    # The tip is where it should be in both, as far as they went: torques held for 4 ms.
    for run in runs.values():
        there = lw.forward_kinematics(arm, run.q, "tip").p
        goals = np.array([path(t).position for t in run.t])
        assert np.linalg.norm(there - goals, axis=1).max() < 1e-4


def test_bandwidth_is_that_of_the_mini(arm, tuned, example):
    """A sine of 10 mm at 12 Hz with the torques there are: the macro alone draws half of it."""
    both = lw.TaskController(arm, example.SERVO, posture=tuned.posture)
    held = arm.lock(example.MINI)
    assert example.gain(arm, both, 12.0) == pytest.approx(1.0, abs=0.05)
    assert example.gain(held, lw.TaskController(held, example.SERVO), 12.0) < 0.6


@pytest.mark.slow
def test_the_example_runs(example, capsys):
    example.main()
    assert "coordinated" in capsys.readouterr().out


@pytest.mark.slow
def test_in_space_with_ten_joints():
    """The tip goes 0.39 m sideways and up and does not turn; the mini stays inside its ranges."""
    mech, task = models.macro_mini(), lw.Task.pose("tip")
    pull = lw.papers.DextrousCoordination.tuned(
        mech, mech.neutral(), task, split="mini_yaw", frequency=12.0, ratio=2.0
    )
    start = lw.tasks.task_position(mech, mech.neutral(), task)
    way, time = np.array([0.0, 0.25, 0.3]), 1.5
    servo = lw.tasks.Servo(task, kp=400.0, kv=40.0)
    used = {}
    for name, posture in (("plain", None), ("coordinated", pull.posture)):
        controller = lw.TaskController(mech, servo, posture=posture)

        def tau(t, q, v, controller=controller):
            u = min(t / time, 1.0)
            part = 10 * u**3 - 15 * u**4 + 6 * u**5
            return controller(q, v, lw.Pose.rotation(start.rot, start.p + way * part))

        run = lw.simulate(
            mech,
            mech.neutral(),
            np.zeros(10),
            controller=tau,
            control_step=4e-3,
            duration=2.0,
            step=4e-3,
            watch=pull.watch(),
        )
        used[name] = run.stopped, pull.share(run.q).max()
    assert used["plain"][0]
    assert not used["coordinated"][0] and used["coordinated"][1] < 0.8


# ---------------------------------------------------------------------------------- bad input


def test_bad_input_is_told(arm):
    free = arm.with_drive(["mini_elbow"], upper=np.inf)
    make = lw.papers.DextrousCoordination
    with pytest.raises(ModelError, match="'mini_elbow' has no lower and upper limit"):
        make(free, SPLIT, kd=1.0)
    assert make(free, SPLIT, kd=1.0, hinges=["mini_shoulder"]).hinges == ("mini_shoulder",)
    with pytest.raises(ModelError, match="'elbow' is not part of the mini"):
        make(arm, SPLIT, kd=1.0, hinges=["elbow"])
    with pytest.raises(UnknownNameError, match="mini_shoulder"):
        make(arm, "mini_sholder", kd=1.0)
    with pytest.raises(ModelError, match="nothing moves between the ground and it"):
        make(arm, "shoulder", kd=1.0)
    with pytest.raises(ModelError, match=r"kd of the coordination is -1"):
        make(arm, SPLIT, kd=-1.0)
    with pytest.raises(ShapeError, match="kd of the coordination has shape"):
        make(arm, SPLIT, kd=[1.0, 2.0, 3.0])
    with pytest.raises(ModelError, match="never settle"):
        _ = make(arm, SPLIT, kd=1.0).posture
    with pytest.raises(ModelError, match="frequency is 0"):
        make.tuned(arm, arm.neutral(), PLANE, split=SPLIT, frequency=0)
    everything = lw.Task.joints(*(b.hinge_name for b in arm.bodies))
    with pytest.raises(ModelError, match="no internal motion that moves the mini"):
        make.tuned(arm, arm.neutral(), everything, split=SPLIT, frequency=5.0)
    with pytest.raises(ModelError, match="those of one state"):
        make(arm, SPLIT, kd=1.0).frequencies(np.zeros((2, 4)), PLANE)
