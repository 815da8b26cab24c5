"""What a rollout may be given: shapes of inputs, loops that stay open, what is left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.scalar import status
from linkwise.errors import ModelError, ShapeError

STEPS, MANY = 5, 8


class Tuned:
    """An arm with a law whose gains are to be found."""

    def __init__(self) -> None:
        self.mech = lw.models.seven_dof_arm()
        hand = lw.Task.position("hand")
        self.law = lw.control_law(self.mech, hand, kp=100.0, kv=20.0)
        self.q = np.array([0.3, 0.6, -0.2, 1.2, 0.4, 0.7, 0.1])
        self.goal = lw.tasks.task_position(self.mech, self.q, hand) + np.array([0.05, 0.02, 0.0])

    def run(self, q: Any = None, goal: Any = None, **inputs: Any) -> lw.simulation.Rollout:
        return lw.rollout(
            self.mech, self.q if q is None else q, duration=STEPS * 0.01, step=0.01, inputs=inputs,
            controller=(self.law, self.goal if goal is None else goal),
        )  # fmt: skip


@pytest.fixture(scope="module")
def tuned() -> Tuned:
    return Tuned()


KP = np.linspace(20.0, 400.0, MANY)


def test_gains_for_each_motion_in_all_their_shapes(tuned: Tuned) -> None:
    each = np.stack([tuned.run(kp=kp).q for kp in KP])
    assert np.abs(each[0, -1] - each[-1, -1]).max() > 1e-3
    rows = KP[:, None] * np.ones(3)
    states = np.tile(tuned.q, (MANY, 1))
    for run in (
        tuned.run(kp=rows[:, None]),  # (batch, 1, n), as documented
        tuned.run(kp=KP[:, None, None]),
        tuned.run(kp=np.tile(KP[:, None, None], (1, STEPS, 1))),
        tuned.run(states, kp=rows),  # the states tell how many motions there are
        tuned.run(states, kp=KP[:, None]),
        tuned.run(kp=rows, kv=np.full((MANY, 1, 3), 20.0)),  # or another input does
        tuned.run(states, kp=rows, goal=np.tile(tuned.goal, (MANY, 1))),
    ):
        assert run.q.shape == (MANY, STEPS + 1, 7)
        # Motions of a batch are those alone, in vector registers: by rounding.
        assert np.abs(run.q - each).max() < 1e-13


def test_as_many_rows_as_steps_are_rows_for_steps(tuned: Tuned) -> None:
    rows = np.linspace(20.0, 400.0, STEPS)[:, None] * np.ones(3)
    states = np.tile(tuned.q, (STEPS, 1))
    assert np.array_equal(tuned.run(states, kp=rows).q[0], tuned.run(states[:1], kp=rows).q[0])


def test_shapes_that_do_not_fit_are_told_what_to_write(tuned: Tuned) -> None:
    allowed = r"\(3,\), \(5, 3\) .*each of the 5 steps, \(batch, 1, 3\) .*or \(batch, 5, 3\)"
    with pytest.raises(ShapeError, match=rf"kp has shape \(8,\); it must be {allowed}") as result:
        tuned.run(kp=KP)
    assert str(result.value).endswith("For 8 motions with a number each: kp[:, None, None].")
    with pytest.raises(ShapeError, match=r"For 8 motions with a row each: kp\[:, None\]"):
        tuned.run(kp=KP[:, None])
    with pytest.raises(ShapeError, match=r"For 8 motions with a row each: goal\[:, None\]"):
        tuned.run(goal=np.tile(tuned.goal, (MANY, 1)))
    with pytest.raises(ShapeError, match=r"tau has shape \(8, 7\).*row each: tau\[:, None\]"):
        lw.rollout(tuned.mech, tuned.q, duration=STEPS * 1e-3, tau=np.zeros((MANY, 7)))
    with pytest.raises(ShapeError, match=r"tau has shape \(5, 1\)"):
        lw.rollout(tuned.mech, tuned.q, duration=STEPS * 1e-3, tau=np.zeros((STEPS, 1)))


def test_torques_of_each_motion_that_are_held_over_all_steps(tuned: Tuned) -> None:
    mech, tau = tuned.mech, np.random.default_rng(0).standard_normal((MANY, 7))
    states = np.tile(tuned.q, (MANY, 1))
    runs = lw.rollout(mech, states, duration=STEPS * 1e-3, tau=tau)
    assert np.array_equal(
        runs.q, lw.rollout(mech, tuned.q, duration=STEPS * 1e-3, tau=tau[:, None]).q
    )


def test_without_velocities_it_begins_at_rest(tuned: Tuned) -> None:
    mech, q = tuned.mech, tuned.q
    still = lw.rollout(mech, q, np.zeros(7), duration=0.003)
    assert np.array_equal(lw.rollout(mech, q, duration=0.003).v, still.v)
    many = lw.rollout(mech, np.stack([q, q + 0.1]), duration=0.003)
    assert many.v.shape == (2, 4, 7) and np.array_equal(many.v[0], still.v)


def test_a_function_for_tau_is_told_where_to_go(tuned: Tuned) -> None:
    with pytest.raises(ModelError, match=r"tau is a function.*lw\.control_law.*lw\.simulate"):
        lw.rollout(tuned.mech, tuned.q, duration=0.003, tau=lambda t, q, v: 0.0)  # type: ignore[arg-type]


def geared() -> lw.Mechanism:
    builder = lw.Builder("geared")
    rod = lw.SpatialInertia.from_com(1.0, (0.1, 0.0, 0.0), (0.1, 0.1, 0.1))
    builder.body("a", hinge=lw.hinges.Pin((0, 0, 1)), inertia=rod)
    builder.body("b", "a", hinge=lw.hinges.Pin((0, 0, 1)), inertia=rod)
    hinges = [body.hinge_name for body in builder.build().bodies]
    builder.couple("mimic", hinges[1], {hinges[0]: 1.0})
    return builder.build()


@pytest.mark.parametrize("make", [lw.models.four_bar, geared])
@pytest.mark.parametrize("integrator", ["rk4", "euler"])
def test_loops_and_couplings_are_held(make: Any, integrator: str) -> None:
    mech = make()
    q = lw.loops.assemble(mech, mech.neutral() + 0.1).required()
    v = lw.loops.project_velocity(mech, q, np.ones(mech.nv))
    acting: Any = {"integrator": integrator, "tau": np.eye(mech.nv)[0]}
    speeds = np.array([v, 0.5 * v])
    run = lw.rollout(mech, np.array([q, q]), speeds, duration=0.05, **acting)
    assert np.abs(lw.loops.constraint_error(mech, run.q.reshape(-1, mech.nq))).max() < 1e-10
    for i in (0, 1):
        expected = lw.simulate(mech, q, speeds[i], duration=0.05, record_every=1, **acting)
        np.testing.assert_allclose(run.q[i], expected.q, rtol=0.0, atol=1e-12)
    opened = lw.rollout(mech, q, v, duration=0.05, loops="open", **acting)
    assert np.abs(opened.q[-1] - run.q[0, -1]).max() > 1e-3
    names = [x.name for x in (*mech.loops, *mech.couplings)]
    again = lw.rollout(mech.without(*names), q, v, duration=0.05, **acting)
    assert np.array_equal(opened.q, again.q)


def test_loops_that_are_open_at_the_beginning_are_refused() -> None:
    mech = lw.models.four_bar()
    q = lw.loops.assemble(mech, mech.neutral()).required()
    with pytest.raises(lw.ClosureError, match=r"motion 1: .* is open by"):
        lw.rollout(mech, np.array([q, q + 0.1]), duration=0.002)


@pytest.mark.parametrize(
    "options", [{"target": "cuda"}, {"dtype": np.float32}], ids=["cuda", "float32"]
)
def test_a_rollout_that_cannot_hold_loops_says_so(options: Any) -> None:
    mech = lw.models.four_bar()
    with pytest.raises(ModelError, match=r'cannot hold.*loops="open"'):
        lw.rollout(mech, mech.neutral(), np.zeros(mech.nv), duration=0.001, **options)


@pytest.mark.parametrize("integrator", ["rk4", "euler", "rk4_mujoco", "variational"])
@pytest.mark.parametrize("many", [False, True])
def test_numbers_that_are_too_large_are_no_singular_hinge(integrator: str, many: bool) -> None:
    mech = lw.models.puma560()
    v = np.array([0.5, 1e200])[:, None] * np.ones((2, mech.nv))
    if many:
        with pytest.warns(lw.errors.TroubleWarning, match="numbers are no longer finite"):
            run = lw.rollout(mech, mech.neutral(), v, duration=0.003, integrator=integrator)
        assert run.status.tolist() == [0, status.RESULT] and np.isfinite(run.q[0]).all()
        return
    with pytest.raises(lw.SimulationError, match="numbers are no longer finite") as message:
        lw.rollout(mech, mech.neutral(), v[1], duration=0.003, integrator=integrator)
    assert "hinge" not in str(message.value)


def test_a_singular_hinge_is_still_named() -> None:
    builder = lw.Builder("light")
    builder.body(
        "arm", hinge=lw.hinges.Pin((0, 1, 0)), inertia=lw.SpatialInertia.point(1.0, (1, 0, 0))
    )
    builder.body("fork", "arm", hinge=lw.hinges.Pin((0, 1, 0)), inboard=(1, 0, 0))
    weight = lw.SpatialInertia.point(1.0, (0.5, 0.0, 0.0))
    builder.body("slide", "fork", hinge=lw.hinges.Prismatic((1, 0, 0)), inertia=weight)
    with pytest.raises(lw.SimulationError, match="hinge of body 'fork' is singular"):
        lw.rollout(builder.build(), [0.0, 0.0, -0.5], duration=0.003)


class OnGpu:
    """What an array on a GPU shows of itself."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": (7,), "typestr": "<f8", "data": (1, True), "version": 3}


def test_arrays_on_a_gpu_need_the_target(tuned: Tuned) -> None:
    options = {"duration": 0.01, "step": 0.01}
    with pytest.raises(ShapeError, match=r"q is on a GPU .*use target='cuda'"):
        lw.rollout(tuned.mech, OnGpu(), **options)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="tau is on a GPU"):
        lw.rollout(tuned.mech, tuned.q, tau=OnGpu(), **options)  # type: ignore[arg-type]
