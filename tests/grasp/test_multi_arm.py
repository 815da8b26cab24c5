"""Several arms that hold one object: all algorithms against a dense system, and each other.

The random systems run in the interpreter; one runs compiled too. Differences are relative to the
largest entry. Joint accelerations are sums of much larger free accelerations and corrections, which
is where digits go: 1e-9 is what the algorithms are asked for, 1e-11 is usual.
"""

from __future__ import annotations

import itertools
import warnings
from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import bias
from linkwise.errors import RankWarning, SingularHingeError, TroubleWarning, UnknownNameError
from linkwise.grasp.multi_arm.dynamics import METHODS
from linkwise.model.closure import coordinates
from linkwise.model.derived import replaced
from linkwise.spatial.array import Array
from tests.dense_kinematics import mass_matrix
from tests.grasp.random_systems import GRASPS, SLIDING, System, random_system
from tests.loops.dense_kkt import Motion, allowed_velocity, dense_motion, relative_jacobian

BOUND = 1e-9

SYSTEMS = {
    "rigid": {"arms": 2, "links": (6, 6)},
    "pins": {"arms": 2, "grasps": ("pin",), "swapped": True},
    "soft fingers": {"arms": 2, "grasps": ("universal",)},
    "points": {"arms": 3, "grasps": ("spherical",), "swapped": True},
    "mixed, the object moves inside": {
        "arms": 4,
        "links": (6, 6),
        "grasps": GRASPS,
        "articulated": True,
    },
    "sliding contacts": {"arms": 3, "grasps": SLIDING, "swapped": True, "armature": False},
    "sliders and balls in the arms": {
        "arms": 2,
        "grasps": ("locked", "spherical"),
        "hinges": ("pin", "prismatic", "universal", "pin"),
        "articulated": True,
    },
}

FORMS = [*((method, "rows") for method in METHODS), ("RCCFD1", "projection")]


def apart(result: Array, expected: Array, size: float | None = None) -> float:
    scale = float(np.abs(expected).max()) if size is None else size
    return float(np.abs(result - expected).max()) / scale


def compare(
    it: System, result: lw.papers.MultiArmMotion, dense: Motion, bound: float = BOUND
) -> None:
    assert apart(result.vdot, dense.vdot) < bound
    sign = lw.grasp.multi_arm_parts(it.mech).sign[:, None]
    assert apart(sign * result.contact_forces, dense.forces) < bound
    # Accelerations inside a contact are differences of those of its two nodes.
    size = float(np.abs(result.tip_accelerations).max())
    for name, expected in dense.W_dot.items():
        assert result.contact_accelerations[name].shape == expected.shape
        if len(expected):
            assert apart(result.contact_accelerations[name], expected, size) < bound


@pytest.mark.few(3)
@pytest.mark.parametrize("name", SYSTEMS)
def test_all_algorithms_against_a_dense_system(name):
    it = random_system(sum(map(ord, name)), **SYSTEMS[name])
    dense = dense_motion(it.mech, it.q, it.v, it.tau, it.theta)
    for method, contact in FORMS:
        motion = lw.papers.multi_arm_dynamics(
            it.mech, it.q, it.v, it.tau, method=method, contact=contact, target="numpy"
        )
        compare(it, motion, dense)
        assert motion.rank == motion.rows == sum(loop.rows for loop in it.mech.loops)
        assert not motion.singular_arms


def sweep_cases():
    """2 to 8 arms, 6 to 12 links: each kind of grasp, mixed ones, rigid and articulated objects."""
    kinds = [*((kind,) for kind in GRASPS), GRASPS, (*GRASPS[::-1], *SLIDING)]
    for i, (arms, grasps) in enumerate(itertools.product(range(2, 9), kinds)):
        options = {"articulated": i % 2 == 1, "swapped": i % 3 == 0, "armature": i % 4 != 3}
        links = ((6, 6), (7, 9), (10, 12), (6, 12))[i % 4]
        yield 1000 + i, {"arms": arms, "grasps": grasps, "links": links, **options}


@pytest.mark.few(0, 12)
@pytest.mark.slow
@pytest.mark.parametrize("seed, options", list(sweep_cases()))
def test_sweep(seed, options):
    it = random_system(seed, **options)
    dense = dense_motion(it.mech, it.q, it.v, it.tau, it.theta)
    for method, contact in [*FORMS, ("RCCFD2", "projection"), ("RCCFD3", "projection")]:
        motion = lw.papers.multi_arm_dynamics(
            it.mech, it.q, it.v, it.tau, method=method, contact=contact, target="numpy"
        )
        compare(it, motion, dense)


