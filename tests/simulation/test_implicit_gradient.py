"""Gradients through implicit steps, against differences away from where contacts change."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, ShapeError, UnknownNameError
from linkwise.simulation import ContactPoint, Ground

EPS = 1e-6
PIN = lw.hinges.Pin((0, 1, 0))


def leg(mu, depth):
    """A trunk on a slide, a leg of two links with servos, and its foot in the ground."""
    b = lw.Builder("leg")
    drive = lw.Drive(damping=0.3, stiffness=2.0, friction=0.1)
    trunk = lw.SpatialInertia.solid_box(3.0, (0.2, 0.2, 0.1))
    b.body("trunk", hinge=lw.hinges.Prismatic((0, 0, 1)), inertia=trunk)
    rod = lw.SpatialInertia.from_com(0.5, (0.0, 0.0, -0.15), (0.004, 0.004, 1e-4))
    down = lw.Pose.translation((0.0, 0.0, -0.3))
    b.body("thigh", "trunk", PIN, inertia=rod, drive=drive)
    b.body("shank", "thigh", PIN, inboard=down, inertia=rod, drive=drive)
    for name in ("thigh", "shank"):
        b.actuator(lw.Actuator.position(name, name, kp=40.0, kv=2.0))
    foot = ContactPoint("foot", "shank", (0.0, 0.0, -0.3), ground=Ground(friction=mu))
    q = np.array([0.3 * np.cos(0.4) + 0.3 * np.cos(0.4) - depth, 0.4, -0.8])
    return b.build(), q, np.array([-0.5, 0.5, -0.2]), [foot]


def ball():
    ground = Ground(friction=0.5, torsional=0.01, rolling=0.002)
    b = lw.Builder("ball").body(
        "ball", hinge=lw.hinges.Free(), inertia=lw.SpatialInertia.solid_sphere(1.3, 0.1)
    )
    q, v = np.array([1.0, 0, 0, 0, 0, 0, 0.0999]), np.array([0.3, 0.5, 1.0, 0.5, 0.2, 0.0])
    return b.build(), q, v, [ContactPoint("c", "ball", radius=0.1, ground=ground)]


def linkage():
    """A parallelogram whose crank is beyond its stop, pushed against it."""
    half, far = (lw.Pose.translation(p) for p in ((0.0, 0.0, -0.5), (0.3, 0.0, 0.0)))
    arm = lw.SpatialInertia.from_com(1.0, (0.0, 0.0, -0.25), (0.02, 0.02, 1e-4))
    bar = lw.SpatialInertia.from_com(2.0, (0.15, 0.0, 0.0), (1e-4, 0.015, 0.015))
    b = lw.Builder("linkage")
    b.body("crank", "world", PIN, inertia=arm, drive=lw.Drive(lower=-0.2, damping=0.1))
    b.body("bar", "crank", PIN, inboard=half, inertia=bar)
    b.body("rocker", "world", PIN, inboard=far, inertia=arm)
    b.node("bar_end", "bar", far).node("rocker_end", "rocker", half)
    return b.loop("loop", "bar_end", "rocker_end", PIN).build()


def check(mech, q, v, tau, *, steps=4, **options):
    """Gradients of a weighted sum of the last state by q, v and tau are differences of it."""
    rng = np.random.default_rng(1)
    w_q, w_v = rng.standard_normal(mech.nq), rng.standard_normal(mech.nv)

    def run(q, v, tau):
        given = {"duration": steps * 2e-3, "step": 2e-3, "integrator": "implicit"} | options
        return lw.rollout(mech, q, v, tau=tau, **given)

    def last(q, v, tau):
        runs = run(q, v, tau)
        return float(runs.q[-1] @ w_q + runs.v[-1] @ w_v)

    slopes = run(q, v, tau).gradient(q=w_q, v=w_v)
    for i, e in enumerate(EPS * np.eye(mech.nv)):
        differences = (
            last(lw.integrate(mech, q, e), v, tau) - last(lw.integrate(mech, q, -e), v, tau),
            last(q, v + e, tau) - last(q, v - e, tau),
            last(q, v, tau + e) - last(q, v, tau - e),
        )
        for slope, difference in zip((slopes.q, slopes.v, slopes.tau), differences, strict=True):
            scale = 1.0 + np.abs(slope).max()
            np.testing.assert_allclose(slope[i], difference / (2 * EPS), rtol=0, atol=2e-6 * scale)
    return slopes


@pytest.mark.parametrize(
    ("mu", "depth"),
    [
        pytest.param(0.05, 1e-4, id="slides"),
        pytest.param(1.5, 1e-4, id="sticks", marks=pytest.mark.prove),
        pytest.param(0.5, -0.2, id="open", marks=pytest.mark.prove),
    ],
)
def test_a_foot_that_sticks_slides_or_is_in_the_air(mu, depth):
    mech, q, v, contacts = leg(mu, depth)
    tau = np.array([0.0, 0.3, 0.2])
    slopes = check(mech, q, v, tau, contacts=contacts, controls=[0.2, -0.6])
    assert slopes.inputs["control"].shape == (2,)


def test_sliding_spinning_and_rolling_keep_their_direction():
    mech, q, v, contacts = ball()
    check(mech, q, v, np.zeros(6), contacts=contacts, steps=3)


def test_a_linkage_swings_and_is_held_by_its_stop():
    mech = linkage()
    check(mech, np.array([0.5, -0.5, 0.5]), np.zeros(3), np.array([0.3, 0.1, 0.2]))
    pushed = np.array([-3.0, 0.0, -20.0])
    held = check(mech, np.array([-0.2005, 0.2005, -0.2005]), np.zeros(3), pushed)
    assert np.abs(held.tau).max() < 1e-10  # nothing moves against the stop


def test_gradients_by_numbers_of_what_acts():
    mech, q, v, contacts = leg(0.05, 1e-4)
    options = {"duration": 8e-3, "step": 2e-3, "integrator": "implicit", "contacts": contacts,
               "controls": [0.2, -0.6]}  # fmt: skip
    numbers = {"ground_friction": np.array([0.07]), "damping": np.array([0.0, 0.3, 0.2]),
               "friction": np.array([0.0, 0.1, 0.2]), "gravity": np.array([0.0, 0.0, -9.81]),
               "gain": np.array([40.0, 0.0, 0.0, 30.0, 0.0, 0.0])}  # fmt: skip

    def last(**some):
        return float(lw.rollout(mech, q, v, parameters=numbers | some, **options).v[-1, 1])

    runs = lw.rollout(mech, q, v, parameters=numbers, **options)
    slopes = runs.gradient(v=np.array([0.0, 1.0, 0.0]))
    for name, i in (("ground_friction", 0), ("damping", 1), ("friction", 2), ("gravity", 2),
                    ("gain", 0)):  # fmt: skip
        e = 1e-5 * np.eye(len(numbers[name]))[i]
        one, two = last(**{name: numbers[name] + e}), last(**{name: numbers[name] - e})
        np.testing.assert_allclose(slopes.inputs[name][i], (one - two) / 2e-5, rtol=1e-4, atol=1e-9)
        assert abs(one - two) > 1e-12


def test_checkpoints_and_batches_give_the_same():
    mech, q, v, contacts = leg(0.05, 1e-4)
    options = {"step": 2e-3, "integrator": "implicit", "contacts": contacts}
    every = lw.rollout(mech, q, v, duration=0.02, **options)
    seldom = lw.rollout(mech, q, v, duration=0.02, record_every=4, **options)
    many = lw.rollout(mech, [q] * 3, v, duration=0.02, **options)
    one = every.gradient(v=np.ones(3))
    np.testing.assert_allclose(seldom.gradient(v=np.ones(3)).q, one.q, rtol=1e-6)
    np.testing.assert_allclose(many.gradient(v=np.ones((3, 3))).q, [one.q] * 3, rtol=1e-6)


def test_one_step_is_linearised_with_loops_held():
    mech, h = linkage(), 2e-3
    q, v = np.array([0.5, -0.5, 0.5]), np.array([1.0, -1.0, 1.0])
    linear = lw.linearize(mech, q, v, np.zeros(3), step=h, integrator="implicit")
    tau = np.array([1.0, -2.0, 0.5])

    def step(tau):
        runs = lw.rollout(mech, q, v, tau=tau, duration=h, step=h, integrator="implicit")
        return np.concatenate([runs.q[-1], runs.v[-1]])

    difference = (step(EPS * tau) - step(-EPS * tau)) / (2 * EPS)
    np.testing.assert_allclose(linear.B @ tau, difference, atol=1e-8)
    J = lw.loops.constraint_jacobian(mech, step(np.zeros(3))[:3])
    assert np.abs(J @ linear.B[3:]).max() < 1e-4 * np.abs(linear.B[3:]).max()


@pytest.mark.parametrize("depth", [1e-4, -0.2], ids=["on the ground", "in the air"])
def test_one_step_is_linearised_with_servos_and_contacts(depth):
    mech, q, v, contacts = leg(0.05, depth)
    tau, h = np.array([0.0, 0.3, 0.2]), 2e-3
    acting = {"controls": np.array([0.2, -0.6]), "contacts": contacts}
    given = {"step": h, "integrator": "implicit"} | acting

    def step(q, v, tau):
        runs = lw.rollout(mech, q, v, tau=tau, duration=h, **given)
        return np.concatenate([runs.q[-1], runs.v[-1]])

    linear = lw.linearize(mech, q, v, tau, **given)
    for i, e in enumerate(EPS * np.eye(3)):
        columns = (
            (linear.A[:, i], step(q + e, v, tau) - step(q - e, v, tau)),
            (linear.A[:, 3 + i], step(q, v + e, tau) - step(q, v - e, tau)),
            (linear.B[:, i], step(q, v, tau + e) - step(q, v, tau - e)),
        )
        for column, difference in columns:
            np.testing.assert_allclose(column, difference / (2 * EPS), rtol=1e-5, atol=1e-6)
    many = lw.linearize(mech, [q] * 3, v, tau, **given | {"controls": [[0.2, -0.6]] * 3})
    np.testing.assert_allclose(many.A, [linear.A] * 3, rtol=1e-12, atol=1e-13)
    for missing in ("controls", "contacts"):  # both make a difference
        bare = given | {missing: None if missing == "controls" else ()}
        other = lw.linearize(mech, q, v, tau, **bare)
        assert (np.abs(other.A - linear.A).max() > 1e-3) == (missing == "controls" or depth > 0)


@pytest.mark.parametrize("integrator", ["rk4", "euler"])
def test_steps_of_other_integrators_are_linearised_with_servos(integrator):
    mech, q, v, _ = leg(0.5, -0.2)
    given = {"step": 2e-3, "integrator": integrator, "controls": [0.2, -0.6]}
    linear = lw.linearize(mech, q, v, np.zeros(3), **given)
    for i, e in enumerate(EPS * np.eye(3)):
        two = [lw.rollout(mech, q + x, v, duration=2e-3, **given) for x in (e, -e)]
        slope = (two[0].v[-1] - two[1].v[-1]) / (2 * EPS)
        np.testing.assert_allclose(linear.A[3:, i], slope, rtol=1e-5, atol=1e-6)


def test_linearize_refuses_what_it_does_not_know():
    mech, q, v, contacts = leg(0.5, -0.2)
    still = np.zeros(3)
    with pytest.raises(UnknownNameError, match="no keyword called 'sweeps'"):
        lw.linearize(mech, q, v, still, step=1e-3, integrator="implicit", sweeps=1)
    with pytest.raises(UnknownNameError, match=r"'control'.*did you mean 'controls'"):
        lw.linearize(mech, q, v, still, control=[0.0, 0.0])
    with pytest.raises(ModelError, match="implicit"):
        lw.linearize(mech, q, v, still, step=1e-3, contacts=contacts)
    with pytest.raises(ModelError, match="contacts without step"):
        lw.linearize(mech, q, v, still, contacts=())
    with pytest.raises(ShapeError, match=r"controls has shape \(3,\)"):
        lw.linearize(mech, q, v, still, step=1e-3, integrator="implicit", controls=still)
    lasting = lw.Actuator("slow", (("thigh", 1.0),), dynamics="filter", time_constant=0.1)
    b = lw.Builder("slow").body(
        "thigh", "world", PIN, inertia=lw.SpatialInertia.solid_sphere(1.0, 0.1)
    )
    with pytest.raises(ModelError, match="'slow' have an activation"):
        slow = b.actuator(lasting).build()
        lw.linearize(slow, [0.0], [0.0], [0.0], step=1e-3, integrator="implicit", controls=[1.0])


@pytest.mark.filterwarnings("ignore:some steps of .leg.")
def test_steps_between_records_have_the_sweeps_of_the_rollout():
    mech, q, v, contacts = leg(0.5, 1e-4)
    options = {"duration": 16e-3, "step": 2e-3, "integrator": "implicit", "contacts": contacts,
               "controls": [0.2, -0.6], "sweeps": 1}  # fmt: skip
    every, apart = (lw.rollout(mech, q, v, record_every=n, **options) for n in (1, 4))
    np.testing.assert_array_equal(every.q[-1], apart.q[-1])
    weights = np.ones(mech.nq), np.ones(mech.nv)
    expected, slopes = every.gradient(*weights), apart.gradient(*weights)
    np.testing.assert_allclose(slopes.v, expected.v, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(slopes.tau, expected.tau, rtol=1e-12, atol=1e-12)
