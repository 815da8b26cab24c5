"""A quadruped jumps forward: it pushes off, flies, lands, and comes to rest.

    python examples/quadruped_jump.py [figure.png]

Three phases say when feet are on the ground; `lw.optimize` finds the motion and the torques. Seen
from the side, left and right legs move together: the trunk has three degrees of freedom, each pair
of legs two. While feet stand, the ground pushes within the cone of friction. In flight they stay
above it, and they land with an impact that takes their velocity.
"""

from __future__ import annotations

import sys

import numpy as np

import linkwise as lw
from linkwise.control import Cost, Foothold, Phase

STEP, FRICTION, WAY = 0.02, 0.6, 0.5  # [s], -, [m]
THIGH, SHANK, HIP, STANCE = 0.21, 0.21, 0.19, 0.8  # [m], [m], [m], [rad]
FEET = ("front_foot", "hind_foot")


def quadruped() -> lw.Mechanism:
    """A trunk of 6 kg that moves along x and z and pitches, and two pairs of legs."""
    build = lw.Builder("planar_quadruped")
    nothing = lw.SpatialInertia.solid_box(1e-3, (0.01, 0.01, 0.01))
    build.body("along", "world", lw.hinges.Prismatic((1, 0, 0)), inertia=nothing)
    build.body("up", "along", lw.hinges.Prismatic((0, 0, 1)), inertia=nothing)
    trunk = lw.SpatialInertia.solid_box(6.0, (0.42, 0.18, 0.11))
    build.body("trunk", "up", lw.hinges.Pin((0, 1, 0)), inertia=trunk)
    for pair, x in (("front", HIP), ("hind", -HIP)):
        for name, parent, inboard, mass, length, effort in (
            ("thigh", "trunk", (x, 0, 0), 1.8, THIGH, 36.0),
            ("shank", f"{pair}_thigh", (0, 0, -THIGH), 0.4, SHANK, 56.0),
        ):
            middle = lw.Pose.translation((0, 0, -length / 2))
            build.body(
                f"{pair}_{name}", parent, lw.hinges.Pin((0, 1, 0)), inboard=inboard,
                inertia=lw.SpatialInertia.solid_box(mass, (0.04, 0.04, length)).moved(middle),
                drive=lw.Drive(effort=effort, armature=5e-3, damping=0.1),
            )  # fmt: skip
        build.node(f"{pair}_foot", f"{pair}_shank", (0, 0, -SHANK))
    return build.build()


