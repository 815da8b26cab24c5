"""Implicit steps with contacts between any bodies, whose number changes from step to step.

A kernel gives the step without impulses (`free.py`), coal the points of contact (`collision.py`),
and a compiled loop solves for the impulses (`codegen/stepping/sweeps.py`). A contact pushes two
bodies apart, with the rows

    Y = D^(-½) (I - H ψ K) (J_a − J_b)*

Loops and couplings hold exactly, as in `equality.py`: w has a part in the span of their rows, and
all other rows are across to it.

Sweeps begin with the impulses that were there in the last step, at the nearest point of the same
two shapes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen.scalar import status as codes
from linkwise.codegen.stepping.sweeps import LANES, solve_impulses
from linkwise.dynamics.closure import constraint_bias, constraint_error, constraint_jacobian
from linkwise.dynamics.kernels import is_closed
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.collision import Collider, Collisions, Touching, near
from linkwise.simulation.implicit.equality import (
    DEPENDENT,
    EMPTY,
    RECOVERY as CLOSING,
    check_formulas,
)
from linkwise.simulation.implicit.free import free_kernel
from linkwise.simulation.implicit.joint import Joint, directions, joints_with_rows, values
from linkwise.simulation.implicit.segments import (
    FAR,
    FASTEST,
    RECOVERY,
    SLOW,
)
from linkwise.simulation.implicit.step_record import NEVER, State, Steps
from linkwise.simulation.implicit.sweeping import ENOUGH
from linkwise.simulation.implicit.touches import PairTouches
from linkwise.simulation.implicit.work import Limited, works
from linkwise.simulation.loop_keeper import DRIFT_LIMIT
from linkwise.simulation.rates import moved, rates, velocities
from linkwise.spatial.array import Array
from linkwise.spatial.vector import cross

SWEEPS = 200
"""Sweeps of a step, at most."""

SAME = 0.02
"""Points of one pair nearer than this [m] in two steps are one."""

IMMOVABLE = 1e-12
"""Mobility [1/kg] of a row below which rounding is all there is."""


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """Contacts of the last step.

    Attributes:
        pair: The pair of each (n,).
        point: Where it was (n, 3) [m].
        push: Its impulse and, where it resists turning, its angular impulse in the world (n, 6).
        joints: Impulses at joints (j,).
    """

    pair: NDArray[np.intp]
    point: Array
    push: Array
    joints: Array


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """What the rows of loops leave to all others: `equality.Held` in numbers.

    Attributes:
        rows: Orthonormal rows of their span (r, width).
        shift: The part of w that satisfies them (width,).
    """

    rows: Array
    shift: Array

    def across(self, x: Array) -> Array:
        """The part of x (..., width) that they do not have."""
        return x - x @ self.rows.T @ self.rows

    def freed(self, x: Array) -> Array:
        """The same of rows (m, width); zero where loops hold one."""
        free = self.across(x)
        size, least = (np.einsum("ij,ij->i", a, a) for a in (free, x))
        return np.where((size > DEPENDENT[8] ** 2 * least)[:, None], free, 0.0)


def span(rows: Array, b: Array) -> Span:
    """The span of independent rows Y_e (m, width), and the w in it with Y_e w = −b."""
    sizes = np.einsum("ij,ij->i", rows, rows)
    kept = sizes > EMPTY[8] * sizes.mean() + 1e-30
    scale = 1.0 / np.sqrt(sizes[kept])
    left, values, right = np.linalg.svd(rows[kept] * scale[:, None], full_matrices=False)
    many = int(np.count_nonzero(values > DEPENDENT[8] * values.max(initial=0.0)))
    along = left[:, :many].T @ (-b[kept] * scale) / values[:many]
    return Span(np.ascontiguousarray(right[:many]), along @ right[:many])


class CollisionSteps:
    """Steps with contacts between bodies.

    Attributes:
        mech: The mechanism.
        joints: Joints with friction or limits.
        contacts: Names of all pairs that may touch.
        passive: Whether dampers, springs and friction of the drives act.
        actuated: Whether the actuators act.
    """

    def __init__(
        self, mech: Mechanism, given: Collisions, *, actuated: bool, passive: bool
    ) -> None:
        self.mech, self.passive, self.actuated, self.kind = mech, passive, actuated, "bodies"
        check_formulas(mech)
        self.joints: tuple[Joint, ...] = joints_with_rows(mech, friction=passive)
        self.collider = Collider(mech, given)
        self.contacts = tuple(pair.name for pair in self.collider.pairs)
        self.kernel = free_kernel(mech, self.collider.bodies, passive, actuated)
        at, self._parts = mech.nq + mech.nv, dict[str, slice]()
        for name, size in self.kernel.shown.items():
            self._parts[name] = slice(at, at + size)
            at += size
        self._laws = np.array([pair.laws for pair in self.collider.pairs])
        ends = [(self.collider.row(p.a), self.collider.row(p.b)) for p in self.collider.pairs]
        self._ends = np.array(ends)
        self._each = 6 if (self._laws[:, 1:3] > 0.0).any() else 3
        self._width = -(-mech.nv // LANES) * LANES
        self._reaches = np.zeros(len(self.collider.bodies))
        for i, shape in enumerate(self.collider.shapes):
            row = self.collider.row(i)
            if row >= 0:
                size = shape.reach + float(np.linalg.norm(shape.p))
                self._reaches[row] = max(self._reaches[row], size)
        self._lower, self._upper, self._rub = (
            np.array([getattr(x, name) for x in self.joints])
            for name in ("lower", "upper", "friction")
        )
        self._memory = self._forgotten()

    def _forgotten(self) -> Memory:
        none = np.zeros(0, dtype=np.intp)
        return Memory(none, np.zeros((0, 3)), np.zeros((0, 6)), np.zeros(len(self.joints)))

    def first(self, q: Array, v: Array) -> State:
        """What the first step begins with."""
        self._memory = self._forgotten()
        return State(q, v, np.zeros(0), np.zeros(dict(self.kernel.begins).get("activation", 0)))

    def gaps(self, now: State, h: float) -> tuple[tuple[str, ...], Array]:
        """Names of pairs that are near, and their gaps at a state (1, c) [m]."""
        free = self._free(now, h, np.zeros(self.mech.nv), np.zeros(len(self.mech.actuators)))
        points = self.collider.find(self._poses(free), self._near(free, h))
        names = dict[str, float]()
        for i, gap in zip(points.pair, points.gap, strict=True):
            name = self.contacts[int(i)]
            names[name] = min(names.get(name, np.inf), float(gap))
        return tuple(names), np.array([list(names.values())])

    def advance(self, now: State, h: float, steps: int, tau: Array, control: Array) -> Steps:
        """Some steps; the arguments are those of `KernelSteps.advance`."""
        made, touched = list[Array](), list[dict[int, Array]]()
        starts, status = list[State](), 0
        for n in range(steps):
            starts.append(now)
            given = (x[n if len(x) > 1 else 0] for x in (tau, control))
            row, touches, now, status = self._step(now, h, *given)
            if status:
                starts.pop()
                break
            made.append(row)
            touched.append(touches)
        return self._together(made, touched, starts, now, status)

    def works(self, steps: Steps, h: float, tau: Array, pushed: Array) -> tuple[Array, Limited]:
        """The work in steps, and in which of them a limit pushed: see `works`."""
        return works(self.mech, steps, self.joints, h, tau, pushed, passive=self.passive)

    # ------------------------------------------------------------------------------- one step

    def _free(self, now: State, h: float, tau: Array, control: Array) -> dict[str, Array]:
        """The step without impulses."""
        given = {"tau": tau, "control": control, "activation": now.activation}
        done = self.kernel.run(now.q[None], now.v[None], given, h, 1, 1)
        row = done.records[0, 0]
        free = {name: row[part] for name, part in self._parts.items()}
        free["status"] = done.status
        return free

    def _poses(self, free: dict[str, Array]) -> Array:
        return free["poses"].reshape(-1, 3, 4)

    def _near(self, free: dict[str, Array], h: float) -> float:
        """How near shapes are looked at."""
        V = free["then"].reshape(-1, 6)
        turning = np.linalg.norm(V[:, :3], axis=1) * self._reaches
        return near((np.linalg.norm(V[:, 3:], axis=1) + turning).tolist(), h)

    def _step(
        self, now: State, h: float, tau: Array, control: Array
    ) -> tuple[Array, dict[int, Array], State, int]:
        mech, free = self.mech, self._free(now, h, tau, control)
        if int(free["status"][0]):
            return np.zeros(0), {}, now, int(free["status"][0])
        reach = self._near(free, h)
        points = self.collider.find(self._poses(free), reach)
        S, rows = self._rows(free, points, now.q)
        count, m = len(self.joints), len(rows)
        whitening = free["whitening"].reshape(mech.nv, mech.nv)
        along = directions(self.joints, now.q[None], mech.nv)[0]
        start, then = along @ now.v, along @ free["still"]
        if len(S):
            start = np.concatenate([start, S @ free["now"]])
            then = np.concatenate([then, S @ free["then"]])
        held, code = self._held(now, free["still"], whitening, h)
        if code:
            return np.zeros(0), {}, now, code
        then = then + rows @ held.shift
        rows = held.freed(rows)
        b = then.copy()
        normal = count + self._each * np.arange(len(points.gap))
        b[normal] += rooms(points.gap, start[normal], self._laws[points.pair, 3], h)
        impulse = self._remembered(points)
        w = np.zeros(self._width)
        w[: mech.nv] = free["forces"]
        w = held.across(w) + rows.T @ impulse
        worst = 0.0
        if m:
            worst, _ = solve_impulses(
                rows, b, inverses(rows, normal, self._each), impulse, w, self._bounds(now, h),
                np.ascontiguousarray(self._laws[points.pair, :3]), each=self._each, most=SWEEPS,
                enough=ENOUGH[8],
            )  # fmt: skip
        end = then + rows @ w
        change = whitening @ (w + held.shift)[: mech.nv]
        reached = free["still"] + change
        u = rates(mech, now.q, reached)
        q = moved(mech, now.q, u, h)
        v = velocities(mech, q, u)
        servo = free["stiffness of servos"], free["damping of servos"]
        effort = free["effort"] - h * servo[0] * (now.v + change) - servo[1] * change
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            return np.zeros(0), {}, now, 1
        activation = free.get("activation", np.zeros(0))
        self._remember(points, impulse)
        at_joints = impulse[:count], start[:count], end[:count]
        row = np.concatenate([q, v, reached, effort, *at_joints, [worst], activation])
        touches = self._touched(points, impulse, start, end, h)
        return row, touches, State(q, v, now.impulse, activation), 0

    def _held(self, now: State, still: Array, whitening: Array, h: float) -> tuple[Span, int]:
        """What loops and couplings hold, and a code where they are open."""
        if not is_closed(self.mech):
            return Span(np.zeros((0, self._width)), np.zeros(self._width)), 0
        error = constraint_error(self.mech, now.q)
        if np.abs(error).max(initial=0.0) > DRIFT_LIMIT:
            return Span(np.zeros((0, self._width)), np.zeros(self._width)), codes.opened(self.mech)
        G = constraint_jacobian(self.mech, now.q)
        b = G @ (0.5 * (now.v + still)) + 0.5 * h * constraint_bias(self.mech, now.q, now.v)
        rows = np.zeros((len(G), self._width))
        rows[:, : self.mech.nv] = G @ whitening
        return span(rows, b + CLOSING * error / h), 0

    def _rows(self, free: dict[str, Array], points: Touching, q: Array) -> tuple[Array, Array]:
        """S (rows, 6 bodies) with velocities S V of contacts, and Y (m, width) of all rows."""
        nv, each, count = self.mech.nv, self._each, len(self.joints)
        bodies = free["bodies"].reshape(-1, nv)  # 6 rows for each body
        n = len(points.gap)
        S = np.zeros((n, each, len(bodies)))
        origins = self._poses(free)[:, :, 3]
        each_point = np.arange(n)
        for side, sign in ((0, 1.0), (1, -1.0)):
            body = self._ends[points.pair, side]
            here = each_point[body >= 0]
            at = 6 * body[here]
            axes = sign * points.axes[here]
            arm = points.point[here] - origins[body[here]]
            turning = cross(arm[:, None, :], axes)
            for k in range(3):
                S[here[:, None], np.arange(3), (at + k)[:, None]] += turning[:, :, k]
                S[here[:, None], np.arange(3), (at + 3 + k)[:, None]] += axes[:, :, k]
                if each > 3:
                    S[here[:, None], np.arange(3, 6), (at + k)[:, None]] += axes[:, :, k]
        S = S.reshape(n * each, len(bodies))
        rows = np.zeros((count + n * each, self._width))
        along = directions(self.joints, q[None], nv)[0]
        rows[:count, :nv] = along @ free["whitening"].reshape(nv, nv)
        rows[count:, :nv] = S @ bodies
        return S, rows

    def _bounds(self, now: State, h: float) -> Array:
        """h f, and the velocities with which limits are reached (j, 3)."""
        if not self.joints:
            return np.zeros((0, 3))
        q = values(self.joints, now.q[None])[0]
        down, up = q - self._lower, self._upper - q
        low, high = (closing(x, h) for x in (down, up))
        return np.ascontiguousarray(np.column_stack([h * self._rub, -low, high]))

    # -------------------------------------------------------------------------------- memory

    def _remembered(self, points: Touching) -> Array:
        """Impulses to begin with: of each point those of the nearest one before."""
        old, n = self._memory, len(points.gap)
        impulse = np.zeros((n, self._each))
        if n and len(old.pair):
            apart = np.linalg.norm(points.point[:, None] - old.point[None], axis=2)
            apart = np.where(points.pair[:, None] == old.pair[None], apart, np.inf)
            nearest = np.argmin(apart, axis=1)
            known = np.flatnonzero(apart[np.arange(n), nearest] < SAME)
            taken = set[int]()
            for i in known.tolist():
                k = int(nearest[i])
                if k in taken:
                    continue
                taken.add(k)
                impulse[i, :3] = points.axes[i] @ old.push[k, :3]
                if self._each > 3:
                    impulse[i, 3:] = points.axes[i] @ old.push[k, 3:]
        return np.concatenate([old.joints, impulse.ravel()])

    def _remember(self, points: Touching, impulse: Array) -> None:
        count, n = len(self.joints), len(points.gap)
        each = impulse[count:].reshape(n, self._each)
        push = np.zeros((n, 6))
        push[:, :3] = (each[:, None, :3] @ points.axes)[:, 0]
        if self._each > 3:
            push[:, 3:] = (each[:, None, 3:] @ points.axes)[:, 0]
        self._memory = Memory(points.pair, points.point, push, impulse[:count].copy())

    # ------------------------------------------------------------------------------- results

    def _touched(
        self, points: Touching, impulse: Array, start: Array, end: Array, h: float
    ) -> dict[int, Array]:
        """By pair: force (3), gap, approach, slip, and work of normal forces and of friction."""
        count, n = len(self.joints), len(points.gap)
        each, before, after = (x[count:].reshape(n, self._each) for x in (impulse, start, end))
        force = (each[:, None, :3] @ points.axes)[:, 0] / h
        work = 0.5 * each * (before + after)
        slip = np.hypot(after[:, 1], after[:, 2])
        touches = dict[int, Array]()
        for k, i in enumerate(points.pair.tolist()):
            if i not in touches:
                touches[i] = np.array([0.0, 0.0, 0.0, np.inf, 0.0, 0.0, 0.0, 0.0])
            row = touches[i]
            row[:3] += force[k]
            if points.gap[k] < row[3]:
                row[3:5] = points.gap[k], before[k, 0]
            row[5] = max(row[5], slip[k])
            row[6:] += work[k, 0], work[k, 1:].sum()
        return touches

    def _together(
        self,
        made: list[Array],
        touched: list[dict[int, Array]],
        starts: list[State],
        last: State,
        status: int,
    ) -> Steps:
        """All steps as arrays."""
        nq, nv, count = self.mech.nq, self.mech.nv, len(self.joints)
        sizes = [nq, nv, nv, nv, count, count, count, 1]
        flat = np.array(made).reshape(len(made), sum(sizes) + len(last.activation))
        columns = np.split(flat, np.cumsum(sizes), axis=1)
        q, v, reached, effort, impulse, start, end, residual, activation = columns
        pairs = sorted({i for each in touched for i in each})
        table = np.zeros((len(made), len(pairs), 8))
        table[:, :, 3] = NEVER
        for n, each in enumerate(touched):
            for i, row in each.items():
                table[n, pairs.index(i)] = row
        touches = PairTouches(
            tuple(self.contacts[i] for i in pairs), table[..., :3], table[..., 3], table[..., 4],
            table[..., 5], table[..., 6:],
        )  # fmt: skip
        before = (
            np.array([x.q for x in starts]).reshape(len(starts), nq),
            np.array([x.v for x in starts]).reshape(len(starts), nv),
        )
        return Steps(q, v, reached, before, effort, (impulse, start, end), touches, residual[:, 0],
                     activation, last, status)  # fmt: skip


def rooms(gap: Array, before: Array, restitution: Array, h: float) -> Array:
    """β of contacts, with their normal velocities before the step: see `segments.py`."""
    room = closing(gap, h)
    bounced = np.where(gap > 0.0, FAR, np.minimum(room, restitution * before))
    return np.where((restitution > 0.0) & (before < -SLOW), bounced, room)


def inverses(rows: Array, normal: Any, each: int) -> Array:
    """1 over the mobility of rows Y; of rows that share a disc over a bound of their block.

    Args:
        rows: Y (m, width).
        normal: The first row of each contact.
        each: Rows of a contact, 3 or 6.
    """
    mobility = np.einsum("ij,ij->i", rows, rows)
    for first in [1] if each == 3 else [1, 4]:
        i, j = normal + first, normal + first + 1
        bound = np.maximum(mobility[i], mobility[j]) + np.abs((rows[i] * rows[j]).sum(axis=1))
        mobility[i] = mobility[j] = bound
    return np.where(mobility > IMMOVABLE, 1.0 / np.maximum(mobility, IMMOVABLE), 0.0)


def closing(gap: Array, h: float) -> Array:
    """The speed that closes a gap in one step, or undoes a part of a penetration."""
    return np.maximum(np.where(gap > 0.0, gap, RECOVERY * gap) / h, -FASTEST)
