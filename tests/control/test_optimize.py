"""Trajectories: against regulators, dense optimisers, rollouts and each other."""

import re
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.optimize import lsq_linear, minimize

import linkwise as lw
from linkwise.cli import main
from linkwise.control import Bound, Cost
from linkwise.control.optimize import problem_of
from linkwise.control.solver import Iteration, Limits
from linkwise.errors import LinkwiseError, TroubleWarning
from linkwise.spatial.array import Array
from linkwise.tasks.reach import reach
from tests.control.expansions import expansion

STEP = 0.05


def cart_pole(effort: float = np.inf) -> lw.Mechanism:
    build = lw.Builder("cart_pole")
    cart = lw.SpatialInertia.solid_box(1.0, (0.3, 0.2, 0.1))
    pole = lw.SpatialInertia.solid_box(0.3, (0.02, 0.02, 0.5))
    pole = pole.moved(lw.Pose.translation((0.0, 0.0, 0.25)))
    drive = lw.Drive(effort=effort)
    build.body("cart", "world", lw.hinges.Prismatic((1, 0, 0)), inertia=cart, drive=drive)
    build.body("pole", "cart", lw.hinges.Pin((0, 1, 0)), inertia=pole)
    return build.build()


def sliders(effort: float = np.inf) -> lw.Mechanism:
    """A linear mechanism: two sliders across each other, without gravity."""
    build = lw.Builder("sliders", gravity=(0.0, 0.0, 0.0))
    box, drive = lw.SpatialInertia.solid_box(1.0, (0.1, 0.1, 0.1)), lw.Drive(effort=effort)
    build.body("x", "world", lw.hinges.Prismatic((1, 0, 0)), inertia=box, drive=drive)
    build.body("y", "x", lw.hinges.Prismatic((0, 1, 0)), inertia=box, drive=drive)
    return build.build()


def costs(reach: float = 10.0) -> list[Cost]:
    return [
        Cost.posture(weight=1.0, final=reach),
        Cost.velocity(weight=0.1, final=1.0),
        Cost.effort(weight=0.05),
    ]


def rolled(made: Any) -> Any:
    return lw.rollout(
        made.mech, made.q[0], made.v[0], tau=made.tau, duration=made.step * len(made.tau),
        step=made.step, integrator=made.integrator,
    )  # fmt: skip


def price(mech: lw.Mechanism, q: Array, v: Array, tau: Array, reach: float = 10.0) -> float:
    """The costs above, of a motion, in NumPy."""
    each = 0.5 * (q**2).sum(-1) + 0.05 * (v**2).sum(-1)
    force = 0.025 * (tau**2).sum()
    last = 0.5 * reach * (q[-1] ** 2).sum() + 0.5 * (v[-1] ** 2).sum()
    return float(STEP * (each[:-1].sum() + force) + last)


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_expansion_is_the_derivative_of_a_step(integrator: str) -> None:
    rng = np.random.default_rng(0)
    build = lw.Builder("flyer")
    box = lw.SpatialInertia.solid_box(1.0, (0.3, 0.2, 0.1))
    drive = lw.Drive(damping=0.3, stiffness=2.0)
    build.body("base", "world", lw.hinges.Spherical(), inertia=box, drive=drive)
    for mech in (build.build(),) if integrator == "euler" else (lw.models.chain(2),):
        q, v, tau = mech.random(rng), rng.normal(size=mech.nv), rng.normal(size=mech.nv)
        p = problem_of(
            mech, q, v, costs=[Cost.effort(weight=1.0)], step=STEP, horizon=1, limits=(),
            integrator=integrator,
        )  # fmt: skip
        it = Iteration(p.program, p.data, p.step, Limits(1, 1e-9, 1e-5))
        it.trajectory[1, it.nx : it.nx + it.m] = tau
        (F, G, W, _), n = expansion(it), 2 * mech.nv
        both = G @ W + np.pad(F, ((0, 0), (0, mech.nv)))
        exact = lw.linearize(mech, q, v, tau, step=STEP, integrator=integrator)
        scale = np.abs(exact.A).max()
        assert np.abs(both[:, :n] - exact.A).max() < 1e-13 * scale
        assert np.abs(both[:, n:] - exact.B).max() < 1e-13 * scale


