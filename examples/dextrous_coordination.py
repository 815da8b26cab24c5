"""A light arm on a heavy one: how far and how fast it moves, with and without coordination.

    python examples/dextrous_coordination.py

The tip of `planar_macro_mini` moves by 0.58 m, several times the reach of its mini. Plain task
control moves it with the least kinetic energy, that is with the mini, until the mini is at its
stops. With dextrous coordination (Khatib 1995, section 5.3) the macro follows, the mini stays near
the middle of its range, and the tip moves as before.

Then the tip follows a sine of 10 mm at increasing frequencies, within the torques of the motors:
the macro with its mini locked falls behind where both together still follow easily.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import linkwise as lw

TASK = lw.Task.position("tip", "xy")
SPLIT = "mini_shoulder"
MINI = ("mini_shoulder", "mini_elbow")
WAY, TIME = np.array([-0.5, 0.3, 0.0]), 2.0  # [m], [s]
SIZE, ALONG = 0.01, np.array([0.6, 0.8, 0.0])  # of the sine [m], its direction
STOP, BRAKE = 300.0, 1.0  # of the stops of the mini [N m/rad], [N m s/rad]
STEP = 2e-3  # of the controller [s]
SERVO = lw.tasks.Servo(TASK, kp=900.0, kv=60.0)

Path = Callable[[float], lw.Goal]


def journey(home: np.ndarray) -> Path:
    """Away in 2 s, beginning and ending at rest."""

    def goal(t: float) -> lw.Goal:
        u = min(t / TIME, 1.0)
        part = 10 * u**3 - 15 * u**4 + 6 * u**5
        speed = (30 * u**2 - 60 * u**3 + 30 * u**4) / TIME
        bend = (60 * u - 180 * u**2 + 120 * u**3) / TIME**2
        return lw.Goal(home + WAY * part, WAY[:2] * speed, WAY[:2] * bend)

    return goal


def sine(home: np.ndarray, frequency: float) -> Path:
    """A sine at `frequency` [Hz], which starts at rest and grows for one period."""
    w = 2.0 * np.pi * frequency

    def place(t: float) -> np.ndarray:
        s = min(t * frequency, 1.0)
        return home + ALONG * SIZE * np.sin(w * t) * s**3 * (10 - 15 * s + 6 * s**2)

    def goal(t: float, h: float = 1e-5) -> lw.Goal:
        before, now, after = place(t - h), place(t), place(t + h)
        return lw.Goal(now, (after - before)[:2] / (2 * h), (after - 2 * now + before)[:2] / h**2)

    return goal


def led(
    arm: lw.Mechanism,
    controller: lw.TaskController,
    path: Path,
    duration: float,
    *,
    stops: bool = False,
    strength: bool = False,
    step: float = STEP,
) -> tuple[lw.Recording, np.ndarray]:
    """The motion under a controller, and the distance of the tip from its goal [m].

    With `stops` the ends of the mini's ranges push back, which the controller does not know; with
    `strength` the torques are no larger than the motors can make.
    """
    q_at = [arm.coordinate(name) for name in MINI] if stops else []

    def tau(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        result = controller(q, v, path(t))
        if strength:
            result = np.clip(result, -arm.effort_limit, arm.effort_limit)
        for i in q_at:  # every hinge of this arm has one coordinate
            beyond = q[i] - np.clip(q[i], arm.lower[i], arm.upper[i])
            result[i] -= STOP * beyond + BRAKE * v[i] * (beyond != 0.0)
        return result

    start = arm.neutral()
    motion = lw.simulate(
        arm,
        start,
        np.zeros(arm.nv),
        controller=tau,
        control_step=step,
        duration=duration,
        step=step,
        passive=False,
    )
    there = lw.forward_kinematics(arm, motion.q, "tip").p
    goals = np.array([path(t).position for t in motion.t])
    return motion, np.linalg.norm(there - goals, axis=1)


def coordination_of(arm: lw.Mechanism) -> lw.papers.DextrousCoordination:
    """The mini is drawn to its middle at 8 rad/s."""
    return lw.papers.DextrousCoordination.tuned(
        arm, arm.neutral(), TASK, split=SPLIT, frequency=8.0, ratio=1.5
    )


def gain(arm: lw.Mechanism, controller: lw.TaskController, frequency: float) -> float:
    """The fraction of a sine that the tip follows, from its motion at that frequency."""
    home = lw.tasks.task_position(arm, arm.neutral(), TASK)
    step = min(STEP, 1.0 / (60.0 * frequency))
    path = sine(home, frequency)
    motion, _ = led(arm, controller, path, 4.0 / frequency, strength=True, step=step)
    late = motion.t > 2.0 / frequency - 1e-9  # two periods
    x = (lw.forward_kinematics(arm, motion.q[late], "tip").p - home) @ ALONG
    wave = np.exp(-2j * np.pi * frequency * motion.t[late])
    return float(2.0 * np.abs(np.mean(x * wave)) / SIZE)


def main() -> None:
    """Run both experiments, print and check the results."""
    arm = lw.models.planar_macro_mini()
    home = lw.tasks.task_position(arm, arm.neutral(), TASK)
    dextrous = coordination_of(arm)
    plain = lw.TaskController(arm, SERVO)
    coordinated = lw.TaskController(arm, SERVO, posture=dextrous.posture)

    print("the tip moves by 0.58 m in 2 s")
    used, missed = {}, {}
    for name, controller in (("plain", plain), ("coordinated", coordinated)):
        motion, error = led(arm, controller, journey(home), 2.2, stops=True, strength=True)
        share = dextrous.share(motion.q)
        used[name], missed[name] = float(share.max()), float(error.max())
        hit = motion.t[(share >= 1.0).any(axis=1)]
        when = f"at its stops from {hit[0]:.2f} s on" if len(hit) else "never at its stops"
        print(
            f"  {name:12} mini uses {100 * used[name]:4.0f} % of its range, {when}; "
            f"the tip is off by {1e3 * missed[name]:.3g} mm at most"
        )

    print("the tip follows a sine of 10 mm; achieved amplitude:")
    held = arm.lock(MINI)
    macro = lw.TaskController(held, SERVO)
    gains = {}
    for frequency in (2.0, 6.0, 12.0, 18.0):
        gains[frequency] = gain(arm, coordinated, frequency), gain(held, macro, frequency)
        both, alone = gains[frequency]
        print(
            f"  {frequency:4.0f} Hz: {100 * both:4.0f} %, with the mini held {100 * alone:4.0f} %"
        )

    assert used["plain"] >= 1.0 and missed["plain"] > 0.01
    assert used["coordinated"] < 0.5 and missed["coordinated"] < 1e-3
    assert all(abs(both - 1.0) < 0.05 for both, _ in gains.values())
    assert gains[18.0][1] < 0.5


if __name__ == "__main__":
    main()
