"""Trajectories beside Crocoddyl: one arm reaching poses, alone and as a batch.

    CROCODDYL=/path/to/python python benchmarks/optimize.py

Writes benchmarks/results/optimize.md. Crocoddyl lives in a separate environment: crocoddyl==3.0.1
pin==3.4.0 'numpy<2.3' 'cmeel-urdfdom<5' cmeel-tinyxml2==10.0.0 example-robot-data. aligator is not
compared: PyPI does not have it (the package of that name there is another project).

Errors of the hand are written in the axes of the world on both sides. Errors in the axes of the
hand have the same length, but other derivatives, hence other Gauss-Newton steps: with them the
iterates differ (10 iterations instead of 8 for goal 0).
"""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import machine
import numpy as np
import pinocchio_side as peer

import linkwise as lw
from linkwise.codegen.cpu.device import cores
from linkwise.control import Cost
from linkwise.control.optimize import problem_of
from linkwise.control.solver import SOLVED, Iteration, Limits

FINGERS = ("panda_finger_joint1", "panda_finger_joint2")
HOME = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
NODE, STEP, HORIZON, ROUNDS, BATCH, SHOWN = "panda_link8", 0.01, 100, 7, 256, 8
WEIGHTS = {"state": 0.1, "effort": 1e-3, "reach": 1.0, "final": 100.0}
TOLERANCE = 1e-9
RESULTS = Path(__file__).parent / "results" / "optimize.md"
HEAD = """# Optimised trajectories compared with Crocoddyl

Written by `benchmarks/optimize.py`. panda (7 axes), {horizon} steps of 10 ms (semi-implicit Euler),
from rest at the home pose with joint forces of zero, to poses at random distances of up to 0.26 m
and 0.6 rad; costs of state, joint forces and the error of the hand, no limits. Both start from the
same trajectory, which is no motion, and stop where the cost is expected to fall by less than
{tolerance:g}. Iterations include the last one, which finds nothing left to gain. Crocoddyl is FDDP
on one thread. aligator is not compared: PyPI does not have it. Processor times of one core, the
best of {rounds} rounds; other processes share the caches.

{machine}

Crocoddyl's environment: {versions}. Load average {load} at the start.
"""


def goals(mech: lw.Mechanism, count: int) -> lw.Pose:
    """Poses of the hand around its home."""
    rng = np.random.default_rng(0)
    here = lw.forward_kinematics(mech, HOME, NODE)
    turns = rng.uniform(-1.0, 1.0, (count, 3)) * 0.35
    ways = rng.uniform(-1.0, 1.0, (count, 3)) * 0.15
    rot = np.stack([here.rot @ lw.spatial.rotation.exp(w) for w in turns])
    return lw.Pose(rot, here.p + ways)


def costs(goal: lw.Pose) -> list[Cost]:
    """The costs of `crocoddyl_side.py`."""
    task = lw.Task.pose(NODE)
    return [
        Cost.posture(HOME, weight=WEIGHTS["state"], final=WEIGHTS["state"]),
        Cost.velocity(weight=WEIGHTS["state"], final=WEIGHTS["state"]),
        Cost.effort(weight=WEIGHTS["effort"]),
        Cost.of_task(task, goal, weight=WEIGHTS["reach"], final=WEIGHTS["final"]),
    ]


def crocoddyl(poses: lw.Pose, count: int) -> dict[str, Any]:
    """The same problems by Crocoddyl, in its own process."""
    given = {
        "q": HOME.tolist(), "node": NODE, "weights": WEIGHTS, "step": STEP, "horizon": HORIZON,
        "tolerance": TOLERANCE, "iterations": 200, "rounds": ROUNDS,
        "goals": [{"R": poses.rot[i].tolist(), "p": poses.p[i].tolist()} for i in range(count)],
    }  # fmt: skip
    script = str(Path(__file__).parent / "crocoddyl_side.py")
    environment = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [os.environ["CROCODDYL"], script], input=json.dumps(given), capture_output=True, text=True,
        check=True, env=environment,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def alone(mech: lw.Mechanism, goal: lw.Pose, tolerance: float) -> tuple[int, float, float, Any]:
    """Iterations, cost and time of one problem, and what its parts take."""
    p = problem_of(mech, HOME, None, costs=costs(goal), step=STEP, horizon=HORIZON, limits=(),
                   passive=False)  # fmt: skip
    it = Iteration(p.program, p.data, p.step, Limits(200, tolerance, 1e-5))
    best = float("inf")
    for _ in range(ROUNDS):
        it.begin(p.data.guess[0])
        begun = time.process_time()
        it.run()
        best = min(best, time.process_time() - begun)
    assert it.ended == SOLVED
    parts = [min(timed(call) for _ in range(20 * ROUNDS)) for call, _ in it.calls[it.turn]]
    return it.count, it.cost, best, parts


