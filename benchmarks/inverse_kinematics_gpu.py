"""Inverse kinematics on a CUDA GPU: agreement with the CPU, targets per second.

    python benchmarks/carried.py                   here: packages that the GPU's machine lacks
    python benchmarks/inverse_kinematics_gpu.py    on a machine with a GPU: writes the page

The second needs NumPy and CuPy, and writes results/inverse_kinematics_gpu.md, into OUT if it is
set.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

import carried  # noqa: F401 (makes the packages importable)
import machine
import numpy as np

import linkwise as lw
from linkwise.dynamics.inverse_kinematics import descent, search
from linkwise.dynamics.inverse_kinematics.goal import goal_arrays

TARGETS, COMPARED, ROUNDS = (1_000, 10_000, 100_000), 2_000, 5
TOLERANCE, STEPS = 1e-6, 100
ALIKE, NEAR = 0.98, 1e-6
"""Fraction of the targets that both find from the same start with the same joints, and how near:
a search that passes a singularity may go on differently after a last digit differs."""

ROBOTS: dict[str, tuple[Callable[[], lw.Mechanism], tuple[str, ...]]] = {
    "seven_dof_arm, hand": (lw.models.seven_dof_arm, ("hand",)),
    "seven_dof_arm, hand, with a posture": (lw.models.seven_dof_arm, ("hand",)),
    "humanoid, both hands": (lw.models.humanoid, ("left_hand", "right_hand")),
}
RESULTS = Path(__file__).parent / "results" / "inverse_kinematics_gpu.md"
HEAD = """# Inverse kinematics on a CUDA GPU

Written by `python benchmarks/inverse_kinematics_gpu.py`. Targets are the poses that the nodes have
in random positions within the limits; reached means {tolerance:g} m and {tolerance:g} rad, within
limits, in float64. Before anything is measured, {compared:,} searches from one start are compared
with the CPU's, and poses at the joints that the GPU found with the targets.

*Kernel* is one search for each target, with inputs on the GPU and results left there. *Call* is
`lw.inverse_kinematics(..., target="cuda")` from Python, from arrays of NumPy to a solution, with up
to 30 restarts; *CPU* is the same call on the processor, with all its cores.

"""


def problem(
    mech: lw.Mechanism, goals: dict[str, lw.Pose], posture: np.ndarray | None, target: str
) -> tuple[descent.Problem, np.ndarray]:
    """The search for each target from one start, and the starts."""
    nodes = tuple(goals)
    given = goal_arrays(goals, search._length(mech, nodes))
    setting = search._setting(mech, nodes, (), True)
    fixed = (setting.joints, setting.couplings, setting.movable)
    limits = (TOLERANCE, TOLERANCE)
    made = descent.Problem(given, *fixed, limits, STEPS, posture, target)
    return made, np.tile(setting.start.reshape(-1), (len(given.p), 1))


def compared(mech: lw.Mechanism, goals: dict[str, lw.Pose], posture: np.ndarray | None) -> str:
    """One search for each target on both; raises where they differ."""
    both = list[descent.Samples]()
    for target in ("cpu", "cuda"):
        made, start = problem(mech, goals, posture, target)
        both.append(descent.solve(made, start, np.arange(len(start))))
    cpu, gpu = both
    apart = np.abs(cpu.q - gpu.q).max(axis=1)
    alike = float((apart < NEAR).mean())
    reached = float(cpu.reached.mean()), float(gpu.reached.mean())
    worst = 0.0
    for node, goal in goals.items():
        pose = lw.forward_kinematics(mech, gpu.q[gpu.reached], node)
        worst = max(worst, float(np.linalg.norm(pose.p - goal.p[gpu.reached], axis=1).max()))
        worst = max(worst, float(np.abs(pose.rot - goal.rot[gpu.reached]).max()))
    if alike < ALIKE or abs(reached[0] - reached[1]) > 1.0 - ALIKE or worst > 2 * TOLERANCE:
        raise SystemExit(
            f"{alike:.2%} alike, reached {reached}, poses {worst:.1e} apart: nothing was measured"
        )
    return f"{100 * reached[1]:.1f} % | {100 * alike:.1f} %"


def best(work: Callable[[], object]) -> float:
    """Shortest of several runs [s], after one that is not counted."""
    work()
    times = list[float]()
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def rates(cp, mech: lw.Mechanism, goals: dict[str, lw.Pose], posture: np.ndarray | None) -> str:
    """Targets per second by the kernel, by a call, and by a call on the processor."""
    made, start = problem(mech, goals, posture, "cuda")
    count = len(start)
    inputs = made.inputs(np.arange(count), descent.SLOW, STEPS)
    arrays = [cp.asarray(x) for x in (start, *inputs)]
    codes = cp.zeros(count, np.int32)

    def kernel() -> None:
        made.kernel(*arrays, status=codes)
        cp.cuda.Device().synchronize()

    def call(target: str) -> lw.dynamics.Solution:
        return lw.inverse_kinematics(mech, goals, posture=posture, target=target)

    solved = call("cuda")
    if not solved.reached.mean() > 0.99:
        raise SystemExit(f"only {solved.reached.mean():.2%} of {count} targets were reached")
    seconds = best(kernel), best(lambda: call("cuda")), best(lambda: call("cpu"))
    each = " | ".join(f"{count / s:,.0f}" for s in seconds)
    return f"| {count:,} | {each} | {100 * solved.reached.mean():.2f} % |\n"


def measured(cp) -> str:
    """Agreement and rates."""
    text = ""
    for title, (make, nodes) in ROBOTS.items():
        mech, rng = make(), np.random.default_rng(2026)
        posture = mech.neutral() if title.endswith("posture") else None
        q = np.array([mech.random(rng) for _ in range(TARGETS[-1])])
        goals = {node: lw.forward_kinematics(mech, q, node) for node in nodes}
        first = {n: lw.Pose(x.rot[:COMPARED], x.p[:COMPARED]) for n, x in goals.items()}
        text += (
            f"\n## {title}\n\n| reached from one start | as on the CPU |\n| ---: | ---: |\n"
            f"| {compared(mech, first, posture)} |\n\n| targets | kernel, targets/s | call, "
            "targets/s | CPU, targets/s | reached |\n| ---: | ---: | ---: | ---: | ---: |\n"
        )
        for count in TARGETS:
            some = {n: lw.Pose(x.rot[:count], x.p[:count]) for n, x in goals.items()}
            text += rates(cp, mech, some, posture)
            print(text, flush=True)
    return text


def main() -> None:
    """Compare, measure and write the page."""
    import cupy as cp

    card = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    about = f"GPU: {card}. {machine.description('numpy')}\nCuPy {cp.__version__}.\n"
    text = HEAD.format(tolerance=TOLERANCE, compared=COMPARED) + about + measured(cp)
    target = Path(os.environ["OUT"]) / RESULTS.name if "OUT" in os.environ else RESULTS
    target.write_text(text)


if __name__ == "__main__":
    main()
