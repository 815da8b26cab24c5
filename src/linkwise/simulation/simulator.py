"""Robots that are moved step by step from Python: `sim.step(action)`, `sim.reset(mask)`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from importlib import import_module
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from linkwise.arguments import count, floats, shown
from linkwise.codegen import arrays
from linkwise.codegen.stepping.device import Course
from linkwise.dynamics.actuator_force import actuator_commands
from linkwise.dynamics.kernels import Loops, tree_of
from linkwise.errors import ModelError, ShapeError, SimulationError, unknown_name
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.implicit.ground import ContactPoint, Ground
from linkwise.simulation.implicit.inside import warn_if_inside
from linkwise.simulation.motion_setup import LARGEST_SEED, motion_setup
from linkwise.simulation.observation import Observations
from linkwise.simulation.rollout_kernel import motion_kernel
from linkwise.spatial.array import Array, ArrayLike

MASKED: Any = np.ma.MaskedArray


class Simulator:
    """One robot, or many copies of it, moved step by step from Python.

        sim = lw.Simulator(robot, batch=1024, step=2e-3, substeps=10, contacts=feet)
        obs = sim.reset()
        obs = sim.step(action)

    A step is one call of one kernel: `substeps` steps of the integrator with the action held, then
    the observations. Everything that lasts stays in the kernel's memory between calls: positions
    and velocities, the impulses of contacts, which the next step starts from, and activations. So
    `n` steps from Python and one rollout of `n` steps agree bit for bit.

    An action is the commands of the actuators, or joint forces if the mechanism has none.
    `not_modelled` lists what the mechanism and its file have that does not act.
    """

    def __init__(
        self,
        mech: Mechanism,
        *,
        q: ArrayLike | None = None,
        v: ArrayLike | None = None,
        batch: int | None = None,
        step: float = 1e-3,
        substeps: int = 1,
        integrator: str = "implicit",
        contacts: Ground | Sequence[ContactPoint] | None = None,
        observations: Observations = ("q", "v"),
        parameters: Mapping[str, ArrayLike] | None = None,
        passive: bool = True,
        loops: Loops = "closed",
        target: str = "cpu",
        dtype: Any = np.float64,
        threads: int | None = None,
        library: str | None = None,
        noise: Mapping[str, Any] | None = None,
        stop: Mapping[str, Any] | None = None,
        seed: int = 0,
        sweeps: int | None = None,
    ) -> None:
        """Compile the kernel, and begin.

        Args:
            mech: The mechanism.
            q: Joint positions at the beginning (nq,) or (batch, nq); default: the neutral ones.
            v: Joint velocities at the beginning (nv,) or (batch, nv); default: at rest.
            batch: How many copies move; None for one, without a batch axis.
            step: Length of a step of the integrator [s].
            substeps: Steps of the integrator in each `step`, with the same action.
            integrator: As in `lw.rollout`.
            contacts: As in `lw.rollout`.
            observations: What `step` returns, side by side in this order. Names: "q", "v", "tau"
                (joint forces of the last step, with actuators), "control", "activation",
                "base_height", "base_velocity" and "gravity" (the direction of gravity) of the first
                body in its axes, "contact_forces", "residual", "unsolved", "position:NODE",
                "rotation:NODE" and "velocity:NODE" in world axes, and quantities of
                `lw.dynamics.QUANTITIES` that need no more than q, v and tau. A dictionary gives
                names to expressions and to kernels of `lw.compile`.
            parameters: Numbers of the mechanism that are inputs, with their values at the
                beginning: (n,) or (batch, n); as in `lw.rollout`.
            passive: As in `lw.rollout`.
            loops: As in `lw.rollout`.
            target: "cpu", or "cuda" for a GPU.
            dtype: float64 or float32.
            threads: Processor cores for a batch; default: chosen from the batch size.
            library: "numpy", "cupy", "torch" or "jax", whose arrays `step`, `reset` and the views
                are; default: NumPy's on the CPU and CuPy's on a GPU. Actions may be of any library
                on the same device. Arrays of JAX never change, so they are copies.
            noise: Random forces, as in `lw.rollout`, counted in steps since the simulator was made.
                Their deviations are among the `inputs`, as "noise:tau" and so on.
            stop: Conditions as in `lw.rollout`. `stopped` says after each `step` whose are broken;
                these robots move on until you reset them.
            seed: Of the random numbers.
            sweeps: As in `lw.rollout`. The observation "unsolved" is the largest residual since
                `reset`.

        Raises:
            ModelError: An unknown integrator, target or observation, or an invalid number.
            LoweringError: Too many bodies for straight-line code; says which.
        """
        setup = motion_setup(
            mech, step=step, integrator=integrator, target=target, dtype=dtype, passive=passive,
            actuated=bool(tree_of(mech).actuators), contacts=contacts, loops=loops,
            parameters=parameters, noise=noise, stop=stop, sweeps=sweeps, observations=observations,
        )  # fmt: skip
        shared = ("numpy", "torch", "jax") if target == "cpu" else ("cupy", "torch", "jax")
        self.library = shared[0] if library is None else library
        if self.library not in shared:
            known = ", ".join(map(repr, shared))
            raise ModelError(
                f"library={library!r} was given with target={target!r}; it must be one of {known}."
            )
        request, self.step_length, self._setup = setup.request, setup.step, setup
        self.mech = mech = request.mech
        self.integrator, self.target = integrator, target
        self.batch = None if batch is None else count(batch, "batch", least=1)
        self.substeps = count(substeps, "substeps", least=1)
        self._stops, rows = request.episode.stop, self.batch or 1
        workers = None if threads is None else count(threads, "threads", least=1)
        start = count(seed, "seed", most=LARGEST_SEED)
        self.kernel: Any = motion_kernel(request, target)
        held = {
            name: _rows(setup.held[name] if name in setup.held else np.zeros(n), rows, n, name)
            for name, n in self.kernel.held
        }
        course = Course(setup.step, self.substeps, self.substeps, workers, start)
        self._motions: Any = self.kernel.device.resident(held, course)
        self._action: str = "control" if mech.actuators else "tau"
        self.not_modelled: tuple[str, ...] = setup.not_modelled
        self._start = self._states(q, v, (mech.neutral(), np.zeros(mech.nv)))
        if not arrays.is_on_gpu(self._start[0]):
            warn_if_inside(mech, self._start[0], request.contacts)
            setup.warn_if_too_stiff(self._start[0])
        if target == "cuda":  # copied there once
            self._start = tuple(self._motions.taken("q", x.astype(dtype)) for x in self._start)
        self._bind()
        self.reset()

    def _bind(self) -> None:
        """What `step` needs, without another look."""
        motions = self._motions
        self._advance, codes = motions.advance, motions.status
        self._failed = codes.item if self.batch is None else codes.any
        self._command = self._one(motions.inputs[self._action])
        self._views = dict[tuple[str, int], Any]()
        moves = self.target == "cuda" or self.library == "jax"
        self._fixed = None if moves else self._shown(motions.seen())
        seen = [x for x in self.kernel.layout if x.kind == "seen"]
        first = seen[0].begin
        self._places = {
            x.name: (slice(x.begin - first, x.begin - first + math.prod(x.shape)), x.shape)
            for x in seen
        }

    def _one(self, array: Any) -> Any:
        """An array without the batch axis, for one robot."""
        return array[0] if self.batch is None else array

    def _view(self, name: str, make: Callable[[], Any]) -> Any:
        """Memory of the simulator as an array of the caller's library, made once."""
        key = name, self._motions.turn
        if key not in self._views or self.library == "jax":
            self._views[key] = self._shown(make())
        return self._views[key]

    def _shown(self, array: Any) -> Any:
        """An array of the caller's library, without the batch axis for one robot."""
        array = self._one(array)
        if self.library in ("numpy", "cupy"):
            return array
        if self.library == "torch":
            return import_module("torch").from_dlpack(array)
        copy = array.copy()  # contiguous, and not written any more
        if self.target == "cpu":
            return import_module("jax.numpy").asarray(copy)
        return import_module("jax.dlpack").from_dlpack(copy)

    # ------------------------------------------------------------------------------- motion

    def step(self, action: Any) -> Any:
        """Move on by `substeps` steps, and observe.

        Args:
            action: Commands of the actuators, or joint forces where there are none: (n,), or
                (batch, n). On the CPU also by name, {"servo": 0.1}, a number or (batch,) each.

        Returns:
            The observations (n,) or (batch, n). On the CPU they are a view of the simulator's
            memory, which the next step overwrites: copy what you keep. On a GPU they stay valid
            for one more step.

        Raises:
            ShapeError: The action has another shape.
            SimulationError: The motion of a single robot grows without bounds. In a batch,
                `status` says so, and the observations of that robot are NaN until it is reset.
        """
        if self.target == "cuda":
            return self._step_on_gpu(action)
        if isinstance(action, MASKED):
            floats(action, "action")  # raises for masked entries
        try:
            self._command[...] = action
        except (ValueError, TypeError):
            if not isinstance(action, Mapping):
                raise self._misfit(action) from None
            self._command[...] = self._by_name(cast("Mapping[str, Any]", action))
        self._advance()
        if self._failed():
            self._fail()
        return self.observations if self._fixed is None else self._fixed

    def _by_name(self, action: Mapping[str, Any]) -> Array:
        """An action (n,) or (batch, n) of numbers by name; the others are 0."""
        if self.mech.actuators:
            row = actuator_commands(self.mech, action)
        else:
            row = np.zeros((*self._command.shape[:-1], self.mech.nv))
            for name, x in action.items():
                part, values = self.mech.v_slice(name), floats(x, f"action[{name!r}]")
                row[..., part] = values if part.stop - part.start > 1 else values[..., None]
        if row.shape not in ((row.shape[-1],), self._command.shape):
            raise self._misfit(row)
        return row

    def _step_on_gpu(self, action: Any) -> Any:
        """On the stream of the action; nothing waits for the GPU, failures are in `status`."""
        with arrays.stream(action):
            given = self._motions.taken("action", action)
            if given.shape != self._command.shape:
                raise self._misfit(given)
            self._command[...] = given
            self._advance()
            return self.observations

    def reset(
        self, mask: Any = None, *, q: ArrayLike | None = None, v: ArrayLike | None = None
    ) -> Any:
        """Begin anew, with all robots or with some.

        Args:
            mask: A flag for each robot (batch,) that begins anew; default: all.
            q: Joint positions (nq,) or (batch, nq), of which those of chosen robots count; default:
                those given to the simulator.
            v: Joint velocities (nv,) or (batch, nv), likewise.

        Returns:
            The observations, as `step` does.
        """
        rows, given = self.batch or 1, mask
        if mask is not None:
            mask = self._motions.taken("mask", mask)
            if mask.shape != (rows,) or mask.dtype != np.bool_:
                raise ShapeError(
                    f"mask has shape {mask.shape} of {mask.dtype}; it must be ({rows},) of bool."
                )
        with arrays.stream(given) if self.target == "cuda" else nullcontext():
            self._motions.begin(mask, *self._states(q, v, self._start))
            return self.observations

    def _states(self, q: Any, v: Any, others: tuple[Any, Any]) -> tuple[Array, Array]:
        """q and v with a row for each robot."""
        rows, mech = self.batch or 1, self.mech
        there = self.target == "cuda"
        first = others[0] if q is None else q if there and arrays.is_on_gpu(q) else mech.check_q(q)
        second = others[1] if v is None else v if there and arrays.is_on_gpu(v) else mech.check_v(v)
        states = _rows(first, rows, mech.nq, "q"), _rows(second, rows, mech.nv, "v")
        self._setup.check_beginning(*states)
        return states

    def _misfit(self, action: Any) -> ShapeError:
        names = [x.name for x in self.mech.actuators] or list(self.mech.velocity_names)
        what = "a command for each actuator" if self.mech.actuators else "a joint force for each of"
        first = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        is_array = hasattr(action, "shape")
        given = f"has shape {tuple(action.shape)}" if is_array else f"is {shown(action)}"
        return ShapeError(
            f"action {given}; it must have the shape {self._command.shape}: {what} ({first})."
        )

    def _fail(self) -> None:
        """Raise for one robot; leave no numbers of those that failed."""
        codes = self._motions.status
        self._motions.rows[np.flatnonzero(codes)] = np.nan
        if self.batch is None:
            raise SimulationError(
                f"{self.mech.name!r} by {self.integrator!r} in steps of {self.step_length:.6g} s: "
                f"{self.kernel.describe(int(codes[0]))}. A shorter step or other actions may "
                "help. sim.reset() begins anew."
            )

    # -------------------------------------------------------------------------------- views

    @property
    def q(self) -> Any:
        """Joint positions (nq,) or (batch, nq): a view."""
        return self._view("q", lambda: self._motions.view("now", "q"))

    @property
    def v(self) -> Any:
        """Joint velocities (nv,) or (batch, nv): a view."""
        return self._view("v", lambda: self._motions.view("now", "v"))

    @property
    def status(self) -> Any:
        """A code for each robot, () or (batch,), 0 for success; `kernel.describe` explains it."""
        return self._view("status", lambda: self._motions.status)

    @property
    def stopped(self) -> Any:
        """For each robot the number of the first condition of `stop` that is broken, or -1.

        () or (batch,), of integers; NumPy's on the CPU and CuPy's on a GPU.
        """
        motions = self._motions
        out = motions.status * 0 - 1
        for k in reversed(range(len(self._stops))):
            stop = self._stops[k]
            x = motions.view("watch", f"stop:{stop.watched.name}")
            x = x.reshape(len(out), -1)
            broken = ((x <= stop.low) | (x >= stop.high)).any(axis=1)
            out[broken] = k
        return self._one(out)

    @property
    def conditions(self) -> tuple[str, ...]:
        """Names of the conditions of `stop`, in the order of `stopped`."""
        return tuple(stop.watched.name for stop in self._stops)

    @property
    def state(self) -> Any:
        """Everything that lasts, (n,) or (batch, n), with warm starts and activations: a view.

        Save it with `sim.state.copy()`, and go back with `sim.state[...] = saved`; observations
        follow with the next step.
        """
        return self._view("state", lambda: self._motions.state)

    @property
    def inputs(self) -> Mapping[str, Any]:
        """What is held over a step, by name, (n,) or (batch, n): views, to be written.

        The action; "tau", joint forces that act besides those of actuators; and parameters.
        """
        each = {name: self._shown(x) for name, x in self._motions.inputs.items()}
        return MappingProxyType(each)

    @property
    def observations(self) -> Any:
        """All observations, as `step` returns them."""
        return self._view("seen", self._motions.seen)

    @property
    def layout(self) -> dict[str, slice]:
        """Where each observation is in the last axis of what `step` returns."""
        return {name: place for name, (place, _) in self._places.items()}

    def __getitem__(self, name: str) -> Any:
        """An observation by name, in its own shape, with the batch axis in front: a view."""
        if not isinstance(cast(object, name), str) or name not in self._places:
            raise unknown_name("observation", name, self._places, owner="the simulator")
        place, shape = self._places[name]
        seen = self.observations
        return seen[..., place].reshape((*seen.shape[:-1], *shape))

    def __str__(self) -> str:
        return repr(self) + "".join(f"\n  not modelled: {x}" for x in self.not_modelled)

    def __repr__(self) -> str:
        many = "one" if self.batch is None else f"{self.batch}"
        return (
            f"<Simulator of {many} {self.mech.name!r} by {self.integrator!r}: {self.substeps} steps"
            f" of {self.step_length:.3g} s for each action, on {self.target!r}>"
        )


def _rows(value: Any, rows: int, size: int, name: str) -> Any:
    """(rows, size), from one row or as many; an array on the GPU stays there."""
    array: Any = arrays.taken(name, value) if arrays.is_on_gpu(value) else floats(value, name)
    if array.shape == (size,):
        return np.broadcast_to(array, (rows, size))  # CuPy's own, for its arrays
    if array.shape != (rows, size):
        raise ShapeError(
            f"{name} has shape {array.shape}; it must be ({size},) or ({rows}, {size})."
        )
    return array
