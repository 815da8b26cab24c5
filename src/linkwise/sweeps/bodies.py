"""The blocks of rigid bodies for the interpreter: sizes, kinematics, poses and inertias.

Formulas of hinges and inertias take arrays with a leading axis, as graph nodes need it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algebra import role
from linkwise.algebra.expr import Symbol
from linkwise.algebra.space import (
    CONSTRAINT,
    COORDINATE,
    GOAL,
    GRAVITY,
    INERTIA,
    NODE,
    ONE,
    PLACE,
    Space,
)
from linkwise.errors import LoweringError
from linkwise.model.closure import constraint_sizes
from linkwise.model.embedded import Embedded
from linkwise.model.hinges import Hinge
from linkwise.model.hinges.form import Moving, coordinate_block, form_block
from linkwise.model.hinges.hinge import qdot_map
from linkwise.model.mechanism import Mechanism
from linkwise.model.task_rows import goal_sizes
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import (
    SpatialInertia,
    inertia_matrix,
    momentum_regressor,
    moved_numbers,
    weight_rate,
)
from linkwise.spatial.pose import Pose, place_block
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import blocks, cross_force, cross_velocity
from linkwise.sweeps.factored import factored
from linkwise.sweeps.program import Statement
from linkwise.sweeps.result_part import SIZES
from linkwise.sweeps.structured_block import diagonal

if TYPE_CHECKING:
    from linkwise.sweeps.aggregate import Aggregates
    from linkwise.sweeps.interpret import Interpreter


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A rigid part of a body in one state: a rigid body, or the frame or a lump of a flexible one.

    Arrays of numbers or of graph nodes.
    """

    hinge: Hinge
    outboard: Pose  # of the part in hinge frame O
    pose: Callable[[], Pose]  # x_pk, seen from the parent
    inertia: Callable[[], SpatialInertia]
    on_ground: bool  # whether the parent is the ground
    q: Any  # coordinates (1, nq)
    v: Any  # velocities (1, nv)

    def map(self) -> Any:
        """H about the frame of the part (nv, 6)."""
        return self.about_body(first(self.hinge.hinge_map(self.q), 2))

    def about_body(self, H: Any) -> Any:
        """A hinge map about O, about the frame of the part."""
        return H if self.outboard is Pose.identity() else H @ self.outboard.shift


class Bodies:
    """The bodies of a mechanism, one block each.

    Attributes:
        mech: The mechanism.
        nodes: The nodes of the space NODE.
        node_body: The body of each; -1 for the ground.
    """

    def __init__(self, mech: Any, nodes: Sequence[Any], node_body: Sequence[int]) -> None:
        self.mech, self.nodes, self.node_body = mech, list(nodes), list(node_body)

    def nodes_of(self, k: int) -> list[int]:
        """The nodes on body k; those on the ground belong to the first body."""
        return [i for i, body in enumerate(self.node_body) if max(body, 0) == k]

    def sizes(self, space: Space) -> list[int]:
        """The length of each block of a space."""
        if space.name == "JOINT":
            return [body.hinge.nv for body in self.mech.bodies]
        if space is COORDINATE:
            return [body.hinge.nq for body in self.mech.bodies]
        if space.name in ("BODY", "INBOARD"):
            return [6] * self.mech.n_bodies
        if space is PLACE or space is INERTIA:
            return [12 if space is PLACE else 10] * self.mech.n_bodies
        if space is CONSTRAINT:
            return constraint_sizes(self.mech)
        if space is GOAL:
            return goal_sizes(self.mech)
        return node_sizes(space, len(self.nodes))

    def vector(self, run: Interpreter, source: str) -> None:
        """No vectors but inputs."""

    def operator(self, run: Interpreter, leaf: Symbol) -> list[Any] | None:
        """The blocks of a memoryless operator; None for others."""
        key, numbers = leaf.role, run.arithmetic
        each = range(self.mech.n_bodies)
        if isinstance(key, role.Selection):
            named = set(key.hinges)
            return [
                float(body.hinge_name in named) * np.eye(body.hinge.nv) for body in self.mech.bodies
            ]
        if isinstance(key, role.Gather):
            return [np.eye(6)] * self.mech.n_bodies
        if isinstance(key, role.Memoryless) and key.source == "M":
            return [first(numbers.inertia(k).matrix, 2) for k in each]
        if isinstance(key, role.Memoryless) and key.source == "N":
            return [diagonal(numbers.armature(k)) for k in each]
        if isinstance(key, role.Memoryless) and key.source == "coordinate_map":
            return [_coordinate_map(self.part(run, k)) for k in each]
        return None

    def pick_off(self, node: int, space: Space = NODE) -> Array:
        """B: from a force at a node to the force on its body; B_π of NODE_INERTIA."""
        pose, moving = self.nodes[node].pose, self.node_body[node] >= 0  # not on the ground
        block = pose.shift if space is NODE else moved_numbers(pose)
        return block if moving else np.zeros_like(block)

    def filtered_inertia(self, run: Interpreter, statement: Statement, k: int) -> Any:
        """None: P⁺ of one body is an array."""

    def special(self, run: Interpreter, statement: Statement, k: int) -> Any:
        """What a special statement gives at body k."""
        reads = [run.blocks_of(quantity)[k] for quantity, _ in statement.reads]
        return special_block(run, statement, self.part(run, k), reads)

    def part(self, run: Interpreter, k: int) -> Part:
        """The body itself."""
        mech, body, numbers = self.mech, self.mech.bodies[k], run.arithmetic
        return Part(
            body.hinge,
            body.outboard,
            lambda: numbers.pose(k),
            lambda: numbers.inertia(k),
            bool(mech.parent[k] < 0),
            numbers.q[None, mech.q_start[k] : mech.q_start[k + 1]],
            numbers.v[None, mech.v_start[k] : mech.v_start[k + 1]],
        )

    def place(self, run: Interpreter, statement: Statement, k: int, node: int | None) -> Array:
        """Poses as columns (12, 1), the rows of (rot | p) in sequence; see PLACED."""
        if node is not None and statement.special in AT_NODES:
            return node_block(run, statement, node)
        if node is not None:
            read = run.blocks_of(statement.reads[0][0])[k]
            above = None if self.node_body[node] < 0 else read[:12].reshape(3, 4)
            return node_place(statement, self.nodes[node].pose, above)
        return placed_block(run, statement, self.part(run, k), self.above(run, statement, k))

    def above(self, run: Interpreter, statement: Statement, k: int) -> Array | None:
        """The place (3, 4) of the parent of body k; None for the ground."""
        parent = int(self.mech.parent[k])
        if parent < 0 or statement.special != "X":
            return None
        return run.blocks_of(statement.target)[parent][:12].reshape(3, 4)


