"""How closed chains keep loops, energy and momentum in long runs: docs/evidence/closed_runs.md.

    python tools/closed_chain_runs.py [--duration 60] [--only four_bar ...] [--again]

Each mechanism is put together by `lw.loops.assemble` from a guess that is off by a tenth of a
radian or of a metre in every freedom, pushed, and left to itself under gravity: no damping, and no
drive but springs where it would fall without end or into a singular configuration. Then a free
flyer hands a box from one hand to the other.

Runs take minutes. What is done is kept in build/closed_chain_runs.json, so that a run that
was broken off goes on where it stopped; --again begins anew.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import linkwise as lw

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "evidence" / "closed_runs.md"
KEPT = ROOT / "build" / "closed_chain_runs.json"
SHORT = 5.0
"""How long [s] the ways of keeping loops are compared."""


@dataclass(frozen=True)
class Case:
    """A mechanism, how it begins and what acts on it.

    Attributes:
        mech: The mechanism.
        push: Velocity (nv,) that it begins with, before the loops have their say.
        step: Step of time [s].
        words: What moves, for the page.
        springs: Hinges with springs, which hold the weight at the neutral configuration.
        stiffness: Of each of their freedoms [N/m or N m/rad].
    """

    mech: lw.Mechanism
    push: np.ndarray
    step: float
    words: str
    springs: tuple[str, ...] = ()
    stiffness: float = 0.0


def four_bar() -> Case:
    """The crank goes round."""
    push = np.array([6.0, 0.0, 0.0])
    return Case(lw.models.four_bar(), push, 1e-3, "the crank goes round")


def peaucellier() -> Case:
    """It swings."""
    push = np.zeros(7)
    push[6] = 50.0
    return Case(lw.models.peaucellier(), push, 4e-3, "swings")


def delta() -> Case:
    """The platform on three springs: falling free it would come to where its loops are singular."""
    mech = lw.models.delta()
    push = np.zeros(mech.nv)
    push[mech.v_slice("platform")] = [0.0, 0.0, 0.0, 1.5, 1.0, 0.5]
    motors = tuple(f"motor_{k}" for k in (1, 2, 3))
    return Case(mech, push, 2.5e-3, "bounces on springs in its three motors", motors, 6.0)


def stewart() -> Case:
    """The platform on six springs."""
    mech = lw.models.stewart()
    push = np.zeros(mech.nv)
    push[mech.v_slice("platform")] = [1.0, 0.5, 1.5, 0.3, -0.2, 0.2]
    legs = tuple(f"slider_{k}" for k in range(1, 7))
    return Case(mech, push, 2.5e-3, "rocks on springs in its six legs", legs, 1000.0)


def biped() -> Case:
    """Stands and sways."""
    mech = lw.models.biped()
    push = np.zeros(mech.nv)
    push[:6] = [0.4, 0.4, 0.4, 0.3, 0.2, 0.2]
    joints = tuple(b.hinge_name for b in mech.bodies[1:])
    return Case(mech, push, 1e-3, "sways on springs in its joints", joints, 400.0)


CASES: dict[str, Callable[[], Case]] = {
    "four_bar": four_bar,
    "peaucellier": peaucellier,
    "delta": delta,
    "stewart": stewart,
    "biped": biped,
}

Row = dict[str, float | str]


def begin(case: Case) -> tuple[np.ndarray, np.ndarray, float]:
    """q and v to begin with, and by how far [m or rad] the guess missed."""
    mech = case.mech
    rng = np.random.default_rng(0)
    guess = mech.integrate(mech.neutral(), rng.uniform(-0.1, 0.1, mech.nv))
    missed = float(np.abs(lw.loops.constraint_error(mech, guess)).max())
    q = lw.loops.assemble(mech, guess).required()
    return q, lw.loops.project_velocity(mech, q, case.push), missed


def springs(case: Case) -> Callable[..., np.ndarray]:
    """τ = f − K q of the springs; f carries the weight at neutral."""
    mech = case.mech
    in_v = [i for name in case.springs for i in range(*_range(mech.v_slice(name)))]
    in_q = [i for name in case.springs for i in range(*_range(mech.q_slice(name)))]
    q = mech.neutral()
    E, J = np.eye(mech.nv)[:, in_v], lw.loops.constraint_jacobian(mech, q)
    f = np.linalg.lstsq(np.hstack([E, J.T]), lw.gravity_force(mech, q), rcond=None)[0][: len(in_v)]

    def tau(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return E @ (f - case.stiffness * q[in_q])

    return tau


def _range(part: slice) -> tuple[int, int]:
    return part.start, part.stop


def measured(name: str, keep: str, duration: float) -> Row:
    """One run."""
    case = CASES[name]()
    q, v, missed = begin(case)
    tau = springs(case) if case.springs else 0.0
    every = max(1, round(0.02 / case.step))
    run = lw.simulate(
        case.mech, q, v, tau=tau, duration=duration, step=case.step, keep=keep, passive=False,
        record_every=every,
    )  # fmt: skip
    space = lw.loops.constraint_jacobian(case.mech, run.q[0])
    return {
        "rows": len(space),
        "rank": int(np.linalg.matrix_rank(space, tol=1e-9)),
        "nv": case.mech.nv,
        "missed": missed,
        "words": case.words,
        "step": case.step,
        "duration": float(run.t[-1]),
        "distance": run.report.loop[0],
        "angle": run.report.loop[1],
        "added": run.report.notes.added_loop[0],
        "velocity": float(run["loop.rate"].max()),
        "kinetic": run.report.kinetic,
        "drift": run.report.drift,
        "relative": run.report.relative_drift,
    }


# ---------------------------------------------------------------------------------- handing over


def handed_over(*, step: float) -> Row:
    """Momentum while a free flyer hands its cargo from its left to its right hand."""
    mech = lw.models.handover()
    q0 = mech.neutral()
    # Where both hands are at the grips, found on a mechanism with the second loop as it is meant.
    meant = lw.Loop("right_grasp", "right_hand", "right_grip", lw.hinges.Locked())
    goal = lw.loops.assemble(replace(mech, loops=(*mech.loops, meant)), hold=["flight"]).required()
    arms = [i for b in mech.bodies if b.hinge.nv == 1 for i in [mech.q_slice(b.hinge_name).start]]
    speeds = [i for b in mech.bodies if b.hinge.nv == 1 for i in [mech.v_slice(b.hinge_name).start]]
    left = np.array([mech.coordinate_names[i].startswith("left_") for i in arms])
    size = 3.0 * np.diag(lw.mass_matrix(mech, q0))[speeds]

    def drive(begin: float, start: np.ndarray, end: np.ndarray) -> Callable[..., np.ndarray]:
        def tau(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
            s = min(max((t - begin) / 1.5, 0.0), 1.0)
            path, rate = s**3 * (10.0 - 15.0 * s + 6.0 * s * s), 30.0 * s * s * (1.0 - s) ** 2 / 1.5
            want, speed = start + path * (end - start), rate * (end - start)
            out = np.zeros(mech.nv)
            out[speeds] = size * (60.0 * (want - q[arms]) + 16.0 * (speed - v[speeds]))
            return out

        return tau

    push = np.zeros(mech.nv)
    push[mech.v_slice("flight")] = [0.02, -0.03, 0.05, 0.1, 0.05, -0.04]
    push[mech.v_slice("cargo_flight")] = 0.0
    q, v = q0, _together(mech, q0, push)
    before = lw.momentum(mech, q, v, about="world")
    worst, gap, error, t = np.zeros(2), 0.0, 0.0, 0.0
    stages = (
        ("left", 2.0, q0[arms], goal[arms]),
        ("both", 1.0, goal[arms], goal[arms]),
        ("right", 2.0, goal[arms], np.where(left, q0[arms], goal[arms])),
    )
    for stage, duration, start, end in stages:
        if stage == "both":
            off = mech.pose(q, "right_grip").inverse() @ mech.pose(q, "right_hand")
            gap = float(np.linalg.norm(off.p))
            mech = lw.loops.close_loop(mech, q, "right_grasp", "right_hand", "cargo")
            v = lw.loops.project_velocity(mech, q, v)
        elif stage == "right":
            mech = mech.without("left_grasp")
        run = lw.simulate(
            mech, q, v, tau=drive(t, start, end), duration=duration, step=step, start=t,
            record_every=5, passive=False,
        )  # fmt: skip
        change = np.abs(lw.momentum(mech, run.q, run.v, about="world") - before)
        worst = np.maximum(worst, [change[:, :3].max(), change[:, 3:].max()])
        error = max(error, run.report.loop[0])
        q, v, t = run.q[-1], run.v[-1], float(run.t[-1])
    return {
        "step": step, "duration": t, "gap": gap, "distance": error,
        "angular": float(worst[0]), "linear": float(worst[1]),
        "of angular": float(np.linalg.norm(before[:3])),
        "of linear": float(np.linalg.norm(before[3:])),
    }  # fmt: skip


def _together(mech: lw.Mechanism, q: np.ndarray, push: np.ndarray) -> np.ndarray:
    """The velocity with the base pushed, arms at rest relative to it, and the cargo along."""
    J = lw.loops.constraint_jacobian(mech, q)
    cargo = range(*_range(mech.v_slice("cargo_flight")))
    v = push.copy()
    v[cargo] = -np.linalg.solve(J[:, cargo], J @ push)
    return v


# -------------------------------------------------------------------------------------- the page


def page(rows: dict[str, Row], duration: float) -> str:
    """The page of the documentation."""
    long = {name: rows[f"{name} projection {duration:g}"] for name in CASES}
    worst = max(float(r["distance"]) for r in long.values())
    angle = max(float(r["angle"]) for r in long.values())
    out = [_HEAD.format(duration=duration, worst=worst, angle=angle)]
    head = ["mechanism", "motion", "rows, rank", "dof", "error of the guess", "step"]
    out += [_line(head), "| --- " * len(head) + "|"]
    for name, r in long.items():
        cells = [f"`{name}()`", str(r["words"]), f"{r['rows']}, {r['rank']}"]
        cells += [f"{int(r['nv']) - int(r['rank'])}", f"{r['missed']:.2f}", f"{r['step']} s"]
        out.append(_line(cells))
    head = ["mechanism", "loop error", "one step adds", "J_c v", "largest kinetic energy"]
    head += ["energy drift", "relative"]
    out += ["", _RUNS.format(duration=duration), _line(head), "| --- " * len(head) + "|"]
    for name, r in long.items():
        cells = [f"`{name}()`", f"{r['distance']:.1e} m", f"{r['added']:.1e} m"]
        cells += [f"{r['velocity']:.1e}", f"{r['kinetic']:.3g} J", f"{r['drift']:.1e} J"]
        out.append(_line([*cells, f"{r['relative']:.1e}"]))
    ways = ("projection", "baumgarte", "nothing")
    head = ["mechanism", *(f"loop error, {way}" for way in ways)]
    head += [f"relative energy drift, {way}" for way in ways]
    out += ["", _WAYS.format(short=SHORT), _line(head), "| --- " * len(head) + "|"]
    for name in CASES:
        result = [rows[f"{name} {way} {SHORT:g}"] for way in ways]
        cells = [f"`{name}()`", *(f"{r['distance']:.1e} m" for r in result)]
        out.append(_line([*cells, *(f"{r['relative']:.1e}" for r in result)]))
    passed = {key.replace(" ", "_"): value for key, value in rows["handover"].items()}
    return "\n".join([*out, "", _HANDOVER.format(**passed), _TRACKING])


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


_HEAD = """# Long runs of closed chains

