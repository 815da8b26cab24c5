"""The linearised equations of motion, in continuous time or of one step."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np

from linkwise.arguments import flag, name, number, shown
from linkwise.codegen.stages import MOST_BODIES
from linkwise.dynamics.actuator_force import NamedCommands, instant_commands
from linkwise.dynamics.closure_rank import known_rank
from linkwise.dynamics.derivatives import Linearization, linearized
from linkwise.dynamics.kernels import (
    HELD,
    Forces,
    Loops,
    RecordOptions,
    Status,
    acting,
    check_mechanism,
    is_closed,
    named,
    no_call,
    recorded,
    tree_of,
    written,
)
from linkwise.dynamics.path_dependent import path_dependent, require_rest
from linkwise.dynamics.quantity import Frame
from linkwise.errors import (
    ClosureError,
    LoweringError,
    ModelError,
    RankWarning,
    ShapeError,
    TroubleWarning,
    unknown_name,
)
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.simulation.activation import activated, lasting, without_dynamics
from linkwise.simulation.closed_transition import closed_transition, without_derivative
from linkwise.simulation.implicit.ground import ContactPoint, Ground
from linkwise.simulation.input_status import input_status
from linkwise.simulation.rates import as_velocities, is_traceable
from linkwise.simulation.rollout import rollout
from linkwise.simulation.rollout_gradient import gradient
from linkwise.simulation.rollout_input import joint_forces
from linkwise.simulation.rollout_result import Rollout
from linkwise.simulation.transition import MOST, TRANSITION
from linkwise.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel

AT_ONCE = 1 << 16
"""Rows of A that are computed in one call."""


KEYWORDS = (
    "step",
    "integrator",
    "passive",
    "forces",
    "forces_frame",
    "loops",
    "controls",
    "activations",
    "contacts",
)
"""Those of `linearize` besides the options of a record."""


def linearize(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    step: float | None = None,
    integrator: str = "rk4",
    passive: bool = True,
    forces: Forces | None = None,
    forces_frame: Frame = "node",
    loops: Loops = "closed",
    controls: NamedCommands | None = None,
    activations: NamedCommands | None = None,
    contacts: Ground | Sequence[ContactPoint] | None = None,
    **options: Unpack[RecordOptions],
) -> Linearization:
    """The equations of motion linearised about a state, in continuous time or over one step.

    In continuous time,

        δq̇ = δv + T δq,   δv̇ = ∂v̇/∂q δq + ∂v̇/∂v δv + 𝓜⁻¹ δτ

    where δq is a velocity held for one second from q, as in `mech.integrate`. T is zero where v is
    the rate of q. The velocities of a free or spherical hinge are in axes that turn, and there
    T δq = −v × δq. With loops or couplings, δv̇ is that of `forward_dynamics_derivatives`, which
    holds them; displacements that close the loops are those with J_c δq = 0.

    With `step`, the exact derivative of the step that `lw.rollout` makes with this integrator while
    it holds tau, x' = (q', v'):

        δx' = A δx + B δτ,   δq' along velocities at q' and δq along velocities at q

    Args:
        step: Length of a step [s]; default: continuous time.
        integrator: With `step`, "rk4", "euler" (semi-implicit), "rk4_mujoco", "variational" or
            "implicit", with contacts, limits, friction, loops and couplings: each contact sticks,
            slides or is open as it does in this step.
        passive: Whether `lw.passive_force` acts besides `tau`, as in `lw.rollout`; with "implicit"
            also Coulomb friction.
        forces: In continuous time, external forces by node name, as in `lw.forward_dynamics`,
            constant in the axes of `forces_frame`. A step of `lw.rollout` has none.
        controls: Commands of the actuators, held over a step: (a,) or (batch, a), or numbers by
            name; default: they do not act. B remains that of δτ.
        activations: With `controls`, the activations of the actuators that have one, likewise, in
            their order. They are states, and behind q and v in x: A is (2 nv + n, 2 nv + n) and B
            (2 nv + n, nv).
        contacts: With `step` and "implicit", what may touch, as in `lw.rollout`; default: what the
            mechanism describes.
        loops: "open" linearises the tree of a mechanism that has loops or couplings. With
            "closed" they are held, in a step by "rk4", "rk4_mujoco" and "euler" by the projection
            that ends it: exactly, but for what is of second order in the drift before it. Steps
            by "variational" with them are refused.
        out: A record of two arrays, such as an earlier result, that receives A and B.
        status: An array of int32 (batch,), or () for a single state, that receives a code for each
            state: 0, or why its A and B are NaN. Default: a `TroubleWarning` for a batch, an error
            for a single state. The other states of a batch are not affected.

    Returns:
        A and B of δẋ = A δx + B δτ with x = (q, v), or of one step.

    Raises:
        ModelError: A rolling ball or soft finger moves: its velocities do not span what changes.
        ClosureError: A step of a mechanism with loops or couplings that has no kernel.
        SimulationError: The step from a single state fails; says why.
        LoweringError: A mechanism whose steps cannot be compiled.
    """
    integrator, passive = name(integrator, "integrator"), flag(passive, "passive")
    if options:
        _check_options(options)
    if step is None:
        if contacts is not None:
            raise ModelError(
                "lw.linearize(...) was given contacts without step; they act in steps of time. "
                "Give step=... with integrator='implicit', or leave them out."
            )
        if forces is controls is activations is None and loops is HELD and not options:
            return linearized(mech, q, v, tau, forces_frame=forces_frame, passive=passive)
        given: dict[str, Any] = {"forces": forces, "forces_frame": forces_frame, "passive": passive}
        if activations is None:
            given["controls"] = controls
            return linearized(mech, q, v, tau, **given, loops=loops, **options)
        states = activated(mech, controls, activations)
        given |= {"controls": states.acting, "loops": loops}

        def continuous(some: dict[str, Any]) -> dict[str, Array]:
            some.pop("out", None)
            parts = linearized(without_dynamics(states.mech), q, v, tau, **given, **some)
            return states.added(*parts, parts.B @ states.forces(q, v), states.rates())

        return Linearization(**recorded(continuous, options))
    check_mechanism(mech)
    if acting(forces):
        raise ModelError(
            f"lw.linearize(..., step={step!r}) was given forces at {', '.join(forces)}; lw.rollout "
            "makes steps without external forces. Leave out step for continuous time, or add J* f "
            "to tau (lw.dynamics.equivalent_force)."
        )
    if isinstance(cast(object, mech), Embedded):
        raise ModelError(
            f"lw.linearize(..., step={step!r}) was called for {mech.name!r} with its loops and "
            "couplings built in; lw.rollout makes no steps of it. Use the mechanism itself, its "
            "attribute mech, with integrator='implicit', or leave out step for continuous time."
        )
    closed = is_closed(mech, loops)
    if closed and integrator != "implicit":
        _check_projected(mech, integrator, controls is not None, contacts is not None)
    length = number(step, "step", above=0.0)
    states = None if activations is None else activated(mech, controls, activations)
    if controls is contacts is None and not options and not closed:  # most calls: one state
        quick = _one_step(tree_of(mech), integrator, passive, length)(q, v, tau)
        if quick is not None:
            return quick

    def step_of(some: dict[str, Any]) -> dict[str, Array]:
        batch = some.get("status"), some.get("threads")
        held = mech if closed else tree_of(mech)
        more = {"controls": controls, "contacts": contacts}
        if states is not None:  # which act as commands
            held, more = without_dynamics(held), more | {"controls": states.acting}
        parts = _of_step(held, (q, v, tau), length, integrator, passive, *batch, more)
        by = parts.pop("command", None)
        if states is None or by is None:
            return parts
        by = by[..., lasting(states.mech)]
        return states.added(parts["A"], parts["B"], by, states.step(length))

    return Linearization(**recorded(step_of, options))


def _check_options(options: RecordOptions) -> None:
    """Raise for an unknown keyword: a step would not look at it."""
    known = RecordOptions.__optional_keys__
    for word in options:
        if word not in known:
            raise unknown_name("keyword", word, (*KEYWORDS, *sorted(known)), owner="lw.linearize")


@once_per_mechanism
def _kernel(mech: Mechanism, integrator: str, passive: bool) -> Kernel | None:
    """One kernel for A and B; None where they are gradients of a rollout."""
    if mech.nv > MOST.get(integrator, 0) or mech.n_bodies > MOST_BODIES:
        return None
    if mech.flexible or not is_traceable(mech):  # rollouts report bodies that bend too far
        return None
    if path_dependent(mech):  # what has to rest is checked after the step as well
        return None
    return written(mech, TRANSITION[integrator, passive])


@once_per_mechanism
def _one_step(
    mech: Mechanism, integrator: str, passive: bool, step: float
) -> Callable[..., Linearization | None]:
    """The call of the kernel for one state; None where there is none, or it has to report."""
    kernel = _kernel(mech, integrator, passive)
    device: Any = None if kernel is None else kernel.device
    if device is None or device.fast is None:
        return no_call
    device.machine.return_as(Linearization)
    fast, h = device.fast, np.array([step])

    def one_state(q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Linearization | None:
        return fast(q, v, tau, h)

    return one_state


def _of_step(
    mech: Mechanism,
    given: tuple[ArrayLike, ArrayLike, ArrayLike],
    step: float,
    integrator: str,
    passive: bool,
    codes: Status | None,
    threads: int | None,
    more: dict[str, Any],
) -> dict[str, Array]:
    """A and B of one step: their rows are the gradients of each number after it.

    Args:
        more: `controls` and `contacts`, as given. With `controls` the result also has "command":
            how the state changes with these.
    """
    known: dict[str, Any] = dict(zip(("q", "v", "tau"), given, strict=True))
    if more["controls"] is not None:
        known["controls"] = more["controls"]
    bad = np.zeros((), np.int32)
    try:
        states = _checked(mech, known)
    except ModelError:  # of a batch, only the rows at fault have no result
        bad, usable = input_status(mech, known)
        if not bad.any() or (not bad.ndim and codes is None):
            raise
        states = _checked(mech, usable)
    lead = states[0].shape[:-1]
    if codes is not None and getattr(codes, "shape", None) != lead:
        raise ShapeError(f"status is {shown(codes)}; it must be an array of int32 {lead}.")
    if not bad.any():
        return _of_states(mech, states, step, integrator, passive, codes, threads, more)
    bad = np.broadcast_to(bad, lead)
    good, n = bad == 0, 2 * mech.nv
    shapes = {"A": (*lead, n, n), "B": (*lead, n, mech.nv)}
    if len(states) > 3:
        shapes["command"] = (*lead, n, len(mech.actuators))
    parts = {name: np.full(shape, np.nan) for name, shape in shapes.items()}
    all_codes = np.array(bad)
    if good.any():  # the rest by itself: loops hold, and steps end, in each of these states
        rest = None if codes is None else np.zeros(int(good.sum()), np.int32)
        some = [x[good] for x in states]
        done = _of_states(mech, some, step, integrator, passive, rest, threads, more)
        for name, x in done.items():
            parts[name][good] = x
        if rest is not None:
            all_codes[good] = rest
    if codes is None:
        named(mech, "mass_matrix").warn(all_codes)
    else:
        codes[...] = all_codes
    return parts


def _checked(mech: Mechanism, known: Mapping[str, Any]) -> list[Array]:
    """q, v, tau and perhaps commands, in equal batches; raises for what is not finite."""
    arrays = [mech.check_q(known["q"]), mech.check_v(known["v"]), joint_forces(mech, known["tau"])]
    if "controls" in known:
        arrays.append(instant_commands(mech, known["controls"]))
    lead = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
    return [np.broadcast_to(x, (*lead, x.shape[-1])) for x in arrays]


def _of_states(
    mech: Mechanism,
    states: list[Array],
    step: float,
    integrator: str,
    passive: bool,
    codes: Status | None,
    threads: int | None,
    more: dict[str, Any],
) -> dict[str, Array]:
    """The same for q, v, tau and perhaps commands that can be used, in equal batches."""
    lead, command = states[0].shape[:-1], states[3:]
    closed = bool(mech.loops or mech.couplings)
    if closed and integrator != "implicit":
        return _projected(mech, states, step, integrator, passive, codes, threads)
    bare = not (closed or command) and more["contacts"] is None
    kernel = _kernel(mech, integrator, passive) if bare else None
    if kernel is not None:
        trouble = np.zeros(lead, np.int32)
        parts = kernel(*states, np.array([step]), status=trouble, threads=threads)
        if not trouble.any():  # else the rollout reports it
            if codes is not None:
                codes[...] = 0
            return parts
    if codes is not None:  # a status instead of an error: a single state is a batch of one
        states = [x.reshape(-1, x.shape[-1]) for x in states]
    with warnings.catch_warnings():
        if codes is not None:
            warnings.simplefilter("ignore", TroubleWarning)
        held = [x[..., None, :] if x.ndim == 2 else x for x in states[2:]]
        runs = rollout(
            mech,
            *states[:2],
            tau=held[0],
            controls=held[1] if command else None,
            contacts=more["contacts"],
            duration=step,
            step=step,
            integrator=integrator,
            passive=passive,
            threads=threads,
        )
        ends = [x.reshape(-1, 2, x.shape[-1]) for x in (runs.q, runs.v)]
        require_rest(mech, ends[1], f"lw.linearize(..., step={step!r})")
        names = ("tau", "control")[: len(held)]
        flat = {n: x.reshape(-1, x.shape[-1]) for n, x in zip(names, states[2:], strict=True)}
        A, B, by_command, status = _rows(runs, ends, flat)
    if codes is not None:
        codes[...] = status.reshape(lead)
    n = 2 * mech.nv
    parts = {"A": A.reshape(*lead, n, n), "B": B.reshape(*lead, n, mech.nv)}
    if command:
        parts["command"] = by_command.reshape(*lead, n, by_command.shape[-1])
    return parts


def _check_projected(mech: Mechanism, integrator: str, driven: bool, touched: bool) -> None:
    """Raise unless a step that ends with a projection has a kernel for its derivative."""
    reason = without_derivative(mech, integrator)
    if not reason and (driven or touched):
        reason = "actuators and contacts act there in steps by 'implicit' only"
    if reason:
        raise ClosureError(
            f"lw.linearize(..., step=...) was called for {mech.name!r}, which has loops or "
            f"couplings: {reason}. Use integrator='implicit', leave out step for continuous time, "
            "or give loops='open' for the tree."
        )


def _projected(
    mech: Mechanism,
    states: list[Array],
    step: float,
    integrator: str,
    passive: bool,
    codes: Status | None,
    threads: int | None,
) -> dict[str, Array]:
    """A and B of a step that ends with a projection (`closed_transition.py`)."""
    lead = states[0].shape[:-1]
    q, v, tau = (x.reshape(-1, x.shape[-1]) for x in states)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankWarning)  # such states get a status
        if codes is not None:
            warnings.simplefilter("ignore", TroubleWarning)
        if not lead and codes is None:  # a single step that fails raises
            q, v, tau = q[0], v[0], tau[0]
        runs = rollout(
            mech, q, v, tau=tau[..., None, :], duration=step, step=step,
            integrator=integrator, passive=passive, threads=threads,
        )  # fmt: skip
    after = np.concatenate([runs.q[..., -1, :], runs.v[..., -1, :]], axis=-1)
    failed = np.atleast_1d(np.asarray(runs.status)) != 0
    formula = closed_transition(integrator, passive, known_rank(mech, states[0]))
    given = q, v, tau, np.array([step]), np.where(np.isfinite(after), after, 0.0)
    trouble = np.zeros(np.shape(q)[:-1], np.int32)
    parts = written(mech, formula)(*given, status=trouble, threads=threads)
    if codes is None and trouble.any() and not lead:
        written(mech, formula)(*given)  # raises
    if codes is None and trouble.any():
        written(mech, formula).warn(trouble)
    codes_of = np.where(failed, np.atleast_1d(np.asarray(runs.status)), np.atleast_1d(trouble))
    if codes is not None:
        codes[...] = codes_of.reshape(lead)
    out = {name: x.reshape(-1, *x.shape[-2:]).copy() for name, x in parts.items()}
    for x in out.values():
        x[failed] = np.nan
    return {name: x.reshape(*lead, *x.shape[-2:]) for name, x in out.items()}


def _rows(
    runs: Rollout, ends: list[Array], held: Mapping[str, Array]
) -> tuple[Array, Array, Array, Status]:
    """A and B of many states, how they change with commands, and their status.

    Args:
        ends: q and v before and after the step.
        held: Joint forces and commands, with a row for each state.
    """
    mech, nv = runs.mech, runs.mech.nv
    count, rows = len(held["tau"]), 2 * nv
    if runs.origin is None:
        raise LoweringError(
            f"lw.linearize(..., step={runs.step!r}) was called for {mech.name!r}, whose steps "
            "cannot be compiled: it has too many bodies, or a hinge without a formula for its "
            "steps. Leave out step for continuous time."
        )
    A, B = np.empty((count, rows, rows)), np.empty((count, rows, nv))
    by_command = np.empty((count, rows, held["control"].shape[-1] if "control" in held else 0))
    codes = np.empty(count, np.int32)
    some = max(AT_ONCE // max(rows, 1), 1)
    for begin in range(0, count, some):
        at = slice(begin, begin + some)
        q, v = (np.repeat(x[at], rows, axis=0) for x in ends)
        rest = {name: np.repeat(x[at, None], rows, axis=0) for name, x in held.items()}
        after = ends[0][at, 1]
        usable = np.isfinite(after).all(axis=-1, keepdims=True)  # others have a status already
        weights = as_velocities(mech, np.where(usable, after, mech.neutral()))
        k = len(weights)
        w_q, w_v = np.zeros((k, rows, mech.nq)), np.zeros((k, rows, nv))
        w_q[:, :nv], w_v[:, nv:] = weights.swapaxes(1, 2), np.eye(nv)
        shapes = {"q": (k * rows, mech.nq), "v": (k * rows, nv)}
        shapes |= {name: x.shape for name, x in rest.items()}
        origin = replace(runs.origin, held=rest, shapes=shapes)
        before = np.repeat(np.atleast_1d(runs.status)[at], rows)
        flat = w_q.reshape(k * rows, -1), w_v.reshape(k * rows, -1)
        slopes = gradient((q, v), before, origin, flat)
        A[at, :, :nv], A[at, :, nv:] = (x.reshape(k, rows, nv) for x in (slopes.q, slopes.v))
        B[at] = slopes.tau.reshape(k, rows, nv)
        if "control" in held:
            by_command[at] = slopes.inputs["control"].reshape(k, rows, -1)
        codes[at] = slopes.status.reshape(k, rows).max(axis=1, initial=0)
    return A, B, by_command, codes