def _coordinate_map(part: Part) -> Any:
    """(N* N)⁻¹ N* (nv, nq) of a hinge: its velocities from rates of its coordinates."""
    hinge = part.hinge
    if type(hinge).qdot is Hinge.qdot:
        return np.eye(hinge.nv)
    if hinge.hull.nv > hinge.nv:
        raise LoweringError(
            f"raw_q was given for a {hinge.kind} hinge: its coordinates change in ways that its "
            "velocities do not span (nonholonomic). lw.jvp(..., raw_q=True) and lw.vjp take them."
        )
    N = qdot_map(hinge, part.q[0])
    return factored(N.T @ N) @ N.T


def special_block(run: Interpreter, statement: Statement, part: Part, reads: Sequence[Any]) -> Any:
    """What a special statement gives at a rigid part, from the blocks that it reads there."""
    numbers, read = run.arithmetic, reads[0] if reads else np.zeros((6, 1))
    match statement.special:
        case "phi(q)" | "Delta_phi(q)":
            return numbers.shift(part.pose())
        case "H(q)":
            return part.map()
        case "a":
            rate = first(part.hinge.bias(part.q, part.v), 1)
            rate = rate if part.outboard is Pose.identity() else part.outboard.shift.T @ rate
            a_k = cross_velocity(read[None, :, 0], (part.map().T @ part.v[0])[None])[0] + rate
            if part.on_ground:
                up = np.concatenate([np.zeros(3), -numbers.gravity])[:, None]
                a_k = a_k + (numbers.shift(part.pose()).T @ up)[:, 0]
            return a_k[:, None]
        case "A_V":
            rate = part.about_body(first(part.hinge.hinge_map_rate(part.q, part.v), 2))
            return (cross_velocity(read[None, :, 0], part.map()) + rate).T
        case "B_V":
            return first(part.inertia().coriolis_factor(read[None, :, 0]), 2)
        case "regressor":
            return first(momentum_regressor(read[None, :, 0]), 2)
        case "diagonal":
            return np.diag(read[:, 0])
        case "inertia_of":
            return inertia_matrix(read[:, 0])
        case "a_g_rate":
            turn = -part.pose().rot.T if part.on_ground else np.zeros((3, 3))
            return np.concatenate([np.zeros((3, 3)), turn])
        case "weight_rate":
            return weight_rate(numbers.gravity)
        case "weight_gravity":
            return weight_by_gravity(first(part.inertia().matrix, 2))
        case "X_rate":
            return place_form(statement, reads)
        case "H_rate":
            return hinge_form(statement, part.hinge, part.q, part.outboard.shift, reads)
        case "coordinate_rate":
            return coordinate_block(part.hinge, part.q, slots_of(statement, reads))
        case "cross" | "swap" | "bias_rate_q" | "bias_rate_v":
            return _derivative_block(statement, part, read[:, 0])
        case "to_W":
            return numbers.to_world(read.reshape(3, 4))
        case _:
            momentum = part.inertia().apply(read[None, :, 0])
            return cross_force(read[None, :, 0], momentum)[0][:, None]


def placed_block(run: Interpreter, statement: Statement, part: Part, above: Array | None) -> Array:
    """A place (12, 1) of a rigid part, or a vector that belongs to it, such as its weight."""
    gravity = run.arithmetic.gravity
    match statement.special:
        case "a_g":
            lifted = part.pose().rot.T @ -gravity if part.on_ground else np.zeros(3)
            return np.concatenate([np.zeros(3), lifted])[:, None]
        case "weight":
            return weight_by_gravity(first(part.inertia().matrix, 2)) @ gravity[:, None]
        case _:
            pose = part.pose()
            return placed(above, pose.rot, pose.p).reshape(12, 1)


