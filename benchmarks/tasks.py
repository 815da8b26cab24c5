"""Rank-aware quantities, controllers and held objects: one warm call each, from Python.

Run with `python benchmarks/tasks.py`; writes benchmarks/results/tasks.md. The two-level hierarchy
is compared with NumPy on top of Pinocchio, which computes the same joint forces.
"""

from collections.abc import Callable
from pathlib import Path

import chain
import machine
import numpy as np
import pinocchio as pin
import pinocchio_side as peer

import linkwise as lw

Array = np.ndarray
Call = Callable[[int], object]

STATES, ROUNDS = 16, 15
ALLOWED = 1e-8
RESULTS = Path(__file__).parent / "results" / "tasks.md"
HEAD = """# Tasks and held objects

Written by `make bench`. Microseconds for one call from Python, cycling through {states} states,
float64. Ranks are determined in each state.

{machine}

Load average {load}.

## Quantities and controllers of one arm

`seven_dof_arm`. The goals are 2 µs for the effective mass and 20 µs for all others.

| | one call |
| --- | ---: |
"""
HIERARCHY = """
## Two levels beside Pinocchio

Position and orientation of the hand of panda (7) as two levels, τ from state and goals. The peer is
crba, frame Jacobians, their classical accelerations and non-linear effects of Pinocchio, and
weighted inverses and null spaces in NumPy, without looking at ranks. *Difference* is relative.

| | one call | NumPy and Pinocchio | ratio | difference |
| --- | ---: | ---: | ---: | ---: |
"""
HELD = """
## Arms that hold an object

Goals: 20 µs for each.

| | arms | one call |
| --- | --- | ---: |
"""


def main() -> None:
    """Measure and write the tables."""
    text = HEAD.format(
        states=STATES,
        machine=machine.description("linkwise", "numpy", "llvmlite", "pin", "example-robot-data"),
        load=machine.load(),
    )
    for name, call in of_one_arm().items():
        text += logged(f"| {name} | {measured(call):.2f} |")
    text += HIERARCHY + logged(hierarchy_row())
    text += HELD
    for name, arms, call in of_held_objects():
        text += logged(f"| {name} | {arms} | {measured(call):.1f} |")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(text)


def logged(line: str) -> str:
    """A line of a table, printed too."""
    print(line, flush=True)
    return line + "\n"


def measured(call: Call) -> float:
    """Microseconds of one call."""
    return 1e6 * chain.best(lambda: [call(i) for i in range(STATES)], ROUNDS) / STATES


def of_one_arm() -> dict[str, Call]:
    """Calls of a state's number, by name."""
    arm, rng = lw.models.seven_dof_arm(), np.random.default_rng(0)
    q = [arm.random(rng) for _ in range(STATES)]
    v, up = list(rng.standard_normal((STATES, 7))), np.array([0.0, 0.0, 1.0])
    pose, place, turn = (
        kind("hand") for kind in (lw.Task.pose, lw.Task.position, lw.Task.orientation)
    )
    poses = [lw.tasks.task_position(arm, x, pose) for x in q[1:] + q[:1]]
    levels = [lw.tasks.Servo(place, 100.0, 20.0), lw.tasks.Servo(turn, 100.0, 20.0)]
    plain = lw.TaskController(arm, levels)
    full = lw.TaskController(
        arm,
        levels,
        lw.tasks.Posture(arm.neutral(), 20.0, 5.0),
        limits=lw.tasks.JointLimits(0.3, 0.01),
    )
    force = lw.tasks.MotionForceController(
        arm, pose, lw.tasks.Selection.along_normal(up), kp=100.0, kv=20.0,
        servo=lw.tasks.ForceServo(kf=0.1, kv=30.0, ki=0.4),
    )  # fmt: skip
    contact = np.array([0.0, 0.0, 0.0, 0.3, -0.2, 9.0])

    def ticked(controller: lw.TaskController) -> Call:
        return lambda i: controller(q[i], v[i], [poses[i].p, poses[i].rot])

    return {
        "effective_mass": lambda i: lw.inertial.effective_mass(arm, q[i], "hand", up),
        "inertial_properties": lambda i: lw.inertial.inertial_properties(arm, q[i], "hand"),
        "operational_space": lambda i: lw.operational_space(arm, q[i], "hand"),
        "task_space": lambda i: lw.tasks.task_space(arm, q[i], pose),
        "task_dynamics": lambda i: lw.tasks.task_dynamics(arm, q[i], v[i], pose),
        "two levels": ticked(plain),
        "two levels, posture and limits": ticked(full),
        "motion and force": lambda i: force.torque(
            q[i], v[i], goal=poses[i], force=10.0, contact=contact
        ),
    }


