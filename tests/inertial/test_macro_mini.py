"""Lemmas 1 and 2, Theorem 2 and its corollary on arms and trees drawn at random (003, 5.1, 5.2).

References are dense: mass matrices and Jacobians from the definitions, inverted by NumPy.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import linkwise as lw
from linkwise import models
from linkwise.errors import ModelError, ShapeError, UnknownNameError
from tests.dense_kinematics import gravity_torque, mass_matrix, node_jacobian

ROUNDING = 1e-11
"""For matrices whose condition is at most 1e4 or so: 1e-15 times that, and some terms."""


def in_world(mech, q, node):
    """J_0 (6, nv) of a node in world axes, from the definitions."""
    rot = mech.pose(q, node).rot
    return np.kron(np.eye(2), rot) @ node_jacobian(mech, q, node)


def random_robot(seed):
    """A tree with branches, armature and any hinge, and a split that leaves the mini enough."""
    rng = np.random.default_rng(seed)
    mech = models.random_tree(6, seed, branching=0.25)
    way = {"world": []}
    for k, body in enumerate(mech.bodies):
        way[body.name] = [*way[body.parent], *([k] * (body.hinge.nv > 0))]
    tip = max(mech.body_index, key=lambda name: len(way[name]))
    q, there = mech.random(rng), way[tip]
    rank = np.linalg.matrix_rank(in_world(mech, q, tip), tol=1e-9)
    for k in reversed(there[1:]):  # from the tip inwards
        freedoms = sum(b.hinge.nv for b in mech.extract(mech.bodies[k].name).bodies)
        if freedoms >= rank:
            return mech, mech.bodies[k].hinge_name, tip, lw.Task.pose(tip), q
    k = there[1]
    freedoms = sum(b.hinge.nv for b in mech.extract(mech.bodies[k].name).bodies)
    along = "xyz"[: min(3, freedoms)]
    return mech, mech.bodies[k].hinge_name, tip, lw.Task.position(tip, along), q


SEEDS = [4, *(pytest.param(i, marks=pytest.mark.slow) for i in range(20) if i != 4)]


@pytest.fixture(params=SEEDS, scope="module")
def robot(request):
    return random_robot(request.param)


def test_kinematics_from_the_two_models(robot):
    """(36)-(38): the Jacobian of the whole from those of macro and mini, each alone."""
    mech, split, tip, _, q = robot
    parts = lw.papers.macro_mini(mech, split, tip)
    order = np.concatenate([parts.macro_v, parts.mini_v])
    assert sorted(order) == list(range(mech.nv))
    result = parts.at(q)
    expected = in_world(mech, q, tip)[:, order]
    scale = np.abs(expected).max()
    np.testing.assert_allclose(result.jacobian, expected, rtol=0, atol=1e-13 * scale)
    arm = mech.pose(q, tip).p - mech.pose(q, parts.carrier).p
    w = np.array([0.3, -1.0, 0.7])
    np.testing.assert_allclose(result.shift[3:, :3] @ w, np.cross(w, arm), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(result.shift[:3, 3:], 0.0)


def test_lemma_1(robot):
    """A_m of the mini's own model is A_22 of the whole, wherever the macro is; gravity too."""
    mech, split, tip, _, q = robot
    parts = lw.papers.macro_mini(mech, split, tip)
    A = mass_matrix(mech, q)
    A_22 = A[np.ix_(parts.mini_v, parts.mini_v)]
    result = parts.at(q)
    scale = np.abs(A).max()
    np.testing.assert_allclose(result.mini_inertia, A_22, rtol=0, atol=1e-13 * scale)
    np.testing.assert_allclose(result.inertia_22, A_22, rtol=0, atol=1e-13 * scale)
    freed = np.linalg.inv(np.linalg.inv(A)[np.ix_(parts.macro_v, parts.macro_v)])
    np.testing.assert_allclose(result.freed_inertia, freed, rtol=0, atol=ROUNDING * scale)
    moved = q.copy()
    moved[parts.macro_q] = mech.random(7)[parts.macro_q]
    here, held = parts.mini_at(moved), moved[parts.mini_q]
    np.testing.assert_allclose(mass_matrix(here, held), A_22, rtol=0, atol=1e-13 * scale)
    np.testing.assert_allclose(here.pose(held, tip).p, mech.pose(moved, tip).p, atol=1e-13)
    weight = gravity_torque(mech, moved)[parts.mini_v]
    # Central differences of energies of some 10 J with a step of 1e-6.
    np.testing.assert_allclose(gravity_torque(here, held), weight, rtol=0, atol=1e-6)


