"""What implicit steps did: states, impulses and work, from what an observed kernel shows.

With the impulses p of a step and the mean v̄ = ½ (v + v') of the velocities before and after it,
both in the axes before it,

    ½ v'* M v' − ½ v* M v = v̄* p

exactly. So the work of each force f is h v̄* f, and that of an impulse λ is λ ½ (u + u'), with the
velocities u of its row. A step moves q by h v' though, with M and gravity as they are at its
beginning. What that adds or takes is the work of the steps themselves, of order h:

    E(q', v') − E(q, v') − h v̄* C(q, v)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen.stepping.kernel import MotionKernel
from linkwise.dynamics.energy import kinetic_energy, potential_energy
from linkwise.dynamics.inverse_dynamics import inverse_dynamics
from linkwise.dynamics.kernels import tree_of
from linkwise.dynamics.passive import passive as dampers_and_springs
from linkwise.errors import ModelError
from linkwise.model.hinges import Free
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.implicit.ground import (
    BEYOND,
    ContactPoint,
    Ground,
    HeightField,
    axes_of,
)
from linkwise.simulation.implicit.joint import Joint, joints_with_rows
from linkwise.simulation.implicit.segments import NORMAL
from linkwise.simulation.implicit.touching import contact_points
from linkwise.simulation.motion_request import MotionRequest
from linkwise.simulation.rollout_kernel import motion_kernel
from linkwise.spatial.array import Array, ArrayLike

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

NEVER = 1.0
"""The gap [m] that is given for shapes that are not near each other."""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """What one step begins with.

    Attributes:
        q: Joint positions (nq,).
        v: Joint velocities (nv,).
        impulse: Impulses of the last step, with which the sweeps begin.
        activation: Activations of the actuators that have one.
    """

    q: Array
    v: Array
    impulse: Array
    activation: Array


@dataclass(frozen=True, slots=True, eq=False)
class Touches:
    """Contacts during n steps.

    Attributes:
        names: Their names (c).
        force: Mean force on the body, in world axes (n, c, 3) [N].
        gap: Before each step (n, c) [m]; negative for a penetration.
        approach: Normal velocity before each step (n, c) [m/s]; negative towards the other side.
        slip: Sliding speed after each step (n, c) [m/s].
        work: Of normal forces and of friction, over each step (n, c, 2) [J].
    """

    names: tuple[str, ...]
    force: Array
    gap: Array
    approach: Array
    slip: Array
    work: Array

    @property
    def touching(self) -> NDArray[np.bool_]:
        """Whether there was a force (n, c)."""
        return (self.force != 0.0).any(axis=-1)


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """What n steps did.

    Attributes:
        q: After each (n, nq).
        v: Likewise (n, nv).
        reached: v in the axes before each step (n, nv).
        before: q and v before each.
        effort: Joint forces of the user and of actuators (n, nv).
        joints: Impulses at `Joint`s (n, j), and their velocities before and after.
        touches: Contacts.
        residual: Of the last sweep (n,) [m/s or rad/s].
        activation: Of actuators, after each (n, a).
        last: What the next step begins with.
        status: A code, 0 if all went well; the steps after the one that failed are left out.
    """

    q: Array
    v: Array
    reached: Array
    before: tuple[Array, Array]
    effort: Array
    joints: tuple[Array, Array, Array]
    touches: Touches
    residual: Array
    activation: Array
    last: State
    status: int

    def __len__(self) -> int:
        return len(self.q)

    def taken(self, count: int) -> Steps:
        """The first of them, after which nothing comes."""
        touches = [getattr(self.touches, x.name) for x in fields(Touches)]
        return Steps(
            self.q[:count], self.v[:count], self.reached[:count],
            (self.before[0][:count], self.before[1][:count]), self.effort[:count],
            (self.joints[0][:count], self.joints[1][:count], self.joints[2][:count]),
            Touches(touches[0], *(x[:count] for x in touches[1:])),
            self.residual[:count], self.activation[:count],
            replace(self.last, q=self.q[count - 1], v=self.v[count - 1]) if count else self.last, 0,
        )  # fmt: skip


class KernelSteps:
    """Steps by the kernel of `lw.rollout`, with points that may touch the ground.

    Attributes:
        mech: The mechanism.
        joints: Joints with friction or limits.
        contacts: Names of contacts.
        passive: Whether dampers, springs and friction of the drives act.
    """

    def __init__(
        self,
        mech: Mechanism,
        points: tuple[ContactPoint, ...],
        *,
        actuated: bool,
        passive: bool,
    ) -> None:
        self.mech, self.points, self.passive, self.actuated = mech, points, passive, actuated
        self.joints: tuple[Joint, ...] = joints_with_rows(mech, friction=passive)
        request = MotionRequest(mech, "implicit", passive, contacts=points, actuated=actuated)
        self.kernel: MotionKernel = motion_kernel(replace(request, observed=True))
        at, self._parts = mech.nq + mech.nv, dict[str, slice]()
        for name, size in self.kernel.shown.items():
            self._parts[name] = slice(at, at + size)
            at += size
        self._starts = dict(self.kernel.begins)

    @property
    def kind(self) -> str:
        """What touches: points, or nothing."""
        return "points" if self.points else ""

    @property
    def contacts(self) -> tuple[str, ...]:
        """Names of contacts."""
        return tuple(point.name for point in self.points)

    def first(self, q: Array, v: Array) -> State:
        """What the first step begins with."""
        sizes = (self._starts.get(name, 0) for name in ("impulse", "activation"))
        return State(q, v, *(np.zeros(size) for size in sizes))

    def advance(self, now: State, h: float, steps: int, tau: Array, control: Array) -> Steps:
        """Some steps.

        Args:
            h: Length of a step [s].
            tau: Joint forces of the user (1, nv) or (steps, nv).
            control: Commands of the actuators (1, a) or (steps, a), if they act.
        """
        given = {"impulse": now.impulse, "activation": now.activation, "tau": tau}
        given["control"] = control
        done = self.kernel.run(now.q[None], now.v[None], given, h, steps, 1)
        rows = done.records[0]
        rows = rows[: int(done.failed[0])] if done.status[0] else rows
        q, v = rows[:, : self.mech.nq], rows[:, self.mech.nq : self.mech.nq + self.mech.nv]
        impulse, start, end = (self._shown(rows, x) for x in ("impulse", "before", "after"))
        count, activation = len(self.joints), self._shown(rows, "activation")
        last = now if not len(rows) else State(q[-1], v[-1], impulse[-1], activation[-1])
        return Steps(
            q, v,
            reached=self._shown(rows, "reached"),
            before=(_shifted(now.q, q), _shifted(now.v, v)),
            effort=self._shown(rows, "effort"),
            joints=(impulse[:, :count], start[:, :count], end[:, :count]),
            touches=self._touches(impulse, start, end, rows, h),
            residual=self._shown(rows, "residual").sum(axis=1),
            activation=activation,
            last=last,
            status=int(done.status[0]),
        )  # fmt: skip

    def gaps(self, now: State, h: float) -> tuple[tuple[str, ...], Array]:
        """Names of contacts, and their gaps at a state (1, c) [m]: those before a further step."""
        if not self.points:
            return (), np.zeros((1, 0))
        given = {name: np.zeros(size) for name, size in self.kernel.held}
        given |= {"impulse": now.impulse, "activation": now.activation}
        done = self.kernel.run(now.q[None], now.v[None], given, h, 1, 1)
        return self.contacts, self._shown(done.records[0], "gap")

    def _shown(self, rows: Array, name: str) -> Array:
        return rows[:, self._parts.get(name, slice(0, 0))]

    def _touches(self, impulse: Array, start: Array, end: Array, rows: Array, h: float) -> Touches:
        shown = self._shown(rows, "gap"), self._shown(rows, NORMAL)
        return touches_of(self.points, impulse, start, end, *shown, h)


def touches_of(
    points: tuple[ContactPoint, ...],
    impulse: Array,
    start: Array,
    end: Array,
    gap: Array,
    normals: Array,
    h: float,
) -> Touches:
    """Contacts during n steps, from the rows of all points, which are the last ones.

    Args:
        impulse: Of rows (n, rows).
        start: Their velocities before each step, likewise.
        end: After it.
        gap: Of points (n, c).
        normals: Of points over height fields (n, 3 of each).
        h: Length of a step [s].
    """
    if not points:
        none = np.zeros((len(impulse), 0))
        return Touches((), none[..., None], none, none, none, none[..., None])
    sizes = np.array([point.rows for point in points], dtype=np.intp)
    first = impulse.shape[1] + np.cumsum(sizes) - sizes - sizes.sum()
    each, start = 0.5 * impulse * (start + end), start[:, first]
    push = impulse[:, first[:, None] + np.arange(3)]
    force = (push[..., None, :] @ (axes_of(points, normals) / h))[..., 0, :]
    slip = np.hypot(end[:, first + 1], end[:, first + 2])
    work = np.empty((*slip.shape, 2))
    work[..., 0] = each[:, first]
    work[..., 1] = np.add.reduceat(each, first, axis=1) - work[..., 0]
    return Touches(tuple(point.name for point in points), force, gap, start, slip, work)


class Stepper(Protocol):
    """What makes implicit steps."""

    mech: Mechanism
    joints: tuple[Joint, ...]
    passive: bool
    actuated: bool

    @property
    def kind(self) -> str:
        """What touches: "bodies", "points", or "" for nothing."""
        ...

    @property
    def contacts(self) -> tuple[str, ...]:
        """Names of contacts."""
        ...

    def first(self, q: Array, v: Array) -> State:
        """What the first step begins with."""
        ...

    def gaps(self, now: State, h: float) -> tuple[tuple[str, ...], Array]:
        """Names of contacts, and their gaps at a state (1, c) [m]."""
        ...

    def advance(self, now: State, h: float, steps: int, tau: Array, control: Array) -> Steps:
        """Some steps."""
        ...


def put_on_ground(
    mech: Mechanism,
    q: ArrayLike | None = None,
    contacts: Ground | Sequence[ContactPoint] | None = None,
) -> Array:
    """A pose whose lowest contact just touches the ground, with the joints as they are.

    Args:
        mech: The mechanism; its first body is free.
        q: A pose (nq,) [m or rad]; default: neutral.
        contacts: What may touch, as in `lw.rollout`; default: what the mechanism describes.

    Returns:
        q (nq,), moved along the normal of the ground.

    Raises:
        ModelError: The base is not free, or nothing can touch; or the ground is not one plane.
    """
    points = contact_points(mech, contacts)
    start = mech.couple(mech.neutral()) if q is None else q
    start = np.array(mech.check_q(start))
    base = mech.bodies[0]
    grounds = {point.ground for point in points}
    normals = {ground.normal for ground in grounds}
    if not isinstance(base.hinge, Free) or len(normals) != 1:
        what = "has no contact" if not normals else "touches several planes"
        what = what if isinstance(base.hinge, Free) else "has no free base"
        raise ModelError(
            f"{mech.name!r} {what}; put_on_ground needs a free base above one plane: give contacts="
            "lw.simulation.Ground(), or set q yourself."
        )
    stepper = KernelSteps(mech, points, actuated=bool(mech.actuators), passive=True)
    (normal,) = normals
    for _ in range(LOWERINGS if any(isinstance(x, HeightField) for x in grounds) else 1):
        _, gap = stepper.gaps(stepper.first(start, np.zeros(mech.nv)), 1e-6)
        if gap.min() >= BEYOND:
            raise ModelError(f"{mech.name!r} is beyond the edges of the height field; move it.")
        start[4:7] -= float(gap.min()) * (np.array(normal) @ base.inboard.rot)
        if abs(gap.min()) < 1e-12:
            break
    return start


LOWERINGS = 60
"""Steps towards a slope, at most: a gap is shorter than the way down."""


def _shifted(first: Array, after: Array) -> Array:
    """The states before steps, from those after them."""
    return np.concatenate([first[None], after[:-1]])


def works(
    mech: Mechanism,
    steps: Steps,
    joints: tuple[Joint, ...],
    h: float,
    tau: Array,
    pushed: Array,
    *,
    passive: bool,
) -> Array:
    """Work of each of `WORKERS` in each step (n, workers) [J].

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
    if impulse.any():
        most = h * np.array([x.friction for x in joints])
        rub, both = np.clip(impulse, -most, most), 0.5 * (start + end)
        out[:, 4] = _along(rub, both)
        out[:, 5] = _along(impulse - rub, both)
    out[:, 6:8] = steps.touches.work.sum(axis=1)
    quiet = np.zeros(len(steps), dtype=np.int32)
    energy = potential_energy(mech, np.concatenate([q, steps.q[-1:]]))
    moved = kinetic_energy(mech, steps.q, steps.v, status=quiet)
    moved = moved - kinetic_energy(mech, q, steps.reached, status=quiet)
    bias = inverse_dynamics(tree_of(mech), q, v, -turning, status=quiet)  # loops push, too
    out[:, 8] = np.diff(energy) + moved - h * _along(mean, bias)
    return out


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