def hierarchy_row() -> str:
    """Two levels in both, which must agree."""
    hand, file = "panda_link8", "panda.urdf"
    mech, model = peer.models(file, "fixed", ("panda_finger_joint1", "panda_finger_joint2"))
    layout, data, frame = (
        lw.convert.pinocchio_layout(mech, model),
        model.createData(),
        model.getFrameId(hand),
    )
    rng, (kp, kv) = np.random.default_rng(0), (100.0, 20.0)
    q = [mech.random(rng) for _ in range(STATES)]
    v = list(rng.standard_normal((STATES, mech.nv)))
    theirs = [(layout.q_to(x), layout.v_to(x, u)) for x, u in zip(q, v, strict=True)]
    goals = [lw.forward_kinematics(mech, x, hand) for x in q[1:] + q[:1]]
    tasks = lw.Task.position(hand), lw.Task.orientation(hand)
    # Directions are not faded out: the peer does not look at singular values.
    run = lw.TaskController(mech, [lw.tasks.Servo(x, kp, kv) for x in tasks], singular=None)

    def by_pinocchio(i: int) -> Array:
        (x, u), goal = theirs[i], goals[i]
        pin.computeAllTerms(model, data, x, u)
        pin.updateFramePlacement(model, data, frame)
        M = np.triu(data.M) + np.triu(data.M, 1).T
        J = pin.getFrameJacobian(model, data, frame, pin.LOCAL_WORLD_ALIGNED)
        pin.forwardKinematics(model, data, x, u, np.zeros(model.nv))
        ahead = pin.getFrameClassicalAcceleration(model, data, frame, pin.LOCAL_WORLD_ALIGNED)
        R, p = data.oMf[frame].rotation, data.oMf[frame].translation
        speed, inverse = J @ u, np.linalg.inv(M)
        errors = goal.p - p, R @ pin.log3(R.T @ goal.rot)
        vdot, N = np.zeros(model.nv), np.eye(model.nv)
        for rows, e, bias in zip(
            (slice(0, 3), slice(3, 6)), errors, (ahead.linear, ahead.angular), strict=True
        ):
            J_k = J[rows] @ N
            back = inverse @ J_k.T @ np.linalg.inv(J_k @ inverse @ J_k.T)
            aim = kp * e - kv * speed[rows] - bias - J[rows] @ vdot
            vdot, N = vdot + N @ back @ aim, N - N @ back @ J_k
        return M @ vdot + data.nle

    def ours(i: int) -> Array:
        return run(q[i], v[i], [goals[i].p, goals[i].rot])

    worst = 0.0
    for i in range(STATES):
        expected = layout.force_from(q[i], by_pinocchio(i))
        worst = max(worst, float(np.abs(ours(i) - expected).max() / np.abs(expected).max()))
    if not worst < ALLOWED:
        raise SystemExit(f"joint forces differ by {worst:.1e}: nothing was measured")
    one, other = measured(ours), measured(by_pinocchio)
    times = f"{one:.2f} | {other:.1f} | {other / one:.1f}"
    return f"| position, then orientation | {times} | {worst:.0e} |"


def of_held_objects() -> list[tuple[str, str, Call]]:
    """Names, arms and calls of a state's number."""
    rows = list[tuple[str, str, Call]]()
    for name, mech in (
        ("two of seven axes", lw.models.dual_arm()),
        ("three PUMAs", lw.models.multi_arm(3, arm="puma560", grasp=lw.hinges.SoftFinger())),
    ):
        rng, start = np.random.default_rng(0), mech.neutral()
        q = [
            lw.loops.project_position(mech, mech.integrate(start, 0.05 * u)).q
            for u in rng.standard_normal((STATES, mech.nv))
        ]
        v = [lw.loops.project_velocity(mech, x, rng.standard_normal(mech.nv)) for x in q]
        tau = list(rng.standard_normal((STATES, mech.nv)))
        tip = mech.bodies[-1].name

        def methods(method: str | None, m=mech, q=q, v=v, tau=tau) -> Call:
            more = {} if method is None else {"method": method}
            return lambda i: lw.forward_dynamics(m, q[i], v[i], tau[i], **more)

        rows.append(("forward_dynamics", name, methods(None)))
        rows += [(x, name, methods(x)) for x in ("RCCFD1", "RCCFD2", "RCCFD3")]
        rows += [
            ("constraint_error", name, lambda i, m=mech, q=q: lw.loops.constraint_error(m, q[i])),
            (
                "project_velocity",
                name,
                lambda i, m=mech, q=q, v=v: lw.loops.project_velocity(m, q[i], v[i]),
            ),
            (
                "operational_space",
                name,
                lambda i, m=mech, q=q, tip=tip: lw.operational_space(m, q[i], tip),
            ),
        ]
        vdot = [lw.forward_dynamics(mech, x, u, t) for x, u, t in zip(q, v, tau, strict=True)]
        task, first = lw.Task.pose(tip), [mech.bodies[0].hinge_name]
        up = np.array([0.0, 0.0, 1.0])
        rows += [
            (
                "task_space",
                name,
                lambda i, m=mech, q=q, task=task: lw.tasks.task_space(m, q[i], task),
            ),
            (
                "task_dynamics",
                name,
                lambda i, m=mech, q=q, v=v, task=task: lw.tasks.task_dynamics(m, q[i], v[i], task),
            ),
            (
                "effective_mass",
                name,
                lambda i, m=mech, q=q, tip=tip, up=up: lw.inertial.effective_mass(m, q[i], tip, up),
            ),
            (
                "hybrid_dynamics",
                name,
                lambda i, m=mech, q=q, v=v, tau=tau, vdot=vdot, first=first: lw.hybrid_dynamics(
                    m, q[i], v[i], tau=tau[i], vdot=vdot[i], prescribed=first
                ),
            ),
        ]
        if name.startswith("two"):
            rows.append(
                (
                    "augmented_object",
                    name,
                    lambda i, m=mech, q=q, v=v: lw.grasp.augmented_object(m, q[i], v[i]),
                )
            )
    return rows


if __name__ == "__main__":
    main()
