"""Kill the client, a worker or the scheduler of a study on Dask at random moments, again and again.

    python tools/study_kills.py 50           writes docs/evidence/study_kills.md
    python tools/study_kills.py 5 --print    a short run, without the page

Processes of a study are killed with SIGKILL until the kills are done. Then the study finishes, and
its files are compared with those of a study that was not disturbed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

import linkwise as lw

CASES, CHUNK = int(os.environ.get("STUDY_KILLS_CASES", "800")), 16
STARTING, PATIENCE, WAIT = 60.0, 300.0, 25.0
AT_ONCE = 0.3
"""Share of the kills that do not wait for a chunk: processes die while they start."""

PAGE = Path(__file__).resolve().parent.parent / "docs" / "evidence" / "study_kills.md"
TEXT = """# Studies that are killed

Written by `python tools/study_kills.py {kills}`. A study of {cases:,} motions in {chunks} chunks
runs on a scheduler of Dask and two workers, each a process. Again and again one process, chosen at
random, is killed with SIGKILL: with probability {at_once:g} within a second after missing processes
were started, else within a second after further chunks were finished or 25 s passed without
them. What is missing is started again
with the same command. When a study finishes, its tables and its trajectories (Zarr) are compared
byte by byte with those of a study that was not disturbed, and the next one begins.

| killed | times |
| --- | ---: |
{rows}
| all | {kills} |

- Studies finished: {studies}, with {files} files each, equal to the undisturbed ones.
- Cases lost: 0. Cases twice: 0.
- Time: {minutes:.0f} min.
"""


def study() -> lw.Study:
    """Motions that take long enough to be killed in between."""
    mech = lw.models.chain(3)
    work = lw.study.Rollouts(mech, np.full(3, 0.2), duration=2.0, step=1e-3, record_every=20)
    return lw.Study(
        work, {"damping": (0.0, 1.0)}, keep=["q", "v", "trajectory:q"], cases=CASES, seed=2
    )


def client(folder: str, address: str) -> None:
    """The process that runs the study."""
    from distributed import Client

    with Client(address, timeout=20) as dask:
        study().run(folder, workers=dask, chunk=CHUNK, progress=False)


def content(folder: Path) -> dict[str, bytes]:
    """All tables and trajectories of a study by their places, also what a crash left there."""
    places = [*(folder / "table").rglob("*"), *(folder / "trajectories").rglob("*")]
    return {str(x.relative_to(folder)): x.read_bytes() for x in places if x.is_file()}


class Processes:
    """Scheduler, workers and client, started where they are missing."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "scheduler.json"
        self.running = dict[str, subprocess.Popen[bytes]]()

    def _start(self, name: str, *command: str) -> None:
        self.running[name] = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def complete(self) -> None:
        """Start what is missing; without a scheduler everything anew."""
        dask = [sys.executable, "-m", "dask"]
        if "scheduler" not in self.running or self.running["scheduler"].poll() is not None:
            self.end()
            self.file.unlink(missing_ok=True)
            options = ["--port", "0", "--no-dashboard", "--scheduler-file", str(self.file)]
            self._start("scheduler", *dask, "scheduler", "--host", "127.0.0.1", *options)
            limit = time.monotonic() + STARTING
            while self.address() is None and time.monotonic() < limit:
                time.sleep(0.05)
        for name in ("worker 0", "worker 1"):
            if name not in self.running or self.running[name].poll() is not None:
                options = ["--nthreads", "1", "--no-nanny", "--no-dashboard"]
                options += ["--local-directory", str(self.folder / "scratch")]
                self._start(name, *dask, "worker", "--scheduler-file", str(self.file), *options)
        if "client" not in self.running or self.running["client"].poll() is not None:
            address = self.address()
            assert address is not None, "the scheduler does not start"
            here = [sys.executable, __file__, "client", str(self.folder / "killed"), address]
            self._start("client", *here)

    def address(self) -> str | None:
        """That of the scheduler; None while its file is not there or not complete."""
        try:
            return json.loads(self.file.read_text())["address"]
        except (OSError, ValueError):
            return None

    @property
    def chunks(self) -> int:
        """Chunks that are done."""
        lines = self.folder / "killed" / "chunks.jsonl"
        return len(lines.read_text().splitlines()) if lines.exists() else 0

    def wait_for_progress(self) -> None:
        """Until some chunks were added, the client ends, or it takes too long."""
        before, limit = self.chunks, time.monotonic() + WAIT
        while time.monotonic() < limit and self.running["client"].poll() is None:
            if self.chunks > before + 2:
                return
            time.sleep(0.05)

    def kill(self, name: str) -> bool:
        """Kill one; False if it had ended."""
        process = self.running.pop(name)
        ended = process.poll() is not None
        process.kill()
        process.wait()
        return not ended

    def end(self) -> None:
        """Kill all that were started here."""
        for name in list(self.running):
            self.kill(name)


