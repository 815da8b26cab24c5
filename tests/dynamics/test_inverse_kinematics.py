"""Inverse kinematics: its step against matrices, limits, singular poses, verdicts, bad input."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import J, f, mass
from linkwise.codegen.formula import Formula
from linkwise.dynamics.inverse_kinematics import reach
from linkwise.dynamics.inverse_kinematics.descent import (
    PULL,
    STEP,
    Search,
    weight_numbers,
    weightless,
)
from linkwise.dynamics.inverse_kinematics.goal import NodeGoal, goal_arrays
from linkwise.dynamics.inverse_kinematics.joints import couplings, joints, tightened
from linkwise.dynamics.inverse_kinematics.search import inverse_kinematics
from linkwise.dynamics.inverse_kinematics.solution import Solution
from linkwise.spatial import quaternion, rotation
from tests.cases import TREES, close, tree
from tests.dense_kinematics import node_jacobian

PUMA = lw.models.puma560()
ARM = lw.models.seven_dof_arm()
HUMANOID = lw.models.humanoid()


def pose(mech: lw.Mechanism, q: np.ndarray, node: str) -> lw.Pose:
    """Where a node is, by the plain recursion: nothing that is compiled."""
    return mech.pose(q, node)


def is_within(mech: lw.Mechanism, q: np.ndarray) -> bool:
    return bool(((q >= mech.lower) & (q <= mech.upper)).all())


# ----------------------------------------------------------------------------------- the step


def step(mech, nodes, q, force, payloads, noise, held):
    """A step with weights at nodes, for N and freedoms that are held."""
    inputs = [*(f"payload:{node}" for node in nodes), "armature", "locked"]
    kernel = lw.compile(STEP, weightless(mech), nodes=nodes, parameters=inputs)
    given = dict(zip(inputs, [*payloads, noise, held], strict=True))
    return kernel(q=q, f=force, tau=np.zeros(mech.nv), **given)


def _obeying(at: Any, rules: Any) -> Any:
    """A step that obeys couplings, with the position of one node as its goal."""
    make = Search(((True, False, False),), (), rules, ())
    force, noise = (at.q, at.read("f", 6))[1], at.read("noise", at.mech.nv)
    given: Any = SimpleNamespace(weights=np.array([[0, 0, 0, 1, 1, 1]]), goal=np.zeros((1, 18)))
    none = np.zeros(at.mech.nv)
    free = make.answer(at, given, at.q, force, none, noise, none)
    return make.obeyed(at, given, at.q, free, noise, none)


@pytest.mark.parametrize("name", TREES)
def test_the_recursive_step_is_the_dense_one(name):
    """(J* W J + N)⁻¹ J* W e by matrices, with some freedoms held; any hinges, two nodes."""
    mech = tree(name)
    nodes = ("tool", mech.bodies[1].name)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        q, e = mech.random(rng), rng.standard_normal(12)
        noise = 10.0 ** rng.uniform(-4, 0, mech.nv)
        held = rng.random(mech.nv) < 0.2
        W, payloads = np.zeros((12, 12)), []
        for i in range(2):
            mass, spread = rng.uniform(0.1, 3.0), rng.standard_normal((3, 3))
            theta = spread @ spread.T
            W[6 * i : 6 * i + 3, 6 * i : 6 * i + 3] = theta
            W[6 * i + 3 : 6 * i + 6, 6 * i + 3 : 6 * i + 6] = mass * np.eye(3)
            payloads.append(weight_numbers(mass, theta))
        result = step(mech, nodes, q, W @ e, payloads, noise, held.astype(float))
        J = np.concatenate([node_jacobian(mech, q, node) for node in nodes])
        A = (J.T @ W @ J + np.diag(noise))[np.ix_(~held, ~held)]
        expected = np.zeros(mech.nv)
        expected[~held] = np.linalg.solve(A, (J.T @ W @ e)[~held])
        # The normal equations have a condition of up to 1e6 or so: 1e-9 is what they can give.
        close(result, expected, 1e-9)


def test_hardly_damped_steps_keep_their_digits():
    """With N = 1e-10 at a singular pose, in which J* W J has rank 5 of 6."""
    q = np.zeros(6)
    payload = weight_numbers(1.0, np.eye(3))
    noise = np.full(6, 1e-10)
    J = node_jacobian(PUMA, q, "flange")
    assert np.linalg.matrix_rank(J) == 5
    e = J @ np.array([0.1, -0.2, 0.3, 0.1, 0.2, -0.1])  # what can be undone
    result = step(PUMA, ("flange",), q, e, [payload], noise, np.zeros(6))
    expected = np.linalg.lstsq(
        np.concatenate([J, np.diag(np.sqrt(noise))]), np.concatenate([e, np.zeros(6)]), rcond=None
    )[0]
    close(result, expected, 1e-4)  # six digits are lost to the square, six to 1e-10
    close(J @ result, e, 1e-8)


def test_the_step_is_derived_as_forward_dynamics_is():
    derivation = lw.derive(mass.inv @ (J.T @ f))
    assert str(derivation.result) == "(I - H ψ K)* D⁻¹ H ψ B f"
    assert {"inverse of the mass operator", "whitened propagation"} <= {
        s.identity for s in derivation.steps
    }


def test_weights_are_the_only_inertia_of_the_twin():
    twin = weightless(HUMANOID)
    assert twin.total_mass == 0.0 and twin.nq == HUMANOID.nq
    assert not twin.inertias.J.any()


def test_the_pull_is_the_slope_of_the_error():
    """J* W e is minus the derivative of ½ e* W e, far from the goal too."""
    mech = tree("every hinge, armature")
    rng = np.random.default_rng(4)
    q, there = mech.random(rng), pose(mech, mech.random(rng), "tool")

    def error(at: np.ndarray) -> np.ndarray:
        here = pose(mech, at, "tool")
        turn = rotation.log(here.rot.T @ there.rot)
        return np.concatenate([turn, here.rot.T @ (there.p - here.p)])

    weight = np.repeat([2.0, 0.7], 3)
    pull = lw.compile(PULL, weightless(mech), nodes=["tool"])(q, weight * error(q))
    h = 1e-6
    for i in range(mech.nv):
        ends = [mech.integrate(q, s * h * np.eye(mech.nv)[i]) for s in (1.0, -1.0)]
        up, down = (0.5 * (error(at) * weight * error(at)).sum() for at in ends)
        assert abs((up - down) / (2 * h) + pull[i]) < 1e-7 * (1 + abs(pull[i]))


# ------------------------------------------------------------------------------ what is asked


def test_pose_position_orientation_and_direction():
    there = pose(PUMA, PUMA.random(5), "flange")
    solution = inverse_kinematics(PUMA, {"flange": there})
    here = pose(PUMA, solution.q, "flange")
    assert solution.reached and np.linalg.norm(here.p - there.p) <= 1e-6
    assert np.linalg.norm(rotation.log(here.rot.T @ there.rot)) <= 1e-6
    assert solution.position_error["flange"] == pytest.approx(np.linalg.norm(here.p - there.p))

    solution = inverse_kinematics(PUMA, {"flange": there.p})
    assert solution.reached and not solution.orientation_error
    assert np.linalg.norm(pose(PUMA, solution.q, "flange").p - there.p) <= 1e-6

    for orientation in (there.rot, quaternion.from_matrix(there.rot)):
        solution = inverse_kinematics(PUMA, {"flange": NodeGoal(orientation=orientation)})
        here = pose(PUMA, solution.q, "flange")
        assert solution.reached and not solution.position_error
        assert np.linalg.norm(rotation.log(here.rot.T @ there.rot)) <= 1e-6

    goal = NodeGoal(position=there.p, direction=(0.0, 0.0, -2.0), axis=(1.0, 0.0, 0.0))
    solution = inverse_kinematics(PUMA, {"flange": goal})
    here = pose(PUMA, solution.q, "flange")
    assert solution.reached and np.linalg.norm(here.p - there.p) <= 1e-6
    assert np.linalg.norm(here.rot[:, 0] - [0.0, 0.0, -1.0]) <= 1e-6

    solution = inverse_kinematics(PUMA, {"flange": there.matrix})
    assert solution.reached


def test_a_direction_opposite_to_where_the_axis_points():
    there = -pose(ARM, ARM.neutral(), "hand").rot[:, 2]
    solution = inverse_kinematics(ARM, {"hand": NodeGoal(direction=there)}, ARM.neutral())
    assert solution.reached
    assert pose(ARM, solution.q, "hand").rot[:, 2] @ there == pytest.approx(1.0)


def test_several_nodes_on_a_floating_base():
    q = HUMANOID.random(11)
    nodes = ["left_hand", "right_hand"]
    request = {node: pose(HUMANOID, q, node) for node in nodes}
    solution = inverse_kinematics(HUMANOID, request)
    assert solution.reached and is_within(HUMANOID, solution.q)
    for node in nodes:
        here = pose(HUMANOID, solution.q, node)
        assert np.linalg.norm(here.p - request[node].p) <= 1e-6
        assert np.linalg.norm(rotation.log(here.rot.T @ request[node].rot)) <= 1e-6
    HUMANOID.check_q(solution.q)


def test_weights_decide_who_gives_way():
    """A slider pulled to +1 and to -1 with weights w: ends where w (x - 1) + (x + 1) = 0."""
    b = lw.Builder("slider")
    b.body("left", hinge=lw.hinges.Prismatic((1, 0, 0)))
    mech = b.build().with_node("right", "left", (0.5, 0.0, 0.0))
    for weight in (0.1, 1.0, 30.0):
        request = {
            "left": NodeGoal(position=(1.0, 0.0, 0.0), weight=weight),
            "right": NodeGoal(position=(-0.5, 0.0, 0.0)),
        }
        solution = inverse_kinematics(mech, request, restarts=0)
        assert not solution.reached
        close(solution.q, np.array([(weight - 1.0) / (weight + 1.0)]), 1e-6, scale=1.0)


def test_what_is_held_and_what_takes_no_part_stays():
    q0 = HUMANOID.random(2)
    base = HUMANOID.bodies[0].name
    there = pose(HUMANOID, q0, "left_hand").p + np.array([0.02, 0.01, -0.03])
    for seed in range(3):  # restarts too leave them alone
        solution = inverse_kinematics(HUMANOID, {"left_hand": there}, q0, hold=[base], seed=seed)
        assert solution.reached
        moved = np.flatnonzero(solution.q != q0)
        on_the_way = reach.path(HUMANOID, HUMANOID.node("left_hand").body)[1:]
        allowed = {
            i for k in on_the_way for i in range(HUMANOID.q_start[k], HUMANOID.q_start[k + 1])
        }
        assert len(moved) and set(moved.tolist()) <= allowed


def test_a_free_body_goes_far_at_once():
    """Shifts are not shortened: by its own length at a time it would need thousands of steps."""
    b = lw.Builder("drone")
    b.body("hull", hinge=lw.hinges.Free())
    mech = b.build().with_node("eye", "hull", (0.05, 0.0, 0.0))
    there = lw.Pose.rpy((0.3, -0.2, 2.0), (100.0, -50.0, 20.0))
    assert inverse_kinematics(mech, {"eye": there}, restarts=0, iterations=50).reached


# ----------------------------------------------------------------------------------- batches


def test_a_batch_is_its_targets_one_by_one():
    rng = np.random.default_rng(0)
    q = np.stack([ARM.random(rng) for _ in range(9)])
    there = lw.forward_kinematics(ARM, q, "hand")
    many = inverse_kinematics(ARM, {"hand": there}, restarts=0)
    assert many.q.shape == (9, 7) and many.reached.shape == (9,)
    for i, one in enumerate(many):
        alone = inverse_kinematics(ARM, {"hand": there[i]}, restarts=0)
        assert bool(one.reached) == bool(alone.reached)
        if alone.reached and "step" in alone.reason:
            close(one.q, alone.q, 1e-9)  # the same steps, in vector registers
            assert one.iterations == alone.iterations


def test_one_target_from_many_starts_and_none():
    starts = np.stack([ARM.random(seed) for seed in range(5)])
    solution = inverse_kinematics(ARM, {"hand": (0.3, 0.2, 0.7)}, starts)
    assert solution.q.shape == (5, 7) and solution.reached.all()
    assert len({tuple(np.round(q, 3)) for q in solution.q}) == 5
    empty = inverse_kinematics(ARM, {"hand": NodeGoal(position=np.zeros((0, 3)))})
    assert empty.q.shape == (0, 7) and len(empty) == 0


def test_solutions_index_and_print():
    goal = NodeGoal(position=[(0.3, 0.2, 0.7), (9.0, 0.0, 0.0)])
    solution = inverse_kinematics(ARM, {"hand": goal})
    assert repr(solution).startswith("<Solution: 1 of 2 reached; 1: out of reach by at least")
    assert isinstance(solution[1], Solution) and solution[-1].reason == solution[1].reason
    assert len(solution[0].history) == solution[0].iterations + 1
    with pytest.raises(IndexError):
        solution[2]
    with pytest.raises(IndexError):
        solution[0][0]
    with pytest.raises(TypeError):
        len(solution[0])


# ------------------------------------------------------------------------------------- limits


@pytest.mark.parametrize("mech", [PUMA, ARM, HUMANOID], ids=lambda m: m.name)
def test_nothing_ends_outside_of_its_limits(mech):
    """Targets in and out of reach."""
    rng = np.random.default_rng(3)
    node = {"puma560": "flange", "seven_dof_arm": "hand"}.get(mech.name, "left_hand")
    solution = inverse_kinematics(
        mech, {node: NodeGoal(position=rng.uniform(-1.5, 1.5, (40, 3)))}, restarts=2
    )
    assert solution.reached.any()
    assert ((solution.q >= mech.lower) & (solution.q <= mech.upper)).all()
    assert mech.name == "humanoid" or not solution.reached.all()


def test_blocked_by_a_limit():
    """A goal behind the limit of a single hinge; without limits it is reached."""
    b = lw.Builder("post")
    drive = lw.Drive(lower=-0.5, upper=0.5)
    b.body("beam", hinge=lw.hinges.Pin((0, 0, 1)), hinge_name="elbow", drive=drive)
    mech = b.build().with_node("tip", "beam", (1.0, 0.0, 0.0))
    request = {"tip": (np.cos(1.0), np.sin(1.0), 0.0)}
    solution = inverse_kinematics(mech, request)
    assert not solution.reached and solution.q[0] == 0.5
    assert solution.limits == ("elbow",) and solution.at_limit[0]
    assert solution.reason.startswith("blocked by the limit of 'elbow'")
    assert solution.position_error["tip"] == pytest.approx(2 * np.sin(0.25))  # a chord
    free = inverse_kinematics(mech, request, limits=False)
    assert free.reached and free.q[0] == pytest.approx(1.0)


def test_the_largest_turn_of_a_ball_joint():
    b = lw.Builder("neck")
    b.body("head", hinge=lw.hinges.Spherical(), hinge_name="neck", drive=lw.Drive(max_angle=0.6))
    mech = b.build()
    request = {"head": NodeGoal(orientation=rotation.exp(np.array([1.0, 0.0, 0.0])))}
    solution = inverse_kinematics(mech, request)
    assert not solution.reached and solution.limits == ("neck",)
    assert solution.orientation_error["head"] == pytest.approx(0.4, abs=1e-6)
    assert np.linalg.norm(quaternion.log(solution.q)) <= 0.6 + 1e-12
    within = {"head": NodeGoal(orientation=rotation.exp(np.array([0.3, -0.4, 0.2])))}
    assert inverse_kinematics(mech, within).reached


def test_the_limits_of_a_floating_base():
    b = lw.Builder("crane")
    box = (*[-np.inf] * 4, -1.0, -1.0, -1.0)
    upper = tuple(-x for x in box)
    b.body("cabin", hinge=lw.hinges.Free(), drive=lw.Drive(lower=box, upper=upper))
    mech = b.build()
    solution = inverse_kinematics(mech, {"cabin": (2.0, 0.5, 0.3)})
    assert not solution.reached
    close(solution.q[4:], np.array([1.0, 0.5, 0.3]), 1e-5)
    assert inverse_kinematics(mech, {"cabin": (0.9, 0.5, 0.3)}).reached


# ----------------------------------------------------------------------------- singular poses


def test_from_a_singular_pose():
    """All zeros: two axes of the wrist are one line. And a stretched arm that has to come back."""
    there = pose(PUMA, PUMA.random(9), "flange")
    assert inverse_kinematics(PUMA, {"flange": there}, np.zeros(6)).reached
    stretched = pose(ARM, ARM.neutral(), "hand").p
    solution = inverse_kinematics(ARM, {"hand": stretched - [0, 0, 0.3]}, ARM.neutral(), restarts=0)
    assert solution.reached  # though no joint is pulled at first
    assert np.linalg.norm(pose(ARM, solution.q, "hand").p - stretched + [0, 0, 0.3]) <= 1e-6


def test_to_full_stretch():
    """The rank is lost at the goal: the error falls by constant factors only."""
    stretched = pose(ARM, ARM.neutral(), "hand")
    for seed in range(4):
        solution = inverse_kinematics(ARM, {"hand": stretched}, ARM.random(seed))
        assert solution.reached, solution.reason


@pytest.mark.shipped
@pytest.mark.few(2)
@pytest.mark.parametrize("name", TREES)
def test_the_error_never_grows(name):
    mech = tree(name)
    there = mech.random(8)
    request = {node: pose(mech, there, node) for node in ("tool", mech.bodies[1].name)}
    solution = inverse_kinematics(mech, request)
    assert (np.diff(solution.history) <= 0.0).all() and np.isfinite(solution.history).all()
    assert len(solution.history) == solution.iterations + 1


# ------------------------------------------------------------------------------- out of reach


def test_out_of_reach_is_proved_and_the_nearest_point_found():
    top = pose(ARM, ARM.neutral(), "hand").p  # straight up, at full stretch
    solution = inverse_kinematics(ARM, {"hand": top + np.array([0.0, 0.0, 0.31])})
    assert not solution.reached and solution.position_error["hand"] == pytest.approx(0.31, abs=1e-6)
    assert solution.reason.startswith(
        "out of reach by at least 0.31 m: 'hand' can be at most 1.05 m"
    )
    assert "'shoulder_yaw'" in solution.reason


def test_hands_too_far_apart():
    request = {"left_hand": (0.0, 3.0, 1.0), "right_hand": (0.0, -3.0, 1.0)}
    solution = inverse_kinematics(HUMANOID, request, restarts=2)
    assert "can be at most" in solution.reason and "the goals are 6 m apart" in solution.reason


def test_too_near_to_be_reached():
    """Links of 1 m and 0.4 m: nothing within 0.6 m of the first hinge."""
    b = lw.Builder("crank")
    b.body("long", hinge=lw.hinges.Pin((0, 0, 1)))
    b.body("short", parent="long", hinge=lw.hinges.Pin((0, 0, 1)), inboard=(1.0, 0.0, 0.0))
    mech = b.build().with_node("tip", "short", (0.4, 0.0, 0.0))
    solution = inverse_kinematics(mech, {"tip": (0.25, 0.0, 0.0)})
    assert solution.reason.startswith(
        "out of reach by at least 0.35 m: 'tip' can be no nearer than"
    )
    assert solution.position_error["tip"] == pytest.approx(0.35, abs=1e-6)


@pytest.mark.few(4)
@pytest.mark.parametrize("seed", range(12))
def test_no_configuration_breaks_the_bounds(seed):
    """What is proved: distances of random configurations are within the spans, for every hinge."""
    mech = lw.models.random_tree(7, seed)
    names = [body.name for body in mech.bodies]
    for k in range(40):
        q = mech.random(1000 * seed + k)
        poses = mech.poses(q).p
        for i, a in enumerate(names):
            span = reach.from_ground(mech, a, limits=True)
            if span is not None:
                far = np.linalg.norm(poses[i] - span.start)
                assert span.least - 1e-9 <= far <= span.most + 1e-9
            for j in range(i):
                span = reach.between(mech, a, names[j], limits=True)
                far = np.linalg.norm(poses[i] - poses[j])
                assert span.least - 1e-9 <= far <= span.most + 1e-9


def test_a_held_base_is_no_way_to_come_nearer():
    """With its base free nothing is out of reach; held it is the first link of a fixed robot."""
    q0 = HUMANOID.random(3)
    base = HUMANOID.bodies[0].hinge_name
    goal = {"left_hand": np.array([3.0, 0.0, 1.0])}
    assert inverse_kinematics(HUMANOID, goal, q0, restarts=0).reached
    solution = inverse_kinematics(HUMANOID, goal, q0, hold=[base], restarts=0)
    assert solution.reason.startswith("out of reach by at least"), solution.reason
    first = HUMANOID.bodies[reach.path(HUMANOID, HUMANOID.node("left_hand").body)[1]]
    assert f"from the hinge {first.hinge_name!r}" in solution.reason
    proved = float(solution.reason.split("at least ")[1].split(" m")[0])
    assert proved <= solution.position_error["left_hand"] + 1e-3  # three digits are printed


def test_each_row_of_a_batch_is_held_where_it_is():
    """The slide is held: from 0.0 the goal is beyond the arm, from 1.5 it is not."""
    b = lw.Builder("gantry")
    b.body("car", hinge=lw.hinges.Prismatic((1, 0, 0)))
    b.body("arm", parent="car", hinge=lw.hinges.Pin((0, 0, 1)))
    mech = b.build().with_node("tip", "arm", (1.0, 0.0, 0.0))
    q0 = np.array([[0.0, 0.3], [1.5, 0.3], [0.2, -0.4]])
    goal = NodeGoal(position=[(2.0, 0.0, 0.0), (2.5, 0.0, 0.0), (2.0, 0.0, 0.0)])
    solution = inverse_kinematics(mech, {"tip": goal}, q0, hold=["car"])
    assert solution.reached.tolist() == [False, True, False]
    np.testing.assert_array_equal(solution.q[:, 0], q0[:, 0])
    text = "'tip' can be at most 1 m from the hinge 'arm', and the goal is {} m away"
    for i, far in ((0, "2"), (2, "1.8")):
        assert text.format(far) in solution.reasons[i], solution.reasons[i]


@pytest.mark.parametrize("seed", range(8))
def test_no_configuration_breaks_the_bounds_with_hinges_held(seed):
    mech = lw.models.random_tree(7, seed)
    rng = np.random.default_rng(seed)
    held = [k for k in range(7) if mech.bodies[k].hinge.nv and rng.random() < 0.5]
    at = mech.random(seed)
    stiff = reach.with_held(mech, held, at)
    names = [body.name for body in mech.bodies]
    for _ in range(20):
        q = mech.random(rng)
        for k in held:
            part = slice(*mech.q_start[k : k + 2])
            q[part] = at[part]
        poses = mech.poses(q).p
        for i, a in enumerate(names):
            span, loose = (reach.from_ground(m, a, limits=True) for m in (stiff, mech))
            if span is not None:
                far = np.linalg.norm(poses[i] - span.start)
                assert span.least - 1e-9 <= far <= span.most + 1e-9
                assert span.most <= loose.most + 1e-9  # holding never adds reach
            for j in range(i):
                span = reach.between(stiff, a, names[j], limits=True)
                far = np.linalg.norm(poses[i] - poses[j])
                assert span.least - 1e-9 <= far <= span.most + 1e-9


# ---------------------------------------------------------------------------------- couplings


def coupled(coefficients: tuple[float, ...] = (0.5,)) -> lw.Mechanism:
    """A finger whose second joint follows the first, and whose limits are the follower's."""
    b = lw.Builder("finger")
    b.body("palm", hinge=lw.hinges.Pin((0, 0, 1)))
    b.body("first", parent="palm", hinge=lw.hinges.Pin((0, 1, 0)), hinge_name="knuckle")
    drive = lw.Drive(lower=-0.4, upper=0.4)
    b.body(
        *("second",),
        parent="first",
        hinge=lw.hinges.Pin((0, 1, 0)),
        hinge_name="middle",
        inboard=(0.05, 0.0, 0.0),
        drive=drive,
    )
    b.couple("tendon", "middle", {"knuckle": coefficients})
    return b.build().with_node("tip", "second", (0.04, 0.0, 0.0))


