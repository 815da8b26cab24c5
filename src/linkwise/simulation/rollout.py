"""Rollouts: many steps of one motion, or of many, in one call of a kernel."""

from __future__ import annotations

import math
import operator
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen.stepping.kernel import Motions, RolloutKernel
from linkwise.errors import ModelError, ShapeError, SimulationError, TroubleWarning, caller
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.rollout_kernel import rollout_kernel
from linkwise.spatial.array import Array, ArrayLike, floats


@dataclass(frozen=True, slots=True, eq=False)
class Rollout:
    """Motions of a mechanism, recorded every few steps.

    Attributes:
        mech: The mechanism.
        integrator: Name of the integrator.
        step: Length of a step [s].
        t: Times of the records (k,) [s], the beginning first.
        q: Joint positions (k, nq), or (batch, k, nq).
        v: Joint velocities (k, nv), or (batch, k, nv).
        status: A code for each motion, () or (batch,): 0 where all is well.
        failed_step: The step in which the code came, () or (batch,); -1 for none. Records from
            there on are NaN.
        kernel: What computed it, with `ops` of a step; None for what a graphics card did.
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
    v: ArrayLike,
    *,
    steps: int,
    step: float = 1e-3,
    tau: ArrayLike | None = None,
    integrator: str = "rk4",
    record_every: int = 1,
    passive: bool = True,
    target: str = "cpu",
    dtype: Any = np.float64,
    threads: int | None = None,
) -> Rollout:
    """Move a mechanism through time, or many copies of it, in one call of one kernel.

    Each step of the integrator is derived and compiled with forward dynamics in it, and the loops
    over steps and motions are part of the machine code: nothing of Python runs in between. A vector
    register of motions is done at a time, and batches are spread over the cores.

    Gravity, joint forces, and dampers and springs of drives act. For controllers, contacts, events
    and loops there is `simulate`.

    Args:
        mech: The mechanism; loops and couplings are left open.
        q: Joint positions (nq,) or (batch, nq) at the beginning.
        v: Joint velocities (nv,) or (batch, nv) at the beginning.
        steps: How many steps.
        step: Length of a step [s].
        tau: Joint forces [N or N m], held over each step: None for none, (nv,) for all steps,
            (steps, nv), or (batch, steps, nv).
        integrator: "rk4", "euler" (semi-implicit), "rk4_mujoco" or "variational".
        record_every: How many steps from one record to the next; the last state is recorded too.
        passive: Whether dampers and springs of drives act: −damping v − stiffness (q − rest).
        target: "cpu".
        dtype: float64 or float32.
        threads: Processor cores for a batch; by default as many as are worth it.

    Returns:
        The records. In a batch, motions in trouble are NaN from then on, with a code each, and a
        `TroubleWarning` tells of them.

    Raises:
        SimulationError: A single motion grows without bounds; says when, and why.
        ModelError: An integrator, target or number of steps that means nothing.
        ShapeError: Arrays that do not fit.
        LoweringError: A hinge whose steps cannot be compiled.
    """
    q, v = mech.check_q(q), mech.check_v(v)
    single = q.ndim == 1 and v.ndim == 1 and np.ndim(tau if tau is not None else 0) < 3
    forces = _forces(mech, tau)
    count = _count(q, v, forces)
    steps, every = _whole(steps, "steps", 0), _whole(record_every, "record_every", 1)
    length = _length(step)
    starts = [np.broadcast_to(x, (count, x.shape[-1])) for x in (q, v)]
    if target != "cpu":
        raise ModelError(f"target={target!r} is none for rollouts; there is 'cpu'.")
    kernel = rollout_kernel(mech, integrator, with_passive=passive, itemsize=_itemsize(dtype))
    q0, v0 = (np.asarray(x, kernel.dtype) for x in starts)
    done = _in_parts(kernel, q0, v0, forces, length, steps, every, threads)
    times = length * np.array([*range(0, steps, every), steps] if steps else [0])
    records = np.concatenate([np.concatenate([q0, v0], axis=1)[:, None], done.records], axis=1)
    q_all, v_all = records[..., : mech.nq], records[..., mech.nq :]
    status, failed = done.status, done.failed
    if single:
        q_all, v_all, status, failed = q_all[0], v_all[0], status[0], failed[0]
    found = Rollout(mech, integrator, length, times, q_all, v_all, status, failed, kernel)
    _tell(found, kernel)
    return found


def _in_parts(
    kernel: RolloutKernel,
    q: Array,
    v: Array,
    tau: Array,
    step: float,
    steps: int,
    every: int,
    threads: int | None,
) -> Motions:
    """All steps: whole intervals of records, and what is left."""
    whole = steps - steps % every
    width = kernel.mech.nq + kernel.mech.nv
    done = Motions(
        np.empty((len(q), 0, width), kernel.dtype),
        np.zeros(len(q), np.int32),
        np.full(len(q), -1, np.int64),
    )
    for begin, end, apart in ((0, whole, every), (whole, steps, steps - whole)):
        if end == begin:
            continue
        given = tau if tau.ndim == 1 or tau.shape[-2] == 1 else tau[..., begin:end, :]
        part = kernel.run(q, v, {"tau": given}, step, end - begin, apart, threads)
        failed = np.where(part.failed >= 0, part.failed + begin, -1)
        late = done.status != 0
        done = Motions(
            np.concatenate([done.records, part.records], axis=1),
            np.where(late, done.status, part.status),
            np.where(late, done.failed, failed),
        )
        q, v = np.split(done.records[:, -1], [kernel.mech.nq], axis=1)
    return done


def _tell(found: Rollout, kernel: RolloutKernel) -> None:
    """Raise for a single motion in trouble, warn for some of many."""
    if not np.any(found.status):
        return
    if found.batch is None:
        n = int(found.failed_step)
        raise SimulationError(
            f"{found.mech.name!r} by {found.integrator!r} in steps of {found.step:.6g} s: "
            f"{kernel.describe(int(found.status))}, in the step after t = {n * found.step:.9g} s. "
            "A shorter step or other forces may help.",
            recording=found,
        )
    kinds = Counter(int(code) for code in found.status if code)
    (code, _), lost = kinds.most_common(1)[0], sum(kinds.values())
    first = int(np.flatnonzero(found.status)[0])
    when = float(found.failed_step[first]) * found.step
    warnings.warn(
        f"{lost} of {found.batch} motions of {found.mech.name!r} end early and are NaN from there; "
        f"the first is number {first}, after t = {when:.6g} s. Most often: "
        f"{kernel.describe(code)}.",
        TroubleWarning,
        stacklevel=caller(),
    )


def _forces(mech: Mechanism, tau: ArrayLike | None) -> Array:
    found = np.zeros(mech.nv) if tau is None else floats(tau, "tau")
    if found.ndim == 0:
        found = np.full(mech.nv, found)
    if found.ndim > 3 or found.shape[-1] != mech.nv:
        raise ShapeError(
            f"tau has shape {found.shape}; it must be ({mech.nv},), (steps, {mech.nv}) or "
            f"(batch, steps, {mech.nv})."
        )
    if not np.isfinite(found).all():
        where = np.argwhere(~np.isfinite(found))[0]
        raise ModelError(
            f"tau is not finite, first at {tuple(int(i) for i in where)}, "
            f"{mech.velocity_names[int(where[-1])]!r}."
        )
    return found


def _count(q: Array, v: Array, tau: Array) -> int:
    sizes = {len(x) for x in (q, v) if x.ndim == 2} | ({len(tau)} if tau.ndim == 3 else set[int]())
    sizes = sizes - {1} or sizes or {1}
    if len(sizes) > 1:
        raise ShapeError(
            f"q has shape {q.shape}, v {v.shape} and tau {tau.shape}; their batches differ."
        )
    return sizes.pop()


def _whole(value: Any, name: str, least: int) -> int:
    try:
        found = operator.index(value)
    except TypeError:
        found = least - 1
    if found < least:
        raise ModelError(f"{name} is {value!r}; it must be a whole number, at least {least}.")
    return found


def _length(step: Any) -> float:
    if isinstance(step, int | float) and math.isfinite(step) and step > 0.0:
        return float(step)
    raise ModelError(f"step is {step!r}; it must be a time above zero [s].")


def _itemsize(dtype: Any) -> int:
    for kind in (np.float64, np.float32):
        if dtype in (kind, np.dtype(kind), np.dtype(kind).name):
            return np.dtype(kind).itemsize
    raise ModelError(f"dtype is {dtype!r}; rollouts are made of float64 or float32.")
