"""Maps of effective mass: beside single calls, and where a node does not get."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, ShapeError, UnknownNameError
from tests.dynamics.mechanisms import close

BENT = np.array([0.5, 0.6, 0.4])
LINE = np.linspace(-3.3, 3.3, 9)


@pytest.fixture(scope="module")
def arm():
    return lw.models.pendulum(3)


@pytest.fixture(scope="module")
def slice_of(arm):
    return lw.inertial.inertial_map(
        arm, BENT, "tip", positions={"x": LINE, "y": 0.0, "z": LINE}, direction=(1, 0, 1)
    )


@pytest.mark.parametrize("what", ["mass", "rotation"])
def test_joint_grid_is_its_single_calls(arm, what):
    first, second = np.linspace(-1.0, 1.0, 4), np.linspace(0.2, 2.0, 3)
    u = (0.3, 1.0, -2.0)
    chart = lw.inertial.inertial_map(
        arm, BENT, "tip", joints={"pin_3": first, "pin_1": second}, direction=u, what=what
    )
    felt = partial(lw.inertial.effective_mass, what=what)
    assert chart.values.shape == (4, 3) and chart.axes == ("pin_3", "pin_1")
    for i in range(4):
        for j in range(3):
            q = np.array([second[j], BENT[1], first[i]])
            close(chart.q[i, j], q, 1e-15)
            assert chart.values[i, j] == pytest.approx(felt(arm, q, "tip", u), rel=1e-13)
            close(chart.positions[i, j], lw.forward_kinematics(arm, q, "tip").p, 1e-13)
    assert chart.reached.all() and chart.values.mask.sum() == 0


@pytest.mark.parametrize(("word", "number"), [("lightest", 0), ("heaviest", 2)])
def test_extremes_and_isotropy(word, number):
    arm = lw.models.seven_dof_arm()
    q = arm.random(seed=0)
    grid = {"elbow_pitch": np.linspace(0.5, 1.5, 5)}
    chart = lw.inertial.inertial_map(arm, q, "hand", joints=grid, direction=word)
    alike = lw.inertial.inertial_map(
        arm, q, "hand", joints=grid, direction="isotropy", what="rotation"
    )
    for i, state in enumerate(chart.q):
        one = lw.inertial.inertial_properties(arm, state, "hand")
        assert chart.values[i] == pytest.approx(one.principal_masses[number], rel=1e-12)
        assert alike.values[i] == pytest.approx(one.inertia_isotropy, rel=1e-12)
    assert chart.title == f"{word} effective mass" and chart.unit == "kg" and not alike.unit


def test_slice_of_the_workspace(arm, slice_of):
    points = np.stack(np.meshgrid(LINE, [0.0], LINE, indexing="ij"), axis=-1)[:, 0]
    away = np.linalg.norm(points, axis=-1)
    assert (slice_of.reached == (away <= 3.0)).all()  # three links of a metre, no limits
    assert (slice_of.values.mask == ~slice_of.reached).all()
    assert np.isfinite(slice_of.values.data).all() and np.isfinite(slice_of.q).all()
    inside = slice_of.reached
    assert (
        np.abs(slice_of.positions[inside] - points[inside]).max() < 2e-6
    )  # as asked of the search
    for q, value in zip(slice_of.q[inside], slice_of.values[inside], strict=True):
        expected = lw.inertial.effective_mass(arm, q, "tip", (1, 0, 1))
        assert value == pytest.approx(expected, rel=1e-12)
    assert f"{int(inside.sum())} reached" in str(slice_of) and "over x and z" in str(slice_of)


def test_neighbours_have_like_postures(slice_of):
    """Starting from neighbours: no jump between solutions of the redundant arm."""
    both = slice_of.reached[1:] & slice_of.reached[:-1]
    steps = np.abs(np.diff(slice_of.q, axis=0))[both].max(axis=-1)
    # 0.8 m between points, with links of one metre; another branch is 2 rad or more away. One
    # search for each point from one start, without neighbours, has steps of up to 4.5 rad.
    assert steps.max() < 2.0


def test_orientation_and_limits():
    """A hand that must point down reaches less than one that need not."""
    puma = lw.models.puma560()
    q = np.array([0.0, -0.8, 2.4, 0.0, 1.5, 0.0])
    grid = {"x": np.linspace(0.2, 0.8, 4), "y": 0.15, "z": np.linspace(-0.4, 0.4, 3)}
    free = lw.inertial.inertial_map(puma, q, "flange", positions=grid)
    down = lw.inertial.inertial_map(
        puma, q, "flange", positions=grid, orientation=lw.Pose.rpy((np.pi, 0, 0)).rot
    )
    assert not (down.reached & ~free.reached).any() and down.reached.sum() < free.reached.sum()
    for state in down.q[down.reached]:
        close(lw.forward_kinematics(puma, state, "flange").rot, np.diag([1.0, -1, -1]), 2e-6)
        assert (state >= puma.lower - 1e-12).all() and (state <= puma.upper + 1e-12).all()


def test_nothing_in_reach(arm):
    chart = lw.inertial.inertial_map(
        arm, BENT, "tip", positions={"x": [8.0, 9.0], "y": 0.0, "z": 0.0}
    )
    assert chart.values.mask.all() and "0 reached" in str(chart)


def test_blocked_is_infinite_not_masked(arm):
    chart = lw.inertial.inertial_map(
        arm, BENT, "tip", joints={"pin_1": [0.0, 1.0]}, direction=(0, 1, 0)
    )
    assert (chart.values.data == np.inf).all() and chart.reached.all()
    assert "blocked in 2" in str(chart)


def test_couplings_are_obeyed():
    b = lw.Builder("geared")
    rod = lw.SpatialInertia.from_com(1.0, (0.0, 0.0, -0.5), (0.1, 0.1, 0.01))
    b.body("a", hinge=lw.hinges.Pin((0, 1, 0)), hinge_name="first", inertia=rod)
    b.body(
        "b", "a", lw.hinges.Pin((0, 1, 0)), hinge_name="second", inboard=(0, 0, -1.0), inertia=rod
    )
    b.node("tip", "b", (0, 0, -1.0))
    b.couple("gear", "second", {"first": 2.0})
    mech = b.build()
    chart = lw.inertial.inertial_map(
        mech, None, "tip", joints={"first": [0.2, 0.4]}, direction=(1, 0, 0)
    )
    close(chart.q[:, 1], 2.0 * chart.q[:, 0], 1e-15)
    # One freedom: with v = (1, 2) θ̇ the mass is v* 𝓜 v over the square of its motion.
    for q, value in zip(chart.q, chart.values, strict=True):
        motion = lw.jacobian(mech, q, "tip", frame="world")[3] @ [1.0, 2.0]
        inertia = np.array([1.0, 2.0]) @ lw.mass_matrix(mech, q) @ [1.0, 2.0]
        assert value == pytest.approx(inertia / motion**2, rel=1e-10)


def test_progress(arm):
    seen = []
    positions = {"x": np.linspace(-1, 1, 4), "y": 0.0, "z": np.linspace(-2.0, -1.0, 4)}
    lw.inertial.inertial_map(
        arm, BENT, "tip", positions=positions, progress=lambda done, of: seen.append((done, of))
    )
    assert seen[-1] == (16, 16) and len(seen) > 3
    far = {"x": np.linspace(-4, 4, 6), "y": 0.0, "z": [-2.0, -2.95]}
    lw.inertial.inertial_map(
        arm, BENT, "tip", positions=far, progress=lambda done, of: seen.append((16 + done, of))
    )
    assert seen[-1] == (28, 12) and all(a <= b for (a, _), (b, _) in pairwise(seen))


def test_bad_input(arm):
    grid = {"pin_1": [0.0, 1.0]}
    with pytest.raises(ModelError, match="give one of the two"):
        lw.inertial.inertial_map(arm, None, "tip")
    with pytest.raises(ModelError, match="give one of the two"):
        lw.inertial.inertial_map(
            arm, None, "tip", joints=grid, positions={"x": [0], "y": 0, "z": 0}
        )
    with pytest.raises(UnknownNameError, match="did you mean"):
        lw.inertial.inertial_map(arm, None, "tipp", joints=grid)
    with pytest.raises(
        ModelError, match=r"node is a ndarray.*order is inertial_map\(mech, q, node"
    ):
        lw.inertial.inertial_map(arm, "tip", BENT, joints=grid)
    with pytest.raises(UnknownNameError):
        lw.inertial.inertial_map(arm, None, "tip", joints={"pin_9": [0.0, 1.0]})
    with pytest.raises(ModelError, match="for x, y and z"):
        lw.inertial.inertial_map(arm, None, "tip", positions={"x": [0.0, 1.0]})
    with pytest.raises(ModelError, match="several numbers"):
        lw.inertial.inertial_map(arm, None, "tip", positions={"x": 0.0, "y": 0.0, "z": 0.0})
    with pytest.raises(ModelError, match="several numbers"):
        lw.inertial.inertial_map(arm, None, "tip", joints={"pin_1": 0.0})
    with pytest.raises(ShapeError, match="in a row"):
        lw.inertial.inertial_map(arm, None, "tip", joints={"pin_1": np.eye(2)})
    with pytest.raises(ShapeError, match="one state"):
        lw.inertial.inertial_map(arm, np.zeros((2, 3)), "tip", joints=grid)
    with pytest.raises(ShapeError, match="zero vector"):
        lw.inertial.inertial_map(arm, None, "tip", joints=grid, direction=(0, 0, 0))
    with pytest.raises(ShapeError, match="along one direction"):
        lw.inertial.inertial_map(arm, None, "tip", joints=grid, direction=np.eye(3))
    with pytest.raises(ModelError, match="'isotropy'"):
        lw.inertial.inertial_map(arm, None, "tip", joints=grid, direction="up")
    with pytest.raises(ModelError, match="'mass' or 'rotation'"):
        lw.inertial.inertial_map(arm, None, "tip", joints=grid, what="weight")
    with pytest.raises(ShapeError, match="rotation matrix"):
        lw.inertial.inertial_map(
            arm, BENT, "tip", positions={"x": [0.0, 1.0], "y": 0.0, "z": -2.0}, orientation=(1, 0)
        )
    with pytest.raises(ModelError, match="has loops, which"):
        lw.inertial.inertial_map(
            lw.models.four_bar(), None, "coupler_end", joints={"crank": [0.0, 1.0]}
        )
