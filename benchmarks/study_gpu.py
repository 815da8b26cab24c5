"""A study on a CUDA GPU: agreement with the CPU, and its rate beside the bare kernel.

    python benchmarks/study_gpu.py --prepare    here: references into build/study_gpu.npz
    python benchmarks/study_gpu.py    on a machine with a GPU: writes results/study_gpu.md

The second needs NumPy, CuPy and pyarrow.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import carried  # noqa: F401 (makes the packages importable)
import machine
import numpy as np

import linkwise as lw
from linkwise.study.address import applied, arguments

CASES, COMPARED, STEPS, STEP = 4_000_000, 512, 200, 1e-3
CHUNKS = (16_384, 65_536, 131_072)
NAMES = {False: "free", True: "held"}
"""Of the arm that moves freely, and of the one under a law, in the references."""

REFERENCE = Path(__file__).parent.parent / "build" / "study_gpu.npz"
RESULTS = Path(__file__).parent / "results" / "study_gpu.md"
HEAD = """# Studies on a CUDA GPU

Written by `python benchmarks/study_gpu.py`. A seven-axis arm moves for {steps} steps of 1 ms by
"euler" in float64, freely and under an operational-space law; the
payload is uniform between 0 and 3 kg, the damping of each joint between
0.2 and 1 N·m·s/rad. Final positions and velocities are kept. The bare kernel is one call of
`lw.rollout` with payloads and dampings ready in memory, states on the GPU, and the final states
left there; the study draws the values, copies results back, and writes Parquet files. From four
threads on, that work on the processor is the limit, not the GPU.

"""


def arm_study(cases: int, *, law: bool = False, **options) -> lw.Study:
    """The study."""
    arm = lw.models.seven_dof_arm()
    q = np.array([0.0, 0.5, 0.0, 1.2, 0.0, 0.6, 0.0])
    if law:
        hand = lw.Task.pose("hand")
        goal = lw.tasks.task_position(arm, q, hand) @ lw.Pose.translation((0.05, 0.1, -0.05))
        options["controller"] = (lw.control_law(arm, hand, kp=100.0, kv=20.0), goal)
    work = lw.study.Rollouts(
        arm, q, duration=STEPS * STEP, step=STEP, integrator="euler", **options
    )
    damping = {f"damping[{x}]": (0.2, 1.0) for x in arm.velocity_names}
    vary = {"payload:hand": (0.0, 3.0)} | damping
    return lw.Study(work, vary, keep=["q", "v"], cases=cases, seed=1)


def columns(study: lw.Study) -> dict[str, np.ndarray]:
    """Values and results of the first cases."""
    values = study.values(0, COMPARED)
    return values | dict(study.evaluate(values).columns)


def bare(cp, study: lw.Study, count: int) -> float:
    """Cases per second of `lw.rollout` alone."""
    nominal, values = study.work.nominal(), study.values(0, count)
    pairs = [(nominal.address(name), x) for name, x in values.items()]
    q, v, options = arguments(nominal, applied(nominal, pairs, count))
    q = cp.asarray(np.broadcast_to(q, (count, len(q))))
    v = cp.asarray(np.broadcast_to(v, (count, v.shape[-1])))
    given = {"duration": STEPS * STEP, "step": STEP, "record_every": STEPS}
    times = list[float]()
    for _ in range(6):
        began = time.perf_counter()
        lw.rollout(nominal.mech, q, v, **given, **options)
        cp.cuda.Device().synchronize()
        times.append(time.perf_counter() - began)
    return count / float(np.median(times[1:]))


def measured(cp) -> str:
    """Agreement and rates."""
    right = np.load(REFERENCE)
    text = ""
    for law in (False, True):
        text += rates(cp, law, {k[4:]: right[k] for k in right.files if k.startswith(NAMES[law])})
    return text


def rates(cp, law: bool, right: dict[str, np.ndarray]) -> str:
    """Agreement and rates of the arm that moves freely, or under a law."""
    study = arm_study(CASES, law=law, target="cuda")
    actual = columns(study)
    assert set(actual) == set(right), set(actual) ^ set(right)
    worst = max(float(np.abs(actual[k] - right[k]).max()) for k in right)
    assert worst < 1e-10, f"results differ by {worst:.1e}: nothing was measured"
    text = "\n## Under a law\n\n" if law else "## Moving freely\n\n"
    text += (
        f"The largest difference to the CPU over {COMPARED} cases is {worst:.1e} [rad, rad/s].\n\n"
        "| cases of a chunk | bare kernel, cases/s | study, cases/s | of the bare kernel | "
        "written, MB/s |\n| ---: | ---: | ---: | ---: | ---: |\n"
    )
    for chunk in CHUNKS:
        kernel = bare(cp, study, chunk)
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            results = study.run(Path(folder) / "study", chunk=chunk, progress=False)
            rate = CASES / (time.perf_counter() - began)
            size = sum(x.stat().st_size for x in Path(folder).rglob("*") if x.is_file())
            assert results.done == CASES
        share, written = 100 * rate / kernel, rate * size / CASES / 1e6
        text += f"| {chunk:,} | {kernel:,.0f} | {rate:,.0f} | {share:.1f} % | {written:,.0f} |\n"
        print(text, flush=True)
    return text


def main() -> None:
    """References here, or a measurement there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prepare", action="store_true")
    if parser.parse_args().prepare:
        REFERENCE.parent.mkdir(exist_ok=True)
        each = {x: columns(arm_study(CASES, law=x)) for x in (False, True)}
        np.savez(
            REFERENCE, **{NAMES[x] + k: y for x, part in each.items() for k, y in part.items()}
        )
        return
    import cupy as cp
    import pyarrow

    card = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    used = f"Linkwise {lw.__version__}, CuPy {cp.__version__}, pyarrow {pyarrow.__version__}"
    about = f"GPU: {card}. {machine.description('numpy')}\n{used}.\n\n"
    target = Path(os.environ["OUT"]) / RESULTS.name if "OUT" in os.environ else RESULTS
    target.write_text(HEAD.format(steps=STEPS) + about + measured(cp))


if __name__ == "__main__":
    main()
