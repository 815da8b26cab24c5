"""Optimised trajectories on a CUDA GPU: agreement with the CPU, problems per second.

    python benchmarks/optimize_gpu.py --prepare    here: problems and references
    python benchmarks/optimize_gpu.py              on a machine with a GPU: writes the page

The first needs what benchmarks/optimize.py needs, and writes build/optimize_gpu; the second needs
NumPy and CuPy only, and writes results/optimize_gpu.md.
"""

import argparse
import datetime
import pickle
import time
import warnings
from pathlib import Path
from typing import Any

import machine
import numpy as np

import linkwise as lw
from linkwise.control import Cost
from linkwise.control.optimize import problem_of, routine_of
from linkwise.control.side_by_side import ENTER, ITERATE, OnGpu, stages_kernel
from linkwise.control.solver import Limits

NODE, STEP, HORIZON = "panda_link8", 0.01, 100
BATCHES = (256, 1024, 4096, 16384)
CHECKED, MOST = 128, 1 << 14
TOLERANCE = 1e-9
FOLDER = Path(__file__).parent.parent / "build" / "optimize_gpu"
RESULTS = Path(__file__).parent / "results" / "optimize_gpu.md"
HEAD = """# Optimised trajectories on a CUDA GPU

Written by `python benchmarks/optimize_gpu.py`. The problems of
[the comparison with Crocoddyl](#optimised-trajectories-compared-with-crocoddyl): panda (7 axes),
100 steps of 10 ms, from rest to poses of the hand, each problem with its own goal. `lw.optimize`
with `target="cuda"` and starts on the GPU, where the results stay; a call from Python, the best of
3, with all checks of the arguments. *Limits*: the same with the limits of joint positions, speeds
and torques of the robot. Before anything is measured, {checked} problems of each kind are compared
with those of the CPU.
"""


def costs(home: np.ndarray, goal: lw.Pose) -> list[Cost]:
    """Those of benchmarks/optimize.py."""
    return [
        Cost.posture(home, weight=0.1, final=0.1),
        Cost.velocity(weight=0.1, final=0.1),
        Cost.effort(weight=1e-3),
        Cost.of_task(lw.Task.pose(NODE), goal, weight=1.0, final=100.0),
    ]


KINDS: dict[str, dict[str, Any]] = {
    "no limits": {"limits": ()},
    "limits": {"iterations": 200},
}


def problem(rows: slice, kind: str) -> tuple[lw.Mechanism, np.ndarray, dict[str, Any]]:
    """The robot, starts and options of some problems."""
    mech = pickle.loads((FOLDER / "panda.pickle").read_bytes())
    given = np.load(FOLDER / "goals.npz")
    goal = lw.Pose(given["rot"][rows], given["p"][rows])
    options = {"costs": costs(given["home"], goal), "step": STEP, "horizon": HORIZON,
               "passive": False, "tolerance": TOLERANCE}  # fmt: skip
    return mech, np.tile(given["home"], (len(goal.p), 1)), options | KINDS[kind]


def prepare() -> None:
    """Problems, and what the CPU makes of some of them."""
    import optimize
    import pinocchio_side as peer

    FOLDER.mkdir(parents=True, exist_ok=True)
    mech, _ = peer.models("panda.urdf", "fixed", optimize.FINGERS)
    poses = optimize.goals(mech, MOST)
    (FOLDER / "panda.pickle").write_bytes(pickle.dumps(mech))
    np.savez(FOLDER / "goals.npz", rot=poses.rot, p=poses.p, home=optimize.HOME)
    for kind in KINDS:
        made = solved(slice(CHECKED), kind, "cpu")
        names = ("q", "v", "tau", "cost", "violation", "status", "iterations")
        np.savez(FOLDER / f"{kind}.npz", **{x: getattr(made, x) for x in names})
        print(kind, made)


def solved(rows: slice, kind: str, target: str, there: Any = None) -> Any:
    """The trajectories of some problems."""
    mech, q, options = problem(rows, kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.errors.TroubleWarning)
        return lw.optimize(mech, q if there is None else there(q), **options, target=target)


def agreement(kind: str) -> str:
    """Against the CPU; a wrong result is an error."""
    right, made = np.load(FOLDER / f"{kind}.npz"), solved(slice(CHECKED), kind, "cuda")
    fine = (right["status"] == 0) & (made.status == 0)
    same = int((right["status"] == made.status).sum())
    if same < 0.98 * CHECKED:
        raise AssertionError(f"{CHECKED - same} problems end otherwise: nothing was measured")
    cost = np.abs(made.cost / right["cost"] - 1.0)[fine].max()
    off = {x: np.abs(getattr(made, x) - right[x])[fine].max() for x in ("q", "v", "tau")}
    # the cost is flat at its minimum: a part ε of it is a part √ε of the joint forces
    if not (cost < 1e-6 and off["q"] < 1e-3):
        raise AssertionError(f"costs differ by {cost:.1e}, q by {off['q']:.1e}")
    count = np.abs(made.iterations - right["iterations"])[fine]
    return (
        f"- {kind}: {same} of {CHECKED} end alike, {int(fine.sum())} of them solved; relative "
        f"difference of costs {cost:.1e}, of q {off['q']:.1e} rad, of v {off['v']:.1e} rad/s, of "
        f"torques {off['tau']:.1e} N m; {int((count == 0).sum())} take the same number of "
        "iterations"
    )