def test_a_held_follower_holds_what_it_follows():
    """Also when the search begins elsewhere: a new start must not move it."""
    mech = coupled()
    q = mech.couple(np.array([1.0, 0.5, 0.0]))
    for name in ("knuckle", "middle"):
        solution = inverse_kinematics(mech, {"tip": pose(mech, q, "tip").p}, hold=[name])
        assert not solution.reached
        np.testing.assert_array_equal(solution.q[1:], 0.0)


@pytest.mark.parametrize("coefficients", [(0.5,), (0.4, 0.1)])
def test_followers_follow(coefficients):
    mech = coupled(coefficients)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        q = mech.couple(np.array([rng.uniform(-3, 3), rng.uniform(-0.6, 0.6), 0.0]))
        solution = inverse_kinematics(mech, {"tip": pose(mech, q, "tip").p})
        assert solution.reached, solution.reason
        close(mech.couple(solution.q), solution.q, 1e-12)
        assert is_within(mech, solution.q)
    far = mech.couple(np.array([0.0, 0.8, 0.0])) * [1.0, 2.0, 2.0]
    solution = inverse_kinematics(mech, {"tip": pose(mech, far, "tip").p})
    assert not solution.reached and is_within(mech, solution.q)


def test_a_coupled_step_is_the_dense_one():
    """δ = C (C* (J* W J + N) C)⁻¹ C* J* W e, where C takes independent to all freedoms."""
    mech = coupled()
    q, e = mech.couple(np.array([0.3, 0.4, 0.0])), np.array([0.0, 0, 0, 0.01, 0.02, -0.01])
    noise = np.array([0.02, 0.01, 0.03])
    rules = couplings(mech, range(3), limits=True)
    (rule,) = rules.rows
    names = (rule.dependent, *(name for name, _ in rule.terms))
    places = tuple((mech.coordinate(name), rules.velocity[name]) for name in names)
    kernel = lw.compile(Formula(_obeying, (((rule, places),),)), weightless(mech), nodes=["tip"])
    result = kernel(q, e, noise)
    rows, lift = node_jacobian(mech, q, "tip")[3:], np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.5]])
    A = lift.T @ (rows.T @ rows + np.diag(noise)) @ lift
    close(result, lift @ np.linalg.solve(A, lift.T @ rows.T @ e[3:]), 1e-11)


