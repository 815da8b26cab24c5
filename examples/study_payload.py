"""The worst payload of a controller: 20,000 runs of an arm with uncertain payload and damping.

A seven-axis arm moves its hand by 12 cm under an operational-space law that does not know the load
in its hand. How far from the goal is the hand in the end, which load is too much, and which case is
the worst? `study.case(worst)` is that motion, for the viewer.

    python examples/study_payload.py [FOLDER] [CASES]
"""

import sys
import tempfile

import numpy as np
from scipy import stats

import linkwise as lw


def arm_study(cases: int) -> lw.Study:
    """Payload between 0 and 3 kg, viscous friction of each joint log-normal."""
    arm = lw.models.seven_dof_arm()
    q = np.array([0.0, 0.5, 0.0, 1.2, 0.0, 0.6, 0.0])
    hand = lw.Task.pose("hand")
    law = lw.control_law(arm, hand, kp=400.0, kv=40.0)
    goal = lw.tasks.task_position(arm, q, hand) @ lw.Pose.translation((0.05, 0.1, -0.05))
    place = np.array(goal.p)

    def error(batch: lw.study.Batch) -> np.ndarray:
        return np.linalg.norm(batch["position:hand"][:, -1] - place, axis=1)

    damping = {f"damping[{x}]": stats.lognorm(0.3, scale=0.5) for x in arm.velocity_names}
    work = lw.study.Rollouts(
        arm,
        q,
        duration=0.4,
        step=2e-3,
        controller=(law, goal),
        integrator="euler",
        record_every=200,
    )
    vary = {"payload:hand": (0.0, 3.0)} | damping
    return lw.Study(work, vary, keep={"error": error}, cases=cases, seed=1)


def main(folder: str | None = None, cases: int = 20_000) -> None:
    """Run, estimate, and look at the worst case."""
    study = arm_study(cases)
    results = study.run(folder or tempfile.mkdtemp(), progress=True)
    print("error, 95 % quantile [m]:", lw.study.quantile(results, "error", 0.95))
    print("P(error > 1.5 cm):", lw.study.probability(results, "error", above=0.015))
    worst = int(np.argmax(results["error"]))
    load = results["payload:hand"][worst]
    print(f"the worst of {cases} is case {worst}: {load:.2f} kg, {results['error'][worst]:.3f} m")
    recording = study.case(worst)
    assert recording.mech.total_mass > study.case(int(np.argmin(results["error"]))).mech.total_mass
    heavy = results["payload:hand"] > 2.0
    assert results["error"][heavy].mean() > results["error"][~heavy].mean()


if __name__ == "__main__":
    main(*sys.argv[1:2], *(int(x) for x in sys.argv[2:3]))
