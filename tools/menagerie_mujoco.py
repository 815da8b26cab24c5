"""Motions of Menagerie's robots beside MuJoCo: docs/evidence/mujoco_contact.md.

    python tools/menagerie_mujoco.py FOLDER                 writes docs/evidence/mujoco_contact.md
    python tools/menagerie_mujoco.py FOLDER --robot NAME    compares one robot and prints its row

Both make implicit steps of the length that the file says, with the file's actuators. First without
contacts, limits and Coulomb friction, by short explicit steps: there both are the same equations.
Then the whole robot from its keyframe, held by its commands, on the floor of its scene.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src"), str(ROOT / "benchmarks")]

ROBOTS = (
    "unitree_go2", "unitree_go1", "unitree_a1", "boston_dynamics_spot", "unitree_g1",
    "unitree_h1", "franka_emika_panda", "universal_robots_ur5e", "kinova_gen3",
)  # fmt: skip
"""Robots on feet, and arms in the air."""

FREE, STANDING, SETTLED = 0.5, 2.0, 0.5
"""Seconds of a motion without contacts, of one with them, and of its end, where forces are
compared."""

PARTS = 400
"""Explicit steps for one of the file: its servos may be stiff."""

STIFF, DAMPED = 60.0, 2.0
"""Gains of a servo [N m/rad, N m s/rad], for robots that have motors only."""

PAGE = ROOT / "docs" / "evidence" / "mujoco_contact.md"
HEAD = """\
# Robots on the ground beside MuJoCo

Written by `tools/menagerie_mujoco.py` with MuJoCo {version}. Both make implicit steps (MuJoCo:
`implicitfast`) of the length that the file says, with its actuators, and without shapes that are
meshes.

*Free*: the largest difference of a coordinate [rad or m] after {free} s without contacts, limits,
Coulomb friction and equality constraints, with commands that swing by 0.02 about the keyframe's, by
explicit Euler steps, {parts} for one of the file. The equations are the same there.

The other columns are about {standing} s on the floor, from the keyframe and held by its commands
(robots with motors only: by a servo of 60 N m/rad), with limits and friction. *Joints* is the
largest difference of a joint [rad or m] during the motion, and at its end; *height* that of the
base at the end [mm]. *Weight* is the sum of vertical contact forces over m g, mean of the last
{settled} s, here and in MuJoCo; *feet* the largest difference of the vertical force on a body then,
in parts of m g. *Penetration* [mm] and the *creep* of the base [mm/s] are of the same time, here
and in MuJoCo.

Where the two models differ: here contacts, limits and joint friction are hard. A foot that rests
has no velocity, a penetration carries no force, and friction is Coulomb's exact cone. In MuJoCo
each of them is a soft constraint (`solref`, `solimp`) in a convex problem: feet sink in until the
softness carries the weight, and creep under load. Robots on more than three feet, or with several
points on a foot, are statically indeterminate: forces of feet then depend on the softness. Springs
and servos act at the end of a step here; `implicitfast` takes their positions from its beginning.

| robot | step [ms] | free | joints | at the end | height | weight | feet | penetration | creep |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def compared(path: Path) -> dict[str, Any]:
    """The row of one robot."""
    import mujoco
    from stepping import stripped

    import linkwise as lw

    with tempfile.TemporaryDirectory() as folder:
        file = stripped(str(path), Path(folder))  # meshes need not be there
        mech, model = lw.load(file), mujoco.MjModel.from_xml_path(file)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    layout, step = lw.convert.mujoco_layout(mech, model), float(model.opt.timestep)
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    hold = data.ctrl.copy()
    row: dict[str, Any] = {"step": 1e3 * step}
    row["free"] = free(mech, model, layout, hold)
    if model.nkey and mech.nq != model.nu and model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE:
        row |= standing(mech, model, layout, hold)
    return row


def free(mech: Any, model: Any, layout: Any, hold: np.ndarray) -> float:
    """How far both are apart after a motion without rows."""
    import mujoco

    import linkwise as lw

    wide = {"friction": 0.0, "lower": -np.inf, "upper": np.inf, "max_angle": np.inf}
    bare = replace(
        mech, loops=(), couplings=(),
        bodies=tuple(replace(b, drive=replace(b.drive, **wide)) for b in mech.bodies),
    )  # fmt: skip
    flag, usual = mujoco.mjtDisableBit, (model.opt.disableflags, model.opt.timestep)
    off = (flag.mjDSBL_CONTACT, flag.mjDSBL_LIMIT, flag.mjDSBL_FRICTIONLOSS, flag.mjDSBL_EQUALITY)
    model.opt.disableflags |= sum(int(x) for x in (*off, flag.mjDSBL_EULERDAMP))
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    model.opt.timestep = step = usual[1] / PARTS
    steps = round(FREE / step)
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    t = step * np.arange(steps)[:, None]
    controls = hold + 0.02 * np.sin(8.0 * t + np.arange(model.nu))
    q = layout.q_from(data.qpos.copy())
    for u in controls:
        data.ctrl[:] = u
        mujoco.mj_step(model, data)
    model.opt.disableflags, model.opt.timestep = usual
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    run = lw.rollout(
        bare, q, duration=steps * step, step=step, integrator="euler", controls=controls,
        record_every=steps,
    )  # fmt: skip
    return float(np.abs(run.q[-1] - layout.q_from(data.qpos.copy())).max())


