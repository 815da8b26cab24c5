"""Shapes on a plane, against formulas: cylinders, ellipsoids, meshes, and many corners."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError
from linkwise.simulation import ContactPoint, Ground, contact_points
from linkwise.simulation.implicit.hull import MOST_CORNERS, hull
from linkwise.simulation.implicit.support import LEAN, LEANS, Corners, Ellipsoid, Rim
from linkwise.spatial.rotation import axis_angle

G = 9.81


def on_plane(shape: str, size, inertia, *, pose=None, slope=0.0, com=(0.0, 0.0, 0.0)):
    """A body with one shape; a slope turns gravity."""
    gravity = (G * np.sin(slope), 0.0, -G * np.cos(slope))
    pose = lw.Pose.identity() if pose is None else pose
    b = lw.Builder("body", gravity=gravity)
    geometry = [lw.Geometry("shape", shape, size, pose)]
    moved = inertia.moved(lw.Pose.translation(com))
    b.body("body", "world", lw.hinges.Free(), inertia=moved, geometry=geometry)
    return b.build()


def run(mech, z, v=None, *, turn=None, ground=None, **options):
    q = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, z])
    if turn is not None:
        q[:4] = turn
    ground = Ground() if ground is None else ground
    return lw.rollout(mech, q, v, integrator="implicit", contacts=ground, **options)


def assert_carried(runs, weight):
    """Forces add up to the weight: exactly on average, in each step up to where sweeps stop."""
    forces = runs.contact_forces.sum(axis=1)[-500:]
    np.testing.assert_allclose(forces.mean(axis=0), [0.0, 0.0, weight], atol=1e-9)
    stop = 1e-10 * weight / G / runs.step
    np.testing.assert_allclose(forces, [[0.0, 0.0, weight]] * 500, atol=2.0 * stop)


LYING = lw.Pose.rotation(axis_angle((1.0, 0.0, 0.0), np.pi / 2))  # along y


def solid_cylinder(mass, radius, length, *, along):
    across = mass * (radius**2 / 4 + length**2 / 12)
    J = np.full(3, across)
    J[along] = mass * radius**2 / 2
    return lw.SpatialInertia.from_com(mass, (0.0, 0.0, 0.0), np.diag(J))


def test_a_standing_cylinder_carries_its_weight():
    mech = on_plane("cylinder", (0.1, 0.4), solid_cylinder(2.0, 0.1, 0.4, along=2))
    runs = run(mech, 0.2, duration=1.0)
    assert_carried(runs, 2 * G)
    assert np.abs(runs.v[-1]).max() < 1e-9
    assert abs(runs.q[-1, 6] - 0.2) < 1e-9


@pytest.mark.parametrize(("mu", "radius", "mass"), [(0.3, 0.1, 2.0), (0.15, 0.25, 0.5)])
def test_a_spinning_disc_is_braked_by_friction_on_its_rim(mu, radius, mass):
    """Its torque is μ m g R until it stops, after ω I/(μ m g R)."""
    speed, I_zz, torque = 15.0, mass * radius**2 / 2, mu * mass * G * radius
    mech = on_plane("cylinder", (radius, 0.04), solid_cylinder(mass, radius, 0.04, along=2))
    stop, step = speed * I_zz / torque, 5e-4
    duration = step * round(1.2 * stop / step)
    ground = Ground(friction=mu)
    runs = run(mech, 0.02, [0, 0, speed, 0, 0, 0], duration=duration, step=step, ground=ground)
    spin, still = runs.v[:, 2], runs.t > stop + step
    np.testing.assert_allclose(
        spin[~still], np.maximum(speed - torque / I_zz * runs.t[~still], 0.0), rtol=0, atol=1e-8
    )
    assert still.any() and np.abs(spin[still]).max() < 1e-8
    np.testing.assert_allclose(runs.v[:, [0, 1, 3, 4, 5]], 0.0, atol=1e-8)  # it stays in place


def test_a_point_with_torsional_friction_brakes_as_a_disc_of_even_pressure():
    """∫ μ p r dA = 2/3 μ m g R: the formula of the page, with a ball in place of the disc."""
    mu, radius, mass, speed = 0.3, 0.1, 2.0, 15.0
    r = (np.arange(100000) + 0.5) / 100000 * radius
    torque = float((mu * mass * G / (np.pi * radius**2) * r * 2 * np.pi * r).sum() * radius / 1e5)
    assert torque == pytest.approx(2 / 3 * mu * mass * G * radius, rel=1e-9)
    mech = on_plane("sphere", (0.05,), solid_cylinder(mass, radius, 0.04, along=2))
    ground = Ground(friction=mu, torsional=2 / 3 * mu * radius)
    runs = run(mech, 0.05, [0, 0, speed, 0, 0, 0], duration=0.1, ground=ground)
    slowed = speed - torque / (mass * radius**2 / 2) * runs.t
    np.testing.assert_allclose(runs.v[:, 2], slowed, rtol=0, atol=1e-8)


def test_a_standing_cylinder_tips_where_its_weight_leaves_the_base():
    """On a slope with tan α above r over half the length it falls, below it stands."""
    for ratio, stands in ((0.9, True), (1.1, False)):
        slope = np.arctan(ratio * 0.1 / 0.2)
        inertia = solid_cylinder(2.0, 0.1, 0.4, along=2)
        mech = on_plane("cylinder", (0.1, 0.4), inertia, slope=slope)
        runs = run(mech, 0.2, duration=1.0, ground=Ground(friction=2.0))
        assert (abs(runs.q[-1, 6] - 0.2) < 1e-4) == stands


def test_a_lying_cylinder_rolls_down_a_slope_with_two_thirds():
    mech = on_plane(
        "cylinder", (0.1, 0.4), solid_cylinder(2.0, 0.1, 0.4, along=1), pose=LYING, slope=0.1
    )
    runs = run(mech, 0.1, duration=1.0)
    velocity = lw.node_velocity(mech, runs.q[-1], runs.v[-1], "body", frame="world")
    speed = 2.0 / 3.0 * G * np.sin(0.1) * 1.0
    np.testing.assert_allclose(velocity[3:], [speed, 0.0, 0.0], atol=1e-5)
    np.testing.assert_allclose(velocity[:3], [0.0, speed / 0.1, 0.0], atol=1e-4)


def period(t, x) -> float:
    """From zero crossings of a swing."""
    k = np.flatnonzero(np.sign(x[1:]) != np.sign(x[:-1]))
    at = t[k] - x[k] * (t[k + 1] - t[k]) / (x[k + 1] - x[k])
    return float(2.0 * np.mean(np.diff(at)))


def test_a_cylinder_with_an_eccentric_weight_rocks_with_its_period():
    r, d, mass = 0.1, 0.04, 2.0
    inertia = solid_cylinder(mass, r, 0.4, along=1)
    mech = on_plane("cylinder", (r, 0.4), inertia, pose=LYING, com=(0.0, 0.0, -d))
    tilt = 0.02
    turn = [np.cos(tilt / 2), 0.0, np.sin(tilt / 2), 0.0]
    runs = run(mech, r, turn=turn, duration=2.0, step=5e-4, ground=Ground(friction=5.0))
    expected = 2 * np.pi * np.sqrt((mass * r**2 / 2 + mass * (r - d) ** 2) / (mass * G * d))
    np.testing.assert_allclose(period(runs.t, runs.q[:, 2]), expected, rtol=2e-3)


def test_an_ellipsoid_rocks_with_its_period():
    """It rolls on the curvature a²/c at its lowest point, with its centre c above it."""
    a, b, c, mass = 0.3, 0.2, 0.1, 2.0
    J = np.diag([b**2 + c**2, a**2 + c**2, a**2 + b**2]) * mass / 5
    mech = on_plane("ellipsoid", (a, b, c), lw.SpatialInertia.from_com(mass, (0, 0, 0), J))
    tilt = 0.02
    turn = [np.cos(tilt / 2), 0.0, np.sin(tilt / 2), 0.0]
    runs = run(mech, c, turn=turn, duration=2.0, step=5e-4, ground=Ground(friction=5.0))
    arm = a**2 / c - c
    expected = 2 * np.pi * np.sqrt((J[1, 1] + mass * c**2) / (mass * G * arm))
    np.testing.assert_allclose(period(runs.t, runs.q[:, 2]), expected, rtol=5e-3)


BOX = np.array(list(product((-0.1, 0.1), (-0.15, 0.15), (-0.05, 0.05))))
FACES = [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1)]
FACES += [(2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)]


def mesh_scene(folder, points, faces, name="model.xml", kind='type="mesh" mesh="shape"') -> str:
    lines = [f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in points]
    lines += [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in faces]
    (folder / "shape.obj").write_text("\n".join(lines))
    (folder / name).write_text(f"""<mujoco>
    <asset><mesh name="shape" file="shape.obj"/></asset>
    <worldbody>
      <geom name="floor" type="plane" size="1 1 1" friction="0.2"/>
      <body name="body">
        <freejoint/>
        <inertial pos="0 0 0" mass="2" diaginertia="0.02 0.01 0.03"/>
        <geom {kind} friction="0.3"/>
      </body>
    </worldbody></mujoco>""")
    return str(folder / name)


def test_a_mesh_of_a_box_moves_like_the_box(tmp_path):
    mesh = lw.load(mesh_scene(tmp_path, BOX, FACES))
    box = lw.load(mesh_scene(tmp_path, BOX, FACES, "b.xml", 'type="box" size="0.1 0.15 0.05"'))
    q = np.array([np.cos(0.2), 0.1, np.sin(0.2), 0.0, 0.0, 0.0, 0.3])
    q[:4] /= np.linalg.norm(q[:4])
    v = np.array([1.0, 2.0, 0.5, 0.3, 0.2, 0.0])
    runs = [lw.rollout(x, q, v, duration=0.6, integrator="implicit") for x in (mesh, box)]
    assert [len(contact_points(x)) for x in (mesh, box)] == [8, 8]
    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-6)  # files have single precision
    assert runs[1].q[:, 6].min() > 0.02  # it landed


def test_a_prism_with_many_corners_stands_on_four_of_them(tmp_path):
    around = [(0.1 * np.cos(a), 0.1 * np.sin(a)) for a in np.arange(12) * np.pi / 6 + 0.1]
    points = np.array([(x, y, z) for z in (-0.2, 0.2) for x, y in around])
    faces = [(i, (i + 1) % 12, 12 + i) for i in range(12)]
    faces += [(i, 0, i + 1) for i in range(1, 11)] + [(12, 12 + i, 13 + i) for i in range(1, 11)]
    mech = lw.load(mesh_scene(tmp_path, points, faces))
    contacts = contact_points(mech)
    assert len(contacts) == 4
    assert contacts[0].ground.friction == 0.3
    q = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.2])
    runs = lw.rollout(mech, q, duration=1.0, integrator="implicit")
    assert_carried(runs, 2 * G)
    assert np.abs(runs.v[-1]).max() < 1e-9


def turned(seed):
    rng = np.random.default_rng(seed)
    axis = rng.normal(size=3)
    return axis_angle(axis / np.linalg.norm(axis), rng.uniform(0, np.pi))


@pytest.mark.parametrize("seed", range(5))
def test_the_lowest_points_are_the_lowest(seed):
    """Against dense samples of the surfaces, over a plane in any direction."""
    rng = np.random.default_rng(seed)
    axes, rot = turned(seed), turned(seed + 100)
    n = axes[0]
    points = rng.normal(size=(30, 3))
    best = Corners(tuple(map(tuple, points))).lowest(axes)
    np.testing.assert_allclose(best.astype(float), points[np.argmin(points @ n)], atol=1e-14)
    for lean in LEANS[4]:
        way = n + LEAN * np.array(lean) @ axes[1:]
        best = Corners(tuple(map(tuple, points)), lean).lowest(axes).astype(float)
        np.testing.assert_allclose(best, points[np.argmin(points @ way)], atol=1e-14)
    semi = np.array([0.3, 0.2, 0.1])
    ball = rng.normal(size=(100000, 3))
    ball /= np.linalg.norm(ball, axis=1)[:, None]
    surface = (ball * semi) @ rot.T
    lowest = Ellipsoid((0.0, 0.0, 0.0), tuple(map(tuple, semi[:, None] * rot.T))).lowest(axes)
    height = float(lowest @ n)
    assert height <= (surface @ n).min() + 1e-12
    assert height > (surface @ n).min() - 1e-4
    angle = np.linspace(0, 2 * np.pi, 100000)
    rim = 0.1 * (np.outer(np.cos(angle), rot[:, 0]) + np.outer(np.sin(angle), rot[:, 1]))
    for end in (1, -1):
        fixed = (0.0, 0.0, 0.0), tuple(rot[:, 2]), tuple(rot[:, 0]), 0.1, 0.2
        point = Rim(*fixed, end).lowest(axes)
        heights = (rim + end * 0.2 * rot[:, 2]) @ n
        np.testing.assert_allclose(float(point @ n), heights.min(), atol=1e-9)
        assert abs(float((point - end * 0.2 * rot[:, 2]) @ rot[:, 2])) < 1e-12


def test_a_hull_is_reduced_and_says_by_how_much():
    rng = np.random.default_rng(0)
    ball = rng.normal(size=(2000, 3))
    ball /= np.linalg.norm(ball, axis=1)[:, None]
    corners, error = hull(ball, "a ball")
    assert len(corners) == MOST_CORNERS
    ways = rng.normal(size=(500, 3))
    ways /= np.linalg.norm(ways, axis=1)[:, None]
    missing = (ball @ ways.T).max(axis=0) - (corners @ ways.T).max(axis=0)
    assert 0.1 < missing.max()
    assert missing.max() < 1.2 * error  # a way between faces misses a little more
    inside = rng.uniform(-1, 1, size=(500, 3)) * 0.9
    cube = np.array(list(product((-1.0, 1.0), repeat=3)))
    corners, error = hull(np.concatenate([cube, inside]), "a cube")
    assert error < 1e-12
    assert sorted(map(tuple, corners)) == sorted(map(tuple, cube))


def test_a_point_that_cannot_be_read_is_named():
    b = lw.Builder("body")
    shape = lw.Geometry("g", "mesh", (), lw.Pose.identity(), file="nowhere.stl")
    inertia = lw.SpatialInertia.solid_box(1.0, (1.0, 1.0, 1.0))
    b.body("body", "world", lw.hinges.Free(), inertia=inertia, geometry=[shape])
    with pytest.raises(lw.ModelError, match=r"mesh 'nowhere.stl' may touch something"):
        contact_points(b.build(), Ground())
    assert contact_points(b.build()) == ()
    assert contact_points(b.build(), [ContactPoint("p", "body")])[0].rows == 3


def test_contacts_of_another_kind_name_the_call_that_takes_them():
    mech = on_plane("sphere", (0.1,), lw.SpatialInertia.solid_sphere(1.0, 0.1))
    q, bodies = np.array([1.0, 0, 0, 0, 0, 0, 1.0]), lw.simulation.Collisions()
    wall = lw.tasks.CompliantSurface((0, 0, 0), (0, 0, 1), stiffness=1e4)
    in_simulate = r"act in lw\.simulate with integrator='implicit' only"
    for integrator in ("rk4", "implicit"):
        options = {"duration": 1e-3, "integrator": integrator}
        with pytest.raises(ModelError, match=in_simulate):
            lw.rollout(mech, q, contacts=bodies, **options)
        with pytest.raises(ModelError, match=in_simulate):
            lw.Simulator(mech, contacts=bodies, integrator=integrator)
        for soft in ({"a": ("body", wall)}, [("body", wall)], ("body", wall)):
            with pytest.raises(ModelError, match="compliant surfaces act in"):
                lw.rollout(mech, q, contacts=soft, **options)
    for given in (bodies, Ground(), ground_points(mech)):
        with pytest.raises(ModelError, match="acts by impulses: in steps by integrator='implicit'"):
            lw.simulate(mech, q, duration=1e-3, integrator="rk4", contacts=given)
    for given in (Ground(), ground_points(mech)):
        with pytest.raises(ModelError, match="in steps by integrator='implicit'"):
            lw.rollout(mech, q, duration=1e-3, integrator="rk4", contacts=given)


def ground_points(mech):
    return contact_points(mech, Ground())