def test_lemma_2_and_theorem_2(robot):
    """(41) to (47), on matrices made and inverted densely; armature is in all of them."""
    mech, split, tip, task, q = robot
    report = lw.papers.reduced_inertia(mech, q, task, split=split)
    A, J = mass_matrix(mech, q), np.array(task.rows) @ in_world(mech, q, tip)
    one, two = report.parts.macro_v, report.parts.mini_v
    full = J @ np.linalg.inv(A) @ J.T
    mini = J[:, two] @ np.linalg.inv(A[np.ix_(two, two)]) @ J[:, two].T
    held = J[:, one] @ np.linalg.inv(A[np.ix_(one, one)]) @ J[:, one].T
    scale = ROUNDING * np.abs(full).max()
    np.testing.assert_allclose(report.whole_inverse, full, rtol=0, atol=scale)
    np.testing.assert_allclose(report.mini_inverse, mini, rtol=0, atol=scale)
    np.testing.assert_allclose(report.locked_inverse, held, rtol=0, atol=scale)
    np.testing.assert_allclose(report.coupling, full - mini, rtol=0, atol=scale)
    assert report.lemma_1 < 1e-13 and report.lemma_2 < ROUNDING and report.theorem_2 < 1e-9
    if not isinstance(mech.hinge(split).hinge, lw.hinges.Free):  # a free body needs no macro
        assert report.ratios[0] < 1.0 - 1e-6  # otherwise there is nothing to be seen
    rng = np.random.default_rng(0)
    for _ in range(20):
        w = rng.standard_normal(len(J))
        w /= np.linalg.norm(w)
        felt = report.along(w)
        assert felt.robot == pytest.approx(1.0 / (w @ full @ w), rel=1e-9)
        assert felt.robot <= felt.mini * (1.0 + 1e-12)
        assert felt.robot <= felt.locked * (1.0 + 1e-12)


def test_corollary_1(robot):
    """(48) to (52): the blocks of a pose that move and that turn, in any direction u."""
    mech, split, _, task, q = robot
    report = lw.papers.reduced_inertia(mech, q, task, split=split)
    rng = np.random.default_rng(1)
    blocks = (slice(0, 3), slice(3, 6)) if task.kind == "pose" else (slice(0, len(task.rows)),)
    for block in blocks:
        part = report.coupling[block, block]
        scale = ROUNDING * np.abs(report.whole_inverse).max()
        difference = report.whole_inverse[block, block] - report.mini_inverse[block, block]
        np.testing.assert_allclose(part, difference, rtol=0, atol=scale)
        assert np.linalg.eigvalsh(part)[0] > -scale
        for _ in range(10):
            u = rng.standard_normal(len(part))
            w = np.zeros(len(task.rows))
            w[block] = u
            felt = report.along(w)
            assert felt.robot <= felt.mini * (1.0 + 1e-12)


def test_ratios_are_reached_in_their_directions():
    mech = models.seven_dof_arm()
    report = lw.papers.reduced_inertia(
        mech, mech.random(4), lw.Task.pose("hand"), split="shoulder_pitch"
    )
    assert len(report.ratios) == 6 and np.all(np.diff(report.ratios) >= 0.0)
    for ratio, w in zip(report.ratios, report.directions.T, strict=True):
        assert report.along(w).ratio == pytest.approx(ratio, rel=1e-9)


def test_a_macro_of_one_freedom_reduces_one_direction_only():
    """Λ̄_C has the rank of the macro at most: all other ratios are 1."""
    mech = models.seven_dof_arm()
    report = lw.papers.reduced_inertia(
        mech, mech.random(4), lw.Task.pose("hand"), split="shoulder_pitch"
    )
    np.testing.assert_allclose(report.ratios[1:], 1.0, rtol=0, atol=1e-10)
    assert report.ratios[0] < 0.9


def test_the_printed_example_in_numbers():
    """Section 5.2: η m₂ + m₃ in the frame of link 1, and η in words."""
    I_1, m_2, m_3, q_2, q_3 = 1.0, 2.0, 1.0, 0.2, 0.5
    mech = models.planar_rpp(I_1=I_1, m_2=m_2, m_3=m_3)
    task = lw.Task.position("end_effector", "xy", axes="node")
    report = lw.papers.reduced_inertia(mech, [0.7, q_2, q_3], task, split="slider_2")
    eta = (I_1 + m_2 * q_2**2) / (I_1 + m_2 * (q_2**2 + q_3**2))
    assert np.allclose(report.whole_inertia, np.diag([eta * m_2 + m_3, m_3]), atol=1e-14)
    assert np.allclose(report.mini_inertia, np.diag([m_2 + m_3, m_3]), atol=1e-14)
    np.testing.assert_allclose(report.ratios, [(eta * m_2 + m_3) / (m_2 + m_3), 1.0], atol=1e-14)
    assert "along (1.000" in str(report).replace("( ", "(")
    assert "2.367 kg; mini alone 3" in str(report)