# ---------------------------------------------------------------------------------- bad input


BAD = {
    "unknown node": (lambda: ({"hnd": (0, 0, 1)}, {}), "no node or body called 'hnd'.*'hand'"),
    "no goals": (lambda: ({}, {}), "goals must be a dictionary"),
    "shape": (lambda: ({"hand": np.zeros(5)}, {}), r"shape \(5,\); it can be a Pose"),
    "3 x 3": (lambda: ({"hand": np.eye(3)}, {}), "use lw.dynamics.NodeGoal"),
    "NaN": (lambda: ({"hand": (0, np.nan, 1)}, {}), "position of NodeGoal must not be NaN"),
    "zero quaternion": (
        lambda: ({"hand": NodeGoal(orientation=np.zeros(4))}, {}),
        "quaternion of length 0; it must be 1",
    ),
    "not a rotation": (
        lambda: ({"hand": NodeGoal(orientation=2 * np.eye(3))}, {}),
        "not a rotation matrix",
    ),
    "nothing asked": (lambda: ({"hand": NodeGoal()}, {}), "is empty"),
    "too much asked": (
        lambda: ({"hand": NodeGoal(orientation=np.eye(3), direction=(0, 0, 1))}, {}),
        "an orientation and a direction",
    ),
    "zero direction": (
        lambda: ({"hand": NodeGoal(direction=(0, 0, 0))}, {}),
        "zero vector",
    ),
    "zero axis": (
        lambda: ({"hand": NodeGoal(direction=(0, 0, 1), axis=(0, 0, 0))}, {}),
        "zero vector",
    ),
    "weight": (lambda: ({"hand": NodeGoal(position=(0, 0, 1), weight=0)}, {}), "positive number"),
    "batches": (
        lambda: (
            {
                "hand": NodeGoal(position=np.zeros((3, 3))),
                ARM.bodies[2].name: NodeGoal(position=np.zeros((4, 3))),
            },
            {},
        ),
        "batches of 3 and 4",
    ),
    "q0 shape": (lambda: ({"hand": (0, 0, 1)}, {"q0": np.zeros(6)}), r"q has shape \(6,\)"),
    "q0 batch": (
        lambda: ({"hand": NodeGoal(position=np.zeros((3, 3)))}, {"q0": np.zeros((2, 7))}),
        r"q0 has shape \(2, 7\); it must be \(7,\) or \(3, 7\)",
    ),
    "q0 NaN": (lambda: ({"hand": (0, 0, 1)}, {"q0": np.full(7, np.nan)}), "not finite"),
    "q0 outside": (
        lambda: ({"hand": (0, 0, 1)}, {"q0": np.full(7, 2.5)}),
        "outside of the limits of '.*' by 0.41: they are -2.09 to 2.09.*limits=False",
    ),
    "absurd": (lambda: ({"hand": (1e300, 0, 0)}, {}), "1e.300 m away.*at most 1e.09 m"),
    "text": (lambda: ({"hand": "up"}, {}), "must be made of real numbers"),
    "a list": (lambda: ([(0, 0, 1)], {}), "goals must be a dictionary"),
    "all held": (
        lambda: ({"hand": (0, 0, 1)}, {"hold": [b.name for b in ARM.bodies]}),
        "hold leaves no hinge that moves 'hand'",
    ),
    "seed": (lambda: ({"hand": (0, 0, 1)}, {"seed": -1}), "seed is -1; it must be a whole number"),
    "hold": (lambda: ({"hand": (0, 0, 1)}, {"hold": ["nobody"]}), "no hinge or body called"),
    "tolerance": (lambda: ({"hand": (0, 0, 1)}, {"tolerance": -1.0}), "tolerance is -1.0"),
    "iterations": (lambda: ({"hand": (0, 0, 1)}, {"iterations": 0}), "iterations is 0"),
    "restarts": (lambda: ({"hand": (0, 0, 1)}, {"restarts": 1.5}), "restarts is 1.5"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused(case):
    make, message = BAD[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(lw.LinkwiseError, match=message):
            goals, options = make()  # some goals cannot even be made
            inverse_kinematics(ARM, goals, **options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NodeGoal(), "the goal is empty"),
        (lambda: NodeGoal(direction=np.zeros(3)), "direction of the goal is the zero vector"),
        (lambda: NodeGoal(direction=[(0, 0, 1), (0, 0, 0)]), "in row 1 of 2 is the zero vector"),
        (lambda: NodeGoal(direction=(0, 0, 1), axis=(0, 0, 0)), "the axis of the goal is the zero"),
        (lambda: NodeGoal(orientation=np.eye(3), direction=(0, 0, 1)), "leave one out"),
    ],
)
def test_targets_that_make_no_sense_cannot_be_made(make, message):
    with pytest.raises(lw.LinkwiseError, match=message):
        make()


def _spoilt(value: np.ndarray, rows: list[int], bad: object) -> np.ndarray:
    batch = np.repeat(value[None], 50, axis=0)
    batch[rows] = bad
    return batch


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"position": _spoilt(np.ones(3), [7], np.nan)}, r"position of NodeGoal .*entry \[7, 0\]"),
        ({"position": _spoilt(np.ones(3), [3, 9], 1e12)}, r"in row 3 of 50 \(and in 1 more\) is"),
        ({"orientation": _spoilt(np.eye(3), [4], 0.5)}, r"in row 4 of 50 is not a rotation"),
        ({"orientation": _spoilt(np.eye(3), [5], np.inf)}, r"in row 5 of 50 is not finite"),
        ({"orientation": _spoilt(np.eye(4)[0], [6], 1.0)}, r"row 6 of 50 is a quat.* length 2;"),
    ],
)
def test_a_bad_row_of_a_batch_is_named(parts, message):
    with pytest.raises(lw.LinkwiseError, match=message) as info:
        inverse_kinematics(ARM, {"hand": NodeGoal(**parts)})
    assert len(str(info.value)) < 200