def test_linear_problem_takes_one_step_and_has_the_gains_of_lqr() -> None:
    mech, start = sliders(), np.array([0.4, -0.3])
    made = lw.optimize(mech, start, costs=costs(), step=STEP, horizon=20)
    assert made.status == 0 and made.iterations == 2  # the second finds nothing left to gain
    Q = np.diag([1.0, 1.0, 0.1, 0.1]) * STEP
    S = np.diag([10.0, 10.0, 1.0, 1.0])
    regulator = lw.lqr(
        mech, np.zeros(2), Q=Q, R=0.05 * STEP, step=STEP, horizon=20, final=S, integrator="euler"
    )
    assert np.allclose(made.gain, -regulator.gain, atol=1e-7)  # Q_uu is lifted by 1e-9
    x = np.array([*start, 0.0, 0.0])
    assert np.isclose(made.cost, 0.5 * x @ regulator.cost[0] @ x, rtol=1e-9)


def test_trajectory_is_a_rollout_and_costs_what_it_says() -> None:
    mech, start = cart_pole(), np.array([0.0, 0.6])
    made = lw.optimize(mech, start, costs=costs(), step=STEP, horizon=15, driven=["cart"])
    assert made.status == 0 and (made.tau[:, 1] == 0.0).all()
    run = rolled(made)
    assert np.abs(run.q - made.q).max() < 1e-12 and np.abs(run.v - made.v).max() < 1e-12
    assert np.isclose(price(mech, made.q, made.v, made.tau), made.cost, rtol=1e-12)


def test_optimum_is_that_of_a_dense_optimiser() -> None:
    mech, start, steps = cart_pole(), np.array([0.0, 0.6]), 10
    made = lw.optimize(
        mech, start, costs=costs(), step=STEP, horizon=steps, driven=["cart"], tolerance=1e-14
    )

    def of(u: Array) -> tuple[float, Array]:
        tau = np.zeros((steps, 2))
        tau[:, 0] = u
        run = lw.rollout(
            mech, start, np.zeros(2), tau=tau, duration=steps * STEP, step=STEP, integrator="euler"
        )
        w_q, w_v = STEP * run.q, STEP * 0.1 * run.v
        w_q[-1], w_v[-1] = 10.0 * run.q[-1], run.v[-1]
        slope = run.gradient(q=w_q, v=w_v).tau[:, 0] + STEP * 0.05 * u
        return price(mech, run.q, run.v, tau), slope

    best: Any = minimize(of, np.zeros(steps), jac=True, method="BFGS", options={"gtol": 1e-9})
    assert np.isclose(best.fun, made.cost, rtol=1e-9)
    assert np.abs(best.x - made.tau[:, 0]).max() < 1e-5
    assert np.abs(of(made.tau[:, 0])[1]).max() < 1e-6


def test_limits_of_forces_are_those_of_a_bounded_least_squares_problem() -> None:
    mech, start, steps = sliders(effort=2.0), np.array([0.5, -0.2]), 12
    made = lw.optimize(mech, start, costs=costs(100.0), step=STEP, horizon=steps, tolerance=1e-12)
    assert made.status == 0
    assert np.abs(made.tau).max() == 2.0 and (np.abs(made.tau) < 1.99).any()

    # the same as one least-squares problem: rows are affine in all forces
    def residual(u: Array) -> Array:
        tau = u.reshape(steps, 2)
        run = lw.rollout(
            mech, start, np.zeros(2), tau=tau, duration=steps * STEP, step=STEP, integrator="euler"
        )
        rows = [np.sqrt(STEP) * run.q[:-1], np.sqrt(STEP * 0.1) * run.v[:-1],
                np.sqrt(100.0) * run.q[-1:], run.v[-1:], np.sqrt(STEP * 0.05) * tau]  # fmt: skip
        return np.concatenate([x.ravel() for x in rows])

    free = residual(np.zeros(2 * steps))
    A = np.stack([residual(e) - free for e in np.eye(2 * steps)], axis=1)
    best: Any = lsq_linear(A, -free, (-2.0, 2.0), tol=1e-14)
    assert np.abs(best.x - made.tau.ravel()).max() < 1e-5
    assert np.isclose(best.cost, made.cost, rtol=1e-8)