@pytest.mark.few(0, 3)
@pytest.mark.slow
@pytest.mark.parametrize("grasps", [("locked",), ("universal", "spherical"), GRASPS])
@pytest.mark.parametrize("arms", [2, 4])
def test_general_loop_algorithm_sweep(arms, grasps):
    it = random_system(arms + len(grasps), arms=arms, links=(6, 8), grasps=grasps, swapped=True)
    general = lw.forward_dynamics(it.mech, it.q, it.v, it.tau)
    for method in METHODS:
        motion = lw.papers.multi_arm_dynamics(
            it.mech, it.q, it.v, it.tau, method=method, target="numpy"
        )
        assert apart(motion.vdot, general) < BOUND


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_compiled(method):
    it = random_system(5, arms=3, grasps=GRASPS, articulated=True)
    dense = dense_motion(it.mech, it.q, it.v, it.tau, it.theta)
    compare(it, lw.papers.multi_arm_dynamics(it.mech, it.q, it.v, it.tau, method=method), dense)


@cache
def small() -> System:
    """Two short arms that hold an object at two points: little to compile."""
    return random_system(7, arms=2, links=(2, 2), grasps=("spherical",), swapped=True)


def test_compiled_batch_is_state_by_state():
    it = small()
    dense = dense_motion(it.mech, it.q, it.v, it.tau, it.theta)
    q, v = np.tile(it.q, (3, 1)), np.stack([it.v, 0.5 * it.v, -it.v])
    motion = lw.papers.multi_arm_dynamics(it.mech, q, v, it.tau)
    still = lw.papers.multi_arm_dynamics(it.mech, it.q, v[1], it.tau)
    assert motion.vdot.shape == (3, it.mech.nv)
    assert motion.contact_forces.shape == (3, 2, 6)
    assert motion.contact_accelerations["grasp_1"].shape == (3, 3)
    assert motion.object_acceleration.shape == (3, 6)
    assert apart(motion.vdot[0], dense.vdot) < BOUND
    # The batch runs other code, SIMD lanes: rounding differs, and grows like everything else.
    assert apart(motion.vdot[1], still.vdot) < 1e-11
    assert apart(motion.contact_forces[1], still.contact_forces) < 1e-11


@pytest.mark.parametrize("method", METHODS)
def test_no_state_at_all(method):
    mech = small().mech
    motion = lw.papers.multi_arm_dynamics(
        mech, np.zeros((0, mech.nq)), np.zeros((0, mech.nv)), np.zeros(mech.nv), method=method
    )
    assert motion.vdot.shape == (0, mech.nv) and motion.contact_forces.shape == (0, 2, 6)
    assert motion.rank.shape == (0,) and motion.contact_accelerations["grasp_2"].shape == (0, 3)


def test_general_loop_algorithm():
    it = small()
    motion = lw.papers.multi_arm_dynamics(it.mech, it.q, it.v, it.tau, target="numpy")
    general = lw.forward_dynamics(it.mech, it.q, it.v, it.tau)
    assert apart(motion.vdot, general) < BOUND
    # λ are the rows of S, three translations each; node b of the second loop is on the arm.
    lam = lw.loops.constraint_forces(it.mech, it.q, it.v, it.tau)
    rows = np.concatenate([motion.contact_forces[0, 3:], -motion.contact_forces[1, 3:]])
    assert apart(rows, lam) < BOUND


