"""A quadruped learns to stand and to walk: PPO in Torch, with all robots in one `lw.Simulator`.

    python examples/learn_quadruped.py --out walk          # on a GPU, in minutes
    python examples/learn_quadruped.py --out walk --cpu --robots 256

Each robot is commanded a forward speed, which is zero for some: those learn to stand. A policy of
three layers sees gravity, the velocity of the trunk, joint angles and velocities, its last action
and the command, and moves the targets of position servos 50 times a second. States, observations,
rewards and the policy stay on the GPU.

The folder gets `curve.csv` with rewards, `policy.pt`, `walk.npz` with a motion, and, where the
packages for it are installed, `curve.png` and `walk.html`.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

import linkwise as lw
from linkwise.models.quadruped import STANCE_HEIGHT
from linkwise.simulation import Ground, VectorEnv, ground_contacts

STEP, SUBSTEPS = 5e-3, 4  # of the integrator [s], and in each action: 50 actions a second
TIME_LIMIT = 500  # actions of an episode: 10 s
FASTEST = 0.8  # commanded [m/s]
STILL = 0.25  # share of robots that are commanded to stand
SWING = 0.25  # change of a servo's target by an action of 1 [rad]
ROUNDS, LENGTH = 400, 24  # updates of the policy, and actions of each robot in between
EPOCHS, PARTS, CLIP, DISCOUNT, SMOOTHING, CLOSE = 5, 4, 0.2, 0.99, 0.95, 0.01
LEGS = ("front_left", "front_right", "hind_left", "hind_right")
FEET = tuple(f"{leg}_foot" for leg in LEGS)


def robot() -> lw.Mechanism:
    """The quadruped of the models, with a position servo at each joint of its legs."""
    mech = lw.models.quadruped()
    servos = [
        lw.Actuator.position(b.hinge_name, b.hinge_name, kp=40.0, kv=1.0) for b in mech.bodies[1:]
    ]
    return lw.Mechanism(mech.name, mech.bodies, mech.nodes, actuators=servos)


class Walk:
    """The task: what is commanded, seen, rewarded, and when an episode ends."""

    def __init__(self, robots: int, device: str) -> None:
        mech = robot()
        seen = ["q", "v", "gravity", "base_height", "base_velocity", "contact_forces", "tau"]
        self.sim = lw.Simulator(
            mech,
            batch=robots,
            step=STEP,
            substeps=SUBSTEPS,
            contacts=ground_contacts(mech, Ground(friction=0.8), bodies=FEET),
            observations=[*seen, *(f"velocity:{foot}" for foot in FEET)],
            target="cuda" if device == "cuda" else "cpu",
            dtype="float32",
            library="torch",
        )
        self.device = device
        self.rest = torch.tensor(mech.neutral(), dtype=torch.float32, device=device)
        self.rest[6] = STANCE_HEIGHT
        self.command = torch.zeros(robots, device=device)
        self.last = torch.zeros(robots, 12, device=device)  # action
        self.air = torch.zeros(robots, 4, device=device)  # how long each foot is in the air [s]
        self.env = VectorEnv(
            self.sim,
            reward=self.reward,
            terminated=self.fallen,
            observe=self.observe,
            reset=self.begin,
            command=lambda action: SWING * action.clamp(-4.0, 4.0),
            time_limit=TIME_LIMIT,
            autoreset="same_step",
        )

    def begin(self, rng: torch.Generator, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Near the stance, with a small velocity; and a new command."""
        n, options = len(mask), {"generator": rng, "device": self.device}
        command = FASTEST * torch.rand(n, **options)
        command = command * (torch.rand(n, **options) > STILL)
        self.command = torch.where(mask, command, self.command)
        self.last = self.last * ~mask[:, None]
        self.air = self.air * ~mask[:, None]
        q = self.rest.repeat(n, 1)
        q[:, 7:] += 0.1 * torch.randn(n, 12, **options)
        q[:, 6] += 0.02
        return q, 0.1 * torch.randn(n, self.sim.mech.nv, **options)

    def observe(self, sim: lw.Simulator) -> torch.Tensor:
        """(batch, 46), of about the size of 1."""
        turning, moving = sim["base_velocity"].split(3, dim=1)
        parts = [sim["gravity"], 0.25 * turning, 2.0 * moving, sim["q"][:, 7:]]
        return torch.cat(
            [*parts, 0.05 * sim["v"][:, 6:], self.last, 2.0 * self.command[:, None]], dim=1
        )

    def fallen(self, sim: lw.Simulator) -> torch.Tensor:
        """The trunk is low, or tilted by more than 60 degrees."""
        return (sim["base_height"][:, 0] < 0.18) | (sim["gravity"][:, 2] > -0.5)

    def reward(self, sim: lw.Simulator, action: torch.Tensor) -> torch.Tensor:
        """Speed as commanded, upright and at height, without waste; never below zero."""
        turning, moving = sim["base_velocity"].split(3, dim=1)
        gravity, down = sim["gravity"], sim["contact_forces"][..., 2] > 1.0
        still = self.command < 0.05
        off = (moving[:, 0] - self.command).square() + moving[:, 1].square()
        speeds = torch.stack([sim[f"velocity:{foot}"][:, 3:5] for foot in FEET], dim=1)
        landed = down & (self.air > 0.0)
        steps = ((self.air - 0.15).clamp(max=0.2) * landed).sum(dim=1) * ~still
        self.air = (self.air + STEP * SUBSTEPS) * ~down
        total = (
            1.5 * torch.exp(-off / 0.1)
            + 0.5 * torch.exp(-turning[:, 2].square() / 0.25)
            + 4.0 * steps
            - 1.0 * moving[:, 2].square()
            - 0.05 * turning[:, :2].square().sum(dim=1)
            - 2.0 * gravity[:, :2].square().sum(dim=1)
            - 30.0 * (sim["base_height"][:, 0] - STANCE_HEIGHT).square()
            - 2e-4 * sim["tau"][:, 6:].square().sum(dim=1)
            - 0.01 * (action - self.last).square().sum(dim=1)
            - 0.1 * (speeds.square().sum(dim=2) * down).sum(dim=1)
            - (0.1 + 0.4 * still) * sim["q"][:, 7:].square().sum(dim=1)
        )
        self.last = action.clone()
        return STEP * SUBSTEPS * torch.nan_to_num(total).clamp(min=0.0)


