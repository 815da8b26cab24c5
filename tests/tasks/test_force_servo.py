"""The force loop and its stability, and the phases of a contact."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError
from linkwise.tasks import (
    CompliantSurface,
    ContactPhase,
    ContactTransition,
    ForceServo,
    MotionForceController,
    Selection,
)
from linkwise.tasks.task import Task

FLOOR = CompliantSurface((0, 0, 0), (0, 0, 1), 2000.0, 8.0)
TASK = Task.position("foot", along="z")


def slider(mass: float = 2.0) -> lw.Mechanism:
    """A block that slides along z under gravity; its node is its origin."""
    b = lw.Builder("slider")
    b.body(
        "block", "world", lw.hinges.Prismatic((0, 0, 1)),
        inertia=lw.SpatialInertia.from_com(mass, (0, 0, 0), (0.01, 0.01, 0.01)),
    )  # fmt: skip
    b.node("foot", "block")
    return b.build()


def controller_of(mech, servo, transition=None):
    return MotionForceController(
        mech, TASK, Selection.along_normal(FLOOR), kp=1.0, kv=1.0, servo=servo,
        transition=transition,
    )  # fmt: skip


def test_poles_are_those_of_the_closed_loop():
    servo = ForceServo(kf=0.05, kv=20.0, ki=0.3)
    k, d = 2000.0, 8.0
    # State (x, ẋ, ∫ e), f_d = 0: ẍ = - k_f f + k_i z - k_v ẋ, ż = - f.
    A = np.array(
        [
            [0, 1, 0],
            [-servo.kf * k, -servo.kf * d - servo.kv, servo.ki],
            [-k, -d, 0],
        ]
    )
    loop = servo.loop(FLOOR)
    assert np.allclose(np.sort_complex(loop.poles), np.sort_complex(np.linalg.eigvals(A)))
    assert loop.stable and "stable" in str(loop)


def test_an_integral_below_kv_kf_is_stable_on_every_surface():
    rng = np.random.default_rng(0)
    for _ in range(300):
        kf, kv, k = 10.0 ** rng.uniform([-3, -1, 1], [1, 3, 6])
        d = rng.choice([0.0, 10.0 ** rng.uniform(-1, 4)])
        servo = ForceServo(kf, kv, 0.99 * kf * kv * rng.uniform())
        surface = CompliantSurface((0, 0, 0), (0, 0, 1), k, d)
        assert servo.loop(surface).stable
    # And no more than that can be said: beyond it the loop without damping swings up.
    kf, kv, k = 0.05, 20.0, 2000.0
    assert np.roots([1.0, kv, kf * k, 1.01 * kf * kv * k]).real.max() > 0.0
    with pytest.raises(ModelError, match="ki is below kv kf"):
        ForceServo(kf, kv, 1.01 * kf * kv)


def test_gains_for_a_surface_place_the_poles():
    loop = ForceServo.for_surface(FLOOR, 30.0, damping_ratio=0.7).loop(FLOOR)
    assert np.allclose(np.abs(loop.poles), 30.0)
    assert loop.damping_ratio == pytest.approx(0.7)
    assert loop.settling_time == pytest.approx(np.log(100.0) / 21.0)
    with pytest.raises(ModelError, match="damping of the surface alone"):
        ForceServo.for_surface(FLOOR, 1000.0)


@pytest.mark.parametrize(("step", "ki"), [(0.005, 0.0), (0.02, 0.0), (0.05, 0.0), (0.01, 2.0)])
def test_a_loop_in_steps_is_the_one_that_was_computed(step, ki):
    """Penetrations of seven instants obey the recurrence of the computed poles, stable or not."""
    mech, servo = slider(), ForceServo(kf=0.05, kv=60.0, ki=ki)
    controller = controller_of(mech, servo)
    final = 30.0 / FLOOR.stiffness
    q, v, integral, result = np.array([-1.1 * final]), np.zeros(1), np.zeros(1), []
    for _ in range(7):
        request = {"goal": np.zeros(3), "force": 30.0, "integral": integral}
        request["contact"] = controller.sense(q, v, FLOOR)
        command = controller.command(q, v, **request)
        integral = command.integral_after(step)
        result.append(-q[0] - final)
        run = lw.simulate(
            mech, q, v, tau=command.tau, forces=FLOOR.forces(mech, "foot"), duration=step,
            step=step / 8,
        )  # fmt: skip
        q, v = run.q[-1], run.v[-1]
        assert FLOOR.touch(mech, q, v, "foot").touching  # else it is not linear
    loop = servo.loop(FLOOR, mass=2.0, step=step)
    # xⱼ₊ₙ + c₁ xⱼ₊ₙ₋₁ + … = 0 with the polynomial whose roots are z = e^{s h}.
    law = np.poly(np.exp(loop.poles * step)).real
    for j in range(len(result) - len(law) + 1):
        window = np.array(result[j : j + len(law)][::-1])
        # RK4 with ωh/8 = 0.2 at most: 1e-5 of what moves in a step.
        assert abs(law @ window) < 2e-5 * np.abs(window).max()
    assert loop.stable == (step < 0.035)
    assert f"steps of {step}" in str(loop)


def test_a_wrong_model_leaves_an_error_that_the_integral_takes_away():
    """The controller knows 2 kg; the block has 2.3 kg, so that 0.3 kg press besides."""
    real, model = slider(2.3), slider(2.0)
    errors = {}
    for ki in (0.0, 1.5):
        controller = controller_of(model, ForceServo(kf=0.2, kv=40.0, ki=ki))
        q, v, integral = np.array([-0.016]), np.zeros(1), np.zeros(1)
        for _ in range(150):
            command = controller.command(
                q, v, goal=np.zeros(3), force=30.0, integral=integral,
                contact=controller.sense(q, v, FLOOR),
            )  # fmt: skip
            integral = command.integral_after(0.01)
            run = lw.simulate(
                real, q, v, tau=command.tau, forces=FLOOR.forces(real, "foot"),
                duration=0.01, step=0.01,
            )  # fmt: skip
            q, v = run.q[-1], run.v[-1]
        errors[ki] = 30.0 - float(FLOOR.touch(real, q, v, "foot").pressure)
    # At rest Λ k_f (f_d - f) is the weight that was not known of, 2 kg k_f e = - 0.3 kg g.
    assert errors[0.0] == pytest.approx(-0.3 * 9.81 / (2.0 * 0.2), rel=1e-3)
    assert abs(errors[1.5]) < 1e-2


# ------------------------------------------------------------------------------------------- phases


def test_an_impact_ends_where_the_damping_says():
    """Approach at v_a, then ẍ = - k_d ẋ: it stops after v_a/k_d, and the surface keeps it."""
    mech = slider()
    transition = ContactTransition(approach_speed=0.2, impact_damping=60.0, settle_speed=2e-3)
    controller = controller_of(mech, ForceServo.for_surface(FLOOR, 20.0), transition)
    q, v, phase, order = np.array([0.01]), np.array([-0.2]), "approach", []
    pressures = []
    for _ in range(3):
        acting = None if phase == "approach" else FLOOR.forces(mech, "foot")

        def tau(t, q, v, phase=phase):
            touch = controller.sense(q, v, FLOOR) if phase != "approach" else None
            return controller.torque(q, v, goal=np.zeros(3), force=30.0, contact=touch, phase=phase)

        run = lw.simulate(
            mech, q, v, tau=tau, forces=acting, duration=0.2, step=2e-3,
            watch=transition.watch(phase, mech, "foot", FLOOR),
        )  # fmt: skip
        order.append(phase)
        q, v = run.q[-1], run.v[-1]
        if phase == "approach":
            assert v[0] == pytest.approx(-0.2, rel=1e-9)
            assert run.t[-1] == pytest.approx(0.05, abs=1e-8)
        else:
            pressures.append(FLOOR.touch(mech, run.q, run.v, "foot").pressure)
        if phase == "impact":
            # v_a - ẋ = k_d x all the way. RK4 with k_d h = 0.12: (0.12)⁴/120.
            assert -q[0] == pytest.approx((0.2 - 2e-3) / 60.0, rel=2e-6)
        phase = run.events[-1].name if run.stopped else phase
    assert order == ["approach", "impact", "contact"]
    assert all((x > 0.0).all() for x in pressures)  # it never left
    # The servo goes on from there, critically damped at 20 rad/s.
    final = 30.0 / FLOOR.stiffness
    off = (0.2 - 2e-3) / 60.0 - final
    left = (off + (2e-3 + 20.0 * off) * 0.2) * np.exp(-20.0 * 0.2)
    assert -q[0] == pytest.approx(final + left, rel=1e-5)


def test_without_the_phase_of_impact_it_leaves_the_floor():
    """The same servo, 2 N wanted, 0.2 m/s at the touch: alone it bounces, after the impact not."""
    mech = slider()
    transition = ContactTransition(approach_speed=0.2, impact_damping=200.0, settle_speed=2e-3)
    servo = ForceServo.for_surface(FLOOR, 40.0, damping_ratio=0.2)
    controller = controller_of(mech, servo, transition)

    def run(phase, q, v):
        return lw.simulate(
            mech, q, v, duration=0.3, step=2e-3, forces=FLOOR.forces(mech, "foot"),
            watch=transition.watch(phase, mech, "foot", FLOOR),
            tau=lambda t, q, v: controller.torque(
                q, v, goal=np.zeros(3), force=2.0, contact=controller.sense(q, v, FLOOR),
                phase=phase,
            ),
        )  # fmt: skip

    alone = run("contact", [0.0], [-0.2])
    assert alone.stopped and alone.events[0].name == "approach"
    impact = run("impact", [0.0], [-0.2])
    assert impact.events[0].name == "contact"
    after = run("contact", impact.q[-1], impact.v[-1])
    assert not after.stopped
    assert abs(FLOOR.touch(mech, after.q[-1], after.v[-1], "foot").pressure - 2.0) < 0.1


def test_phases_follow_from_what_is_sensed():
    transition = ContactTransition(
        0.1, 50.0, settle_speed=1e-2, settle_time=0.02, touch_force=0.5, patience=0.03
    )
    seen = [  # t, pressure, speed, phase afterwards
        (0.00, 0.0, -0.10, "approach"),
        (0.01, 0.4, -0.10, "approach"),  # noise
        (0.02, 9.0, -0.08, "impact"),
        (0.03, 15.0, 0.005, "impact"),  # calm for a moment only: where it turns
        (0.04, 9.0, 0.05, "impact"),
        (0.05, 0.0, 0.05, "impact"),  # left, but not for long
        (0.06, 0.0, -0.02, "impact"),
        (0.07, 5.0, -0.008, "impact"),
        (0.08, 5.0, -0.005, "impact"),
        (0.095, 5.0, -0.001, "contact"),
        (0.10, 5.0, 0.05, "contact"),
        (0.11, 0.0, 0.05, "contact"),
        (0.13, 0.0, 0.05, "contact"),
        (0.15, 0.0, 0.05, "approach"),  # gone
        (0.16, 3.0, -0.1, "impact"),
    ]
    phase = ContactPhase()
    for t, pressure, speed, name in seen:
        phase = transition.after(phase, t, pressure, speed)
        assert phase.name == name, t
    assert phase.since == 0.16 and str(phase) == "impact since 0.16 s"


def test_an_impact_that_does_not_become_calm_is_over_some_time():
    transition = ContactTransition(0.1, 50.0, settle_speed=1e-3, longest=0.1)
    phase = transition.after(ContactPhase(), 0.0, 9.0, -0.1)
    names = [(phase := transition.after(phase, t, 9.0, -2e-3)).name for t in (0.05, 0.09, 0.11)]
    assert names == ["impact", "impact", "contact"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ForceServo(0.0, 1.0), "kf of a force servo is 0.0"),
        (lambda: ForceServo(1.0, -1.0), "kv of a force servo is -1.0"),
        (lambda: ForceServo(1.0, 1.0, -0.1), "ki of a force servo is -0.1"),
        (lambda: ForceServo(1.0, np.inf), "kv of a force servo"),
        (lambda: ForceServo(1.0, 1.0).loop(-5.0), "stiffness of a surface is -5.0"),
        (lambda: ForceServo(1.0, 1.0).loop(5.0, step=1e-3), "needs mass="),
        (lambda: ForceServo(1.0, 1.0).loop(5.0, step=0.0, mass=1.0), "step is 0.0"),
        (lambda: ContactTransition(0.0, 1.0), "approach_speed of a transition is 0.0"),
        (lambda: ContactTransition(0.1, -1.0), "impact_damping of a transition"),
        (lambda: ContactTransition(0.1, 1.0, settle_speed=0.0), "settle_speed is 0.0"),
        (lambda: ContactTransition(0.1, 1.0, patience=-1.0), "patience of a transition"),
        (lambda: ContactTransition(0.1, 1.0, longest=0.0), "longest impact is 0.0"),
        (lambda: ContactPhase("landing"), "phase is 'landing'"),
    ],
)
def test_numbers_that_cannot_be(make, message):
    with pytest.raises(ModelError, match=message):
        make()