def test_motion_of_the_object_and_of_the_tips():
    """α(C) and α(0) are those of bodies under the accelerations given, and the object obeys Euler.

    M(C) α(C) + b(C) = A* f(0), here with gravity at the object's own frame.
    """
    it = random_system(8, arms=2, links=(3, 3), grasps=("spherical",))
    motion = lw.papers.multi_arm_dynamics(
        it.mech, it.q, it.v, it.tau, method="linear", target="numpy"
    )
    mech, tips = it.mech, list(it.tips)
    here = lw.node_acceleration(mech, it.q, it.v, [*tips, "object"], vdot=motion.vdot)
    here = here.reshape(-1, 6)
    assert apart(motion.tip_accelerations, here[:-1]) < 1e-12
    assert apart(motion.object_acceleration, here[-1]) < 1e-12
    columns = mech.v_slice("object")
    M, V = mech.inertias.matrix[mech.body_index["object"]], it.v[columns]
    gravity = mech.pose(it.q, "object").rot.T @ np.asarray(mech.gravity)
    lift = np.concatenate([np.zeros(3), gravity])
    momentum = M @ V
    b = np.concatenate(
        [
            np.cross(V[:3], momentum[:3]) + np.cross(V[3:], momentum[3:]),
            np.cross(V[:3], momentum[3:]),
        ]
    )
    total = it.tau[columns].copy()
    for i in range(len(tips)):
        pose = mech.node(f"grasp_{i + 1}_node").pose
        total += pose.shift_force(motion.contact_forces[i])
    assert apart(M @ (motion.object_acceleration - lift) + b, total) < BOUND


# ------------------------------------------------------------------------------- ranks and errors


def two_fingers(seed: int = 9) -> System:
    """An arm that holds a rigid object at two places of its hand, and another arm."""
    it = random_system(seed, arms=2, links=(6, 7))
    mech = it.mech
    hand = mech.node("arm_1_tip").body
    b_pose = mech.node("grasp_1_node").pose
    step = lw.Pose.rpy((0.4, -0.2, 0.1), (0.05, 0.1, -0.02))
    mech = mech.with_node("finger", hand, mech.node("arm_1_tip").pose @ step)
    mech = mech.with_node("finger_place", "object", b_pose @ step)
    loops = (*mech.loops, lw.Loop("finger", "finger", "finger_place", lw.hinges.Locked()))
    return System(
        replaced(mech, loops=loops), it.q, it.v, it.tau, {**it.theta, "finger": np.zeros(0)}, ()
    )


@pytest.mark.parametrize("method", METHODS)
def test_redundant_contacts(method):
    it = two_fingers()
    dense = dense_motion(it.mech, it.q, it.v, it.tau, it.theta)
    with pytest.warns(RankWarning) as message:
        motion = lw.papers.multi_arm_dynamics(
            it.mech, it.q, it.v, it.tau, method=method, target="numpy"
        )
    assert any("rank 12 of 18" in str(warning.message) for warning in message)
    assert motion.rank == 12 and motion.rows == 18
    assert apart(motion.vdot, dense.vdot) < BOUND
    # The forces of least norm among all that cause this motion: G* f = 𝓜 v̇ + C − τ.
    G, mech = relative_jacobian(it.mech, it.q), it.mech
    force = lw.compile(bias, mech, target="numpy", derive=False)(it.q, it.v)
    needed = mass_matrix(mech, it.q) @ dense.vdot + force - it.tau
    least = np.linalg.pinv(G.T, rcond=1e-10) @ needed
    assert apart(motion.contact_forces.ravel(), least) < 1e-8  # 𝓜 v̇ + C − τ loses a digit


def test_linear_tells_which_arm_is_singular():
    short = random_system(10, arms=3, links=(5, 5))
    dense = dense_motion(short.mech, short.q, short.v, short.tau, short.theta)
    with pytest.warns(RankWarning, match="'arm_1_link_1', 'arm_2_link_1', 'arm_3_link_1'"):
        motion = lw.papers.multi_arm_dynamics(
            short.mech, short.q, short.v, short.tau, method="linear", target="numpy"
        )
    assert motion.singular_arms == ("arm_1_link_1", "arm_2_link_1", "arm_3_link_1")
    assert apart(motion.vdot, dense.vdot) < BOUND
    # Three freedoms of a ball contact are within reach of five links: nothing to tell.
    ball = random_system(10, arms=3, links=(5, 5), grasps=("spherical",))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        motion = lw.papers.multi_arm_dynamics(
            ball.mech, ball.q, ball.v, ball.tau, method="linear", target="numpy"
        )
    dense = dense_motion(ball.mech, ball.q, ball.v, ball.tau, ball.theta)
    assert not motion.singular_arms and apart(motion.vdot, dense.vdot) < BOUND


