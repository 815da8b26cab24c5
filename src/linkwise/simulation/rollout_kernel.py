"""The kernels behind rollouts of a mechanism: compiled once, then kept with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linkwise.arguments import count
from linkwise.codegen.cpu import cache
from linkwise.codegen.request import Request
from linkwise.codegen.scalar.trace import Traced
from linkwise.codegen.stages import MOST_BODIES, is_rolled, traced
from linkwise.codegen.stepping.cuda_kernel import CudaMotion, suited
from linkwise.codegen.stepping.kernel import RolloutKernel, rollout_key
from linkwise.codegen.stepping.stepping import Sketch, Stepping
from linkwise.dynamics.derivative_formula import INVERSE
from linkwise.dynamics.kernels import check_mechanism, require_open, tree_of
from linkwise.dynamics.passive import Passive, passive
from linkwise.dynamics.quantity import Frame, expression
from linkwise.errors import LoweringError, ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import is_kept, once_per_mechanism
from linkwise.simulation.actuation import actuate, with_actuators
from linkwise.simulation.episode import NOTHING, Episode, with_noise, with_stop
from linkwise.simulation.implicit.equality import check_formulas
from linkwise.simulation.implicit.ground import ContactPoint
from linkwise.simulation.implicit.joint import joints_with_rows
from linkwise.simulation.implicit.reverse import implicit_reverse
from linkwise.simulation.implicit.segments import ON_A_GPU, SWEEPS, implicit_stepping
from linkwise.simulation.integrators import INTEGRATORS
from linkwise.simulation.integrators.command import command, held_inputs
from linkwise.simulation.integrators.reverse import Dynamics, reverse_stepping
from linkwise.simulation.integrators.traced import traced_stepping
from linkwise.simulation.motion_parameters import ACTING, OF_ACTUATORS
from linkwise.simulation.rates import is_traceable, velocities
from linkwise.simulation.variational.equations import SOLUTION
from linkwise.simulation.variational.reverse import variational_reverse
from linkwise.simulation.variational.segments import variational_stepping
from linkwise.tasks.law import ControlLaw

EXPLICIT = tuple(
    x.name for x in INTEGRATORS.values() if x.step and x.compiled and x.takes == "acceleration"
)
"""Integrators whose steps need accelerations only, by name."""

COMPILED = (*EXPLICIT, "implicit", "variational")
"""Integrators that can be compiled, by name."""


def rollout_kernel(
    mech: Mechanism,
    integrator: str = "rk4",
    *,
    with_passive: bool = True,
    nodes: Sequence[str] = (),
    forces_frame: Frame = "node",
    itemsize: int = 8,
    law: ControlLaw | None = None,
    parameters: Sequence[str] = (),
    reverse: Sequence[str] | None = None,
    contacts: Sequence[ContactPoint] = (),
    actuated: bool = False,
    observed: bool = False,
    episode: Episode = NOTHING,
    sweeps: int = SWEEPS,
) -> RolloutKernel:
    """Many steps of a tree as machine code.

    Args:
        nodes: Nodes with external forces, held over each step like joint forces.
        law: A control law that gives the joint forces at the beginning of each step.
        parameters: Numbers of the mechanism that are held over each step (`scalar/parameters.py`).
        reverse: For the gradient of such a motion (`integrators/reverse.py`), the inputs whose
            gradients are added up over all steps; None for the motion itself.
        contacts: Points that may touch the ground, in implicit steps.
        actuated: Whether the actuators of the mechanism act.
        observed: Whether implicit steps show what a recording needs (`implicit/segments.py`).
        episode: What is random, and what ends a motion.
        sweeps: Sweeps over the impulses of an implicit step, at most.

    Raises:
        ModelError: An unknown integrator, or a law of another mechanism.
        LoweringError: A hinge without a formula for its steps, or too many bodies for straight-line
            code; says which.
    """
    check_rollout(mech, integrator, law, parameters)
    names = tuple(nodes), tuple(parameters), None if reverse is None else tuple(reverse)
    acting = tuple(contacts), actuated, observed, episode, sweeps
    return _rollout(mech, integrator, with_passive, *names, forces_frame, itemsize, law, *acting)


@once_per_mechanism
def _rollout(
    mech: Mechanism,
    integrator: str,
    with_passive: bool,
    nodes: tuple[str, ...],
    parameters: tuple[str, ...],
    reverse: tuple[str, ...] | None,
    frame: Frame,
    itemsize: int,
    law: ControlLaw | None,
    contacts: tuple[ContactPoint, ...],
    actuated: bool,
    observed: bool,
    episode: Episode,
    sweeps: int,
) -> RolloutKernel:
    options = (with_passive, nodes, parameters, reverse, frame, itemsize, law, contacts, actuated)
    segments, content = _stepping(mech, integrator, *options, observed, episode, sweeps)
    return RolloutKernel(mech, integrator, segments, content, itemsize=itemsize)


WORTH_COMPILING = 100
"""Steps per body, of all runs of a mechanism in this process, for which a kernel is compiled.