Do loops stay closed, and are energy and momentum conserved? Each mechanism below is assembled by
`lw.loops.assemble` from a guess in which every coordinate is off by up to 0.1 rad or 0.1 m, pushed,
and simulated for {duration:g} s with `lw.simulate`. Gravity acts; there is no damping and no drive,
except for springs where a mechanism would otherwise fall for ever or, for the delta robot, reach a
singular configuration. The largest loop error after any step of any run is {worst:.1e} m and
{angle:.1e} rad. `tools/closed_chain_runs.py` writes this page.
"""

_RUNS = """\
Over {duration:g} s, with projection after every step. The loop error is the largest distance at any
loop after any step; *one step adds* is the same before the projection; J_c v is the remaining
velocity that pulls loops apart [m/s or rad/s]. The energy, minus the work of the springs, is
compared with its initial value, in joules and relative to the largest kinetic energy; its drift is
the error of the steps, which are of fourth order.
"""

_WAYS = """\
The same over {short:g} s with three ways to keep the loops closed: projection, Baumgarte's terms
−2 a (J_c v) − b² e with a = b = 20 / s, and nothing.
"""

_HANDOVER = """\
## Pass an object from hand to hand

`handover()`: a satellite with two arms floats and rotates, with a box in its left hand. Its motors
bring the right hand to the box (2 s), where it closes {gap:.1e} m from the intended place; both
hold it (1 s), then the left one releases it and withdraws (2 s). The loops change each time:
`lw.loops.close_loop`, then `.without("left_grasp")`. The hand closes in its present pose, so
nothing jumps, and `lw.loops.project_velocity` gives the velocities after the impact. With steps of
{step} s, over {duration:g} s, with the loops closed to {distance:.1e} m:

