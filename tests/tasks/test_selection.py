"""Selection matrices: projections, complements, frames, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, ShapeError, UnknownNameError
from linkwise.spatial.rotation import random_rotation
from linkwise.tasks.force.selection import AXES, Selection
from linkwise.tasks.force.surface import CompliantSurface
from linkwise.tasks.task import Task

NORMAL = np.array([0.48, -0.36, 0.8])
POSE, POSITION = Task.pose("flange"), Task.position("flange")


@pytest.fixture(scope="module")
def puma() -> lw.Mechanism:
    return lw.models.puma560()


def block(turn, move):
    out = np.zeros((6, 6))
    out[:3, :3], out[3:, 3:] = turn, move
    return out


def check_projections(Omega, Omega_bar):
    one = np.eye(Omega.shape[-1])
    for matrix in (Omega, Omega_bar):
        assert np.allclose(matrix @ matrix, matrix, atol=1e-13)
        assert np.allclose(matrix, np.swapaxes(matrix, -1, -2), atol=1e-15)
    assert np.allclose(Omega @ Omega_bar, 0.0, atol=1e-13)
    assert np.allclose(Omega + Omega_bar, one, atol=1e-15)


def test_along_a_normal_is_the_dyad_of_the_normal(puma):
    q = puma.random(seed=0)
    for scale in (1.0, 1e-3, 250.0):
        Omega, Omega_bar = Selection.along_normal(scale * NORMAL).matrices(puma, q, POSE)
        check_projections(Omega, Omega_bar)
        assert np.allclose(Omega_bar, block(np.zeros((3, 3)), np.outer(NORMAL, NORMAL)))
    small = Selection.along_normal(NORMAL).matrices(puma, q, POSITION)
    assert np.allclose(small[1], np.outer(NORMAL, NORMAL))


def test_it_is_the_formula_of_the_source(puma):
    """Ω = S* Σ S block by block, with frames of their own for turning and moving."""
    rng, q = np.random.default_rng(1), puma.random(seed=1)
    for _ in range(20):
        move, turn = random_rotation(rng), random_rotation(rng)
        sigma = rng.integers(0, 2, 6).astype(bool)
        chosen = [name for name, s in zip(AXES, sigma, strict=True) if s]
        selection = Selection.from_axes(move, motion=chosen, turn_frame=turn)
        Omega, Omega_bar = selection.matrices(puma, q, POSE)
        # S = rot* is the rotation from the task's axes into the frame.
        expected = block(turn @ np.diag(sigma[:3]) @ turn.T, move @ np.diag(sigma[3:]) @ move.T)
        assert np.allclose(Omega, expected, atol=1e-14)
        check_projections(Omega, Omega_bar)


def test_axes_of_a_node_move_with_it(puma):
    """Force along the tool's own z, in world axes and in the tool's."""
    q = np.array([puma.random(seed=s) for s in range(3)])
    selection = Selection.from_axes("flange", force="z rx")
    Omega, Omega_bar = selection.matrices(puma, q, POSE)
    check_projections(Omega, Omega_bar)
    for i in range(3):
        rot = puma.pose(q[i], "flange").rot
        expected = block(np.outer(rot[:, 0], rot[:, 0]), np.outer(rot[:, 2], rot[:, 2]))
        assert np.allclose(Omega_bar[i], expected)
    ours = selection.matrices(puma, q[0], Task.pose("flange", axes="node"))[1]
    assert np.allclose(ours, np.diag([1, 0, 0, 0, 0, 1.0]), atol=1e-14)


def test_axes_seen_from_another_node(puma):
    q = puma.random(seed=4)
    task = Task.position("flange", relative_to="link_3")
    Omega_bar = Selection.from_axes("link_2", force="y").matrices(puma, q, task)[1]
    y = puma.pose(q, "link_3").rot.T @ puma.pose(q, "link_2").rot[:, 1]
    assert np.allclose(Omega_bar, np.outer(y, y))


def test_the_normal_of_a_surface_is_followed(puma):
    q = np.array([puma.random(seed=s) for s in range(3)])
    ball = CompliantSurface.sphere((0.1, 0.2, 0.0), 0.3, 1e3)
    selection = Selection.along_normal(ball)
    Omega_bar = selection.matrices(puma, q, POSITION)[1]
    for i in range(3):
        n = ball.normal_at(puma.pose(q[i], "flange").p)
        assert np.allclose(Omega_bar[i], np.outer(n, n))
        assert np.allclose(selection.normal(puma, q[i], POSITION), n)
    with pytest.raises(ModelError, match="fixed in the world"):
        selection.matrices(puma, q[0], Task.pose("flange", relative_to="link_2"))


def test_matrices_come_back_as_they_were_given(puma):
    rng, q = np.random.default_rng(2), puma.random(seed=2)
    for sigma in ((1, 0, 1), (0, 0, 1), (1, 1, 1), (0, 0, 0)):
        turn, move = random_rotation(rng), random_rotation(rng)
        given = block((turn * sigma) @ turn.T, (move * sigma[::-1]) @ move.T)
        selection = Selection.from_matrices(given, np.eye(6) - given)
        assert np.allclose(selection.matrices(puma, q, POSE)[0], given, atol=1e-14)
    three = np.eye(3) - np.outer(NORMAL, NORMAL)
    result = Selection.from_matrices(three, np.outer(NORMAL, NORMAL)).matrices(puma, q, POSE)[0]
    assert np.allclose(result, block(np.eye(3), three))


def test_what_is_constant_is_so_in_every_state(puma):
    plane = CompliantSurface((0, 0, 0), NORMAL, 1e3)
    ball = CompliantSurface.sphere((0.1, 0.2, 0.0), 0.3, 1e3)
    turning = Task.pose("flange", axes="node")
    message = {
        (Selection.along_normal(NORMAL), POSE): True,
        (Selection.along_normal(NORMAL), turning): True,  # fixed on the tool
        (Selection.along_normal(plane), POSE): True,
        (Selection.along_normal(plane), turning): False,
        (Selection.along_normal(ball), POSE): False,
        (Selection.from_axes("link_3", force="z"), POSE): False,
        (Selection.all_motion(), POSE): True,
    }
    states = [puma.random(seed=s) for s in range(2)]
    for (selection, task), constant in message.items():
        assert selection.constant(task) == constant
        one, two = (selection.matrices(puma, q, task)[0] for q in states)
        assert np.allclose(one, two) == constant


def test_free_motion_selects_everything(puma):
    Omega, Omega_bar = Selection.all_motion().matrices(puma, puma.neutral(), POSE)
    assert (Omega == np.eye(6)).all() and not Omega_bar.any()


def test_tasks_of_fewer_rows(puma):
    q = puma.random(seed=3)
    task = Task.position("flange", along=[[0.8, 0.6, 0.0], [-0.6, 0.8, 0.0]])
    Omega, Omega_bar = Selection.along_normal((0.8, 0.6, 0.0)).matrices(puma, q, task)
    assert np.allclose(Omega, np.diag([0.0, 1.0])) and np.allclose(Omega_bar, np.diag([1.0, 0.0]))
    with pytest.raises(ModelError, match="partly motion and partly force"):
        Selection.along_normal(NORMAL).matrices(puma, q, task)


def test_it_tells_what_it_is():
    message = str(Selection.from_axes("wrist", force="z rx"))
    assert message == "motion ry, rz, x, y; force rx, z; of the axes of 'wrist'"


# ---------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("motion", "force", "message"),
    [
        ("x y z", "z rx ry rz", "not complementary: z in both"),
        ("x y", "z rx ry", "not complementary: rz in neither"),
        ("x y z", "z", "z in both and rx, ry, rz in neither"),
        (None, "n", "force has an axis 'n'; axes are rx, ry"),
        (None, ["z", 3], "axis 3"),
        (None, None, "no axes"),
        (None, 3, "force is 3; it names axes"),
    ],
)
def test_axes_that_are_not_complementary(motion, force, message):
    with pytest.raises(ModelError, match=message):
        Selection.from_axes(motion=motion, force=force)


def test_matrices_that_are_not_complementary():
    n = np.outer(NORMAL, NORMAL)
    with pytest.raises(ModelError, match=r"not complementary: their sum .* in both: 1 of"):
        Selection.from_matrices(np.eye(3), n)
    with pytest.raises(ModelError, match=r"not complementary.*in neither: 1"):
        Selection.from_matrices(np.eye(3) - n, np.zeros((3, 3)))
    with pytest.raises(ModelError, match="motion is not an orthogonal projection"):
        Selection.from_matrices(0.5 * np.eye(3))
    with pytest.raises(ModelError, match="an orthogonal projection"):  # oblique
        Selection.from_matrices([[1, 1, 0], [0, 0, 0], [0, 0, 0]])
    screw = np.zeros((6, 6))
    screw[np.ix_([2, 5], [2, 5])] = 0.5
    with pytest.raises(ModelError, match="mixes turning with moving"):
        Selection.from_matrices(screw)
    with pytest.raises(ShapeError, match="shape"):
        Selection.from_matrices(np.eye(4))


def test_frames_and_tasks_that_do_not_fit(puma):
    q = puma.neutral()
    with pytest.raises(ShapeError, match="normal is the zero vector"):
        Selection.along_normal((0.0, 0.0, 0.0))
    with pytest.raises(ModelError, match="is not a rotation: rot\\* rot differs from 1 by 3"):
        Selection.from_axes(2.0 * np.eye(3), force="z")
    with pytest.raises(UnknownNameError, match="no node or body called 'tool'"):
        Selection.from_axes("tool", force="z").matrices(puma, q, POSE)
    with pytest.raises(UnknownNameError, match="left_flange"):
        Selection.along_normal(NORMAL).matrices(puma, q, Task.pose("left_flange"))
    for task, message in (
        (Task.orientation("flange"), "of kind 'orientation'"),
        (Task.direction("flange"), "of kind 'direction'"),
        (Task.joints("joint_1"), "of kind 'joints'"),
        (Task.pose("flange", coordinates="euler_zyx"), "coordinates 'euler_zyx'"),
        ([POSE, POSITION], "several tasks"),
        ("flange", "a str"),
        (Task.position("flange", along=[[2.0, 0.0, 0.0]]), "not orthonormal"),
    ):
        with pytest.raises(ModelError, match=message):
            Selection.along_normal(NORMAL).matrices(puma, q, task)
    with pytest.raises(ModelError, match=r"2 axes of force control \(ry, z\)"):
        Selection.from_axes(force="z ry").normal(puma, q, POSE)


def test_matrices_along_axes_are_told_by_their_axes():
    for Omega, message in (
        (np.diag([1.0, 1.0, 0.0]), "motion rx, ry, rz, x, y; force z; of the task's axes"),
        (np.diag([0.0, 1.0, 1.0]), "motion rx, ry, rz, y, z; force x; of the task's axes"),
        (np.diag([0, 1, 1, 1, 0, 1.0]), "motion ry, rz, x, z; force rx, y; of the task's axes"),
    ):
        assert str(Selection.from_matrices(Omega)) == message


def test_the_one_axis_of_oblique_matrices_is_z(puma):
    """As along_normal has it, for force along one axis and for motion along one."""
    n = np.array([0.48, -0.36, 0.8])
    dyad, task = np.outer(n, n), Task.pose("flange")
    pressed = Selection.from_matrices(np.eye(3) - dyad)
    assert str(pressed) == str(Selection.along_normal(n))
    moved = Selection.from_matrices(dyad)
    assert moved.motion == (True, True, True, False, False, True)
    turned = Selection.from_matrices(block(dyad, np.eye(3)))
    assert str(turned).startswith(
        "motion rz, x, y, z; force rx, ry; of the task's axes, turning of"
    )
    q = puma.neutral()
    for selection, Omega in (
        (pressed, block(np.eye(3), np.eye(3) - dyad)),
        (moved, block(np.eye(3), dyad)),
        (turned, block(dyad, np.eye(3))),
    ):
        np.testing.assert_allclose(selection.matrices(puma, q, task)[0], Omega, atol=1e-12)


def test_axes_of_force_that_the_task_does_not_have_are_refused(puma):
    q = puma.neutral()
    for axes, task in (
        ("z rx", Task.position("flange")),
        ("z", Task.position("flange", "xy")),
        ("x z", Task.position("flange", "xy")),
    ):
        selection = Selection.from_axes(force=axes)
        message = r"force along (rx, )?(x, )?z, but task 'position of flange' .* does not include"
        with pytest.raises(ModelError, match=message):
            selection.matrices(puma, q, task)
        with pytest.raises(ModelError, match=message):
            lw.tasks.MotionForceController(
                puma, task, selection, 1.0, 1.0, lw.tasks.ForceServo(0.1, 10.0)
            )
