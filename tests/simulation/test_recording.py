"""Recordings: channels by name, states between records, cutting, errors that help."""

import pickle

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, ShapeError, UnknownNameError
from linkwise.simulation import Channel, Event, Recording
from tests.simulation.moving import rk4_step


def moved(mech, *, duration=0.5, h=1e-3, every=5, tau=None, seed=3, speed=0.5):
    """t, q, v, tau of a motion by fourth-order Runge-Kutta."""
    q, v = mech.random(seed), speed * mech.random_velocity(seed)
    force = (lambda t, q, v: np.zeros(mech.nv)) if tau is None else tau

    def acceleration(t, q, v):
        return lw.forward_dynamics(mech, q, v, force(t, q, v) - mech.damping * v)

    rows = [(0.0, q, v, force(0.0, q, v))]
    for k in range(round(duration / h)):
        q, v = rk4_step(mech, acceleration, k * h, q, v, h)
        if (k + 1) % every == 0:
            t = (k + 1) * h
            rows.append((t, q, v, force(t, q, v)))
    return tuple(np.array(x) for x in zip(*rows, strict=True))


@pytest.fixture(scope="module")
def arm():
    mech = lw.models.puma560()
    return Recording.of(mech, *moved(mech)[:3], integrator="rk4", step=1e-3, steps=500)


def test_standard_channels_are_the_numbers_of_each_record(arm):
    mech, i = arm.mech, 40
    q, v = arm.q[i], arm.v[i]
    assert arm["energy.kinetic"][i] == pytest.approx(0.5 * v @ lw.mass_matrix(mech, q) @ v)
    c = mech.center_of_mass(q)
    assert arm["energy.potential"][i] == pytest.approx(-mech.total_mass * mech.gravity @ c)
    assert np.allclose(arm["center_of_mass"][i], c)
    both = lw.momentum(mech, q, v, about="world")
    assert np.allclose(arm["momentum.linear"][i], both[3:])
    assert np.allclose(arm["momentum.angular"][i], both[:3])
    assert arm.channels["q"].units == ("rad",) * 6
    assert arm.channels["v"].units == ("rad/s",) * 6
    assert arm.channels["tau"].units == ("N m",) * 6


def test_reads_channels_by_name_label_hinge_and_number(arm):
    assert np.array_equal(arm["q[joint_2]"], arm.q[:, 1])
    assert np.array_equal(arm["q[1]"], arm.q[:, 1])
    assert np.array_equal(arm["momentum.linear[z]"], arm["momentum.linear"][:, 2])
    result = arm.channel("v[joint_3]")
    assert (result.name, result.unit) == ("v[joint_3]", "rad/s")
    assert "energy.total" in arm and "energy.totl" not in arm
    mech = lw.models.quadruped()
    rec = Recording.of(mech, [0.0], mech.random(seed=1)[None], mech.random_velocity(seed=2)[None])
    base, name = mech.bodies[0].hinge_name, mech.bodies[0].name
    assert np.array_equal(rec[f"q[{base}]"], rec.q[:, :7])
    assert np.array_equal(rec[f"v[{name}]"], rec.v[:, :6])  # by the body, too
    assert rec.channel(f"q[{base}]").units == ("", "", "", "", "m", "m", "m")
    assert rec.channel(f"tau[{base}]").units == ("N m",) * 3 + ("N",) * 3


def test_unknown_channels_are_answered_with_near_ones(arm):
    with pytest.raises(UnknownNameError, match=r"no channel called 'energy.totl'.*'energy.total'"):
        arm["energy.totl"]
    with pytest.raises(UnknownNameError, match=r"no column called 'joint_9' in channel 'q'.*joint"):
        arm["q[joint_9]"]
    with pytest.raises(UnknownNameError, match=r"no column called 'x' in channel 'energy.total'"):
        arm["energy.total[x]"]
    with pytest.raises(ModelError, match="does not name a channel"):
        arm[3]


def test_is_cut_by_times(arm):
    part = arm[0.1:0.3]
    assert part.t[0] == 0.1 and part.t[-1] == pytest.approx(0.3)
    assert len(part) == 41 and part.steps == 200
    assert np.array_equal(part["energy.total"], arm["energy.total"][20:61])
    assert len(arm[:0.1]) == 21 and len(arm[0.5:]) == 1
    with pytest.raises(ModelError, match=r"no record .* between 2 s and 3 s; it has 101, from 0 s"):
        arm[2.0:3.0]
    with pytest.raises(ModelError, match=r"rec\.at\(times\)"):
        arm[0:1:2]


