"""`lw.simulate` by implicit steps: the motion of `lw.rollout`, with all that a recording has."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, SimulationError
from linkwise.simulation import ContactPoint, Ground

G = 9.81
STEP = 2e-3


@pytest.fixture(scope="module")
def hopper():
    """A box on a leg with a foot, and a servo, a filtered motor, friction and limits."""
    b = lw.Builder("hopper")
    b.body(
        "base", "world", lw.hinges.Free(), inertia=lw.SpatialInertia.solid_box(2.0, (0.3, 0.2, 0.1))
    )
    limb = lw.SpatialInertia.from_com(0.4, (0.0, 0.0, -0.1), (2e-3, 2e-3, 1e-3))
    drive = lw.Drive(damping=0.2, stiffness=1.0, friction=0.1, lower=-0.3, upper=0.6, armature=0.01)
    b.body("thigh", "base", lw.hinges.Pin((0, 1, 0)), inertia=limb, drive=drive)
    b.body(
        "shank", "thigh", lw.hinges.Pin((0, 1, 0)), inboard=(0, 0, -0.2), inertia=limb, drive=drive
    )
    b.node("foot", "shank", (0.0, 0.0, -0.2))
    b.node("top", "base", (0.1, 0.0, 0.05))
    b.actuator(
        lw.Actuator.position("hip", "thigh", kp=20.0, kv=0.5),
        lw.Actuator("knee", (("shank", 1.0),), dynamics="filter", time_constant=0.03),
    )
    ground = Ground(friction=0.6, restitution=0.1, torsional=0.01)
    points = [
        ContactPoint("foot", "shank", (0.0, 0.0, -0.2), 0.02, ground),
        ContactPoint("left", "base", (0.15, 0.1, -0.05), 0.0, ground),
        ContactPoint("right", "base", (-0.15, -0.1, -0.05), 0.0, ground),
    ]
    return b.build(), points


def start(mech, height=0.5):
    q = mech.neutral().copy()
    q[6], q[7:] = height, (0.2, 0.3)
    v = np.zeros(mech.nv)
    v[:4] = (0.3, -0.5, 0.2, 0.4)
    return q, v


def both(mech, points, **options):
    q, v = start(mech)
    options = {
        "duration": 0.5,
        "step": STEP,
        "contacts": points,
        "integrator": "implicit",
    } | options
    return lw.simulate(mech, q, v, **options), options


def test_the_motion_is_that_of_a_rollout(hopper):
    mech, points = hopper
    rec, options = both(mech, points, controls=(0.1, 0.8), record_every=1)
    q, v = start(mech)
    runs = lw.rollout(mech, q, v, **options)
    np.testing.assert_allclose(rec.q, runs.q, rtol=0, atol=1e-10)
    np.testing.assert_allclose(rec.v, runs.v, rtol=0, atol=1e-9)
    for i, point in enumerate(points):
        force = rec[f"contact.{point.name}.force"]
        np.testing.assert_allclose(force, runs.contact_forces[:, i], rtol=0, atol=1e-6)
    np.testing.assert_allclose(rec["residual"], runs.residual, rtol=0, atol=1e-9)
    assert any(e.kind == "contact" for e in rec.events)


def test_commands_come_as_a_table_by_name_and_from_a_function(hopper):
    mech, points = hopper
    rows = np.column_stack([np.sin(np.arange(50)), 3.0 * np.cos(np.arange(50))])
    held, _ = both(mech, points, controls=rows, control_step=5 * STEP)
    times = []

    def law(t, q, v):
        times.append(t)
        hip, knee = rows[round(t / (5 * STEP))]
        return {"knee": knee, "hip": hip}

    other, _ = both(mech, points, controls=law, control_step=5 * STEP)
    np.testing.assert_allclose(times, 5 * STEP * np.arange(50))
    np.testing.assert_allclose(other.q, held.q, rtol=0, atol=1e-11)
    np.testing.assert_allclose(other["activation"], held["activation"], rtol=0, atol=1e-11)
    np.testing.assert_allclose(other["control[knee]"], held["control[knee]"])
    assert other.report.drift < 1e-10


@pytest.mark.parametrize("passive", [True, False])
def test_the_energy_is_accounted_for(hopper, passive):
    mech, points = hopper

    def push(t, q, v):
        return {"top": [0.0, 0.1, 0.0, 0.5, -0.2, 1.0]}

    rec, _ = both(
        mech, points, controls=(0.4, 2.0), forces=push, tau=lambda t, q, v: -0.1 * v,
        passive=passive, duration=0.6,
    )  # fmt: skip
    works = rec.report.works
    names = {"actuators", "forces", "joints", "contacts", "contact_friction", "limits", "steps"}
    assert names | ({"joint_friction"} if passive else set()) <= {n for n in works if works[n]}
    assert works["contacts"] < 0.0 and works["limits"] <= 1e-12
    assert ("joint_friction" not in works) != passive
    assert rec.report.drift < 1e-10


def test_the_work_of_steps_is_of_order_one(hopper):
    mech, points = hopper
    lost = []
    for step in (2e-3, 1e-3, 5e-4):
        rec, _ = both(mech, points, step=step, duration=0.1, controls=0.0)  # in flight
        lost.append(rec.report.works["steps"])
        assert not rec.events
    assert 1.6 < lost[0] / lost[1] < 2.4 and 1.6 < lost[1] / lost[2] < 2.4


def test_a_force_at_a_node_is_a_joint_force(hopper):
    mech, points = hopper
    wrench = np.array([0.1, 0.2, 0.3, 1.0, 2.0, 3.0])
    options = {"forces_frame": "world", "duration": 0.1, "record_every": 1}
    rec, _ = both(mech, points, forces={"top": wrench}, **options)

    def same(t, q, v):
        return wrench @ lw.jacobian(mech, q, "top", frame="world")

    other, _ = both(mech, points, tau=same, **options)
    np.testing.assert_allclose(rec.q, other.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(rec["work.forces"], other["work.joints"], atol=1e-12)
    assert np.abs(rec["work.forces"][-1]) > 1e-3 and "force.top" in rec


def slider(**drive):
    b = lw.Builder("slider", gravity=(0, 0, 0))
    ball, drive = lw.SpatialInertia.solid_sphere(2.0, 0.1), lw.Drive(**drive)
    b.body("cart", "world", lw.hinges.Prismatic((1, 0, 0)), inertia=ball, drive=drive)
    return b.build()


def test_limits_act_stop_or_are_refused():
    mech = slider(lower=-0.1, upper=0.1)
    options = {"duration": 0.4, "integrator": "implicit"}
    rec = lw.simulate(mech, [0.0], [0.5], **options)
    event = rec.events[0]
    assert (event.kind, event.name) == ("limit", "cart") and event.t == pytest.approx(0.2, abs=2e-3)
    assert rec.q.max() < 0.1 + 1e-12 and abs(rec.v[-1, 0]) < 1e-12
    np.testing.assert_allclose(rec.report.works["limits"], -0.5 * 2.0 * 0.25, rtol=1e-9)
    assert rec["limit.force"].min() < 0.0
    ended = lw.simulate(mech, [0.0], [0.5], limits="stop", **options)
    assert "upper limit" in ended.stopped and ended.t[-1] == event.t
    with pytest.raises(ModelError, match="act by impulses"):
        lw.simulate(mech, [0.0], limits="spring", **options)
    with pytest.raises(ModelError, match="implicit"):
        lw.simulate(mech, [0.0], duration=0.1, limits="impulse")


def test_a_block_slides_sticks_and_says_so():
    mu, speed = 0.4, 1.0
    b = lw.Builder("block")
    box = lw.SpatialInertia.solid_box(2.0, (0.4, 0.3, 0.1))
    mech = b.body("block", "world", lw.hinges.Free(), inertia=box).build()
    corners = [
        ContactPoint(f"c{i}", "block", (x, y, -0.05), ground=Ground(friction=mu))
        for i, (x, y) in enumerate([(-0.2, -0.15), (-0.2, 0.15), (0.2, -0.15), (0.2, 0.15)])
    ]
    q, v = mech.neutral().copy(), np.zeros(6)
    q[6], v[3] = 0.05, speed
    rec = lw.simulate(mech, q, v, duration=0.5, integrator="implicit", contacts=corners)
    ends = [e for e in rec.events if e.text == "sticks"]
    assert [e.t for e in ends] == pytest.approx([speed / (mu * G)] * 4, abs=2e-3)
    works = rec.report.works
    assert works["contact_friction"] == pytest.approx(-0.5 * 2.0 * speed**2, rel=1e-6)
    assert abs(works["contacts"]) < 1e-6 and rec.report.drift < 1e-10
    assert "slip" in str(rec.report) and "penetration" in str(rec.report)


def test_margins_end_a_run(hopper):
    mech, points = hopper
    rec, _ = both(mech, points, watch={"high": lambda t, q, v, tau: q[6] - 0.45})
    assert rec.stopped == "'high' was lost" and rec.events[-1].kind == "watch"
    assert rec.q[-1, 6] < 0.45 <= rec.q[-2, 6]
    other, _ = both(mech, points, watch={"high": lambda t, q, v, tau: q[6] - 0.45}, stop=False)
    assert other.stopped is None and other.t[-1] == 0.5


def test_what_does_not_act_is_reported(hopper):
    mech, points = hopper
    rec, _ = both(mech, points, duration=0.01)
    lines = "\n".join(rec.report.notes.not_modelled)
    assert "actuators 'hip', 'knee'" in lines and "Coulomb" not in lines
    other, _ = both(mech, points, duration=0.01, passive=False, controls=0.0)
    lines = "\n".join(other.report.notes.not_modelled)
    assert "actuators" not in lines and "Coulomb friction of 'thigh', 'shank'" in lines


def test_probes_and_files(hopper, tmp_path):
    mech, points = hopper
    rec, _ = both(mech, points, controls=0.0, probes={"height [m]": lambda t, q, v, tau: q[6]})
    np.testing.assert_array_equal(rec["height"], rec.q[:, 6])
    rec.save(tmp_path / "run.npz")
    back = lw.load_recording(tmp_path / "run.npz")
    assert str(back.report) == str(rec.report)
    part = rec[0.2:0.3] + rec[0.3:0.5]
    assert part["contact.foot.slip"].shape == part.t.shape


def test_a_run_that_cannot_go_on_has_a_recording(hopper):
    mech, points = hopper
    with pytest.raises(SimulationError, match="cannot go on") as caught:
        both(mech, points, tau=lambda t, q, v: np.full(mech.nv, 1e7 * (t > 0.1)))
    assert caught.value.recording.t[-1] == pytest.approx(0.1, abs=2 * STEP)


def test_bad_input_is_answered(hopper):
    mech, points = hopper
    with pytest.raises(ModelError, match="integrator='implicit'"):
        both(mech, (), integrator="rk4", controls=0.0)
    with pytest.raises(lw.errors.UnknownNameError, match="called 'hop'"):
        both(mech, points, controls={"hop": 1.0})
    with pytest.raises(lw.errors.ShapeError, match="hip, knee"):
        both(mech, points, controls=(1.0, 2.0, 3.0))
    with pytest.raises(ModelError, match="no actuators"):
        lw.simulate(slider(), [0.0], duration=0.1, integrator="implicit", controls=0.0)


def test_a_pose_is_put_on_the_ground_and_held_there(hopper):
    mech, points = hopper
    q = lw.simulation.put_on_ground(mech, start(mech)[0], points)
    rec = lw.simulate(mech, q, duration=STEP, step=STEP, integrator="implicit", contacts=points)
    depths = [rec[f"contact.{x.name}.penetration"][0] for x in points]
    assert max(depths) == pytest.approx(0.0, abs=1e-12)
    commands = lw.simulation.hold_commands(mech, q)
    np.testing.assert_allclose(commands, [q[7], 0.0])
    with pytest.raises(ModelError, match="no free base"):
        lw.simulation.put_on_ground(slider(), None, [ContactPoint("c", "cart")])
    q[6] -= 0.1
    with pytest.warns(UserWarning, match="0.1 m inside"):
        lw.simulate(mech, q, duration=STEP, step=STEP, integrator="implicit", contacts=points)


def test_loops_are_held():
    mech = lw.models.four_bar()
    q = mech.neutral()
    v = lw.loops.project_velocity(mech, q, [3.0, 0.0, 0.0])
    lost = []
    for step in (2e-3, 1e-3):
        rec = lw.simulate(mech, q, v, duration=0.2, step=step, integrator="implicit")
        assert rec["loop.distance"].max() < 1e-4
        lost.append(rec.report.drift)  # the work of the loops themselves, of order one
    assert lost[1] < 0.6 * lost[0] < 1e-3
