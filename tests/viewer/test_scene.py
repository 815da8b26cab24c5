"""What is drawn is where the mechanism is."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.spatial import quaternion
from linkwise.viewer import camera
from linkwise.viewer.look import LIGHT
from linkwise.viewer.mesh import Mesh
from linkwise.viewer.motion import motion_of, subject_of
from linkwise.viewer.overlay import (
    axis_arrows,
    belted_mesh,
    constraint_arrows,
    contact_arrows,
    inertia_parts,
    mass_parts,
    tips,
    trace,
)
from linkwise.viewer.scene import frames, reach, scene_of

MODELS = {
    "pendulum": lambda: lw.models.pendulum(3),
    "chain": lambda: lw.models.chain(6),
    "random_tree": lambda: lw.models.random_tree(10, seed=2),
    "multi_arm": lambda: lw.models.multi_arm(2),
    "rod": lambda: lw.models.rod(4),
    **{
        name: getattr(lw.models, name)
        for name in (
            *("biped", "delta", "dual_arm", "four_bar", "free_flyer", "handover", "humanoid"),
            *("macro_mini", "peaucellier", "planar_macro_mini", "planar_rpp", "puma560"),
            *("quadruped", "seven_dof_arm", "stewart", "ur_arm"),
        )
    },
}


def test_all_models_are_here():
    assert {*MODELS, "HINGE_KINDS"} == set(dir(lw.models))


def bare(mech):
    """The same mechanism without any shapes."""
    from dataclasses import replace

    bodies = tuple(replace(body, geometry=()) for body in mech.bodies)
    nodes = tuple(replace(node, geometry=()) for node in mech.nodes)
    return replace(mech, bodies=bodies, nodes=nodes)


@pytest.mark.parametrize("name", MODELS)
def test_scene_of_every_model(name):
    mech = MODELS[name]()
    scene = scene_of(mech)
    assert scene.parts and not scene.generated and not scene.missing
    for part in scene.parts:
        assert np.isfinite(part.mesh.vertices).all()
        assert 0 <= part.mesh.faces.min() and part.mesh.faces.max() < len(part.mesh.vertices)
    low, high = scene.bounds(mech.neutral())
    assert (high > low).all()
    assert mech.name in str(scene)


@pytest.mark.parametrize("name", MODELS)
def test_model_without_shapes_gets_some(name):
    mech = bare(MODELS[name]())
    scene = scene_of(mech)
    massive = {b.name for k, b in enumerate(mech.bodies) if mech.inertias.mass[k] > 0.0}
    assert massive <= set(scene.generated)
    low, high = scene.bounds(mech.neutral())
    # Rods go from hinge to hinge: what is drawn is about as large as the mechanism, not larger.
    least = 0.1 if name == "planar_rpp" else 0.3  # all its hinges are at the origin at neutral
    assert least * scene.size < np.linalg.norm(high - low) < 2.0 * scene.size


@pytest.mark.parametrize("name", ["humanoid", "random_tree", "stewart", "puma560"])
def test_frames_are_those_of_forward_kinematics(name):
    """Against the compiled kernel, and with quaternions that turn no other way."""
    mech = MODELS[name]()
    rng = np.random.default_rng(5)
    q = np.stack([mech.random(rng) for _ in range(4)])
    quat, p = frames(mech.poses(q))
    exact = lw.forward_kinematics(mech, q)
    assert np.allclose(p, exact.p, atol=1e-12)
    assert np.allclose(quaternion.to_matrix(quat), exact.rot, atol=1e-12)


def test_four_bar_is_drawn_where_its_docstring_says():
    """A = (0, 0), B = (0, 0.1), C = (0.4, 0.4), D = (0.4, 0); bars of radius 12 mm."""
    mech = lw.models.four_bar()
    low, high = scene_of(mech).bounds(mech.neutral())
    # Corners of turned boxes reach a little beyond: the coupler's is aslant.
    assert np.allclose(low[[0, 2]], -0.012, atol=2e-3) and np.allclose(
        high[[0, 2]], 0.412, atol=2e-3
    )
    arrows = axis_arrows(mech, mech.neutral(), reach(mech))
    middle = arrows.points[:, 0] + (0.4 / 1.4) * (arrows.points[:, 1] - arrows.points[:, 0])
    assert np.allclose(middle, [[0, 0, 0], [0, 0, 0.1], [0.4, 0, 0]], atol=1e-12)
    assert np.allclose(np.diff(arrows.points, axis=1)[:, 0, [0, 2]], 0.0) and set(arrows.kinds) == {
        "turn"
    }


def test_floor_of_a_file_is_left_to_the_grid():
    """A plane of 40 m would make a robot of one metre a dot."""
    b = lw.Builder("on a floor")
    plane = lw.Geometry("floor", "plane", (20.0, 20.0), lw.Pose.identity())
    ball = lw.Geometry("ball", "sphere", (0.5,), lw.Pose.identity())
    b.node("floor", "world", geometry=(plane,))
    inertia = lw.SpatialInertia.solid_sphere(1.0, 0.5)
    b.body("ball", "world", lw.hinges.Free(), inertia=inertia, geometry=(ball,))
    mech = b.build()
    low, high = scene_of(mech).bounds(mech.neutral())
    assert np.allclose(high, 0.5) and np.allclose(low, -0.5)


def test_slides_are_told_from_turns():
    mech = lw.models.planar_rpp()
    assert axis_arrows(mech, mech.neutral(), 1.0).kinds == ("turn", "slide", "slide")


def solid_inertia(mesh: Mesh, mass: float):
    """Centre of mass and inertia about it of a solid of even density, by tetrahedra."""
    a, b, c = (mesh.vertices[mesh.faces[:, i]] for i in range(3))
    six = np.einsum("ij,ij->i", a, np.cross(b, c))
    com = (six[:, None] * (a + b + c)).sum(axis=0) / (4.0 * six.sum())
    corners = np.stack([np.zeros_like(a), a, b, c], axis=1) - com
    total = corners.sum(axis=1)
    second = np.einsum("t,tki,tkj->ij", six, corners, corners)
    second += np.einsum("t,ti,tj->ij", six, total, total)
    second *= mass / (20.0 * six.sum())
    return com, np.trace(second) * np.eye(3) - second


def test_inertia_ellipsoids_have_the_inertia_of_their_bodies():
    mech = lw.models.humanoid()
    parts = inertia_parts(mech, LIGHT)
    assert len(parts) == mech.n_bodies
    for part in parts:
        inertia = mech.inertias[part.body]
        com, moments = solid_inertia(part.mesh, float(inertia.mass))
        # Polygons of 24 sides: 1.1 % less area, 2.3 % in second moments and a ball has two of them.
        assert np.allclose(com, inertia.com, atol=1e-9)
        assert np.allclose(moments, inertia.J_com, rtol=0.04, atol=0.04 * np.trace(inertia.J_com))


def test_masses_are_at_centres_of_mass():
    mech = lw.models.puma560()
    parts = mass_parts(mech, 1.0, LIGHT)
    for part in parts:
        assert np.allclose(part.mesh.vertices.mean(axis=0), mech.inertias[part.body].com, atol=1e-9)
    radii = [np.ptp(part.mesh.vertices[:, 2]) for part in parts]
    heavy = np.argsort([float(mech.inertias.mass[part.body]) for part in parts])
    assert np.argmax(radii) == heavy[-1]


def test_belted_ellipsoid_stands_at_the_node_and_has_its_masses():
    mech = lw.models.puma560()
    q = np.array([0.3, -0.8, 0.4, 0.2, 0.7, 0.1])
    mesh = belted_mesh(mech, q, "flange", 0.01, 48)
    middle = lw.forward_kinematics(mech, q, "flange").p
    J_v = lw.jacobian(mech, q, "flange", frame="world")[3:]
    response = J_v @ np.linalg.solve(lw.mass_matrix(mech, q), J_v.T)
    far = np.linalg.norm(mesh.vertices - middle, axis=1)
    u = (mesh.vertices - middle) / far[:, None]
    masses = 1.0 / np.einsum("ki,ij,kj->k", u, response, u)
    free = far < 0.999 * far.max()  # not cut
    assert free.mean() > 0.5 and np.allclose(far[free], 0.01 * masses[free], rtol=1e-6)


def test_forces_of_a_loop_are_opposite_and_hold_the_rocker():
    """Moments about D: the rocker is in balance under its weight, its drive and the pin at C."""
    mech = lw.models.four_bar()
    q = lw.loops.assemble(mech, [0.7, 0.0, 0.0], hold=["crank_pin"]).required()
    p_C = lw.forward_kinematics(mech, q, "rocker_end").p
    arrows, scale = constraint_arrows(mech, q, scale=0.01)
    assert scale == 0.01 and len(arrows) == 2
    force_b, force_a = (arrows.points[:, 1] - arrows.points[:, 0]) / 0.01
    assert np.allclose(force_a, -force_b, atol=1e-9)
    assert np.allclose(arrows.points[:, 0], p_C, atol=1e-9)
    held = lw.loops.holding_forces(mech, q)
    rocker = mech.body_index["rocker"]
    weight = float(mech.inertias.mass[rocker]) * np.array([0.0, 0.0, -9.81])
    com = mech.poses(q)[rocker].apply(mech.inertias[rocker].com)
    p_D = np.array([0.4, 0.0, 0.0])
    moment = np.cross(p_C - p_D, force_b) + np.cross(com - p_D, weight)
    assert np.isclose(moment[1] + held.tau[mech.v_slice("rocker")][0], 0.0, atol=1e-9)


def test_tree_has_no_constraint_forces():
    mech = lw.models.puma560()
    assert len(constraint_arrows(mech, mech.neutral())[0]) == 0


def test_trace_is_the_path_of_the_node():
    mech = lw.models.seven_dof_arm()
    rng = np.random.default_rng(1)
    q = np.stack([mech.random(rng) for _ in range(5)])
    assert np.allclose(trace(mech, q, "hand"), lw.forward_kinematics(mech, q, "hand").p, atol=1e-12)
    assert tips(mech) == ("hand",)


# --------------------------------------------------------------------------------------- camera


def on_screen(points, eye, target, wide):
    """Where points (k, 3) are in a picture: right and up (k, 2), from -1 to 1."""
    back = (eye - target) / np.linalg.norm(eye - target)
    right = np.cross([0.0, 0.0, 1.0], back)
    right /= np.linalg.norm(right)
    depth = -(points - eye) @ back
    tall = np.tan(0.5 * camera.FIELD)
    across = (points - eye) @ right / (depth * wide * tall)
    return np.stack([across, (points - eye) @ np.cross(back, right) / (depth * tall)], axis=-1)


@pytest.mark.parametrize("name", ["puma560", "chain", "humanoid", "four_bar", "pendulum"])
def test_camera_has_room_for_other_configurations(name):
    mech = MODELS[name]()
    scene, q = scene_of(mech), mech.neutral()
    frame = camera.framed(scene, q)
    first = np.array(scene.bounds(q))
    assert (frame.low <= first[0]).all() and (frame.high >= first[1]).all()
    # Not a dot in the middle either.
    assert (
        frame.radius < np.linalg.norm(np.ptp(first, axis=0)) / 2 + 0.2 * 3**0.5 * scene.size + 1e-9
    )
    assert frame.ground == min(0.0, first[0, 2])
    corners = Mesh(np.array([frame.low, frame.high]), np.zeros((0, 3), np.int64)).corners
    for wide, free in ((1.1, 1.0), (0.5, 0.4)):
        seen = on_screen(corners, *frame.seen(wide, free), wide)
        assert np.abs(seen[:, 0]).max() < 1.0
        assert seen[:, 1].max() < 1.0 and seen[:, 1].min() > 1.0 - 2.0 * free


def test_most_configurations_are_in_the_first_picture():
    mech = lw.models.ur_arm()
    scene = scene_of(mech)
    eye, target = camera.framed(scene, mech.neutral()).seen()
    inside = 0
    for seed in range(20):
        poses = mech.poses(mech.random(seed))
        points = [
            part.mesh.corners if part.body < 0 else poses[part.body].apply(part.mesh.corners)
            for part in scene.parts
        ]
        inside += bool(np.abs(on_screen(np.concatenate(points), eye, target, 1.1)).max() < 1.0)
    assert inside >= 14  # 7 with the picture of the first posture alone


# -------------------------------------------------------------------------------------- motions


def test_motion_of_positions_alone():
    """The velocity between two records is held: what has a constant one is met exactly."""
    mech = lw.models.humanoid()
    t = np.linspace(2.0, 3.0, 21)
    v = np.random.default_rng(0).standard_normal(mech.nv)
    q = np.stack([mech.integrate(mech.neutral(), v, 3.0 * (x - 2.0)) for x in t])
    motion = motion_of(mech, t, q)
    assert (motion.start, motion.end, motion.duration) == pytest.approx((2.0, 3.0, 1.0))
    for i in (0, 7, 20):
        assert np.array_equal(motion.at(float(t[i]))[0], q[i])
    exact = mech.poses(mech.integrate(mech.neutral(), v, 3.0 * 0.475))
    result = mech.poses(motion.at(2.475)[0])
    # The base turns while it travels: joined turns are screws, so it is off by h²/8 of its
    # acceleration |ω × v| < 9 · 10 m/s²; all else is exact.
    assert np.allclose(result.p, exact.p, atol=0.05**2 / 8.0 * 90.0)
    assert np.allclose(result.rot, exact.rot, atol=1e-9)
    assert motion.index(2.476) == 10 and motion.index(1.0) == 0 and motion.index(9.0) == 20
    assert np.array_equal(motion.at(-1.0)[0], q[0]) and np.array_equal(motion.at(99.0)[0], q[-1])


def gap(mech, poses):
    """How far the hinges of a double pendulum are from where their parents hold them [m]."""
    second = mech.bodies[1]
    held = poses[0].apply(second.inboard.p)
    return float(np.linalg.norm(held - poses[1].apply(second.outboard.inverse().p)))


@pytest.mark.parametrize("start", [0.0, 5.0])
def test_what_is_shown_between_records_is_the_recording(start):
    """Records 60 ms apart: bodies moved one by one, along chords, would come apart by 4 cm."""
    mech = lw.models.pendulum(2)
    rec = lw.simulate(
        mech, [2.0, 1.0], [0.0, 0.0], duration=1.2, step=1e-3, start=start, record_every=60
    )
    motion = subject_of(rec)[2]
    assert motion.t[1] - motion.t[0] == pytest.approx(0.06)
    assert (motion.start, motion.end) == pytest.approx((start, start + 1.2))
    for t in np.linspace(start, start + 1.2, 41):
        q, v = motion.at(float(t))
        exact_q, exact_v = rec.at(t)
        assert np.allclose(q, exact_q, atol=1e-12) and np.allclose(v, exact_v, atol=1e-12)
        assert gap(mech, mech.poses(q)) < 1e-12
    # The arrays of the recording, without it: cubics as well.
    arrays = motion_of(mech, rec.t, rec.q, rec.v)
    assert np.allclose(arrays.at(start + 0.29)[0], rec.at(start + 0.29)[0], atol=1e-12)


def test_two_records_of_one_time_are_no_division_by_zero():
    mech = lw.models.pendulum(1)
    motion = motion_of(mech, [0.0, 1.0, 1.0], [[0.0], [1.0], [2.0]])
    assert motion.at(0.5)[0] == pytest.approx(0.5) and motion.at(1.0)[0] == pytest.approx(2.0)
    assert motion_of(mech, [3.0], [[0.7]]).at(0.0)[0] == pytest.approx(0.7)


def test_what_can_be_shown():
    mech = lw.models.four_bar()
    assert subject_of(mech) == (mech, None, None)
    embedded = lw.loops.embed(mech)
    assert subject_of(embedded)[0] is mech
    motion = subject_of(mech, np.zeros((5, 3)))[2]
    assert motion is not None and motion.t[1] == pytest.approx(1.0 / 60.0)
    with pytest.raises(lw.ModelError, match="a str cannot be shown; give a mechanism"):
        subject_of("panda.urdf")
    with pytest.raises(lw.ShapeError, match="batch of motions"):
        subject_of(mech, np.zeros((2, 5, 3)), np.arange(2))
    with pytest.raises(lw.ShapeError, match="times"):
        subject_of(mech, np.zeros((5, 3)), np.arange(4))
    with pytest.raises(lw.ModelError, match="rise"):
        subject_of(mech, np.zeros((3, 3)), [0.0, 2.0, 1.0])
    with pytest.raises(lw.ModelError, match="its own q and t"):
        subject_of(
            lw.Recording.of(mech, [0.0, 1.0], np.zeros((2, 3)), np.zeros((2, 3))), mech.neutral()
        )


def test_forces_of_contacts_of_a_simulation_are_where_they_push():
    """A leg falls on a floor: the arrow begins at its foot and is as long as the recorded force."""
    b = lw.Builder("leg")
    ball = lw.SpatialInertia.solid_sphere(2.0, 0.1)
    b.body("leg", "world", lw.hinges.Prismatic((0, 0, 1)), hinge_name="drop", inertia=ball)
    b.node("foot", "leg", lw.Pose.translation((0.1, 0.0, -0.5)))
    mech = b.build()
    floor = lw.tasks.CompliantSurface((0, 0, 0), (0, 0, 1), stiffness=2e3, damping=20.0)
    rec = lw.simulate(mech, [0.6], [0.0], duration=0.6, contacts={"ground": ("foot", floor)})
    motion = subject_of(rec)[2]
    forces = rec["contact.ground.force"]
    i = int(np.argmax(forces[:, 2]))
    arrows, scale = contact_arrows(motion, float(motion.t[i]), None, 1.0)
    assert len(arrows) == 1 and arrows.kinds == ("contact",)
    start, end = arrows.points[0]
    assert np.allclose(start, (0.1, 0.0, rec.q[i, 0] - 0.5))
    assert np.allclose(end - start, scale * forces[i]) and np.isclose(end[2] - start[2], 0.25)
    assert len(contact_arrows(motion, 0.0, scale, 1.0)[0]) == 0  # in the air


def test_the_picture_holds_a_motion_unless_it_goes_far_away():
    """Its box may be three times as wide as that of the first configuration."""
    mech = lw.models.free_flyer()
    scene, q = scene_of(mech), np.tile(mech.neutral(), (2, 1))
    wide = np.linalg.norm(np.ptp(np.array(scene.bounds(q[0])), axis=0))
    for way, holds in ((wide, True), (4.0 * wide, False)):
        q[1] = mech.integrate(q[0], way * np.eye(mech.nv)[3])  # along x
        frame = camera.framed(scene, q[0], motion_of(mech, [0.0, 1.0], q))
        assert (frame.high[0] >= scene.bounds(q[1])[1][0]) == holds
