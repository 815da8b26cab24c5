"""Studies: a million motions of an arm under a law, beside the bare kernel, MuJoCo and a loop.

Run with `python benchmarks/study.py`; writes benchmarks/results/study.md.
"""

import copy
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import machine
import mujoco
import numpy as np
from mujoco import rollout as mujoco_rollout
from scipy import stats

import linkwise as lw
from linkwise.study.address import applied, arguments
from linkwise.study.engine import _loop
from linkwise.study.folder import Chunk, Folder, manifest_of

CASES, SCALING, PEERS, TINY = 1_000_000, 1_000_000, 512, 400
STEPS, STEP = 200, 1e-3
RESULTS = Path(__file__).parent / "results" / "study.md"
HEAD = """# Studies

Written by `make bench`. A seven-axis arm under an operational-space law (`lw.control_law`), 200
steps of 1 ms by "euler"; the payload is uniform between 0 and 3 kg, the viscous friction of each
joint (its damping) log-normal. Coulomb friction acts in implicit steps only and is no part of this
study. Final positions, velocities and the place of the hand are kept. Rates are cases per
second. The machine is shared with other programs, so each rate is given twice: by the clock, and by
the processor time of all processes, scaled to {cores} cores.

{machine}

Load average {load}.
"""


def arm_study(cases: int, *, law: bool = True) -> lw.Study:
    """The study."""
    arm = lw.models.seven_dof_arm()
    q = np.array([0.0, 0.5, 0.0, 1.2, 0.0, 0.6, 0.0])
    hand = lw.Task.pose("hand")
    goal = lw.tasks.task_position(arm, q, hand) @ lw.Pose.translation((0.05, 0.1, -0.05))
    options = {"controller": (lw.control_law(arm, hand, kp=100.0, kv=20.0), goal)} if law else {}
    work = lw.study.Rollouts(
        arm, q, duration=STEPS * STEP, step=STEP, integrator="euler", **options
    )
    damping = {f"damping[{x}]": stats.lognorm(0.3, scale=0.5) for x in arm.velocity_names}
    keep = ["q", "v", "position:hand"]
    return lw.Study(work, {"payload:hand": (0.0, 3.0)} | damping, keep=keep, cases=cases, seed=1)


def spent() -> float:
    """Processor time of this process and of those that it waited for [s]."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(x.ru_utime + x.ru_stime for x in map(resource.getrusage, kinds))


def timed(work):
    """Result, seconds by the clock, seconds of the processor."""
    begin, used = time.perf_counter(), spent()
    result = work()
    return result, time.perf_counter() - begin, spent() - used


def memory() -> float:
    """Memory of this process now [MB]."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def bare(study: lw.Study, cores: int) -> tuple[float, float]:
    """Rates of `lw.rollout` alone, with all inputs ready: a call on one thread for each core.

    Calls that share no batch wait for nobody, which is how the study runs too; one call on all
    cores ends when its slowest part does.
    """
    work, count = study.work, 9984
    nominal, values = work.nominal(), study.values(0, count)
    pairs = [(nominal.address(name), x) for name, x in values.items()]
    q, v, options = arguments(nominal, applied(nominal, pairs, count))
    given = {"duration": STEPS * STEP, "step": STEP, "record_every": STEPS, "threads": 1}
    q = np.broadcast_to(q, (count, len(q)))
    lw.rollout(nominal.mech, q, v, **given, **options)
    each = 9

    def calls(_) -> None:
        for _ in range(each):
            lw.rollout(nominal.mech, q, v, **given, **options)

    with ThreadPoolExecutor(cores) as pool:
        _, wall, used = timed(lambda: list(pool.map(calls, range(cores))))
    total = cores * each * count
    return total / wall, cores * total / used


