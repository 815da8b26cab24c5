"""Problems on a GPU, with the processor in its place, against the same ones on its cores."""

import shutil
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen import arrays
from linkwise.control import Bound, Cost, Foothold, Phase
from linkwise.errors import TroubleWarning
from tests.codegen import stages_on_host
from tests.codegen.cupy_on_host import CardArray, on_card
from tests.control.test_one_kernel import chain, costs, flying
from tests.control.test_phases import hopper

COMPILER = shutil.which("g++") or shutil.which("clang++")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here")


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Any:
    """A card with little memory to share, which is the processor."""

    def make(**more: Any) -> Any:
        cp = stages_on_host.fake(tmp_path, str(COMPILER), **more)
        monkeypatch.setitem(sys.modules, "cupy", cp)
        monkeypatch.setattr(arrays, "cupy", lambda: cp)
        return cp

    return make


def same(one: Any, other: Any, rtol: float = 1e-9, atol: float = 1e-6) -> None:
    assert np.array_equal(one.status, other.status)
    assert np.array_equal(one.iterations, other.iterations)
    assert np.allclose(one.cost, other.cost, rtol=rtol)
    assert np.allclose(one.q, other.q, atol=atol)
    assert np.allclose(one.v, other.v, atol=atol / other.step)  # a step of Euler takes q there
    assert np.allclose(one.tau, other.tau, atol=1e-4)  # √(tolerance · cost / weight)
    assert np.allclose(one.gain, other.gain, atol=1e-4 * np.abs(other.gain).max())
    for name in ("cost", "gap", "violation"):
        notes = (getattr(x.history, name) for x in (one, other))
        assert np.allclose(*notes, rtol=1e-4, atol=1e-7, equal_nan=True)


def test_problems_on_a_card_end_as_on_the_processor(card: Any) -> None:
    cp = card()
    mech, rng = chain(2.0), np.random.default_rng(1)
    q = 0.3 * rng.standard_normal((37, 2))
    goals = 0.1 * rng.standard_normal((37, 2))
    given: dict[str, Any] = {"step": 0.03, "horizon": 12, "limits": ("effort",),
             "costs": [Cost.posture(goals, weight=1.0, final=10.0), *costs()[1:]],
             "tolerance": 1e-11}  # fmt: skip
    right = lw.optimize(mech, q, **given)
    made = lw.optimize(mech, q, **given, target="cuda")
    assert (made.status == 0).all() and type(made.q) is np.ndarray
    same(made, right)
    kernels = {name for name, _ in cp.modules[0].launches}
    assert len(kernels) == 10 and np.isclose(np.abs(made.tau).max(), 2.0)
    counts = [n for _, n in cp.modules[0].launches]
    assert counts[0] == 37 and min(counts) < 37  # those that have ended are left out
    there = lw.optimize(mech, on_card(q), **given, target="cuda")
    for name in ("q", "v", "tau", "gain", "cost", "violation"):
        assert isinstance(getattr(there, name), CardArray)
        assert np.array_equal(getattr(there, name), getattr(made, name))
    assert len(cp.modules) == 1 and not isinstance(there.status, CardArray)


@pytest.mark.prove
@pytest.mark.parametrize(("make", "integrator"), [(chain, "rk4"), (flying, "euler")])
def test_other_robots_and_little_shared_memory(card: Any, make: Any, integrator: str) -> None:
    mech, rng = make(), np.random.default_rng(1)
    q = np.stack([mech.integrate(mech.neutral(), 0.3 * rng.standard_normal(mech.nv))
                  for _ in range(5)])  # fmt: skip
    given: dict[str, Any] = {"costs": costs(), "step": 0.03, "horizon": 8, "limits": (),
             "integrator": integrator, "tolerance": 1e-11}  # fmt: skip
    right = lw.optimize(mech, q, **given)
    threads = list[int]()
    for room in (227 << 10, 20 << 10, 1 << 10):  # all of a warp, a part of it, nothing
        cp = card(room=room)
        fresh = make()
        same(lw.optimize(fresh, q, **given, target="cuda"), right)
        threads.append(len(cp.modules))
    assert threads == [1, 1, 1]


