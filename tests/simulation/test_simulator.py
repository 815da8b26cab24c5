"""Robots moved step by step from Python, against rollouts and the functions of the library."""

import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.simulation import ContactPoint, Ground

LINK = lw.SpatialInertia.solid_box(0.7, (0.05, 0.05, 0.4)).moved(
    lw.Pose.translation((0.0, 0.0, -0.2))
)
FOOT = ContactPoint("foot", "leg", (0.0, 0.0, -0.4), 0.02, Ground(friction=0.6, torsional=0.01))
STEP, SUBSTEPS, CALLS = 2e-3, 3, 12


@pytest.fixture(scope="module")
def hopper():
    """A free body with a leg, whose motor has a filter."""
    hip = lw.Actuator(
        "hip",
        (("hip", 1.0),),
        gain=(40.0, 0.0, 0.0),
        bias=(0.0, -40.0, -1.0),
        dynamics="filter",
        time_constant=0.01,
    )
    return (
        lw.Builder("hopper")
        .body("torso", "world", lw.hinges.Free(), inertia=lw.SpatialInertia.solid_sphere(2.0, 0.1))
        .body("leg", "torso", lw.hinges.Pin(axis=(0, 1, 0)), hinge_name="hip", inertia=LINK)
        .node("tip", "leg", (0.0, 0.0, -0.4))
        .actuator(hip)
        .build()
    )


@pytest.fixture(scope="module")
def begin(hopper):
    rng = np.random.default_rng(3)
    q = np.tile(hopper.neutral(), (5, 1))
    q[:, 6], q[:, 7] = 0.425, 0.1 * rng.standard_normal(5)
    v = 0.5 * rng.standard_normal((5, hopper.nv))
    v[:, 5] = -0.5
    return q, v


OPTIONS = {"step": STEP, "contacts": [FOOT]}
SEEN = ("q", "v", "activation", "control", "tau", "contact_forces", "residual", "kinetic_energy",
        "base_height", "gravity", "base_velocity", "position:tip", "rotation:tip",
        "velocity:tip")  # fmt: skip


@pytest.mark.parametrize("many", [True, False])
@pytest.mark.parametrize("threads", [1, 2])
def test_single_steps_are_one_rollout_bit_for_bit(hopper, begin, many, threads):
    q, v = begin if many else (begin[0][0], begin[1][0])
    batch = (5,) if many else ()
    action = 0.5 * np.random.default_rng(0).standard_normal((*batch, CALLS, 1))
    runs = lw.rollout(
        hopper,
        q,
        v,
        duration=CALLS * SUBSTEPS * STEP,
        integrator="implicit",
        controls=np.repeat(action, SUBSTEPS, axis=-2),
        record_every=SUBSTEPS,
        **OPTIONS,
    )
    assert np.abs(runs.contact_forces).max() > 1.0  # it touches
    sim = lw.Simulator(
        hopper,
        q=q,
        v=v,
        batch=5 if many else None,
        substeps=SUBSTEPS,
        observations=SEEN,
        threads=threads,
        **OPTIONS,
    )
    for k in range(CALLS):
        sim.step(action[..., k, :])
        np.testing.assert_array_equal(sim.q, runs.q[..., k + 1, :])
        np.testing.assert_array_equal(sim.v, runs.v[..., k + 1, :])
        np.testing.assert_array_equal(sim["q"], sim.q)
        np.testing.assert_array_equal(sim["residual"][..., 0], runs.residual[..., k + 1])
        forces = runs.contact_forces[..., k + 1, :, :]
        np.testing.assert_allclose(sim["contact_forces"], forces, rtol=0, atol=1e-10)


def test_observations_are_those_of_the_library(hopper, begin):
    q, v = begin
    sim = lw.Simulator(hopper, q=q, v=v, batch=5, observations=SEEN, **OPTIONS)
    for _ in range(3):
        seen = sim.step(np.full((5, 1), 0.2))
    q, v = sim.q.copy(), sim.v.copy()
    assert seen.shape == (5, max(x.stop for x in sim.layout.values()))
    for name, place in sim.layout.items():
        np.testing.assert_array_equal(seen[:, place], sim[name].reshape(5, -1))
    tip, torso = (lw.forward_kinematics(hopper, q, name) for name in ("tip", "torso"))
    np.testing.assert_allclose(sim["position:tip"], tip.p, atol=1e-14)
    np.testing.assert_allclose(sim["rotation:tip"], tip.rot, atol=1e-14)
    expected = lw.node_velocity(hopper, q, v, "tip", frame="world")
    np.testing.assert_allclose(sim["velocity:tip"], expected, atol=1e-13)
    np.testing.assert_allclose(sim["base_velocity"], v[:, :6], atol=1e-14)
    np.testing.assert_allclose(sim["base_height"], q[:, 6:7], atol=1e-15)
    down = np.einsum("bji,j->bi", torso.rot, [0.0, 0.0, -1.0])
    np.testing.assert_allclose(sim["gravity"], down, atol=1e-14)
    energy = lw.dynamics.kinetic_energy(hopper, q, v)
    np.testing.assert_allclose(sim["kinetic_energy"].ravel(), energy, rtol=1e-12)


