"""One step of time with impulses, in segments.

    M̂ = 𝓜 + h d + h² k                                   dampers and springs, at the end of the step
    M̂ (v' − v) = h (τ − C − d v − k (q + h v − rest)) + G* λ,      q' = q ⊕ h v'

d and k enter 𝓜 as armature does, so its innovations factorisation stays as it is, and dampers and
springs may be as stiff as they like. With M̂⁻¹ = (I - H ψ K)* D⁻¹ (I - H ψ K) everything that is
known before the impulses is one sweep from the tips to the base, and the rest one sweep back:

    e = h D^(-½) (I - H ψ K) (τ − ...),   Y = D^(-½) (I - H ψ K) G*                    `free`
    w = e + Y λ, with λ by the laws of impulses, u = G v' = b + Y* w  (`impulse.py`)    `sweep`
    v' = v + (I - H ψ K)* D^(-½) w                                                     `move`

Loops and couplings are rows that hold exactly; they are solved before the sweeps (`equality.py`).

A gap closes within one step at most: β = gap / h. A penetration is undone by RECOVERY of it in each
step, no faster than FASTEST. Where the ground gives back speed, a fast impact penetrates in one
step and bounces in the next, β = e u_n.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, cast

import numpy as np

from linkwise.algebra import J, bias, f, rot_W, tau, v as velocity
from linkwise.algebra.space import JOINT
from linkwise.algebra.symbols import articulated as F, vector
from linkwise.codegen.request import Request
from linkwise.codegen.scalar.parameters import size as size_of
from linkwise.codegen.stepping.stepping import STEP, Segment, Sketch, Stepping, part
from linkwise.codegen.writing import Writing
from linkwise.dynamics.actuator_force import with_activation
from linkwise.dynamics.kernels import is_closed
from linkwise.dynamics.mass_root import HingeRoot, root_of
from linkwise.dynamics.passive import Passive
from linkwise.errors import UnsolvedWarning, caller
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.actuation import SLOPES, actuate, inputs
from linkwise.simulation.implicit.contact_rows import contact_rows
from linkwise.simulation.implicit.equality import Held, dot, equality_rows, filled, held
from linkwise.simulation.implicit.ground import ContactPoint, HeightField
from linkwise.simulation.implicit.impulse import FAR, SOLVER, block, inverses, solver
from linkwise.simulation.implicit.joint import Joint
from linkwise.simulation.implicit.sweeping import LATE, Laws, Unit, units
from linkwise.simulation.integrators.command import nodes
from linkwise.simulation.integrators.cut import Branch, Call, cut
from linkwise.simulation.integrators.traced import leave
from linkwise.simulation.motion_parameters import ACTING, OF_ACTUATORS, nominal
from linkwise.simulation.rates import carried, check_turns, moved, rates, velocities
from linkwise.spatial.choice import (
    absolute,
    gate,
    maximum,
    minimum,
    root as root_of_number,
    where,
)

FORCES = F.whitening @ (tau - bias)
"""Innovations of the forces: D^½ e / h."""

AT_JOINTS = F.whitening @ tau
"""A row of G* at joints, whitened but for D^(-½)."""

ON_BODIES = F.whitening @ (rot_W @ J).T @ f
"""A row of G* on bodies, likewise."""

COLORED = F.whitening.T @ vector("x", JOINT)
"""Velocities of whitened ones."""

MOTION = rot_W @ J @ velocity
"""Velocities of bodies, in world axes."""

RECOVERY = 0.2
"""The share of a penetration that is undone in one step."""

FASTEST = 1.0
"""Speed [m/s or rad/s] at which a deep one is undone, at most: it stays as real velocity."""

SLOW = 0.05
"""Speed [m/s] below which an impact does not bounce."""

SWEEPS = 200
"""Sweeps of a step, at most."""

ON_A_GPU = 20
"""Sweeps of a step on a GPU, at most: threads that are done wait for the others."""

UNSOLVED = 1e-3
"""A largest change of a velocity [m/s or rad/s] in the last sweep of a step that is warned of."""

SUDDEN = 10.0
"""Change of the velocity [m/s or rad/s] of a joint in one step that is expected at most: a limit
that could not be reached with it is not near, and does not act. What comes faster penetrates for
one step."""

PUSHED, IMPACT = 3.0, 3.0
"""Change of the velocity [m/s] of a contact in one step that is expected at most, likewise: by
forces, and by impacts of others, a multiple of the speed of the fastest contact, up or down."""

PIECE = 64
"""Numbers that are cleared by one segment."""

WORST = ("deepest", "slip")
"""Registers of what contacts did at worst so far: the largest penetration [m] before a step, and
the largest sliding speed [m/s] after a step of one that pushes."""

WORST_RESIDUAL = "unsolved"
"""The register of the largest residual of a step so far."""

NORMAL = "normal"
"""The register of the normals at points over height fields, three numbers each."""

OBSERVED = ("before", "after", "gap", "effort", "reached")
"""Registers of an observed step: velocities of all rows before and after it, gaps of contacts
before it, joint forces (nv,) of the user and of actuators, and v' (nv,) in the axes before it."""


