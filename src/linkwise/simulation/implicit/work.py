"""The work that was done in implicit steps: by one kernel, and in plain NumPy.

With the impulses p of a step and the mean v̄ = ½ (v + v') of the velocities before and after it,
both in the axes before it,

    ½ v'* M v' − ½ v* M v = v̄* p

exactly. So the work of each force f is h v̄* f, and that of an impulse λ is λ ½ (u + u'), with the
velocities u of its row. A step moves q by h v' though, with M and gravity as they are at its
beginning. What that adds or takes is the work of the steps themselves, of order h:

    E(q', v') − E(q, v') − h v̄* C(q, v)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen.formula import Formula
from linkwise.dynamics.energy import energy, kinetic_energy, potential_energy
from linkwise.dynamics.inverse_dynamics import inverse_dynamics
from linkwise.dynamics.kernels import tree_of, written
from linkwise.dynamics.passive import passive as dampers_and_springs
from linkwise.dynamics.quantity import expression
from linkwise.model.hinges import Free
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.implicit.joint import Joint, joints_with_rows
from linkwise.simulation.implicit.step_record import Steps
from linkwise.simulation.rates import carried
from linkwise.spatial.array import Array
from linkwise.spatial.choice import absolute, maximum, minimum

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

WORKERS = (
    "joints",
    "actuators",
    "passive",
    "forces",
    "joint_friction",
    "limits",
    "contacts",
    "contact_friction",
    "steps",
)
"""Who does work in implicit steps, in the order of columns."""

Limited = NDArray[np.bool_]
"""In which steps a limit pushed (n,)."""


def works_by_kernel(
    mech: Mechanism,
    steps: Steps,
    h: float,
    tau: Array,
    pushed: Array,
    *,
    passive: bool,
    actuated: bool,
) -> tuple[Array, Limited]:
    """What `works` gives, by one kernel for everything but contacts."""
    kernel = written(tree_of(mech), WORKS[passive])
    given = *steps.before, steps.reached, steps.effort, tau, pushed, np.array([h])
    given = [*given, *steps.joints] if steps.joints[0].shape[1] else [*given]
    codes = np.zeros(len(steps), dtype=np.int32)  # steps in trouble are NaN, which the report tells
    made, _ = kernel.device.run(given, len(steps), None, codes, 1)
    out = np.empty((len(steps), len(WORKERS)))
    out[:, :6], out[:, 6:8] = made[:, :6], steps.touches.work
    if not actuated:
        out[:, 1] = 0.0  # a difference, which may be rounding
    end = energy(mech, *(np.array(x[-1:]) for x in (steps.q, steps.v)), status=codes[:1])
    out[:-1, 8], out[-1, 8] = made[1:, 6], end.total[0]
    out[:, 8] -= made[:, 7]
    return out, made[:, 8] != 0.0


def _works(at: Writing, acts: bool) -> Any:
    """Works of all but contacts and steps, E(q, v), E(q, v') + h v̄* C(q, v), impulses of limits."""
    mech, nv = at.mech, at.mech.nv
    q, v = at.q, at.v
    reached, effort, tau, pushed = (
        at.read(name, nv) for name in ("reached", "effort", "tau", "pushed")
    )
    (h,) = at.read("h", 1)
    joints = joints_with_rows(mech, friction=acts)
    impulse, start, end = (at.read(x, len(joints)) if joints else () for x in _OF_JOINTS)
    mean, turning = 0.5 * (v + reached), carried(mech, v, np.zeros(nv, dtype=object))
    by_user, by_others = h * (mean @ tau), h * (mean @ pushed)
    yielded, drives = _zero(), dampers_and_springs(mech)
    if acts and drives.any:  # at the end of the step
        late = reached - h * turning
        force = drives.added(at, np.zeros(nv, dtype=object), q, late)
        yielded = h * (mean @ (force - h * drives.stiffness * late))
    rubbed, stopped, limit = _zero(), _zero(), _zero()
    for joint, x, before, after in zip(joints, impulse, start, end, strict=True):
        rub = maximum(minimum(x, h * joint.friction), -h * joint.friction)
        both = 0.5 * (before + after)
        rubbed, stopped = rubbed + rub * both, stopped + (x - rub) * both
        limit = limit + absolute(x - rub)
    kinetic, potential, inverse = (
        expression(name) for name in ("kinetic_energy", "potential_energy", "inverse_dynamics")
    )
    (place,), (moving,) = at.value(potential, q=q), at.value(kinetic, q=q, v=v)
    (moved,) = at.value(kinetic, q=q, v=reached)
    bias = at.value(inverse, q=q, v=v, vdot=-turning)
    return np.array([
        by_user, h * (mean @ effort) - by_user - by_others, yielded, by_others, rubbed, stopped,
        moving + place, moved + place + h * (mean @ bias), limit,
    ])  # fmt: skip


_OF_JOINTS = ("impulse", "start", "end")

WORKS = {acts: Formula(_works, (acts,)) for acts in (False, True)}
"""With and without dampers, springs and friction."""


def _zero() -> Any:
    return 0.0


def works(
    mech: Mechanism,
    steps: Steps,
    joints: tuple[Joint, ...],
    h: float,
    tau: Array,
    pushed: Array,
    *,
    passive: bool,
) -> tuple[Array, Limited]:
    """Work of each of `WORKERS` in each step (n, workers) [J], and where limits pushed.

    Args:
        tau: Joint forces of the user (1, nv) or (n, nv).
        pushed: Joint forces of external forces, likewise; also part of the effort.
    """
    q, v = steps.before
    mean, out = 0.5 * (v + steps.reached), np.zeros((len(steps), len(WORKERS)))
    turning = _turning(mech, v)
    for i, force in ((0, tau), (3, pushed)):
        if force.any():
            out[:, i] = h * _along(mean, force)
    if steps.effort.any():
        out[:, 1] = h * _along(mean, steps.effort) - out[:, 0] - out[:, 3]
    if passive:
        drives = dampers_and_springs(mech)
        if drives.any:  # at the end of the step
            late = steps.reached - h * turning
            force = drives.force(q, late) - h * drives.stiffness * late
            out[:, 2] = h * _along(mean, force)
    impulse, start, end = steps.joints
    limit = np.zeros_like(impulse)
    if impulse.any():
        most = h * np.array([x.friction for x in joints])
        rub, both = np.clip(impulse, -most, most), 0.5 * (start + end)
        limit = impulse - rub
        out[:, 4], out[:, 5] = _along(rub, both), _along(limit, both)
    out[:, 6:8] = steps.touches.work
    quiet = np.zeros(len(steps), dtype=np.int32)
    stored = potential_energy(mech, np.concatenate([q, steps.q[-1:]]))
    moved = kinetic_energy(mech, steps.q, steps.v, status=quiet)
    moved = moved - kinetic_energy(mech, q, steps.reached, status=quiet)
    bias = inverse_dynamics(tree_of(mech), q, v, -turning, status=quiet)  # loops push, too
    out[:, 8] = np.diff(stored) + moved - h * _along(mean, bias)
    return out, (limit != 0.0).any(axis=1)


def _along(a: Array, b: Array) -> Array:
    """a · b of each row (n,) of (n, nv); b may have one row for all."""
    return a @ b[0] if len(b) == 1 else np.einsum("ij,ij->i", a, b)


def _turning(mech: Mechanism, v: Array) -> Array:
    """(v' − v) / h of free bodies without forces (n, nv): their axes turn."""
    out = np.zeros_like(v)
    for k, body in enumerate(mech.bodies):
        if isinstance(body.hinge, Free):
            at = int(mech.v_start[k])
            out[:, at + 3 : at + 6] = np.cross(v[:, at : at + 3], v[:, at + 3 : at + 6])
    return out
