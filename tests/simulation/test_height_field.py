"""Height fields: surfaces of triangles against planes, formulas and MuJoCo."""

import struct
import zlib

import numpy as np
import pytest

import linkwise as lw
from linkwise.model.grid import Grid, grown
from linkwise.simulation import ContactPoint, Ground, HeightField, ground_contacts

G = 9.81
SLOPE = np.array([0.2, -0.3])  # the tangents of both grounds are the same


def thing(inertia, gravity=(0.0, 0.0, -G)):
    b = lw.Builder("thing", gravity=gravity)
    return b.body("body", "world", lw.hinges.Free(), inertia=inertia).build()


def inclined(**laws):
    """A height field over a plane, and that plane."""
    x, y = np.meshgrid(np.linspace(-4, 4, 31), np.linspace(-3, 3, 17))
    normal = np.array([*-SLOPE, 1.0]) / np.hypot(1.0, np.linalg.norm(SLOPE))
    field = HeightField(SLOPE[0] * x + SLOPE[1] * y, (8.0, 6.0), **laws)
    return field, Ground(normal=normal, **laws)


def moved(mech, q, contacts, **options):
    return lw.rollout(mech, q, duration=0.6, integrator="implicit", contacts=contacts, **options)


SHAPES = {
    "ball": [ContactPoint("ball", "body", (0, 0, 0), 0.1)],
    "capsule": [ContactPoint(f"{x}", "body", (x, 0, 0), 0.1) for x in (-0.2, 0.2)],
    "box": [
        ContactPoint(f"{x}{y}", "body", (x, y, -0.1)) for x in (-0.2, 0.2) for y in (-0.1, 0.1)
    ],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_an_inclined_height_field_is_an_inclined_plane(shape):
    mech = thing(lw.SpatialInertia.solid_sphere(1.3, 0.1))
    start = np.array([0.98, 0.1, -0.15, 0.05, 0.3, -0.2, 0.4])
    start[:4] /= np.linalg.norm(start[:4])
    ends = list[lw.simulation.Rollout]()
    for ground in inclined(friction=0.4, rolling=0.002):
        points = [ContactPoint(p.name, p.body, p.point, p.radius, ground) for p in SHAPES[shape]]
        ends.append(moved(mech, start, points))
    # rounding decides when a corner slides, and grows from there
    near = 1e-8 if shape == "ball" else 1e-5
    np.testing.assert_allclose(ends[0].q, ends[1].q, rtol=0.0, atol=near)
    np.testing.assert_allclose(ends[0].contact_forces, ends[1].contact_forces, atol=0.1)
    assert np.abs(ends[0].contact_forces).max() > 1.0
    assert np.linalg.norm(ends[0].q[-1, 4:6] - start[4:6]) > 0.05


@pytest.mark.prove
def test_all_shapes_meet_a_slope_as_they_meet_a_plane(tmp_path):
    (tmp_path / "shapes.xml").write_text("""
    <mujoco><worldbody>
      <body name="a" pos="0 0 1"><freejoint/>
        <geom type="cylinder" size="0.1 0.2" euler="40 10 0"/></body>
      <body name="b" pos="1 0 1"><freejoint/>
        <geom type="ellipsoid" size="0.1 0.2 0.3"/></body>
      <body name="c" pos="-1 0 1"><freejoint/>
        <geom type="box" size="0.1 0.2 0.3" euler="20 30 0"/></body>
    </worldbody></mujoco>""")
    mech = lw.load(tmp_path / "shapes.xml")
    field, plane = inclined(friction=0.5)
    q = mech.neutral()
    for k, place in enumerate(([0, 0, 0.6], [1, 0.3, 0.7], [-1, 0.2, 0.4])):
        q[7 * k + 4 : 7 * k + 7] = place
    both = [moved(mech, q, ground_contacts(mech, x)) for x in (field, plane)]
    np.testing.assert_allclose(both[0].q[-1], both[1].q[-1], atol=1e-7)
    assert np.abs(both[0].contact_forces[-1]).sum() > 10.0


def test_a_grown_surface_is_as_far_away_as_the_radius():
    rng = np.random.default_rng(3)
    z, half, radius = rng.normal(0.0, 0.05, (9, 8)), (0.7, 0.8), 0.17
    field = HeightField(z, (1.4, 1.6))
    exact, x, y = (
        grown(Grid(z), half, radius).heights,
        np.linspace(-0.7, 0.7, 8),
        np.linspace(-0.8, 0.8, 9),
    )
    for i, j in ((4, 3), (0, 0), (5, 7)):
        best = -np.inf  # over a fine sampling of the triangles
        for r in np.linspace(0.0, radius, 16):
            for a in np.linspace(0.0, 2 * np.pi, 33):
                at = np.array([x[j] + r * np.cos(a), y[i] + r * np.sin(a), 0.0])
                gap, n = field.under(at, 0.0)
                if (np.abs(at[:2]) < half).all():
                    best = max(best, -gap / n[2] + np.sqrt(radius**2 - r**2))
        assert best - 1e-12 <= exact[i, j] < best + 5e-3
        assert exact[i, j] > z[i, j] + radius


def bumps(n=41, size=4.0):
    x, y = np.meshgrid(*2 * [np.linspace(-size / 2, size / 2, n)])
    return HeightField(0.03 * np.sin(5 * x) * np.cos(4 * y), (size, size), friction=0.9)


@pytest.mark.prove
def test_the_ground_carries_a_quadruped_on_bumps():
    robot = lw.models.quadruped()
    servos = [
        lw.Actuator.position(b.hinge_name, b.hinge_name, kp=300.0, kv=10.0)
        for b in robot.bodies[1:]
    ]
    robot = lw.Mechanism(robot.name, robot.bodies, robot.nodes, actuators=servos)
    feet = ground_contacts(robot, bumps(), bodies=[n.name for n in robot.nodes])
    q = lw.simulation.put_on_ground(robot, contacts=feet)
    runs = lw.rollout(
        robot, q, duration=4.0, step=2e-3, integrator="implicit", contacts=feet, controls=q[7:]
    )
    force = runs.contact_forces[-1]
    np.testing.assert_allclose(force.sum(axis=0), [0, 0, robot.total_mass * G], atol=1e-6)
    assert np.abs(force[:, :2]).max() > 0.1  # normals lean
    # a recording of the same motion shows the same forces
    film = lw.simulate(
        robot, q, duration=0.1, step=2e-3, integrator="implicit", contacts=feet, controls=q[7:]
    )
    np.testing.assert_allclose(film.q[-1], runs.q[50], atol=1e-12)


def png(pixels, kind):
    """A grey picture whose lines are all filtered in one way."""

    def chunk(name, data):
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    rows, columns = pixels.shape
    padded = np.zeros((rows + 1, columns + 1), int)
    padded[1:, 1:] = pixels
    left, above, corner = padded[1:, :-1], padded[:-1, 1:], padded[:-1, :-1]
    guess = left + above - corner
    apart = np.abs(np.array([guess - left, guess - above, guess - corner]))
    nearest = np.choose(apart.argmin(axis=0), [left, above, corner])
    base = (0, left, above, (left + above) // 2, nearest)[kind]
    lines = np.column_stack([np.full(rows, kind), (pixels - base) & 255]).astype(np.uint8)
    head = struct.pack(">IIBBBBB", columns, rows, 8, 0, 0, 0, 0)
    parts = (b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*x) for x in parts)


def scene(tmp_path, asset, ball="0.1 -0.2 0.6"):
    (tmp_path / "scene.xml").write_text(f"""
    <mujoco>
      <option timestep="0.001"/>
      <asset><hfield name="f" size="1.2 0.9 0.3 0.1" {asset}/></asset>
      <worldbody>
        <geom name="land" type="hfield" hfield="f" pos="0.1 0.05 -0.1" euler="0 0 20"
              friction="0.7"/>
        <body name="ball" pos="{ball}"><freejoint/>
          <geom name="ball" size="0.1" mass="0.5" condim="6" friction="0.7 0.01 0.02"/></body>
      </worldbody>
    </mujoco>""")
    return tmp_path / "scene.xml"


@pytest.mark.parametrize("source", ["elevation", "binary", 0, 1, 2, 3, 4])
def test_heights_are_those_of_mujoco(tmp_path, source):
    mujoco = pytest.importorskip("mujoco")
    z = np.random.default_rng(1).integers(0, 256, (7, 9))
    if source == "elevation":
        asset = f'nrow="7" ncol="9" elevation="{" ".join(map(str, z.ravel()))}"'
    else:
        binary = struct.pack("<ii", 7, 9) + z.astype(np.float32).tobytes()
        (tmp_path / "land").write_bytes(binary if source == "binary" else png(z, source))
        kind = "vnd.mujoco.hfield" if source == "binary" else "png"
        asset = f'file="land" content_type="image/{kind}"'
    path = scene(tmp_path, asset)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    mech = lw.load(path)
    (point,) = lw.simulation.contact_points(mech)
    assert isinstance(point.ground, HeightField)
    assert (point.ground.friction, point.ground.rolling) == (0.7, 0.02)
    again = tmp_path / "again.xml"
    lw.save(mech, again)
    (same,) = lw.simulation.contact_points(lw.load(again))
    hit, geom = 0, np.zeros(1, np.int32)
    for at in np.random.default_rng(2).uniform(-0.7, 0.7, (40, 2)):
        ray = np.array([*at, 3.0]), np.array([0.0, 0.0, -1.0])
        depth = mujoco.mj_ray(model, data, *ray, None, 1, 1, geom)
        gap, n = point.ground.under(ray[0], 0.0)
        np.testing.assert_allclose(gap / n[2], depth, atol=1e-6)
        np.testing.assert_allclose(same.ground.under(ray[0], 0.0)[0], gap, atol=1e-9)
        hit += depth > 0.0
    assert hit == 40


def test_a_ball_rests_on_a_slope_as_it_does_in_mujoco(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    z = np.tile(np.linspace(0, 1, 9), (9, 1))  # rolling friction holds it there
    asset = f'nrow="9" ncol="9" elevation="{" ".join(map(str, z.ravel()))}"'
    path = scene(tmp_path, asset, "0.1 -0.2 0.175")
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 1000)
    mech = lw.load(path)
    (point,) = lw.simulation.contact_points(mech)
    runs = lw.rollout(
        mech,
        [1, 0, 0, 0, 0.1, -0.2, 0.175],
        duration=1.0,
        step=1e-3,
        integrator="implicit",
        record_every=100,
    )
    np.testing.assert_allclose(runs.contact_forces[-1, 0], [0, 0, 0.5 * G], atol=1e-6)
    assert data.ncon >= 1
    np.testing.assert_allclose(runs.q[-1, 4:6], [0.1, -0.2], atol=1e-4)
    # MuJoCo's friction is soft, so its ball creeps down; but it is on the same surface
    gap, normal = point.ground.under(data.qpos[:3], 0.1)
    assert abs(gap) < 1e-3
    assert abs(point.ground.under(runs.q[-1, 4:], 0.1)[0]) < 1e-8
    np.testing.assert_allclose(data.contact.frame[0, :3], normal, atol=1e-4)
    assert np.hypot(*normal[:2]) > 0.1
