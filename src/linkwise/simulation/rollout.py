"""Rollouts: many steps of one motion, or of many, in one call of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np

from linkwise.arguments import count, is_tracked, itemsize, number
from linkwise.codegen import arrays
from linkwise.codegen.stepping.device import Course, Motions
from linkwise.codegen.stepping.kernel import MotionKernel
from linkwise.dynamics.actuator_force import NamedCommands, actuator_commands
from linkwise.dynamics.kernels import Loops, check_mechanism, is_closed, refuse, tree_of
from linkwise.errors import LoweringError, ModelError, ShapeError
from linkwise.model.bending import warn_if_bent
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.episode import NOTHING
from linkwise.simulation.implicit.ground import ContactPoint, Ground
from linkwise.simulation.motion_request import MotionRequest
from linkwise.simulation.motion_setup import LARGEST_SEED, MotionSetup, motion_setup
from linkwise.simulation.motion_status import with_status, without
from linkwise.simulation.planned import Planner, check_planner, planner_inputs
from linkwise.simulation.rollout_gradient import Origin
from linkwise.simulation.rollout_input import (
    FeedbackLaw,
    check_controller,
    commands,
    joint_forces,
    law_inputs,
    shaped,
)
from linkwise.simulation.rollout_kernel import motion_kernel
from linkwise.simulation.rollout_report import REPORTED, report, report_inside
from linkwise.simulation.rollout_result import Rollout
from linkwise.simulation.shown import Shown, shown_by
from linkwise.simulation.stepwise import moved_stepwise
from linkwise.spatial.array import Array, ArrayLike

MOST_STEPS = 10**10
"""The largest number of steps; more would never finish."""


def rollout(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    duration: float,
    step: float = 1e-3,
    tau: ArrayLike | None = None,
    controller: FeedbackLaw | tuple[FeedbackLaw, Any] | Planner | None = None,
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
            Rollouts with other numbers share one kernel. Not for "variational", and "locked" not
            where loops are held.
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
            or by 1e-4 after 20 of them, or where more bring next to nothing.
        target: "cpu", or "cuda" for a GPU, where each thread moves one motion. NumPy arrays are
            copied there and back. Arrays of CuPy, Torch or JAX stay there (q, v and tau of the
            given `dtype`), and so do `q` and `v` of the result, whose axis of motions is the
            innermost one in memory.

    Returns:
        The records. In a batch, motions that fail are NaN from then on, each with a code, and a
        `TroubleWarning` reports them. Those whose own inputs are not finite, or whose quaternions
        are not of unit length, are NaN from the beginning.

    Raises:
        SimulationError: A single motion grows without bounds; says when, and why.
        ClosureError: Loops are open at the beginning of a motion.
        ModelError: An unknown integrator or target, or an invalid duration, step or thread count.
        ShapeError: Arrays that do not fit together.
    """
    acting: dict[str, Any] = {
        "integrator": integrator, "passive": passive, "contacts": contacts, "loops": loops,
        "noise": noise, "stop": stop, "sweeps": sweeps, "target": target, "dtype": dtype,
    }  # fmt: skip
    planner = controller if isinstance(controller, Planner) else None
    law, goal = (None, None) if planner is not None else check_controller(controller)
    named = {"inputs": inputs or {}, "parameters": parameters or {}}
    if any(map(is_tracked, (q, v, tau, goal, *(x for n in named.values() for x in n.values())))):
        from linkwise.simulation.torch_rollout import differentiable

        plain = partial(
            rollout, mech, duration=duration, step=step, record_every=record_every, seed=seed,
            controls=controls, first=first, threads=threads, **acting,
        )  # fmt: skip

        def run(goal: Any, **given: Any) -> Rollout:
            of = controller if goal is None or law is None else (law, goal)
            return plain(controller=of, **given)

        return differentiable(run, {"q": q, "v": v, "tau": tau, "goal": goal}, named)
    _check_forces(law, planner, tau, inputs)
    on_gpu = target == "cuda"
    for name, array in {"q": q, "v": v, "tau": tau, "controls": controls}.items():
        if not on_gpu and arrays.is_on_gpu(array):
            arrays.here(name, array)  # says how to copy it
    check_mechanism(mech)
    if is_closed(mech, loops) and (on_gpu or itemsize(dtype) != 8) and integrator != "implicit":
        refuse(mech, f"lw.rollout(..., target={target!r}, dtype={np.dtype(dtype).name})")
    if planner is not None:
        length = number(step, "step", above=0.0)
        unused = {"controls": controls, "contacts": contacts, "noise": noise, "stop": stop}
        check_planner(planner, integrator, length, unused, not on_gpu and itemsize(dtype) == 8)
    steps = _steps(duration, number(step, "step", above=0.0))
    like = arrays.foreign((q, v, tau))

    def checked(
        q: Any, v: Any, tau: Any, goal: Any, controls: Any, **named: Mapping[str, Any]
    ) -> tuple[MotionSetup, Any, Any, dict[str, Any]]:
        setup = motion_setup(
            mech, step=step, actuated=controls is not None, parameters=named["parameters"],
            law=law, **acting,
        )  # fmt: skip
        moved = setup.request.mech
        q_start = _checked(moved.check_q, q, on_gpu)
        speed = _at_rest(moved, q, on_gpu) if v is None else v
        v_start, held = _checked(moved.check_v, speed, on_gpu), dict[str, Any]()
        if planner is None and law is None:
            held = {"tau": _checked(lambda x: joint_forces(moved, x), tau, on_gpu)}
        elif law is not None:
            held = commands(law, goal, named["inputs"])
        if controls is not None:
            held["control"] = _checked(lambda x: actuator_commands(moved, x), controls, on_gpu)
        return setup, q_start, v_start, held

    numbers: dict[str, Any] = {"q": q, "v": v, "tau": tau, "goal": goal, "controls": controls}
    q_start: Any
    v_start: Any
    codes, every = None, count(record_every, "record_every", least=1)
    try:
        setup, q_start, v_start, held = checked(**numbers, **named)
    except ModelError:  # of a batch, only the motions at fault have no result
        moved = mech if is_closed(mech, loops) else tree_of(mech)
        codes, some = (None, {}) if planner else with_status(moved, numbers | named, steps)
        if codes is None:
            raise
        setup, q_start, v_start, held = checked(**some)
    request, length = setup.request, setup.step
    mech, points = request.mech, request.contacts
    sizes, scalars = dict[str, int](), list[str]()
    if planner is None and law is None:
        sizes = {"tau": mech.nv}
    elif law is not None:
        sizes = {name: x.shape[-1] for name, x in law_inputs(law).items()}
        scalars = [name for name in held if name not in ("goal", "control")]
    if controls is not None:
        sizes["control"] = len(mech.actuators)
    course = Course(
        length,
        steps,
        every,
        None if threads is None else count(threads, "threads", least=1),
        count(seed, "seed", most=LARGEST_SEED),
        count(first, "first", most=(1 << 32) - 1),
    )
    held |= setup.held
    sizes = {name: x.shape[-1] for name, x in held.items()} | sizes
    given = {name: x.shape for name, x in ({"q": q_start, "v": v_start} | held).items()}
    held = shaped(held, sizes, steps, (q_start, v_start), scalars)
    single = q_start.ndim == v_start.ndim == 1 and all(x.ndim < 3 for x in held.values())
    if planner is not None:
        request = replace(request, planner=planner)
        held |= planner_inputs(planner, mech, held)
    if steps > 1 and REPORTED.get():
        setup.warn_if_too_stiff(q_start)
    if integrator == "implicit":
        setup.check_beginning(q_start, v_start)
    kernel, motions = _moved(request, target, (q_start, v_start), held, course)
    motions = motions if codes is None else without(motions, codes)
    warn_if_bent(mech, motions.q)
    rows: Any = 0 if single else slice(None)
    q_all, v_all, more = (x[rows] for x in (motions.q, motions.v, motions.more))
    shown = Shown() if planner is not None else shown_by(points, more, length, like)
    if REPORTED.get() and not arrays.is_on_gpu(q_start):
        report_inside(mech, q_start, points, shown.penetration)
    if not on_gpu:
        q_all, v_all = (arrays.given_back(x, like) for x in (q_all, v_all))
    origin = None
    if planner is None and request.episode == NOTHING:
        origin = Origin(request, target, held, given, course)
        if kernel is None and not origin.projected:
            origin = None  # nothing but a kernel runs such a motion in reverse
    result = Rollout(
        mech,
        integrator,
        length,
        length * np.array([*range(0, steps, every), steps] if steps else [0]),
        q_all,
        v_all,
        motions.status[rows],
        motions.failed[rows],
        kernel,
        origin,
        **{x.name: getattr(shown, x.name) for x in fields(Shown)},
        tau=None if planner is None else more,
        conditions=tuple(x.watched.name for x in request.episode.stop),
        not_modelled=setup.not_modelled,
    )
    report(result)
    return result