def weight_by_gravity(M_k: Any) -> Any:
    """-(h* | m) at each entry of gravity (12, 3), from an inertia [[J, h~], [-h~, m]]."""
    moment = np.stack([M_k[2, 4], M_k[0, 5], M_k[1, 3], M_k[5, 5]])
    return np.kron(-np.eye(3), moment[:, None])


def bodies_of(mech: Mechanism | Embedded, names: Sequence[str]) -> Bodies | Aggregates:
    """The bodies of a mechanism, or the aggregates of an embedded one."""
    nodes = [mech.node(name) for name in names]
    node_body = [mech.body_index[node.body] for node in nodes]
    if isinstance(mech, Embedded):
        from linkwise.sweeps.aggregate import Aggregates

        return Aggregates(mech, nodes, node_body)
    if mech.flexible:
        from linkwise.sweeps.flexible import FlexibleBodies

        return FlexibleBodies(mech, nodes, node_body)
    return Bodies(mech, nodes, node_body)


def node_sizes(space: Space, nodes: int) -> list[int]:
    """The length of each block of a space over nodes, or of a number."""
    if space.block == "node":
        return [SIZES[space]] * nodes
    if space is ONE or space is GRAVITY:
        return [1 if space is ONE else 3]
    raise LoweringError(f"the space {space} has no blocks in this mechanism.")


def first(array: Any, axes: int) -> Any:
    """Without the leading axis that formulas have; constants may come without it."""
    return array[0] if np.ndim(array) > axes else array


def _derivative_block(statement: Statement, part: Part, x: Any) -> Any:
    """x×, x×̄ or ∂(Ḣ* v) at a part."""
    if statement.special in ("cross", "swap"):
        return crossed(statement.special, x)
    by_q, by_v = part.hinge.bias_derivative(part.q, part.v)
    return part.outboard.shift.T @ first(by_q if statement.special == "bias_rate_q" else by_v, 2)


def crossed(which: str, x: Any) -> Any:
    """x× or x×̄."""
    w, u, zero = skew(x[:3]), skew(x[3:]), np.zeros((3, 3))
    return blocks(-w, -u, -u, zero) if which == "swap" else blocks(w, zero, u, w)


def hinge_form(
    statement: Statement, hinge: Moving, q: Any, shift: Any, reads: Sequence[Any]
) -> Any:
    """Derivatives of the hinge map at a part: see `role.HingeRate` and `form_block`."""
    return form_block(hinge, q, shift, slots_of(statement, reads))


def slots_of(statement: Statement, reads: Sequence[Any]) -> list[Any]:
    """The slots of a form, with vectors for those that are given."""
    key = statement.target.key
    assert isinstance(key, Symbol) and isinstance(key.role, role.HingeRate | role.CoordinateRate)
    rest = iter(reads)
    return [x if isinstance(x, str) else next(rest)[:, 0] for x in key.role.slots]


AT_NODES = ("cross", "swap", "regressor", "X_rate", "angular")
"""Leaves of derivatives that nodes have as well as bodies."""


def node_block(run: Interpreter, statement: Statement, node: int) -> Any:
    """A leaf of a derivative at a node."""
    if statement.special == "angular":
        return np.diag([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    if statement.special == "X_rate":
        return place_form(statement, [run.blocks_of(x)[node] for x, _ in statement.reads])
    x = run.blocks_of(statement.reads[0][0])[node][:, 0]
    if statement.special == "regressor":
        return first(momentum_regressor(x[None]), 2)
    return crossed(statement.special, x)


def place_form(statement: Statement, reads: Sequence[Any]) -> Any:
    """Derivatives of a pose at a part or node: see `role.PlaceRate`."""
    key = statement.target.key
    assert isinstance(key, Symbol) and isinstance(key.role, role.PlaceRate)
    place, *vectors = (x[:, 0] for x in reads)
    rest = iter(vectors)
    slots = [x if isinstance(x, str) else next(rest) for x in key.role.slots]
    return place_block(place.reshape(3, 4), slots)


def placed(above: Array | None, rot: Array, p: Array) -> Array:
    """X_WP X_PB as (rot | p), (3, 4); without the first, X_PB is seen from the world itself."""
    if above is None:
        return np.concatenate([rot, p[:, None]], axis=1)
    turned = above[:, :3] @ rot
    moved = above[:, :3] @ p + above[:, 3]
    return np.concatenate([turned, moved[:, None]], axis=1)


def node_place(statement: Statement, pose: Pose, above: Array | None) -> Array:
    """X_B of a node as a column (12, 1), or rot_W as a block (6, 6)."""
    place = placed(above, pose.rot, pose.p)
    if statement.special == "X_B":
        return place.reshape(12, 1)
    zero = np.zeros((3, 3))
    return np.block([[place[:, :3], zero], [zero, place[:, :3]]])
