"""Searches report how far they are, and what that says is so."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.identification import Progress, exciting_motion, identify_rollout


@pytest.mark.parametrize("mech", [lw.models.pendulum(2), lw.models.four_bar()])
def test_exciting_motions_report_cost_and_time_left(mech: lw.Mechanism) -> None:
    heard = list[Progress]()
    how = {"duration": 4.0, "step": 0.05, "tries": 20, "rounds": 3}
    loud = exciting_motion(mech, **how, progress=heard.append)
    assert np.array_equal(loud.q, exciting_motion(mech, **how).q)
    stages = list(dict.fromkeys(x.stage for x in heard))
    assert stages == ["random motions", "rounds of the search"]
    for stage, most in zip(stages, (20, 3), strict=True):
        part = [x for x in heard if x.stage == stage]
        done, cost = [x.done for x in part], [x.cost for x in part]
        assert done == sorted(set(done)) and done[-1] <= most == part[0].most
        assert cost == sorted(cost, reverse=True) and np.isfinite(cost[-1])
    elapsed = [x.elapsed for x in heard]
    assert elapsed == sorted(elapsed) and all(x.left >= 0.0 for x in heard)
    some = heard[0]
    assert str(some).startswith("random motions, 2 of at most 20: cost")
    assert 0.0 < some.left <= 9.0 * some.elapsed * (1.0 + 1e-9)  # the other 18 of 20


def test_rollouts_report_their_residual() -> None:
    mech, t = lw.models.pendulum(1), 0.01 * np.arange(101)
    tau = 3.0 * np.sin(3.0 * t)[:, None]
    run = lw.rollout(mech, [0.3], [0.0], tau=tau[:-1], duration=1.0, step=0.01)
    q = run.q + 1e-3 * np.random.default_rng(0).standard_normal(run.q.shape)
    heard = list[Progress]()
    fit = identify_rollout(mech, t, q, tau, window=20, progress=heard.append)
    assert len(heard) == fit.rounds and heard[-1].cost == pytest.approx(fit.noise, rel=1e-6)
    assert heard[-1].stage == "rounds with 1 steps a sample" and heard[-1].most == 100
    with pytest.raises(lw.ModelError, match="progress must be a function; found 3"):
        identify_rollout(mech, t, q, tau, progress=3)  # pyright: ignore[reportArgumentType]
