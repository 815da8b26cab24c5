"""Configurations, derived mechanisms and validation of whole mechanisms."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st

import linkwise as lw
from linkwise.errors import ModelError, ShapeError, UnknownNameError
from linkwise.model.report import LoadItem, LoadReport
from linkwise.spatial import quaternion
from linkwise.spatial.inertia import trusted_inertia
from tests.dense_kinematics import mass_matrix

seeds = st.integers(0, 2**16)
BALL = lw.SpatialInertia.solid_sphere(2.0, 0.1)


def coordinates(mech: lw.Mechanism, q, of: lw.Mechanism):
    """q of `of`, given by hinge names, arranged for `mech`."""
    return np.concatenate([np.zeros(0), *(q[of.q_slice(b.hinge_name)] for b in mech.bodies)])


def velocity_order(mech: lw.Mechanism, of: lw.Mechanism) -> list[int]:
    return [
        i
        for b in mech.bodies
        for i in range(of.v_slice(b.hinge_name).start, of.v_slice(b.hinge_name).stop)
    ]


def same_bodies(a: lw.Mechanism, q_a, b: lw.Mechanism, q_b, names):
    for name in names:
        np.testing.assert_allclose(a.pose(q_a, name).matrix, b.pose(q_b, name).matrix, atol=1e-12)


# ------------------------------------------------------------------------- configurations


@given(seed=seeds)
def test_integrate_and_difference_of_whole_mechanisms(seed):
    mech = lw.models.random_tree(8, seed)
    q, v = mech.random(seed), 0.3 * mech.random_velocity(seed)
    np.testing.assert_allclose(mech.difference(q, mech.integrate(q, v)), v, atol=1e-11)
    h = 1e-6
    slope = (mech.integrate(q, v, h) - mech.integrate(q, v, -h)) / (2 * h)
    np.testing.assert_allclose(mech.qdot(q, v), slope, atol=1e-8)


@given(seed=seeds)
def test_batches_equal_single_calls(seed):
    mech = lw.models.random_tree(6, seed)
    q = np.array([[mech.random(seed + 3 * i + j) for j in range(2)] for i in range(3)])
    v = np.random.default_rng(seed).standard_normal((3, 2, mech.nv))
    poses, com = mech.poses(q), mech.center_of_mass(q)
    stepped = mech.integrate(q, v, 0.1)
    for i in np.ndindex(3, 2):
        np.testing.assert_allclose(poses[i].matrix, mech.poses(q[i]).matrix, atol=1e-14)
        np.testing.assert_allclose(com[i], mech.center_of_mass(q[i]), atol=1e-13)
        np.testing.assert_allclose(stepped[i], mech.integrate(q[i], v[i], 0.1), atol=1e-14)
    tip = mech.bodies[-1].name
    np.testing.assert_allclose(mech.pose(q, tip).matrix, poses[:, :, -1].matrix, atol=1e-14)


def test_random_is_reproducible_and_within_limits():
    mech = lw.models.seven_dof_arm()
    np.testing.assert_array_equal(mech.random(4), mech.random(4))
    for seed in range(50):
        q = mech.random(seed)
        assert np.all(q >= mech.lower)
        assert np.all(q <= mech.upper)


def test_random_respects_the_largest_turn():
    mech = one_body(lw.hinges.Spherical(), drive=lw.Drive(max_angle=0.3))
    turns = [np.linalg.norm(quaternion.log(mech.random(seed))) for seed in range(50)]
    assert 0.2 < max(turns) <= 0.3


def test_wrong_states_are_refused_by_name():
    mech = lw.models.quadruped()
    q = mech.neutral()
    with pytest.raises(ShapeError, match=rf"shape \(3,\).*\({mech.nq},\)"):
        mech.poses(np.zeros(3))
    with pytest.raises(ShapeError, match="v has shape"):
        mech.integrate(q, q)
    with pytest.raises(ModelError, match=r"length 2, it must be 1. .* \(w, x, y, z\)"):
        mech.poses(np.where(np.arange(mech.nq) == 0, 2.0, q))
    with pytest.raises(ModelError, match=f"not finite at {mech.coordinate_names[9]!r}"):
        mech.poses(np.where(np.arange(mech.nq) == 9, np.nan, q))
    with pytest.raises(ModelError, match="is zero and cannot be normalised"):
        mech.normalise(np.zeros(mech.nq))
    np.testing.assert_allclose(mech.normalise(3.0 * q)[:4], q[:4])
    v = mech.random_velocity(0)
    with pytest.raises(ShapeError, match="q must be made of real numbers"):
        mech.poses("abc")
    with pytest.raises(ShapeError, match="dt must be finite"):
        mech.integrate(q, v, np.nan)
    with pytest.raises(ShapeError, match=r"q \(2, .*\) and v \(3, .*\) cannot be combined"):
        mech.integrate(np.stack([q, q]), np.stack([v, v, v]))


def test_coordinate_names():
    mech = lw.models.quadruped()
    base = mech.bodies[0].hinge_name
    assert mech.coordinate_names[0] == f"{base}.quaternion_w"
    assert mech.velocity_names[3] == f"{base}.v_x"
    assert mech.coordinate(f"{base}[4]") == mech.coordinate(f"{base}.x") == 4
    with pytest.raises(ModelError, match=r"has 7; write .*\[0\] to .*\[6\]"):
        mech.coordinate(base)


def test_mechanisms_survive_pickling():
    mech = lw.models.random_tree(12, 3)
    again = pickle.loads(pickle.dumps(mech))
    q = mech.random(1)
    np.testing.assert_array_equal(again.poses(q).matrix, mech.poses(q).matrix)
    assert again.bodies[0].hinge == mech.bodies[0].hinge


# --------------------------------------------------------------------- derived mechanisms


@given(seed=seeds)
def test_renumbering_keeps_the_physics(seed):
    mech = lw.models.random_tree(9, seed)
    order = [mech.bodies[k].name for k in np.random.default_rng(seed).permutation(mech.n_bodies)]
    other = mech.renumber(order)
    assert sorted(b.name for b in other.bodies) == sorted(order)
    assert all(p < k for k, p in enumerate(other.parent))
    q = mech.random(seed)
    q_other = coordinates(other, q, mech)
    same_bodies(mech, q, other, q_other, order)
    turn = velocity_order(other, mech)
    M = mass_matrix(mech, q)
    np.testing.assert_allclose(mass_matrix(other, q_other), M[np.ix_(turn, turn)], atol=1e-11)


@given(seed=seeds)
def test_locking_is_the_same_as_holding_still(seed):
    mech = lw.models.random_tree(9, seed)
    q = mech.random(seed)
    chosen = {b.hinge_name for b in mech.bodies[::2] if b.hinge.nv}
    held = mech.lock({name: q[mech.q_slice(name)] for name in chosen})
    rest = [i for b in mech.bodies for i in _moving(mech, b, chosen)]
    q_held = coordinates_left(held, q, mech)
    same_bodies(mech, q, held, q_held, [b.name for b in mech.bodies])
    M = mass_matrix(mech, q)[np.ix_(rest, rest)]
    np.testing.assert_allclose(mass_matrix(held, q_held), M, atol=1e-11)
    melted = held.merge_locked()
    np.testing.assert_allclose(mass_matrix(melted, q_held), M, atol=1e-10)
    assert melted.total_mass == pytest.approx(total_moving(held), rel=1e-12)
    same_bodies(mech, q, melted, q_held, [b.name for b in mech.bodies])
    back = held.release(chosen)
    np.testing.assert_allclose(mass_matrix(back, q), mass_matrix(mech, q), atol=1e-12)


def _moving(mech, body, locked):
    where = mech.v_slice(body.hinge_name)
    return [] if body.hinge_name in locked else range(where.start, where.stop)


def coordinates_left(held, q, mech):
    parts = [q[mech.q_slice(b.hinge_name)] for b in held.bodies if b.hinge.nv]
    return np.concatenate([np.zeros(0), *parts])


def total_moving(mech):
    """Mass of bodies that some freedom moves: a body locked to the ground is not moving."""
    moving = np.zeros(mech.n_bodies, dtype=bool)
    for k, p in enumerate(mech.parent):
        moving[k] = mech.bodies[k].hinge.nv > 0 or (p >= 0 and moving[p])
    return float(mech.inertias.mass[moving].sum())


def test_lock_at_neutral_and_by_body_name():
    mech = lw.models.puma560()
    held = mech.lock([mech.bodies[2].name])
    assert held.nv == 5
    assert held.release().nv == 6
    with pytest.raises(ModelError, match="holds nothing"):
        held.release([mech.bodies[0].hinge_name])
    with pytest.raises(UnknownNameError, match="hinge or body"):
        mech.lock(["nothing"])
    with pytest.raises(ModelError, match="give its 1 coordinates"):
        mech.lock({mech.bodies[0].hinge_name: (1.0, 2.0)})


def test_locking_keeps_a_drive_with_one_value_a_freedom():
    drive = lw.Drive(lower=(-1.0, -2.0), damping=(0.1, 0.2))
    held = one_body(lw.hinges.Universal(), drive=drive).lock(["a"])
    assert (held.nv, held.damping.size, held.validate()[0].code) == (0, 0, "rigid")
    back = held.release()
    np.testing.assert_array_equal(back.lower, [-1.0, -2.0])
    np.testing.assert_array_equal(back.damping, [0.1, 0.2])


def test_payload_adds_its_inertia_where_it_is():
    mech = lw.models.seven_dof_arm()
    loaded = mech.with_payload("hand", BALL, pose=(0.0, 0.0, 0.2))
    host = mech.node("hand").body
    place = mech.node("hand").pose @ lw.Pose.translation((0, 0, 0.2))
    expected = mech.inertia(host) + BALL.moved(place)
    np.testing.assert_allclose(loaded.inertia(host).matrix, expected.matrix, atol=1e-14)
    assert loaded.total_mass == pytest.approx(mech.total_mass + 2.0)
    assert loaded.without("payload").total_mass == pytest.approx(mech.total_mass)
    with pytest.raises(ModelError, match="mass is -1"):
        mech.with_payload("hand", lw.SpatialInertia.from_com(-1.0))
    with pytest.raises(ModelError, match=r"'payload': mass, first moment .* is not finite"):
        mech.with_payload("hand", trusted_inertia(np.array(np.nan), np.zeros(3), np.eye(3)))
    with pytest.raises(ModelError, match="'payload': the name is used 2 times"):
        loaded.with_payload("hand", BALL)
    with pytest.raises(UnknownNameError, match="node, loop, coupling or actuator"):
        mech.without("nothing")


def test_mounting_a_mini_on_a_macro():
    macro, mini = lw.models.seven_dof_arm(), lw.models.planar_rpp()
    both = macro.mount(mini, at="hand", prefix="mini_")
    assert both.nv == macro.nv + mini.nv
    q_macro, q_mini = macro.random(0), mini.random(1)
    q = np.concatenate([q_macro, q_mini])
    for body in mini.bodies:
        expected = macro.pose(q_macro, "hand") @ mini.pose(q_mini, body.name)
        result = both.pose(q, "mini_" + body.name)
        np.testing.assert_allclose(result.matrix, expected.matrix, atol=1e-13)
    # Khatib's Lemma 1: the mass matrix of the mini is the corner of that of both.
    corner = mass_matrix(both, q)[macro.nv :, macro.nv :]
    np.testing.assert_allclose(corner, mass_matrix(mini, q_mini), atol=1e-12)
    with pytest.raises(ModelError, match="give a prefix"):
        macro.mount(macro, at="hand")
    with pytest.raises(lw.ModelError, match=r"was given a str; give one made by Builder"):
        macro.mount("hand", at="hand")  # pyright: ignore


def test_mounting_a_closed_chain_brings_its_loops():
    base, closed = lw.models.pendulum(1), lw.models.four_bar()
    tip = base.bodies[-1].name
    both = base.mount(closed, at=tip, prefix="f_")
    assert [x.name for x in both.loops] == ["f_" + x.name for x in closed.loops]
    q = np.concatenate([base.random(0), closed.neutral()])
    loop = both.loops[0]
    gap = both.pose(q, loop.node_a).inverse() @ both.pose(q, loop.node_b)
    np.testing.assert_allclose(gap.p, 0.0, atol=1e-12)


def test_mounting_joins_the_load_reports():
    items = [LoadItem("a.urdf", i, "<gazebo>", "ignored", "for Gazebo", "other") for i in (1, 2)]
    base, top = (
        lw.Builder(name).build(load_report=LoadReport(f"{name}.urdf", (item,)))
        for name, item in zip("ab", items, strict=True)
    )
    assert base.mount(top, at="world").load_report == LoadReport("a.urdf", tuple(items))


def test_extract_a_sub_arm():
    mech = lw.models.humanoid()
    arm = mech.extract("left_upper_arm")
    assert [b.name for b in arm.bodies] == ["left_upper_arm", "left_forearm"]
    q = mech.random(2)
    q_arm = np.concatenate([q[mech.q_slice(b.name)] for b in arm.bodies])
    torso = mech.pose(q, mech.body("left_upper_arm").parent)
    result = torso.inverse() @ mech.pose(q, "left_forearm")
    np.testing.assert_allclose(result.matrix, arm.pose(q_arm, "left_forearm").matrix, atol=1e-13)
    leg = mech.extract("pelvis", "left_foot")
    assert [b.name for b in leg.bodies] == ["pelvis", "left_thigh", "left_shank", "left_foot"]
    with pytest.raises(ModelError, match="is not outboard of"):
        mech.extract("left_thigh", "right_foot")
    closed = lw.models.four_bar()
    with pytest.raises(ModelError, match="take it away first"):
        closed.extract("coupler")
    assert closed.extract("crank", "crank").loops == ()


def test_couplings_follow_locking():
    b = lw.Builder("geared")
    for i in range(3):
        b.body(f"b{i}", "world", lw.hinges.Pin(), inertia=BALL, inboard=(i, 0, 0))
    mech = b.couple("gear", "b1", {"b0": 2.0}).build()
    with pytest.raises(ModelError, match="Lock all of them"):
        mech.lock(["b0"])
    assert mech.lock(["b0", "b1"]).couplings == ()
    assert mech.lock(["b2"]).couplings == mech.couplings


def test_another_drive_at_a_hinge():
    arm = lw.models.seven_dof_arm()
    first, second = arm.bodies[0], arm.bodies[1]
    damped = arm.with_drive(second.name, damping=0.7)
    assert damped.bodies[1].drive == dataclasses.replace(second.drive, damping=0.7)
    assert damped.bodies[0].drive == first.drive
    assert arm.bodies[1].drive == second.drive  # the old one is as it was
    new = lw.Drive(armature=0.2, upper=0.5)
    both = arm.with_drive([first.hinge_name, second.hinge_name], new)
    np.testing.assert_array_equal(both.armature[:2], 0.2)
    np.testing.assert_array_equal(both.armature[2:], arm.armature[2:])
    np.testing.assert_array_equal(both.upper[:2], 0.5)
    assert arm.with_drive(first.name, new, upper=1.0).upper[0] == 1.0
    held = arm.lock([first.hinge_name]).with_drive(first.hinge_name, new)  # for its release
    assert held.release().armature[0] == 0.2


def test_drives_that_do_not_fit_are_refused():
    arm = lw.models.seven_dof_arm()
    name = arm.bodies[0].hinge_name
    with pytest.raises(UnknownNameError, match=r"'dampin'.*'damping'"):
        arm.with_drive(name, dampin=0.1)
    with pytest.raises(UnknownNameError, match="no hinge or body called 'nobody'"):
        arm.with_drive("nobody", damping=0.1)
    with pytest.raises(ModelError, match="change nothing"):
        arm.with_drive(name)
    with pytest.raises(ModelError, match="damping has 2 entries"):
        arm.with_drive(name, damping=(0.1, 0.2))


@given(seed=seeds)
def test_without_armature_only_rotors_are_missing(seed):
    mech = lw.models.random_tree(6, seed)
    names = [b.hinge_name for b in mech.bodies]
    geared = mech.with_drive(names, armature=0.3, rotor_inertia=0.01, gear_ratio=5.0, damping=0.2)
    np.testing.assert_allclose(geared.armature, 0.3 + 25 * 0.01, rtol=1e-15)
    bare = geared.without_armature()
    np.testing.assert_array_equal(bare.armature, 0.0)
    np.testing.assert_array_equal(bare.damping, geared.damping)
    q = mech.random(seed)
    difference = mass_matrix(geared, q) - mass_matrix(bare, q)
    np.testing.assert_allclose(difference, np.diag(geared.armature), atol=1e-12)


def test_gravity():
    mech = lw.models.pendulum(2).with_gravity((0.0, 0.0, -1.62))
    np.testing.assert_array_equal(mech.gravity, [0.0, 0.0, -1.62])


# ----------------------------------------------------------------------------- validation


def one_body(hinge=None, **options) -> lw.Mechanism:
    options.setdefault("inertia", BALL)
    return lw.Builder("one").body("a", "world", hinge or lw.hinges.Pin(), **options).build()


@pytest.mark.parametrize(
    ("mech", "code", "where", "text"),
    [
        (one_body(inertia=lw.SpatialInertia.from_com(-1.0)), "mass", "body 'a'", "-1 kg"),
        (
            one_body(inertia=lw.SpatialInertia.from_com(1.0, J_com=(1, 1, 3))),
            "triangle",
            "body 'a'",
            "nearest possible principal moments are",
        ),
        (
            one_body(
                inertia=lw.SpatialInertia.from_com(1, J_com=((1, 0.5, 0), (0, 1, 0), (0, 0, 1)))
            ),
            "symmetry",
            "body 'a'",
            "mean of the matrix and its transpose",
        ),
        (one_body(inertia=None), "massless-tip", "body 'a'", "moves nothing"),
        (
            one_body(inertia=lw.SpatialInertia.point(1.0, (0, 0, 0.3))),
            "singular-tip",
            "body 'a'",
            "point mass on the axis",
        ),
        (
            one_body(drive=lw.Drive(lower=1.0, upper=-1.0)),
            "limits",
            "hinge 'a'",
            "upside down: lower 1, upper -1",
        ),
        (one_body(drive=lw.Drive(max_angle=1.0)), "limits", "hinge 'a'", "Use lower and upper"),
        (one_body(drive=lw.Drive(damping=-1.0)), "drive", "hinge 'a'", "damping is -1"),
        (one_body(drive=lw.Drive(friction=np.inf)), "drive", "hinge 'a'", "friction is infinite"),
        (one_body(drive=lw.Drive(stiffness=-1.0)), "drive", "hinge 'a'", "pushes away"),
        (one_body(lw.hinges.Locked()), "rigid", "mechanism 'one'", "no degree of freedom"),
        (
            lw.Builder("one")
            .body("a", "world", lw.hinges.Pin(), inertia=BALL)
            .node("n", "a")
            .loop("l", "a", "n")
            .build(),
            "loop",
            "loop 'l'",
            "closes nothing that moves",
        ),
    ],
)
def test_findings(mech, code, where, text):
    (finding,) = mech.validate()
    assert (finding.code, finding.where) == (code, where)
    assert text in finding.reason + finding.repair
    assert finding.repair


def test_what_is_not_a_finding():
    """Armature on a massless tip, a massless body between massive ones, a locked massless tip."""
    assert one_body(inertia=None, drive=lw.Drive(armature=0.1)).validate() == ()
    assert one_body(inertia=None, drive=lw.Drive(rotor_inertia=0.1, gear_ratio=9)).validate() == ()
    b = lw.Builder("between").body("thin", "world", lw.hinges.Pin())
    b.body("thick", "thin", lw.hinges.Pin((1, 0, 0)), inertia=BALL)
    b.body("tool", "thick", lw.hinges.Locked())
    assert b.build().validate() == ()
    # A welded link's inertia counts for the hinge that carries it.
    b = lw.Builder("welded").body("thin", "world", lw.hinges.Pin())
    b.body("tool", "thin", lw.hinges.Locked(), inertia=BALL)
    assert b.build().validate() == ()
    assert b.build().merge_locked().validate() == ()


def test_chains_of_massless_tips_are_all_named():
    b = lw.Builder("thin").body("a", "world", lw.hinges.Pin(), inertia=BALL)
    b.body("b", "a", lw.hinges.Pin()).body("c", "b", lw.hinges.Pin())
    assert [f.where for f in b.build().validate()] == ["body 'c'", "body 'b'"]


def test_large_mechanisms_get_the_same_findings():
    b = lw.Builder("wide")
    for i in range(2500):
        b.body(f"b{i}", "world", lw.hinges.Pin(), inertia=lw.SpatialInertia.point(1.0, (0, 0, 0.3)))
        b.body(f"tool{i}", f"b{i}", lw.hinges.Locked(), inertia=BALL if i else None)
    assert [(f.where, f.code) for f in b.build().validate()] == [("body 'b0'", "singular-tip")]


def test_a_state_in_another_order_is_not_made_legal():
    mech = lw.models.quadruped()
    q = mech.random(3)
    pinocchio = np.concatenate([q[4:7], q[1:4], q[:1], q[7:]])
    mujoco = np.concatenate([q[4:7], q[:4], q[7:]])
    for other in (pinocchio, mujoco, np.stack([q, mujoco])):
        with pytest.raises(ModelError, match=r"\(w, x, y, z\), before the position.*q_from\(q\)"):
            mech.check_q(other)
        with pytest.raises(ModelError, match="pinocchio_layout"):
            mech.normalise(other)
    with pytest.raises(ModelError, match="pinocchio_layout"):
        lw.gravity_force(mech, pinocchio)
    with pytest.raises(ModelError, match=r"is for rounding errors only"):
        lw.gravity_force(mech, np.concatenate([3.0 * q[:4], q[4:]]))
    drifted = np.concatenate([1.001 * q[:4], q[4:]])
    for check in (mech.check_q, lambda q: lw.gravity_force(mech, q)):
        with pytest.raises(ModelError, match=r"mech.normalise\(q\) removes"):
            check(drifted)
    np.testing.assert_allclose(mech.normalise(drifted), q, atol=1e-15)
    ball = lw.Builder("b").body("ball", "world", lw.hinges.Spherical()).build()
    with pytest.raises(ModelError, match=r"Linkwise holds it as \(w, x, y, z\)\. lw.convert"):
        ball.check_q(2.0 * ball.neutral())


def test_a_position_that_looks_like_a_quaternion_may_be_normalised():
    """(q_z, x, y, z) of length one is no mistake where the quaternion is of unit length too."""
    mech = lw.models.free_flyer()
    q = mech.neutral()
    q[:7] = [np.cos(0.3), np.sin(0.3), 0.0, 0.0, 0.6, 0.0, 0.8]
    drifted = q.copy()
    drifted[:4] *= 1.0 + 1e-5
    assert np.abs(mech.normalise(drifted) - q).max() < 1e-12 < np.abs(drifted - q).max()
