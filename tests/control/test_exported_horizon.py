"""A receding horizon in C, called from outside: its numbers, its memory, its self-test."""

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.control import Bound, Cost, RecedingHorizon
from tests.control.test_one_kernel import chain

COMPILER = shutil.which("gcc") or shutil.which("cc")
STEP, FIRST, LATER, TICKS = 0.04, 4, 2, 12
MATH = {"sin", "cos", "tan", "sqrt", "fabs", "fmin", "fmax", "fma", "pow", "exp", "log", "sincos",
        "asin", "acos", "atan", "atan2", "floor", "copysign", "hypot"}  # fmt: skip
pytestmark = [
    pytest.mark.prove,
    pytest.mark.skipif(COMPILER is None, reason="needs a C compiler"),
]


def horizon(bounded: bool) -> RecedingHorizon:
    return RecedingHorizon(
        chain(effort=12.0), step=STEP, horizon=8, first=FIRST, iterations=LATER,
        costs=[Cost.posture([0.4, -0.3], weight=1.0, final=10.0),
               Cost.velocity(weight=0.1, final=1.0), Cost.effort(weight=1e-2)],
        bounds=Bound.on_velocity(-0.6, 0.6) if bounded else (),
    )  # fmt: skip


def built(folder: Path, source: Path, *flags: str) -> Path:
    made = folder / ("program" if "-shared" not in flags else "library.so")
    strict = ["-std=c99", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    command = [str(COMPILER), *strict, *flags, str(source), "-o", str(made), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    return made


def pointer(x: Any) -> Any:
    return x.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


@pytest.mark.parametrize("bounded", [False, True])
def test_forces_are_those_of_the_controller(tmp_path: Path, bounded: bool) -> None:
    """Two robots in turns, each with memory of its own; one is given another goal on its way."""
    predict = [horizon(bounded) for _ in range(2)]
    code = predict[0].export_c("mpc")
    _, source = code.write(tmp_path)
    library = ctypes.CDLL(str(built(tmp_path, source, "-shared", "-fPIC")))
    library.mpc_goal.restype = ctypes.POINTER(ctypes.c_double)
    memory = [np.full(code.memory, 7.0) for _ in range(2)]
    for m in memory:
        library.mpc_reset(pointer(m))
    rng, mech = np.random.default_rng(0), chain()
    q, v = 0.3 * rng.standard_normal((2, 2)), np.zeros((2, 2))
    seen = list[Any]()
    for n in range(TICKS):
        for i in range(2):
            if n == 6 and i == 1:
                predict[i].set_goal(0, [-0.2, 0.5])
                goal = library.mpc_goal(pointer(memory[i]))
                before = [goal[k] for k in range(2)]
                assert np.allclose(before, [0.4, -0.3])
                goal[0], goal[1] = -0.2, 0.5
            expected, tau = predict[i](n * STEP, q[i], v[i]), np.zeros(2)
            state = np.ascontiguousarray(q[i]), np.ascontiguousarray(v[i])
            count = FIRST if n == 0 else LATER
            status = library.mpc(
                pointer(memory[i]), pointer(state[0]), pointer(state[1]), int(n > 0), count,
                pointer(tau),
            )  # fmt: skip
            assert status == 0
            assert np.allclose(tau, expected, rtol=1e-8, atol=1e-8)
            seen.append(tau)
            v[i] = v[i] + STEP * lw.forward_dynamics(mech, q[i], v[i], tau)
            q[i] = q[i] + STEP * v[i]
    sizes = np.abs(seen).max(axis=1)
    assert sizes.min() > 1e-2 and np.ptp(sizes) > 1.0


def test_nothing_is_called_but_mathematics(tmp_path: Path) -> None:
    names = shutil.which("nm")
    if names is None:
        pytest.skip("needs nm")
    _, source = horizon(True).export_c("mpc").write(tmp_path)
    made = built(tmp_path, source, "-c")
    listed = subprocess.run([names, "-u", str(made)], capture_output=True, text=True, check=True)
    called = {line.split()[-1].split("@")[0] for line in listed.stdout.splitlines() if line.strip()}
    assert called <= MATH | {"memset", "memcpy", "_GLOBAL_OFFSET_TABLE_"}, called


def test_the_self_test_can_fail(tmp_path: Path) -> None:
    """A number of the problem that is changed in the source is noticed."""
    _, source = horizon(False).export_c("mpc").write(tmp_path)
    right = built(tmp_path, source, "-DMPC_SELFTEST")
    assert subprocess.run([str(right)], check=False, capture_output=True).returncode == 0
    text = source.read_text(encoding="ascii")
    forces = text[text.index("selftest_tau[") :]
    numbers = [abs(float(x)) for x in re.findall(r"-?\d+\.\d+(?:e[+-]\d+)?", forces[:800])]
    assert max(numbers) > 0.1
    changed = re.sub(r"\b0\.4\b", "0.41", text)  # the goal of the first joint
    assert changed != text
    source.write_text(changed, encoding="ascii")
    wrong = built(tmp_path, source, "-DMPC_SELFTEST")
    done = subprocess.run([str(wrong)], check=False, capture_output=True, text=True)
    assert done.returncode != 0 and "FAILED" in done.stdout
