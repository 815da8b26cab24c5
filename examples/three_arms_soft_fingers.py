"""Three PUMA arms shake an object that they hold with soft fingers, until one of them slips.

    python examples/three_arms_soft_fingers.py [figure.png]

A disc of 2 kg is pressed between three fingertips. It is shaken along x with growing amplitude and
rolled to and fro, while the arms press with a constant squeeze. Contact forces result from the
motion; the simulation ends at the instant at which one of them leaves its friction cone, and names
the finger. With a file name, and the extra `plot` installed, the forces are drawn. It takes about
half a minute.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass

import numpy as np

import linkwise as lw
from linkwise.spatial import quaternion

CONTACT = lw.grasp.Contact("soft_finger", friction=0.6, torsion=0.012)
MASS, SQUEEZE = 2.0, 18.0  # [kg], [N]
SHAKE, ROLL, RATE = 0.30, 0.60, 2.0 * np.pi * 1.2  # [m/s³], [rad/s³], [rad/s]
ACROSS = r"$\sqrt{|f_t|^2 + (\mu\, m_n / \gamma)^2}$  [N]"  # load on the friction
STIFFNESS, DAMPING = 400.0, 40.0  # of the errors [1/s²], [1/s]


@dataclass(frozen=True)
class Cell:
    """Arms and object.

    Attributes:
        mech: Held by soft fingers.
        locked: The same held rigidly: its loops have a row for every direction.
        grasp: The contacts.
        free: H(0)* of all contacts (18, 6): the tips that are left free.
        share: Contact forces (6, 3, 6) of least norm for each unit of force on the object.
    """

    mech: lw.Mechanism
    locked: lw.Mechanism
    grasp: lw.Grasp
    free: np.ndarray
    share: np.ndarray

    @staticmethod
    def build() -> Cell:
        """Three arms in a ring."""
        mech = lw.models.multi_arm(3, arm="puma560", mass=MASS, grasp=CONTACT.hinge)
        locked = lw.models.multi_arm(3, arm="puma560", mass=MASS)
        grasp = lw.Grasp.of(mech, CONTACT)
        one = CONTACT.hinge.hinge_map(CONTACT.hinge.neutral()).T
        # Any forces with the right resultant, without their internal part.
        S = grasp.passed
        some = np.linalg.pinv(S @ grasp.map()) @ S
        share = grasp.internal_forces(some.reshape(6, 3, 6)).motion
        return Cell(mech, locked, grasp, np.kron(np.eye(3), one), share)


def desired(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Position and its two rates, roll angle and its two rates as one array, axis of both.

    x = c t² sin ωt / ω and ψ = d t² sin ωt / ω start smoothly and grow.
    """
    s, c = np.sin(RATE * t), np.cos(RATE * t)
    value = t * t * s / RATE
    rate = 2.0 * t * s / RATE + t * t * c
    bend = 2.0 * s / RATE + 4.0 * t * c - RATE * t * t * s
    e_x = np.array([1.0, 0.0, 0.0])
    roll = ROLL * np.array([value, rate, bend])
    return SHAKE * value * e_x, SHAKE * rate * e_x, SHAKE * bend * e_x, roll, e_x