def test_bounds_hold_and_goals_are_reached() -> None:
    mech = lw.models.chain(3)
    start = np.array([0.3, 0.4, -0.2])
    task = lw.Task.position(mech.nodes[-1].name if mech.nodes else mech.bodies[-1].name)
    goal = lw.tasks.task_position(mech, start + np.array([0.3, -0.5, 0.4]), task)
    made = lw.optimize(
        mech, start, costs=[Cost.effort(weight=1e-2), Cost.velocity(weight=1e-2)], step=STEP,
        horizon=20, bounds=[Bound.on_task(task, goal, when="final"),
                            Bound.on_velocity(-1.0, 1.0)],
    )  # fmt: skip
    assert made.status == 0 and made.violation <= 1e-5
    reached = lw.tasks.task_position(mech, made.q[-1], task)
    assert np.abs(reached - goal).max() < 1.1e-5
    assert 0.999 < np.abs(made.v).max() < 1.0 + 1.1e-5
    assert np.abs(rolled(made).q - made.q).max() < 1e-11


def test_any_guess_leads_to_the_same_optimum() -> None:
    mech, rng = cart_pole(), np.random.default_rng(1)
    options: dict[str, Any] = {
        "costs": costs(), "step": STEP, "horizon": 15, "driven": ["cart"], "tolerance": 1e-12
    }  # fmt: skip
    plain = lw.optimize(mech, np.array([0.0, 0.4]), **options)
    wild = {"q": rng.normal(size=(16, 2)), "v": rng.normal(size=(16, 2))}  # gaps everywhere
    other = lw.optimize(mech, np.array([0.0, 0.4]), guess=wild, **options)
    assert other.status == 0 and np.isclose(other.cost, plain.cost, rtol=1e-9)
    assert other.history.gap[0] > 1.0 and other.history.gap[-1] < 1e-9
    again = lw.optimize(mech, np.array([0.0, 0.4]), guess=other, **options)
    assert again.iterations == 1


def test_batch_is_what_each_problem_gives_alone() -> None:
    mech = cart_pole(effort=8.0)
    starts = np.stack([np.zeros(11), np.linspace(-0.8, 0.8, 11)], axis=1)
    goals = np.stack([np.linspace(-0.2, 0.3, 11), np.zeros(11)], axis=1)

    def made(q: Array, goal: Array) -> Any:
        rows = [Cost.posture(goal, weight=1.0, final=10.0), *costs()[1:]]
        return lw.optimize(
            mech, q, costs=rows, step=STEP, horizon=12, driven=["cart"], tolerance=1e-11
        )

    together = made(starts, goals)
    assert (together.status == 0).all() and np.abs(together.tau).max() <= 8.0
    for i in (0, 4, 10):
        alone = made(starts[i], goals[i])
        assert np.isclose(alone.cost, together.cost[i], rtol=1e-8)
        assert np.abs(alone.q - together.q[i]).max() < 1e-4


def test_masses_of_a_batch_differ() -> None:
    mech, heavy = sliders(), np.array([1.0, 1.0, 3.0, 3.0])
    nominal = lw.compile(lw.algebra.mass, mech, parameters=["inertia"]).nominal("inertia")
    scaled = heavy[:, None] * nominal.reshape(1, -1)
    made = lw.optimize(
        mech, np.full((4, 2), 0.3), costs=costs(), step=STEP, horizon=10,
        parameters={"inertia": scaled.reshape(4, *nominal.shape)},
    )  # fmt: skip
    assert np.isclose(made.cost[0], made.cost[1]) and made.cost[2] > 1.05 * made.cost[0]
    run = lw.rollout(
        mech, made.q[2, 0], made.v[2, 0], tau=made.tau[2], duration=10 * STEP, step=STEP,
        integrator="euler", parameters={"inertia": scaled[2].reshape(nominal.shape)},
    )  # fmt: skip
    assert np.abs(run.q - made.q[2]).max() < 1e-12