Fewer of them are faster in NumPy.
"""


def worth_compiling(
    mech: Mechanism, integrator: str, steps: int, with_passive: bool, law: ControlLaw | None
) -> bool:
    """Whether a run of this number of steps should use the kernel of such motions.

    It should if that is in memory or on disk, or if runs so far and this one together make it worth
    compiling.
    """
    made = _uncompiled(mech)
    made[0] += steps
    if made[0] >= WORTH_COMPILING * mech.n_bodies:
        return True
    acting = with_passive, (), (), None, "node", 8, law, (), False, False, NOTHING, SWEEPS
    return is_kept(_rollout, mech, integrator, *acting) or _filed(mech, integrator, *acting[:-2])


@once_per_mechanism
def _uncompiled(mech: Mechanism) -> list[int]:
    """The number of steps of all single motions so far, as a list of one."""
    return [0]


@once_per_mechanism
def _filed(mech: Mechanism, integrator: str, *acting: *tuple[Any, ...]) -> bool:
    """Whether the kernel of such a motion was on disk when this was first asked."""
    try:
        _, content = _stepping(mech, integrator, *acting)
    except LoweringError:
        return False
    key = rollout_key(mech, integrator, 8, content)
    return key is not None and cache.holds(key)


def gpu_kernel(
    mech: Mechanism,
    integrator: str = "rk4",
    *,
    with_passive: bool = True,
    itemsize: int = 8,
    law: ControlLaw | None = None,
    parameters: Sequence[str] = (),
    reverse: Sequence[str] | None = None,
    contacts: Sequence[ContactPoint] = (),
    actuated: bool = False,
    episode: Episode = NOTHING,
    sweeps: int = ON_A_GPU,
) -> CudaMotion:
    """Many steps of a tree for an NVIDIA GPU; `source` is available without one.

    The arguments and errors are those of `rollout_kernel`.
    """
    check_rollout(mech, integrator, law, parameters)
    names = tuple(parameters), None if reverse is None else tuple(reverse)
    acting = tuple(contacts), actuated, episode, sweeps
    return _on_gpu(mech, integrator, with_passive, *names, itemsize, law, *acting)


@once_per_mechanism
def _on_gpu(
    mech: Mechanism,
    integrator: str,
    with_passive: bool,
    parameters: tuple[str, ...],
    reverse: tuple[str, ...] | None,
    itemsize: int,
    law: ControlLaw | None,
    contacts: tuple[ContactPoint, ...],
    actuated: bool,
    episode: Episode,
    sweeps: int,
) -> CudaMotion:
    options = (with_passive, (), parameters, reverse, "node", itemsize, law, contacts, actuated)
    segments, _ = _stepping(mech, integrator, *options, False, episode, sweeps)
    motion = CudaMotion(mech, segments(branches=False), np.dtype(f"float{8 * itemsize}"))
    if reverse is None:
        return motion
    # Gradients are one thread's work: their segments do not divide by limbs.
    return dataclasses.replace(motion, shape=suited(motion.stepping, motion.work, itemsize))


def motion_of(
    mech: Mechanism,
    integrator: str,
    *,
    with_passive: bool,
    itemsize: int,
    parameters: tuple[str, ...],
    contacts: tuple[ContactPoint, ...],
    actuated: bool,
    sweeps: int = SWEEPS,
) -> tuple[Callable[..., Stepping], tuple[object, ...]]:
    """A function that makes the segments of a step, and what they depend on.

    It takes `branches`, which is False for a GPU: there, memory is the limit.
    """
    check_rollout(mech, integrator, None, parameters)
    options = (with_passive, (), parameters, None, "node", itemsize, None, contacts, actuated)
    return _stepping(mech, integrator, *options, False, sweeps=sweeps)


def _stepping(
    mech: Mechanism,
    integrator: str,
    with_passive: bool,
    nodes: tuple[str, ...],
    parameters: tuple[str, ...],
    reverse: tuple[str, ...] | None,
    frame: Frame,
    itemsize: int,
    law: ControlLaw | None,
    contacts: tuple[ContactPoint, ...],
    actuated: bool,
    observed: bool,
    episode: Episode = NOTHING,
    sweeps: int = SWEEPS,
) -> tuple[Callable[..., Stepping], tuple[object, ...]]:
    """A function that makes the segments of a step, and what they depend on.

    It takes `branches`, which is False for a GPU: there, memory is the limit.
    """
    if integrator == "implicit":
        check_formulas(mech)
    else:
        require_open(mech, "closed", "the kernel of a rollout", "lw.simulate holds them.")
    forces = passive(mech) if with_passive else None
    forces = forces if forces is not None and forces.any else None
    name = "forward_dynamics_with_forces" if nodes else "forward_dynamics"
    acts = tuple(x for x in parameters if x in ACTING)
    numbers = tuple(x for x in parameters if x not in ACTING)
    if {"damping", "stiffness"} & set(acts):
        forces = passive(mech)
    request = Request((expression(name, frame=frame),), mech, nodes, numbers, itemsize)
    if not is_traceable(mech):
        raise LoweringError(
            f"a motion of {mech.name!r} cannot be compiled: a hinge has a rule for its steps that "
            "cannot be traced on graph nodes. lw.simulate moves it step by step."
        )
    if is_rolled(request) or (integrator == "implicit" and mech.n_bodies > MOST_BODIES):
        raise LoweringError(
            f"a step of {mech.name!r} would be straight-line code of {mech.n_bodies} bodies, too "
            "long to compile. lw.rollout and lw.simulate move it step by step."
        )
    command = None if law is None else law.kernel.request

    more = tuple((x, mech.nv) for x in acts if x in ("damping", "stiffness"))
    motor = tuple(x for x in acts if x in OF_ACTUATORS)
    acting = (), ()
    if integrator == "implicit":
        acting = joints_with_rows(mech, friction=with_passive, given="friction" in acts), contacts

    def segments(*, branches: bool = True) -> Stepping:
        if reverse is not None:
            return steps(branches)
        watch = episode.stop, contacts, itemsize
        return with_stop(steps(branches), mech, *watch)

    def disturbed(plain: Stepping, ruled: Traced | None) -> Stepping:
        plain = with_noise(plain, mech, episode.noise, itemsize)
        return plain if ruled is None else _with_law(plain, mech, ruled)

    def steps(branches: bool) -> Stepping:
        ruled = None if command is None else traced(command)
        if integrator == "implicit" and reverse is not None:
            return implicit_reverse(
                mech,
                itemsize,
                forces,
                *acting,
                reverse,
                actuated=actuated,
                numbers=parameters,
                law=ruled,
            )
        if integrator == "implicit":
            plain = implicit_stepping(
                mech,
                itemsize,
                forces,
                *acting,
                actuated=actuated,
                numbers=parameters,
                observed=observed,
                branches=branches,
                sweeps=sweeps,
            )
            return disturbed(plain, ruled)
        if integrator not in EXPLICIT:
            if reverse is not None:
                return variational_reverse(mech, itemsize, forces, reverse)
            return variational_stepping(mech, nodes, frame, itemsize, forces)
        scheme = INTEGRATORS[integrator]
        if reverse is not None:
            motors = actuate(mech, itemsize, slopes=False, numbers=motor) if actuated else None
            dynamics = dataclasses.replace(
                _dynamics(request, forces, ruled),
                actuate=motors.traced if motors is not None else None,
                more=more,
            )
            return reverse_stepping(scheme, mech, dynamics, reverse)
        plain = traced_stepping(scheme, mech, traced(request), forces, more)
        plain = with_actuators(plain, mech, itemsize, motor) if actuated else plain
        return disturbed(plain, ruled)

    content = (request, forces, reverse, acting, actuated, observed, acts, episode, sweeps)
    return segments, content if command is None else (*content, command)


def _dynamics(request: Request, forces: Passive | None, law: Traced | None) -> Dynamics:
    """What a step in reverse is made of."""
    numbers = request.parameters
    falling = tuple(x for x in numbers if x != "locked")
    inverse = dataclasses.replace(request, quantity=(INVERSE,), parameters=falling)
    moved = tuple(x for x in numbers if x != "gravity")
    solve = dataclasses.replace(request, quantity=(SOLUTION,), parameters=moved)
    return Dynamics(traced(request), traced(inverse), traced(solve), forces, law)


def _with_law(stepping: Stepping, mech: Mechanism, law: Traced) -> Stepping:
    """An explicit step whose joint forces come from a law at its beginning, and are then held.

    The law becomes one more segment in front of those of the step. Its inputs besides the state
    (goals, gains) are held in place of the joint forces.
    """
    s = Sketch("command")
    q, u = s.read("q0", mech.nq), s.read("u0", mech.nv)
    first = command(s, law, q, velocities(mech, q, u))
    held = held_inputs(stepping.held, law)
    return dataclasses.replace(stepping, held=held, step=(first, *stepping.step))


def checked_sweeps(sweeps: int | None, integrator: str, target: str) -> int:
    """Sweeps over the impulses of a step, at most.

    Raises:
        ModelError: Another integrator has none, or it is not a number of sweeps.
    """
    if sweeps is None:
        return ON_A_GPU if target == "cuda" else SWEEPS
    if integrator != "implicit":
        raise ModelError(
            f"sweeps was given with integrator={integrator!r}, which solves for no impulses; use "
            "'implicit'."
        )
    return count(sweeps, "sweeps", least=1)


def check_rollout(
    mech: Mechanism, integrator: str, law: ControlLaw | None, parameters: Sequence[str] = ()
) -> None:
    """Raise ModelError for an unknown integrator, or a law or parameters that do not fit."""
    check_mechanism(mech)
    if integrator not in COMPILED:
        known = ", ".join(repr(name) for name in COMPILED)
        raise ModelError(f"integrator={integrator!r} cannot be compiled; use one of {known}.")
    if parameters and integrator == "variational":
        known = ", ".join(repr(name) for name in COMPILED[:-1])
        raise ModelError(f"parameters work with {known}, not with {integrator!r}.")
    if "locked" in parameters and integrator == "implicit":
        raise ModelError("parameters has 'locked', which does not work with 'implicit'.")
    if law is None:
        return
    if law.mech is not mech and tree_of(law.mech) is not mech:
        raise ModelError(
            f"the control law belongs to {law.mech.name!r}, made apart from the mechanism "
            f"{mech.name!r} that should move: make it with lw.control_law of this one."
        )
    if integrator not in (*EXPLICIT, "implicit"):
        known = ", ".join(repr(name) for name in (*EXPLICIT, "implicit"))
        raise ModelError(f"a control law works with {known}, not with {integrator!r}.")
    if law.kernel.request.names:
        raise ModelError("the control law returns more than joint forces; make it without `also`.")
