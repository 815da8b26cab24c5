"""Identification beside Pinocchio's regressor with NumPy, and FIGAROH, on the same data.

    FIGAROH=/path/to/python python benchmarks/identification.py

Writes benchmarks/results/identification.md. FIGAROH lives in a separate environment (figaroh 1.0.2
from PyPI installs with pin 4.1.0 and numpy 2.4.6); without it its column is left out. mujoco.sysid
(mujoco[sysid] 4.0.0 installs, too) fits simulated motions instead of joint forces, by nonlinear
least squares; it is not compared here.
"""

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import machine
import numpy as np
import pinocchio as pin

import linkwise as lw
from linkwise.identification.compressed import Triangles

KINDS, ROUNDS, NOISE = ("inertia", "damping", "friction"), 3, 0.02
SAMPLES = (500, 2000, 8000)
RESULTS = Path(__file__).parent / "results" / "identification.md"
HEAD = """# Identification compared with Pinocchio and FIGAROH

Written by `benchmarks/identification.py`. An arm of the UR type with friction and dampers follows
an exciting motion of 10 s; noise of {noise:g} % of the spread of each joint's force is added. All
sides get the same data and fit inertias, friction and dampers by ordinary least squares. *Pinocchio
and NumPy* is `computeJointTorqueRegressor` for each sample, and `numpy.linalg.lstsq` with all
columns. *Linkwise* is `lw.identify` without weights: it also finds the names of base parameters,
deviations with the correlation of the noise, and a mechanism that is physically possible.
*Regression alone* is the regressor and its least squares as `lw.identify` has them, with the same
columns as on the other side: a triangle for each joint, and `lstsq` of the triangles; *ratio*
compares the two.
Forces of a second motion are predicted by each estimate. *Error* is the largest difference from the
prediction of Pinocchio and NumPy, relative to the largest force: of Linkwise, then of FIGAROH.
Processor times of one core, the best of {rounds} rounds.

{machine}

{other} Load average {load} at the start.

| samples | Linkwise | regression alone | Pinocchio, NumPy | FIGAROH | ratio | error | error |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""


def robot(folder: Path) -> tuple[lw.Mechanism, Path]:
    """The arm without armature, as its URDF file describes it."""
    mech, file = lw.models.ur_arm(), folder / "arm.urdf"
    for body in mech.bodies:
        mech = mech.with_drive(body.hinge_name, damping=2.0, friction=1.5, rotor_inertia=0.0)
    lw.save(mech, file)
    return lw.load(file, base="fixed"), file


def timed(call: Any) -> tuple[Any, float]:
    """A result, and the best processor time."""
    best, result = np.inf, None
    for _ in range(ROUNDS):
        begun = time.process_time()
        result = call()
        best = min(best, time.process_time() - begun)
    return result, best


def columns_of_pinocchio(model: Any, q: Any, v: Any, vdot: Any) -> Any:
    """Rows (samples nv, columns) with dampers and friction."""
    data, nv = model.createData(), model.nv
    W = np.zeros((len(q), nv, 12 * nv))
    for k in range(len(q)):
        W[k, :, : 10 * nv] = pin.computeJointTorqueRegressor(model, data, q[k], v[k], vdot[k])
        W[k, :, 10 * nv : 11 * nv] = np.diag(v[k])
        W[k, :, 11 * nv :] = np.diag(np.sign(v[k]))
    return W.reshape(-1, 12 * nv)


def regression_of_linkwise(mech: lw.Mechanism, q: Any, v: Any, vdot: Any, tau: Any) -> Any:
    """The least squares of the same columns, with a triangle for each joint."""
    unit = np.eye(mech.nv)
    parts = [lw.regressor(mech, q, v, vdot), v[:, :, None] * unit, np.sign(v)[:, :, None] * unit]
    some = Triangles.of(np.concatenate(parts, axis=-1), tau, np.ones(tau.shape))
    R = (some.R * some.scale).reshape(-1, 12 * mech.nv)
    return np.linalg.lstsq(R, some.z.ravel(), rcond=1e-10)[0]


def figaroh(folder: Path, **arrays: Any) -> dict[str, Any] | None:
    """What FIGAROH answers."""
    python = os.environ.get("FIGAROH")
    if not python:
        return None
    np.savez(folder / "data.npz", rounds=ROUNDS, **arrays)
    side = Path(__file__).parent / "figaroh_side.py"
    words = [python, str(side), str(folder / "data.npz")]
    out = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return json.loads(out[out.index("{") :])


def row(mech: lw.Mechanism, file: Path, samples: int, folder: Path) -> str:
    """One line of the table."""
    model = pin.buildModelFromUrdf(str(file))
    model.armature[:] = 0.0
    step = 10.0 / samples
    m, other = (
        lw.identification.exciting_motion(mech, step=h, parameters=KINDS, rounds=0, seed=seed)
        for h, seed in ((step, 0), (0.05, 1))
    )
    rng = np.random.default_rng(0)
    tau = lw.inverse_dynamics(mech, m.q, m.v, m.vdot)
    tau = tau + mech.damping * m.v + mech.friction * np.sign(m.v)
    tau = tau + NOISE * np.std(tau, axis=0) * rng.standard_normal(tau.shape)
    state, there = (m.q, m.v, m.vdot), (other.q, other.v, other.vdot)

    def fitted() -> Any:
        return lw.identify(mech, *state, tau, parameters=KINDS, weighted=False, slow=0.0)

    def plain() -> Any:
        return np.linalg.lstsq(columns_of_pinocchio(model, *state), tau.ravel(), rcond=1e-10)[0]

    fit, ours = timed(fitted)
    same, alone = timed(lambda: regression_of_linkwise(mech, *state, tau))
    theirs, other_side = timed(plain)
    expected = columns_of_pinocchio(model, *there) @ theirs
    inertial = lw.regressor(mech, *there) @ same[: 10 * mech.nv]
    rest = same[10 * mech.nv :].reshape(2, mech.nv)
    again = inertial + rest[0] * there[1] + rest[1] * np.sign(there[1])
    assert np.allclose(again.ravel(), expected, atol=1e-8 * np.abs(expected).max())
    base = lw.identification.rows.base_of(mech, KINDS, list(range(mech.nv)))
    W = lw.identification.model.design(mech, KINDS, *there)[..., base.columns]
    scale = np.abs(expected).max()
    gap = np.abs((W @ fit.estimate).ravel() - expected).max() / scale
    names = ("q", "v", "vdot")
    arrays = dict(zip(names, state, strict=True)) | {"tau": tau, "urdf": str(file)}
    arrays |= {f"{name}_other": x for name, x in zip(names, there, strict=True)}
    third, cells = figaroh(folder, **arrays), ("not installed", "")
    if third is not None:
        far = np.abs(np.array(third["tau"]).ravel() - expected).max() / scale
        cells = (f"{1e3 * third['time']:.0f} ms", f"{far:.1e}")
    return (
        f"| {samples} | {1e3 * ours:.0f} ms | {1e3 * alone:.1f} ms | {1e3 * other_side:.1f} ms | "
        f"{cells[0]} | {other_side / alone:.1f} | {gap:.1e} | {cells[1]} |"
    )


def main() -> None:
    """Measure, and write the page."""
    load, other = machine.load(), "FIGAROH was not installed."
    if python := os.environ.get("FIGAROH"):
        code = "from importlib.metadata import version as v; print(*[f'{x} {v(x)}' for x in "
        code += "('figaroh', 'pin', 'numpy')], sep=', ')"
        out = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
        other = f"FIGAROH's environment: {out.stdout.strip()}."
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        mech, file = robot(folder)
        lines = [row(mech, file, samples, folder) for samples in SAMPLES]
    about = machine.description("linkwise", "numpy", "scipy", "pin")
    head = HEAD.format(noise=100 * NOISE, rounds=ROUNDS, machine=about, other=other, load=load)
    RESULTS.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    print(head + "\n".join(lines))


if __name__ == "__main__":
    main()
