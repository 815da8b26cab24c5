"""The same question has the same answer, bit by bit; in a batch irrespective of its order."""

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import filtering, identification
from linkwise.control import Bound, Cost
from linkwise.spatial.array import Array


def same(one: Any, other: Any, *names: str) -> None:
    for name in names:
        a, b = np.asarray(getattr(one, name)), np.asarray(getattr(other, name))
        assert a.shape == b.shape and np.array_equal(a, b), name


@pytest.mark.parametrize("bounded", [False, True])
def test_optima(bounded: bool) -> None:
    mech, rng = lw.models.pendulum(2), np.random.default_rng(0)
    task = lw.Task.position("tip")
    starts = 0.5 * rng.standard_normal((11, 2))
    goals = lw.tasks.task_position(mech, 0.5 + 0.3 * rng.standard_normal((11, 2)), task)
    bounds = [Bound.on_velocity(-6.0, 6.0)] if bounded else []

    def made(order: Any, threads: int | None = None) -> lw.control.Trajectory:
        return lw.optimize(
            mech, starts[order], step=0.02, horizon=20, bounds=bounds, threads=threads,
            costs=[Cost.of_task(task, goals[order], final=50.0), Cost.effort(weight=1e-3),
                   Cost.velocity(weight=0.1, final=1.0)],
        )  # fmt: skip

    names = ("q", "v", "tau", "gain", "cost", "violation", "iterations", "status")
    every = np.arange(11)
    first = made(every)
    assert first.iterations.max() > 3 and np.ptp(first.cost) > 0.0
    same(first, made(every), *names)
    same(first, made(every, threads=1), *names)
    order = rng.permutation(11)
    mixed, back = made(order), np.argsort(order)
    for name in names:
        assert np.array_equal(getattr(mixed, name)[back], getattr(first, name)), name
    same(made(3), made(3), *names)  # a problem alone


def arm() -> lw.Mechanism:
    return lw.models.pendulum(2).with_drive("pin_1", damping=0.3, friction=0.2)


def recorded() -> tuple[identification.SmoothMotion, Array]:
    mech, rng = arm(), np.random.default_rng(1)
    m = identification.exciting_motion(mech, duration=4.0, step=0.02, tries=6, rounds=2, seed=5)
    tau = lw.inverse_dynamics(mech, m.q, m.v, m.vdot) + mech.damping * m.v
    return m, tau + mech.friction * np.sign(m.v) + 0.1 * rng.standard_normal(tau.shape)


def test_motions_and_fits() -> None:
    (m, tau), (again, _) = recorded(), recorded()
    same(m, again, "q", "v", "vdot")
    other = identification.exciting_motion(
        arm(), duration=4.0, step=0.02, tries=6, rounds=2, seed=6
    )
    assert not np.array_equal(m.q, other.q)
    for robust in (False, True):
        fits = [lw.identify(arm(), m.q, m.v, m.vdot, tau, robust=robust) for _ in range(2)]
        same(*fits, "estimate", "deviation", "consistent", "names")
        assert fits[0].parameters == fits[1].parameters
    smooth = [identification.smoothed(arm(), m.t, m.q, tau, bandwidth=5.0) for _ in range(2)]
    same(*smooth, "q", "v", "vdot", "tau")
    bare = lw.models.pendulum(2)
    run = lw.rollout(bare, m.q[0], tau=tau[:60], duration=1.2, step=0.02)
    rounds = [
        identification.identify_rollout(
            bare, m.t[:61], run.q + 1e-4 * m.q[:61], tau[:61], parameters=["damping"], window=9
        )
        for _ in range(2)
    ]
    same(*rounds, "estimate", "deviation", "noise", "rounds")


@pytest.mark.parametrize("method", ["extended", "unscented"])
def test_filters(method: str) -> None:
    mech, rng = lw.models.pendulum(2), np.random.default_rng(2)
    seen = [filtering.encoders(mech, noise=1e-2), filtering.gyroscope("tip", noise=0.1, bias=0.1)]
    few = filtering.kalman_filter(mech, seen, step=0.01, method=method, gate=0.99)
    q = 0.3 * rng.standard_normal((7, 2))
    y = {"encoders": q[:, None] + 0.01 * rng.standard_normal((7, 12, 2)),
         "gyroscope tip": 0.1 * rng.standard_normal((7, 12, 3))}  # fmt: skip
    tau, order = rng.standard_normal((7, 12, 2)), rng.permutation(7)

    def run(rows: Any) -> tuple[Any, Any]:
        kept = few.run(few.start(q[rows]), tau[rows], {name: x[rows] for name, x in y.items()})
        return kept, kept.smoothed()

    first, again = run(np.arange(7)), run(np.arange(7))
    mixed, back = run(order), np.argsort(order)
    for a, b, c in zip(first, again, mixed, strict=True):
        same(a, b, "q", "v", "extra", "P")
        for name in ("q", "v", "extra", "P"):
            assert np.array_equal(getattr(c, name)[back], getattr(a, name)), name
    same(run(2)[0], run(2)[0], "q", "v", "P")
