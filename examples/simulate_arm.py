"""A seven-axis arm draws a circle in space, driven by one compiled control law at 1 kHz.

    python examples/simulate_arm.py [recording.npz]

The operational-space law, τ = J* (Λ (ẍ_d + k_v (ẋ_d − ẋ) + k_p (x_d − x)) + μ + p), is computed at
each tick and held for a millisecond. In between, one kernel integrates the arm. Holding costs a
delay of half a tick on average, which shows in the distance of the hand from the circle: with ten
times fewer ticks it is about ten times larger.
"""

from __future__ import annotations

import sys

import numpy as np

import linkwise as lw

RADIUS, TURN = 0.1, 3.0  # of the circle [m], and how long a turn takes [s]
HAND = lw.Task.position("hand")
START = np.array([0.2, 0.7, 0.1, -1.2, 0.0, 0.8, 0.0])


def circle(center: np.ndarray, t: float) -> lw.Goal:
    """Desired position, velocity and acceleration of the hand; it starts from rest."""
    # s goes from 0 to 2π in a turn, smoothly at the beginning: s = ω (t − sin(a t)/a), a = 2π/turn.
    a = 2.0 * np.pi / TURN
    s, ds, dds = a * t - np.sin(a * t), a * (1.0 - np.cos(a * t)), a * a * np.sin(a * t)
    c, z = np.cos(s), np.sin(s)
    return lw.Goal(
        center + RADIUS * np.array([0.0, 1.0 - c, z]),
        RADIUS * ds * np.array([0.0, z, c]),
        RADIUS * (dds * np.array([0.0, z, c]) + ds * ds * np.array([0.0, c, -z])),
    )


def draw(tick: float, duration: float = TURN) -> tuple[lw.Recording, float]:
    """One turn with a sampled controller; returns the recording and the largest error [m]."""
    arm = lw.models.seven_dof_arm()
    begin = lw.tasks.task_position(arm, START, HAND)
    controller = lw.TaskController(
        arm,
        lw.tasks.Servo(HAND, kp=400.0, kv=40.0),
        posture=lw.tasks.Posture(START, kp=20.0, kv=9.0),
    )
    rec = lw.simulate(
        arm,
        START,
        duration=duration,
        controller=(controller, lambda t: circle(begin, t)),
        control_step=tick,
        passive=False,  # the drives compensate for friction
        probes={
            "distance from the circle [mm]": lambda t, q, v, tau: (
                1e3
                * np.linalg.norm(lw.tasks.task_position(arm, q, HAND) - circle(begin, t).position)
            )
        },
    )
    return rec, float(rec["distance from the circle"].max())


def main() -> None:
    """Draw the circle, report, and compare with slower controllers."""
    rec, off = draw(1e-3)
    print(rec)
    slower = [(tick, draw(tick)[1]) for tick in (5e-3, 2e-2)]
    print("\n tick     largest distance from the circle")
    for tick, far in [(1e-3, off), *slower]:
        print(f"{1e3 * tick:3.0f} ms    {far:.3f} mm")
    assert rec.report.relative_drift < 1e-9
    assert off < 0.05 and 4.0 < slower[0][1] / off < 6.0  # in proportion to the tick
    if len(sys.argv) > 1:
        rec.save(sys.argv[1])


if __name__ == "__main__":
    main()