def warn_unsolved(mech: Mechanism, worst: float, step: float, which: str = "") -> None:
    """Report a residual that changes the motion.

    Args:
        worst: The largest residual of a step [m/s or rad/s].
        step: The length of the steps [s].
        which: How many motions of a batch.
    """
    if worst > UNSOLVED:
        warnings.warn(
            f"some steps of {mech.name!r}{which} did not find the impulses of contacts, limits and "
            f"friction: in the last sweep over them a velocity still changed by {worst:.3g} m/s or "
            f"rad/s. Steps shorter than {step:.3g} s, or in rollouts more `sweeps`, may help.",
            UnsolvedWarning,
            stacklevel=caller(),
        )


def implicit_stepping(
    mech: Mechanism,
    itemsize: int,
    passive: Passive | None,
    joints: tuple[Joint, ...],
    points: tuple[ContactPoint, ...],
    *,
    actuated: bool = False,
    numbers: Sequence[str] = (),
    observed: bool = False,
    branches: bool = False,
    sweeps: int = SWEEPS,
    late: float = LATE,
) -> Stepping:
    """The segments of a step on a mechanism.

    Args:
        passive: Dampers and springs.
        joints: Joints with friction or limits.
        points: Points that may touch the ground.
        actuated: Whether the actuators of the mechanism act.
        numbers: Parameters of the mechanism and of what acts on it that are held over each step.
        observed: Whether a motion shows what a recording needs (`OBSERVED`), and begins with given
            impulses and activations, so that it can be made in parts.
        branches: Whether what is away from the ground, or from its limits, is left out.
        sweeps: Sweeps over the impulses, at most.
        late: The change of velocities [m/s or rad/s] that is enough in a slow step.
    """
    acting = passive, joints, points, actuated, tuple(numbers)
    made = Implicit(mech, itemsize, *acting, observed)
    made.branches, made.late = branches, late
    return made.stepping(sweeps)


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """A step on graph nodes.

    Attributes:
        q: After the step (nq,).
        u: Rates after the step (nv,).
        calls: That of the sweeps, if there are rows.
        free: w without impulses (nv,).
        rows: Y by rows.
        seen: What else is written, by register.
    """

    q: Any
    u: Any
    calls: tuple[Call, ...]
    free: Any
    rows: list[dict[int, Any]]
    seen: dict[str, Any]


