"""Rollouts step by step in NumPy, for mechanisms whose steps cannot be compiled.

Straight code of a hundred bodies would take minutes to compile, and some hinges have no formula
without branches. Their accelerations still come from a kernel; only the steps are made here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from linkwise.codegen.kernel import Kernel, kernel as kernel_of
from linkwise.codegen.scalar import status
from linkwise.codegen.stepping.device import Course, Motions, Records
from linkwise.dynamics import forward_dynamics
from linkwise.dynamics.kernels import is_closed
from linkwise.dynamics.passive import Passive, passive as dampers_and_springs
from linkwise.errors import (
    ClosureError,
    LoweringError,
    ModelError,
    SingularHingeError,
    TooLargeError,
)
from linkwise.model.mechanism import Mechanism
from linkwise.simulation import rates
from linkwise.simulation.episode import NOTHING
from linkwise.simulation.given_numbers import GivenNumbers
from linkwise.simulation.implicit.ground import ContactPoint
from linkwise.simulation.implicit.long_steps import LongSteps
from linkwise.simulation.implicit.step_record import Steps
from linkwise.simulation.integrators import INTEGRATORS
from linkwise.simulation.integrators.command import INTERNAL
from linkwise.simulation.loop_keeper import LoopKeeper
from linkwise.simulation.motion_request import MotionRequest
from linkwise.simulation.rates import is_traceable
from linkwise.spatial.array import Array


def moved_stepwise(
    request: MotionRequest,
    begin: tuple[Array, Array],
    held: Mapping[str, Array],
    course: Course,
    error: LoweringError,
) -> Motions:
    """What a kernel of motions gives, where none can be compiled.

    Args:
        request: The request for it.
        begin: q (batch, nq) and v (batch, nv).
        held: Inputs by name: (length,), (steps, length) or (batch, steps, length).
        course: How far motions go.
        error: Why there is none.

    Raises:
        ModelError: Something acts that single steps do not have.
    """
    mech, integrator = request.mech, request.integrator
    implicit = integrator == "implicit"
    long = implicit and is_traceable(mech)
    why = None
    if (implicit and not long) or request.episode != NOTHING:
        why = f"{mech.name!r} cannot move by implicit steps, with noise or conditions"
    elif request.actuated and not long:
        why = f"{mech.name!r} cannot move with its actuators by {integrator!r}, only by 'implicit'"
    elif request.parameters and (implicit or not is_closed(mech)):
        why = (
            f"parameters has {', '.join(request.parameters)}, and {mech.name!r} moves step by "
            "step, with its own numbers"
        )
    elif "locked" in request.parameters:
        why = f"parameters has 'locked', which does not work with the loops of {mech.name!r}"
    if why is not None:
        raise ModelError(f"{why}: {error}") from None
    forces = dampers_and_springs(mech) if request.passive else None
    law = None if request.law is None else kernel_of(request.law)
    names = request.parameters
    given = GivenNumbers(mech, names, request.passive) if names else None
    q, v = begin if long else beginnings(mech, *begin)
    along = course.step, course.steps, course.every
    try:
        done = stepwise(mech, integrator, q, v, held, *along, forces, law, request.contacts, given)
    except LoweringError as none:  # a loop whose error has no formula
        raise ModelError(f"{mech.name!r} cannot move by implicit steps: {none}") from None
    first = np.zeros((len(q), 1, done.records.shape[-1]))
    first[:, 0, : mech.nq + mech.nv] = np.concatenate([q, v], axis=1)
    records = np.concatenate([first, done.records], axis=1)
    q, v, more = np.split(records, [mech.nq, mech.nq + mech.nv], axis=-1)
    return Motions(q, v, more, done.status, done.failed)


def stepwise(
    mech: Mechanism,
    integrator: str,
    q: Array,
    v: Array,
    held: Mapping[str, Array],
    step: float,
    steps: int,
    every: int,
    forces: Passive | None,
    law: Kernel | None,
    contacts: tuple[ContactPoint, ...] = (),
    given: GivenNumbers | None = None,
) -> Records:
    """What `MotionKernel.run` gives, by the reference integrators, one motion after the other.

    Args:
        held: Inputs by name: (length,), (steps, length) or (batch, steps, length).
        every: How many steps from one record to the next; the last state is recorded too.
        law: What gives the joint forces, if it is not in `held`.
        contacts: Points that may touch, in implicit steps.
        given: The dynamics where numbers of the mechanism are in `held`.
    """
    ends = sorted({*range(every, steps + 1, every), steps} - {0})
    if integrator == "implicit":
        stepper = LongSteps(mech, contacts, actuated="control" in held, passive=forces is not None)
        return _implicit(stepper, q, v, held, step, steps, ends, law)
    out = np.full((len(q), len(ends), mech.nq + mech.nv), np.nan)
    codes, failed = np.zeros(len(q), np.int32), np.full(len(q), -1, np.int64)
    for i in range(len(q)):
        inputs = {name: _of_motion(x, i) for name, x in held.items()}
        state, advance = (q[i], v[i]), _stepper(mech, integrator, step, forces, given)
        for n in range(steps):
            now = {name: x[n if len(x) > 1 else 0] for name, x in inputs.items()}
            try:
                state = advance(*state, _torque(law, *state, now), now)
                code = 0 if all(np.isfinite(x).all() for x in state) else status.RESULT
            except (SingularHingeError, TooLargeError) as error:
                code = error.code or status.RESULT
            except ClosureError:
                code = status.opened(mech)
            if code:
                codes[i], failed[i] = code, n
                break
            if n + 1 in ends:
                out[i, ends.index(n + 1)] = np.concatenate(state)
    return Records(out, codes, failed)


def _implicit(
    stepper: LongSteps,
    q: Array,
    v: Array,
    held: Mapping[str, Array],
    step: float,
    steps: int,
    ends: Sequence[int],
    law: Kernel | None,
) -> Records:
    """The same by implicit steps, with what their kernels record besides q and v."""
    out = list[list[Array]]()
    codes, failed = np.zeros(len(q), np.int32), np.full(len(q), -1, np.int64)
    for i in range(len(q)):
        inputs = {name: _of_motion(x, i) for name, x in held.items()}
        state, worst, rows = stepper.first(q[i], v[i]), np.zeros(3), list[Array]()
        for n in range(steps):
            now = {name: x[n if len(x) > 1 else 0] for name, x in inputs.items()}
            control = now.pop("control", np.zeros(0))
            tau = _torque(law, state.q, state.v, now)
            made = stepper.advance(state, step, 1, tau[None], control[None])
            state = made.last
            if made.status:
                codes[i], failed[i] = made.status, n
                break
            worst = np.maximum(worst, _worst(made))
            if n + 1 in ends:
                shown = [made.residual, worst[: 3 if stepper.points else 1]]
                shown = [stepper.normals, state.impulse, *shown] if len(state.impulse) else []
                rows.append(np.concatenate([state.q, state.v, *shown]))
        out.append(rows)
    width = max((len(row) for rows in out for row in rows), default=q.shape[1] + v.shape[1])
    records = np.full((len(q), len(ends), width), np.nan)
    for i, rows in enumerate(out):
        for k, row in enumerate(rows):
            records[i, k] = row
    return Records(records, codes, failed)


def _worst(made: Steps) -> Array:
    """The residual of a step, its deepest penetration and its fastest slip."""
    touches = made.touches
    slip = np.where(touches.touching, touches.slip, 0.0)
    return np.array([made.residual[0], -touches.gap.min(initial=0.0), slip.max(initial=0.0)])


def beginnings(mech: Mechanism, q: Array, v: Array) -> tuple[Array, Array]:
    """States (batch, ...) to begin with: where there are loops, closed to the last digit.

    Raises:
        ClosureError: Loops are open, or velocities pull them apart; says in which motion.
    """
    if not is_closed(mech):
        return q, v
    states = list[tuple[Array, Array]]()
    for i in range(len(q)):
        try:
            states.append(LoopKeeper(mech).beginning(q[i], v[i]))
        except ClosureError as error:
            raise ClosureError(f"motion {i}: {error}" if len(q) > 1 else str(error)) from None
    return np.array([x for x, _ in states]), np.array([y for _, y in states])


def _of_motion(array: Array, i: int) -> Array:
    """What is held in one motion, (steps or 1, length)."""
    if array.ndim == 3:
        array = array[i if len(array) > 1 else 0]
    return np.atleast_2d(array)


def _torque(law: Kernel | None, q: Array, v: Array, now: Mapping[str, Array]) -> Array:
    return now["tau"] if law is None else np.asarray(law(**law_arrays(law, q, v, now)))


def law_arrays(law: Kernel, q: Array, v: Array, held: Mapping[str, Array]) -> dict[str, Array]:
    """What the kernel of a law takes, by its own names."""
    given = {"q": q, "v": v} | {"tau" if n == INTERNAL else n: x for n, x in held.items()}
    return {name: given[name] for name in law.arguments}


def _stepper(
    mech: Mechanism,
    integrator: str,
    step: float,
    forces: Passive | None,
    given: GivenNumbers | None = None,
) -> Callable[[Array, Array, Array, Mapping[str, Array]], tuple[Array, Array]]:
    """(q, v) after a step from (q, v), joint forces, and numbers that are given."""
    scheme, loops = INTEGRATORS[integrator], LoopKeeper(mech) if is_closed(mech) else None
    assert scheme.step is not None
    move = scheme.step

    def advance(q: Array, v: Array, tau: Array, now: Mapping[str, Array]) -> tuple[Array, Array]:
        def total(t: float, q: Array, v: Array) -> Array:
            return tau if forces is None else tau + forces.force(q, v)

        def accelerate(t: float, q: Array, v: Array) -> Array:
            if given is not None:
                return given.acceleration(q, v, tau, now)
            return forward_dynamics(mech, q, v, total(t, q, v))

        f = total if scheme.takes == "force" else rates.in_rates(mech, accelerate)
        with np.errstate(all="ignore"):  # a status code reports values that are not finite
            q, u = move(mech, f, 0.0, q, rates.rates(mech, q, v), step)
        v = rates.velocities(mech, q, u)
        finite = np.isfinite(q).all() and np.isfinite(v).all()
        if loops is None or not finite:
            return q, v
        return loops.kept(q, v, None if given is None else given.inverse(now))

    return advance