def test_other_mechanisms_refuse_too():
    with pytest.raises(lw.LinkwiseError, match="no hinge moves 'post': it is fixed to the ground"):
        inverse_kinematics(tree("floating"), {"post": (0.0, 0.0, 1.0)})
    q = HUMANOID.neutral()
    q[:4] = 0.5, 0.5, 0.5, 0.6
    with pytest.raises(lw.LinkwiseError, match="off the manifold"):
        inverse_kinematics(HUMANOID, {"left_hand": (0.0, 0.0, 1.0)}, q)
    neck = lw.Builder("neck")
    neck.body("head", hinge=lw.hinges.Spherical(), hinge_name="neck", drive=lw.Drive(max_angle=0.6))
    turned = quaternion.exp(np.array([0.0, 0.0, 1.0]))
    with pytest.raises(lw.LinkwiseError, match=r"'neck'.*turned by 1 rad, and 0.6 is allowed"):
        inverse_kinematics(neck.build(), {"head": NodeGoal(direction=(0, 0, 1))}, turned)


def test_limits_of_a_follower_are_limits_of_what_it_follows():
    """right = 0.3 − 2 left in [−0.1, 0.9] is left in [−0.3, 0.2]; its own limit, 0.1, is nearer."""
    b = lw.Builder("hand").body("left", "world", lw.hinges.Prismatic(), hinge_name="left")
    b.body("right", "world", lw.hinges.Prismatic(), hinge_name="right")
    mech = b.couple("mimic", "right", {"left": -2.0}, offset=0.3).build()
    mech = mech.with_drive("right", lower=-0.1, upper=0.9)
    taken = couplings(mech, (0, 1), limits=True)
    lower, upper = tightened(taken, mech.lower, mech.upper)
    np.testing.assert_allclose((lower[0], upper[0]), (-0.3, 0.2), rtol=1e-15)
    assert (lower[1], upper[1]) == (-np.inf, np.inf)
    nearer = mech.with_drive("left", lower=-1.0, upper=0.1)
    lower, upper = tightened(taken, nearer.lower, nearer.upper)
    np.testing.assert_allclose((lower[0], upper[0]), (-0.3, 0.1), rtol=1e-15)