def test_expressions_and_kernels_are_observed_by_name(hopper, begin):
    q, v = begin[0][0], begin[1][0]
    place = lw.compile(lw.dynamics.expression("node_velocity"), hopper, nodes=["tip"])
    seen = {"momenta": lw.algebra.mass @ lw.algebra.v, "tip": place, "height": "base_height"}
    sim = lw.Simulator(hopper, q=q, v=v, observations=seen)
    np.testing.assert_allclose(sim["momenta"], lw.mass_matrix(hopper, q) @ v, rtol=1e-12)
    np.testing.assert_allclose(sim["tip"], lw.node_velocity(hopper, q, v, "tip"), atol=1e-14)
    assert list(sim.layout) == ["momenta", "tip", "height"]


def test_some_robots_begin_anew_and_the_others_are_left_alone(hopper, begin):
    q, v = begin
    sim = lw.Simulator(hopper, q=q, v=v, batch=5, observations=SEEN, **OPTIONS)
    first = sim.observations.copy()
    for _ in range(4):
        sim.step(np.full((5, 1), 0.3))
    before, state = sim.observations.copy(), sim.state.copy()
    mask = np.array([False, True, False, False, True])
    sim.reset(mask)
    first[:, sim.layout["control"]] = 0.3  # held as it was
    # Code for one robot and for several may round differently.
    np.testing.assert_allclose(sim.observations[mask], first[mask], rtol=1e-13, atol=1e-15)
    np.testing.assert_array_equal(sim.q[mask], q[mask])
    np.testing.assert_array_equal(sim.observations[~mask], before[~mask])
    other = q + 0.0
    other[:, 6] += 1.0
    seen = sim.reset(mask, q=other)
    np.testing.assert_allclose(seen[mask, 6], q[mask, 6] + 1.0)
    np.testing.assert_array_equal(sim.q[~mask], before[~mask, :8])
    sim.state[...] = state  # with warm starts: as if nothing had happened
    twin = lw.Simulator(hopper, q=q, v=v, batch=5, observations=SEEN, **OPTIONS)
    for _ in range(5):
        expected = twin.step(np.full((5, 1), 0.3))
    np.testing.assert_array_equal(sim.step(np.full((5, 1), 0.3)), expected)


def test_robots_without_actuators_take_joint_forces():
    arm = lw.models.pendulum(2)
    q, v = np.array([0.3, 0.2]), np.zeros(2)
    sim = lw.Simulator(arm, q=q, v=v, step=1e-2, substeps=4, integrator="rk4")
    tau = lw.bias_force(arm, q, v)
    for _ in range(3):
        seen = sim.step(tau)
    np.testing.assert_allclose(seen, [0.3, 0.2, 0.0, 0.0], atol=1e-12)


def test_other_numbers_of_the_mechanism_are_inputs():
    arm = lw.models.pendulum(2)
    g = np.array([[0.0, 0.0, -9.81], [0.0, 0.0, -1.6]])
    q = np.array([0.3, 0.2])
    sim = lw.Simulator(arm, q=q, batch=2, integrator="euler", parameters={"gravity": g})
    for _ in range(10):
        sim.step(np.zeros((2, 2)))
    runs = lw.rollout(arm, q, duration=1e-2, integrator="euler", parameters={"gravity": g[:, None]})
    np.testing.assert_array_equal(sim.q, runs.q[:, -1])
    sim.inputs["gravity"][...] = 0.0
    sim.reset()
    sim.step(np.zeros((2, 2)))
    np.testing.assert_array_equal(sim.v, 0.0)


def test_each_robot_has_its_own_ground_and_dampers(hopper, begin):
    numbers = {
        "ground_friction": np.linspace(0.0, 1.0, 5)[:, None],
        "damping": np.linspace(0.0, 2.0, 5)[:, None] * np.ones(hopper.nv),
    }
    options = OPTIONS | {"q": begin[0], "v": begin[1]}
    sim = lw.Simulator(hopper, batch=5, parameters=numbers, **options)
    for _ in range(20):
        sim.step(np.zeros((5, 1)))
    given = {name: x[:, None] for name, x in numbers.items()}
    more = {"duration": 20 * STEP, "integrator": "implicit", "controls": np.zeros(1)}
    runs = lw.rollout(hopper, parameters=given, **more, **options)
    assert np.ptp(runs.v[:, -1, 3]) > 1e-3
    np.testing.assert_array_equal(sim.v, runs.v[:, -1])


