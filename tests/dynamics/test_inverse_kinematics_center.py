"""The centre of mass as a goal of inverse kinematics, beside dense steps and plain sums."""

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.dynamics import NodeGoal
from linkwise.dynamics.inverse_kinematics import reach
from linkwise.dynamics.inverse_kinematics.descent import FIRST_DAMPING
from linkwise.dynamics.inverse_kinematics.search import RADIAN
from linkwise.errors import ModelError, ShapeError

ARM = lw.models.seven_dof_arm()
START = np.array([0.0, 0.5, 0.0, 1.2, 0.0, 0.6, 0.0])


def plain_center(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """Σ m_k (p_k + R_k c_k) / Σ m_k, of bodies and of what is welded to nodes."""
    total, moment = 0.0, np.zeros(3)
    for part in (*mech.bodies, *mech.nodes):
        if part.inertia is not None and part.inertia.mass:
            X = lw.forward_kinematics(mech, q, part.name)
            moment += part.inertia.mass * (X.p + X.rot @ part.inertia.com)
            total += part.inertia.mass
    return moment / total


def test_a_humanoid_stands_on_both_feet_with_its_mass_over_one() -> None:
    walker = lw.models.humanoid()
    stand = walker.neutral()
    soles = {x: lw.forward_kinematics(walker, stand, x) for x in ("left_sole", "right_sole")}
    over = soles["left_sole"].p
    solution = lw.inverse_kinematics(
        walker, soles, stand, center_of_mass=over, center_along="xy", tolerance=1e-9
    )
    assert solution.reached
    end = plain_center(walker, solution.q)
    assert np.abs(plain_center(walker, stand) - over)[:2].max() > 0.05
    np.testing.assert_allclose(end[:2], over[:2], atol=2e-9)
    assert abs(end[2] - over[2]) > 0.1  # free along z
    for name, X in soles.items():
        np.testing.assert_allclose(
            lw.forward_kinematics(walker, solution.q, name).p, X.p, atol=2e-9
        )
    assert set(solution.position_error) == {*soles, "centre of mass"}


@pytest.mark.parametrize("along", ["xyz", "xz", "y"])
@pytest.mark.parametrize("nodes", [True, False])
def test_a_step_is_that_of_dense_least_squares(along: str, nodes: bool) -> None:
    rows = ["xyz".index(x) for x in along]
    hand = lw.forward_kinematics(ARM, START, "hand")
    goals: Any = {"hand": NodeGoal(position=hand.p + np.array([0.02, -0.03, 0.01]))}
    goals = goals if nodes else {}
    c = plain_center(ARM, START)
    goal = c + np.array([0.01, 0.02, -0.015])
    solution = lw.inverse_kinematics(
        ARM, goals, START, center_of_mass=goal, center_along=along, iterations=1, restarts=0
    )
    ends = [*goals, *(body.name for body in ARM.bodies)]
    length = RADIAN * reach.size(ARM, tuple(ends))
    J, e = [lw.center_of_mass(ARM, START, what="jacobian")[rows]], [(goal - c)[rows]]
    if nodes:
        J.append(hand.rot @ lw.jacobian(ARM, START, "hand")[3:])
        e.append(np.array([0.02, -0.03, 0.01]))
    A, b = np.concatenate(J), np.concatenate(e)
    normal = A.T @ A / length**2 + FIRST_DAMPING * np.eye(7)
    step = np.linalg.solve(normal, A.T @ b / length**2)
    assert np.abs(step).max() > 1e-2
    np.testing.assert_allclose(solution.q - START, step, atol=1e-12)


def test_batches_and_postures() -> None:
    rng = np.random.default_rng(0)
    q = np.array([ARM.random(rng) for _ in range(20)])
    places = NodeGoal(position=lw.forward_kinematics(ARM, q, "hand").p)
    centers = np.array([plain_center(ARM, x) for x in q])
    options: dict[str, Any] = {"center_of_mass": centers, "tolerance": 1e-8}
    free = lw.inverse_kinematics(ARM, {"hand": places}, **options)
    near = lw.inverse_kinematics(ARM, {"hand": places}, posture=START, **options)
    for solution in (free, near):
        assert solution.reached.all() and solution.q.shape == (20, 7)
        ends = np.array([plain_center(ARM, x) for x in solution.q])
        np.testing.assert_allclose(ends, centers, atol=2e-8)
    aside = [np.linalg.norm(x.q - START, axis=1) for x in (free, near)]
    assert (aside[1] < aside[0] + 1e-6).mean() > 0.9 and aside[1].mean() < aside[0].mean()
    one = lw.inverse_kinematics(ARM, {}, q, center_of_mass=centers[0])
    assert one.q.shape == (20, 7) and one.reached.all()


def test_what_is_out_of_reach_is_reported() -> None:
    solution = lw.inverse_kinematics(ARM, {}, START, center_of_mass=[0.0, 0.0, 9.0], restarts=2)
    assert not solution.reached and "'centre of mass' is 8." in solution.reason


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"center_of_mass": [0.0, 0.0]}, ShapeError, r"has shape \(2,\); it must be \(3,\)"),
        ({"center_of_mass": [0.0, np.nan, 0.0]}, ModelError, "must be finite"),
        ({"center_of_mass": np.zeros(3), "center_along": "xw"}, ModelError, "takes letters x, y"),
        ({"center_of_mass": np.zeros(3), "center_along": "xx"}, ModelError, "each once"),
        (
            {"center_of_mass": np.zeros(3), "hold": [x.hinge_name for x in ARM.bodies]},
            ModelError,
            "hold leaves no hinge that moves",
        ),
        ({}, ModelError, "dictionary of goals"),
    ],
)
def test_bad_input_is_named(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        lw.inverse_kinematics(ARM, {}, START, **options)


def test_batches_that_differ_are_named() -> None:
    places = NodeGoal(position=np.zeros((4, 3)))
    with pytest.raises(ShapeError, match="a batch of 3 and the goals of nodes are of 4"):
        lw.inverse_kinematics(ARM, {"hand": places}, center_of_mass=np.zeros((3, 3)))
