"""Kill the client, a worker or the scheduler of a study on Dask at random moments, again and again.

`python tools/study_kills.py 50` runs a study whose processes are killed with SIGKILL until 50 kills
are done, lets it finish, and compares its files with those of a study that was not disturbed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

import linkwise as lw

CASES, CHUNK = 4000, 16
STARTING, PATIENCE, WAIT = 60.0, 300.0, 25.0


def study() -> lw.Study:
    """Motions that take long enough to be killed in between."""
    mech = lw.models.chain(3)
    work = lw.study.Rollouts(mech, np.full(3, 0.2), duration=2.0, step=1e-3)
    return lw.Study(work, {"damping": (0.0, 1.0)}, keep=["q", "v"], cases=CASES, seed=2)


def client(folder: str, address: str) -> None:
    """The process that runs the study."""
    from distributed import Client

    with Client(address, timeout=20) as dask:
        study().run(folder, workers=dask, chunk=CHUNK, progress=False)


def content(folder: Path) -> dict[str, bytes]:
    """The tables of a study."""
    return {x.name: x.read_bytes() for x in sorted((folder / "table").iterdir())}


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
            while not self.file.exists() and time.monotonic() < limit:
                time.sleep(0.05)
        for name in ("worker 0", "worker 1"):
            if name not in self.running or self.running[name].poll() is not None:
                options = ["--nthreads", "1", "--no-nanny", "--no-dashboard"]
                options += ["--local-directory", str(self.folder / "scratch")]
                self._start(name, *dask, "worker", "--scheduler-file", str(self.file), *options)
        if "client" not in self.running or self.running["client"].poll() is not None:
            address = json.loads(self.file.read_text())["address"]
            here = [sys.executable, __file__, "client", str(self.folder / "killed"), address]
            self._start("client", *here)

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


def main(kills: int) -> None:
    """Kill, finish, compare."""
    rng, done = np.random.default_rng(0), Counter[str]()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        study().run(folder / "full", chunk=CHUNK, progress=False)
        processes = Processes(folder)
        try:
            while sum(done.values()) < kills:
                processes.complete()
                processes.wait_for_progress()
                time.sleep(rng.uniform(0.0, 1.0))
                if processes.running["client"].poll() == 0:  # finished: the same again, from zero
                    shown = content(folder / "killed")
                    assert shown == content(folder / "full"), "files differ"
                    for name in ("table", "chunks.jsonl", "manifest.json", "study.pickle", ".lock"):
                        subprocess.run(["rm", "-r", str(folder / "killed" / name)], check=True)
                victim = str(rng.choice(list(processes.running)))
                if processes.kill(victim):
                    done[victim.split()[0]] += 1
                    print(f"kill {sum(done.values())}: {victim}, {processes.chunks} chunks done",
                          flush=True)  # fmt: skip
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
        results = lw.study.load(folder / "killed")
        assert results.done == CASES, results
        assert results["case"].tolist() == list(range(CASES)), "cases are lost or twice"
        assert content(folder / "killed") == content(folder / "full"), "files differ"
        counts = ", ".join(f"{n} of the {x}" for x, n in sorted(done.items()))
        print(f"{kills} kills ({counts}): nothing lost, nothing twice, files equal")


if __name__ == "__main__":
    os.environ.setdefault("DASK_DISTRIBUTED__LOGGING__DISTRIBUTED", "error")
    if sys.argv[1] == "client":
        client(sys.argv[2], sys.argv[3])
    else:
        main(int(sys.argv[1]))
