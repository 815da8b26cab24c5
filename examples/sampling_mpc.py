"""A seven-joint arm reaches for points by sampling, without gradients: the task is only a score.

    python examples/sampling_mpc.py [--cuda]

Every 20 ms a few hundred sequences of joint torques are drawn around the last plan and rolled out
from the present state in one call. The plan becomes their mean, weighted by their scores (model
predictive path integral control). The score is the distance of the hand from its goal along the
way; motors use at most a third of their torque.

With `--cuda` 4096 sequences are tried on a GPU instead.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

import numpy as np

import linkwise as lw

STEP = 0.01  # [s]
HORIZON, PERIOD, EVERY = 32, 2, 4  # steps of a plan, between plans, between records
GOALS = ((0.45, 0.25, 0.75), (0.35, -0.40, 0.55))  # [m]
REACH = 1.2  # time for each of them [s]


@dataclass
class Sampler:
    """Draws, scores and weighs sequences of joint torques."""

    mech: lw.Mechanism
    count: int
    target: str
    seed: int = 0

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.most = self.mech.effort_limit / 3.0
        self.plan = np.zeros((HORIZON, self.mech.nv))

    def better(self, q: np.ndarray, v: np.ndarray, goal: np.ndarray) -> np.ndarray:
        """The new plan (horizon, nv): changes of the torque that holds the arm still."""
        hold = lw.bias_force(self.mech, q, np.zeros(self.mech.nv))
        knots = self.rng.standard_normal((self.count, 4, self.mech.nv)) * 0.1 * self.most
        tried = self.plan + np.repeat(knots, HORIZON // 4, axis=1)
        tried[0] = self.plan  # as it was
        run = lw.rollout(
            self.mech,
            q,
            v,
            tau=np.clip(hold + tried, -self.most, self.most),
            duration=HORIZON * STEP,
            step=STEP,
            integrator="euler",
            record_every=EVERY,
            target=self.target,
        )
        cost = self.score(run, goal)
        weight = np.exp(-(cost - cost.min()) / (0.1 * (np.median(cost) - cost.min()) + 1e-12))
        self.plan = np.einsum("s,stn->tn", weight / weight.sum(), tried)
        return np.clip(hold + self.plan, -self.most, self.most)

    def score(self, run: lw.simulation.Rollout, goal: np.ndarray) -> np.ndarray:
        """Distance from the goal [m] along the way, and a little of the speed at the end."""
        states = run.q[:, 1:].reshape(-1, self.mech.nq)
        hand = lw.forward_kinematics(self.mech, states, "hand").p.reshape(self.count, -1, 3)
        away = np.linalg.norm(hand - goal, axis=-1)
        cost = away.mean(axis=1) + 2.0 * away[:, -1] + 0.02 * np.abs(run.v[:, -1]).mean(axis=1)
        return np.where(np.isfinite(cost), cost, 1e3)  # motions that end early get a high cost

    def advance(self) -> None:
        """Drop the steps of the plan that have been executed."""
        self.plan = np.concatenate([self.plan[PERIOD:], np.repeat(self.plan[-1:], PERIOD, axis=0)])


def main(target: str = "cpu", count: int = 384) -> list[float]:
    """Reach for the goals; returns how far from each the hand ends [m]."""
    mech = lw.models.seven_dof_arm()
    sampler = Sampler(mech, count, target)
    q, v = np.array([0.0, 0.5, 0.0, 1.2, 0.0, 0.6, 0.0]), np.zeros(mech.nv)
    ends, spent, plans = list[float](), 0.0, 0
    for goal in map(np.array, GOALS):
        for _ in range(round(REACH / (PERIOD * STEP))):
            began = time.perf_counter()
            torque = sampler.better(q, v, goal)
            spent, plans = spent + time.perf_counter() - began, plans + 1
            moved = lw.rollout(mech, q, v, tau=torque[:PERIOD], duration=PERIOD * STEP, step=STEP)
            q, v = moved.q[-1], moved.v[-1]
            sampler.advance()
        hand = lw.forward_kinematics(mech, q, "hand").p
        ends.append(float(np.linalg.norm(hand - goal)))
        print(f"goal {goal}: the hand is {1e3 * ends[-1]:.0f} mm away")
    print(f"{plans} plans of {count} sequences, {1e3 * spent / plans:.1f} ms each")
    return ends


if __name__ == "__main__":
    far = main("cuda", 4096) if "--cuda" in sys.argv[1:] else main()
    assert max(far) < 0.03, far
