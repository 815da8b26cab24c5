"""Steps by a kernel that are made in blocks, where only some of them are recorded."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import SimulationError
from linkwise.simulation import kernel_stepper
from tests.simulation.moving import calls_of_kernels, steps_by_kernel

TABLE = np.random.default_rng(1).standard_normal((30, 2))


@pytest.fixture
def mech():
    return lw.models.pendulum(2).with_drive("pin_1", damping=0.1, stiffness=3.0)


@pytest.mark.parametrize("integrator", ["rk4", "euler"])
@pytest.mark.parametrize(
    "options", [{"tau": 0.3}, {"controller": TABLE, "control_step": 0.01}, {}], ids=str
)
def test_blocks_give_the_motion_and_the_works_of_a_single_call(
    mech, integrator, options, monkeypatch
):
    steps_by_kernel(monkeypatch, True)
    runs = []
    for block in (1000, 64):
        monkeypatch.setattr(kernel_stepper, "BLOCK", block)
        calls = calls_of_kernels(monkeypatch)
        runs.append(lw.simulate(
            mech, [1.0, 0.2], [3.0, 0.0], duration=0.3, record_every=7, integrator=integrator,
            **options,
        ))  # fmt: skip
        assert calls == [300] if block == 1000 else calls == [64] * 4 + [44]
    single, blocks = runs
    assert (single.t == blocks.t).all() and len(single) == 44
    assert (single.q == blocks.q).all() and (single.v == blocks.v).all()
    for name in ("work.joints", "work.passive"):
        assert blocks[name] == pytest.approx(single[name], rel=1e-13, abs=1e-14)
        assert blocks[name].any() == (bool(options) or name == "work.passive")


def test_works_of_blocks_are_those_of_single_steps(mech, monkeypatch):
    monkeypatch.setattr(kernel_stepper, "BLOCK", 64)
    runs = []
    for compiled in (True, False):
        steps_by_kernel(monkeypatch, compiled)
        runs.append(
            lw.simulate(mech, [1.0, 0.2], [3.0, 0.0], duration=0.3, tau=0.3, record_every=7)
        )
    compiled, plain = runs
    for name in ("work.joints", "work.passive"):
        assert abs(plain[name][-1]) > 1e-2
        assert compiled[name] == pytest.approx(plain[name], abs=1e-9)
    assert compiled.report.drift < 1e-8


def test_a_block_that_diverges_ends_the_motion_as_a_single_call_does(mech, monkeypatch):
    steps_by_kernel(monkeypatch, True)
    stiff = mech.with_drive("pin_1", stiffness=1.3e6)
    results = []
    for block in (1000, 8):
        monkeypatch.setattr(kernel_stepper, "BLOCK", block)
        with pytest.raises(SimulationError, match="diverged") as error:
            lw.simulate(stiff, [1.0, 0.2], duration=0.3, tau=1.0, record_every=3)
        rec = error.value.recording
        results.append((str(error.value), rec.t.tolist(), rec.q.tolist()))
    assert results[0] == results[1] and len(results[0][1]) == 8
