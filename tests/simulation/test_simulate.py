"""`lw.simulate`: what acts, against closed forms and slower ways to the same motion."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import linkwise as lw
from tests.simulation.moving import (
    calls_of_kernels,
    distance,
    mass_on_spring,
    pendulum,
    reference,
    steps_by_kernel,
    tumbling,
)

G = 9.81


def ball_and_pin():
    """A ball hinge and a pin."""
    build = lw.Builder("ball and pin")
    heavy = lw.SpatialInertia.from_com(2.0, (0.1, 0.05, -0.2), (0.1, 0.2, 0.25))
    build.body("base", hinge=lw.hinges.Spherical(), inertia=heavy)
    light = lw.SpatialInertia.from_com(0.5, (0.1, 0.0, 0.0), (0.01, 0.02, 0.02))
    build.body(
        "tip", parent="base", hinge=lw.hinges.Pin((0, 1, 0)), inboard=(0.3, 0, 0), inertia=light
    )
    return build.build()


def end(rec):
    return rec.q[-1], rec.v[-1]


# --------------------------------------------------------------------------- kernels and reference


@pytest.mark.parametrize("integrator", ["euler", "rk4", "rk4_mujoco", "variational"])
def test_compiled_steps_are_the_reference_steps(integrator, monkeypatch):
    """A kernel for many steps gives the numbers of the steps in NumPy."""
    mech = ball_and_pin().with_drive("tip", damping=0.05, stiffness=2.0, rest=0.3)
    q, v = mech.random(seed=1), mech.random_velocity(seed=2)
    tau = {"tip": 0.2, "base": (0.1, 0.0, -0.2)}
    options = {"duration": 0.2, "integrator": integrator, "tau": tau, "record_every": 50}
    steps_by_kernel(monkeypatch, True)
    compiled = lw.simulate(mech, q, v, **options)
    steps_by_kernel(monkeypatch, False)
    plain = lw.simulate(mech, q, v, **options)
    assert np.array_equal(compiled.t, plain.t) and len(plain) == 5
    # 200 steps of rounding, of numbers up to about 5; a step of another method is 1e-8 away.
    assert compiled.q == pytest.approx(plain.q, rel=1e-12, abs=1e-12)
    assert compiled.v == pytest.approx(plain.v, rel=1e-12, abs=1e-12)
    # Works by the trapezoidal rule with corrected ends, and by powers at stages.
    works = {"euler": 3e-3, "variational": 1e-6}.get(integrator, 1e-10)
    for name in ("work.joints", "work.passive"):
        assert abs(plain[name][-1]) > 1e-3
        assert compiled[name] == pytest.approx(plain[name], abs=works)


def test_compiled_steps_between_the_ticks_of_a_controller(monkeypatch):
    mech = lw.models.pendulum(3).with_drive(["pin_1", "pin_2"], damping=0.1)
    q, calls = mech.random(seed=1), list[float]()

    def controller(t, q, v):
        calls.append(t)
        return np.sin(t + q) - 2.0 * v

    options = {"duration": 0.2, "controller": controller, "control_step": 0.01}
    steps_by_kernel(monkeypatch, True)
    compiled = lw.simulate(mech, q, **options)
    assert calls == pytest.approx(0.01 * np.arange(20), abs=1e-12)  # once a tick
    steps_by_kernel(monkeypatch, False)
    plain = lw.simulate(mech, q, **options)
    assert compiled.v == pytest.approx(plain.v, rel=1e-11, abs=1e-11)
    # The work of what is held is τ Δq in the one, a sum of powers at stages in the other.
    assert compiled["work.joints"] == pytest.approx(plain["work.joints"], abs=1e-9)
    assert compiled.report.drift < 1e-6 and abs(compiled["work.joints"][-1]) > 0.1


@pytest.mark.parametrize("limits", ["ignore", "stop"])
@pytest.mark.parametrize("every", [1, 7])
def test_steps_that_need_no_python_are_made_at_once(limits, every, monkeypatch):
    """One call of the kernel for all of them, a few where a limit is reached: the same report."""
    mech = lw.models.pendulum(2).with_drive("pin_1", damping=0.1, stiffness=3.0, upper=1.25)
    table = np.random.default_rng(1).standard_normal((30, 2))
    options = {"duration": 0.2995, "controller": table, "control_step": 0.01, "limits": limits}
    calls = calls_of_kernels(monkeypatch)
    runs = []
    for compiled in (True, False):
        steps_by_kernel(monkeypatch, compiled)
        rec = lw.simulate(mech, [1.0, 0.2], [3.0, 0.0], record_every=every, **options)
        runs.append(rec)
    compiled, plain = runs
    assert sum(calls) >= compiled.steps and len(calls) <= (2 if limits == "ignore" else 60)
    assert compiled.t == pytest.approx(plain.t, abs=1e-9) and len(plain) == len(compiled)
    assert compiled.q == pytest.approx(plain.q, abs=1e-8)
    assert (compiled.tau == plain.tau).all() and len(np.unique(plain.tau)) > 10
    assert [str(x) for x in compiled.events] == [str(x) for x in plain.events]
    assert (compiled.stopped, len(plain.events)) == (plain.stopped, int(limits == "stop"))
    for name in ("work.joints", "work.passive"):
        assert abs(plain[name][-1]) > 1e-4
        assert compiled[name] == pytest.approx(plain[name], abs=1e-9)


@pytest.mark.parametrize("every", [1, 7])
def test_a_control_law_is_part_of_the_steps(every, monkeypatch):
    """A law that is asked at each step: one call of the kernel, and the motion of Python."""
    arm = lw.models.seven_dof_arm()
    q, hand = np.array([0.3, 0.6, -0.2, 1.2, 0.4, 0.7, 0.1]), lw.Task.position("hand")
    law = lw.control_law(arm, hand, kp=100.0, kv=20.0)
    goal = lw.tasks.task_position(arm, q, hand) + np.array([0.05, -0.02, 0.03])
    options = {"duration": 0.0995, "step": 1e-3, "control_step": 1e-3, "record_every": every}
    calls = calls_of_kernels(monkeypatch)
    steps_by_kernel(monkeypatch, True)
    compiled = lw.simulate(arm, q, controller=(law, goal), **options)
    assert calls == [99]  # and a shorter one
    steps_by_kernel(monkeypatch, False)
    plain = lw.simulate(arm, q, controller=(law, goal), **options)
    assert compiled.t == pytest.approx(plain.t, abs=1e-12)
    assert compiled.v == pytest.approx(plain.v, abs=1e-11)
    assert np.abs(plain.v[-1]).max() > 0.05
    assert compiled.tau == pytest.approx(plain.tau, abs=1e-9)
    for name in ("work.joints", "work.passive"):
        assert abs(plain[name][-1]) > 1e-4
        assert compiled[name] == pytest.approx(plain[name], abs=1e-10)


def test_any_tree_moves_as_a_plain_equation_says():
    mech = tumbling()
    q, v = mech.random(seed=3), mech.random_velocity(seed=4)

    def force(t, q, v):
        return np.cos(2.0 * t + np.arange(10.0)) - 0.3 * v

    rec = lw.simulate(mech, q, v, duration=0.3, step=1e-3, tau=force)
    exact = reference(mech, q, v, 0.3, force)
    assert distance(mech, end(rec), exact) < 1e-9  # of fourth order: measured 1.4e-10
    assert rec.report.drift < 1e-9  # works are summed at the stages, of the same order


def test_a_tree_without_freedom_stays_where_it_is():
    build = lw.Builder("statue")
    build.body(
        "stone",
        hinge=lw.hinges.Locked(),
        inertia=lw.SpatialInertia.from_com(1.0, (0, 0, 0), (1, 1, 1)),
    )
    mech = build.build()
    for integrator in ("rk4", "adaptive"):
        rec = lw.simulate(mech, duration=0.1, step=0.01, integrator=integrator)
        assert rec.t[-1] == 0.1 and rec.q.shape == (len(rec), 0)


# ---------------------------------------------------------------------------------- what may act


def test_joint_forces_of_all_kinds():
    """A mass of 2 kg pushed up by 30 N: x = ½ (F/m − g) t², exact for every Runge-Kutta method."""
    mech = mass_on_spring()
    expected = 0.5 * (15.0 - G) * 0.25
    for tau in (30.0, [30.0], {"slide": 30.0}, lambda t, q, v: 30.0, lambda t, q, v: {"slide": 30}):
        rec = lw.simulate(mech, duration=0.5, step=0.01, tau=tau)
        assert rec.q[-1, 0] == pytest.approx(expected, rel=1e-12)
        assert rec["work.joints"][-1] == pytest.approx(30.0 * expected, rel=1e-9)
    both = lw.simulate(mech, duration=0.5, step=0.01, tau=10.0, controller=[20.0])
    assert both.q[-1, 0] == pytest.approx(expected, rel=1e-12)
    assert both["tau"] == pytest.approx(np.full((51, 1), 30.0))


@pytest.mark.parametrize("compiled", [True, False])
def test_dampers_and_springs_of_the_drives(compiled, monkeypatch):
    """m ẍ = −k (x − r) − d ẋ − m g against the solution of the damped oscillator."""
    steps_by_kernel(monkeypatch, compiled)
    m, k, d, rest = 2.0, 80.0, 1.5, 0.1
    mech = mass_on_spring(m, stiffness=k, damping=d, rest=rest)
    rec = lw.simulate(mech, [0.3], duration=1.0, step=1e-3)
    decay, middle = 0.5 * d / m, rest - m * G / k
    swing = np.sqrt(k / m - decay**2)
    x = (0.3 - middle) * np.exp(-decay * rec.t)
    expected = middle + x * (np.cos(swing * rec.t) + decay / swing * np.sin(swing * rec.t))
    # (ω h)⁵/120 a step, and a thousand steps of that.
    assert rec.q[:, 0] == pytest.approx(expected, abs=1e-10)
    free = lw.simulate(mech, [0.3], duration=0.5, passive=False)
    assert free.q[-1, 0] == pytest.approx(0.3 - 0.5 * G * 0.25, rel=1e-12)
    assert "passive=False" in str(free)


def test_a_controller_that_is_held():
    """u = −k x − d v asked every T: the exact recurrence of a mass under a constant force."""
    mech, tick = mass_on_spring(), 0.02
    seen = list[tuple[float, float]]()

    def controller(t, q, v):
        seen.append((t, float(q[0])))
        return -40.0 * q - 5.0 * v

    rec = lw.simulate(
        mech, [0.2], duration=0.5, step=5e-3, controller=controller, control_step=tick
    )
    x, v = 0.2, 0.0
    for n in range(25):
        assert seen[n][0] == pytest.approx(n * tick, abs=1e-12)
        assert seen[n][1] == pytest.approx(x, abs=1e-12)
        a = (-40.0 * x - 5.0 * v) / 2.0 - G
        x, v = x + v * tick + 0.5 * a * tick**2, v + a * tick
    assert rec.q[-1, 0] == pytest.approx(x, abs=1e-12)
    assert rec.v[-1, 0] == pytest.approx(v, abs=1e-12)
    # Without a tick it is asked at the stages, which is another motion.
    smooth = lw.simulate(mech, [0.2], duration=0.5, step=5e-3, controller=controller)
    exact = reference(mech, np.array([0.2]), np.zeros(1), 0.5, lambda t, q, v: -40 * q - 5 * v)
    assert smooth.q[-1, 0] == pytest.approx(exact[0][0], abs=1e-7)
    assert abs(smooth.q[-1, 0] - x) > 1e-3


def test_steps_are_shortened_to_fit_between_ticks():
    mech = mass_on_spring()
    rec = lw.simulate(mech, duration=0.1, step=3e-3, controller=[1.0], control_step=0.01)
    assert rec.step == pytest.approx(0.0025) and rec.steps == 40
    short = lw.simulate(mech, duration=0.1, step=1.0, controller=[1.0], control_step=0.01)
    assert short.step == pytest.approx(0.01)


def test_a_table_of_joint_forces():
    mech = mass_on_spring()
    table = np.array([[10.0], [30.0], [-20.0]])
    rec = lw.simulate(mech, duration=0.3, step=0.02, controller=table, control_step=0.1)
    x = v = 0.0
    for force in table[:, 0]:
        a = force / 2.0 - G
        x, v = x + 0.1 * v + 0.005 * a, v + 0.1 * a
    assert rec.q[-1, 0] == pytest.approx(x, abs=1e-13)
    assert rec["tau"][0, 0] == 10.0 and rec["tau"][-1, 0] == -20.0


def test_control_laws_and_task_controllers_with_their_goals():
    """The same servo as a law, as a controller and as a function moves the arm the same way."""
    arm = lw.models.planar_rpp()
    q = np.array([0.3, 0.6, 0.4])
    task = lw.Task.position("end_effector", "xy")
    law = lw.control_law(arm, task, kp=100.0, kv=20.0)
    controller = lw.TaskController(arm, lw.tasks.Servo(task, kp=100.0, kv=20.0))
    goal = lw.tasks.task_position(arm, q, task) + np.array([0.05, -0.03, 0.0])
    options = {"duration": 0.05, "step": 1e-3, "record_every": 10, "control_step": 1e-3}
    runs = [
        lw.simulate(arm, q, controller=given, **options)
        for given in (
            (law, goal),
            (law, lambda t: goal),
            lambda t, q, v: law(q, v, goal),
            (controller, goal),
            (controller, lw.Goal(goal)),
        )
    ]
    for rec in runs[1:3]:
        assert rec.q == pytest.approx(runs[0].q, abs=1e-14)
    for rec in runs[3:]:  # the posture of the free directions is another
        gone = [lw.tasks.task_position(arm, x, task) for x in rec.q]
        first = [lw.tasks.task_position(arm, x, task) for x in runs[0].q]
        assert np.array(gone) == pytest.approx(np.array(first), abs=1e-9)
    left = lw.tasks.task_error(arm, runs[0].q[-1], task, goal)
    assert 0.0 < np.linalg.norm(left) < 0.06


def test_forces_from_outside():
    """A free body pushed along x of the world while it turns, and along its own x."""
    build = lw.Builder("puck", gravity=(0, 0, 0))
    build.body(
        "puck",
        hinge=lw.hinges.Free(),
        inertia=lw.SpatialInertia.from_com(2.0, (0, 0, 0), (0.1, 0.1, 0.2)),
    )
    mech = build.build()
    v = np.array([0.0, 0.0, 3.0, 0.0, 0.0, 0.0])
    push = {"puck": np.array([0.0, 0, 0, 4.0, 0, 0])}
    world = lw.simulate(mech, v=v, duration=0.5, step=1e-3, forces=push, forces_frame="world")
    assert world.q[-1, 4:] == pytest.approx([0.25, 0.0, 0.0], abs=1e-12)
    assert world["work.forces"][-1] == pytest.approx(1.0, abs=1e-12)  # 4 N over 0.25 m
    rec = lw.simulate(mech, v=v, duration=0.5, step=1e-3, forces=lambda t, q, v: push)
    # p̈ = 2 (cos 3t, sin 3t): p = 2/9 (1 − cos 3t, 3t − sin 3t).
    expected = 2.0 / 9.0 * np.array([1.0 - np.cos(1.5), 1.5 - np.sin(1.5), 0.0])
    assert rec.q[-1, 4:] == pytest.approx(expected, abs=1e-12)
    assert rec["force.puck"][:, 3] == pytest.approx(np.full(501, 4.0))
    assert rec.report.drift < 1e-12


# --------------------------------------------------------------------------------------- records


def test_records_and_their_times():
    mech = pendulum()
    rec = lw.simulate(mech, [0.5], duration=0.0255, step=1e-3, record_every=10, start=2.0)
    assert rec.t == pytest.approx([2.0, 2.01, 2.02, 2.0255], abs=1e-15)
    assert rec.steps == 26
    assert len(lw.simulate(mech, [0.5], duration=5.0, step=1e-3)) == 1001
    assert len(lw.simulate(mech, [0.5], duration=0.0)) == 1
    full = lw.simulate(mech, [0.5], duration=0.0255, step=1e-3)
    assert full.q[-1] == pytest.approx(rec.q[-1], abs=1e-15)


def test_probes_are_channels():
    mech = pendulum(0.8)
    probes = {
        "height of the bob [m]": lambda t, q, v, tau: -0.8 * np.cos(q[0]),
        "both": lambda t, q, v, tau: [t, tau[0]],
    }
    rec = lw.simulate(mech, [0.5], duration=0.1, tau=0.3, probes=probes)
    assert rec["height of the bob"] == pytest.approx(-0.8 * np.cos(rec["q[swing]"]))
    assert rec.channel("height of the bob").unit == "m"
    assert rec["both"][:, 0] == pytest.approx(rec.t) and (rec["both"][:, 1] == 0.3).all()


def test_the_beginning_is_neutral_and_at_rest():
    rec = lw.simulate(pendulum(), duration=0.01)
    assert (rec.q == 0.0).all() and (rec.v == 0.0).all()


# ------------------------------------------------------------------------------ loops and grasps


def test_dampers_and_springs_in_loops_act():
    """`passive` includes the hinge that is cut, in the axes of nodes and of the world."""
    mech = lw.models.four_bar()
    q = mech.neutral()
    v = lw.loops.project_velocity(mech, q, np.array([3.0, 0.0, 0.0]))
    drive = lw.Drive(damping=0.02, stiffness=0.5)
    loops = tuple(dataclasses.replace(x, drive=drive) for x in mech.loops)
    mech = dataclasses.replace(mech, loops=loops)
    options = {"duration": 0.06, "step": 2e-3}
    forces = lambda t, q, v: lw.loops.loop_drive_forces(mech, q, v)  # noqa: E731
    tau = lambda t, q, v: -mech.damping * v  # noqa: E731
    motion = lw.simulate(mech, q, v, tau=tau, forces=forces, passive=False, **options)
    for frame in ("node", "world"):
        rec = lw.simulate(mech, q, v, forces_frame=frame, **options)
        assert rec.q == pytest.approx(motion.q, abs=1e-11)
        assert rec["work.passive"][-1] < -1e-3
        assert rec.report.drift < 1e-7 * rec.report.kinetic


@pytest.mark.parametrize("frame", ["node", "world"])
def test_springs_in_loops_pull_along_their_axes(frame):
    """A lump in guides along oblique axes e_i, each with a spring: m s̈_i = m g·e_i − k s_i.

    In world axes, p = Σ s_i e_i, with s_i(t) = (m g·e_i/k) (1 − cos ωt) from rest, ω² = k/m.
    """
    oblique, mass, w = lw.Pose.rpy((0.7, -0.4, 1.1)), 2.0, 30.0
    build = lw.Builder("lump")
    lump = lw.SpatialInertia.from_com(mass, (0, 0, 0), (0.1, 0.2, 0.3))
    build.body("lump", hinge=lw.hinges.Free(), inertia=lump)
    build.node("slot", "lump", pose=oblique).node("guide", "world", pose=oblique)
    drive = lw.Drive(stiffness=mass * w**2)
    mech = build.loop("guides", "guide", "slot", lw.hinges.Translation(), drive=drive).build()
    rec = lw.simulate(mech, duration=0.05, forces_frame=frame, forces={"slot": np.zeros(6)})
    s = (mech.gravity @ oblique.rot)[:, None] / w**2 * (1.0 - np.cos(w * rec.t))
    assert rec.q[:, 4:] == pytest.approx((oblique.rot @ s).T, abs=1e-8)  # RK4 with h ω = 0.03
    assert rec.report.drift < 1e-6 * rec.report.kinetic


def test_couplings_are_kept():
    """Two pins geared one to minus two move as one freedom: ½ (𝓜 along the gear) θ̇² is kept."""
    link = lw.SpatialInertia.from_com(1.0, (0, 0, -0.3), (0.1, 0.1, 0.1))
    build = lw.Builder("geared")
    build.body("a", hinge=lw.hinges.Pin((0, 1, 0)), inertia=link)
    build.body("b", parent="a", hinge=lw.hinges.Pin((0, 1, 0)), inboard=(0, 0, -0.5), inertia=link)
    gear = lw.Coupling("gear", "b", (("a", (-2.0,)),))
    mech = dataclasses.replace(build.build(), couplings=(gear,))
    rec = lw.simulate(mech, mech.couple(np.array([0.5, 0.0])), duration=0.3, step=2e-3)
    assert rec.q[:, 1] == pytest.approx(-2.0 * rec.q[:, 0], abs=1e-11)
    assert np.ptp(rec.q[:, 0]) > 0.05 and rec.report.relative_drift < 1e-8


def test_energy_may_come_out_of_springs_in_loops():
    """Nothing drives it but a spring inside the loop, which the guard of energy does not know."""
    mech = lw.models.four_bar()
    drive = lw.Drive(stiffness=20.0, rest=2.0)
    loops = tuple(dataclasses.replace(x, drive=drive) for x in mech.loops)
    mech = dataclasses.replace(mech, loops=loops)
    rec = lw.simulate(mech, mech.neutral(), duration=0.02, step=1e-3)
    assert rec["energy.kinetic"].max() > 1.0 and rec["work.passive"][-1] > 1.0
    assert rec.report.relative_drift < 1e-7