def test_shifts_are_measured_by_a_length():
    """A shift by the length counts as much as a turn by a radian."""
    b = lw.Builder("crane").body("boom", "world", lw.hinges.Pin(), hinge_name="boom")
    mech = b.body("cart", "boom", lw.hinges.Prismatic(), hinge_name="cart").build()
    result = joints(mech, (), limits=True, length=0.25)
    np.testing.assert_array_equal(result.per_turn * (1.0, 0.25), (1.0, 1.0))


def test_a_posture_is_taken_as_far_as_the_targets_leave_it():
    """What is left of the way to it is no motion that leaves the hand where it is."""
    rng = np.random.default_rng(12)
    for seed in range(4):
        there, rest = pose(ARM, ARM.random(seed), "hand"), ARM.random(seed + 50)
        plain = inverse_kinematics(ARM, {"hand": there}, limits=False)
        solution = inverse_kinematics(ARM, {"hand": there}, posture=rest, limits=False)
        assert plain.reached and solution.reached
        assert max(solution.position_error["hand"], solution.orientation_error["hand"]) <= 1e-6
        way = rest - solution.q
        free = np.linalg.svd(node_jacobian(ARM, solution.q, "hand"))[2][-1]
        assert abs(free @ way) < 0.02 * np.linalg.norm(way)
        assert np.linalg.norm(way) < np.linalg.norm(rest - plain.q) + 1e-9
    batch = [pose(ARM, ARM.random(rng), "hand").p for _ in range(5)]
    solution = inverse_kinematics(ARM, {"hand": NodeGoal(position=np.array(batch))}, posture=rest)
    assert solution.reached.all() and is_within(ARM, solution.q)


