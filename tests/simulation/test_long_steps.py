"""Steps of long mechanisms against the kernels of `lw.rollout`, on mechanisms that have both."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import LoweringError, ModelError
from linkwise.model.hinges import Locked, Pin, Spherical
from linkwise.simulation.implicit import long_steps
from linkwise.simulation.implicit.long_steps import LongSteps
from linkwise.simulation.implicit.steps import KernelSteps, Steps
from linkwise.spatial.inertia import SpatialInertia

H, STEPS = 2e-3, 40


def jointed() -> lw.Mechanism:
    """A ball with a spring, pins with dampers, friction, limits and servos."""
    b = lw.Builder("jointed")
    inertia = SpatialInertia.solid_box(1.0, (0.1, 0.1, 0.4)).moved(
        lw.Pose.translation((0.02, 0.0, -0.2))
    )
    below = lw.Pose.translation((0.0, 0.0, -0.4))
    drive = lw.Drive(stiffness=(30.0, 30.0, 30.0), damping=(0.1, 0.1, 0.1))
    b.body("ball", "world", Spherical(), inertia=inertia, drive=drive)
    b.body(
        "rubbed", "ball", Pin((0, 1, 0)), inboard=below, inertia=inertia,
        drive=lw.Drive(friction=0.3, damping=0.05),
    )  # fmt: skip
    b.body(
        "limited", "rubbed", Pin((1, 0, 0)), inboard=below, inertia=inertia,
        drive=lw.Drive(lower=-0.1, upper=0.15, armature=0.01),
    )  # fmt: skip
    b.body("held", "limited", Pin((0, 1, 0)), inboard=below, inertia=inertia)
    b.actuator(
        lw.Actuator("servo", (("held", 1.0),), gain=(80.0, 0, 0), bias=(0.0, -80.0, -2.0)),
        lw.Actuator("thruster", node="held", wrench=(0, 0, 0, 1, 0, 0), dynamics="filter",
                    time_constant=0.1),
    )  # fmt: skip
    return b.build()


def both(
    mech: lw.Mechanism, q: np.ndarray, v: np.ndarray, force: float = 0.3, **acting: bool
) -> tuple[Steps, Steps]:
    rng = np.random.default_rng(0)
    tau = force * rng.standard_normal((STEPS, mech.nv))
    control = rng.uniform(-0.5, 0.5, (STEPS, len(mech.actuators) if acting["actuated"] else 0))
    made = list[Steps]()
    for stepper in (KernelSteps(mech, (), **acting), LongSteps(mech, **acting)):
        made.append(stepper.advance(stepper.first(q, v), H, STEPS, tau, control))
    return made[0], made[1]


def compare(a: Steps, b: Steps, atol: float) -> None:
    assert len(a) == len(b) == STEPS and np.abs(a.v).max() > 0.1
    for name in ("q", "v", "reached", "effort", "activation"):
        np.testing.assert_allclose(getattr(b, name), getattr(a, name), rtol=0, atol=atol)
    for x, y in zip(a.joints, b.joints, strict=True):
        np.testing.assert_allclose(y, x, rtol=0, atol=atol)


@pytest.mark.parametrize("passive", [True, False])
def test_rod(passive: bool) -> None:
    mech = lw.models.rod(3, youngs_modulus=1e6)
    at = mech.neutral(), np.zeros(mech.nv), 1e-6
    compare(*both(mech, *at, actuated=False, passive=passive), 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_random_tree(seed: int) -> None:
    mech = lw.models.random_tree(5, seed=seed)
    q, v = mech.random(seed=seed), 0.3 * mech.random_velocity(seed=seed)
    compare(*both(mech, q, v, actuated=False, passive=True), 1e-8)


def test_joints_with_friction_limits_and_servos() -> None:
    mech = jointed()
    v = np.array([0.5, 0.2, 0.1, 1.0, 3.0, 0.0])
    a, b = both(mech, mech.neutral(), v, actuated=True, passive=True)
    assert len(mech.actuators) and (np.abs(a.joints[0]) > 0.0).any(axis=0).all()
    compare(a, b, 1e-6)  # as far as the sweeps of the kernel go


def test_loops() -> None:
    mech = lw.models.four_bar()
    q = lw.loops.assemble(mech, mech.neutral()).q
    v = lw.loops.project_velocity(mech, q, np.ones(mech.nv))
    a, b = both(mech, q, v, actuated=False, passive=True)
    assert np.abs(lw.loops.constraint_error(mech, b.q)).max() < 1e-5
    compare(a, b, 1e-7)


def flexible(welds: int = 0) -> lw.Mechanism:
    """Two beams, a motor at each joint, and welded plates at the end."""
    section = {"area": 1e-4, "bending": 1e-9, "young": 7e9, "density": 2700.0}
    beam = lw.flexible.beam(0.5, **section, modes=2, lumps=3, directions=("y", "rz"))
    rotor = SpatialInertia.from_com(0.1, (0, 0, 0.01), (1e-4, 1e-4, 2e-4))
    b, parent = lw.Builder("flexible", gravity=(0, -9.81, 0)), "world"
    for name in ("upper", "lower"):
        beam.add_to(b, name, parent, Pin((0, 0, 1)), drive=lw.Drive(damping=0.05))
        b.motor(name, rotor, ratio=20.0)
        parent = f"{name}.tip"
    plate = SpatialInertia.solid_box(0.01, (0.01, 0.1, 0.1))
    for i in range(welds):
        b.body(f"plate_{i}", parent, Locked(), inboard=(0.01, 0, 0), inertia=plate)
        parent = f"plate_{i}"
    return b.build()


def test_flexible_bodies_with_motors() -> None:
    mech = flexible()
    q = np.array([0.3, 0.02, -0.01, -0.5, 0.01, 0.0])
    compare(*both(mech, q, 0.5 * np.ones(mech.nv), actuated=False, passive=True), 1e-9)


@pytest.mark.prove
def test_many_bodies_some_of_them_flexible() -> None:
    """More than straight code is for, beside the same mechanism with its plates in one body."""
    mech = flexible(welds=62)
    assert mech.n_bodies > 64
    merged = mech.merge_locked()
    assert merged.n_bodies == flexible().n_bodies
    options = {"duration": 0.02, "step": H, "integrator": "implicit"}
    run, reference = (lw.rollout(x, x.neutral(), **options) for x in (mech, merged))
    assert run.kernel is None and reference.kernel is not None
    assert np.abs(reference.q[-1]).min() > 1e-5
    np.testing.assert_allclose(run.q, reference.q, rtol=0, atol=1e-11)
    recorded = lw.simulate(mech, **options)
    np.testing.assert_array_equal(recorded.q, run.q)
    for target in ("c", "cuda"):
        with pytest.raises(LoweringError, match="'flexible' of 66 bodies would be too long"):
            kernel = lw.compile(lambda at: at.q, mech, target=target)
            assert kernel.source


def test_long_rollout_and_simulation_are_the_same_motion(monkeypatch: pytest.MonkeyPatch) -> None:
    mech = lw.models.rod(70)
    options = {"duration": 0.05, "step": 5e-3, "integrator": "implicit"}
    run, rec = lw.rollout(mech, mech.neutral(), **options), lw.simulate(mech, **options)
    assert run.q.shape == (11, 280) and np.abs(run.q).max() > 1e-3 and run.kernel is None
    np.testing.assert_array_equal(rec.q, run.q)
    short = lw.models.rod(3)
    made = lw.simulate(short, **options)
    monkeypatch.setattr(long_steps, "LONG", 0)
    again = lw.simulate(short, **options)
    np.testing.assert_allclose(again.q, made.q, atol=1e-12)
    assert abs(again.report.drift - made.report.drift) < 1e-9


def test_refused() -> None:
    mech = lw.models.rod(70)
    options = {"duration": 0.01, "step": 5e-3, "integrator": "implicit"}
    with pytest.raises(ModelError, match="no contacts"):
        lw.rollout(mech, mech.neutral(), contacts=lw.simulation.Ground(), **options)
    with pytest.raises(ModelError, match="noise or conditions"):
        lw.rollout(mech, mech.neutral(), noise={"tau": 0.1}, **options)
    with pytest.raises(ModelError, match="step by step"):
        lw.rollout(mech, mech.neutral(), parameters={"damping": np.ones(280)}, **options)