@pytest.mark.prove
def test_bounds_hold_on_a_card_as_on_the_processor(card: Any) -> None:
    card(free=1 << 20)  # few problems at a time
    mech, rng = chain(8.0), np.random.default_rng(2)
    q = 0.4 * rng.standard_normal((40, 2))
    bounds = [Bound.on_position(0.05, 0.2, hinges=["b0"], when="final"),
              Bound.on_velocity(-1.0, 1.0)]  # fmt: skip
    given: dict[str, Any] = {"costs": costs(), "step": 0.03, "horizon": 12, "bounds": bounds,
             "iterations": 70}  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TroubleWarning)
        right = lw.optimize(mech, q, **given)
        reports = list[Any]()
        made = lw.optimize(mech, q, **given, target="cuda", progress=reports.append)
    solved = right.status == 0
    assert np.array_equal(made.status, right.status) and 20 < solved.sum() < 40
    assert np.allclose(made.q[solved], right.q[solved], atol=1e-6)
    assert np.allclose(made.cost[solved], right.cost[solved], rtol=1e-6)
    assert made.violation[solved].max() < 1e-5 and made.violation[~solved].min() > 1e-5
    assert {x.problems for x in reports} == {32, 8}


def test_one_problem_and_what_is_refused(card: Any) -> None:
    mech, given = chain(), {"costs": costs(), "step": 0.03, "horizon": 8, "limits": ()}
    card()
    with pytest.raises(lw.errors.ShapeError, match="q is on a GPU"):
        lw.optimize(mech, on_card([0.1, 0.2]), **given)
    with pytest.raises(lw.errors.ModelError, match="gpu"):
        lw.optimize(mech, np.zeros(2), **given, target="gpu")
    one = lw.optimize(mech, [0.1, 0.2], **given, target="cuda")
    assert one.q.shape == (9, 2) and one.status == 0
    assert np.allclose(one.q, lw.optimize(mech, [0.1, 0.2], **given).q, atol=1e-6)


@pytest.mark.prove
def test_contacts_and_parameters_of_each_problem(card: Any) -> None:
    """A hop of a few heights, and pendulums that fall on several planets."""
    card()
    mech, rng = hopper(), np.random.default_rng(0)
    stance = np.array([0.0, 0.6 * np.cos(0.6), 0.6, -1.2])
    foot = Foothold("foot", friction=0.5)
    goals = stance + np.array([0.05, 0.0, 0.0, 0.0]) * rng.uniform(0.5, 1.5, (3, 1))
    hops: dict[str, Any] = {
        "phases": [Phase(5, [foot]), Phase(4), Phase(6, [foot])], "step": 0.02,
        "costs": [Cost.posture(goals, weight=1.0, final=10.0), Cost.velocity(weight=0.05),
                  Cost.effort(weight=1e-2)],
        "driven": ["thigh", "shank"], "violation": 1e-4, "iterations": 25,
    }  # fmt: skip
    falls: dict[str, Any] = {
        "costs": costs(), "step": 0.05, "horizon": 6, "driven": ["b1"],
        "parameters": {"gravity": np.outer([0.2, 1.0, 2.5], [0.0, 0.0, -9.81])},
    }  # fmt: skip
    for robot, q, given in ((mech, stance, hops), (chain(), np.array([0.3, -0.2]), falls)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TroubleWarning)
            right = lw.optimize(robot, q, **given)
            made = lw.optimize(robot, q, **given, target="cuda")
        assert np.array_equal(made.status, right.status) and right.q.shape[0] == 3
        assert np.array_equal(made.iterations, right.iterations)
        assert np.allclose(made.q, right.q, atol=1e-6) and np.ptp(right.q[:, -1], axis=0).max() > 0
        assert np.allclose(made.tau, right.tau, atol=1e-3 * np.abs(right.tau).max())
        assert all(np.allclose(made.forces[x], right.forces[x], atol=0.1) for x in right.forces)
