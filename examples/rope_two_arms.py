"""Two arms hold a rope of a thousand links by its ends, let it sag and swing it.

    python examples/rope_two_arms.py [page.html] [figure.png]

The rope is an elastic rod (`lw.models.rod`): 1000 links with springs and dampers for bending, twist
and stretch, 4000 degrees of freedom. It grows from the hand of the first arm, and a loop holds its
end in the hand of the second one. Servos of the arms follow joint angles from inverse kinematics.
Implicit steps of 2.5 ms are far longer than the fastest vibrations of a link (0.1 ms).

The arms come together, so that the rope sags. Between the bends at the hands it hangs near a
catenary; its bending stiffness keeps it some millimetres away. Then both hands go round in small
circles, and the rope follows. With the extra `viewer` installed the motion is written as a
page; with the extra `plot` a figure is drawn. The motion takes about half a minute.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np

import linkwise as lw

LINKS, LENGTH, HEIGHT = 1000, 1.5, 0.7  # [m]; the arms stand above the floor
STEP, TICK, DURATION = 2.5e-3, 0.02, 5.0  # [s]
NEAR, TOGETHER, SWING = (
    0.7,
    1.6,
    2.6,
)  # distance of the hands [m], when it is reached, when they swing
CIRCLE, RATE = 0.08, 9.0  # of the hands [m], [rad/s]
STIFFNESS, DAMPING = 5e3, 150.0  # of the servos [N m/rad], [N m s/rad]
ELBOW_UP = np.array([0.0, -1.4, 2.0, -0.6, 1.57, 0.0])


def cell(links: int = LINKS) -> tuple[lw.Mechanism, np.ndarray]:
    """The mechanism, and q with the rope straight between the hands."""
    arm = lw.models.ur_arm()
    hand = arm.pose(ELBOW_UP, "flange")
    turned = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    along = lw.Pose.rotation(hand.rot.T @ turned)  # the rope leaves the hand along y of the world
    armed = arm.with_node("grip", arm.node("flange").body, arm.node("flange").pose @ along)
    rope = lw.models.rod(
        links, length=LENGTH, radius=0.004, density=1100.0, youngs_modulus=1e7, damping=0.01
    )
    # The second arm is the first one, moved along y by the length of the rope.
    places = lw.Builder("rope")
    places.node("left", "world", lw.Pose.translation((0.0, 0.0, HEIGHT)))
    places.node("right", "world", lw.Pose.translation((0.0, LENGTH, HEIGHT)))
    mech = places.build().mount(armed, at="left", prefix="left_")
    mech = mech.mount(armed, at="right", prefix="right_").mount(
        rope, at="left_grip", prefix="rope_"
    )
    held = lw.Loop("held", "rope_tip", "right_grip", lw.hinges.Spherical())
    mech = dataclasses.replace(mech, loops=(held,), actuators=servos(mech))
    q = mech.neutral()
    for prefix in ("left_", "right_"):
        for hinge, angle in zip(arm.hinge_index, ELBOW_UP, strict=True):
            q[mech.q_slice(prefix + hinge)] = angle
    return mech, q


def servos(mech: lw.Mechanism) -> tuple[lw.Actuator, ...]:
    """A position servo at each joint of the arms."""
    joints = [name for name in mech.hinge_index if not name.startswith("rope_")]
    law = {"gain": (STIFFNESS, 0.0, 0.0), "bias": (0.0, -STIFFNESS, -DAMPING)}
    return tuple(lw.Actuator(name, ((name, 1.0),), **law) for name in joints)


def smooth(s: float) -> float:
    """From 0 to 1 and at rest at both ends."""
    s = min(max(s, 0.0), 1.0)
    return s**3 * (10.0 - 15.0 * s + 6.0 * s**2)


def hand_path(t: float) -> np.ndarray:
    """Where the first hand is, from its start, along x, y and z [m]; the other one mirrors y."""
    closer = 0.5 * (LENGTH - NEAR) * smooth(t / TOGETHER)
    size = CIRCLE * smooth((t - SWING) / 1.0)
    angle = RATE * max(t - SWING, 0.0)
    return np.array([size * np.sin(angle), closer, size * (np.cos(angle) - 1.0)])


def commands() -> np.ndarray:
    """Joint angles of both arms at each tick (k, 12), by inverse kinematics."""
    arm, rows = lw.models.ur_arm(), list[np.ndarray]()
    hand, last = arm.pose(ELBOW_UP, "flange"), [ELBOW_UP, ELBOW_UP]
    for tick in range(round(DURATION / TICK)):
        path = hand_path((tick + 1) * TICK)
        for side, mirror in enumerate((1.0, -1.0)):
            goal = lw.Pose(hand.rot, hand.p + path * (1.0, mirror, 1.0))
            last[side] = lw.inverse_kinematics(arm, {"flange": goal}, last[side]).q
        rows.append(np.concatenate(last))
    return np.array(rows)


def move(mech: lw.Mechanism, q: np.ndarray, duration: float = DURATION) -> lw.Recording:
    """The motion."""
    table = commands()
    return lw.simulate(
        mech, q, duration=duration, step=STEP, integrator="implicit", controls=table,
        control_step=TICK, record_every=8, contacts=(),
    )  # fmt: skip


def shape(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """The rope in the world (links + 1, 3) [m]."""
    joints = [x.name for x in mech.bodies if x.name.startswith("rope_")]
    points = mech.poses(q).p[[mech.body_index[name] for name in joints]]
    return np.concatenate([points, mech.pose(q, "rope_tip").p[None]])


def catenary(points: np.ndarray) -> np.ndarray:
    """Heights [m] of an inextensible cable through the ends of some points, as long as they are.

    The hands clamp the rope, so that its ends bend: only the part between them hangs freely.
    """
    from scipy.optimize import brentq

    y, z = points[:, 1], points[:, 2]
    span, rise = y[-1] - y[0], z[-1] - z[0]
    length = float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())
    flat = np.sqrt(length**2 - rise**2)
    a = brentq(lambda a: 2.0 * a * np.sinh(0.5 * span / a) - flat, 0.01, 100.0)
    middle = 0.5 * (y[0] + y[-1]) - a * np.arctanh(rise / length)
    return z[0] + a * (np.cosh((y - middle) / a) - np.cosh((y[0] - middle) / a))


def freely(points: np.ndarray) -> np.ndarray:
    """The middle half of the rope."""
    return points[len(points) // 4 : -(len(points) // 4)]


def draw(mech: lw.Mechanism, rec: lw.Recording, path: Path) -> None:
    """The rope hanging beside the catenary, and swinging."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 4.0), width_ratios=(2, 1))
    for t in (0.0, 0.6, 1.2, SWING):
        points = shape(mech, rec.q[int(np.argmin(np.abs(rec.t - t)))])
        left.plot(points[:, 1], points[:, 2], lw=2.0, label=f"{t:.1f} s")
    middle = freely(points)
    left.plot(middle[:, 1], catenary(middle), "k--", lw=1.0, label="catenary")
    left.set(title="Let down", xlabel="y [m]", ylabel="z [m]", aspect="equal")
    for t in np.arange(SWING + 1.2, DURATION, 0.1):
        points = shape(mech, rec.q[int(np.argmin(np.abs(rec.t - t)))])
        right.plot(points[:, 0], points[:, 2], lw=1.5, alpha=0.2 + 0.7 * (t - SWING) / 2.5)
    right.set(title="Swung, seen along y", xlabel="x [m]", ylabel="z [m]", aspect="equal")
    left.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def main(paths: list[str]) -> None:
    """Move, report, and write page and figure."""
    mech, q = cell()
    rec = move(mech, q)
    print(rec.report)
    hanging = freely(shape(mech, rec.q[int(np.argmin(np.abs(rec.t - SWING)))]))
    print(
        f"hanging: {1e3 * np.abs(hanging[:, 2] - catenary(hanging)).max():.1f} mm from a catenary"
    )
    apart = np.abs(lw.loops.constraint_error(mech, rec.q)).max()
    print(f"the end of the rope and the hand that holds it: at most {1e3 * apart:.3f} mm apart")
    for path in sorted(map(Path, paths), key=lambda path: path.suffix == ".html"):
        if path.suffix == ".html":
            lw.viewer.export_html(rec, path, title="A rope of 1000 links", fps=10.0)
        else:
            draw(mech, rec, path)


if __name__ == "__main__":
    main(sys.argv[1:])
