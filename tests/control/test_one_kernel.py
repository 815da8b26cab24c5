"""All iterations in one kernel: batches against single problems, ticks in rollouts and in C."""

import shutil
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.control import Bound, Cost, RecedingHorizon, side_by_side
from linkwise.control.recursion import tile
from linkwise.errors import LinkwiseError, TroubleWarning

COMPILER = shutil.which("cc") or shutil.which("gcc")


def chain(effort: float = np.inf) -> lw.Mechanism:
    build = lw.Builder("chain", gravity=(0.0, 0.0, -9.81))
    link = lw.SpatialInertia.solid_box(1.0, (0.1, 0.1, 0.5))
    drive = lw.Drive(effort=effort)
    parent = "world"
    for i, axis in enumerate(((0, 1, 0), (1, 0, 0))):
        place = (0.0, 0.0, -0.5 if i else 0.0)
        build.body(f"b{i}", parent, lw.hinges.Pin(axis), inertia=link, drive=drive, inboard=place)
        parent = f"b{i}"
    return build.build()


def flying() -> lw.Mechanism:
    build = lw.Builder("flying", gravity=(0.0, 0.0, -9.81))
    box = lw.SpatialInertia.solid_box(1.0, (0.3, 0.2, 0.1))
    build.body("base", "world", lw.hinges.Free(), inertia=box)
    build.body("arm", "base", lw.hinges.Pin((0, 1, 0)), inertia=box)
    return build.build()


def costs() -> list[Cost]:
    return [
        Cost.posture(weight=1.0, final=10.0),
        Cost.velocity(weight=0.1, final=1.0),
        Cost.effort(weight=1e-2),
    ]


