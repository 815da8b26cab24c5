"""Three PUMA arms carry a disc along a path while it turns, as one augmented object.

    python examples/three_pumas.py [figure.png]

Every four milliseconds the controller computes the acceleration of the disc and the force it needs
for disc and arms together, F = Λ_⊕ F* + μ_⊕ + p_⊕. It shares this force among the arms so that a
given tension of the virtual linkage between the hands squeezes the disc: 10 N, later 30 N. The
motion and the contact forces come from the closed chain.

A second run ignores the inertia of the arms: their weight is compensated, and the disc alone is
controlled. With a file name, and the extra `plot` installed, both are drawn. It takes about a
quarter of a minute.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

import linkwise as lw
from linkwise.spatial import rotation

ARMS, MASS = 3, 4.0  # [kg]
STEP, DURATION = 4e-3, 2.4  # [s]
PERIOD, RAMP = 1.6, 1.0  # [s]; the path begins smoothly
REACH, TURN = np.array([0.06, 0.05, -0.05]), np.deg2rad([3.0, 2.0, 15.0])  # [m], [rad]
FREQUENCY = 20.0  # of the error [rad/s]


def desired_pose(t: float) -> lw.Pose:
    """Desired pose of the disc relative to its start: a figure of eight that dips."""
    s = min(max(t, 0.0) / RAMP, 1.0)
    part = s**4 * (35.0 - 84.0 * s + 70.0 * s**2 - 20.0 * s**3)  # smooth to the third derivative
    a = 2.0 * np.pi * t / PERIOD
    way = REACH * [np.sin(a), np.sin(2.0 * a), 1.0 - np.cos(a)]
    turn = TURN * [np.sin(2.0 * a), 1.0 - np.cos(a), np.sin(a)]
    return lw.Pose.rotation(rotation.exp(part * turn), part * way)


def desired(start: lw.Pose, t: float, h: float = 1e-3) -> lw.Goal:
    """Pose, velocity and acceleration in the axes of the world, by central differences."""
    before, now, after = (desired_pose(t + d) for d in (-h, 0.0, h))
    ahead, back = (np.append(rotation.log(x.rot @ now.rot.T), x.p - now.p) for x in (after, before))
    pose = lw.Pose(now.rot @ start.rot, start.p + now.p)
    return lw.Goal(pose, (ahead - back) / (2.0 * h), (ahead + back) / h**2)


def tension(t: float) -> float:
    """Of every bar between two hands [N]."""
    return 10.0 + 20.0 * float(np.clip((t - 1.2) / 0.4, 0.0, 1.0))


@dataclass(frozen=True)
class Cell:
    """Arms, object, controller.

    Attributes:
        mech: Three PUMAs round a disc.
        grasp: Their rigid contacts.
        carry: The controller.
    """

    mech: lw.Mechanism
    grasp: lw.Grasp
    carry: lw.grasp.ObjectController

    @staticmethod
    def build(arms: int = ARMS) -> Cell:
        """Arms in a ring."""
        mech = lw.models.multi_arm(arms, arm="puma560", mass=MASS)
        grasp = lw.Grasp.of(mech, lw.grasp.Contact("rigid"))
        carry = lw.grasp.ObjectController(
            mech, FREQUENCY**2, 2.0 * FREQUENCY, split="virtual_linkage"
        )
        return Cell(mech, grasp, carry)

    @property
    def bars(self) -> tuple[str, ...]:
        """Names of the bars between the hands."""
        return self.grasp.virtual_linkage().names[: len(self.mech.loops) * 2 - 3]

    def torque(self, t: float, q: np.ndarray, v: np.ndarray, start: lw.Pose) -> np.ndarray:
        """Joint forces by the augmented object."""
        squeeze = dict.fromkeys(self.bars, tension(t))
        return self.carry(q, v, desired(start, t), internal=squeeze)

    def forgetful(self, t: float, q: np.ndarray, v: np.ndarray, start: lw.Pose) -> np.ndarray:
        """The contact forces that the disc needs, with only the weight of the arms compensated."""
        squeeze = dict.fromkeys(self.bars, tension(t))
        result = self.carry.explain(q, v, desired(start, t), internal=squeeze)
        forces = np.stack(list(result.contact_forces.values()))
        tau = np.zeros(self.mech.nv)
        arms = lw.grasp.multi_arm_parts(self.mech).arm_rows
        tau[arms] = self.grasp.effort(q).of(forces)
        return tau

    def move(
        self, *, forget: bool = False, duration: float = DURATION, step: float = STEP
    ) -> lw.Recording:
        """The motion of the closed chain under one of the two."""
        law, start = self.forgetful if forget else self.torque, self.carry.pose(self.mech.neutral())
        return lw.simulate(
            self.mech,
            self.mech.neutral(),
            np.zeros(self.mech.nv),
            controller=lambda t, q, v: law(t, q, v, start),
            control_step=step,
            duration=duration,
            step=step,
        )

    def errors(self, motion: lw.Recording) -> np.ndarray:
        """Error of the path (n, 6) [rad, m]."""
        start = self.carry.pose(self.mech.neutral())
        each = zip(motion.t, motion.q, strict=True)
        return np.stack([self.carry.error(q, desired(start, t).position) for t, q in each])

    def tensions(self, motion: lw.Recording) -> np.ndarray:
        """Tensions of the bars (n, bars) from the contact forces of the closed chain [N]."""
        forces = self.grasp.contact_forces(motion.q, motion.v, motion.tau)
        inside = self.grasp.virtual_linkage().split(forces)[1]
        return inside[:, : len(self.bars)]


def summary(name: str, error: np.ndarray) -> str:
    """The largest errors in words."""
    turn, way = (np.linalg.norm(x, axis=1).max() for x in (error[:, :3], error[:, 3:]))
    return f"{name}: off by {1e3 * way:.4f} mm and {np.degrees(turn):.5f}° at most"


def main() -> None:
    """Carry, report, and check tracking and internal forces."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("figure", nargs="?", help="where to draw it, like figure.png")
    figure: str | None = options.parse_args().figure
    cell = Cell.build()
    print(lw.grasp.augmented_object(cell.mech, cell.mech.neutral()), flush=True)
    motion, other = cell.move(), cell.move(forget=True)
    error, lost = cell.errors(motion), cell.errors(other)
    print(summary("augmented object", error))
    print(summary("arms ignored    ", lost))
    requested = np.array([tension(t) for t in motion.t])
    squeezed = cell.tensions(motion)
    print(f"tensions are off by {np.abs(squeezed - requested[:, None]).max():.2e} N at most")

    # Forces are held for 4 ms at a time, which causes the path error.
    assert np.abs(error).max() < 5e-4
    assert np.abs(lost).max() > 10.0 * np.abs(error).max()
    assert np.allclose(squeezed, requested[:, None], atol=1e-6)
    limit = cell.mech.effort_limit
    assert (np.abs(motion.tau)[:, np.isfinite(limit)] < limit[np.isfinite(limit)]).all()
    if figure is not None:
        plot(cell, motion, other, figure)


