"""Rollouts: many steps of one motion, or of many, in one call of a kernel."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import count, is_tracked, itemsize, number
from linkwise.codegen import arrays
from linkwise.codegen.scalar.status import stopped
from linkwise.codegen.stepping.kernel import Motions, RolloutKernel, describe
from linkwise.dynamics.actuator_force import NamedCommands, actuator_commands, with_activation
from linkwise.dynamics.kernels import Loops, check_mechanism, is_closed, refuse, tree_of
from linkwise.dynamics.passive import passive as dampers_and_springs
from linkwise.errors import (
    LoweringError,
    ModelError,
    ShapeError,
    SimulationError,
    TroubleWarning,
    caller,
)
from linkwise.model.bending import warn_if_bent
from linkwise.model.mechanism import Mechanism
from linkwise.simulation import motion_parameters
from linkwise.simulation.episode import NOTHING, Episode, checked_noise, checked_stop
from linkwise.simulation.implicit.equality import check_beginning
from linkwise.simulation.implicit.ground import ContactPoint, Ground
from linkwise.simulation.implicit.inside import DEEP, warn_if_inside
from linkwise.simulation.implicit.long_steps import is_long
from linkwise.simulation.implicit.segments import UNSOLVED, warn_unsolved
from linkwise.simulation.implicit.touching import contact_points
from linkwise.simulation.inactive import inactive
from linkwise.simulation.planned import Planner, planned_motion
from linkwise.simulation.rates import is_traceable
from linkwise.simulation.rollout_gradient import Origin, RolloutGradient, gradient
from linkwise.simulation.rollout_input import (
    check_controller,
    commands,
    joint_forces,
    law_inputs,
    mechanism_numbers,
    shaped,
)
from linkwise.simulation.rollout_kernel import (
    check_rollout,
    checked_sweeps,
    gpu_kernel,
    rollout_kernel,
)
from linkwise.simulation.shown import Pushes, Shown, shown_by
from linkwise.simulation.stepwise import beginnings, stepwise
from linkwise.simulation.stiff_drive import remedy, warn_if_too_stiff
from linkwise.spatial.array import Array, ArrayLike
from linkwise.tasks.law import ControlLaw

REPORTED = ContextVar("reported", default=True)
"""Whether a batch warns of motions that fail; studies store their reasons instead."""

MOST_STEPS = 10**10
"""The largest number of steps; more would never finish."""


@dataclass(frozen=True, slots=True, eq=False)
class Rollout:
    """Motions of a mechanism, recorded every few steps.

    Attributes:
        mech: The mechanism.
        integrator: Name of the integrator.
        step: Length of a step [s].
        t: Times of the records (k,) [s], starting with 0.
        q: Joint positions (k, nq), or (batch, k, nq); on the GPU if those given were.
        v: Joint velocities (k, nv), or (batch, k, nv), likewise.
        status: A code for each motion, () or (batch,); 0 means success.
        failed_step: The step that failed, () or (batch,); -1 for none. Records from there on are
            NaN.
        kernel: The kernel that computed it, with `ops` of a step; None where steps ran one by one,
            and in copies and pickles, since machine code cannot leave its process.
        origin: What it was made of, for `gradient`; None where `kernel` is.
        pushes: What `contact_forces` are made of; None without contacts.
        residual: The largest change of a velocity in the last sweep over the impulses of that step
            (k,) or (batch, k) [m/s or rad/s]: what they are accurate to; None where nothing is
            solved for.
        unsolved: The largest residual of any step up to each record, likewise.
        penetration: The largest penetration of a contact up to each record (k,) or (batch, k) [m].
        slip: The largest sliding speed of a contact that pushes, up to each record, likewise [m/s].
        conditions: Names of the conditions that may end a motion.
        not_modelled: What the mechanism and its file have that did not act, one line each.
        tau: Joint forces of a receding horizon in the step before each record, zero at the first
            (k, nv), or (batch, k, nv) [N or N m]; None with anything else.
    """

    mech: Mechanism
    integrator: str
    step: float
    t: Array
    q: Array
    v: Array
    status: NDArray[np.int32]
    failed_step: NDArray[np.int64]
    kernel: Any = None
    origin: Origin | None = None
    pushes: Pushes | None = None
    residual: Array | None = None
    unsolved: Array | None = None
    penetration: Array | None = None
    slip: Array | None = None
    conditions: tuple[str, ...] = ()
    tau: Array | None = None
    not_modelled: tuple[str, ...] = ()

    @property
    def batch(self) -> int | None:
        """The number of motions; None for a single one."""
        return len(self.q) if self.q.ndim == 3 else None

    @property
    def stopped(self) -> NDArray[np.int64]:
        """The place in `conditions` of what ended each motion, or -1; () or (batch,)."""
        place = np.asarray(self.status, np.int64) - stopped(self.mech, 0)
        return np.where((place >= 0) & (place < len(self.conditions)), place, -1)

    @property
    def contact_forces(self) -> Array | None:
        """Mean forces of the ground in the step before each record, in world axes.

        (k, contacts, 3), or (batch, k, contacts, 3) [N]; None without contacts. They are made of
        recorded impulses at their first use.
        """
        return None if self.pushes is None else self.pushes.forces

    def gradient(self, q: ArrayLike | None = None, v: ArrayLike | None = None) -> RolloutGradient:
        """The gradient of a function of the records, by everything the rollout was given.

        The function is given by its slopes, a weight for each entry of each record: for
        ½ Σ |q − goal|² they are q − goal.

            runs = lw.rollout(arm, q, v, tau=tau, duration=1.0, step=1e-2)
            slopes = runs.gradient(q=runs.q - goal)
            tau -= rate * slopes.tau

        The motion is run in reverse, by one kernel, which costs about three times the rollout. It
        needs the state at every step. With `record_every=1` these are the records. Otherwise
        records are checkpoints, from which steps are made once more, part by part: a rollout of
        n steps with a record every √n of them takes memory for 2 √n states instead of n.

        Args:
            q: Weights of the positions, of the shape of `q` of this rollout, or without the axis
                of records for the last one; default: zeros. Quaternions have four weights.
            v: Weights of the velocities, likewise.

        Returns:
            The gradient by initial positions (along velocities, as in `mech.integrate`), initial
            velocities, joint forces or inputs of the law, and parameters; on the GPU where the
            records are. In a batch, motions that fail have gradients of NaN and a code.

        Raises:
            ModelError: The rollout was made step by step, or is a copy.
            ShapeError: Weights that do not fit.
            SimulationError: The gradient of a single motion grows without bounds.
        """
        if self.origin is None:
            raise ModelError(
                f"this rollout of {self.mech.name!r} by {self.integrator!r} has no gradient: it "
                "was made step by step (loops, couplings, too many bodies, a hinge without a "
                "formula), with actuators that have an activation, with noise or conditions, or is "
                "a copy. Hold loops with integrator='implicit' or open them with loops='open', and "
                "make it again."
            )
        like = arrays.foreign((self.q, self.v, q, v))
        motion = self.mech, self.integrator, self.step
        if not arrays.is_on_gpu(self.q):
            records = arrays.here("q", self.q), arrays.here("v", self.v)
            return gradient(*motion, records, self.status, self.origin, (q, v), like)
        with arrays.stream(like):
            records = arrays.taken("q", self.q), arrays.taken("v", self.v)
            return gradient(*motion, records, self.status, self.origin, (q, v), like)

    def __reduce__(self) -> tuple[Any, ...]:
        kept = (self.mech, self.integrator, self.step, self.t, self.q, self.v)
        make = partial(Rollout, not_modelled=self.not_modelled)
        return make, (*kept, self.status, self.failed_step)

    def __repr__(self) -> str:
        return f"<Rollout of {self}>"

    def __str__(self) -> str:
        many = "one motion" if self.batch is None else f"{self.batch} motions"
        ends = ""
        for k, name in enumerate(self.conditions):
            if count := int(np.count_nonzero(self.stopped == k)):
                ends += f"; {count} stopped by {name!r}"
        lost = int(np.count_nonzero(self.status)) - int(np.count_nonzero(self.stopped >= 0))
        ends += f"; {lost} of them end early" if lost and self.batch is not None else ""
        if self.penetration is not None and self.slip is not None and len(self.t) > 1:
            # the last record that is not lost has the largest
            deepest, slip = (float(x[x == x].max()) for x in (self.penetration, self.slip))
            ends += f"; contacts penetrate by at most {deepest:.2g} m and slip with {slip:.2g} m/s"
        return (
            f"{self.mech.name}: {many} of {self.t[-1]:.6g} s in steps of {self.step:.3g} s by "
            f"{self.integrator}, {len(self.t)} records each{ends}"
            + "".join(f"\n  not modelled: {line}" for line in self.not_modelled)
        )


def rollout(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    duration: float,
    step: float = 1e-3,
    tau: ArrayLike | None = None,
    controller: ControlLaw | tuple[ControlLaw, Any] | Planner | None = None,
    inputs: Mapping[str, ArrayLike] | None = None,
    parameters: Mapping[str, ArrayLike] | None = None,
    integrator: str = "rk4",
    record_every: int = 1,
    passive: bool = True,
    controls: NamedCommands | None = None,
    contacts: Ground | Sequence[ContactPoint] | None = None,
    noise: Mapping[str, Any] | None = None,
    seed: int = 0,
    first: int = 0,
    stop: Mapping[str, Any] | None = None,
    loops: Loops = "closed",
    sweeps: int | None = None,
    target: str = "cpu",
    dtype: Any = np.float64,
    threads: int | None = None,
) -> Rollout:
    """Move a mechanism through time, or many copies of it, in one call of one kernel.

    Each step of the integrator is derived and compiled together with forward dynamics, and the
    loops over steps and motions are part of the machine code: no Python runs in between. One vector
    register of motions advances at a time, and batches are spread over the cores. Mechanisms with
    many tens of bodies, whose straight-line code would be too long, move step by step instead, with
    the same result.

    Gravity, joint forces, and dampers and springs of drives act; actuators on request. Contacts,
    friction and limits act with integrator="implicit". `simulate` also takes controllers in Python,
    compliant contacts and events.

    Loops and couplings are held. With "implicit" they are part of the equations of each step. With
    other integrators such a mechanism moves step by step, and each step ends with a projection onto
    the nearest state that they allow, as in `simulate`.

    Args:
        q: Initial joint positions (nq,) or (batch, nq) [m or rad].
        v: Initial joint velocities (nv,) or (batch, nv) [m/s or rad/s]; default: at rest.
        duration: How long to move [s], a multiple of `step`.
        step: Length of a step [s].
        tau: Joint forces [N or N m], held over each step: None for none, (nv,) for all steps,
            (steps, nv) with a row for each step, (batch, 1, nv) with one for each motion, or
            (batch, steps, nv). (batch, nv) is read as one row per motion if q or v has as many
            rows and the number of steps differs.
        controller: Instead of `tau`, (law, goal) with a control law (`lw.control_law`); a law
            without a goal may be given alone. It is compiled into the step, sees the state at the
            beginning of the step, and its forces are held over the step. The goal is the desired
            value of `lw.tasks.task_position`, or its numbers from `law.goal`: (size,),
            (steps, size), (batch, 1, size) or (batch, steps, size). Or a
            `lw.control.RecedingHorizon`: each motion has its own plan, and each step is a tick.
        inputs: Other inputs of the law by name, in the same shapes: "kp", "kv", "velocity",
            "acceleration", "tau0", "applied"; default: the values of the law. One number may
            replace a row: (batch, 1, 1) for a gain of each motion.
        parameters: Numbers of the mechanism that replace its own, by name and in the same shapes:
            "gravity" (3 numbers), "inertia" (10 a body), "payload:NODE" (10), "armature" (nv); see
            `lw.compile`. Of what acts: "damping" and "stiffness" of drives (nv); "gain" and "bias"
            of actuators (3 each, see `lw.Actuator`); with "implicit" also "friction" of joints (nv)
            and "ground_friction" (one for each contact). Here one number may replace a row.
            Rollouts with other numbers share one kernel. Not for "variational".
        integrator: "rk4", "euler" (semi-implicit), "rk4_mujoco" or "variational"; or "implicit",
            a step of order one for robots that touch something: dampers, springs and servos act at
            its end, so that they may be stiff, and contacts, joint limits and Coulomb friction act
            by impulses.
        record_every: Steps from one record to the next; the last state is recorded too.
        passive: Whether dampers and springs of drives act: −damping v − stiffness (q − rest); with
            "implicit" also Coulomb friction.
        controls: Commands of the actuators of the mechanism, in their order, in the shapes of
            `tau`; or by name, {"servo": 0.1}, each a number or an array without the last axis, and
            0 for those not named; default: the actuators do not act. With "implicit", servos act at
            the end of each step and may be stiff; with others their forces are held over the step.
        contacts: What may touch, with "implicit". None for what the mechanism describes: its
            collision shapes against the planes of its world, with friction and filters of the
            file; a mechanism without such planes touches nothing. A `Ground` for all collision
            shapes against that plane; points, as those of `ground_contacts`; () for none.
        noise: Standard deviations of random forces, by name: "tau" for joint forces [N or N m], in
            the shapes of `tau` or one number; "push:NODE" for a force at a node or body [N], 3
            numbers in world axes or one. New numbers are drawn for each step. (deviation, period)
            holds them for a period [s], and (deviation, period, duration) lets them act at its
            beginning. They are nearly normal and come from Philox counters of (motion, step):
            identical on CPU and GPU, whatever the batch.
        seed: Of the noise; the same seed gives the same motions.
        first: Number of the first motion in the counters of the noise: a batch that is made in
            parts has the noise of the whole.
        stop: Conditions that end a motion, by name: (low, high) for an observation of
            `lw.Simulator` ("base_height", "position:NODE", ...), all numbers of which have to stay
            between these; or (expression, low, high). The motion keeps its last state, `status`
            and `failed_step` say when, and `stopped` by which condition.
        loops: "closed" holds loops and couplings: on the "cpu" and in float64, with "implicit"
            anywhere; "open" leaves them open.
        sweeps: Sweeps over the impulses of a step with "implicit", at most; default: 200, and 20 on
            a GPU. They end early once no velocity changes by 1e-9 m/s or rad/s (4e-5 in float32),
            or by 1e-4 after 20 of them.
        target: "cpu", or "cuda" for a GPU, where each thread moves one motion. NumPy arrays are
            copied there and back. Arrays of CuPy, Torch or JAX stay there (q, v and tau of the
            given `dtype`), and so do `q` and `v` of the result, whose axis of motions is the
            innermost one in memory.

    Returns:
        The records. In a batch, motions that fail are NaN from then on, each with a code, and a
        `TroubleWarning` reports them.

    Raises:
        SimulationError: A single motion grows without bounds; says when, and why.
        ClosureError: Loops are open at the beginning of a motion.
        ModelError: An unknown integrator or target, or an invalid duration, step or thread count.
        ShapeError: Arrays that do not fit together.
    """
    if isinstance(controller, Planner):
        unused = dict(tau=tau, inputs=inputs, controls=controls, contacts=contacts, noise=noise,
                      stop=stop)  # fmt: skip
        refused = [name for name, x in unused.items() if x is not None]
        refused += ["target"] * (target != "cpu") + ["dtype"] * (np.dtype(dtype) != np.float64)
        if refused:
            raise ModelError(
                f"{', '.join(refused)} was given together with a receding horizon, which a rollout "
                "runs on the CPU in float64, and which gives the joint forces itself."
            )
        motion = planned_motion(
            mech if is_closed(mech, loops) else tree_of(mech), controller, q, v,
            step=number(step, "step", above=0.0), integrator=integrator, passive=passive,
            parameters=parameters,
        )  # fmt: skip
        every, steps = count(record_every, "record_every", least=1), _steps(duration, motion.step)
        done = _run(
            motion.kernel, motion.start, motion.held, motion.step, steps, every,
            None if threads is None else count(threads, "threads", least=1), (0, 0),
        )  # fmt: skip
        times = motion.step * np.array([*range(0, steps, every), steps] if steps else [0])
        each = np.split(done.records, [mech.nq, mech.nq + mech.nv], axis=-1)
        rows: Any = 0 if motion.single else slice(None)
        q_all, v_all, forces = (x[rows] for x in each)
        result = Rollout(
            motion.kernel.mech, integrator, motion.step, times, q_all, v_all,
            done.status[rows], done.failed[rows], motion.kernel, tau=forces,
        )  # fmt: skip
        _report(result)
        return result
    law, goal = check_controller(controller)
    named = {"inputs": inputs or {}, "parameters": parameters or {}}
    if any(map(is_tracked, (q, v, tau, goal, *(x for n in named.values() for x in n.values())))):
        from linkwise.simulation.torch_rollout import differentiable

        def run(q: Any, goal: Any, **arrays: Any) -> Rollout:
            return rollout(
                mech,
                q,
                controller=controller if goal is None or law is None else (law, goal),
                duration=duration,
                step=step,
                integrator=integrator,
                record_every=record_every,
                passive=passive,
                controls=controls,
                contacts=contacts,
                noise=noise,
                seed=seed,
                first=first,
                stop=stop,
                loops=loops,
                sweeps=sweeps,
                target=target,
                dtype=dtype,
                threads=threads,
                **arrays,
            )

        return differentiable(run, {"q": q, "v": v, "tau": tau, "goal": goal}, named)
    if law is None and inputs is not None:
        raise ModelError(
            "inputs are those of a control law; give controller=(lw.control_law(...), goal)."
        )
    if law is not None and tau is not None:
        raise ModelError("tau and controller are both given; a law gives the joint forces itself.")
    if target not in ("cpu", "cuda"):
        raise ModelError(f"target={target!r} is unknown; a rollout runs on 'cpu' or 'cuda'.")
    if callable(tau):
        raise ModelError(
            "tau is a function; a rollout runs no Python between its steps. Give joint forces as "
            "an array, controller=(lw.control_law(...), goal), or use lw.simulate(..., "
            "controller=...)."
        )
    on_gpu = target == "cuda"
    for name, array in {"q": q, "v": v, "tau": tau, "controls": controls}.items():
        if not on_gpu and arrays.is_on_gpu(array):
            arrays.here(name, array)  # says how to copy it
    check_mechanism(mech)
    closed = is_closed(mech, loops)
    size = itemsize(dtype)
    if closed and (on_gpu or size != 8) and integrator != "implicit":
        refuse(mech, f"lw.rollout(..., target={target!r}, dtype={np.dtype(dtype).name})")
    mech = mech if closed else tree_of(mech)
    length = number(step, "step", above=0.0)
    steps = _steps(duration, length)
    every = count(record_every, "record_every", least=1)
    q_start: Any = _checked(mech.check_q, q, on_gpu)
    v_start: Any = _checked(mech.check_v, _at_rest(mech, q, on_gpu) if v is None else v, on_gpu)
    if law is None:
        held = {"tau": _checked(lambda x: joint_forces(mech, x), tau, on_gpu)}
        sizes, scalars = {"tau": mech.nv}, list[str]()
    else:
        held = commands(law, goal, inputs)
        sizes = {name: x.shape[-1] for name, x in law_inputs(law).items()}
        scalars = [name for name in held if name != "goal"]
    points = contact_points(mech, contacts, integrator)
    most = checked_sweeps(sweeps, integrator, target)
    if controls is not None:
        if integrator == "variational":
            raise ModelError(
                "controls were given with integrator='variational', where actuators do not act; "
                "use 'rk4', 'euler', 'rk4_mujoco' or 'implicit'."
            )
        held["control"] = _checked(lambda x: actuator_commands(mech, x), controls, on_gpu)
        sizes["control"] = len(mech.actuators)
    numbers = mechanism_numbers(mech, parameters, points)
    for name, values in numbers.items():
        if name in motion_parameters.ACTING:
            motion_parameters.check(
                mech,
                name,
                values,
                integrator=integrator,
                contacts=points,
                actuated=controls is not None,
                with_passive=passive,
            )
    chances, deviations = checked_noise(mech, noise, length)
    episode = Episode(chances, checked_stop(mech, stop, size))
    if chances and integrator == "variational":
        raise ModelError("noise was given with integrator='variational', where it does not act.")
    seed = count(seed, "seed", most=(1 << 63) - 1)
    first = count(first, "first", most=(1 << 32) - 1)
    held |= numbers | deviations
    sizes |= {name: x.shape[-1] for name, x in (numbers | deviations).items()}
    given = {name: x.shape for name, x in ({"q": q_start, "v": v_start} | held).items()}
    held = shaped(held, sizes, steps, (q_start, v_start), scalars)
    like = arrays.foreign((q, v, tau))
    single = q_start.ndim == v_start.ndim == 1 and all(x.ndim < 3 for x in held.values())
    threads = None if threads is None else count(threads, "threads", least=1)
    if passive and steps > 1 and REPORTED.get() and not arrays.is_on_gpu(q_start):
        begins = q_start.reshape(-1, mech.nq)[:1].ravel()
        warn_if_too_stiff(mech, begins, length, integrator, _largest(numbers.get("damping")))
    more: Any = np.zeros(0)
    if closed and integrator == "implicit" and not any(map(arrays.is_on_gpu, (q, v))):
        check_beginning(mech, (q_start, v_start), size)
    if on_gpu:
        kernel = gpu_kernel(
            mech,
            integrator,
            with_passive=passive,
            itemsize=size,
            law=law,
            parameters=tuple(numbers),
            contacts=points,
            actuated=controls is not None,
            episode=episode,
            sweeps=most,
        )
        motions = kernel(
            q_start, v_start, held, step=length, steps=steps, every=every, seed=seed, first=first
        )
        q_all, v_all, more = motions.q, motions.v, motions.more
    else:
        batch, kind = _batch(q_start, v_start, held), f"float{8 * size}"
        starts = [np.broadcast_to(x, (batch, x.shape[-1])) for x in (q_start, v_start)]
        begin = np.concatenate(starts, axis=1).astype(kind)
        options = (
            integrator,
            passive,
            size,
            law,
            tuple(numbers),
            threads,
            points,
            episode,
            (seed, first),
            most,
        )
        kernel, motions = _on_cpu(mech, begin, held, length, steps, every, *options)
        q_all, v_all, more = np.split(motions.records, [mech.nq, mech.nq + mech.nv], axis=-1)
    warn_if_bent(mech, q_all)
    times = length * np.array([*range(0, steps, every), steps] if steps else [0])
    status, failed = motions.status, motions.failed
    if not on_gpu:
        q_all, v_all = (arrays.given_back(x, like) for x in (q_all, v_all))
    if single:
        q_all, v_all, status, failed = q_all[0], v_all[0], status[0], failed[0]
    origin = None
    lasting = controls is not None and with_activation(mech)  # which no record contains
    lasting = lasting or episode != NOTHING
    if kernel is not None and not lasting:
        names = tuple(numbers)
        origin = Origin(
            held, given, law, passive, names, steps, every, threads, points, target=target
        )
    records = (times, q_all, v_all, status, failed)
    shown = shown_by(points, more[0] if single else more, length, like)
    if REPORTED.get() and not arrays.is_on_gpu(q_start):
        _report_inside(mech, q_start, points, shown.penetration)
    parts: dict[str, Any] = {x.name: getattr(shown, x.name) for x in fields(Shown)}
    parts["not_modelled"] = inactive(
        mech, integrator, passive, controls is not None, contacts is None, bool(points)
    )
    parts["conditions"] = tuple(x.watched.name for x in episode.stop)
    result = Rollout(mech, integrator, length, *records, kernel, origin, **parts)
    _report(result)
    return result


def _largest(values: Array | None) -> Array | None:
    """The largest of each column over motions and steps."""
    return None if values is None else values.reshape(-1, values.shape[-1]).max(axis=0, initial=0.0)


def _steps(duration: float, step: float) -> int:
    """The number of steps, which must be whole."""
    ratio = number(duration, "duration", least=0.0) / step
    if ratio > MOST_STEPS:
        raise ModelError(
            f"duration={duration!r} in steps of {step:.3g} s makes {ratio:.3g} steps; a rollout "
            f"has at most {MOST_STEPS:.0e}."
        )
    steps = round(ratio)
    if abs(ratio - steps) > 1e-6 + 1e-15 * ratio:
        raise ModelError(
            f"duration={duration!r} is {ratio:.6g} steps of {step:.6g} s; a rollout makes equal "
            f"steps: use duration={steps * step:.6g}, or another step."
        )
    return steps


def _at_rest(mech: Mechanism, q: Any, on_gpu: bool) -> Array:
    if on_gpu and arrays.is_on_gpu(q):
        raise ModelError("v is missing; where q is on the GPU, v must be an array there as well.")
    return np.zeros(mech.nv)


def _checked(check: Callable[[Any], Array], value: Any, on_gpu: bool) -> Any:
    """An array that is on the GPU already as it is; any other after a check."""
    return value if on_gpu and arrays.is_on_gpu(value) else check(value)


def _on_cpu(
    mech: Mechanism,
    begin: Array,
    held: Mapping[str, Array],
    length: float,
    steps: int,
    every: int,
    integrator: str,
    with_passive: bool,
    itemsize: int,
    law: ControlLaw | None,
    parameters: tuple[str, ...],
    threads: int | None,
    contacts: tuple[ContactPoint, ...],
    episode: Episode,
    chance: tuple[int, int],
    sweeps: int,
) -> tuple[RolloutKernel | None, Motions]:
    """Motions from the states (batch, nq + nv), by a kernel where one can be compiled."""
    try:
        if is_closed(mech) and integrator != "implicit":  # steps end with a projection
            check_rollout(mech, integrator, law, parameters)
            raise LoweringError("loops and couplings are held step by step")
        kernel = rollout_kernel(
            mech,
            integrator,
            with_passive=with_passive,
            itemsize=itemsize,
            law=law,
            parameters=parameters,
            contacts=contacts,
            actuated="control" in held,
            episode=episode,
            sweeps=sweeps,
        )
        return kernel, _run(kernel, begin, held, length, steps, every, threads, chance)
    except LoweringError as error:  # too many bodies, branches in the step of a hinge, or loops
        long = integrator == "implicit" and is_long(mech, contacts) and is_traceable(mech)
        if (integrator == "implicit" and not long) or episode != NOTHING:
            raise ModelError(
                f"{mech.name!r} cannot move by implicit steps, with noise or conditions: {error}"
            ) from None
        if "control" in held and not long:
            raise ModelError(
                f"{mech.name!r} cannot move with its actuators by {integrator!r}, only by "
                f"'implicit': {error}"
            ) from None
        if parameters:
            raise ModelError(
                f"parameters has {', '.join(parameters)}, and {mech.name!r} moves step by step, "
                f"with its own numbers: {error}"
            ) from None
        forces = dampers_and_springs(mech) if with_passive else None
        q, v = np.split(begin, [mech.nq], axis=1)
        q, v = (q, v) if long else beginnings(mech, q, v)
        done = stepwise(mech, integrator, q, v, held, length, steps, every, forces, law)
        first = np.zeros((len(q), 1, done.records.shape[-1]))
        first[:, 0, : mech.nq + mech.nv] = np.concatenate([q, v], axis=1)
        records = np.concatenate([first, done.records], axis=1)
        return None, Motions(records, done.status, done.failed)


def _run(
    kernel: RolloutKernel,
    start: Array,
    held: Mapping[str, Array],
    step: float,
    steps: int,
    every: int,
    threads: int | None,
    chance: tuple[int, int],
) -> Motions:
    """All records, the beginning first.

    Kernels write into the final array: copying the records would take as long as the motion.
    """
    nq, width = kernel.mech.nq, start.shape[1]
    records = np.empty((len(start), 1 - (-steps // every), kernel.width), kernel.dtype)
    records[:, 0, :width], records[:, 0, width:] = start, 0.0
    if not steps:
        return Motions(records, np.zeros(len(start), np.int32), np.full(len(start), -1, np.int64))
    q, v = np.split(start, [nq], axis=1)
    done = kernel.run(q, v, held, step, steps, every, threads, records[:, 1:], *chance)
    return Motions(records, done.status, done.failed)


def _report(result: Rollout) -> None:
    """Raise if a single motion failed; warn if some of many did."""
    if not REPORTED.get():
        return
    _report_unsolved(result)
    status = np.where(result.stopped >= 0, 0, result.status)
    if not np.any(status):
        return
    if result.batch is None:
        n = int(result.failed_step)
        raise SimulationError(
            f"{result.mech.name!r} by {result.integrator!r} in steps of {result.step:.6g} s: "
            f"{describe(result.mech, int(result.status))}, in the step after t = "
            f"{n * result.step:.9g} s. A shorter step or other forces may help."
            + remedy(result.mech, result.integrator),
            recording=result,
        )
    kinds = Counter(int(code) for code in status if code)
    (code, _), lost = kinds.most_common(1)[0], sum(kinds.values())
    first = int(np.flatnonzero(status)[0])
    when = float(result.failed_step[first]) * result.step
    warnings.warn(
        f"{lost} of {result.batch} motions of {result.mech.name!r} end early and are NaN from "
        f"there; the first is number {first}, after t = {when:.6g} s. Most often: "
        f"{describe(result.mech, code)}." + remedy(result.mech, result.integrator),
        TroubleWarning,
        stacklevel=caller(),
    )


def _report_inside(
    mech: Mechanism, q: Array, points: tuple[ContactPoint, ...], penetration: Any
) -> None:
    """Warn if a motion begins deep inside the ground: only then its first record is deep."""
    if penetration is None or penetration.shape[-1] < 2:
        return
    first = penetration[..., 1]
    if not bool((first <= DEEP).all()):  # NaN for a motion that failed at once
        deepest = int(first.argmax()) if q.ndim > 1 and len(q) > 1 else 0
        warn_if_inside(mech, q.reshape(-1, mech.nq)[deepest], points)


def _report_unsolved(result: Rollout) -> None:
    """Warn if impulses of some steps were not solved for."""
    if result.unsolved is None:
        return
    last: Any = result.unsolved[..., -1]  # NaN for motions that fail
    many = int((last > UNSOLVED).sum())
    if many:
        which = "" if result.batch is None else f" in {many} of {result.batch} motions"
        warn_unsolved(result.mech, float(last[last > UNSOLVED].max()), result.step, which)


def _batch(q: Array, v: Array, held: Mapping[str, Array]) -> int:
    """The number of motions."""
    shapes = {"q": q.shape, "v": v.shape} | {name: x.shape for name, x in held.items()}
    sizes = {x.shape[0] for x in (q, v) if x.ndim == 2}
    sizes |= {x.shape[0] for x in held.values() if x.ndim == 3}
    sizes = sizes - {1} or sizes or {1}
    flat = max(q.ndim, v.ndim) < 3
    if len(sizes) > 1 or not flat:
        text = ", ".join(f"{name} has shape {shape}" for name, shape in shapes.items())
        what = "their batches differ" if flat else "q and v have one axis, or two for a batch"
        raise ShapeError(f"{text}; {what}.")
    if sizes == {0}:
        raise ShapeError("q, v or an input has no rows: a rollout needs at least one motion.")
    return sizes.pop()
