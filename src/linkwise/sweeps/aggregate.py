"""The blocks of aggregate bodies: those of `bodies.py`, in other sizes.

An aggregate of m bodies is one body with 6 m velocities. Its blocks come from those of the bodies,
with (I - E)⁻¹ = φ taken inside it:

    E_φ(p, g) = E_out φ         H* = φ* H_in* 𝒳         M block diagonal
    a = φ* (a_in + H_in* 𝔵)     b stacked               N = 𝒳* N_in 𝒳

P⁺ of an aggregate is needed only under the shift to its parent, E P⁺ E*, six by six. Where blocks
keep their structure it is left as P, which is block diagonal, and a product of few columns, so that
the cost grows with the bodies of the aggregate and not with their square.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.algebra import role
from linkwise.algebra.expr import Symbol
from linkwise.algebra.space import INERTIA, JOINT, NODE, PLACE, TREE_JOINT, Space
from linkwise.errors import LoweringError
from linkwise.model.embedded import Embedded
from linkwise.model.hinges import Hinge
from linkwise.model.task_rows import JointRow
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import (
    inertia_matrix,
    momentum_regressor,
    moved_numbers,
    weight_rate,
)
from linkwise.spatial.pose import Pose
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import blocks, cross_force
from linkwise.sweeps.aggregate_hinge import AggregateHinge, bias_accelerations, outward
from linkwise.sweeps.aggregate_motion import Inside, Joint
from linkwise.sweeps.bodies import (
    AT_NODES,
    crossed,
    first,
    hinge_form,
    node_block,
    node_place,
    node_sizes,
    place_form,
    placed,
    weight_by_gravity,
)
from linkwise.sweeps.interpret import Interpreter, family_of_part
from linkwise.sweeps.program import Block, Statement, Term
from linkwise.sweeps.result_part import SIZES
from linkwise.sweeps.structured_block import AggregateShift, FilteredInertia, block_diagonal


class Aggregates:
    """The aggregate bodies of an embedded mechanism, one block each (see `Bodies`).

    Attributes:
        mech: The mechanism in independent velocities.
        full: The mechanism with all its velocities.
        nodes: The nodes of the space NODE.
        node_body: The aggregate of each; -1 for the ground.
    """

    def __init__(self, mech: Embedded, nodes: Sequence[Any], node_body: Sequence[int]) -> None:
        self.mech: Any = mech
        self.tree, self.full = mech, mech.mech
        self.nodes, self.node_body = list(nodes), list(node_body)
        self._insides: dict[int, Inside] = {}
        self._joints: dict[int, Joint] = {}

    def nodes_of(self, k: int) -> list[int]:
        """The nodes on aggregate k; those on the ground belong to the first one."""
        return [i for i, g in enumerate(self.node_body) if max(g, 0) == k]

    def sizes(self, space: Space) -> list[int]:
        """The length of each block of a space."""
        groups = self.tree.bodies
        if space is JOINT:
            return [len(x.independent) for x in groups]
        if space is TREE_JOINT:
            return [len(x.velocities) for x in groups]
        if space is PLACE or space is INERTIA or space.name == "BODY":
            return [SIZES[space] * len(x.bodies) for x in groups]
        return node_sizes(space, len(self.nodes))

    def _no_derivative(self, what: str) -> LoweringError:
        return LoweringError(
            f"{what} has no blocks for {self.tree.name!r}, whose loops and couplings are built in. "
            "Use the mechanism itself, which is its attribute mech."
        )

    # ------------------------------------------------------------------------------- inside

    def inside(self, run: Interpreter, g: int) -> Inside:
        """How the hinges of an aggregate move."""
        if g not in self._insides:
            numbers, start, stop = run.arithmetic, self.tree.v_start[g], self.tree.v_start[g + 1]
            self._insides[g] = Inside(
                self.tree, g, lambda k: self.joint(run, k), numbers.v[start:stop], numbers
            )
        return self._insides[g]

    def joint(self, run: Interpreter, k: int) -> Joint:
        """The hinge of a body of the mechanism."""
        if k not in self._joints:
            numbers, mech, body = run.arithmetic, self.full, self.full.bodies[k]
            pose = numbers.pose(k)
            q_k = numbers.q[None, mech.q_start[k] : mech.q_start[k + 1]]
            away, outboard = body.outboard is not Pose.identity(), body.outboard.shift
            H = first(body.hinge.hinge_map(q_k), 2)

            def bias(v_k: Array) -> Array:
                rate = first(body.hinge.bias(q_k, v_k[None]), 1)
                return outboard.T @ rate if away else rate

            self._joints[k] = Joint(pose, numbers.shift(pose), H @ outboard if away else H, bias)
        return self._joints[k]

    # ------------------------------------------------------------------------------- inputs

    def vector(self, run: Interpreter, source: str) -> list[Any] | None:
        """The blocks of 𝔵 and 𝒳* N 𝔵; None for inputs."""
        insides = (self.inside(run, g) for g in range(len(self.tree.bodies)))
        if source == "velocity_bias":
            return [inside.x[:, None] for inside in insides]
        if source == "armature_bias":
            return [x.X.T @ (self._rotors(x.g) * x.x)[:, None] for x in insides]
        return None

    def operator(self, run: Interpreter, leaf: Symbol) -> list[Any] | None:
        """The blocks of a memoryless operator; None for others."""
        key, groups = leaf.role, self.tree.bodies
        source = getattr(key, "source", "")
        if not isinstance(key, role.Memoryless | role.Gather):
            return None
        if source == "M":
            M = self.full.inertias.matrix
            return [block_diagonal([M[k] for k in x.bodies]) for x in groups]
        if source in ("N", "velocity_map"):
            insides = [self.inside(run, g) for g in range(len(groups))]
            if source == "velocity_map":  # 𝒳
                return [inside.X for inside in insides]
            return [x.X.T @ (self._rotors(x.g)[:, None] * x.X) for x in insides]
        if source in ("coordinate_map", "A_V", "Delta_phi") or isinstance(
            key, role.Selection | role.Gather
        ):
            raise LoweringError(
                f"{leaf} has no meaning for aggregate bodies, which {self.tree.name!r} has where "
                "loops and couplings are built in. Evaluate it on the mechanism itself."
            )
        return None

    def _rotors(self, g: int) -> Array:
        return self.full.armature[list(self.tree.bodies[g].velocities)]

    def _rotors_vary(self, g: int) -> bool:
        """Whether 𝒳* N 𝒳 depends on q: some dependent hinge has armature and no fixed ratio."""
        group, rotors = self.tree.bodies[g], self._rotors(g)
        if not np.delete(rotors, list(group.independent)).any():
            return False
        return bool(group.loops) or not all(map(self._is_linear, group.couplings))

    def _is_linear(self, coupling: Any) -> bool:
        if isinstance(coupling, JointRow):
            return True
        names = [coupling.dependent, *(name for name, _ in coupling.terms)]
        plain = all(self._is_rate(self.full.coordinate(name)) for name in names)
        return plain and not any(any(c[1:]) for _, c in coupling.terms)

    def _is_rate(self, entry: int) -> bool:
        """Whether the rate of an entry of q is a velocity."""
        k = int(np.searchsorted(self.full.q_start, entry, side="right")) - 1
        return type(self.full.bodies[k].hinge).qdot is Hinge.qdot

    def pick_off(self, node: int, space: Space = NODE) -> Array:
        """B: from a force at a node to the forces on the bodies of the aggregate."""
        g, at = max(self.node_body[node], 0), self.nodes[node]
        block = at.pose.shift if space is NODE else moved_numbers(at.pose)
        n = len(block)
        out = np.zeros((n * len(self.tree.bodies[g].bodies), n))
        if self.node_body[node] >= 0:  # a node on the ground never moves
            i = self.tree.slot[self.full.body_index[at.body]]
            out[n * i : n * i + n] = block
        return out

    # ----------------------------------------------------------------------------- specials

    def special(self, run: Interpreter, statement: Statement, k: int) -> Any:
        """What a special statement gives at an aggregate."""
        read = run.blocks_of(statement.reads[0][0])[k] if statement.reads else np.zeros((6, 1))
        bodies = [self.full.inertias[j] for j in self.tree.bodies[k].bodies]
        match statement.special:
            case "phi(q)":
                return self._shift(run, k)
            case "H(q)":
                inside = self.inside(run, k)
                return outward(inside, inside.X).T
            case "a":
                return self._bias_acceleration(run, k, read.reshape(-1, 6))
            case "b":
                V = zip(read.reshape(-1, 6), bodies, strict=True)
                forces = [cross_force(x[None], m.apply(x[None]))[0] for x, m in V]
                return np.concatenate(forces)[:, None]
            case "B_V":
                V = zip(read.reshape(-1, 6), bodies, strict=True)
                return block_diagonal([first(m.coriolis_factor(x[None]), 2) for x, m in V])
            case "to_W":
                return block_diagonal([_to_world(x) for x in read.reshape(-1, 3, 4)])
            case "cross" | "swap":
                parts = read.reshape(-1, 6)
                return block_diagonal([crossed(statement.special, x) for x in parts])
            case "regressor":
                parts = read.reshape(-1, 1, 6)
                return block_diagonal([first(momentum_regressor(x), 2) for x in parts])
            case "diagonal":  # of independent hinges: 𝒳* N 𝒳 changes by their own armature
                return np.diag(read[:, 0])
            case "inertia_of":
                return block_diagonal([inertia_matrix(x) for x in read.reshape(-1, 10)])
            case "weight_rate":
                rate = weight_rate(run.arithmetic.gravity)
                return block_diagonal([rate] * len(bodies))
            case "X_rate":
                return block_diagonal(self._place_forms(run, statement, k))
            case "weight_gravity":
                return np.concatenate([weight_by_gravity(m.matrix) for m in bodies])
            case "a_g_rate":
                return self._lifted(run, k)
            case "bias_rate_q" | "bias_rate_v" | "H_rate":
                return self._hinge_rate(run, statement, k)
            case _:
                raise self._no_derivative(str(statement.target.key))

    def _place_forms(self, run: Interpreter, statement: Statement, g: int) -> list[Array]:
        count = len(self.tree.bodies[g].bodies)
        reads = [run.blocks_of(quantity)[g] for quantity, _ in statement.reads]
        parts = [x.reshape(count, -1, 1) for x in reads]
        return [place_form(statement, [x[i] for x in parts]) for i in range(count)]

    def _lifted(self, run: Interpreter, g: int) -> Array:
        """How a_g of an aggregate changes with gravity (6 m, 3)."""
        group, turns, rows = self.tree.bodies[g], list[Any](), list[Any]()
        for k, inner in zip(group.bodies, group.inner, strict=True):
            back = self.joint(run, k).pose.rot.T
            turns.append(-back if inner < 0 else back @ turns[inner])
            rows += [np.zeros((3, 3)), turns[-1] if group.parent < 0 else np.zeros((3, 3))]
        return np.concatenate(rows)

    def _hinge_rate(self, run: Interpreter, statement: Statement, g: int) -> Array:
        """How H* x or Ḣ* u of an aggregate changes, as for a hinge (`aggregate_hinge.py`)."""
        if self._rotors_vary(g):
            raise LoweringError(
                f"{statement.target.key} was requested for {self.tree.name!r}, whose loops and "
                "couplings are built in and tie hinges with armature to others in a ratio that "
                "varies: lw.differentiate takes the armature N as constant. Use lw.jvp or lw.vjp "
                "of the expression before it is differentiated, lw.forward_dynamics_derivatives "
                "or lw.inverse_dynamics_derivatives."
            )
        hinge, q = AggregateHinge(self.tree, g), run.arithmetic.q[None]
        _ = self.inside(run, g).X  # checks the loops
        if statement.special == "H_rate":
            reads = [run.blocks_of(quantity)[g] for quantity, _ in statement.reads]
            return hinge_form(
                statement, hinge, q, np.eye(6 * len(self.tree.bodies[g].bodies)), reads
            )
        start, stop = self.tree.v_start[g], self.tree.v_start[g + 1]
        by_q, by_v = hinge.bias_derivative(q, run.arithmetic.v[None, start:stop])
        return first(by_q if statement.special == "bias_rate_q" else by_v, 2)

    def _shift(self, run: Interpreter, g: int) -> AggregateShift:
        group, p = self.tree.bodies[g], self.tree.bodies[g].parent
        steps = tuple(self.joint(run, k).shift for k in group.bodies)
        if p < 0:
            return AggregateShift(steps, group.inner)
        count = len(self.tree.bodies[self.tree.group_of[p]].bodies)
        return AggregateShift(steps, group.inner, self.tree.slot[p], count)

    def _bias_acceleration(self, run: Interpreter, g: int, V: Array) -> Array:
        """φ* (V × H_in* v + Ḣ_in* v + H_in* 𝔵), the base accelerated against gravity."""
        group, inside = self.tree.bodies[g], self.inside(run, g)
        rows = bias_accelerations(inside, V)
        up = np.concatenate([np.zeros(3), -run.arithmetic.gravity])[:, None]
        for i, (k, inner) in enumerate(zip(group.bodies, group.inner, strict=True)):
            if group.parent < 0 and inner < 0:
                part = slice(6 * i, 6 * i + 6)
                rows[part] = rows[part] + self.joint(run, k).shift.T @ up
        return outward(inside, inside.x[:, None], rows)

    def place(self, run: Interpreter, statement: Statement, k: int, node: int | None) -> Array:
        """Poses of the bodies of an aggregate, stacked; see `bodies.py`."""
        if node is not None and statement.special in AT_NODES:
            return node_block(run, statement, node)
        if node is not None:
            above = None
            if self.node_body[node] >= 0:
                i = self.tree.slot[self.full.body_index[self.nodes[node].body]]
                above = run.blocks_of(statement.reads[0][0])[k].reshape(-1, 3, 4)[i]
            return node_place(statement, self.nodes[node].pose, above)
        group, gravity = self.tree.bodies[k], run.arithmetic.gravity
        rows = list[Array]()
        match statement.special:
            case "a_g":
                for j, inner in zip(group.bodies, group.inner, strict=True):
                    above = -gravity if inner < 0 else rows[inner]
                    rows.append(self.joint(run, j).pose.rot.T @ above)
                if group.parent >= 0:
                    return np.zeros((6 * len(rows), 1))
                still = np.zeros(3)
                return np.concatenate([x for up in rows for x in (still, up)])[:, None]
            case "weight":
                for j in group.bodies:
                    m = self.full.inertias[j]
                    moment = np.concatenate([m.h, np.reshape(m.mass, (1,))])
                    rows.append(np.multiply.outer(-gravity, moment).reshape(12, 1))
                return np.concatenate(rows)
            case _:
                for j, inner in zip(group.bodies, group.inner, strict=True):
                    above = self._above(run, statement, group.parent) if inner < 0 else rows[inner]
                    pose = self.joint(run, j).pose
                    rows.append(placed(above, pose.rot, pose.p))
                return np.concatenate([x.reshape(12, 1) for x in rows])

    def _above(self, run: Interpreter, statement: Statement, p: int) -> Array | None:
        if p < 0:
            return None
        places = run.blocks_of(statement.target)[self.tree.group_of[p]].reshape(-1, 3, 4)
        return places[self.tree.slot[p]]

    def filtered_inertia(self, run: Interpreter, statement: Statement, k: int) -> Any:
        """P⁺ = P - G H P of an aggregate, not multiplied out; None for other statements."""
        return filtered(run, statement, k) if len(self.tree.bodies[k].bodies) > 1 else None


def filtered(run: Interpreter, statement: Statement, k: int) -> FilteredInertia | None:
    """P⁺ = P - G H P of a body with several parts, for a block-diagonal P; None for others."""
    family = family_of_part(statement.target.key)
    if family is None or statement.target.key is not family.P_plus:
        return None
    less = (Block(family.G), Block(family.H), Block(family.P))
    if statement.terms != (Term(1.0, (Block(family.P),)), Term(-1.0, less)):
        return None
    if run.gains.get(family.G) != 1.0:
        return None
    P, H = (run.block(Block(x), k, k, k) for x in (family.P, family.H))
    if not len(H) or not _is_block_diagonal(P):
        return None
    D_inverse: Any = run.block(Block(family.D, inverse=True), k, k, k)
    return FilteredInertia(P, H @ P, D_inverse)


def _to_world(x: Array) -> Array:
    rot = x[:, :3]
    return blocks(rot, 0.0 * rot, skew(x[None, :, 3])[0] @ rot, rot)


def _is_block_diagonal(P: Any) -> bool:
    """Whether there is nothing outside the blocks of six; nodes of a graph know that they are 0."""
    n = len(P)
    outside = [P[i, j] for i in range(n) for j in range(i) if i // 6 != j // 6]
    return all(x.is_zero if hasattr(x, "is_zero") else float(x) == 0.0 for x in outside)
