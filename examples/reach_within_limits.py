"""A seven-axis arm reaches a pose around the limits of its joints.

    python examples/reach_within_limits.py [figure.png]

The cheapest motion to the goal would turn the first joint beyond its range. With the limits as
bounds, the arm uses its redundancy: it reaches the same place with another posture, within the
limits of positions, velocities and torques.
"""

from __future__ import annotations

import sys

import numpy as np

import linkwise as lw
from linkwise.control import Bound, Cost

STEP, STEPS = 0.02, 50  # [s], -
RANGE = np.array([0.3, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6])  # of each joint about its start [rad]
SPEED = 1.0  # [rad/s]
START = np.array([0.0, 0.5, 0.0, 1.2, 0.0, 0.6, 0.0])
OTHER = START + np.array([0.7, 0.3, -0.2, -0.3, 0.2, 0.1, 0.0])  # a posture at the goal


def reach(arm: lw.Mechanism, goal: np.ndarray, *, limited: bool) -> lw.Trajectory:
    """The motion, with or without limits."""
    place = lw.Task.position(arm.bodies[-1].name)
    bounds = [Bound.on_task(place, goal, when="final")]
    if limited:
        bounds += [
            Bound.on_position(START - RANGE, START + RANGE),
            Bound.on_velocity(-SPEED, SPEED),
        ]
    return lw.optimize(
        arm,
        START,
        costs=[Cost.effort(weight=1e-3), Cost.velocity(weight=0.1, final=20.0)],
        bounds=bounds,
        step=STEP,
        horizon=STEPS,
        limits=["effort"],
    )


def main() -> None:
    """Reach twice, check, and draw."""
    arm = lw.models.seven_dof_arm()
    place = lw.Task.position(arm.bodies[-1].name)
    goal = lw.tasks.task_position(arm, OTHER, place)
    free, kept = reach(arm, goal, limited=False), reach(arm, goal, limited=True)
    for name, motion in (("free", free), ("within limits", kept)):
        off = np.abs(lw.tasks.task_position(arm, motion.q[-1], place) - goal).max()
        turned, speed = np.abs(motion.q - START).max(), np.abs(motion.v).max()
        print(f"{name}: {motion}")
        print(f"  off by {off:.1e} m, joints turn {turned:.3f} rad, up to {speed:.2f} rad/s")
        assert motion.status == 0 and off < 2e-5
    assert (np.abs(free.q - START).max(axis=0) > RANGE + 0.05).any()
    assert (np.abs(kept.q - START) < RANGE + 2e-5).all() and np.abs(kept.v).max() < SPEED + 2e-5
    assert kept.cost > free.cost
    if len(sys.argv) > 1:
        picture(free, kept, sys.argv[1])


def picture(free: lw.Trajectory, kept: lw.Trajectory, file: str) -> None:
    """Joint angles of both motions, with the range of the first joint dotted."""
    import linkwise.plot as lp

    figure, panels = lp.panels(1, 2, size=(10.0, 4.0))
    for panel, motion, title in zip(panels, (free, kept), ("free", "within limits"), strict=False):
        for i, angle in enumerate((motion.q - START).T):
            panel.plot(motion.time, angle, lw=2.4 if i == 0 else 1.2, label=f"joint {i + 1}")
        for bound in (-RANGE[0], RANGE[0]):
            panel.axhline(bound, color="0.4", lw=0.8, ls=":")
        panel.set(
            title=f"joint angles, {title} [rad]",
            xlabel="t [s]",
            ylim=(-0.75, 0.75),
        )
    panels[0].legend(frameon=False, fontsize=8, ncols=2, loc="lower left")
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    main()
