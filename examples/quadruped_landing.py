"""A quadruped drops from 25 cm and lands on compliant ground.

    python examples/quadruped_landing.py [recording.npz]

Springs and dampers hold its twelve joints, computed 500 times per second and held in between. Each
foot may touch a compliant ground with friction. The instants of touching and leaving are located to
a nanosecond, and no time step contains one, so that the energy budget closes: the energy lost is
the work of the ground and the motors.
"""

from __future__ import annotations

import sys

import numpy as np

import linkwise as lw

HEIGHT = 0.25  # initial height of the feet above the ground [m]
TICK = 2e-3  # sampling time of the controller [s]
FEET = ("front_left_foot", "front_right_foot", "hind_left_foot", "hind_right_foot")
GROUND = lw.tasks.CompliantSurface(
    (0, 0, 0), (0, 0, 1), stiffness=1e4, damping=100.0, friction=0.7, slip_speed=0.1
)


def standing(robot: lw.Mechanism) -> np.ndarray:
    """q with the lowest foot at the initial height."""
    q = robot.neutral()
    lowest = min(float(lw.forward_kinematics(robot, q, foot).p[2]) for foot in FEET)
    q[robot.q_slice("floating_base")][6] += HEIGHT - lowest
    return q


def hold(robot: lw.Mechanism, posture: np.ndarray):
    """τ = k_p (posture − q) − k_v v at the legs, nothing at the base."""
    legs = slice(6, robot.nv)

    def controller(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        tau = np.zeros(robot.nv)
        tau[legs] = 200.0 * (posture[7:] - q[7:]) - 6.0 * v[legs]
        return tau

    return controller


def drop(duration: float = 1.5) -> lw.Recording:
    """The fall, the landing, and the stand."""
    robot = lw.models.quadruped()
    q = standing(robot)
    return lw.simulate(
        robot,
        q,
        duration=duration,
        step=2e-4,
        controller=hold(robot, q),
        control_step=TICK,
        contacts={foot: (foot, GROUND) for foot in FEET},
        probes={"height of the base [m]": lambda t, q, v, tau: q[6]},
    )


def main() -> None:
    """Drop it and report."""
    rec = drop()
    print(rec)
    landed = next(event for event in rec.events if event.kind == "contact")
    # The legs are held still in the fall: feet touch when a falling stone would.
    assert abs(landed.t - np.sqrt(2.0 * HEIGHT / 9.81)) < 1e-8
    press = sum(rec[f"contact.{foot}.force"][:, 2] for foot in FEET)
    weight = 9.81 * rec.mech.total_mass
    print(f"\nlargest force of the ground {press.max():.0f} N, {press.max() / weight:.1f} weights")
    print(f"at the end it carries {press[-1]:.2f} N of {weight:.2f} N")
    assert abs(press[-1] - weight) < 0.03 * weight  # it still swings a little
    assert rec.report.relative_drift < 1e-4
    if len(sys.argv) > 1:
        rec.save(sys.argv[1])


if __name__ == "__main__":
    main()
