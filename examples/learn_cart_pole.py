"""A cart learns to swing up its pole and to balance it, on a processor in less than a minute.

    python examples/learn_cart_pole.py [figure.png]

The policy is a network of 61 weights from the state to the force. It learns by an evolution
strategy: 512 copies of the robot, each with its own disturbed weights, move side by side in one
`lw.Simulator`; the weights follow the disturbances that scored well. No gradient is needed.
"""

from __future__ import annotations

import sys

import numpy as np

import linkwise as lw

COPIES, ROUNDS = 512, 140  # robots, and times that the weights change
STEPS, STEP, SUBSTEPS = 250, 5e-3, 4  # of an episode: 5 s in steps of 20 ms
FORCE, TRACK = 15.0, 1.5  # largest force of the motor [N]; half the length of the rail [m]
HIDDEN, NOISE, RATE = 10, 0.2, 0.1  # of the network; of the disturbances; of the learning
SIZES = ((5, HIDDEN), (HIDDEN,))


def cart_pole() -> lw.Mechanism:
    """A cart of 1 kg on a rail with ends, and a pole of 0.3 kg and 0.5 m, upright at q = 0."""
    middle = lw.Pose.translation((0.0, 0.0, 0.25))
    pole = lw.SpatialInertia.solid_box(0.3, (0.02, 0.02, 0.5)).moved(middle)
    return (
        lw.Builder("cart_pole")
        .body(
            "cart",
            "world",
            lw.hinges.Prismatic((1, 0, 0)),
            hinge_name="rail",
            inertia=lw.SpatialInertia.solid_box(1.0, (0.3, 0.2, 0.1)),
            drive=lw.Drive(damping=0.5, lower=-TRACK, upper=TRACK),
        )
        .body("pole", "cart", lw.hinges.Pin((0, 1, 0)), inertia=pole, drive=lw.Drive(damping=0.005))
        .actuator(lw.Actuator.motor("motor", "rail", gear=FORCE, control=(-1.0, 1.0)))
        .build()
    )


def act(weights: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Commands (batch, 1) of networks with weights (batch, n) at states (batch, 2)."""
    x, angle = q.T
    seen = np.stack([x, np.sin(angle), np.cos(angle), 0.5 * v[:, 0], 0.2 * v[:, 1]], axis=1)
    first, second = np.split(weights, [5 * HIDDEN], axis=1)
    hidden = np.tanh(np.einsum("bi,bih->bh", seen, first.reshape(-1, *SIZES[0])))
    return np.tanh((hidden * second[:, :HIDDEN]).sum(axis=1) + second[:, HIDDEN])[:, None]


def scores(sim: lw.Simulator, weights: np.ndarray, begin: np.ndarray) -> np.ndarray:
    """Mean height of the pole from -1 to 1 in each episode, less the cart's distance."""
    sim.reset(q=begin)
    total = np.zeros(len(weights))
    for _ in range(STEPS):
        sim.step(act(weights, sim["q"], sim["v"]))
        x, angle = sim["q"].T
        total += np.cos(angle) - 0.2 * x**2 - 0.01 * np.abs(sim["v"][:, 1]) * (np.cos(angle) > 0.8)
    return total / STEPS


def learn(rounds: int = ROUNDS, copies: int = COPIES, seed: int = 0) -> tuple[np.ndarray, list]:
    """The weights (n,), and the mean score of each round."""
    rng, mech = np.random.default_rng(seed), cart_pole()
    sim = lw.Simulator(mech, batch=copies, step=STEP, substeps=SUBSTEPS)
    size = 6 * HIDDEN + 1
    weights, moment, square = 0.3 * rng.standard_normal(size), np.zeros(size), np.zeros(size)
    curve = list[float]()
    for k in range(1, rounds + 1):
        half = rng.standard_normal((copies // 2, size))
        tried = np.concatenate([half, -half])
        begin = np.array([0.0, np.pi]) + 0.1 * rng.standard_normal((copies // 2, 2))
        score = scores(sim, weights + NOISE * tried, np.concatenate([begin, begin]))
        curve.append(float(score.mean()))
        rank = score.argsort().argsort() / (copies - 1) - 0.5  # no outlier counts for more
        slope = rank @ tried / (copies * NOISE)
        moment, square = 0.9 * moment + 0.1 * slope, 0.99 * square + 0.01 * slope**2  # Adam
        size_now = np.sqrt(square / (1 - 0.99**k)) + 1e-8
        weights = weights + RATE * moment / (1 - 0.9**k) / size_now
    return weights, curve


def played(weights: np.ndarray, count: int = 16) -> np.ndarray:
    """States (steps, count, 4) of new episodes, twice as long as those it learnt from."""
    rng = np.random.default_rng(99)
    sim = lw.Simulator(cart_pole(), batch=count, step=STEP, substeps=SUBSTEPS)
    sim.reset(q=np.array([0.0, np.pi]) + 0.1 * rng.standard_normal((count, 2)))
    same, states = np.tile(weights, (count, 1)), list[np.ndarray]()
    for _ in range(2 * STEPS):
        states.append(sim.step(act(same, sim["q"], sim["v"])).copy())
    return np.array(states)


def picture(curve: list, states: np.ndarray, file: str) -> None:
    """The scores, and the poles of new episodes."""
    import linkwise.plot as lp

    figure, (left, right) = lp.panels(1, 2, size=(10.0, 3.6))
    left.plot(curve, color=lp.LIGHT.colors[0])
    left.set(xlabel="round", title="mean score: 1 stands, -1 hangs")
    t = STEP * SUBSTEPS * np.arange(len(states))
    right.plot(t, np.cos(states[..., 1]), color=lp.LIGHT.colors[1], alpha=0.4, lw=1)
    right.set(xlabel="t [s]", title="height of the pole in 16 new episodes")
    figure.savefig(file, dpi=120)


def main() -> None:
    """Learn, and try the policy in new episodes."""
    weights, curve = learn()
    states = played(weights)
    stands = np.cos(states[-50:, :, 1]).min(axis=0) > 0.95
    print(f"score {curve[0]:.2f} -> {curve[-1]:.2f} in {len(curve)} rounds of {COPIES} episodes")
    print(f"the pole is up over the last second of {stands.sum()} of {len(stands)} new episodes")
    if len(sys.argv) > 1:
        picture(curve, states, sys.argv[1])
    assert stands.mean() > 0.8


if __name__ == "__main__":
    main()
