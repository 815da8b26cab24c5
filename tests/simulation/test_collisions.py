"""Contacts between bodies, against formulas that need no simulator."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, UnknownNameError
from linkwise.simulation import Collisions, ContactPoint, Ground

pytest.importorskip("coal")

G = 9.81


def scene(*things, gravity=(0.0, 0.0, -G)):
    """Free bodies from (shape, size, inertia)."""
    b = lw.Builder("scene", gravity=gravity)
    for i, (shape, size, inertia) in enumerate(things):
        geometry = [lw.Geometry(f"{shape}{i}", shape, size, lw.Pose.identity())]
        b.body(f"body{i}", "world", lw.hinges.Free(), inertia=inertia, geometry=geometry)
    return b.build()


def ball(mass=1.3, radius=0.1):
    return "sphere", (radius,), lw.SpatialInertia.solid_sphere(mass, radius)


def box(mass=2.0, size=(0.4, 0.3, 0.2)):
    return "box", size, lw.SpatialInertia.solid_box(mass, size)


def at(*positions):
    return np.concatenate([[1.0, 0.0, 0.0, 0.0, *p] for p in positions])


def moved(mech, q, v=None, *, duration=0.5, step=2e-3, contacts, **options):
    options = {"integrator": "implicit", "contacts": contacts, "record_every": 1} | options
    return lw.simulate(mech, q, v, duration=duration, step=step, **options)


def rough(mu=0.6, **laws):
    return Collisions(ground=Ground(friction=mu, **laws), friction=mu, **laws)


@pytest.mark.parametrize(
    ("count", "duration"), [(2, 0.1), pytest.param(3, 10.0, marks=pytest.mark.prove)]
)
def test_a_stack_of_boxes_stands(count, duration):
    mech = scene(*[box()] * count)
    q = at(*[(0.03 * i, -0.02 * i, 0.1 + 0.2 * i) for i in range(count)])
    rec = moved(mech, q, contacts=rough(), duration=duration, step=5e-3)
    # The first steps begin without impulses: what their sweeps leave open is all that it moves.
    assert np.abs(rec.q - q).max() < 1e-7 and np.abs(rec.v[-1]).max() < 1e-7
    weight = 2.0 * G
    forces = {"box0-ground": count * weight}
    forces |= {f"box{i}-box{i + 1}": -(count - 1 - i) * weight for i in range(count - 1)}
    for name, force in forces.items():
        last = rec[f"contact.{name}.force"][-1]
        np.testing.assert_allclose(last, [0.0, 0.0, force], atol=1e-5)
    assert rec.report.drift < 1e-9 and "penetration" in rec.report.touch


def test_a_block_slides_as_by_points_of_the_ground():
    mu, speed = 0.4, 1.0
    mech, q = scene(box()), at((0.0, 0.0, 0.1))
    v = np.array([0.0, 0.0, 0.0, speed, 0.0, 0.0])
    rec = moved(mech, q, v, contacts=rough(mu), duration=0.2)
    assert rec.v[-1, 3] == pytest.approx(speed - mu * G * 0.2, abs=1e-7)
    assert rec.report.works["contact_friction"] == pytest.approx(
        0.5 * 2.0 * (rec.v[-1, 3] ** 2 - speed**2), rel=1e-6
    )
    corners = [
        ContactPoint(f"{x}{y}", "body0", (0.2 * x, 0.15 * y, -0.1), ground=Ground(friction=mu))
        for x in (-1, 1)
        for y in (-1, 1)
    ]
    other = moved(mech, q, v, contacts=corners, duration=0.2)
    np.testing.assert_allclose(rec.q, other.q, atol=1e-7)


@pytest.mark.few(1)
@pytest.mark.parametrize("angle", [0.5, 0.2])
def test_a_ball_rolls_down_a_slope(angle):
    mech = scene(ball(), gravity=(G * np.sin(angle), 0.0, -G * np.cos(angle)))
    rec = moved(mech, at((0.0, 0.0, 0.1)), contacts=rough(0.9), duration=0.3)
    speed = lw.jacobian(mech, rec.q[-1], "body0", frame="world")[3:] @ rec.v[-1]
    assert speed[0] == pytest.approx(5.0 / 7.0 * G * np.sin(angle) * 0.3, rel=1e-6)


@pytest.mark.prove
def test_a_ball_bounces_ever_lower():
    e, height = 0.6, 0.3
    mech = scene(ball())
    rec = moved(
        mech, at((0.0, 0.0, 0.1 + height)), contacts=rough(0.5, restitution=e), duration=1.2,
        step=5e-4,
    )  # fmt: skip
    times = [x.t for x in rec.events if x.text.startswith("touches")][:4]
    first = np.sqrt(2.0 * height / G)
    exact = first + 2.0 * first * np.cumsum([0.0, e, e**2, e**3])
    np.testing.assert_allclose(times, exact, atol=5e-3)  # a few steps for each bounce
    assert rec.report.drift < 1e-9


def test_a_spinning_ball_stops():
    torsional, spin, radius, mass = 0.02, 20.0, 0.1, 1.3
    mech = scene(ball(mass, radius))
    inertia = 0.4 * mass * radius**2
    stop = inertia * spin / (torsional * mass * G)
    v = np.array([0.0, 0.0, spin, 0.0, 0.0, 0.0])
    laws = Collisions(ground=Ground(friction=0.8, torsional=torsional))
    rec = moved(mech, at((0.0, 0.0, radius)), v, contacts=laws, duration=stop + 0.05)
    half = int(np.searchsorted(rec.t, 0.5 * stop))
    expected = spin * (1.0 - rec.t[half] / stop)
    assert rec.v[half, 2] == pytest.approx(expected, rel=1e-6)
    assert abs(rec.v[-1, 2]) < 1e-9 and rec.t[np.argmax(rec.v[:, 2] < 1e-9)] == pytest.approx(
        stop, abs=2e-3
    )


@pytest.mark.parametrize("e", [0.0, 0.7])
def test_an_impact_of_two_balls_keeps_momentum(e):
    mech = scene(ball(1.0), ball(3.0), gravity=(0, 0, 0))
    v = np.zeros(12)
    v[3], v[9] = 2.0, -0.5
    laws = Collisions(friction=0.3, restitution=e)
    rec = moved(mech, at((-0.4, 0.0, 0.0), (0.1, 0.0, 0.0)), v, contacts=laws, duration=0.2)
    np.testing.assert_allclose(rec.v[-1, 9] - rec.v[-1, 3], e * 2.5, atol=1e-9)
    v[10] = 0.5  # now they hit each other beside the centre, and begin to spin
    rec = moved(mech, at((-0.4, 0.0, 0.0), (0.1, 0.0, 0.0)), v, contacts=laws, duration=0.2)
    for kind in ("linear", "angular"):
        p = rec[f"momentum.{kind}"]
        np.testing.assert_allclose(p, np.tile(p[0], (len(p), 1)), atol=1e-12)
    assert abs(rec.v[-1, 2]) > 0.1
    assert rec.report.works["contacts"] < 0.0 and rec.report.drift < 1e-12


def gripper(grip, mu):
    """A box between two fingers that are pressed together."""
    b = lw.Builder("gripper")
    pad = lw.SpatialInertia.solid_box(0.2, (0.02, 0.05, 0.05))
    for name, side in (("left", 1.0), ("right", -1.0)):
        shape = lw.Geometry(name, "box", (0.02, 0.05, 0.05), lw.Pose.identity())
        b.body(
            name, "world", lw.hinges.Prismatic((side, 0, 0)), inertia=pad, geometry=[shape],
            inboard=(-0.06 * side, 0, 0.5),
        )  # fmt: skip
    _, size, inertia = box(0.5, (0.1, 0.04, 0.04))
    cube = lw.Geometry("cube", "box", size, lw.Pose.identity())
    b.body("cube", "world", lw.hinges.Free(), inertia=inertia, geometry=[cube])
    mech = b.build()
    q = np.concatenate([[0.0, 0.0], at((0.0, 0.0, 0.5))])
    return moved(
        mech, q, contacts=Collisions(friction=mu), tau={"left": grip, "right": grip}, duration=0.2
    )


def test_a_gripper_holds_and_drops_at_the_critical_force():
    mu = 0.5
    critical = 0.5 * G / (2.0 * mu)
    held = gripper(1.05 * critical, mu)
    assert abs(held.q[-1, -1] - 0.5) < 1e-6
    total = held["contact.left-cube.force"][-1] + held["contact.right-cube.force"][-1]
    np.testing.assert_allclose(total, [0.0, 0.0, -0.5 * G], atol=1e-5)
    dropped = gripper(0.9 * critical, mu)
    fall = 0.5 * (G - 2.0 * mu * 0.9 * critical / 0.5) * 0.2**2
    assert 0.5 - dropped.q[-1, -1] == pytest.approx(fall, rel=0.02)  # of order one
    assert any(x.kind == "slip" for x in dropped.events)


@pytest.mark.prove
def test_a_rocking_block_falls_onto_its_face_in_time():
    width, height, tilt = 0.1, 0.5, 0.05
    mech = scene(box(3.0, (width, 0.3, height)))
    half = np.hypot(width, height) / 2.0
    slender = np.arctan2(width, height)
    z = half * np.cos(slender - tilt)
    q = at((half * np.sin(slender - tilt), 0.0, z))
    q[0], q[2] = np.cos(0.5 * tilt), np.sin(0.5 * tilt)
    rec = moved(mech, q, contacts=rough(2.0), duration=0.4, step=1e-3)
    turn = 2.0 * np.arctan2(rec.q[:, 2], rec.q[:, 0])
    # Housner: θ̈ = p² sin(θ − α) about the edge, p² = 3 g/4R; linear in small angles.
    p = np.sqrt(3.0 * G / (4.0 * half))
    exact = np.arccosh(1.0 / (1.0 - tilt / slender)) / p
    assert rec.t[np.argmax(turn < 0.0)] == pytest.approx(exact, rel=0.02)


def test_who_touches_whom_is_filtered_and_named():
    mech = scene(box(), box())
    q = at((0.0, 0.0, 0.1), (0.0, 0.0, 0.35))
    laws = Collisions(ground=Ground(), exclude=(("body0", "body1"),))
    rec = moved(mech, q, contacts=laws, duration=0.2)
    assert "contact.box0-ground.force" in rec and "contact.box0-box1.force" not in rec
    assert rec.q[-1, 13] < 0.25  # it falls into the other one
    with pytest.raises(UnknownNameError, match="bodi"):
        moved(mech, q, contacts=Collisions(exclude=(("body0", "bodi"),)))
    with pytest.raises(ModelError, match="no two collision shapes"):
        moved(scene(box()), at((0.0, 0.0, 0.0)), contacts=Collisions())
    with pytest.raises(ModelError, match="pairs of two bodies"):
        Collisions(exclude=(("body0",),))


def test_without_contacts_a_step_is_that_of_a_rollout():
    """Stiff springs, dampers and servos at two joints: both kinds of implicit step agree."""
    b = lw.Builder("arm")
    part = lw.SpatialInertia.solid_box(1.0, (0.3, 0.05, 0.05))
    drive = lw.Drive(stiffness=400.0, damping=3.0, rest=0.2)
    shape = [lw.Geometry("link", "sphere", (0.05,), lw.Pose.identity())]
    b.body("a", "world", lw.hinges.Pin(), inertia=part, drive=drive, geometry=shape)
    b.body("b", "a", lw.hinges.Pin(), inertia=part, inboard=(0.3, 0.0, 0.0), drive=drive)
    b.actuator(lw.Actuator.position("servo", "b", kp=300.0, kv=4.0))
    mech = b.build()
    motion = {"duration": 0.1, "step": 5e-3, "integrator": "implicit"}
    q, v = np.array([0.3, -0.4]), np.array([1.0, 2.0])
    far = Collisions(ground=Ground(point=(0.0, 0.0, -5.0)))
    rec = lw.simulate(mech, q, v, contacts=far, controls=0.5, record_every=1, **motion)
    runs = lw.rollout(mech, q, v, contacts=(), controls=[0.5], **motion)
    assert np.abs(runs.q[-1] - q).max() > 0.1
    np.testing.assert_allclose(rec.q, runs.q, atol=1e-12)
    np.testing.assert_allclose(rec.v, runs.v, atol=1e-11)


def linkage(*extra, gravity=(0.0, 0.0, -G)):
    """A parallelogram that hangs in the x-z plane, with a ball on its bar; arms of 0.5 m."""
    pin, half = lw.hinges.Pin((0, 1, 0)), lw.Pose.translation((0.0, 0.0, -0.5))
    b = lw.Builder("linkage", gravity=gravity)
    bar = lw.SpatialInertia.from_com(2.0, (0.15, 0.0, 0.0), (1e-4, 0.015, 0.015))
    arm = lw.SpatialInertia.from_com(1.0, (0.0, 0.0, -0.25), (0.02, 0.02, 1e-4))
    middle = lw.Pose.translation((0.15, 0.0, 0.0))
    b.body("crank", "world", pin, inertia=arm)
    b.body("bar", "crank", pin, inboard=half, inertia=bar,
           geometry=[lw.Geometry("knob", "sphere", (0.05,), middle)])  # fmt: skip
    far = lw.Pose.translation((0.3, 0.0, 0.0))
    b.body("rocker", "world", pin, inboard=far, inertia=arm)
    b.node("bar_end", "bar", far)
    b.node("rocker_end", "rocker", half)
    b.loop("loop", "bar_end", "rocker_end", pin)
    for i, (shape, size, inertia) in enumerate(extra):
        geometry = [lw.Geometry(f"{shape}{i}", shape, size, lw.Pose.identity())]
        b.body(f"body{i}", "world", lw.hinges.Free(), inertia=inertia, geometry=geometry)
    return b.build()


def test_a_linkage_lands_as_by_a_point_of_the_ground():
    mech, q, v = linkage(), np.array([0.8, -0.8, 0.8]), np.zeros(3)
    ground = Ground(point=(0.0, 0.0, -0.5), friction=0.3)
    knob = ContactPoint("knob", "bar", (0.15, 0.0, 0.0), radius=0.05, ground=ground)
    rec = moved(mech, q, v, contacts=Collisions(ground=ground, friction=0.3), duration=1.0)
    other = moved(mech, q, v, contacts=[knob], duration=1.0)
    assert any(e.kind == "contact" for e in rec.events) and rec["loop.distance"].max() < 1e-6
    assert rec["contact.knob-ground.force"][-1, 2] > 1.0
    np.testing.assert_allclose(rec.q, other.q, atol=1e-6)
    np.testing.assert_allclose(rec.v, other.v, atol=1e-3)  # the kernel solves to 1e-4 m/s
    assert rec.report.drift < 1e-9


def test_a_ball_pushes_a_linkage():
    """m v₀ = m v + λ, I ω = −½ λ, v = −½ ω where it hangs, with I = 2 (0.02 + 0.0625) + 2/4."""
    mass, speed = 1.3, 2.0
    mech = linkage(ball(mass, 0.05), gravity=(0.0, 0.0, 0.0))
    q = np.concatenate([np.zeros(3), at((0.0, 0.0, -0.5))])
    v = np.zeros(mech.nv)
    v[6] = speed
    rec = moved(mech, q, v, contacts=Collisions(friction=0.0), duration=0.04, step=1e-4)
    touch = next(e for e in rec.events if e.kind == "contact")
    inertia = 2 * (0.02 + 0.0625) + 2.0 * 0.25
    rate = mass * speed / (2.0 * inertia + 0.5 * mass)
    i = int(np.searchsorted(rec.t, touch.t + 2e-4))
    np.testing.assert_allclose(rec.v[i, [0, 1, 2, 6]], [-rate, rate, -rate, 0.5 * rate], rtol=2e-3)
    assert rec.report.drift < 1e-9 and rec["loop.distance"].max() < 1e-6


def test_a_rope_holds_between_bodies_that_touch():
    """1 and 2 kg on a rope over a pulley; the heavy one ends on the ground, which carries 1 kg."""
    b, slide = lw.Builder("pulley", gravity=(0, 0, -G)), lw.hinges.Prismatic((0, 0, 1))
    for name, m, x in (("left", 1.0, 0.5), ("right", 2.0, 0.0)):
        box = lw.Geometry(name, "box", (0.1, 0.1, 0.1), lw.Pose.identity())
        b.body(name, "world", slide, inertia=lw.SpatialInertia.solid_box(m, (0.1, 0.1, 0.1)),
               geometry=[box], inboard=lw.Pose.translation((x, 0, 0)))  # fmt: skip
    mech = b.couple("rope", "right", {"left": -1.0}).build()
    contacts = Collisions(ground=Ground(point=(0, 0, -0.15)))
    rec = moved(mech, np.zeros(2), contacts=contacts, duration=0.6)
    i = 100
    np.testing.assert_allclose(rec.v[i], np.array([1, -1]) * G / 3 * rec.t[i], rtol=1e-9)
    np.testing.assert_allclose(rec.q[-1], [0.1, -0.1], atol=1e-6)
    np.testing.assert_allclose(rec["contact.right-ground.force"][-1], [0, 0, G], atol=1e-6)


UNEVEN = """
<mujoco>
  <asset><hfield name="land" nrow="3" ncol="3" size="2 2 0.3 0.1"
    elevation="0 0.2 0.4  0.1 0.3 0.5  0.6 0.4 0.9"/></asset>
  <worldbody>
    <geom name="land" type="hfield" hfield="land" pos="0.1 0 -0.2" euler="0 4 0" friction="0.7"/>
    <body name="box" pos="-0.9 -0.8 0.4"><freejoint/>
      <geom name="box" type="box" size="0.2 0.15 0.1" mass="2"/></body>
    <body name="can" pos="0.5 -0.9 0.35"><freejoint/>
      <geom name="can" type="cylinder" size="0.1 0.15" euler="80 20 0" mass="1"/></body>
    <body name="pill" pos="-0.6 0.8 0.4"><freejoint/>
      <geom name="pill" type="capsule" size="0.08 0.1" euler="0 60 0" mass="1"/></body>
    <body name="egg" pos="0.7 0.6 0.45"><freejoint/>
      <geom name="egg" type="ellipsoid" size="0.1 0.15 0.2" mass="1"/></body>
  </worldbody>