class Implicit:
    """A step over q0, u0 and impulse (the state), and the problem: w, rows, b, mobility, ..."""

    def __init__(
        self,
        mech: Mechanism,
        itemsize: int,
        passive: Passive | None,
        joints: tuple[Joint, ...],
        points: tuple[ContactPoint, ...],
        actuated: bool,
        numbers: tuple[str, ...],
        observed: bool,
    ) -> None:
        self.mech, self.passive, self.joints, self.points = mech, passive, joints, points
        self.actuated, self.observed, self.itemsize = actuated, observed, itemsize
        self.activations = len(with_activation(mech)) if actuated else 0
        self.numbers, self.actuator_numbers = numbers, [x for x in numbers if x in OF_ACTUATORS]
        self.request = Request((FORCES,), mech, (), itemsize=itemsize)
        self.bodies = tuple(dict.fromkeys(p.body for p in points))
        starts = np.cumsum([len(joints), *(p.rows for p in points)]).tolist()
        self.contacts = list(zip(starts[:-1], points, strict=True))
        self.size = int(starts[-1])  # rows
        self.units, self.branches, self.late = tuple(units(joints, points)), False, LATE
        self.cleared = dict[str, int]()  # registers that are read before they are written
        self.normals = 3 * sum(isinstance(p.ground, HeightField) for p in points)

    def stepping(self, sweeps: int) -> Stepping:
        """The step, as it is registered."""
        mech, state, step = self.mech, ["q0", "u0"], self._step(sweeps)
        first = list[Segment]()
        if self.actuated:
            motors = self.actuator_numbers
            first.append(actuate(mech, self.itemsize, slopes=True, numbers=motors))
            state += ["activation"] if self.activations else []
        state += ["impulse", "residual"] if self.size else []
        state += [WORST_RESIDUAL] if self.size and not self.observed else []
        state += WORST if self.points and not self.observed else ()
        state += [NORMAL] if self.normals else []
        return Stepping(
            "implicit",
            mech.nq,
            mech.nv,
            self.held,
            tuple(state),
            (self._enter(), *self._clear()),
            (*first, *step),
            (leave(mech),),
            *self._open(),
        )

    @property
    def held(self) -> tuple[tuple[str, int], ...]:
        """What is held over each step, with lengths."""
        motors = inputs(self.mech, self.actuator_numbers) if self.actuated else ()
        rest = ((x, self._count(x)) for x in self.numbers if x not in OF_ACTUATORS)
        return (("tau", self.mech.nv), *motors, *rest)

    def _open(self) -> tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]:
        """What is recorded besides q and v, and what a motion begins with."""
        solved = (("impulse", self.size), ("residual", 1)) if self.size else ()
        solved = ((NORMAL, self.normals), *solved) if self.normals else solved
        if not self.observed:
            worst = (WORST_RESIDUAL,) * bool(self.size) + WORST * bool(self.points)
            return (*solved, *((x, 1) for x in worst)), ()
        sizes = (self.size, self.size, len(self.points), self.mech.nv, self.mech.nv)
        shown = (*solved, *zip(OBSERVED, sizes, strict=True), ("activation", self.activations))
        begins = (("impulse", self.size), ("activation", self.activations))
        return (tuple(x for x in shown if x[1]), tuple(x for x in begins if x[1]))

    def _count(self, name: str) -> int:
        """Entries of a parameter."""
        if name in ACTING:
            return len(nominal(self.mech, name, self.points))
        return size_of(self.mech, name)

    def _enter(self) -> Segment:
        """(q, v) to the state, without impulses before the first step."""
        s = Sketch("enter")
        q, v = s.read("q", self.mech.nq), s.read("v", self.mech.nv)
        s.write("q0", q)
        s.write("u0", rates(self.mech, q, v))
        if self.size:
            s.write("residual", [0.0])
        if self.size and not self.observed:
            s.write("impulse", [0.0] * self.size)
            s.write(WORST_RESIDUAL, [0.0])
        if self.activations and not self.observed:
            s.write("activation", [0.0] * self.activations)
        for name in WORST if self.points and not self.observed else ():
            s.write(name, [0.0])
        if self.normals:
            s.write(NORMAL, [0.0] * self.normals)
        return s.segment()

    def _clear(self) -> Iterator[Segment]:
        """Zeros where contacts are read that were never near, in pieces that compile quickly."""
        for name, size in self.cleared.items():
            for start in range(0, size, PIECE):
                s, count = Sketch("clear"), min(PIECE, size - start)
                s.write(part(name, start, count), [0.0] * count)
                yield s.segment()

    def _step(self, sweeps: int) -> list[Segment]:
        """The step runs once on graph nodes, and is cut where it asks for the impulses."""
        at, mech = Writing(self.request, plain=True), self.mech
        made = self.written(at, sweeps)
        ends = {"q0": nodes(made.q), "u0": nodes(made.u)}
        ends["guards"] = [check.node for check in at.checks]
        ends |= {name: [at.scalar(x).node for x in each] for name, each in made.seen.items()}

        def check(s: Sketch) -> None:
            check_turns(s, mech, [s.read(STEP, 1)[0] * x for x in s.writes["u0"]])
            for guard, x in zip(at.checks, s.writes["guards"], strict=True):
                s.check(guard.code, x, guard.low, guard.high)

        return cut(cast("Any", at), made.calls, ends, group=mech.nv, check=check)

    def written(self, at: Writing, sweeps: int) -> Written:
        """The step on graph nodes."""
        mech = self.mech
        q, u, (h,) = at.read("q0", mech.nq), at.read("u0", mech.nv), at.read(STEP, 1)
        v, push = velocities(mech, q, u), at.read("tau", mech.nv)
        names = tuple(x for x in self.numbers if x not in ACTING)
        given: dict[str, Any] = {x: at.read(x, self._count(x)) for x in names}
        given |= {"q": q, "parameters": names}
        d, k = self._slopes(at)
        seen: dict[str, Any] = {"effort": push}
        if self.passive is not None:
            push = self.passive.added(at, push, q, v, given | self._passive_numbers(at))
        if d is not None:
            push = push - h * k * v  # springs and servos at q + h v
            armature = given.get("armature", mech.armature.astype(object))
            given["armature"] = armature + h * d + h * h * k
            given["parameters"] = tuple(dict.fromkeys((*names, "armature")))
        root = root_of(at, **given)
        w = h * root.solved(at.value(FORCES, v=v, tau=push, **given))
        turning = carried(mech, v, np.zeros(mech.nv, dtype=object))
        still = v + h * turning
        loops: Held | None = None
        if is_closed(mech):
            loops = held(at, *equality_rows(at, q, v, turning, h, root, given))
            w = filled(loops.across({i: w[i] for i in range(mech.nv)}), mech.nv)
        calls, free, rows = list[Call](), w.copy(), list[dict[int, Any]]()
        if self.size:
            rows, b, seen["gap"], seen["start"], near, seen[NORMAL] = self._rows(
                at, q, v, still, h, root, given
            )
            if loops is not None:
                b = [x + dot(row, loops.shift) for x, row in zip(b, rows, strict=True)]
                rows = [loops.freed(row, self.itemsize) for row in rows]
            problem = rows, b, [self._bounds(at, i, q, v, h) for i in range(len(self.joints))]
            before = at.read("impulse", self.size)
            for i in self._always():
                for k, y in rows[i].items():
                    w[k] = w[k] + y * before[i]
            calls.append(self._solve(at, *problem, near, w, sweeps))
            w = at.read("solved", mech.nv)
            seen["worst"] = self._worst(at, rows, b, w, seen["gap"])
            if not self.observed:
                before = at.read(WORST_RESIDUAL, 1)[0]
                seen["worst"][WORST_RESIDUAL] = maximum(before, at.read("last", 1)[0])
        if loops is not None:
            w = w + filled(loops.shift, mech.nv)
        after = still + at.value(COLORED, x=root.star_solved(w), **given)
        u = rates(mech, q, after)
        worst = seen.pop("worst", {})
        if self.observed:
            shown = self._seen(at, seen, still, after, h)
            shown = {name: each for name, each in shown.items() if len(each)}
        else:
            shown = {name: [x] for name, x in worst.items()}
            shown |= {NORMAL: seen[NORMAL]} if self.normals else {}
        return Written(moved(mech, q, u, h), u, tuple(calls), free, rows, shown)

    def _worst(
        self, at: Writing, rows: list[dict[int, Any]], b: list[Any], w: Any, gaps: Any
    ) -> dict[str, Any]:
        """The largest penetration and sliding speed so far, by register."""
        if not self.points or self.observed:
            return {}
        deepest, slip = (at.read(name, 1)[0] for name in WORST)
        for gap in gaps:
            deepest = maximum(deepest, -gap)
        if self.branches:
            return {"deepest": deepest}
        push, square = at.read("pushed", self.size), 0.0
        velocity: dict[int, Any] = {i: w[i] for i in range(self.mech.nv)}
        for i, _ in self.contacts:
            first, second = (b[k] + dot(rows[int(k)], velocity) for k in (i + 1, i + 2))
            square = maximum(square, gate(push[i], first * first + second * second))
        return dict(zip(WORST, (deepest, maximum(slip, root_of_number(square))), strict=True))

    def _seen(self, at: Writing, seen: dict[str, Any], still: Any, after: Any, h: Any) -> Any:
        """What a recording needs, by register: see `OBSERVED`."""
        if self.actuated:  # servos act at the end of the step
            k, d = (at.read(name, self.mech.nv) for name in SLOPES)
            v = velocities(self.mech, at.read("q0", self.mech.nq), at.read("u0", self.mech.nv))
            change = after - still
            seen["effort"] = seen["effort"] - h * k * (v + change) - d * change
        if "start" in seen:
            now, speeds = seen.pop("start")
            seen |= {"before": now, "after": speeds(after)}
        return {"gap": (), "reached": after} | seen

    def _slopes(self, at: Writing) -> tuple[Any, Any]:
        """d and k of dampers, springs and servos (nv,); None where there are none."""
        d, k = (np.zeros(self.mech.nv, dtype=object) for _ in SLOPES)
        yields = self.passive is not None and self.passive.yields
        if self.passive is not None:
            d, k = self.passive.slopes(self._passive_numbers(at))
        if self.actuated:
            k, d = (x + at.read(name, self.mech.nv) for x, name in zip((k, d), SLOPES, strict=True))
        elif not yields and not {"damping", "stiffness"} & set(self.numbers):
            return None, None
        return d, k

    def _passive_numbers(self, at: Writing) -> dict[str, Any]:
        names = [x for x in ("damping", "stiffness") if x in self.numbers]
        return {x: at.read(x, self.mech.nv) for x in names}

    def _always(self) -> list[int]:
        """Rows that have no branch."""
        away = {u.joint for u in self.units} if self.branches else ()
        last = len(self.joints) if self.branches else self.size
        return [i for i in range(last) if i not in away]

    def _solve(
        self,
        at: Writing,
        rows: list[dict[int, Any]],
        b: Any,
        bounds: list[Any],
        near: list[Any],
        w: Any,
        sweeps: int,
    ) -> Call:
        """The call of the sweeps, with what they need in its registers."""
        mobility = [sum(y * y for y in row.values()) for row in rows]
        inverse = inverses(rows, mobility, self.contacts).tolist()
        blocks = [block(rows, mobility, i) for i, _ in self.contacts]
        pattern = [list(row) for row in rows]
        given = "ground_friction" in self.numbers
        laws = Laws(
            self.joints, self.contacts, pattern, self.mech.nv, self.itemsize, sweeps, given,
            self.late,
        )  # fmt: skip

        def of(i: int) -> dict[str, Any]:
            """The arguments of a row."""
            count = len(rows[i])
            values = {part("rows", laws.begin(i), count): list(rows[i].values())}
            values |= {part(name, i): [x[i]] for name, x in per_row.items()}
            if i < len(self.joints):
                values[part("bounds", 3 * i, 3)] = bounds[i]
            return values

        def written(values: dict[str, Any]) -> dict[str, list[int]]:
            return {name: [at.scalar(x).node for x in each] for name, each in values.items()}

        per_row = {"b": b, "mobility": mobility, "inverse": inverse}
        arguments: dict[str, Any] = {"w": w}
        always = self._always()
        if not self.branches:
            arguments |= {"rows": [y for row in rows for y in row.values()], **per_row}
            arguments |= {"block": [x for each in blocks for x in each]} if blocks else {}
            arguments |= {"bounds": [x for each in bounds for x in each]} if bounds else {}
            shown = self.points and not self.observed
            results = {"solved": "w"} | ({"pushed": "impulse"} if shown else {})
            results |= {} if self.observed else {"last": "residual"}
            return Call((laws.counted(), laws.complete()), written(arguments), results)
        for i in always:
            arguments |= of(i)
        branches, before = list[Branch](), at.read("impulse", self.size)
        for unit, flag in zip(self.units, near, strict=False):
            rows_of = self._rows_of(unit)
            arguments |= {part("impulse", i): [gate(flag, before[i])] for i in rows_of}
            values = {name: x for i in rows_of for name, x in of(i).items()}
            if unit.contact is not None:
                i, _ = self.contacts[unit.contact]
                numbers = solver(blocks[unit.contact], mobility[i : i + 3])
                values[part("solver", SOLVER * unit.contact, SOLVER)] = numbers
            branches.append(Branch(unit.when, unit.body, written(values)))
        arguments["near"] = near
        segments = laws.in_branches(always, self.units, slips=not self.observed)
        sizes = laws.begin(self.size), *[self.size] * len(per_row), SOLVER * len(self.contacts)
        names = "rows", *per_row, "solver"
        self.cleared = dict(zip(names, sizes, strict=True)) if self.points else {}
        results = {"solved": "w"} | ({} if self.observed else {"last": "residual"})
        return Call(segments, written(arguments), results, tuple(branches))

    def _rows_of(self, unit: Unit) -> range:
        """The rows of a joint or a contact."""
        if unit.contact is None:
            return range(unit.joint or 0, (unit.joint or 0) + 1)
        start, point = self.contacts[unit.contact]
        return range(start, start + point.rows)

    def _bounds(self, at: Writing, i: int, q: Any, v: Any, h: Any) -> tuple[Any, Any, Any]:
        """h f, and the velocities with which the limits are reached in one step or undone."""
        joint = self.joints[i]
        given = at.read("friction", self.mech.nv) if "friction" in self.numbers else None
        friction = joint.friction if given is None or joint.ball else given[joint.v]
        low = -_closing(joint.value(q) - joint.lower, h) if np.isfinite(joint.lower) else 0.0
        high = _closing(joint.upper - joint.value(q), h) if np.isfinite(joint.upper) else 0.0
        if joint.friction == 0.0:
            near = _near_limits(joint, q, v, h)
            low, high = where(near, low, -FAR), where(near, high, FAR)
        return h * friction, low, high

    # ------------------------------------------------------------------------------- problem

    def _rows(
        self, at: Writing, q: Any, v: Any, still: Any, h: Any, root: HingeRoot, given: Any
    ) -> tuple[list[dict[int, Any]], list[Any], list[Any], tuple[list[Any], Any], Any, Any]:
        """The rows of Y, b with the room β of contacts, gaps, velocities, what is near, normals.

        Velocities are those of the rows before the step, and a function that gives those at other
        v. `near` is above zero for each unit that is near, and for bodies of which one is.
        """
        S, gaps, normals = np.zeros((0, 0)), list[Any](), list[Any]()
        limits = [joint for joint in self.joints if joint.friction == 0.0]
        near = [_near_limits(joint, q, v, h) for joint in limits]
        units = [joint.direction(q, self.mech.nv) for joint in self.joints]
        columns = [at.value(AT_JOINTS, tau=unit, **given) for unit in units]
        if self.points:
            S, gaps, normals = contact_rows(at, q, self.bodies, self.points)

        def speeds(at_v: Any) -> list[Any]:
            """Of all rows."""
            pairs = zip(self.joints, units, strict=True)
            of_joints = [joint.speed(unit, at_v) for joint, unit in pairs]
            if not self.points:
                return of_joints
            moved = at.value(MOTION, nodes=self.bodies, q=q, v=at_v)
            return of_joints + (S @ moved).tolist()

        first, b = speeds(v), speeds(still)
        if self.points:
            columns += self._whitened(at, S, given)
            bodies = dict[str, Any]()
            fastest = _fastest([first[i] for i, _ in self.contacts])
            sudden = PUSHED + IMPACT * fastest
            for (i, point), gap in zip(self.contacts, gaps, strict=True):
                before = first[i]
                near.append(h * (sudden + 2.0 * maximum(-before, 0.0)) - gap)
                bodies[point.body] = maximum(bodies.get(point.body, near[-1]), near[-1])
                room = _room(gap, before, h, point.ground.restitution)
                b[i] = where(near[-1], b[i] + room, FAR)
            near += bodies.values()
        rows = list[dict[int, Any]]()
        for column in columns:
            y = root.solved(column)
            rows.append({k: x for k, x in enumerate(y) if not _is_zero(at, x)})
        return rows, b, gaps, (first, speeds), near, normals

    def _whitened(self, at: Writing, S: Any, given: Any) -> list[Any]:
        """Rows S of contacts in ON_BODIES, whitened but for D^(-½).

        A body with many rows is whitened once, by its six unit forces, and its rows are sums of
        them: a row then costs three products for each entry instead of a sweep to the base.
        """

        def whitened(force: Any) -> Any:
            return at.value(ON_BODIES, nodes=self.bodies, f=force, **given)

        units = dict[int, Any]()
        of_body = [next(k for k in range(len(self.bodies)) if any(_body(row, k))) for row in S]
        for k, rows in Counter(of_body).items():
            if rows > 6:
                forces = np.eye(6 * len(self.bodies)).astype(object)[6 * k : 6 * k + 6]
                units[k] = np.array([whitened(force) for force in forces], dtype=object)
        pairs = zip(S, of_body, strict=True)
        return [_body(row, k) @ units[k] if k in units else whitened(row) for row, k in pairs]


