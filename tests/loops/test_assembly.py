"""Loops that are closed from a guess, or said not to close."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ClosureError, ModelError, ShapeError
from linkwise.loops.assembly import _open  # pyright: ignore[reportPrivateUsage]
from linkwise.loops.assembly_search import opened, problem, widened
from tests.cases import bennett
from tests.loops.random_loops import KINDS, LIGHT, looped, triangle


@cache
def model(name: str) -> lw.Mechanism:
    if name == "nested":
        return looped(3, ("spherical", "pin", "planar"), n=7, hinges=LIGHT)[0]
    if name == "couplings":
        return looped(4, ("spherical",), n=8, couplings=2, hinges=("pin", "prismatic"))[0]
    return bennett() if name == "bennett" else getattr(lw.models, name)()


MODELS = ("four_bar", "bennett", "stewart", "dual_arm", "nested", "couplings")


@pytest.mark.parametrize("name", MODELS)
def test_closed_from_far_away(name):
    """A guess a radian or so away in every freedom."""
    mech = model(name)
    rng = np.random.default_rng(1)
    guess = mech.integrate(mech.neutral(), rng.standard_normal(mech.nv))
    assembly = lw.loops.assemble(mech, guess)
    assert assembly.converged and "closed" in assembly.message
    assert np.abs(lw.loops.constraint_error(mech, assembly.q)).max() < 1e-12
    for error in (assembly.position_error, assembly.orientation_error):
        assert set(error) == {loop.name for loop in mech.loops}
        assert max(error.values(), default=0.0) < 1e-11
    assert (mech.lower <= assembly.q).all() and (assembly.q <= mech.upper).all()
    assert assembly.required() is assembly.q


@pytest.mark.parametrize("kind", [*KINDS, "rolling_ball"])
def test_loops_of_each_kind(kind):
    mech, _ = looped(11, (kind,), n=4, hinges=LIGHT)
    assembly = lw.loops.assemble(mech, mech.random(5))
    assert assembly.converged
    assert np.abs(lw.loops.constraint_error(mech, assembly.q, per="loop")).max() < 1e-11
    (loop,) = mech.loops
    X_AB = mech.pose(assembly.q, loop.node_a).inverse() @ mech.pose(assembly.q, loop.node_b)
    expected = loop.hinge.pose(assembly.loop_coordinates[loop.name])
    assert np.abs(expected.matrix - X_AB.matrix).max() < 1e-11


@pytest.mark.parametrize("angle", np.linspace(-3.0, 3.0, 9))
def test_four_bar_by_circles(angle):
    """The end of the coupler is where two circles meet, for every angle of the crank."""
    mech = model("four_bar")
    assembly = lw.loops.assemble(mech, hold={"crank": angle})
    assert assembly.converged and assembly.q[0] == angle
    p_B = 0.1 * np.array([np.sin(angle), 0.0, np.cos(angle)])  # a turn about y takes z to x
    p_D = np.array([0.4, 0.0, 0.0])
    p_C = mech.pose(assembly.q, "coupler_end").p
    assert abs(np.linalg.norm(p_C - p_B) - 0.5) < 1e-12
    assert abs(np.linalg.norm(p_C - p_D) - 0.4) < 1e-12
    assert np.abs(mech.pose(assembly.q, "rocker_end").p - p_C).max() < 1e-12


def test_stewart_legs_by_distances():
    """With the platform held, a slider is the distance of its anchors less that at neutral."""
    mech = model("stewart")
    rng = np.random.default_rng(4)
    turn = np.concatenate([[1.0], 0.05 * rng.standard_normal(3)])
    pose = np.concatenate([turn / np.linalg.norm(turn), 0.05 * rng.standard_normal(3)])
    assembly = lw.loops.assemble(mech, hold={"platform": pose})
    assert assembly.converged and (assembly.q[mech.q_slice("platform")] == pose).all()
    for k in range(1, 7):
        foot = mech.pose(assembly.q, f"lower_{k}").p
        way, before = (
            np.linalg.norm(mech.pose(q, f"anchor_{k}").p - foot)
            for q in (assembly.q, mech.neutral())
        )
        assert abs(assembly.q[mech.q_slice(f"slider_{k}")][0] - (way - before)) < 1e-12


def test_a_triangle_that_cannot_be_is_open_by_what_is_missing():
    mech = triangle(1.3)  # two bars of half a metre
    assembly = lw.loops.assemble(mech)
    assert not assembly.converged and assembly.starts == 31
    assert abs(assembly.position_error["apex"] - 0.3) < 1e-6  # quadratic in the error of the angles
    assert assembly.orientation_error["apex"] < 1e-4  # its square is a part of 1e-9 of the error
    assert assembly.message == "not closed from 31 starts: loop 'apex' stays open by 0.3 m"
    with pytest.raises(ClosureError, match=r"loop 'apex' stays open by 0\.3 m"):
        assembly.required()
    assert not lw.loops.assemble(mech, restarts=2).converged
    assert lw.loops.assemble(triangle(0.99)).converged


def test_what_stays_open_is_named_with_its_larger_part_the_worst_first():
    errors = [("a", 1e-4, 0.2), ("b", 0.5, 0.3), ("c", 0.0, 0.0), ("d", 0.9, 1e-4)]
    text = "d stays open by 0.9 m, b stays open by 0.5 m and 0.3 rad, a stays open by 0.2 rad"
    assert _open(errors, 1.0, 1e-9) == text
    assert _open([*errors, ("e", 1e-3, 0.0)], 1.0, 1e-9) == text + ", and 1 more"


def test_a_stretched_guess_is_no_dead_end():
    """Bars in one line are pulled straight: the slope is zero, only other starts help."""
    mech = triangle(0.7)
    guess = np.array([0.5 * np.pi, 0.5 * np.pi])
    assembly = lw.loops.assemble(mech, guess)
    assert assembly.converged
    match = re.fullmatch(r"closed in \d+ steps from start (\d+), at random; .*", assembly.message)
    assert match is not None and 2 <= int(match[1]) <= assembly.starts
    # With no more starts than that, the same is found, at the same one.
    again = lw.loops.assemble(mech, guess, restarts=int(match[1]) - 1)
    assert again.message == assembly.message and again.starts == int(match[1])
    np.testing.assert_array_equal(again.q, assembly.q)


def test_limits_in_the_way_are_named():
    mech = model("stewart")
    high = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.4])  # sliders reach 0.2 m
    assembly = lw.loops.assemble(mech, hold={"platform": high}, restarts=4)
    assert not assembly.converged
    assert set(assembly.blocked[0]) == {f"slider_{k}" for k in range(1, 7)}
    assert "blocked by the limits of 'slider_1'" in assembly.message
    assert "without limits it can be closed" in assembly.message
    assert (assembly.q <= mech.upper).all()
    beyond = lw.loops.assemble(mech, hold={"platform": high}, limits=False)
    assert beyond.converged and set(beyond.blocked[0]) == set(assembly.blocked[0])
    assert "beyond limits" in beyond.message


def test_limits_inside_a_loop_count():
    b = lw.Builder("limited")
    pin = lw.hinges.Pin((0.0, 1.0, 0.0))
    bar = lw.SpatialInertia.point(1.0)
    b.body("left", hinge=pin, inertia=bar)
    b.body("right", hinge=pin, inboard=(0.5, 0.0, 0.0), inertia=bar)
    b.node("left end", "left", (0.0, 0.0, 0.5))
    b.node("right end", "right", (0.0, 0.0, 0.5))
    # The apex of an equilateral triangle opens by 60 degrees, up or down: never by 20.
    drive = lw.Drive(lower=-0.35, upper=0.35)
    b.loop("apex", "left end", "right end", pin, drive=drive)
    assembly = lw.loops.assemble(b.build())
    assert not assembly.converged and "apex" in assembly.blocked[0][0]
    assert lw.loops.assemble(b.build(), limits=False).converged


@pytest.mark.parametrize("name", ["nested", "stewart", "couplings"])
def test_the_slope_of_the_error_is_exact(name):
    """½ |D e|² against central differences, far from closed; e itself has another derivative."""
    mech = model(name)
    request = problem(mech, (), limits=False, tolerance=1e-12)
    wide = opened(mech)
    rng = np.random.default_rng(7)
    q = widened(mech, mech.integrate(mech.neutral(), 0.6 * rng.standard_normal(mech.nv))[None])
    q = wide.integrate(q, 0.5 * rng.standard_normal(wide.nv))
    e = request.error(q)[0] * request.rows
    slope = (request.rows[:, None] * request.jacobian(q)[0]).T @ e

    def cost(at):
        return 0.5 * ((request.error(at)[0] * request.rows) ** 2).sum()

    h = 1e-5
    for j in range(wide.nv):
        ahead, behind = (cost(wide.integrate(q, s * np.eye(wide.nv)[j])) for s in (h, -h))
        # Truncation h² times third derivatives, some ten at most.
        assert abs((ahead - behind) / (2 * h) - slope[j]) < 1e-7 * max(1.0, np.abs(slope).max())


def test_balls_are_put_where_they_are_needed():
    """A ball that rolled around a square is elsewhere: rolling back straight does not close loops.

    The weld leaves one place for the ball; steps along its rolling alone would miss it by the area
    it went round.
    """
    mech, q = looped(2, ("locked",), n=2, hinges=("rolling_ball",), ground=True)
    rng = np.random.default_rng(3)
    for _ in range(3):
        q = mech.integrate(q, 0.3 * rng.standard_normal(mech.nv))
    assembly = lw.loops.assemble(mech, q, restarts=0)
    assert assembly.converged
    assert np.abs(lw.loops.constraint_error(mech, assembly.q, per="loop")).max() < 1e-12
    mech.check_q(assembly.q)


def test_batches_and_seeds():
    mech = model("four_bar")
    guesses = np.stack([mech.random(seed) for seed in range(5)])
    assembly = lw.loops.assemble(mech, guesses, hold=["crank"])
    assert len(assembly) == 5 and assembly.converged.all() and "5 of 5 closed" in assembly.message
    assert (assembly.q[:, 0] == guesses[:, 0]).all()
    assert assembly.position_error["coupler_rocker"].shape == (5,)
    one = lw.loops.assemble(mech, guesses[3], hold=["crank"])
    assert np.abs(assembly[3].q - one.q).max() < 1e-12 and one.q.shape == (3,)
    assert [x.q[0] for x in assembly] == guesses[:, 0].tolist()
    again = lw.loops.assemble(mech, guesses, hold=["crank"])
    assert (again.q == assembly.q).all()
    assert lw.loops.assemble(mech, np.zeros((0, 3))).q.shape == (0, 3)


def test_without_constraints_the_guess_is_the_answer():
    arm = lw.models.puma560()
    q = arm.random(0)
    assembly = lw.loops.assemble(arm, q)
    assert assembly.converged and (assembly.q == q).all() and assembly.iterations == 0


def test_bad_arguments():
    mech = model("four_bar")
    with pytest.raises(ModelError, match="no hinge or body called 'krank'"):
        lw.loops.assemble(mech, hold={"krank": 0.0})
    with pytest.raises(
        ModelError, match=r"'coupler_rocker' is a loop, .*lw\.loops\.loop_coordinates"
    ):
        lw.loops.assemble(mech, hold={"coupler_rocker": 0.0})
    with pytest.raises(ShapeError, match="hold\\['crank'\\] has shape \\(2,\\)"):
        lw.loops.assemble(mech, hold={"crank": [0.0, 1.0]})
    with pytest.raises(ModelError, match="outside of its limits"):
        lw.loops.assemble(model("stewart"), hold={"slider_1": 0.3})
    with pytest.raises(ModelError, match="restarts is -1"):
        lw.loops.assemble(mech, restarts=-1)
    with pytest.raises(ModelError, match="tolerance is 0"):
        lw.loops.assemble(mech, tolerance=0)
    with pytest.raises(ModelError, match="not finite"):
        lw.loops.assemble(mech, hold={"crank": np.nan})


def rounded(gap: float, tilt: float = 0.0):
    """A parallelogram that cannot close: its last axis is off by the digits of a file."""
    pin, tilted = lw.hinges.Pin((0, 1, 0)), lw.hinges.Pin((0.0, 1.0, tilt))
    bar = lw.SpatialInertia.from_com(1.0, (0.0, 0.0, -0.2), (0.02, 0.02, 1e-4))
    b = lw.Builder("rounded").body("crank", "world", pin, inertia=bar)
    b.body("rod", "crank", pin, inboard=(0, 0, -0.4), inertia=bar)
    b.body("rocker", "world", tilted, inboard=(0.3, gap, 0), inertia=bar)
    b.node("rod end", "rod", (0.3, 0, 0)).node("rocker end", "rocker", (0, 0, -0.4))
    return b.loop("loop", "rod end", "rocker end", pin).build()


@pytest.mark.parametrize("tilt", [0.0, 3e-8])
def test_loops_that_the_digits_of_a_file_leave_open_are_closed(tilt: float):
    mech, q = rounded(2e-8, tilt), np.array([0.3, -0.3, 0.3])
    off = np.abs(lw.loops.constraint_error(mech, q)).max()
    assert 1e-9 < off < 1e-7
    assembly = lw.loops.assemble(mech, q)
    assert assembly.converged and int(assembly.starts) == 1
    assert re.search(
        r"closed in \d+ steps?; its numbers leave (2|1\.9)e-08 m or rad", str(assembly)
    )
    assert np.abs(lw.loops.constraint_error(mech, assembly.required())).max() <= 1.01 * off
    np.testing.assert_allclose(assembly.q, q, atol=1e-3)
    projection = lw.loops.project_position(mech, q)
    assert projection.closed and projection.iterations < 20
    np.testing.assert_allclose(projection.required(), q, atol=1e-2)
    options = {"duration": 0.2, "step": 1e-3}
    for integrator in ("implicit",) if tilt else ("rk4", "implicit"):
        options["integrator"] = integrator
        runs, exact = (lw.rollout(x, q, **options) for x in (mech, rounded(0.0)))
        np.testing.assert_allclose(runs.q, exact.q, atol=1e-5)
        recording = lw.simulate(mech, q, record_every=1, **options)
        np.testing.assert_allclose(recording.q[-1], runs.q[-1], atol=1e-9)
    if tilt:  # forward dynamics would take the rounded row as it is, which locks the linkage
        for move in (lw.rollout, lw.simulate):
            with pytest.raises(ClosureError, match="Use integrator='implicit'"):
                move(mech, q, duration=0.2, step=1e-3)


def test_larger_gaps_stay_open():
    mech, q = rounded(3e-6), np.array([0.3, -0.3, 0.3])
    assembly = lw.loops.assemble(mech, q, restarts=3)
    assert not assembly.converged and "'loop' stays open by 3e-06 m" in str(assembly)
    assert not lw.loops.project_position(mech, q).closed
    assert lw.loops.assemble(mech, q, tolerance=1e-5).converged
