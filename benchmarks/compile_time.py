"""How long a first call takes: processor time with an empty cache folder, and from disk.

Run with `make bench`. Writes benchmarks/results/compile_time.md. Every figure is the best of some
fresh processes; importing Linkwise and making the mechanism are not in it, importing what a kernel
needs is. Mechanisms of other files can be added:  compile_time.py robot.xml other.urdf
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import machine
from model import urdf_files

RESULTS = Path(__file__).parent / "results" / "compile_time.md"
RUNS = 3
QUANTITIES = ("forward_dynamics", "mass_matrix")
FILES = ("panda.urdf", "g1_29dof_rev_1_0.urdf", "talos_reduced.urdf")

HEAD = """# First calls

Written by `make bench`. CPU time [s] of the first call in a fresh process, best of {runs}, with an
empty cache folder and with the kernel on disk. Importing Linkwise and making the mechanism are not
counted; importing what a kernel needs is, about 0.07 s, or 0.05 s from disk. Derivations ship with
the library. Operations are those of the kernel for one state. Four-bars side by side are one loop
over islands; in a chain, where each is mounted on the coupler of the previous one, all rows of
constraints share one dense matrix, and the code grows with the cube of their number.
"""

CHILD = """
import json, sys, time, warnings
import numpy as np
import linkwise as lw
warnings.simplefilter("ignore")
sys.path.insert(0, {here!r})
import compile_time
mech = compile_time.mechanism({robot!r})
q, v = mech.neutral(), np.linspace(-0.1, 0.1, mech.nv)
state = (q, v, np.zeros(mech.nv)) if {quantity!r} == "forward_dynamics" else (q,)
function, begun = getattr(lw, {quantity!r}), time.process_time()
function(mech, *state)
spent = time.process_time() - begun
kernel = compile_time.kernel(mech, {quantity!r})
print(json.dumps([spent, mech.nv, sum(kernel.ops.values())]))
"""


def main() -> None:
    """Measure everything and write the page."""
    named = {path.name: path for path in urdf_files()}
    robots = ["pendulum", "seven_dof_arm", "humanoid", *(str(named[x]) for x in FILES)]
    robots += sys.argv[1:]
    rows = [row(robot, quantity) for robot in robots for quantity in QUANTITIES]
    rows += [row(f"four_bars {n}", "forward_dynamics") for n in (1, 10, 100, 1000)]
    rows += [row(f"four_bar_chain {n}", "forward_dynamics") for n in (2, 5, 10, 20)]
    head = "| mechanism | dof | quantity | empty folder | from disk | operations |"
    parts = [
        HEAD.format(runs=RUNS),
        machine.description("linkwise", "numpy", "llvmlite"),
        f"Load average: {machine.load()} at the end.\n",
        "\n".join([head, "| --- | ---: | --- | ---: | ---: | ---: |", *rows]),
    ]
    text = "\n".join(parts) + "\n"
    print(text)
    RESULTS.write_text(text, encoding="utf-8")


def mechanism(robot: str):
    """A model of the library by its name, a file, or four-bars."""
    import linkwise as lw

    if robot.startswith("four_bar"):
        name, count = robot.split()
        return four_bars(int(count), chain=name == "four_bar_chain")
    return lw.load(robot) if Path(robot).suffix else getattr(lw.models, robot)()


def four_bars(count: int, *, chain: bool):
    """Four-bars side by side on the ground, or each on the coupler of the one before."""
    import linkwise as lw

    b, pin = lw.Builder("four_bars"), lw.hinges.Pin((0, 1, 0))
    rod = lw.SpatialInertia.solid_box(1.0, (0.3, 0.1, 0.1))
    ground, at = "world", (0.0, 0.0, 0.0)
    for i in range(count):
        start = at if chain else (0.0, 0.3 * i, 0.0)
        end = (start[0] + 0.4, start[1], start[2])
        b.body(f"crank_{i}", ground, pin, inboard=start, inertia=rod)
        b.body(f"coupler_{i}", f"crank_{i}", pin, inboard=(0, 0, 0.1), inertia=rod)
        b.body(f"rocker_{i}", ground, pin, inboard=end, inertia=rod)
        b.node(f"coupler_end_{i}", f"coupler_{i}", (0.4, 0, 0.3))
        b.node(f"rocker_end_{i}", f"rocker_{i}", (0, 0, 0.4))
        b.loop(f"loop_{i}", f"coupler_end_{i}", f"rocker_end_{i}", pin)
        if chain:
            ground, at = f"coupler_{i}", (0.2, 0.0, 0.15)
    return b.build()


def kernel(mech, quantity: str):
    """The kernel that the call has made."""
    from linkwise.dynamics.closure import closed_kernel
    from linkwise.dynamics.kernels import kernel, usual_rank

    if quantity == "forward_dynamics" and (mech.loops or mech.couplings):
        rank = usual_rank(mech).rank
        return closed_kernel(mech, "forward_dynamics", rank=rank)
    return kernel(mech, quantity)


def row(robot: str, quantity: str) -> str:
    """One line of the table."""
    spent = [measured(robot, quantity) for _ in range(RUNS)]
    cold, disk = (min(times) for times in zip(*(x[:2] for x in spent), strict=True))
    _, _, dof, ops = spent[0]
    name = Path(robot).name if Path(robot).suffix else robot
    line = f"| {name} | {dof} | {quantity} | {cold:.2f} | {disk:.2f} | {ops:,} |"
    print(line, flush=True)
    return line


def measured(robot: str, quantity: str) -> tuple[float, float, int, int]:
    """Seconds with an empty folder and from disk; degrees of freedom, operations."""
    code = CHILD.format(robot=robot, quantity=quantity, here=str(Path(__file__).parent))
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LINKWISE_CACHE": folder}
        result = list[list[float]]()
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-c", code],
                env=environment, check=True, capture_output=True, text=True,
            )  # fmt: skip
            result.append(json.loads(done.stdout))
    return result[0][0], result[1][0], int(result[0][1]), int(result[0][2])


if __name__ == "__main__":
    main()
