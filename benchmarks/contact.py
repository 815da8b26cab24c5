r"""Robots on the ground beside MuJoCo on a processor: one motion from Python, and a batch.

    python benchmarks/contact.py unitree_go2/scene.xml unitree_g1/scene.xml \
        unitree_go2/scene_mjx.xml unitree_g1/scene_mjx.xml               writes results/contact.md

Both step the same scene at the time step of its file, with its actuators, joint friction and
limits, from its first keyframe; MuJoCo's solver has the settings of the file. Here the shapes that
the file lets touch its floor do so, and bodies do not touch each other. Time is that of the
process, on one core, the least of several rounds in turn.
"""

import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import machine
import mujoco
import numpy as np
from mujoco import rollout as mujoco_rollout
from stepping import stripped

import linkwise as lw
from linkwise.codegen.cpu.machine import lanes
from linkwise.simulation import ContactPoint, contact_points

RESULTS = Path(__file__).parent / "results" / "contact.md"
HEAD = """# Robots on the ground compared with MuJoCo

Written by `python benchmarks/contact.py` on scenes of MuJoCo Menagerie: those of the robots, and
those for MJX, where MuJoCo has fewer contacts and iterations. Microseconds of processor
time for one step of one motion, on one core; ratios are MuJoCo over Linkwise. *Stands* holds the
keyframe; *steps* moves the legs in turn by 0.15 rad, 2 times a second. *Points* may touch the
ground here: those of all shapes that the file lets touch its floor, or those within 3 cm of it in
the keyframe (*feet*); *touching* is the mean number of contacts in MuJoCo. Rows of a point are
computed in steps in which it is near the ground, in a batch in one of {lanes} motions; *operations*
count all of them, and one sweep. The humanoid falls over in both, and with feet alone on through
the floor. Both are called with commands for each step and return the last state (one motion:
{steps} steps) or that of each step (batch: {batch} motions of {short} steps, which begin {spread} m
and rad apart); neither makes contact forces, which rollouts compute at their first use. *Height* is
the difference of both bases at the end [mm]: contacts of MuJoCo are soft, here they are hard.
*Residual* is the largest change of a velocity in the last sweep of the last step [m/s]; there are
up to 200 sweeps, until that is below 1e-9, or 1e-6 while four of them leave 0.3 of it, or 1e-4
after 20, or below 1e-3 while four leave 0.96. MuJoCo makes as many iterations as the file
allows, {iterations}. Goals: 3 and 8 for a quadruped, 3 and 5 for a humanoid.

{machine}

Load average {load}.

| robot | motion | velocities | points | touching | operations | one motion | MuJoCo | ratio | \
batch | MuJoCo | ratio | height | residual |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""
STEPS, BATCH, SHORT, SPREAD, ROUNDS = 1000, 64, 200, 1e-3, 5


def least(*calls: Callable[[], object]) -> list[float]:
    """Processor time of each call [µs]."""
    times = np.empty((ROUNDS, len(calls)))
    for row in times:
        for i, call in enumerate(calls):
            start = time.process_time()
            call()
            row[i] = 1e6 * (time.process_time() - start)
    return times.min(axis=0).tolist()


def commands(model: mujoco.MjModel, step: float, steps: int, swing: float) -> np.ndarray:
    """Those of the keyframe, with the legs of each diagonal moving in turn (steps, nu)."""
    t = step * np.arange(steps)[:, None]
    names = [model.actuator(i).name for i in range(model.nu)]
    other = np.array([n.startswith(("FR", "RL", "right")) for n in names]) * np.pi
    legs = np.array([any(x in n for x in ("thigh", "calf", "hip", "knee")) for n in names])
    return model.key_ctrl[0] + swing * legs * np.sin(4.0 * np.pi * t + other)


def lowest(mech: lw.Mechanism, q: np.ndarray, point: ContactPoint) -> float:
    """Height of a point over the floor [m]; of one of a larger shape, that of its body."""
    pose = lw.forward_kinematics(mech, q, point.body)
    return float((pose.rot @ np.array(point.point) + pose.p)[2] - point.radius)


def measured(path: str, title: str, swing: float, feet: bool) -> str:
    """A row of the table."""
    mech, model = lw.load(path), mujoco.MjModel.from_xml_path(path)
    layout, step = lw.convert.mujoco_layout(mech, model), float(model.opt.timestep)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    q = layout.q_from(data.qpos.copy())
    given = commands(model, step, STEPS, swing)
    points = contact_points(mech, None)
    if feet:
        points = tuple(p for p in points if lowest(mech, q, p) < 0.03)
    options = {"step": step, "integrator": "implicit", "threads": 1, "contacts": points}

    def ours() -> lw.simulation.Rollout:
        return lw.rollout(
            mech, q, duration=STEPS * step, controls=given, record_every=STEPS, **options
        )

    rng = np.random.default_rng(0)
    starts = np.array(
        [mech.integrate(q, SPREAD * rng.standard_normal(mech.nv)) for _ in range(BATCH)]
    )

    def our_batch() -> lw.simulation.Rollout:
        return lw.rollout(mech, starts, duration=SHORT * step, controls=given[:SHORT], **options)

    def states(q: np.ndarray) -> np.ndarray:
        full = np.zeros((len(q), mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
        full[:, 1 : 1 + model.nq] = layout.q_to(q)
        return full

    def theirs() -> np.ndarray:
        return mujoco_rollout.rollout(model, data, states(q[None]), given[None])[0]

    def their_batch() -> np.ndarray:
        many = np.broadcast_to(given[:SHORT], (BATCH, SHORT, model.nu))
        return mujoco_rollout.rollout(model, data, states(starts), many)[0]

    ours(), our_batch()  # compiled
    one, their_one, batch, their = least(ours, theirs, our_batch, their_batch)
    runs, other, touching = ours(), theirs()[0, -1], 0.0
    mujoco.mj_resetDataKeyframe(model, data, 0)
    for row in given:
        data.ctrl[:] = row
        mujoco.mj_step(model, data)
        touching += data.ncon / STEPS
    apart = 1e3 * abs(layout.q_from(other[1 : 1 + model.nq])[6] - runs.q[-1, 6])
    cells = (title, "steps" if swing else "stands", mech.nv)
    cells += (f"{len(points)} {'feet' if feet else 'all'}", f"{touching:.1f}")
    cells += (f"{runs.kernel.ops.total():,}", f"{one / STEPS:.2f}", f"{their_one / STEPS:.2f}")
    cells += (
        f"{their_one / one:.1f}",
        f"{batch / BATCH / SHORT:.2f}",
        f"{their / BATCH / SHORT:.2f}",
    )
    cells += (f"{their / batch:.1f}", f"{apart:.1f}", f"{runs.residual[-1]:.1e}")
    return "| " + " | ".join(map(str, cells)) + " |"


def main(paths: list[str]) -> None:
    """Measure, print, write."""
    warnings.simplefilter("ignore")
    rows, iterations = list[str](), list[str]()
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            file, title = stripped(path, Path(folder)), "/".join(Path(path).parts[-2:])
            iterations.append(f"{mujoco.MjModel.from_xml_path(file).opt.iterations} ({title})")
            for feet, swing in ((True, 0.0), (True, 0.15), (False, 0.0), (False, 0.15)):
                rows.append(measured(file, title, swing, feet))
                print(rows[-1], flush=True)
    head = HEAD.format(
        steps=STEPS, batch=BATCH, short=SHORT, spread=SPREAD, iterations=", ".join(iterations),
        lanes=lanes(8), load=machine.load(),
        machine=machine.description("mujoco", "llvmlite", "numpy"),
    )  # fmt: skip
    RESULTS.write_text(head + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