def test_a_part_tells_of_its_own_events_and_works(arm):
    mech = arm.mech
    tau = np.ones((len(arm), mech.nv))
    events = [Event(0.2, "watch", "reach"), Event(0.4, "contact", "tip", "touched")]
    rec = Recording.of(mech, arm.t, arm.q, arm.v, tau, events=events, stopped="enough")
    part = rec[:0.3]
    assert [event.name for event in part.events] == ["reach"] and part.stopped is None
    assert rec[0.3:].stopped == "enough"
    full = rec.report.works["joints"]
    assert part.report.works["joints"] + rec[0.3:].report.works["joints"] == pytest.approx(full)


@pytest.mark.parametrize("name", ["puma560", "quadruped", "random"])
def test_states_between_records_are_of_fourth_and_third_order(name):
    """Errors against the motion itself fall by 2⁴ and 2³ when records are twice as dense."""
    if name == "random":  # any hinge: balls, planar ones, rolling ones
        mech = lw.models.random_tree(6, seed=5)
    else:
        mech = getattr(lw.models, name)()
    t, q, v, _ = moved(mech, duration=0.16, h=1e-3, every=1, speed=1.0)
    errors = []
    for every in (16, 8):
        rec = Recording.of(mech, t[::every], q[::every], v[::every])
        at_q, at_v = rec.at(t)
        off = mech.difference(q, at_q)
        errors.append((np.abs(off).max(), np.abs(at_v - v).max()))
        assert np.array_equal(at_q[::every], q[::every])  # at a record, the record itself
        assert np.array_equal(at_v[::every], v[::every])
    (first_q, first_v), (second_q, second_v) = errors
    # Between records that are 8 ms apart the orders are not yet clean: within a half of each.
    assert np.log2(first_q / second_q) > 3.5
    assert np.log2(first_v / second_v) > 2.5


@pytest.mark.parametrize("speed", [12.0, 45.0, 62.83])
@pytest.mark.parametrize("hinge", [lw.hinges.Free(), lw.hinges.Spherical()], ids=lambda x: x.kind)
def test_bodies_that_tumble_are_followed_between_records(hinge, speed):
    """A body tumbles by up to a whole turn and more between records; errors fall by 2⁴ and 2³.

    Records tell turns but for whole ones; which one it was is told by the velocities. Its moments
    are nearly alike, so that ω changes its direction in the body slowly enough to be told by them.
    """
    top = lw.SpatialInertia.from_com(1.0, (0.0, 0.0, 0.0), (0.103, 0.1, 0.097))
    mech = lw.Builder("top", gravity=(0, 0, 0)).body("top", hinge=hinge, inertia=top).build()
    v = np.zeros(mech.nv)
    v[:3] = speed * np.array([0.5, 0.7, 0.5]) / np.sqrt(0.99)
    fine = lw.rollout(mech, mech.random(seed=1), v, duration=0.4, step=2e-4)
    errors = []
    for every in (500, 100, 50):  # 0.1 s, 0.02 s, 0.01 s
        rec = Recording.of(mech, fine.t[::every], fine.q[::every], fine.v[::every])
        at_q, at_v = rec.at(fine.t)
        off_q, off_v = mech.difference(fine.q, at_q), at_v - fine.v
        errors.append((np.abs(off_q).max(), np.abs(off_v).max() / speed))
    assert errors[0][0] < 0.5  # the right turn: a wrong one is off by two radians and more
    orders = np.log2(np.array(errors[1]) / errors[2])
    assert orders == pytest.approx([4.0, 3.0], abs=0.4)


@pytest.mark.parametrize(
    "hinge", [lw.hinges.Free(), lw.hinges.Spherical(), lw.hinges.Planar()], ids=lambda x: x.kind
)
def test_velocities_between_records_are_rates_of_positions_between_them(hinge):
    """Also where two records have little to do with each other, so that no turn is small."""
    ball = lw.SpatialInertia.solid_sphere(1.0, 0.1)
    mech = lw.Builder("ball").body("ball", hinge=hinge, inertia=ball).build()
    q = np.stack([mech.random(seed) for seed in range(4)])
    v = np.stack([2.0 * mech.random_velocity(seed) for seed in range(4)])
    rec = Recording.of(mech, np.arange(4.0), q, v)
    t, e = np.arange(0.05, 3.0, 0.1), 1e-5
    (before, _), (after, _) = rec.at(t - e), rec.at(t + e)
    # Differences: e² of the third derivatives, some tens, and 1e-16/e of rounding.
    assert mech.difference(before, after) / (2 * e) == pytest.approx(rec.at(t)[1], abs=1e-7)
    for near in (np.arange(3.0) + 1e-9, np.arange(1.0, 4.0) - 1e-9):
        at_q, at_v = rec.at(near)
        k = np.rint(near).astype(int)
        assert np.abs(mech.difference(q[k], at_q)).max() < 1e-7
        assert at_v == pytest.approx(v[k], abs=1e-6)