PLANE = lw.Task.position("tip", "xy")


def test_principal_masses_are_those_that_are_measured():
    """Corollary 1, through the function that measures effective masses."""
    mech = models.planar_macro_mini()
    q = mech.random(2)
    parts = lw.papers.macro_mini(mech, "mini_shoulder", "tip")
    alone, q_m = parts.mini_at(q), q[parts.mini_q]
    axes = lw.papers.reduced_inertia(mech, q, PLANE, split="mini_shoulder").principal()
    assert [axis.kind for axis in axes] == ["mass along"] * 2
    for axis in axes:
        assert axis.felt.robot == pytest.approx(
            lw.inertial.effective_mass(mech, q, "tip", axis.axis), rel=1e-9
        )
        assert axis.felt.mini == pytest.approx(
            lw.inertial.effective_mass(alone, q_m, "tip", axis.axis), rel=1e-9
        )


@pytest.mark.slow
def test_principal_axes_are_those_of_the_effective_masses():
    """The same in space, with inertias."""
    mech = models.macro_mini()
    q = mech.random(2)
    parts = lw.papers.macro_mini(mech, "mini_yaw", "tip")
    alone, q_m = parts.mini_at(q), q[parts.mini_q]
    axes = lw.papers.reduced_inertia(mech, q, lw.Task.pose("tip"), split="mini_yaw").principal()
    assert [axis.kind for axis in axes] == ["mass along"] * 3 + ["inertia about"] * 3
    for axis in axes:
        what = "mass" if axis.kind == "mass along" else "rotation"
        measure = partial(lw.inertial.effective_mass, what=what)
        assert axis.felt.robot == pytest.approx(measure(mech, q, "tip", axis.axis), rel=1e-9)
        assert axis.felt.mini == pytest.approx(measure(alone, q_m, "tip", axis.axis), rel=1e-9)
        assert axis.felt.ratio <= 1.0 + 1e-12


def test_oblique_rows_have_the_same_principal_axes():
    """Rows that are neither orthogonal nor of unit length span the same directions."""
    mech = models.planar_macro_mini()
    q = mech.random(1)
    rows = np.array([[1.0, 0.0, 0.0], [1.0, 2.0, 0.0]])
    result = [
        lw.papers.reduced_inertia(
            mech, q, lw.Task.position("tip", along=along), split="mini_shoulder"
        )
        for along in (rows, "xy")
    ]
    for a, b in zip(result[0].principal(), result[1].principal(), strict=True):
        np.testing.assert_allclose(np.abs(a.axis @ b.axis), 1.0, atol=1e-9)
        assert a.felt.robot == pytest.approx(b.felt.robot, rel=1e-10)
        assert a.felt.mini == pytest.approx(b.felt.mini, rel=1e-10)


def test_a_batch_is_its_states():
    mech = models.planar_macro_mini()
    rng = np.random.default_rng(0)
    q = np.stack([mech.random(rng) for _ in range(5)])
    together = lw.papers.reduced_inertia(mech, q, PLANE, split="mini_shoulder")
    assert len(together) == 5 and together.theorem_2.shape == (5,)
    assert together.along([1.0, 0.0]).robot.shape == (5,)
    parts = lw.papers.macro_mini(mech, "mini_shoulder", "tip").at(q)
    for i in range(5):
        one, part = lw.papers.reduced_inertia(mech, q[i], PLANE, split="mini_shoulder"), together[i]
        np.testing.assert_allclose(part.ratios, one.ratios, rtol=1e-12)
        np.testing.assert_allclose(part.mini_inertia, one.mini_inertia, rtol=1e-9)
        np.testing.assert_allclose(part.coupling, one.coupling, rtol=0, atol=1e-12)
        single = lw.papers.macro_mini(mech, "mini_shoulder", "tip").at(q[i])
        np.testing.assert_allclose(parts.jacobian[i], single.jacobian, rtol=0, atol=1e-13)
    assert "5 states" in str(together)
    with pytest.raises(ShapeError, match=r"with \[0\]"):
        together.principal()


