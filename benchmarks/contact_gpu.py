"""Robots on the ground, thousands at once on a CUDA GPU: steps per second.

    python benchmarks/contact_gpu.py go2.xml g1.xml        writes results/contact_gpu.md

Needs NumPy and CuPy only. Each robot is held by position servos in the pose of its first keyframe
(which must be in the file itself, not in one that it includes), with its own joint friction and
limits, and touches the plane z = 0 with the spheres of its feet. Peers are measured by their own
scripts.
"""

import re
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw
from linkwise.simulation import Ground, ground_contacts
from linkwise.simulation.motion_request import MotionRequest
from linkwise.simulation.rollout_kernel import motion_kernel

RESULTS = Path(__file__).parent / "results" / "contact_gpu.md"
HEAD = """# Robots on the ground, on a CUDA GPU

Written by `python benchmarks/contact_gpu.py`. Each robot rests on the spheres of its feet, held by
position servos in the pose of its keyframe, with the joint friction and limits of its file; all
numbers of a motion stay on the GPU, and only the last state is written. *Operations* are those of
one step with one sweep over its impulses; a step makes at most 20, and the first of a call begins
without the impulses of a step before. Millions of steps per second over calls of {steps} steps, the
best batch. *Moves* is the largest joint velocity at the end: the robots stand.
"""
TAIL = """
Measured on an NVIDIA H200. On the same GPU, with their scenes for MJX and the solver settings of
these, MuJoCo-Warp makes 14.7 (go2) and 5.0 (g1) and MJX 0.80 and 0.53 million steps per second, in
float32 with one (go2) and five (g1) solver iterations; these figures come from another run. Sweeps
here end when no velocity changes by more than 4e-5 m/s in float32 and 1e-9 m/s in float64. The
limit is memory: the registers of a motion, 3 kB for go2 and 11 kB for g1 in float32, are more than
those of the GPU hold.
"""
STEP, STEPS = 2e-3, 400
BATCHES = (1 << 14, 1 << 16, 1 << 17)


def robot(path: str):
    """The robot with servos, its pose and the balls of its feet."""
    text = Path(path).read_text()
    mech = lw.load(path)
    key = re.search(r'<key[^>]*qpos="([^"]+)"', text)
    if key is None:
        raise SystemExit(f"{path} has no keyframe: name the file of the robot itself")
    pose = np.array(key.group(1).split(), dtype=float)
    q = np.concatenate([pose[3:7], pose[:3], pose[7:]])
    feet = [p for p in ground_contacts(mech, Ground(friction=0.8)) if p.radius > 0.0]
    hinges = [b.hinge_name for b in mech.bodies[1:]]
    stiff = 60.0 if len(hinges) < 20 else 200.0
    servos = [lw.Actuator.position(n, n, kp=stiff, kv=0.05 * stiff) for n in hinges]
    named = [p for p in feet if p.name.rsplit("/", 1)[0] != p.body]  # spheres with a name
    feet = named or feet
    mech = lw.Mechanism(mech.name, mech.bodies, mech.nodes, actuators=tuple(servos))
    return mech, q, tuple(feet)


def main(paths: list[str]) -> None:
    """Measure, print, write."""
    import cupy as cp

    warnings.simplefilter("ignore")
    rows = ["| robot | rows | operations | dtype | batch | Msteps/s | compile [s] | moves |"]
    rows.append("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for path in paths:
        mech, q, feet = robot(path)
        for dtype in ("float32", "float64"):
            start = time.perf_counter()
            size = np.dtype(dtype).itemsize
            options: dict[str, Any] = {"contacts": tuple(feet), "actuated": True}
            kernel = motion_kernel(
                MotionRequest(mech, "implicit", itemsize=size, **options), "cuda"
            )
            settled, best = None, (0.0, 0)
            held = {"tau": np.zeros(mech.nv, dtype), "control": q[7:].astype(dtype)}
            held = {n: cp.asarray(x) for n, x in held.items()}
            for batch in BATCHES:
                if settled is None:
                    state = (cp.asarray(q[None], dtype), cp.zeros((1, mech.nv), dtype))
                    done = kernel(*state, held, step=STEP, steps=1500, every=1500)
                    settled = done.q[:, -1], done.v[:, -1]
                    compiled = time.perf_counter() - start
                state = [cp.repeat(cp.asarray(x), batch, axis=0) for x in settled]
                for _ in range(3):
                    cp.cuda.Device().synchronize()
                    begin = time.perf_counter()
                    done = kernel(*state, held, step=STEP, steps=STEPS, every=STEPS)
                    cp.cuda.Device().synchronize()
                    rate = batch * STEPS / (time.perf_counter() - begin)
                    best = max(best, (rate, batch))
            moves = float(cp.abs(done.v[:, -1]).max())
            cells = (mech.name, 3 * len(feet) + mech.nv - 6, kernel.ops.total(), dtype)
            cells += (best[1], f"{best[0] / 1e6:.1f}", f"{compiled:.1f}", f"{moves:.1e}")
            rows.append("| " + " | ".join(map(str, cells)) + " |")
            print(rows[-1], flush=True)
    RESULTS.write_text(HEAD.format(steps=STEPS) + "\n" + "\n".join(rows) + "\n" + TAIL)


if __name__ == "__main__":
    main(sys.argv[1:])
