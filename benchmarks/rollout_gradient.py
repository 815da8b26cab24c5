"""Gradients of rollouts: what the way back costs, in operations and in time.

Run with `python benchmarks/rollout_gradient.py`; writes benchmarks/results/rollout_gradient.md. The
gradient is compared with differences before anything is measured. Rollouts and gradients are timed
in turns, and the best of many turns counts.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import machine
import mujoco
import numpy as np

import linkwise as lw
from linkwise.simulation.motion_request import MotionRequest
from linkwise.simulation.rollout_kernel import motion_kernel

ROBOTS = {"arm (7)": lw.models.seven_dof_arm, "quadruped (free base, 18)": lw.models.quadruped}
INTEGRATORS = ("euler", "rk4", "variational")
STEP, STEPS, BATCH, TURNS, CALLS = 1e-3, 100, 256, 25, 20
ALLOWED = 1e-6
RESULTS = Path(__file__).parent / "results" / "rollout_gradient.md"
HEAD = """# Gradients of rollouts

Written by `make bench`. {steps} steps of 1 ms with joint forces for each step, all states recorded,
float64, one core. The gradient is that of a weighted sum of all records by the initial state and
all joint forces. *Operations* are those of one step there and back, written out (of "variational",
one round of each loop). *Both* is the rollout and its gradient together over the rollout alone; the
goal is 5. *Checkpoints* is the same with every tenth state recorded, so that all steps are made
twice. Microseconds of processor time for a motion, the best of {turns} turns. *Difference* is that
to a difference quotient, relative.

{machine}

Load average {load}.

| robot | integrator | motions | there | back | both | rollout | gradient | both | checkpoints | \
difference |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""
STEPWISE = """
## Linearised steps

A and B of one step, `lw.linearize(..., step=1e-3)`, microseconds for a state: one call with one
state, and a batch of {batch}. Beside it `mjd_transitionFD` of MuJoCo for the same mechanism in its
own format, by centred differences, which are good to 1e-7; its integrator is Euler. The last column
is the difference of A of robots on a fixed base, relative.

| robot | integrator | one | batch | mjd_transitionFD | ratio | difference |
| --- | --- | ---: | ---: | ---: | ---: | ---: |
"""


def best(*functions: object) -> list[float]:
    """The shortest processor time of each function [s], all of them in turns."""
    times = [np.inf] * len(functions)
    for _ in range(TURNS):
        for i, function in enumerate(functions):
            start = time.process_time()
            function()  # type: ignore[operator]
            times[i] = min(times[i], time.process_time() - start)
    return times


def row(mech: lw.Mechanism, integrator: str, count: int) -> list[str]:
    """One line of the table."""
    rng = np.random.default_rng(0)
    q = np.array([mech.random(rng) for _ in range(count)])
    v = 0.3 * rng.standard_normal((count, mech.nv))
    tau = rng.standard_normal((count, STEPS, mech.nv)) * np.diag(lw.mass_matrix(mech, q[0]))
    w_q = rng.standard_normal((count, STEPS + 1, mech.nq))
    w_v = rng.standard_normal((count, STEPS + 1, mech.nv))
    options = {"duration": STEPS * STEP, "step": STEP, "integrator": integrator, "threads": 1}

    def run(s: float = 0.0, every: int = 1) -> lw.simulation.Rollout:
        return lw.rollout(mech, q, v, tau=tau * (1.0 + s), record_every=every, **options)

    def total(s: float) -> float:
        runs = run(s)
        return float(np.sum(runs.q * w_q) + np.sum(runs.v * w_v))

    runs, few = run(), run(every=10)
    slope = float(np.sum(runs.gradient(w_q, w_v).tau * tau))
    h = 1e-4
    expected = (8.0 * (total(h) - total(-h)) - total(2 * h) + total(-2 * h)) / (12.0 * h)
    apart = abs(slope - expected) / abs(expected)
    assert apart < ALLOWED, apart
    there, back, sparse = best(
        run, lambda: runs.gradient(w_q, w_v), lambda: few.gradient(w_q[:, ::10], w_v[:, ::10])
    )
    requests = [MotionRequest(mech, integrator, reverse=x) for x in (None, ())]
    kernels = [motion_kernel(request) for request in requests]
    ops = [kernel.ops.total() for kernel in kernels]
    loops = integrator == "variational"
    return [
        str(count),
        *(str(n) for n in ops),
        "" if loops else f"{sum(ops) / ops[0]:.2f}",
        *(f"{1e6 * t / count:.1f}" for t in (there, back)),
        f"{(there + back) / there:.2f}",
        f"{(there + sparse) / there:.2f}",
        f"{apart:.0e}",
    ]