def compared(folder: Path) -> None:
    """Raise unless the study has every case once and the files of the undisturbed one."""
    results = lw.study.load(folder / "killed")
    assert results.done == CASES, results
    assert results["case"].tolist() == list(range(CASES)), "cases are lost or twice"
    killed, full = content(folder / "killed"), content(folder / "full")
    assert len(full) == 2 * -(-CASES // CHUNK) + 1, "a table and records for each chunk, zarr.json"
    more = sorted(set(killed) - set(full))
    assert not more, f"files that a kill left: {more[:3]}"
    assert killed == full, f"files differ: {[x for x in full if killed.get(x) != full[x]][:3]}"
    rest = [x.name for x in (folder / "killed").iterdir() if x.name.startswith(".")]
    assert rest in ([], [".lock"]), f"files that a kill left: {rest}"


def main(kills: int) -> str:
    """Kill, finish, compare; the text of the page."""
    rng, done, studies = np.random.default_rng(0), Counter[str](), 0
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        study().run(folder / "full", chunk=CHUNK, progress=False)
        processes = Processes(folder)
        try:
            while done.total() < kills:
                processes.complete()
                if rng.uniform() > AT_ONCE:
                    processes.wait_for_progress()
                time.sleep(rng.uniform(0.0, 1.0))
                if processes.running["client"].poll() == 0:  # finished: the same again, from zero
                    compared(folder)
                    studies += 1
                    shutil.rmtree(folder / "killed")
                    continue
                victim = str(rng.choice(list(processes.running)))
                if processes.kill(victim):
                    done[victim.split()[0]] += 1
                    print(f"kill {done.total()}: {victim}, {processes.chunks} chunks", flush=True)
            limit = time.monotonic() + PATIENCE
            while time.monotonic() < limit:
                processes.complete()
                try:
                    if processes.running["client"].wait(timeout=30) == 0:
                        break
                except subprocess.TimeoutExpired:
                    continue
        finally:
            processes.end()
        compared(folder)
    counts = ", ".join(f"{n} of the {x}" for x, n in sorted(done.items()))
    print(f"{kills} kills ({counts}): nothing lost, nothing twice, files equal")
    return TEXT.format(
        kills=kills,
        cases=CASES,
        chunks=-(-CASES // CHUNK),
        at_once=AT_ONCE,
        rows="\n".join(f"| {x} | {n} |" for x, n in sorted(done.items())),
        studies=studies + 1,
        files=2 * -(-CASES // CHUNK) + 1,
        minutes=(time.monotonic() - begin) / 60,
    )


if __name__ == "__main__":
    os.environ.setdefault("DASK_DISTRIBUTED__LOGGING__DISTRIBUTED", "error")
    if sys.argv[1] == "client":
        client(sys.argv[2], sys.argv[3])
    elif "--print" in sys.argv:
        main(int(sys.argv[1]))
    else:
        PAGE.write_text(main(int(sys.argv[1])), encoding="utf-8")