def test_tiles_cover_with_little_padding() -> None:
    for n in range(1, 60):
        t = tile(n)
        assert 1 <= t <= 4 and -(-n // t) * t - n < t
    assert tile(21) == 3 and tile(7) == 4 and tile(1) == 1


def limited() -> lw.Mechanism:
    return chain(2.0)


@pytest.mark.parametrize(
    ("make", "integrator"),
    [
        (limited, "euler"),
        pytest.param(chain, "euler", marks=pytest.mark.prove),
        pytest.param(limited, "rk4", marks=pytest.mark.prove),
        pytest.param(flying, "euler", marks=pytest.mark.prove),
    ],
)
def test_a_batch_solves_what_single_problems_solve(
    make: Callable[[], lw.Mechanism], integrator: str
) -> None:
    mech = make()
    rng = np.random.default_rng(1)
    q = np.stack(
        [mech.integrate(mech.neutral(), 0.3 * rng.standard_normal(mech.nv)) for _ in "abc"]
    )
    given: dict[str, Any] = {"costs": costs(), "step": 0.03, "horizon": 12,
             "integrator": integrator,
             "limits": ("effort",), "tolerance": 1e-11}  # fmt: skip
    many = lw.optimize(mech, q, **given)
    assert (many.status == 0).all()
    for i in range(3):
        one = lw.optimize(mech, q[i], **given)
        assert one.status == 0 and one.cost > 1e-3
        assert np.isclose(many.cost[i], one.cost, rtol=1e-9)
        assert np.allclose(many.q[i], one.q, atol=1e-6) and np.abs(one.gain).max() > 0.1
        assert np.allclose(many.gain[i], one.gain, atol=1e-4 * np.abs(one.gain).max())
    with pytest.warns(TroubleWarning, match="iterations"):
        early = lw.optimize(mech, q, **given | {"iterations": 2})
        one = lw.optimize(mech, q[0], **given | {"iterations": 2})
    assert (early.status == one.status).all() and (early.iterations == 2).all()
    assert np.allclose(early.q[0], one.q, atol=1e-9) and np.isclose(early.cost[0], one.cost)
    if np.isfinite(mech.effort_limit).any():
        assert np.isclose(np.abs(many.tau).max(), mech.effort_limit.min())


BOUNDS = Bound.on_velocity(-0.3, 0.3)


@pytest.mark.parametrize("bounds", [(), BOUNDS])
def test_rollouts_make_the_ticks_that_calls_make(bounds: Any) -> None:
    mech = chain(effort=20.0)
    given: dict[str, Any] = {"costs": costs(), "step": 0.04, "horizon": 8}
    predict = RecedingHorizon(mech, **given, bounds=bounds, first=9, iterations=2)
    q = 0.3 * np.random.default_rng(0).standard_normal((5, 2))
    runs = lw.rollout(mech, q, duration=0.3, step=0.02, controller=predict, integrator="euler")
    assert (runs.status == 0).all()
    fast = 0.0
    for i in (0, 4):
        predict.reset()
        x, v = q[i].copy(), np.zeros(2)
        for n in range(15):
            tau = predict(0.02 * n, x, v)
            fast = max(fast, np.abs(predict.plan[1]).max())
            v = v + 0.02 * lw.forward_dynamics(mech, x, v, tau)
            x = x + 0.02 * v
        assert np.allclose(runs.q[i, -1], x, atol=1e-9) and np.abs(x - q[i]).max() > 1e-3
    assert (fast < 0.32) if bounds else (fast > 0.4)  # without bounds it would be faster
    alone = lw.rollout(mech, q[2], duration=0.3, step=0.02, controller=predict, integrator="euler")
    assert np.allclose(alone.q, runs.q[2], atol=1e-9)


@pytest.mark.prove
@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
@pytest.mark.parametrize("bounds", [(), BOUNDS])
def test_emitted_c_makes_the_same_ticks(tmp_path: Path, bounds: Any) -> None:
    given: dict[str, Any] = {"costs": costs(), "step": 0.04, "horizon": 8, "first": 4}
    predict = RecedingHorizon(chain(effort=20.0), **given, bounds=bounds, iterations=2)
    code = predict.export_c("chain_mpc")
    header, source = code.write(tmp_path)
    assert f"CHAIN_MPC_MEMORY {code.memory}" in header.read_text(encoding="ascii")
    assert "malloc" not in source.read_text(encoding="ascii")
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror", "-DCHAIN_MPC_SELFTEST"]
    program = tmp_path / "selftest"
    command = [str(COMPILER), *flags, str(source), "-o", str(program), "-lm"]
    subprocess.run(command, check=True, capture_output=True)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "ok" in done.stdout


def test_a_batch_holds_bounds_as_single_problems_do() -> None:
    """Also those that cannot be met, and with reports: other calls, the same numbers."""
    mech, rng = chain(8.0), np.random.default_rng(2)
    q = 0.4 * rng.standard_normal((9, 2))
    low = Bound.on_position(0.05, 0.2, hinges=["b0"], when="final")
    far = Bound.on_position(3.0, 3.0, hinges=["b0"], when="final")
    given: dict[str, Any] = {"costs": costs(), "step": 0.03, "horizon": 12}
    for bounds, rounds in (([low, Bound.on_velocity(-1.0, 1.0)], 200), ([far], 60)):
        given |= {"bounds": bounds, "iterations": rounds}
        reports = list[Any]()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TroubleWarning)
            many = lw.optimize(mech, q, **given)
            again = lw.optimize(mech, q, **given, progress=reports.append)
            for i in (0, 2, 4):
                one = lw.optimize(mech, q[i], **given)
                made = int(one.iterations)
                assert one.status == many.status[i]
                if one.status:  # penalties are huge, and round-off with them
                    assert np.isclose(one.violation, many.violation[i], rtol=1e-3)
                    continue
                assert made == many.iterations[i]
                assert np.allclose(many.q[i], one.q, atol=1e-6), i
                assert np.isclose(many.cost[i], one.cost, rtol=1e-6)
                for name in ("cost", "violation"):
                    each, alone = getattr(many.history, name)[i], getattr(one.history, name)
                    assert np.isnan(each[made:]).all()
                    assert np.allclose(each[:made], alone, rtol=1e-4, atol=1e-6)
        solved = many.status == 0
        if bounds[0] is far:
            assert not solved.any()
        else:  # problem 2 is too far away for its speed
            assert np.flatnonzero(~solved).tolist() == [2] and many.violation[solved].max() < 1e-5
            assert np.isclose(many.q[:2, -1, 0], 0.05, atol=1e-4).all()
        assert np.array_equal(many.q, again.q) and np.array_equal(many.cost, again.cost)
        assert np.array_equal(many.history.cost, again.history.cost, equal_nan=True)
        last = reports[-1]
        assert last.solved == last.problems == 9 and last.iteration == many.iterations.max()
        assert [x.iteration for x in reports] == sorted({x.iteration for x in reports})
        each = last.elapsed / last.iteration
        assert np.isclose(last.left, each * (rounds - last.iteration))


