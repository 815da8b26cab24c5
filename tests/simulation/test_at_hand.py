"""When `lw.simulate` makes its steps by a kernel: if there is one, or if one is worth compiling."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.simulation.motion_request import MotionRequest
from linkwise.simulation.rollout_kernel import WORTH_COMPILING, motion_kernel
from tests.simulation.moving import calls_of_kernels


@pytest.fixture
def calls(monkeypatch, tmp_path):
    """Calls of kernels, each by its number of steps, with an empty cache on disk."""
    monkeypatch.setenv("LINKWISE_CACHE", str(tmp_path))
    return calls_of_kernels(monkeypatch)


def short_run(mech, steps=20):
    q, v = np.linspace(0.2, 0.5, mech.nq), np.linspace(1.0, -1.0, mech.nv)
    return lw.simulate(mech, q, v, duration=1e-3 * steps, step=1e-3)


def test_a_short_run_uses_the_kernel_that_a_rollout_has_compiled(calls):
    mech = lw.models.pendulum(2)
    plain = short_run(mech)
    assert calls == []
    motion_kernel(MotionRequest(mech))
    quick = short_run(mech)
    assert calls == [20]
    assert np.abs(plain.q[-1] - plain.q[0]).max() > 1e-2
    assert quick.q == pytest.approx(plain.q, abs=1e-13)


def test_a_kernel_on_disk_is_at_hand_in_another_process(calls):
    """Equal mechanisms have one file; without passive forces it is another kernel."""
    motion_kernel(MotionRequest(lw.models.pendulum(2).with_drive("pin_1", damping=0.5)))
    again = lw.models.pendulum(2).with_drive("pin_1", damping=0.5)
    lw.simulate(again, [0.3, 0.4], duration=0.02, passive=False)
    assert calls == []
    short_run(again)
    assert calls == [20]


def test_many_short_runs_are_worth_compiling(calls):
    mech, steps = lw.models.pendulum(2), 2 * WORTH_COMPILING
    short_run(mech, steps - 30)
    short_run(mech, 29)
    assert calls == []
    short_run(mech, 1)
    assert calls == [1]
