"""Ticks of filters in C along a recording, with gaps and outliers; nothing is allocated."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise import filtering
from tests.codegen.rungs import C_COMPILER, STRICT, built

STEP = 0.01
pytestmark = [
    pytest.mark.prove,
    pytest.mark.skipif(C_COMPILER is None, reason="needs a C compiler"),
]


def kalman(method: str) -> filtering.Filter:
    mech = lw.models.pendulum(2).with_drive("pin_1", damping=0.2)
    seen = [filtering.encoders(mech, noise=1e-2),
            filtering.gyroscope("tip", noise=0.05, bias=0.1)]  # fmt: skip
    return filtering.kalman_filter(mech, seen, step=STEP, method=method, gate=0.999)


@pytest.mark.parametrize("method", ["extended", "unscented"])
def test_a_recording_in_c(tmp_path: Path, method: str) -> None:
    few, rng, ticks = kalman(method), np.random.default_rng(0), 25
    mech, tau = few.mech, rng.standard_normal((ticks, 2))
    run = lw.rollout(mech, [0.4, -0.3], tau=tau, duration=ticks * STEP, step=STEP)
    y = {"encoders": run.q[1:] + 0.01 * rng.standard_normal((ticks, 2)),
         "gyroscope tip": lw.node_velocity(mech, run.q, run.v, "tip")[1:, :3]
         + 0.05 * rng.standard_normal((ticks, 3))}  # fmt: skip
    y["encoders"][7, 0] += 5.0  # refused by its gate
    y["gyroscope tip"][9] = np.nan
    start = few.start([0.5, -0.2])
    expected = few.run(start, tau, y)
    assert not expected.accepted["encoders"][7, 0] and expected.accepted["encoders"][7, 1]
    code, kernel = built(few.export_c("state_filter"), tmp_path), few.kernel()
    state = {"q": start.q, "v": start.v, "extra": start.extra, "P": start.P}
    flat = np.concatenate([y["encoders"], y["gyroscope tip"]], axis=1)
    shapes = {
        name: np.shape(x) for name, x in kernel(*_inputs(few, state, tau[0], flat[0])).items()
    }
    for k in range(ticks):
        given = _inputs(few, state, tau[k], flat[k])
        out = np.zeros(sum(int(np.prod(shape)) for shape in shapes.values()))
        pointers = [a.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for a in (*given, out)]
        assert code(*pointers) == 0
        parts = np.split(out, np.cumsum([int(np.prod(shape)) for shape in shapes.values()])[:-1])
        made = {n: x.reshape(s) for (n, s), x in zip(shapes.items(), parts, strict=True)}
        state = {name: made[name] for name in state}
    assert np.abs(state["q"] - start.q).max() > 1e-2 and np.abs(state["extra"]).max() > 1e-4
    for name, x in state.items():
        assert np.allclose(x, getattr(expected, name)[-1], rtol=1e-8, atol=1e-11), name


def _inputs(few: filtering.Filter, state: dict, tau: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    use = np.array([*np.isfinite(y[:2]), np.isfinite(y[2:]).all()], dtype=np.float64)
    arrays = few.inputs | state | {"P": state["P"].ravel(), "tau": tau, "step": np.array([STEP])}
    arrays |= {"measured": np.nan_to_num(y), "use": use}
    return [np.ascontiguousarray(arrays[x], dtype=np.float64) for x in few.kernel().arguments]


@pytest.mark.parametrize("method", ["extended", "unscented"])
def test_nothing_is_called_but_mathematics(tmp_path: Path, method: str) -> None:
    names = shutil.which("nm")
    if names is None:
        pytest.skip("needs nm")
    code = kalman(method).export_c("state_filter")
    code.write(tmp_path)
    command = [str(C_COMPILER), *STRICT, "-c", f"{code.name}.c", "-o", "tick.o"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    listed = subprocess.run(
        [names, "-u", "tick.o"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    called = {line.split()[-1] for line in listed.stdout.splitlines() if line.strip()}
    assert called <= {
        "sin", "cos", "sqrt", "fabs", "fma", "fmin", "fmax", "copysign", "memset", "memcpy",
    }  # fmt: skip


@pytest.mark.parametrize("method", ["extended", "unscented"])
def test_the_self_test_runs(tmp_path: Path, method: str) -> None:
    """With covariances that are positive definite, as points of the unscented filter need them."""
    code = kalman(method).export_c("state_filter")
    code.write(tmp_path)
    flags = ["-DSTATE_FILTER_SELFTEST", f"{code.name}.c", "-o", "selftest", "-lm"]
    command = [str(C_COMPILER), *STRICT, *flags]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run(["./selftest"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "ok" in done.stdout, done.stdout