def test_armature_of_the_mini_is_felt_and_of_the_macro_hardly():
    """𝓜 + N stands for 𝓜 in all of it: Lemma 1 holds with rotors, and they change the numbers."""
    mech = models.planar_macro_mini()
    q, split = mech.random(3), "mini_shoulder"
    bare = lw.papers.reduced_inertia(mech.without_armature(), q, PLANE, split=split)
    full = lw.papers.reduced_inertia(mech, q, PLANE, split=split)
    heavy = mech.with_drive(["mini_elbow"], armature=0.5)
    loaded = lw.papers.reduced_inertia(heavy, q, PLANE, split=split)
    for report in (bare, full, loaded):
        assert report.lemma_1 < 1e-13 and report.lemma_2 < ROUNDING
    assert loaded.principal()[0].felt.robot > 2.0 * full.principal()[0].felt.robot
    assert bare.principal()[0].felt.robot < full.principal()[0].felt.robot


def test_where_the_mini_is_stretched_it_is_told():
    """A straight mini does not move along itself: alone it is stiff there, the whole is not."""
    mech = models.planar_macro_mini()
    q = mech.neutral()
    q[mech.q_slice("mini_elbow")] = -1.6  # both links in line, beyond the limit
    report = lw.papers.reduced_inertia(mech, q, PLANE, split="mini_shoulder")
    assert report.ratios[0] < 1e-12 and report.ratios[1] > 0.9
    with pytest.raises(ModelError, match="singular in this state"):
        _ = report.mini_inertia
    w = report.directions[:, 0]
    assert report.along(w).mini == np.inf and np.isfinite(report.along(w).robot)
    assert report.along(w).ratio == 0.0


def test_several_tasks_joints_and_references():
    """Rows of tasks are stacked; a task seen from a link of the macro moves with it."""
    mech = models.planar_macro_mini()
    q, A = mech.random(5), mass_matrix(mech, mech.random(5))
    tasks = [lw.Task.position("tip", "x"), lw.Task.joints("mini_elbow")]
    report = lw.papers.reduced_inertia(mech, q, tasks, split="mini_shoulder")
    J = np.vstack([in_world(mech, q, "tip")[3], [0, 0, 0, 1]])
    np.testing.assert_allclose(
        report.mini_inverse, J[:, 2:] @ np.linalg.inv(A[2:, 2:]) @ J[:, 2:].T, rtol=1e-10
    )
    assert report.parts.node == "tip" and "mini_elbow" in str(report)
    seen = lw.Task.position("tip", "xy", relative_to="elbow_link")
    relative = lw.papers.reduced_inertia(mech, q, seen, split="mini_shoulder")
    np.testing.assert_allclose(relative.locked_inverse, 0.0, rtol=0, atol=1e-12)
    assert "mini locked not movable" in str(relative)
    assert relative.theorem_2 < 1e-12 and relative.ratios[0] < 1.0


def test_a_floating_base_is_a_macro():
    """The free flyer: its bus with the other arm carries this arm."""
    mech = models.free_flyer()
    q = mech.random(0)
    parts = lw.papers.macro_mini(mech, "left_shoulder_yaw", "left_hand")
    assert parts.carrier == "bus" and (len(parts.macro_v), len(parts.macro_q)) == (13, 14)
    result = parts.at(q)
    order = [*parts.macro_v, *parts.mini_v]
    np.testing.assert_allclose(
        result.jacobian, in_world(mech, q, "left_hand")[:, order], rtol=0, atol=1e-13
    )
    A = mass_matrix(mech, q)
    np.testing.assert_allclose(
        result.mini_inertia, A[np.ix_(parts.mini_v, parts.mini_v)], rtol=0, atol=1e-13
    )


def test_no_states_and_nothing_that_moves():
    mech = models.planar_macro_mini()
    empty = lw.papers.reduced_inertia(mech, np.zeros((0, 4)), PLANE, split="mini_shoulder")
    assert len(empty) == 0 and "0 states" in str(empty)
    with pytest.raises(ModelError, match="no state was given"):
        lw.papers.smallest_mini(mech, np.zeros((0, 4)), PLANE)
    up = lw.Task.position("tip", "z")
    stuck = lw.papers.reduced_inertia(mech, np.zeros(4), up, split="mini_shoulder")
    assert "none of it can move" in str(stuck) and stuck.theorem_2 == 0.0
    assert np.isnan(stuck.along([1.0]).ratio)
    with pytest.raises(ModelError, match="nothing moves 'tip'"):
        lw.papers.smallest_mini(mech, np.zeros(4), up)


# ------------------------------------------------------------------- the smallest distal set


