"""Episodes of many robots, for reinforcement learning: rewards, ends, time limits and resets."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal, TypeAlias

import numpy as np

from linkwise.arguments import count, is_a
from linkwise.errors import MissingExtraError, ModelError, ShapeError
from linkwise.simulation.simulator import Simulator

Function: TypeAlias = Callable[..., Any]

Autoreset: TypeAlias = Literal["next_step", "same_step", "disabled"]

MODES: dict[str, str] = {
    "next_step": "NEXT_STEP",
    "same_step": "SAME_STEP",
    "disabled": "DISABLED",
}
"""Names of `gymnasium.vector.AutoresetMode`."""


class VectorEnv:
    """A simulator with rewards and ends, as a vector environment of Gymnasium.

        env = lw.simulation.VectorEnv(sim, reward=upright, terminated=fallen, time_limit=500)
        seen, info = env.reset(seed=0)
        seen, reward, terminated, truncated, info = env.step(action)

    It has the interface of `gymnasium.vector.VectorEnv` without needing the package;
    `gymnasium()` makes a real one. Functions of the user see the simulator, with arrays of the
    whole batch in its library (NumPy, Torch, CuPy): on a GPU nothing leaves it.

    A robot whose motion fails is terminated; it gets no reward, and its observations are 0.
    """

    def __init__(
        self,
        sim: Simulator,
        *,
        reward: Function,
        terminated: Function | None = None,
        observe: Function | None = None,
        reset: Function | None = None,
        command: Function | None = None,
        actions: int | None = None,
        time_limit: int | None = None,
        autoreset: Autoreset = "next_step",
    ) -> None:
        """Begin all episodes.

        Args:
            sim: The simulator, with a batch.
            reward: reward(sim, action): (batch,), after a step.
            terminated: terminated(sim): flags (batch,) of robots that have fallen, left their
                range, or reached their goal; default: none but failed motions.
            observe: observe(sim): (batch, n); default: the observations of the simulator.
            reset: reset(rng, mask): q (batch, nq) and v (batch, nv) of new episodes, of which those
                of robots that begin count, with flags in the mask (batch,); default: where the
                simulator begins. `rng` is a NumPy generator, or Torch's on the device of a
                simulator with library="torch".
            command: command(action): what the simulator takes, (batch, n), of an action from -1 to
                1; default: the action itself.
            actions: Numbers of an action; default: as many as the simulator takes.
            time_limit: Steps after which an episode is truncated; default: never.
            autoreset: When a robot whose episode has ended begins anew, as in Gymnasium: in the
                "next_step", whose action does not count; in the "same_step", with the last
                observations in info["final_obs"]; or when `reset` is called, "disabled".
        """
        is_a(Simulator, sim, "sim")
        if sim.batch is None:
            raise ModelError("the simulator has one robot without a batch axis; give it batch=1.")
        if autoreset not in MODES:
            known = ", ".join(map(repr, MODES))
            raise ModelError(f"autoreset={autoreset!r} is unknown; use one of {known}.")
        self.sim, self.num_envs, self.autoreset = sim, sim.batch, autoreset
        self._reward, self._terminated, self._reset = reward, terminated, reset
        self._observe, self._command = observe, command
        self.time_limit = None if time_limit is None else count(time_limit, "time_limit", least=1)
        commands = len(sim.mech.actuators) or sim.mech.nv
        self.actions = commands if actions is None else count(actions, "actions", least=1)
        if actions is not None and actions != commands and command is None:
            raise ModelError(
                f"actions={actions} and the simulator takes {commands} numbers; give command=, a "
                "function from one to the other."
            )
        self._xp: Any = import_module("jax.numpy" if sim.library == "jax" else sim.library)
        if sim.library == "jax":
            raise ModelError("VectorEnv changes arrays; use library='numpy', 'cupy' or 'torch'.")
        self._ages, self._over = self._filled("int64"), self._filled("bool")
        self._generator: Any = None
        self.reset(seed=None)

    def _filled(self, dtype: str) -> Any:
        """Zeros for all robots."""
        if self.sim.library != "torch":
            return self._xp.zeros(self.num_envs, dtype)
        kind = getattr(self._xp, dtype)
        return self._xp.zeros(self.num_envs, dtype=kind, device=self.sim.observations.device)

    # ----------------------------------------------------------------------------- episodes

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin all episodes anew, or those of options["reset_mask"].

        Args:
            seed: A seed for the beginnings; None goes on with the numbers of the last one.
            options: {"reset_mask": flags (batch,)} begins only some episodes.

        Returns:
            The observations (batch, n), and an empty dictionary.
        """
        if seed is not None or self._generator is None:
            self._generator = self._seeded(seed)
        mask = (options or {}).get("reset_mask")
        self._begin(mask)
        return self._seen(), {}

    def _seeded(self, seed: int | None) -> Any:
        if self.sim.library != "torch":
            return np.random.default_rng(seed)
        generator = self._xp.Generator(device=self._ages.device)
        generator.manual_seed(seed) if seed is not None else generator.seed()
        return generator

    def _begin(self, mask: Any) -> None:
        """Begin some episodes anew; None for all."""
        if mask is None:
            self._ages[:], self._over[:] = 0, False
        else:
            self._ages[mask], self._over[mask] = 0, False
        if self._reset is None:
            self.sim.reset(mask)
        else:
            every = ~self._filled("bool")
            q, v = self._reset(self._generator, every if mask is None else every & mask)
            self.sim.reset(mask, q=q, v=v)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Move all robots on by one step of the simulator.

        Args:
            actions: (batch, n).

        Returns:
            Observations (batch, n), rewards (batch,), flags (batch,) of episodes that have ended
            by themselves and by the time limit, and a dictionary.
        """
        sim, fresh, info = self.sim, self._over, dict[str, Any]()
        sim.step(actions if self._command is None else self._command(actions))
        self._ages += 1
        if self.autoreset == "next_step":
            fresh = fresh.copy() if hasattr(fresh, "copy") else fresh.clone()
            if sim.target == "cuda" or bool(fresh.any()):
                self._begin(fresh)
        failed = sim.q[:, :1] != sim.q[:, :1] if sim.mech.nq else self._filled("bool")[:, None]
        failed = failed[:, 0]
        reward = self._flat(self._reward(sim, actions), "reward")
        ends = failed if self._terminated is None else self._terminated(sim) | failed
        ends = self._flat(ends, "terminated")
        late = self._filled("bool") if self.time_limit is None else self._ages >= self.time_limit
        late = late & ~ends
        reward = self._xp.where(failed, self._xp.zeros_like(reward), reward)
        if self.autoreset == "next_step":
            reward = self._xp.where(fresh, self._xp.zeros_like(reward), reward)
            ends, late = ends & ~fresh, late & ~fresh
        self._over = ends | late
        seen = self._seen()
        if self.autoreset == "same_step":
            over = self._over
            if sim.target == "cuda" or bool(over.any()):
                info = {"final_obs": seen, "_final_obs": over}
                self._over = self._filled("bool")
                self._begin(over)
                seen = self._seen()
        return seen, reward, ends, late, info

    def _seen(self) -> Any:
        """What is observed, without numbers of failed motions; never the simulator's memory."""
        if self._observe is None:
            return self._xp.nan_to_num(self.sim.observations)
        seen = self._observe(self.sim)
        if seen.ndim != 2 or len(seen) != self.num_envs:
            raise ShapeError(
                f"observe returned an array of shape {tuple(seen.shape)}; it must be "
                f"({self.num_envs}, n)."
            )
        return self._xp.nan_to_num(seen)

    def _flat(self, value: Any, what: str) -> Any:
        if tuple(getattr(value, "shape", ())) != (self.num_envs,):
            raise ShapeError(
                f"{what} returned {getattr(value, 'shape', value)!r}; it must have the shape "
                f"({self.num_envs},)."
            )
        return value

    # ---------------------------------------------------------------------------- Gymnasium

    def gymnasium(self) -> Any:
        """This environment as a `gymnasium.vector.VectorEnv`, with spaces (extra `gym`).

        Raises:
            MissingExtraError: Gymnasium is not installed.
        """
        try:
            gym: Any = import_module("gymnasium")
        except ImportError:
            raise MissingExtraError(
                "a vector environment of Gymnasium", package="gymnasium", extra="gym"
            ) from None
        base, inner = gym.vector.VectorEnv, self
        seen = self._seen()
        kind = np.dtype(str(seen.dtype).removeprefix("torch."))
        low, high = self._bounds()

        def reset(
            self: Any, *, seed: int | None = None, options: dict[str, Any] | None = None
        ) -> Any:
            base.reset(self, seed=seed)
            return inner.reset(seed=seed, options=options)

        def step(self: Any, actions: Any) -> Any:
            del self
            return inner.step(actions)

        env = type("LinkwiseVectorEnv", (base,), {"reset": reset, "step": step})()
        env.inner, env.num_envs = inner, self.num_envs
        mode = getattr(gym.vector.AutoresetMode, MODES[self.autoreset])
        env.metadata = {"autoreset_mode": mode, "render_modes": []}
        env.single_observation_space = gym.spaces.Box(-np.inf, np.inf, seen.shape[1:], kind)
        env.single_action_space = gym.spaces.Box(low.astype(kind), high.astype(kind), dtype=kind)
        for space in ("observation_space", "action_space"):
            single = getattr(env, f"single_{space}")
            setattr(env, space, gym.vector.utils.batch_space(single, self.num_envs))
        return env

    def _bounds(self) -> tuple[Any, Any]:
        """Of an action."""
        if self._command is not None:
            return -np.ones(self.actions), np.ones(self.actions)
        motors = self.sim.mech.actuators
        ranges = np.array([a.control for a in motors]) if motors else np.empty((0, 2))
        if not motors:
            effort = self.sim.mech.effort_limit
            ranges = np.stack([-effort, effort], axis=1)
        return ranges[:, 0], ranges[:, 1]
