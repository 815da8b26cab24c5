"""What `lw.simulate` takes for a step, beside `lw.rollout` of the same motion.

    python benchmarks/simulate.py        writes results/simulate.md

Time is that of the process, all its threads together; the least of several calls of each, in turn.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import machine
import numpy as np

import linkwise as lw
from linkwise.simulation import Ground, put_on_ground

RESULTS = Path(__file__).parent / "results" / "simulate.md"
HEAD = """# Simulations beside rollouts

Written by `python benchmarks/simulate.py`. The same motion of one robot by `lw.simulate` and by
`lw.rollout`, in steps of 1 ms, with as many records: after each step, or a thousand of them.
Microseconds of processor time for one step, the least of several calls in turn; the ratio (goal: at
most 2 in long motions), and what a call of `lw.simulate` takes in all. A simulation looks for
events, counts the work of all forces and checks whether energy adds up; channels and the report
are computed when they are read, and are not part of this. A call takes about 0.4 ms besides its
steps, which is what the ratio of short motions shows. The arm falls from rest, with dampers and
limits where the steps are implicit; the quadruped lands on its feet and folds, touching the ground
with some of its points.

{machine}

Load average {load}.

| robot | integrator | steps | records | `lw.rollout` | `lw.simulate` | ratio | call [ms] |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""
STEPS, RECORDS, BUDGET = (100, 1000, 10_000), 1000, 60_000


def least(*calls: Callable[[], object], rounds: int) -> list[float]:
    """Processor time of each call [s], measured in turn."""
    times = np.empty((rounds, len(calls)))
    for row in times:
        for i, call in enumerate(calls):
            start = time.process_time()
            call()
            row[i] = time.process_time() - start
    return times.min(axis=0).tolist()


def cases() -> Iterator[tuple[lw.Mechanism, np.ndarray, dict[str, Any]]]:
    """Mechanisms, where they begin, and options."""
    arm = lw.models.seven_dof_arm()
    q = np.random.default_rng(0).uniform(-0.5, 0.5, arm.nq)
    for integrator in ("rk4", "euler", "implicit"):
        yield arm, q, {"integrator": integrator}
    quadruped, ground = lw.models.quadruped(), Ground()
    q = put_on_ground(quadruped, None, ground)
    yield quadruped, q, {"integrator": "implicit", "contacts": ground}


def measured(mech: lw.Mechanism, q: np.ndarray, options: dict[str, Any], steps: int) -> list[str]:
    """A row of the table."""
    every = max(steps // RECORDS, 1)
    given = {"duration": 1e-3 * steps, "step": 1e-3, "record_every": every, **options}

    def simulated() -> lw.simulation.Recording:
        return lw.simulate(mech, q, **given)

    def rolled() -> Any:
        return lw.rollout(mech, q, **given)

    apart = np.abs(simulated().q[-1] - rolled().q[-1]).max()  # both are compiled now
    assert apart < 1e-9, apart
    ours, theirs = least(simulated, rolled, rounds=min(max(BUDGET // steps, 5), 200))
    numbers = [f"{1e6 * theirs / steps:.2f}", f"{1e6 * ours / steps:.2f}", f"{ours / theirs:.1f}"]
    counts = [str(steps), str(steps // every)]
    return [mech.name, options["integrator"], *counts, *numbers, f"{1e3 * ours:.2f}"]


def main() -> None:
    """Measure, print, write."""
    warnings.simplefilter("ignore")
    rows = [measured(*case, steps) for case in cases() for steps in STEPS]
    text = HEAD.format(machine=machine.description("llvmlite", "numpy"), load=machine.load())
    text += "".join(f"| {' | '.join(row)} |\n" for row in rows)
    print(text)
    RESULTS.write_text(text)


if __name__ == "__main__":
    main()
