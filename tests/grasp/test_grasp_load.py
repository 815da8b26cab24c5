"""Load distribution: cases by hand, optimality against other solvers, refusals with reasons."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError
from linkwise.grasp.cone_program import ConeProgram, least_distance
from linkwise.grasp.internal_force import typical_length
from tests.grasp.grasps import block, disc

optimize = pytest.importorskip("scipy.optimize")

WEIGHT = 9.81


def size(grasp, forces):
    """f* W f of the metric."""
    length = typical_length(grasp)
    return float((np.array([length**-2] * 3 + [1.0] * 3) * forces**2).sum())


def test_a_block_held_by_two_fingers():
    """Each carries half of the weight, with a push of weight / 2 μ: no less holds it."""
    for name in ("point", "soft_finger"):
        grasp = block(name, friction=0.4)
        distribution = grasp.load_distribution([0, 0, 0, 0, 0, WEIGHT])
        assert distribution.feasible
        np.testing.assert_allclose(distribution.forces[:, 5], WEIGHT / 2 / 0.4, rtol=1e-8)
        assert distribution.margins.smallest >= 0.0
        np.testing.assert_allclose(
            grasp.object_force(distribution.forces), [0, 0, 0, 0, 0, WEIGHT], atol=1e-9
        )
        with_room = grasp.load_distribution([0, 0, 0, 0, 0, WEIGHT], reserve=2.0)
        np.testing.assert_allclose(with_room.forces[:, 5], (WEIGHT / 2 + 2.0) / 0.4, rtol=1e-7)


def test_the_moment_that_soft_fingers_hold():
    """About the line through them: by the ellipse, (w/2)² + (μ m/2γ)² = (μ f_n)²."""
    mu, gamma, moment = 0.5, 0.01, 0.08
    grasp = block("soft_finger", friction=mu, torsion=gamma)
    distribution = grasp.load_distribution([moment, 0, 0, 0, 0, WEIGHT])
    push = np.hypot(WEIGHT / 2, mu * moment / 2 / gamma) / mu
    np.testing.assert_allclose(distribution.forces[:, 5], push, rtol=1e-7)


def test_largest_margin():
    """At the largest push allowed, and it is μ most - weight / 2."""
    distribution = block("point", friction=0.4).load_distribution(
        [0, 0, 0, 0, 0, WEIGHT], objective="margin", most=30.0
    )
    assert distribution.margins.smallest == pytest.approx(0.4 * 30.0 - WEIGHT / 2, rel=1e-9)


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(4))
def test_minimum_norm_against_a_nonlinear_solver(seed):
    """The exact cones, against SLSQP on the same problem from the solution's neighbourhood."""
    rng = np.random.default_rng(seed)
    name = ("soft_finger", "point", "soft_finger separate", "rigid patch")[seed]
    grasp = disc(3, name)
    w = rng.standard_normal(6) * np.array([0.1] * 3 + [3.0] * 3)
    distribution = grasp.load_distribution(w)
    assert distribution.feasible
    S, A = grasp.passed, grasp.map()
    np.testing.assert_allclose(grasp.object_force(distribution.forces), w, atol=1e-8)
    assert distribution.margins.smallest >= -1e-8
    best = size(grasp, distribution.forces)

    def margins(lam):
        values = grasp.margins((lam @ S).reshape(-1, 6)).values.ravel()
        return values[np.isfinite(values)]

    start = (S @ distribution.forces.ravel()) + 0.5 * rng.standard_normal(len(S))
    other = optimize.minimize(
        lambda lam: size(grasp, (lam @ S).reshape(-1, 6)),
        start,
        method="SLSQP",
        constraints=[
            {"type": "eq", "fun": lambda lam: lam @ S @ A - w},
            {"type": "ineq", "fun": margins},
        ],
        options={"maxiter": 100, "ftol": 1e-12},
    )
    assert margins(other.x).min() > -1e-6
    assert best == pytest.approx(other.fun, rel=1e-5)


def test_no_feasible_neighbour_is_smaller():
    """Steps along internal forces that keep the margins make the norm larger."""
    rng = np.random.default_rng(0)
    grasp = disc(3, "soft_finger")
    distribution = grasp.load_distribution([0.05, 0.02, 0.1, 1, -2, WEIGHT])
    assert distribution.feasible
    best, tried = size(grasp, distribution.forces), 0
    for _ in range(1500):
        mix = rng.standard_normal(distribution.space.dimension) * 10.0 ** rng.uniform(-4, 0)
        forces = distribution.forces + np.tensordot(mix, distribution.space.internal, axes=1)
        if grasp.margins(forces).smallest >= 0.0:
            tried += 1
            assert size(grasp, forces) >= best * (1 - 1e-7)
    assert tried > 10