def test_states_out_of_range_and_dense_output(arm):
    q, v = arm.at(0.25)
    assert q.shape == (6,) and v.shape == (6,)
    with pytest.raises(ModelError, match=r"no state at 0\.6 s; .* covers 0 s to 0\.5 s"):
        arm.at([0.1, 0.6])
    with pytest.raises(ShapeError, match="finite"):
        arm.at(np.nan)
    rec = Recording.of(arm.mech, arm.t, arm.q, arm.v, dense=lambda t: (t * np.ones(6), np.ones(6)))
    assert np.array_equal(rec.at(0.125)[0], 0.125 * np.ones(6))
    assert rec.at([0.1, 0.2])[1].shape == (2, 6)


def test_more_channels_with_units(arm):
    height = arm["center_of_mass[z]"]
    more = {"height of the hand [m]": height, "plain": height}
    rec = Recording.of(arm.mech, arm.t, arm.q, arm.v, channels=more)
    assert rec.channels["height of the hand"].unit == "m" and rec.channels["plain"].unit == ""
    added = arm.with_channel("two [N]", np.stack([height, height], -1), labels=("a", "b"))
    assert added.channel("two[b]").unit == "N" and "two" not in arm
    with pytest.raises(ModelError, match="two channels are called 'q'"):
        arm.with_channel("q", height)
    with pytest.raises(ShapeError, match=r"'short' has 1 records; there are 101 times"):
        arm.with_channel("short [m]", [1.0])
    with pytest.raises(ModelError, match=r"write 'name \[unit\]'"):
        arm.with_channel("[m]", height)
    with pytest.raises(ModelError, match="brackets"):
        Recording.of(arm.mech, arm.t, arm.q, arm.v, channels=[Channel("a[b]", "", "", height)])
    for labels in (("x",), ("x", "y", "z")):
        with pytest.raises(ShapeError, match=f"'place' has 2 columns, and {len(labels)} labels"):
            Channel("place", "m", "", np.zeros((3, 2)), labels)
    assert Channel("place", "m", "", np.zeros((3, 2)), ("x", "y")).labels == ("x", "y")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"t": [0.0, 0.0]}, "times of a recording increase; after 0 s comes 0 s"),
        ({"t": []}, r"t of a recording has the shape \(0,\)"),
        ({"t": [0.0, np.nan]}, "not finite"),
        ({"q": np.zeros((3, 2))}, r"q of a recording has the shape \(3, 2\); .* \(2, 2\)"),
        ({"v": np.full((2, 2), np.nan)}, "v"),
        ({"works": {"joints": [1.0]}}, r"work 'joints' has the shape \(1,\); it is \(2,\)"),
        ({"forces": {"tip": np.zeros(5)}}, r"forces\['tip'\] has the shape \(5,\)"),
        ({"events": ["bang"]}, "needs a time"),
    ],
)
def test_what_does_not_go_together_is_refused(change, message):
    mech = lw.models.pendulum(2)
    given = {"t": [0.0, 0.1], "q": np.zeros((2, 2)), "v": np.zeros((2, 2)), **change}
    with pytest.raises((ModelError, ShapeError), match=message):
        Recording.of(mech, given.pop("t"), given.pop("q"), given.pop("v"), **given)


def test_arrays_cannot_be_changed(arm):
    with pytest.raises(ValueError, match="read-only"):
        arm.q[0, 0] = 1.0
    with pytest.raises(TypeError):
        arm.channels["q"] = None
    q = np.zeros((1, 6))
    rec = Recording.of(arm.mech, [0.0], q, np.zeros((1, 6)))
    q[0, 0] = 5.0  # the caller's array stays the caller's
    assert rec.q[0, 0] == 0.0


def test_mechanisms_of_nothing_and_of_one_record():
    mech = lw.Builder("nothing").build()
    rec = Recording.of(mech, [0.0, 1.0], np.zeros((2, 0)), np.zeros((2, 0)))
    assert "nothing: 1 s in 1 step" in str(rec) and rec.at(0.5)[0].shape == (0,)
    one = Recording.of(lw.models.pendulum(1), [2.0], [[0.3]], [[0.0]])
    assert np.array_equal(one.at(2.0)[0], [0.3]) and "0 steps" in str(one)


def test_a_motion_that_diverged_is_recorded_and_told():
    """Energies overflow; that is told in the report, not in warnings from within."""
    mech = lw.models.pendulum(2)
    v = np.zeros((9, 2))
    v[-1] = 1e160
    rec = Recording.of(mech, np.arange(9.0), np.zeros((9, 2)), v, np.ones((9, 2)))
    assert "energies are no longer finite" in str(rec)
    assert rec[:5.0].report.drift < 1e-12  # three records before it all is as good as ever


def test_is_pickled_and_is_not_walked_through(arm):
    again = pickle.loads(pickle.dumps(arm))
    assert str(again) == str(arm) and np.array_equal(again["energy.total"], arm["energy.total"])
    assert np.allclose(again.at(0.123)[0], arm.at(0.123)[0])
    with pytest.raises(TypeError, match="not iterable"):
        iter(arm)
