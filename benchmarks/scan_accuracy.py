"""Accuracy of scans and sweeps on long and stiff chains, beside extended precision.

python benchmarks/scan_accuracy.py
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import chain
import numpy as np

import linkwise as lw
from linkwise.algebra import bias, mass, tau, vdot
from linkwise.codegen.request import Request
from linkwise.codegen.scan.device import ChainGpu

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.codegen.chain_on_host import OnHost
from tests.codegen.test_chain_scan import serial
from tests.sweeps.extended import Pins

RESULTS = Path(__file__).parent / "results" / "scan_accuracy.md"
FORWARD, INVERSE = mass.inv @ (tau - bias), mass @ vdot + bias
SEEDS = range(3)
STATES = ("random", "curled", "straight")
EPS = float(np.finfo(np.float64).eps)

HEAD = """# Accuracy of scans

Written by `python benchmarks/scan_accuracy.py`. Chains of pins in float64, beside the same
recursions in 80-bit numbers. *Sweep* is the compiled kernel on the CPU, *scan* is `schedule="scan"`
of the target "numpy", *runs* the code of the target "cuda", built for and run on a processor.
*Links* are those of `chain.md`; *random links* have random axes, frames and inertias, with the
given largest ratio of masses, with or without armature. Random angles lie within ±1 rad (±π for
random links); a curled chain has 0.1 rad at each pin, a straight one 0. Velocities are random,
zero in straight chains; forces are random, about 3 N m.

*Error* is the largest difference, of the largest entry; the worst of {seeds} states. *Inputs* is
what a change of q, v and forces by one rounding ({eps:.0e} of each) does to the exact result: the
error that the problem itself makes unavoidable. *Residual* is what is missing of the forces when
the accelerations are put into exact inverse dynamics, as a part of the largest bias force.

"""
COLUMNS = (
    *("chain", "state", "links", "inputs", "error, sweep", "error, scan", "error, runs"),
    *("residual, sweep", "residual, scan", "residual, runs"),
    *("inverse dynamics, sweep", "inverse dynamics, scan"),
)


def cases() -> Iterator[tuple[str, lw.Mechanism, str]]:
    """Name, chain and state."""
    for n in (100, 300, 1000, 3000, 10_000):
        mech = chain.chain(n)
        for kind in STATES:
            yield "links", mech, kind
    for label, n, options in (
        ("random links, 10", 1000, {}),
        ("random links, 10", 3000, {}),
        ("random links, 1e6", 300, {"mass_ratio": 1e6}),
        ("random links, 1e6, no armature", 300, {"mass_ratio": 1e6, "drives": False}),
        ("random links, 1e9", 300, {"mass_ratio": 1e9}),
        ("random links, 1e9", 1000, {"mass_ratio": 1e9}),
    ):
        yield label, serial(n, hinges=("pin",), **options), "random"


def state(mech: lw.Mechanism, kind: str, label: str, seed: int) -> list[np.ndarray]:
    """q, v and forces."""
    rng = np.random.default_rng(seed)
    reach = 1.0 if label == "links" else np.pi
    q = rng.uniform(-reach, reach, mech.nv)
    q = {"random": q, "curled": np.full(mech.nv, 0.1), "straight": 0.0 * q}[kind]
    v = rng.normal(size=mech.nv) / np.sqrt(mech.nv)
    return [q, 0.0 * v if kind == "straight" else v, 3.0 * rng.normal(size=mech.nv)]


def row(label: str, mech: lw.Mechanism, kind: str) -> list[str]:
    """The cells of a chain."""
    sweep, sweep_inverse = (
        lw.compile(x, mech, rolled=True, cache=False) for x in (FORWARD, INVERSE)
    )
    options = {"target": "numpy", "schedule": "scan"}
    scan, scan_inverse = (lw.compile(x, mech, **options) for x in (FORWARD, INVERSE))
    with tempfile.TemporaryDirectory() as folder:
        runs = OnHost(ChainGpu(Request((FORWARD,), mech)), Path(folder))
    worst = np.zeros(9)
    for seed in SEEDS:
        q, v, x = state(mech, kind, label, seed)
        exact = Pins(mech, q, v)
        right, force = exact.forward(x), exact.inverse(x)
        size = np.abs(exact.inverse(0.0 * x)).max()
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], (3, mech.nv))
        q_near, v_near, x_near = np.stack([q, v, x]) * (1.0 + EPS * signs)
        got = [Pins(mech, q_near, v_near).forward(x_near), sweep(q, v, x), scan(q, v, x)]
        on_host, code = runs(q, v, x)
        assert code == 0, f"status {code}"
        got.append(on_host)
        numbers = [np.abs(y - right).max() / np.abs(right).max() for y in got]
        numbers += [np.abs(exact.inverse(y) - x).max() / size for y in got[1:]]
        backs = (sweep_inverse(q, v, x), scan_inverse(q, v, x))
        numbers += [np.abs(y - force).max() / np.abs(force).max() for y in backs]
        worst = np.maximum(worst, np.array(numbers, dtype=np.float64))
    return [label, kind, f"{mech.n_bodies:,}", *(f"{x:.0e}" for x in worst)]


def main() -> None:
    """Write the table."""
    lines = [HEAD.format(seeds=len(SEEDS), eps=EPS)]
    lines += [f"| {' | '.join(COLUMNS)} |\n", f"| --- | --- |{' ---: |' * (len(COLUMNS) - 2)}\n"]
    for label, mech, kind in cases():
        lines.append(f"| {' | '.join(row(label, mech, kind))} |\n")
        print(lines[-1], end="", flush=True)
    RESULTS.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
