"""The statements about loops, couplings and tasks: each runs at once, before the pass it is in.

Q V(i)  = S (V_b - T V_a)               for loop i with its nodes a, b
Q* λ    : S* λ at b, -T* S* λ at a
Y x(i)  = Σ_k y(i, k) x(k)              for coupling i
κ(i)    = S (V_ab × T V_a - Ḣ* W), and gravity where a node is on the ground and is not lifted as
          all bodies are (a carries gravity at the base)
gram    X* Z = Σ_k X*(k) Z(k)           for columns X, Z with a row for each joint velocity
spread  X λ, at each body
servo   ẍ_d + k_v (ẋ_d - ẋ) + k_p e     where loops and couplings are rows of tasks
e       what they lack of their goals, displacements and chords of angles
scale   diag(x) y, row by row
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algebra.space import CONSTRAINT, GOAL, ONE
from linkwise.model import closure, closure_form, closure_rate, task_rows
from linkwise.model.closure import Follower
from linkwise.model.closure_form import FormRule
from linkwise.model.task_rows import Rows
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.spatial.vector import cross_velocity
from linkwise.sweeps.program import Statement, Term

if TYPE_CHECKING:
    from linkwise.sweeps.interpret import Interpreter


class ClosureStatements:
    """The loops and couplings of a run.

    Attributes:
        run: The run.
        width: Columns of the quantity that is being computed.
    """

    def __init__(self, run: Interpreter) -> None:
        self.run, self.width = run, 1
        self._poses: list[Pose] | None = None

    def value(self, statement: Statement) -> list[Any]:
        """The blocks of the quantity that a statement gives."""
        run, columns = self.run, statement.target.columns
        reads = [run.blocks_of(quantity) for quantity, _ in statement.reads]
        self.width = 1 if columns is ONE else run.columns.width(columns)
        rules: dict[str, Callable[..., list[Any]]] = {
            "Q": self._violation,
            "Q*": self._reaction,
            "Y": self._follow,
            "Y*": self._lead,
            "kappa": self._rate,
            "kappa_g": self._lift,
            "servo": self._servo,
            "task_error": self._errors,
            "scale": self._scaled,
            "spread": self._spread,
            "gram": self._gram,
        }
        rule = statement.special.removesuffix("*")
        if rule in closure_rate.RATES or closure_form.is_form(rule):
            return self._changed(statement, rule, reads)
        return rules[statement.special](*reads) if statement.special else self._sum(statement)

    def _sum(self, statement: Statement) -> list[Any]:
        """A sum of quantities over the constraints."""
        sizes = self.run.bodies.sizes(statement.target.rows)
        out = [np.zeros((size, self.width)) for size in sizes]
        for term in statement.terms:
            out = [x + y for x, y in zip(out, self._term(term), strict=True)]
        return out

    def _term(self, term: Term) -> list[Any]:
        assert term.operand is not None
        blocks = self.run.blocks_of(term.operand)
        if term.left:  # a vector times a number
            (vector,) = term.left
            blocks = [x @ blocks[0] for x in self.run.value[vector.ident]]
        return [term.number * x for x in blocks]

    # ------------------------------------------------------------------------------ loops

    def _relative(self, places: Sequence[Any]) -> list[Pose]:
        """X_ab of each loop, with a leading axis."""
        if self._poses is None:
            closure.check_nodes(self.run.mech, tuple(x.name for x in self.run.bodies.nodes))
            each = [x.reshape(1, 3, 4) for x in places]
            world = [trusted_pose(x[..., :3], x[..., 3]) for x in each]
            pairs = range(0, 2 * len(self.run.mech.loops), 2)
            self._poses = [world[i].inverse() @ world[i + 1] for i in pairs]
        return self._poses

    def _directions(self, i: int, X_ab: Pose) -> Any:
        """S of loop i (rows, 6)."""
        S = self.run.arithmetic.blocked(i, X_ab, np.zeros((1, 6))).S
        return S[0] if S.ndim == 3 else S

    def _violation(self, places: Sequence[Any], x: Sequence[Any]) -> list[Any]:
        """Q x."""
        out = list[Any]()
        for i, X_ab in enumerate(self._relative(places)):
            carried = X_ab.shift_velocity(x[2 * i].T).T
            out.append(self._directions(i, X_ab) @ (x[2 * i + 1] - carried))
        return out + [np.zeros((1, self.width))] * len(self.run.mech.couplings)

    def _reaction(self, places: Sequence[Any], y: Sequence[Any]) -> list[Any]:
        """Q* y."""
        out = list[Any]()
        for i, X_ab in enumerate(self._relative(places)):
            on_b = self._directions(i, X_ab).T @ y[i]
            out += [-X_ab.shift_force(on_b.T).T, on_b]
        return out + [np.zeros((6, self.width))] * (len(self.run.bodies.nodes) - len(out))

    def _rate(self, places: Sequence[Any], velocities: Sequence[Any]) -> list[Any]:
        """κ."""
        out = list[Any]()
        for i, X_ab in enumerate(self._relative(places)):
            V_a, V_b = velocities[2 * i].T, velocities[2 * i + 1].T
            carried = X_ab.shift_velocity(V_a)
            blocked = self.run.arithmetic.blocked(i, X_ab, V_b - carried)
            turned = cross_velocity(V_b - carried, carried)
            out.append(((blocked.S @ turned[..., None])[..., 0] + blocked.rate).reshape(-1, 1))
        return out + [x.rate.reshape(1, 1) for x in self._followers]

    def _lift(self, places: Sequence[Any]) -> list[Any]:
        """κ_g: zero except for loops with one node on the ground."""
        run, out = self.run, list[Any]()
        for i, X_ab in enumerate(self._relative(places)):
            S = self._directions(i, X_ab)
            ground = [run.bodies.node_body[2 * i + j] < 0 for j in (0, 1)]
            lifted: Any = np.zeros((6, 1))
            if ground[0] != ground[1]:
                rot_b = places[2 * i + 1].reshape(3, 4)[:, :3]
                up = rot_b.T @ run.arithmetic.gravity
                lifted = np.concatenate([np.zeros(3), up])[:, None]
            out.append(S @ (lifted if ground[0] else -lifted))
        return out + [np.zeros((1, 1))] * len(run.mech.couplings)

    def _servo(self, places: Sequence[Any], velocities: Sequence[Any]) -> list[Any]:
        """ẍ_d + k_v (ẋ_d - ẋ) + k_p e, row by row, from inputs of the kernel."""
        mech, numbers, sizes = self.run.mech, self.run.arithmetic, self.run.bodies.sizes(CONSTRAINT)
        rate, push, kp, kv = (
            np.split(numbers.input(name, sum(sizes)), np.cumsum(sizes)[:-1])
            for name in task_rows.SERVO[1:]
        )
        errors = self._errors(places)
        speeds = [x[:, 0] for x in self._violation(places, velocities)]
        for i, (k, index) in enumerate(task_rows.joint_places(mech), start=len(mech.loops)):
            speeds[i] = numbers.v[mech.v_start[k] + index, None]
        rows = zip(push, kv, rate, speeds, kp, errors, strict=True)
        return [(u + d * (w - x) + c * e[:, 0])[:, None] for u, d, w, x, c, e in rows]

    @property
    def _goals(self) -> list[Any]:
        """The numbers of the goal of each loop and coupling that is a task."""
        sizes = self.run.bodies.sizes(GOAL)
        return np.split(self.run.arithmetic.input("goal", sum(sizes)), np.cumsum(sizes)[:-1])

    def _errors(self, places: Sequence[Any]) -> list[Any]:
        """e."""
        mech, numbers, goals, errors = self.run.mech, self.run.arithmetic, self._goals, list[Any]()
        for i, X_ab in enumerate(self._relative(places)):
            hinge = mech.loops[i].hinge
            assert isinstance(hinge, Rows)
            errors.append(task_rows.missing(hinge, X_ab, goals[i][None], numbers.itemsize)[0])
        for i, (k, index) in enumerate(task_rows.joint_places(mech), start=len(mech.loops)):
            errors.append(goals[i] - numbers.q[mech.q_start[k] + index, None])
        return [e[:, None] for e in errors]

    def _scaled(self, x: Sequence[Any], y: Sequence[Any]) -> list[Any]:
        """diag(x) y."""
        return [numbers * rows for numbers, rows in zip(x, y, strict=True)]

    # ------------------------------------------------------------------------------ rates

    def _changed(self, statement: Statement, rule: str, reads: Sequence[Any]) -> list[Any]:
        """The operator of a leaf that differentiation adds, or its adjoint, times the last read."""
        x, star = reads[-1], statement.special.endswith("*")
        sizes = self.run.bodies.sizes(statement.target.rows)
        out: list[Any] = [np.zeros((size, self.width)) for size in sizes]
        for row, column, block in self._rates(rule, reads[:-1]):
            if star:
                out[column] = out[column] + block.T @ x[row]
            else:
                out[row] = out[row] + block @ x[column]
        return out

    def _rates(self, rule: str, reads: Sequence[Any]) -> closure_rate.Blocks:
        """The blocks of the operator."""
        mech, numbers = self.run.mech, self.run.arithmetic
        form = FormRule.named(rule)
        if form is not None:
            return self._form(form, reads)
        if rule in closure_rate.OF_ERRORS:
            poses = self._relative(reads[0])
            return closure_rate.of_errors(mech, rule, poses, self._goals, numbers.itemsize)
        if rule in closure_rate.OF_LOOPS:
            vectors = [block[:, 0] for block in reads[1]]
            return closure_rate.of_loops(mech, rule, self._relative(reads[0]), vectors)
        vectors = [block[:, 0] for block in reads[0]]
        return closure_rate.of_couplings(mech, rule, numbers.q, numbers.v, vectors)

    def _form(self, form: FormRule, reads: Sequence[Any]) -> closure_rate.Blocks:
        """The blocks of a form of rows."""
        mech, numbers, start = self.run.mech, self.run.arithmetic, int(form.has_poses)
        vectors = [[block[:, 0] for block in x] for x in reads[start:]]
        if not form.has_poses:
            return closure_form.of_couplings(mech, form, numbers.q, vectors)
        poses, goals = self._relative(reads[0]), self._goals if form.kind == "error" else ()
        return closure_form.of_loops(mech, form, poses, vectors, goals, numbers.itemsize)

    # -------------------------------------------------------------------------- couplings

    @cached_property
    def _followers(self) -> list[Follower]:
        """The rows of the couplings, with a leading axis."""
        mech, numbers = self.run.mech, self.run.arithmetic
        q, v = numbers.q[None], numbers.v[None]
        return [closure.follower(mech, x, q, v) for x in mech.couplings]

    def _follow(self, x: Sequence[Any]) -> list[Any]:
        """Y x."""
        out: list[Any] = [np.zeros((loop.rows, self.width)) for loop in self.run.mech.loops]
        for row in self._followers:
            total: Any = np.zeros((1, self.width))
            for k, values in row.terms:
                total = total + values.reshape(1, -1) @ x[k]
            out.append(total)
        return out

    def _lead(self, y: Sequence[Any]) -> list[Any]:
        """Y* y."""
        mech = self.run.mech
        out: list[Any] = [np.zeros((body.hinge.nv, self.width)) for body in mech.bodies]
        for row, part in zip(self._followers, y[len(mech.loops) :], strict=True):
            for k, values in row.terms:
                out[k] = out[k] + values.reshape(-1, 1) @ part
        return out

    # ---------------------------------------------------------------------------- columns

    def _gram(self, x: Sequence[Any], z: Sequence[Any]) -> list[Any]:
        """X* Z, split into the rows of each constraint."""
        sizes = self.run.bodies.sizes(CONSTRAINT)
        total: Any = np.zeros((sum(sizes), self.width))
        for left, right in zip(x, z, strict=True):
            if len(left):
                total = total + left.T @ right
        return np.split(total, np.cumsum(sizes)[:-1]) if len(total) else []

    def _spread(self, x: Sequence[Any], y: Sequence[Any]) -> list[Any]:
        """x y at each body."""
        stacked = np.concatenate([np.zeros((0, self.width)), *y])
        return [block @ stacked for block in x]
