"""Rollouts: many steps of one motion, or of many, in one call of a kernel."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import count, itemsize, number
from linkwise.codegen import arrays
from linkwise.codegen.stepping.kernel import Motions, RolloutKernel, describe
from linkwise.codegen.stepping.passive import passive as dampers_and_springs
from linkwise.dynamics.kernels import check_mechanism
from linkwise.dynamics.loops import Loops, is_closed, refuse, tree_of
from linkwise.errors import (
    LoweringError,
    ModelError,
    ShapeError,
    SimulationError,
    TroubleWarning,
    caller,
    unknown_name,
)
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.commanded import INTERNAL
from linkwise.simulation.held_input import shaped
from linkwise.simulation.rollout_kernel import card_kernel, check_rollout, rollout_kernel
from linkwise.simulation.stepwise import beginnings, stepwise
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.tasks.law import ControlLaw

MOST_STEPS = 10**10
"""More steps than there is time for."""


@dataclass(frozen=True, slots=True, eq=False)
class Rollout:
    """Motions of a mechanism, recorded every few steps.

    Attributes:
        mech: The mechanism.
        integrator: Name of the integrator.
        step: Length of a step [s].
        t: Times of the records (k,) [s], the beginning first.
        q: Joint positions (k, nq), or (batch, k, nq); on the card if those given were.
        v: Joint velocities (k, nv), or (batch, k, nv), likewise.
        status: A code for each motion, () or (batch,): 0 where all is well.
        failed_step: The step in which the code came, () or (batch,); -1 for none. Records from
            there on are NaN.
        kernel: What computed it, with `ops` of a step; None where steps were made one by one, and
            in copies and pickles, since machine code cannot leave its process.
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

    @property
    def batch(self) -> int | None:
        """How many motions there are; None for a single one."""
        return len(self.q) if self.q.ndim == 3 else None

    def __reduce__(self) -> tuple[Any, ...]:
        kept = (self.mech, self.integrator, self.step, self.t, self.q, self.v)
        return Rollout, (*kept, self.status, self.failed_step)

    def __str__(self) -> str:
        many = "one motion" if self.batch is None else f"{self.batch} motions"
        lost = int(np.count_nonzero(self.status))
        ends = f"; {lost} of them end early" if lost and self.batch is not None else ""
        return (
            f"{self.mech.name}: {many} of {self.t[-1]:.6g} s in steps of {self.step:.3g} s by "
            f"{self.integrator}, {len(self.t)} records each{ends}"
        )