def test_what_stands_in_the_way_is_said():
    weak = block("point", friction=0.4).load_distribution([0, 0, 0, 0, 0, WEIGHT], most=10.0)
    assert not weak.feasible
    assert "'left' slips, 'right' slips" in weak.reason
    assert weak.margins.smallest == pytest.approx(4.0 - WEIGHT / 2)
    assert "not feasible" in str(weak)

    twisted = block("point").load_distribution([0.1, 0, 0, 0, 0, WEIGHT])
    assert not twisted.feasible
    assert "(0.1, 0, 0, 0, 0, 0) of it remains" in twisted.reason
    assert "rank 5 of 6" in twisted.reason
    assert "turning about" in twisted.reason

    pulled = block("point").load_distribution([0, 0, 0, 100.0, 0, 0], most=10.0)
    assert not pulled.feasible
    assert np.isfinite(pulled.forces).all()


def test_contacts_without_limits_only_share():
    grasp = disc(3, "rigid")
    w = np.array([0.1, 0.2, 0.3, 1.0, 2.0, 3.0])
    distribution = grasp.load_distribution(w)
    f = np.random.default_rng(0).standard_normal((3, 6))
    split = grasp.internal_forces(f)
    same = grasp.load_distribution(split.resultant)
    np.testing.assert_allclose(same.forces, split.motion, atol=1e-9)
    assert distribution.feasible


@pytest.mark.parametrize("seed", range(10))
def test_least_distance(seed):
    """Against a general solver; None only where a linear program finds nothing either."""
    rng = np.random.default_rng(seed)
    rows, bound = rng.standard_normal((8, 4)), rng.standard_normal(8) * (1 + seed)
    x = least_distance(rows, bound)
    feasible = optimize.linprog(np.zeros(4), A_ub=-rows, b_ub=-bound, bounds=[(None, None)] * 4)
    assert (x is not None) == (feasible.status == 0)
    if x is None:
        return
    assert (rows @ x >= bound - 1e-9).all()
    other = optimize.minimize(
        lambda y: y @ y,
        feasible.x,
        jac=lambda y: 2 * y,
        constraints={"type": "ineq", "fun": lambda y: rows @ y - bound, "jac": lambda y: rows},
    )
    assert x @ x <= other.fun + 1e-9


def test_least_distance_at_the_edges():
    np.testing.assert_array_equal(least_distance(np.zeros((0, 3)), np.zeros(0)), np.zeros(3))
    assert least_distance(np.zeros((1, 3)), np.ones(1)) is None
    np.testing.assert_allclose(least_distance(np.array([[2.0, 0]]), np.array([4.0])), [2.0, 0])


def test_impossible_questions():
    with pytest.raises(ModelError, match="objective is 'speed'"):
        block("point").load_distribution(np.zeros(6), objective="speed")
    with pytest.raises(ModelError, match="no effort was given"):
        block("point").load_distribution(np.zeros(6), objective="effort")
    with pytest.raises(ModelError, match="most is 0"):
        block("point").load_distribution(np.zeros(6), most=0)


@pytest.mark.parametrize("objective", ["force", "margin"])
def test_points_without_friction_share_a_load_as_frictionless_contacts_do(objective):
    """3 N across a disc and 1 N of reserve: pushes only, whatever the kind is called."""
    desired = [0, 0, 0, 3.0, 0, 0]
    smooth, slick = disc(3, "point", friction=0.0), disc(3, "frictionless")
    options = {"objective": objective, "reserve": 1.0, "most": 10.0}
    distribution = smooth.load_distribution(desired, **options)
    assert distribution.feasible
    assert distribution.margins.holds
    expected = slick.load_distribution(desired, **options)
    np.testing.assert_allclose(distribution.forces, expected.forces, atol=1e-6)
    up = smooth.load_distribution([0, 0, 0, 0, 0, 1.0])
    assert not up.feasible
    assert "of any size" in up.reason


def test_a_search_that_does_not_end_is_told(monkeypatch):
    from scipy import optimize

    def fails(*_, **__):
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr(optimize, "nnls", fails)
    with pytest.raises(ModelError, match="did not converge"):
        block("soft_finger").load_distribution([0, 0, 0, 0, 0, 1.0])


def kept(grasp, wrench, result, *, reserve=0.0, most=1e4):
    """Looks at forces that are called feasible: resultant, margins, pushes."""
    assert result.feasible, result.reason
    assert result.reason == ""
    full = max(1.0, np.abs(wrench).max())
    np.testing.assert_allclose(grasp.object_force(result.forces), wrench, atol=1e-9 * full)
    assert result.margins.smallest >= reserve - 1e-7 * full
    pushes = [
        f[3:] @ np.array(c.normal)
        for f, c in zip(result.forces, grasp.contacts.values(), strict=True)
    ]
    assert max(pushes) <= most + 1e-7 * max(full, most)


