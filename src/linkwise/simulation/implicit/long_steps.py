"""Implicit steps of long mechanisms, one by one, by kernels with loops over bodies.

The step of `segments.py` as straight code of hundreds of bodies would take minutes to compile. Here
it is array code on two kernels whose code does not grow with the number of bodies. Both take the
armature as an input, in which dampers, springs and servos are (M̂ = 𝓜 + h d + h² k):

    s  = h M̂⁻¹ (τ − C − d v − k (q + h v − rest))          the step without impulses
    X* = M̂⁻¹ G*                                           one column for each row of impulses
    v' = v + s + X* λ,    u = G v',    A = G M̂⁻¹ G* = G X*

Rows G are those of loops and couplings, which hold exactly (`equality.py`), and of joints with
friction or near their limits and of contacts near the ground (`long_contacts.py`), whose laws are
solved by the sweeps of `impulse.py`. With a root of A = R R* in place of Y* Y these sweeps are as
long as there are rows, however many bodies there are; with more rows than velocities, R = X L of
M̂ = L L*.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra import bias, mass, tau as force
from linkwise.algebra.expr import Expr
from linkwise.codegen.kernel import Kernel
from linkwise.codegen.scalar import status
from linkwise.codegen.stages import MOST_BODIES
from linkwise.codegen.stepping.stepping import STEP
from linkwise.codegen.stepping.sweeps import LANES, solve_impulses
from linkwise.dynamics.actuator_force import with_activation
from linkwise.dynamics.closure import constraint_bias, constraint_error, constraint_jacobian
from linkwise.dynamics.kernels import is_closed, tree_of
from linkwise.dynamics.passive import passive as dampers_and_springs
from linkwise.model.hinges.modified import is_plain
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.pipeline import compile
from linkwise.simulation.actuation import SLOPES, write_actuation
from linkwise.simulation.implicit.collision_steps import SWEEPS, closing, inverses
from linkwise.simulation.implicit.equality import (
    DEPENDENT,
    EMPTY,
    RECOVERY,
    check_formulas,
)
from linkwise.simulation.implicit.ground import ContactPoint
from linkwise.simulation.implicit.joint import Joint, directions, joints_with_rows, values
from linkwise.simulation.implicit.long_contacts import LongContacts, Near
from linkwise.simulation.implicit.segments import SUDDEN
from linkwise.simulation.implicit.step_record import State, Steps
from linkwise.simulation.implicit.sweeping import ENOUGH
from linkwise.simulation.implicit.touches import touches_of
from linkwise.simulation.implicit.work import Limited, works
from linkwise.simulation.loop_keeper import DRIFT_LIMIT
from linkwise.simulation.rates import carried, moved, rates, velocities
from linkwise.spatial.array import Array

Indices: TypeAlias = NDArray[np.intp]

LONG = 64
"""Joint velocities beyond which single motions without contacts move by these steps: straight code
would take longer to compile than most motions take to run. With contacts, a mechanism of more
bodies than straight code is for does."""


@once_per_mechanism
def _kernel(mech: Mechanism, expr: Expr) -> Kernel:
    return compile(expr, mech, parameters=["armature"], rolled=True)


@once_per_mechanism
def _at_nodes(mech: Mechanism, expr: Expr, nodes: tuple[str, ...]) -> Kernel:
    return compile(expr, mech, nodes=nodes)


class LongSteps:
    """Steps of a mechanism of any length.

    Attributes:
        mech: The mechanism.
        joints: Joints with friction or limits.
        points: Points that may touch the ground.
        normals: Over height fields, at the points in the last step.
        passive: Whether dampers, springs and friction of the drives act.
        actuated: Whether the actuators act.
    """

    def __init__(
        self,
        mech: Mechanism,
        points: tuple[ContactPoint, ...] = (),
        *,
        actuated: bool,
        passive: bool,
    ) -> None:
        check_formulas(mech)
        self.mech, self.passive, self.actuated, self.points = mech, passive, actuated, points
        self.ground, self.normals = LongContacts(mech, points) if points else None, np.zeros(0)
        self.joints: tuple[Joint, ...] = joints_with_rows(mech, friction=passive)
        self._tree, self._closed = tree_of(mech), is_closed(mech)
        drives = dampers_and_springs(mech)
        self._drives = drives if passive and drives.any else None
        self._friction, self._lower, self._upper = (
            np.array([getattr(x, name) for x in self.joints])
            for name in ("friction", "lower", "upper")
        )
        self._turns = _turns(mech)
        self._free = _kernel(self._tree, mass.inv @ (force - bias))
        self._solve = _kernel(self._tree, mass.inv @ force)
        self._mass = _kernel(self._tree, mass)

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
        count = len(with_activation(self.mech)) if self.actuated else 0
        size = len(self.joints) + sum(point.rows for point in self.points)
        return State(q, v, np.zeros(size), np.zeros(count))

    def gaps(self, now: State, h: float) -> tuple[tuple[str, ...], Array]:
        """Names of contacts, and their gaps at a state (1, c) [m]."""
        if self.ground is None:
            return (), np.zeros((1, 0))
        return self.contacts, self.ground.places(now.q)[1][None]

    def advance(self, now: State, h: float, steps: int, tau: Array, control: Array) -> Steps:
        """Some steps; the arguments are those of `KernelSteps.advance`."""
        made, starts, code = list[tuple[Array, ...]](), list[State](), 0
        for n in range(steps):
            given = (x[n if len(x) > 1 else 0] for x in (tau, control))
            with np.errstate(all="ignore"):  # a code reports values that are not finite
                row, after, code = self._step(now, h, *given)
            if code:
                break
            made.append(row)
            starts.append(now)
            now = after
        nq, nv, j, a = self.mech.nq, self.mech.nv, len(self.joints), len(now.activation)
        rows, normals = len(now.impulse), self.normals.size
        sizes = (nq, nv, nv, nv, rows, rows, rows, 1, a, len(self.points), normals)
        columns = [
            np.array([row[i] for row in made]).reshape(len(made), size)
            for i, size in enumerate(sizes)
        ]
        q, v, reached, effort, impulse, start, end, residual, activation, gap, normal = columns
        before = [
            np.array([getattr(x, n) for x in starts]).reshape(len(starts), size)
            for n, size in (("q", nq), ("v", nv))
        ]
        return Steps(
            q, v, reached, (before[0], before[1]), effort,
            (impulse[:, :j], start[:, :j], end[:, :j]),
            touches_of(self.points, impulse, start, end, gap, normal, h),
            residual[:, 0], activation, now, code,
        )  # fmt: skip

    def works(self, steps: Steps, h: float, tau: Array, pushed: Array) -> tuple[Array, Limited]:
        """The work in steps, and in which of them a limit pushed: see `works`."""
        return works(self.mech, steps, self.joints, h, tau, pushed, passive=self.passive)

    # ------------------------------------------------------------------------------- one step

    def _step(
        self, now: State, h: float, tau: Array, control: Array
    ) -> tuple[tuple[Array, ...], State, int]:
        mech, q, v = self.mech, now.q, now.v
        d, k, servo, activation = np.zeros(mech.nv), np.zeros(mech.nv), None, now.activation
        effort = push = np.array(tau, dtype=np.float64)
        if self.actuated:
            acting = Numbers(mech, now, h, push, control)
            write_actuation(acting, mech, slopes=True)
            effort = push = acting.writes["tau"]
            servo = [acting.writes[name] for name in SLOPES]
            k, d = servo[0].copy(), servo[1].copy()
            activation = acting.writes.get("activation", activation)
        if self._drives is not None:
            push = push + self._drives.force(q, v)
            d, k = d + self._drives.damping, k + self._drives.stiffness
        armature = mech.armature + h * d + h * h * k
        codes = np.zeros((), np.int32)
        accelerated = self._free(q, v, push - h * k * v, armature, status=codes)
        if int(codes):
            return (), now, int(codes)
        turning = carried(mech, v, np.zeros(mech.nv))
        still, change = v + h * turning, h * accelerated
        impulse, start, end, worst = now.impulse, np.zeros(0), np.zeros(0), 0.0
        touch = None if self.ground is None else self.ground.at(q, v, h)
        G, b = np.zeros((0, mech.nv)), np.zeros(0)
        if self._closed:
            error = constraint_error(mech, q)
            if np.abs(error).max(initial=0.0) > DRIFT_LIMIT:
                return (), now, status.opened(mech)
            G = constraint_jacobian(mech, q)
            b = G @ (v + 0.5 * h * turning) + 0.5 * h * constraint_bias(mech, q, v)
            b = b + RECOVERY * error / h
        if len(impulse) or len(G):
            given = G, b, still, armature, h, touch
            push = self._impulses(now, change, *given)
            change, impulse, start, end, worst = push
        reached = still + change
        gap = np.zeros(0)
        if self.ground is not None and touch is not None:
            self.normals, gap = touch.normals, touch.gap
            start = np.concatenate([start, touch.before])
            end = np.concatenate([end, self.ground.velocities(touch.S, q, reached)])
        u = rates(mech, q, reached)
        bodies, places, starts = self._turns
        if len(bodies):
            turns = h * h * np.add.reduceat(u[places] ** 2, starts)
            if turns.max() > np.pi**2:
                return (), now, status.turned(mech, int(bodies[turns.argmax()]))
        after = moved(mech, q, u, h)
        v_after = velocities(mech, after, u)
        if not (np.isfinite(after).all() and np.isfinite(v_after).all()):
            return (), now, status.RESULT
        if servo is not None:  # servos act at the end of the step
            effort = effort - h * servo[0] * (v + change) - servo[1] * change
        row = (
            after, v_after, reached, effort, impulse, start, end, np.array([worst]), activation,
            gap, self.normals,
        )  # fmt: skip
        return row, State(after, v_after, impulse, activation), 0

    def _impulses(
        self,
        now: State,
        change: Array,
        G: Array,
        b: Array,
        still: Array,
        armature: Array,
        h: float,
        touch: Near | None,
    ) -> tuple[Array, Array, Array, Array, float]:
        """The change of v with impulses, these, velocities at joints, and the residual.

        Args:
            change: Of v, without impulses (nv,).
            G: Rows of loops and couplings (m, nv).
            b: G (v' − v) = −b.
            still: v without forces (nv,).
            armature: N + h d + h² k (nv,).
            h: Length of the step [s].
            touch: Contacts that are near.
        """
        q, v, m, j = now.q, now.v, len(G), len(self.joints)
        along = directions(self.joints, q[None], self.mech.nv)[0]
        start, near = along @ v, self._near(now, along, h)
        ground, acting = np.zeros((0, self.mech.nv)) if touch is None else touch.rows, near.any()
        rows = np.concatenate([G, along[near], ground])
        slots, impulse = self._slots(touch), np.zeros_like(now.impulse)
        if not len(rows):
            return change, impulse, start, along @ (still + change), 0.0
        X = self._solve(np.broadcast_to(q, (len(rows), len(q))), rows, armature)
        A = rows @ X.T
        if m:
            held = _inverse(A[:m, :m])
            change = change - X[:m].T @ (held @ (b + G @ change))
            # what joints and contacts push, loops take up: λ_e = −A_ee⁻¹ A_ej λ_j
            X = X[m:] - A[m:, :m] @ held @ X[:m]
            A = A[m:, m:] - A[m:, :m] @ held @ A[:m, m:]
        worst = 0.0
        if acting or len(ground):
            root = _root(A) if len(A) <= len(v) else self._rooted(X, q, armature)
            taken = np.concatenate([np.flatnonzero(near), j + slots[0]])  # impulses that may be
            many = int(np.count_nonzero(near))
            place = np.concatenate([np.arange(many), many + slots[1]])
            pushed = np.zeros(len(A))
            pushed[place] = now.impulse[taken]
            padded = np.zeros((len(A), -(-root.shape[1] // LANES) * LANES))
            padded[:, : root.shape[1]] = root
            free = rows[m:] @ (still + change)
            each, radii = 3, np.zeros((0, 3))
            normal = np.zeros(0, np.intp)
            if touch is not None and self.ground is not None:
                each, radii = self.ground.each, self.ground.radii[touch.near]
                normal = many + each * np.arange(len(radii))
                free[normal] += touch.room
            worst, _ = solve_impulses(
                padded, free, inverses(padded, normal, each), pushed, padded.T @ pushed,
                self._bounds(now, near, h), np.ascontiguousarray(radii), each=each, most=SWEEPS,
                enough=ENOUGH[8],
            )  # fmt: skip
            impulse[taken] = pushed[place]
            change = change + X.T @ pushed
        return change, impulse, start, along @ (still + change), worst

    def _rooted(self, X: Array, q: Array, armature: Array) -> Array:
        """R with R R* = X M̂ X* = A (rows, nv)."""
        M: Array = self._mass(q, armature)
        return X @ np.linalg.cholesky(M)

    def _slots(self, touch: Near | None) -> tuple[Indices, Indices]:
        """Which rows of all contacts are near, and where these are among the rows of laws."""
        none = np.zeros(0, np.intp)
        if touch is None or self.ground is None:
            return none, none
        each, slots = self.ground.each, self.ground.slots
        rows = np.flatnonzero(touch.near[slots // each])
        rank = np.cumsum(touch.near) - 1
        return rows, each * rank[slots[rows] // each] + slots[rows] % each

    def _near(self, now: State, along: Array, h: float) -> Any:
        """Which joints have friction, or may reach a limit within a step."""
        x = values(self.joints, now.q[None])[0]
        room = np.minimum(x - self._lower, self._upper - x)
        return (self._friction > 0.0) | (h * (SUDDEN + 2.0 * np.abs(along @ now.v)) > room)

    def _bounds(self, now: State, near: Any, h: float) -> Array:
        """h f, and the velocities with which limits are reached (j, 3)."""
        x = values(self.joints, now.q[None])[0]
        low, high = closing(x - self._lower, h), closing(self._upper - x, h)
        return np.ascontiguousarray(np.column_stack([h * self._friction, -low, high])[near])


class Numbers:
    """What `write_actuation` reads and writes, as numbers.

    Attributes:
        writes: What was written.
    """

    def __init__(self, mech: Mechanism, now: State, h: float, tau: Array, control: Array) -> None:
        u = rates(mech, now.q, now.v)
        given = {"q0": now.q, "u0": u, STEP: np.array([h]), "tau": tau, "control": control}
        self.mech, self._given = mech, given | {"activation": now.activation}
        self.writes = dict[str, Array]()

    def read(self, name: str, size: int) -> Array:
        """An input."""
        return self._given[name]

    def write(self, name: str, entries: Any) -> None:
        """A result."""
        self.writes[name] = np.array(entries, dtype=np.float64)

    def value(self, expr: Expr, *, nodes: tuple[str, ...], q: Array, f: Any = None) -> Array:
        """Poses of nodes, or joint forces of wrenches at them."""
        kernel = _at_nodes(tree_of(self.mech), expr, nodes)
        return kernel(q) if f is None else kernel(q, np.asarray(f, dtype=np.float64))


def is_long(mech: Mechanism, contacts: Sequence[Any]) -> bool:
    """Whether single motions move by `LongSteps`."""
    return mech.n_bodies > MOST_BODIES or (mech.nv > LONG and not contacts)


def _turns(mech: Mechanism) -> tuple[Indices, Indices, Indices]:
    """Bodies that turn other than by pins, their angular velocities in v, and where those begin."""
    bodies, places, starts = list[int](), list[int](), list[int]()
    for k, body in enumerate(mech.bodies):
        units = () if is_plain(body.hinge) else [x.unit for x in body.hinge.velocities]
        if "rad" in units:
            bodies.append(k)
            starts.append(len(places))
            places += [int(mech.v_start[k]) + i for i, unit in enumerate(units) if unit == "rad"]
    return np.array(bodies, np.intp), np.array(places, np.intp), np.array(starts, np.intp)


def _inverse(A: Array) -> Array:
    """The inverse of A (m, m) on the rows that are independent of others."""
    size = np.diag(A)
    least = EMPTY[8] * size.mean() + 1e-30  # what is below is rounding, in rows that nothing moves
    scale = np.where(size > least, 1.0 / np.sqrt(np.maximum(size, least)), 0.0)
    values, vectors = np.linalg.eigh(scale[:, None] * A * scale)
    kept = values > DEPENDENT[8] ** 2 * values.max(initial=0.0)
    each = vectors[:, kept] * scale[:, None]
    return (each / values[kept]) @ each.T


def _root(A: Array) -> Array:
    """R with R R* = A, for A that may be singular."""
    values, vectors = np.linalg.eigh(0.5 * (A + A.T))
    return vectors * np.sqrt(np.maximum(values, 0.0))