def test_projection_where_omega_is_singular():
    """Short arms by points: Ω itself is singular, S Ω S* is not. (b.9) gives way to rows."""
    it = random_system(11, arms=2, links=(4, 4), grasps=("spherical",), armature=False)
    light = it.mech.loops[0]
    assert light.rows == 3
    motion = lw.papers.multi_arm_dynamics(
        it.mech, it.q, it.v, it.tau, contact="projection", target="numpy"
    )
    dense = dense_motion(it.mech, it.q, it.v, it.tau, it.theta)
    assert apart(motion.vdot, dense.vdot) < BOUND


@pytest.mark.parametrize("name", ["stewart", "delta"])
def test_parallel_robots_are_arms_that_hold_a_platform(name):
    mech = getattr(lw.models, name)()
    q, rng = mech.neutral(), np.random.default_rng(1)
    theta = {
        loop.name: coordinates(
            loop.hinge, mech.pose(q, loop.node_a).inverse() @ mech.pose(q, loop.node_b)
        )
        for loop in mech.loops
    }
    v = allowed_velocity(mech, q, theta, rng.standard_normal(mech.nv))
    tau = rng.standard_normal(mech.nv)
    dense = dense_motion(mech, q, v, tau, theta)
    methods = METHODS if name == "stewart" else METHODS[:-1]  # both rods of an arm turn with it
    for method in methods:
        motion = lw.papers.multi_arm_dynamics(mech, q, v, tau, method=method, target="numpy")
        assert apart(motion.vdot, dense.vdot) < 1e-12
        assert motion.rank == 18


def test_two_hands_of_one_torso():
    b = lw.Builder("torso")
    inertia = lw.SpatialInertia.solid_box(2.0, (0.2, 0.3, 0.4))
    b.body("torso", "world", lw.hinges.Pin((0.0, 0.0, 1.0)), inertia=inertia)
    axes = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    for side, y in (("left", 0.3), ("right", -0.3)):
        parent = "torso"
        for j, axis in enumerate(axes):
            b.body(
                f"{side}_{j}", parent, lw.hinges.Pin(axis), inboard=(0.2, y, 0.1), inertia=inertia
            )
            parent, y = f"{side}_{j}", 0.05
        b.node(f"{side}_hand", parent, (0.1, 0.0, 0.0))
    b.body("box", "world", lw.hinges.Free(), inertia=inertia)
    loose = b.build()
    q = loose.random(3)
    for side in ("left", "right"):
        at = loose.pose(q, "box").inverse() @ loose.pose(q, f"{side}_hand")
        b.node(f"{side}_grasp", "box", at)
        b.loop(side, f"{side}_hand", f"{side}_grasp", lw.hinges.Locked())
    mech = b.build()
    parts = lw.grasp.multi_arm_parts(mech)
    (arm,) = parts.arms
    assert parts.object == "box" and (arm.name, arm.contacts) == ("torso", (0, 1))
    assert sorted([*arm.columns, *parts.object_rows]) == list(range(mech.nv))
    tau, v = np.linspace(-1.0, 1.0, mech.nv), np.zeros(mech.nv)
    theta = {"left": np.zeros(0), "right": np.zeros(0)}
    dense = dense_motion(mech, q, v, tau, theta)
    for method in METHODS:
        motion = lw.papers.multi_arm_dynamics(mech, q, v, tau, method=method, target="numpy")
        assert apart(motion.vdot, dense.vdot) < BOUND


def test_what_is_not_a_multi_arm_system():
    dual = lw.models.dual_arm()
    q, v = dual.neutral(), np.zeros(dual.nv)
    with pytest.raises(lw.ModelError, match=r"no method called 'RCCFD4'.*RCCFD"):
        lw.papers.multi_arm_dynamics(dual, q, v, v, method="RCCFD4")
    with pytest.raises(lw.ModelError, match="contact is 'soft'"):
        lw.papers.multi_arm_dynamics(dual, q, v, v, contact="soft")
    with pytest.raises(lw.ModelError, match=r"no body called 'the_object'.*'object'"):
        lw.papers.multi_arm_dynamics(dual, q, v, v, body="the_object")
    with pytest.raises(lw.ModelError, match="'grasp_2' of 'dual_arm' has no end on the object"):
        lw.papers.multi_arm_dynamics(dual, q, v, v, body="arm_1_shoulder_yaw_link")
    with pytest.raises(lw.ShapeError, match="tau has"):
        lw.papers.multi_arm_dynamics(dual, q, v, v[:-1])
    with pytest.raises(lw.ShapeError, match="their batches differ"):
        lw.papers.multi_arm_dynamics(dual, np.tile(q, (2, 1)), np.zeros((3, dual.nv)), v)
    arm = lw.models.puma560()
    with pytest.raises(lw.ModelError, match="has no loops"):
        lw.papers.multi_arm_dynamics(arm, arm.neutral(), np.zeros(6), np.zeros(6))
    bar = lw.models.four_bar()
    with pytest.raises(lw.ModelError, match="forward_dynamics"):
        lw.papers.multi_arm_dynamics(bar, bar.neutral(), np.zeros(bar.nv), np.zeros(bar.nv))