def test_a_robot_that_fails_is_nan_until_it_is_reset(hopper, begin):
    fast = begin[1].copy()
    fast[2] = 1e6
    sim = lw.Simulator(hopper, q=begin[0], v=fast, batch=5, **OPTIONS)
    for _ in range(2):
        seen = sim.step(np.zeros((5, 1)))
        assert np.isnan(seen[2]).all() and np.isfinite(np.delete(seen, 2, axis=0)).all()
        assert np.flatnonzero(sim.status).tolist() == [2]
    sim.reset(sim.status != 0, v=begin[1])
    assert np.isfinite(sim.step(np.zeros((5, 1)))).all() and not sim.status.any()
    one = lw.Simulator(hopper, q=begin[0][2], v=fast[2], **OPTIONS)
    with pytest.raises(lw.errors.SimulationError, match=r"turns by more than half a turn.*reset"):
        one.step(np.zeros(1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"observations": ["speed"]}, "speed"),
        ({"observations": []}, "at least one"),
        ({"observations": ["position:hand"]}, "hand"),
        ({"observations": [lw.algebra.mass]}, "without a name"),
        ({"observations": {"x": 3}}, "must be a name"),
        ({"observations": {"x": lw.algebra.mass.inv @ lw.algebra.vdot}}, "depends on 'vdot'"),
        ({"target": "tpu"}, "'cpu' or 'cuda'"),
        ({"integrator": "rk4"}, "integrator='implicit'"),
        ({"batch": 0}, "batch"),
        ({"q": np.zeros(3)}, "q"),
        ({"parameters": {"damping": -1.0}}, "must not be negative"),
        ({"parameters": {"friction": 0.1}, "passive": False}, "passive=False leaves it out"),
        ({"integrator": "variational", "contacts": ()}, "actuators do not act"),
    ],
)
def test_what_cannot_be_simulated_is_refused(hopper, change, message):
    with pytest.raises(lw.LinkwiseError, match=message):
        lw.Simulator(hopper, **(OPTIONS | change))


def test_an_action_of_another_shape_is_refused(hopper):
    sim = lw.Simulator(hopper, batch=5, **OPTIONS)
    with pytest.raises(lw.errors.ShapeError, match=r"action has shape \(3, 1\).*\(5, 1\).*hip"):
        sim.step(np.zeros((3, 1)))
    with pytest.raises(lw.errors.ShapeError, match=r"mask has shape \(2,\)"):
        sim.reset(np.zeros(2, bool))
    with pytest.raises(lw.LinkwiseError, match="no observation called 'speed'"):
        sim["speed"]


def test_tensors_come_back_as_tensors(hopper, begin):
    torch = pytest.importorskip("torch")
    options = OPTIONS | {"q": begin[0], "v": begin[1], "batch": 5}
    sim, plain = lw.Simulator(hopper, library="torch", **options), lw.Simulator(hopper, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        seen = sim.step(torch.full((5, 1), 0.1, dtype=torch.float64))
    assert isinstance(seen, torch.Tensor) and isinstance(sim.q, torch.Tensor)
    np.testing.assert_array_equal(seen.numpy(), plain.step(np.full((5, 1), 0.1)))
    sim.inputs["tau"][...] = 1.0  # the same memory
    sim.step(np.zeros((5, 1)))
    plain.inputs["tau"][...] = 1.0
    np.testing.assert_array_equal(sim.observations.numpy(), plain.step(np.zeros((5, 1))))


@pytest.mark.parametrize("batch", [3, 11])
def test_random_forces_and_conditions_are_those_of_rollouts(batch):
    mech = lw.models.pendulum(2)
    noise = {"tau": (0.3 * np.ones(mech.nv), 0.004, 0.002)}
    start = np.linspace(0.1, 0.6, batch)[:, None] * np.ones(mech.nv)
    options = {"step": 1e-3, "integrator": "euler"}
    runs = lw.rollout(mech, start, duration=0.03, noise=noise, seed=7, **options)
    quiet = lw.rollout(mech, start, duration=0.03, **options)
    assert np.abs(runs.q - quiet.q).max() > 1e-5
    most = float(np.median(lw.dynamics.kinetic_energy(mech, runs.q[:, -1], runs.v[:, -1])))
    bounds = {"kinetic_energy": (-1.0, most), "q": (-0.4, 9.0)}
    sim = lw.Simulator(
        mech, q=start, batch=batch, substeps=3, noise=noise, stop=bounds, seed=7, **options
    )
    assert sim.conditions == ("kinetic_energy", "q") and sim.observations.shape == (
        batch,
        2 * mech.nv,
    )
    seen = set[int]()
    for n in range(1, 11):
        sim.step(np.zeros((batch, mech.nv)))
        np.testing.assert_allclose(sim.q, runs.q[:, 3 * n], rtol=0, atol=1e-14)
        energy = lw.dynamics.kinetic_energy(mech, sim.q, sim.v)
        low = (sim.q <= -0.4).any(axis=1)
        np.testing.assert_array_equal(
            sim.stopped, np.where(energy >= most, 0, np.where(low, 1, -1))
        )
        seen |= set(sim.stopped.tolist())
    assert seen == {-1, 0}
    sim.inputs["noise:tau"][...] = 0.0
    before = sim.state.copy()
    sim.step(np.zeros((batch, mech.nv)))
    still = sim.q.copy()
    sim.state[...] = before
    sim.step(np.zeros((batch, mech.nv)))
    np.testing.assert_array_equal(sim.q, still)  # nothing is random any more
