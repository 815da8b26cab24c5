"""Robots stepped from Python beside `mujoco.mj_step`, and what a step from Python costs.

    python benchmarks/stepping.py [go2_scene.xml]        writes results/stepping.md

Time is that of the process, so that other processes do not count. The robot of the file (Unitree
Go2 of MuJoCo Menagerie, with its scene) rests on the spheres of its feet, held by its actuators
in the pose of its keyframe.
"""

import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from ctypes import c_int64
from functools import partial
from pathlib import Path
from typing import Any

import machine
import mujoco
import numpy as np

import linkwise as lw
from linkwise.simulation import Ground, ground_contacts

RESULTS = Path(__file__).parent / "results" / "stepping.md"
HEAD = """# Stepping from Python

Written by `python benchmarks/stepping.py`. One robot; microseconds of processor time for one step
from Python, the least of {rounds} rounds of {calls} calls. *Kernel* is the machine code alone: the
prepared call of it, less a call that finds no robot. *Overhead* is what `sim.step` takes beyond it
(goal: 3). `mj_step` is called with the state and controls of the same robot, at the same time step,
and its controls are set before each call as in a loop with a policy; its solver has the settings
of the file. *Apart* is the largest difference of coordinates [m or rad] after 500 steps: contacts
are soft in MuJoCo, and hard here.

{machine}

Load average {load}.

| robot | step [ms] | contacts | kernel | `sim.step` | overhead | `mj_step` | ratio | \
apart |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""
ROUNDS, CALLS = 60, 200

CART_POLE = """
<mujoco><option timestep="0.002"/><worldbody><body name="cart"><joint name="rail" type="slide"
axis="1 0 0" damping="0.5"/><inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
<body name="pole"><joint name="hinge" type="hinge" axis="0 1 0"/>
<inertial pos="0 0 0.25" mass="0.3" diaginertia="0.006 0.006 0.0001"/></body></body></worldbody>
<actuator><motor name="motor" joint="rail" gear="10" ctrlrange="-1 1"/></actuator></mujoco>
"""


def stripped(path: str, folder: Path) -> str:
    """The file without meshes, which only draw."""
    spec = mujoco.MjSpec.from_file(path)
    for geom in list(spec.geoms):
        geom.material = ""
        if geom.type == mujoco.mjtGeom.mjGEOM_MESH:
            spec.delete(geom)
    for item in [*spec.meshes, *spec.materials, *spec.textures]:
        spec.delete(item)
    spec.compile()
    target = folder / Path(path).name
    target.write_text(spec.to_xml())
    return str(target)


def least(*calls: Callable[[], object]) -> list[float]:
    """Processor time of each call [µs], measured in turn, with that of an empty loop taken off."""
    times = np.empty((ROUNDS, 1 + len(calls)))
    for row in times:
        for i, call in enumerate((lambda: None, *calls)):
            start = time.process_time()
            for _ in range(CALLS):
                call()
            row[i] = time.process_time() - start
    best = 1e6 * times.min(axis=0) / CALLS
    return (best[1:] - best[0]).tolist()


def measured(
    path: str, q: np.ndarray, command: np.ndarray, data: mujoco.MjData, model: mujoco.MjModel
) -> list[str]:
    """A row of the table."""
    mech = lw.load(path)
    feet = list[Any]()
    if mech.n_bodies > 2:
        feet = [p for p in ground_contacts(mech, Ground(friction=0.8)) if p.radius > 0.0]
        feet = [p for p in feet if p.name.rsplit("/", 1)[0] != p.body] or feet
    step = float(model.opt.timestep)
    sim = lw.Simulator(mech, q=q, step=step, contacts=feet)
    for _ in range(500):  # come to rest
        sim.step(command)
        data.ctrl[:] = command
        mujoco.mj_step(model, data)
    off = float(np.abs(lw.convert.mujoco_layout(mech, model).q_from(data.qpos) - sim.q).max())
    call = sim._advance
    parts = list(call.args)
    parts[8] = c_int64(0)  # robots

    def other() -> None:
        data.ctrl[:] = command
        mujoco.mj_step(model, data)

    calls = (partial(call.func, *parts), call, partial(sim.step, command), other)
    empty, kernel, total, theirs = least(*calls)
    numbers = [kernel - empty, total, total - kernel + empty, theirs]
    title = [mech.name, f"{1e3 * step:g}", str(data.ncon)]
    return [*title, *(f"{x:.2f}" for x in numbers), f"{theirs / total:.1f}", f"{off:.1e}"]


def main(paths: list[str]) -> None:
    """Measure, print, write."""
    warnings.simplefilter("ignore")
    rows = list[list[str]]()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cart_pole.xml"
        file.write_text(CART_POLE)
        model = mujoco.MjModel.from_xml_path(str(file))
        rows.append(measured(str(file), np.zeros(2), np.zeros(1), mujoco.MjData(model), model))
        for path in (stripped(x, Path(folder)) for x in paths):
            model = mujoco.MjModel.from_xml_path(path)
            data = mujoco.MjData(model)
            mujoco.mj_resetDataKeyframe(model, data, 0)
            pose = data.qpos.copy()
            q = np.concatenate([pose[3:7], pose[:3], pose[7:]])
            rows.append(measured(path, q, model.key_ctrl[0], data, model))
    text = HEAD.format(
        rounds=ROUNDS,
        calls=CALLS,
        machine=machine.description("mujoco", "llvmlite", "numpy"),
        load=machine.load(),
    )
    text += "".join(f"| {' | '.join(row)} |\n" for row in rows)
    print(text)
    RESULTS.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
