"""Flexible bodies beside Exudyn's finite elements: equal models, accuracy and time.

    python benchmarks/flexible.py --exudyn ENVIRONMENT/bin/python

Writes benchmarks/results/flexible.md. Exudyn lives in a separate environment: `pip install exudyn`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from machine import description, load

import linkwise as lw

RESULTS = Path(__file__).parent / "results" / "flexible.md"
SIDE = Path(__file__).parent / "exudyn_side.py"
PLANE, PIN = ("y", "rz"), lw.hinges.Pin((0, 0, 1))
HEAVY = 1e9
"""Armature that keeps a hub or a crank at its speed."""

PENDULUM = {"length": 1.0, "area": 1e-4, "bending": 1e-9, "young": 7e9, "density": 2700.0}
KANE = {"length": 10.0, "area": 4e-4, "bending": 2e-7, "young": 7e10, "density": 3000.0}
RADIUS, CRANK, SPEED = 0.003, 0.15, 150.0
ROD = {
    "length": 0.3,
    "area": np.pi * RADIUS**2,
    "bending": 0.25 * np.pi * RADIUS**4,
    "young": 2e11,
    "density": 7870.0,
}
SLIDER = 0.5 * ROD["density"] * ROD["area"] * ROD["length"]

HEAD = """# Flexible bodies

Written by `python benchmarks/flexible.py --exudyn PYTHON`, with Exudyn {version} (planar ANCF
cables, which deform without limits, generalised-α steps). {machine}
Load: {load}. Times are those of the processor for one motion, compiled before; Exudyn's are for
`SolveDynamic`; in the second and third motion it calls functions in Python, so that times are
compared in the first only.

