"""Two arms carry a beam: a closed chain moves to a goal, with the least effort.

    python examples/two_arms_carry.py [figure.png]

Each arm has three joints and a motor at each. The left hand holds the beam, and a loop joins its
other end to the right hand, so that six motors move three degrees of freedom. `lw.optimize` holds
the loop in each step; the beam stays level, motors stay within their limits, and the beam reaches
its goal exactly. The same torques are then played to steps of the integrator "implicit".
"""

from __future__ import annotations

import sys

import numpy as np

import linkwise as lw
from linkwise.control import Bound, Cost

STEP, STEPS, LINK, BEAM, APART = 0.02, 60, 0.4, 0.5, 0.9  # [s], -, [m], [m], [m]
TILT, EFFORT = np.deg2rad(2.0), (60.0, 35.0, 15.0)  # [rad], [N m] of shoulder, elbow and wrist
MOVE = np.array([0.12, 0.0, 0.12])  # of the beam [m]


def arms() -> lw.Mechanism:
    """Two arms in the plane of x and z, and the beam of 5 kg between their hands."""
    build, pin = lw.Builder("two_arms"), lw.hinges.Pin((0, 1, 0))
    half = lw.Pose.translation((0, 0, LINK / 2))
    link = lw.SpatialInertia.solid_box(1.5, (0.05, 0.05, LINK)).moved(half)
    hand = lw.SpatialInertia.solid_box(0.5, (0.06, 0.06, 0.06))
    for side, x in (("left", -APART / 2), ("right", APART / 2)):
        parent, place = "world", (x, 0.0, 0.0)
        for name, inertia, effort in zip(
            ("upper", "lower", "hand"), (link, link, hand), EFFORT, strict=True
        ):
            build.body(
                f"{side}_{name}", parent, pin, inboard=place, inertia=inertia,
                drive=lw.Drive(effort=effort),
            )  # fmt: skip
            parent, place = f"{side}_{name}", (0.0, 0.0, LINK)
    beam = lw.SpatialInertia.solid_box(5.0, (BEAM, 0.08, 0.08))
    build.body("beam", "left_hand", lw.hinges.Locked(), inboard=(BEAM / 2, 0, 0), inertia=beam)
    build.node("end", "beam", (BEAM / 2, 0, 0))
    build.loop("grasp", "end", "right_hand", lw.hinges.Locked())
    return build.build()


def carry(mech: lw.Mechanism, start: np.ndarray) -> tuple[lw.Trajectory, np.ndarray]:
    """The motion, and the goal of the beam."""
    place, turn = lw.Task.position("beam"), lw.Task.orientation("beam")
    goal = lw.tasks.task_position(mech, start, place) + MOVE
    level = lw.tasks.task_position(mech, start, turn)
    motion = lw.optimize(
        mech,
        start,
        costs=[Cost.effort(weight=1e-3), Cost.velocity(weight=0.02, final=20.0)],
        bounds=[
            Bound.on_task(place, goal, [0, -1, 0], [0, 1, 0], when="final"),
            Bound.on_task(turn, level, [-1, -TILT, -1], [1, TILT, 1]),
        ],
        step=STEP,
        horizon=STEPS,
    )
    return motion, goal


def check(mech: lw.Mechanism, motion: lw.Trajectory, goal: np.ndarray) -> None:
    """Print and assert what the motion claims."""
    beam = lw.forward_kinematics(mech, motion.q, "beam")
    off = float(np.abs(beam.p[-1] - goal).max())
    tilt = float(np.abs(np.arcsin(beam.rot[:, 0, 2])).max())
    loop = float(np.abs(lw.loops.constraint_error(mech, motion.q)).max())
    most = np.abs(motion.tau).max(axis=0) / mech.effort_limit
    run = lw.rollout(
        mech, motion.q[0], tau=motion.tau, duration=STEP * STEPS, step=STEP, integrator="implicit"
    )
    apart = float(np.abs(run.q - motion.q).max())
    print(motion)
    print(f"beam off its goal by {off:.1e} m, tilted by up to {np.rad2deg(tilt):.2f} degrees")
    print(
        f"loop open by up to {loop:.1e} m; motors at up to {100 * most.max():.0f} % of their limits"
    )
    print(f"with the same torques, lw.rollout gives the same motion to {apart:.1e} rad")
    assert motion.status == 0 and off < 2e-5 and tilt < TILT + 2e-5 and loop < 1e-3
    assert most.max() <= 1.0 and np.abs(motion.v[-1]).max() < 0.05 and apart < 1e-4


def picture(mech: lw.Mechanism, motion: lw.Trajectory, file: str) -> None:
    """The arms in snapshots, and their torques."""
    import linkwise.plot as lp

    figure, (space, torque) = lp.panels(1, 2, size=(10.0, 4.4))
    colors = lp.LIGHT.colors
    for k in range(0, STEPS + 1, 12):
        shade = 0.15 + 0.85 * k / STEPS
        hands = []
        for side, color in zip(("left", "right"), colors[1:], strict=False):
            names = [f"{side}_{x}" for x in ("upper", "lower", "hand")]
            p = np.array([lw.forward_kinematics(mech, motion.q[k], x).p for x in names])
            space.plot(p[:, 0], p[:, 2], "o-", color=color, alpha=shade, lw=2, ms=4)
            hands.append(p[-1])
        space.plot(*np.array(hands)[:, [0, 2]].T, color=colors[0], alpha=shade, lw=5)
    space.set(aspect="equal", title="two arms lift a beam [m], later ones darker")
    for i, hinge in enumerate(mech.velocity_names):
        torque.step(motion.time[:-1], motion.tau[:, i], where="post", label=str(hinge))
    torque.set(xlabel="t [s]", title="torques [N m]")
    torque.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.savefig(file, dpi=110)


def main() -> None:
    """Carry the beam, check, and draw."""
    mech = arms()
    guess = [-0.8, 1.8, -1.0, 0.8, -1.8, 1.0]
    start = lw.loops.assemble(mech, guess).q
    motion, goal = carry(mech, start)
    check(mech, motion, goal)
    if len(sys.argv) > 1:
        picture(mech, motion, sys.argv[1])


if __name__ == "__main__":
    main()
