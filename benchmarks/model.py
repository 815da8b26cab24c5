"""The mechanism layer: import, `linkwise info`, loading files, building long chains.

Run with `make bench`. Writes benchmarks/results/model.md. Each time is the median of several runs;
what a user waits for as a whole (import, command line, memory) is measured in fresh processes.
"""

import contextlib
import importlib.metadata
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import machine

RESULTS = Path(__file__).parent / "results" / "model.md"
URDF = (
    "ur_description/urdf/ur5_robot.urdf",
    "panda_description/urdf/panda.urdf",
    "anymal_c_simple_description/urdf/anymal.urdf",
    "g1_description/urdf/g1_29dof_rev_1_0.urdf",
    "talos_data/robots/talos_reduced.urdf",
)
MJCF = ("ant.xml", "half_cheetah.xml", "humanoid.xml")


def main() -> None:
    """Measure everything and write the page."""
    load_before = machine.load()
    parts = [
        "# Measurements of the mechanism layer\n",
        "Written by `make bench`.\n",
        machine.description("linkwise", "numpy", "pin", "mujoco"),
        import_table(),
        info_table(),
        load_table(),
        chain_table(),
    ]
    busy = (
        f"Load average: {load_before} before, {machine.load()} after (an idle machine starts at 0)."
    )
    parts.insert(3, f"{busy} Times are medians, with the fastest and slowest run in brackets.\n")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("\n".join(parts), encoding="utf-8")
    print(RESULTS.read_text(encoding="utf-8"))


def import_table(runs: int = 9) -> str:
    """Time of `import x` inside a fresh interpreter, interleaved so that noise is shared."""
    code = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    names = ("numpy", "linkwise", "pinocchio", "mujoco")
    times: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(runs):
        for name in names:
            times[name].append(float(python(code.format(name))))
    rows = [f"| `import {n}` | {shown(times[n], 1e3, 0)} |" for n in names]
    head = f"## Import\n\nMedian of {runs} fresh processes; linkwise includes NumPy.\n"
    return "\n".join([head, "| | ms |", "| --- | --- |", *rows, ""])


def info_table(runs: int = 7) -> str:
    """Wall time of the command, interpreter start included."""
    import linkwise as lw

    entry = "import sys; from linkwise.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", entry, "info"]
    mech = lw.models.humanoid()
    rows: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("urdf", "xml"):
            file = Path(folder) / f"humanoid.{suffix}"
            lw.save(mech, file)
            seconds = timed(
                runs, lambda f=file: subprocess.run([*command, f], check=True, capture_output=True)
            )
            kind = "URDF" if suffix == "urdf" else "MJCF"
            cell = shown(seconds, 1.0, 2)
            rows.append(f"| `linkwise info`, humanoid as {kind}, {mech.nv} dof | {cell} |")
    head = f"## Command line\n\nWhole process, median of {runs}.\n"
    return "\n".join([head, "| | s |", "| --- | --- |", *rows, ""])


def load_table(runs: int = 7) -> str:
    """`lw.load` beside the loader of Pinocchio or MuJoCo, warm, same process."""
    import mujoco
    import pinocchio

    import linkwise as lw

    rows: list[str] = []
    for file in urdf_files():

        def theirs(f: Path = file) -> object:
            return pinocchio.buildModelFromUrdf(str(f))

        rows.append(load_row(lw.load, theirs, file, "Pinocchio", runs))
    for file in mjcf_files():

        def theirs(f: Path = file) -> object:
            return mujoco.MjModel.from_xml_path(str(f))

        rows.append(load_row(lw.load, theirs, file, "MuJoCo", runs))
    head = (
        "## Loading a file\n\nPinocchio and MuJoCo parse in C++, Linkwise in Python. They do "
        "different work besides: MuJoCo also compiles its meshes and contact tables; Pinocchio "
        "reads only the kinematic and inertial part; Linkwise keeps geometry, and reports what it "
        f"did not use. Warm, one process, median of {runs}.\n"
    )
    columns = ["| file | dof | Linkwise [ms] | the other [ms] | which |", "| --- " * 5 + "|"]
    return "\n".join([head, *columns, *rows, ""])


def load_row(
    load: Callable, theirs: Callable[[], object], file: Path, which: str, runs: int
) -> str:
    """One line of the table of loading times."""
    mech = load(file)
    ours = shown(timed(runs, lambda: load(file)), 1e3, 1)
    other = shown(timed(runs, theirs), 1e3, 1)
    return f"| {file.name} | {mech.nv} | {ours} | {other} | {which} |"


def chain_table() -> str:
    """Time and memory of `lw.models.chain(n)`, one fresh process for each figure."""
    clocked = """
import time, linkwise as lw
lw.models.chain(10)
start = time.perf_counter()
mech = lw.models.chain({n})
print(time.perf_counter() - start)
assert mech.n_bodies == {n}
"""
    traced = """
import tracemalloc, linkwise as lw
lw.models.chain(10)
tracemalloc.start()
mech = lw.models.chain({n})
print(*tracemalloc.get_traced_memory())
"""
    rows: list[str] = []
    for n in (1_000, 3_000, 10_000, 30_000, 100_000):
        times = [float(python(clocked.format(n=n))) for _ in range(5)]
        seconds = statistics.median(times)
        held, peak = (float(x) for x in python(traced.format(n=n)).split())
        rows.append(
            f"| {n:,} | {shown(times, 1.0, 2)} | {1e6 * seconds / n:.0f} "
            f"| {held / 2**20:.1f} | {peak / 2**20:.1f} | {peak / n:.0f} |"
        )
    head = (
        "## A chain of n bodies\n\nTime is the median of 5 fresh processes; memory is counted by "
        "tracemalloc in another one.\n"
    )
    columns = [
        "| n | s | µs a body | held MiB | peak MiB | peak bytes a body |",
        "| --- " * 6 + "|",
    ]
    return "\n".join([head, *columns, *rows, ""])


def python(code: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def shown(times: list[float], unit: float, digits: int) -> str:
    """Median (fastest to slowest), in the given unit."""
    low, middle, high = (unit * f(times) for f in (min, statistics.median, max))
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def timed(runs: int, call: Callable[[], object]) -> list[float]:
    """Wall times [s] of several calls, the first not counted; printing is hidden."""
    times: list[float] = []
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        call()
        for _ in range(runs):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    return times


def urdf_files() -> list[Path]:
    """The chosen files of the package example-robot-data, which has no module."""
    files = importlib.metadata.files("example-robot-data") or []
    result = [Path(str(f.locate())) for f in files if str(f).endswith(URDF)]
    if len(result) != len(URDF):
        raise SystemExit(f"example-robot-data has {len(result)} of the {len(URDF)} chosen files")
    return sorted(result, key=lambda f: next(i for i, u in enumerate(URDF) if str(f).endswith(u)))


def mjcf_files() -> list[Path]:
    """The chosen files of gymnasium."""
    import gymnasium

    folder = Path(str(gymnasium.__file__)).parent / "envs" / "mujoco" / "assets"
    return [folder / name for name in MJCF]


if __name__ == "__main__":
    main()