@pytest.mark.parametrize("objective", ["force", "margin"])
@pytest.mark.parametrize("more", [0.0, 1e-9, 1e-7, -1e-7, -1e-9, 1e-3])
def test_fingers_that_just_hold(objective, more):
    """Two fingers with μ = 0.5 need a push of the weight each: at most = weight nothing is left.

    Below it by 1e-7 of it the margin is short by 5e-7 N, within what counts as kept.
    """
    w, most = np.array([0, 0, 0, 0, 0, WEIGHT]), WEIGHT * (1 + more)
    for name in ("soft_finger", "point"):
        grasp = block(name, friction=0.5)
        distribution = grasp.load_distribution(w, most=most, objective=objective)
        kept(grasp, w, distribution, most=most)
        np.testing.assert_allclose(distribution.forces[:, 5], WEIGHT, rtol=2e-3)
    weak = grasp.load_distribution(w, most=WEIGHT * (1 - 1e-4), objective=objective)
    assert not weak.feasible
    assert "slips" in weak.reason


@pytest.mark.parametrize("less", [0.0, 1e-9, -1e-9, 1e-8, 1e-6, 1e-4])
def test_a_reserve_as_large_as_can_be(less):
    """Three points round a disc: the margin is μ most - weight / 3 at best."""
    grasp, w = disc(3, "point", friction=0.5), np.array([0, 0, 0, 0, 0, WEIGHT])
    best = 0.5 * 20.0 - WEIGHT / 3
    reserve = best - less
    distribution = grasp.load_distribution(w, reserve=reserve, most=20.0)
    kept(grasp, w, distribution, reserve=reserve, most=20.0)
    too_much = grasp.load_distribution(w, reserve=best + 1e-4, most=20.0)
    assert not too_much.feasible
    assert "at best" in too_much.reason


def test_forces_that_fail_are_never_called_feasible(monkeypatch):
    """Whatever the search returns is looked at; the forces before it are taken instead, or none."""
    grasp, w = block("soft_finger", friction=0.5), np.array([0, 0, 0, 0, 0, WEIGHT])
    wrong = [np.full(8, np.nan), np.full(8, 50.0), np.zeros(8)]
    for lam in wrong:
        monkeypatch.setattr(ConeProgram, "nearest", lambda *_, lam=lam: lam)
        kept(grasp, w, grasp.load_distribution(w))
    for lam in wrong[1:]:
        monkeypatch.setattr(ConeProgram, "nearest", lambda *_, lam=lam: lam)
        monkeypatch.setattr(ConeProgram, "largest_margin", lambda *_, lam=lam, **__: (lam, 1.0))
        distribution = grasp.load_distribution(w)
        assert not distribution.feasible
        assert "no forces that satisfy all limits were found" in distribution.reason


@pytest.mark.parametrize("size", [1e-12, 8e-7, 1.0, 1e6])
def test_a_resultant_is_reached_relative_to_itself(size):
    """However small a moment about the line through two points is, nothing resists it."""
    distribution = block("point").load_distribution([size, 0, 0, 0, 0, 0])
    assert not distribution.feasible
    assert "of any size" in distribution.reason


@pytest.mark.parametrize("size", [1e-12, 1e-8, 1e-3, 1.0, 1e3])
def test_loads_of_any_size_are_carried(size):
    grasp, w = block("soft_finger"), size * np.array([0.01, 0.02, 0.01, 0.5, 0.3, 1.0])
    for objective in ("force", "margin"):
        distribution = grasp.load_distribution(w, objective=objective)
        assert distribution.feasible, distribution.reason
        rounding = 1e-13 * np.abs(distribution.forces).max()
        np.testing.assert_allclose(
            grasp.object_force(distribution.forces), w, atol=1e-9 * size + rounding
        )
    nothing = grasp.load_distribution(np.zeros(6))
    assert nothing.feasible
    np.testing.assert_allclose(nothing.forces, 0.0, atol=1e-7)


@pytest.mark.parametrize("reserve", [np.nan, -1.0, -1e-12, np.inf, [1.0, 2.0]])
def test_a_reserve_that_is_none(reserve):
    with pytest.raises(ModelError, match="reserve is"):
        block("point").load_distribution([0, 0, 0, 0, 0, 1.0], reserve=reserve)


@pytest.mark.prove
def test_a_joint_that_just_holds():
    """One joint that pushes the left finger: with the limit at the push that is needed."""
    grasp, w = block("point", friction=0.5), np.array([0, 0, 0, 0, 0, WEIGHT])
    push = np.zeros((1, 12))
    push[0, 5] = 1.0
    for limit, most in ((WEIGHT, 1e4), (WEIGHT, WEIGHT), (np.inf, WEIGHT), (50.0, WEIGHT)):
        effort = lw.grasp.GraspEffort(("slide",), push, np.zeros(1), np.array([limit]))
        for objective in ("force", "effort", "margin"):
            distribution = grasp.load_distribution(w, most=most, effort=effort, objective=objective)
            kept(grasp, w, distribution, most=most)
            assert abs(distribution.efforts[0]) <= limit * (1 + 1e-7)
    effort = lw.grasp.GraspEffort(("slide",), push, np.zeros(1), np.array([0.9 * WEIGHT]))
    weak = grasp.load_distribution(w, effort=effort)
    assert not weak.feasible
    assert "at least 1.111 of their limits" in weak.reason
