"""`lw.simulate`: a mechanism through time, with controllers, forces, contacts, limits and loops."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from linkwise.dynamics.actuator_force import actuator_commands
from linkwise.dynamics.kernels import Loops, check_loops, check_mechanism, tree_of
from linkwise.dynamics.quantity import Frame
from linkwise.errors import (
    EnergyWarning,
    LoweringError,
    ModelError,
    SimulationError,
    caller,
)
from linkwise.model.bending import warn_if_bent
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import time_compiling
from linkwise.simulation.applied_force import WORKERS, AppliedForces, OutsideForce, OutsideForces
from linkwise.simulation.collision import Collisions
from linkwise.simulation.contact import Contacts
from linkwise.simulation.controller import (
    Commands,
    Force,
    GivenCommands,
    GivenController,
    JointForces,
    actuator_layout,
)
from linkwise.simulation.divergence import DivergenceError, EnergyGuard, advice
from linkwise.simulation.implicit.collision_steps import CollisionSteps
from linkwise.simulation.implicit.ground import ContactPoint, Ground
from linkwise.simulation.implicit.long_steps import LongSteps, is_long
from linkwise.simulation.implicit.run import ImplicitRun
from linkwise.simulation.implicit.steps import KernelSteps, Stepper as ImplicitStepper
from linkwise.simulation.implicit.touching import contact_points
from linkwise.simulation.inactive import of_contacts
from linkwise.simulation.integrators import INTEGRATORS, Integrator, integrator
from linkwise.simulation.limits import (
    Limits,
    LimitSpring,
    LimitSprings,
    LimitStops,
    check_limits,
)
from linkwise.simulation.loop_keeper import DRIFT_LIMIT, LoopKeeper, Stabilization
from linkwise.simulation.margin import Margin, MarginGroup, Watch
from linkwise.simulation.moment import Moment
from linkwise.simulation.observer import Log, Observer, Probe
from linkwise.simulation.recording import Recording
from linkwise.simulation.report import energy_flow
from linkwise.simulation.stepper import Stepper
from linkwise.simulation.stiff_drive import warn_if_too_stiff
from linkwise.simulation.timetable import Progress, Timetable, timetable
from linkwise.simulation.work import adds_up, energy_lost
from linkwise.spatial.array import Array, ArrayLike, constant
from linkwise.tasks.force.positive import not_negative, positive
from linkwise.tasks.force.surface import CompliantSurface


def simulate(
    mech: Mechanism,
    q: ArrayLike | None = None,
    v: ArrayLike | None = None,
    *,
    duration: float,
    step: float = 1e-3,
    integrator: str = "rk4",
    tau: JointForces | Force = 0.0,
    controller: GivenController | None = None,
    controls: GivenCommands | None = None,
    control_step: float | None = None,
    forces: OutsideForces | OutsideForce | None = None,
    forces_frame: Frame = "node",
    contacts: Ground
    | Collisions
    | Sequence[ContactPoint]
    | Mapping[str, tuple[str, CompliantSurface]]
    | Sequence[tuple[str, CompliantSurface]]
    | None = None,
    limits: Limits | None = None,
    watch: Mapping[str, Margin] | None = None,
    stop: bool = True,
    passive: bool = True,
    loops: Loops = "closed",
    stabilization: Stabilization = "projection",
    baumgarte: tuple[float, float] = (20.0, 20.0),
    drift_limit: float = DRIFT_LIMIT,
    record_every: int | None = None,
    probes: Mapping[str, Probe] | None = None,
    rtol: float = 1e-8,
    atol: float = 1e-10,
    progress: bool | Callable[[float], None] | None = None,
    start: float = 0.0,
) -> Recording:
    """Move a mechanism through time.

        rec = lw.simulate(arm, q, duration=2.0, controller=(law, goal), control_step=1e-3)
        print(rec)                       energy, momentum, loops, events, what was not modelled
        rec["energy.total"], rec["q[elbow]"], rec.at(0.5), rec.save("run.npz")

    Expression:
        v̇ = 𝓜⁻¹ (τ − C + J* f)   on trees (`forward_dynamics`)
        𝓜 v̇ + C = τ + J* f + J_c* λ,   J_c v̇ + γ = 0   with loops (`forward_dynamics`)
    with τ = τ_user − d v − k (q − rest), integrated on the configuration manifold by one of
    `lw.simulation.INTEGRATORS`; the docs compare them.

    If no Python has to run within a step (a tree, constant or held joint forces, no forces at
    nodes), one compiled kernel makes long runs, thousands of steps at a time; with a controller
    that is a function, as many as its forces are held for.

    A run that cannot continue raises `SimulationError`; its `recording` has what was computed.
    Ctrl-C ends a run, which then returns what was computed. If energy does not add up because steps
    are too long, a warning says so (`linkwise.errors.EnergyWarning`), and so does the report.

    Args:
        q: Initial joint positions (nq,) [m or rad]; default: neutral.
        v: Initial joint velocities (nv,) [m/s or rad/s]; default: at rest.
        duration: How long to move [s].
        step: Length of a step [s]; the last one may be shorter, and with `control_step` steps are
            shortened so that an integer number of them fits. "adaptive" chooses its own.
        integrator: "rk4", "euler", "rk4_mujoco", "variational" or "adaptive"; "rosenbrock",
            linearly implicit, for stiff forces of the user; or "implicit", the
            steps of `lw.rollout` for robots that touch something: servos, dampers and springs act
            at the end of a step and may be stiff; contacts, joint limits and Coulomb friction act
            by impulses. Functions of the user are then called at the beginning of each step, and
            events happen at its end.
        tau: Joint forces [N or N m]: a number for all, (nv,), numbers by the names of hinges, or a
            function of (t, q, v) that returns one of these and is called at every stage.
        controller: Joint forces that are added to `tau`: a function of (t, q, v); (law, goal) with
            a `lw.tasks.ControlLaw`, `lw.TaskController` or anything called with (q, v, goal), where
            the goal may be a function of t; (nv,); or a table (k, nv) with a row for each
            `control_step`.
        controls: Commands of the actuators of the mechanism, with "implicit": a number for all,
            (a,) in their order, numbers by name, a table (k, a) with a row for each
            `control_step`, or a function of (t, q, v) that returns one of the first three; default:
            the actuators do not act, and the report says so.
        control_step: Period [s] of the controller; its forces are held in between, as by a computer
            that works in ticks. Default: it runs at every stage of every step, as if it were part
            of the mechanics. It is the period of `controls` as well.
        forces: External forces by node, (moment, force) (6,), as in `forward_dynamics`, or a
            function of (t, q, v) that returns them.
        contacts: With "implicit", what may touch, as in `lw.rollout`, or `Collisions` for contacts
            between any bodies; default: what the mechanism describes. With other integrators nodes
            and the surfaces they may touch: (node, lw.tasks.CompliantSurface), several of these, or
            a dictionary of them by name; a slip speed that is too small for the step triggers a
            warning. Touching and leaving are events.
        limits: Joint limits: "ignore" (the report says which were passed), "stop" at the first that
            is reached, "spring" or a `lw.simulation.LimitSpring`; with "implicit" they act by
            impulses, "impulse", or "stop". Default: "impulse" with "implicit", else "ignore".
        watch: Margins by name: functions of (t, q, v, tau) that become negative on failure;
            `grasp.watch()` makes them for slip. Here tau is the sum of all joint
            forces.
        stop: Whether to end at the first lost margin, or to note it and continue.
        passive: Whether dampers and springs of the drives act, including those in loops; with
            "implicit" also Coulomb friction.
        stabilization: How loops are kept closed: "projection", "baumgarte" or "none".
        baumgarte: The two rates [1/s] for stabilization="baumgarte".
        drift_limit: Errors of loops larger than this [m or rad] after one step end the run.
        record_every: Steps from one record to the next; default: about 1000 records. The last state
            and those of events are recorded as well.
        probes: More channels: functions of (t, q, v, tau) by "name [unit]" that return a number or
            (n,) at each record. Here tau is that of the user, as recorded.
        rtol: Relative tolerance of "adaptive".
        atol: Absolute tolerance of "adaptive" [rad, m, rad/s or m/s].
        progress: A bar on stderr: None for one after a second if that is a terminal, True at once,
            False never; or a function that is called with the time [s] now and then.
        start: The initial time [s].

    Returns:
        A recording; `print` it for a report.

    Raises:
        ModelError: An invalid argument.
        ClosureError: Loops are open at the beginning.
        SimulationError: The motion diverges, or a controller returns NaN; says when, where and why.
        MissingExtraError: "adaptive" without SciPy.
    """
    _check_mechanism(mech)
    check_loops(loops)
    mech = mech if loops == "closed" else tree_of(mech)
    began = time.monotonic(), time_compiling()
    implicit = integrator == "implicit"
    start = float(constant(start, (), "start"))
    duration = not_negative("duration", duration, "s")
    plan = timetable(duration, step, control_step, record_every, start)
    if control_step is not None and controller is None and controls is None:
        raise ModelError(
            f"control_step={control_step!r} was given without a controller; it is the period "
            "of controller=... and of controls=..."
        )
    if controls is not None and not implicit:
        raise ModelError(
            f"controls were given with integrator={integrator!r}; actuators act in steps by "
            "integrator='implicit', and in lw.rollout."
        )
    limits = check_limits(limits, implicit=implicit)
    q = mech.check_q(mech.neutral() if q is None else q)
    v = mech.check_v(np.zeros(mech.nv) if v is None else v)
    if q.ndim > 1 or v.ndim > 1:
        raise ModelError(
            f"a simulation begins with one state; q is {q.shape}, v is {v.shape}. Many motions at "
            "once are lw.rollout."
        )
    warn_if_bent(mech, q)
    tick = plan.tick if control_step is not None else None
    commands = Commands(mech, tau, "tau", None, duration)
    controlled = None
    if controller is not None:
        controlled = Commands(mech, controller, "controller", tick, duration)
    if implicit:
        run = _implicit(
            mech, plan, commands, controlled, controls, forces, forces_frame, contacts,
            Watch(watch, bool(stop)), probes, limits=limits, passive=bool(passive), tick=tick,
        )  # fmt: skip
        untouched: str | list[str] = "bodies"
        if not isinstance(contacts, Collisions):
            touches = bool(run.stepper.kind)
            untouched = of_contacts(
                mech, implicit=True, described=contacts is None, touches=touches
            )
        with Progress(progress, start, duration) as bar:
            facts = {"limits": limits, "contacts": untouched}
            made = _run_implicit(run, q, v, bar, facts, began)
        warn_if_bent(mech, made.q)
        return made
    scheme = _scheme(integrator)
    keeper = LoopKeeper(mech, stabilization, baumgarte, forces_frame, drift_limit)
    q, v = keeper.beginning(q, v)
    springs = _springs(mech, q, limits)
    points = Contacts(mech, () if contacts is None else contacts)
    applied = AppliedForces(
        mech, commands, controlled, hold=tick is not None, forces=forces, forces_frame=forces_frame,
        contacts=points, springs=springs, passive=bool(passive),
    )  # fmt: skip
    points.begin(q, v)
    if scheme.step is not None:
        stiff = points.too_stiff(q, plan.step, 1.0 if scheme.takes == "force" else 2.0)
        if stiff is not None:
            warnings.warn(stiff, stacklevel=2)
        if passive:
            warn_if_too_stiff(mech, q, plan.step, scheme.name)
    if springs is not None:
        springs.begin(q, v)
    groups: list[MarginGroup] = [Watch(watch, bool(stop)), points]
    groups += [LimitStops(mech, q)] if limits == "stop" else [] if springs is None else [springs]
    stepper = Stepper(mech, scheme, applied, None if keeper.open else keeper)
    stepper.compile(plan)
    stepper.length = plan.step if scheme.step is not None else None
    if controlled is not None and tick is not None and controlled.sees_state:
        stepper.held_for = tick
    observer = Observer(
        stepper, plan, [x for x in groups if x.names], Log(mech, applied, probes),
        EnergyGuard(mech, applied, q, v),
    )  # fmt: skip
    first = Moment(start, q, v, np.zeros(len(WORKERS)), keeper.last)
    facts: dict[str, Any] = {
        "integrator": scheme.name,
        "limits": limits if isinstance(limits, str) else "spring",
        "stabilization": stabilization,
        "not_modelled": _not_modelled(springs),
    }
    tolerances = positive("rtol", rtol, "no unit"), positive("atol", atol, "rad or m")
    with Progress(progress, start, duration) as bar:
        made = _run(observer, first, bar, tolerances, facts, began)
    warn_if_bent(mech, made.q)
    return made


def _run(
    observer: Observer,
    first: Moment,
    bar: Progress,
    tolerances: tuple[float, float],
    facts: dict[str, Any],
    began: tuple[float, float],
) -> Recording:
    """Run, and make the recording however the run ends."""

    def recording() -> Recording | None:
        if not len(observer.log):
            return None
        return _timed(observer.recording(**facts), began, stiffness=str(observer.stiffness))

    try:
        observer.begin(first)
        if observer.stepper.scheme.step is None:
            from linkwise.simulation.adaptive import adaptive_steps

            adaptive_steps(observer, bar, *tolerances)
        else:
            fixed_steps(observer, bar)
    except KeyboardInterrupt:
        if not len(observer.log):
            raise
        observer.stopped = f"interrupted at t = {observer.now.t:.9g} s"
    except DivergenceError as error:
        observer.stopped = f"{error} {advice(observer.stepper, observer.now, observer.log.states)}"
        raise SimulationError(observer.stopped, recording=recording()) from error.__cause__
    except SimulationError as error:
        observer.stopped = str(error)
        error.recording = recording()
        raise
    except Exception as error:
        error.add_note(f"lw.simulate had reached t = {observer.now.t:.9g} s.")
        raise
    observer.record()
    flow = observer.log.flow() if observer.counted else None
    rec = recording()
    assert rec is not None
    if not adds_up(energy_flow(rec.channels) if flow is None else flow, observer.stepper.mech):
        lost = energy_lost(rec.report, observer.stepper.mech)
        if lost:
            warnings.warn(lost, EnergyWarning, stacklevel=caller())
    return rec


def _implicit(
    mech: Mechanism,
    plan: Timetable,
    tau: Commands,
    controller: Commands | None,
    controls: object,
    forces: OutsideForces | OutsideForce | None,
    forces_frame: Frame,
    contacts: Any,
    watch: Watch,
    probes: Mapping[str, Probe] | None,
    *,
    limits: Limits,
    passive: bool,
    tick: float | None,
) -> ImplicitRun:
    """A run by implicit steps."""
    given = None
    if controls is not None:
        actuator_commands(mech, np.zeros(len(mech.actuators)))  # raises if there are none
        given = Commands(actuator_layout(mech), controls, "controls", tick, plan.duration)
    applied = AppliedForces(
        mech, tau, controller, hold=tick is not None, forces=forces, forces_frame=forces_frame,
        contacts=Contacts(mech, ()), springs=None, passive=passive,
    )  # fmt: skip
    try:
        acting = {"actuated": given is not None, "passive": passive}
        if isinstance(contacts, Collisions):
            stepper: ImplicitStepper = CollisionSteps(mech, contacts, **acting)
        else:
            points = contact_points(mech, contacts, "implicit")
            if is_long(mech, points):
                stepper = LongSteps(mech, points, **acting)
            else:
                stepper = KernelSteps(mech, points, **acting)
    except LoweringError as error:
        raise ModelError(f"{mech.name!r} cannot move by implicit steps: {error}") from None
    return ImplicitRun(
        stepper, plan, applied, given, watch, probes,
        stop_at_limits=limits == "stop", hold=tick is not None,
    )  # fmt: skip


def _run_implicit(
    run: ImplicitRun,
    q: Array,
    v: Array,
    bar: Progress,
    facts: dict[str, Any],
    began: tuple[float, float],
) -> Recording:
    """Run, and make the recording however the run ends."""
    try:
        run.begin(q, v)
        run.run(bar)
    except KeyboardInterrupt:
        if not len(run.log):
            raise
        run.stopped = f"interrupted at t = {run.time:.9g} s"
    except SimulationError as error:
        run.stopped = str(error)
        error.recording = _timed(run.recording(integrator="implicit", **facts), began)
        raise
    except Exception as error:
        error.add_note(f"lw.simulate had reached t = {run.time:.9g} s.")
        raise
    return _timed(run.recording(integrator="implicit", **facts), began)


def _timed(rec: Recording, began: tuple[float, float], **notes: Any) -> Recording:
    """A recording whose report says how long it took since the time and the compiling before."""
    compiling = time_compiling() - began[1]
    wall = max(time.monotonic() - began[0] - compiling, 0.0)
    return rec.with_notes(wall=wall, compiling=compiling, **notes)


def fixed_steps(observer: Observer, bar: Progress) -> None:
    """All steps of a timetable."""
    stepper, plan = observer.stepper, observer.plan
    while observer.made < plan.steps and observer.stopped is None:
        if observer.advance_by_kernel(plan.equal(observer.made)):
            bar(observer.now.t)
            continue
        made = observer.made
        ahead = plan.ahead(made, one=bool(observer.groups))
        length, end = plan.length(made), plan.time(made + ahead)
        now = observer.now
        after = stepper.advance(now, length, ahead)
        observer.passed(now, after, end, length)
        made += ahead
        observer.made = made
        if observer.stopped is None and plan.ticks_at(made):
            observer.tick(made // plan.per_tick)  # before the record, which has the new forces
        if observer.stopped is None and (plan.records_at(made) or made == plan.steps):
            observer.record()
            observer.check()
        bar(observer.now.t)


def _check_mechanism(mech: object) -> None:
    """Raise unless it is a mechanism whose loops are not built in."""
    check_mechanism(mech)
    if isinstance(mech, Embedded):
        raise ModelError(
            "lw.simulate cannot move a mechanism with built-in loops: pass embedded.mech, "
            f"{mech.mech.name!r} itself; its loops stay closed."
        )


def _scheme(name: object) -> Integrator:
    return integrator(name, INTEGRATORS)


def _springs(mech: Mechanism, q: Any, limits: Limits) -> LimitSprings | None:
    if isinstance(limits, LimitSpring):
        return LimitSprings(mech, q, limits)
    return LimitSprings(mech, q, LimitSpring()) if limits == "spring" else None


def _not_modelled(springs: LimitSprings | None) -> list[str]:
    if springs is None or not springs.left_out:
        return []
    names = ", ".join(repr(x) for x in springs.left_out[:4])
    return [f"joint limits of {names}: springs are for hinges whose v is the rate of q"]