def test_failures_are_explained() -> None:
    mech = cart_pole()
    with pytest.warns(TroubleWarning, match="all iterations"):
        made = lw.optimize(
            mech, [0.0, 3.0], costs=costs(), step=STEP, horizon=30, driven=["cart"], iterations=1
        )
    assert made.status != 0 and "all iterations" in str(made)
    far = Bound.on_position(3.0, 4.0, hinges=["cart"])  # the start is not there
    with pytest.warns(TroubleWarning, match="cannot all be met"):
        made = lw.optimize(
            mech, [0.0, 0.1], costs=costs(), step=STEP, horizon=5, driven=["cart"], bounds=[far]
        )
    assert made.violation > 1.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"costs": []}, "empty"),
        ({"costs": [Cost.posture(weight=-1.0)]}, "posture is -1.0; it must be finite and not neg"),
        ({"costs": [Cost.of_function(lambda at: at.q > 0.0, weight=1.0)]}, "no comparison"),
        ({"costs": [Cost.posture(weight=[1.0, 2.0, 3.0])]}, "weight"),
        ({"horizon": 0}, "horizon"),
        ({"horizon": None}, "horizon is missing; give the number of steps, or phases"),
        ({"limits": ["speed"]}, "limits"),
        ({"driven": ["wheel"]}, "wheel"),
        ({"integrator": "implicit"}, "integrator"),
        ({"guess": {"u": 1.0}}, "'u'"),
        ({"guess": {"q": np.zeros((3, 2))}}, "shape"),
        ({"guess": {"tau": np.full((5, 2), np.nan)}}, "tau of the guess is not finite"),
        (
            {"bounds": [Bound.on_velocity(1.0, -1.0)]},
            "is 1 in row 0, above high, which is -1; exch",
        ),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], words: str) -> None:
    options: dict[str, Any] = {"costs": costs(), "step": STEP, "horizon": 5} | change
    with pytest.raises(LinkwiseError, match=words):
        lw.optimize(cart_pole(), np.zeros(2), **options)


def test_bounds_of_a_batch_hold_as_those_of_each_problem_alone() -> None:
    mech, starts = sliders(), np.linspace(0.0, 0.1, 10).reshape(5, 2)
    given: Any = {"costs": [Cost.effort(weight=0.1)], "step": STEP, "horizon": 20}
    reached = Bound.on_position([0.3, 0.2], [0.3, 0.2], when="final")
    together = lw.optimize(mech, starts, bounds=reached, **given)
    assert (together.status == 0).all()
    for i in (0, 4):
        alone = lw.optimize(mech, starts[i], bounds=reached, **given)
        assert np.abs(alone.tau - together.tau[i]).max() < 1e-6
    # What it costs, without the penalties that hold the bounds.
    paid = 0.5 * 0.1 * STEP * (together.tau**2).sum((1, 2))
    np.testing.assert_allclose(together.cost, paid, rtol=1e-9)