def holding(model: Any, data: Any, hold: np.ndarray) -> Callable[[Any, Any], np.ndarray]:
    """Commands of a state: those of the keyframe, and for motors a servo about it."""
    joints = model.actuator_trnid[:, 0]
    at, rate = model.jnt_qposadr[joints], model.jnt_dofadr[joints]
    start, motors = data.qpos[at].copy(), ~model.actuator_biasprm.any(axis=1)

    def command(q: Any, v: Any) -> np.ndarray:
        return np.where(motors, STIFF * (start - q[at]) - DAMPED * v[rate], hold)

    return command


def standing(mech: Any, model: Any, layout: Any, hold: np.ndarray) -> dict[str, Any]:
    """Both on the floor: how joints, forces of feet and penetrations differ."""
    import mujoco

    import linkwise as lw
    from linkwise.simulation import contact_points

    step, data = float(model.opt.timestep), mujoco.MjData(model)
    steps, late = round(STANDING / step), round(SETTLED / step)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    q = layout.q_from(data.qpos.copy())
    weight = float(mech.total_mass) * 9.81
    theirs, forces, depth, frame, wrench = [q], {}, 0.0, np.zeros(9), np.zeros(6)
    command = holding(model, data, hold)
    for k in range(steps):
        data.ctrl[:] = command(data.qpos, data.qvel)
        mujoco.mj_step(model, data)
        theirs.append(layout.q_from(data.qpos.copy()))
        if k < steps - late:
            continue
        for i in range(data.ncon):
            touch = data.contact[i]
            depth = max(depth, -float(touch.dist))
            mujoco.mj_contactForce(model, data, i, wrench)
            frame[:] = np.asarray(touch.frame).reshape(-1)
            up = float((frame.reshape(3, 3).T @ wrench[:3])[2])
            bodies = [int(model.geom_bodyid[g]) for g in touch.geom]
            body, sign = (
                (bodies[1], 1.0) if model.body_weldid[bodies[0]] == 0 else (bodies[0], -1.0)
            )
            name = model.body(body).name
            forces[name] = forces.get(name, 0.0) + sign * up / late
    other = np.array(theirs)
    rec = lw.simulate(
        mech, q, duration=steps * step, step=step, integrator="implicit", record_every=1,
        controls=lambda t, q, v: command(layout.q_to(q), layout.v_to(q, v)), progress=False,
    )  # fmt: skip
    ours, pushes, deep = rec["q"], dict[str, float](), 0.0
    for point in contact_points(mech):
        up = float(rec[f"contact.{point.name}.force"][-late:, 2].mean())
        pushes[point.body] = pushes.get(point.body, 0.0) + up
        pressed = rec[f"contact.{point.name}.force"][-late:, 2] > 0.0
        deep = max(deep, float((rec[f"contact.{point.name}.penetration"][-late:] * pressed).max()))
    apart = np.abs(ours - other)[:, 7:].max(axis=1)
    names = {*pushes, *forces}

    def creep(path: np.ndarray) -> float:
        return 1e3 * float(np.linalg.norm(path[-1, 4:7] - path[-late, 4:7])) / SETTLED

    return {
        "joints": float(apart.max()), "end": float(apart[-1]),
        "height": 1e3 * float(abs(ours[-1, 6] - other[-1, 6])),
        "weight": [sum(pushes.values()) / weight, sum(forces.values()) / weight],
        "feet": max(abs(pushes.get(n, 0.0) - forces.get(n, 0.0)) for n in names) / weight,
        "penetration": [1e3 * deep, 1e3 * depth], "creep": [creep(ours), creep(other)],
    }  # fmt: skip


def line(name: str, row: dict[str, Any]) -> str:
    """A row of the table."""
    if "error" in row:
        return f"| {name} | | {row['error']} | | | | | | | |"

    def cell(key: str, form: str) -> str:
        value = row.get(key)
        if value is None:
            return ""
        parts = value if isinstance(value, list) else [value]
        return ", ".join(format(x, form) for x in parts)

    forms = {"step": "g", "free": ".1e", "joints": ".1e", "end": ".1e", "height": ".2f"}
    forms |= {"weight": ".6f", "feet": ".3f", "penetration": ".2g", "creep": ".1g"}
    return "| " + " | ".join([name, *(cell(key, form) for key, form in forms.items())]) + " |"


def main() -> None:
    """Compare, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--robot")
    given = parser.parse_args()
    if given.robot:
        warnings.simplefilter("ignore")
        print(json.dumps(compared(given.folder / given.robot / "scene.xml")))
        return
    import mujoco

    rows = list[str]()
    for name in ROBOTS:
        command = [sys.executable, __file__, str(given.folder), "--robot", name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = [x for x in done.stdout.splitlines() if x.startswith("{")]
        last = (done.stderr.strip().splitlines() or ["no result"])[-1]
        rows.append(line(name, json.loads(lines[-1]) if lines else {"error": last}))
        print(rows[-1], flush=True)
    head = HEAD.format(
        version=mujoco.__version__,
        free=FREE,
        standing=STANDING,
        settled=SETTLED,
        parts=PARTS,
    )
    PAGE.write_text(head + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