def plot(cell: Cell, motion: lw.Recording, other: lw.Recording, file: str) -> None:
    """The path from above, errors and tensions over time."""
    import matplotlib.pyplot as plt

    draw(cell, motion, other, plt.subplots(1, 3, figsize=(13, 4))[1])
    plt.tight_layout()
    plt.savefig(file)


def draw(
    cell: Cell,
    motion: lw.Recording,
    other: lw.Recording,
    panels: object,
    colors: tuple[str, ...] = ("C0", "C1", "C2", "C3"),
    ink: str = "0.1",
) -> None:
    """The three pictures, on three axes of Matplotlib."""
    above, off, squeeze = panels  # type: ignore[misc]
    start = cell.carry.pose(cell.mech.neutral())
    requested = np.stack([desired(start, t).position.p - start.p for t in motion.t])
    for run, name, color in (
        (motion, "augmented object", colors[1]),
        (other, "disc alone, arms ignored", colors[0]),
    ):
        way = cell.carry.pose(run.q).p - start.p
        above.plot(*1e3 * way[:, :2].T, color=color, lw=2.6 if run is motion else 1.4, label=name)
        error = 1e3 * np.linalg.norm(cell.errors(run)[:, 3:], axis=1)
        off.semilogy(run.t, np.maximum(error, 1e-7), color=color, lw=1.6, label=name)
    above.plot(*1e3 * requested[:, :2].T, color=ink, lw=0.9, ls="--", label="commanded")
    above.plot(0.0, 0.0, "o", color=ink, ms=4)
    above.set(xlabel="x [mm]", ylabel="y [mm]")
    above.set_aspect("equal", adjustable="datalim")
    off.set(xlabel="time [s]", ylabel="distance from the path [mm]", ylim=(1e-4, 1e3))
    off.legend(frameon=False, fontsize=9, loc="lower right")
    for name, value, color in zip(
        cell.bars, cell.tensions(other).T, (colors[0], colors[2], colors[3]), strict=True
    ):
        hands = name.replace("grasp_", "").replace("-", " and ")
        squeeze.plot(other.t, value, color=color, lw=1.0, label=f"arms ignored, hands {hands}")
    # The three lines of the augmented object coincide.
    squeeze.plot(motion.t, cell.tensions(motion).mean(axis=1), color=colors[1], lw=4.0,
                 label="augmented object, all three")  # fmt: skip
    force = [tension(t) for t in motion.t]
    squeeze.plot(motion.t, force, color=ink, lw=0.9, ls="--", label="commanded")
    squeeze.set(xlabel="time [s]", ylabel="tension between hands [N]")
    squeeze.set_ylim(top=squeeze.get_ylim()[1] + 75.0)  # room for the legend
    squeeze.legend(frameon=False, fontsize=8, loc="upper left")


if __name__ == "__main__":
    main()