class Policy(nn.Module):
    """Normal distributions of actions, and the value of a state."""

    def __init__(self, seen: int, actions: int) -> None:
        super().__init__()

        def network(out: int) -> nn.Sequential:
            return nn.Sequential(
                *(nn.Linear(seen, 128), nn.ELU(), nn.Linear(128, 128), nn.ELU()),
                *(nn.Linear(128, 64), nn.ELU(), nn.Linear(64, out)),
            )

        self.actor, self.critic = network(actions), network(1)
        self.actor[-1].weight.data *= 0.1
        self.spread = nn.Parameter(torch.full((actions,), -0.2))

    def forward(self, seen: torch.Tensor) -> tuple[torch.distributions.Normal, torch.Tensor]:
        """What is drawn from, and the value."""
        return self.chosen(seen), self.critic(seen)[:, 0]

    def chosen(self, seen: torch.Tensor) -> torch.distributions.Normal:
        """What actions are drawn from."""
        return torch.distributions.Normal(self.actor(seen), self.spread.exp(), validate_args=False)


@dataclass
class Learner:
    """Proximal policy optimisation, with a learning rate that follows the change of the policy."""

    walk: Walk
    policy: Policy
    rate: float = 1e-3

    def __post_init__(self) -> None:
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=self.rate)
        self.seen, _ = self.walk.env.reset(seed=0)

    @torch.no_grad()
    def collect(self, length: int) -> tuple[dict[str, torch.Tensor], dict[str, float]]:
        """States, actions and what followed, of all robots; and means to report."""
        kept = {name: [] for name in ("seen", "action", "mean", "logp", "value", "reward", "over")}
        fallen, gained = torch.zeros(2, device=self.seen.device)
        for _ in range(length):
            chosen, value = self.policy(self.seen)
            action = chosen.sample()
            seen, reward, ends, late, info = self.walk.env.step(action)
            gained += reward.mean()
            if info:  # the value of what would have come after the time limit
                reward = reward + DISCOUNT * late * self.policy.critic(info["final_obs"])[:, 0]
            row = (self.seen, action, chosen.mean, chosen.log_prob(action).sum(dim=1), value)
            for name, x in zip(kept, (*row, reward, ends | late), strict=True):
                kept[name].append(x)
            fallen += ends.float().mean()
            self.seen = seen
        batch = {name: torch.stack(x) for name, x in kept.items()}
        after, total = self.policy.critic(self.seen)[:, 0], torch.zeros_like(self.seen[:, 0])
        gains = torch.zeros_like(batch["reward"])
        for i in reversed(range(length)):
            goes_on = (~batch["over"][i]).float()
            error = batch["reward"][i] + DISCOUNT * goes_on * after - batch["value"][i]
            total = error + DISCOUNT * SMOOTHING * goes_on * total
            gains[i], after = total, batch["value"][i]
        batch["target"] = gains + batch["value"]
        batch["gain"] = (gains - gains.mean()) / (gains.std() + 1e-8)
        speed = self.walk.sim["base_velocity"][:, 3]
        off = (speed - self.walk.command).abs().nanmean()
        report = {
            "reward": float(gained) / length / (STEP * SUBSTEPS),
            "falls a second": float(fallen) / length / (STEP * SUBSTEPS),
            "speed error": float(off),
        }
        return {name: x.flatten(0, 1) for name, x in batch.items()}, report

    def improve(self, batch: dict[str, torch.Tensor]) -> None:
        """A few passes over the batch."""
        count, before = len(batch["seen"]), self.policy.spread.detach().clone()
        for _ in range(EPOCHS):
            order = torch.randperm(count, device=batch["seen"].device)
            for part in order.chunk(PARTS):
                x = {name: value[part] for name, value in batch.items()}
                chosen, value = self.policy(x["seen"])
                logp = chosen.log_prob(x["action"]).sum(dim=1)
                ratio = (logp - x["logp"]).exp()
                limited = ratio.clamp(1.0 - CLIP, 1.0 + CLIP)
                gain = torch.minimum(ratio * x["gain"], limited * x["gain"]).mean()
                wrong = (value - x["target"]).square().mean()
                loss = wrong - gain - 0.003 * chosen.entropy().sum(dim=1).mean()
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.policy.parameters(), 1.0)
                self.optimizer.step()
        with torch.no_grad():  # how far the policy went, and so the next rate
            old = torch.distributions.Normal(batch["mean"], before.exp())
            new = self.policy.chosen(batch["seen"])
            apart = float(torch.distributions.kl_divergence(old, new).sum(dim=1).mean())
        if apart > 2.0 * CLOSE:
            self.rate = max(1e-5, self.rate / 1.5)
        elif apart < 0.5 * CLOSE:
            self.rate = min(3e-3, self.rate * 1.5)
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate


