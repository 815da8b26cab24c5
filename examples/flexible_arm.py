"""A two-link flexible arm: a controller that excites its bending, and one that damps it.

Both laws bring the arm to the same posture. The first is a stiff spring and damper at each motor;
the second, from `lw.lqr`, reads the modes too. Pages show the two motions with the deformation, and
the first two natural vibrations in slow motion:

    python examples/flexible_arm.py            # writes four pages next to where you are
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import linkwise as lw

LINK = {"area": 3e-4, "bending": 2.5e-9, "young": 70e9, "density": 2700.0}
PLANE = ("y", "rz")
GOAL = np.array([0.0, 0, 0, 0.6, 0, 0])
START = GOAL + np.array([-0.5, 0, 0, 0.5, 0, 0])
MOTORS = [0, 3]


def flexible_arm() -> lw.Mechanism:
    """Two aluminium links with two bending modes each, and a load of half a kilogram."""
    upper = lw.flexible.beam(1.0, **LINK, modes=2, damping=0.005, directions=PLANE)
    load = lw.SpatialInertia.point(0.5)
    lower = lw.flexible.beam(0.8, **LINK, modes=2, damping=0.005, directions=PLANE, tip=load)
    build = lw.Builder("flexible arm", gravity=(0, 0, 0))
    pin, motor = lw.hinges.Pin((0, 0, 1)), lw.Drive(armature=0.2)
    build = upper.add_to(build, "upper", "world", pin, drive=motor)
    return lower.add_to(build, "lower", "upper.tip", pin, drive=motor).build()


def controllers(arm: lw.Mechanism) -> dict:
    """A law of the motors alone, and one that reads the modes."""

    def stiff(t, q, v):
        tau = np.zeros(arm.nv)
        tau[MOTORS] = -300.0 * (q - GOAL)[MOTORS] - 5.0 * v[MOTORS]
        return tau

    weights = [50.0, 500.0, 50.0, 50.0, 500.0, 50.0, 1.0, 20.0, 1.0, 1.0, 20.0, 1.0]
    damped = lw.lqr(arm, GOAL, Q=weights, R=0.02, driven=["upper", "lower"])
    return {"stiff": stiff, "damped": (damped.law, GOAL)}


def main(folder: Path | None = None) -> dict[str, float]:
    """Move the arm with both laws; how far its lower link still bends after 2 s [m]."""
    arm = flexible_arm()
    natural = lw.simulation.vibrations(arm, GOAL)
    print("natural frequencies [Hz]:", ", ".join(f"{x.frequency:.1f}" for x in natural))
    left = dict[str, float]()
    for name, law in controllers(arm).items():
        run = lw.simulate(arm, START, duration=3.0, controller=law, control_step=1e-3)
        left[name] = float(np.abs(run.q[run.t > 2.0][:, 4]).max())
        print(f"{name}: after 2 s the lower link bends by up to {1e3 * left[name]:.2f} mm")
        if folder is not None:
            print("wrote", lw.viewer.export_html(run, folder / f"flexible_arm_{name}.html"))
    if folder is not None:
        for i, shape in enumerate(natural[:2], start=1):
            title = f"vibration {i}: {shape.frequency:.1f} Hz"
            file = folder / f"flexible_arm_mode_{i}.html"
            print("wrote", lw.viewer.export_html(shape, file, title=title))
    return left


if __name__ == "__main__":
    bends = main(Path() if "--check" not in sys.argv else None)
    assert bends["stiff"] > 0.005 and bends["damped"] < 0.0005
