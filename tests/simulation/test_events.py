"""What happens on the way: contacts, limits, margins, grasps that slip, and where runs end."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError
from linkwise.simulation.contact import Contacts
from tests.grasp.grasps import contact
from tests.grasp.test_grasp_motion import MASS, MU, driven, gripper, held
from tests.simulation.moving import mass_on_spring, pendulum

G, M, K = 9.81, 2.0, 5000.0
HEIGHT = 0.3


def floor(damping=0.0, **options):
    return lw.tasks.CompliantSurface((0, 0, -HEIGHT), (0, 0, 1), K, damping, **options)


# -------------------------------------------------------------------------------------- contacts


def bounce():
    """When a mass touches and leaves an elastic floor: m δ̈ = m g − k δ, δ(0) = 0, δ̇(0) = v."""
    fall = np.sqrt(2.0 * HEIGHT / G)
    w, speed = np.sqrt(K / M), G * fall
    return fall, fall + 2.0 * (np.pi - np.arctan(speed * w / G)) / w


@pytest.mark.few(2)
@pytest.mark.parametrize("integrator", ["rk4", "adaptive", "variational", "euler"])
def test_a_bounce_on_an_elastic_floor(integrator):
    step = {"euler": 4e-5, "variational": 2e-4}.get(integrator, 1e-3)
    rec = lw.simulate(
        mass_on_spring(M), duration=0.4, step=step, integrator=integrator,
        contacts={"shoe": ("foot", floor())}, rtol=1e-11, atol=1e-12,
    )  # fmt: skip
    touch, leave = bounce()
    # Free fall is exact in rk4 and variational; in the floor errors are those of the method.
    close = {"rk4": 2e-8, "adaptive": 2e-9, "variational": 1e-5, "euler": 1e-3}[integrator]
    assert [event.kind for event in rec.events] == ["contact", "contact"]
    assert rec.events[0].t == pytest.approx(touch, abs=max(1e-9, close if step < 1e-4 else 0.0))
    assert rec.events[1].t == pytest.approx(leave, abs=close)
    assert rec.events[0].name == "shoe" and "touches the plane at 2.43 m/s" in str(rec.events[0])
    assert "leaves the plane at 2.43 m/s" in str(rec.events[1])
    # Energy comes back: what the floor stored and gave is its work, 5.9 J there and back, known to
    # the order of the method, h ω for Euler.
    known = {"rk4": 1e-6, "adaptive": 1e-7, "variational": 1e-3, "euler": 3e-2}[integrator]
    assert rec["work.contacts"][-1] == pytest.approx(0.0, abs=known)
    assert rec.v[np.searchsorted(rec.t, leave) + 1, 0] > 2.0


def test_a_contact_tells_its_own_speed_while_a_margin_is_watched():
    """Not what the joint forces, which margins see, would make of it."""
    rec = lw.simulate(
        mass_on_spring(M), duration=0.3, tau=3.0, contacts={"shoe": ("foot", floor())},
        watch={"low": lambda t, q, v, tau: q[0] + 10.0},
    )  # fmt: skip
    speed = np.sqrt(2.0 * (G - 3.0 / M) * HEIGHT)
    assert rec.events[0].value == pytest.approx(-speed, rel=1e-6)
    assert f"at {speed:.3g} m/s" in str(rec.events[0])


def test_records_show_the_force_of_a_contact():
    rec = lw.simulate(mass_on_spring(M), duration=0.35, contacts=("foot", floor()))
    depth, force = rec["contact.foot.penetration"], rec["contact.foot.force"]
    pressed = depth > 0.0
    assert force[pressed, 2] == pytest.approx(K * depth[pressed], rel=1e-12)
    assert not force[~pressed].any() and pressed.any()
    assert rec.channel("contact.foot.force").unit == "N"
    assert depth == pytest.approx(-HEIGHT - rec.q[:, 0], abs=1e-14)


def test_steps_keep_their_order_through_impacts():
    """With damping the force begins with a jump; halving the step divides the error by 16."""
    ends = []
    for step in (2e-3, 1e-3, 2.5e-4):
        rec = lw.simulate(
            mass_on_spring(M), duration=0.5, step=step, contacts=("foot", floor(20.0))
        )
        assert [x.text.split()[0] for x in rec.events] == ["touches", "leaves"]
        ends.append(rec.q[-1, 0])
    ratio = abs(ends[0] - ends[2]) / abs(ends[1] - ends[2])
    # 16, with what the smallest step still has, 1/256; first order would give (8-1)/(4-1) = 2.3.
    assert 12.0 < ratio < 22.0


def test_a_damped_mass_comes_to_rest_in_the_floor():
    rec = lw.simulate(mass_on_spring(M), duration=4.0, step=2e-3, contacts=("foot", floor(60.0)))
    assert rec.q[-1, 0] == pytest.approx(-HEIGHT - M * G / K, abs=1e-8)
    assert rec.events[-1].text.startswith("touches")
    assert rec.report.drift < 1e-5 * rec.report.kinetic


def test_points_that_touch_at_the_same_instant():
    """Four corners of a falling plate touch together, and carry a quarter of it each."""
    build = lw.Builder("plate")
    lump = lw.SpatialInertia.from_com(M, (0, 0, 0), (0.1, 0.1, 0.2))
    build.body("plate", hinge=lw.hinges.Free(), inertia=lump)
    corners = [f"{x}{y}" for x in "+-" for y in "+-"]
    for corner in corners:
        build.node(corner, "plate", pose=(float(f"{corner[0]}0.2"), float(f"{corner[1]}0.1"), 0))
    contacts = [(corner, floor(30.0)) for corner in corners]
    for integrator in ("rk4", "adaptive"):
        rec = lw.simulate(
            build.build(), duration=0.3, step=1e-3, contacts=contacts, integrator=integrator
        )
        touched = [x for x in rec.events if x.text.startswith("touches")]
        assert sorted(x.name for x in touched) == sorted(corners)
        assert [x.t for x in touched] == pytest.approx([bounce()[0]] * 4, abs=1e-8)
        forces = [rec[f"contact.{corner}.force"] for corner in corners]
        assert forces[0].max() > 10.0
        for force in forces[1:]:
            assert force == pytest.approx(forces[0], abs=1e-4)
        assert rec.report.drift < 1e-5 * rec.report.kinetic


def test_friction_of_a_contact_brings_sliding_to_rest():
    """A block on a table, pushed along it: it stops after v²/(2 μ g)."""
    build = lw.Builder("block")
    lump = lw.SpatialInertia.from_com(M, (0, 0, 0), (0.1, 0.1, 0.1))
    build.body("block", hinge=lw.hinges.Translation(), inertia=lump)
    mech = build.build()
    table = lw.tasks.CompliantSurface((0, 0, 0), (0, 0, 1), K, 100.0, friction=0.4)
    q = np.array([0.0, 0.0, -M * G / K])
    rec = lw.simulate(
        mech, q, [1.0, 0.0, 0.0], duration=0.4, step=2e-4, record_every=100,
        contacts=("block", table),
    )  # fmt: skip
    assert rec.q[-1, 0] == pytest.approx(1.0 / (2.0 * 0.4 * G), rel=1e-3)  # v_s is not quite zero
    assert abs(rec.v[-1, 0]) < 1e-3
    assert rec["work.contacts"][-1] == pytest.approx(-0.5 * M, rel=1e-4)


def sliding_down(step, slip_speed, integrator, mu=0.5, slope=0.2):
    """A block on a slope that holds it but for v_s, and the speed v at which it then creeps.

    μ N v/√(v² + v_s²) = N tan(slope)
    """
    gravity = (G * np.sin(slope), 0.0, -G * np.cos(slope))
    build = lw.Builder("block", gravity=gravity)
    lump = lw.SpatialInertia.from_com(M, (0, 0, 0), (0.1, 0.1, 0.1))
    build.body("block", hinge=lw.hinges.Translation(), inertia=lump)
    options = {} if slip_speed is None else {"slip_speed": slip_speed}
    table = lw.tasks.CompliantSurface((0, 0, 0), (0, 0, 1), K, 100.0, friction=mu, **options)
    rec = lw.simulate(
        build.build(), [0.0, 0.0, M * gravity[2] / K], duration=0.05, step=step,
        contacts=("block", table), integrator=integrator,
    )  # fmt: skip
    part = np.tan(slope) / mu
    return rec.v[-1, 0], table.slip_speed * part / np.sqrt(1.0 - part**2)


@pytest.mark.few(1)
@pytest.mark.parametrize("integrator", ["rk4", "euler", "variational"])
def test_friction_that_is_too_stiff_for_the_step_is_told(integrator):
    """μ g h/v_s = 4.9 with both defaults: no block creeps so; with what is advised it does."""
    with pytest.warns(UserWarning, match=r"'block' is too stiff.* is about 4\.9") as message:
        try:
            speed, expected = sliding_down(1e-3, None, integrator)
            assert integrator == "rk4" or abs(speed - expected) > 0.5 * expected
        except lw.SimulationError:
            assert integrator == "variational"
    advised = [float(re.search(rf"{x}=(\S+\d)", str(message[0].message))[1])
               for x in ("slip_speed", "step")]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step, slip_speed in ((1e-3, advised[0]), (advised[1], None)):
            speed, expected = sliding_down(step, slip_speed, integrator)
            assert speed == pytest.approx(expected, rel=1e-3)
        speed, expected = sliding_down(1e-3, None, "adaptive")  # takes shorter steps by itself
        assert speed == pytest.approx(expected, rel=1e-3)


def test_friction_of_light_feet_is_told():
    """A foot is lighter than its share of the weight: what a block could do, a leg cannot."""
    robot = lw.models.quadruped()
    rough = {"stiffness": 1e4, "damping": 100.0, "friction": 0.7}
    for slip_speed, message in ((2e-3, True), (0.1, False)):  # μ g h/v_s is 0.7
        ground = lw.tasks.CompliantSurface((0, 0, 0), (0, 0, 1), slip_speed=slip_speed, **rough)
        feet = [(f"{x}_foot", ground) for x in ("front_left", "hind_right")]
        result = Contacts(robot, feet).too_stiff(robot.neutral(), 2e-4, 2.0)
        assert (result is not None) is message


def test_contacts_and_forces_at_one_node_add_up():
    up = {"foot": np.array([0, 0, 0, 0, 0, 1.0])}
    rec = lw.simulate(
        mass_on_spring(M), [-HEIGHT - (M * G - 1.0) / K], duration=0.05, forces=up,
        contacts=("foot", floor()),
    )  # fmt: skip
    assert np.ptp(rec.q) < 1e-12


# ---------------------------------------------------------------------------------------- limits


def test_a_run_stops_at_a_joint_limit():
    """A thrown mass reaches its upper limit at the smaller root of v t − ½ g t² = x."""
    mech = mass_on_spring(M, lower=-1.0, upper=0.25)
    for integrator in ("rk4", "adaptive"):
        rec = lw.simulate(mech, v=[3.0], duration=1.0, limits="stop", integrator=integrator)
        expected = (3.0 - np.sqrt(9.0 - 2.0 * G * 0.25)) / G
        assert rec.t[-1] == pytest.approx(expected, abs=2e-9)
        assert rec.q[-1, 0] == pytest.approx(0.25, abs=1e-8)
        assert rec.stopped == "'slide' reaches its upper limit 0.25"
        assert rec.events[-1].kind == "limit"
    down = lw.simulate(mech, duration=1.0, limits="stop")
    assert down.t[-1] == pytest.approx(np.sqrt(2.0 / G), abs=2e-9)
    assert "lower limit -1" in str(down)


def test_a_ball_hinge_stops_at_its_largest_turn():
    build = lw.Builder("ball", gravity=(0, 0, 0))
    lump = lw.SpatialInertia.from_com(1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    build.body("ball", hinge=lw.hinges.Spherical(), inertia=lump, drive=lw.Drive(max_angle=0.5))
    rec = lw.simulate(build.build(), v=[0.6, 0.8, 0.0], duration=1.0, limits="stop")
    assert rec.t[-1] == pytest.approx(0.5, abs=2e-9) and "largest turn" in rec.stopped


def test_limits_with_springs():
    """Half a swing on the spring: a mass without gravity comes back with its speed."""
    mech = mass_on_spring(M, upper=0.1).with_gravity((0, 0, 0))
    spring = lw.simulation.LimitSpring(stiffness=800.0, damping=0.0)
    rec = lw.simulate(mech, v=[1.0], duration=0.4, limits=spring)
    half = np.pi * np.sqrt(M / 800.0)
    assert [x.t for x in rec.events] == pytest.approx([0.1, 0.1 + half], abs=1e-7)
    assert rec.v[-1, 0] == pytest.approx(-1.0, abs=1e-7)
    assert rec["limit.force"].min() == pytest.approx(-np.sqrt(M * 800.0), rel=1e-3)
    # By default the joint alone swings with 100 rad/s, damped to half the critical.
    stiff = lw.simulate(mech, v=[1.0], duration=0.4, limits="spring")
    assert np.ptp(stiff["q[slide]"]) < 0.4 and stiff.q.max() < 0.1 + 1.0 / 100.0
    assert -0.5 < stiff.v[-1, 0] < -0.1 and stiff["work.limits"][-1] < -0.7
    assert "joint limits" not in str(stiff)


def test_limits_are_ignored_and_told():
    mech = pendulum(lower=-0.1, upper=0.1)
    rec = lw.simulate(mech, [0.0], [1.0], duration=0.3)
    assert not rec.events and "joint limits: passed by 'swing'" in str(rec)


# --------------------------------------------------------------------------------------- margins


def test_margins_are_found_to_a_nanosecond():
    mech = mass_on_spring(M)
    watch = {
        "low": lambda t, q, v, tau: q[0] + 0.2,
        "fast": lambda t, q, v, tau: 3.0 + v[0],
    }
    for integrator in ("rk4", "rk4_mujoco", "adaptive"):  # exact in free fall
        rec = lw.simulate(mech, duration=0.21, step=1e-2, watch=watch, integrator=integrator)
        assert rec.stopped == "'low' was lost"
        assert rec.t[-1] == pytest.approx(np.sqrt(2.0 * 0.2 / G), abs=1.1e-9)
        assert rec.q[-1, 0] < -0.2 + 1e-8 and rec.events[-1].value <= 0.0
    rec = lw.simulate(mech, duration=0.4, step=1e-2, watch=watch, stop=False)
    assert [x.name for x in rec.events] == ["low", "fast"]
    assert rec.events[1].t == pytest.approx(3.0 / G, abs=1.1e-9)
    assert rec.t[-1] == 0.4 and rec.stopped is None


def test_a_margin_lost_at_the_beginning():
    rec = lw.simulate(pendulum(), [0.5], duration=1.0, watch={"never": lambda t, q, v, tau: -1.0})
    assert len(rec) == 1 and rec.stopped == "'never' was lost" and rec.events[0].t == 0.0


def test_margins_see_all_joint_forces():
    """Those of dampers too, which hold contacts as much as those of motors."""
    seen = list[float]()

    def margin(t, q, v, tau):
        seen.append(float(tau[0]))
        return 1.0

    lw.simulate(
        pendulum(damping=0.5), [0.0], [2.0], duration=2e-3, tau=0.25, watch={"seen": margin}
    )
    assert seen[0] == pytest.approx(0.25 - 0.5 * 2.0)


def test_events_within_one_step_are_in_order():
    """A step of 0.1 s with two contacts and a margin within it."""
    soft = lw.tasks.CompliantSurface((0, 0, -HEIGHT), (0, 0, 1), 50.0)
    low = lw.tasks.CompliantSurface((0, 0, -0.32), (0, 0, 1), 50.0)
    rec = lw.simulate(
        mass_on_spring(M), duration=0.3, step=0.1,
        contacts={"first": ("foot", soft), "second": ("foot", low)},
        watch={"mark": lambda t, q, v, tau: q[0] + 0.31}, stop=False,
    )  # fmt: skip
    assert [x.name for x in rec.events][:3] == ["first", "mark", "second"]
    assert rec.events[0].t == pytest.approx(bounce()[0], abs=1e-9)
    assert np.all(np.diff([x.t for x in rec.events]) > 0.0)


def test_a_grasp_that_slips():
    """Fingers let go slowly: the block slips when μ times their push is half its weight."""
    one = contact("point", friction=MU)
    mech = gripper(one.hinge)
    watch = held(mech, one).watch()
    tau = driven(mech, lambda t: 20.0 * (1.0 - 2.0 * t), lambda t: 0.0)
    rec = lw.simulate(mech, duration=0.5, step=2e-3, watch=watch, tau=tau)
    expected = 0.5 - 0.5 * (0.5 * MASS * G / MU) / 20.0
    # Both slip at once; which is first is a matter of rounding.
    assert rec.stopped in ("'left slips' was lost", "'right slips' was lost")
    assert rec.t[-1] == pytest.approx(expected, abs=1e-7)


def test_contacts_that_mean_nothing():
    mech = mass_on_spring()
    with pytest.raises(ModelError, match="contacts is 'foot'; contacts are pairs"):
        lw.simulate(mech, duration=0.1, contacts="foot")
    with pytest.raises(ModelError, match="contact 'a' is 3; contacts are pairs"):
        lw.simulate(mech, duration=0.1, contacts={"a": 3})
    with pytest.raises(ModelError, match="two contacts are of the node 'foot'"):
        lw.simulate(mech, duration=0.1, contacts=[("foot", floor()), ("foot", floor())])
    with pytest.raises(ModelError, match="no node or body called 'food'"):
        lw.simulate(mech, duration=0.1, contacts=("food", floor()))