def rate(study: lw.Study, folder: Path, cores: int, **options) -> tuple[float, float, list[float]]:
    """Rates of a study, and the memory while it ran."""
    seen = list[float]()

    def tell(what) -> None:
        if hasattr(what, "done"):
            seen.append(memory())

    _, wall, used = timed(lambda: study.run(folder, progress=tell, **options))
    return study.cases / wall, cores * study.cases / used, seen


def million(folder: Path, cores: int) -> str:
    """The large study beside the bare kernel."""
    study = arm_study(CASES)
    study.with_cases(1000).run(folder / "warm", progress=False)
    before, before_used = bare(study, cores)
    wall, used, seen = rate(study, folder / "million", cores)
    after, after_used = bare(study, cores)
    clock, processor = (before + after) / 2, (before_used + after_used) / 2
    size = sum(x.stat().st_size for x in (folder / "million").rglob("*") if x.is_file())
    quarter = len(seen) // 4
    return (
        "\n## A million cases on one machine\n\n"
        "The bare kernel is calls of `lw.rollout` for 9,984 cases with all inputs ready, one "
        "thread for each core at a time, before and after the study; the goal is 80 % of its "
        "rate.\n\n"
        "| | by the clock | of the bare kernel | by processor time | of the bare kernel |\n"
        "| --- | ---: | ---: | ---: | ---: |\n"
        f"| bare kernel | {clock:,.0f} | | {processor:,.0f} | |\n"
        f"| study of {CASES:,} cases | {wall:,.0f} | {100 * wall / clock:.0f} % | {used:,.0f} | "
        f"{100 * used / processor:.0f} % |\n\n"
        f"Memory of the process after a quarter, half and all of the cases: {seen[quarter]:.0f}, "
        f"{seen[2 * quarter]:.0f} and {seen[-1]:.0f} MB. Files: {size / 1e6:,.0f} MB.\n"
    )