def _body(row: Any, k: int) -> Any:
    """The six entries of a row of S that act on body k."""
    return row[6 * k : 6 * k + 6]


def _fastest(velocities: list[Any]) -> Any:
    """The largest speed, by halves: no comparison waits for more than a few others."""
    if len(velocities) == 1:
        return absolute(velocities[0])
    half = len(velocities) // 2
    return maximum(_fastest(velocities[:half]), _fastest(velocities[half:]))


def _is_zero(at: Writing, x: Any) -> bool:
    return at.scalar(x).node == at.graph.constant(0.0)


def _near_limits(joint: Joint, q: Any, v: Any, h: Any) -> Any:
    """Above zero where a limit may be reached within a step."""
    value, speed = joint.value(q), joint.speed(joint.direction(q, len(v)), v)
    rooms = [value - joint.lower] if np.isfinite(joint.lower) else []
    rooms += [joint.upper - value] if np.isfinite(joint.upper) else []
    room = reduce(minimum, rooms)
    return h * (SUDDEN + 2.0 * absolute(speed)) - room


def _closing(gap: Any, h: Any) -> Any:
    """The speed that closes a gap in one step, or undoes a part of a penetration."""
    return maximum(where(gap, gap, RECOVERY * gap) / h, -FASTEST)


def _room(gap: Any, before: Any, h: Any, restitution: float) -> Any:
    """β of a contact with a gap and a normal velocity before the step."""
    room = _closing(gap, h)
    if restitution == 0.0:
        return room
    fast = -before - SLOW
    bounced = minimum(room, restitution * before)
    return where(fast, where(gap, FAR, bounced), room)