def timed(call: Any) -> float:
    """Processor time of a call [s]."""
    begun = time.process_time()
    call()
    return time.process_time() - begun


def together(mech: lw.Mechanism, poses: lw.Pose) -> tuple[Any, float, float]:
    """A batch of all problems: the result, time of one core, and wall time on all cores."""
    best, wall, made = float("inf"), float("inf"), None
    for i in range(2 * ROUNDS):
        begun, clock = time.process_time(), time.perf_counter()
        made = lw.optimize(
            mech, np.tile(HOME, (len(poses.p), 1)), costs=costs(poses), step=STEP, horizon=HORIZON,
            limits=(), passive=False, tolerance=TOLERANCE, threads=None if i % 2 else 1,
        )  # fmt: skip
        if i % 2:
            wall = min(wall, time.perf_counter() - clock)
        else:
            best = min(best, time.process_time() - begun)
    return made, best, wall


def main() -> None:
    """Measure and write the page."""
    load = machine.load()
    mech, _ = peer.models("panda.urdf", "fixed", FINGERS)
    poses = goals(mech, BATCH)
    other = crocoddyl(poses, SHOWN)
    rows = [
        "| goal | iterations | Crocoddyl | cost, relative difference | ms an iteration "
        "| Crocoddyl | ratio |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    each, parts = list[float](), list[Any]()
    theirs = list[float]()
    for i, row in enumerate(other["results"]):
        count, cost, spent, pieces = alone(
            mech, lw.Pose(poses.rot[i], poses.p[i]), TOLERANCE / row["cost"]
        )
        each.append(spent / count)
        theirs.append(row["time"] / row["iterations"])
        parts.append(pieces)
        rows.append(
            f"| {i} | {count} | {row['iterations']} | {abs(cost / row['cost'] - 1.0):.1e} | "
            f"{1e3 * each[-1]:.3f} | {1e3 * theirs[-1]:.3f} | {theirs[-1] / each[-1]:.1f} |"
        )
    expand, sweep, roll = 1e6 * np.min(parts, axis=0)
    made, spent, wall = together(mech, poses)
    solved, total = int((made.status == 0).sum()), int(made.iterations.sum())
    mean = float(np.mean([row["time"] for row in other["results"]]))
    lines = [
        HEAD.format(
            horizon=HORIZON, tolerance=TOLERANCE, rounds=ROUNDS, load=load,
            machine=machine.description("linkwise", "numpy", "llvmlite"),
            versions=", ".join(f"{k} {v}" for k, v in other["versions"].items()),
        ),
        *rows,
        f"\nThe parts of one iteration: {expand:.0f} µs expansions of all knots, "
        f"{sweep:.0f} µs Riccati sweep, {roll:.0f} µs rollout.\n",
        f"A batch of {BATCH} goals: {solved} solved, {total / BATCH:.1f} iterations on average, "
        f"{1e6 * spent / total:.0f} µs of processor time for an iteration of a problem, "
        f"{1e3 * spent / BATCH:.2f} ms for a problem; on {cores()} cores {BATCH / wall:.0f} "
        f"problems a second ({total / wall:.0f} iterations). Crocoddyl on one core takes "
        f"{1e3 * mean:.1f} ms for a problem: {mean * BATCH / spent:.1f} times the throughput on "
        f"one core, {mean * BATCH / wall:.1f} times on {cores()}.",
    ]  # fmt: skip
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(RESULTS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
