"""Inverse kinematics beside the loop a Pinocchio user writes: success and time on the same targets.

Run with `python benchmarks/inverse_kinematics.py`; writes benchmarks/results/inverse_kinematics.md.
"""

import time
from pathlib import Path

import machine
import numpy as np
import pinocchio as pin
import pinocchio_side as peer

import linkwise as lw

ROBOTS = {
    "panda (7), hand": (
        "panda.urdf",
        ("panda_finger_joint1", "panda_finger_joint2"),
        ("panda_link8",),
    ),
    "ur5 (6), flange": ("ur5_robot.urdf", (), ("ee_link",)),
    "talos_reduced (32), both hands": (
        *("talos_reduced.urdf", ()),
        ("gripper_left_base_link", "gripper_right_base_link"),
    ),
}
TARGETS, STEPS, RESTARTS, TOLERANCE = 300, 100, 30, 1e-6
SEED = 2026
"""Of the targets; the constants of our search were chosen on those of other seeds."""

DAMPING, STEP_LENGTH = (1e-6, 1e-3, 1e-2), (0.5, 1.0)
"""What the loop was tried with; the best for each robot is shown."""

RESULTS = Path(__file__).parent / "results" / "inverse_kinematics.md"
HEAD = """# Inverse kinematics

Written by `python benchmarks/inverse_kinematics.py`. {targets} targets for each robot: the poses
that its nodes have in random positions within the limits, so that all can be reached. Reached means
{tolerance:g} m and {tolerance:g} rad, within limits. *First start*: without restarts, from the
middle of the ranges; *all starts*: with up to {restarts} restarts from random positions. Times are
milliseconds per target with restarts, from Python, in sequence; *batch* is all of them
in one call.

*Loop* is what Pinocchio's documentation shows, in Python: log6 of the error, the Jacobian of the
frames, a step of damped least squares δ = J\\* (J J\\* + μ 1)⁻¹ e, at most {steps} of them,
coordinates clipped to their limits after each (not where limits are left out). μ and the fraction
of a step that is taken were chosen for each robot on a fifth of the targets, by success and then by
time, out of {tried}. The constants of our search are the
same for all robots; they were chosen by looking at some thirty variants, on targets of these and
other robots that are not among those measured here.

*Starts* and *steps* are means over the targets that were reached. After the first, ours start 16
side by side, and all of them count, and steps are those of the search that reached the target; the
loop's are all it made.

{machine}

Load average {load}. Times are CPU times, so that other load on the machine matters less.

| robot | limits | | first start | all starts | starts | steps | ms per target | median | \
batch, ms |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""


class Loop:
    """Damped least squares with Pinocchio."""

    def __init__(self, model: pin.Model, nodes: tuple[str, ...]) -> None:
        """For one robot and the frames that have targets."""
        self.model, self.data = model, model.createData()
        self.frames = [model.getFrameId(node) for node in nodes]

    def run(
        self, targets: list[pin.SE3], q: np.ndarray, damping: float, length: float, limits: bool
    ) -> tuple[bool, int]:
        """One search: whether it reached the targets, and in how many steps."""
        model, data, frames = self.model, self.data, self.frames
        unit = damping * np.eye(6 * len(frames))
        for step in range(STEPS + 1):
            pin.framesForwardKinematics(model, data, q)
            off = [data.oMf[f].actInv(there) for f, there in zip(frames, targets, strict=True)]
            e = np.concatenate([pin.log6(X).vector for X in off])
            if np.abs(e).max() < TOLERANCE:
                return True, step
            if step == STEPS:
                break
            pin.computeJointJacobians(model, data, q)
            J = np.concatenate(
                [
                    pin.Jlog6(X.inverse()) @ pin.getFrameJacobian(model, data, f, pin.LOCAL)
                    for f, X in zip(frames, off, strict=True)
                ]
            )
            v = J.T @ np.linalg.solve(J @ J.T + unit, e)
            q = pin.integrate(model, q, length * v)
            if limits:
                q = np.clip(q, model.lowerPositionLimit, model.upperPositionLimit)
        return False, STEPS


def loop_rows(
    model: pin.Model, mech: lw.Mechanism, nodes: tuple[str, ...], q: np.ndarray, limits: bool
) -> str:
    """The loop's row of the table, with the best of the settings."""
    loop, data = Loop(model, nodes), model.createData()
    layout = lw.convert.pinocchio_layout(mech, model)
    targets = list[list[pin.SE3]]()
    for row in q:
        pin.framesForwardKinematics(model, data, layout.q_to(row))
        targets.append([data.oMf[f].copy() for f in loop.frames])
        for node, there in zip(nodes, targets[-1], strict=True):
            assert np.allclose(there.homogeneous, mech.pose(row, node).matrix, atol=1e-12)
    begin = layout.q_to(middle(mech))

    def measured(damping: float, length: float, count: int) -> tuple[np.ndarray, ...]:
        """Starts (-1 where all failed), steps and milliseconds of the first `count` targets."""
        rows = list[tuple[float, ...]]()
        for i in range(count):
            rng = np.random.default_rng(i)
            drawn = [begin, *(layout.q_to(mech.random(rng)) for _ in range(RESTARTS))]
            at, starts, steps, result = time.process_time(), 0, 0, False
            while starts <= RESTARTS and not result:
                result, more = loop.run(targets[i], drawn[starts], damping, length, limits)
                starts, steps = starts + 1, steps + more
            spent = 1e3 * (time.process_time() - at)
            rows.append((starts if result else -1, steps, spent))
        starts, steps, times = np.array(rows).T
        return starts, steps, times

    def merit(setting: tuple[float, float]) -> tuple[float, float]:
        starts, _, times = measured(*setting, TARGETS // 5)
        return float((starts > 0).mean()), -float(times.mean())

    damping, length = max(((d, s) for d in DAMPING for s in STEP_LENGTH), key=merit)
    label = f"loop (μ = {damping:g}, {length:g})"
    return line(limits, label, *measured(damping, length, TARGETS), None)


def our_rows(mech: lw.Mechanism, nodes: tuple[str, ...], q: np.ndarray, limits: bool) -> str:
    """Our row of the table."""
    poses = lw.forward_kinematics(mech, q, nodes)
    requested = {node: poses[:, i] for i, node in enumerate(nodes)}
    options = {"limits": limits, "iterations": STEPS, "tolerance": TOLERANCE}
    begin = middle(mech)
    lw.inverse_kinematics(mech, {n: x[0] for n, x in requested.items()}, begin, **options)
    first = lw.inverse_kinematics(mech, requested, begin, restarts=0, **options).reached
    times, starts, steps = [], [], []
    for i in range(TARGETS):
        one = {node: pose[i] for node, pose in requested.items()}
        at = time.process_time()
        result = lw.inverse_kinematics(mech, one, begin, restarts=RESTARTS, seed=i, **options)
        times.append(1e3 * (time.process_time() - at))
        starts.append((1 if first[i] else int(result.starts)) if result.reached else -1)
        steps.append(int(result.iterations))
    at = time.process_time()
    lw.inverse_kinematics(mech, requested, begin, restarts=RESTARTS, **options)
    batch = 1e3 * (time.process_time() - at) / TARGETS
    return line(limits, "Linkwise", np.array(starts), np.array(steps), np.array(times), batch)


def line(
    limits: bool,
    label: str,
    starts: np.ndarray,
    steps: np.ndarray,
    times: np.ndarray,
    batch: float | None,
) -> str:
    """A row of the table, without the robot."""
    ok = starts > 0
    cells = ["yes" if limits else "no", label, f"{100 * np.mean(starts == 1):.1f} %"]
    cells += [f"{100 * ok.mean():.1f} %", f"{starts[ok].mean():.1f}", f"{steps[ok].mean():.0f}"]
    cells += [f"{times.mean():.2f}", f"{np.median(times):.2f}"]
    cells += ["" if batch is None else f"{batch:.3f}"]
    return " | ".join(cells)


def middle(mech: lw.Mechanism) -> np.ndarray:
    """The middle of the ranges."""
    ends = np.where(np.isfinite(mech.upper - mech.lower), mech.upper + mech.lower, 0.0)
    return 0.5 * ends


def main() -> None:
    """Measure and write the table."""
    rows = list[str]()
    for name, (file, locked, nodes) in ROBOTS.items():
        mech, model = peer.models(file, "fixed", locked)
        rng = np.random.default_rng(SEED)
        q = np.stack([mech.random(rng) for _ in range(TARGETS)])
        for limits in (True, False):
            for row in (our_rows(mech, nodes, q, limits), loop_rows(model, mech, nodes, q, limits)):
                rows.append(f"| {name} | {row} |")
                print(rows[-1], flush=True)
    head = HEAD.format(
        targets=TARGETS,
        tolerance=TOLERANCE,
        restarts=RESTARTS,
        steps=STEPS,
        tried=f"μ = {', '.join(map(str, DAMPING))} and {', '.join(map(str, STEP_LENGTH))}",
        machine=machine.description("linkwise", "numpy", "llvmlite", "pin"),
        load=machine.load(),
    )
    RESULTS.write_text(head + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