def test_history_is_the_same_with_a_report_after_each_iteration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mech, rng = chain(8.0), np.random.default_rng(2)
    q = 0.4 * rng.standard_normal((9, 2))
    low = Bound.on_position(0.05, 0.2, hinges=["b0"], when="final")
    given: dict[str, Any] = {"costs": costs(), "step": 0.03, "horizon": 12, "bounds": [low]}
    many = lw.optimize(mech, q, **given)
    monkeypatch.setattr(side_by_side, "OFTEN", 1e-9)
    reports = list[Any]()
    again = lw.optimize(mech, q, **given, progress=reports.append)
    assert len(reports) == many.iterations.max() > many.iterations.min()
    for name in ("cost", "violation"):
        each, other = getattr(many.history, name), getattr(again.history, name)
        assert np.array_equal(each, other, equal_nan=True)


@pytest.mark.prove
def test_what_a_kernel_cannot_do_is_refused() -> None:
    mech = chain()
    predict = RecedingHorizon(mech, costs=costs(), step=0.04, horizon=8)
    refused: list[tuple[str, dict[str, Any]]] = [
        ("longer than a step", {"step": 0.05}),
        ("tau", {"tau": np.zeros(2)}),
        ("implicit", {"integrator": "implicit"}),
        ("target", {"target": "cuda"}),
    ]
    for words, more in refused:
        given: dict[str, Any] = {"duration": 0.1, "step": 0.01, "controller": predict, **more}
        with pytest.raises(LinkwiseError, match=words):
            lw.rollout(mech, np.zeros(2), **given)
    with pytest.raises(LinkwiseError, match="belongs"):
        lw.rollout(flying(), flying().neutral(), duration=0.1, step=0.01, controller=predict)


def options(**more: Any) -> Any:
    return {"costs": [Cost.effort(weight=0.05)], "step": 0.05, "horizon": 6} | more


def reach(goal: Any, weight: float = 1.0) -> Cost:
    return Cost.posture(goal, weight=weight, final=10.0)


def test_goals_parameters_and_guesses_make_a_batch_of_one_start() -> None:
    mech, start, rng = lw.models.pendulum(2), np.array([0.5, -0.3]), np.random.default_rng(0)
    goals = rng.uniform(-1.0, 1.0, (3, 2))
    fall = np.array([[0, 0, -9.81], [0, 0, -1.6], [0, 0, 0.0]])
    guess = {"q": rng.uniform(-1.0, 1.0, (3, 7, 2))}
    effort = Cost.effort(weight=0.05)
    for given, cost in (
        (options(), [reach(goals), effort]),
        (options(parameters={"gravity": fall}), [reach(goals[0]), effort]),
        (options(guess=guess), [reach(goals[0]), effort]),
    ):
        given["costs"] = cost
        alike = lw.optimize(mech, np.tile(start, (3, 1)), **given)
        made = lw.optimize(mech, start, **given)
        assert made.q.shape == (3, 7, 2) and np.array_equal(made.q, alike.q)
        assert np.array_equal(made.q[:, 0], np.tile(start, (3, 1)))
    with pytest.raises(lw.ShapeError, match=r"differ in number: 2 of .*gravity.*3 of the goal"):
        costs = [reach(goals), effort]
        lw.optimize(mech, start, **options(costs=costs, parameters={"gravity": fall[:2]}))
    with pytest.raises(lw.ShapeError, match="a goal has rows for 3 problems"):
        RecedingHorizon(mech, **options(costs=[reach(goals)]))


def test_as_many_goals_as_knots() -> None:
    mech, start, rng = lw.models.pendulum(2), np.array([0.5, -0.3]), np.random.default_rng(0)
    goals, effort = rng.uniform(-1.0, 1.0, (7, 2)), Cost.effort(weight=0.05)
    fall = np.tile([0.0, 0.0, -9.81], (7, 1))
    each = lw.optimize(mech, start, **options(costs=[reach(goals), effort]))
    assert each.q.shape == (7, 2)
    same = lw.optimize(mech, start, **options(costs=[reach(goals[None]), effort]))
    assert np.array_equal(each.q, same.q)
    many = lw.optimize(mech, np.tile(start, (7, 1)), **options(costs=[reach(goals), effort]))
    assert many.q.shape == (7, 7, 2)
    for more, cost in (({"parameters": {"gravity": fall}}, reach(goals)), ({}, reach(goals, 0.0))):
        with pytest.raises(lw.ShapeError, match=r"7 problems, give q as \(7, 2\).*\(1, 7\)"):
            lw.optimize(mech, start, **options(costs=[cost, effort], **more))
    knots = lw.optimize(
        mech, start, **options(costs=[reach(goals[None]), effort], parameters={"gravity": fall})
    )
    assert knots.q.shape == (7, 7, 2) and np.allclose(knots.q[3], each.q, atol=1e-6)
