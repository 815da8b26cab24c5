"""What belongs to constraints in a run: done at once, before the pass it stands in.

Q V(i)  = S (V_b - T V_a)               for loop i with its nodes a, b
Q* λ    : S* λ at b, -T* S* λ at a
Y x(i)  = Σ_k y(i, k) x(k)              for coupling i
κ(i)    = S (V_ab × T V_a - Ḣ* W), and gravity where a node stands on the ground and is not
          lifted as all bodies are (a carries gravity at the base)
gram    X* Z = Σ_k X*(k) Z(k)           for columns X, Z with a row for each freedom
spread  X λ, at each body
servo   ẍ_d + k_v (ẋ_d - ẋ) + k_p e     where loops and couplings are rows of tasks
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algebra.space import CONSTRAINT, ONE
from linkwise.errors import ExpressionError, ShapeError
from linkwise.model import aim, closure
from linkwise.model.closure import Blocked, Follower
from linkwise.model.rows import Rows
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.spatial.vector import cross_velocity
from linkwise.sweeps.program import Statement, Term

if TYPE_CHECKING:
    from linkwise.sweeps.interpret import Run


class Closing:
    """The loops and couplings of a run.

    Attributes:
        run: The run.
        columns: Of what is being made.
    """

    def __init__(self, run: Run) -> None:
        self.run, self.columns = run, 1
        self._poses: list[Pose] | None = None
        self._followers: list[Follower] | None = None

    def value(self, statement: Statement) -> list[Any]:
        """Blocks of what a statement gives."""
        reads = [self.run.blocks_of(quantity) for quantity, _ in statement.reads]
        rules: dict[str, Callable[..., list[Any]]] = {
            "Q": self.closed,
            "Q*": self.closing,
            "Y": self.followed,
            "Y*": self.leading,
            "kappa": self.rate,
            "kappa_g": self.lift,
            "servo": self.servo,
            "spread": self.spread,
        }
        self.columns = self._width(statement)
        if statement.special == "gram":
            return self.gram(*reads)
        if statement.special:
            return rules[statement.special](*reads)
        return self.total(statement)

    def _width(self, statement: Statement) -> int:
        """Columns of what a statement gives."""
        columns = statement.target.columns
        return 1 if columns is ONE else self.run.width(columns)

    def total(self, statement: Statement) -> list[Any]:
        """A sum of quantities over the constraints."""
        run, target = self.run, statement.target
        out = [np.zeros((size, self.columns)) for size in run.sizes(target.rows)]
        for term in statement.terms:
            out = [x + y for x, y in zip(out, self._term(term), strict=True)]
        return out

    def _term(self, term: Term) -> list[Any]:
        assert term.operand is not None
        found = self.run.blocks_of(term.operand)
        if term.left:  # a vector times a number
            (vector,) = term.left
            found = [x @ found[0] for x in self.run.value[vector.ident]]
        return [term.number * x for x in found]

    # ------------------------------------------------------------------------------ loops

    def poses(self, places: Sequence[Any]) -> list[Pose]:
        """X_ab of each loop, with a leading axis."""
        if self._poses is None:
            closure.check_nodes(self.run.mech, tuple(x.name for x in self.run.nodes))
            each = [x.reshape(1, 3, 4) for x in places]
            world = [trusted_pose(x[..., :3], x[..., 3]) for x in each]
            pairs = range(0, 2 * len(self.run.mech.loops), 2)
            self._poses = [world[i].inverse() @ world[i + 1] for i in pairs]
        return self._poses

    def blocked(self, i: int, X_ab: Pose, V_ab: Any) -> Blocked:
        """What loop i blocks; arrays with a leading axis, or without where they are constant."""
        return closure.blocked(self.run.mech.loops[i].hinge, X_ab, V_ab)

    def directions(self, i: int, X_ab: Pose) -> Any:
        """S of loop i (rows, 6)."""
        S = self.blocked(i, X_ab, np.zeros((1, 6))).S
        return S[0] if S.ndim == 3 else S

    def closed(self, places: Sequence[Any], x: Sequence[Any]) -> list[Any]:
        """Q x."""
        out = list[Any]()
        for i, X_ab in enumerate(self.poses(places)):
            carried = X_ab.shift_velocity(x[2 * i].T).T
            out.append(self.directions(i, X_ab) @ (x[2 * i + 1] - carried))
        return out + [np.zeros((1, self.columns))] * len(self.run.mech.couplings)

    def closing(self, places: Sequence[Any], y: Sequence[Any]) -> list[Any]:
        """Q* y."""
        out = list[Any]()
        for i, X_ab in enumerate(self.poses(places)):
            on_b = self.directions(i, X_ab).T @ y[i]
            out += [-X_ab.shift_force(on_b.T).T, on_b]
        return out + [np.zeros((6, self.columns))] * (len(self.run.nodes) - len(out))

    def rate(self, places: Sequence[Any], velocities: Sequence[Any]) -> list[Any]:
        """κ."""
        out = list[Any]()
        for i, X_ab in enumerate(self.poses(places)):
            V_a, V_b = velocities[2 * i].T, velocities[2 * i + 1].T
            carried = X_ab.shift_velocity(V_a)
            found = self.blocked(i, X_ab, V_b - carried)
            asked = cross_velocity(V_b - carried, carried)
            out.append(((found.S @ asked[..., None])[..., 0] + found.rate).reshape(-1, 1))
        return out + [x.rate.reshape(1, 1) for x in self.followers]

    def lift(self, places: Sequence[Any]) -> list[Any]:
        """κ_g: zero but for loops with one node on the ground."""
        run, out = self.run, list[Any]()
        for i, X_ab in enumerate(self.poses(places)):
            S = self.directions(i, X_ab)
            ground = [run.node_body[2 * i + j] < 0 for j in (0, 1)]
            lifted: Any = np.zeros((6, 1))
            if ground[0] != ground[1]:
                rot_b = places[2 * i + 1].reshape(3, 4)[:, :3]
                lifted = np.concatenate([np.zeros(3), rot_b.T @ run.gravity])[:, None]
            out.append(S @ (lifted if ground[0] else -lifted))
        return out + [np.zeros((1, 1))] * len(run.mech.couplings)

    def servo(self, places: Sequence[Any], velocities: Sequence[Any]) -> list[Any]:
        """ẍ_d + k_v (ẋ_d - ẋ) + k_p e, row by row, from inputs of the kernel."""
        mech, sizes = self.run.mech, self.run.sizes(CONSTRAINT)
        aims = aim.goal_sizes(mech)
        goals = np.split(self.input("goal", sum(aims)), np.cumsum(aims)[:-1])
        push, rate, kp, kv = (
            np.split(self.input(name, sum(sizes)), np.cumsum(sizes)[:-1]) for name in aim.SERVO[1:]
        )
        errors, speeds = list[Any](), [x[:, 0] for x in self.closed(places, velocities)]
        for i, X_ab in enumerate(self.poses(places)):
            hinge = mech.loops[i].hinge
            assert isinstance(hinge, Rows)
            errors.append(aim.missing(hinge, X_ab, goals[i][None], self.run.itemsize)[0])
        for i, (k, index) in enumerate(aim.joint_places(mech), start=len(mech.loops)):
            errors.append(goals[i] - self.run.q[mech.q_start[k] + index, None])
            speeds[i] = self.run.v[mech.v_start[k] + index, None]
        rows = zip(push, kv, rate, speeds, kp, errors, strict=True)
        return [(u + d * (w - x) + c * e)[:, None] for u, d, w, x, c, e in rows]

    def input(self, name: str, size: int) -> Any:
        """An array that was given to the run."""
        if name not in self.run.given:
            raise ExpressionError(f"no value was given for {name}, which the servo needs.")
        found = np.asarray(self.run.given[name], dtype=np.float64)
        if found.shape != (size,):
            raise ShapeError(f"{name} has shape {found.shape}; it must be ({size},).")
        return found

    # -------------------------------------------------------------------------- couplings

    @property
    def followers(self) -> list[Follower]:
        """The rows of the couplings, with a leading axis."""
        if self._followers is None:
            mech, q, v = self.run.mech, self.run.q[None], self.run.v[None]
            self._followers = [closure.follower(mech, x, q, v) for x in mech.couplings]
        return self._followers

    def followed(self, x: Sequence[Any]) -> list[Any]:
        """Y x."""
        mech, width = self.run.mech, self.columns
        out: list[Any] = [np.zeros((loop.rows, width)) for loop in mech.loops]
        for row in self.followers:
            total: Any = np.zeros((1, width))
            for k, values in row.terms:
                total = total + values.reshape(1, -1) @ x[k]
            out.append(total)
        return out

    def leading(self, y: Sequence[Any]) -> list[Any]:
        """Y* y."""
        mech, width = self.run.mech, self.columns
        out: list[Any] = [np.zeros((body.hinge.nv, width)) for body in mech.bodies]
        for row, part in zip(self.followers, y[len(mech.loops) :], strict=True):
            for k, values in row.terms:
                out[k] = out[k] + values.reshape(-1, 1) @ part
        return out

    # ---------------------------------------------------------------------------- columns

    def gram(self, x: Sequence[Any], z: Sequence[Any]) -> list[Any]:
        """X* Z, cut into the rows of each constraint."""
        whole: Any = np.zeros((self.run.size(CONSTRAINT), self.columns))
        for left, right in zip(x, z, strict=True):
            if len(left):
                whole = whole + left.T @ right
        return self.cut(whole)

    def cut(self, whole: Any) -> list[Any]:
        """Rows of each constraint."""
        if not len(whole):
            return []
        return np.split(whole, np.cumsum(self.run.sizes(CONSTRAINT))[:-1])

    def spread(self, x: Sequence[Any], y: Sequence[Any]) -> list[Any]:
        """x y at each body."""
        stacked = np.concatenate([np.zeros((0, self.columns)), *y])
        return [block @ stacked for block in x]


def generalised_solve(A: Array, right: Array, what: object) -> Array:
    """A solution of A x = b with a symmetric, positive semidefinite A: of least norm.

    Rows of constraints may depend on each other; what they ask for then agrees.
    """
    if not np.isfinite(A).all():
        raise ExpressionError(f"{what} is not finite.")
    scale = np.sqrt(np.maximum(np.diag(A), 0.0))
    scale = np.maximum(scale, 1e-11 * scale.max(initial=0.0))  # a row of zeros stays one
    scale = np.where(scale > 0.0, scale, 1.0)
    found = np.linalg.pinv(A / np.outer(scale, scale), rcond=1e-13, hermitian=True)
    inverse = np.asarray(found, dtype=np.float64)
    return (inverse @ (right / scale[:, None])) / scale[:, None]