def rollout(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    steps: int,
    step: float = 1e-3,
    tau: ArrayLike | None = None,
    law: ControlLaw | None = None,
    goal: Any = None,
    inputs: Mapping[str, ArrayLike] | None = None,
    integrator: str = "rk4",
    record_every: int = 1,
    passive: bool = True,
    loops: Loops = "closed",
    target: str = "cpu",
    dtype: Any = np.float64,
    threads: int | None = None,
) -> Rollout:
    """Move a mechanism through time, or many copies of it, in one call of one kernel.

    Each step of the integrator is derived and compiled with forward dynamics in it, and the loops
    over steps and motions are part of the machine code: nothing of Python runs in between. A vector
    register of motions is done at a time, and batches are spread over the cores. Mechanisms of
    many tens of bodies, whose straight code would be too long, are moved step by step instead, with
    the same result.

    Gravity, joint forces, and dampers and springs of drives act. For controllers in Python,
    contacts and events there is `simulate`.

    Loops and couplings are held: such a mechanism is moved step by step, and after each step it is
    projected onto the nearest state that they allow, as `simulate` does.

    Args:
        mech: The mechanism.
        q: Joint positions (nq,) or (batch, nq) at the beginning.
        v: Joint velocities (nv,) or (batch, nv) at the beginning; at rest by default.
        steps: How many steps.
        step: Length of a step [s].
        tau: Joint forces [N or N m], held over each step: None for none, (nv,) for all steps,
            (steps, nv) with a row for each step, (batch, 1, nv) with one for each motion, or
            (batch, steps, nv). (batch, nv) is taken for rows of motions where q or v has as many,
            and they are not as many as the steps.
        law: Instead of `tau`, a control law (`lw.control_law`): it is compiled into the step, sees
            the state at its beginning, and what it gives is held over it.
        goal: Where the law should lead: what `lw.tasks.task_position` should become, or the numbers
        of
            it from `law.goal`, (size,), (steps, size), (batch, 1, size) or (batch, steps, size).
        inputs: Other inputs of the law by name, in the same shapes: "kp", "kv", "rate", "push",
            "tau0", "applied"; those that are not given are as the law has them. One number may
            stand for a whole row: (batch, 1, 1) for a gain of each motion.
        integrator: "rk4", "euler" (semi-implicit), "rk4_mujoco" or "variational".
        record_every: How many steps from one record to the next; the last state is recorded too.
        passive: Whether dampers and springs of drives act: −damping v − stiffness (q − rest).
        loops: "closed" holds loops and couplings, on the "cpu" and in float64; "open" leaves them
            open.
        target: "cpu", or "cuda" for a graphics card: one thread moves one motion. Arrays of NumPy
            go there and results come back; those of CuPy, Torch or JAX stay there (q, v and tau of
            the given `dtype`), and so do `q` and `v` of the result, whose axis of motions is the
            innermost one in memory.
        dtype: float64 or float32.
        threads: Processor cores for a batch; by default as many as are worth it.

    Returns:
        The records. In a batch, motions in trouble are NaN from then on, with a code each, and a
        `TroubleWarning` tells of them.

    Raises:
        SimulationError: A single motion grows without bounds; says when, and why.
        ClosureError: Loops are open at the beginning of a motion.
        ModelError: An integrator, target or number of steps or threads that means nothing.
        ShapeError: Arrays that do not fit.
    """
    if law is None and not (goal is None and inputs is None):
        raise ModelError("goal and inputs are for a control law; give law=lw.control_law(...).")
    if target not in ("cpu", "cuda"):
        raise ModelError(f"target={target!r} is none for rollouts; there are 'cpu' and 'cuda'.")
    if callable(tau):
        raise ModelError(
            "tau is a function; a rollout runs no Python between its steps. Give joint forces as "
            "an array, law=lw.control_law(...), or use lw.simulate(..., controller=...)."
        )
    there = target == "cuda"
    check_mechanism(mech)
    closed = is_closed(mech, loops)
    size = itemsize(dtype)
    if closed and (there or size != 8):
        refuse(mech, f"lw.rollout(..., target={target!r}, dtype={np.dtype(dtype).name})")
    mech = mech if closed else tree_of(mech)
    steps = count(steps, "steps", most=MOST_STEPS)
    every = count(record_every, "record_every", least=1)
    at: Any = _taken(mech.check_q, q, there)
    speed: Any = _taken(mech.check_v, _at_rest(mech, q, there) if v is None else v, there)
    if law is None:
        held = {"tau": _taken(lambda x: _forces(mech, x), tau, there)}
    else:
        held = commands(law, goal, tau, inputs)
    sizes = {"tau": mech.nv} if law is None else {n: x.shape[-1] for n, x in _taken_by(law).items()}
    gains = [] if law is None else [name for name in held if name != "goal"]
    held = shaped(held, sizes, steps, (at, speed), gains)
    like = arrays.foreign((q, v, tau))
    single = at.ndim == speed.ndim == 1 and all(x.ndim < 3 for x in held.values())
    length = number(step, "step", above=0.0)
    threads = None if threads is None else count(threads, "threads", least=1)
    if there:
        kernel = card_kernel(mech, integrator, with_passive=passive, itemsize=size, law=law)
        done = kernel(at, speed, held, step=length, steps=steps, every=every)
        q_all, v_all = done.q, done.v
    else:
        motions, kind = _count(at, speed, held), f"float{8 * size}"
        starts = [np.broadcast_to(x, (motions, x.shape[-1])) for x in (at, speed)]
        begin = np.concatenate(starts, axis=1).astype(kind)
        options = (integrator, passive, size, law, threads)
        kernel, done = _here(mech, begin, held, length, steps, every, *options)
        q_all, v_all = done.records[..., : mech.nq], done.records[..., mech.nq :]
    times = length * np.array([*range(0, steps, every), steps] if steps else [0])
    status, failed = done.status, done.failed
    if not there:
        q_all, v_all = (arrays.given_back(x, like) for x in (q_all, v_all))
    if single:
        q_all, v_all, status, failed = q_all[0], v_all[0], status[0], failed[0]
    found = Rollout(mech, integrator, length, times, q_all, v_all, status, failed, kernel)
    _tell(found)
    return found


