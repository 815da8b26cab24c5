"""A UR-type arm passes through its wrist and elbow singularities, under three control laws.

    python examples/through_singularities.py [figure.png]

The hand follows two paths. On the first the wrist straightens (q5 passes zero) while the hand turns
and moves on; the arm starts 20 mrad off in every joint. On the second the hand goes out along a
line, 0.27 m farther than the arm reaches, and comes back: the elbow stretches (q3 goes to zero).
The laws differ in how they treat the lost direction:

    plain      τ = J* Λ (F* - γ) + ..., with the inverse as long as it exists;
    damped     the same with damping, which reduces every direction;
    strategy   the direction is faded out of the task, the arm is redundant in the others, and the
               joint motion that becomes free is controlled separately; near the singularity joints
               keep to their velocity limits.

The largest torque is compared with the motor limits, 150 and 28 N m.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import linkwise as lw

POSE = lw.Task.pose("flange")
SERVO = lw.tasks.Servo(POSE, kp=100.0, kv=20.0)
STEP = 4e-3  # of the controller [s]
LAWS = {
    "plain": {"singular": None},
    "damped": {"damping": 0.05},
    "strategy": {},  # the default: lw.tasks.SingularStrategy()
}


@dataclass(frozen=True)
class Path:
    """A path of the hand: the goal at each time, and the initial state of the arm."""

    name: str
    start: np.ndarray
    goal: Callable[[float], lw.Goal]
    duration: float


@dataclass(frozen=True)
class Run:
    """One law on one path.

    Attributes:
        t: Time [s].
        effort: Largest torque as a part of what the motor has, at each time.
        error: Distance of the hand from its goal [m], at each time.
        end: Distance at the end [m]; infinite if there was none.
    """

    t: np.ndarray
    effort: np.ndarray
    error: np.ndarray
    end: float


def through_the_wrist(arm: lw.Mechanism, duration: float = 1.2) -> Path:
    """The hand's motion when the joints go smoothly from one side of q5 = 0 to the other."""
    begin = np.array([0.3, -1.2, 1.4, -0.9, 0.6, 0.2])
    change = np.array([0.3, 0.0, 0.0, 0.0, -1.2, 0.0])

    def goal(t: float) -> lw.Goal:
        x = min(t / duration, 1.0)
        s, s_dot = x**3 * (10 - 15 * x + 6 * x**2), 30 * (x * (1 - x)) ** 2 / duration
        s_ddot = 60 * x * (1 - x) * (1 - 2 * x) / duration**2
        q, v = begin + s * change, s_dot * change
        J = lw.tasks.task_jacobian(arm, q, POSE)
        rush = J @ (s_ddot * change) + lw.tasks.task_bias(arm, q, v, POSE)
        return lw.Goal(lw.tasks.task_position(arm, q, POSE), J @ v, rush)

    start = begin + 0.02 * np.array([1, -1, 1, -1, 1, -1])
    return Path("wrist", start, goal, duration + 0.8)


def beyond_the_reach(arm: lw.Mechanism, duration: float = 2.0) -> Path:
    """Out along a line from the shoulder, farther than the arm reaches, and back."""
    start = np.array([0.3, -0.9, 0.9, -0.9, 1.0, 0.2])
    home = lw.tasks.task_position(arm, start, POSE)
    way = home.p - lw.tasks.task_position(arm, start, lw.Task.position("shoulder_link"))
    way = 0.35 * way / np.linalg.norm(way)

    def goal(t: float) -> lw.Goal:
        x = 2.0 * np.pi * min(t / duration, 1.0)
        rate = 2.0 * np.pi / duration
        place = lw.Pose.rotation(home.rot, home.p + 0.5 * (1.0 - np.cos(x)) * way)
        speed = 0.5 * rate * np.sin(x) * way
        rush = 0.5 * rate**2 * np.cos(x) * way * (t < duration)
        return lw.Goal(place, [0, 0, 0, *speed], [0, 0, 0, *rush])

    return Path("elbow", start, goal, duration + 0.4)