"""


def beam(data, **options):
    """The modes of a beam."""
    section = {name: x for name, x in data.items() if name != "length"}
    return lw.flexible.beam(data["length"], **section, directions=PLANE, **options)


def of_modes(n: int) -> str:
    """In words."""
    return f"{n} mode{'s' if n > 1 else ''}"


def exudyn(python: str, cases: list[dict]) -> dict:
    """The results of `exudyn_side.py`."""
    command = [python, "-W", "ignore", str(SIDE)]
    done = subprocess.run(
        command, input=json.dumps(cases), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])


def at_times(t: np.ndarray, recorded: list[float], path: np.ndarray) -> np.ndarray:
    """A path (k, n) at other times, by cubics: sensors need not write at given times."""
    steps = np.array(recorded)
    rate = np.gradient(path, steps, axis=0, edge_order=2)
    i = np.clip(np.searchsorted(steps, t, side="right") - 1, 0, len(steps) - 2)
    h = (steps[i + 1] - steps[i])[:, None]
    x = (t - steps[i])[:, None] / h
    return (
        (1 + 2 * x) * (1 - x) ** 2 * path[i]
        + x**2 * (3 - 2 * x) * path[i + 1]
        + h * x * (1 - x) * ((1 - x) * rate[i] - x * rate[i + 1])
    )


def timed(function):
    """The result of the second call, and the processor time of the best of five."""
    result, spent = function(), list[float]()
    for _ in range(5):
        began = time.process_time()
        result = function()
        spent.append(time.process_time() - began)
    return result, min(spent)


# ---------------------------------------------------------------------------------- a pendulum


def pendulum(modes: int) -> lw.Mechanism:
    """A flexible beam on a pin."""
    b = lw.Builder("pendulum", gravity=(0, -9.81, 0))
    return beam(PENDULUM, modes=modes).add_to(b, "beam", "world", PIN).build()


def links(n: int) -> lw.Mechanism:
    """The same beam as rigid links with springs: halves at the ends, so that errors are O(1/n²)."""
    line, h = PENDULUM["density"] * PENDULUM["area"], PENDULUM["length"] / n
    stiffness = PENDULUM["young"] * PENDULUM["bending"] / h
    lengths = [0.5 * h, *[h] * (n - 1), 0.5 * h]
    b, parent, x = lw.Builder("links", gravity=(0, -9.81, 0)), "world", 0.0
    for i, l in enumerate(lengths):
        m = line * l
        inertia = lw.SpatialInertia.from_com(m, (0.5 * l, 0, 0), [m * l * l / 12.0] * 3)
        drive = lw.Drive(stiffness=stiffness) if i else lw.Drive()
        b.body(f"link_{i}", parent, PIN, inboard=(x, 0, 0), inertia=inertia, drive=drive)
        parent, x = f"link_{i}", l
    b.node("beam.tip", parent, (x, 0, 0))
    return b.build()


def swing(mech: lw.Mechanism, step: float, t: np.ndarray) -> tuple[np.ndarray, float]:
    """The tip at the times t, and how long the motion took."""

    def go():
        start, still = mech.neutral(), np.zeros(mech.nv)
        return lw.rollout(mech, start, still, duration=float(t[-1]), step=step)

    runs, spent = timed(go)
    at = np.rint(t / step).astype(int)
    return mech.pose(runs.q.reshape(-1, mech.nq)[at], "beam.tip").p[:, :2], spent


def pendulums(python: str) -> list[str]:
    """Tips of a falling pendulum: modes, links and elements beside fine elements."""
    base = {"kind": "pendulum", "beam": PENDULUM, "gravity": 9.81, "duration": 1.0}
    settings = [(16, 2.5e-4), (2, 2e-3), (4, 2e-3), (8, 1e-3)]
    cases = [{**base, "elements": n, "step": h, "sample": h} for n, h in settings]
    results, t = exudyn(python, cases)["results"], np.linspace(0.0, 1.0, 21)
    tips = [at_times(t, one["t"], np.array(one["paths"]["tip"])) for one in results]
    fine = tips[0]
    lines = [
        "\n## A flexible pendulum falls\n",
        "A beam of 1 m on a pin, 0.27 kg, E I = 7 N m², falls from a horizontal for 1 s.",
        "*Difference* is the largest distance of the tip from that of Exudyn's 16 elements",
        "in steps of 0.25 ms, at 21 times; steps of 1 ms change that by 0.08 mm. With 32",
        "elements and steps of 0.25 ms Exudyn differs by 1.1 mm from all models below, and",
        "at 1 ms it shortens some steps to 0.06 ms; why was not examined, so 16 elements",
        "are the reference.\n",
        "| model | step | difference [mm] | time [ms] |",
        "| --- | ---: | ---: | ---: |",
    ]

    def row(name, step, tip, spent):
        far = float(np.linalg.norm(tip - fine, axis=1).max())
        lines.append(f"| {name} | {1e3 * step:g} ms | {1e3 * far:.3f} | {1e3 * spent:.2f} |")

    for modes, step in ((1, 5e-3), (2, 5e-3), (3, 2.5e-3), (4, 1e-3)):
        row(f"Linkwise, {of_modes(modes)}", step, *swing(pendulum(modes), step, t))
    for n, step in ((3, 1e-3), (6, 5e-4), (12, 1e-4)):
        row(f"Linkwise, {n} + 1 rigid links with springs", step, *swing(links(n), step, t))
    for (n, step), tip, one in zip(settings[1:], tips[1:], results[1:], strict=True):
        row(f"Exudyn, {n} elements", step, tip, one["time"])
    return lines


# ------------------------------------------------------------------------------------ spin-up


def spin_up(body: lw.flexible.FlexibleBody, t: np.ndarray, step: float = 0.01) -> np.ndarray:
    """How far the tip is ahead of the hub at the times t [m]; nan once the motion diverges."""
    b = lw.Builder("hub", gravity=(0, 0, 0))
    mech = body.add_to(b, "beam", "world", PIN, drive=lw.Drive(armature=HEAVY)).build()
    times = np.arange(0.0, float(t[-1]), step) + 0.5 * step
    rate = np.where(times < 15.0, 6.0 / 15.0 * (1.0 - np.cos(2.0 * np.pi * times / 15.0)), 0.0)
    tau = np.zeros((len(times), mech.nv))
    tau[:, 0] = HEAVY * rate
    start, still = mech.neutral(), np.zeros(mech.nv)
    options = {"duration": float(t[-1]), "step": step, "tau": tau[None]}
    runs = lw.rollout(mech, start[None], still[None], **options)  # a batch may diverge
    eta = runs.q.reshape(-1, mech.nq)[np.rint(t / step).astype(int), 1:]
    return (body.shape(np.nan_to_num(eta, nan=np.inf)) - body.positions)[:, body.tip, 1]


def spinning(python: str) -> list[str]:
    """Kane, Ryan and Banerjee's spin-up with and without the terms of second order."""
    case = {"kind": "spin_up", "beam": KANE, "speed": 6.0, "rise": 15.0, "duration": 20.0}
    case |= {"elements": 8, "step": 1e-2, "sample": 1e-2, "radius": 0.9}
    one, T = exudyn(python, [case])["results"][0], 15.0
    x, place = np.array(one["t"]), np.array(one["paths"]["tip"])
    ramp = 0.4 * (0.5 * x**2 + (T / (2 * np.pi)) ** 2 * (np.cos(2 * np.pi * x / T) - 1.0))
    angle = np.where(x < T, ramp, 6.0 * (x - 0.5 * T))
    ahead = -np.sin(angle) * place[:, 0] + np.cos(angle) * place[:, 1]
    t = np.linspace(0.0, 20.0, 401)
    other = at_times(t, one["t"], ahead[:, None])[:, 0]
    lines = [
        "\n## Spin-up of a rotating beam\n",
        "The beam of Kane, Ryan and Banerjee (1987): 10 m, 12 kg, E I = 14 kN m², brought",
        "to 6 rad/s in",
        "15 s. The tip lags and comes back; without the terms of second order it diverges.\n",
        "| model | largest lag [m] | largest after 15 s [mm] | difference from Exudyn [mm] |",
        "| --- | ---: | ---: | ---: |",
        f"| Exudyn, 8 elements | {-other.min():.4f} | {1e3 * np.abs(other[t > T]).max():.2f} | |",
    ]
    bodies = {f"Linkwise, {of_modes(m)}": beam(KANE, modes=m) for m in (1, 2, 3)}
    bodies["Linkwise, 2 modes, without second order"] = replace(
        bodies["Linkwise, 2 modes"], second=None
    )
    for name, body in bodies.items():
        tip = spin_up(body, t)
        if not np.isfinite(tip).all() or np.abs(tip).max() > 10.0:
            away = float(t[np.argmax(~(np.abs(tip) < 10.0))])
            lines.append(f"| {name} | more than the beam's length after {away:.1f} s | | |")
            continue
        after, far = np.abs(tip[t > T]).max(), np.abs(tip - other).max()
        lines.append(f"| {name} | {-tip.min():.4f} | {1e3 * after:.2f} | {1e3 * far:.2f} |")
    return lines


