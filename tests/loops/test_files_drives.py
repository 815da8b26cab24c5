"""What acts inside the hinge of a loop: it stays in the tree, gets a body, or is refused."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import linkwise as lw
from linkwise.model.body import Loop
from linkwise.spatial.array import Array
from tests.io.test_urdf_loops import BARS, ENDS
from tests.io.urdf_text import again, read, robot

PIN = lw.hinges.Pin((0, 1, 0))
PLAIN = lw.Drive()

# A four-bar linkage, closed where all coordinates are zero: (0, 0), (0, 0.1), (0.4, 0.4), (0.4, 0).
EDGES = {
    "base": ("world", "crank", (0, 0, 0), (0, 0, 0)),
    "knee": ("crank", "coupler", (0, 0, 0.1), (0, 0, 0)),
    "tip": ("coupler", "rocker", (0.4, 0, 0.3), (0, 0, 0.4)),
    "foot": ("world", "rocker", (0.4, 0, 0), (0, 0, 0)),
}


def linkage(order: tuple[str, ...], **drives: lw.Drive) -> lw.Mechanism:
    b = lw.Builder("linkage", gravity=(0.5, 0, -9))
    ends = {"crank": (0, 0, 0.1), "coupler": (0.4, 0, 0.3), "rocker": (0, 0, 0.4)}
    for name, end in ends.items():
        half = lw.Pose.translation(0.5 * np.array(end))
        b.body(
            name, parent=None, inertia=lw.SpatialInertia.solid_box(1.0, (0.1, 0.1, 0.3)).moved(half)
        )
    for name in order:
        first, second, at_a, at_b = EDGES[name]
        b.joint(name, first, second, PIN, at_a=at_a, at_b=at_b, drive=drives.get(name, PLAIN))
    return b.build()


def turning(mech: lw.Mechanism) -> tuple[Array, Array]:
    """Positions, all zero, and velocities while the crank turns at 3 rad/s."""
    q = mech.neutral()
    assert np.abs(lw.loops.constraint_error(mech, q)).max() < 1e-15
    J_c = lw.loops.constraint_jacobian(mech, q)
    (allowed,) = np.linalg.svd(J_c)[2][np.linalg.matrix_rank(J_c, tol=1e-9) :]  # one freedom
    return q, allowed * 3.0 / allowed[mech.v_slice("base")]


def motion(mech: lw.Mechanism, tau: dict[str, float]) -> dict[str, float]:
    """Acceleration of each hinge in the tree, with the crank turning at 3 rad/s."""
    q, v = turning(mech)
    forces = np.zeros(mech.nv)
    for name, value in tau.items():
        forces[mech.v_slice(name)] = value
    vdot = lw.forward_dynamics(mech, q, v, forces)
    return {b.hinge_name: float(vdot[mech.v_slice(b.hinge_name)][0]) for b in mech.bodies}


@pytest.mark.parametrize("driven", EDGES)
def test_a_driven_joint_stays_in_the_tree(driven: str):
    for drive in (lw.Drive(armature=0.1), lw.Drive(damping=1.0), lw.Drive(effort=5.0)):
        for order in permutations(EDGES):
            mech = linkage(order, **{driven: drive})
            (loop,) = mech.loops
            assert loop.name != driven
            assert driven in mech.hinge_index


def test_a_rotor_goes_before_a_damper():
    drives = {"base": lw.Drive(damping=1.0), "knee": lw.Drive(armature=0.1)}
    drives |= {"tip": lw.Drive(damping=1.0), "foot": lw.Drive(damping=1.0)}
    for order in permutations(EDGES):
        assert linkage(order, **drives).loops[0].name != "knee"


@pytest.mark.parametrize(
    "cuts", [("tip", "knee"), pytest.param(tuple(EDGES), marks=pytest.mark.slow)]
)
def test_with_rotors_everywhere_it_does_not_matter_where_the_loop_is_cut(cuts: tuple[str, ...]):
    """The rotor of the joint that is cut turns a body of its own."""
    rotors = dict(zip(EDGES, (0.02, 0.05, 0.3, 0.11), strict=True))
    drives = {name: lw.Drive(armature=N) for name, N in rotors.items()}
    result = dict[str, dict[str, float]]()
    for last in cuts:
        order = (*(name for name in EDGES if name != last), last)
        mech = linkage(order, **drives)
        (loop,) = mech.loops
        assert (loop.name, loop.node_a, loop.rows) == (last, f"{last}.rotor", 6)
        np.testing.assert_allclose(sorted(mech.armature), sorted(rotors.values()))
        result[last] = motion(mech, {"base": 2.0, "tip": -1.0})
    expected = result["tip"]
    assert set(expected) == set(EDGES)
    for last, accelerations in result.items():
        for name, value in accelerations.items():
            # The joints' senses are those they were given with; a reversed one turns the same way.
            assert value == pytest.approx(expected[name], rel=1e-9, abs=1e-9), (last, name)
    # The rotors are felt: the same linkage without them falls otherwise.
    bare = motion(linkage(tuple(EDGES)), {"base": 2.0})
    assert abs(bare["base"] - expected["base"]) > 0.1


def test_the_rotor_of_a_loop_is_part_of_the_energy():
    """One freedom: its inertia grows by Σ N_k (dq_k/dq)², that of the cut hinge among them."""
    N = 0.3
    plain = linkage(("base", "knee", "foot", "tip"))  # cut at the tip
    heavy = linkage(tuple(EDGES), tip=lw.Drive(armature=N))  # cut elsewhere
    b = lw.Builder("given", gravity=plain.gravity)
    for body in plain.bodies:
        b.body(body.name, body.parent, body.hinge, hinge_name=body.hinge_name,
               inboard=body.inboard, outboard=body.outboard, inertia=body.inertia)  # fmt: skip
    b.node("a", "coupler", (0.4, 0, 0.3))
    b.node("b", "rocker", (0, 0, 0.4))
    b.loop("tip", "a", "b", PIN, drive=lw.Drive(armature=N))  # said as a loop
    given = b.build()
    assert [x.hinge_name for x in given.bodies][-1] == "tip"
    ours, theirs = motion(given, {"base": 2.0}), motion(heavy, {"base": 2.0})
    assert ours["base"] == pytest.approx(theirs["base"], rel=1e-10)
    assert abs(motion(plain, {"base": 2.0})["base"] - ours["base"]) > 0.1


@pytest.mark.parametrize("drive", [lw.Drive(damping=0.7), lw.Drive(stiffness=40.0, rest=0.2)])
def test_springs_and_dampers_inside_a_loop(drive: lw.Drive):
    """As forces at its nodes they do what they do as a joint force, with the hinge in the tree."""
    damped = {name: lw.Drive(damping=0.1) for name in EDGES if name != "tip"}
    cut, full = (
        linkage(("base", "knee", "foot", "tip"), **damped, tip=drive),
        linkage(("base", "knee", "tip", "foot"), tip=drive),
    )
    assert cut.loops[0].name == "tip" and full.loops[0].name != "tip"
    q, v = turning(cut)
    W = lw.loops.loop_velocities(cut, q, v)["tip"]
    theta = lw.loops.loop_coordinates(cut, q)["tip"]
    ours = lw.forward_dynamics(cut, q, v, np.zeros(3), forces=lw.loops.loop_drive_forces(cut, q, v))
    q_whole, v_whole = turning(full)
    columns = full.v_slice("tip")
    np.testing.assert_allclose(v_whole[columns], W, rtol=1e-12)
    tau = np.zeros(3)
    tau[columns] = -drive.damping * W - drive.stiffness * (theta - drive.rest)
    theirs = lw.forward_dynamics(full, q_whole, v_whole, tau)
    for name in ("base", "knee"):
        mine, other = ours[cut.v_slice(name)], theirs[full.v_slice(name)]
        np.testing.assert_allclose(mine, other, rtol=1e-9)
    free = lw.forward_dynamics(cut, q, v, np.zeros(3))
    assert np.abs(free - ours).max() > 1.0  # it is felt


@pytest.mark.parametrize(
    "hinge",
    [
        PIN,
        lw.hinges.Spherical(),
        lw.hinges.Cylindrical((0.6, 0, 0.8)),
        lw.hinges.Universal(),
        lw.hinges.Planar(),
    ],
)
def test_forces_inside_a_loop_have_the_power_of_its_hinge(hinge: lw.hinges.Hinge):
    """Σ f · V over the nodes is -Σ d W², in a batch, and the ground gets nothing."""
    b = lw.Builder("x")
    solid = lw.SpatialInertia.solid_box(1.0, (0.1, 0.2, 0.3))
    b.body("one", "world", lw.hinges.Free(), inertia=solid)
    b.body("two", "world", lw.hinges.Free(), inertia=solid)
    damping = tuple(0.5 + 0.3 * i for i in range(hinge.nv))
    b.node("a", "one", lw.Pose.rpy((0.3, -0.2, 0.5), (0.1, 0.2, 0.3)))
    b.node("b", "two", lw.Pose.rpy((0.1, 0.4, -0.5), (0.3, 0.1, 0.2)))
    b.loop("c", "a", "b", hinge, drive=lw.Drive(damping=damping))
    b.loop("g", "world", "two", hinge, drive=lw.Drive(damping=damping))
    mech = b.build()
    rng = np.random.default_rng(1)
    q = np.stack([mech.random(rng) for _ in range(3)])
    v = rng.standard_normal((3, mech.nv))
    result, W = lw.loops.loop_drive_forces(mech, q, v), lw.loops.loop_velocities(mech, q, v)
    assert set(result) == {"a", "b", "two"}
    power = sum((f * lw.node_velocity(mech, q, v, node)).sum(axis=-1) for node, f in result.items())
    lost = sum((np.array(damping) * W[name] ** 2).sum(axis=-1) for name in ("c", "g"))
    np.testing.assert_allclose(power, -lost, rtol=1e-12)


def wound(hinge: lw.hinges.Hinge) -> lw.Mechanism:
    """A wheel on a pin of the tree, held to the ground by a loop with a spring at its axis."""
    b = lw.Builder("wound")
    b.body("wheel", hinge=PIN, inertia=lw.SpatialInertia.solid_sphere(1.0, 0.1))
    b.loop("spring", "world", "wheel", hinge, drive=lw.Drive(stiffness=2.0, rest=0.5))
    return b.build()


@pytest.mark.parametrize("hinge", [PIN, lw.hinges.Cylindrical((0, 1, 0))])
@pytest.mark.parametrize("angle", [0.3, 3.1, 3.2, -3.2, 9.0, 20.0, -40.0])
def test_a_spring_may_be_wound_up(hinge: lw.hinges.Hinge, angle: float):
    """The moment is -k (angle - rest), whatever the number of turns, where a guess tells it."""
    mech, near = wound(hinge), [angle + 1.0, 0.0][: hinge.nq]
    force = lw.loops.loop_drive_forces(mech, [angle], [0.0], near={"spring": near})["wheel"]
    assert force[1] == pytest.approx(-2.0 * (angle - 0.5), abs=1e-12)
    plain = lw.loops.loop_drive_forces(mech, [angle], [0.0])["wheel"]
    within = np.arctan2(np.sin(angle), np.cos(angle))
    assert plain[1] == pytest.approx(-2.0 * (within - 0.5), abs=1e-12)


def test_guesses_of_a_batch_and_bad_ones():
    mech, angles = wound(PIN), np.array([[3.1], [3.2], [9.0]])
    result = lw.loops.loop_drive_forces(mech, angles, [0.0], near={"spring": angles + 0.5})["wheel"]
    np.testing.assert_allclose(result[:, 1], -2.0 * (angles[:, 0] - 0.5), atol=1e-12)
    one = lw.loops.loop_drive_forces(mech, angles, [0.0], near={"spring": 4.0})["wheel"]
    np.testing.assert_allclose(one[:, 1], -2.0 * (np.array([3.1, 3.2, 9.0 - 2 * np.pi]) - 0.5))
    assert (
        lw.loops.loop_drive_forces(mech, np.zeros((0, 1)), [0.0], near={"spring": 4.0}) is not None
    )
    bad = ({"other": 1.0}, {"spring": [1.0, 2.0]}, {"spring": np.zeros((2, 1))}, {"spring": np.nan})
    for guess in (*bad, 3.0):
        with pytest.raises(lw.errors.LinkwiseError, match=r"near|other"):
            lw.loops.loop_drive_forces(mech, angles, [0.0], near=guess)  # type: ignore[arg-type]


def test_a_screw_counts_its_own_turns():
    """Its travel tells the angle: no turn is added, whatever is guessed."""
    b, ball = lw.Builder("screw"), lw.SpatialInertia.solid_sphere(1.0, 0.1)
    b.body("nut", hinge=lw.hinges.Helical((0, 1, 0), pitch=0.01), inertia=ball)
    b.loop(
        "s", "world", "nut", lw.hinges.Helical((0, 1, 0), pitch=0.01), drive=lw.Drive(stiffness=2.0)
    )
    mech = b.build()
    (theta,) = lw.loops.loop_coordinates(mech, [0.3])["s"]
    plain, guessed = (
        lw.loops.loop_drive_forces(mech, [0.3], [0.0], near=x)["nut"] for x in (None, {"s": 0.3})
    )
    far = lw.loops.loop_drive_forces(mech, [0.3], [0.0], near={"s": theta + 2 * np.pi})["nut"]
    np.testing.assert_allclose(guessed, plain)
    np.testing.assert_allclose(far, plain, rtol=1e-9)


def test_a_rotor_in_some_freedoms_only_is_refused():
    b = lw.Builder("x")
    for name in ("left", "right"):
        b.body(name, "world", PIN, inertia=lw.SpatialInertia.solid_sphere(1.0, 0.1))
    b.loop("c", "left", "right", lw.hinges.Universal(), drive=lw.Drive(armature=(0.1, 0.0)))
    with pytest.raises(
        lw.ModelError, match=r"loop 'c': its armature \[0\.1, 0\.0\] is not part of"
    ):
        b.build()


def test_a_mechanism_is_not_made_with_a_rotor_in_a_loop():
    good = lw.models.four_bar()
    loop = good.loops[0]
    driven = Loop(loop.name, loop.node_a, loop.node_b, loop.hinge, lw.Drive(armature=0.1))
    with pytest.raises(lw.ModelError, match="then the hinge gets a body"):
        lw.Mechanism(good.name, good.bodies, good.nodes, (driven,))


def test_a_drive_that_does_not_fit_a_loop_is_refused():
    b = lw.Builder("x")
    b.body("left", "world", PIN, inertia=lw.SpatialInertia.solid_sphere(1.0, 0.1))
    b.loop("c", "left", "world", PIN, drive=lw.Drive(damping=(0.1, 0.2)))
    with pytest.raises(lw.ModelError, match="loop 'c': damping has 2 entries; a pin hinge takes 1"):
        b.build()


def test_limits_of_a_loop_are_looked_at():
    b = lw.Builder("x")
    b.body("left", "world", PIN, inertia=lw.SpatialInertia.solid_sphere(1.0, 0.1))
    b.loop("c", "left", "world", PIN, drive=lw.Drive(lower=1.0, upper=-1.0, damping=-1.0))
    result = {(f.where, f.code) for f in b.build().validate()}
    assert {("loop 'c'", "limits"), ("loop 'c'", "drive")} <= result


def test_a_transmission_may_name_a_loop():
    loop = f'<loop_joint name="c" type="continuous">{ENDS}<axis xyz="0 1 0"/></loop_joint>'
    gear = '<transmission name="t"><joint name="c"/><drake:rotor_inertia value="0.1"/>'
    gear += '<drake:gear_ratio value="3"/></transmission>'
    mech = read(robot(*BARS, loop, gear))
    assert len(mech.load_report) == 0
    assert mech.armature[mech.v_slice("c")] == pytest.approx(0.9)
    (welded,) = mech.loops
    assert (welded.node_a, welded.rows) == ("c.rotor", 6)
    back, report = again(mech)
    assert back.armature[back.v_slice("c")] == pytest.approx(0.9)
    assert not [item for item in report if "armature" in item.reason]


def test_a_rotor_of_a_loop_with_several_freedoms_is_reported():
    loop = f'<loop_joint name="c" type="spherical">{ENDS}</loop_joint>'
    gear = (
        '<transmission name="t"><joint name="c"/><drake:rotor_inertia value="0.1"/></transmission>'
    )
    (item,) = read(robot(*BARS, loop, gear)).load_report.affecting("motion")
    assert item.reason == "the rotor of its transmission is not read for a spherical loop"