def scaling(folder: Path, cores: int) -> str:
    """A LocalCluster of Dask."""
    from distributed import Client, LocalCluster

    text = (
        "\n## Processes of a LocalCluster\n\n"
        f"Strong: {SCALING:,} cases; weak: {SCALING // 2:,} for each process. One thread for each "
        "process, kernels loaded before; processor time is that of the workers, scaled to "
        f"{cores} cores. Efficiency is the rate by the clock over that of one process times the "
        f"number of processes, or times {cores} where there are more processes than cores.\n\n"
        "| processes | strong, by the clock | efficiency | by processor time | "
        "weak, by the clock | efficiency | by processor time |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    )
    alone = list[float]()
    for n in (1, 2, 4):
        with LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=":0") as cluster:
            with Client(cluster) as client:
                warm = arm_study(512 * n)
                warm.run(folder / f"warm {n}", chunk=16, progress=False, workers=client)
                sizes = {"strong": SCALING, "weak": SCALING // 2 * n}
                pairs = list[tuple[float, float]]()
                for name, cases in sizes.items():
                    study, place = arm_study(cases), folder / f"{name} {n}"
                    used = sum(client.run(time.process_time).values())
                    begin = time.perf_counter()
                    study.run(place, progress=False, workers=client)
                    wall = time.perf_counter() - begin
                    used = sum(client.run(time.process_time).values()) - used
                    pairs.append((cases / wall, cores * cases / used))
        alone = alone or [x[0] for x in pairs]
        row = " | ".join(
            f"{wall:,.0f} | {100 * wall / (one * min(n, cores)):.0f} % | {used:,.0f}"
            for (wall, used), one in zip(pairs, alone, strict=True)
        )
        text += f"| {n} | {row} |\n"
        print(n, row, flush=True)
    return text


class Instant:
    """Workers that finish everything at once: what is left is the work of the client."""

    def __init__(self, folder: Folder, size: int) -> None:
        self.folder, self.size, self.under_way = folder, size, list[int]()

    def submit(self, indices) -> None:
        """Take chunks."""
        self.under_way += indices

    def done(self) -> Iterator[tuple[int, Chunk]]:
        """All of them."""
        names = [f"table/part-{k:07d}.parquet" for k in self.under_way]
        for k, name in zip(self.under_way, names, strict=True):
            yield k, Chunk(k, *self.folder.bounds(k), {name: "0" * 64}, 0)
        self.under_way = []

    def close(self) -> None:
        """Nothing is open."""


def lines(folder: Path, size: int) -> float:
    """Milliseconds of the client for each chunk, where `size` of them end together."""
    study = lw.Study(lw.study.Calls(lambda a: {"b": a}, batched=True), {"a": (0.0, 1.0)},
                     cases=16 * 20 * size)  # fmt: skip
    home = Folder(folder, manifest_of(study, 16, study.trial()))
    folder.mkdir()
    _, wall, _ = timed(lambda: _loop(home, list(range(home.count)), Instant(home, size), None))
    return 1e3 * wall / home.count


def overhead(folder: Path) -> str:
    """Chunks that compute nothing."""
    from distributed import Client, LocalCluster
    from distributed.deploy.subprocess import SubprocessCluster

    study = lw.Study(
        lw.study.Calls(lambda a: {"b": a}, batched=True), {"a": (0.0, 1.0)}, cases=16 * TINY
    )
    _, local, _ = timed(lambda: study.run(folder / "tiny", chunk=16, progress=False))
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        with Client(cluster) as client:
            study.run(folder / "warm dask", chunk=16, progress=False, workers=client)
            again = folder / "tiny dask"
            _, dask, _ = timed(lambda: study.run(again, chunk=16, progress=False, workers=client))
            begin = time.perf_counter()
            client.gather(client.map(lambda x: x, range(2000), pure=False))
            task = (time.perf_counter() - begin) / 2000
    options = {"worker_kwargs": {"nthreads": 1}}  # the scheduler is another process
    with SubprocessCluster(n_workers=2, **options) as cluster, Client(cluster) as client:
        study.run(folder / "warm apart", chunk=16, progress=False, workers=client)
        begin = time.process_time()
        study.run(folder / "apart", chunk=16, progress=False, workers=client)
        caller = 1e3 * (time.process_time() - begin) / TINY
    threads, tasks = 1e3 * local / TINY, 1e3 * dask / TINY
    single, together = lines(folder / "single", 1), lines(folder / "together", 200)
    limit = 1e3 / (caller + together)
    return (
        "\n## Overhead of a chunk\n\n"
        "Chunks that compute nothing: drawing, encoding, checksums, two files that are on the disk "
        "before the chunk counts.\n\n"
        f"| | ms for each chunk |\n| --- | ---: |\n| threads | {threads:.1f} |\n"
        f"| Dask, 2 processes | {tasks:.1f} |\n| an empty task of Dask | {1e3 * task:.2f} |\n"
        f"| the client of a scheduler elsewhere: processor time | {caller:.2f} |\n"
        f"| a line on the disk, one by one | {single:.2f} |\n"
        f"| the same where 400 end together | {together:.3f} |\n\n"
        f"With {tasks:.0f} ms for each chunk, chunks of a second lose "
        f"{100 * tasks / (1000 + tasks):.1f} %; that is why a chunk has about two million steps. "
        "The scheduler of Dask is one process: its documentation gives about 200 µs to 1 ms for "
        f"each task; here an empty task takes {1e6 * task:.0f} µs with all messages. 1,000 workers "
        f"with chunks of one second need 1,000 tasks per second, {100 * 1000 * task:.0f} % of one "
        f"scheduler at that price, and {100 * 1000 / limit:.0f} % of the client, which manages "
        f"{limit:,.0f} chunks per second: its own processor time, and one wait for the disk for "
        f"chunks that end together. Chunks of 10 seconds (`chunk=`) bring both to "
        f"{100 * 100 * task:.0f} % and {100 * 100 / limit:.0f} %. This is an extrapolation; no "
        "cluster of that size was measured.\n"
    )


def peers(cores: int) -> str:
    """MuJoCo's rollout on threads, and loops in Python; without a law, which MuJoCo cannot run."""
    study = arm_study(PEERS, law=False)
    nominal, values = study.work.nominal(), study.values()
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "arm.xml"
        lw.save(nominal.mech, path)
        model = mujoco.MjModel.from_xml_path(str(path))
    off = mujoco.mjtDisableBit
    for bit in (off.mjDSBL_CONSTRAINT, off.mjDSBL_CONTACT, off.mjDSBL_EULERDAMP):
        model.opt.disableflags |= bit
    model.opt.timestep, model.opt.integrator = STEP, mujoco.mjtIntegrator.mjINT_EULER
    layout = lw.convert.mujoco_layout(nominal.mech, model)
    node = nominal.mech.node("hand")
    start = np.concatenate([[0.0], layout.q_to(nominal.q[None])[0], np.zeros(model.nv)])
    damping = np.stack([values[f"damping[{x}]"] for x in nominal.mech.velocity_names], axis=1)

    def variant(i: int) -> mujoco.MjModel:
        """A model with the payload of case i, a point at the hand."""
        one = copy.copy(model)
        k = mujoco.mj_name2id(one, mujoco.mjtObj.mjOBJ_BODY, node.body)
        mass = float(values["payload:hand"][i])
        old = lw.SpatialInertia.from_com(
            float(one.body_mass[k]), one.body_ipos[k], _inertia(one, k)
        )
        new = old + lw.SpatialInertia.from_com(mass, node.pose.p, np.zeros((3, 3)))
        one.body_mass[k], one.body_ipos[k] = float(new.mass), new.com
        c = np.asarray(new.com)
        about = np.asarray(new.J) - float(new.mass) * (c @ c * np.eye(3) - np.outer(c, c))
        moments, axes = np.linalg.eigh(about)
        axes[:, 2] *= np.sign(np.linalg.det(axes))
        one.body_inertia[k] = moments
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, axes.ravel())
        one.body_iquat[k] = quat
        one.dof_damping[:] = damping[i]
        mujoco.mj_setConst(one, mujoco.MjData(one))
        return one

    models, _, making = timed(lambda: [variant(i) for i in range(PEERS)])
    states = np.tile(start, (PEERS, 1))
    spaces = [mujoco.MjData(model) for _ in range(cores)]

    def threaded():
        with mujoco_rollout.Rollout(nthread=cores) as pool:
            return pool.rollout(models, spaces, states, nstep=STEPS)[0]

    theirs, wall, used = timed(threaded)
    ours = study.evaluate(values, threads=1)
    end = layout.q_from(np.array(theirs)[:, -1, 1 : 1 + model.nq])
    columns = [ours.columns[f"q[{x}]"] for x in nominal.mech.coordinate_names]
    apart = float(np.abs(np.stack(columns, axis=1) - end).max())
    if not apart < 1e-8:
        raise SystemExit(f"states differ by {apart:.1e}: nothing was measured")
    _, ours_wall, ours_used = timed(lambda: [study.evaluate(values, threads=1) for _ in range(20)])

    def loop() -> None:
        data = mujoco.MjData(model)
        for i in range(64):
            mujoco.mj_setState(models[i], data, states[i], mujoco.mjtState.mjSTATE_FULLPHYSICS)
            for _ in range(STEPS):
                mujoco.mj_step(models[i], data)

    def single() -> None:
        for i in range(64):
            study.evaluate({k: x[i : i + 1] for k, x in values.items()}, threads=1)

    held = arm_study(PEERS)
    law, goal = held.work.options["controller"]

    def with_law(count: int) -> np.ndarray:
        """Final positions of the first cases; the law is Linkwise's kernel, called in each step."""
        data, ends = mujoco.MjData(model), []
        for i in range(count):
            mujoco.mj_setState(models[i], data, states[i], mujoco.mjtState.mjSTATE_FULLPHYSICS)
            for _ in range(STEPS):
                data.qfrc_applied[:] = law(data.qpos, data.qvel, goal)
                mujoco.mj_step(models[i], data)
            ends.append(data.qpos.copy())
        return layout.q_from(np.array(ends))

    few = {k: x[:64] for k, x in values.items()}
    reached = held.evaluate(few, threads=1).columns
    reached = np.stack([reached[f"q[{x}]"] for x in nominal.mech.coordinate_names], axis=1)
    ends, _, law_used = timed(lambda: with_law(64))
    law_apart = float(np.abs(ends - reached).max())
    if not (law_apart < 1e-8 and np.abs(reached - nominal.q).max() > 1e-2):
        raise SystemExit(f"states under a law differ by {law_apart:.1e}: nothing was measured")
    _, _, held_used = timed(lambda: [held.evaluate(values, threads=1) for _ in range(5)])
    with tempfile.TemporaryDirectory() as place:
        filed = rate(arm_study(SCALING), Path(place) / "study", cores)[0]

    _, _, python_used = timed(loop)
    _, _, single_used = timed(single)
    rates = {
        "Linkwise, a batch of the study": 20 * PEERS / ours_used * cores,
        f"MuJoCo's `rollout` with {cores} threads, models ready": PEERS / used * cores,
        "the same with the time to make a model for each case": PEERS / (used + making) * cores,
        "a loop in Python: `mj_step`, one core": 64 / python_used,
        "a loop in Python: `study.evaluate` of one case, one core": 64 / single_used,
    }
    under_law = {
        "Linkwise, a batch of the study": 5 * PEERS / held_used * cores,
        f"Linkwise, the complete study of {SCALING:,} cases with its files": filed,
        "a loop in Python: the law and `mj_step`, scaled": 64 / law_used * cores,
    }
    del wall, ours_wall
    best = next(iter(rates.values()))
    rows = "".join(f"| {k} | {x:,.0f} | {best / x:.1f} |\n" for k, x in rates.items())
    first = next(iter(under_law.values()))
    law_rows = "".join(f"| {k} | {x:,.0f} | {first / x:.1f} |\n" for k, x in under_law.items())
    return (
        "\n## Beside MuJoCo and loops\n\n"
        f"The same arm, payloads and dampings without a law, {PEERS} cases; a model for each case "
        f"in MuJoCo. Final positions agree to {apart:.0e} rad. By processor time, scaled to "
        f"{cores} cores.\n\n| | cases per second | Linkwise is faster by |\n"
        f"| --- | ---: | ---: |\n{rows}\n"
        "The same under the operational-space law of the study. MuJoCo's `rollout` takes no "
        "controller, so a loop in Python calls the law's kernel, which takes some 3 µs, in each "
        f"step. Final positions agree to {law_apart:.0e} rad.\n\n"
        "| | cases per second | Linkwise is faster by |\n"
        f"| --- | ---: | ---: |\n{law_rows}"
    )


def _inertia(model: mujoco.MjModel, k: int) -> np.ndarray:
    rot = np.zeros(9)
    mujoco.mju_quat2Mat(rot, model.body_iquat[k])
    rot = rot.reshape(3, 3)
    return rot @ np.diag(model.body_inertia[k]) @ rot.T


def main() -> None:
    """Measure and write."""
    cores = 2
    packages = ("linkwise", "numpy", "llvmlite", "dask", "pyarrow", "mujoco")
    text = HEAD.format(cores=cores, machine=machine.description(*packages), load=machine.load())
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for part in (
            lambda: peers(cores),
            lambda: overhead(folder),
            lambda: million(folder, cores),
            lambda: scaling(folder, cores),
        ):
            text += part()
            print(text[-900:], flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(text)


if __name__ == "__main__":
    if sys.argv[1:] == ["--quick"]:  # a look at whether it runs
        CASES, SCALING, PEERS, TINY = 20_000, 4000, 64, 20
        RESULTS = Path("/dev/null")
    main()