def _at_rest(mech: Mechanism, q: Any, there: bool) -> Array:
    """Velocities at rest, for positions that are on this side."""
    if there and arrays.is_on_card(q):
        raise ModelError("v is missing; where q is on the card, v is an array there, too.")
    return np.zeros(mech.nv)


def _taken(check: Callable[[Any], Array], value: Any, there: bool) -> Any:
    """An array as it is, if it is on the card where it shall be; else looked at."""
    return value if there and arrays.is_on_card(value) else check(value)


def _here(
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
    threads: int | None,
) -> tuple[RolloutKernel | None, Motions]:
    """The motions on this processor, from (batch, nq + nv) on; by a kernel if there is one."""
    try:
        if is_closed(mech):  # after each step loops are closed again, which no kernel does
            check_rollout(mech, integrator, law)
            raise LoweringError("loops and couplings are held step by step")
        kernel = rollout_kernel(
            mech, integrator, with_passive=with_passive, itemsize=itemsize, law=law
        )
        return kernel, _in_parts(kernel, begin, held, length, steps, every, threads)
    except LoweringError:  # too many bodies, a hinge with branches in its steps, or loops
        forces = dampers_and_springs(mech) if with_passive else None
        q, v = np.split(begin, [mech.nq], axis=1)
        q, v = beginnings(mech, q, v)
        done = stepwise(mech, integrator, q, v, held, length, steps, every, forces, law)
        records = np.concatenate([np.concatenate([q, v], axis=1)[:, None], done.records], axis=1)
        return None, Motions(records, done.status, done.failed)