# -------------------------------------------------------------------------------- slider-crank


def slider_crank(modes: int, t: np.ndarray, step: float) -> np.ndarray:
    """The middle of the rod across the line of its ends, at the times t [m]."""
    rod = beam(ROD, modes=modes, lumps=9)
    b = lw.Builder("slider crank", gravity=(0, 0, 0))
    b.body("crank", "world", PIN, inertia=lw.SpatialInertia.zero(), drive=lw.Drive(armature=HEAVY))
    b = rod.add_to(b, "rod", "crank", PIN, inboard=(CRANK, 0, 0))
    slide = lw.hinges.Prismatic((1, 0, 0))
    b.body("slider", "world", slide, inertia=lw.SpatialInertia.point(SLIDER))
    mech = b.loop("wrist", "rod.tip", "slider", PIN).build()
    q, v = mech.neutral(), np.zeros(mech.nv)
    q[mech.q_slice("slider")] = CRANK + ROD["length"]
    v[mech.v_slice("crank")] = SPEED
    v[mech.v_slice("rod")] = -SPEED * (1.0 + CRANK / ROD["length"])
    run = lw.simulate(mech, q, v, duration=float(t[-1]) + 2 * step, step=step)
    rows = np.stack([run.at(float(x))[0] for x in t])
    shapes = rod.shape(rows[:, mech.q_slice("rod.modes")])
    return across(np.zeros((len(t), 2)), shapes[:, 4, :2], shapes[:, rod.tip, :2])


def across(start: np.ndarray, middle: np.ndarray, end: np.ndarray) -> np.ndarray:
    """How far points are to the left of lines."""
    way = (end - start) / np.linalg.norm(end - start, axis=1)[:, None]
    off = middle - start
    return way[:, 0] * off[:, 1] - way[:, 1] * off[:, 0]


def cranks(python: str) -> list[str]:
    """Bending of a connecting rod over two turns."""
    base = {"kind": "slider_crank", "beam": ROD, "crank": CRANK, "speed": SPEED, "slider": SLIDER}
    base |= {"duration": 0.08, "sample": 2e-4, "elements": 16, "step": 1e-5}
    one = exudyn(python, [base])["results"][0]
    t = np.array(one["t"])
    other = across(*(np.array(one["paths"][x]) for x in ("start", "middle", "tip")))
    lines = [
        "\n## A slider-crank with a flexible rod\n",
        "A steel rod of 0.3 m and 6 mm diameter, a crank of 0.15 m at 150 rad/s, a slider",
        "of half the",
        "rod's mass, from a straight rod, for 80 ms (1.9 turns). *Bending* is the distance",
        "of the middle",
        "of the rod from the line of its ends.\n",
        "| model | largest bending [mm] | difference from Exudyn [mm] |",
        "| --- | ---: | ---: |",
        f"| Exudyn, 16 elements, 0.01 ms | {1e3 * np.abs(other).max():.3f} | |",
    ]
    for modes, step in ((1, 1e-4), (2, 5e-5), (3, 2e-5)):
        bent = slider_crank(modes, t, step)
        far = 1e3 * float(np.abs(bent - other).max())
        name = f"Linkwise, {of_modes(modes)}, {1e3 * step:g} ms"
        lines.append(f"| {name} | {1e3 * np.abs(bent).max():.3f} | {far:.3f} |")
    return lines


def main() -> None:
    """Compare, print and write the page."""
    if "--exudyn" not in sys.argv[1:-1]:
        raise SystemExit(__doc__)
    python = sys.argv[sys.argv.index("--exudyn") + 1]
    version = exudyn(python, [])["version"]
    busy = load()
    lines = [*pendulums(python), *spinning(python), *cranks(python)]
    about = description("linkwise", "numpy").replace("\n\n", "\n")
    text = HEAD.format(version=version, machine=about, load=busy) + "\n".join(lines).lstrip()
    RESULTS.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