def test_smallest_mini_is_the_smallest_that_spans():
    """One hinge fewer does not span; and it bounds what is felt: the general form of Theorem 2."""
    mech = models.seven_dof_arm()
    rng = np.random.default_rng(5)
    for task in (lw.Task.pose("hand"), lw.Task.position("hand")):
        q = mech.random(rng)
        smallest = lw.papers.smallest_mini(mech, q, task)
        J = lw.tasks.task_jacobian(mech, q, task)
        start = mech.v_slice(smallest.split).start
        m = np.linalg.matrix_rank(J, tol=1e-9)
        assert smallest.rank == m == len(J)
        assert np.linalg.matrix_rank(J[:, start:], tol=1e-9) == m
        assert np.linalg.matrix_rank(J[:, start + 1 :], tol=1e-9) < m
        report = lw.papers.reduced_inertia(mech, q, task, split=smallest.split)
        assert report.theorem_2 < 1e-9
        assert smallest.nv == mech.nv - start and len(smallest.macro) == start


def test_smallest_mini_over_a_batch_spans_everywhere():
    mech = models.macro_mini(wrist=False)
    q = np.stack([mech.neutral(), mech.random(1), mech.random(2)])
    smallest = lw.papers.smallest_mini(mech, q, lw.Task.position("tip"))
    assert smallest.split == "mini_yaw" and smallest.macro == ("yaw", "shoulder", "elbow", "wrist")
    q[1, mech.q_slice("mini_elbow")] = -1.2  # one of the states is stretched out
    assert lw.papers.smallest_mini(mech, q, lw.Task.position("tip")).split == "wrist"
    assert "the macro has yaw" in str(smallest)


def test_smallest_mini_of_what_the_robot_cannot_do_all_of():
    mech = models.planar_rpp()
    smallest = lw.papers.smallest_mini(mech, [0.1, 0.2, 0.3], lw.Task.position("end_effector"))
    assert (smallest.split, smallest.rank, smallest.rows) == ("slider_2", 2, 3)
    full = lw.papers.smallest_mini(models.puma560(), np.full(6, 0.4), lw.Task.pose("flange"))
    assert full.macro == () and "no hinge is left" in str(full)


# ---------------------------------------------------------------------------------- bad input


ARM = models.seven_dof_arm()
Q = np.full(7, 0.4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: lw.papers.macro_mini(ARM, "nose", "hand"),
            UnknownNameError,
            "no hinge or body called",
        ),
        (
            lambda: lw.papers.macro_mini(ARM, ["nose"], "hand"),
            UnknownNameError,
            "no hinge or body called",
        ),
        (
            lambda: lw.papers.macro_mini(ARM, "elbow_pitch", "nose"),
            UnknownNameError,
            "no node or body",
        ),
        (
            lambda: lw.papers.macro_mini(ARM, "elbow_pitch", "shoulder_yaw_link"),
            ModelError,
            "is not outboard of it: the path to it passes 'shoulder_yaw'",
        ),
        (
            lambda: lw.papers.macro_mini(ARM, "shoulder_yaw", "hand"),
            ModelError,
            "at least one degree",
        ),
        (lambda: lw.papers.macro_mini("panda", "a", "b"), ModelError, "mech is a str"),
        (
            lambda: lw.papers.reduced_inertia(ARM, Q, lw.Task.pose("hand"), split="elbow_pitch"),
            ModelError,
            "6 independent motions, but the mini from 'elbow_pitch' has 4 degrees of freedom",
        ),
        (
            lambda: lw.papers.reduced_inertia(
                ARM, Q, lw.Task.joints("shoulder_yaw"), split="elbow_pitch"
            ),
            ModelError,
            "is not outboard",
        ),
        (
            lambda: lw.papers.reduced_inertia(
                ARM, Q, lw.Task.position("hand"), split="elbow_pitch"
            ).along([1.0]),
            ShapeError,
            "over the rows position of hand",
        ),
        (
            lambda: lw.papers.smallest_mini(ARM, Q, lw.Task.joints("wrist_roll")),
            ModelError,
            "is about joints, which span themselves",
        ),
        (
            lambda: lw.papers.smallest_mini(ARM, Q, lw.Task.pose("hand"), tolerance=-1.0),
            ModelError,
            "tolerance is -1.0",
        ),
    ],
)
def test_bad_input_is_told(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_the_split_may_be_named_by_its_body():
    by_body = lw.papers.macro_mini(ARM, "elbow_pitch_link", "hand")
    assert by_body.split == "elbow_pitch" and by_body.carrier == "shoulder_roll_link"


def test_a_loop_between_the_two_is_refused():
    mech = models.dual_arm()
    hinge = next(b.hinge_name for b in mech.bodies if b.name.startswith("arm_1_elbow"))
    with pytest.raises(ModelError, match=r"take it away first: mech\.without"):
        lw.papers.macro_mini(mech, hinge, "arm_1_hand")
