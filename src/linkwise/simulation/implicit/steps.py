"""What makes implicit steps: an observed kernel, of which everything is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from linkwise.codegen.stepping.device import Course
from linkwise.codegen.stepping.kernel import MotionKernel
from linkwise.errors import ModelError
from linkwise.model.hinges import Free
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.implicit.ground import BEYOND, ContactPoint, Ground, HeightField
from linkwise.simulation.implicit.joint import Joint, joints_with_rows
from linkwise.simulation.implicit.segments import NORMAL
from linkwise.simulation.implicit.step_record import State, Steps
from linkwise.simulation.implicit.touches import Touches, touches_of
from linkwise.simulation.implicit.touching import contact_points
from linkwise.simulation.implicit.work import Limited, works_by_kernel
from linkwise.simulation.motion_request import MotionRequest
from linkwise.simulation.rollout_kernel import motion_kernel
from linkwise.spatial.array import Array, ArrayLike


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
        nq, end = self.mech.nq, self.mech.nq + self.mech.nv
        states = np.empty((steps + 1, self.kernel.width))  # the beginning first
        states[0, :nq], states[0, nq:end] = now.q, now.v
        course = Course(h, steps, 1)
        call, done = self.kernel.repeated(now.q, now.v, given, course, states[None, 1:])
        call()
        made = int(done.failed[0]) if done.status[0] else steps
        rows, before = states[1 : made + 1], states[:made]
        q, v = rows[:, :nq], rows[:, nq:end]
        impulse, first, then = (self._shown(rows, x) for x in ("impulse", "before", "after"))
        count, activation = len(self.joints), self._shown(rows, "activation")
        last = now
        if made:
            last = State(*(x[-1].copy() for x in (q, v, impulse, activation)))
        residual = self._shown(rows, "residual")
        return Steps(
            q, v,
            reached=self._shown(rows, "reached"),
            before=(before[:, :nq], before[:, nq:end]),
            effort=self._shown(rows, "effort"),
            joints=(impulse[:, :count], first[:, :count], then[:, :count]),
            touches=self._touches(impulse, first, then, rows, h),
            residual=residual[:, 0] if residual.shape[1] else np.zeros(made),
            activation=activation,
            last=last,
            status=int(done.status[0]),
        )  # fmt: skip

    def works(self, steps: Steps, h: float, tau: Array, pushed: Array) -> tuple[Array, Limited]:
        """The work in steps, and in which of them a limit pushed: see `works`."""
        acts = {"passive": self.passive, "actuated": self.actuated}
        return works_by_kernel(self.mech, steps, h, tau, pushed, **acts)

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

    def works(self, steps: Steps, h: float, tau: Array, pushed: Array) -> tuple[Array, Limited]:
        """The work in steps, and in which of them a limit pushed: see `works`."""
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