def _in_parts(
    kernel: RolloutKernel,
    start: Array,
    held: Mapping[str, Array],
    step: float,
    steps: int,
    every: int,
    threads: int | None,
) -> Motions:
    """The beginning and all steps: whole intervals of records, and what is left.

    Kernels write where the records stay: copies of them would take as long as the motion.
    """
    whole, nq = steps - steps % every, kernel.mech.nq
    records = np.empty((len(start), 1 - (-steps // every), start.shape[1]), kernel.dtype)
    records[:, 0] = start
    status, failed = np.zeros(len(start), np.int32), np.full(len(start), -1, np.int64)
    for begin, end, apart in ((0, whole, every), (whole, steps, steps - whole)):
        if end == begin:
            continue
        given = {name: _between(x, begin, end) for name, x in held.items()}
        first = begin // every
        q, v = np.split(records[:, first], [nq], axis=1)
        out = records[:, first + 1 : first + 1 + (end - begin) // apart]
        part = kernel.run(q, v, given, step, end - begin, apart, threads, out)
        new = (status == 0) & (part.status != 0)
        status = np.where(new, part.status, status)
        failed = np.where(new, part.failed + begin, failed)
    return Motions(records, status, failed)


def _between(array: Array, begin: int, end: int) -> Array:
    """What is held in the steps from `begin` to `end`."""
    if array.ndim == 1 or array.shape[-2] == 1:
        return array
    return array[..., begin:end, :]


def commands(
    law: ControlLaw,
    goal: Any,
    tau: ArrayLike | None,
    inputs: Mapping[str, ArrayLike] | None,
) -> dict[str, Array]:
    """What a law takes besides the state, by the names of registers."""
    if tau is not None:
        raise ModelError("tau and law were both given; a law gives the joint forces itself.")
    held = _taken_by(law)
    if "goal" in held:
        if goal is None:
            raise ModelError(
                "goal is missing: where the law should lead, see lw.tasks.task_position."
            )
        size = held["goal"].shape[-1]
        numbers = isinstance(goal, np.ndarray) and np.shape(cast("Any", goal))[-1:] == (size,)
        held["goal"] = floats(goal, "goal") if numbers else law.goal(goal)
    for name, given in (inputs or {}).items():
        if name not in held or name == "goal":
            raise unknown_name("input", name, [x for x in held if x != "goal"], owner="the law")
        array = floats(given, name)
        held[name] = np.broadcast_to(array, held[name].shape) if array.ndim == 0 else array
    for name, array in held.items():
        if not np.isfinite(array).all():
            raise ModelError(f"{name} is not finite.")
    return held


def _taken_by(law: ControlLaw) -> dict[str, Array]:
    """What a law takes besides the state, as it has it, by the names of registers."""
    return {INTERNAL if name == "tau" else name: x for name, x in law.inputs.items()}


def _tell(found: Rollout) -> None:
    """Raise for a single motion in trouble, warn for some of many."""
    if not np.any(found.status):
        return
    if found.batch is None:
        n = int(found.failed_step)
        raise SimulationError(
            f"{found.mech.name!r} by {found.integrator!r} in steps of {found.step:.6g} s: "
            f"{describe(found.mech, int(found.status))}, in the step after t = "
            f"{n * found.step:.9g} s. A shorter step or other forces may help.",
            recording=found,
        )
    kinds = Counter(int(code) for code in found.status if code)
    (code, _), lost = kinds.most_common(1)[0], sum(kinds.values())
    first = int(np.flatnonzero(found.status)[0])
    when = float(found.failed_step[first]) * found.step
    warnings.warn(
        f"{lost} of {found.batch} motions of {found.mech.name!r} end early and are NaN from there; "
        f"the first is number {first}, after t = {when:.6g} s. Most often: "
        f"{describe(found.mech, code)}.",
        TroubleWarning,
        stacklevel=caller(),
    )


def _forces(mech: Mechanism, tau: ArrayLike | None) -> Array:
    found = np.zeros(mech.nv) if tau is None else floats(tau, "tau")
    if found.ndim == 0:
        found = np.full(mech.nv, found)
    if not np.isfinite(found).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(found))[0])
        whose = f", {mech.velocity_names[where[-1]]!r}" if found.shape[-1] == mech.nv else ""
        raise ModelError(f"tau is not finite, first at {where}{whose}.")
    return found


def _count(q: Array, v: Array, held: Mapping[str, Array]) -> int:
    found = {"q": q.shape, "v": v.shape} | {name: x.shape for name, x in held.items()}
    sizes = {x.shape[0] for x in (q, v) if x.ndim == 2}
    sizes |= {x.shape[0] for x in held.values() if x.ndim == 3}
    sizes = sizes - {1} or sizes or {1}
    flat = max(q.ndim, v.ndim) < 3
    if len(sizes) > 1 or not flat:
        told = ", ".join(f"{name} has shape {shape}" for name, shape in found.items())
        what = "their batches differ" if flat else "q and v have one axis, or two for a batch"
        raise ShapeError(f"{told}; {what}.")
    if sizes == {0}:
        raise ShapeError("q, v or what is held has no rows: a rollout of no motion has no result.")
    return sizes.pop()