def row(cp: Any, kind: str, batch: int) -> str:
    """A line of the table."""
    mech, q, options = problem(slice(batch), kind)
    there, best, made = cp.asarray(q), float("inf"), None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.errors.TroubleWarning)
        for _ in range(4):
            made = None
            cp.cuda.Device().synchronize()
            began = time.perf_counter()
            made = lw.optimize(mech, there, **options, target="cuda")
            cp.cuda.Device().synchronize()
            best = min(best, time.perf_counter() - began)
    assert made is not None
    total, done = int(made.iterations.sum()), int((made.status == 0).sum())
    cp.get_default_memory_pool().free_all_blocks()
    return (
        f"| {kind} | {batch} | {done} | {total / batch:.1f} | {int(made.iterations.max())} | "
        f"{1e3 * best:.1f} | {batch / best:,.0f} | {total / best:,.0f} |"
    )


def of_libraries(cp: Any) -> str:
    """Arrays of Torch and JAX, where they are installed."""
    right, libraries = solved(slice(40), "no limits", "cuda"), ["NumPy", "CuPy"]
    made = solved(slice(40), "no limits", "cuda", cp.asarray)
    assert isinstance(made.gain, cp.ndarray) and np.array_equal(made.gain.get(), right.gain)
    try:
        import torch

        made = solved(slice(40), "no limits", "cuda", lambda q: torch.tensor(q, device="cuda"))
        assert isinstance(made.q, torch.Tensor) and made.q.is_cuda
        assert np.array_equal(made.q.cpu().numpy(), right.q)
        libraries.append("Torch")
    except ImportError:
        pass
    return f"- starts as arrays of {', '.join(libraries)}: results in kind, the same to the bit"


def parts(cp: Any, batch: int = 4096) -> list[str]:
    """Time of each launch of an iteration."""
    mech, q, options = problem(slice(batch), "no limits")
    names = ("costs", "step", "horizon", "passive", "limits")
    p = problem_of(mech, q, None, **{x: options[x] for x in names})
    routine = routine_of(p, spread=True)
    kernel, best = stages_kernel(routine, p.data), dict[str, float]()
    for _ in range(3):
        side = OnGpu(kernel, routine, p.data, STEP, Limits(9, TOLERANCE, 1e-5))
        registers = side.batch
        registers.put("turns", np.full((1, 1), 9.0))
        registers.run(ENTER, registers.every())
        which = cp.concatenate([registers.every(), registers.spare])
        for launch in registers.source.launches[ITERATE]:
            begin, end = cp.cuda.Event(), cp.cuda.Event()
            begin.record()
            registers.launch(launch, which, batch, 0)
            end.record()
            end.synchronize()
            took = cp.cuda.get_elapsed_time(begin, end)
            best[launch.name] = min(best.get(launch.name, took), took)
    lines = [f"The first iteration of {batch} problems without limits, launch by launch [ms]:", ""]
    for launch in registers.source.launches[ITERATE]:
        function = registers.functions[launch.name]
        lines.append(
            f"- {launch.about}: {best[launch.name]:.3f} ({function.num_regs} registers, "
            f"{function.local_size_bytes} bytes spilled, {launch.shared // 1024} KiB shared)"
        )
    lines.append("")
    lines.append(f"A problem takes {8e-3 * registers.source.size:.0f} kB of the GPU's memory.")
    return lines


def main() -> None:
    """Check, measure, write."""
    import cupy as cp

    began = time.perf_counter()
    agreements = [agreement("no limits")]
    took = time.perf_counter() - began
    agreements += [agreement("limits"), of_libraries(cp)]
    print("\n".join(agreements), flush=True)
    rows = [
        "| problems | batch | solved | iterations, mean | most | ms | problems a second "
        "| iterations a second |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for kind in KINDS:
        for batch in BATCHES:
            rows.append(row(cp, kind, batch))
            print(rows[-1], flush=True)
    name = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    lines = [
        HEAD.format(checked=CHECKED),
        f"{name}, CuPy {cp.__version__}, {datetime.date.today():%Y-%m-%d}. "
        f"{machine.description('linkwise', 'numpy')}\n",
        f"Agreement with the CPU (the first call, with the GPU's compiler, took {took:.1f} s):\n",
        *agreements, "", *rows, "", *parts(cp),
    ]  # fmt: skip
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(RESULTS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--prepare", action="store_true")
    prepare() if parser.parse_args().prepare else main()