def acceleration(cell: Cell, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """v̇ that moves the object along its path and keeps the fingers upright on it."""
    mech = cell.mech
    pose, place = mech.pose(q, "object"), mech.pose(mech.neutral(), "object")
    V = v[mech.v_slice("object")]
    p, p_dot, p_ddot, (angle, turn, turn_dot), e_x = desired(t)
    # Position in the world, attitude in the object's own axes.
    velocity = pose.rot @ V[3:]
    off = place.p + p - pose.p
    linear = p_ddot + DAMPING * (p_dot - velocity) + STIFFNESS * off
    goal = place.rot @ quaternion.to_matrix(quaternion.exp(angle * e_x))
    turned = quaternion.log(quaternion.from_matrix(pose.rot.T @ goal))
    angular = turn_dot * e_x + DAMPING * (turn * e_x - V[:3]) + STIFFNESS * turned
    # Body axes: the derivative of rot* ṗ is rot* p̈ - ω × (rot* ṗ).
    alpha = np.concatenate([angular, pose.rot.T @ linear - np.cross(V[:3], V[3:])])

    # Tips: every contact returns to the pose in which its frame coincides with the finger's.
    state = cell.grasp.contact_state(q, v)
    tips = list[np.ndarray]()
    for name in cell.grasp.names:
        tilt = quaternion.log(state.parameters[name])[:2]
        tips.append(-DAMPING * state.rates[name] - STIFFNESS * tilt)
    # α_b - T α_a + V_ab × T V_a = H* Ẇ at every contact gives the arms' accelerations.
    J, bias = (
        lw.loops.constraint_jacobian(cell.locked, q),
        lw.loops.constraint_bias(cell.locked, q, v),
    )
    parts = lw.grasp.multi_arm_parts(mech)
    arms, held = parts.arm_rows, parts.object_rows
    vdot = np.zeros(mech.nv)
    vdot[held] = alpha
    vdot[arms] = np.linalg.solve(
        J[:, arms], cell.free @ np.concatenate(tips) - bias - J[:, held] @ alpha
    )
    return vdot


def desired_forces(cell: Cell, q: np.ndarray, v: np.ndarray, vdot: np.ndarray) -> np.ndarray:
    """The least forces that move the object, plus the squeeze (3, 6)."""
    forces = np.tensordot(cell.grasp.needed_wrench(q, v, vdot), cell.share, axes=1)
    forces[:, 5] += SQUEEZE  # along the normals, which meet in the centre: it cancels
    return forces


def joint_forces(cell: Cell, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """τ = 𝓜 v̇ + C + J* f for the arms; nothing drives the object."""
    vdot = acceleration(cell, t, q, v)
    effort = cell.grasp.effort(q, v, vdot)
    tau = np.zeros(cell.mech.nv)
    tau[lw.grasp.multi_arm_parts(cell.mech).arm_rows] = effort.of(desired_forces(cell, q, v, vdot))
    return tau


class Progress:
    """Prints the progress of the motion to stderr every five seconds."""

    def __init__(self) -> None:
        self.next = time.monotonic() + 5.0

    def __call__(self, t: float) -> None:
        """The motion is at t [s]."""
        if time.monotonic() > self.next:
            self.next = time.monotonic() + 5.0
            print(f"... the motion is at {t:.2f} s", file=sys.stderr, flush=True)


def shake(cell: Cell, *, duration: float = 3.0, step: float = 1e-2) -> lw.Recording:
    """The motion, until a finger slips."""
    tell = Progress()

    def tau(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        tell(t)
        return joint_forces(cell, t, q, v)

    return lw.simulate(
        cell.mech,
        cell.mech.neutral(),
        np.zeros(cell.mech.nv),
        tau=tau,
        duration=duration,
        step=step,
        watch=cell.grasp.watch(),
    )


def main() -> None:
    """Shake, report, and check the instant against the commanded forces."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("figure", nargs="?", help="where to draw the forces, like figure.png")
    figure: str | None = options.parse_args().figure
    cell = Cell.build()
    print(cell.grasp.force_space(), flush=True)
    motion = shake(cell)
    print(motion)

    forces = cell.grasp.contact_forces(motion.q, motion.v, motion.tau)
    margins = cell.grasp.margins(forces)
    slip = motion.events[0]
    print(f"\n{slip.name!r} at {slip.t:.6f} s; contact forces there:")
    print(cell.grasp.margins(forces[-1]))

    # It held until then, and the fingers neither slid nor twisted.
    assert motion.stopped
    assert (margins.smallest[:-1] > 0.0).all()
    assert abs(margins.smallest[-1]) < 1e-5
    state = cell.grasp.contact_state(motion.q, motion.v)
    assert max(np.abs(x).max() for x in state.sliding.values()) < 1e-9
    assert max(motion.report.loop) < 1e-9

    # The forces computed by the dynamics are the commanded ones.
    t, q, v = motion.t[-1], motion.q[-1], motion.v[-1]
    expected = desired_forces(cell, q, v, acceleration(cell, t, q, v))
    assert np.allclose(forces[-1], expected, atol=1e-6)
    # No joint exceeds its limit.
    limit = cell.mech.effort_limit
    assert (np.abs(motion.tau)[:, np.isfinite(limit)] < limit[np.isfinite(limit)]).all()

    if figure is not None:
        plot(cell, motion, figure)


def plot(cell: Cell, motion: lw.Recording, file: str) -> None:
    """Margins over time, and the path of each contact force in its cone."""
    import matplotlib.pyplot as plt

    draw(cell, motion, plt.subplots(1, 2, figsize=(10, 4))[1])
    plt.tight_layout()
    plt.savefig(file)


def draw(cell: Cell, motion: lw.Recording, panels: object, colors: tuple[str, ...] = ()) -> None:
    """The two pictures, on two axes of Matplotlib."""
    forces = cell.grasp.contact_forces(motion.q, motion.v, motion.tau)
    margins = cell.grasp.margins(forces)
    over_time, in_cone = panels  # type: ignore[misc]
    for i, name in enumerate(cell.grasp.names):
        style = {"color": colors[i] if colors else f"C{i}"}
        push = forces[:, i, 5]
        across = CONTACT.friction * push - margins.of(name, "slip")
        over_time.plot(motion.t, margins.of(name, "slip"), label=name, lw=1.6, **style)
        in_cone.plot(push, across, lw=1.2, label=name, **style)
        in_cone.plot(push[-1], across[-1], "o", ms=4, **style)
    over_time.axhline(0.0, color="0.4", lw=0.8)
    over_time.axvline(motion.t[-1], color="0.4", lw=0.8, ls=":")
    over_time.set(xlabel="time [s]", ylabel="margin against slip [N]")
    most = float(forces[..., 5].max()) * 1.05
    in_cone.fill_between([0.0, most], [0.0, CONTACT.friction * most], color="0.85", lw=0)
    in_cone.set(xlabel="normal force [N]", ylabel=ACROSS, xlim=(0, most))
    in_cone.set_ylim(bottom=0.0)
    over_time.legend(frameon=False, fontsize=9)


if __name__ == "__main__":
    main()
