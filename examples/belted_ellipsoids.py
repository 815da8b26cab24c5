"""A redundant arm moves its elbow so that a blow meets less mass, with the hand in place.

    python examples/belted_ellipsoids.py [figure.png]

The hand of a seven-axis arm keeps its pose while the elbow swings round. In each posture the
effective mass along x, 1 / m = u* Λ_v⁻¹ u, determines how hard a blow from that side would be: the
hand accelerates by 1 / m per newton. The lightest and the heaviest posture are compared, by their
mass and by the effect of a unit force in forward dynamics.
"""

from __future__ import annotations

import sys

import numpy as np

import linkwise as lw

U = np.array([1.0, 0.0, 0.0])  # where the blow comes from
FIRST = np.array([0.3, 0.5, 0.0, 1.4, 0.0, -0.7, 0.0])
TURNS = np.linspace(-2.6, 2.6, 27)  # of the upper arm about itself [rad]


def postures(arm: lw.Mechanism) -> np.ndarray:
    """Joint positions with the hand in one pose, one for each turn of the upper arm that allows it.

    Each search begins where the last one ended, so that the elbow goes round without a jump.
    """
    pose = lw.forward_kinematics(arm, FIRST, "hand")
    roll = arm.coordinate("shoulder_roll")
    result = list[np.ndarray]()
    for turns in (TURNS[TURNS >= 0.0], -TURNS[TURNS > 0.0]):
        q = FIRST.copy()
        for turn in turns:
            begin = q.copy()
            begin[roll] = turn
            solution = lw.inverse_kinematics(
                arm, {"hand": pose}, begin, hold=["shoulder_roll"], restarts=0
            )
            if not solution.reached:
                break
            q = solution.q
            result.append(q)
    return np.array(sorted(result, key=lambda q: q[roll]))


def response(arm: lw.Mechanism, q: np.ndarray) -> float:
    """Acceleration of the hand along U due to a unit force along U, from rest, without gravity."""
    rest = np.zeros(arm.nv)
    force = {"hand": np.concatenate([np.zeros(3), U])}
    pushed = lw.forward_dynamics(arm, q, rest, rest, forces=force, forces_frame="world")
    row = U @ lw.jacobian(arm, q, "hand", frame="world")[3:]
    return float(row @ (pushed - lw.forward_dynamics(arm, q, rest, rest)))


def picture(arm: lw.Mechanism, chosen: dict[str, np.ndarray], file: str) -> None:
    """The two postures, each with its belted ellipsoid, at one scale."""
    import linkwise.plot as lp

    figure, axes = lp.panels(1, 2, dimension=3, size=(10.0, 5.0))
    for ax, (name, q), color in zip(axes, chosen.items(), lp.LIGHT.colors, strict=False):
        lp.belted_ellipsoid(arm, q, "hand", ax=ax, scale=0.015, color=color)
        ax.set(xlim=(-0.25, 0.85), ylim=(-0.45, 0.65), zlim=(0.0, 1.1), title=name)
    figure.savefig(file, dpi=120)


def main() -> None:
    """Compare the postures."""
    if "--help" in sys.argv or "-h" in sys.argv:
        print(__doc__)
        return
    arm = lw.models.seven_dof_arm()
    q = postures(arm)
    mass = np.asarray(lw.inertial.effective_mass(arm, q, "hand", U))
    light, heavy = q[np.argmin(mass)], q[np.argmax(mass)]
    print(f"{len(q)} postures, one pose of the hand")
    print(f"effective mass along x: {mass.min():.2f} kg to {mass.max():.2f} kg")
    print(lw.inertial.inertial_properties(arm, light, "hand"))
    for state, m in ((light, mass.min()), (heavy, mass.max())):
        assert np.isclose(1.0 / m, response(arm, state), rtol=1e-9)
    hands = lw.forward_kinematics(arm, q, "hand").p
    assert np.abs(hands - hands[0]).max() < 1e-5 and mass.max() > 3.0 * mass.min()
    if len(sys.argv) > 1:
        chosen = {
            f"{mass.min():.1f} kg along x": light,
            f"{mass.max():.1f} kg along x": heavy,
        }
        picture(arm, chosen, sys.argv[1])


if __name__ == "__main__":
    main()
