"""How often inverse kinematics reaches goals that can be reached: those of random positions.

Failures are counted, not only tolerated: each bound is what was measured on some thousand goals
(`docs/how_to/solve_inverse_kinematics.md`), less what chance allows on as many as are tried here.
"""

from __future__ import annotations

from importlib import metadata

import numpy as np
import pytest

import linkwise as lw
from linkwise.dynamics.inverse_kinematics.goal import NodeGoal
from linkwise.dynamics.inverse_kinematics.solution import Solution
from tests.algebra.trees import MOVING


def panda() -> lw.Mechanism:
    """The arm of example-robot-data, with its fingers and their coupling."""
    try:
        files = metadata.files("example-robot-data") or []
    except metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    return lw.load(str(next(f.locate() for f in files if f.name == "panda.urdf")))


ROBOTS = {
    "puma560": (lw.models.puma560, ("flange",)),
    "seven_dof_arm": (lw.models.seven_dof_arm, ("hand",)),
    "panda": (panda, ("panda_hand",)),
    "humanoid": (lw.models.humanoid, ("left_hand", "right_hand")),
}


def solved(
    mech: lw.Mechanism, nodes: tuple[str, ...], count: int, **options: object
) -> tuple[Solution, np.ndarray]:
    """Solutions for the poses of random positions, from where the search begins by itself."""
    rng = np.random.default_rng(7)
    q = np.stack([mech.random(rng) for _ in range(count)])
    poses = lw.forward_kinematics(mech, q, nodes)
    request = {node: poses[:, i] for i, node in enumerate(nodes)}
    return lw.inverse_kinematics(mech, request, **options), q


def check(mech: lw.Mechanism, nodes: tuple[str, ...], result: Solution, q: np.ndarray) -> None:
    """What is said to be reached is reached, by the plain recursion; limits and couplings hold."""
    for i in np.flatnonzero(result.reached):
        for node in nodes:
            here, there = mech.pose(result.q[i], node), mech.pose(q[i], node)
            assert np.linalg.norm(here.p - there.p) <= 1.001e-6
            assert np.abs(here.rot - there.rot).max() <= 1.001e-6  # at most the angle between them
    assert ((result.q >= mech.lower) & (result.q <= mech.upper)).all()
    mech.check_q(result.q)
    if mech.couplings:
        assert np.abs(mech.couple(result.q) - result.q).max() < 1e-12


@pytest.mark.parametrize("name", ROBOTS)
def test_poses_of_random_positions_are_reached(name):
    make, nodes = ROBOTS[name]
    mech = make()
    result, q = solved(mech, nodes, 40)
    check(mech, nodes, result, q)
    assert result.reached.sum() >= 39, result.reason
    assert result.starts.mean() < 6  # most need no restart


@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
def test_a_thousand_of_them(name):
    make, nodes = ROBOTS[name]
    mech = make()
    result, q = solved(mech, nodes, 1000)
    check(mech, nodes, result, q)
    assert result.reached.sum() >= 990


TREE_HINGES = (*MOVING, "free")


def on_a_tree(seed: int) -> int:
    """How many of 20 are reached: two nodes at once, on branches of their own where there are."""
    mech = lw.models.random_tree(7, seed, hinges=TREE_HINGES, floating=seed % 2 == 0)
    leaves = [k for k in range(mech.n_bodies) if not mech.children[k]]
    nodes = tuple(mech.bodies[k].name for k in (leaves[-2:] if len(leaves) > 1 else [3, 6]))
    result, q = solved(mech, nodes, 20)
    check(mech, nodes, result, q)
    return int(result.reached.sum())


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(4))
def test_random_trees_of_every_hinge(seed):
    assert on_a_tree(seed) >= 19


@pytest.mark.nightly
@pytest.mark.slow
def test_many_random_trees():
    """On tree 17 the rank is 11 of 12 everywhere: what is near in space may be far on the tree."""
    assert sum(on_a_tree(seed) for seed in range(4, 30)) >= 0.99 * 20 * 26


def test_without_limits_one_start_is_enough():
    """The damped steps themselves hardly fail: it is limits that stop them."""
    mech = lw.models.puma560()
    result, _ = solved(mech, ("flange",), 100, limits=False, restarts=0)
    assert result.reached.sum() >= 99


def test_a_rolling_ball_rolls():
    """It goes where rolling takes it: positions are reached, and the contact never slips."""
    b = lw.Builder("ball")
    b.body("ball", hinge=lw.hinges.RollingBall(0.1))
    mech = b.build()
    solution = lw.inverse_kinematics(mech, {"ball": (0.3, -0.2, 0.1)}, mech.neutral(), restarts=0)
    assert solution.reached
    np.testing.assert_allclose(solution.q[4:], [0.3, -0.2], atol=1e-6)
    up = lw.inverse_kinematics(mech, {"ball": (0.3, -0.2, 0.5)}, restarts=0)
    assert not up.reached and up.position_error["ball"] == pytest.approx(0.4)


@pytest.mark.prove
def test_long_chains():
    """Loops over bodies instead of straight code: 300 links, a step costs what it costs for one."""
    mech = lw.models.chain(300)
    tip = mech.bodies[-1].name
    q = np.full(300, 0.01)
    request = {tip: NodeGoal(position=mech.pose(q, tip).p)}
    solution = lw.inverse_kinematics(mech, request, np.full(300, 0.005))
    assert solution.reached
    assert np.linalg.norm(mech.pose(solution.q, tip).p - mech.pose(q, tip).p) <= 1.001e-6
