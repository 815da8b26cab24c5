"""A seven-axis arm under model predictive control holds a point while it is pushed.

    python examples/predictive_arm.py [figure.png] [--view]

At 1 kHz the controller plans the next 0.3 s anew: one kernel moves the last plan on, takes the
measured state and makes one iteration of differential dynamic programming. Half-way the goal moves;
two pushes hit the arm. The script measures how much of its millisecond each tick takes.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import linkwise as lw
from linkwise.control import Cost, RecedingHorizon

START = np.array([0.0, 0.5, 0.0, 1.2, 0.0, 0.6, 0.0])  # [rad]
PUSHES = ((0.5, 0.06), (1.4, 0.06))  # when and how long [s]
PUSH = np.array([25.0, 25.0, 15.0, 15.0, 5.0, 5.0, 2.0])  # [N m]
DURATION, TICK = 1.8, 1e-3  # [s]


def pushed() -> tuple[lw.Recording, np.ndarray, np.ndarray]:
    """The motion, the distance of the hand to its goal [m], and the time of each tick [s]."""
    arm = lw.models.seven_dof_arm()
    hand = lw.Task.position(arm.bodies[-1].name)
    goals: list[np.ndarray] = [lw.tasks.task_position(arm, START + x, hand) for x in (0.25, -0.2)]
    predict = RecedingHorizon(
        arm,
        costs=[
            Cost.of_task(hand, goals[0], weight=500.0, final=500.0),
            Cost.posture(START, weight=0.05),
            Cost.velocity(weight=1.0, final=1.0),
            Cost.effort(lw.gravity_force(arm, START), weight=1e-3),
        ],
        step=0.01,
        horizon=30,
    )
    spent = list[float]()

    def controller(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        if t >= 0.9:
            predict.set_goal(0, goals[1])
        begun = time.process_time()
        tau = predict(t, q, v)
        spent.append(time.process_time() - begun)
        hit = any(begin <= t < begin + length for begin, length in PUSHES)
        return tau + PUSH if hit else tau

    run = lw.simulate(
        arm, START, np.zeros(7), controller=controller, duration=DURATION,
        control_step=TICK,
    )  # fmt: skip
    where = lw.tasks.task_position(arm, run.q, hand)
    t = run.t
    far = np.linalg.norm(where - np.where(t[:, None] < 0.9, goals[0], goals[1]), axis=1)
    return run, far, np.array(spent[1:])  # the first makes a plan from nothing


def picture(run: lw.Recording, far: np.ndarray, spent: np.ndarray, file: str) -> None:
    """The distance of the hand to its goal over time, and how long ticks take."""
    import linkwise.plot as lp

    figure, (place, clock) = lp.panels(1, 2, size=(11.0, 4.0))
    colors = lp.LIGHT.colors
    place.semilogy(run.t, 1e3 * far, color=colors[0], lw=1.8)
    for begin, length in PUSHES:
        place.axvspan(begin, begin + length, color=colors[1], alpha=0.3, lw=0)
        place.text(begin + 0.5 * length, 900.0, "push", fontsize=9, ha="center")
    place.axvline(0.9, color="0.4", lw=0.8, ls=":")
    place.text(0.9, 900.0, "new goal", fontsize=9, ha="center")
    place.set(xlabel="t [s]", ylim=(0.5, 1500.0), title="distance of the hand to its goal [mm]")
    clock.plot(1e3 * np.sort(spent), np.linspace(0.0, 100.0, len(spent)), color=colors[2], lw=1.8)
    clock.axvline(1e3 * TICK, color="0.4", lw=0.8, ls=":")
    clock.text(0.98e3 * TICK, 50.0, "allowed", fontsize=9, rotation=90, ha="right", va="center")
    clock.set(
        xlabel="processor time of a tick [ms]",
        xlim=(0.0, 1.1e3 * TICK),
        title="share of ticks that take less [%]",
    )
    figure.savefig(file, dpi=100)


def main(view: bool = False, file: str | None = None) -> tuple[float, float]:
    """Simulate, and report the distance to the goal before the first push and at the end [m]."""
    run, far, spent = pushed()
    t = run.t
    before, end = float(far[np.searchsorted(t, 0.5) - 1]), float(far[-1])
    worst = max(float(far[(t > b) & (t < b + 0.3)].max()) for b, _ in PUSHES)
    half, most = 1e3 * np.percentile(spent, [50, 99])
    print(
        f"{1e3 * before:.1f} mm from the goal before the first push, up to {1e3 * worst:.0f} mm "
        f"after a push, {1e3 * end:.1f} mm in the end; a tick takes {half:.2f} ms of processor "
        f"time, 99 % of them less than {most:.2f} ms: "
        f"{'it fits' if most < 1e3 * TICK else 'it does not fit'} {1e3 * TICK:g} ms"
    )
    if file is not None:
        picture(run, far, spent, file)
    if view:
        lw.view(run)
    return before, end


if __name__ == "__main__":
    files = [word for word in sys.argv[1:] if word != "--view"]
    main("--view" in sys.argv, files[0] if files else None)