def test_a_hinge_that_nothing_resists():
    """A point mass on the axis of a massless fork: an error by name, or a row of NaN in a batch.

    The other states of the batch are right, and nothing crashes over the NaN.
    """
    b = lw.Builder("fork")
    b.body("fork", "world", lw.hinges.Pin((0.0, 0.0, 1.0)))
    b.body(
        "rod",
        "fork",
        lw.hinges.Pin((1.0, 0.0, 0.0)),
        inertia=lw.SpatialInertia.point(2.0, (0, 0, 1)),
    )
    b.body("ball", "world", lw.hinges.Free(), inertia=lw.SpatialInertia.solid_sphere(1.0, 0.1))
    b.node("tip", "rod", (0.0, 0.0, 0.9))
    b.loop("grasp", "tip", "ball", lw.hinges.Spherical())
    mech = b.build()
    q = np.tile(mech.neutral(), (3, 1))
    q[:, mech.q_slice("rod")] = [[0.7], [0.0], [-0.4]]
    for k in range(3):
        q[k, mech.q_slice("ball")][4:] = mech.pose(q[k], "tip").p
    v, tau = np.zeros(mech.nv), np.ones(mech.nv)
    with pytest.raises(SingularHingeError, match="fork"):
        lw.papers.multi_arm_dynamics(mech, q[1], v, tau)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankWarning)  # two hinges cannot move a tip in three ways
        with pytest.warns(TroubleWarning):
            motion = lw.papers.multi_arm_dynamics(mech, q, v, tau)
        single = lw.papers.multi_arm_dynamics(mech, q[2], v, tau)
    assert np.isnan(motion.vdot[1]).any() and np.isfinite(motion.vdot[[0, 2]]).all()
    assert motion.rank[1] == 0
    assert apart(motion.vdot[2], single.vdot) < 1e-11


def test_a_motion_is_told_in_words():
    dual = lw.models.dual_arm()
    q, v = dual.neutral(), np.zeros(dual.nv)
    lines = str(lw.papers.multi_arm_dynamics(dual, q, v, v, target="numpy")).splitlines()
    assert lines[0].endswith("rank 12 of 12 rows")
    assert lines[1].startswith("grasp_1: moment (")
    assert len(lines) == 3
    batch = lw.papers.multi_arm_dynamics(dual, np.tile(q, (2, 1)), v, v, target="numpy")
    assert str(batch) == "arms and object, contacts grasp_1, grasp_2: 2 states"


def test_questions_about_what_is_held_that_mean_nothing():
    dual = lw.models.dual_arm()
    with pytest.raises(lw.ModelError, match="mech is a str, 'a string'"):
        lw.grasp.multi_arm_parts("a string")
    with pytest.raises(UnknownNameError, match=r"no body called \['a'\] in mechanism 'dual_arm'"):
        lw.grasp.multi_arm_parts(dual, body=["a"])
    with pytest.raises(UnknownNameError, match="no body called 3"):
        lw.grasp.multi_arm_parts(dual, body=3)
    with pytest.raises(lw.ModelError, match="has its loops built in"):
        lw.grasp.multi_arm_parts(lw.loops.embed(dual))


def test_one_bad_row_raises_for_the_batch():
    """As its docstring says: what is not finite has no result, not even for the other rows."""
    dual = lw.models.dual_arm()
    q, v = np.tile(dual.neutral(), (3, 1)), np.zeros((3, dual.nv))
    v[1, 0] = np.nan
    with pytest.raises(lw.ModelError, match=r"v is not finite at 'object\.omega_x'"):
        lw.papers.multi_arm_dynamics(dual, q, v, np.zeros(dual.nv))
