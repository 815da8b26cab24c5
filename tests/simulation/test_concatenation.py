"""Recordings one after the other."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError


def test_two_halves_are_the_whole() -> None:
    mech = lw.models.pendulum(2)
    rec = lw.simulate(mech, [0.5, 0.2], duration=0.2, step=0.01, tau=0.3)
    first = lw.simulate(mech, [0.5, 0.2], duration=0.1, step=0.01, tau=0.3)
    second = lw.simulate(mech, first.q[-1], first.v[-1], duration=0.1, step=0.01, tau=0.3)
    both = first + second
    np.testing.assert_allclose(both.t, rec.t, atol=1e-12)
    np.testing.assert_allclose(both.q, rec.q, atol=1e-12)
    for name in ("work.joints", "energy.balance", "energy.total"):
        np.testing.assert_allclose(both[name], rec[name], atol=1e-11, err_msg=name)
    assert both.steps == 20 and both.step == 0.01 and both.mech is mech and not both.events
    assert both.report.drift == pytest.approx(rec.report.drift, abs=1e-11)
    q, v = both.at(0.155)
    expected = rec.at(0.155)
    np.testing.assert_allclose(np.concatenate([q, v]), np.concatenate(expected), atol=1e-10)


def test_times_continue_and_jumps_are_events() -> None:
    mech = lw.models.pendulum()
    first = lw.simulate(mech, [0.5], duration=0.1, step=0.01, start=3.0)
    second = lw.simulate(
        mech, [-0.5], duration=0.2, step=0.02, integrator="euler", probes={"height [m]": _height}
    )
    both = first + second
    assert both.t[0] == 3.0 and both.t[-1] == pytest.approx(3.3) and len(both) == 21
    assert [x.kind for x in both.events] == ["jump"] and both.events[0].t == pytest.approx(3.1)
    assert both.integrator == "rk4, then euler" and np.isnan(both.step)
    assert np.isnan(both["height"][:11]).all() and np.isfinite(both["height"][11:]).all()
    assert both[3.0:3.1].t[-1] == pytest.approx(3.1)


def _height(t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> float:
    return float(q[0])


def test_other_mechanisms_are_refused() -> None:
    one = lw.simulate(lw.models.pendulum(), duration=0.01)
    two = lw.simulate(lw.models.pendulum(2), duration=0.01)
    with pytest.raises(ModelError, match="of the same mechanism"):
        one + two
    with pytest.raises(TypeError):
        one + 1.0  # type: ignore[operator]