def _check_forces(
    law: FeedbackLaw | None,
    planner: Planner | None,
    tau: object,
    inputs: Mapping[str, ArrayLike] | None,
) -> None:
    """Raise ModelError unless the joint forces have one source, which is not a function."""
    if law is None and inputs is not None:
        raise ModelError(
            "inputs are those of a control law; give controller=(lw.control_law(...), goal)."
        )
    if tau is not None and (law is not None or planner is not None):
        raise ModelError(
            "tau and controller are both given; a controller gives the joint forces itself."
        )
    if callable(tau):
        raise ModelError(
            "tau is a function; a rollout runs no Python between its steps. Give joint forces as "
            "an array, controller=(lw.control_law(...), goal), or use lw.simulate(..., "
            "controller=...)."
        )


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


def _moved(
    request: MotionRequest,
    target: str,
    start: tuple[Any, Any],
    held: Mapping[str, Any],
    course: Course,
) -> tuple[MotionKernel | None, Motions]:
    """Motions from q and v, by a kernel where one can be compiled; where not, step by step."""
    on_gpu = target == "cuda"
    batch = 0 if on_gpu else _batch(*start, held)
    try:
        if is_closed(request.mech) and request.integrator != "implicit":
            raise LoweringError("loops and couplings are held step by step")  # by a projection
        planned = request.planner is not None  # whose kernels live as long as its rollouts
        kernel = MotionKernel(request) if planned else motion_kernel(request, target)
    except LoweringError as error:  # too many bodies, branches in the step of a hinge, or loops
        if on_gpu or request.planner is not None:
            raise
        rows = [np.array(np.broadcast_to(x, (batch, x.shape[-1]))) for x in start]
        begin = rows[0], rows[1]
        return None, moved_stepwise(request, begin, held, course, error)
    return kernel, kernel.moved(*start, held, course)


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