def test_poses_are_the_goals_that_their_parts_are():
    """Poses alone have a short way to the same arrays."""
    mech = lw.models.humanoid()
    names, q = [mech.bodies[k].name for k in (4, 9)], mech.random(seed=4)
    poses = {name: mech.pose(q, name) for name in names}
    parts = {n: lw.dynamics.NodeGoal(position=x.p, orientation=x.rot) for n, x in poses.items()}
    short, long = goal_arrays(poses, 0.3), goal_arrays(parts, 0.3)
    for name in ("p", "rot", "heading", "axis", "placed", "turned", "pointed", "weights"):
        np.testing.assert_array_equal(getattr(short, name), getattr(long, name))
    assert short.batch is long.batch is None and np.abs(short.p[0, 0] - short.p[0, 1]).max() > 0.1
    assert sorted(set(short.weights[0])) == pytest.approx([1.0, 1.0 / 0.09])


def test_reasons_and_searches_are_like_tuples():
    q = np.stack([PUMA.random(np.random.default_rng(seed)) for seed in range(8)])
    ends = lw.inverse_kinematics(PUMA, {"link_6": lw.forward_kinematics(PUMA, q, "link_6")})
    every = tuple(ends.reasons)
    assert ends.reasons[1:3] == every[1:3] and ends.reasons[-1] == every[-1]
    assert ends.reasons == every and ends.reasons != every[:-1] and ends.reasons != list(every)
    assert repr(ends.reasons) == "<8, made when read>"
    assert repr(ends[2].reasons) == repr(every[2:3])
    assert [len(search()) for search in ends.searches[:2]] == (ends.iterations[:2] + 1).tolist()
