"""Every operator as an explicit matrix, directly from its definition: a slow, plain reference.

Nothing here sweeps, except the Riccati recursion, which is a definition itself; resolvents are
inverses, Lyapunov solutions are the diagonal blocks of what they decompose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from linkwise.algebra import role
from linkwise.algebra.differential_leaf import form_rule
from linkwise.algebra.expr import (
    Adjoint,
    Expr,
    Identity,
    Inverse,
    Product,
    Sum,
    Symbol,
    Zero,
    symbol,
)
from linkwise.algebra.family import Family
from linkwise.algebra.space import (
    BODY,
    CONSTRAINT,
    COORDINATE,
    GOAL,
    GRAVITY,
    INBOARD,
    INERTIA,
    JOINT,
    NODE,
    NODE_INERTIA,
    NODE_PLACE,
    ONE,
    PLACE,
    Space,
)
from linkwise.algebra.symbols import B, H, Q, a_g, phi, v
from linkwise.errors import ExpressionError, ShapeError, SingularHingeError
from linkwise.model import closure, closure_form, closure_rate
from linkwise.model.body import Node
from linkwise.model.closure import constraint_sizes
from linkwise.model.hinges.form import coordinate_block, form_block
from linkwise.model.hinges.hinge import qdot_map
from linkwise.model.lumps import separated
from linkwise.model.mechanism import Mechanism
from linkwise.model.task_rows import Rows, goal_sizes, has_tasks, joint_places, missing
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import inertia_matrix, momentum_regressor, moved_numbers, weight_rate
from linkwise.spatial.pose import Pose, place_block, trusted_pose
from linkwise.spatial.vector import (
    blocks,
    cross_force,
    cross_force_matrix,
    cross_velocity,
    cross_velocity_matrix,
)

STATE_VECTORS = (
    *("v", "a", "b", "a_g", "X", "X_B", "weight", "kappa", "kappa_g", "servo", "task_error"),
    *("velocity_bias", "armature_bias"),  # of aggregate bodies
)
"""Vectors that a mechanism and its state give; all others are given by the user."""

MOVING = ("v", "a", "b", "kappa", "servo", "velocity_bias", "armature_bias")
"""Vectors that depend on the velocities."""

STATE_BLOCKS = ("H", "M", "N", "Delta_phi", "rot_W", "to_W", "A_V", "B_V", "hinges")
"""Memoryless operators that a mechanism and its state give."""


_NODE_VELOCITIES = B.T @ phi.T @ H.T @ v
_CLOSURE_LIFT = Q @ B.T @ phi.T @ a_g


class Dense:
    """The operators of one mechanism in one state, as matrices.

    Args:
        mech: The mechanism.
        q: Its coordinates (nq,).
        v: Velocities (nv,), zero by default; they enter the vectors v, a and b.
        nodes: Names of the nodes of the space NODE, in order.
        values: Vectors and blocks by the names of their symbols: `tau`, `f`, and those of
            your own operators: a vector (n,), or a list of blocks, one per body. They replace
            what the mechanism gives.
    """

    kind: ClassVar[Any] = np.float64
    """The type of its numbers."""

    def __init__(
        self,
        mech: Mechanism,
        q: Array,
        v: Array | None = None,
        *,
        nodes: Sequence[str] = (),
        values: Mapping[str, Array | Sequence[Array]] | None = None,
    ) -> None:
        v = self._zeros(mech.nv) if v is None else v
        self._given_mech, (self._given_q, self.velocity) = mech, self.checked(mech, q, v)
        # A flexible body: its frame and lumps are bodies here, which read the same velocities.
        self.mech, part_of = separated(mech) if mech.flexible else (mech, range(mech.n_bodies))
        self._joints = [mech.v_slice(mech.bodies[k].hinge_name) for k in part_of]
        places = [mech.q_slice(mech.bodies[k].hinge_name) for k in part_of]
        self.q = np.concatenate([np.zeros(0), *(self._given_q[x] for x in places)])
        self.v = np.concatenate([np.zeros(0), *(self.velocity[x] for x in self._joints)])
        ends = np.searchsorted(part_of, np.arange(mech.n_bodies + 1)).tolist()
        self._groups = [slice(6 * a, 6 * b) for a, b in pairwise(ends)]
        mech = self.mech
        self.nodes = [mech.node(name) for name in nodes]
        self.values = dict(values or {})
        self.step: list[Pose] = [
            body.pose(self.q[mech.q_slice(body.hinge_name)]) for body in mech.bodies
        ]
        self._memo: dict[Expr, Array] = {}
        self._families: dict[object, dict[str, list[Array]]] = {}

    # ------------------------------------------------------------------------- evaluation

    def __call__(self, expr: Expr) -> Array:
        """The matrix of an expression; a vector has shape (n,)."""
        matrix = self.matrix(expr)
        return matrix[:, 0] if expr.is_vector else matrix

    def matrix(self, expr: Expr) -> Array:
        """The matrix of an expression, vectors as one column."""
        if expr not in self._memo:
            self._memo[expr] = self._matrix(expr)
        return self._memo[expr]

    def _matrix(self, expr: Expr) -> Array:
        if isinstance(expr, Symbol):
            return self._leaf(expr)
        if isinstance(expr, Adjoint):
            return self.matrix(expr.of).T
        if isinstance(expr, Inverse):
            return self._inverse(expr.of)
        if isinstance(expr, Product):
            result = self.matrix(expr.factors[0])
            for factor in expr.factors[1:]:
                result = result @ self.matrix(factor)
            return result
        if isinstance(expr, Sum):
            return sum(
                (c * self.matrix(e) for c, e in expr.terms),
                self._zeros(self.size(expr.range), self.size(expr.domain)),
            )
        if isinstance(expr, Zero):
            return self._zeros(self.size(expr.range), self.size(expr.domain))
        assert isinstance(expr, Identity)
        return np.eye(self.size(expr.range))

    # ------------------------------------------------------------------------- arithmetic

    def checked(self, mech: Mechanism, q: Array, v: Array) -> tuple[Array, Array]:
        """Coordinates and velocities."""
        return mech.check_q(q), mech.check_v(v)

    def inverted(self, matrix: Array) -> Array:
        """The inverse of a matrix."""
        return np.asarray(np.linalg.inv(matrix), dtype=np.float64)

    def solved(self, matrix: Array, right: Array) -> Array:
        """The solution of linear equations."""
        return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)

    def _zeros(self, *shape: int) -> Array:
        return np.zeros(shape, dtype=self.kind)

    def _inverse(self, of: Expr) -> Array:
        if of.range is CONSTRAINT:  # rows of constraints may depend on each other
            return np.asarray(np.linalg.pinv(self.matrix(of), rcond=1e-13), dtype=np.float64)
        try:
            return self.inverted(self.matrix(of))
        except np.linalg.LinAlgError:
            raise ExpressionError(
                f"{of} is singular on {self.mech.name} in this state: it has no inverse."
            ) from None

    # ----------------------------------------------------------------------------- spaces

    def slices(self, space: Space) -> list[slice]:
        """Where the blocks of a space are in its vectors."""
        mech = self.mech
        if space is JOINT:
            return self._joints
        if space is COORDINATE:
            return [mech.q_slice(body.hinge_name) for body in mech.bodies]
        count = {BODY: mech.n_bodies, INBOARD: mech.n_bodies, NODE: len(self.nodes)}.get(space)
        if count is not None:
            return [slice(6 * k, 6 * k + 6) for k in range(count)]
        if space is PLACE or space is NODE_PLACE:
            count = mech.n_bodies if space is PLACE else len(self.nodes)
            return [slice(12 * k, 12 * k + 12) for k in range(count)]
        if space is INERTIA or space is NODE_INERTIA:
            count = mech.n_bodies if space is INERTIA else len(self.nodes)
            return [slice(10 * k, 10 * k + 10) for k in range(count)]
        if space is ONE or space is GRAVITY:
            return [slice(0, 1 if space is ONE else 3)]
        if space is CONSTRAINT:
            ends = np.cumsum([0, *constraint_sizes(mech)]).tolist()
            return [slice(start, stop) for start, stop in pairwise(ends)]
        if space is GOAL:
            sizes = goal_sizes(mech) if has_tasks(mech) else constraint_sizes(mech)
            return [slice(start, stop) for start, stop in pairwise(np.cumsum([0, *sizes]).tolist())]
        raise ExpressionError(
            f"the space {space} has no size in a mechanism without values for it."
        )

    def size(self, space: Space) -> int:
        """Length of a vector of the space."""
        blocks = self.slices(space)
        return max((block.stop for block in blocks), default=0)

    def diagonal(self, blocks: Sequence[Array], range_: Space, domain: Space) -> Array:
        """A memoryless operator from its blocks."""
        out = self._zeros(self.size(range_), self.size(domain))
        for block, rows, columns in zip(
            blocks, self.slices(range_), self.slices(domain), strict=True
        ):
            out[rows, columns] += np.asarray(block, dtype=self.kind)
        return out

    # ----------------------------------------------------------------------------- leaves

    def _leaf(self, leaf: Symbol) -> Array:
        key = leaf.role
        if isinstance(key, role.Named | role.Composite):
            return self.matrix(key.definition)
        if isinstance(key, role.Vector):
            return self._vector(leaf, key.source)
        if isinstance(key, role.Memoryless):
            return self.diagonal(self._blocks(leaf, key.source), leaf.range, leaf.domain)
        if isinstance(key, role.Cross):
            return self.diagonal(self._crosses(key), leaf.range, leaf.domain)
        if isinstance(key, role.PlaceRate):
            return self.diagonal(self._place_forms(key), leaf.range, leaf.domain)
        if isinstance(key, role.GravityRate):
            return self._gravity_rate(key.of)
        if isinstance(key, role.WeightRate):
            block = weight_rate(np.asarray(self.mech.gravity))
            return self.diagonal([block] * self.mech.n_bodies, leaf.range, leaf.domain)
        if isinstance(key, role.Angular):
            return np.diag(([1.0] * 3 + [0.0] * 3) * len(self.nodes))
        if isinstance(key, role.HingeRate | role.CoordinateRate):
            return self.diagonal(self._hinge_forms(key), leaf.range, leaf.domain)
        if isinstance(key, role.Regressor):
            rows = self.matrix(key.of)[:, 0].reshape(-1, 6)
            return self.diagonal([momentum_regressor(x) for x in rows], leaf.range, leaf.domain)
        if isinstance(key, role.Diagonal):
            return np.diag(self.matrix(key.of)[:, 0])
        if isinstance(key, role.InertiaOf):
            rows = self.matrix(key.of)[:, 0].reshape(-1, 10)
            return self.diagonal([inertia_matrix(x) for x in rows], leaf.range, leaf.domain)
        if isinstance(key, role.RecursionRate):
            return self._recursion_rate(leaf, key)
        if isinstance(key, role.HingeBiasRate):
            return self.diagonal(self._hinge_bias_rates(key.wrt), BODY, JOINT)
        if isinstance(key, role.ErrorRate):
            return self._error_rate(leaf, key)
        if isinstance(key, role.RowsForm):
            return self._rows_form(leaf, key)
        if isinstance(key, role.ClosureRate | role.FollowerRate | role.ClosureBiasRate):
            return self._closure_derivative(leaf, key)
        if isinstance(key, role.Shift):
            return self._shift(leaf, key.source)
        if isinstance(key, role.Gather):
            return self._to_parents([np.eye(6)] * self.mech.n_bodies)
        if isinstance(key, role.PickOff):
            return self._pick_off(leaf)
        if isinstance(key, role.Closure):
            return self._closure()
        if isinstance(key, role.Followers):
            return self._followers()
        if isinstance(key, role.Resolvent):
            E = self.matrix(key.of)
            inverse = self.inverted(np.eye(len(E)) - E)
            return inverse - np.eye(len(E)) if key.strict else inverse
        if isinstance(key, role.Lyapunov):
            return self._lyapunov(key)
        if isinstance(key, role.Siblings):
            E, inside = self.matrix(key.shift), self.matrix(key.inside)
            full = E.T @ inside @ E
            return full - self._diagonal_blocks(full)
        assert isinstance(key, role.Riccati)
        return self._riccati(leaf, key)

    def _recursion_rate(self, leaf: Symbol, key: role.RecursionRate) -> Array:
        """∂[r x], a column for each entry of the variable."""
        from linkwise.algebra.differential import rate_along

        e = symbol("e", leaf.domain, ONE, role.Vector("e_j"))
        expr, columns = rate_along(key, e), list[Array]()
        for unit in np.eye(self.size(leaf.domain)):
            values = {**self.values, "e_j": unit}
            state = self._given_mech, self._given_q, self.velocity
            here = type(self)(*state, nodes=self._names(), values=values)
            columns.append(here(expr))
        return np.stack(columns, axis=-1)

    def _names(self) -> list[str]:
        return [node.name for node in self.nodes]

    def _crosses(self, key: role.Cross) -> list[Array]:
        """x× u, or u ×* x, for the columns u of the identity."""
        columns = np.eye(6)
        return [
            np.stack(
                [cross_force(u, x) if key.swapped else cross_velocity(x, u) for u in columns]
            ).T
            for x in self.matrix(key.of)[:, 0].reshape(-1, 6)
        ]

    def _hinge_forms(self, key: role.HingeRate | role.CoordinateRate) -> list[Array]:
        """Blocks of f* D_n ... D_1 H* x, or of f* D_n ... D_1 𝒬 x, with two open slots."""
        mech, blocks = self.mech, list[Array]()
        for k, body in enumerate(mech.bodies):
            q_k = self.q[mech.q_slice(body.hinge_name)]
            slots = [
                x if isinstance(x, str) else self.matrix(x)[self.slices(x.range)[k], 0]
                for x in key.slots
            ]
            if isinstance(key, role.CoordinateRate):
                blocks.append(coordinate_block(body.hinge, q_k[None], slots))
            else:
                blocks.append(form_block(body.hinge, q_k[None], body.outboard.shift, slots))
        return blocks

    def _place_forms(self, key: role.PlaceRate) -> list[Array]:
        """Blocks of f* (X x̂_n ... x̂_1) with two open slots."""
        poses = [self._node_pose(node) for node in self.nodes] if key.nodes else self._poses()
        vectors = [x if isinstance(x, str) else self.matrix(x)[:, 0] for x in key.slots]
        each = [x if isinstance(x, str) else x.reshape(len(poses), -1) for x in vectors]
        return [
            place_block(X.matrix[:3], [x if isinstance(x, str) else x[i] for x in each])
            for i, X in enumerate(poses)
        ]

    def _hinge_bias_rates(self, wrt: str) -> list[Array]:
        mech, blocks = self.mech, list[Array]()
        for body in mech.bodies:
            q_k, v_k = self.q[mech.q_slice(body.hinge_name)], self.v[mech.v_slice(body.hinge_name)]
            by_q, by_v = body.hinge.bias_derivative(q_k, v_k)
            blocks.append(body.outboard.shift.T @ (by_q if wrt == "q" else by_v))
        return blocks

    def _to_parents(self, blocks: Sequence[Array]) -> Array:
        out = self._zeros(6 * self.mech.n_bodies, 6 * self.mech.n_bodies)
        for k, p in enumerate(self.mech.parent.tolist()):
            if p >= 0:
                out[6 * p : 6 * p + 6, 6 * k : 6 * k + 6] = blocks[k]
        return out

    def _shift(self, leaf: Symbol, source: str) -> Array:
        if source == "phi":
            return self._to_parents([pose.shift for pose in self.step])
        return self._to_parents(self._given(leaf, source))

    def _blocks(self, leaf: Symbol, source: str) -> list[Array]:
        mech = self.mech
        if source in self.values:
            return self._given(leaf, source)
        if source == "M":
            return list(mech.inertias.matrix)
        if source == "Delta_phi":
            return [pose.shift for pose in self.step]
        if source == "coordinate_map":
            if self._given_mech.flexible:
                raise ExpressionError(
                    f"{leaf} was evaluated densely for {self._given_mech.name!r}, which has "
                    "flexible bodies; kernels evaluate it."
                )
            maps = [qdot_map(b.hinge, self.q[mech.q_slice(b.hinge_name)]) for b in mech.bodies]
            return [self.solved(N.T @ N, N.T) for N in maps]
        if source == "N":
            return [np.diag(mech.armature[mech.v_slice(b.hinge_name)]) for b in mech.bodies]
        if isinstance(leaf.role, role.Selection):
            named = set(leaf.role.hinges)
            return [float(b.hinge_name in named) * np.eye(b.hinge.nv) for b in mech.bodies]
        if source == "H":
            # About the body frame: H_B* = φ*(O, B) H*.
            return [
                body.hinge.hinge_map(self.q[mech.q_slice(body.hinge_name)]) @ body.outboard.shift
                for body in mech.bodies
            ]
        if source == "rot_W":
            turns, zero = [self._node_pose(node).rot for node in self.nodes], np.zeros((3, 3))
            return [blocks(rot, zero, zero, rot) for rot in turns]
        if source == "to_W":  # V_k = φ*(W, k) V_W
            shifts = [X.shift.T for X in self._poses()]
            return [self.inverted(x) for x in shifts]
        if source in ("A_V", "B_V"):
            return self._coriolis_blocks(source)
        return self._given(leaf, source)

    def _pose(self, k: int) -> Pose:
        """Of body k in the world."""
        if k < 0:
            return Pose.identity()
        return self._pose(int(self.mech.parent[k])) @ self.step[k]

    def _poses(self) -> list[Pose]:
        return [self._pose(k) for k in range(self.mech.n_bodies)]

    def _coriolis_blocks(self, source: str) -> list[Array]:
        """A_V = (V×) H* + Ḣ*, and B_V = ½ (V ×* M - M V× + (M V)×~)."""
        mech, blocks = self.mech, list[Array]()
        V = self._coriolis()["V"].reshape(-1, 6)
        for k, body in enumerate(mech.bodies):
            turn = cross_velocity_matrix(V[k])
            if source == "A_V":
                part = mech.q_slice(body.hinge_name), mech.v_slice(body.hinge_name)
                q_k, v_k = self.q[part[0]], self.v[part[1]]
                H = body.hinge.hinge_map(q_k) @ body.outboard.shift
                rate = body.hinge.hinge_map_rate(q_k, v_k) @ body.outboard.shift
                blocks.append(turn @ H.T + rate.T)
            else:
                M = mech.inertias[k].matrix
                other = np.stack([cross_force(e, M @ V[k]) for e in np.eye(6)], axis=-1)
                blocks.append(0.5 * (cross_force_matrix(V[k]) @ M - M @ turn + other))
        return blocks

    def _node_pose(self, node: Node) -> Pose:
        return self._pose(self.mech.body_index[node.body]) @ node.pose

    def _given(self, leaf: Symbol, source: str) -> list[Array]:
        if source not in self.values:
            raise ExpressionError(f"no value was given for {leaf}: values={{'{source}': ...}}.")
        blocks = [np.asarray(block, dtype=self.kind) for block in self.values[source]]
        count = len(self.slices(leaf.range))
        if len(blocks) != count:
            raise ShapeError(
                f"{leaf} has {len(blocks)} blocks; it takes one for each {leaf.range.block}, "
                f"{count} here."
            )
        for block, rows, columns in zip(
            blocks, self.slices(leaf.range), self.slices(leaf.domain), strict=True
        ):
            shape = (rows.stop - rows.start, columns.stop - columns.start)
            if block.shape != shape:
                raise ShapeError(f"{leaf} has a block of shape {block.shape}; it must be {shape}.")
        return blocks

    def _pick_off(self, leaf: Symbol) -> Array:
        out = self._zeros(self.size(leaf.range), self.size(leaf.domain))
        rows, columns = self.slices(leaf.range), self.slices(leaf.domain)
        for i, node in enumerate(self.nodes):
            k = self.mech.body_index[node.body]
            if k >= 0:  # a node on the world moves nothing
                force = leaf.domain is NODE
                out[rows[k], columns[i]] = node.pose.shift if force else moved_numbers(node.pose)
        return out

    def _closure(self) -> Array:
        """Q: [-S T, S] at the nodes of each loop."""
        mech = self.mech
        closure.check_nodes(mech, tuple(node.name for node in self.nodes))
        out = self._zeros(self.size(CONSTRAINT), self.size(NODE))
        for i, (loop, rows) in enumerate(zip(mech.loops, self.slices(CONSTRAINT), strict=False)):
            X_ab = self._relative_pose(i)
            S = closure.blocked(loop.hinge, X_ab, np.zeros(6)).S
            out[rows, 12 * i : 12 * i + 12] = np.concatenate([-S @ X_ab.shift.T, S], axis=1)
        return out

    def _closure_derivative(
        self, leaf: Symbol, key: role.ClosureRate | role.FollowerRate | role.ClosureBiasRate
    ) -> Array:
        """∂(Q x), ∂(Q* x), ∂(Y x), ∂(Y* x) or ∂κ, from their blocks."""
        mech = self.mech
        of = _NODE_VELOCITIES if isinstance(key, role.ClosureBiasRate) else key.of
        x = [self.matrix(of)[part, 0] for part in self.slices(of.range)]
        rule = (
            f"kappa_{key.wrt}"
            if isinstance(key, role.ClosureBiasRate)
            else (("Q" if isinstance(key, role.ClosureRate) else "Y") + "_rate")
        )
        rule += "_adjoint" if of.range is CONSTRAINT else ""
        if rule in closure_rate.OF_LOOPS:
            poses = [self._relative_pose(i) for i in range(len(mech.loops))]
            poses = [trusted_pose(X.rot[None], X.p[None]) for X in poses]
            blocks = closure_rate.of_loops(mech, rule, poses, x)
        else:
            blocks = closure_rate.of_couplings(mech, rule, self.q, self.v, x)
        out = self._zeros(self.size(leaf.range), self.size(leaf.domain))
        rows, columns = self.slices(leaf.range), self.slices(leaf.domain)
        for row, column, block in blocks:
            out[rows[row], columns[column]] += block
        return out

    def _relative_pose(self, i: int) -> Pose:
        """X_ab of loop i."""
        a, b = (self._node_pose(node) for node in self.nodes[2 * i : 2 * i + 2])
        return a.inverse() @ b

    def _followers(self) -> Array:
        """Y: the rows of the couplings."""
        mech, out = self.mech, self._zeros(self.size(CONSTRAINT), self.size(JOINT))
        for i, coupling in enumerate(mech.couplings, start=len(mech.loops)):
            rows = self.slices(CONSTRAINT)[i]
            for k, values in closure.follower(mech, coupling, self.q, self.v).terms:
                out[rows, self.slices(JOINT)[k]] += values
        return out

    def _closure_rate(self) -> Array:
        """κ = J̇_c v - Q B* φ* A_V v, from its parts: see `model/closure.py`."""
        mech, parts = self.mech, [np.zeros(0)]
        V = self.matrix(_NODE_VELOCITIES)[:, 0].reshape(-1, 6)
        for i, loop in enumerate(mech.loops):
            X_ab = self._relative_pose(i)
            carried = X_ab.shift_velocity(V[2 * i])
            rows = closure.blocked(loop.hinge, X_ab, V[2 * i + 1] - carried)
            turned = cross_velocity(V[2 * i + 1] - carried, carried)
            parts.append(rows.S @ turned + rows.rate)
        for coupling in mech.couplings:
            parts.append(np.atleast_1d(closure.follower(mech, coupling, self.q, self.v).rate))
        return np.concatenate(parts)

    def _goals(self) -> list[Array]:
        """The numbers of the goal of each loop or coupling that is a task."""
        goal = np.asarray(self.values["goal"], dtype=self.kind)
        return [goal[part] for part in self.slices(GOAL)]

    def _task_error(self) -> Array:
        """e of each row of tasks."""
        mech, goals, parts = self.mech, self._goals(), [self._zeros(0)]
        for i, loop in enumerate(mech.loops):
            assert isinstance(loop.hinge, Rows)
            parts.append(missing(loop.hinge, self._relative_pose(i), goals[i]))
        for goal, (k, index) in zip(goals[len(mech.loops) :], joint_places(mech), strict=True):
            parts.append(goal - self.q[mech.q_start[k] + index])
        return np.concatenate(parts)

    def _error_rate(self, leaf: Symbol, key: role.ErrorRate) -> Array:
        """∂e, from its blocks."""
        if leaf.ascii in self.values:  # as a proof draws it
            return np.asarray(self.values[leaf.ascii], dtype=self.kind)
        poses = [self._relative_pose(i) for i in range(len(self.mech.loops))]
        poses = [trusted_pose(X.rot[None], X.p[None]) for X in poses]
        out = self._zeros(self.size(leaf.range), self.size(leaf.domain))
        rows, columns = self.slices(leaf.range), self.slices(leaf.domain)
        for row, column, block in closure_rate.of_errors(
            self.mech, f"error_{key.wrt}", poses, self._goals()
        ):
            out[rows[row], columns[column]] += block
        return out

    def _rows_form(self, leaf: Symbol, key: role.RowsForm) -> Array:
        """A form of rows of constraints, from its blocks."""
        if leaf.ascii in self.values:  # as a proof draws it
            return np.asarray(self.values[leaf.ascii], dtype=self.kind)
        mech, form = self.mech, form_rule(key)
        vectors = [[self.matrix(x)[part, 0] for part in self.slices(x.range)] for x in key.vectors]
        if form.has_poses:
            relative = [self._relative_pose(i) for i in range(len(mech.loops))]
            poses = [trusted_pose(X.rot[None], X.p[None]) for X in relative]
            goals = self._goals() if form.kind == "error" else ()
            blocks = closure_form.of_loops(mech, form, poses, vectors, goals)
        else:
            blocks = closure_form.of_couplings(mech, form, self.q, vectors)
        out = self._zeros(self.size(leaf.range), self.size(leaf.domain))
        rows, columns = self.slices(leaf.range), self.slices(leaf.domain)
        for row, column, block in blocks:
            out[rows[row], columns[column]] += np.asarray(block, dtype=self.kind)
        return out

    def _diagonal_blocks(self, matrix: Array) -> Array:
        out = np.zeros_like(matrix)
        for s in self._groups:
            out[s, s] = matrix[s, s]
        return out

    def _lyapunov(self, key: role.Lyapunov) -> Array:
        left, right, W = self.matrix(key.a), self.matrix(key.b), self.matrix(key.core)
        phi_a, phi_b = (
            self.inverted(np.eye(len(left)) - left),
            self.inverted(np.eye(len(right)) - right),
        )
        full = phi_a.T @ W @ phi_b if key.outward else phi_a @ W @ phi_b.T
        return self._diagonal_blocks(full)

    # ---------------------------------------------------------------------------- Riccati

    def _riccati(self, leaf: Symbol, key: role.Riccati) -> Array:
        if key.family not in self._families:
            self._families[key.family] = self._solve(Family(*key.family))
        spaces = {JOINT: self._given_joints, BODY: self._groups}
        rows, columns = spaces[leaf.range], spaces[leaf.domain]
        out = self._zeros(self.size(leaf.range), self.size(leaf.domain))
        for k, block in enumerate(self._families[key.family][key.part]):
            p = int(self._given_mech.parent[k]) if key.part in ("K", "E_psi") else k
            if p >= 0:
                out[rows[p], columns[k]] = block
        return out

    @property
    def _given_joints(self) -> list[slice]:
        mech = self._given_mech
        return [mech.v_slice(body.hinge_name) for body in mech.bodies]

    def _solve(self, family: Family) -> dict[str, list[Array]]:
        """The recursion that defines the family, tip to base."""
        n, parent = self._given_mech.n_bodies, self._given_mech.parent.tolist()
        E, M, H = (self.matrix(x) for x in (family.E, family.M, family.H))
        N = None if family.noise is None else self.matrix(family.noise)
        body, joint = self._groups, self._given_joints
        P = [M[s, s].copy() for s in body]
        parts: dict[str, list[Array]] = {
            name: [np.zeros(0)] * n
            for name in ("P", "P_plus", "D", "G", "K", "Pi", "Pi_bar", "E_psi")
        }
        for k in reversed(range(n)):
            H_k, size = H[joint[k], body[k]], len(P[k])
            D = H_k @ P[k] @ H_k.T + (0.0 if N is None else N[joint[k], joint[k]])
            G = self._solved(D, H_k @ P[k], k).T if len(D) else np.zeros((size, 0))
            bar = np.eye(size) - G @ H_k
            P_plus = bar @ P[k]
            step = np.zeros((6, size)) if parent[k] < 0 else E[body[parent[k]], body[k]]
            values = (P[k], P_plus, D, G, step @ G, G @ H_k, bar, step @ bar)
            for name, value in zip(parts, values, strict=True):
                parts[name][k] = np.asarray(value, dtype=self.kind)
            if parent[k] >= 0:
                P[parent[k]] += step @ P_plus @ step.T
        return parts

    def _solved(self, D: Array, right: Array, k: int) -> Array:
        try:
            return self.solved(D, right)
        except np.linalg.LinAlgError:
            raise SingularHingeError(
                f"D is singular at body {self._given_mech.bodies[k].name!r}: nothing resists its "
                "hinge. Give the body, or what it carries, inertia, or the hinge an armature."
            ) from None

    # ---------------------------------------------------------------------------- vectors

    def _vector(self, leaf: Symbol, source: str) -> Array:
        if source in self.values:
            value = np.asarray(self.values[source], dtype=self.kind)
        elif source == "v":
            value = self.velocity
        elif source in ("a", "b"):
            value = self._coriolis()[source]
        elif source == "kappa":
            value = self._closure_rate()
        elif source == "kappa_g":
            value = -self.matrix(_CLOSURE_LIFT)[:, 0]
        elif source == "task_error":
            value = self._task_error()
        elif source == "servo" and "goal" in self.values:
            from linkwise.algebra.differential import DEFINITIONS

            value = self(DEFINITIONS[leaf])
        elif source in STATE_VECTORS and source != "servo":
            value = self._place(source)
        else:
            raise ExpressionError(f"no value was given for {leaf}: values={{'{source}': ...}}.")
        if value.shape != (self.size(leaf.range),):
            raise ShapeError(
                f"{leaf} has shape {value.shape}; a vector of {leaf.range} has "
                f"({self.size(leaf.range)},) here."
            )
        return value[:, None]

    def _place(self, source: str) -> Array:
        """Poses as rows of (rot | p), the potential energy per entry of them, and a_g."""
        mech = self.mech
        if source == "X":
            return np.concatenate([X.matrix[:3].ravel() for X in self._poses()])
        if source == "X_B":
            poses = [self._node_pose(node).matrix[:3].ravel() for node in self.nodes]
            return np.concatenate([np.zeros(0), *poses])
        if source == "weight":
            moments = np.column_stack([mech.inertias.h, mech.inertias.mass])
            return (-mech.gravity[:, None] * moments[:, None, :]).ravel()
        a_g = self._zeros(mech.n_bodies, 6)
        for k in (k for k in range(mech.n_bodies) if mech.parent[k] < 0):
            a_g[k, 3:] = -self.step[k].rot.T @ mech.gravity
        return a_g.ravel()

    def _gravity_rate(self, of: str) -> Array:
        """By gravity: a_g at the bodies on the ground, and the weights."""
        mech, parts = self.mech, list[Array]()
        for k in range(mech.n_bodies):
            if of == "a_g":
                turn = -self.step[k].rot.T if mech.parent[k] < 0 else np.zeros((3, 3))
                parts.append(np.concatenate([np.zeros((3, 3)), turn]))
            else:
                moment = np.append(mech.inertias.h[k], mech.inertias.mass[k])
                parts.append(np.kron(-np.eye(3), moment[:, None]).astype(self.kind))
        return np.concatenate(parts)

    def _coriolis(self) -> dict[str, Array]:
        """a = V × ΔV + Ḣ* v (with the acceleration of the base against gravity), b = V ×* M V."""
        mech, n = self.mech, self.mech.n_bodies
        V, a, b = (self._zeros(n, 6) for _ in range(3))
        up = np.concatenate([np.zeros(3), -mech.gravity])
        for k, body in enumerate(mech.bodies):
            p, pose = int(mech.parent[k]), self.step[k]
            q_k, v_k = self.q[mech.q_slice(body.hinge_name)], self.v[mech.v_slice(body.hinge_name)]
            relative = body.outboard.shift.T @ (body.hinge.hinge_map(q_k).T @ v_k)
            V[k] = relative if p < 0 else pose.shift.T @ V[p] + relative
            rate = body.outboard.shift.T @ body.hinge.bias(q_k, v_k)
            a[k] = cross_velocity(V[k], relative) + rate
            if p < 0:
                a[k] += pose.shift.T @ up
            b[k] = cross_force(V[k], mech.inertias[k].matrix @ V[k])
        return {"V": V.ravel(), "a": a.ravel(), "b": b.ravel()}