def standing(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """Joint forces (nv,) with which both pairs of feet carry half of the weight."""
    tau = lw.inverse_dynamics(mech, q, np.zeros(mech.nv), np.zeros(mech.nv))
    half = np.array([0.0, 0.0, 0.5 * 9.81 * mech.total_mass])
    for foot in FEET:
        turn = lw.forward_kinematics(mech, q, foot).rot
        tau = tau - lw.jacobian(mech, q, foot)[3:].T @ (turn.T @ half)
    return tau


def jump(mech: lw.Mechanism) -> lw.Trajectory:
    """0.4 s on the ground, 0.3 s in flight, 0.5 s on the ground.

    The guess is a trunk that flies as a stone does, and torques that carry the weight. It need not
    be a motion.
    """
    legs = [STANCE, -2 * STANCE]
    start = np.array([0.0, (THIGH + SHANK) * np.cos(STANCE), 0.0, *legs, *legs])
    t = STEP * np.arange(61)
    flight = np.clip(t - 0.4, 0.0, 0.3)
    guess = np.repeat(start[None], 61, axis=0)
    guess[:, 0] += WAY * flight / 0.3
    guess[:, 1] += 0.5 * 9.81 * flight * (0.3 - flight)
    tau = np.repeat(standing(mech, start)[None], 60, axis=0)
    tau[20:35] = 0.0
    feet = [Foothold(foot, friction=FRICTION) for foot in FEET]
    return lw.optimize(
        mech,
        start,
        phases=[Phase(20, feet), Phase(15), Phase(25, feet)],
        costs=[
            Cost.posture(start + WAY * np.eye(7)[0], weight=0.1, final=200.0),
            Cost.velocity(weight=0.01, final=10.0),
            Cost.effort(weight=1e-3),
        ],
        driven=[f"{pair}_{part}" for pair in ("front", "hind") for part in ("thigh", "shank")],
        guess={"q": guess, "v": np.gradient(guess, STEP, axis=0), "tau": tau},
        step=STEP,
        violation=1e-4,
    )


def paths(mech: lw.Mechanism, motion: lw.Trajectory) -> dict[str, np.ndarray]:
    """Positions of trunk and feet at all knots."""
    return {n: lw.forward_kinematics(mech, motion.q, n).p for n in ("trunk", *FEET)}


def check(mech: lw.Mechanism, motion: lw.Trajectory) -> None:
    """Print and assert what the motion claims."""
    at, weight = paths(mech, motion), 9.81 * mech.total_mass
    stands = np.r_[0:20, 35:60]
    force = np.stack([motion.forces[foot] for foot in FEET], axis=1)
    ratio = np.linalg.norm(force[stands, :, :2], axis=-1) - FRICTION * force[stands, :, 2]
    slip = max(
        np.ptp(at[foot][k : k + n], axis=0).max() for foot in FEET for k, n in ((0, 21), (35, 26))
    )
    lowest = min(float(at[foot][:, 2].min()) for foot in FEET)
    print(motion)
    print(f"trunk moves {at['trunk'][-1, 0]:.3f} m and rises to {at['trunk'][:, 2].max():.3f} m")
    print(f"largest force {np.abs(force).max() / weight:.1f} weights, "
          f"least normal force {force[stands, :, 2].min() / weight:.1e} weights")  # fmt: skip
    print(f"outside the cone by {ratio.max() / weight:.1e} weights; feet slip {1e3 * slip:.2f} mm, "
          f"lowest {1e3 * lowest:.2f} mm")  # fmt: skip
    assert motion.status == 0 and motion.violation <= 1e-4
    assert abs(at["trunk"][-1, 0] - WAY) < 0.02 and np.abs(motion.v[-1]).max() < 0.2
    assert (force[20:35] == 0.0).all() and force[stands, :, 2].min() > -2e-4 * weight
    assert ratio.max() < 2e-3 * weight and slip < 5e-3 and lowest > -2e-3


def picture(mech: lw.Mechanism, motion: lw.Trajectory, file: str) -> None:
    """The robot in snapshots, and the forces of the ground."""
    import linkwise.plot as lp

    figure, (space, forces) = lp.panels(2, 1, size=(9.0, 6.4))
    colors, chain = lp.LIGHT.colors, ("thigh", "shank", "foot")
    for k in range(0, len(motion.q), 6):
        shade = 0.2 + 0.8 * k / len(motion.q)
        hips = []
        for pair, color in zip(("front", "hind"), colors[1:], strict=False):
            points = np.array(
                [lw.forward_kinematics(mech, motion.q[k], f"{pair}_{x}").p for x in chain]
            )
            space.plot(points[:, 0], points[:, 2], color=color, alpha=shade, lw=1.8)
            hips.append(points[0])
        space.plot(*np.array(hips)[:, [0, 2]].T, color=colors[0], alpha=shade, lw=4)
    space.axhline(0.0, color="0.6", lw=1)
    space.set(aspect="equal", title="side view [m], later ones darker")
    for foot, color in zip(FEET, colors[1:], strict=False):
        forces.step(
            motion.time[:-1], motion.forces[foot][:, 2], where="post", color=color, label=foot
        )
    forces.set(xlabel="t [s]", title="normal forces of the ground [N]")
    forces.legend(frameon=False)
    figure.savefig(file, dpi=110)


def main() -> None:
    """Jump, check, and draw."""
    mech = quadruped()
    motion = jump(mech)
    check(mech, motion)
    if len(sys.argv) > 1:
        picture(mech, motion, sys.argv[1])


if __name__ == "__main__":
    main()
