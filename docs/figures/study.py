"""Draws docs/_static/study.png: the error of a hand over its payload, and bands over time."""

import tempfile
from pathlib import Path

import numpy as np
from scipy import stats

import linkwise as lw

HERE = Path(__file__).parents[1] / "_static"


def main() -> None:
    """Run a small study and draw it."""
    arm = lw.models.seven_dof_arm()
    q = np.array([0.0, 0.5, 0.0, 1.2, 0.0, 0.6, 0.0])
    hand = lw.Task.position("hand")
    law = lw.control_law(arm, hand, kp=400.0, kv=40.0)
    goal = lw.tasks.task_position(arm, q, hand) + np.array([0.05, 0.1, -0.05])
    work = lw.study.Rollouts(
        arm, q, duration=0.4, step=2e-3, controller=(law, goal), integrator="euler", record_every=4
    )

    def error(batch: lw.study.Batch) -> np.ndarray:
        return 1e3 * np.linalg.norm(batch["position:hand"][:, -1] - goal, axis=1)

    study = lw.Study(
        work,
        {"payload:hand": (0.0, 3.0), "damping": stats.lognorm(0.3, scale=0.5)},
        keep={"error [mm]": error, "hand": "trajectory:position:hand"},
        cases=3000,
    )
    results = study.run(tempfile.mkdtemp(), progress=False)
    figure, axes = lw.plot.panels(1, 2, size=(9.0, 3.6))
    lw.plot.study_scatter(results, "payload:hand", "error [mm]", ax=axes[0])
    axes[0].set_xlabel("payload [kg]")
    lw.plot.study_band(results, "hand", entry="z", ax=axes[1])
    axes[1].set_ylabel("height of the hand [m]")
    figure.savefig(HERE / "study.png", dpi=110)


if __name__ == "__main__":
    main()
