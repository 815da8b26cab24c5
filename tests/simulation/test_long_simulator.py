"""Simulators of more bodies than straight code is for, against rollouts and shorter simulators."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import LoweringError, ShapeError, UnknownNameError
from linkwise.simulation import ContactPoint, Ground
from linkwise.simulation.long_simulator import LongSimulation

STEP, CALLS = 2e-3, 5


def worm(count):
    """A free chain with limits, friction, a servo, a filter and a point that touches the ground."""
    b = lw.Builder("worm")
    inertia = lw.SpatialInertia.solid_box(0.1, (0.1, 0.03, 0.03))
    b.body("b0", hinge=lw.hinges.Free(), inertia=inertia)
    for i in range(1, count):
        drive = lw.Drive(damping=0.05, friction=0.01 * (i % 3 == 0),
                         lower=-0.3 if i % 4 == 0 else -np.inf, armature=1e-3)  # fmt: skip
        axis = (0, 1, 0) if i % 2 else (0, 0, 1)
        b.body(f"b{i}", f"b{i - 1}", lw.hinges.Pin(axis), inboard=(0.1, 0.0, 0.0),
               inertia=inertia, drive=drive)  # fmt: skip
    b.node("tip", f"b{count - 1}", (0.05, 0.0, 0.0))
    b.actuator(lw.Actuator.position("servo", "b1", kp=20.0, kv=0.5))
    b.actuator(lw.Actuator("slow", (("b2", 1.0),), dynamics="filter", time_constant=0.05))
    ground = Ground((0.0, 0.0, 0.0), friction=0.6)
    points = [ContactPoint(f"c{i}", f"b{i}", (0.0, 0.0, 0.0), 0.02, ground) for i in (0, count - 1)]
    mech = b.build()
    q = mech.neutral()
    q[6] = 0.0195
    return mech, q, points


SEEN = ("q", "v", "tau", "control", "activation", "residual", "unsolved", "deepest", "slip",
        "contact_forces", "base_height", "base_velocity", "gravity", "position:tip",
        "rotation:tip", "velocity:tip", "kinetic_energy")  # fmt: skip


def test_many_bodies_step_as_in_a_rollout():
    mech, q, points = worm(70)
    action = 0.5 * np.random.default_rng(0).standard_normal((2, CALLS, 2))
    v = 0.2 * np.random.default_rng(1).standard_normal((2, mech.nv))
    options = {"step": STEP, "integrator": "implicit", "contacts": points}
    runs = lw.rollout(mech, [q, q], v, duration=CALLS * 2 * STEP, record_every=2,
                      controls=np.repeat(action, 2, axis=1), **options)  # fmt: skip
    sim = lw.Simulator(mech, q=q, v=v, batch=2, substeps=2, observations=SEEN, **options)
    for k in range(CALLS):
        seen = sim.step(action[:, k])
        assert np.array_equal(sim.q, runs.q[:, k + 1]) and np.array_equal(sim.v, runs.v[:, k + 1])
        np.testing.assert_allclose(sim["contact_forces"], runs.contact_forces[:, k + 1], atol=1e-9)
        for name, expected in (("residual", runs.residual), ("unsolved", runs.unsolved),
                               ("deepest", runs.penetration), ("slip", runs.slip)):  # fmt: skip
            np.testing.assert_array_equal(sim[name][:, 0], expected[:, k + 1])
    assert np.abs(runs.contact_forces).max() > 1.0 and sim["slip"].max() > 0.0
    assert seen.shape == (2, max(x.stop for x in sim.layout.values())) and not sim.status.any()
    tip = lw.forward_kinematics(mech, sim.q, "tip")
    np.testing.assert_allclose(sim["position:tip"], tip.p, atol=1e-12)
    np.testing.assert_allclose(sim["base_velocity"], sim.v[:, :6], atol=1e-12)
    energy = lw.dynamics.kinetic_energy(mech, sim.q, sim.v)
    np.testing.assert_allclose(sim["kinetic_energy"][:, 0], energy, rtol=1e-9)


def test_the_same_as_a_kernel(monkeypatch):
    """A chain that has both, step by step: all observations, resets and states put back."""
    mech, q, points = worm(5)
    v = 0.3 * np.random.default_rng(2).standard_normal((3, mech.nv))
    given = {"q": q, "v": v, "batch": 3, "step": STEP, "contacts": points, "observations": SEEN,
             "substeps": 2}  # fmt: skip
    one = lw.Simulator(mech, **given)

    def refuse(request, target):
        raise LoweringError("too long.")

    monkeypatch.setattr("linkwise.simulation.simulator.motion_kernel", refuse)
    two = lw.Simulator(mech, **given)
    assert isinstance(two.kernel, LongSimulation) and one.layout == two.layout
    np.testing.assert_allclose(two.observations, one.observations, atol=1e-9)

    def compare():
        for name in SEEN:
            if name not in ("residual", "unsolved"):
                np.testing.assert_allclose(two[name], one[name], rtol=1e-4, atol=1e-6, err_msg=name)

    action = np.random.default_rng(3).standard_normal((8, 3, 2))
    for u in action[:4]:
        assert one.step(u).shape == two.step(u).shape
        compare()
    mask = np.array([False, True, False])
    for sim in (one, two):
        sim.reset(mask)
    compare()
    saved = two.state.copy()
    for u in action[4:]:
        one.step(u)
        two.step(u)
        compare()
    after = two.q.copy()
    two.state[...] = saved
    for u in action[4:]:
        two.step(u)
    np.testing.assert_array_equal(two.q, after)


def test_an_environment_of_long_robots():
    mech, q, points = worm(66)
    sim = lw.Simulator(
        mech, q=q, batch=2, step=STEP, contacts=points, observations=("base_height",)
    )
    env = lw.simulation.VectorEnv(sim, reward=lambda sim, action: sim["base_height"][:, 0],
                                  terminated=lambda sim: sim["base_height"][:, 0] > 0.0,
                                  autoreset="same_step")  # fmt: skip
    seen, reward, ends, late, _ = env.step(np.zeros((2, 2)))
    assert seen.shape == (2, 1) and (reward > 0.0).all() and ends.all() and not late.any()
    np.testing.assert_array_equal(sim.q, [q, q])  # they began again


def test_what_long_robots_do_not_have_is_named():
    mech, q, points = worm(66)
    for more in ({"noise": {"tau": 0.1}}, {"parameters": {"gravity": [0, 0, -1.0]}},
                 {"dtype": np.float32}, {"stop": {"base_height": (0.0, 1.0)}},
                 {"integrator": "rk4", "contacts": None}):  # fmt: skip
        with pytest.raises(LoweringError, match=r"66 bodies.*one by one on the 'cpu' in float64"):
            lw.Simulator(mech, q=q, **{"contacts": points, "step": STEP} | more)
    with pytest.raises(UnknownNameError, match="nowhere"):
        lw.Simulator(mech, q=q, contacts=points, observations=("position:nowhere",))
    with pytest.raises(UnknownNameError, match="heat"):
        lw.Simulator(mech, q=q, contacts=points, observations=("heat",))
    sim = lw.Simulator(mech, q=q, contacts=points, step=STEP)
    with pytest.raises(ShapeError, match="action"):
        sim.step(np.zeros(3))
    sim.inputs["tau"][...] = 1e300
    with pytest.raises(lw.errors.SimulationError, match="worm"):
        for _ in range(5):
            sim.step(np.zeros(2))
    sim.inputs["tau"][...] = 0.0
    assert np.isfinite(sim.reset()).all()
