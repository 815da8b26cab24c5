"""A PUMA 560 approaches a compliant wall and slides along it while it holds a force.

    python examples/puma_on_wall.py

The wall is oblique to all axes, with a stiffness of 20 kN/m, some damping, and friction.
`lw.tasks.MotionForceController` controls the tip of a tool: its force along the normal of the wall,
its path along the wall, and its orientation. There are three phases:

    approach    towards the wall at 0.1 m/s
    impact      damping only, along the normal
    contact     20 N, later 30 N, while the tip follows a circle

The first run has an exact model and sensor, in continuous time: force and path are decoupled. The
second is sampled a thousand times per second, with a tool of 0.4 kg at the flange that the
controller does not know; an integral corrects the force. `docs/figures/force_control.py` draws
both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import linkwise as lw

ARM = lw.models.puma560().with_node("tip", "link_6", (0.0, 0.0, 0.16))
NORMAL = np.array([-0.8, -0.25, 0.45]) / np.linalg.norm([-0.8, -0.25, 0.45])
TOUCHED = np.array([0.5, -0.1, 0.1])  # where the path begins, on the wall [m]
SIDE = np.cross(NORMAL, [0.0, 0.0, 1.0]) / np.linalg.norm(np.cross(NORMAL, [0.0, 0.0, 1.0]))
ACROSS = np.array([SIDE, np.cross(-NORMAL, SIDE)])  # two directions in the wall
ROT = np.stack([*ACROSS, -NORMAL], axis=1)  # the tool points into the wall
RADIUS, BEGIN, END = 0.08, 0.4, 2.0  # of the circle [m], and when [s]
STEP_AT, LOW, HIGH = 1.2, 20.0, 30.0  # the force [N], and when it changes [s]

WALL = lw.tasks.CompliantSurface(
    tuple(TOUCHED), tuple(NORMAL), 2e4, 50.0, friction=0.2, slip_speed=5e-3
)
TASK = lw.Task.pose("tip")
PHASES = lw.tasks.ContactTransition(
    approach_speed=0.1, impact_damping=100.0, settle_speed=5e-3, settle_time=5e-3, touch_force=0.5
)
LOAD = lw.SpatialInertia.from_com(0.4, (0.0, 0.0, 0.05), (3e-4, 3e-4, 1e-4))  # kg, m, kg m²


def reference(t: float) -> tuple[lw.Pose, np.ndarray, np.ndarray]:
    """Pose, velocity and acceleration of the tip on the wall: once round a circle, smoothly."""
    s = np.clip((t - BEGIN) / (END - BEGIN), 0.0, 1.0)
    turn = 2.0 * np.pi / (END - BEGIN) ** np.arange(3)  # angle, rate, acceleration of it
    a = turn[0] * s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    rate = turn[1] * 30.0 * s**2 * (1.0 - s) ** 2
    faster = turn[2] * 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s)
    inward, ahead = np.array([np.cos(a), np.sin(a)]), np.array([-np.sin(a), np.cos(a)])
    place = TOUCHED + RADIUS * (inward - [1.0, 0.0]) @ ACROSS
    velocity = RADIUS * rate * ahead @ ACROSS
    acceleration = RADIUS * (faster * ahead - rate**2 * inward) @ ACROSS
    none = np.zeros(3)
    return (
        lw.Pose.rotation(ROT, place),
        np.append(none, velocity),
        np.append(none, acceleration),
    )


def pressed(t: float) -> float:
    """The desired force [N]."""
    return LOW if t < STEP_AT else HIGH


def controller(ki: float = 0.0) -> lw.tasks.MotionForceController:
    """Motion at 20 rad/s, force at 40 rad/s, both critically damped."""
    fast = lw.tasks.ForceServo.for_surface(WALL, 40.0)
    return lw.tasks.MotionForceController(
        ARM,
        TASK,
        lw.tasks.Selection.along_normal(WALL),
        kp=400.0,
        kv=40.0,
        servo=lw.tasks.ForceServo(fast.kf, fast.kv, ki),
        transition=PHASES,
    )


def start() -> np.ndarray:
    """Joint positions with the tip 2 cm in front of the wall."""
    goal = lw.Pose.rotation(ROT, TOUCHED + 0.02 * NORMAL)
    near = [-0.6, -1.4, 3.6, 1.6, 0.8, -0.6]
    result = lw.inverse_kinematics(ARM, {"tip": goal}, q0=near, tolerance=1e-11)
    assert result.reached
    return result.q


@dataclass(frozen=True)
class Slide:
    """A run: times (k,), states, joint forces, and the times at which phases began."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    phases: tuple[tuple[str, float], ...]

    @property
    def force(self) -> np.ndarray:
        """Along the normal (k,) [N]."""
        return WALL.touch(ARM, self.q, self.v, "tip").pressure

    @property
    def tip(self) -> np.ndarray:
        """Position of the tip (k, 3) [m]."""
        return lw.forward_kinematics(ARM, self.q, "tip").p

    @property
    def off_path(self) -> np.ndarray:
        """Distance from the path across the normal (k,) [m]."""
        off = self.tip - np.array([reference(t)[0].p for t in self.t])
        return np.linalg.norm(off - np.outer(off @ NORMAL, NORMAL), axis=1)

    @property
    def turned(self) -> np.ndarray:
        """Angle between the tool and its orientation on the path (k,) [rad]."""
        axis = lw.forward_kinematics(ARM, self.q, "tip").rot
        cosine = 0.5 * (np.trace(np.swapaxes(axis, 1, 2) @ ROT, axis1=1, axis2=2) - 1.0)
        return np.arccos(np.clip(cosine, -1.0, 1.0))

    def steady(self, first: float, last: float) -> float:
        """The largest error of the force between two times [N]."""
        inside = (self.t >= first) & (self.t <= last)
        desired = np.array([pressed(t) for t in self.t[inside]])
        return float(np.abs(self.force[inside] - desired).max())

    def began(self, phase: str) -> float:
        """When a phase began first [s]."""
        return next(t for name, t in self.phases if name == phase)