</mujoco>"""


def test_height_fields_are_touched_as_in_rollouts(tmp_path):
    (tmp_path / "land.xml").write_text(UNEVEN)
    mech = lw.load(tmp_path / "land.xml")
    q = mech.neutral()
    for k, place in enumerate(([-0.9, -0.8, 0.2], [0.5, -0.9, 0.2], [-0.6, 0.8, 0.3],
                               [0.7, 0.6, 0.3])):  # fmt: skip
        q[7 * k + 4 : 7 * k + 7] = place
    rec = moved(mech, q, contacts=Collisions(), duration=0.3)
    runs = moved(mech, q, contacts=None, duration=0.3)
    np.testing.assert_allclose(rec.q[-1], runs.q[-1], atol=2e-5)
    forces = [rec[f"contact.{name}-land.force"] for name in ("box", "can", "pill", "egg")]
    assert all(np.abs(force).max() > 1.0 for force in forces)
    assert rec.report.drift < 1e-9


def test_a_box_on_a_box_on_a_height_field():
    """Both stand on a slope of heights; the ground carries both."""
    x, y = np.meshgrid(np.linspace(-2, 2, 5), np.linspace(-2, 2, 5))
    land = lw.simulation.HeightField(0.1 * x + 0.05 * y, (4.0, 4.0), friction=0.8)
    mech = scene(box(), box())
    slope = np.array([-0.1, -0.05, 1.0])
    n = slope / np.linalg.norm(slope)
    turn = np.array([1.0 + n[2], *np.cross([0, 0, 1], n)])
    turn /= np.linalg.norm(turn)
    q = np.concatenate([turn, 0.1 * n, turn, 0.3 * n])
    rec = moved(mech, q, contacts=Collisions(ground=land), duration=0.5)
    assert np.abs(rec.v[-1]).max() < 1e-6 and np.abs(rec.q[-1] - q).max() < 2e-3
    force = rec["contact.box0-ground.force"][-1]
    np.testing.assert_allclose(force, [0, 0, mech.total_mass * G], atol=1e-5)
    assert rec["contact.box0-box1.force"][-1, 2] == pytest.approx(-0.5 * mech.total_mass * G)


def test_height_fields_that_move_are_refused(tmp_path):
    text = UNEVEN.replace('<geom name="land"', '<body name="tray"><freejoint/><geom name="land"')
    text = text.replace('friction="0.7"/>', 'friction="0.7"/><geom size="0.1"/></body>')
    (tmp_path / "land.xml").write_text(text)
    mech = lw.load(tmp_path / "land.xml")
    with pytest.raises(ModelError, match=r"field 'land' of .* moves with 'tray'"):
        moved(mech, mech.neutral(), contacts=Collisions(), duration=0.1)