def driven(arm: lw.Mechanism, law: str, path: Path) -> Run:
    """The arm on a path under a law; if the motion diverges, the part before."""
    controller = lw.TaskController(arm, SERVO, **LAWS[law])
    rows = list[tuple[float, float, float]]()

    def torque(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        goal = path.goal(t)
        tau = controller(q, v, goal)
        off = lw.tasks.task_error(arm, q, POSE, goal.position)[3:]
        rows.append((t, np.abs(tau / arm.effort_limit).max(), np.linalg.norm(off)))
        return tau

    try:
        lw.simulate(
            arm, path.start, controller=torque, control_step=STEP, duration=path.duration, step=STEP
        )
        end = rows[-1][2]
    except lw.LinkwiseError:
        end = np.inf
    t, effort, error = np.array(rows).T
    return Run(t, effort, error, end)


def main(figure: str | None = None) -> dict[tuple[str, str], Run]:
    """Run both paths under all laws, print a table, and draw a figure if a file is named."""
    arm = lw.models.ur_arm()
    runs = dict[tuple[str, str], Run]()
    print(f"{'path':8}{'law':12}{'torque / largest':>18}{'worst error':>14}{'at the end':>14}")
    for path in (through_the_wrist(arm), beyond_the_reach(arm)):
        for law in LAWS:
            run = runs[path.name, law] = driven(arm, law, path)
            worst = f"{1e3 * run.error.max():.1f} mm" if np.isfinite(run.end) else "-"
            end = f"{1e3 * run.end:.2g} mm" if np.isfinite(run.end) else "out of bounds"
            print(f"{path.name:8}{law:12}{run.effort.max():18.3g}{worst:>14}{end:>14}")
    if figure is not None:
        draw(runs, figure)
    for path in ("wrist", "elbow"):
        assert runs[path, "strategy"].effort.max() < 1.0 and runs[path, "strategy"].end < 1e-3
        assert runs[path, "plain"].effort.max() > 100.0
    return runs


def draw(runs: dict[tuple[str, str], Run], figure: str) -> None:
    """Torques and errors over time."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    paper, ink, faint = "#fbfaf7", "#23303d", "#707b85"
    colors = {"plain": "#c8553d", "damped": "#8d6a9f", "strategy": "#2f6690"}
    sheet, panels = plt.subplots(2, 2, figsize=(9.5, 5.4), sharex="col", facecolor=paper)
    titles = {"wrist": "through the wrist singularity", "elbow": "out of reach, and back"}
    for column, path in enumerate(titles):
        above, below = panels[:, column]
        above.axhline(1.0, color=faint, lw=1.0, ls=":")
        for law, color in colors.items():
            run = runs[path, law]
            # Two laws nearly coincide on the left: one is a broad line below the other.
            look = {"color": color, "lw": 4.5 if law == "damped" else 1.4}
            look["alpha"] = 0.45 if law == "damped" else 1.0
            above.semilogy(run.t, run.effort, label=law, **look)
            below.semilogy(run.t, 1e3 * np.maximum(run.error, 1e-6), **look)
            if not np.isfinite(run.end):
                above.plot(
                    run.t[-1], min(run.effort[-1], 1e4), "x", color=color, ms=8, clip_on=False
                )
        above.set(ylim=(1e-2, 1e4))
        above.set_title(titles[path], color=ink, fontsize=11, loc="left")
        below.set(ylim=(1e-2, 1e3), xlabel="time [s]")
        for panel in (above, below):
            panel.set_facecolor(paper)
            panel.grid(True, color=faint, alpha=0.2)
            panel.spines[["top", "right"]].set_visible(False)
    panels[0, 0].set_ylabel("largest torque / motor's", color=ink)
    panels[1, 0].set_ylabel("distance from the goal [mm]", color=ink)
    panels[0, 1].legend(frameon=False, fontsize=9)
    sheet.tight_layout()
    sheet.savefig(figure, dpi=96, facecolor=paper, metadata={"Software": None})


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