def slide(duration: float = 2.2, *, step: float = 4e-3) -> Slide:
    """With an exact model, in continuous time; phases change at their exact instants."""
    law = controller()
    q, v, t, phase = start(), np.zeros(6), 0.0, "approach"
    parts, phases = [], [("approach", 0.0)]
    while t < duration - 1e-9:
        free = phase == "approach"

        def tau(t: float, q: np.ndarray, v: np.ndarray, phase: str = phase) -> np.ndarray:
            pose, velocity, acceleration = reference(t)
            sensed = None if phase == "approach" else law.sense(q, v, WALL)
            return law.torque(
                q,
                v,
                goal=pose,
                velocity=velocity,
                acceleration=acceleration,
                force=pressed(t),
                contact=sensed,
                phase=phase,
            )

        # The desired force has a step; no time step goes across it.
        until = STEP_AT if t < STEP_AT - 1e-9 < duration else duration
        run = lw.simulate(
            ARM,
            q,
            v,
            tau=tau,
            forces=None if free else WALL.forces(ARM, "tip"),
            start=t,
            duration=min(until, duration) - t,
            step=step / 4.0 if phase == "impact" else step,
            watch=PHASES.watch(phase, ARM, "tip", WALL),
        )
        parts.append(run)
        q, v, t = run.q[-1], run.v[-1], float(run.t[-1])
        if run.stopped:
            phase = run.events[-1].name
            phases.append((phase, t))
    t, q, v, tau = (np.concatenate([getattr(run, x) for run in parts]) for x in "t q v tau".split())
    return Slide(t, q, v, tau, tuple(phases))


def slide_in_steps(duration: float = 2.2, *, step: float = 1e-3, ki: float = 0.0) -> Slide:
    """As a sampled controller does it: sampled torques, phases from the sensor, unknown load."""
    law, real = controller(ki), ARM.with_payload("flange", LOAD)
    q, v, phase, integral = start(), np.zeros(6), lw.tasks.ContactPhase(), np.zeros(6)
    records, phases = [], [("approach", 0.0)]
    acting = WALL.forces(real, "tip")
    for k in range(round(duration / step)):
        t = k * step
        touch = WALL.touch(ARM, q, v, "tip")
        phase = PHASES.after(phase, t, float(touch.pressure), float(touch.rate))
        if phase.name != phases[-1][0]:
            phases.append((phase.name, t))
        pose, velocity, acceleration = reference(t)
        command = law.command(
            q,
            v,
            goal=pose,
            velocity=velocity,
            acceleration=acceleration,
            force=pressed(t),
            contact=law.sense(q, v, WALL),
            integral=integral,
            phase=phase,
        )
        integral = command.integral_after(step) if phase.name == "contact" else np.zeros(6)
        records.append((t, q, v, command.tau))
        run = lw.simulate(
            real, q, v, tau=command.tau, forces=acting, duration=step, step=step / 2.0
        )
        q, v = run.q[-1], run.v[-1]
    t, q, v, tau = (np.array([record[i] for record in records]) for i in range(4))
    return Slide(t, q, v, tau, tuple(phases))


def main() -> None:
    """Slide, report and check."""
    exact = slide()
    message = ", ".join(f"{name} from {1e3 * t:.1f} ms" for name, t in exact.phases)
    print(f"exact model: {message}")
    contact = exact.t >= exact.began("impact")
    print(f"  never lost: force at least {exact.force[contact].min():.2f} N after the impact")
    before, after = exact.steady(STEP_AT - 0.4, STEP_AT - 1e-6), exact.steady(1.8, 2.2)
    print(f"  force: off by {before:.1e} N at 20 N, by {after:.1e} N at 30 N, while it slides")
    print(f"  path: off by {exact.off_path.max():.1e} m and {exact.turned.max():.1e} rad at most")
    assert [name for name, _ in exact.phases] == ["approach", "impact", "contact"]
    assert before < 1e-3 and after < 1e-3
    assert exact.off_path.max() < 1e-6 and exact.turned.max() < 1e-6
    result = {}
    for ki in (0.0, 1.0):
        result[ki] = run = slide_in_steps(ki=ki)
        rest = run.steady(2.1, 2.2)
        print(f"1 kHz, 0.4 kg unknown, ki = {ki:g}: {', '.join(name for name, _ in run.phases)}")
        print(f"  force off by {rest:.2g} N at rest, path by {1e3 * run.off_path.max():.2f} mm")
    assert result[1.0].steady(2.1, 2.2) < 0.05 * result[0.0].steady(2.1, 2.2)


if __name__ == "__main__":
    main()