def test_bounds_on_joints_are_about_their_goal() -> None:
    given: Any = {"costs": [Cost.effort(weight=0.1)], "step": STEP, "horizon": 20}
    goals = np.array([[0.3], [-0.2]])
    made = lw.optimize(
        sliders(), np.zeros((2, 2)), **given,
        bounds=Bound.on_task(lw.Task.joints("y"), goals, 0.05, 0.1, when="final"),
    )  # fmt: skip
    # goal − 0.1 ≤ q ≤ goal − 0.05, and the end next to the start costs least
    np.testing.assert_allclose(made.q[:, -1], [[0.0, 0.2], [0.0, -0.25]], atol=1e-4)
    ball = lw.Builder("ball").body(
        "ball", "world", lw.hinges.Spherical(), inertia=lw.SpatialInertia.solid_sphere(1.0, 0.1)
    )
    with pytest.raises(LinkwiseError, match="only coordinates of pins and sliders"):
        lw.optimize(
            ball.build(), [1, 0, 0, 0], **given,
            bounds=Bound.on_task(lw.Task.joints("ball"), [1, 0, 0, 0]),
        )  # fmt: skip


def test_history_of_problems_that_ended_is_blank() -> None:
    """Rows that no iteration has written have no influence, and no warning is raised."""
    mech, reports = cart_pole(), list[Any]()
    starts = np.stack([np.zeros(21), np.linspace(0.0, 2.5, 21)], axis=1)
    given: Any = {"costs": costs(), "step": STEP, "horizon": 20, "driven": ["cart"]}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        made = lw.optimize(
            mech, starts, **given, bounds=Bound.on_velocity(-2.0, 2.0, hinges=["cart"]),
            progress=reports.append,
        )  # fmt: skip
    assert len(set(made.iterations.tolist())) > 1
    for i, count in enumerate(made.iterations):
        for x in (made.history.cost[i], made.history.gap[i], made.history.violation[i]):
            assert np.isfinite(x[:count]).all() and np.isnan(x[count:]).all()
    worst = max(made.history.violation[i, k - 1] for i, k in enumerate(made.iterations))
    assert reports[-1].violation == worst


def test_command_line_says_what_is_out_of_reach(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["optimize", "seven_dof_arm", "--node", "hand", "--quiet", "--steps", "10"]
    assert main([*words, "--to", "9", "9", "9"]) == 2
    assert "from the first hinge, and all links" in capsys.readouterr().err
    with pytest.warns(TroubleWarning, match="position of hand"):
        assert main([*words, "--duration", "0.05", "--to", "0.5", "0.5", "0.3"]) == 2
    assert re.search(r"'hand' ends \S+ m from the place", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--to", "nan", "0", "1"), "--to is nan 0.0 1.0; all numbers must be finite"),
        (("--to", "0", "0", "1", "--duration", "-1"), "--duration is -1; it must be a positive"),
    ],
)
def test_command_line_names_the_option_that_is_wrong(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["optimize", "seven_dof_arm", "--node", "hand", *words]) == 2
    assert message in capsys.readouterr().err


def test_time_left_does_not_count_what_is_done_once() -> None:
    notes: list[lw.control.Progress] = []
    lw.optimize(
        cart_pole(), [0.0, 2.0], costs=costs(), step=STEP, horizon=7, progress=notes.append,
        iterations=40,
    )  # fmt: skip
    last, first = notes[-1], notes[0]
    each = (last.elapsed - first.elapsed) / (last.iteration - 1)
    assert last.iteration > 1
    np.testing.assert_allclose(last.left, each * (40 - last.iteration), rtol=1e-9)


def test_reach_is_never_exceeded() -> None:
    """By random postures, and attained by a stretched arm."""
    for mech in (lw.models.seven_dof_arm(), lw.models.puma560(), lw.models.planar_rpp()):
        node, rng = mech.bodies[-1].name, np.random.default_rng(0)
        first, longest = reach(mech, node)
        q = np.stack([mech.random(rng) for _ in range(300)])
        far = np.linalg.norm(lw.forward_kinematics(mech, q, node).p - first, axis=-1)
        assert np.all(far <= longest + 1e-9)
    straight = lw.models.pendulum(2)
    tip = straight.nodes[-1].name
    first, longest = reach(straight, tip)
    there = lw.forward_kinematics(straight, np.zeros(2), tip).p
    assert np.isclose(np.linalg.norm(there - first), longest)
    assert reach(lw.models.free_flyer(), lw.models.free_flyer().bodies[-1].name)[1] == np.inf