@torch.no_grad()
def tried(
    policy: Policy, device: str, robots: int = 64, seconds: float = 5.0
) -> dict[str, np.ndarray]:
    """Motions without noise: half of the robots stand, the others walk at 0.5 m/s."""
    walk = Walk(robots, device)
    walk.env.reset(seed=1)
    walk.command = 0.5 * (torch.arange(robots, device=device) >= robots // 2)
    records: dict[str, list[np.ndarray]] = {"q": [], "v": [], "tau": [], "contact_forces": []}
    fell = torch.zeros(robots, dtype=torch.bool, device=device)
    for _ in range(round(seconds / (STEP * SUBSTEPS))):
        kept = walk.command.clone()
        _, _, ends, _, _ = walk.env.step(policy.actor(walk.observe(walk.sim)))
        walk.command = kept
        fell |= ends
        for name, record in records.items():
            record.append(walk.sim[name].cpu().numpy().copy())
    t = STEP * SUBSTEPS * np.arange(1, len(records["q"]) + 1)
    more = {"t": t, "command": walk.command.cpu().numpy(), "fell": fell.cpu().numpy()}
    return {name: np.array(record) for name, record in records.items()} | more


def pictures(folder: Path, motion: dict[str, np.ndarray]) -> None:
    """The curves, and a page that shows a walk; where the packages for them are installed."""
    table = np.genfromtxt(folder / "curve.csv", delimiter=",", names=True)
    try:
        import linkwise.plot as lp

        figure, (left, middle, right) = lp.panels(1, 3, size=(11.0, 3.2))
        left.plot(table["round"], table["reward"], color=lp.LIGHT.colors[0])
        left.set(xlabel="round", title="mean reward")
        middle.plot(table["round"], table["speed_error"], color=lp.LIGHT.colors[1])
        middle.set(xlabel="round", title="error of the speed [m/s]", ylim=(0.0, None))
        down = motion["contact_forces"][-100:, -1, :, 2] > 1.0
        for i, foot in enumerate(LEGS):
            right.fill_between(
                motion["t"][-100:], i - 0.4 * down[:, i], i + 0.4 * down[:, i], step="mid"
            )
            right.text(motion["t"][-1], i, f" {foot}", va="center")
        right.set(xlabel="t [s]", title="feet on the ground", yticks=[])
        figure.savefig(folder / "curve.png", dpi=120)
    except ImportError as error:
        print(f"curve.png was not drawn: {error}")
    try:
        fps = 1.0 / (STEP * SUBSTEPS)
        lw.viewer.export_html(robot(), folder / "walk.html", motion["q"][:, -1], fps=fps)
    except ImportError as error:
        print(f"walk.html was not written: {error}")


def learn(robots: int, rounds: int, device: str, folder: Path, length: int = LENGTH) -> Policy:
    """Learn for some rounds; `curve.csv` has a line for each."""
    torch.manual_seed(0)
    walk = Walk(robots, device)
    policy = Policy(46, 12).to(device)
    learner, began = Learner(walk, policy), time.perf_counter()
    with (folder / "curve.csv").open("w") as file:
        file.write("round,seconds,reward,falls a second,speed error\n")
        for k in range(rounds):
            batch, report = learner.collect(length)
            learner.improve(batch)
            seconds = time.perf_counter() - began
            file.write(",".join(f"{x:.6g}" for x in (k, seconds, *report.values())) + "\n")
            if k % 20 == 0 or k + 1 == rounds:
                words = ", ".join(f"{name} {x:.3f}" for name, x in report.items())
                print(f"round {k:3d}, {seconds:6.1f} s: {words}", flush=True)
    torch.save(policy.state_dict(), folder / "policy.pt")
    return policy


def main(arguments: list[str] | None = None) -> dict[str, np.ndarray]:
    """Learn, try the policy without noise, and save all of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="walk", help="folder for results")
    parser.add_argument("--robots", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--cpu", action="store_true", help="run on the processor")
    given = parser.parse_args(arguments)
    folder, device = Path(given.out), "cpu" if given.cpu else "cuda"
    if given.cpu:
        torch.set_num_threads(1)  # the networks are small
    folder.mkdir(parents=True, exist_ok=True)
    policy = learn(given.robots, given.rounds, device, folder)
    motion = tried(policy, device)
    np.savez(folder / "walk.npz", **motion)
    pictures(folder, motion)
    walking = motion["command"] > 0.0
    speed = (motion["q"][-1, :, 4] - motion["q"][len(motion["t"]) // 2, :, 4]) / (
        motion["t"][-1] - motion["t"][len(motion["t"]) // 2]
    )
    fell = motion["fell"]
    print(
        f"{np.mean(~fell[~walking]):.0%} of the standing robots and {np.mean(~fell[walking]):.0%}"
    )
    print(f"of the walking ones stay up; those go {np.median(speed[walking]):.2f} m/s of 0.50,")
    print(f"the others {np.median(np.abs(speed[~walking])):.3f} m/s.")
    if given.rounds >= ROUNDS:
        assert np.mean(~fell) > 0.9 and abs(np.median(speed[walking]) - 0.5) < 0.2
    return motion


if __name__ == "__main__":
    main()