def linearized(mech: lw.Mechanism, integrator: str) -> list[str]:
    """One line of the second table."""
    rng = np.random.default_rng(0)
    q = np.array([mech.random(rng) for _ in range(BATCH)])
    v, tau = rng.standard_normal((2, BATCH, mech.nv))
    options = {"step": STEP, "integrator": integrator}

    def one() -> object:
        return [lw.linearize(mech, q[0], v[0], tau[0], **options) for _ in range(CALLS)]

    def many() -> object:
        return lw.linearize(mech, q, v, tau, **options, threads=1)

    A = lw.linearize(mech, q[0], v[0], tau[0], **options).A
    many()
    if integrator != "euler":
        times = best(one, many)
        return [f"{1e6 * times[0] / CALLS:.1f}", f"{1e6 * times[1] / BATCH:.2f}", "", "", ""]
    theirs, matrix = in_mujoco(mech, q[0], v[0], tau[0])
    theirs()
    apart = float(np.abs(A - matrix).max() / np.abs(A).max())
    fixed = mech.nq == mech.nv
    assert not fixed or apart < 1e-5, apart
    times = best(one, many, theirs)
    return [
        f"{1e6 * times[0] / CALLS:.1f}",
        f"{1e6 * times[1] / BATCH:.2f}",
        f"{1e6 * times[2] / CALLS:.0f}",
        f"{times[2] / times[0]:.0f}",
        f"{apart:.0e}" if fixed else "",
    ]


def in_mujoco(
    mech: lw.Mechanism, q: np.ndarray, v: np.ndarray, tau: np.ndarray
) -> tuple[Callable[[], object], np.ndarray]:
    """MuJoCo's differences of the same step, and the matrix that they fill."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.xml"
        lw.save(mech, file)
        model = mujoco.MjModel.from_xml_path(str(file))
    for bit in ("CONTACT", "LIMIT", "FRICTIONLOSS", "EULERDAMP"):
        model.opt.disableflags |= getattr(mujoco.mjtDisableBit, f"mjDSBL_{bit}")
    model.opt.timestep = STEP
    layout, data = lw.convert.mujoco_layout(mech, model), mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = layout.q_to(q), layout.v_to(q, v)
    data.qfrc_applied[:] = layout.force_to(q, tau)
    matrix = np.zeros((2 * model.nv, 2 * model.nv))

    def differences() -> None:
        for _ in range(CALLS):
            mujoco.mjd_transitionFD(model, data, 1e-6, True, matrix, None, None, None)

    return differences, matrix


def main() -> None:
    """All tables."""
    versions = machine.description("linkwise", "numpy", "llvmlite", "mujoco")
    text = HEAD.format(steps=STEPS, turns=TURNS, machine=versions, load=machine.load())
    for name, make in ROBOTS.items():
        mech = make()
        for integrator in INTEGRATORS:
            for count in (1, BATCH):
                text += f"| {' | '.join([name, integrator, *row(mech, integrator, count)])} |\n"
    text += STEPWISE.format(batch=BATCH)
    for name, make in ROBOTS.items():
        mech = make()
        for integrator in ("euler", "rk4"):
            text += f"| {' | '.join([name, integrator, *linearized(mech, integrator)])} |\n"
    RESULTS.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