| | at the beginning | largest change |
| --- | --- | --- |
| angular momentum about the world's origin | {of_angular:.3g} kg m²/s | {angular:.1e} kg m²/s |
| linear momentum | {of_linear:.3g} kg m/s | {linear:.1e} kg m/s |
"""

_TRACKING = """\
## Follow a path

`examples/stewart_tracking.py` moves a Stewart platform along a circle while it leans outwards, with
`lw.loops.drive_forces` for the forces of its six motors, held for 5 ms each. The
table compares the modelled platform with one that carries an unknown load of 6 kg:

![A Stewart platform on its path, its errors and its forces](../_static/stewart_tracking.png)
"""


def main() -> None:
    """Run what is not there yet, and write the page when all is."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--duration", type=float, default=60.0)
    options.add_argument("--only", nargs="*", choices=[*CASES, "handover"])
    options.add_argument("--again", action="store_true")
    request = options.parse_args()
    jobs: dict[str, Callable[[], Row]] = {}
    for name in CASES:
        for keep, length in [
            *((way, SHORT) for way in ("projection", "baumgarte", "nothing")),
            ("projection", request.duration),
        ]:
            jobs[f"{name} {keep} {length:g}"] = lambda n=name, k=keep, d=length: measured(n, k, d)
    jobs["handover"] = lambda: handed_over(step=5e-4)
    chosen = [k for k in jobs if request.only is None or k.split()[0] in request.only]
    for key in chosen:
        if key in _kept() and not request.again:
            continue
        start = time.perf_counter()
        row = jobs[key]()
        _keep(key, row)
        numbers = ", ".join(f"{k} {v:.2g}" for k, v in row.items() if isinstance(v, float))
        print(f"{key}: {time.perf_counter() - start:.0f} s; {numbers}", flush=True)
    rows = _kept()
    missing = [key for key in jobs if key not in rows]
    if missing:
        print("not written, still to run:", ", ".join(missing))
        return
    PAGE.write_text(page(rows, request.duration), encoding="utf-8")


def _kept() -> dict[str, Row]:
    return json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}


def _keep(key: str, row: Row) -> None:
    KEPT.parent.mkdir(exist_ok=True)
    KEPT.write_text(json.dumps({**_kept(), key: row}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
